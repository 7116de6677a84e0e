/* SPDX-License-Identifier: MIT */
/*
 * A KV cache: how it is made, and what it reports about itself. The rest of section 7 of mha.h:
 *
 *      cache_pages.c       which sequence owns which page: room, fork, truncate, reorder
 *      cache_rows.c        tokens in and out: append, read, copy, remove, shift
 *      cache_attention.c   the operator over a cache
 *      cache_file.c        save; cache_load.c: load
 */
#include "core/cache.h"

#include <stdlib.h>
#include <string.h>

#define fail(config, status, ...) \
    mhai_fail_to((config)->message, (config)->message_size, status, __VA_ARGS__)

/* ---------------------------------------------------------------- config ----- */

static mha_status check_extents(const mha_cache_config *c)
{
    const struct {
        const char *name;
        ptrdiff_t extent, least, most;
    } extents[] = {{"sequences", c->sequences, 1, INT32_MAX / 2},
                   {"capacity", c->capacity, 1, MHAI_MAX_EXTENT},
                   {"page_tokens", c->page_tokens, 0, MHAI_MAX_EXTENT},
                   {"pages", c->pages, 0, INT32_MAX},
                   {"G", c->G, 1, MHAI_MAX_EXTENT}};
    for (size_t n = 0; n < sizeof extents / sizeof extents[0]; n++) {
        if (extents[n].extent < extents[n].least)
            return fail(c, MHA_ERR_SHAPE, "config.%s is %td; it must be at least %td",
                        extents[n].name, extents[n].extent, extents[n].least);
        if (extents[n].extent > extents[n].most)
            return fail(c, MHA_ERR_OVERFLOW, "config.%s is %td; more than %td cannot be counted",
                        extents[n].name, extents[n].extent, extents[n].most);
    }
    if (c->D < 1 || c->D > MHA_MAX_HEAD_WIDTH || c->Dv < 0 || c->Dv > MHA_MAX_HEAD_WIDTH)
        return fail(c, MHA_ERR_SHAPE,
                    "config.D = %td, config.Dv = %td; a head is 1 to %d wide (Dv = 0: as D)", c->D,
                    c->Dv, MHA_MAX_HEAD_WIDTH);
    return MHA_OK;
}

static bool storable(mha_dtype type)
{
    return type == MHA_F32 || type == MHA_F16 || type == MHA_BF16 || type == MHA_I8;
}

static mha_status check_config(const mha_cache_config *c)
{
    if ((unsigned)c->kind > MHA_CACHE_PAGED)
        return fail(c, MHA_ERR_FLAG,
                    "config.kind is %d; use MHA_CACHE_CONTIGUOUS, MHA_CACHE_RING or "
                    "MHA_CACHE_PAGED",
                    (int)c->kind);
    const mha_status status = check_extents(c);
    if (status)
        return status;
    if (!storable(c->k_type) || !storable(c->v_type))
        return fail(c, MHA_ERR_DTYPE,
                    "config.k_type is %d, config.v_type is %d; a cache stores MHA_F32, MHA_F16, "
                    "MHA_BF16 or MHA_I8",
                    (int)c->k_type, (int)c->v_type);
    if (c->kind == MHA_CACHE_PAGED && c->page_tokens % MHAI_PIECE != 0)
        return fail(c, MHA_ERR_SHAPE, "config.page_tokens is %td; pages hold a multiple of %d",
                    c->page_tokens, MHAI_PIECE);
    return MHA_OK;
}

/* Defaults, and the numbers that follow from the config. */
static mha_status complete_config(mha_cache *cache)
{
    mha_cache_config *const c = &cache->config;
    if (c->Dv == 0)
        c->Dv = c->D;
    if (c->kind == MHA_CACHE_RING)
        c->capacity = mhai_round_up(c->capacity, MHAI_PIECE);
    if (c->kind != MHA_CACHE_PAGED) {
        c->page_tokens = c->pages = 0;
        cache->page_tokens = mhai_round_up(c->capacity, MHAI_PIECE);
        cache->page_count = c->sequences;
        cache->sequence_pages = 1;
        return MHA_OK;
    }
    if (c->page_tokens == 0)
        c->page_tokens = 128;
    const ptrdiff_t most = mhai_ceil_div(c->capacity, c->page_tokens);
    if (c->pages == 0 &&
        (__builtin_mul_overflow(most, c->sequences, &c->pages) || c->pages > INT32_MAX))
        return fail(c, MHA_ERR_OVERFLOW,
                    "%td sequences of %td pages cannot be counted; say config.pages", c->sequences,
                    most);
    cache->page_tokens = c->page_tokens;
    cache->page_count = c->pages;
    cache->sequence_pages = mhai_min(most, c->pages);
    return MHA_OK;
}

