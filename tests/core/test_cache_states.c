/* SPDX-License-Identifier: MIT */
/*
 * The cache as a state machine: random operations on caches of every kind, page size and type, each
 * also done on flat arrays (cache_model.h). After every operation the sequence it changed is the
 * same to the bit, and pages, owners and free pages agree. Memory that holds no token is poisoned
 * with NaN all the time, so that a token that is read from there shows.
 */
#include "core/cache.h"
#include "support/cache_model.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOTAL_OPERATIONS = 100000, MAX_PAGES = 256 };

typedef struct machine {
    mha_cache *cache;
    cache_model *model;
    test_random random;
    char path[256];
    ptrdiff_t changed; /* the sequence to look at; -1: all */
    const char *name;  /* of the operation */
    int refused, done; /* operations that did not fit, and that did */
} machine;

static ptrdiff_t below(machine *m, ptrdiff_t n)
{
    return (ptrdiff_t)test_random_below(&m->random, n);
}

static ptrdiff_t any_sequence(machine *m)
{
    return below(m, m->model->config.sequences);
}

/* Small numbers more often than large ones. */
static ptrdiff_t chunk(machine *m)
{
    return below(m, 1 + below(m, below(m, 8) == 0 ? 150 : 40));
}

/* ------------------------------------------------------------ invariants ----- */

/* Table entries are pages while they are in use, and 0 after that. Counts them. */
static bool tables_hold(const mha_cache *cache, int32_t *entries)
{
    for (ptrdiff_t s = 0; s < cache->config.sequences; s++) {
        const ptrdiff_t length = (ptrdiff_t)cache->lengths[s];
        const ptrdiff_t used = cache->config.kind == MHA_CACHE_PAGED
                                   ? (length + cache->page_tokens - 1) / cache->page_tokens
                                   : 1;
        for (ptrdiff_t n = 0; n < cache->sequence_pages; n++) {
            const int32_t page = cache->table[s * cache->sequence_pages + n];
            if (n < used ? page < 1 || page > cache->page_count : page != 0)
                return false;
            if (n < used)
                entries[page]++;
        }
    }
    return true;
}

static bool free_pages_hold(const mha_cache *cache, const int32_t *entries)
{
    bool seen[MAX_PAGES] = {false};
    ptrdiff_t used = 0;
    const ptrdiff_t first_new = 1 + cache->page_count - cache->new_count;
    for (ptrdiff_t page = 1; page <= cache->page_count; page++) {
        used += entries[page] > 0;
        if (page >= first_new && entries[page] > 0)
            return false;
    }
    for (ptrdiff_t n = 0; n < cache->drop_count; n++) {
        const int32_t page = cache->dropped[n];
        if (page < 1 || page >= first_new || entries[page] > 0 || seen[page])
            return false;
        seen[page] = true;
    }
    return used + mha_cache_free_pages(cache) == cache->page_count;
}

static bool invariants_hold(const machine *m)
{
    const mha_cache *const cache = m->cache;
    int32_t entries[MAX_PAGES] = {0};
    bool ok = CHECK(tables_hold(cache, entries), "%s: a table is wrong", m->name);
    for (ptrdiff_t page = 0; ok && page <= cache->page_count; page++)
        ok = CHECK(cache->owners[page] == entries[page], "%s: page %td has %d owners, not %d",
                   m->name, page, cache->owners[page], entries[page]);
    ok = ok && CHECK(free_pages_hold(cache, entries), "%s: free pages are wrong", m->name);
    for (ptrdiff_t n = 0; ok && n <= cache->page_count; n++)
        ok = CHECK(cache->marks[n] == 0, "%s: page %td stays marked", m->name, n);
    return ok;
}

/* --------------------------------------------------------------- poison ----- */

/* Bytes of 255 are NaN in every type; of i8 the scales are. */
static void poison_piece(const mha_cache *cache, int32_t page, ptrdiff_t slot)
{
    const mha_cache_config *const c = &cache->config;
    for (ptrdiff_t g = 0; g < c->G; g++) {
        const mhai_token at = mhai_cache_slot(cache, page, slot, g);
        memset(at.k, 255, (size_t)(MHAI_PIECE * c->D) * mha_dtype_size(c->k_type));
        memset(at.v, 255, (size_t)(MHAI_PIECE * c->Dv) * mha_dtype_size(c->v_type));
        if (at.k_scale)
            memset(at.k_scale, 255, MHAI_PIECE * sizeof(float));
        if (at.v_scale)
            memset(at.v_scale, 255, MHAI_PIECE * sizeof(float));
    }
}

