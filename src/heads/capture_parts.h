/* SPDX-License-Identifier: MIT */
/* Shared by capture.c and capture_vectors.c. */
#ifndef HEADS_CAPTURE_PARTS_H
#define HEADS_CAPTURE_PARTS_H

#include "heads/capture.h"

/* The inputs of one attention: rows for the queries, rows for keys and values. All are normed. */
typedef struct capture_inputs {
    const attention_at *at; /* its parameters */
    const float *queries;   /* [rows][width of the model] */
    const float *keys;      /* [columns][width of the model] */
} capture_inputs;

/* Allocate the weights of a kind, its outputs, and its other arrays. False: out of memory;
 * capture_free() frees what there is. */
bool capture_weights_make(capture_heads *heads);
bool capture_outputs_make(capture_heads *heads);
bool capture_vectors_make(capture_heads *heads);

/* Fills the arrays of a layer, but weights and outputs, from its inputs. */
void capture_vectors_fill(const translator *model, capture_heads *heads, int layer,
                          const capture_inputs *inputs);

/* Whether a layer has patches; to[heads][rows][width of a head], its outputs, get them. */
bool capture_patch(const capture_options *options, attention_kind kind, int layer,
                   const capture_heads *heads, float *to);

#endif
