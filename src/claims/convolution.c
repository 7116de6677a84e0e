/* SPDX-License-Identifier: MIT */
/*
 * A convolution as attention heads: its geometry, the positional codes (biases and masks), and the
 * tokens of a picture. convolution_weights.c makes the matrices, convolution_run.c runs the heads,
 * convolution_direct.c has the plain loop and the error bound, and convolution_mixed.c heads that
 * attend to several taps.
 */
#include "claims/convolution.h"

#include <stdlib.h>

#include "claims/convolution_parts.h"

/* ------------------------------------------------------------ geometry ----- */

static ptrdiff_t modulo(ptrdiff_t n, ptrdiff_t extent)
{
    const ptrdiff_t rest = n % extent;
    return rest < 0 ? rest + extent : rest;
}

ptrdiff_t conv_source(conv_padding padding, ptrdiff_t n, ptrdiff_t extent)
{
    if (n >= 0 && n < extent)
        return n;
    switch (padding) {
    case CONV_REPLICATE:
        return n < 0 ? 0 : extent - 1;
    case CONV_CIRCULAR:
        return modulo(n, extent);
    case CONV_ZERO:
    case CONV_VALID:
        break;
    }
    return -1;
}

/* Number of outputs along one direction. */
static ptrdiff_t output_extent(const conv_spec *spec, ptrdiff_t picture, ptrdiff_t kernel)
{
    const ptrdiff_t lost = (kernel - 1) * spec->dilation + 2 * spec->margin;
    const ptrdiff_t span = spec->padding == CONV_VALID ? lost : 0;
    return picture > span ? (picture - span - 1) / spec->stride + 1 : 0;
}

conv_point conv_output(const conv_spec *spec)
{
    return (conv_point){output_extent(spec, spec->picture.row, spec->kernel.row),
                        output_extent(spec, spec->picture.column, spec->kernel.column)};
}

conv_point conv_tap(const conv_spec *spec, ptrdiff_t head)
{
    const ptrdiff_t row = head / spec->kernel.column, column = head % spec->kernel.column;
    return (conv_point){(row - (spec->kernel.row - 1) / 2) * spec->dilation,
                        (column - (spec->kernel.column - 1) / 2) * spec->dilation};
}

/* Whether the code gives this padding without a padded picture. */
static bool is_natural(conv_code code, conv_padding padding)
{
    switch (padding) {
    case CONV_REPLICATE:
        return code == CONV_QUADRATIC || code == CONV_ABSOLUTE;
    case CONV_ZERO:
        return code == CONV_HARD;
    case CONV_CIRCULAR:
        return code != CONV_ABSOLUTE;
    case CONV_VALID:
        break;
    }
    return true;
}

/* Sets the extents: the grid of keys, the output, and where the queries are on the grid. */
static void lay_out(conv_heads *heads)
{
    const conv_spec *const spec = &heads->spec;
    const conv_point first = conv_tap(spec, 0);
    heads->padded = !is_natural(spec->code, spec->padding);
    heads->wraps = spec->padding == CONV_CIRCULAR && !heads->padded;
    heads->grid = spec->picture;
    if (heads->padded) {
        heads->grid.row += (spec->kernel.row - 1) * spec->dilation;
        heads->grid.column += (spec->kernel.column - 1) * spec->dilation;
    }
    if (heads->padded)
        heads->origin = (conv_point){-first.row, -first.column};
    if (spec->padding == CONV_VALID)
        heads->origin = (conv_point){spec->margin - first.row, spec->margin - first.column};
    heads->output = conv_output(spec);
    heads->L = heads->output.row * heads->output.column;
    heads->S = heads->grid.row * heads->grid.column;
}

/* The position of query i on the grid. */
static conv_point query_point(const conv_heads *heads, ptrdiff_t i)
{
    const ptrdiff_t stride = heads->spec.stride, columns = heads->output.column;
    return (conv_point){heads->origin.row + i / columns * stride,
                        heads->origin.column + i % columns * stride};
}

static conv_point key_point(const conv_heads *heads, ptrdiff_t j)
{
    return (conv_point){j / heads->grid.column, j % heads->grid.column};
}

/* --------------------------------------------------------------- codes ----- */

/* The distance on a circle, with the sign of the shorter way. */
static ptrdiff_t wrapped(ptrdiff_t distance, ptrdiff_t extent)
{
    const ptrdiff_t rest = modulo(distance, extent);
    return 2 * rest > extent ? rest - extent : rest;
}

/* Fills the bias or the mask of one query of a head, for all keys. `tap` is the position of the tap
 * on the grid, and `place` the index of the first element. */
