/* SPDX-License-Identifier: MIT */
/* What bind.c and bind_names.c share while the tensors of a model are bound. */
#ifndef MODEL_BIND_PARTS_H
#define MODEL_BIND_PARTS_H

#include "format/safetensors.h"
#include "model/bind.h"

enum { NAME_MAX_BYTES = 200 };

typedef struct copied_tensor {
    const weight_tensor *tensor;
    void *data;
} copied_tensor;

typedef struct binder {
    model_binding *binding;
    model_description *d;
    const weight_source *source;
    const tensor_layout *layout;
    bool prefixed; /* names have the prefix of the layout */
    safetensors_report report;
    const weight_tensor **used; /* with repetitions */
    size_t used_count, used_room;
    copied_tensor *copied;
    size_t copied_count, copied_room;
} binder;

/* Where a rule is applied. */
typedef struct rule_place {
    const tensor_rule *rule;
    int stack, layer;
    char *base; /* that rule->at is an offset in */
} rule_place;

typedef struct tensor_query {
    const char *suffixes[2];    /* NULL: none */
    char first[NAME_MAX_BYTES]; /* the name that is expected, for messages */
} tensor_query;

/* The tensor of a rule; NULL if there is none. query->first receives the name that is expected. */
const weight_tensor *binder_find(const binder *b, const rule_place *at, tensor_query *query);

/* What the description says of the place; 0: any extent. */
ptrdiff_t binder_extent(const binder *b, const rule_place *at, tensor_extent which);

/* The first output of a part, and the outputs of the whole tensor that it belongs to. */
void binder_part(const binder *b, const rule_place *at, ptrdiff_t *first, ptrdiff_t *total);

#endif
