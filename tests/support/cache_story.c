/* SPDX-License-Identifier: MIT */
/*
 * Caches in fuzz targets: a configuration from bytes, one call of any function of a cache after the
 * other, and a digest that shows whether a call that failed has changed anything.
 */
#include "support/cache_story.h"

#include "support/temp_files.h"

#include <math.h>
#include <stdlib.h>

mha_cache_config fuzz_cache_config(fuzz *f)
{
    mha_cache_config c = {.size = fuzz_struct_size(f, sizeof c),
                          .kind = (mha_cache_kind)fuzz_pick(f, fuzz_rare(f) ? 5 : 3),
                          .sequences = fuzz_extent(f, 4, 6),
                          .capacity = fuzz_extent(f, 40, 150),
                          .page_tokens = fuzz_rare(f) ? fuzz_pick(f, 40) : 32 * fuzz_pick(f, 3),
                          .pages = fuzz_pick(f, 3) ? 0 : fuzz_extent(f, 8, 10),
                          .G = fuzz_extent(f, 2, 3),
                          .D = fuzz_extent(f, 9, 40),
                          .Dv = fuzz_pick(f, 3) ? 0 : fuzz_extent(f, 9, 40),
                          .k_type = fuzz_stored_type(f),
                          .v_type = fuzz_stored_type(f),
                          .message = fuzz_message(f),
                          .message_size = FUZZ_MESSAGE};
    return c;
}

static uint64_t add_to_digest(uint64_t digest, const void *data, size_t size)
{
    const unsigned char *const bytes = data;
    for (size_t n = 0; n < size; n++)
        digest = (digest ^ bytes[n]) * 1099511628211u;
    return digest;
}

/* Tokens of one sequence, keys and values. */
static uint64_t digest_sequence(const mha_cache *cache, const mha_cache_config *c,
                                ptrdiff_t sequence, uint64_t digest)
{
    const ptrdiff_t first = mha_cache_first(cache, sequence);
    const ptrdiff_t count = mha_cache_length(cache, sequence) - first;
    const size_t k_size = (size_t)(c->G * count * c->D), v_size = (size_t)(c->G * count * c->Dv);
    float *const k = malloc((k_size + v_size + 1) * sizeof *k);
    if (!k)
        abort();
    float *const v = k + k_size;
    if (mha_cache_read(cache, sequence, first, count, mha_out_bhld(k, c->G, count, c->D),
                       mha_out_bhld(v, c->G, count, c->Dv)))
        fuzz_die("tokens that are there cannot be read");
    digest = add_to_digest(digest, &first, sizeof first);
    digest = add_to_digest(digest, &count, sizeof count);
    digest = add_to_digest(digest, k, (k_size + v_size) * sizeof *k);
    free(k);
    return digest;
}

uint64_t fuzz_cache_digest(const mha_cache *cache)
{
    const mha_cache_config c = mha_cache_get_config(cache);
    const ptrdiff_t free_pages = mha_cache_free_pages(cache);
    uint64_t digest = add_to_digest(14695981039346656037u, &free_pages, sizeof free_pages);
    for (ptrdiff_t n = 0; cache && n < c.sequences; n++)
        digest = digest_sequence(cache, &c, n, digest);
    return digest;
}

static ptrdiff_t some_sequence(fuzz *f, const mha_cache_config *c)
{
    if (fuzz_rare(f))
        return fuzz_pick(f, 2) ? c->sequences : (ptrdiff_t)fuzz_absurd(f);
    return fuzz_pick(f, c->sequences);
}

const int64_t *fuzz_sequences(fuzz *f, const mha_cache_config *c, ptrdiff_t B)
{
    const ptrdiff_t kind = fuzz_pick(f, 4), first = fuzz_pick(f, c->sequences);
    const ptrdiff_t count = fuzz_below(B, 64) ? B : c->sequences + 1;
    if (kind == 0)
        return NULL;
    int64_t *const list = fuzz_numbers(f, count, c->sequences);
    for (ptrdiff_t b = 0; kind != 3 && b < count; b++)
        list[b] = c->sequences > 0 ? (first + b) % c->sequences : first + b;
    return list;
}

/* A place in a sequence, or just past it. */
static ptrdiff_t some_token(fuzz *f, const mha_cache *cache, ptrdiff_t sequence)
{
    const ptrdiff_t first = mha_cache_first(cache, sequence);
    const ptrdiff_t count = mha_cache_length(cache, sequence) - first;
    if (fuzz_rare(f))
        return (ptrdiff_t)fuzz_absurd(f);
    return first + fuzz_pick(f, count >= 0 && count < 250 ? count + 2 : 250);
}

/* How many from there on; mostly no more than there are. */
static ptrdiff_t some_count(fuzz *f, const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first)
{
    const ptrdiff_t length = mha_cache_length(cache, sequence);
    if (fuzz_rare(f))
        return (ptrdiff_t)fuzz_absurd(f);
    const bool inside = first >= 0 && first < length;
    return fuzz_pick(f, inside && length - first < 250 ? length - first + 1 : 2);
}

