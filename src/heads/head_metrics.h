/* SPDX-License-Identifier: MIT */
/*
 * Measures of one head on one sentence. A row is a token that attends, a column one that is
 * attended to; rows sum to 1. Means are over rows that see two columns or more.
 *
 * Definitions follow Clark et al. 2019 (offsets, smoothed entropy, distance of heads), Voita et
 * al. 2019 (confidence, argmax at an offset) and the detectors of induction heads.
 */
#ifndef HEADS_HEAD_METRICS_H
#define HEADS_HEAD_METRICS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct head_matrix {
    const float *weights; /* [rows][columns] */
    int rows, columns;
    bool causal; /* row i sees columns 0 to i */
} head_matrix;

/* The number of columns that row i sees. */
int head_seen(const head_matrix *m, int i);

/* Mean weight at column i + r; 0 where there is none. */
double head_offset_mass(const head_matrix *m, int r);

/* Of the rows that have a column i + r, the share whose largest weight is there. */
double head_offset_argmax(const head_matrix *m, int r);

/* The column with the largest weight, of those not skipped; skip: [columns] or NULL. The first of
 * equal ones. -1: all are skipped, or their weights are 0: the row attends to none of them. */
int head_argmax(const head_matrix *m, int i, const bool *skip);

/* Mean weight on one column. */
double head_column_mass(const head_matrix *m, int column);

/* The share of the rows that have more than half of their weight on the same column, that of most
 * rows. Only columns [first, end) that are not skipped count. */
double head_one_column(const head_matrix *m, const bool *skip, int first, int end);

/* Mean of the largest weight outside skipped columns. */
double head_confidence(const head_matrix *m, const bool *skip);

/* Mean entropy of the rows, in nats; the same of 0.9999 a + 0.0001 / columns; and the mean of the
 * entropy divided by that of equal weights on all columns that the row sees. */
double head_entropy(const head_matrix *m);
double head_entropy_smoothed(const head_matrix *m);
double head_breadth(const head_matrix *m);

/* Mean |i - j|, weighted by the weights outside skipped columns. 0: there are none. */
double head_distance(const head_matrix *m, const bool *skip);

/* ----------------------------------------------------------- detectors ----- */

/* Whether a head of this type would attend from token i to token j. */
typedef bool (*head_detector)(const int *tokens, int i, int j);
bool head_is_previous(const int *tokens, int i, int j);
bool head_is_duplicate(const int *tokens, int i, int j); /* the same token, earlier */
bool head_is_induction(const int *tokens, int i, int j); /* the token after an earlier equal one */

/* The share of all weight that is where the detector is true. */
double head_detect(const head_matrix *m, head_detector detector, const int *tokens);

/* --------------------------------------------------------- two and more ----- */

/* Sum over rows of the Jensen-Shannon divergence of 0.999 a + 0.001 / columns, in nats: at most
 * ln 2 per row. Both have the same shape. */
double head_divergence(const head_matrix *a, const head_matrix *b);

/*
 * How different heads are: the mean over all pairs of heads, and over the rows that see two columns
 * or more, of the Jensen-Shannon divergence of their rows, in nats. 0: all are equal; ln 2: no two
 * of them attend to the same column. NaN: there is a single head, or no such row. heads: [count] of
 * the same shape.
 */
double head_diversity(const head_matrix *heads, int count);

/* The alignment that a head finds, compared with a known one. */
typedef struct head_links {
    int words, words_right;  /* words that have links, and those that the head aligns rightly */
    int found, right, known; /* links: found by the head, at most one per word; right; all */
} head_links;

/* A word is aligned with the column of its largest weight. Row first_row + n is that of word n, bit
 * j of links[n] is its link to column j; columns from 64 on have none. The alignment error rate,
 * with all links sure, is 1 - 2 right / (found + known). */
head_links head_align(const head_matrix *m, int first_row, const uint64_t *links, int words,
                      const bool *skip);

#endif
