/* SPDX-License-Identifier: MIT */
/*
 * What a model is, as a table: every family is a way to fill it in, and one forward pass reads it.
 *
 *      config.json, GGUF metadata, ... --describe_*.c--> model_description
 *      names of tensors                --bind*.c-------> model_binding: where each weight is
 *      both                            --build*.c------> mha_model: packed weights
 *
 * A model has one or two stacks of layers (encoder, decoder). A layer has up to three parts, each
 * with up to three norms:
 *
 *      x = after(x + inside(part(before(x))))       part: self-attention, cross-attention,
 *                                                         feed-forward
 *
 * BERT has only `after`, GPT-2 and Llama only `before`, Gemma 2 `before` and `inside`. A norm
 * without weight in the binding is left out.
 */
#ifndef MODEL_DESCRIPTION_H
#define MODEL_DESCRIPTION_H

#include <mha/mha_model.h>

#include <stdbool.h>

enum { MODEL_LAYERS_MAX = 1024, MODEL_FAMILY_MAX = 32, MODEL_ENDS_MAX = 8 };

enum { STACK_ENCODER, STACK_DECODER, STACKS };

/* mha_activation is part of mha.h (section 11). */
typedef enum position_kind {
    POSITION_NONE,
    POSITION_LEARNED,          /* a table of vectors, added to the embedding */
    POSITION_SINES,            /* first half sines, second half cosines (Marian) */
    POSITION_SINES_NEIGHBOURS, /* sine and cosine alternate (our translator) */
    POSITION_ROTARY,           /* rotation of queries and keys */
    POSITION_RELATIVE          /* T5: a learned bias per head and bucket of distances */
} position_kind;

typedef struct embedding_description {
    int width;   /* of the table; if it is not that of the model, a matrix follows */
    float scale; /* factor of token vectors; 0: 1 */
    position_kind position;
    int position_offset; /* the first token is at this position of the table (RoBERTa 2, CT2 1) */
    int sine_steps; /* sines: frequency n is 10000^(-n/sine_steps); width/2, or with CT2 width/2 - 1
                     */
    int segments;   /* token types; 0: none */
} embedding_description;

typedef struct attention_description {
    int heads, key_heads, head_width;
    float scale;   /* 0: 1/sqrt(head_width) */
    float softcap; /* 0: off */
    mha_norm qk_norm;
    mha_rope_pairs rope_pairs;
    int rope_width;          /* 0: all */
    double rope_base;        /* of layers without a window, and where there is no other */
    double rope_local_base;  /* of layers with a window; 0: rope_base */
    float *rope_frequencies; /* [rope_width/2], radians per position, instead of rope_base, owned;
                              * layers with a rope_local_base have that base; NULL: none */
    int window;              /* tokens that a row sees, itself included; 0: all */
    int window_every; /* layers n with (n+1) % window_every == 0 have no window; 0: all have it */
    int window_from;  /* layers before this one have no window (Qwen 2) */
    int relative_buckets, relative_distance; /* POSITION_RELATIVE */
    bool scale_by_layer;                     /* divide the scale by layer + 1 (GPT-2's option) */
} attention_description;

typedef struct stack_description {
    int layers; /* 0: the model has no such stack */
    bool causal;
    bool shared; /* all layers have the weights of the first (ALBERT) */
    int inner;   /* of the feed-forward */
    embedding_description embedding;
    attention_description attention; /* of self-attention; cross-attention has its heads */
} stack_description;

/* The window of layer n; 0: the layer sees all tokens. */
static inline int attention_window(const attention_description *a, int n)
{
    const bool whole =
        n < a->window_from || (a->window_every > 0 && (n + 1) % a->window_every == 0);
    return whole ? 0 : a->window;
}

/* How texts become vectors and tokens: what the files say beside the weights. */
typedef struct model_usage {
    mha_pooling pooling; /* MHA_POOLING_MODEL: the files do not say */
    bool normalize;
    int longest;                  /* tokens that the files recommend; 0: not said */
    int32_t decoder_start;        /* first token that a decoder of two stacks reads; -1 */
    int32_t begin, end, pad;      /* -1: none */
    int32_t ends[MODEL_ENDS_MAX]; /* tokens that end a generated text */
    int end_count;
    int32_t forbidden[MODEL_ENDS_MAX]; /* tokens that are never generated (Marian's pad) */
    int forbidden_count;
    int32_t first; /* token that is always generated first (BART's forced_bos_token_id); -1 */
    double length_penalty; /* for a beam search; 1: the files do not say */
    bool source_end;       /* the source text of an encoder-decoder ends with the end mark */
    float image_mean[MHA_IMAGE_CHANNELS], image_deviation[MHA_IMAGE_CHANNELS]; /* of pixels / 255 */
} model_usage;

/* A head that the files do not have any more. */
typedef struct pruned_head {
    mha_attention_kind kind;
    int layer, head;
} pruned_head;

typedef struct model_description {
    char family[MODEL_FAMILY_MAX];
    mha_model_kind kind;
    int width;
    int vocabulary, source_vocabulary; /* the second differs only with two embedding tables */
    int positions;                     /* 0: no limit */
    mha_norm norm;                     /* kind of all norms */
    float norm_eps;
    float norm_add;  /* 1: weights are stored as weight - 1 (Gemma), those of q_norm, k_norm too */
    bool norm_first; /* norms are before the parts; else after them, on the residual stream */
    mha_activation activation;
    bool gated;
    stack_description stack[STACKS];
    float logit_scale;   /* factor of hidden states before the output matrix; 0: 1 (T5) */
    float logit_softcap; /* 0: off */
    bool tied;           /* the output matrix is the embedding of the last stack */
    mha_activation transform_activation; /* of BERT's transform before the output matrix */
    mha_activation pooler_activation;
    int labels;                      /* 0: no classifier */
    bool labels_per_token;           /* a classifier of tokens: it is not bound */
    bool label_pooled;               /* it reads the pooler's output; else the first hidden state */
    mha_activation label_activation; /* after label_transform */
    int image_size, patch, channels, extra_tokens; /* ViT; extra: class and distillation token */
    int patch_stride; /* pixels from one patch to the next; 0: those of a patch */
    bool label_mean;  /* the classifier reads the mean of all rows, not the first */
    model_usage usage;
    pruned_head *pruned; /* by kind, layer and head, owned; `heads` above counts them, too */
    size_t pruned_count;
} model_description;

/* Heads that the files have for a layer; which of all heads they do not have; and how many they do
 * not have before a head. */
int description_heads(const model_description *d, mha_attention_kind kind, int layer);
bool description_is_pruned(const model_description *d, mha_attention_kind kind, int layer,
                           int head);
int description_pruned_before(const model_description *d, mha_attention_kind kind, int layer,
                              int head);

/* Pixels from one patch to the next. */
static inline int model_patch_stride(const model_description *d)
{
    return d->patch_stride > 0 ? d->patch_stride : d->patch;
}

/* Patches along a side of the picture. */
static inline int model_patches_across(const model_description *d)
{
    return (d->image_size - d->patch) / model_patch_stride(d) + 1;
}

#endif
