/* SPDX-License-Identifier: MIT */
/*
 * Masks. Causal, window and lengths leave each row one range of keys; boolean masks, -inf in an
 * additive mask or bias, and documents are looked up key by key. All are combined in the keep bits
 * of a tile: bit j of a row is 1 where the row sees key base + j.
 */
#include "core/cache.h"

#include <string.h>

/* The sum of two clamped numbers and a row number does not overflow. */
static ptrdiff_t clamp(int64_t x)
{
    const ptrdiff_t most = PTRDIFF_MAX / 2 - 2 * MHAI_MAX_EXTENT;
    return x > most ? most : x < -most ? -most : (ptrdiff_t)x;
}

static ptrdiff_t offset_of(const mhai_call *call, const mhai_batch *batch)
{
    const mha_options *const options = &call->options;
    switch (options->position) {
    case MHA_POSITION_BOTTOM_RIGHT:
        return batch->keys - batch->queries;
    case MHA_POSITION_OFFSET:
        return clamp(options->offsets ? options->offsets[batch->b] : options->offset);
    case MHA_POSITION_UNSET:
    case MHA_POSITION_TOP_LEFT:
        break;
    }
    return 0;
}

static ptrdiff_t length_of(const int64_t *lengths, const int64_t *starts, ptrdiff_t b,
                           ptrdiff_t whole)
{
    if (lengths)
        return (ptrdiff_t)lengths[b];
    return starts ? (ptrdiff_t)(starts[b + 1] - starts[b]) : whole;
}

mhai_batch mhai_batch_of(const mhai_call *call, ptrdiff_t b)
{
    const mha_options *const options = &call->options;
    mhai_batch batch = {.b = b};
    batch.queries = length_of(options->q_lengths, options->q_starts, b, call->shape.L);
    const ptrdiff_t keys =
        call->cache ? (ptrdiff_t)call->cache->lengths[mhai_sequence(call, b)] : call->shape.S;
    batch.keys = length_of(options->k_lengths, options->k_starts, b, keys);
    batch.q_first = options->q_starts ? (ptrdiff_t)options->q_starts[b] : 0;
    batch.k_first = options->k_starts ? (ptrdiff_t)options->k_starts[b] : 0;
    batch.offset = offset_of(call, &batch);
    return batch;
}

void mhai_row_range(const mhai_call *call, const mhai_batch *batch, mhai_row *row)
{
    const mha_options *const options = &call->options;
    const ptrdiff_t at = row->i + batch->offset;
    ptrdiff_t first = 0, last = batch->keys;
    if (options->flags & MHA_CAUSAL)
        last = mhai_min(last, at + 1);
    if (options->flags & MHA_WINDOW) {
        if (options->window_left >= 0)
            first = mhai_max(first, at - clamp(options->window_left));
        if (options->window_right >= 0)
            last = mhai_min(last, at + clamp(options->window_right) + 1);
    }
    row->first = first;
    row->last = mhai_max(first, last);
}

/* -------------------------------------------------------------- keep bits ----- */

bool mhai_masks_look_up(const mha_options *options)
{
    return options->attend_mask.data || options->ignore_mask.data || options->add_mask.data ||
           options->bias.data || options->q_documents;
}

/* Bits of a 64-bit word for keys below n, if the word's first key is `from`. */
static uint64_t below(ptrdiff_t n, ptrdiff_t from)
{
    if (n <= from)
        return 0;
    return n >= from + 64 ? UINT64_MAX : (UINT64_C(1) << (n - from)) - 1;
}

void mhai_keep_range(uint32_t *keep, ptrdiff_t first, ptrdiff_t last)
{
    for (int word = 0; word < MHAK_WORDS; word += 2) {
        const uint64_t bits = below(last, 32 * word) & ~below(first, 32 * word);
        keep[word] = (uint32_t)bits;
        keep[word + 1] = (uint32_t)(bits >> 32);
    }
}

static void keep_numbers(const mhak_table *kernels, const mha_view *x, mha_dtype type,
                         ptrdiff_t index, int keys, uint32_t *keep)
{
    if (x->data)
        kernels->keep_above[type](mhai_at(x->data, type, index), keys, keep);
}

static ptrdiff_t score_index(const mha_view *x, const mhai_batch *batch, const mhai_row *row,
                             ptrdiff_t key)
{
    return mhai_index(x, false, batch->b, 0, row->h, row->i) + key;
}

