/* SPDX-License-Identifier: MIT */
/*
 * The operations of row_math.h, written so that compilers vectorise them although the order of
 * every sum is fixed: sums use explicit vectors of four floats, which are added in a fixed order.
 */
#include "translator/row_math.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

/* Four numbers at once, for loops that a compiler does not vectorise by itself because of the order
 * of a sum or a comparison of floats. */
enum { QUAD = 4 };
typedef float quad __attribute__((vector_size(QUAD * sizeof(float))));
typedef uint32_t quad_bits __attribute__((vector_size(QUAD * sizeof(float))));

static inline quad quad_load(const float *x)
{
    quad v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Reads and writes only the first `left` numbers; the others are read as 0. */
static inline quad quad_read(const float *x, int left)
{
    quad v = {0.0f};
    if (left < QUAD)
        memcpy(&v, x, (size_t)left * sizeof *x);
    else
        memcpy(&v, x, sizeof v);
    return v;
}

static inline void quad_write(quad v, float *x, int left)
{
    if (left < QUAD)
        memcpy(x, &v, (size_t)left * sizeof *x);
    else
        memcpy(x, &v, sizeof v);
}

static inline quad quad_of(float x)
{
    return (quad){x, x, x, x};
}

static inline float quad_sum(quad v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* The larger of each pair; b if one of them is NaN. */
static inline quad quad_max(quad a, quad b)
{
    const quad_bits larger = (quad_bits)(a > b);
    return (quad)(((quad_bits)a & larger) | ((quad_bits)b & ~larger));
}

void row_add(const float *restrict x, int width, float *restrict y)
{
    for (int c = 0; c < width; c++)
        y[c] += x[c];
}

void row_embed(const float *embedding, float scale, const float *code, int width, float *y)
{
    for (int c = 0; c < width; c++)
        y[c] = embedding[c] * scale + code[c];
}

void row_relu(float *x, int width)
{
    for (int c = 0; c < width; c += QUAD)
        quad_write(quad_max(quad_of(0.0f), quad_read(x + c, width - c)), x + c, width - c);
}

void row_relu_backward(const float *y, int width, float *d_x)
{
    for (int c = 0; c < width; c += QUAD) {
        const quad_bits open = (quad_bits)(quad_read(y + c, width - c) > quad_of(0.0f));
        const quad d = quad_read(d_x + c, width - c);
        quad_write((quad)((quad_bits)d & open), d_x + c, width - c);
    }
}

/* ---------------------------------------------------------------- norm ----- */

static const float norm_epsilon = ROW_NORM_EPSILON;

static float row_sum(const float *x, int width)
{
    quad low = {0.0f}, high = {0.0f};
    int c = 0;
    for (; c + 2 * QUAD <= width; c += 2 * QUAD) {
        low += quad_load(x + c);
        high += quad_load(x + c + QUAD);
    }
    float sum = quad_sum(low + high);
    for (; c < width; c++)
        sum += x[c];
    return sum;
}

static float row_square_sum(const float *x, int width, float mean)
{
    quad low = {0.0f}, high = {0.0f};
    int c = 0;
    for (; c + 2 * QUAD <= width; c += 2 * QUAD) {
        const quad a = quad_load(x + c) - mean, b = quad_load(x + c + QUAD) - mean;
        low += a * a;
        high += b * b;
    }
    float sum = quad_sum(low + high);
    for (; c < width; c++)
        sum += (x[c] - mean) * (x[c] - mean);
    return sum;
}

void row_norm(const float *x, int width, const float *restrict weight, const float *restrict bias,
              float *y, float stats[2])
{
    const float mean = row_sum(x, width) / (float)width;
    const float variance = row_square_sum(x, width, mean) / (float)width;
    const float inverse = 1.0f / sqrtf(variance + norm_epsilon);
    for (int c = 0; c < width; c++)
        y[c] = (x[c] - mean) * inverse * weight[c] + bias[c];
    stats[0] = mean;
    stats[1] = inverse;
}

/* The means over a row of g = d_y * weight, and of g times the normalised x. */
static void slope_means(const float *x, const float stats[2], const float *weight, const float *d_y,
                        int width, float means[2])
{
    quad plain = {0.0f}, along = {0.0f};
    int c = 0;
    for (; c + QUAD <= width; c += QUAD) {
        const quad g = quad_load(d_y + c) * quad_load(weight + c);
        plain += g;
        along += g * (quad_load(x + c) - stats[0]);
    }
    float sums[2] = {quad_sum(plain), quad_sum(along)};
    for (; c < width; c++) {
        sums[0] += d_y[c] * weight[c];
        sums[1] += d_y[c] * weight[c] * (x[c] - stats[0]);
    }
    means[0] = sums[0] / (float)width;
    means[1] = sums[1] * stats[1] / (float)width;
}

void row_norm_backward(const float *restrict x, const float stats[2], const float *restrict weight,
                       const float *restrict d_y, int width, float *restrict d_x,
                       float *restrict d_weight, float *restrict d_bias)
{
    const float mean = stats[0], inverse = stats[1];
    float means[2];
    slope_means(x, stats, weight, d_y, width, means);
    for (int c = 0; c < width; c++) {
        const float normal = (x[c] - mean) * inverse;
        d_x[c] += inverse * (d_y[c] * weight[c] - means[0] - normal * means[1]);
        d_weight[c] += d_y[c] * normal;
        d_bias[c] += d_y[c];
    }
}

/* ------------------------------------------------------------- dropout ----- */

enum { DROP_BLOCK = 64, DROP_LEVELS = 65536 };

row_dropout row_dropout_make(double probability, uint64_t key)
{
    const double level = floor(probability * DROP_LEVELS + 0.5);
    const uint32_t threshold = (uint32_t)fmin(level, DROP_LEVELS - 1);
    return (row_dropout){key, threshold, (float)DROP_LEVELS / (float)(DROP_LEVELS - threshold)};
}

/* Each draw of 64 bits gives four numbers of 16 bits. */
static void draw_block(rng *r, uint16_t levels[DROP_BLOCK])
{
    for (int n = 0; n < DROP_BLOCK; n += 4) {
        const uint64_t bits = rng_next(r);
        levels[n] = (uint16_t)bits;
        levels[n + 1] = (uint16_t)(bits >> 16);
        levels[n + 2] = (uint16_t)(bits >> 32);
        levels[n + 3] = (uint16_t)(bits >> 48);
    }
}

/* x if `keep` is -1, 0 if it is 0. */
static inline float masked(float x, int32_t keep)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= keep;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void row_drop(const row_dropout *dropout, ptrdiff_t row, const float *x, int width, float *y)
{
    if (dropout->threshold == 0) {
        memmove(y, x, (size_t)width * sizeof *y);
        return;
    }
    const int32_t threshold = (int32_t)dropout->threshold;
    const float scale = dropout->scale;
    rng r = rng_for(dropout->key, (uint64_t)row);
    for (int first = 0; first < width; first += DROP_BLOCK) {
        const int count = width - first < DROP_BLOCK ? width - first : DROP_BLOCK;
        uint16_t levels[DROP_BLOCK];
        draw_block(&r, levels);
        for (int c = 0; c < count; c++) {
            /* Masked by bits: a factor of 0 would keep NaN, and a branch is not vectorised. */
            /* cppcheck-suppress shiftTooManyBitsSigned ; GNU C shifts the sign in */
            const int32_t keep = (threshold - 1 - (int32_t)levels[c]) >> 31;
            y[first + c] = masked(x[first + c] * scale, keep);
        }
    }
}

/* ------------------------------------------------------------- softmax ----- */

/*
 * exp(x) for x <= 0 with an error near the precision of f32: x = n ln 2 + rest, a Taylor series for
 * the rest, and n is added to the exponent. Below -87 the result is exp(-87), which is too small to
 * change a sum that contains a 1. NaN stays NaN.
 */
static inline quad quad_exp(quad x)
{
    /* Adding and subtracting this number rounds to an integer; in between, n is in the low bits. */
    const quad rounder = quad_of(0x1.8p23f), bounded = quad_max(quad_of(-87.0f), x);
    const quad shifted = bounded * 0x1.715476p+0f + rounder, n = shifted - rounder;
    const quad rest = (bounded - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    quad series = quad_of(1.0f / 5040.0f);
    series = series * rest + 1.0f / 720.0f;
    series = series * rest + 1.0f / 120.0f;
    series = series * rest + 1.0f / 24.0f;
    series = series * rest + 1.0f / 6.0f;
    series = series * rest + 0.5f;
    series = series * rest + 1.0f;
    series = series * rest + 1.0f;
    return series * (quad)(((quad_bits)shifted + 127u) << 23);
}

static float row_max(const float *x, int width)
{
    quad lanes = quad_of(-INFINITY);
    int c = 0;
    for (; c + QUAD <= width; c += QUAD)
        lanes = quad_max(quad_load(x + c), lanes);
    float largest = -INFINITY;
    for (int n = 0; n < QUAD; n++)
        largest = lanes[n] > largest ? lanes[n] : largest;
    for (; c < width; c++)
        largest = x[c] > largest ? x[c] : largest;
    return largest;
}

/* x = exp(x - largest) */
static void row_exp(float *x, int width, float largest)
{
    for (int c = 0; c < width; c += QUAD)
        quad_write(quad_exp(quad_read(x + c, width - c) - largest), x + c, width - c);
}

row_score row_softmax(float *logits, int words, int expected, float *sum)
{
    const float largest = row_max(logits, words), wanted = logits[expected];
    row_exp(logits, words, largest);
    *sum = row_sum(logits, words);
    return (row_score){log((double)*sum) + ((double)largest - (double)wanted), wanted >= largest};
}

void row_softmax_backward(float *logits, int words, int expected, float sum, float smoothing,
                          float share)
{
    const float factor = share / sum, spread = share * smoothing / (float)words;
    for (int c = 0; c < words; c++)
        logits[c] = logits[c] * factor - spread;
    logits[expected] -= share * (1.0f - smoothing);
}
