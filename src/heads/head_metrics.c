/* SPDX-License-Identifier: MIT */
/*
 * The measures of head_metrics.h. Most are a mean over rows of a function of one row; rows that see
 * a single column are left out, because their weight is always 1.
 */
#include "heads/head_metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static double weight(const head_matrix *m, int i, int j)
{
    return (double)m->weights[(ptrdiff_t)i * m->columns + j];
}

int head_seen(const head_matrix *m, int i)
{
    return m->causal && i + 1 < m->columns ? i + 1 : m->columns;
}

/* A measure of row i. */
typedef double (*row_measure)(const head_matrix *m, int i, const void *arg);

/* The mean over the rows that see two columns or more; 0 if there are none. */
static double mean_of_rows(const head_matrix *m, row_measure measure, const void *arg)
{
    double sum = 0.0;
    int rows = 0;
    for (int i = 0; i < m->rows; i++)
        if (head_seen(m, i) > 1) {
            sum += measure(m, i, arg);
            rows++;
        }
    return rows > 0 ? sum / rows : 0.0;
}

/* ------------------------------------------------------------- offsets ----- */

static bool sees(const head_matrix *m, int i, int j)
{
    return j >= 0 && j < head_seen(m, i);
}

static double at_offset(const head_matrix *m, int i, const void *arg)
{
    const int j = i + *(const int *)arg;
    return sees(m, i, j) ? weight(m, i, j) : 0.0;
}

double head_offset_mass(const head_matrix *m, int r)
{
    return mean_of_rows(m, at_offset, &r);
}

int head_argmax(const head_matrix *m, int i, const bool *skip)
{
    int best = -1;
    for (int j = 0; j < head_seen(m, i); j++)
        if (!(skip && skip[j]) && weight(m, i, j) > (best < 0 ? 0.0 : weight(m, i, best)))
            best = j;
    return best;
}

double head_offset_argmax(const head_matrix *m, int r)
{
    int rows = 0, there = 0;
    for (int i = 0; i < m->rows; i++)
        if (head_seen(m, i) > 1 && sees(m, i, i + r)) {
            rows++;
            there += head_argmax(m, i, NULL) == i + r;
        }
    return rows > 0 ? (double)there / rows : 0.0;
}

/* ------------------------------------------------------------- columns ----- */

static double on_column(const head_matrix *m, int i, const void *arg)
{
    const int j = *(const int *)arg;
    return sees(m, i, j) ? weight(m, i, j) : 0.0;
}

double head_column_mass(const head_matrix *m, int column)
{
    return mean_of_rows(m, on_column, &column);
}

static double has_half(const head_matrix *m, int i, const void *arg)
{
    return on_column(m, i, arg) > 0.5 ? 1.0 : 0.0;
}

double head_one_column(const head_matrix *m, const bool *skip, int first, int end)
{
    double most = 0.0;
    for (int j = first; j < end; j++) {
        const double share = skip && skip[j] ? 0.0 : mean_of_rows(m, has_half, &j);
        most = share > most ? share : most;
    }
    return most;
}

static double largest(const head_matrix *m, int i, const void *arg)
{
    const int j = head_argmax(m, i, arg);
    return j < 0 ? 0.0 : weight(m, i, j);
}

double head_confidence(const head_matrix *m, const bool *skip)
{
    return mean_of_rows(m, largest, skip);
}

double head_distance(const head_matrix *m, const bool *skip)
{
    double sum = 0.0, mass = 0.0;
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; head_seen(m, i) > 1 && j < head_seen(m, i); j++)
            if (!(skip && skip[j])) {
                sum += weight(m, i, j) * abs(i - j);
                mass += weight(m, i, j);
            }
    return mass > 0.0 ? sum / mass : 0.0;
}

/* ------------------------------------------------------------- entropy ----- */

/* A term of the entropy. */
static double surprise(double p)
{
    return p > 0.0 ? -p * log(p) : 0.0;
}

static double row_entropy(const head_matrix *m, int i, const void *arg)
{
    (void)arg;
    double sum = 0.0;
    for (int j = 0; j < head_seen(m, i); j++)
        sum += surprise(weight(m, i, j));
    return sum;
}