/* Every piece of every page that no sequence has reached. */
static void poison(const mha_cache *cache)
{
    ptrdiff_t reached[MAX_PAGES] = {0};
    for (ptrdiff_t s = 0; s < cache->config.sequences; s++)
        for (ptrdiff_t n = 0; n < cache->sequence_pages; n++) {
            const int32_t page = cache->table[s * cache->sequence_pages + n];
            if (page > 0)
                reached[page] = mhai_max(reached[page], mhai_cache_slots_of(cache, s, n));
        }
    for (ptrdiff_t page = 1; page <= cache->page_count; page++)
        for (ptrdiff_t slot = mhai_round_up(reached[page], MHAI_PIECE); slot < cache->page_tokens;
             slot += MHAI_PIECE)
            poison_piece(cache, (int32_t)page, slot);
}

static bool row_is_clean(mha_dtype type, const void *row, ptrdiff_t step, const float *scale,
                         ptrdiff_t width)
{
    bool clean = !scale || !isnan(*scale);
    for (ptrdiff_t c = 0; c < width && type != MHA_I8; c++)
        clean &= !isnan(mhai_element_read(row, type, c * step));
    return clean;
}

/* Attention reads whole pieces: nothing in the last one may be poison. */
static bool last_piece_is_clean(const machine *m, ptrdiff_t sequence)
{
    const mha_cache *const cache = m->cache;
    const mha_cache_config *const c = &cache->config;
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
    bool clean = true;
    for (ptrdiff_t t = length; t % MHAI_PIECE != 0 && clean; t++)
        for (ptrdiff_t g = 0; g < c->G && clean; g++) {
            const mhai_token at = mhai_cache_token(cache, sequence, t, g);
            clean = row_is_clean(c->k_type, at.k, MHAI_GROUP, at.k_scale, c->D) &&
                    row_is_clean(c->v_type, at.v, 1, at.v_scale, c->Dv);
        }
    return CHECK(clean, "%s: garbage past token %td of sequence %td", m->name, length, sequence);
}

/* -------------------------------------------------------------- foresight ----- */

/* Would a write to the sequence's pages [first, last) find free pages? Done on paper, one page
 * after the other; `owners` and *free_count say how it stands. */
static bool pages_suffice(const mha_cache *cache, int32_t *owners, ptrdiff_t *free_count,
                          ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t last)
{
    for (ptrdiff_t n = first; n < last; n++) {
        const int32_t page =
            n < cache->sequence_pages ? cache->table[sequence * cache->sequence_pages + n] : 0;
        if (page > 0 && owners[page] == 1)
            continue;
        if ((*free_count)-- == 0)
            return false;
        if (page > 0)
            owners[page]--;
    }
    return true;
}

/* Must an append of counts[b] tokens to sequences[b] succeed? */
static bool append_fits(const mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                        const int64_t *counts)
{
    int32_t owners[MAX_PAGES];
    ptrdiff_t free_count = mha_cache_free_pages(cache);
    bool fits = true;
    memcpy(owners, cache->owners, (size_t)(1 + cache->page_count) * sizeof *owners);
    for (ptrdiff_t b = 0; b < B; b++) {
        const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequences[b]];
        const ptrdiff_t end = length + (ptrdiff_t)counts[b], P = cache->page_tokens;
        fits &= cache->config.kind == MHA_CACHE_RING || end <= cache->config.capacity;
        if (cache->config.kind == MHA_CACHE_PAGED && counts[b] > 0 && fits)
            fits = pages_suffice(cache, owners, &free_count, (ptrdiff_t)sequences[b], length / P,
                                 (end + P - 1) / P);
    }
    return fits;
}

static bool writes_fit(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t last)
{
    int32_t owners[MAX_PAGES];
    ptrdiff_t free_count = mha_cache_free_pages(cache);
    const ptrdiff_t P = cache->page_tokens;
    memcpy(owners, cache->owners, (size_t)(1 + cache->page_count) * sizeof *owners);
    return cache->config.kind != MHA_CACHE_PAGED || first == last ||
           pages_suffice(cache, owners, &free_count, sequence, first / P, (last + P - 1) / P);
}

/* An operation that must succeed, or be refused with MHA_ERR_FULL. Did it happen? */
static bool happened(machine *m, mha_status status, bool fits)
{
    CHECK(status == (fits ? MHA_OK : MHA_ERR_FULL), "%s: %s", m->name, mha_status_string(status));
    m->done += status == MHA_OK;
    m->refused += status != MHA_OK;
    return status == MHA_OK;
}

/* ------------------------------------------------------------- operations ----- */

/* A ring's tokens are counted for ever; flat arrays are not that long. */
static void stay_small(machine *m, ptrdiff_t sequence)
{
    if (m->model->sequences[sequence].length < MODEL_TOKENS - 400)
        return;
    CHECK(mha_cache_truncate(m->cache, sequence, 0) == MHA_OK, "clear");
    model_truncate(m->model, sequence, 0);
}

