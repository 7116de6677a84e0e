/* SPDX-License-Identifier: MIT */
/*
 * The steps of a model of libmha_model (computation.h). A run returns the stream before every
 * layer, and what every part computes; the norms between them are computed again. Only the stack
 * that reads ids or pixels has a stream, so the encoder of an encoder-decoder has no steps here but
 * those of its heads.
 */
#include <math.h>
#include <stdlib.h>

#include "heads/subject_model_parts.h"
#include "model/inspect.h"

bool model_steps_make(model_steps *to, const subject *s, const capture_options *options,
                      const model_text *text)
{
    mha_model_info info = {.size = sizeof info};
    const int source = text->sides[TRANSFORMER_SOURCE].side.count,
              target = text->sides[TRANSFORMER_TARGET].side.count;
    *to = (model_steps){.rows = target > 0 ? target : source, .source_rows = source};
    bool wanted = options->stream && subject_predicts(s);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        wanted |= options->steps[kind] != NULL;
    if (!wanted)
        return true;
    if (mha_model_get_info(model_of(s), &info) != MHA_OK)
        return false;
    to->width = info.width;
    to->layers = s->shape.layers[target > 0 ? ATTENTION_DECODER : ATTENTION_ENCODER];
    const size_t cells = (size_t)to->rows * (size_t)to->width, layers = (size_t)to->layers;
    to->streams = calloc((layers + 1) * cells + 1, sizeof *to->streams);
    to->parts =
        calloc((size_t)model_layer_parts(model_of(s)) * layers * cells + 1, sizeof *to->parts);
    if (source > 0 && target > 0)
        to->memory = calloc((size_t)source * (size_t)to->width + 1, sizeof *to->memory);
    return to->streams && to->parts && (to->memory || source == 0 || target == 0);
}

void model_steps_free(model_steps *steps)
{
    free(steps->streams);
    free(steps->parts);
    free(steps->memory);
}

/* ---------------------------------------------------------------- layers ----- */

/* The rows of a layer, [rows][width] each. */
typedef struct layer_rows {
    const float *before, *after;    /* the stream before and after the layer */
    const float *self, *cross, *ff; /* what its parts compute; cross NULL: there is none */
    float *joined, *joined_cross;   /* the stream after them */
    float *input, *cross_input, *ff_input, *result;
} layer_rows;

/* The feed-forward must lead to the stream that the model itself has after the layer: some models
 * add their parts in another way, and their steps would be wrong. */
static bool adds_up(const float *computed, const float *stream, ptrdiff_t count)
{
    double difference = 0.0, length = 0.0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const double d = (double)computed[n] - (double)stream[n];
        difference += d * d;
        length += (double)stream[n] * (double)stream[n];
    }
    return difference <= 1e-6 * length;
}

static mha_status walk_layer(const subject *s, const model_steps *steps, int layer, layer_rows *l)
{
    const mha_model *const model = model_of(s);
    const int each = model_layer_parts(model), first = layer * each;
    mha_status status =
        model_part_steps(model, first, steps->rows, l->before, l->self, l->input, l->joined);
    if (status == MHA_OK && l->cross)
        status = model_part_steps(model, first + 1, steps->rows, l->joined, l->cross,
                                  l->cross_input, l->joined_cross);
    if (status == MHA_OK)
        status =
            model_part_steps(model, first + each - 1, steps->rows,
                             l->cross ? l->joined_cross : l->joined, l->ff, l->ff_input, l->result);
    return status;
}

/* The walk gives result, which differs from the stream by rounding only; the latter is kept. */
static bool keep_steps(const model_steps *from, const layer_rows *l, computation *to)
{
    const ptrdiff_t count = (ptrdiff_t)from->rows * from->width;
    const bool cross = to->kind == ATTENTION_CROSS;
    if (!adds_up(l->result, l->after, count))
        return true;
    bool fine = computation_copy(&to->stream, cross ? l->joined : l->before, count) &&
                computation_copy(&to->input, cross ? l->cross_input : l->input, count) &&
                computation_copy(&to->added, cross ? l->cross : l->self, count) &&
                computation_copy(&to->joined, cross ? l->joined_cross : l->joined, count);
    if (fine && cross)
        fine =
            computation_copy(&to->memory, from->memory, (ptrdiff_t)from->source_rows * from->width);
    if (fine && cross == (l->cross != NULL))
        fine = computation_copy(&to->ff_input, l->ff_input, count) &&
               computation_copy(&to->ff_added, l->ff, count) &&
               computation_copy(&to->result, l->after, count);
    return fine;
}

static bool fill_steps(const subject *s, const model_steps *from, computation *to)
{
    const size_t cells = (size_t)from->rows * (size_t)from->width;
    const int each = model_layer_parts(model_of(s));
    float *const room = calloc(6 * cells + 1, sizeof *room);
    if (!room)
        return false;
    const float *const parts = from->parts + (size_t)(to->layer * each) * cells;
    layer_rows l = {.before = from->streams + (size_t)to->layer * cells,
                    .after = from->streams + (size_t)(to->layer + 1) * cells,
                    .self = parts,
                    .cross = each == 3 ? parts + cells : NULL,
                    .ff = parts + (size_t)(each - 1) * cells,
                    .joined = room,
                    .joined_cross = room + cells,
                    .input = room + 2 * cells,
                    .cross_input = room + 3 * cells,
                    .ff_input = room + 4 * cells,
                    .result = room + 5 * cells};
    to->norm_first = model_norm_first(model_of(s));
    const bool fine = walk_layer(s, from, to->layer, &l) == MHA_OK && keep_steps(from, &l, to);
    free(room);
    return fine;
}

/* False: out of memory. */
static bool fill_turn(const subject *s, const capture_heads *h, computation *to)
{
    const mha_attention_kind kind = (mha_attention_kind)to->kind;
    const mha_rope rope = model_rotation(model_of(s), kind, to->layer);
    to->turn = (head_turn){.normed = model_norms_heads(model_of(s), kind),
                           .neighbours = rope.pairs == MHA_ROPE_NEIGHBOURS,
                           .query_factor = query_factor(model_of(s), kind, to->layer, h->width)};
    if (rope.pairs == MHA_ROPE_NONE)
        return true;
    to->turn.angle_count = (int)(rope.width / 2);
    to->turn.angles = malloc((size_t)rope.width * sizeof *to->turn.angles + 1);
    for (int n = 0; to->turn.angles && n < to->turn.angle_count; n++)
        to->turn.angles[n] = rope.frequencies ? (double)rope.frequencies[n]
                                              : pow(rope.base, -2.0 * n / (double)rope.width);
    return to->turn.angles;
}

bool model_steps_fill(const model_steps *from, const subject *s, const capture *c,
                      const capture_options *options)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        computation *const to = options->steps[kind];
        if (!to)
            continue;
        to->rows = c->kind[kind].rows;
        to->columns = c->kind[kind].columns;
        to->width = (int)from->width;
        to->norm = model_norm_kind(model_of(s), &to->norm_eps);
        if (!fill_turn(s, &c->kind[kind], to))
            return false;
        const bool streamed = kind != ATTENTION_ENCODER || c->target_count == 0;
        if (streamed && !fill_steps(s, from, to))
            return false;
    }
    return true;
}
