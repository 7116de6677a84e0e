/* SPDX-License-Identifier: MIT */
/*
 * A KV cache as anyone would write it first: for every sequence one flat array of the numbers that
 * reading the cache must give, rounded as the cache stores them. What the real one is compared
 * with.
 */
#ifndef MHA_CACHE_MODEL_H
#define MHA_CACHE_MODEL_H

#include "support/test.h"

#include <mha/mha.h>

enum { MODEL_SEQUENCES = 8, MODEL_TOKENS = 2048 };

/* Token t has its keys at k[t*G*D], head after head, and its values at v[t*G*Dv]. */
typedef struct model_sequence {
    ptrdiff_t length, first;
    float *k, *v;
} model_sequence;

typedef struct cache_model {
    mha_cache_config config; /* as mha_cache_get_config() gives it */
    model_sequence sequences[MODEL_SEQUENCES];
} cache_model;

/* At most MODEL_SEQUENCES sequences; none may grow past MODEL_TOKENS. */
cache_model *model_new(const mha_cache *cache);
void model_free(cache_model *model);

/* Rows to append in a view of any type and layout, and the same as f32: element (b, i, g, c) is
 * exact[((b*L + i)*heads + g)*width + c]. */
typedef struct model_rows {
    mha_dtype type;
    mha_view view;
    float *exact;
    ptrdiff_t L, heads, width;
    void *data;
} model_rows;

/* Normal numbers; heads or rows outside as the random numbers have it. */
model_rows model_rows_new(test_random *random, mha_dtype type, ptrdiff_t B, ptrdiff_t L,
                          ptrdiff_t heads, ptrdiff_t width);
void model_rows_free(model_rows *rows);

/* The operations of a cache, without any that fails. */
void model_append(cache_model *model, ptrdiff_t sequence, ptrdiff_t count, const model_rows *k,
                  const model_rows *v, ptrdiff_t b);
void model_truncate(cache_model *model, ptrdiff_t sequence, ptrdiff_t length);
void model_fork(cache_model *model, ptrdiff_t to, ptrdiff_t from);
void model_copy(cache_model *model, ptrdiff_t to, ptrdiff_t from, ptrdiff_t first, ptrdiff_t count);
void model_remove(cache_model *model, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t count);
void model_shift(cache_model *model, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t count,
                 const mha_rope *rope, ptrdiff_t delta);
void model_reorder(cache_model *model, const int64_t *parents);

/* Round a row as a cache of that type does. */
void model_round(mha_dtype type, float *row, ptrdiff_t width);

/* Does the cache hold what the model says, to the bit? The first difference is a failed check. */
bool model_agrees(const cache_model *model, const mha_cache *cache, ptrdiff_t sequence,
                  const char *when);
bool model_agrees_all(const cache_model *model, const mha_cache *cache, const char *when);

#endif
