/* SPDX-License-Identifier: MIT */
/* Heads of a transformer, named by kind, layer and number, and how each of them is to work. */
#ifndef MODEL_HEAD_SETTINGS_H
#define MODEL_HEAD_SETTINGS_H

#include "model/transformer.h"

typedef enum attention_kind {
    ATTENTION_ENCODER,
    ATTENTION_DECODER,
    ATTENTION_CROSS,
    ATTENTION_KINDS
} attention_kind;

/* "encoder", "decoder", "cross". */
const char *attention_kind_name(attention_kind kind);

/* Layers that have heads of this kind. */
int attention_kind_layers(const transformer_config *config, attention_kind kind);

/* What is done to a head, before W_O; biases stay. */
typedef enum head_mode {
    HEAD_NORMAL,
    HEAD_ZERO,    /* its output is 0 */
    HEAD_UNIFORM, /* it looks at all it may see alike */
    HEAD_MEAN     /* its output is a given vector */
} head_mode;

/*
 * All heads, in the arrays that mha_options takes. Gates may differ between sentences of a batch:
 * then each has a gradient of its own.
 */
typedef struct head_settings {
    int layers[ATTENTION_KINDS], heads, width; /* width of a head */
    int sentences;                             /* with gates of their own; 1: all have the same */
    float *gates[ATTENTION_KINDS];             /* [layers][sentences][heads] */
    float *d_gates[ATTENTION_KINDS];           /* the same; what network_backward() finds */
    uint8_t *modes[ATTENTION_KINDS];           /* [layers][heads] of mha_head_mode */
    float *means[ATTENTION_KINDS];             /* [layers][heads][width] */
} head_settings;

/* All plain, all means 0. NULL: no memory. */
head_settings *head_settings_create(const transformer_config *config, int sentences);
void head_settings_free(head_settings *settings);

void head_settings_change(head_settings *settings, attention_kind kind, int layer, int head,
                          head_mode change);

/* What the options of a layer's call must say. */
void head_settings_fill(const head_settings *settings, attention_kind kind, int layer,
                        mha_options *options);

/* Where the gradients of its gates go. */
float *head_settings_gradients(const head_settings *settings, attention_kind kind, int layer);

#endif
