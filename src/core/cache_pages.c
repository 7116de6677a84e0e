/* SPDX-License-Identifier: MIT */
/*
 * Which sequence owns which page. owners[page] counts the table entries that name the page; a page
 * that has lost its last owner lies on the stack of dropped pages. A page has the same entry number
 * in every table that names it, and is written to only while it has one owner.
 *
 * Contiguous and ring caches have one page per sequence, always with one owner.
 */
#include "core/cache.h"

#include <string.h>

ptrdiff_t mhai_cache_pages_of(const mha_cache *cache, ptrdiff_t length)
{
    return mhai_cache_paged(cache) ? mhai_ceil_div(length, cache->page_tokens) : length > 0;
}

ptrdiff_t mhai_cache_slots_of(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t index)
{
    if (cache->firsts[sequence] > 0) /* a ring that has wrapped around */
        return cache->page_tokens;
    const ptrdiff_t stored = (ptrdiff_t)cache->lengths[sequence] - index * cache->page_tokens;
    return mhai_max(0, mhai_min(stored, cache->page_tokens));
}

/* ------------------------------------------------------------- one entry ----- */

static int32_t take_page(mha_cache *cache)
{
    int32_t page;
    if (cache->drop_count > 0) {
        page = cache->dropped[--cache->drop_count];
    } else {
        page = (int32_t)(1 + cache->page_count - cache->new_count--);
        mhai_memory_grow(cache->pages, (size_t)(page - 1) * cache->page_bytes,
                         (size_t)page * cache->page_bytes);
    }
    cache->owners[page] = 1;
    return page;
}

static void drop_page(mha_cache *cache, int32_t page)
{
    if (page > 0 && --cache->owners[page] == 0)
        cache->dropped[cache->drop_count++] = page;
}

/* Copies the pieces that hold slots [0, slots). */
static void copy_page(const mha_cache *cache, int32_t to, int32_t from, ptrdiff_t slots)
{
    const mha_cache_config *const c = &cache->config;
    const size_t tokens = (size_t)mhai_round_up(slots, MHAI_PIECE);
    for (ptrdiff_t g = 0; g < c->G; g++) {
        const mhai_token x = mhai_cache_slot(cache, to, 0, g),
                         y = mhai_cache_slot(cache, from, 0, g);
        memcpy(x.k, y.k, tokens * (size_t)c->D * mha_dtype_size(c->k_type));
        memcpy(x.v, y.v, tokens * (size_t)c->Dv * mha_dtype_size(c->v_type));
        if (x.k_scale)
            memcpy(x.k_scale, y.k_scale, tokens * sizeof *x.k_scale);
        if (x.v_scale)
            memcpy(x.v_scale, y.v_scale, tokens * sizeof *x.v_scale);
    }
}

void mhai_cache_own(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t index)
{
    int32_t *const entry = mhai_cache_table(cache, sequence) + index;
    const int32_t old = *entry;
    if (old > 0 && cache->owners[old] == 1)
        return;
    *entry = take_page(cache);
    if (old > 0) {
        copy_page(cache, *entry, old, mhai_cache_slots_of(cache, sequence, index));
        drop_page(cache, old);
    }
}

ptrdiff_t mhai_cache_shared(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                            ptrdiff_t last)
{
    const int32_t *const table = mhai_cache_table(cache, sequence);
    ptrdiff_t count = 0;
    for (ptrdiff_t index = first; index < last; index++)
        count += cache->owners[table[index]] > 1;
    return count;
}

/* ------------------------------------------------------------------ room ----- */

static ptrdiff_t listed(const int64_t *sequences, ptrdiff_t b)
{
    return sequences ? (ptrdiff_t)sequences[b] : b;
}

static ptrdiff_t new_tokens(const int64_t *lengths, ptrdiff_t L, ptrdiff_t b)
{
    return lengths ? (ptrdiff_t)lengths[b] : L;
}

/* Does sequences[b] exist, and is it not among those before b, which are marked? */
static mha_status mark_sequence(const mha_cache *cache, const int64_t *sequences, ptrdiff_t b,
                                const mha_options *options)
{
    const int64_t sequence = sequences ? sequences[b] : b;
    if (!mhai_cache_has(cache, sequence))
        return mhai_fail(options, MHA_ERR_SEQUENCE,
                         "batch %td belongs to sequence %lld; the cache has %td sequences", b,
                         (long long)sequence, cache->config.sequences);
    if (cache->marks[sequence])
        return mhai_fail(options, MHA_ERR_SEQUENCE,
                         "sequence %lld is listed twice, the second time for batch %td; one call "
                         "appends to a sequence once",
                         (long long)sequence, b);
    cache->marks[sequence] = 1;
    return MHA_OK;
}

static mha_status check_sequences(const mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                                  const mha_options *options)
{
    mha_status status = MHA_OK;
    ptrdiff_t marked = 0;
    while (marked < B && !(status = mark_sequence(cache, sequences, marked, options)))
        marked++;
    while (marked-- > 0)
        cache->marks[listed(sequences, marked)] = 0;
    return status;
}

