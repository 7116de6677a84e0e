/* SPDX-License-Identifier: MIT */
/*
 * The convolution by a plain loop, which the heads are compared with, in the arithmetic and order
 * of a layer so that bits can be compared; and the bound of the error of heads with one tap each.
 */
#include <math.h>
#include <string.h>

#include "claims/convolution.h"

conv_arithmetic conv_arithmetic_of(mha_dtype type)
{
    const char *const isa = mha_isa_base();
    if (type == MHA_F64)
        return CONV_F64;
    const bool plain = isa != NULL && (strcmp(isa, "c") == 0 || strcmp(isa, "wasm") == 0);
    return plain ? CONV_F32 : CONV_F32_FUSED;
}

/* sum + x * w. A sum or product of two f32 numbers that is rounded to double and then to f32 is
 * still rounded correctly. */
static double add_product(conv_arithmetic arithmetic, double sum, double x, double w)
{
    switch (arithmetic) {
    case CONV_F32:
        return (double)(float)(sum + (double)(float)(x * w));
    case CONV_F32_FUSED:
        return (double)fmaf((float)x, (float)w, (float)sum);
    case CONV_F64:
        break;
    }
    return sum + x * w;
}

typedef struct direct {
    const conv_spec *spec;
    conv_arithmetic arithmetic;
    const double *picture;
} direct;

/* The pixel that a tap reads for an output, or NULL if it is 0. */
static const double *pixel_of(const direct *d, ptrdiff_t tap, conv_point output)
{
    const conv_spec *const spec = d->spec;
    const conv_point first = conv_tap(spec, 0), away = conv_tap(spec, tap);
    const bool inside = spec->padding == CONV_VALID;
    const conv_point origin = {inside ? spec->margin - first.row : 0,
                               inside ? spec->margin - first.column : 0};
    const ptrdiff_t y = origin.row + output.row * spec->stride + away.row;
    const ptrdiff_t x = origin.column + output.column * spec->stride + away.column;
    const ptrdiff_t row = conv_source(spec->padding, y, spec->picture.row);
    const ptrdiff_t column = conv_source(spec->padding, x, spec->picture.column);
    return row < 0 || column < 0
               ? NULL
               : d->picture + (row * spec->picture.column + column) * spec->inputs;
}

/* The order of sums in the library's products: f32 sums run over slices of this many terms, and the
 * slices are then added up. */
enum { SLICE = 256 };

typedef struct slices {
    conv_arithmetic arithmetic;
    double sum, slice;
    ptrdiff_t number; /* of the current slice */
} slices;

static void add_term(slices *s, ptrdiff_t place, double x, double w)
{
    if (s->arithmetic != CONV_F64 && place / SLICE != s->number) {
        s->sum = add_product(s->arithmetic, s->sum, s->slice, 1.0);
        s->slice = 0.0;
        s->number = place / SLICE;
    }
    s->slice = add_product(s->arithmetic, s->slice, x, w);
}

/* The sum of one tap over its channels. */
static double tap_sum(const direct *d, const double *pixel, const double *w)
{
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < d->spec->inputs; c++)
        sum = add_product(d->arithmetic, sum, pixel[c], w[c * d->spec->outputs]);
    return sum;
}

/* One output channel. Factored by outputs, the layer first computes the sum of each tap and then
 * adds these; otherwise one sum runs over taps and channels. */
static double output_of(const direct *d, conv_point output, ptrdiff_t channel)
{
    const conv_spec *const spec = d->spec;
    const ptrdiff_t taps = spec->kernel.row * spec->kernel.column;
    slices s = {d->arithmetic, 0.0, 0.0, 0};
    for (ptrdiff_t t = 0; t < taps; t++) {
        const double *const pixel = pixel_of(d, t, output);
        const double *const w = spec->weights + t * spec->inputs * spec->outputs + channel;
        const bool apart = spec->factoring == CONV_BY_OUTPUTS;
        if (apart)
            add_term(&s, t * spec->outputs + channel, pixel != NULL ? tap_sum(d, pixel, w) : 0.0,
                     1.0);
        for (ptrdiff_t c = 0; !apart && c < spec->inputs; c++)
            add_term(&s, t * spec->inputs + c, pixel != NULL ? pixel[c] : 0.0,
                     w[c * spec->outputs]);
    }
    const double sum = add_product(d->arithmetic, s.sum, s.slice, 1.0);
    return spec->bias != NULL ? add_product(d->arithmetic, sum, spec->bias[channel], 1.0) : sum;
}

