/* SPDX-License-Identifier: MIT */
/*
 * One heat map per head, words on both axes: row i, column j shows how much word i of the rows
 * attends to word j of the columns. As many maps as fit are side by side.
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

/* The title of map `head`; `text` is used if it must be made. */
const char *heatmap_title(const heatmap_sheet *sheet, int head, char text[HEATMAP_TITLE_MAX]);

/* Columns of the widest title or note. */
int heatmap_widest_title(const heatmap_sheet *sheet);

/* Columns of the widest word. */
int heatmap_widest(const heatmap_words *words);

/* Draws with colours if the terminal has them, else with characters from light to dark. */
void heatmap_draw(FILE *file, const heatmap_sheet *sheet, const terminal *t);

/* The sheets one below the other as SVG, on a dark ground that fits dark and light pages. */
void heatmap_svg(FILE *file, const heatmap_sheet *sheets, int count, const char *caption);

/* The sheets as TikZ for a LaTeX document, with the numbers in it. */
void heatmap_tikz(FILE *file, const heatmap_sheet *sheets, int count);

/* The largest weight of the sheet, which the end of the colour scale stands for. */
float heatmap_largest(const heatmap_sheet *sheet);

#endif
