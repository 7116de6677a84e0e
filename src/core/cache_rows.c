/* SPDX-License-Identifier: MIT */
/*
 * Tokens in and out of pages. A row (the keys or values of one token and head) is converted once
 * into a small buffer and then copied to its place: values side by side, keys MHAI_GROUP apart.
 */
#include "core/cache.h"
#include "core/region.h"
#include "core/rope.h"

#include <string.h>

/* Buffers for one row of any width: as f32 and as it is stored. */
typedef struct row_buffer {
    float wide[MHA_MAX_HEAD_WIDTH];
    union {
        uint16_t half[MHA_MAX_HEAD_WIDTH];
        int8_t i8[MHA_MAX_HEAD_WIDTH];
    } stored;
} row_buffer;

/* ---------------------------------------------------------------- places ----- */

mhai_token mhai_cache_slot(const mha_cache *cache, int32_t page, ptrdiff_t slot, ptrdiff_t g)
{
    const mha_cache_config *const c = &cache->config;
    char *const head =
        cache->pages + (size_t)(page - 1) * cache->page_bytes + (size_t)g * cache->head_bytes;
    const ptrdiff_t k = slot / MHAI_GROUP * c->D * MHAI_GROUP + slot % MHAI_GROUP;
    const mhai_token token = {
        .k = mhai_out_at(head, c->k_type, k),
        .v = mhai_out_at(head + cache->v_at, c->v_type, slot * c->Dv),
        .k_scale = c->k_type == MHA_I8 ? (float *)(head + cache->k_scales_at) + slot : NULL,
        .v_scale = c->v_type == MHA_I8 ? (float *)(head + cache->v_scales_at) + slot : NULL};
    return token;
}

mhai_token mhai_cache_token(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t token,
                            ptrdiff_t g)
{
    const ptrdiff_t index = mhai_cache_paged(cache) ? token / cache->page_tokens : 0;
    return mhai_cache_slot(cache, mhai_cache_table(cache, sequence)[index],
                           token % cache->page_tokens, g);
}

mhai_piece mhai_cache_piece(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t g,
                            ptrdiff_t token)
{
    const mhai_token at = mhai_cache_token(cache, sequence, token, g);
    const mhai_piece piece = {at.k, at.v, at.k_scale, at.v_scale};
    return piece;
}

void mhai_cache_clear_piece(const mha_cache *cache, int32_t page, ptrdiff_t slot)
{
    const mha_cache_config *const c = &cache->config;
    for (ptrdiff_t g = 0; g < c->G; g++) {
        const mhai_token at = mhai_cache_slot(cache, page, slot, g);
        memset(at.k, 0, (size_t)(MHAI_PIECE * c->D) * mha_dtype_size(c->k_type));
        memset(at.v, 0, (size_t)(MHAI_PIECE * c->Dv) * mha_dtype_size(c->v_type));
        if (at.k_scale)
            memset(at.k_scale, 0, MHAI_PIECE * sizeof *at.k_scale);
        if (at.v_scale)
            memset(at.v_scale, 0, MHAI_PIECE * sizeof *at.v_scale);
    }
}

/* ------------------------------------------------------------ conversion ----- */

/* A row of type `from` as type `to`: in place where nothing changes, else in the buffer. scale is
 * NULL except for i8. */
static const void *stored_row(const mhak_table *kernels, const void *row, mha_dtype from,
                              mha_dtype to, ptrdiff_t count, float *scale, row_buffer *buffer)
{
    if (from == to)
        return row;
    const float *x = row;
    if (from != MHA_F32) {
        kernels->load_row[from](row, (int)count, 1.0f, buffer->wide);
        x = buffer->wide;
    }
    if (to == MHA_F32)
        return x;
    if (scale)
        *scale = mhai_quantize_row(x, count, buffer->stored.i8);
    else
        kernels->store_row[to](x, (int)count, 1.0f, &buffer->stored);
    return &buffer->stored;
}