mha_rope fuzz_rope(fuzz *f, ptrdiff_t D)
{
    static const double bases[] = {0, 10000, 5e5, 2, 0.5, -1, NAN, INFINITY};
    mha_rope r = {.pairs = (mha_rope_pairs)fuzz_pick(f, fuzz_rare(f) ? 5 : 3),
                  .base = bases[fuzz_pick(f, fuzz_rare(f) ? 8 : 5)]};
    const bool known = D > 1 && D <= MHA_MAX_HEAD_WIDTH;
    if (fuzz_pick(f, 2) && known)
        r.width = 2 + 2 * fuzz_pick(f, D / 2 < 256 ? D / 2 : 256);
    if (fuzz_rare(f))
        r.width = known && fuzz_pick(f, 2) ? D + 1 : (ptrdiff_t)fuzz_absurd(f);
    const ptrdiff_t pairs = (r.width ? r.width : D) / 2;
    if (fuzz_pick(f, 4) == 3 && pairs > 0 && pairs <= MHA_MAX_HEAD_WIDTH) {
        float *const frequencies = fuzz_buffer(f, (size_t)pairs * sizeof(float));
        for (ptrdiff_t n = 0; n < pairs; n++)
            frequencies[n] = (float)fuzz_pick(f, 100) / 64;
        if (fuzz_rare(f))
            frequencies[fuzz_pick(f, pairs < 256 ? pairs : 256)] = fuzz_real(f);
        r.frequencies = frequencies;
    }
    return r;
}

static mha_status do_append(fuzz *f, mha_cache *cache, const mha_cache_config *c)
{
    const ptrdiff_t B = fuzz_extent(f, c->sequences < 3 ? c->sequences : 3, FUZZ_MAX_BATCH);
    const ptrdiff_t L = fuzz_extent(f, 6, 60);
    const mha_dtype k_type = fuzz_type(f), v_type = fuzz_type(f);
    const fuzz_extents k_extents = {B, c->G, L, c->D}, v_extents = {B, c->G, L, c->Dv};
    const mha_view k = fuzz_place(f, k_extents, fuzz_type_size(k_type), false);
    const mha_view v = fuzz_place(f, v_extents, fuzz_type_size(v_type), false);
    const int64_t *const sequences = fuzz_sequences(f, c, B);
    const int64_t *const lengths = fuzz_pick(f, 3) ? NULL : fuzz_numbers(f, B, L);
    return mha_cache_append(cache, B, sequences, L, lengths, k, k_type, v, v_type);
}

static mha_status do_read(fuzz *f, const mha_cache *cache, const mha_cache_config *c)
{
    const ptrdiff_t sequence = some_sequence(f, c), first = some_token(f, cache, sequence);
    const ptrdiff_t count = some_count(f, cache, sequence, first);
    const fuzz_extents k_extents = {1, c->G, count, c->D}, v_extents = {1, c->G, count, c->Dv};
    const mha_out none = {0};
    const mha_out k = fuzz_pick(f, 4) ? fuzz_place_out(f, k_extents, 4) : none;
    const mha_out v = fuzz_pick(f, 4) ? fuzz_place_out(f, v_extents, 4) : none;
    return mha_cache_read(cache, sequence, first, count, k, v);
}

static mha_status do_shift(fuzz *f, mha_cache *cache, const mha_cache_config *c)
{
    const ptrdiff_t sequence = some_sequence(f, c), first = some_token(f, cache, sequence);
    const ptrdiff_t count = some_count(f, cache, sequence, first);
    const mha_rope turn = fuzz_rope(f, c->D);
    const ptrdiff_t delta = fuzz_rare(f) ? (ptrdiff_t)fuzz_absurd(f) : fuzz_pick(f, 100) - 50;
    return mha_cache_shift(cache, sequence, first, count, fuzz_rare(f) ? NULL : &turn, delta);
}

ptrdiff_t fuzz_cache_longest(const mha_cache *cache, const mha_cache_config *c)
{
    ptrdiff_t longest = 0;
    for (ptrdiff_t n = 0; n < c->sequences; n++)
        longest = mha_cache_length(cache, n) > longest ? mha_cache_length(cache, n) : longest;
    return longest;
}

ptrdiff_t fuzz_columns(fuzz *f, ptrdiff_t longest)
{
    return longest > 1 && fuzz_rare(f) ? longest - 1 : longest + fuzz_pick(f, 3);
}

void fuzz_drop_key_starts(mha_options *o, ptrdiff_t S, ptrdiff_t *k_rows)
{
    if (!o->k_starts)
        return;
    o->q_documents = o->k_documents = NULL;
    o->k_starts = NULL;
    *k_rows = S;
}