static void do_append(machine *m)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16};
    const mha_cache_config *const c = &m->model->config;
    int64_t sequences[MODEL_SEQUENCES], counts[MODEL_SEQUENCES];
    const ptrdiff_t B = below(m, 2) ? 1 : 1 + below(m, c->sequences), start = any_sequence(m);
    ptrdiff_t L = 0;
    for (ptrdiff_t b = 0; b < B; b++) {
        sequences[b] = (start + b) % c->sequences;
        stay_small(m, (ptrdiff_t)sequences[b]);
        counts[b] = chunk(m);
        L = mhai_max(L, (ptrdiff_t)counts[b]);
    }
    model_rows k = model_rows_new(&m->random, types[below(m, 3)], B, L, c->G, c->D);
    model_rows v = model_rows_new(&m->random, types[below(m, 3)], B, L, c->G, c->Dv);
    const bool fits = append_fits(m->cache, B, sequences, counts);
    if (happened(
            m, mha_cache_append(m->cache, B, sequences, L, counts, k.view, k.type, v.view, v.type),
            fits))
        for (ptrdiff_t b = 0; b < B; b++)
            model_append(m->model, (ptrdiff_t)sequences[b], (ptrdiff_t)counts[b], &k, &v, b);
    m->changed = B == 1 ? start : -1;
    model_rows_free(&k);
    model_rows_free(&v);
}

static void do_truncate(machine *m)
{
    const ptrdiff_t s = m->changed = any_sequence(m);
    const model_sequence *const x = &m->model->sequences[s];
    const ptrdiff_t length = x->first + below(m, x->length - x->first + 1);
    if (happened(m, mha_cache_truncate(m->cache, s, length), true))
        model_truncate(m->model, s, length);
}

static void do_clear(machine *m)
{
    const ptrdiff_t s = m->changed = any_sequence(m);
    if (happened(m, mha_cache_truncate(m->cache, s, 0), true))
        model_truncate(m->model, s, 0);
}

static void do_fork(machine *m)
{
    const ptrdiff_t to = m->changed = any_sequence(m), from = any_sequence(m);
    if (happened(m, mha_cache_fork(m->cache, to, from), true))
        model_fork(m->model, to, from);
}

static void do_copy(machine *m)
{
    const ptrdiff_t to = m->changed = any_sequence(m), from = any_sequence(m);
    stay_small(m, to);
    const model_sequence *const x = &m->model->sequences[from];
    const ptrdiff_t first = x->first + below(m, x->length - x->first + 1);
    const ptrdiff_t count = below(m, x->length - first + 1);
    const bool fits = append_fits(m->cache, 1, &(int64_t){to}, &(int64_t){count});
    if (happened(m, mha_cache_copy(m->cache, to, from, first, count), fits))
        model_copy(m->model, to, from, first, count);
}

static void do_remove(machine *m)
{
    const ptrdiff_t s = m->changed = any_sequence(m);
    const model_sequence *const x = &m->model->sequences[s];
    const ptrdiff_t first = x->first + below(m, x->length - x->first + 1);
    const ptrdiff_t count = below(m, x->length - first + 1);
    if (m->model->config.kind == MHA_CACHE_RING) {
        CHECK(mha_cache_remove(m->cache, s, first, count) == MHA_ERR_FLAG, "removed from a ring");
        return;
    }
    const bool fits = count == 0 || writes_fit(m->cache, s, first, x->length - count);
    if (happened(m, mha_cache_remove(m->cache, s, first, count), fits))
        model_remove(m->model, s, first, count);
}

static void do_shift(machine *m)
{
    const ptrdiff_t s = m->changed = any_sequence(m);
    const model_sequence *const x = &m->model->sequences[s];
    const ptrdiff_t first = x->first + below(m, x->length - x->first + 1);
    const ptrdiff_t count = below(m, x->length - first + 1), delta = below(m, 9) - 4;
    const mha_rope rope = {.pairs = below(m, 2) ? MHA_ROPE_HALVES : MHA_ROPE_NEIGHBOURS,
                           .width = m->model->config.D / 2 * 2};
    const bool fits = delta == 0 || writes_fit(m->cache, s, first, first + count);
    if (happened(m, mha_cache_shift(m->cache, s, first, count, &rope, delta), fits))
        model_shift(m->model, s, first, count, &rope, delta);
}

static void do_reorder(machine *m)
{
    int64_t parents[MODEL_SEQUENCES];
    for (ptrdiff_t n = 0; n < m->model->config.sequences; n++)
        parents[n] = below(m, 3) ? any_sequence(m) : n;
    m->changed = -1;
    if (happened(m, mha_cache_reorder(m->cache, parents), true))
        model_reorder(m->model, parents);
}

