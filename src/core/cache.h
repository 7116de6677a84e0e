/* SPDX-License-Identifier: MIT */
/*
 * How a KV cache lies in memory.
 *
 * Every cache is made of pages. A paged cache has many and hands them to sequences as they grow;
 * contiguous and ring caches have one page per sequence, as large as the capacity. In a page each
 * head has its keys, its values and, for i8, their scales:
 *
 *      keys    groups of 16 tokens, a group is D x 16: element c of token t is
 *              k[(t/16)*D*16 + c*16 + t%16]        as the kernels want them: no transposition
 *      values  token after token: element c of token t is v[t*Dv + c]
 *      scales  one float per token, for keys and for values: number = stored * scale
 *
 * Token t of a sequence is slot t (ring: t modulo the page) of its pages. A piece is MHAI_PIECE
 * tokens from a multiple of MHAI_PIECE on. It never crosses a page; attention reads whole pieces.
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
    size_t v_at, k_scales_at, v_scales_at; /* offsets in a head's part; keys are at 0 */
    char *pages;                           /* page 1, aligned to MHAI_ALIGN */

    /* Pages are numbered from 1, so that arrays which are zero need no initialisation: a large
     * cache costs no more than what is stored in it. */
    int32_t *table;       /* [sequences][sequence_pages]; 0: no page */
    int32_t *owners;      /* [1 + page_count] number of sequences that hold the page */
    int32_t *dropped;     /* a stack of pages that had owners */
    ptrdiff_t drop_count; /* pages on the stack */
    ptrdiff_t new_count;  /* pages that never had an owner: the last ones */
    int64_t *lengths;     /* [sequences] */
    int64_t *firsts;      /* [sequences] the first token that is still stored */

    /* Scratch of calls that change the cache, so that they need no memory. */
    int32_t *spare_table;                  /* as large as table */
    int64_t *spare_lengths, *spare_firsts; /* as large as lengths */
    int32_t *marks;                        /* [max(sequences, 1 + page_count)], 0 between calls */
    void *arrays;                          /* the block that holds all arrays */
};

/* Where a piece lies for one head: the place of its first token. */
typedef struct mhai_piece {
    const void *k;                    /* two groups */
    const void *v;                    /* MHAI_PIECE rows */
    const float *k_scales, *v_scales; /* NULL except for i8 */
} mhai_piece;

/* The piece that starts at `token`, a multiple of MHAI_PIECE, in a sequence that has reached it. */
mhai_piece mhai_cache_piece(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t g,
                            ptrdiff_t token);

/* Can these tokens be appended? MHA_OK, or the error and its message. lengths NULL: L each. */
mha_status mhai_cache_room(const mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                           ptrdiff_t L, const int64_t *lengths, const mha_options *options);

/* Appends without checks, after mhai_cache_room() has returned MHA_OK: f32 rows of a workspace,
 * element (b, g, i, c). */
void mhai_cache_put(mha_cache *cache, const mhak_table *kernels, ptrdiff_t B,
                    const int64_t *sequences, ptrdiff_t L, const int64_t *lengths,
                    const mha_view *k, const mha_view *v);

/*
 * Checks and completes a call whose cache and sequences are set: the sequences exist, k_lengths
 * fit, S has room for every token, and the position is set. The call must own its options.
 */
mha_status mhai_cache_check(mhai_call *call);

/* MHA_ERR_WINDOW where a row of a checked call sees tokens that a ring has dropped. */
mha_status mhai_cache_check_dropped(const mhai_call *call);

/* Sets S of a call over a cache: as given by the caller, and at least the longest sequence. */
mha_status mhai_cache_columns(mhai_call *call);

/* The largest length that a sequence of the cache can reach. */
ptrdiff_t mhai_cache_reach(const mha_cache *cache);

/* ----------------------------------------------------------- making, for cache*.c ----- */

/* Checks a configuration and fills in everything that follows from it; allocates nothing. */
mha_status mhai_cache_plan(mha_cache *cache, const mha_cache_config *config);

/* A copy of a planned cache, with memory, without tokens; NULL: MHA_ERR_MEMORY, with a message. */
mha_status mhai_cache_make(mha_cache **cache, const mha_cache *planned);

/* ------------------------------------------------ pages and tokens, for cache*.c ----- */

static inline bool mhai_cache_paged(const mha_cache *cache)
{
    return cache->config.kind == MHA_CACHE_PAGED;
}

static inline bool mhai_cache_has(const mha_cache *cache, int64_t sequence)
{
    return sequence >= 0 && sequence < cache->config.sequences;
}

static inline ptrdiff_t mhai_cache_free_count(const mha_cache *cache)
{
    return cache->drop_count + cache->new_count;
}

/* The page table of a sequence. */
static inline int32_t *mhai_cache_table(const mha_cache *cache, ptrdiff_t sequence)
{
    return cache->table + sequence * cache->sequence_pages;
}

/* Pages used by a sequence of this length; contiguous and ring: 1 if there is any token. */
ptrdiff_t mhai_cache_pages_of(const mha_cache *cache, ptrdiff_t length);

/* Slots, counted from 0, that hold or have held tokens of a sequence in its page number `index`. */
ptrdiff_t mhai_cache_slots_of(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t index);

/* Gives the sequence a page of its own at table entry `index`: a fresh one if there is none, a copy
 * if other sequences hold it too. There must be a free page for it. */
void mhai_cache_own(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t index);

/* How many of the sequence's pages [first, last) must be copied before they are written to. */
ptrdiff_t mhai_cache_shared(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                            ptrdiff_t last);

/* MHA_OK if tokens [first, first + count) are stored, else MHA_ERR_NULL, _SEQUENCE or _LENGTH. */
mha_status mhai_cache_check_range(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                                  ptrdiff_t count);

/* One token of one head, as it is stored. */
typedef struct mhai_token {
    char *k;                  /* elements are MHAI_GROUP apart */
    char *v;                  /* elements lie side by side */
    float *k_scale, *v_scale; /* NULL except for i8 */
} mhai_token;

mhai_token mhai_cache_slot(const mha_cache *cache, int32_t page, ptrdiff_t slot, ptrdiff_t g);

/* The same by token, in a sequence that has a page for it. */
mhai_token mhai_cache_token(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t token,
                            ptrdiff_t g);

/* Sets a piece, in all heads, to 0. */
void mhai_cache_clear_piece(const mha_cache *cache, int32_t page, ptrdiff_t slot);

#endif