/* ---------------------------------------------------------------- memory ----- */

/* More than any machine has. */
#define MOST_BYTES (SIZE_MAX >> (sizeof(size_t) > 4 ? 8 : 1))

/* Reserves tokens * width elements after what a head has so far; false on overflow. */
static bool add_part(size_t *head, size_t *at, ptrdiff_t tokens, ptrdiff_t width, size_t size)
{
    size_t bytes;
    *at = *head;
    return !__builtin_mul_overflow((size_t)tokens, (size_t)width, &bytes) &&
           !__builtin_mul_overflow(bytes, size, &bytes) &&
           !__builtin_add_overflow(bytes, MHAI_ALIGN - 1, &bytes) &&
           !__builtin_add_overflow(*head, bytes / MHAI_ALIGN * MHAI_ALIGN, head);
}

static size_t scale_size(mha_dtype type)
{
    return type == MHA_I8 ? sizeof(float) : 0;
}

/* Fills in where things lie in a page. */
static mha_status lay_out_page(mha_cache *cache)
{
    const mha_cache_config *const c = &cache->config;
    size_t head = 0, keys_at, all;
    if (!add_part(&head, &keys_at, cache->page_tokens, c->D, mha_dtype_size(c->k_type)) ||
        !add_part(&head, &cache->v_at, cache->page_tokens, c->Dv, mha_dtype_size(c->v_type)) ||
        !add_part(&head, &cache->k_scales_at, cache->page_tokens, 1, scale_size(c->k_type)) ||
        !add_part(&head, &cache->v_scales_at, cache->page_tokens, 1, scale_size(c->v_type)) ||
        __builtin_mul_overflow(head, (size_t)c->G, &cache->page_bytes) ||
        __builtin_mul_overflow(cache->page_bytes, (size_t)cache->page_count, &all) ||
        all > MOST_BYTES)
        return fail(c, MHA_ERR_OVERFLOW,
                    "%td pages of %td tokens for %td heads of widths %td and %td overflow "
                    "the address space",
                    cache->page_count, cache->page_tokens, c->G, c->D, c->Dv);
    cache->head_bytes = head;
    return MHA_OK;
}

/* Carves the arrays; with work->base NULL it only counts. */
static void take_arrays(mha_cache *cache, mhai_work *work)
{
    const size_t sequences = (size_t)cache->config.sequences, pages = 1 + (size_t)cache->page_count;
    const size_t entries = sequences * (size_t)cache->sequence_pages;
    cache->table = mhai_work_take(work, entries, sizeof *cache->table);
    cache->spare_table = mhai_work_take(work, entries, sizeof *cache->spare_table);
    cache->owners = mhai_work_take(work, pages, sizeof *cache->owners);
    cache->dropped = mhai_work_take(work, pages, sizeof *cache->dropped);
    cache->lengths = mhai_work_take(work, sequences, sizeof *cache->lengths);
    cache->firsts = mhai_work_take(work, sequences, sizeof *cache->firsts);
    cache->spare_lengths = mhai_work_take(work, sequences, sizeof *cache->spare_lengths);
    cache->spare_firsts = mhai_work_take(work, sequences, sizeof *cache->spare_firsts);
    cache->marks =
        mhai_work_take(work, sequences > pages ? sequences : pages, sizeof *cache->marks);
}

static size_t array_bytes(const mha_cache *cache)
{
    mha_cache counted = *cache;
    mhai_work work = {NULL, 0};
    take_arrays(&counted, &work);
    return work.used + MHAI_ALIGN;
}

static size_t all_page_bytes(const mha_cache *cache)
{
    return cache->page_bytes * (size_t)cache->page_count;
}

