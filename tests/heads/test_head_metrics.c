/* SPDX-License-Identifier: MIT */
/*
 * Every measure on heads for which its value is known: a head that attends to the token itself, to
 * the previous one, to all columns equally, to a single column; without a mask, causal, and with
 * more columns than rows.
 */
#include "heads/head_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

enum { SIZE = 9, WIDE = 13 };

typedef enum pattern { IDENTITY, SHIFT, UNIFORM, COLUMN, PATTERNS } pattern;

typedef struct subject {
    float weights[WIDE * WIDE];
    head_matrix m;
} subject;

/* A row without the column that the pattern wants attends to column 0. */
static void fill(subject *s, pattern what, int rows, int columns, bool causal)
{
    memset(s->weights, 0, sizeof s->weights);
    s->m = (head_matrix){s->weights, rows, columns, causal};
    for (int i = 0; i < rows; i++) {
        const int seen = head_seen(&s->m, i);
        const int at = what == IDENTITY ? i : what == SHIFT && i > 0 ? i - 1 : 0;
        for (int j = 0; j < seen; j++)
            s->weights[i * columns + j] = what == UNIFORM ? (float)(1.0 / seen)
                                          : j == at       ? 1.0f
                                                          : 0.0f;
    }
}

static void near(double got, double wanted, const char *what)
{
    CHECK(fabs(got - wanted) < 1e-6, "%s: %.9g, not %.9g", what, got, wanted);
}

static void offsets_of_known_heads(void)
{
    subject s;
    fill(&s, IDENTITY, SIZE, SIZE, false);
    near(head_offset_mass(&s.m, 0), 1, "identity");
    near(head_offset_mass(&s.m, -1), 0, "identity, previous");
    near(head_offset_argmax(&s.m, 0), 1, "identity, argmax");
    fill(&s, SHIFT, SIZE, SIZE, false);
    near(head_offset_mass(&s.m, -1), (SIZE - 1.0) / SIZE, "shift: the first has none before it");
    near(head_offset_argmax(&s.m, -1), 1, "shift, argmax");
    near(head_offset_mass(&s.m, 0), 1.0 / SIZE, "shift: the first looks at itself");
    fill(&s, SHIFT, SIZE, SIZE, true);
    near(head_offset_mass(&s.m, -1), 1, "causal shift: the first has no choice");
    fill(&s, UNIFORM, SIZE, SIZE, false);
    near(head_offset_mass(&s.m, 1), (SIZE - 1.0) / SIZE / SIZE, "uniform, next");
    fill(&s, UNIFORM, SIZE, WIDE, false);
    near(head_offset_mass(&s.m, 1), 1.0 / WIDE, "uniform, rectangular, next");
    fill(&s, COLUMN, SIZE, WIDE, false);
    near(head_offset_mass(&s.m, -2), 1.0 / SIZE, "column: one row is two after it");
}

static void columns_of_known_heads(void)
{
    const bool first[WIDE] = {true};
    subject s;
    fill(&s, COLUMN, SIZE, WIDE, false);
    near(head_column_mass(&s.m, 0), 1, "column");
    near(head_column_mass(&s.m, 1), 0, "column, elsewhere");
    near(head_confidence(&s.m, NULL), 1, "column, confidence");
    near(head_confidence(&s.m, first), 0, "column, confidence without it");
    fill(&s, UNIFORM, SIZE, WIDE, false);
    near(head_column_mass(&s.m, 0), 1.0 / WIDE, "uniform");
    near(head_confidence(&s.m, NULL), 1.0 / WIDE, "uniform, confidence");
    fill(&s, UNIFORM, 3, 3, true);
    near(head_column_mass(&s.m, 0), (1.0 / 2 + 1.0 / 3) / 2, "causal uniform");
}

static void entropies_of_known_heads(void)
{
    subject s;
    for (int what = 0; what < PATTERNS; what++) {
        fill(&s, (pattern)what, SIZE, WIDE, false);
        const double entropy = what == UNIFORM ? log(WIDE) : 0.0;
        const double high = 0.9999 + 0.0001 / WIDE, low = 0.0001 / WIDE;
        const double smooth =
            what == UNIFORM ? log(WIDE) : -high * log(high) - (WIDE - 1) * low * log(low);
        near(head_entropy(&s.m), entropy, "entropy");
        near(head_entropy_smoothed(&s.m), smooth, "smoothed entropy");
        near(head_breadth(&s.m), what == UNIFORM ? 1 : 0, "breadth");
    }
    fill(&s, UNIFORM, 8, 8, false);
    CHECK(fabs(head_entropy(&s.m) - log(8)) < 1e-12, "%.17g is not ln 8", head_entropy(&s.m));
    fill(&s, UNIFORM, SIZE, SIZE, true);
    near(head_breadth(&s.m), 1, "causal breadth: as wide as each row can be");
}

