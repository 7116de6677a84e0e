/* SPDX-License-Identifier: MIT */
/*
 * One sentence pair through a translator, as in training without dropout, with everything kept.
 *
 *      source --encoder--> memory --+
 *                                   v
 *      target --decoder: self, cross, ff, layer by layer--> logits --> likelihoods
 *
 * Attention weights and outputs of heads come from the library itself. Queries, keys and values of
 * single heads are computed again in capture_vectors.c, and so are norms.
 */
#include "heads/capture_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "translator/row_math.h"

/* A capture while it is made; `rows` below are those of the longer side. */
typedef struct run {
    const translator *model;
    const capture_options *options;
    mha_pool *pool;
    head_settings *settings; /* NULL: no head is changed */
    capture *c;
    float *x;      /* [rows][width] residual stream of the present side */
    float *normed; /* [rows][width] input of a sub-layer */
    float *added;  /* [rows][width] its output */
    float *memory; /* [source_count][width] output of the encoder */
    float *inside; /* [rows][ff_width] */
    float *logits; /* [target_count][target words] */
    float *stats;  /* [rows][2] of the latest norm */
} run;

/* -------------------------------------------------------------- memory ----- */

/* The parts of a layer of the decoder, in the order of capture_stream. */
enum { PART_SELF, PART_CROSS, PART_FEED_FORWARD, PARTS };

/* One more than needed, so that the size is never 0. */
static float *floats(ptrdiff_t a, ptrdiff_t b)
{
    return calloc((size_t)a * (size_t)b + 1, sizeof(float));
}

/* Sets the shape of a kind and allocates its arrays. Vectors include the weights; patches go into
 * the outputs. */
static bool make_heads(const run *r, attention_kind kind)
{
    const transformer_config *const config = translator_config(r->model);
    capture_heads *const h = &r->c->kind[kind];
    h->layers = attention_kind_layers(config, kind);
    h->heads = config->heads;
    h->width = config->width / config->heads;
    h->rows = kind == ATTENTION_ENCODER ? r->c->source_count : r->c->target_count;
    h->columns = kind == ATTENTION_DECODER ? r->c->target_count : r->c->source_count;
    if ((r->options->weights || r->options->vectors) && !capture_weights_make(h))
        return false;
    if ((r->options->vectors || r->options->outputs || r->options->patch_count > 0) &&
        !capture_outputs_make(h))
        return false;
    return !r->options->vectors || capture_vectors_make(h);
}

static bool make_stream(const run *r)
{
    const transformer_config *const config = translator_config(r->model);
    capture_stream *const s = &r->c->stream;
    if (!r->options->stream)
        return true;
    *s = (capture_stream){.layers = config->layers[TRANSFORMER_TARGET],
                          .parts = PARTS * config->layers[TRANSFORMER_TARGET],
                          .rows = r->c->target_count,
                          .width = config->width,
                          .words = config->words[TRANSFORMER_TARGET]};
    s->streams = floats((ptrdiff_t)(s->layers + 1) * s->rows, s->width);
    s->added = floats((ptrdiff_t)s->parts * s->rows, s->width);
    s->logits = floats(s->rows, s->words);
    return s->streams && s->added && s->logits;
}

/* Translates the changes of the options into settings; without changes there are none. */
static bool make_settings(run *r)
{
    bool wanted = false;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        wanted |= r->options->changes[kind] != NULL;
    if (!wanted)
        return true;
    head_settings *const s = r->settings = head_settings_create(translator_config(r->model), 1);
    if (!s)
        return false;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const size_t heads = (size_t)s->layers[kind] * (size_t)s->heads;
        if (r->options->means[kind])
            memcpy(s->means[kind], r->options->means[kind],
                   heads * (size_t)s->width * sizeof *s->means[kind]);
        for (int n = 0; r->options->changes[kind] && n < (int)heads; n++)
            head_settings_change(s, (attention_kind)kind, n / s->heads, n % s->heads,
                                 (head_mode)r->options->changes[kind][n]);
    }
    return true;
}

