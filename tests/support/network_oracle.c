/* SPDX-License-Identifier: MIT */
/* The formulas of transformer.h in double, row by row, with loops only (network_oracle.h). */

/* Included first, since names of parameters in it would shadow the type `batch`. */
#include "core/internal.h"

#include "support/network_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "translator/network_parts.h"

static void *checked(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static double *rows_of(int rows, int width)
{
    return checked(calloc((size_t)rows * (size_t)width, sizeof(double)));
}

/* The position of the computation: pair, side, and number of parts done. */
typedef struct oracle {
    const transformer_config *config;
    transformer_map map;
    const double *values;
    const batch *batch;
    const network *dropped; /* or NULL */
    int pair, side, part;
    double kink;
} oracle;

/* ------------------------------------------------------------- dropout ----- */

/* Applies the network's dropout to what is added to x in row `row` of the pair. */
static void drop_row(const oracle *o, int row, double *y)
{
    const int width = o->config->width;
    float *const mask = checked(malloc((size_t)width * sizeof *mask));
    for (int c = 0; c < width; c++)
        mask[c] = 1.0f;
    if (o->dropped) {
        const row_dropout dropout = network_dropout(o->dropped, o->side, o->part);
        row_drop(&dropout, o->batch->starts[o->side][o->pair] + row, mask, width, mask);
    }
    for (int c = 0; c < width; c++)
        y[c] *= (double)mask[c];
    free(mask);
}

/* The dropout factor of weight (h, i, j) of the current attention. */
static double weight_factor(const oracle *o, int h, int i, int j)
{
    attention_call a;
    if (!o->dropped)
        return 1.0;
    network_fill_call(o->dropped, o->side, o->part, &a);
    const double threshold = floor((double)a.options.dropout * 65536.0 + 0.5);
    const mhak_drop drop = {a.options.dropout_seed, (uint32_t)o->pair, (uint32_t)h,
                            (uint32_t)threshold};
    return mhai_drop_keeps(&drop, i, j) ? 65536.0 / (65536.0 - threshold) : 0.0;
}

/* ---------------------------------------------------------------- rows ----- */

static void linear(const oracle *o, weight_at at, const double *x, int inputs, double *y,
                   int outputs)
{
    for (int n = 0; n < outputs; n++) {
        y[n] = o->values[at.bias + (size_t)n];
        for (int c = 0; c < inputs; c++)
            y[n] += o->values[at.weight + (size_t)(n * inputs + c)] * x[c];
    }
}

static void norm(const oracle *o, weight_at at, const double *x, int rows, double *y)
{
    const int width = o->config->width;
    for (int row = 0; row < rows; row++, x += width, y += width) {
        double mean = 0.0, variance = 0.0;
        for (int c = 0; c < width; c++)
            mean += x[c] / width;
        for (int c = 0; c < width; c++)
            variance += (x[c] - mean) * (x[c] - mean) / width;
        for (int c = 0; c < width; c++)
            y[c] = (x[c] - mean) / sqrt(variance + 1e-5) * o->values[at.weight + (size_t)c] +
                   o->values[at.bias + (size_t)c];
    }
}

static bool is_marian(const oracle *o)
{
    return o->config->form == FORM_MARIAN;
}

/* What a part reads: its norm of x, or x itself if the norm comes after the part. */
static void norm_before(const oracle *o, weight_at at, const double *x, int rows, double *y)
{
    if (is_marian(o))
        memcpy(y, x, (size_t)(rows * o->config->width) * sizeof *y);
    else
        norm(o, at, x, rows, y);
}

/* x += y with dropout, and then its norm if that comes after; the part is done. */
static void add_rows(oracle *o, weight_at after, double *y, int rows, double *x)
{
    const int width = o->config->width;
    o->part++;
    for (int row = 0; row < rows; row++) {
        drop_row(o, row, y + row * width);
        for (int c = 0; c < width; c++)
            x[row * width + c] += y[row * width + c];
    }
    if (is_marian(o))
        norm(o, after, x, rows, x);
}

/* ----------------------------------------------------------- attention ----- */

/* Row i of head h: out = softmax(q . k / sqrt(d)) . v over the first `seen` keys. */
static void attend(const oracle *o, int h, int i, const double *q, const double *k, const double *v,
                   int seen, double *out)
{
    const int width = o->config->width, d = width / o->config->heads;
    double *const weights = rows_of(1, seen), sum = 0.0;
    for (int j = 0; j < seen; j++) {
        double score = 0.0;
        for (int c = 0; c < d; c++)
            score += q[h * d + c] * k[j * width + h * d + c];
        sum += weights[j] = exp(score / sqrt(d));
    }
    for (int j = 0; j < seen; j++)
        for (int c = 0; c < d; c++)
            out[h * d + c] +=
                weights[j] / sum * weight_factor(o, h, i, j) * v[j * width + h * d + c];
    free(weights);
}

/* x += attention of norm(x) to memory, or to itself if memory is NULL. */
static void add_attention(oracle *o, const attention_at *at, double *x, int rows,
                          const double *memory, int keys, bool causal)
{
    const int width = o->config->width;
    double *const normed = rows_of(rows, width), *const q = rows_of(1, width);
    double *const k = rows_of(keys, width), *const v = rows_of(keys, width);
    double *const heads = rows_of(rows, width), *const y = rows_of(rows, width);
    norm_before(o, at->norm, x, rows, normed);
    const double *const known = memory ? memory : normed;
    for (int j = 0; j < keys; j++) {
        linear(o, at->k, known + j * width, width, k + j * width, width);
        linear(o, at->v, known + j * width, width, v + j * width, width);
    }
    for (int i = 0; i < rows; i++) {
        linear(o, at->q, normed + i * width, width, q, width);
        for (int h = 0; h < o->config->heads; h++)
            attend(o, h, i, q, k, v, causal ? i + 1 : keys, heads + i * width);
        linear(o, at->o, heads + i * width, width, y + i * width, width);
    }
    add_rows(o, at->norm, y, rows, x);
    free(normed), free(q), free(k), free(v), free(heads), free(y);
}

static void add_feed_forward(oracle *o, const feed_forward_at *at, double *x, int rows)
{
    const int width = o->config->width, ff_width = o->config->ff_width;
    double *const normed = rows_of(rows, width), *const y = rows_of(rows, width);
    double *const inside = rows_of(1, ff_width);
    norm_before(o, at->norm, x, rows, normed);
    for (int row = 0; row < rows; row++) {
        linear(o, at->in, normed + row * width, width, inside, ff_width);
        for (int c = 0; c < ff_width; c++) {
            o->kink = fmin(o->kink, fabs(inside[c]));
            inside[c] = fmax(inside[c], 0.0);
        }
        linear(o, at->out, inside, ff_width, y + row * width, width);
    }
    add_rows(o, at->norm, y, rows, x);
    free(normed), free(y), free(inside);
}

/* --------------------------------------------------------------- sides ----- */

/* Queries have no positions. */
static void embed_queries(const oracle *o, int rows, double *x)
{
    const int width = o->config->width;
    const double *const queries = o->values + o->map.embedding[TRANSFORMER_TARGET];
    for (int row = 0; row < rows; row++) {
        for (int c = row * width; c < (row + 1) * width; c++)
            x[c] = queries[c] * sqrt(width);
        drop_row(o, row, x + row * width);
    }
}

static void embed(const oracle *o, const int *words, int rows, double *x)
{
    const int width = o->config->width;
    for (int row = 0; row < rows; row++) {
        const double *const embedding =
            o->values + o->map.embedding[o->side] + (size_t)(words[row] * width);
        for (int c = 0; c < width; c++) {
            const int half = width / 2, pair = is_marian(o) ? c % half : c / 2;
            const bool cosine = is_marian(o) ? c >= half : c % 2 != 0;
            const double angle = row * pow(10000.0, -2.0 * pair / width);
            x[row * width + c] = embedding[c] * sqrt(width) + (cosine ? cos(angle) : sin(angle));
        }
        drop_row(o, row, x + row * width);
    }
}

/* The patches of the pair's picture, with their places. */
static void embed_picture(const oracle *o, int rows, double *x)
{
    const vision_shape *const v = &o->config->vision;
    const int width = o->config->width, across = vision_across(v), inputs = v->patch * v->patch;
    const float *const pixels = o->batch->pixels + (size_t)o->pair * o->batch->picture_floats;
    double *const patch = rows_of(1, v->channels * inputs);
    float *const codes = checked(calloc((size_t)(rows * width), sizeof *codes));
    transformer_vision_codes(o->config, codes);
    for (int row = 0; row < rows; row++) {
        const int top = row / across * v->stride, left = row % across * v->stride;
        for (int n = 0; n < v->channels * inputs; n++) {
            const int y = top + n % inputs / v->patch, column = left + n % v->patch;
            patch[n] = (double)pixels[(n / inputs * v->side + y) * v->side + column];
        }
        linear(o, o->map.vision.patches, patch, v->channels * inputs, x + row * width, width);
        for (int c = row * width; c < (row + 1) * width; c++)
            x[c] += v->places == VISION_SINES ? (double)codes[c]
                                              : o->values[o->map.vision.places + (size_t)c];
        drop_row(o, row, x + row * width);
    }
    free(patch), free(codes);
}

/* The rows after the last part of a side and its norm; the caller frees them. `memory` is the
 * encoder's output, or NULL for the encoder itself. */
static double *run_side(oracle *o, int side, int rows, const double *memory, int keys)
{
    double *const x = rows_of(rows, o->config->width), *const y = rows_of(rows, o->config->width);
    o->side = side;
    o->part = 0;
    if (side == TRANSFORMER_SOURCE && transformer_reads_pictures(o->config))
        embed_picture(o, rows, x);
    else if (o->config->form == FORM_DETECTION)
        embed_queries(o, rows, x);
    else
        embed(o, o->batch->words[side] + o->batch->starts[side][o->pair], rows, x);
    for (int n = 0; n < o->config->layers[side]; n++) {
        const layer_at *const layer = &o->map.layers[side][n];
        add_attention(o, &layer->self, x, rows, NULL, rows,
                      memory != NULL && o->config->form != FORM_DETECTION);
        if (memory)
            add_attention(o, &layer->cross, x, rows, memory, keys, false);
        add_feed_forward(o, &layer->ff, x, rows);
    }
    if (is_marian(o))
        memcpy(y, x, (size_t)(rows * o->config->width) * sizeof *y);
    else
        norm(o, o->map.norm[side], x, rows, y);
    free(x);
    return y;
}

/* Adds the loss of a row to `loss`; `smoothed` is a sum until all rows are done. */
static void add_loss(const oracle *o, const double *x, int expected, double smoothing,
                     oracle_loss *loss)
{
    const int words = o->config->words[TRANSFORMER_TARGET], width = o->config->width;
    const double *const embedding = o->values + o->map.embedding[TRANSFORMER_TARGET];
    double *const logits = rows_of(1, words), total = 0.0, mean = 0.0;
    bool right = true;
    for (int w = 0; w < words; w++) {
        for (int c = 0; c < width; c++)
            logits[w] += embedding[w * width + c] * x[c];
        total += exp(logits[w]);
        mean += logits[w] / words;
    }
    for (int w = 0; w < words; w++)
        right = right && logits[w] <= logits[expected];
    /* cppcheck-suppress invalidFunctionArg ; there is at least one word */
    const double log_total = log(total);
    loss->sum += log_total - logits[expected];
    loss->smoothed += log_total - (1.0 - smoothing) * logits[expected] - smoothing * mean;
    loss->right += right;
    free(logits);
}

/* --------------------------------------------------------- detection ----- */

const detection_weights network_oracle_weights = {.nothing = 0.4, .box = 2.5, .overlap = 1.5};

/* What a query says. */
typedef struct saying {
    double logits[32], at[4];
} saying;

/* Minus the logarithm of the probability of a class, of which `smoothing` is spread. */
static double cross_entropy(const double *logits, int classes, int expected, double smoothing)
{
    double total = 0.0, mean = 0.0;
    for (int n = 0; n < classes; n++) {
        total += exp(logits[n]);
        mean += logits[n] / classes;
    }
    return log(total) - (1.0 - smoothing) * logits[expected] - smoothing * mean;
}

static bool is_largest(const double *logits, int classes, int expected)
{
    bool right = true;
    for (int n = 0; n < classes; n++)
        right = right && logits[n] <= logits[expected];
    return right;
}

/* Sum of distances, and generalised overlap, from the corners of both boxes. */
static void compare_boxes(const double *a, const double *b, double *distance, double *giou,
                          double *kink)
{
    double both = 1.0, around = 1.0;
    *distance = 0.0;
    for (int n = 0; n < 4; n++) {
        *distance += fabs(a[n] - b[n]);
        *kink = fmin(*kink, fabs(a[n] - b[n]));
    }
    for (int n = 0; n < 2; n++) {
        const double low_a = a[n] - a[n + 2] / 2, high_a = a[n] + a[n + 2] / 2;
        const double low_b = b[n] - b[n + 2] / 2, high_b = b[n] + b[n + 2] / 2;
        const double inside = fmin(high_a, high_b) - fmax(low_a, low_b);
        both *= fmax(inside, 0.0);
        around *= fmax(high_a, high_b) - fmin(low_a, low_b);
        *kink = fmin(*kink, fmin(fabs(low_a - low_b), fabs(high_a - high_b)));
        *kink = fmin(*kink, fabs(inside));
    }
    const double either = a[2] * a[3] + b[2] * b[3] - both;
    *giou = both / either - (around - either) / around;
}

static double cost_of(const oracle *o, const saying *q, const batch_thing *thing)
{
    const int colors = o->config->words[0], kinds = o->config->words[1];
    double distance, giou, kink = INFINITY;
    compare_boxes(q->at, thing->box.at, &distance, &giou, &kink);
    return network_oracle_weights.box * distance - network_oracle_weights.overlap * giou -
           exp(-cross_entropy(q->logits, colors, thing->classes[0], 0.0) -
               cross_entropy(q->logits + colors, kinds, thing->classes[1], 0.0));
}

/* The best queries for things [thing, count), by trying all; `best` has the queries of the best
 * matching so far, `current` those of things before this one. */
typedef struct matching {
    int best[8], current[8];
    double least;
} matching;

static void try_all(const oracle *o, const saying *said, const batch_thing *things, int count,
                    int thing, double cost, matching *m)
{
    if (thing == count && cost < m->least) {
        m->least = cost;
        memcpy(m->best, m->current, sizeof m->best);
    }
    for (int q = 0; q < o->config->positions && thing < count; q++) {
        bool used = false;
        for (int n = 0; n < thing; n++)
            used = used || m->current[n] == q;
        m->current[thing] = q;
        if (!used)
            try_all(o, said, things, count, thing + 1, cost + cost_of(o, &said[q], &things[thing]),
                    m);
    }
}

/* The loss of one query; `smoothed` is what is differentiated. */
static void add_query(oracle *o, const saying *q, const batch_thing *thing, double smoothing,
                      oracle_loss *loss)
{
    const int colors = o->config->words[0], kinds = o->config->words[1];
    const double *const second = q->logits + colors;
    const int kind = thing ? thing->classes[1] : kinds - 1;
    double sums[2];
    for (int n = 0; n < 2; n++) {
        const double share = n ? smoothing : 0.0;
        double distance, giou;
        sums[n] = cross_entropy(second, kinds, kind, share);
        if (!thing) {
            sums[n] *= network_oracle_weights.nothing;
            continue;
        }
        compare_boxes(q->at, thing->box.at, &distance, &giou, &o->kink);
        sums[n] += cross_entropy(q->logits, colors, thing->classes[0], share) +
                   network_oracle_weights.box * distance +
                   network_oracle_weights.overlap * (1.0 - giou);
    }
    loss->sum += sums[0];
    loss->smoothed += sums[1];
    loss->right += is_largest(second, kinds, kind) &&
                   (!thing || is_largest(q->logits, colors, thing->classes[0]));
}

/* x has the last rows of all queries of the pair. */
static void add_detections(oracle *o, const double *x, double smoothing, oracle_loss *loss)
{
    const batch *const b = o->batch;
    const int queries = o->config->positions, classes = o->config->words[0] + o->config->words[1];
    const batch_thing *const things = b->things + o->pair * b->things_room;
    const int count = b->thing_counts[o->pair];
    matching m = {.least = INFINITY};
    saying said[8];
    for (int q = 0; q < queries; q++) {
        double outputs[36];
        linear(o, o->map.vision.classifier, x + q * o->config->width, o->config->width, outputs,
               classes + 4);
        memcpy(said[q].logits, outputs, (size_t)classes * sizeof *outputs);
        for (int n = 0; n < 4; n++)
            said[q].at[n] = 1.0 / (1.0 + exp(-outputs[classes + n]));
    }
    try_all(o, said, things, count, 0, 0.0, &m);
    for (int q = 0; q < queries; q++) {
        const batch_thing *own = NULL;
        for (int n = 0; n < count; n++)
            own = m.best[n] == q ? &things[n] : own;
        add_query(o, &said[q], own, smoothing, loss);
    }
}

oracle_loss network_oracle(const transformer_config *config, const double *values, const batch *b,
                           double smoothing, const network *dropped)
{
    oracle o = {
        .config = config, .values = values, .batch = b, .dropped = dropped, .kink = INFINITY};
    transformer_map_fill(&o.map, config);
    oracle_loss loss = {0};
    for (o.pair = 0; o.pair < b->pairs; o.pair++) {
        const int64_t *const source = b->starts[TRANSFORMER_SOURCE] + o.pair;
        const int64_t *const target = b->starts[TRANSFORMER_TARGET] + o.pair;
        const int keys = (int)(source[1] - source[0]), rows = (int)(target[1] - target[0]);
        double *const memory = run_side(&o, TRANSFORMER_SOURCE, keys, NULL, 0);
        double *const x = run_side(&o, TRANSFORMER_TARGET, rows, memory, keys);
        if (config->form == FORM_DETECTION)
            add_detections(&o, x, smoothing, &loss);
        for (int row = 0; row < rows && config->form != FORM_DETECTION; row++)
            add_loss(&o, x + row * config->width, b->expected[target[0] + row], smoothing, &loss);
        free(memory);
        free(x);
    }
    loss.smoothed /= (double)b->rows[TRANSFORMER_TARGET];
    loss.kink = o.kink;
    return loss;
}

/* --------------------------------------------------------------- cases ----- */

const transformer_config network_small = {
    .width = 16, .heads = 2, .ff_width = 24, .layers = {1, 2}, .words = {19, 21}, .positions = 12};

const transformer_config network_small_marian = {.form = FORM_MARIAN,
                                                 .width = 16,
                                                 .heads = 2,
                                                 .ff_width = 24,
                                                 .layers = {2, 2},
                                                 .words = {21, 21},
                                                 .positions = 12};

/* The patches overlap, and leave out the last line of pixels. */
const transformer_config network_small_captions = {.form = FORM_CAPTIONS,
                                                   .width = 16,
                                                   .heads = 2,
                                                   .ff_width = 24,
                                                   .layers = {1, 2},
                                                   .words = {0, 21},
                                                   .positions = 12,
                                                   .vision = {.side = 6,
                                                              .channels = 2,
                                                              .patch = 3,
                                                              .stride = 2,
                                                              .pooling = VISION_MEAN,
                                                              .places = VISION_LEARNED}};

const transformer_config network_small_detection = {.form = FORM_DETECTION,
                                                    .width = 16,
                                                    .heads = 2,
                                                    .ff_width = 24,
                                                    .layers = {1, 2},
                                                    .words = {3, 4},
                                                    .positions = 5,
                                                    .vision = {.side = 6,
                                                               .channels = 2,
                                                               .patch = 3,
                                                               .stride = 2,
                                                               .pooling = VISION_MEAN,
                                                               .places = VISION_LEARNED}};

float *network_case_values(const transformer_config *config, uint64_t seed)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    transformer_map map;
    transformer_map_fill(&map, config);
    float *const values = checked(malloc(map.count * sizeof *values));
    transformer_init(config, seed, values);
    test_random random = {seed};
    const int count = transformer_tensors(config, list);
    for (int n = 0; n < count; n++)
        for (size_t k = 0; list[n].rank == 1 && k < list[n].count; k++)
            values[list[n].at + k] += 0.3f * test_random_normal(&random);
    return values;
}

