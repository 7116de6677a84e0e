/* SPDX-License-Identifier: MIT */
/*
 * A model in memory, ready to run: what build*.c makes from model_files, and forward.c and its
 * neighbours read. Everything that does not change from call to call is prepared here.
 */
#ifndef MODEL_MODEL_PARTS_H
#define MODEL_MODEL_PARTS_H

#include <stdatomic.h>
#include <stdio.h>

#include "model/binding.h"

/* ----------------------------------------------------------------- weights ----- */

/* Weight and bias of a norm, f32; weight NULL: the norm is left out. */
typedef struct model_norm {
    const float *weight, *bias;
} model_norm;

typedef struct model_norms {
    model_norm before, inside, after;
} model_norms;

/* One attention of a layer, and the options that it always has. */
typedef struct model_attention {
    mha_layer *layer; /* NULL: the layer has no such attention */
    bool owned;       /* false: it belongs to another layer (ALBERT) or to the parent model */
    bool same_work;   /* it needs no more workspace than the layer before */
    model_norms norms;
    ptrdiff_t heads, heads_before; /* heads_before: of the layers before this one together */
    uint32_t flags;                /* of mha_options */
    float scale, softcap;
    ptrdiff_t window_left, window_right;
    const int32_t *kept; /* pruned: the heads that are left, as the whole model numbers them;
                          * NULL: all */
} model_attention;

typedef struct model_layer {
    model_attention self, cross;
    model_norms ff_norms;
    mha_feed_forward *ff;
    bool ff_owned;
} model_layer;

typedef struct model_stack {
    int layers;
    model_layer *layer; /* [layers] */
    model_norm embedding_norm, final_norm;
    mha_linear *project; /* embedding width to width; NULL: they are the same */
    mha_linear *patches;
    const float *class_token, *distillation_token;
    const float *relative;     /* [buckets][heads] */
    const double *frequencies; /* of sines, [embedding width / 2] */
    const float *sines;        /* [sine_rows][embedding width] of the first positions */
    ptrdiff_t sine_rows;
} model_stack;

/* What generate_memory.c keeps between two calls. */
typedef struct generate_memory generate_memory;
void generate_memory_free(generate_memory *memory);

struct mha_model {
    atomic_int references; /* of the caller, and of pruned models that use its weights */
    mha_model *parent;     /* of a pruned model: owns everything that is not `owned` here */
    model_files files;
    mha_model_storage storage;
    mha_arithmetic arithmetic;
    const char *arithmetic_words; /* of the first matrix whose products are native, or of others */
    model_stack stack[STACKS];
    mha_linear *transform, *output, *pooler, *label_transform, *label, *label_distilled;
    model_norm transform_norm;
    mha_tokenizer *tokenizer, *target_tokenizer;
    mha_arena *arena; /* of the packed weights; of a pruned model: of its own attentions */
    void **arrays;    /* small arrays of the model, freed with it */
    size_t array_count, array_room;
    int64_t parameters;
    size_t file_bytes, memory_bytes;
    uint64_t fingerprint;              /* of the weights, for mha_state_load() */
    _Atomic(generate_memory *) memory; /* of the last generation; NULL: none, or in use */
};

/* ------------------------------------------------------------------ shared ----- */

/* The stack that reads ids or pixels, and the one whose attention has this kind. */
static inline int model_last_stack(const mha_model *model)
{
    return model->stack[STACK_DECODER].layers ? STACK_DECODER : STACK_ENCODER;
}
/* Parts of every layer of a stack: with cross-attention three. */
static inline int stack_parts(const model_stack *stack)
{
    return stack->layer[0].cross.layer ? 3 : 2;
}
static inline int attention_stack(mha_attention_kind kind)
{
    return kind == MHA_ATTENTION_ENCODER ? STACK_ENCODER : STACK_DECODER;
}

/* The attention of a layer; NULL if the model has none of this kind there. */
static inline model_attention *model_attention_at(const mha_model *model, mha_attention_kind kind,
                                                  ptrdiff_t layer)
{
    const model_stack *const stack = &model->stack[attention_stack(kind)];
    if (layer < 0 || layer >= stack->layers)
        return NULL;
    model_layer *const at = &stack->layer[layer];
    model_attention *const attention = kind == MHA_ATTENTION_CROSS ? &at->cross : &at->self;
    return attention->layer ? attention : NULL;
}