/* Is the number of table entries one that can be counted? */
static mha_status check_table(const mha_cache *cache)
{
    const mha_cache_config *const c = &cache->config;
    size_t entries;
    if (!__builtin_mul_overflow((size_t)c->sequences, (size_t)cache->sequence_pages, &entries) &&
        entries <= PTRDIFF_MAX / 64)
        return MHA_OK;
    return fail(c, MHA_ERR_OVERFLOW, "a table of %td sequences of %td pages cannot be counted",
                c->sequences, cache->sequence_pages);
}

static mha_status take_memory(mha_cache *cache)
{
    const size_t bytes = array_bytes(cache);
    cache->arrays = calloc(1, bytes);
    cache->pages = mhai_cache_paged(cache) ? mhai_memory_reserve(all_page_bytes(cache))
                                           : mhai_memory_take(all_page_bytes(cache));
    if (!cache->arrays || !cache->pages)
        return fail(&cache->config, MHA_ERR_MEMORY, "no memory for a cache of %zu bytes",
                    bytes + all_page_bytes(cache));
    mhai_work work = mhai_work_begin(cache->arrays);
    take_arrays(cache, &work);
    return MHA_OK;
}

/* All pages are free; without paging, page 1 + n belongs to sequence n for ever. */
static void set_owners(mha_cache *cache)
{
    cache->new_count = mhai_cache_paged(cache) ? cache->page_count : 0;
    for (ptrdiff_t n = 0; n < cache->page_count && !mhai_cache_paged(cache); n++) {
        cache->table[n] = (int32_t)(1 + n);
        cache->owners[1 + n] = 1;
    }
}

mha_status mhai_cache_plan(mha_cache *cache, const mha_cache_config *config)
{
    mha_status status;
    memset(cache, 0, sizeof *cache);
    if (!mhai_struct_read(config, &cache->config, sizeof cache->config, sizeof cache->config))
        return MHA_ERR_STRUCT;
    cache->config.size = sizeof cache->config;
    if ((status = check_config(&cache->config)) || (status = complete_config(cache)) ||
        (status = lay_out_page(cache)))
        return status;
    return check_table(cache);
}

mha_status mhai_cache_make(mha_cache **cache, const mha_cache *planned)
{
    mha_cache *const made = malloc(sizeof *made);
    *cache = NULL;
    if (!made)
        return fail(&planned->config, MHA_ERR_MEMORY, "no memory for a cache");
    *made = *planned;
    const mha_status status = take_memory(made);
    if (status) {
        mha_cache_free(made);
        return status;
    }
    set_owners(made);
    made->config.message = NULL;
    made->config.message_size = 0;
    *cache = made;
    return MHA_OK;
}

/* ---------------------------------------------------------------- public ----- */

mha_status mha_cache_create(mha_cache **cache, const mha_cache_config *config)
{
    mha_cache planned;
    if (cache)
        *cache = NULL;
    if (!config)
        return MHA_ERR_NULL;
    const mha_status status = mhai_cache_plan(&planned, config);
    if (status == MHA_ERR_STRUCT)
        return status;
    if (!cache)
        return fail(&planned.config, MHA_ERR_NULL, "cache is NULL");
    return status ? status : mhai_cache_make(cache, &planned);
}

void mha_cache_free(mha_cache *cache)
{
    if (!cache)
        return;
    free(cache->arrays);
    free(cache->pages);
    free(cache);
}

mha_cache_config mha_cache_get_config(const mha_cache *cache)
{
    mha_cache_config none;
    memset(&none, 0, sizeof none);
    return cache ? cache->config : none;
}

ptrdiff_t mha_cache_length(const mha_cache *cache, ptrdiff_t sequence)
{
    return cache && mhai_cache_has(cache, sequence) ? (ptrdiff_t)cache->lengths[sequence] : -1;
}

ptrdiff_t mha_cache_first(const mha_cache *cache, ptrdiff_t sequence)
{
    return cache && mhai_cache_has(cache, sequence) ? (ptrdiff_t)cache->firsts[sequence] : -1;
}

ptrdiff_t mha_cache_free_pages(const mha_cache *cache)
{
    return cache ? mhai_cache_free_count(cache) : 0;
}

size_t mha_cache_bytes(const mha_cache *cache)
{
    return cache ? sizeof *cache + array_bytes(cache) + all_page_bytes(cache) : 0;
}
