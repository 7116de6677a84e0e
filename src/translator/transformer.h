/* SPDX-License-Identifier: MIT */
/*
 * A transformer: its configuration, its parameters, and their layout in memory.
 * It has one of five forms. The laboratory's, an
 * encoder and a decoder:
 *
 *      source words                          target words so far
 *      embedding * sqrt(width) + position    embedding * sqrt(width) + position
 *      encoder layers, each:                 decoder layers, each:
 *          x += self(norm(x))                    x += self(norm(x))      causal
 *          x += ff(norm(x))                      x += cross(norm(x), memory)
 *      memory = norm(x) ------------------->     x += ff(norm(x))
 *                                            logits = norm(x) embedding^T
 *
 *      self, cross   multi-head attention (mha_layer): W_Q, W_K, W_V, W_O with biases
 *      ff            out(relu(in(x)))
 *      norm          (x - mean) / sqrt(variance + 1e-5) * weight + bias, before each part
 *      position      column 2n: sin, column 2n+1: cos of position * 10000^(-2n/width)
 *
 * and Marian's, for models that other programs can open: each norm comes after its part, as in
 * x = norm(x + self(x)), there is none at the end, both sides share one embedding, and the sines of
 * the position codes are in the first half of the columns.
 *
 * A third form reads pictures. It is an encoder in the laboratory's form, with names of tensors
 * that other programs know (ViT):
 *
 *      patches of the picture, each a row of channels x patch x patch pixels
 *      linear(patch) + position      before them perhaps a token of the class
 *      layers, as those of the encoder
 *      norm(x), of which the mean over all patches, or the row of the class
 *      logits = classifier(row)
 *
 * and a fourth one says what is in a picture: the encoder of the third form, whose last rows are
 * the memory of the laboratory's decoder. The fifth one finds things in a picture. It is the same
 * with queries instead of words, which see each other in both directions and have no positions:
 *
 *      query * sqrt(width)
 *      layers, as those of the decoder, but not causal
 *      detector(norm(x)): logits of two kinds of classes, of which the last one of the second kind
 *                         is "nothing", and a box
 *
 * All parameters are in one array of floats; a map gives the offset of each. Gradients and the
 * optimizer's moments are arrays with the same map.
 */
#ifndef TRANSLATOR_TRANSFORMER_H
#define TRANSLATOR_TRANSFORMER_H

#include <mha/mha.h>

#include <stdbool.h>

enum { TRANSFORMER_SOURCE, TRANSFORMER_TARGET, TRANSFORMER_SIDES };
enum { TRANSFORMER_BOX = 4 }; /* numbers of a box (box.h) */
enum { TRANSFORMER_LAYERS_MAX = 16, TRANSFORMER_NAME_MAX = 64, TRANSFORMER_MESSAGE_MAX = 256 };

/* The special words, with which every vocabulary begins. A source sentence is its words followed by
 * WORD_END. The decoder reads WORD_BEGIN and the target words, and has to predict the target words
 * and WORD_END. */
enum { WORD_BEGIN = 0, WORD_END = 1, WORD_UNKNOWN = 2, WORDS_SPECIAL = 3 };

typedef enum transformer_form {
    FORM_LABORATORY,
    FORM_MARIAN,
    FORM_VISION,
    FORM_CAPTIONS,
    FORM_DETECTION,
    FORMS
} transformer_form;

/* What the classifier of pictures reads, and what the positions of patches are: parameters, or
 * sines and cosines of row and column. */
typedef enum vision_pooling { VISION_CLASS, VISION_MEAN, VISION_POOLINGS } vision_pooling;
typedef enum vision_places { VISION_LEARNED, VISION_SINES, VISION_PLACES } vision_places;

/* The pictures of a model. Only FORM_VISION can have a token of the class. */
typedef struct vision_shape {
    int side, channels; /* pixels of a side */
    int patch, stride;  /* pixels of a patch's side, and from one patch to the next */
    vision_pooling pooling;
    vision_places places;
} vision_shape;

typedef struct transformer_config {
    transformer_form form;
    int width, heads;              /* heads divide width */
    int ff_width;                  /* inner width of the feed-forward */
    int layers[TRANSFORMER_SIDES]; /* of encoder and decoder, 1 to TRANSFORMER_LAYERS_MAX */
    int words[TRANSFORMER_SIDES];  /* of the vocabularies, special words included; FORM_MARIAN has
                                      one vocabulary; FORM_VISION: 0 and the classes;
                                      FORM_CAPTIONS: 0 and the words; FORM_DETECTION: classes of
                                      both kinds, "nothing" included */
    int positions;       /* tokens of the longest sentence, WORD_END included; FORM_VISION: of a
                            picture; FORM_DETECTION: queries */
    vision_shape vision; /* of pictures; FORM_VISION has no decoder layers */
} transformer_config;

static inline bool transformer_reads_pictures(const transformer_config *config)
{
    return config->form == FORM_VISION || config->form == FORM_CAPTIONS ||
           config->form == FORM_DETECTION;
}

