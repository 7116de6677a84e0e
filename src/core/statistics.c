/* SPDX-License-Identifier: MIT */
/*
 * What rows look at, gathered while their output is computed.
 *
 *      begin      a task's rows have seen nothing
 *      block      a tile of scores has become p = exp(s - m): its sums join those of its rows.
 *                 For columns p is held until the rows' sums are known
 *      row        the row's log-sum-exp is known: sums become statistics
 *      columns    held p become weights and go to their keys, rows ascending
 *      head       means over the rows of a head
 *
 * A head that gives a mean (MHA_HEAD_MEAN) has no weights and no statistics.
 *
 * A row's sums have a base M of their own, the largest m so far, since m begins anew with every
 * split. Their order is that of the keys: the bits depend on the vector's length only.
 */
#include "statistics.h"

#include "cache.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------- workspace ----- */

ptrdiff_t mhai_watch_blocks(const mhai_call *call)
{
    const ptrdiff_t all = mhai_ceil_div(call->shape.S, MHAK_BLOCK);
    const bool ring = call->cache && call->cache->config.kind == MHA_CACHE_RING;
    /* Those that a ring keeps begin anywhere in a block. */
    return ring ? mhai_min(all, mhai_ceil_div(call->cache->page_tokens, MHAK_BLOCK) + 1) : all;
}

/* Where a block of a row is held. */
static ptrdiff_t slot_of(const mhai_worker *worker, int r, ptrdiff_t block)
{
    const ptrdiff_t blocks = worker->plan->held_blocks;
    return r * blocks + block % blocks;
}

mhai_watch mhai_watch_take(const mha_plan *plan, mhai_work *work)
{
    mhai_watch w = {0};
    if (!plan->statistics)
        return w;
    const size_t rows = (size_t)plan->task_rows, tile = (size_t)plan->row_tile;
    const size_t top = (size_t)plan->top, blocks = plan->columns ? (size_t)plan->held_blocks : 0;
    const size_t state = MHAK_WATCHED * (size_t)plan->kernels->vector;
    w.rows = mhai_work_take(work, rows, sizeof *w.rows);
    w.states = mhai_work_take(work, rows * state, sizeof(float));
    w.scores = mhai_work_take(work, tile * MHAK_BLOCK, sizeof(float));
    w.top_scores = mhai_work_take(work, rows * top, sizeof(float));
    w.top_keys = mhai_work_take(work, rows * top, sizeof(int64_t));
    w.held = mhai_work_take(work, rows * blocks * MHAK_BLOCK, sizeof(float));
    w.bases = mhai_work_take(work, rows * blocks, sizeof(float));
    return w;
}

static float *state_of(const mhai_worker *worker, int r)
{
    return worker->scratch->watch.states +
           (ptrdiff_t)r * MHAK_WATCHED * worker->plan->kernels->vector;
}

static ptrdiff_t first_keys(const mhai_call *call)
{
    const ptrdiff_t count = call->options.statistics->first_keys;
    return count ? count : 1;
}

/* ----------------------------------------------------------------- begin ----- */

void mhai_watch_begin(const mhai_worker *worker)
{
    const mha_plan *const plan = worker->plan;
    const mhai_watch *const w = &worker->scratch->watch;
    const int vector = plan->kernels->vector;
    if (!plan->statistics)
        return;
    for (int r = 0; r < worker->count; r++) {
        float *const state = state_of(worker, r);
        memset(state, 0, sizeof(float) * (size_t)(MHAK_WATCHED * vector));
        for (int n = 0; n < vector; n++)
            state[MHAK_BEST * vector + n] = -INFINITY;
        w->rows[r] = (mhai_watched){.base = -INFINITY, .near = {-INFINITY, -INFINITY, -INFINITY}};
        for (ptrdiff_t n = 0; n < plan->top; n++) {
            w->top_scores[r * plan->top + n] = -INFINITY;
            w->top_keys[r * plan->top + n] = -1;
        }
        for (ptrdiff_t n = 0; plan->columns && n < plan->held_blocks; n++)
            w->bases[r * plan->held_blocks + n] = -INFINITY;
    }
}

void mhai_watch_scores(const mhai_worker *worker, int count, const uint32_t *keep)
{
    const mhai_scratch *const scratch = worker->scratch;
    for (int r = 0; worker->plan->statistics && r < count; r++)
        worker->plan->kernels->watched_scores(scratch->s + r * MHAK_BLOCK, MHAK_BLOCK,
                                              keep ? keep + r * MHAK_WORDS : NULL,
                                              scratch->watch.scores + r * MHAK_BLOCK);
}

/* ----------------------------------------------------------------- block ----- */