/* Does one sequence stay within its capacity? */
static mha_status check_capacity(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t count,
                                 const mha_options *options)
{
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
    if (cache->config.kind == MHA_CACHE_RING && count > MHAI_MAX_EXTENT - length)
        return mhai_fail(options, MHA_ERR_OVERFLOW,
                         "sequence %td has %td tokens; %td more cannot "
                         "be counted",
                         sequence, length, count);
    if (cache->config.kind != MHA_CACHE_RING && count > cache->config.capacity - length)
        return mhai_fail(options, MHA_ERR_FULL,
                         "sequence %td has %td tokens; %td more do not fit into its capacity of "
                         "%td: truncate it, or make the cache larger",
                         sequence, length, count, cache->config.capacity);
    return MHA_OK;
}

static mha_status check_tokens(const mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                               ptrdiff_t L, const int64_t *lengths, const mha_options *options)
{
    mha_status status = MHA_OK;
    for (ptrdiff_t b = 0; b < B && !status; b++) {
        if (lengths && (lengths[b] < 0 || lengths[b] > L))
            return mhai_fail(options, MHA_ERR_LENGTH,
                             "batch %td has %lld new tokens; it must be 0 to L = %td", b,
                             (long long)lengths[b], L);
        status = check_capacity(cache, listed(sequences, b), new_tokens(lengths, L, b), options);
    }
    return status;
}

/* The page that the next token of a sequence goes into, if the page already holds others;
 * else 0. */
static int32_t open_page(const mha_cache *cache, ptrdiff_t sequence)
{
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
    if (length % cache->page_tokens == 0)
        return 0;
    return mhai_cache_table(cache, sequence)[length / cache->page_tokens];
}

/*
 * Pages that an append takes from the free ones. Every owner of a shared page that appends needs a
 * copy, but if all owners append, the last one keeps the page: marks[page] counts those that
 * append.
 */
static ptrdiff_t pages_needed(const mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                              ptrdiff_t L, const int64_t *lengths)
{
    ptrdiff_t needed = 0;
    for (ptrdiff_t b = 0; b < B; b++) {
        const ptrdiff_t sequence = listed(sequences, b), count = new_tokens(lengths, L, b);
        const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
        const int32_t page = open_page(cache, sequence);
        needed += mhai_cache_pages_of(cache, length + count) - mhai_cache_pages_of(cache, length);
        if (page > 0 && count > 0)
            needed += ++cache->marks[page] < cache->owners[page];
    }
    for (ptrdiff_t b = 0; b < B; b++) {
        const int32_t page = open_page(cache, listed(sequences, b));
        if (page > 0)
            cache->marks[page] = 0;
    }
    return needed;
}

mha_status mhai_cache_room(const mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                           ptrdiff_t L, const int64_t *lengths, const mha_options *options)
{
    mha_status status;
    if (B < 0 || L < 0)
        return mhai_fail(options, MHA_ERR_SHAPE, "B = %td, L = %td; extents must not be negative",
                         B, L);
    if (L > MHAI_MAX_EXTENT)
        return mhai_fail(options, MHA_ERR_OVERFLOW, "L = %td: larger than any memory", L);
    if (B > cache->config.sequences)
        return mhai_fail(options, MHA_ERR_SEQUENCE,
                         "B = %td; the cache has %td sequences, each once in a call", B,
                         cache->config.sequences);
    if ((status = check_sequences(cache, B, sequences, options)) ||
        (status = check_tokens(cache, B, sequences, L, lengths, options)))
        return status;
    if (!mhai_cache_paged(cache))
        return MHA_OK;
    const ptrdiff_t needed = pages_needed(cache, B, sequences, L, lengths);
    const ptrdiff_t free_pages = mhai_cache_free_count(cache);
    if (needed > free_pages)
        return mhai_fail(options, MHA_ERR_FULL,
                         "these tokens need %td more pages and %td are free: truncate sequences, "
                         "or make the cache with more pages",
                         needed, free_pages);
    return MHA_OK;
}

/* ------------------------------------------------------ whole sequences ----- */

mha_status mhai_cache_check_range(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                                  ptrdiff_t count)
{
    if (!cache)
        return MHA_ERR_NULL;
    if (!mhai_cache_has(cache, sequence))
        return MHA_ERR_SEQUENCE;
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
    if (first < cache->firsts[sequence] || first > length || count < 0 || count > length - first)
        return MHA_ERR_LENGTH;
    return MHA_OK;
}