/* `count` elements of a stored row, `step` apart, as f32 in buffer->wide; scale as above. */
static void load_stored(const mhak_table *kernels, mha_dtype type, const void *row, ptrdiff_t step,
                        const float *scale, ptrdiff_t count, row_buffer *buffer)
{
    if (type == MHA_F32) {
        mhai_copy_strided(type, buffer->wide, 1, row, step, count);
    } else if (scale) {
        for (ptrdiff_t c = 0; c < count; c++)
            buffer->wide[c] = (float)((const int8_t *)row)[c * step] * *scale;
    } else {
        mhai_copy_strided(type, &buffer->stored, 1, row, step, count);
        kernels->load_row[type](&buffer->stored, (int)count, 1.0f, buffer->wide);
    }
}

/* ---------------------------------------------------------------- append ----- */

/* The rows to append: (b, g, i) of keys and values. */
typedef struct new_rows {
    const mhak_table *kernels;
    mha_view k, v;
    mha_dtype k_type, v_type;
} new_rows;

static void put_token(const mha_cache *cache, const new_rows *rows, ptrdiff_t b, ptrdiff_t g,
                      ptrdiff_t i, mhai_token to)
{
    const mha_cache_config *const c = &cache->config;
    const void *const k =
        mhai_at(rows->k.data, rows->k_type, mhai_index(&rows->k, false, b, 0, g, i));
    const void *const v =
        mhai_at(rows->v.data, rows->v_type, mhai_index(&rows->v, false, b, 0, g, i));
    row_buffer buffer;
    mhai_copy_strided(
        c->k_type, to.k, MHAI_GROUP,
        stored_row(rows->kernels, k, rows->k_type, c->k_type, c->D, to.k_scale, &buffer), 1, c->D);
    memcpy(to.v, stored_row(rows->kernels, v, rows->v_type, c->v_type, c->Dv, to.v_scale, &buffer),
           (size_t)c->Dv * mha_dtype_size(c->v_type));
}

/*
 * Prepares to write `count` tokens from `token` on, which follow the last one. The sequence gets
 * its own page, and a piece that is not filled completely is cleared first, unless a ring has older
 * tokens there. Returns how many of the tokens lie in this group.
 */
static ptrdiff_t open_group(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t token, ptrdiff_t count)
{
    const bool ring = cache->config.kind == MHA_CACHE_RING;
    const ptrdiff_t index = mhai_cache_paged(cache) ? token / cache->page_tokens : 0;
    mhai_cache_own(cache, sequence, index);
    if (token % MHAI_PIECE == 0 && count < MHAI_PIECE && !(ring && token >= cache->page_tokens))
        mhai_cache_clear_piece(cache, mhai_cache_table(cache, sequence)[index],
                               token % cache->page_tokens);
    return mhai_min(count, MHAI_GROUP - token % MHAI_GROUP);
}

/* The sequence gets `count` more tokens; a ring drops those that were overwritten. */
static void grow(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t count)
{
    const int64_t length = cache->lengths[sequence] + count;
    cache->lengths[sequence] = length;
    if (cache->config.kind == MHA_CACHE_RING &&
        length - cache->page_tokens > cache->firsts[sequence])
        cache->firsts[sequence] = length - cache->page_tokens;
}

static void put_sequence(mha_cache *cache, const new_rows *rows, ptrdiff_t b, ptrdiff_t sequence,
                         ptrdiff_t count)
{
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
    const bool ring = cache->config.kind == MHA_CACHE_RING;
    ptrdiff_t i = ring ? mhai_max(0, count - cache->page_tokens) : 0;
    while (i < count) {
        const ptrdiff_t run = open_group(cache, sequence, length + i, count - i);
        for (ptrdiff_t g = 0; g < cache->config.G; g++)
            for (ptrdiff_t n = i; n < i + run; n++)
                put_token(cache, rows, b, g, n, mhai_cache_token(cache, sequence, length + n, g));
        i += run;
    }
    grow(cache, sequence, count);
}

static void put_batches(mha_cache *cache, const new_rows *rows, ptrdiff_t B,
                        const int64_t *sequences, ptrdiff_t L, const int64_t *lengths)
{
    for (ptrdiff_t b = 0; b < B; b++)
        put_sequence(cache, rows, b, sequences ? (ptrdiff_t)sequences[b] : b,
                     lengths ? (ptrdiff_t)lengths[b] : L);
}

void mhai_cache_put(mha_cache *cache, const mhak_table *kernels, ptrdiff_t B,
                    const int64_t *sequences, ptrdiff_t L, const int64_t *lengths,
                    const mha_view *k, const mha_view *v)
{
    const new_rows rows = {kernels, *k, *v, MHA_F32, MHA_F32};
    put_batches(cache, &rows, B, sequences, L, lengths);
}

