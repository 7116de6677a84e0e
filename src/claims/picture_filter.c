/* SPDX-License-Identifier: MIT */
/*
 * Filters a picture strip by strip: the tiles of a strip go through the layer as batches, and the
 * same strip through the loop, with which the layer's output is compared (picture_filter.h).
 */
#include "claims/picture_filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { TILE = 8, BATCH_FLOATS = 1 << 23 };

/* Everything that stays the same from strip to strip; a strip is one row of tiles. */
typedef struct filter_job {
    const picture_filter *filter;
    const picture *in;
    picture *out;
    filter_result *result;
    mha_pool *pool;
    ptrdiff_t colours; /* channels that are filtered */
    ptrdiff_t outputs; /* of the layer */
    ptrdiff_t side;    /* pixels of a tile with what is around it */
    ptrdiff_t first;   /* where the strip of output row 0 begins, on the picture */
    ptrdiff_t tiles;   /* in a strip */
    ptrdiff_t batch;   /* tiles that the layer is given at once */
    conv_spec loop;    /* a strip, for the loop */
    conv_heads heads;  /* a tile, for the layer */
    double *weights;   /* [taps][colours][outputs] */
    double *strip;     /* [side][columns][colours] */
    double *tile;      /* [side][side][colours] */
    double *keys, *queries;
    double *y;      /* [tiles][TILE * TILE][outputs] */
    double *wanted; /* [TILE][tiles * TILE][outputs] */
} filter_job;

/* --------------------------------------------------------------- set up ----- */

/* Gaussians that are not sharp reach further than the kernel: as far as exp(-18). */
static ptrdiff_t margin_of(const picture_filter *filter)
{
    if (filter->code == CONV_HARD || filter->alpha >= 18.0)
        return 0;
    return (ptrdiff_t)ceil(sqrt(18.0 / filter->alpha));
}

static bool make_weights(filter_job *job)
{
    const conv_kernel *const kernel = job->filter->kernel;
    const ptrdiff_t taps = kernel->size * kernel->size;
    job->weights = calloc((size_t)(taps * job->colours * job->outputs), sizeof *job->weights);
    if (job->weights == NULL)
        return false;
    for (ptrdiff_t t = 0; t < taps; t++)
        for (ptrdiff_t c = 0; c < job->colours; c++)
            for (ptrdiff_t n = 0; n < kernel->count; n++)
                job->weights[(t * job->colours + c) * job->outputs + n * job->colours + c] =
                    kernel->taps[n][t];
    return true;
}

static conv_spec spec_of(const filter_job *job, ptrdiff_t columns)
{
    return (conv_spec){.picture = {job->side, columns},
                       .kernel = {job->filter->kernel->size, job->filter->kernel->size},
                       .inputs = job->colours,
                       .outputs = job->outputs,
                       .stride = 1,
                       .dilation = 1,
                       .margin = margin_of(job->filter),
                       .padding = CONV_VALID,
                       .code = job->filter->code,
                       .factoring = CONV_BY_INPUTS,
                       .sharpness = job->filter->alpha,
                       .type = MHA_F32,
                       .weights = job->weights};
}

/* Tiles whose projections fill some megabytes, so that wide pictures need no more. */
static ptrdiff_t batch_of(const filter_job *job)
{
    const conv_heads *const heads = &job->heads;
    const ptrdiff_t floats = heads->S * heads->H * (2 * heads->D + heads->Dv);
    const ptrdiff_t fit = BATCH_FLOATS / floats;
    return fit < 1 ? 1 : fit < job->tiles ? fit : job->tiles;
}

