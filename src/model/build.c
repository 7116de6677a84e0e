/* SPDX-License-Identifier: MIT */
/*
 * From described and bound files to a model that can run: layers (build_layers.c), what is before
 * the first and after the last one, and the numbers that follow from all of them.
 */
#include "model/model_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- embeddings ----- */

/* A sine takes as long as a hundred multiply-adds, so those of the first positions are kept: so
 * many, and not more numbers than that. */
enum { SINE_ROWS_MOST = 1024, SINES_MOST = 1 << 20 };

static mha_status build_sines(model_builder *builder, const embedding_description *e,
                              model_stack *to)
{
    const int positions = builder->model->files.description.positions;
    const ptrdiff_t most =
        SINES_MOST / e->width < SINE_ROWS_MOST ? SINES_MOST / e->width : SINE_ROWS_MOST;
    const bool few = positions > 0 && positions < most - e->position_offset;
    const ptrdiff_t rows = few ? positions + e->position_offset : most;
    float *const sines = build_array(builder, (size_t)(rows * e->width), sizeof *sines);
    if (!sines)
        return MHA_ERR_MEMORY;
    for (ptrdiff_t row = 0; row < rows; row++)
        model_sines(e, to->frequencies, row, sines + row * e->width);
    to->sines = sines;
    to->sine_rows = rows;
    return MHA_OK;
}

static mha_status build_frequencies(model_builder *builder, const embedding_description *e,
                                    model_stack *to)
{
    if (e->position != POSITION_SINES && e->position != POSITION_SINES_NEIGHBOURS)
        return MHA_OK;
    const int half = e->width / 2;
    const double steps = e->sine_steps > 0 ? e->sine_steps : half;
    double *const frequencies = build_array(builder, (size_t)half, sizeof *frequencies);
    if (!frequencies)
        return MHA_ERR_MEMORY;
    for (int n = 0; n < half; n++)
        frequencies[n] = pow(10000.0, -n / steps);
    to->frequencies = frequencies;
    return build_sines(builder, e, to);
}

/* The table of T5's biases as f32. */
static mha_status build_relative(model_builder *builder, const bound_matrix *bound, model_stack *to)
{
    if (!bound->data)
        return MHA_OK;
    mha_status status = build_check_rows(builder, "the relative positions", bound);
    if (status)
        return status;
    float *const table =
        build_array(builder, (size_t)(bound->outputs * bound->inputs), sizeof *table);
    if (!table)
        return MHA_ERR_MEMORY;
    for (ptrdiff_t n = 0; n < bound->outputs; n++)
        matrix_row(bound, n, table + n * bound->inputs);
    to->relative = table;
    return MHA_OK;
}

static mha_status build_embedding(model_builder *builder, int stack)
{
    mha_model *const model = builder->model;
    const bound_stack *const bound = &model->files.binding.stack[stack];
    model_stack *const to = &model->stack[stack];
    const struct {
        const char *what;
        const bound_matrix *matrix;
    } tables[] = {{"the embedding", &bound->tokens},
                  {"the positions", &bound->position},
                  {"the token types", &bound->segments}};
    mha_status status = MHA_OK;
    for (int n = 0; n < 3 && !status; n++)
        status = build_check_rows(builder, tables[n].what, tables[n].matrix);
    const embedding_description *const e = &model->files.description.stack[stack].embedding;
    if (status || (status = build_frequencies(builder, e, to)) ||
        (status = build_relative(builder, &bound->relative, to)) ||
        (status = build_norm(builder, &bound->embedding_norm, &to->embedding_norm)) ||
        (status = build_norm(builder, &bound->final_norm, &to->final_norm)) ||
        (status = build_linear(builder, "the embedding's projection", &bound->embedding_project,
                               &to->project)) ||
        (status = build_linear(builder, "the patches", &bound->patches, &to->patches)) ||
        (status = build_vector(builder, &bound->class_token, 0.0f, &to->class_token)))
        return status;
    return build_vector(builder, &bound->distillation_token, 0.0f, &to->distillation_token);
}

/* ----------------------------------------------------------------- outputs ----- */

static mha_status build_outputs(model_builder *builder)
{
    mha_model *const model = builder->model;
    const model_binding *const b = &model->files.binding;
    const struct {
        const char *what;
        const bound_linear *bound;
        mha_linear **to;
    } linears[] = {{"the transform before the logits", &b->transform, &model->transform},
                   {"the output matrix", &b->output, &model->output},
                   {"the pooler", &b->pooler, &model->pooler},
                   {"the classifier", &b->label, &model->label},
                   {"the classifier's transform", &b->label_transform, &model->label_transform},
                   {"the distilled classifier", &b->label_distilled, &model->label_distilled}};
    for (size_t n = 0; n < sizeof linears / sizeof linears[0]; n++) {
        const mha_status status =
            build_linear(builder, linears[n].what, linears[n].bound, linears[n].to);
        if (status)
            return status;
    }
    return build_norm(builder, &b->transform_norm, &model->transform_norm);
}