static bool appendable(mha_dtype type)
{
    return type == MHA_F32 || type == MHA_F16 || type == MHA_BF16;
}

mha_status mha_cache_append(mha_cache *cache, ptrdiff_t B, const int64_t *sequences, ptrdiff_t L,
                            const int64_t *lengths, mha_view k, mha_dtype k_type, mha_view v,
                            mha_dtype v_type)
{
    const mha_options silent = {.size = sizeof silent};
    new_rows rows = {NULL, k, v, k_type, v_type};
    mha_status status;
    if (!cache)
        return MHA_ERR_NULL;
    if (!appendable(k_type) || !appendable(v_type))
        return MHA_ERR_DTYPE;
    if ((status = mhai_cache_room(cache, B, sequences, L, lengths, &silent)))
        return status;
    mhai_regions list;
    mhai_regions_begin(&list, &silent, B);
    mhai_regions_rows(&list, false, "k", k, k_type, cache->config.G, L, cache->config.D, NULL);
    mhai_regions_rows(&list, false, "v", v, v_type, cache->config.G, L, cache->config.Dv, NULL);
    if ((status = mhai_regions_check(&list, NULL, 0)) || (status = mhai_kernels(&rows.kernels)))
        return status;
    put_batches(cache, &rows, B, sequences, L, lengths);
    return MHA_OK;
}

/* ------------------------------------------------------------------ read ----- */

static void read_token(const mha_cache *cache, const mhak_table *kernels, mhai_token from, float *k,
                       float *v)
{
    const mha_cache_config *const c = &cache->config;
    row_buffer buffer;
    if (k) {
        load_stored(kernels, c->k_type, from.k, MHAI_GROUP, from.k_scale, c->D, &buffer);
        memcpy(k, buffer.wide, (size_t)c->D * sizeof *k);
    }
    if (v) {
        load_stored(kernels, c->v_type, from.v, 1, from.v_scale, c->Dv, &buffer);
        memcpy(v, buffer.wide, (size_t)c->Dv * sizeof *v);
    }
}

/* Row (g, i) of an output; NULL if it is not requested. */
static float *out_row(mha_out out, ptrdiff_t g, ptrdiff_t i)
{
    return out.data ? (float *)out.data + g * out.sh + i * out.sl : NULL;
}

mha_status mha_cache_read(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                          ptrdiff_t count, mha_out k, mha_out v)
{
    const mha_options silent = {.size = sizeof silent};
    const mhak_table *kernels;
    mha_status status = mhai_cache_check_range(cache, sequence, first, count);
    if (status)
        return status;
    const mha_cache_config *const c = &cache->config;
    mhai_regions list;
    mhai_regions_begin(&list, &silent, 1);
    if (k.data)
        mhai_regions_rows(&list, true, "k", mhai_as_view(k), MHA_F32, c->G, count, c->D, NULL);
    if (v.data)
        mhai_regions_rows(&list, true, "v", mhai_as_view(v), MHA_F32, c->G, count, c->Dv, NULL);
    if ((status = mhai_regions_check(&list, NULL, 0)) || (status = mhai_kernels(&kernels)))
        return status;
    for (ptrdiff_t g = 0; g < c->G; g++)
        for (ptrdiff_t i = 0; i < count; i++)
            read_token(cache, kernels, mhai_cache_token(cache, sequence, first + i, g),
                       out_row(k, g, i), out_row(v, g, i));
    return MHA_OK;
}

/* --------------------------------------------------------- copy and move ----- */

static void copy_token(const mha_cache *cache, mhai_token to, mhai_token from)
{
    const mha_cache_config *const c = &cache->config;
    if (to.k == from.k)
        return;
    mhai_copy_strided(c->k_type, to.k, MHAI_GROUP, from.k, MHAI_GROUP, c->D);
    memcpy(to.v, from.v, (size_t)c->Dv * mha_dtype_size(c->v_type));
    if (to.k_scale && from.k_scale)
        *to.k_scale = *from.k_scale;
    if (to.v_scale && from.v_scale)
        *to.v_scale = *from.v_scale;
}

