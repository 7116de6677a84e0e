/* SPDX-License-Identifier: MIT */
/*
 * Heads whose keys fit in one block, f32, with the options that are most common: each is one call
 * of the kernel `attend`, and nothing is prepared per row. Where that kernel gives up, the head is
 * computed as any other, by attention.c. The bits are the same.
 */
#include "core/cache.h"
#include "core/tile.h"

#include <math.h>

enum {
    PORTIONS = 8,   /* tasks are handed out in portions, this many to a thread */
    OWN_WIDTH = 8,  /* least width of heads that are joined: see mhak_attend */
    STREAMED = 8192 /* least elements of K and V of a head for which streams() may be true */
};

static bool plain_options(const mha_options *o)
{
    return !o->attend_mask.data && !o->ignore_mask.data && !o->bias.data && !o->q_documents &&
           !o->alibi_slopes && !o->sinks && !o->gates && !o->head_modes && !o->statistics &&
           !(o->flags & MHA_WINDOW) && !(o->softcap > 0.0f) && mhai_drop_threshold(o) == 0 &&
           (!o->add_mask.data || o->add_mask_type == MHA_F32);
}

static bool plain_cache(const mha_cache *cache)
{
    return !cache || cache->config.kind != MHA_CACHE_RING;
}

/* Is everything in whole vectors, and so much of it that memory is the limit? The general path is a
 * little faster then. */
static bool streams(const mhai_run *run)
{
    const mha_shape *const s = &run->plan->shape;
    const ptrdiff_t odd = (s->S | s->D | s->Dv) % run->plan->kernels->vector;
    return odd == 0 && s->S * (s->D + s->Dv) >= STREAMED && mhai_short_heads(run) &&
           !run->call->options.add_mask.data && !run->call->options.weights.data;
}

bool mhai_one_block_possible(const mhai_run *run)
{
    const mhai_call *const call = run->call;
    const mha_shape *const s = &call->shape;
    const bool all_f32 = s->q_type == MHA_F32 && s->k_type == MHA_F32 && s->v_type == MHA_F32 &&
                         s->o_type == MHA_F32;
    const bool weights = call->options.weights.data != NULL;
    return all_f32 && s->S <= MHAK_BLOCK && s->S > 0 && s->D <= MHAK_DEPTH &&
           run->tiling.splits == 1 && mhai_extras(call) == 0 && plain_options(&call->options) &&
           plain_cache(call->cache) && !streams(run) &&
           (!weights || (run->plan->one_pass && !run->plan->one_pass_mean &&
                         call->options.weights_type == MHA_F32));
}

ptrdiff_t mhai_one_block_portions(const mhai_run *run)
{
    const int threads = run->tiling.threads;
    return threads > 1 ? mhai_min(run->tiling.row_tasks, (ptrdiff_t)PORTIONS * threads) : 1;
}

/* Rows [i, i + rows) of `heads` query heads from h on, which share the keys of group g; or with
 * `own` one row each of `heads` heads that share nothing. */
typedef struct part {
    const mhai_run *run;
    const mhai_scratch *scratch;
    mhai_batch batch;
    ptrdiff_t g, h, heads, i, rows;
    bool own;
} part;

/* What is the same for all heads of a group. */
static void set_keys(const part *p, mhak_attend *x)
{
    const mhai_call *const call = p->run->call;
    x->keys = (int)p->batch.keys;
    if (!call->cache) {
        const float *const v =
            (const float *)call->v.data + mhai_k_index(call, &p->batch, &call->v, p->g, 0);
        x->k = (const float *)call->k.data + mhai_k_index(call, &p->batch, &call->k, p->g, 0);
        x->k_stride = call->k.sl;
        x->v_stride = call->v.sl;
        x->own = p->own;
        x->k_row = p->own ? call->k.sh : 0;
        x->v_row = p->own ? call->v.sh : 0;
        for (int n = 0; n * MHAK_CHAIN < x->keys; n++)
            x->v[n] = v + n * MHAK_CHAIN * call->v.sl;
        return;
    }
    const ptrdiff_t sequence = mhai_sequence(call, p->batch.b);
    x->v_stride = call->shape.Dv;
    for (int n = 0; n * MHAI_PIECE < x->keys; n++) {
        const mhai_piece piece =
            mhai_cache_piece(call->cache, sequence, p->g, (ptrdiff_t)n * MHAI_PIECE);
        x->v[n] = piece.v;
        for (int t = 0; t < MHAI_PIECE / MHAI_GROUP; t++)
            x->groups[n * (MHAI_PIECE / MHAI_GROUP) + t] =
                (const float *)piece.k + t * MHAI_GROUP * call->shape.D;
    }
}

