/* SPDX-License-Identifier: MIT */
/*
 * Private declarations shared by the files of the network. A side, encoder or decoder, is a
 * sequence of parts (self-attention, cross-attention, feed-forward):
 *
 *      x of part 0     = dropped(embedding + position)
 *      x of part n + 1 = x of part n + dropped(part n of normed),  normed = norm(x of part n)
 *
 * and an end that is only a norm, whose output is the memory of the encoder or the last rows of the
 * decoder. In Marian's form the norm of a part is that of the part before it, part 0 has none
 * (normed = x), and what a part adds to is normed:
 *
 *      x of part n + 1 = normed of part n + dropped(part n of normed)
 *
 * Each part keeps what its backward pass needs. Arrays are [rows][width] unless stated
 * otherwise.
 */
#ifndef TRANSLATOR_NETWORK_PARTS_H
#define TRANSLATOR_NETWORK_PARTS_H

#include "translator/network.h"

typedef enum part_kind { PART_SELF, PART_CROSS, PART_FF, PART_END } part_kind;

typedef struct network_part {
    part_kind kind;
    const weight_at *norm;         /* points into the map, as the next two; NULL: normed = x */
    const attention_at *attention; /* PART_SELF, PART_CROSS */
    const feed_forward_at *ff;     /* PART_FF */
    mha_layer *layer;              /* PART_SELF, PART_CROSS */
    mha_linear *in, *out;          /* PART_FF */

    /* Of the last forward pass. */
    float *x, *normed;
    float *stats;  /* [rows][2] */
    float *inside; /* PART_FF: [rows][ff_width], after the relu */
    void *tape;    /* PART_SELF, PART_CROSS in training */
    size_t tape_size;
} network_part;

enum { PARTS_MAX = 3 * TRANSFORMER_LAYERS_MAX + 1 };

typedef struct tower {
    network_part parts[PARTS_MAX];
    int end; /* the index of PART_END */
} tower;

/* Memory that grows and is reused. `used` is what the current pass has taken of it. */
typedef struct block {
    char *base;
    size_t size, used;
} block;

struct network {
    transformer_config config;
    transformer_map map;
    const float *values;
    mha_arithmetic arithmetic;
    mha_pool *pool;
    float *codes;       /* [positions][width] of words, 0 of queries; NULL: there are none */
    float *place_codes; /* [tokens][width] of patches; NULL: there are none, or parameters */
    tower sides[TRANSFORMER_SIDES];
    mha_linear *unembed; /* the target embedding as a linear layer, rows -> logits; FORM_VISION:
                            the classifier; FORM_DETECTION: logits and boxes */
    mha_linear *patches; /* of pictures: pixels of a patch -> row */

    /* Of the last forward pass. */
    const batch *batch; /* NULL: there was none, or it failed */
    network_mode mode;
    float *added;           /* output of a part; in the backward pass its gradient */
    float *logits;          /* [LOSS_ROWS][logit_stride] of some rows; in training their gradient */
    ptrdiff_t logit_stride; /* at least transformer_outputs() */
    row_score *scores;      /* [rows of the target] */
    float *patch_rows;      /* of pictures: [patches][channels * patch * patch] of all pictures */
    float *pooled;          /* FORM_VISION: [pictures][width], which the classifier reads */
    float *d_unembed;       /* [transformer_outputs()][width]; training only, as all below */
    float *d_unembed_bias;  /* FORM_VISION, FORM_DETECTION: [transformer_outputs()] */
    float *d_last;          /* [rows of the target][width]: where the backward pass starts */
    float *d_x, *d_normed;
    float *d_inside;         /* [rows][ff_width] */
    float *d_memory, *d_key; /* [rows of the source][width]: the sum, and the part of one layer */
    float *norm_sums;        /* [tasks of rows][2][width] */

    block arrays, tapes, work;
};

/* ----------------------------------------------------------- row tasks ----- */

/* Rows whose logits exist at the same time: those of all rows would be most of the memory of a
 * training. A multiple of 128, so that sums over rows do not depend on it (mha_linear_backward()).
 */
enum { LOSS_ROWS = 512 };

/* Rows per task. Partial sums are formed per task, so this must not depend on the threads. */
enum { TASK_ROWS = 32 };

static inline ptrdiff_t task_count(ptrdiff_t rows)
{
    return (rows + TASK_ROWS - 1) / TASK_ROWS;
}