/* Token by token in ascending order: a ring may overwrite what it has just read. */
mha_status mha_cache_copy(mha_cache *cache, ptrdiff_t to, ptrdiff_t from, ptrdiff_t first,
                          ptrdiff_t count)
{
    const mha_options silent = {.size = sizeof silent};
    const int64_t sequence = to;
    mha_status status = mhai_cache_check_range(cache, from, first, count);
    if (status || (status = mhai_cache_room(cache, 1, &sequence, count, NULL, &silent)))
        return status;
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[to];
    for (ptrdiff_t i = 0, run; i < count; i += run) {
        run = open_group(cache, to, length + i, count - i);
        for (ptrdiff_t g = 0; g < cache->config.G; g++)
            for (ptrdiff_t n = i; n < i + run; n++)
                copy_token(cache, mhai_cache_token(cache, to, length + n, g),
                           mhai_cache_token(cache, from, first + n, g));
    }
    grow(cache, to, count);
    return MHA_OK;
}

/* -------------------------------------------------------- export, import ----- */

/* One row and its scale to packed bytes, or from them. Returns what follows. */
static char *row_out(mha_dtype type, ptrdiff_t width, const void *row, ptrdiff_t step,
                     const float *scale, char *to)
{
    row_buffer buffer; /* aligned for any type, as `to` is not */
    void *const packed = type == MHA_F32 ? (void *)buffer.wide : (void *)&buffer.stored;
    const size_t bytes = (size_t)width * mha_dtype_size(type);
    mhai_copy_strided(type, packed, 1, row, step, width);
    memcpy(to, packed, bytes);
    if (scale)
        memcpy(to + bytes, scale, sizeof *scale);
    return to + bytes + (scale ? sizeof *scale : 0);
}

static const char *row_in(mha_dtype type, ptrdiff_t width, void *row, ptrdiff_t step, float *scale,
                          const char *from)
{
    row_buffer buffer;
    void *const packed = type == MHA_F32 ? (void *)buffer.wide : (void *)&buffer.stored;
    const size_t bytes = (size_t)width * mha_dtype_size(type);
    memcpy(packed, from, bytes);
    mhai_copy_strided(type, row, step, packed, 1, width);
    if (scale)
        memcpy(scale, from + bytes, sizeof *scale);
    return from + bytes + (scale ? sizeof *scale : 0);
}

size_t mha_cache_export_size(const mha_cache *cache, ptrdiff_t count)
{
    size_t bytes;
    if (!cache || count < 0)
        return 0;
    const mha_cache_config *const c = &cache->config;
    const size_t scales = (size_t)((c->k_type == MHA_I8) + (c->v_type == MHA_I8)) * sizeof(float);
    const size_t token = (size_t)c->G * ((size_t)c->D * mha_dtype_size(c->k_type) +
                                         (size_t)c->Dv * mha_dtype_size(c->v_type) + scales);
    return __builtin_mul_overflow(token, (size_t)count, &bytes) ? 0 : bytes;
}

/* Are these the bytes of so many tokens? */
static mha_status check_bytes(const mha_cache *cache, ptrdiff_t count, const void *data,
                              size_t bytes)
{
    if (bytes != mha_cache_export_size(cache, count))
        return MHA_ERR_LENGTH;
    return data || bytes == 0 ? MHA_OK : MHA_ERR_NULL;
}

mha_status mha_cache_export(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                            ptrdiff_t count, void *data, size_t bytes)
{
    mha_status status = mhai_cache_check_range(cache, sequence, first, count);
    if (status || (status = check_bytes(cache, count, data, bytes)))
        return status;
    const mha_cache_config *const c = &cache->config;
    char *to = data;
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t g = 0; g < c->G; g++) {
            const mhai_token at = mhai_cache_token(cache, sequence, first + i, g);
            to = row_out(c->k_type, c->D, at.k, MHAI_GROUP, at.k_scale, to);
            to = row_out(c->v_type, c->Dv, at.v, 1, at.v_scale, to);
        }
    return MHA_OK;
}