static bool allocate(filter_job *job)
{
    const size_t columns = (size_t)job->loop.picture.column, side = (size_t)job->side;
    const size_t colours = (size_t)job->colours, batch = (size_t)job->batch;
    const size_t pixels = (size_t)job->tiles * TILE * TILE * (size_t)job->outputs;
    job->strip = malloc(side * columns * colours * sizeof *job->strip);
    job->tile = malloc(side * side * colours * sizeof *job->tile);
    job->keys = malloc(batch * (size_t)(job->heads.S * job->heads.E) * sizeof *job->keys);
    job->queries = malloc(batch * (size_t)(job->heads.L * job->heads.E) * sizeof *job->queries);
    job->y = malloc(pixels * sizeof *job->y);
    job->wanted = malloc(pixels * sizeof *job->wanted);
    return job->strip && job->tile && job->keys && job->queries && job->y && job->wanted;
}

static void job_free(filter_job *job)
{
    conv_heads_free(&job->heads);
    free(job->weights);
    free(job->strip);
    free(job->tile);
    free(job->keys);
    free(job->queries);
    free(job->y);
    free(job->wanted);
}

/* Channels that are filtered: all but alpha. */
static ptrdiff_t colours_of(const picture *in)
{
    return in->channels >= 3 ? 3 : 1;
}

static mha_status job_begin(filter_job *job)
{
    const ptrdiff_t size = job->filter->kernel->size, margin = margin_of(job->filter);
    job->colours = colours_of(job->in);
    job->outputs = job->colours * job->filter->kernel->count;
    job->side = TILE + size - 1 + 2 * margin;
    job->first = -margin - (job->filter->padding == CONV_VALID ? 0 : (size - 1) / 2);
    job->tiles = (job->out->columns + TILE - 1) / TILE;
    if (!make_weights(job))
        return MHA_ERR_MEMORY;
    job->loop = spec_of(job, job->tiles * TILE + job->side - TILE);
    const conv_spec tile = spec_of(job, job->side);
    const mha_status status = conv_heads_create(&job->heads, &tile);
    if (status != MHA_OK)
        return status;
    job->batch = batch_of(job);
    return allocate(job) ? MHA_OK : MHA_ERR_MEMORY;
}

/* ---------------------------------------------------------------- strips ---- */

/* A colour of a pixel that may lie outside the picture; white is 1. What lies beyond the border,
 * where no padding says, reaches no output of a sharp head. */
static double shade(const picture_filter *filter, const picture *in, ptrdiff_t row,
                    ptrdiff_t column, ptrdiff_t colour)
{
    const conv_padding padding = filter->padding == CONV_VALID ? CONV_REPLICATE : filter->padding;
    const ptrdiff_t y = conv_source(padding, row, in->rows);
    const ptrdiff_t x = conv_source(padding, column, in->columns);
    if (y < 0 || x < 0)
        return 0.0;
    return (double)((float)in->pixels[(y * in->columns + x) * in->channels + colour] / 255.0f);
}

/* Pixels from row `row` of the output on, with what is around them. */
static void cut_strip(filter_job *job, ptrdiff_t row)
{
    double *to = job->strip;
    for (ptrdiff_t r = 0; r < job->side; r++)
        for (ptrdiff_t k = 0; k < job->loop.picture.column; k++)
            for (ptrdiff_t c = 0; c < job->colours; c++)
                *to++ = shade(job->filter, job->in, row + job->first + r, job->first + k, c);
}

static void make_tokens(filter_job *job, ptrdiff_t tile, ptrdiff_t place)
{
    const ptrdiff_t row = job->side * job->colours, columns = job->loop.picture.column;
    for (ptrdiff_t r = 0; r < job->side; r++)
        memcpy(job->tile + r * row, job->strip + (r * columns + tile * TILE) * job->colours,
               (size_t)row * sizeof *job->tile);
    conv_tokens(&job->heads, job->tile, job->keys + place * job->heads.S * job->heads.E,
                job->queries + place * job->heads.L * job->heads.E);
}

