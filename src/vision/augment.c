/* SPDX-License-Identifier: MIT */
/* Random changes of pictures. Every number comes from the generator of the picture, in one order.
 */
#include "vision/augment.h"

#include <math.h>

/* ----------------------------------------------------------------- scale ----- */

static void measure_channel(pixel_scale *scale, int channel, const uint8_t *pictures,
                            ptrdiff_t count, int channels, size_t size)
{
    double sum = 0.0, square = 0.0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const uint8_t *const at =
            pictures + ((size_t)n * (size_t)channels + (size_t)channel) * size;
        uint64_t sums = 0, squares = 0;
        for (size_t k = 0; k < size; k++) {
            sums += at[k];
            squares += (uint64_t)at[k] * at[k];
        }
        sum += (double)sums;
        square += (double)squares;
    }
    const double all = (double)count * (double)size, mean = sum / all / 255.0;
    const double variance = square / all / (255.0 * 255.0) - mean * mean;
    scale->mean[channel] = (float)mean;
    scale->deviation[channel] = variance > 1e-8 ? (float)sqrt(variance) : 1.0f;
}

void pixel_scale_fill(pixel_scale *scale, int channels)
{
    for (int c = 0; c < channels; c++)
        for (int byte = 0; byte < 256; byte++)
            scale->table[c][byte] = ((float)byte / 255.0f - scale->mean[c]) / scale->deviation[c];
}

void pixel_scale_measure(pixel_scale *scale, const uint8_t *pictures, ptrdiff_t count, int channels,
                         size_t size)
{
    for (int c = 0; c < channels; c++)
        measure_channel(scale, c, pictures, count, channels, size);
    pixel_scale_fill(scale, channels);
}

/* --------------------------------------------------------------- changes ----- */

/* A side of a rectangle, and where it begins. */
static void draw_span(rng *r, int side, double length, int *first, int *count)
{
    *count = (int)(length + 0.5);
    *count = *count < 1 ? 1 : *count > side ? side : *count;
    *first = (int)rng_below(r, side - *count + 1);
}

augmentation augmentation_draw(rng *r, int side, int crop, double flip, double erase)
{
    augmentation a = {.down = (int)rng_between(r, -crop, crop),
                      .right = (int)rng_between(r, -crop, crop),
                      .flip = rng_unit(r) < flip};
    if (rng_unit(r) >= erase)
        return a;
    /* From 2 to 20 % of the picture, up to three times as long as wide. */
    const double area = (0.02 + 0.18 * rng_unit(r)) * side * side;
    const double longer = sqrt(3.0), ratio = 1.0 / longer + (longer - 1.0 / longer) * rng_unit(r);
    draw_span(r, side, sqrt(area) * ratio, &a.top, &a.height);
    draw_span(r, side, sqrt(area) / ratio, &a.left, &a.width);
    return a;
}

static void move_line(const augmentation *a, const uint8_t *from, int side, const float *table,
                      float *to)
{
    for (int x = 0; x < side; x++) {
        const int seen = (a->flip ? side - 1 - x : x) - a->right;
        to[x] = table[from != NULL && seen >= 0 && seen < side ? from[seen] : 0];
    }
}

void augment(const augmentation *a, rng *r, const uint8_t *picture, int channels, int side,
             const pixel_scale *scale, float *to)
{
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < side; y++) {
            const int seen = y - a->down;
            const bool inside = seen >= 0 && seen < side;
            move_line(a, inside ? picture + (c * side + seen) * side : NULL, side, scale->table[c],
                      to + (c * side + y) * side);
        }
    for (int c = 0; c < channels; c++)
        for (int y = a->top; y < a->top + a->height; y++)
            for (int x = a->left; x < a->left + a->width; x++)
                to[(c * side + y) * side + x] = (float)rng_normal(r);
}

/* By rejection: of two powers of uniform numbers, whose sum is at most 1, the share of the first.
 */
double mix_share_draw(rng *r, double shape)
{
    double a, b;
    do {
        a = pow(rng_unit(r), 1.0 / shape);
        b = pow(rng_unit(r), 1.0 / shape);
    } while (a + b > 1.0);
    const double share = a + b > 0.0 ? a / (a + b) : 0.0;
    return share < 0.5 ? share : 1.0 - share;
}