static bool make_arrays(run *r)
{
    const transformer_config *const config = translator_config(r->model);
    const int source = r->c->source_count, target = r->c->target_count;
    const ptrdiff_t rows = source > target ? source : target;
    r->x = floats(rows, config->width);
    r->normed = floats(rows, config->width);
    r->added = floats(rows, config->width);
    r->memory = floats(source, config->width);
    r->inside = floats(rows, config->ff_width);
    r->logits = floats(target, config->words[TRANSFORMER_TARGET]);
    r->stats = floats(rows, 2);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (!make_heads(r, (attention_kind)kind))
            return false;
    return r->x && r->normed && r->added && r->memory && r->inside && r->logits && r->stats &&
           make_stream(r) && make_settings(r);
}

static void free_arrays(run *r)
{
    float *const arrays[] = {r->x, r->normed, r->added, r->memory, r->inside, r->logits, r->stats};
    for (size_t n = 0; n < sizeof arrays / sizeof arrays[0]; n++)
        free(arrays[n]);
    head_settings_free(r->settings);
}

/* --------------------------------------------------------------- parts ----- */

/* to[rows][width] = norm(x). */
static void normalise(run *r, ptrdiff_t rows, const weight_at *at, float *to)
{
    const float *const values = translator_values(r->model);
    transformer_norm(r->x, rows, translator_config(r->model)->width, values + at->weight,
                     values + at->bias, to, r->stats, r->pool);
}

/* x += added. */
static void add(run *r, ptrdiff_t rows)
{
    const ptrdiff_t width = translator_config(r->model)->width;
    for (ptrdiff_t row = 0; row < rows; row++)
        row_add(r->added + row * width, (int)width, r->x + row * width);
}

/* Keeps the stream of the decoder before a layer, and what a part computes, if it is requested. */
static void keep_stream(const run *r, int layer)
{
    const capture_stream *const s = &r->c->stream;
    const size_t cells = (size_t)s->rows * (size_t)s->width;
    if (s->streams)
        memcpy(s->streams + (size_t)layer * cells, r->x, cells * sizeof *r->x);
}

static void keep_part(const run *r, int layer, int part)
{
    const capture_stream *const s = &r->c->stream;
    const size_t cells = (size_t)s->rows * (size_t)s->width;
    if (s->added)
        memcpy(s->added + (size_t)(layer * PARTS + part) * cells, r->added,
               cells * sizeof *r->added);
}

/* The steps that are requested of a layer; NULL: none. */
static computation *steps_of(const run *r, attention_kind kind, int layer)
{
    computation *const steps = r->options->steps[kind];
    return steps && steps->layer == layer ? steps : NULL;
}

/* Keeps rows of the stream, if steps are requested. False: out of memory. */
static bool keep(const run *r, const computation *steps, float **to, const float *rows)
{
    return !steps ||
           computation_copy(to, rows, (ptrdiff_t)steps->rows * translator_config(r->model)->width);
}

/* The stream before an attention and what it is made of. `stream` is x before the part. */
static bool keep_input(const run *r, computation *steps)
{
    const transformer_config *const config = translator_config(r->model);
    const capture_heads *const h = &r->c->kind[steps->kind];
    const bool cross = steps->kind == ATTENTION_CROSS;
    steps->rows = h->rows;
    steps->columns = h->columns;
    steps->width = config->width;
    steps->norm_first = config->form == FORM_LABORATORY;
    steps->norm = MHA_NORM_LAYER;
    steps->norm_eps = ROW_NORM_EPSILON;
    steps->turn.query_factor = 1.0;
    return keep(r, steps, &steps->input, r->normed) &&
           (!cross ||
            computation_copy(&steps->memory, r->memory, (ptrdiff_t)steps->columns * steps->width));
}

/* The output of a layer again, from the outputs of its heads, if some are replaced. */
static mha_status patch(const run *r, attention_kind kind, int layer, const mha_layer *packed,
                        const mha_layer_call *done)
{
    const capture_heads *const h = &r->c->kind[kind];
    float *const outputs =
        h->outputs ? h->outputs + (ptrdiff_t)layer * h->heads * h->rows * h->width : NULL;
    const mha_layer_call call = {.size = sizeof call, .B = 1, .L = h->rows, .output = done->output};
    if (!capture_patch(r->options, kind, layer, h, outputs))
        return MHA_OK;
    return mha_layer_output(packed, &call, mha_view_bhld(outputs, h->heads, h->rows, h->width),
                            NULL, 0, r->pool);
}

