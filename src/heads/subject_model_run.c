/* SPDX-License-Identifier: MIT */
/*
 * Runs a model of libmha_model on a text, with everything captured:
 *
 *      changes --> mha_head_settings --+
 *      tokens -------------------------+--mha_model_run()--> weights, q, k, v, heads per layer
 *                                                        --> logits --> predicted, likelihoods
 *                                                        --> hidden states --> vector of the text
 *
 * Keys and values that several heads share are copied for each of them, so that every head of a
 * capture has its own.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/capture_parts.h"
#include "heads/subject_model_parts.h"
#include "model/inspect.h"
#include "model/intervene.h"

/* A capture while it is made. */
typedef struct running {
    const subject *subject;
    const model_text *text;
    const capture_options *options;
    mha_model_info info;
    capture *c;
    mha_capture *captures; /* [capture_count] */
    int capture_count;
    float *keys, *values; /* [layers of all kinds][G][longest columns][D], as captured */
    float *hidden;        /* [rows][width] */
    float *logits;        /* [target_count][vocabulary] */
    float *classes;       /* [class_count] logits of a classifier of pictures */
    model_steps steps;
} running;

/* --------------------------------------------------------------- changes ----- */

bool model_changes_make(model_changes *to, head_shape shape,
                        const uint8_t *const modes[ATTENTION_KINDS],
                        const float *const means[ATTENTION_KINDS])
{
    const size_t count = (size_t)head_count(shape) + 1;
    *to = (model_changes){.settings = {.size = sizeof to->settings},
                          .gates = malloc(count * sizeof *to->gates),
                          .modes = calloc(count, sizeof *to->modes)};
    if (!to->gates || !to->modes)
        return false;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const int first = head_number(shape, (head_name){(attention_kind)kind, 0, 0});
        for (int n = 0; modes[kind] && n < shape.layers[kind] * shape.heads; n++) {
            to->gates[first + n] = modes[kind][n] == HEAD_ZERO ? 0.0f : 1.0f;
            to->modes[first + n] = modes[kind][n] == HEAD_UNIFORM ? (uint8_t)MHA_HEAD_UNIFORM
                                   : modes[kind][n] == HEAD_MEAN  ? (uint8_t)MHA_HEAD_MEAN
                                                                  : (uint8_t)MHA_HEAD_NORMAL;
        }
        if (!modes[kind] || shape.layers[kind] == 0)
            continue;
        to->settings.gates[kind] = to->gates + first;
        to->settings.modes[kind] = to->modes + first;
        to->settings.means[kind] = means[kind];
    }
    return true;
}

void model_changes_free(model_changes *changes)
{
    free(changes->gates);
    free(changes->modes);
}

/* ---------------------------------------------------------------- memory ----- */

/* The shape of a kind, and its arrays as far as they were requested. */
static bool make_heads(running *r, attention_kind kind)
{
    const head_shape shape = r->subject->shape;
    capture_heads *const h = &r->c->kind[kind];
    *h = (capture_heads){.layers = shape.layers[kind], .heads = shape.heads, .width = shape.width};
    h->rows = kind == ATTENTION_ENCODER ? r->c->source_count : r->c->target_count;
    h->columns = kind == ATTENTION_DECODER ? r->c->target_count : r->c->source_count;
    const bool vectors = r->options->vectors, weights = r->options->weights || vectors;
    if (h->layers == 0)
        return true;
    if ((vectors || r->options->outputs || r->options->patch_count > 0) && !capture_outputs_make(h))
        return false;
    return (!weights || capture_weights_make(h)) && (!vectors || capture_vectors_make(h));
}

static size_t key_cells(const running *r)
{
    const size_t source = (size_t)r->c->source_count, target = (size_t)r->c->target_count;
    return (size_t)r->info.key_heads * (source > target ? source : target) *
           (size_t)r->subject->shape.width;
}

