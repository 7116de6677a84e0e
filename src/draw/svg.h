/* SPDX-License-Identifier: MIT */
/* Pieces that every SVG file of the program has. */
#ifndef DRAW_SVG_H
#define DRAW_SVG_H

#include <stdio.h>

#include "draw/color_scale.h"

/* Opens the picture, with its title; svg_end() closes it. */
void svg_begin(FILE *file, int width, int height, const char *title);
void svg_end(FILE *file);

/* Text with the characters that XML reserves escaped. */
void svg_escaped(FILE *file, const char *text);

/* A line of text; `attributes` are empty or begin with a space. */
void svg_text(FILE *file, int x, int y, const char *attributes, const char *text);

/* A rectangle, its corners rounded by `radius`; without the end of the line. */
void svg_cell(FILE *file, int x, int y, int width, int height, int radius, rgb color);

/* The scale for dark grounds as a bar of `count` cells, `step` pixels apart. */
void svg_color_bar(FILE *file, int x, int y, int count, int step, int width, int height);

#endif