/* x += attention(norm(x)) of one layer; captures what was requested. */
static mha_status attend(run *r, attention_kind kind, int layer)
{
    const ptrdiff_t width = translator_config(r->model)->width;
    const int side = kind == ATTENTION_ENCODER ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET;
    const layer_at *const at = &translator_map(r->model)->layers[side][layer];
    const coder_layer *const packed = translator_layer(r->model, side, layer);
    const attention_at *const own = kind == ATTENTION_CROSS ? &at->cross : &at->self;
    capture_heads *const h = &r->c->kind[kind];
    mha_options options = {.size = sizeof options,
                           .flags = kind == ATTENTION_DECODER ? (uint32_t)MHA_CAUSAL : 0u};
    mha_layer_call call = {.size = sizeof call,
                           .B = 1,
                           .L = h->rows,
                           .S = h->columns,
                           .query = mha_view_ble(r->normed, h->rows, width),
                           .output = mha_out_ble(r->added, h->rows, width),
                           .options = &options};
    if (h->weights)
        options.weights =
            mha_out_bhld(h->weights + (ptrdiff_t)layer * h->heads * h->rows * h->columns, h->heads,
                         h->rows, h->columns);
    if (h->outputs)
        call.captured_heads =
            mha_out_bhld(h->outputs + (ptrdiff_t)layer * h->heads * h->rows * h->width, h->heads,
                         h->rows, h->width);
    if (r->settings)
        head_settings_fill(r->settings, kind, layer, &options);
    if (r->options->hidden && kind != ATTENTION_DECODER)
        options.ignore_mask = (mha_view){r->options->hidden, 0, 0, 0};
    if (kind == ATTENTION_CROSS)
        call.key = mha_view_ble(r->memory, h->columns, width);
    computation *const steps = steps_of(r, kind, layer);
    normalise(r, h->rows, &own->norm, r->normed);
    if (steps && !(keep_input(r, steps) && keep(r, steps, &steps->stream, r->x)))
        return MHA_ERR_MEMORY;
    const mha_layer *const own_layer = kind == ATTENTION_CROSS ? packed->cross : packed->self;
    mha_status status = mha_layer_run(own_layer, &call, NULL, 0, r->pool);
    if (status == MHA_OK)
        status = patch(r, kind, layer, own_layer, &call);
    if (status != MHA_OK)
        return status;
    if (side == TRANSFORMER_TARGET)
        keep_part(r, layer, kind == ATTENTION_CROSS ? PART_CROSS : PART_SELF);
    const capture_inputs inputs = {own, r->normed, kind == ATTENTION_CROSS ? r->memory : r->normed};
    if (r->options->vectors)
        capture_vectors_fill(r->model, h, layer, &inputs);
    add(r, h->rows);
    if (steps && !(keep(r, steps, &steps->added, r->added) && keep(r, steps, &steps->joined, r->x)))
        return MHA_ERR_MEMORY;
    return MHA_OK;
}

/* What a feed-forward has left behind. */
static bool keep_feed_forward(const run *r, computation *steps)
{
    steps->inner = translator_config(r->model)->ff_width;
    return keep(r, steps, &steps->ff_input, r->normed) &&
           keep(r, steps, &steps->ff_added, r->added) && keep(r, steps, &steps->result, r->x) &&
           computation_copy(&steps->inside, r->inside, (ptrdiff_t)steps->rows * steps->inner);
}

/* x += W_out relu(W_in norm(x)) of one layer. */
static mha_status feed_forward(run *r, int side, int layer, ptrdiff_t rows)
{
    const ptrdiff_t width = translator_config(r->model)->width,
                    inside = translator_config(r->model)->ff_width;
    const coder_layer *const packed = translator_layer(r->model, side, layer);
    normalise(r, rows, &translator_map(r->model)->layers[side][layer].ff.norm, r->normed);
    mha_status status = mha_linear_run(packed->in, rows, r->normed, MHA_F32, width, r->inside,
                                       MHA_F32, inside, NULL, 0, r->pool);
    if (status != MHA_OK)
        return status;
    for (ptrdiff_t row = 0; row < rows; row++)
        row_relu(r->inside + row * inside, (int)inside);
    status = mha_linear_run(packed->out, rows, r->inside, MHA_F32, inside, r->added, MHA_F32, width,
                            NULL, 0, r->pool);
    if (side == TRANSFORMER_TARGET)
        keep_part(r, layer, PART_FEED_FORWARD);
    add(r, rows);
    computation *const steps =
        steps_of(r, side == TRANSFORMER_SOURCE ? ATTENTION_ENCODER : ATTENTION_CROSS, layer);
    return status == MHA_OK && steps && !keep_feed_forward(r, steps) ? MHA_ERR_MEMORY : status;
}

