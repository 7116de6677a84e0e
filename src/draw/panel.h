/* SPDX-License-Identifier: MIT */
/*
 * One of several small charts in a picture, with a logarithmic axis on the left; light or dark as
 * the reader's screen is.
 *
 *      title
 *  0.5 |-------------------
 *  0.2 |-------------------
 *      +----+----+----+----
 *           1    2    4
 *          name of the axis
 *
 * Lines, dots and bars have a class of panel_style(): PANEL_COLORS colours, "c0", "c1" ... in the
 * order of a rainbow; "d" after it makes a line dashed.
 */
#ifndef DRAW_PANEL_H
#define DRAW_PANEL_H

#include <stdio.h>

enum { PANEL_COLORS = 8 };

typedef struct panel {
    FILE *file;
    int left, top, width, height; /* of the area between the axes, in pixels */
    double first, last;           /* ends of the axis at the bottom */
    int low, high;                /* ends of the axis on the left, as round_number() */
} panel;

/* The style sheet and the ground of a picture of panels; to be written after svg_begin(). */
void panel_style(FILE *file, int width, int height);

/* Sets the axis on the left, so that it has all values from `least` to `most`, both positive. */
void panel_range(panel *p, double least, double most);

/* Title, levels, the axis at the bottom and its name. */
void panel_frame(const panel *p, const char *title, const char *axis);
void panel_tick(const panel *p, double value, const char *label);

/* In pixels; what is below the axis on the left is put at its end. */
double panel_x(const panel *p, double value);
double panel_y(const panel *p, double value);

/* A line between points; a dot; a bar from `low` to `high`; all at x and y as above. */
void panel_line_begin(const panel *p, int color, int dashed);
void panel_line_point(const panel *p, double x, double y);
void panel_line_end(const panel *p);
void panel_dot(const panel *p, int color, double x, double y);
void panel_bar(const panel *p, int color, double x, double y_low, double y_high);

/* A short line with a text beside it, anywhere in the picture. */
void panel_key(FILE *file, int x, int y, int color, int dashed, const char *text);

#endif
