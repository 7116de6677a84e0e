/* SPDX-License-Identifier: MIT */
/*
 * Statistics of attention against weights.
 *
 *      sheet       everything that options.statistics can ask for, in exact heap blocks that hold a
 *                  pattern until they are written
 *      sheet_row   what one row of weights must give, summed plainly in double precision, and the
 *                  comparison with what a sheet holds for it
 */
#ifndef MHA_TEST_STATISTICS_ORACLE_H
#define MHA_TEST_STATISTICS_ORACLE_H

#include "support/problems.h"

typedef struct sheet {
    mha_statistics wanted; /* for options.statistics */
    ptrdiff_t B, H, L, S;
    double *columns; /* [B][H][S]: what compared rows come to, */
    double *units;   /* and how far f32 may be from it */
} sheet;

/* All parts. */
sheet *sheet_new(const mha_shape *shape, ptrdiff_t first_keys, ptrdiff_t top);
void sheet_free(sheet *s);

/* Nothing written, nothing compared. */
void sheet_clear(sheet *s);

/* Same bits everywhere; of a batch and head of one with those of another, whose S may be larger. */
bool sheets_same(const sheet *a, const sheet *b);
bool sheets_same_head(const sheet *a, ptrdiff_t b, ptrdiff_t h, const sheet *of, ptrdiff_t of_b,
                      ptrdiff_t of_h);

/* Does every part still hold the pattern? */
bool sheet_untouched(const sheet *s);
bool sheet_row_untouched(const sheet *s, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i);

/* A row of weights over `keys` keys, its place among them, and u times the size of its scores. */
typedef struct sheet_row {
    ptrdiff_t b, h, i, keys, position;
    const double *weights;
    double unit;
} sheet_row;

/* Compare the row; `name` for messages. */
void sheet_check_row(sheet *s, const sheet_row *row, const char *name);

/* When all rows are compared: columns, and heads against the mean of the sheet's own rows. */
void sheet_check_heads(const sheet *s, const int64_t *queries, const char *name);

/* All of that for a call of the operator whose options have s->wanted, against the oracle. */
void sheet_check(sheet *s, const attention_call *p, const char *name);

#endif