/* ----------------------------------------------------------------- numbers ----- */

static bool same_work(const model_attention *a, const model_attention *b)
{
    if (!a->layer || !b->layer || a->flags != b->flags || a->window_left != b->window_left)
        return false;
    const mha_layer_config x = mha_layer_get_config(a->layer), y = mha_layer_get_config(b->layer);
    return x.H == y.H && x.G == y.G && x.stored == y.stored;
}

static void count_attention(model_attention *at, const model_attention *before,
                            ptrdiff_t *heads_before, size_t *bytes)
{
    if (!at->layer)
        return;
    at->heads = mha_layer_get_config(at->layer).H;
    at->heads_before = *heads_before;
    *heads_before += at->heads;
    at->same_work = before && same_work(at, before);
    if (at->owned)
        *bytes += mha_layer_bytes(at->layer);
}

void model_count(mha_model *model)
{
    for (int s = 0; s < STACKS; s++) {
        model_stack *const stack = &model->stack[s];
        ptrdiff_t self_before = 0, cross_before = 0;
        for (int n = 0; n < stack->layers; n++) {
            model_layer *const layer = &stack->layer[n];
            const model_layer *const before = n ? &stack->layer[n - 1] : NULL;
            count_attention(&layer->self, before ? &before->self : NULL, &self_before,
                            &model->memory_bytes);
            count_attention(&layer->cross, before ? &before->cross : NULL, &cross_before,
                            &model->memory_bytes);
            if (layer->ff_owned)
                model->memory_bytes += mha_feed_forward_bytes(layer->ff);
        }
    }
}

/* The numbers of the description that decide what a state looks like. */
static uint64_t hash_description(const mha_model *model)
{
    const model_description *const d = &model->files.description;
    const stack_description *const s = &d->stack[STACK_DECODER];
    const int64_t numbers[] = {d->kind,
                               d->width,
                               d->vocabulary,
                               d->positions,
                               s->layers,
                               s->attention.heads,
                               s->inner,
                               model->storage + 256 * (int64_t)model->arithmetic,
                               s->attention.key_heads,
                               d->activation,
                               s->attention.head_width};
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        hash = (hash ^ (uint64_t)numbers[n]) * 0x100000001b3u;
    return hash;
}

/* ------------------------------------------------------------------- build ----- */

static mha_status build_all(model_builder *builder)
{
    mha_model *const model = builder->model;
    builder->hash = hash_description(model);
    if (mha_arena_create(&model->arena))
        return model_fail(builder->message, builder->message_size, MHA_ERR_MEMORY,
                          "no memory for the weights of the model");
    /* The largest matrix first: while it is packed, its mapped pages are in memory, too. */
    mha_status status = build_outputs(builder);
    for (int s = 0; s < STACKS && !status; s++) {
        if (model->files.description.stack[s].layers == 0)
            continue;
        status = build_embedding(builder, s);
        if (!status)
            status = build_layers(builder, s);
    }
    if (status)
        return status;
    model_count(model);
    model->fingerprint = builder->hash;
    model->parameters = model->files.binding.parameters;
    if (model->files.source)
        model->file_bytes = (size_t)weight_source_bytes(model->files.source);
    return MHA_OK;
}

mha_status model_build(mha_model **model, model_files *files, const mha_model_config *config)
{
    *model = NULL;
    model_builder builder = {.model = calloc(1, sizeof(mha_model)),
                             .message = config ? config->message : NULL,
                             .message_size = config ? config->message_size : 0};
    if (!builder.model)
        return model_fail(builder.message, builder.message_size, MHA_ERR_MEMORY,
                          "no memory for the model");
    atomic_init(&builder.model->references, 1);
    builder.model->files = *files;
    builder.model->storage = config ? config->storage : MHA_STORE_AS_FILE;
    builder.model->arithmetic = config ? config->arithmetic : MHA_EXACT;
    builder.model->arithmetic_words = mha_arithmetic_explain(MHA_EXACT, MHA_F32, 0);
    const mha_status status = build_all(&builder);
    if (status) {
        memset(&builder.model->files, 0, sizeof builder.model->files);
        mha_model_free(builder.model);
        return status;
    }
    memset(files, 0, sizeof *files);
    *model = builder.model;
    return MHA_OK;
}
