/* SPDX-License-Identifier: MIT */
/*
 * Texts for layers with a cache: ragged sequences of tokens, what one long causal call without a
 * cache makes of them, and calls with some of the tokens of some of them.
 */
#ifndef MHA_TEST_LAYER_TEXT_H
#define MHA_TEST_LAYER_TEXT_H

#include "support/layer_case.h"

enum { TEXTS = 3 };

typedef struct text {
    layer_case *c; /* layer, inputs [TEXTS][longest] and the outputs of the one call */
    mha_options options;
    int64_t lengths[TEXTS];
    snapshot whole; /* output, log-sum-exp and weights of the one call */
} text;

/* A layer at random, causal, perhaps with masks and a window; window -1: none. The one call is
 * checked against the oracle. */
text *text_new(uint64_t seed, ptrdiff_t longest, ptrdiff_t window);
void text_free(text *t);

/* A cache for the layer, with a sequence for each text; pages of 32 tokens. */
mha_cache *text_cache(const text *t, mha_cache_kind kind, ptrdiff_t capacity, mha_dtype type);

/* One call with tokens [at[b], at[b] + counts[b]) of text sequences[b], in memory of its own. Fill
 * in t, B, L and the arrays, then begin. `call` points into the step: do not copy it. */
typedef struct step {
    const text *t;
    ptrdiff_t B, L;
    int64_t sequences[TEXTS], counts[TEXTS], at[TEXTS];
    unsigned char *x, *y;
    float *lse, *weights;
    void *masks[3];
    int64_t *positions;
    mha_options options;
    mha_layer_call call;
} step;

void step_begin(step *s, mha_cache *cache);
/* Put what came out where the one long call had put it. */
void step_keep(const step *s);
void step_end(step *s);

typedef enum text_cut { ALL_AT_ONCE, CHUNKS, TOKENS, CUTS } text_cut;

/* Write the texts call by call, cut at random from `seed`; the outputs of the case then hold what
 * came of it. */
void text_generate(const text *t, mha_cache *cache, text_cut how, mha_pool *pool, uint64_t seed);

#endif