/* One row of a block of keys. */
typedef struct sight {
    const float *s, *p; /* scores and exp(s - m) of the block */
    ptrdiff_t base;     /* key 0 of the block */
    int first, last;    /* its keys that may be seen */
    ptrdiff_t position; /* of the row among the keys */
    ptrdiff_t anchor;   /* the same, or the end of the keys that is nearest to it */
} sight;

/* What distances are counted from until the row is done: f32 holds those within the keys. */
static ptrdiff_t anchor_of(const mhai_worker *worker, ptrdiff_t position)
{
    return mhai_max(0, mhai_min(position, worker->batch.keys));
}

static void see_near(mhai_watched *row, const sight *now)
{
    for (int n = 0; n < 3; n++) {
        const ptrdiff_t j = now->position - 1 + n - now->base;
        if (j >= now->first && j < now->last && now->p[j] > 0.0f)
            row->near[n] = now->s[j];
    }
}

static void see_first(const mhai_call *call, mhai_watched *row, const sight *now, double by)
{
    const ptrdiff_t end = mhai_min(now->last, first_keys(call) - now->base);
    for (ptrdiff_t j = now->first; j < end; j++)
        row->first += by * (double)now->p[j];
}

/* Into a list of the largest, if it is one of them; keys come in ascending order. */
static void insert(float *scores, int64_t *keys, ptrdiff_t top, float score, int64_t key)
{
    ptrdiff_t n = top - 1;
    for (; n > 0 && scores[n - 1] < score; n--) {
        scores[n] = scores[n - 1];
        keys[n] = keys[n - 1];
    }
    scores[n] = score;
    keys[n] = key;
}

static void see_top(const mhai_worker *worker, int r, const sight *now)
{
    const ptrdiff_t top = worker->plan->top;
    float *const scores = worker->scratch->watch.top_scores + r * top;
    int64_t *const keys = worker->scratch->watch.top_keys + r * top;
    uint32_t larger[MHAK_WORDS];
    if (top == 0)
        return;
    worker->plan->kernels->above(now->s, now->first, now->last, scores[top - 1], larger);
    for (int w = 0; w < MHAK_WORDS; w++)
        for (uint32_t bits = larger[w]; bits != 0; bits &= bits - 1) {
            const int j = 32 * w + __builtin_ctz(bits);
            if (now->s[j] > scores[top - 1])
                insert(scores, keys, top, now->s[j], now->base + j);
        }
}

static void hold(const mhai_worker *worker, int r, const sight *now, float m)
{
    const mhai_watch *const w = &worker->scratch->watch;
    if (!worker->plan->columns)
        return;
    const ptrdiff_t slot = slot_of(worker, r, now->base / MHAK_BLOCK);
    float *const held = w->held + slot * MHAK_BLOCK;
    if (now->last - now->first < MHAK_BLOCK)
        memset(held, 0, sizeof(float) * MHAK_BLOCK);
    memcpy(held + now->first, now->p + now->first,
           sizeof(float) * (size_t)(now->last - now->first));
    w->bases[slot] = m;
}

static void see(const mhai_worker *worker, int r, const sight *now, float m)
{
    mhai_watched *const row = &worker->scratch->watch.rows[r];
    if (m == -INFINITY) /* nothing seen yet */
        return;
    mhak_watch how = {.shrink = 1.0f, .by = 1.0f, .start = (float)(now->base - now->anchor)};
    if (m > row->base) {
        how.shrink = row->base == -INFINITY ? 0.0f : expf(row->base - m);
        how.fall = how.shrink == 0.0f ? 0.0f : row->base - m; /* which may be infinite */
        row->base = m;
        row->first *= (double)how.shrink;
    } else if (m < row->base) {
        how.by = expf(m - row->base);
    }
    how.base = row->base;
    worker->plan->kernels->watch(now->s, now->p, now->first, now->last, &how, state_of(worker, r));
    see_near(row, now);
    see_first(worker->call, row, now, (double)how.by);
    see_top(worker, r, now);
    hold(worker, r, now, m);
}

void mhai_watch_block(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                      int last, const float *m)
{
    const mhai_scratch *const scratch = worker->scratch;
    for (int r = 0; worker->plan->statistics && r < count; r++) {
        const ptrdiff_t position = scratch->rows[row + r].i + worker->batch.offset;
        const sight now = {scratch->watch.scores + r * MHAK_BLOCK,
                           scratch->s + r * MHAK_BLOCK,
                           base,
                           first,
                           last,
                           position,
                           anchor_of(worker, position)};
        see(worker, row + r, &now, m[row + r]);
    }
}

/* ------------------------------------------------------------------- row ----- */

static double sum_lanes(const float *lanes, int count)
{
    double sum = 0.0;
    for (int n = 0; n < count; n++)
        sum += (double)lanes[n];
    return sum;
}

