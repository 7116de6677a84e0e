/* SPDX-License-Identifier: MIT */
/* Caches for the fuzz targets: how they are made, and what may happen to them. */
#ifndef MHA_FUZZ_CACHE_H
#define MHA_FUZZ_CACHE_H

#include "support/fuzz.h"

mha_cache_config fuzz_cache_config(fuzz *f);

/* A number for all that a cache holds; NULL is allowed. */
uint64_t fuzz_cache_digest(const mha_cache *cache);

/* Die if a call that failed has changed what the digest was taken of. */
void fuzz_cache_check(const mha_cache *cache, uint64_t digest, mha_status status);

/* Prepare and make one call, any one. c is the cache's own config. */
mha_status fuzz_cache_do(fuzz *f, mha_cache *cache, const mha_cache_config *c);

/* The length of the longest sequence. */
ptrdiff_t fuzz_cache_longest(const mha_cache *cache, const mha_cache_config *c);

/* Sequences for B batches: NULL, one after another from anywhere, or any, perhaps one twice. An
 * absurd B gets a list that is long enough to name a sequence twice. */
const int64_t *fuzz_sequences(fuzz *f, const mha_cache_config *c, ptrdiff_t B);

/* Columns of masks and weights; rarely too few, but never 0 where that means `longest`. */
ptrdiff_t fuzz_columns(fuzz *f, ptrdiff_t longest);

/* Caches know no packed keys. Documents and rows were meant for them. */
void fuzz_drop_key_starts(mha_options *o, ptrdiff_t S, ptrdiff_t *k_rows);

/* Widths of 2 to the head's, or the default; D may be odd, and numbers wrong. */
mha_rope fuzz_rope(fuzz *f, ptrdiff_t D);

#endif