static void fill_row(conv_heads *heads, conv_point tap, ptrdiff_t place)
{
    for (ptrdiff_t row = 0; row < heads->grid.row; row++)
        for (ptrdiff_t column = 0; column < heads->grid.column; column++, place++) {
            const ptrdiff_t y =
                heads->wraps ? wrapped(row - tap.row, heads->grid.row) : row - tap.row;
            const ptrdiff_t x = heads->wraps ? wrapped(column - tap.column, heads->grid.column)
                                             : column - tap.column;
            const bool hit = y == 0 && x == 0;
            if (heads->mask != NULL)
                heads->mask[place] = hit;
            else if (heads->spec.code == CONV_ONE_HOT)
                heads->bias[place] = hit ? heads->spec.sharpness : 0.0;
            else
                heads->bias[place] = -heads->spec.sharpness * (double)(y * y + x * x);
        }
}

static void fill_codes(conv_heads *heads)
{
    if (heads->spec.code == CONV_ABSOLUTE)
        return;
    for (ptrdiff_t h = 0; h < heads->H; h++)
        for (ptrdiff_t i = 0; i < heads->L; i++) {
            const conv_point q = query_point(heads, i), t = conv_tap(&heads->spec, h);
            fill_row(heads, (conv_point){q.row + t.row, q.column + t.column},
                     (h * heads->L + i) * heads->S);
        }
    for (ptrdiff_t n = 0; heads->bias_f32 != NULL && n < heads->H * heads->L * heads->S; n++)
        heads->bias_f32[n] = (float)heads->bias[n];
}

static bool allocate_codes(conv_heads *heads)
{
    /* One element more, so that calloc(0) returning NULL is not taken for a failure. */
    const size_t count = (size_t)(heads->H * heads->L * heads->S) + 1;
    if (heads->spec.code == CONV_ABSOLUTE)
        return true;
    if (heads->spec.code == CONV_HARD)
        return (heads->mask = calloc(count, 1)) != NULL;
    heads->bias = calloc(count, sizeof *heads->bias);
    if (heads->spec.type == MHA_F32)
        heads->bias_f32 = calloc(count, sizeof *heads->bias_f32);
    return heads->bias != NULL && (heads->bias_f32 != NULL || heads->spec.type != MHA_F32);
}

/* ------------------------------------------------------------- create ------ */

mha_status conv_heads_create(conv_heads *heads, const conv_spec *spec)
{
    *heads = (conv_heads){.spec = *spec, .H = spec->kernel.row * spec->kernel.column};
    lay_out(heads);
    mha_status status = conv_matrices(heads);
    if (status == MHA_OK && !allocate_codes(heads))
        status = MHA_ERR_MEMORY;
    if (status == MHA_OK)
        fill_codes(heads);
    if (status == MHA_OK && spec->type == MHA_F32)
        status = conv_layer(heads);
    if (status != MHA_OK)
        conv_heads_free(heads);
    return status;
}

void conv_heads_free(conv_heads *heads)
{
    mha_layer_free(heads->layer);
    free(heads->q);
    free(heads->k);
    free(heads->v);
    free(heads->o);
    free(heads->bias);
    free(heads->bias_f32);
    free(heads->mask);
    *heads = (conv_heads){0};
}

/* -------------------------------------------------------------- tokens ----- */

/* The channels of the pixel at a point of the grid, then its position. Positions count from the
 * middle of the grid, which keeps scores small. */
static void fill_token(const conv_heads *heads, const double *picture, conv_point at, double *token)
{
    const conv_spec *const spec = &heads->spec;
    const conv_point shift = heads->padded ? heads->origin : (conv_point){0, 0};
    const ptrdiff_t row = conv_source(spec->padding, at.row - shift.row, spec->picture.row);
    const ptrdiff_t column =
        conv_source(spec->padding, at.column - shift.column, spec->picture.column);
    for (ptrdiff_t c = 0; c < spec->inputs; c++)
        token[c] = row < 0 || column < 0
                       ? 0.0
                       : picture[(row * spec->picture.column + column) * spec->inputs + c];
    if (spec->code != CONV_ABSOLUTE)
        return;
    const double y = (double)(at.row - heads->grid.row / 2);
    const double x = (double)(at.column - heads->grid.column / 2);
    token[spec->inputs] = y;
    token[spec->inputs + 1] = x;
    token[spec->inputs + 2] = y * y + x * x;
    token[spec->inputs + 3] = 1.0;
}

void conv_tokens(const conv_heads *heads, const double *picture, double *keys, double *queries)
{
    for (ptrdiff_t j = 0; j < heads->S; j++)
        fill_token(heads, picture, key_point(heads, j), keys + j * heads->E);
    for (ptrdiff_t i = 0; i < heads->L; i++)
        fill_token(heads, picture, query_point(heads, i), queries + i * heads->E);
}