static size_t floats_of_picture(const transformer_config *config)
{
    const vision_shape *const v = &config->vision;
    return transformer_reads_pictures(config)
               ? (size_t)v->channels * (size_t)v->side * (size_t)v->side
               : 0;
}

/* All pictures have as many rows as they have patches. */
static void fill_pictures(batch *b, const transformer_config *config, float *pixels,
                          test_random *random)
{
    const int tokens = vision_tokens(&config->vision);
    b->pixels = pixels;
    b->picture_floats = floats_of_picture(config);
    for (size_t n = 0; n < (size_t)b->pairs * b->picture_floats; n++)
        pixels[n] = test_random_normal(random);
    for (int n = 0; n < b->pairs; n++)
        b->starts[TRANSFORMER_SOURCE][n + 1] = (n + 1) * (int64_t)tokens;
    b->rows[TRANSFORMER_SOURCE] = b->pairs * (ptrdiff_t)tokens;
    b->longest[TRANSFORMER_SOURCE] = tokens;
}

static void fill_side(batch *b, int side, int words, int longest, test_random *random)
{
    for (int n = 0; n < b->pairs; n++) {
        const int length = 1 + (int)test_random_below(random, longest);
        for (int k = 0; k < length; k++) {
            const ptrdiff_t row = b->rows[side]++;
            b->words[side][row] = (int)test_random_below(random, words);
            b->positions[side][row] = k;
            if (side == TRANSFORMER_TARGET)
                b->expected[row] = (int)test_random_below(random, words);
        }
        b->starts[side][n + 1] = b->rows[side];
        b->longest[side] = length > b->longest[side] ? length : b->longest[side];
    }
}