static mha_status do_attention(fuzz *f, const mha_cache *cache, const mha_cache_config *c)
{
    mha_options o = {.size = sizeof o, .message = fuzz_message(f), .message_size = FUZZ_MESSAGE};
    const ptrdiff_t longest = fuzz_cache_longest(cache, c);
    mha_shape s = {.B = fuzz_extent(f, 3, FUZZ_MAX_BATCH),
                   .H = c->G * (1 + fuzz_pick(f, 3)),
                   .L = fuzz_extent(f, 4, 30),
                   .S = fuzz_columns(f, longest),
                   .D = fuzz_rare(f) ? fuzz_extent(f, 9, 40) : fuzz_pick(f, 2) * c->D,
                   .q_type = fuzz_type(f),
                   .o_type = fuzz_type(f)};
    ptrdiff_t q_rows, k_rows;
    fuzz_options(f, &s, s.S, &o, &q_rows, &k_rows);
    if (!fuzz_rare(f))
        fuzz_drop_key_starts(&o, s.S, &k_rows);
    const ptrdiff_t batches = o.q_starts ? 1 : s.B;
    const fuzz_extents q_extents = {batches, s.H, q_rows, c->D};
    const fuzz_extents o_extents = {batches, s.H, q_rows, c->Dv};
    const mha_view q = fuzz_place(f, q_extents, fuzz_type_size(s.q_type), false);
    const mha_out out = fuzz_place_out(f, o_extents, fuzz_type_size(s.o_type));
    const int64_t *const sequences = fuzz_sequences(f, c, s.B);
    /* 0 stands for the longest length, which all buffers have room for. */
    if (fuzz_pick(f, 4) == 0 && s.S >= longest)
        s.S = 0;
    const mha_options *const options = o.q_starts || fuzz_pick(f, 8) ? &o : NULL;
    mha_pool *const pool = fuzz_pool(f);
    const fuzz_work w =
        fuzz_work_new(f, mha_cache_work_size(cache, &s, options, mha_pool_threads(pool)));
    const mha_status status =
        mha_cache_attention(cache, sequences, &s, q, out, options, w.data, w.size, pool);
    fuzz_work_free(&w, status);
    mha_pool_free(pool);
    return status;
}

/* Spoil one bit of a file, or cut it, or leave it. True where it was changed. */
static bool spoil_file(fuzz *f, const char *path)
{
    const ptrdiff_t kind = fuzz_pick(f, 4);
    size_t size;
    unsigned char *const bytes = file_bytes(path, &size);
    const size_t at = (size_t)(fuzz_pick(f, 256) * 256 + fuzz_pick(f, 256));
    const bool changed = kind >= 2;
    if (bytes && size > 0)
        bytes[at % size] ^= (unsigned char)(1 << fuzz_pick(f, 8));
    else
        fuzz_die("a file that was saved is not there");
    if (changed && !file_make(path, bytes, kind == 2 ? at % size : size))
        fuzz_die("a file cannot be written");
    free(bytes);
    return changed;
}

/* To a file and back. What comes back is the same, or a damaged file. */
static mha_status do_file(fuzz *f, const mha_cache *cache)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "cache");
    char *const message = fuzz_message(f);
    mha_cache *other = NULL;
    mha_status status = mha_cache_save(cache, path, message, FUZZ_MESSAGE);
    if (status == MHA_OK) {
        const bool spoilt = spoil_file(f, path);
        status = mha_cache_load(&other, path, message, FUZZ_MESSAGE);
        if (spoilt ? status == MHA_OK
                   : status != MHA_OK || fuzz_cache_digest(other) != fuzz_cache_digest(cache))
            fuzz_die(spoilt ? "a damaged file was loaded" : "a file did not bring back its cache");
    }
    mha_cache_free(other);
    temp_folder_free(&folder);
    return status;
}

mha_status fuzz_cache_do(fuzz *f, mha_cache *cache, const mha_cache_config *c)
{
    const ptrdiff_t kind = fuzz_pick(f, 20);
    const ptrdiff_t sequence = some_sequence(f, c), other = some_sequence(f, c);
    const ptrdiff_t token = some_token(f, cache, sequence);
    const ptrdiff_t count = some_count(f, cache, sequence, token);
    switch (kind) {
    case 0:
        return mha_cache_truncate(cache, sequence, token);
    case 1:
        return mha_cache_fork(cache, sequence, other);
    case 2:
        return mha_cache_copy(cache, other, sequence, token, count);
    case 3:
        return mha_cache_remove(cache, sequence, token, count);
    case 4:
        return do_shift(f, cache, c);
    case 5:
        return mha_cache_reorder(cache, fuzz_numbers(f, c->sequences, c->sequences));
    case 6:
        /* Files wait for the disk. */
        return fuzz_pick(f, 256) ? do_read(f, cache, c) : do_file(f, cache);
    case 7:
    case 8:
        return do_read(f, cache, c);
    case 9:
    case 10:
    case 11:
    case 12:
        return do_attention(f, cache, c);
    default:
        return do_append(f, cache, c);
    }
}

void fuzz_cache_check(const mha_cache *cache, uint64_t digest, mha_status status)
{
    if (status < 0 && fuzz_cache_digest(cache) != digest)
        fuzz_die("a call that failed has changed the cache");
}
