/* SPDX-License-Identifier: MIT */
/*
 * One heat map per head, words on both axes: row i, column j shows how much word i of the rows
 * attends to word j of the columns. Maps stand side by side as the width allows.
 */
#ifndef DRAW_HEATMAP_H
#define DRAW_HEATMAP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/terminal.h"
#include "base/text.h"

typedef struct heatmap_words {
    const text_word *words;
    int count;
} heatmap_words;

typedef struct heatmap_sheet {
    heatmap_words rows, columns;
    int heads;
    const float *weights;      /* [heads, rows, columns] */
    bool causal;               /* columns after the row are left blank */
    const char *const *titles; /* [heads]; NULL: "head 1" and on */
    const char *const *notes;  /* [heads], below the titles; NULL: none */
    const char *heading;       /* above the maps; NULL: none */
} heatmap_sheet;

enum { HEATMAP_TITLE_MAX = 32 };

/* What stands above map `head`. */
const char *heatmap_title(const heatmap_sheet *sheet, int head, char text[HEATMAP_TITLE_MAX]);

/* Columns of the widest title or note. */
int heatmap_widest_title(const heatmap_sheet *sheet);

/* Columns of the widest word. */
int heatmap_widest(const heatmap_words *words);

/* Colours where the terminal has them, else characters from light to dark. */
void heatmap_draw(FILE *file, const heatmap_sheet *sheet, const terminal *t);

/* The same pictures, one below the other, as SVG on a ground of its own: fits dark and light pages.
 */
void heatmap_svg(FILE *file, const heatmap_sheet *sheets, int count, const char *caption);

/* The same again as TikZ, for a LaTeX document, with the numbers in it. */
void heatmap_tikz(FILE *file, const heatmap_sheet *sheets, int count);

/* The largest weight of the sheet: what the brightest colour stands for. */
float heatmap_largest(const heatmap_sheet *sheet);

#endif
