/* SPDX-License-Identifier: MIT */
/* Measures of a head on a picture, row by row, and the rules for its role (picture_roles.h). */
#include "heads/picture_roles.h"

#include <math.h>

const char *picture_measure_name(picture_measure measure)
{
    static const char *const names[PICTURE_MEASURES] = {
        [PICTURE_CLASS] = "class",
        [PICTURE_SELF] = "self",
        [PICTURE_ABOVE] = "above",
        [PICTURE_BELOW] = "below",
        [PICTURE_LEFT] = "left",
        [PICTURE_RIGHT] = "right",
        [PICTURE_MOST_ABOVE] = "most_above",
        [PICTURE_MOST_BELOW] = "most_below",
        [PICTURE_MOST_LEFT] = "most_left",
        [PICTURE_MOST_RIGHT] = "most_right",
        [PICTURE_AROUND] = "around",
        [PICTURE_ROW] = "row",
        [PICTURE_COLUMN] = "column",
        [PICTURE_BORDER] = "border",
        [PICTURE_SAME] = "same_part",
        [PICTURE_OBJECT] = "object",
        [PICTURE_BREADTH] = "broad",
        [PICTURE_REACH] = "reach",
        [PICTURE_DISTANCE] = "distance",
    };
    return names[measure];
}

/* -------------------------------------------------------------- measures ----- */

/* One row: the weights of a patch on all patches, which sum to `total`. */
typedef struct patch_row {
    const float *weights; /* [across * across] */
    int across, y, x;
    double total;
} patch_row;

/* The sums of one row that need every patch. */
typedef struct row_sums {
    double around, row, column, border, distance, entropy;
    double even_border, even_distance; /* of equal weights */
    double part, object, even_part, even_object;
} row_sums;

static void add(head_sample samples[PICTURE_MEASURES], picture_measure measure, double value)
{
    samples[measure].sum += (float)value;
    samples[measure].count += 1.0f;
}

static bool on_border(int across, int y, int x)
{
    return y == 0 || x == 0 || y == across - 1 || x == across - 1;
}

/* Adds what patch n brings, whose share of the weight is w and that of equal weights is `even`. */
static void add_patch(row_sums *s, const patch_row *r, const bool *object, int n, double w,
                      double even)
{
    const int y = n / r->across, x = n % r->across, down = y - r->y, right = x - r->x;
    const double distance = sqrt((double)(down * down + right * right));
    const bool self = down == 0 && right == 0;
    if (!self && down * down <= 1 && right * right <= 1)
        s->around += w;
    if (!self && down == 0)
        s->row += w;
    if (!self && right == 0)
        s->column += w;
    if (on_border(r->across, y, x)) {
        s->border += w;
        s->even_border += even;
    }
    s->distance += w * distance;
    s->even_distance += even * distance;
    s->entropy -= w > 0.0 ? w * log(w) : 0.0;
    if (!object)
        return;
    const bool same = object[n] == object[r->y * r->across + r->x];
    s->part += same ? w : 0.0;
    s->even_part += same ? even : 0.0;
    s->object += object[n] ? w : 0.0;
    s->even_object += object[n] ? even : 0.0;
}

/* The patch with the largest weight other than this one, the first of equal ones. */
static int largest_other(const patch_row *r)
{
    const int own = r->y * r->across + r->x;
    int best = own == 0 ? 1 : 0;
    for (int n = best + 1; n < r->across * r->across; n++)
        if (n != own && r->weights[n] > r->weights[best])
            best = n;
    return best;
}