/* The rows of head h; with one row each, those of all heads of the part. */
static void set_rows(const part *p, ptrdiff_t h, mhak_attend *x)
{
    const mhai_call *const call = p->run->call;
    const mha_options *const o = &call->options;
    const mha_view out = mhai_as_view(call->o);
    const bool one = p->rows == 1;
    x->rows = (int)(one ? p->heads : p->rows);
    x->rise = !one && o->flags & MHA_CAUSAL ? 1 : 0;
    x->sees = o->flags & MHA_CAUSAL ? p->i + p->batch.offset + 1 : x->keys;
    x->q = (const float *)call->q.data + mhai_q_index(call, &p->batch, &call->q, h, p->i);
    x->q_stride = one ? call->q.sh : call->q.sl;
    x->o = (float *)call->o.data + mhai_q_index(call, &p->batch, &out, h, p->i);
    x->o_stride = one ? out.sh : out.sl;
    if (o->add_mask.data) {
        x->mask = (const float *)o->add_mask.data +
                  mhai_index(&o->add_mask, false, p->batch.b, 0, h, p->i);
        x->mask_stride = one ? o->add_mask.sh : o->add_mask.sl;
    }
    if (o->weights.data) {
        x->weights = (float *)o->weights.data + p->batch.b * o->weights.sb + h * o->weights.sh +
                     p->i * o->weights.sl;
        x->weights_stride = one ? o->weights.sh : o->weights.sl;
    }
}

static void store_lse(const part *p, const mhak_attend *x, ptrdiff_t h)
{
    const mhai_call *const call = p->run->call;
    const mha_view lse = mhai_as_view(call->options.lse);
    const ptrdiff_t at = mhai_q_index(call, &p->batch, &lse, h, p->i);
    const ptrdiff_t stride = p->rows == 1 ? lse.sh : lse.sl;
    for (int r = 0; lse.data && r < x->rows; r++)
        ((float *)call->options.lse.data)[at + r * stride] =
            (float)((double)x->m[r] + log((double)x->l[r]));
}

/* The rows of another part as something to prefetch. */
static void set_next(const part *p, mhak_attend *x)
{
    const mhai_call *const call = p->run->call;
    const mha_shape *const s = &call->shape;
    const float *const q =
        (const float *)call->q.data + mhai_q_index(call, &p->batch, &call->q, p->h, p->i);
    const float *const k =
        (const float *)call->k.data + mhai_k_index(call, &p->batch, &call->k, p->g, 0);
    const float *const v =
        (const float *)call->v.data + mhai_k_index(call, &p->batch, &call->v, p->g, 0);
    const int keys = (int)p->batch.keys;
    x->next[0] = mhai_prefetch_rows(q, MHA_F32, call->q.sl, s->D, (int)mhai_max(0, p->rows));
    x->next[1] = mhai_prefetch_rows(k, MHA_F32, call->k.sl, s->D, keys);
    x->next[2] = mhai_prefetch_rows(v, MHA_F32, call->v.sl, s->Dv, keys);
}

/* Computes a part; false: it must be computed in another way. Meanwhile the next one is
 * prefetched. */
