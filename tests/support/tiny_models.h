/* SPDX-License-Identifier: MIT */
/*
 * Small models with random weights, described and bound in memory as files would be: one for each
 * way in which families differ.
 */
#ifndef MHA_TEST_TINY_MODELS_H
#define MHA_TEST_TINY_MODELS_H

#include "model/binding.h"

typedef enum tiny_kind {
    TINY_BERT,   /* norms after, token types, pooler, transform before the logits, classifier */
    TINY_GPT2,   /* norms before, learned positions, transposed matrices, tied output */
    TINY_LLAMA,  /* RMS, rotary, gated, key/value heads, window in some layers, norms of q and k */
    TINY_GEMMA,  /* norms inside, weights stored minus 1, soft caps, two bases, scaled embedding */
    TINY_T5,     /* encoder-decoder, relative positions, gated, scaled logits */
    TINY_BART,   /* encoder-decoder, norms after, learned positions with an offset */
    TINY_MARIAN, /* encoder-decoder, sines, output bias */
    TINY_ALBERT, /* one layer used many times, narrow embedding */
    TINY_VIT,    /* pictures */
    TINY_KINDS
} tiny_kind;

const char *tiny_name(tiny_kind kind);

/* Weights of matrices have `type`: f32, f16 or bf16. model_files_close() frees everything, but
 * there is no source. */
model_files tiny_files(tiny_kind kind, mha_dtype type, uint64_t seed);

/* A model of it that the caller frees; ends the program if that fails. If `files` is not NULL, it
 * gets a copy that can be read while the model lives, and must not be closed. */
mha_model *tiny_model_new(tiny_kind kind, mha_model_storage storage, uint64_t seed,
                          model_files *files);

/* Random ids, or pixels. */
void tiny_ids(int32_t *ids, ptrdiff_t count, ptrdiff_t words, uint64_t seed);

#endif