/* The largest score, and of equal ones that of the first key. */
static float best_of(const float *scores, const float *at, int count, float *best_at)
{
    float best = -INFINITY;
    *best_at = 0.0f;
    for (int n = 0; n < count; n++)
        if (scores[n] > best || (scores[n] == best && at[n] < *best_at)) {
            best = scores[n];
            *best_at = at[n];
        }
    return best;
}

static float weight_of(float score, double lse)
{
    return (float)exp((double)score - lse);
}

static mha_row_statistics statistics_of(const mhai_worker *worker, int r, double lse)
{
    const mhai_watched *const row = &worker->scratch->watch.rows[r];
    const int vector = worker->plan->kernels->vector;
    const float *const state = state_of(worker, r);
    const double mass = sum_lanes(state + MHAK_MASS * vector, vector);
    const double energy = sum_lanes(state + MHAK_ENERGY * vector, vector);
    const double factor = exp((double)row->base - lse); /* from p to weights */
    float at;
    const float best = best_of(state + MHAK_BEST * vector, state + MHAK_AT * vector, vector, &at);
    const ptrdiff_t position = worker->scratch->rows[r].i + worker->batch.offset;
    const ptrdiff_t anchor = anchor_of(worker, position);
    const double reach = sum_lanes(state + MHAK_REACH * vector, vector);
    const double entropy = -factor * (energy + ((double)row->base - lse) * mass);
    return (mha_row_statistics){
        .entropy = entropy < 0.0 ? 0.0f : (float)entropy,
        .largest = weight_of(best, lse),
        .distance = (float)(factor * (reach + fabs((double)(position - anchor)) * mass)),
        .self = weight_of(row->near[1], lse),
        .previous = weight_of(row->near[0], lse),
        .next = weight_of(row->near[2], lse),
        .first = (float)(factor * row->first),
        .mass = (float)(factor * mass),
        .key = (int64_t)(anchor + (ptrdiff_t)at)};
}

static ptrdiff_t index_of(const mhai_worker *worker, int r)
{
    const mha_shape *const shape = &worker->call->shape;
    const mhai_row *const row = &worker->scratch->rows[r];
    return (worker->batch.b * shape->H + row->h) * shape->L + row->i;
}

static void store_top(const mhai_worker *worker, int r, double lse, bool weighs)
{
    const mha_statistics *const to = worker->call->options.statistics;
    const ptrdiff_t top = worker->plan->top, at = index_of(worker, r) * top;
    const mhai_watch *const w = &worker->scratch->watch;
    for (ptrdiff_t n = 0; n < top; n++) {
        const int64_t key = w->top_keys[r * top + n];
        const float weight = weighs && key >= 0 ? weight_of(w->top_scores[r * top + n], lse) : 0.0f;
        if (to->top_keys)
            to->top_keys[at + n] = weight == 0.0f ? -1 : key;
        if (to->top_weights)
            to->top_weights[at + n] = weight;
    }
}

/* to[j] += held[j] * factor, the last of them with the same roundings. */
static void add_block(const mhak_table *kernels, float *to, const float *held, ptrdiff_t count,
                      float factor)
{
    float rest[MHAK_MAX_VECTOR] = {0};
    const ptrdiff_t whole = count - count % kernels->vector;
    const size_t left = sizeof(float) * (size_t)(count - whole);
    kernels->add_scaled(to, held, (int)whole, factor);
    memcpy(rest, to + whole, left);
    kernels->add_scaled(rest, held + whole, left ? kernels->vector : 0, factor);
    memcpy(to + whole, rest, left);
}

/* Held p of one row, as weights to their keys. */
static void add_columns(const mhai_worker *worker, int r, double lse)
{
    const mha_shape *const shape = &worker->call->shape;
    const mhai_row *const row = &worker->scratch->rows[r];
    const mhai_watch *const w = &worker->scratch->watch;
    float *const to = worker->call->options.statistics->columns +
                      (worker->batch.b * shape->H + row->h) * shape->S;
    float base = -INFINITY, factor = 0.0f; /* mostly the same for block after block */
    for (ptrdiff_t n = row->first / MHAK_BLOCK; n * MHAK_BLOCK < row->last; n++) {
        const ptrdiff_t slot = slot_of(worker, r, n);
        if (w->bases[slot] == -INFINITY)
            continue;
        if (w->bases[slot] != base) {
            base = w->bases[slot];
            factor = (float)exp((double)base - lse);
        }
        add_block(worker->plan->kernels, to + n * MHAK_BLOCK, w->held + slot * MHAK_BLOCK,
                  mhai_min(MHAK_BLOCK, shape->S - n * MHAK_BLOCK), factor);
    }
}