/* Numbers that a row of the target ends in: logits and, of a detector, a box after them. */
static inline int transformer_outputs(const transformer_config *config)
{
    const int *const words = config->words;
    return config->form == FORM_DETECTION
               ? words[TRANSFORMER_SOURCE] + words[TRANSFORMER_TARGET] + TRANSFORMER_BOX
               : words[TRANSFORMER_TARGET];
}

/* Patches along a side of the picture; tokens before the patches, 0 or 1; and all tokens of a
 * picture, which config.positions of FORM_VISION must be. */
static inline int vision_across(const vision_shape *v)
{
    return (v->side - v->patch) / v->stride + 1;
}

static inline int vision_marks(const vision_shape *v)
{
    return v->pooling == VISION_CLASS ? 1 : 0;
}

static inline int vision_tokens(const vision_shape *v)
{
    return vision_across(v) * vision_across(v) + vision_marks(v);
}

/* Returns false, with the reason in `message`, for an invalid configuration. */
bool transformer_config_check(const transformer_config *config,
                              char message[TRANSFORMER_MESSAGE_MAX]);

/* Offsets of a weight [outputs][inputs], or of the weight of a norm [width], and of its bias. */
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
    size_t embedding[TRANSFORMER_SIDES]; /* [words][width]; FORM_MARIAN: both are the same;
                                            pictures have none; FORM_DETECTION: [queries][width] */
    layer_at layers[TRANSFORMER_SIDES][TRANSFORMER_LAYERS_MAX];
    weight_at norm[TRANSFORMER_SIDES]; /* after the last layer; not FORM_MARIAN */
    struct {
        weight_at patches, classifier;
        size_t mark, places; /* the token of the class, [width]; [tokens][width] */
    } vision;                /* of pictures; FORM_CAPTIONS has neither classifier nor mark;
                                FORM_DETECTION: the classifier gives all outputs */
    size_t count;            /* total number of floats */
} transformer_map;

void transformer_map_fill(transformer_map *map, const transformer_config *config);

/* The kinds of tensors, which differ in initialisation and weight decay. */
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
    int shape[2];                    /* rows, columns; for rank 1 columns is 1 */
    size_t at, count;                /* offset, number of elements */
    parameter_kind kind;             /* the bias of a norm is PARAMETER_BIAS */
} transformer_tensor;

/* Lists all tensors of a model in the order of the map, which they fill without gaps. Returns their
 * number. */
enum { TRANSFORMER_TENSORS_MAX = 8 + TRANSFORMER_LAYERS_MAX * (16 + 26) };
int transformer_tensors(const transformer_config *config,
                        transformer_tensor list[TRANSFORMER_TENSORS_MAX]);

/* Random parameters: matrices are uniform with variance 2/(inputs + outputs), embeddings normal
 * with variance 1/width, norms 1 and biases 0. The same seed gives the same bits. */
void transformer_init(const transformer_config *config, uint64_t seed, float *values);

/* Multiplies the matrices of queries, keys and values of all attentions by `gain`. Libraries that
 * fill the three as one matrix, such as PyTorch, begin with sqrt(1/2) of transformer_init(). */
void transformer_scale_attention(const transformer_config *config, double gain, float *values);

/* The weights of an attention, as views for mha_layer_create(). */
mha_layer_weights transformer_layer_weights(const transformer_config *config,
                                            const attention_at *at, const float *values);

/* Views of their gradients for mha_layer_backward(). The caller fills in the gradients of inputs
 * and output. */
mha_layer_gradients transformer_layer_gradients(const transformer_config *config,
                                                const attention_at *at, float *gradients);

/* "laboratory", "marian", "vision", "captions", "detection"; "class", "mean"; "learned", "sines".
 */
const char *transformer_form_name(transformer_form form);
const char *vision_pooling_name(vision_pooling pooling);
const char *vision_places_name(vision_places places);

/* The codes of VISION_SINES, codes[tokens][width]: a quarter of the columns each for sine and
 * cosine of the row, then of the column of a patch. That of the class is 0. */
void transformer_vision_codes(const transformer_config *config, float *codes);

/* The codes of positions first, first + 1, ...: codes[count][width]. */
void transformer_positions(const transformer_config *config, int first, int count, float *codes);

/* x[row][c] = embedding of words[row] * sqrt(width) + position code of positions[row]. */
void transformer_embed(const transformer_config *config, const float *embedding, const int *words,
                       const int *positions, ptrdiff_t rows, float *x);

/* y[rows][width] = norm(x) * weight + bias, row by row. Mean and 1/deviation of each row go to
 * stats[2*row] and stats[2*row + 1], unless stats is NULL. x and y may be the same. */
void transformer_norm(const float *x, ptrdiff_t rows, int width, const float *weight,
                      const float *bias, float *y, float *stats, mha_pool *pool);

#endif