/* Go on with what was loaded. */
static void do_file(machine *m)
{
    char message[300] = "";
    mha_cache *loaded = NULL;
    m->changed = -1;
    CHECK(mha_cache_save(m->cache, m->path, message, sizeof message) == MHA_OK, "%s", message);
    if (!CHECK(mha_cache_load(&loaded, m->path, message, sizeof message) == MHA_OK, "%s", message))
        return;
    CHECK(mha_cache_free_pages(loaded) == mha_cache_free_pages(m->cache),
          "loaded: %td free pages, not %td", mha_cache_free_pages(loaded),
          mha_cache_free_pages(m->cache));
    mha_cache_free(m->cache);
    m->cache = loaded;
    m->done++;
}

static const struct {
    const char *name;
    void (*run)(machine *m);
    int weight;
} operations[] = {
    {"append", do_append, 400}, {"truncate", do_truncate, 120}, {"clear", do_clear, 40},
    {"fork", do_fork, 120},     {"copy", do_copy, 80},          {"remove", do_remove, 80},
    {"shift", do_shift, 30},    {"reorder", do_reorder, 25},    {"file", do_file, 3}};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void step(machine *m)
{
    int total = 0, n = 0;
    for (int i = 0; i < OPERATIONS; i++)
        total += operations[i].weight;
    int pick = (int)below(m, total);
    while (pick >= operations[n].weight)
        pick -= operations[n++].weight;
    m->name = operations[n].name;
    operations[n].run(m);
}

/* ------------------------------------------------------------------ runs ----- */

static bool all_is_well(const machine *m, int64_t number)
{
    bool ok = invariants_hold(m);
    if (m->changed >= 0)
        ok = ok && last_piece_is_clean(m, m->changed) &&
             model_agrees(m->model, m->cache, m->changed, m->name);
    if (m->changed < 0 || number % 20 == 0)
        ok = ok && model_agrees_all(m->model, m->cache, m->name);
    return ok;
}

static void run_machine(const mha_cache_config *config, int64_t steps, uint64_t seed)
{
    machine m = {.random = {seed}};
    const temp_folder folder = temp_folder_new();
    snprintf(m.path, sizeof m.path, "%s", temp_path(&folder, "cache"));
    if (!CHECK(mha_cache_create(&m.cache, config) == MHA_OK, "create")) {
        temp_folder_free(&folder);
        return;
    }
    m.model = model_new(m.cache);
    bool ok = true;
    for (int64_t n = 0; n < steps && ok; n++) {
        poison(m.cache);
        step(&m);
        ok = CHECK(all_is_well(&m, n), "operation %lld on kind %d, pages of %td, types %d and %d",
                   (long long)n, (int)config->kind, config->page_tokens, (int)config->k_type,
                   (int)config->v_type);
    }
    CHECK(m.done > steps / 3, "only %d of %lld operations were possible", m.done, (long long)steps);
    if (config->pages > 0 && steps > 500)
        CHECK(m.refused > steps / 100, "pages never ran out: %d", m.refused);
    temp_folder_free(&folder);
    model_free(m.model);
    mha_cache_free(m.cache);
}

/* Every type of keys with every other of values, in turn. */
static void run_types(mha_cache_config config, int machines, uint64_t seed)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    const int64_t steps = test_effort(TOTAL_OPERATIONS / machines);
    for (int n = 0; n < 4; n++) {
        config.k_type = types[n];
        config.v_type = types[(n + (int)config.page_tokens / 32) % 4];
        run_machine(&config, steps, seed + (uint64_t)n);
    }
}

/* 24 machines in all, so many operations together. */
static mha_cache_config config_of(mha_cache_kind kind, ptrdiff_t capacity, ptrdiff_t page_tokens,
                                  ptrdiff_t pages)
{
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = 5,
                                     .capacity = capacity,
                                     .page_tokens = page_tokens,
                                     .pages = pages,
                                     .G = 2,
                                     .D = 5,
                                     .Dv = 3};
    return config;
}

static void contiguous(void)
{
    run_types(config_of(MHA_CACHE_CONTIGUOUS, 150, 0, 0), 24, test_seed(1));
}

static void ring(void)
{
    run_types(config_of(MHA_CACHE_RING, 60, 0, 0), 24, test_seed(2));
}

static void pages_of_32(void)
{
    run_types(config_of(MHA_CACHE_PAGED, 170, 32, 14), 24, test_seed(3));
}

static void pages_of_64(void)
{
    run_types(config_of(MHA_CACHE_PAGED, 300, 64, 10), 24, test_seed(4));
}

static void pages_of_96(void)
{
    run_types(config_of(MHA_CACHE_PAGED, 250, 96, 7), 24, test_seed(5));
}

static void pages_enough(void)
{
    run_types(config_of(MHA_CACHE_PAGED, 300, 0, 0), 24, test_seed(6));
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(contiguous);
    RUN(ring);
    RUN(pages_of_32);
    RUN(pages_of_64);
    RUN(pages_of_96);
    RUN(pages_enough);
    return test_end();
}
