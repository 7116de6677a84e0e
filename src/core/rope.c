/* SPDX-License-Identifier: MIT */
/* QK-norm and rotary position embedding of one head, forward and backward: see rope.h. */
#include "core/rope.h"

#include <math.h>
#include <string.h>

/* -------------------------------------------------------------- rotation ----- */

ptrdiff_t mhai_rope_width(const mha_rope *rope, ptrdiff_t D)
{
    return rope->width ? rope->width : D;
}

static mha_status check_frequencies(const float *frequencies, ptrdiff_t count)
{
    if ((uintptr_t)frequencies % sizeof *frequencies)
        return MHA_ERR_ALIGN;
    for (ptrdiff_t n = 0; n < count; n++)
        if (!isfinite(frequencies[n]))
            return MHA_ERR_SCALE;
    return MHA_OK;
}

mha_status mhai_rope_check(const mha_rope *rope, ptrdiff_t D)
{
    if ((unsigned)rope->pairs > MHA_ROPE_NEIGHBOURS)
        return MHA_ERR_FLAG;
    if (rope->pairs == MHA_ROPE_NONE)
        return MHA_OK;
    const ptrdiff_t width = mhai_rope_width(rope, D);
    if (width <= 0 || width > D || width % 2 != 0)
        return MHA_ERR_SHAPE;
    if (rope->frequencies)
        return check_frequencies(rope->frequencies, width / 2);
    return isfinite(rope->base) && rope->base >= 0 ? MHA_OK : MHA_ERR_SCALE;
}

void mhai_rope_table(const mha_rope *rope, ptrdiff_t width, double position, float *cosines,
                     float *sines)
{
    const double base = rope->base != 0 ? rope->base : 10000;
    const double step = pow(base, -2 / (double)width);
    double power = 1;
    for (ptrdiff_t n = 0; n < width / 2; n++) {
        const double angle = position * (rope->frequencies ? (double)rope->frequencies[n] : power);
        cosines[n] = (float)cos(angle);
        sines[n] = (float)sin(angle);
        power *= step;
    }
}

/* Pair n is (low[n], high[n]). */
static void rotate_halves(ptrdiff_t count, float *restrict low, float *restrict high,
                          const float *restrict cosines, const float *restrict sines)
{
    for (ptrdiff_t n = 0; n < count; n++) {
        const float x = low[n], y = high[n];
        low[n] = x * cosines[n] - y * sines[n];
        high[n] = y * cosines[n] + x * sines[n];
    }
}

/* Pair n is (head[2n], head[2n + 1]). */
static void rotate_neighbours(ptrdiff_t count, float *restrict head, const float *restrict cosines,
                              const float *restrict sines)
{
    for (ptrdiff_t n = 0; n < count; n++) {
        const float x = head[2 * n], y = head[2 * n + 1];
        head[2 * n] = x * cosines[n] - y * sines[n];
        head[2 * n + 1] = y * cosines[n] + x * sines[n];
    }
}

void mhai_rope_rotate(float *head, mha_rope_pairs pairs, ptrdiff_t width, const float *cosines,
                      const float *sines)
{
    if (pairs == MHA_ROPE_HALVES)
        rotate_halves(width / 2, head, head + width / 2, cosines, sines);
    else if (pairs == MHA_ROPE_NEIGHBOURS)
        rotate_neighbours(width / 2, head, cosines, sines);
}

void mhai_rope_row(float *head, const mha_rope *rope, ptrdiff_t D, double position)
{
    float cosines[MHA_MAX_HEAD_WIDTH / 2], sines[MHA_MAX_HEAD_WIDTH / 2];
    const ptrdiff_t width = mhai_rope_width(rope, D);
    if (rope->pairs == MHA_ROPE_NONE)
        return;
    mhai_rope_table(rope, width, position, cosines, sines);
    mhai_rope_rotate(head, rope->pairs, width, cosines, sines);
}

/* ------------------------------------------------------------------ norm ----- */

/* Sums over a row are made of this number of chains: element c belongs to chain c % CHAINS. */
enum { CHAINS = 8 };

static double total(const double chains[CHAINS])
{
    return ((chains[0] + chains[4]) + (chains[2] + chains[6])) +
           ((chains[1] + chains[5]) + (chains[3] + chains[7]));
}

static double sum_row(const float *x, ptrdiff_t n)
{
    double chains[CHAINS] = {0};
    const ptrdiff_t whole = n - n % CHAINS;
    for (ptrdiff_t c = 0; c < whole; c += CHAINS)
        for (int l = 0; l < CHAINS; l++)
            chains[l] += (double)x[c + l];
    for (ptrdiff_t c = whole; c < n; c++)
        chains[c - whole] += (double)x[c];
    return total(chains);
}

static double sum_squares(const float *x, ptrdiff_t n)
{
    double chains[CHAINS] = {0};
    const ptrdiff_t whole = n - n % CHAINS;
    for (ptrdiff_t c = 0; c < whole; c += CHAINS)
        for (int l = 0; l < CHAINS; l++)
            chains[l] += (double)x[c + l] * (double)x[c + l];
    for (ptrdiff_t c = whole; c < n; c++)
        chains[c - whole] += (double)x[c] * (double)x[c];
    return total(chains);
}

/* Layer norm is RMS norm after the mean is subtracted. */
static void centre(float *x, ptrdiff_t n)
{
    const double mean = sum_row(x, n) / (double)n;
    for (ptrdiff_t c = 0; c < n; c++)
        x[c] = (float)((double)x[c] - mean);
}

void mhai_norm_row(float *head, ptrdiff_t D, mha_norm norm, float eps, const float *weight,
                   const float *bias)
{
    if (norm == MHA_NORM_NONE)
        return;
    if (norm == MHA_NORM_LAYER)
        centre(head, D);
    const float factor = (float)(1 / sqrt(sum_squares(head, D) / (double)D + (double)eps));
    for (ptrdiff_t c = 0; c < D; c++)
        head[c] *= factor;
    for (ptrdiff_t c = 0; weight && c < D; c++)
        head[c] *= weight[c];
    for (ptrdiff_t c = 0; bias && c < D; c++)
        head[c] += bias[c];
}

void mhai_norm_row_back(const float *x, ptrdiff_t D, mha_norm norm, float eps, const float *weight,
                        float *d, double *d_weight, double *d_bias)
{
    float normal[MHA_MAX_HEAD_WIDTH];
    memcpy(normal, x, sizeof(float) * (size_t)D);
    if (norm == MHA_NORM_LAYER)
        centre(normal, D);
    const double factor = 1 / sqrt(sum_squares(normal, D) / (double)D + (double)eps);
    double mean = 0.0, along = 0.0; /* mean of the gradient, and its component along the head */
    for (ptrdiff_t c = 0; c < D; c++) {
        normal[c] = (float)((double)normal[c] * factor);
        d_weight[c] += (double)d[c] * (double)normal[c];
        d_bias[c] += (double)d[c];
        d[c] = weight ? d[c] * weight[c] : d[c];
        mean += (double)d[c];
        along += (double)d[c] * (double)normal[c];
    }
    mean = norm == MHA_NORM_LAYER ? mean / (double)D : 0.0;
    along /= (double)D;
    for (ptrdiff_t c = 0; c < D; c++)
        d[c] = (float)(factor * ((double)d[c] - mean - along * (double)normal[c]));
}
