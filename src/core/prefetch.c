/* SPDX-License-Identifier: MIT */
/* Prefetches rows that will be read soon, while others are computed: see mhai_prefetch in
 * tile.h. */
#include "core/tile.h"

enum {
    SHORT_HEAD = 1 << 16,   /* most elements of K and V of a head that is prefetched as a whole */
    MANY_ELEMENTS = 1 << 18 /* elements of K and V of all heads; fewer stay in a cache */
};

mhak_prefetch mhai_prefetch_rows(const void *row, mha_dtype type, ptrdiff_t stride, ptrdiff_t width,
                                 int count)
{
    const ptrdiff_t size = mhai_size(type);
    /* The stride of a single row may be any number and is not used. */
    return (mhak_prefetch){row, count > 1 ? stride * size : 0,
                           (int)mhai_ceil_div(width * size, MHAK_LINE), count};
}

void mhai_prefetch_next(mhai_prefetch *prefetch)
{
    for (int n = 0; prefetch && prefetch->any && n < MHAI_PREFETCH_STREAMS; n++) {
        mhak_prefetch *const a = &prefetch->rows[n];
        for (int r = 0; r < prefetch->portion[n] && a->count > 0; r++, a->count--) {
            for (int line = 0; line < a->lines; line++)
                __builtin_prefetch(a->rows + line * MHAK_LINE, 0, 2);
            a->rows += a->stride;
        }
    }
}

/* ------------------------------------------------------------------ masks ----- */

/* Schedules one mask: `view`, with elements of `size` bytes, for `count` rows from `row` on and the
 * block at key `base`. It becomes stream n. */
static void prefetch_mask(const mhai_worker *worker, int n, const mha_view *view, ptrdiff_t size,
                          int row, int count, ptrdiff_t base)
{
    const mhai_row *const at = &worker->scratch->rows[row];
    const int panels = MHAK_BLOCK / worker->plan->kernels->nr;
    /* With one query per head, the rows are heads. */
    const ptrdiff_t stride = worker->call->shape.L > 1 ? view->sl : view->sh;
    if (!view->data || stride == 0)
        return;
    const ptrdiff_t index = mhai_index(view, false, worker->batch.b, 0, at->h, at->i) + base;
    worker->prefetch->rows[n] =
        (mhak_prefetch){(const char *)view->data + index * size, count > 1 ? stride * size : 0,
                        (int)mhai_ceil_div(MHAK_BLOCK * size, MHAK_LINE), count};
    worker->prefetch->portion[n] = (count + panels - 1) / panels;
}

void mhai_prefetch_masks(const mhai_worker *worker, int row, ptrdiff_t base)
{
    const mha_options *const o = &worker->call->options;
    const ptrdiff_t sizes[] = {1, 1, (ptrdiff_t)mha_dtype_size(o->add_mask_type),
                               (ptrdiff_t)mha_dtype_size(o->bias_type)};
    const mha_view *const masks[] = {&o->attend_mask, &o->ignore_mask, &o->add_mask, &o->bias};
    if (!worker->prefetch || !mhai_masks_look_up(o))
        return;
    if (row >= worker->count) { /* the first rows, with the next keys */
        row = 0;
        base += MHAK_BLOCK;
    }
    const int count = (int)mhai_min(worker->plan->row_tile, worker->count - row);
    for (int n = 0; n < MHAI_PREFETCH_MASKS; n++)
        prefetch_mask(worker, MHAI_PREFETCH_HEAD + n, masks[n], sizes[n], row, count, base);
}

/* ------------------------------------------------------------------ heads ----- */

bool mhai_short_heads(const mhai_run *run)
{
    const mha_shape *const s = &run->plan->shape;
    const ptrdiff_t elements = s->S * (s->D + s->Dv);
    return run->tiling.row_chunks == 1 && run->tiling.splits == 1 && !run->call->cache &&
           elements <= SHORT_HEAD && run->tiling.row_tasks > MANY_ELEMENTS / (elements + 1);
}

void mhai_prefetch_head(mhai_prefetch *prefetch, const mhai_worker *next, ptrdiff_t h, ptrdiff_t i,
                        ptrdiff_t rows, int count)
{
    const mhai_call *const call = next->call;
    const mha_shape *const s = &call->shape;
    const mhai_batch *const batch = &next->batch;
    const ptrdiff_t q = mhai_q_index(call, batch, &call->q, h, i);
    const ptrdiff_t k = mhai_k_index(call, batch, &call->k, next->g, 0);
    const ptrdiff_t v = mhai_k_index(call, batch, &call->v, next->g, 0);
    const int keys = (int)batch->keys;
    prefetch->rows[0] = mhai_prefetch_rows(mhai_at(call->q.data, s->q_type, q), s->q_type,
                                           call->q.sl, s->D, (int)rows);
    prefetch->rows[1] =
        mhai_prefetch_rows(mhai_at(call->k.data, s->k_type, k), s->k_type, call->k.sl, s->D, keys);
    prefetch->rows[2] =
        mhai_prefetch_rows(mhai_at(call->v.data, s->v_type, v), s->v_type, call->v.sl, s->Dv, keys);
    const ptrdiff_t panels =
        mhai_ceil_div(keys, next->plan->kernels->nr) * mhai_ceil_div(count, next->plan->row_tile);
    for (int n = 0; n < MHAI_PREFETCH_HEAD; n++)
        prefetch->portion[n] = (int)mhai_ceil_div(mhai_max(rows, keys), mhai_max(1, panels));
    prefetch->any = true;
}