/* The strip through the layer. */
static mha_status attend(filter_job *job)
{
    for (ptrdiff_t first = 0; first < job->tiles; first += job->batch) {
        const ptrdiff_t left = job->tiles - first;
        const ptrdiff_t count = left < job->batch ? left : job->batch;
        for (ptrdiff_t n = 0; n < count; n++)
            make_tokens(job, first + n, n);
        const mha_status status =
            conv_run(&job->heads, count, job->keys, job->queries,
                     job->y + first * TILE * TILE * job->outputs, NULL, job->pool);
        if (status != MHA_OK)
            return status;
    }
    return MHA_OK;
}

static uint8_t to_byte(double value)
{
    const double level = 255.0 * value;
    return level >= 255.0 ? 255 : level > 0.0 ? (uint8_t)lround(level) : 0;
}

/* What an output of the layer, or of the loop, is as a picture. */
static uint8_t level_of(const filter_job *job, const double *y, ptrdiff_t colour)
{
    const double first = y[colour];
    return job->filter->kernel->count == 1 ? to_byte(first)
                                           : to_byte(hypot(first, y[job->colours + colour]));
}

static void finish_pixel(filter_job *job, const double *y, const double *wanted, ptrdiff_t row,
                         ptrdiff_t column)
{
    const ptrdiff_t crop = job->filter->padding == CONV_VALID ? (job->loop.kernel.row - 1) / 2 : 0;
    const ptrdiff_t channels = job->out->channels;
    uint8_t *const to = job->out->pixels + (row * job->out->columns + column) * channels;
    filter_result *const result = job->result;
    for (ptrdiff_t n = 0; n < job->outputs; n++) {
        const double off = fabs(y[n] - wanted[n]);
        if (!(off <= result->difference) && !isnan(result->difference))
            result->difference = off;
    }
    for (ptrdiff_t c = 0; c < job->colours; c++) {
        to[c] = level_of(job, y, c);
        result->changed += to[c] != level_of(job, wanted, c);
        result->bytes++;
    }
    if (channels > job->colours)
        to[job->colours] =
            job->in->pixels[((row + crop) * job->in->columns + column + crop) * channels +
                            job->colours];
}

static void finish_strip(filter_job *job, ptrdiff_t row)
{
    const ptrdiff_t columns = job->tiles * TILE;
    for (ptrdiff_t r = 0; r < TILE && row + r < job->out->rows; r++)
        for (ptrdiff_t column = 0; column < job->out->columns; column++) {
            const ptrdiff_t place = (column / TILE * TILE + r) * TILE + column % TILE;
            finish_pixel(job, job->y + place * job->outputs,
                         job->wanted + (r * columns + column) * job->outputs, row + r, column);
        }
}

static mha_status run_strips(filter_job *job)
{
    for (ptrdiff_t row = 0; row < job->out->rows; row += TILE) {
        cut_strip(job, row);
        const double begin = clock_seconds();
        const mha_status status = attend(job);
        const double middle = clock_seconds();
        if (status != MHA_OK)
            return status;
        conv_direct(&job->loop, conv_arithmetic_of(MHA_F32), job->strip, job->wanted);
        job->result->seconds += middle - begin;
        job->result->loop_seconds += clock_seconds() - middle;
        finish_strip(job, row);
    }
    return MHA_OK;
}

/* Of keys that hold both black and white. */
static void find_bound(filter_job *job)
{
    memset(job->keys, 0, (size_t)(job->heads.S * job->heads.E) * sizeof *job->keys);
    for (ptrdiff_t c = 0; c < job->colours; c++)
        job->keys[c] = 1.0;
    job->result->bound = conv_bound(&job->heads, job->keys);
}

/* Of the layer's products on a tile, and of the loop's. */
static void count_products(filter_job *job)
{
    const conv_heads *const heads = &job->heads;
    const double L = (double)heads->L, S = (double)heads->S, E = (double)heads->E;
    const double HD = (double)(heads->H * heads->D), HDv = (double)(heads->H * heads->Dv);
    const double outputs = (double)job->outputs;
    const double projections = L * E * HD + S * E * (HD + HDv) + L * HDv * outputs;
    job->result->multiply_adds = (projections + L * S * (HD + HDv)) / L;
    job->result->loop_multiply_adds = (double)(heads->H * job->colours) * outputs;
}

