/* SPDX-License-Identifier: MIT */
/* The families of models: the one table that says how each is described and bound. */
#ifndef MODEL_FAMILIES_H
#define MODEL_FAMILIES_H

#include "model/bind.h"
#include "model/describe.h"

typedef struct model_family {
    const char *name; /* "model_type" of config.json */
    mha_model_kind kind;
    const config_field *fields;
    mha_status (*describe)(const config_reader *r, model_description *d);
    const tensor_layout *layouts[2]; /* spellings of the names of tensors; the second may be NULL */
    const tensor_layout *gguf;       /* those of GGUF files; NULL: none are known */
    bool has_pruned_heads; /* transformers 4 removes the heads that "pruned_heads" lists */
} model_family;

/* NULL if there is none; number < 0 or past the last: NULL. */
const model_family *model_family_find(const char *name);

/* "bert, roberta, ..." */
enum { MODEL_FAMILY_LIST_MAX = 512 };
const char *model_family_list(char text[MODEL_FAMILY_LIST_MAX]);

#endif