void conv_direct(const conv_spec *spec, conv_arithmetic arithmetic, const double *picture,
                 double *y)
{
    const direct d = {spec, arithmetic, picture};
    const conv_point output = conv_output(spec);
    for (ptrdiff_t row = 0; row < output.row; row++)
        for (ptrdiff_t column = 0; column < output.column; column++)
            for (ptrdiff_t n = 0; n < spec->outputs; n++)
                *y++ = output_of(&d, (conv_point){row, column}, n);
}

/* -------------------------------------------------------------- bounds ----- */

double conv_leak(const conv_heads *heads)
{
    const double sharpness = heads->spec.sharpness;
    if (heads->spec.code == CONV_HARD)
        return 0.0;
    if (heads->spec.code == CONV_ONE_HOT)
        return (double)(heads->S - 1) * exp(-sharpness);
    /* The sum over all points of the plane but the tap: exp(-alpha (x^2 + y^2)) is a product, so it
     * is (1 + tail)^2 - 1, where 1 + tail is the sum over a line. */
    double tail = 0.0;
    for (int n = 1; n < 1000 && exp(-sharpness * n * n) > 0.0; n++)
        tail += 2.0 * exp(-sharpness * n * n);
    return tail * (2.0 + tail);
}

/* Smallest and largest number in a channel of the keys. */
static void range_of(const conv_heads *heads, const double *keys, ptrdiff_t channel, double *low,
                     double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (ptrdiff_t j = 0; j < heads->S; j++) {
        *low = fmin(*low, keys[j * heads->E + channel]);
        *high = fmax(*high, keys[j * heads->E + channel]);
    }
}

/* Element of |W_V_h| |W_O_h| from an input to an output. */
static double path_weight(const conv_heads *heads, ptrdiff_t h, ptrdiff_t input, ptrdiff_t output)
{
    double sum = 0.0;
    for (ptrdiff_t n = h * heads->Dv; n < (h + 1) * heads->Dv; n++)
        sum += fabs(heads->v[n * heads->E + input]) *
               fabs(heads->o[output * heads->H * heads->Dv + n]);
    return sum;
}

/*
 * A head gives at most leak/(1 + leak) of its weight to wrong pixels, and a wrong pixel differs
 * from the right one by at most the range of its channel. The other part is rounding: a sum of
 * `terms` products, and some more roundings for softmax, factors and bias.
 */
double conv_bound(const conv_heads *heads, const double *keys)
{
    const conv_spec *const spec = &heads->spec;
    const double leak = conv_leak(heads), u = spec->type == MHA_F64 ? 0x1p-53 : 0x1p-24;
    const double terms = (double)(heads->H * spec->inputs) + 8.0;
    double worst = 0.0;
    for (ptrdiff_t n = 0; n < spec->outputs; n++) {
        double wrong = 0.0, size = spec->bias != NULL ? fabs(spec->bias[n]) : 0.0;
        for (ptrdiff_t c = 0; c < spec->inputs; c++) {
            double low, high, weight = 0.0;
            range_of(heads, keys, c, &low, &high);
            for (ptrdiff_t h = 0; h < heads->H; h++) {
                wrong +=
                    fabs(spec->weights[(h * spec->inputs + c) * spec->outputs + n]) * (high - low);
                weight += path_weight(heads, h, c, n);
            }
            size += weight * fmax(fabs(low), fabs(high));
        }
        worst = fmax(worst, leak / (1.0 + leak) * wrong + terms * u * size);
    }
    return worst;
}
