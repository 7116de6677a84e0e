/* SPDX-License-Identifier: MIT */
/* The numbers and names of the heads of any model. */
#ifndef HEADS_HEAD_NAMES_H
#define HEADS_HEAD_NAMES_H

#include "translator/head_settings.h"

/* The heads that a model has. An encoder has no layers of the kinds decoder and cross, a decoder
 * none of encoder and cross. */
typedef struct head_shape {
    int layers[ATTENTION_KINDS];
    int heads, width; /* heads per layer, and their width */
} head_shape;

/* The heads of a transformer of the translator. */
head_shape head_shape_of(const transformer_config *config);

/* A head; layer and head count from 0. */
typedef struct head_name {
    attention_kind kind;
    int layer, head;
} head_name;

/* Heads are also numbered from 0 through the whole model: kind by kind, layer by layer. */
int head_count(head_shape shape);
head_name head_at(head_shape shape, int number);
int head_number(head_shape shape, head_name name);

/* The name for users, who count from 1: "encoder 2.7" is the seventh head of the second layer. */
enum { HEAD_LABEL_MAX = 32 };
void head_label(head_name name, char label[HEAD_LABEL_MAX]);

#endif
