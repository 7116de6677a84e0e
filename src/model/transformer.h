/* SPDX-License-Identifier: MIT */
/*
 * An encoder-decoder transformer: what it is made of, and where its numbers lie.
 *
 *      source words                          target words so far
 *      embedding * sqrt(width) + position    embedding * sqrt(width) + position
 *      encoder layers, each:                 decoder layers, each:
 *          x += self(norm(x))                    x += self(norm(x))      causal
 *          x += ff(norm(x))                      x += cross(norm(x), memory)
 *      memory = norm(x) ------------------->     x += ff(norm(x))
 *                                            logits = norm(x) . embedding turned
 *
 *      self, cross   multi-head attention (mha_layer): W_Q, W_K, W_V, W_O with biases
 *      ff            out(relu(in(x)))
 *      norm          (x - mean) / sqrt(variance + 1e-5) * weight + bias, before each part
 *      position      column 2n: sin, column 2n+1: cos of position * 10000^(-2n/width)
 *
 * All parameters are one array of floats; a map says where each of them is. Gradients and the
 * optimizer's moments are arrays of the same map.
 */
#ifndef MODEL_TRANSFORMER_H
#define MODEL_TRANSFORMER_H

#include <mha/mha.h>

#include <stdbool.h>

enum { TRANSFORMER_SOURCE, TRANSFORMER_TARGET, TRANSFORMER_SIDES };
enum { TRANSFORMER_LAYERS_MAX = 16, TRANSFORMER_NAME_MAX = 64, TRANSFORMER_MESSAGE_MAX = 256 };

/* Words every vocabulary begins with. A source sentence is its words, then WORD_END. The decoder
 * reads WORD_BEGIN and the target words, and is to say the target words and WORD_END. */
enum { WORD_BEGIN = 0, WORD_END = 1, WORD_UNKNOWN = 2, WORDS_SPECIAL = 3 };

typedef struct transformer_config {
    int width, heads;              /* heads divide width */
    int ff_width;                  /* of the feed-forward's inside */
    int layers[TRANSFORMER_SIDES]; /* of encoder and decoder, 1 to TRANSFORMER_LAYERS_MAX */
    int words[TRANSFORMER_SIDES];  /* of the vocabularies, special words included */
    int positions;                 /* tokens of the longest sentence, end included */
} transformer_config;

/* False, with a sentence in `message`, for one that no model can have. */
bool transformer_config_check(const transformer_config *config,
                              char message[TRANSFORMER_MESSAGE_MAX]);

/* Index of the first element of a weight [outputs][inputs], or of a norm's, and of its bias. */
typedef struct weight_at {
    size_t weight, bias;
} weight_at;

typedef struct attention_at {
    weight_at norm, q, k, v, o;
} attention_at;

typedef struct feed_forward_at {
    weight_at norm, in, out;
} feed_forward_at;

typedef struct layer_at {
    attention_at self, cross; /* cross: decoder only */
    feed_forward_at ff;
} layer_at;

typedef struct transformer_map {
    size_t embedding[TRANSFORMER_SIDES]; /* [words][width] */
    layer_at layers[TRANSFORMER_SIDES][TRANSFORMER_LAYERS_MAX];
    weight_at norm[TRANSFORMER_SIDES]; /* behind the last layer */
    size_t count;                      /* floats in all */
} transformer_map;

void transformer_map_fill(transformer_map *map, const transformer_config *config);

/* What a tensor is for; training treats them differently. */
typedef enum parameter_kind {
    PARAMETER_EMBEDDING,
    PARAMETER_MATRIX,
    PARAMETER_BIAS,
    PARAMETER_NORM
} parameter_kind;

/* One named tensor of the map. */
typedef struct transformer_tensor {
    char name[TRANSFORMER_NAME_MAX]; /* "decoder.layers.0.encoder_attn.q_proj.weight" */
    int rank;                        /* 1 or 2 */
    int shape[2];                    /* rows, columns; of rank 1 the first counts */
    size_t at, count;                /* first element, elements */
    parameter_kind kind;             /* a norm's bias is PARAMETER_BIAS */
} transformer_tensor;

/* All tensors of a model in the order of the map, which they fill without gaps; returns how many.
 */
enum { TRANSFORMER_TENSORS_MAX = 6 + TRANSFORMER_LAYERS_MAX * (16 + 26) };
int transformer_tensors(const transformer_config *config,
                        transformer_tensor list[TRANSFORMER_TENSORS_MAX]);

/* Random parameters: uniform with the variance 2/(inputs + outputs) for matrices, normal with
 * 1/width for embeddings, 1 and 0 for norms, 0 for biases. The same seed gives the same bits. */
void transformer_init(const transformer_config *config, uint64_t seed, float *values);

/* The weights of an attention, as mha_layer wants them. */
mha_layer_weights transformer_layer_weights(const transformer_config *config,
                                            const attention_at *at, const float *values);

/* The gradients of the same. Inputs are the caller's to fill in. */
mha_layer_gradients transformer_layer_gradients(const transformer_config *config,
                                                const attention_at *at, float *gradients);

/* The position codes of positions first, first + 1, ...: codes[count][width]. */
void transformer_positions(const transformer_config *config, int first, int count, float *codes);

/* x[row][c] = embedding of words[row] * sqrt(width) + position code of positions[row]. */
void transformer_embed(const transformer_config *config, const float *embedding, const int *words,
                       const int *positions, ptrdiff_t rows, float *x);

/* y = norm(x) * weight + bias, row by row; mean and 1/deviation of each row are kept in
 * stats[2*row], stats[2*row + 1] if wanted. x and y may be the same. */
void transformer_norm(const float *x, ptrdiff_t rows, int width, const float *weight,
                      const float *bias, float *y, float *stats, mha_pool *pool);

#endif
