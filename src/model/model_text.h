/* SPDX-License-Identifier: MIT */
/* Text that is written into memory of the caller, as far as it fits, and what model_describe.c and
 * model_drawing.c share. */
#ifndef MODEL_MODEL_TEXT_H
#define MODEL_MODEL_TEXT_H

#include "model/binding.h"

typedef struct model_text {
    char *text; /* NULL: only the length is counted */
    size_t size;
    size_t length; /* of the whole text, even if it does not fit */
} model_text;

void model_text_add(model_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *model_activation_name(mha_activation activation);
const char *model_norm_name(mha_norm norm);

/* A drawing of one layer of a stack. */
void model_drawing_add(model_text *t, const model_files *files, int stack);

#endif