static bool run_part(const part *p, const part *next)
{
    const mhai_run *const run = p->run;
    const mha_plan *const plan = run->plan;
    const mhai_scratch *const scratch = p->scratch;
    mhak_attend x = {.d = (int)plan->shape.D,
                     .dv = (int)plan->shape.Dv,
                     .scale = (float)run->call->scale,
                     .columns = (int)plan->shape.S,
                     .m = scratch->total.m,
                     .l = scratch->total.l,
                     .tile_rows = plan->row_tile,
                     .panels = scratch->k_panels,
                     .scaled = scratch->q,
                     .ld_scaled = plan->ldq,
                     .s = scratch->s,
                     .sums = scratch->total.o,
                     .ld_sums = plan->ldo,
                     .inverse = scratch->alpha};
    set_keys(p, &x);
    if (next)
        set_next(next, &x);
    x.packs = p->heads > 1 && p->rows > 1;
    for (ptrdiff_t n = 0; n < p->heads; n += p->rows == 1 ? p->heads : 1) {
        set_rows(p, p->h + n, &x);
        if (x.sees < 1 || !plan->kernels->attend(&x))
            return false;
        x.packed = x.packs;
        store_lse(p, &x, p->h + n);
    }
    return true;
}

/* The part that is task `number`: rows vary fastest, then heads of a group, groups, batches. */
static void locate(part *p, ptrdiff_t number)
{
    const mhai_tiling *const t = &p->run->tiling;
    const mha_shape *const shape = &p->run->plan->shape;
    const ptrdiff_t group = shape->H / shape->G;
    ptrdiff_t row_chunk = 0, head_chunk = 0;
    if (t->row_chunks > 1) {
        row_chunk = t->row_chunks - 1 - number % t->row_chunks;
        number /= t->row_chunks;
    }
    if (t->head_chunks > 1) {
        head_chunk = number % t->head_chunks;
        number /= t->head_chunks;
    }
    const ptrdiff_t b = number / shape->G;
    p->g = number - b * shape->G;
    if (b != p->batch.b)
        p->batch = mhai_batch_of(p->run->call, b);
    p->h = p->g * group + head_chunk * t->heads;
    p->heads = mhai_min(t->heads, group - head_chunk * t->heads);
    p->i = row_chunk * t->rows;
    const ptrdiff_t end = mhai_min(p->i + t->rows, p->batch.queries);
    p->i = mhai_max(p->i, p->run->call->row_first);
    p->rows = (p->run->call->row_last ? mhai_min(end, p->run->call->row_last) : end) - p->i;
}

/* One row of each head, and no head shares its keys: how many of the tasks up to `end` that follow
 * this one, of the same batch, are computed with it? */
static ptrdiff_t join_heads(const part *p, ptrdiff_t number, ptrdiff_t end)
{
    const mha_plan *const plan = p->run->plan;
    const mha_shape *const s = &plan->shape;
    if (s->L != 1 || s->H != s->G || p->run->call->cache || s->D < OWN_WIDTH)
        return 1;
    return mhai_min(mhai_min(s->G - p->g, end - number), plan->row_tile);
}

void mhai_one_block_portion(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    const ptrdiff_t portions = mhai_one_block_portions(run), tasks = run->tiling.row_tasks;
    const ptrdiff_t end = (number + 1) * tasks / portions;
    const bool prefetches = mhai_short_heads(run);
    part p = {.run = run, .scratch = scratch, .batch = {.b = -1}}, next = p;
    for (ptrdiff_t n = number * tasks / portions, count; n < end; n += count) {
        locate(&p, n);
        count = join_heads(&p, n, end);
        p.own = count > 1;
        if (p.own)
            p.heads = count;
        const bool fetches = prefetches && n + count < end;
        if (fetches)
            locate(&next, n + count);
        if (p.rows > 0 && p.batch.keys > 0 && p.batch.keys <= MHAK_BLOCK &&
            run_part(&p, fetches ? &next : NULL))
            continue;
        for (ptrdiff_t t = 0; t < count; t++)
            mhai_attention_task(run, scratch, n + t);
    }
}
