/* SPDX-License-Identifier: MIT */
/*
 * How a KV cache lies in memory.
 *
 * Every cache is made of pages. A paged cache has many and hands them to sequences as they grow;
 * contiguous and ring caches have one page a sequence, as large as the capacity. In a page each
 * head has its keys, its values and, for i8, their scales:
 *
 *      keys    groups of 16 tokens, a group is D x 16: element c of token t is
 *              k[(t/16)*D*16 + c*16 + t%16]        as the kernels want them: no transposition
 *      values  token after token: element c of token t is v[t*Dv + c]
 *      scales  one float a token, for keys and for values: number = stored * scale
 *
 * Token t of a sequence is slot t (ring: t modulo the page) of its pages. A piece, MHAI_PIECE
 * tokens from a multiple of MHAI_PIECE on, never crosses a page: attention reads pieces.
 */
#ifndef MHAI_CACHE_H
#define MHAI_CACHE_H

#include "core/internal.h"

enum {
    MHAI_GROUP = MHAK_GROUP, /* tokens whose keys are interleaved */
    MHAI_PIECE = MHAK_CHAIN  /* tokens that always lie together, as the kernels sum them */
};

struct mha_cache {
    mha_cache_config config;  /* defaults filled in, no message */
    ptrdiff_t page_tokens;    /* a multiple of MHAI_PIECE */
    ptrdiff_t sequence_pages; /* most pages of a sequence */
    ptrdiff_t page_count;
    size_t head_bytes, page_bytes;         /* bytes of one head in a page, and of a page */
    size_t v_at, k_scales_at, v_scales_at; /* inside a head's part; keys are at 0 */
    char *pages;                           /* aligned to MHAI_ALIGN */
    int32_t *table;                        /* [sequences][sequence_pages]; -1: no page */
    int32_t *owners;                       /* [page_count] sequences that hold the page */
    int32_t *free_pages;                   /* a stack of pages without owner */
    ptrdiff_t free_count;
    int64_t *lengths; /* [sequences] */
    int64_t *firsts;  /* [sequences] the first token that is still there */

    /* For calls that change the cache, so that none of them needs memory. */
    int32_t *spare_table;                  /* as large as table */
    int64_t *spare_lengths, *spare_firsts; /* as large as lengths */
    int32_t *marks;                        /* [max(sequences, page_count)], 0 between calls */
    void *arrays;                          /* the block that all arrays lie in */
};

/* Where the piece that holds a token lies, for one head: its first token's place. */
typedef struct mhai_piece {
    const void *k;                    /* two groups */
    const void *v;                    /* MHAI_PIECE rows */
    const float *k_scales, *v_scales; /* NULL but for i8 */
} mhai_piece;

/* The piece from `token` on, a multiple of MHAI_PIECE, in a sequence that has reached it. */
mhai_piece mhai_cache_piece(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t g,
                            ptrdiff_t token);

/* Can these tokens be appended? MHA_OK, or the error and its message. lengths NULL: L each. */
mha_status mhai_cache_room(const mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                           ptrdiff_t L, const int64_t *lengths, const mha_options *options);

/* Append without checks, after mhai_cache_room() said there is room. f32 rows of a workspace:
 * element (b, g, i, c). */
void mhai_cache_put(mha_cache *cache, const mhak_table *kernels, ptrdiff_t B,
                    const int64_t *sequences, ptrdiff_t L, const int64_t *lengths,
                    const mha_view *k, const mha_view *v);

/*
 * Check and complete a call whose cache and sequences are set: sequences exist, k_lengths fit, S
 * has room for every token, position is said. Its options are its own.
 */
mha_status mhai_cache_check(mhai_call *call);

/* MHA_ERR_WINDOW where a row of a checked call sees tokens that a ring has dropped. */
mha_status mhai_cache_check_dropped(const mhai_call *call);

/* S of a call over a cache: what the caller said, at least the longest sequence. */
mha_status mhai_cache_columns(mhai_call *call);

/* The longest a sequence of the cache can become. */
ptrdiff_t mhai_cache_reach(const mha_cache *cache);

/* ------------------------------------------------ pages and tokens, for cache*.c ----- */

static inline bool mhai_cache_paged(const mha_cache *cache)
{
    return cache->config.kind == MHA_CACHE_PAGED;
}

static inline bool mhai_cache_has(const mha_cache *cache, int64_t sequence)
{
    return sequence >= 0 && sequence < cache->config.sequences;
}

/* The page table of a sequence. */
static inline int32_t *mhai_cache_table(const mha_cache *cache, ptrdiff_t sequence)
{
    return cache->table + sequence * cache->sequence_pages;
}

/* Pages in use by a sequence of so many tokens; contiguous and ring: 1 where there is a token. */
ptrdiff_t mhai_cache_pages_of(const mha_cache *cache, ptrdiff_t length);

/* Slots, from 0 on, that hold or held tokens of a sequence in its page number `index`. */
ptrdiff_t mhai_cache_slots_of(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t index);

/* Give the sequence a page of its own at table entry `index`: a fresh one where there is none, a
 * copy where others hold it too. There must be a free page for it. */
void mhai_cache_own(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t index);

/* Of the sequence's pages [first, last), those that must be copied before they are written to. */
ptrdiff_t mhai_cache_shared(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                            ptrdiff_t last);

/* MHA_OK if tokens [first, first + count) are there, else MHA_ERR_NULL, _SEQUENCE or _LENGTH. */
mha_status mhai_cache_check_range(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                                  ptrdiff_t count);

/* One token of one head, as it is stored. */
typedef struct mhai_token {
    char *k;                  /* elements are MHAI_GROUP apart */
    char *v;                  /* elements lie side by side */
    float *k_scale, *v_scale; /* NULL but for i8 */
} mhai_token;

mhai_token mhai_cache_slot(const mha_cache *cache, int32_t page, ptrdiff_t slot, ptrdiff_t g);

/* The same by token, in a sequence that has a page for it. */
mhai_token mhai_cache_token(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t token,
                            ptrdiff_t g);

/* Set a piece, all heads of it, to 0. */
void mhai_cache_clear_piece(const mha_cache *cache, int32_t page, ptrdiff_t slot);

#endif