static bool allocate(running *r)
{
    const head_shape shape = r->subject->shape;
    const size_t layers = (size_t)(head_count(shape) / shape.heads);
    const size_t rows = (size_t)(r->c->target_count > 0 ? r->c->target_count : r->c->source_count);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (!make_heads(r, (attention_kind)kind))
            return false;
    r->captures = calloc(layers, sizeof *r->captures);
    if (r->options->vectors) {
        r->keys = calloc(layers * key_cells(r) + 1, sizeof *r->keys);
        r->values = calloc(layers * key_cells(r) + 1, sizeof *r->values);
    }
    if (subject_predicts(r->subject))
        r->logits = calloc(rows * (size_t)r->info.vocabulary + 1, sizeof *r->logits);
    else
        r->hidden = calloc(rows * (size_t)r->info.width + 1, sizeof *r->hidden);
    if (r->subject->class_count > 0)
        r->classes = calloc((size_t)r->subject->class_count, sizeof *r->classes);
    return r->captures && (r->logits || r->hidden) &&
           (r->classes || r->subject->class_count == 0) &&
           model_steps_make(&r->steps, r->subject, r->options, r->text) &&
           (!r->options->vectors || (r->keys && r->values));
}

static void release(running *r)
{
    free(r->captures);
    free(r->keys);
    free(r->values);
    free(r->hidden);
    free(r->logits);
    free(r->classes);
    model_steps_free(&r->steps);
}

/* -------------------------------------------------------------- captures ----- */

/* What is requested of one layer; its keys and values go to place n of r->keys and r->values. */
static mha_capture request_layer(const running *r, attention_kind kind, int layer, int n)
{
    const capture_heads *const h = &r->c->kind[kind];
    const ptrdiff_t first = (ptrdiff_t)layer * h->heads, D = h->width;
    mha_capture c = {.kind = (mha_attention_kind)kind, .layer = layer};
    if (h->weights)
        c.weights =
            mha_out_bhld(h->weights + first * h->rows * h->columns, h->heads, h->rows, h->columns);
    if (h->outputs)
        c.heads = mha_out_bhld(h->outputs + first * h->rows * D, h->heads, h->rows, D);
    if (!h->q)
        return c;
    c.q = mha_out_bhld(h->q + first * h->rows * D, h->heads, h->rows, D);
    c.k = mha_out_bhld(r->keys + n * (ptrdiff_t)key_cells(r), r->info.key_heads, h->columns, D);
    c.v = mha_out_bhld(r->values + n * (ptrdiff_t)key_cells(r), r->info.key_heads, h->columns, D);
    return c;
}

static void request_all(running *r)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int layer = 0; layer < r->c->kind[kind].layers; layer++) {
            if (!r->c->kind[kind].weights && !r->c->kind[kind].outputs)
                break;
            r->captures[r->capture_count] =
                request_layer(r, (attention_kind)kind, layer, r->capture_count);
            r->capture_count++;
        }
}

/* Copies the keys or values of a layer to each head that reads them. */
static void spread(const running *r, const capture_heads *h, const float *from, float *to)
{
    const ptrdiff_t cells = (ptrdiff_t)h->columns * h->width;
    for (int head = 0; head < h->heads; head++)
        memcpy(to + head * cells, from + head / (h->heads / r->info.key_heads) * cells,
               (size_t)cells * sizeof *to);
}

double query_factor(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer, int width)
{
    const double factor = (double)model_score_scale(model, kind, layer) * sqrt((double)width);
    return fabs(factor - 1.0) > 1e-6 ? factor : 1.0;
}

/* Vectors of a layer that were not captured as they are shown. */
static mha_status finish_layer(running *r, const mha_capture *from, int n)
{
    capture_heads *const h = &r->c->kind[from->kind];
    const mha_model *const model = model_of(r->subject);
    const ptrdiff_t first = from->layer * h->heads, D = h->width;
    const float *const values = r->values + n * (ptrdiff_t)key_cells(r);
    const double factor = query_factor(model, from->kind, from->layer, h->width);
    h->scores_differ |= model_scores_differ(model, from->kind, from->layer);
    spread(r, h, r->keys + n * (ptrdiff_t)key_cells(r), h->k + first * h->columns * D);
    spread(r, h, values, h->v + first * h->columns * D);
    for (ptrdiff_t c = 0; factor != 1.0 && c < (ptrdiff_t)h->heads * h->rows * D; c++)
        h->q[first * h->rows * D + c] *= (float)factor;
    if (!h->value_norms)
        return MHA_OK;
    return model_value_norms(model, from->kind, from->layer, values, h->columns,
                             h->value_norms + first * h->columns);
}