/* The embeddings and the position codes whose sum is x, if the first steps are requested. */
static bool keep_embedding(const run *r, int side, const float *embedding, const int *words,
                           int rows)
{
    const transformer_config *const config = translator_config(r->model);
    const ptrdiff_t width = config->width, count = rows * width;
    computation *const steps =
        steps_of(r, side == TRANSFORMER_SOURCE ? ATTENTION_ENCODER : ATTENTION_DECODER, 0);
    if (!steps)
        return true;
    if (!computation_copy(&steps->words, r->x, count) ||
        !computation_copy(&steps->codes, r->x, count))
        return false;
    transformer_positions(config, 0, rows, steps->codes);
    for (ptrdiff_t n = 0; n < count; n++)
        steps->words[n] =
            embedding[words[n / width] * width + n % width] * sqrtf((float)config->width);
    return true;
}

/* x = embeddings of the words at positions 0, 1, ... False: out of memory. */
static bool embed(run *r, int side, const int *words, int rows)
{
    const float *const embedding =
        translator_values(r->model) + translator_map(r->model)->embedding[side];
    int positions[CORPUS_TOKENS_MAX]; /* translator_longest() is at most that */
    for (int n = 0; n < rows; n++)
        positions[n] = n;
    transformer_embed(translator_config(r->model), embedding, words, positions, rows, r->x);
    return keep_embedding(r, side, embedding, words, rows);
}

static mha_status encode(run *r)
{
    mha_status status =
        embed(r, TRANSFORMER_SOURCE, r->c->source, r->c->source_count) ? MHA_OK : MHA_ERR_MEMORY;
    for (int n = 0; n < translator_config(r->model)->layers[TRANSFORMER_SOURCE] && status == MHA_OK;
         n++) {
        status = attend(r, ATTENTION_ENCODER, n);
        if (status == MHA_OK)
            status = feed_forward(r, TRANSFORMER_SOURCE, n, r->c->source_count);
    }
    normalise(r, r->c->source_count, &translator_map(r->model)->norm[TRANSFORMER_SOURCE],
              r->memory);
    return status;
}

static mha_status decode(run *r)
{
    const transformer_config *const config = translator_config(r->model);
    const int rows = r->c->target_count;
    mha_status status = embed(r, TRANSFORMER_TARGET, r->c->target, rows) ? MHA_OK : MHA_ERR_MEMORY;
    for (int n = 0; n < config->layers[TRANSFORMER_TARGET] && status == MHA_OK; n++) {
        keep_stream(r, n);
        status = attend(r, ATTENTION_DECODER, n);
        if (status == MHA_OK)
            status = attend(r, ATTENTION_CROSS, n);
        if (status == MHA_OK)
            status = feed_forward(r, TRANSFORMER_TARGET, n, rows);
    }
    if (status != MHA_OK)
        return status;
    keep_stream(r, config->layers[TRANSFORMER_TARGET]);
    return translator_lens(r->model, rows, r->x, r->logits, r->pool);
}

/* --------------------------------------------------------------- words ----- */

mha_status translator_lens(const translator *model, int rows, const float *stream, float *logits,
                           mha_pool *pool)
{
    const transformer_config *const config = translator_config(model);
    const weight_at *const norm = &translator_map(model)->norm[TRANSFORMER_TARGET];
    const float *const values = translator_values(model);
    float *const normed = floats(rows, config->width), *const stats = floats(rows, 2);
    mha_status status = normed && stats ? MHA_OK : MHA_ERR_MEMORY;
    if (status == MHA_OK) {
        transformer_norm(stream, rows, config->width, values + norm->weight, values + norm->bias,
                         normed, stats, pool);
        status = mha_linear_run(translator_logits(model), rows, normed, MHA_F32, config->width,
                                logits, MHA_F32, config->words[TRANSFORMER_TARGET], NULL, 0, pool);
    }
    free(normed);
    free(stats);
    return status;
}

