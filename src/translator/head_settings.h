/* SPDX-License-Identifier: MIT */
/* The heads of a transformer, identified by kind, layer and number, and changes to them: gates,
 * uniform attention, or a fixed output. */
#ifndef TRANSLATOR_HEAD_SETTINGS_H
#define TRANSLATOR_HEAD_SETTINGS_H

#include "translator/transformer.h"

typedef enum attention_kind {
    ATTENTION_ENCODER,
    ATTENTION_DECODER,
    ATTENTION_CROSS,
    ATTENTION_KINDS
} attention_kind;

/* "encoder", "decoder", "cross". */
const char *attention_kind_name(attention_kind kind);

/* The number of layers with heads of this kind. */
int attention_kind_layers(const transformer_config *config, attention_kind kind);

/* A change to the output of a head before W_O; biases are unchanged. */
typedef enum head_mode {
    HEAD_NORMAL,
    HEAD_ZERO,    /* its output is 0 */
    HEAD_UNIFORM, /* it attends to all keys that are not masked equally */
    HEAD_MEAN     /* its output is a given vector */
} head_mode;

/*
 * The settings of all heads, in arrays for mha_options. Gates may differ between the sentences of a
 * batch; then each has its own gradient.
 */
typedef struct head_settings {
    int layers[ATTENTION_KINDS], heads, width; /* width of a head */
    int sentences;                             /* with their own gates; 1: the same for all */
    float *gates[ATTENTION_KINDS];             /* [layers][sentences][heads] */
    float *d_gates[ATTENTION_KINDS];           /* the same; written by network_backward() */
    uint8_t *modes[ATTENTION_KINDS];           /* [layers][heads] of mha_head_mode */
    float *means[ATTENTION_KINDS];             /* [layers][heads][width] */
} head_settings;

/* Creates settings with all heads unchanged and all means 0. Returns NULL if out of memory. */
head_settings *head_settings_create(const transformer_config *config, int sentences);
void head_settings_free(head_settings *settings);

void head_settings_change(head_settings *settings, attention_kind kind, int layer, int head,
                          head_mode change);

/* Sets gates, modes and means in the options of a call of a layer. */
void head_settings_fill(const head_settings *settings, attention_kind kind, int layer,
                        mha_options *options);

/* The array for the gradients of a layer's gates, [sentences][heads]. */
float *head_settings_gradients(const head_settings *settings, attention_kind kind, int layer);

#endif