conv_point picture_filter_extent(const picture_filter *filter, const picture *in)
{
    const ptrdiff_t lost = filter->padding == CONV_VALID ? filter->kernel->size - 1 : 0;
    return (conv_point){in->rows - lost, in->columns - lost};
}

mha_status picture_filter_run(const picture_filter *filter, const picture *in, picture *out,
                              filter_result *result, mha_pool *pool)
{
    const conv_point extent = picture_filter_extent(filter, in);
    filter_job job = {.filter = filter, .in = in, .out = out, .result = result, .pool = pool};
    *result = (filter_result){.threads = mha_pool_threads(pool)};
    *out = picture_new(extent.row, extent.column, in->channels);
    mha_status status = out->pixels != NULL ? job_begin(&job) : MHA_ERR_MEMORY;
    if (status == MHA_OK) {
        find_bound(&job);
        count_products(&job);
        result->heads = job.heads.H;
        result->tokens = job.heads.S;
        status = run_strips(&job);
    }
    if (status != MHA_OK)
        picture_free(out);
    job_free(&job);
    return status;
}

/* ----------------------------------------------------------------- trace ---- */

/* The largest difference between two pixels that the heads of an output pixel read. */
static double range_at(const picture_filter *filter, const picture *in, conv_point pixel,
                       ptrdiff_t colour)
{
    const ptrdiff_t size = filter->kernel->size;
    const ptrdiff_t back = filter->padding == CONV_VALID ? 0 : (size - 1) / 2;
    double least = 1.0, most = 0.0;
    for (ptrdiff_t t = 0; t < size * size; t++) {
        const double value =
            shade(filter, in, pixel.row - back + t / size, pixel.column - back + t % size, colour);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    return most - least;
}

/* The colour whose values differ most around a pixel; its range in *range. */
static ptrdiff_t colour_at(const picture_filter *filter, const picture *in, conv_point pixel,
                           double *range)
{
    ptrdiff_t colour = 0;
    *range = 0.0;
    for (ptrdiff_t c = 0; c < colours_of(in); c++) {
        const double here = range_at(filter, in, pixel, c);
        if (here > *range) {
            *range = here;
            colour = c;
        }
    }
    return colour;
}

static bool inside_tile(ptrdiff_t n)
{
    return n % TILE >= 1 && n % TILE <= TILE - 2;
}

conv_point filter_trace_choose(const picture_filter *filter, const picture *in)
{
    const conv_point extent = picture_filter_extent(filter, in);
    conv_point best = {0, 0};
    double most = 0.0, range;
    for (ptrdiff_t row = 0; row < extent.row; row++)
        for (ptrdiff_t column = 0; column < extent.column; column++) {
            const conv_point pixel = {row, column};
            if (!inside_tile(row) || !inside_tile(column))
                continue;
            colour_at(filter, in, pixel, &range);
            if (range > most) {
                most = range;
                best = pixel;
            }
        }
    return best;
}

/* Where a head attends most, and the mean of the pixels that it reads. */
static void read_head(filter_trace *trace, ptrdiff_t head)
{
    const ptrdiff_t keys = trace->side * trace->side;
    const double *const weights = trace->weights + head * keys;
    ptrdiff_t most = 0;
    double sum = 0.0;
    for (ptrdiff_t j = 0; j < keys; j++) {
        most = weights[j] > weights[most] ? j : most;
        sum += weights[j] * trace->tile[j * trace->colours + trace->colour];
    }
    trace->reads[head] = (conv_point){most / trace->side, most % trace->side};
    trace->values[head] = sum;
}

/* W_V W_O of a head, from the colour to its output of a kernel: from the matrices of the layer. */
static double product_of(const filter_job *job, const filter_trace *trace, ptrdiff_t head,
                         ptrdiff_t kernel)
{
    const conv_heads *const heads = &job->heads;
    const ptrdiff_t out = kernel * job->colours + trace->colour, width = heads->H * heads->Dv;
    double sum = 0.0;
    for (ptrdiff_t n = head * heads->Dv; n < (head + 1) * heads->Dv; n++)
        sum += heads->v[n * heads->E + trace->colour] * heads->o[out * width + n];
    return sum;
}

/* What the layer and the loop computed for the pixel. */
static void fill_trace(const filter_job *job, filter_trace *trace, const double *weights)
{
    const ptrdiff_t keys = job->side * job->side, columns = job->tiles * TILE;
    const ptrdiff_t row = trace->pixel.row % TILE, column = trace->pixel.column % TILE;
    const ptrdiff_t query = row * TILE + column;
    memcpy(trace->tile, job->tile, (size_t)(keys * job->colours) * sizeof *trace->tile);
    for (ptrdiff_t h = 0; h < trace->heads; h++) {
        memcpy(trace->weights + h * keys, weights + (h * job->heads.L + query) * keys,
               (size_t)keys * sizeof *trace->weights);
        read_head(trace, h);
        for (ptrdiff_t n = 0; n < trace->kernels; n++)
            trace->taps[n][h] = product_of(job, trace, h, n);
    }
    for (ptrdiff_t n = 0; n < trace->kernels; n++) {
        const ptrdiff_t out = n * job->colours + trace->colour;
        trace->sums[n] = job->y[query * job->outputs + out];
        trace->loop[n] = job->wanted[(row * columns + trace->pixel.column) * job->outputs + out];
    }
}

static mha_status trace_tile(filter_job *job, filter_trace *trace)
{
    const conv_heads *const heads = &job->heads;
    const ptrdiff_t top = trace->pixel.row - trace->pixel.row % TILE;
    const ptrdiff_t left = trace->pixel.column - trace->pixel.column % TILE;
    const size_t keys = (size_t)heads->S, count = (size_t)heads->H * keys;
    double *const weights = malloc(count * (size_t)heads->L * sizeof *weights);
    trace->heads = heads->H;
    trace->side = job->side;
    trace->corner = (conv_point){top + job->first, left + job->first};
    trace->query = (conv_point){heads->origin.row + trace->pixel.row - top,
                                heads->origin.column + trace->pixel.column - left};
    trace->tile = malloc(keys * (size_t)job->colours * sizeof *trace->tile);
    trace->weights = malloc(count * sizeof *trace->weights);
    mha_status status = MHA_ERR_MEMORY;
    if (weights && trace->tile && trace->weights) {
        cut_strip(job, top);
        make_tokens(job, left / TILE, 0);
        status = conv_run(heads, 1, job->keys, job->queries, job->y, weights, NULL);
        conv_direct(&job->loop, conv_arithmetic_of(MHA_F32), job->strip, job->wanted);
    }
    if (status == MHA_OK)
        fill_trace(job, trace, weights);
    free(weights);
    return status;
}

mha_status filter_trace_run(const picture_filter *filter, const picture *in, conv_point pixel,
                            filter_trace *trace)
{
    const conv_point extent = picture_filter_extent(filter, in);
    picture out = {.rows = extent.row, .columns = extent.column, .channels = in->channels};
    filter_job job = {.filter = filter, .in = in, .out = &out};
    double range;
    *trace = (filter_trace){.pixel = pixel, .kernels = filter->kernel->count};
    trace->colour = colour_at(filter, in, pixel, &range);
    mha_status status = job_begin(&job);
    trace->colours = job.colours;
    if (status == MHA_OK)
        status = trace_tile(&job, trace);
    if (status != MHA_OK)
        filter_trace_free(trace);
    job_free(&job);
    return status;
}

void filter_trace_free(filter_trace *trace)
{
    free(trace->tile);
    free(trace->weights);
    *trace = (filter_trace){0};
}