static inline ptrdiff_t task_end(ptrdiff_t number, ptrdiff_t rows)
{
    return (number + 1) * TASK_ROWS < rows ? (number + 1) * TASK_ROWS : rows;
}

/* Whether queries look for things. */
static inline bool network_detects(const network *net)
{
    return net->config.form == FORM_DETECTION;
}

/* Whether there is a classifier instead of a decoder. */
static inline bool network_classifies(const network *net)
{
    return net->config.form == FORM_VISION;
}

/* Whether the last rows end in parameters of their own, with a bias, instead of the embedding. */
static inline bool network_has_classifier(const network *net)
{
    return network_classifies(net) || network_detects(net);
}

/* What one row counts in the mean that is the loss. */
static inline double network_share(const network *net)
{
    const ptrdiff_t rows = net->batch->rows[TRANSFORMER_TARGET];
    return 1.0 / (double)(net->mode.words > 0 ? net->mode.words : rows);
}

/* Some rows of the target, whose logits are computed together. */
typedef struct loss_pass {
    const network *net;
    ptrdiff_t first, rows;
} loss_pass;

/* Sides that have layers. */
static inline int network_sides(const network *net)
{
    return network_classifies(net) ? TRANSFORMER_SOURCE + 1 : TRANSFORMER_SIDES;
}

/* ------------------------------------------------------ network_vision.c ----- */

static inline bool network_reads_pictures(const network *net)
{
    return transformer_reads_pictures(&net->config);
}

/* Patches of a picture, and inputs of their linear. */
static inline ptrdiff_t network_patches(const network *net)
{
    return (ptrdiff_t)vision_across(&net->config.vision) * vision_across(&net->config.vision);
}

/* Rows of a picture in the encoder. */
static inline ptrdiff_t network_tokens(const network *net)
{
    return vision_tokens(&net->config.vision);
}

static inline ptrdiff_t network_patch_inputs(const network *net)
{
    const vision_shape *const v = &net->config.vision;
    return (ptrdiff_t)v->channels * v->patch * v->patch;
}

/* MHA_ERR_SHAPE if the batch does not have such pictures. */
mha_status network_vision_check(const network *net, const batch *b);

/* Pixels -> patches -> their rows, in net->added. Then x of one row of the encoder. */
mha_status network_vision_embed(const network *net);
void network_vision_row(const network *net, ptrdiff_t row, float *x);

/* The last rows of the encoder -> net->pooled. */
void network_vision_pool(const network *net);

/* net->d_last, the gradient of net->pooled -> net->d_normed, that of the last rows. */
void network_vision_pool_backward(const network *net);

/* net->added, the gradient of x of part 0 -> those of patches, token of the class and positions. */
mha_status network_vision_embed_backward(const network *net, float *gradients);

/* --------------------------------------------------- network_detection.c ----- */

/* MHA_ERR_SHAPE, MHA_ERR_INDEX: the batch has not the things and queries that the model needs. */
mha_status network_detection_check(const network *net, const batch *b);

/* How many rows are computed together: those of whole pictures, at most LOSS_ROWS. */
ptrdiff_t network_detection_rows(const network *net);

/* Scores and, in training, gradients of the outputs of one picture; `arg` is a loss_pass. */
void network_detection_task(void *arg, int worker, ptrdiff_t number);

/* ------------------------------------------------------ network_memory.c ----- */

/* The attention of a part as a call. `call.options` points into the struct, so it must not be
 * copied. */
typedef struct attention_call {
    mha_layer_call call;
    mha_options options;
} attention_call;

/* Whether what a part adds to is its normed input (Marian's form) instead of its x. */
static inline bool network_norm_is_after(const network *net)
{
    return net->config.form == FORM_MARIAN;
}

/* The kind of the attention of a part. */
attention_kind network_attention_kind(int side, const network_part *part);
/* The layer that part `number` of a side belongs to. */
int network_layer(int side, int number);

/* Fills in the call of the attention of part `number`, for the batch and mode of the network. */
void network_fill_call(const network *net, int side, int number, attention_call *out);

/* The dropout on what is added to form x of part `number`. */
row_dropout network_dropout(const network *net, int side, int number);

/* Allocates memory for a pass over net->batch in net->mode. */
mha_status network_prepare(network *net);

#endif