/* Word, logit and likelihood of a row. The softmax overwrites the logits, so it comes last. */
static void predict(run *r, int row)
{
    const int words = translator_config(r->model)->words[TRANSFORMER_TARGET],
              expected = r->c->expected[row];
    float *const logits = r->logits + (ptrdiff_t)row * words;
    double sum = 0.0;
    float rest;
    int best = WORD_BEGIN + 1; /* as in beam_search.c, WORD_BEGIN is never predicted */
    for (int w = 0; w < words; w++) {
        sum += (double)logits[w];
        best = w > best && logits[w] > logits[best] ? w : best;
    }
    r->c->predicted[row] = best;
    r->c->logit[row] = (double)logits[expected] - sum / words;
    r->c->log_likelihood[row] = -row_softmax(logits, words, expected, &rest).loss;
}

/* Whether these are words of a side, and there is a position for WORD_BEGIN or WORD_END, too. */
static bool words_fit(const translator *model, int side, const int *words, int count)
{
    if (count < 0 || count >= translator_longest(model))
        return false;
    for (int n = 0; n < count; n++)
        if (words[n] < 0 || words[n] >= translator_config(model)->words[side])
            return false;
    return true;
}

/* Copies the words, with WORD_BEGIN and WORD_END where capture.h has them. */
static void take_words(capture *c, const int *source, int source_count, const int *target,
                       int target_count)
{
    memcpy(c->source, source, (size_t)source_count * sizeof *source);
    memcpy(c->target + 1, target, (size_t)target_count * sizeof *target);
    memcpy(c->expected, target, (size_t)target_count * sizeof *target);
    c->source[source_count] = WORD_END;
    c->target[0] = WORD_BEGIN;
    c->expected[target_count] = WORD_END;
    c->source_marks[source_count] = true;
    c->target_marks[0] = true;
    c->scored = target_count + 1;
}

/* One more element than needed, so that no size is 0. */
capture *capture_new(int source_count, int target_count)
{
    const size_t source = (size_t)source_count + 1, target = (size_t)target_count + 1;
    capture *const c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->source_count = source_count;
    c->target_count = target_count;
    c->source = calloc(source, sizeof *c->source);
    c->target = calloc(3 * target, sizeof *c->target);
    c->source_marks = calloc(2 * source + 3 * target, sizeof *c->source_marks);
    c->log_likelihood = calloc(2 * target, sizeof *c->log_likelihood);
    if (!c->source || !c->target || !c->source_marks || !c->log_likelihood) {
        capture_free(c);
        return NULL;
    }
    c->expected = c->target + target;
    c->predicted = c->expected + target;
    c->target_marks = c->source_marks + source;
    c->source_continues = c->target_marks + target;
    c->target_continues = c->source_continues + source;
    c->says_more = c->target_continues + target;
    c->logit = c->log_likelihood + target;
    return c;
}

capture *capture_create(const translator *model, const int *source, int source_count,
                        const int *target, int target_count, const capture_options *options,
                        mha_pool *pool)
{
    if (!words_fit(model, TRANSFORMER_SOURCE, source, source_count) ||
        !words_fit(model, TRANSFORMER_TARGET, target, target_count))
        return NULL;
    capture *const c = capture_new(source_count + 1, target_count + 1);
    if (!c)
        return NULL;
    run r = {.model = model, .options = options, .pool = pool, .c = c};
    take_words(c, source, source_count, target, target_count);
    bool fine = make_arrays(&r) && encode(&r) == MHA_OK && decode(&r) == MHA_OK;
    if (fine && c->stream.logits)
        memcpy(c->stream.logits, r.logits,
               (size_t)c->stream.rows * (size_t)c->stream.words * sizeof *r.logits);
    for (int row = 0; fine && row < c->target_count; row++)
        predict(&r, row);
    free_arrays(&r);
    if (fine)
        return c;
    capture_free(c);
    return NULL;
}

double capture_score(const capture *c)
{
    double sum = 0.0;
    for (int i = 0; i < c->scored; i++)
        sum += c->log_likelihood[i];
    return c->scored > 0 ? sum / c->scored : NAN;
}

void capture_free(capture *c)
{
    if (!c)
        return;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const capture_heads *const h = &c->kind[kind];
        float *const arrays[] = {h->weights, h->q, h->k, h->v, h->value_norms, h->outputs};
        for (size_t n = 0; n < sizeof arrays / sizeof arrays[0]; n++)
            free(arrays[n]);
    }
    free(c->probabilities);
    free(c->stream.streams);
    free(c->stream.added);
    free(c->stream.logits);
    free(c->source);
    free(c->target);
    free(c->source_marks);
    free(c->log_likelihood);
    free(c->vector);
    free(c);
}
