/* SPDX-License-Identifier: MIT */
/*
 * Output to terminals: what they can show, colours, and progress.
 *
 * Colours only on a terminal, unless CLICOLOR_FORCE is set to something other than 0; never with
 * NO_COLOR set, never with TERM=dumb.
 */
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum color_depth { COLOR_NONE, COLOR_16, COLOR_256, COLOR_TRUE } color_depth;

enum { TERMINAL_WIDTH_MIN = 20, TERMINAL_WIDTH_MAX = 400 };

typedef struct terminal {
    color_depth color;
    int width;    /* columns, within these bounds; 80 if not known */
    bool unicode; /* the locale is a UTF-8 one */
} terminal;

typedef struct rgb {
    uint8_t r, g, b;
} rgb;

terminal terminal_query(FILE *file);

/* Set the colour behind what is printed next, or its own, if the terminal has colours. */
void terminal_background(FILE *file, const terminal *t, rgb color);
void terminal_foreground(FILE *file, const terminal *t, rgb color);

typedef enum text_style { STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_BAD } text_style;
void terminal_style(FILE *file, const terminal *t, text_style style);
void terminal_plain(FILE *file, const terminal *t);

/* A line on stderr that the next one overwrites; only if stderr is a terminal, and at most ten
 * times per second. progress_end() erases it. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void);
/* Whether progress() prints anything. */
bool progress_is_live(void);

#endif
