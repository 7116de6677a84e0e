/* SPDX-License-Identifier: MIT */
/*
 * One call of mha_model_run() on its way through the model:
 *
 *      check_call.c   arguments, lengths, positions; what the pass needs to know
 *      forward.c      workspace, then embedding, stacks, outputs, in this order
 *      embed.c        ids or pixels to rows
 *      stack.c        the layers over all rows
 *      layer_call.c   the call of one attention
 *      relative.c     T5's biases
 *      logits.c       rows to logits; pooling.c: to one vector per sequence
 *
 * Rows of all sequences lie one after another, without padding.
 */
#ifndef MODEL_FORWARD_H
#define MODEL_FORWARD_H

#include "model/intervene.h"
#include "model/model_parts.h"
#include "model/work.h"

/* The rows that go through one stack. */
typedef struct pass_rows {
    const int64_t *starts; /* [B+1], from 0; NULL: pictures, all of the longest length */
    const int32_t *ids;
    ptrdiff_t rows, longest;
    const int64_t *past; /* [B]: tokens before the first row of each sequence; NULL: none */
} pass_rows;

/* The queries of cross-attention over a state. */
typedef struct pass_sources {
    const int64_t *starts;    /* [B+1] of the decoder's rows */
    const int64_t *sequences; /* [B] of the caches; NULL: 0 .. B-1 */
    ptrdiff_t B, longest;
} pass_sources;

typedef struct model_pass {
    const mha_model *model;
    const mha_model_call *call;
    const model_intervention *changed; /* NULL: none */
    mha_pool *pool;
    int threads;
    ptrdiff_t B;
    pass_rows side[STACKS]; /* the encoder's and the decoder's rows; 0 rows: not run */
    pass_sources cross;     /* with a state */
    ptrdiff_t longest_past; /* tokens that a sequence of the state has before this call */
    int64_t *past;          /* [B] */

    float *x, *normed, *part;    /* [rows][width]: residual stream, input and output of a part */
    float *embedded;             /* [rows][embedding width], if a projection follows */
    float *pixels;               /* [patches][channels * patch * patch] */
    float *memory;               /* [source rows][width]: the encoder's output for the decoder */
    float *relative[STACKS];     /* T5's biases as diagonals */
    uint8_t *ignored;            /* [B][longest]: call.source_ignored; NULL: none */
    float *chosen, *transformed; /* rows for logits, pooler and labels */
    float *row_buffers;          /* [threads][embedding width] */
    void *scratch;               /* of layers and linears, one after another */
    size_t scratch_size;
} model_pass;

/* check_call.c: checks the call completely, and fills in what does not need the workspace. */
mha_status pass_check(model_pass *pass, const mha_model *model, const mha_model_call *call);

/* The sequence of the state that sequence b of the call continues. */
static inline ptrdiff_t pass_sequence(const model_pass *pass, ptrdiff_t b)
{
    return pass->call->sequences ? (ptrdiff_t)pass->call->sequences[b] : b;
}

/* Does the call need the rows after the last norm? */
static inline bool pass_needs_hidden(const model_pass *pass)
{
    const mha_model_call *const c = pass->call;
    return c->hidden || c->logits || c->pooled || c->labels;
}

/* Rows of logits that the call requests. */
static inline ptrdiff_t pass_logit_rows(const model_pass *pass)
{
    const mha_model_call *const c = pass->call;
    const ptrdiff_t all = pass->side[model_last_stack(pass->model)].rows;
    return !c->logits ? 0 : c->logit_rows ? c->logit_row_count : all;
}

/* embed.c */
mha_status embed_rows(const model_pass *pass, int stack);

/* relative.c: the diagonals of a stack, floats per head; 0: the stack has none. */
ptrdiff_t relative_width(const model_pass *pass, int stack);
void relative_fill(const model_pass *pass, int stack, const model_attention *attention);

/* layer_call.c */
typedef struct attention_call {
    mha_layer_call call;
    mha_options options;
} attention_call;
void layer_call_fill(const model_pass *pass, mha_attention_kind kind, int layer,
                     attention_call *to);
const mha_capture *pass_capture(const model_pass *pass, mha_attention_kind kind, int layer);

/* stack.c: runs all layers on pass->x. The result, after the last norm, is written to `to`, or with
 * NULL stays in a buffer of the pass; *hidden points to it. */
mha_status stack_run(const model_pass *pass, int stack, float *to, const float **hidden);
/* Keys and values of the encoder's output go into the state. */
mha_status stack_store(const model_pass *pass);

/* logits.c: `count` rows of hidden, those listed in rows (NULL: the first ones). chosen and
 * transformed have room for logits_width() numbers per row. */
mha_status logits_run(const mha_model *model, const float *hidden, const int64_t *rows,
                      ptrdiff_t count, float *logits, float *chosen, float *transformed,
                      void *scratch, size_t scratch_size, mha_pool *pool);
ptrdiff_t logits_width(const mha_model *model);
size_t logits_scratch(const mha_model *model, ptrdiff_t count, int threads);

/* pooling.c: pooled and labels of the call. */
mha_status pool_outputs(const model_pass *pass, const float *hidden);
size_t pool_scratch(const mha_model *model, ptrdiff_t B, int threads);

/* A norm of the model over rows of its width. */
mha_norm_config model_norm_config(const mha_model *model, const model_norm *norm, ptrdiff_t width);

#endif