static double smooth_entropy(const head_matrix *m, int i, const void *arg)
{
    (void)arg;
    double sum = 0.0;
    for (int j = 0; j < m->columns; j++)
        sum += surprise(0.9999 * weight(m, i, j) + 0.0001 / m->columns);
    return sum;
}

static double row_breadth(const head_matrix *m, int i, const void *arg)
{
    return row_entropy(m, i, arg) / log(head_seen(m, i));
}

double head_entropy(const head_matrix *m)
{
    return mean_of_rows(m, row_entropy, NULL);
}

double head_entropy_smoothed(const head_matrix *m)
{
    return mean_of_rows(m, smooth_entropy, NULL);
}

double head_breadth(const head_matrix *m)
{
    return mean_of_rows(m, row_breadth, NULL);
}

/* ----------------------------------------------------------- detectors ----- */

bool head_is_previous(const int *tokens, int i, int j)
{
    (void)tokens;
    return j == i - 1;
}

bool head_is_duplicate(const int *tokens, int i, int j)
{
    return j < i && tokens[j] == tokens[i];
}

bool head_is_induction(const int *tokens, int i, int j)
{
    return j > 0 && j <= i && tokens[j - 1] == tokens[i];
}

double head_detect(const head_matrix *m, head_detector detector, const int *tokens)
{
    double there = 0.0, all = 0.0;
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < head_seen(m, i); j++) {
            all += weight(m, i, j);
            there += detector(tokens, i, j) ? weight(m, i, j) : 0.0;
        }
    return all > 0.0 ? there / all : 0.0;
}

/* --------------------------------------------------------- two and more ----- */

double head_divergence(const head_matrix *a, const head_matrix *b)
{
    double sum = 0.0;
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->columns; j++) {
            const double p = 0.999 * weight(a, i, j) + 0.001 / a->columns;
            const double q = 0.999 * weight(b, i, j) + 0.001 / b->columns;
            sum += surprise(0.5 * (p + q)) - 0.5 * (surprise(p) + surprise(q));
        }
    return sum;
}

/* The entropy of the mean of row i of two heads. */
static double mixed_entropy(const head_matrix *a, const head_matrix *b, int i)
{
    double sum = 0.0;
    for (int j = 0; j < head_seen(a, i); j++)
        sum += surprise(0.5 * (weight(a, i, j) + weight(b, i, j)));
    return sum;
}

/* The sum over all pairs of heads of the divergence of row i. The entropies of the first heads are
 * kept, so that a pair costs one logarithm per column. */
static double row_diversity(const head_matrix *heads, int count, int i)
{
    enum { KEPT = 64 };
    double kept[KEPT], sum = 0.0;
    for (int n = 0; n < count && n < KEPT; n++)
        kept[n] = row_entropy(&heads[n], i, NULL);
    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count; b++) {
            const double own = a < KEPT ? kept[a] : row_entropy(&heads[a], i, NULL);
            const double other = b < KEPT ? kept[b] : row_entropy(&heads[b], i, NULL);
            const double apart = mixed_entropy(&heads[a], &heads[b], i) - 0.5 * (own + other);
            sum += apart > 0.0 ? apart : 0.0; /* rounding may leave less */
        }
    return sum;
}

double head_diversity(const head_matrix *heads, int count)
{
    const double pairs = 0.5 * count * (count - 1.0);
    double sum = 0.0;
    int rows = 0;
    for (int i = 0; i < heads[0].rows; i++)
        if (head_seen(&heads[0], i) > 1) {
            sum += row_diversity(heads, count, i);
            rows++;
        }
    return rows > 0 && count > 1 ? sum / rows / pairs : NAN;
}

head_links head_align(const head_matrix *m, int first_row, const uint64_t *links, int words,
                      const bool *skip)
{
    head_links count = {0};
    for (int n = 0; n < words; n++) {
        const int j = head_argmax(m, first_row + n, skip);
        const bool right = j >= 0 && j < 64 && (links[n] >> j & 1) != 0;
        count.words += links[n] != 0;
        count.words_right += right;
        count.found += j >= 0;
        count.right += right;
        count.known += __builtin_popcountll(links[n]);
    }
    return count;
}
