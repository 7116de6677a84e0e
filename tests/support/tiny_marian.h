/* SPDX-License-Identifier: MIT */
/* A small encoder-decoder of Marian's form with random parameters and subwords, as "mha train
 * --pairs" writes it, and as a subject. */
#ifndef MHA_TINY_MARIAN_H
#define MHA_TINY_MARIAN_H

#include "heads/subject.h"
#include "support/temp_files.h"

typedef struct tiny_marian {
    temp_folder folder;
    transformer_config config; /* width 32, 4 heads, 2 + 2 layers, 64 positions */
    float *values;
    mha_model *model;
    subject subject;
} tiny_marian;

/* False after a failed check; tiny_marian_close() either way. */
bool tiny_marian_open(tiny_marian *marian, uint64_t seed);
void tiny_marian_close(tiny_marian *marian);

/* The subject reads a text; `target` may be NULL. Ends the program if that fails. */
subject_text tiny_marian_read(const tiny_marian *marian, const char *text, const char *target);

#endif