/* No thing, some, or one for every query. */
static void fill_things(batch *b, const transformer_config *config, test_random *random)
{
    const int queries = config->positions;
    for (int n = 0; n < b->pairs; n++) {
        b->thing_counts[n] = (int)test_random_below(random, queries + 1);
        for (int k = 0; k < b->thing_counts[n]; k++) {
            batch_thing *const thing = &b->things[n * queries + k];
            thing->classes[0] = (int)test_random_below(random, config->words[0]);
            thing->classes[1] = (int)test_random_below(random, config->words[1] - 1);
            for (int c = 0; c < 4; c++)
                thing->box.at[c] = 0.5 + (double)test_random_float(random) * (c < 2 ? 0.4 : 0.3);
        }
        for (int q = 0; q < queries; q++) {
            b->words[TRANSFORMER_TARGET][n * queries + q] = q;
            b->positions[TRANSFORMER_TARGET][n * queries + q] = q;
        }
        b->starts[TRANSFORMER_TARGET][n + 1] = (n + 1) * (int64_t)queries;
    }
    b->rows[TRANSFORMER_TARGET] = b->pairs * (ptrdiff_t)queries;
    b->longest[TRANSFORMER_TARGET] = queries;
}

batch *network_case_batch(const transformer_config *config, uint64_t seed, int pairs, int longest)
{
    const bool finds = config->form == FORM_DETECTION;
    const size_t n = (size_t)pairs;
    const size_t things = finds ? n * (size_t)config->positions : 0;
    const size_t rows = finds ? things : n * (size_t)longest;
    const size_t starts_size = TRANSFORMER_SIDES * (n + 1) * sizeof(int64_t);
    const size_t floats = n * floats_of_picture(config);
    batch *const b = checked(calloc(1, sizeof *b + starts_size + things * sizeof *b->things +
                                           (5 * rows + n) * sizeof(int) + floats * sizeof(float)));
    int64_t *const starts = (int64_t *)(b + 1);
    batch_thing *const list = (batch_thing *)(starts + TRANSFORMER_SIDES * (n + 1));
    int *const counts = (int *)(list + things), *const ints = counts + n;
    test_random random = {seed};
    b->pairs = pairs;
    b->expected = ints + 4 * rows;
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        b->starts[side] = starts + (size_t)side * (n + 1);
        b->words[side] = ints + (size_t)(2 * side) * rows;
        b->positions[side] = ints + (size_t)(2 * side + 1) * rows;
        if (side == TRANSFORMER_SOURCE && transformer_reads_pictures(config))
            fill_pictures(b, config, (float *)(ints + 5 * rows), &random);
        else if (finds) {
            b->things_room = config->positions;
            b->things = list;
            b->thing_counts = counts;
            fill_things(b, config, &random);
        } else
            fill_side(b, side, config->words[side] - 2, longest, &random);
    }
    return b;
}

void network_case_pair(const batch *all, int number, lone_pair *out)
{
    memset(out, 0, sizeof *out);
    batch *const b = &out->batch;
    b->pairs = 1;
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const int64_t first = all->starts[side][number];
        out->starts[side][1] = all->starts[side][number + 1] - first;
        b->starts[side] = out->starts[side];
        b->rows[side] = out->starts[side][1];
        b->longest[side] = (int)out->starts[side][1];
        b->words[side] = all->words[side] + first;
        b->positions[side] = all->positions[side] + first;
    }
    b->expected = all->expected + all->starts[TRANSFORMER_TARGET][number];
    b->picture_floats = all->picture_floats;
    if (all->pixels)
        b->pixels = all->pixels + (size_t)number * all->picture_floats;
    if (all->things) {
        b->things_room = all->things_room;
        b->things = all->things + number * all->things_room;
        b->thing_counts = all->thing_counts + number;
    }
}