/* Clears the bits of keys [base, base + keys) that are masked by data for one row. */
static void look_up(const mhai_call *call, const mhak_table *kernels, const mhai_batch *batch,
                    const mhai_row *row, ptrdiff_t base, int keys, uint32_t *keep)
{
    const mha_options *const o = &call->options;
    if (o->attend_mask.data)
        kernels->keep_bytes((const uint8_t *)o->attend_mask.data +
                                score_index(&o->attend_mask, batch, row, base),
                            keys, false, keep);
    if (o->ignore_mask.data)
        kernels->keep_bytes((const uint8_t *)o->ignore_mask.data +
                                score_index(&o->ignore_mask, batch, row, base),
                            keys, true, keep);
    keep_numbers(kernels, &o->add_mask, o->add_mask_type,
                 score_index(&o->add_mask, batch, row, base), keys, keep);
    keep_numbers(kernels, &o->bias, o->bias_type, score_index(&o->bias, batch, row, base), keys,
                 keep);
    if (o->q_documents) {
        const ptrdiff_t q_base = o->q_starts ? batch->q_first : batch->b * o->q_documents_sb;
        const ptrdiff_t k_base = o->k_starts ? batch->k_first : batch->b * o->k_documents_sb;
        kernels->keep_equal(o->k_documents + k_base + base, keys, o->q_documents[q_base + row->i],
                            keep);
    }
}

/* Are the data masks the same for both rows? Then the second one is not looked up. */
static bool same_data(const mha_options *o, const mhai_row *a, const mhai_row *b)
{
    const mha_view *const views[] = {&o->attend_mask, &o->ignore_mask, &o->add_mask, &o->bias};
    for (int n = 0; n < 4; n++)
        if (views[n]->data && ((views[n]->sl && a->i != b->i) || (views[n]->sh && a->h != b->h)))
            return false;
    return !o->q_documents || a->i == b->i;
}

/* Shrinks [*first, *last) to the visible keys of all rows; false if there is none. */
static bool shrink(const uint32_t *keep, int count, int *first, int *last)
{
    uint32_t any[MHAK_WORDS] = {0};
    for (int n = 0; n < count * MHAK_WORDS; n++)
        any[n % MHAK_WORDS] |= keep[n];
    int low = 0, high = MHAK_WORDS - 1;
    while (low < MHAK_WORDS && !any[low])
        low++;
    if (low == MHAK_WORDS)
        return false;
    while (!any[high])
        high--;
    *first = 32 * low + __builtin_ctz(any[low]);
    *last = 32 * high + 32 - __builtin_clz(any[high]);
    return true;
}

/* Does every row see all of [first, last)? */
static bool sees_all(const uint32_t *keep, int count, int first, int last)
{
    uint32_t whole[MHAK_WORDS];
    mhai_keep_range(whole, first, last);
    for (int n = 0; n < count * MHAK_WORDS; n++)
        if (keep[n] != whole[n % MHAK_WORDS])
            return false;
    return true;
}

mhai_cover mhai_mask_block(const mhai_call *call, const mhak_table *kernels,
                           const mhai_batch *batch, const mhai_row *rows, int count, ptrdiff_t base,
                           uint32_t *keep, int *first, int *last)
{
    ptrdiff_t low = MHAK_BLOCK, high = 0, common_low = 0, common_high = MHAK_BLOCK;
    for (int r = 0; r < count; r++) {
        const ptrdiff_t a = mhai_max(rows[r].first - base, 0);
        const ptrdiff_t b = mhai_min(rows[r].last - base, MHAK_BLOCK);
        if (a < b) {
            low = mhai_min(low, a);
            high = mhai_max(high, b);
        }
        common_low = mhai_max(common_low, a);
        common_high = mhai_min(common_high, b);
    }
    if (low >= high)
        return MHAI_NONE;
    *first = (int)low;
    *last = (int)high;
    const bool aligned = low % kernels->vector == 0 && high % kernels->vector == 0;
    const bool data = mhai_masks_look_up(&call->options);
    if (!data && aligned && common_low <= low && high <= common_high)
        return MHAI_ALL;

    uint32_t by_data[MHAK_WORDS];
    for (int r = 0; r < count; r++) {
        uint32_t *const bits = keep + r * MHAK_WORDS;
        mhai_keep_range(bits, rows[r].first - base, rows[r].last - base);
        if (!data)
            continue;
        if (r == 0 || !same_data(&call->options, &rows[r - 1], &rows[r])) {
            memset(by_data, 0xff, sizeof by_data);
            look_up(call, kernels, batch, &rows[r], base, (int)high, by_data);
        }
        for (int w = 0; w < MHAK_WORDS; w++)
            bits[w] &= by_data[w];
    }
    if (!shrink(keep, count, first, last))
        return MHAI_NONE;
    const bool ends_aligned = *first % kernels->vector == 0 && *last % kernels->vector == 0;
    return ends_aligned && sees_all(keep, count, *first, *last) ? MHAI_ALL : MHAI_SOME;
}