/* Where its weights are in the files. */
static inline const bound_attention *model_bound_at(const mha_model *model, mha_attention_kind kind,
                                                    ptrdiff_t layer)
{
    const int stack = attention_stack(kind);
    const bool shared = model->files.description.stack[stack].shared;
    const bound_layer *const at = &model->files.binding.stack[stack].layers[shared ? 0 : layer];
    return kind == MHA_ATTENTION_CROSS ? &at->cross : &at->self;
}

/* How a layer of self-attention rotates its queries and keys. */
mha_rope model_rope(const stack_description *stack, int layer);

/* The longest sequence that a model without a limit gets room for, where the caller names none. */
enum { MODEL_DEFAULT_TOKENS = 1024 };

/* Writes the message if it is requested, and returns the status. */
#define model_fail(message, message_size, status, ...)                                            \
    (((message) && (message_size) > 0) ? (snprintf(message, message_size, __VA_ARGS__), (status)) \
                                       : (status))

/* Makes a model of described and bound files. On success it owns them; on error they stay the
 * caller's, and *model is NULL. Tokenizers are opened by mha_model_open(). */
mha_status model_build(mha_model **model, model_files *files, const mha_model_config *config);

/* build_parts.c: what a binding names, packed. `what` is for messages. */
typedef struct model_builder {
    mha_model *model;
    char *message;
    size_t message_size;
    uint64_t hash;
} model_builder;

/* Numbers of a vector as f32, plus `add`. NULL data gives NULL. */
mha_status build_vector(model_builder *builder, const bound_vector *vector, float add,
                        const float **to);
mha_status build_norm(model_builder *builder, const bound_norm *norm, model_norm *to);
mha_status build_linear(model_builder *builder, const char *what, const bound_linear *linear,
                        mha_linear **to);
void *build_array(model_builder *builder, size_t count, size_t size);
mha_dtype build_type(const mha_model *model, const bound_linear *const *linears, int count);
mha_matrix build_matrix(const bound_matrix *matrix);
mha_vector build_bias(const bound_vector *vector);
void build_done(model_builder *builder, const bound_linear *linear);
mha_status build_layers(model_builder *builder, int stack);

/* Row n of a bound matrix as f32, and whether its type allows that: embeddings are checked by
 * build_check_rows(). */
void matrix_row(const bound_matrix *matrix, ptrdiff_t n, float *to);
void vector_numbers(const bound_vector *vector, float *to); /* all of them, as f32 */
/* to[width]: sines and cosines of a position; of an odd width the last column is left. */
void model_sines(const embedding_description *e, const double *frequencies, ptrdiff_t position,
                 float *to);
bool matrix_is_readable(const bound_matrix *matrix);
mha_status build_check_rows(model_builder *builder, const char *what, const bound_matrix *matrix);

/* Numbers that follow from the layers: heads before each one, bytes, shared workspace. */
void model_count(mha_model *model);

/* ------------------------------------------------------------------- state ----- */

struct mha_state {
    const mha_model *model;
    ptrdiff_t sequences, capacity, source_capacity;
    ptrdiff_t beams; /* sequences that share a source text: 1, except in a beam search */
    mha_dtype type;
    mha_cache **caches; /* [layers] of self-attention, then [layers] of cross-attention */
    int cache_count;
    int32_t *tokens;                   /* [sequences][capacity] */
    int64_t *lengths, *source_lengths; /* [sequences] */
    int64_t *spare_lengths;            /* [2 * sequences] */
    uint8_t *marks;                    /* [sequences]: which sequences a call has named */
    int64_t *source_starts; /* [sequences + 1], and the next [sequences], of a call: rows */
    int64_t *sources;       /* of the same source, and these; NULL if beams is 1 */
};

/* The sequence of the cross-attention's caches that a sequence reads. */
static inline ptrdiff_t state_source(const mha_state *state, ptrdiff_t sequence)
{
    return sequence / state->beams;
}

static inline mha_cache *state_self(const mha_state *state, int layer)
{
    return state->caches[layer];
}
static inline mha_cache *state_cross(const mha_state *state, int layer)
{
    return state->caches[state->model->stack[STACK_DECODER].layers + layer];
}

#endif