static void measure_neighbours(const patch_row *r, head_sample samples[PICTURE_MEASURES])
{
    static const int steps[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    const int most = largest_other(r);
    for (int d = 0; d < 4; d++) {
        const int y = r->y + steps[d][0], x = r->x + steps[d][1];
        if (y < 0 || x < 0 || y >= r->across || x >= r->across)
            continue;
        const int n = y * r->across + x;
        add(samples, (picture_measure)(PICTURE_ABOVE + d), (double)r->weights[n] / r->total);
        add(samples, (picture_measure)(PICTURE_MOST_ABOVE + d), most == n);
    }
}

static void measure_row(const patch_row *r, const bool *object,
                        head_sample samples[PICTURE_MEASURES])
{
    const int patches = r->across * r->across, own = r->y * r->across + r->x;
    const double even = 1.0 / patches;
    row_sums s = {0};
    for (int n = 0; n < patches; n++)
        add_patch(&s, r, object, n, (double)r->weights[n] / r->total, even);
    add(samples, PICTURE_SELF, (double)r->weights[own] / r->total);
    measure_neighbours(r, samples);
    add(samples, PICTURE_AROUND, s.around);
    add(samples, PICTURE_ROW, s.row);
    add(samples, PICTURE_COLUMN, s.column);
    add(samples, PICTURE_BORDER, s.border - s.even_border);
    add(samples, PICTURE_BREADTH, s.entropy / log((double)patches));
    add(samples, PICTURE_REACH, s.distance / s.even_distance);
    add(samples, PICTURE_DISTANCE, s.distance);
    if (object) {
        add(samples, PICTURE_SAME, s.part - s.even_part);
        add(samples, PICTURE_OBJECT, s.object - s.even_object);
    }
}

void picture_measure_head(const head_matrix *m, const subject_picture *p,
                          head_sample samples[PICTURE_MEASURES])
{
    const int patches = p->across * p->across;
    for (int n = 0; n < PICTURE_MEASURES; n++)
        samples[n] = (head_sample){0};
    if (p->across < 2)
        return;
    for (int n = 0; n < patches; n++) {
        const float *const weights = m->weights + (ptrdiff_t)(p->marks + n) * m->columns;
        patch_row r = {weights + p->marks, p->across, n / p->across, n % p->across, 0.0};
        double marks = 0.0;
        for (int c = 0; c < p->marks; c++)
            marks += (double)weights[c];
        for (int c = 0; c < patches; c++)
            r.total += (double)r.weights[c];
        if (p->marks > 0)
            add(samples, PICTURE_CLASS, marks);
        if (r.total > 0.0)
            measure_row(&r, p->object, samples);
    }
}

/* ----------------------------------------------------------------- roles ----- */

static const picture_role rules[] = {
    {false, "class token", PICTURE_CLASS, 0.0, 0.5},
    {false, "self", PICTURE_SELF, 0.0, 0.5},
    {false, "above", PICTURE_ABOVE, 0.0, 0.3},
    {false, "below", PICTURE_BELOW, 0.0, 0.3},
    {false, "left", PICTURE_LEFT, 0.0, 0.3},
    {false, "right", PICTURE_RIGHT, 0.0, 0.3},
    {false, "above", PICTURE_MOST_ABOVE, 0.0, 0.5},
    {false, "below", PICTURE_MOST_BELOW, 0.0, 0.5},
    {false, "left", PICTURE_MOST_LEFT, 0.0, 0.5},
    {false, "right", PICTURE_MOST_RIGHT, 0.0, 0.5},
    {false, "neighbours", PICTURE_AROUND, 0.0, 0.5},
    {false, "same row", PICTURE_ROW, 0.0, 0.5},
    {false, "same column", PICTURE_COLUMN, 0.0, 0.5},
    {false, "border", PICTURE_BORDER, 0.0, 0.3},
    {false, "same part", PICTURE_SAME, 0.0, 0.2},
    {false, "object", PICTURE_OBJECT, 0.0, 0.2},
    {false, "broad", PICTURE_BREADTH, 0.0, 0.9},
    {false, "far", PICTURE_REACH, 0.0, 1.2},
};

/* Of the four directions the strongest counts, so the largest of rules [first, first + 4). */
enum { FIRST_DIRECTION = 2, FIRST_MOST = 6, DIRECTIONS = 4 };

static bool is_weaker_direction(const double means[PICTURE_MEASURES], int rule)
{
    const int first = rule >= FIRST_MOST ? FIRST_MOST : FIRST_DIRECTION;
    if (rule < FIRST_DIRECTION || rule >= FIRST_MOST + DIRECTIONS)
        return false;
    for (int n = first; n < first + DIRECTIONS; n++)
        if (means[rules[n].measure] > means[rules[rule].measure])
            return true;
    return false;
}

picture_role picture_role_choose(const double means[PICTURE_MEASURES])
{
    picture_role nearest = {.name = "mixed", .score = NAN, .threshold = 1.0};
    for (size_t n = 0; n < sizeof rules / sizeof rules[0]; n++) {
        picture_role role = rules[n];
        role.score = means[role.measure];
        if (isnan(role.score) || is_weaker_direction(means, (int)n))
            continue;
        if ((float)role.score >= (float)role.threshold) {
            role.found = true;
            return role;
        }
        if (isnan(nearest.score) || role.score / role.threshold > nearest.score / nearest.threshold)
            nearest = role;
    }
    return nearest;
}