static void distances_of_known_heads(void)
{
    bool first[WIDE] = {true};
    subject s;
    fill(&s, IDENTITY, SIZE, SIZE, false);
    near(head_distance(&s.m, NULL), 0, "identity");
    fill(&s, SHIFT, SIZE, SIZE, true);
    near(head_distance(&s.m, NULL), 1, "shift");
    fill(&s, COLUMN, SIZE, SIZE, false);
    near(head_distance(&s.m, NULL), (SIZE - 1) / 2.0, "column");
    near(head_distance(&s.m, first), 0, "column, without it");
    fill(&s, UNIFORM, SIZE, SIZE, false);
    near(head_distance(&s.m, NULL), (SIZE * SIZE - 1.0) / (3.0 * SIZE), "uniform");
}

static void skipping_leaves_the_weights_alone(void)
{
    subject s, before;
    bool skip[WIDE] = {true, true};
    fill(&s, UNIFORM, SIZE, WIDE, false);
    before = s;
    head_confidence(&s.m, skip);
    head_distance(&s.m, skip);
    CHECK(head_argmax(&s.m, 3, skip) == 2, "the first of equal ones");
    memset(skip, true, sizeof skip);
    CHECK(head_argmax(&s.m, 3, skip) == -1, "none is left");
    CHECK(memcmp(s.weights, before.weights, sizeof s.weights) == 0, "the weights have changed");
}

static void detectors_by_hand(void)
{
    static const float rows[4][4] = {{1}, {.5f, .5f}, {.2f, .3f, .5f}, {.1f, .15f, .5f, .25f}};
    const head_matrix m = {&rows[0][0], 4, 4, true};
    const int tokens[] = {7, 8, 7, 8};
    near(head_detect(&m, head_is_previous, tokens), 1.3 / 4, "previous");
    near(head_detect(&m, head_is_duplicate, tokens), (0.2 + 0.15) / 4, "duplicate");
    near(head_detect(&m, head_is_induction, tokens), (0.3 + 0.5) / 4, "induction");
    subject s;
    fill(&s, SHIFT, 4, 4, true);
    near(head_detect(&s.m, head_is_previous, tokens), 3.0 / 4, "a perfect one, share");
}

static void divergence_is_a_distance(void)
{
    subject a, b;
    fill(&a, IDENTITY, SIZE, SIZE, false);
    fill(&b, IDENTITY, SIZE, SIZE, false);
    near(head_divergence(&a.m, &b.m), 0, "of itself");
    fill(&b, SHIFT, SIZE, SIZE, false);
    const double there = head_divergence(&a.m, &b.m);
    near(there, head_divergence(&b.m, &a.m), "there and back");
    CHECK(there > 0.98 * (SIZE - 1) * log(2) && there < (SIZE - 1) * log(2),
          "all but one row apart: %g", there);
    fill(&b, UNIFORM, SIZE, SIZE, false);
    CHECK(head_divergence(&a.m, &b.m) < there, "uniform is nearer");
}

/* Five words have their largest weight at columns 0, 2, 3, 2 and 4. The known links are 0-0, 1-1,
 * 2-3, 2-2 and 4-4, none for word 3: 3 of 5 links are right, and 3 of the 4 words that have any. */
static void alignment_by_hand(void)
{
    static const int looks[5] = {0, 2, 3, 2, 4};
    static const uint64_t links[5] = {1 << 0, 1 << 1, 1 << 3 | 1 << 2, 0, 1 << 4};
    float weights[6 * 5] = {0};
    const bool last[5] = {[4] = true};
    for (int n = 0; n < 5; n++)
        weights[(n + 1) * 5 + looks[n]] = 1;
    const head_matrix m = {weights, 6, 5, false};
    const head_links by_hand = head_align(&m, 1, links, 5, NULL);
    CHECK(by_hand.words == 4 && by_hand.words_right == 3, "%d of %d words", by_hand.words_right,
          by_hand.words);
    CHECK(by_hand.found == 5 && by_hand.right == 3 && by_hand.known == 5, "%d of %d, %d known",
          by_hand.right, by_hand.found, by_hand.known);
    near(1 - 2.0 * by_hand.right / (by_hand.found + by_hand.known), 0.4, "error rate");
    CHECK(head_align(&m, 1, links, 5, last).right == 2, "a column that is skipped");
    /* Row 0 has no weight, so that it finds nothing. */
    const head_links before = head_align(&m, 0, links, 5, NULL);
    CHECK(before.right == 1 && before.found == 4, "the rows of the words before: %d of %d",
          before.right, before.found);
}