void mhai_watch_row(const mhai_run *run, const mhai_worker *worker, int r, float m, float l,
                    bool seen)
{
    if (!worker->plan->statistics)
        return;
    const double lse = (double)m + log((double)l);
    mha_row_statistics row = {.key = -1};
    const bool weighs = seen && worker->scratch->watch.rows[r].base != -INFINITY &&
                        mhai_mode(worker->call, worker->scratch->rows[r].h) != MHA_HEAD_MEAN;
    if (weighs)
        row = statistics_of(worker, r, lse);
    if (row.largest == 0.0f) /* all of it went to the sink */
        row = (mha_row_statistics){.key = -1};
    if (run->shared.rows)
        run->shared.rows[index_of(worker, r)] = row;
    store_top(worker, r, lse, weighs);
    if (worker->plan->columns && weighs)
        add_columns(worker, r, lse);
}

/* ------------------------------------------------------------------ heads ----- */

void mhai_watch_clear_columns(const mhai_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t heads)
{
    const mha_shape *const s = &call->shape;
    if (call->row_first == 0)
        memset(call->options.statistics->columns + (b * s->H + h) * s->S, 0,
               sizeof(float) * (size_t)(heads * s->S));
}

static void add_row(mha_head_statistics *sum, const mha_row_statistics *row)
{
    sum->entropy += (double)row->entropy;
    sum->largest += (double)row->largest;
    sum->distance += (double)row->distance;
    sum->self += (double)row->self;
    sum->previous += (double)row->previous;
    sum->next += (double)row->next;
    sum->first += (double)row->first;
    sum->mass += (double)row->mass;
    sum->rows++;
}

void mhai_watch_head(const mhai_run *run, ptrdiff_t number)
{
    const mha_shape *const s = &run->call->shape;
    const ptrdiff_t queries = mhai_batch_of(run->call, number / s->H).queries;
    const ptrdiff_t rows = run->call->row_last ? mhai_min(queries, run->call->row_last) : queries;
    mha_head_statistics mean = {0};
    for (ptrdiff_t i = 0; i < rows; i++)
        if (run->shared.rows[number * s->L + i].key >= 0)
            add_row(&mean, &run->shared.rows[number * s->L + i]);
    double *const all[] = {&mean.entropy,  &mean.largest, &mean.distance, &mean.self,
                           &mean.previous, &mean.next,    &mean.first,    &mean.mass};
    for (int n = 0; mean.rows > 0 && n < 8; n++)
        *all[n] /= (double)mean.rows;
    run->call->options.statistics->heads[number] = mean;
}

/* ------------------------------------------------------------------ check ----- */

mha_status mhai_check_statistics(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    const mha_statistics *const s = o->statistics;
    if (!s)
        return MHA_OK;
    if ((uintptr_t)s % sizeof(void *))
        return mhai_fail(o, MHA_ERR_ALIGN, "options.statistics is not aligned");
    if (s->size != sizeof *s)
        return mhai_fail(o, MHA_ERR_STRUCT,
                         "options.statistics->size is %zu; set it to sizeof(mha_statistics)",
                         s->size);
    if (s->first_keys < 0 || s->top < 0 || s->top > MHAI_MAX_TOP)
        return mhai_fail(o, MHA_ERR_INDEX,
                         "options.statistics has first_keys %td and top %td; they are at least 0, "
                         "top at most %d",
                         s->first_keys, s->top, MHAI_MAX_TOP);
    return MHA_OK;
}

/* [B][H][rows] of `width` elements each. */
static void add_array(mhai_regions *list, const mha_shape *shape, const char *name, void *data,
                      ptrdiff_t rows, ptrdiff_t width, mha_dtype type)
{
    mha_view view = {data, 0, 0, width};
    if (!data)
        return;
    /* Strides that do not fit are found to be too large by those who add them up. */
    if (__builtin_mul_overflow(rows, width, &view.sh))
        view.sh = PTRDIFF_MAX;
    if (__builtin_mul_overflow(shape->H, view.sh, &view.sb))
        view.sb = PTRDIFF_MAX;
    mhai_regions_rows(list, true, name, view, type, shape->H, rows, width, NULL);
}

void mhai_statistics_regions(mhai_regions *list, const mhai_call *call)
{
    const mha_statistics *const s = call->options.statistics;
    const mha_shape *const shape = &call->shape;
    const ptrdiff_t eights = (ptrdiff_t)sizeof(double); /* records hold nothing wider */
    if (!s)
        return;
    add_array(list, shape, "statistics.rows", s->rows, shape->L,
              (ptrdiff_t)sizeof *s->rows / eights, MHA_F64);
    add_array(list, shape, "statistics.heads", s->heads, 1, (ptrdiff_t)sizeof *s->heads / eights,
              MHA_F64);
    add_array(list, shape, "statistics.columns", s->columns, 1, shape->S, MHA_F32);
    add_array(list, shape, "statistics.top_keys", s->top_keys, shape->L, s->top, MHA_F64);
    add_array(list, shape, "statistics.top_weights", s->top_weights, shape->L, s->top, MHA_F32);
}