mha_status mha_cache_truncate(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t length)
{
    if (!cache)
        return MHA_ERR_NULL;
    if (!mhai_cache_has(cache, sequence))
        return MHA_ERR_SEQUENCE;
    if (length != 0 && (length < cache->firsts[sequence] || length > cache->lengths[sequence]))
        return MHA_ERR_LENGTH;
    if (mhai_cache_paged(cache)) {
        int32_t *const table = mhai_cache_table(cache, sequence);
        const ptrdiff_t had = mhai_cache_pages_of(cache, (ptrdiff_t)cache->lengths[sequence]);
        for (ptrdiff_t n = mhai_cache_pages_of(cache, length); n < had; n++) {
            drop_page(cache, table[n]);
            table[n] = 0;
        }
    }
    cache->lengths[sequence] = length;
    if (length == 0)
        cache->firsts[sequence] = 0;
    return MHA_OK;
}

/* Table entries of `to` become those of `from`; each page gets one more owner. */
static void share_pages(mha_cache *cache, int32_t *to, const int32_t *from)
{
    for (ptrdiff_t n = 0; n < cache->sequence_pages; n++) {
        to[n] = from[n];
        if (to[n] > 0)
            cache->owners[to[n]]++;
    }
}

static void drop_pages(mha_cache *cache, const int32_t *table)
{
    for (ptrdiff_t n = 0; n < cache->sequence_pages; n++)
        drop_page(cache, table[n]);
}

mha_status mha_cache_fork(mha_cache *cache, ptrdiff_t to, ptrdiff_t from)
{
    if (!cache)
        return MHA_ERR_NULL;
    if (!mhai_cache_has(cache, to) || !mhai_cache_has(cache, from))
        return MHA_ERR_SEQUENCE;
    if (to == from)
        return MHA_OK;
    int32_t *const table = mhai_cache_table(cache, to);
    const int32_t *const source = mhai_cache_table(cache, from);
    if (mhai_cache_paged(cache)) {
        drop_pages(cache, table);
        share_pages(cache, table, source);
    } else {
        copy_page(cache, table[0], source[0], mhai_cache_slots_of(cache, from, 0));
    }
    cache->lengths[to] = cache->lengths[from];
    cache->firsts[to] = cache->firsts[from];
    return MHA_OK;
}

/* --------------------------------------------------------------- reorder ----- */

static void reorder_pages(mha_cache *cache, const int64_t *parents)
{
    const ptrdiff_t sequences = cache->config.sequences;
    for (ptrdiff_t n = 0; n < sequences; n++)
        share_pages(cache, cache->spare_table + n * cache->sequence_pages,
                    mhai_cache_table(cache, (ptrdiff_t)parents[n]));
    for (ptrdiff_t n = 0; n < sequences; n++)
        drop_pages(cache, mhai_cache_table(cache, n));
    int32_t *const old = cache->table;
    cache->table = cache->spare_table;
    cache->spare_table = old;
}

/*
 * One page per sequence: the first child of a parent takes its page, every other child gets a copy,
 * in the page of a sequence that is no parent. There are exactly as many of those.
 */
static void reorder_whole(mha_cache *cache, const int64_t *parents)
{
    const ptrdiff_t sequences = cache->config.sequences;
    int32_t *const old = cache->spare_table, *const table = cache->table;
    memcpy(old, table, (size_t)sequences * sizeof *old);
    for (ptrdiff_t n = 0; n < sequences; n++) {
        const ptrdiff_t parent = (ptrdiff_t)parents[n];
        table[n] = cache->marks[parent]++ == 0 ? old[parent] : 0;
    }
    ptrdiff_t childless = 0;
    for (ptrdiff_t n = 0; n < sequences; n++) {
        if (table[n] > 0)
            continue;
        while (cache->marks[childless] > 0)
            childless++;
        const ptrdiff_t parent = (ptrdiff_t)parents[n];
        table[n] = old[childless++];
        copy_page(cache, table[n], old[parent], mhai_cache_slots_of(cache, parent, 0));
    }
    memset(cache->marks, 0, (size_t)sequences * sizeof *cache->marks);
}

static void reorder_lengths(mha_cache *cache, const int64_t *parents)
{
    const size_t sequences = (size_t)cache->config.sequences;
    memcpy(cache->spare_lengths, cache->lengths, sequences * sizeof *cache->lengths);
    memcpy(cache->spare_firsts, cache->firsts, sequences * sizeof *cache->firsts);
    for (size_t n = 0; n < sequences; n++) {
        cache->lengths[n] = cache->spare_lengths[parents[n]];
        cache->firsts[n] = cache->spare_firsts[parents[n]];
    }
}

mha_status mha_cache_reorder(mha_cache *cache, const int64_t *parents)
{
    if (!cache || !parents)
        return MHA_ERR_NULL;
    for (ptrdiff_t n = 0; n < cache->config.sequences; n++)
        if (!mhai_cache_has(cache, parents[n]))
            return MHA_ERR_SEQUENCE;
    if (mhai_cache_paged(cache))
        reorder_pages(cache, parents);
    else
        reorder_whole(cache, parents);
    reorder_lengths(cache, parents);
    return MHA_OK;
}
