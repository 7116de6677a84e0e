/* SPDX-License-Identifier: MIT */
/*
 * Curves over an axis, as SVG; light or dark as the reader's screen is.
 *
 *      heading
 *      -- first key            -- second key
 *  level |-------------------------------------
 *  level |-------------------------------------
 *        +------+------+------+------+---------
 *            tick   tick   tick   tick
 *                     name of the axis
 *
 * The pieces are written one after another, between chart_begin() and svg_end(). The class of a
 * curve and of its key is "t" or "v", which have different colours.
 */
#ifndef DRAW_CHART_H
#define DRAW_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "draw/svg.h"

/* `dashed` makes the curves of class "t" dashed. */
void chart_begin(FILE *file, const char *title, const char *heading, bool dashed);

/* Where a value stands on an axis that ends at `whole`, in pixels. */
double chart_x(double value, double whole);
double chart_y(double value, double whole);

/* A line across at height y, with its label. */
void chart_level(FILE *file, double y, const char *label);

/* The axis at the bottom: its line, its name, and a tick at x, with or without a mark. */
void chart_axis(FILE *file);
void chart_axis_name(FILE *file, const char *name);
void chart_tick(FILE *file, double x, long long number, bool mark);

/* A curve, point by point. */
void chart_curve_begin(FILE *file, const char *class);
void chart_curve_point(FILE *file, double x, double y);
void chart_curve_end(FILE *file);

/* What a curve shows; `right` pixels to the right of the axis. */
void chart_key(FILE *file, int right, const char *class, const char *name);

#endif