static void no_rows_give_numbers(void)
{
    const float one[1] = {1};
    const head_matrix m = {one, 1, 1, true};
    CHECK(head_entropy(&m) == 0 && head_breadth(&m) == 0 && head_offset_mass(&m, 0) == 0 &&
              head_offset_argmax(&m, 0) == 0 && head_column_mass(&m, 0) == 0 &&
              head_distance(&m, NULL) == 0,
          "a sentence of one token");
}

/* ------------------------------------------------------------ diversity ----- */

/* Heads that attend to columns 0, 1, 2 ... in all rows are disjoint. */
static void fill_column(subject *s, int rows, int columns, int at)
{
    memset(s->weights, 0, sizeof s->weights);
    s->m = (head_matrix){s->weights, rows, columns, false};
    for (int i = 0; i < rows; i++)
        s->weights[i * columns + at] = 1.0f;
}

static void diversity_of_known_heads(void)
{
    static subject s[4];
    head_matrix m[4];
    for (int what = 0; what < PATTERNS; what++) {
        for (int n = 0; n < 3; n++) {
            fill(&s[n], (pattern)what, SIZE, WIDE, false);
            m[n] = s[n].m;
        }
        CHECK(head_diversity(m, 3) == 0.0, "equal heads: %g", head_diversity(m, 3));
    }
    for (int n = 0; n < 4; n++) {
        fill_column(&s[n], SIZE, WIDE, n);
        m[n] = s[n].m;
    }
    near(head_diversity(m, 4), log(2.0), "disjoint heads");
    m[1] = m[0];
    m[3] = m[2];
    near(head_diversity(m, 4), 4.0 / 6.0 * log(2.0), "two twins: four of six pairs are disjoint");
    CHECK(isnan(head_diversity(m, 1)), "one head has no other");
}

/* One column of n against all of them: with p = 1 + 1/n, half of that is the mixture there. */
static void diversity_of_one_and_all(void)
{
    static subject s[2];
    const double n = WIDE, there = 0.5 * (1.0 + 1.0 / n), elsewhere = 0.5 / n;
    const double mixed = -there * log(there) - (n - 1.0) * elsewhere * log(elsewhere);
    fill_column(&s[0], SIZE, WIDE, 3);
    fill(&s[1], UNIFORM, SIZE, WIDE, false);
    const head_matrix m[2] = {s[0].m, s[1].m};
    near(head_diversity(m, 2), mixed - 0.5 * log(n), "a column and all columns");
}

/* The first row of a causal head sees one column: it cannot differ, and is left out. */
static void diversity_leaves_out_rows_without_choice(void)
{
    static subject s[2];
    fill(&s[0], IDENTITY, SIZE, SIZE, true);
    fill(&s[1], SHIFT, SIZE, SIZE, true);
    const head_matrix m[2] = {s[0].m, s[1].m};
    near(head_diversity(m, 2), log(2.0), "self and previous, causal");
    fill(&s[0], IDENTITY, 1, 1, true);
    fill(&s[1], IDENTITY, 1, 1, true);
    const head_matrix one[2] = {s[0].m, s[1].m};
    CHECK(isnan(head_diversity(one, 2)), "a single column");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(offsets_of_known_heads);
    RUN(columns_of_known_heads);
    RUN(entropies_of_known_heads);
    RUN(distances_of_known_heads);
    RUN(skipping_leaves_the_weights_alone);
    RUN(detectors_by_hand);
    RUN(divergence_is_a_distance);
    RUN(alignment_by_hand);
    RUN(no_rows_give_numbers);
    RUN(diversity_of_known_heads);
    RUN(diversity_of_one_and_all);
    RUN(diversity_leaves_out_rows_without_choice);
    return test_end();
}
