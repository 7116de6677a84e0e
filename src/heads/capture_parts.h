/* SPDX-License-Identifier: MIT */
/* What capture.c and capture_vectors.c share. */
#ifndef HEADS_CAPTURE_PARTS_H
#define HEADS_CAPTURE_PARTS_H

#include "heads/capture.h"

/* The inputs of one attention: normed rows, and the rows its keys and values come from. */
typedef struct capture_inputs {
    const attention_at *at;
    const float *queries; /* [rows][width of the model] */
    const float *keys;    /* [columns][width of the model] */
} capture_inputs;

/* Whether there was memory for the weights of a kind, and for its other arrays. */
bool capture_weights_make(capture_heads *heads);
bool capture_vectors_make(capture_heads *heads, bool direct);

/* All arrays of a layer but `direct`; its weights are there. */
void capture_vectors_fill(const translator *model, const head_settings *settings,
                          attention_kind kind, capture_heads *heads, int layer,
                          const capture_inputs *inputs);

/* `direct` of decoder and cross, from the statistics of the last norm, [rows][2]. */
bool capture_vectors_direct(const translator *model, capture *capture, const float *stats);

#endif