/* If W_O cannot be read, there are no norms. */
static bool finish_vectors(running *r)
{
    for (int n = 0; r->options->vectors && n < r->capture_count; n++) {
        const mha_status status = finish_layer(r, &r->captures[n], n);
        if (status == MHA_ERR_MEMORY)
            return false;
        if (status != MHA_OK) {
            capture_heads *const h = &r->c->kind[r->captures[n].kind];
            free(h->value_norms);
            h->value_norms = NULL;
        }
    }
    return true;
}

/* --------------------------------------------------------------- results ----- */

/* Token, logit and likelihood of a row. */
static void predict(running *r, int row)
{
    const ptrdiff_t words = r->info.vocabulary;
    const float *const logits = r->logits + row * words;
    const int expected = r->c->expected[row];
    double sum = 0.0, powers = 0.0;
    int best = 0;
    for (int w = 0; w < words; w++) {
        best = logits[w] > logits[best] ? w : best;
        sum += (double)logits[w];
    }
    for (int w = 0; w < words; w++)
        powers += exp((double)logits[w] - (double)logits[best]);
    r->c->predicted[row] = best;
    r->c->logit[row] = (double)logits[expected] - sum / (double)words;
    r->c->log_likelihood[row] = (double)logits[expected] - (double)logits[best] - log(powers);
}

/* One element of the vector of a text. */
static double pool_column(const running *r, mha_pooling pooling, ptrdiff_t c)
{
    const ptrdiff_t width = r->info.width;
    const int rows = r->c->source_count;
    double sum = 0.0, most = -INFINITY;
    for (int row = 0; row < rows; row++) {
        const double x = (double)r->hidden[row * width + c];
        sum += x / rows;
        most = x > most ? x : most;
    }
    switch (pooling) {
    case MHA_POOLING_FIRST:
        return (double)r->hidden[c];
    case MHA_POOLING_LAST:
        return (double)r->hidden[(rows - 1) * width + c];
    case MHA_POOLING_MAX:
        return most;
    default:
        return sum;
    }
}

/* The vector of the text, of length 1. */
static bool make_vector(running *r)
{
    const mha_pooling pooling = model_pooling(model_of(r->subject));
    double squares = 0.0;
    r->c->vector_width = (int)r->info.width;
    r->c->vector = malloc((size_t)r->info.width * sizeof *r->c->vector);
    for (int c = 0; r->c->vector && c < r->c->vector_width; c++) {
        const double x = pool_column(r, pooling, c);
        r->c->vector[c] = (float)x;
        squares += x * x;
    }
    for (int c = 0; r->c->vector && squares > 0.0 && c < r->c->vector_width; c++)
        r->c->vector[c] = (float)((double)r->c->vector[c] / sqrt(squares));
    return r->c->vector;
}

/* The probabilities of the classes; false: out of memory. */
static bool find_classes(running *r)
{
    const int count = r->subject->class_count;
    double most = -INFINITY, sum = 0.0;
    if (count == 0)
        return true;
    r->c->class_count = count;
    r->c->probabilities = malloc((size_t)count * sizeof *r->c->probabilities);
    if (!r->c->probabilities)
        return false;
    for (int n = 0; n < count; n++)
        most = (double)r->classes[n] > most ? (double)r->classes[n] : most;
    for (int n = 0; n < count; n++)
        sum += r->c->probabilities[n] = exp((double)r->classes[n] - most);
    for (int n = 0; n < count; n++)
        r->c->probabilities[n] /= sum;
    return true;
}

/* Copies numbers and flags of the tokens. The token after the last one may not be known. */
static void take_tokens(running *r)
{
    capture *const c = r->c;
    const subject_side *const source = &r->text->sides[TRANSFORMER_SOURCE].side;
    const subject_side *const target = &r->text->sides[TRANSFORMER_TARGET].side;
    memcpy(c->source, source->numbers, (size_t)source->count * sizeof *c->source);
    memcpy(c->source_marks, source->marks, (size_t)source->count);
    memcpy(c->source_continues, source->continues, (size_t)source->count);
    memcpy(c->target, target->numbers, (size_t)target->count * sizeof *c->target);
    memcpy(c->target_marks, target->marks, (size_t)target->count);
    memcpy(c->target_continues, target->continues, (size_t)target->count);
    for (int n = 1; n + 1 < target->count; n++)
        c->says_more[n] = target->continues[n + 1];
    c->scored = target->count - (target->count > 0 && r->text->end < 0);
    for (int n = 0; n < c->scored; n++)
        c->expected[n] = n + 1 < target->count ? target->numbers[n + 1] : r->text->end;
}