mha_status mha_cache_import(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t count, const void *data,
                            size_t bytes)
{
    const mha_options silent = {.size = sizeof silent};
    const int64_t number = sequence;
    if (!cache)
        return MHA_ERR_NULL;
    mha_status status = mhai_cache_room(cache, 1, &number, count, NULL, &silent);
    if (status || (status = check_bytes(cache, count, data, bytes)))
        return status;
    const mha_cache_config *const c = &cache->config;
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
    const char *from = data;
    for (ptrdiff_t i = 0, run; i < count; i += run) {
        run = open_group(cache, sequence, length + i, count - i);
        for (ptrdiff_t n = i; n < i + run; n++)
            for (ptrdiff_t g = 0; g < c->G; g++) {
                const mhai_token at = mhai_cache_token(cache, sequence, length + n, g);
                from = row_in(c->k_type, c->D, at.k, MHAI_GROUP, at.k_scale, from);
                from = row_in(c->v_type, c->Dv, at.v, 1, at.v_scale, from);
            }
    }
    grow(cache, sequence, count);
    return MHA_OK;
}

/* Makes every page of tokens [first, last) the sequence's own, or returns MHA_ERR_FULL. */
static mha_status own_tokens(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t last)
{
    if (!mhai_cache_paged(cache) || first == last)
        return MHA_OK;
    const ptrdiff_t from = first / cache->page_tokens;
    const ptrdiff_t to = mhai_ceil_div(last, cache->page_tokens);
    if (mhai_cache_shared(cache, sequence, from, to) > mhai_cache_free_count(cache))
        return MHA_ERR_FULL;
    for (ptrdiff_t index = from; index < to; index++)
        mhai_cache_own(cache, sequence, index);
    return MHA_OK;
}

mha_status mha_cache_remove(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t count)
{
    mha_status status = mhai_cache_check_range(cache, sequence, first, count);
    if (status)
        return status;
    if (cache->config.kind == MHA_CACHE_RING)
        return MHA_ERR_FLAG;
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence] - count;
    if (count == 0 || (status = own_tokens(cache, sequence, first, length)))
        return status;
    for (ptrdiff_t g = 0; g < cache->config.G; g++)
        for (ptrdiff_t token = first; token < length; token++)
            copy_token(cache, mhai_cache_token(cache, sequence, token, g),
                       mhai_cache_token(cache, sequence, token + count, g));
    return mha_cache_truncate(cache, sequence, length);
}

/* ----------------------------------------------------------------- shift ----- */

/* Cosines and sines of the rotation, which is the same for all tokens. */
typedef struct rotation {
    mha_rope_pairs pairs;
    ptrdiff_t width;
    float cosines[MHA_MAX_HEAD_WIDTH / 2], sines[MHA_MAX_HEAD_WIDTH / 2];
} rotation;

static void rotate_token(const mha_cache *cache, const mhak_table *kernels, const rotation *by,
                         mhai_token at)
{
    const mha_cache_config *const c = &cache->config;
    row_buffer buffer;
    load_stored(kernels, c->k_type, at.k, MHAI_GROUP, at.k_scale, c->D, &buffer);
    mhai_rope_rotate(buffer.wide, by->pairs, by->width, by->cosines, by->sines);
    mhai_copy_strided(
        c->k_type, at.k, MHAI_GROUP,
        stored_row(kernels, buffer.wide, MHA_F32, c->k_type, c->D, at.k_scale, &buffer), 1, c->D);
}

mha_status mha_cache_shift(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t count,
                           const mha_rope *rope, ptrdiff_t delta)
{
    const mhak_table *kernels;
    mha_status status = mhai_cache_check_range(cache, sequence, first, count);
    if (status)
        return status;
    if (!rope)
        return MHA_ERR_NULL;
    if ((status = mhai_rope_check(rope, cache->config.D)) || (status = mhai_kernels(&kernels)))
        return status;
    if (rope->pairs == MHA_ROPE_NONE || delta == 0)
        return MHA_OK;
    if ((status = own_tokens(cache, sequence, first, first + count)))
        return status;
    rotation by = {.pairs = rope->pairs, .width = mhai_rope_width(rope, cache->config.D)};
    mhai_rope_table(rope, by.width, (double)delta, by.cosines, by.sines);
    for (ptrdiff_t g = 0; g < cache->config.G; g++)
        for (ptrdiff_t token = first; token < first + count; token++)
            rotate_token(cache, kernels, &by, mhai_cache_token(cache, sequence, token, g));
    return MHA_OK;
}