/* ------------------------------------------------------------------- run ----- */

/* Runs a call with what the options interfere with; `ignored` as in model_intervention. */
static mha_status run_call(const running *r, const mha_model_call *call, const uint8_t *ignored,
                           mha_pool *pool)
{
    const int count = r->options->patch_count;
    model_patch *const patches = calloc((size_t)count + 1, sizeof *patches);
    if (!patches)
        return MHA_ERR_MEMORY;
    for (int n = 0; n < count; n++) {
        const head_patch *const p = &r->options->patches[n];
        patches[n] = (model_patch){(mha_attention_kind)p->kind, p->layer, p->head, p->outputs};
    }
    const model_intervention changed = {ignored, patches, count};
    const mha_status status = model_run_changed(model_of(r->subject), call, &changed, pool);
    free(patches);
    return status;
}

static mha_status call_model(running *r, const mha_head_settings *heads, mha_pool *pool)
{
    const model_side *const source = &r->text->sides[TRANSFORMER_SOURCE];
    const model_side *const target = &r->text->sides[TRANSFORMER_TARGET];
    const bool both = source->side.count > 0 && target->side.count > 0;
    const model_side *const own = target->side.count > 0 ? target : source;
    const int64_t starts[2] = {0, own->side.count}, source_starts[2] = {0, source->side.count};
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .starts = r->text->pixels ? NULL : starts,
                                 .ids = r->text->pixels ? NULL : own->ids,
                                 .pixels = r->text->pixels,
                                 .source_starts = both ? source_starts : NULL,
                                 .source_ids = both ? source->ids : NULL,
                                 .hidden = r->hidden,
                                 .logits = r->logits,
                                 .labels = r->classes,
                                 .logit_row_count = r->logits ? own->side.count : 0,
                                 .heads = heads,
                                 .source_ignored =
                                     both ? (const uint8_t *)r->options->hidden : NULL,
                                 .captures = r->captures,
                                 .capture_count = r->capture_count,
                                 .streams = r->steps.streams,
                                 .parts = r->steps.parts,
                                 .source_hidden = r->steps.memory};
    return run_call(r, &call, both ? NULL : (const uint8_t *)r->options->hidden, pool);
}

/* Hands the stream over to the capture, if it is requested. */
static void take_stream(running *r)
{
    if (!r->options->stream || !r->logits)
        return;
    r->c->stream =
        (capture_stream){.layers = r->steps.layers,
                         .parts = r->steps.layers * model_layer_parts(model_of(r->subject)),
                         .rows = r->steps.rows,
                         .width = (int)r->steps.width,
                         .words = (int)r->info.vocabulary,
                         .streams = r->steps.streams,
                         .added = r->steps.parts,
                         .logits = r->logits};
    r->steps.streams = r->steps.parts = r->logits = NULL;
}

/* Fills the capture; false: it cannot be made. */
static bool fill(running *r, const mha_head_settings *heads, mha_pool *pool)
{
    r->info.size = sizeof r->info;
    if (mha_model_get_info(model_of(r->subject), &r->info) != MHA_OK || !allocate(r))
        return false;
    take_tokens(r);
    request_all(r);
    if (call_model(r, heads, pool) != MHA_OK)
        return false;
    for (int row = 0; r->logits && row < r->c->target_count; row++) {
        if (row >= r->c->scored)
            r->c->expected[row] = 0;
        predict(r, row);
    }
    if (!finish_vectors(r) || !model_steps_fill(&r->steps, r->subject, r->c, r->options) ||
        !(r->logits || make_vector(r)) || !find_classes(r))
        return false;
    take_stream(r);
    return true;
}

capture *subject_model_run(const subject *s, const subject_text *text,
                           const capture_options *options, mha_pool *pool)
{
    const model_text *const memory = text->memory;
    running r = {.subject = s, .text = memory, .options = options};
    model_changes changes;
    bool fine = model_changes_make(&changes, s->shape, options->changes, options->means);
    r.c = fine ? capture_new(memory->sides[TRANSFORMER_SOURCE].side.count,
                             memory->sides[TRANSFORMER_TARGET].side.count)
               : NULL;
    fine = r.c && fill(&r, &changes.settings, pool);
    model_changes_free(&changes);
    release(&r);
    if (fine)
        return r.c;
    capture_free(r.c);
    return NULL;
}
