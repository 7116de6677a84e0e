/* SPDX-License-Identifier: MIT */
/*
 * Statistics of rows, heads and keys, gathered while the output is computed.
 *
 *      begin      the rows of a task have seen no key
 *      fold       a tile of scores becomes p = exp(s - m) and is added to the sums of its rows. For
 *                 columns p is held until the sums of the rows are known
 *      row        the row's log-sum-exp is known: its sums become statistics
 *      columns    held p become weights and are added to their keys, in ascending order of rows
 *      head       means over the rows of a head
 *
 * A head that returns a mean (MHA_HEAD_MEAN) has no weights and no statistics.
 *
 * The sums of a row are relative to the largest m so far, since m starts again with every split.
 * They are added in the order of the keys: the bits depend on the length of a vector only.
 */
#include "core/statistics.h"

#include "core/cache.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------- workspace ----- */

ptrdiff_t mhai_statistics_blocks(const mhai_call *call)
{
    const ptrdiff_t all = mhai_ceil_div(call->shape.S, MHAK_BLOCK);
    const bool ring = call->cache && call->cache->config.kind == MHA_CACHE_RING;
    /* The tokens that a ring keeps can begin anywhere in a block. */
    return ring ? mhai_min(all, mhai_ceil_div(call->cache->page_tokens, MHAK_BLOCK) + 1) : all;
}

/* The place where a block of a row is held. */
static ptrdiff_t slot_of(const mhai_worker *worker, int r, ptrdiff_t block)
{
    const ptrdiff_t blocks = worker->plan->column_blocks;
    return r * blocks + block % blocks;
}

/* Room for a list of the largest scores. */
static ptrdiff_t top_room(const mha_plan *plan)
{
    return mhai_round_up(plan->top, plan->kernels->vector);
}

mhai_statistics_scratch mhai_statistics_take(const mha_plan *plan, mhai_work *work)
{
    mhai_statistics_scratch w = {0};
    if (!plan->statistics)
        return w;
    const size_t rows = (size_t)plan->task_rows, vector = (size_t)plan->kernels->vector;
    const size_t top = (size_t)top_room(plan),
                 blocks = plan->columns ? (size_t)plan->column_blocks : 0;
    w.rows = mhai_work_take(work, rows, sizeof *w.rows);
    w.sums = mhai_work_take(work, rows * MHAK_SUMS * vector, sizeof(float));
    w.base = mhai_work_take(work, rows, sizeof(float));
    w.best = mhai_work_take(work, rows, sizeof(float));
    w.best_key = mhai_work_take(work, rows, sizeof(int64_t));
    w.anchor = mhai_work_take(work, rows, sizeof(int64_t));
    w.top_scores = mhai_work_take(work, rows * top, sizeof(float));
    w.top_keys = mhai_work_take(work, rows * top, sizeof(int32_t));
    w.held = mhai_work_take(work, rows * blocks * MHAK_BLOCK, sizeof(float));
    w.bases = mhai_work_take(work, rows * blocks, sizeof(float));
    return w;
}

static ptrdiff_t first_keys(const mhai_call *call)
{
    const ptrdiff_t count = call->options.statistics->first_keys;
    return count ? count : 1;
}

/* ----------------------------------------------------------------- begin ----- */

static ptrdiff_t position_of(const mhai_worker *worker, int r)
{
    return worker->scratch->rows[r].i + worker->batch.offset;
}

static float *sums_of(const mhai_worker *worker, int r, int which)
{
    return worker->scratch->statistics.sums +
           ((ptrdiff_t)r * MHAK_SUMS + which) * worker->plan->kernels->vector;
}

static void begin_row(const mhai_worker *worker, int r)
{
    const mha_plan *const plan = worker->plan;
    const mhai_statistics_scratch *const w = &worker->scratch->statistics;
    const ptrdiff_t room = top_room(plan);
    w->rows[r] =
        (mhai_statistics_state){.near = {-INFINITY, -INFINITY, -INFINITY}, .first_base = -INFINITY};
    memset(sums_of(worker, r, 0), 0, sizeof(float) * (size_t)(MHAK_SUMS * plan->kernels->vector));
    w->base[r] = w->best[r] = -INFINITY;
    /* Within the keys, so that f32 can represent the distances. */
    w->anchor[r] = mhai_max(0, mhai_min(position_of(worker, r), worker->batch.keys));
    for (ptrdiff_t n = r * room; n < (r + 1) * room; n++) {
        w->top_scores[n] = -INFINITY;
        w->top_keys[n] = -1;
    }
    for (ptrdiff_t n = 0; plan->columns && n < plan->column_blocks; n++)
        w->bases[r * plan->column_blocks + n] = -INFINITY;
}

void mhai_statistics_begin(const mhai_worker *worker)
{
    for (int r = 0; worker->plan->statistics && r < worker->count; r++)
        begin_row(worker, r);
}

/* ------------------------------------------------------------------ fold ----- */

/* A tile: rows [row, row + count) and keys [first, last) of a block. */
typedef struct score_tile {
    const mhai_worker *worker;
    ptrdiff_t base; /* key 0 of the block */
    int row, count, first, last;
    const uint32_t *keep; /* NULL: all keys are seen */
} score_tile;

static const float *scores_of(const score_tile *tile, int r)
{
    return tile->worker->scratch->s + r * MHAK_BLOCK;
}

static bool kept(const score_tile *tile, int r, ptrdiff_t j)
{
    return j >= tile->first && j < tile->last &&
           (!tile->keep || (tile->keep[r * MHAK_WORDS + j / 32] >> (j % 32) & 1u));
}

static void record_near_key(const score_tile *tile, int r, int n)
{
    const ptrdiff_t j = position_of(tile->worker, tile->row + r) - 1 + n - tile->base;
    if (kept(tile, r, j))
        tile->worker->scratch->statistics.rows[tile->row + r].near[n] = scores_of(tile, r)[j];
}

static void record_near(const score_tile *tile)
{
    for (int r = 0; r < tile->count; r++)
        for (int n = 0; n < 3; n++)
            record_near_key(tile, r, n);
}

static void add_first_keys_of(mhai_statistics_state *row, const float *p, int first, ptrdiff_t end,
                              float m)
{
    double sum = 0.0;
    for (ptrdiff_t j = first; j < end; j++)
        sum += (double)p[j];
    const double before = (double)row->first_base, base = fmax(before, (double)m);
    row->first =
        (row->first > 0.0 ? row->first * exp(before - base) : 0.0) + sum * exp((double)m - base);
    row->first_base = (float)base;
}

static void add_first_keys(const score_tile *tile, const float *m)
{
    const ptrdiff_t end = mhai_min(tile->last, first_keys(tile->worker->call) - tile->base);
    for (int r = 0; tile->first < end && r < tile->count; r++)
        if (m[r] > -INFINITY)
            add_first_keys_of(&tile->worker->scratch->statistics.rows[tile->row + r],
                              scores_of(tile, r), tile->first, end, m[r]);
}

/* Completes the p that fold has held: those of keys that no row sees become 0. */
static void hold_weights(const score_tile *tile, const float *m)
{
    const mhai_statistics_scratch *const w = &tile->worker->scratch->statistics;
    const size_t before = sizeof(float) * (size_t)tile->first;
    const size_t after = sizeof(float) * (size_t)(MHAK_BLOCK - tile->last);
    for (int r = 0; tile->worker->plan->columns && r < tile->count; r++) {
        const ptrdiff_t slot = slot_of(tile->worker, tile->row + r, tile->base / MHAK_BLOCK);
        float *const held = w->held + slot * MHAK_BLOCK;
        if (before + after > 0) {
            memset(held, 0, before);
            memset(held + tile->last, 0, after);
        }
        w->bases[slot] = m[r];
    }
}

static mhak_statistics statistics_at(const score_tile *tile)
{
    const mha_plan *const plan = tile->worker->plan;
    const mhai_statistics_scratch *const w = &tile->worker->scratch->statistics;
    const int row = tile->row;
    mhak_statistics statistics = {.sums = sums_of(tile->worker, row, 0),
                                  .base = w->base + row,
                                  .best = w->best + row,
                                  .best_key = w->best_key + row,
                                  .anchor = w->anchor + row,
                                  .key = tile->base,
                                  .top = (int)plan->top,
                                  .top_scores = w->top_scores + row * top_room(plan),
                                  .top_keys = w->top_keys + row * top_room(plan)};
    if (plan->columns) {
        statistics.held =
            w->held + slot_of(tile->worker, row, tile->base / MHAK_BLOCK) * MHAK_BLOCK;
        statistics.held_stride = plan->column_blocks * MHAK_BLOCK;
    }
    return statistics;
}

void mhai_statistics_fold(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                          int last, const uint32_t *keep, const mhak_hold *scores,
                          const mhai_state *state)
{
    const score_tile tile = {worker, base, row, count, first, last, keep};
    mhak_statistics statistics = statistics_at(&tile);
    statistics.hold = scores;
    float *const m = state->m + row;
    record_near(&tile);
    worker->plan->kernels->fold_statistics(worker->scratch->s, count, first, last, keep, m,
                                           state->l + row, worker->scratch->alpha, &statistics);
    add_first_keys(&tile, m);
    hold_weights(&tile, m);
}

/* ------------------------------------------------------------------- row ----- */

static double sum_lanes(const float *lanes, int count)
{
    double sum = 0.0;
    for (int n = 0; n < count; n++)
        sum += (double)lanes[n];
    return sum;
}

static float weight_of(float score, double lse)
{
    return (float)exp((double)score - lse);
}

static mha_row_statistics statistics_of(const mhai_worker *worker, int r, double lse)
{
    const mhai_statistics_scratch *const w = &worker->scratch->statistics;
    const mhai_statistics_state *const row = &w->rows[r];
    const int vector = worker->plan->kernels->vector;
    const double base = (double)w->base[r],
                 factor = exp(base - lse); /* factor: from p to weights */
    const double mass = sum_lanes(sums_of(worker, r, MHAK_MASS), vector);
    const double energy = sum_lanes(sums_of(worker, r, MHAK_ENERGY), vector);
    const double reach = sum_lanes(sums_of(worker, r, MHAK_REACH), vector);
    const double outside = fabs((double)(position_of(worker, r) - w->anchor[r]));
    const double entropy = -factor * (energy + (base - lse) * mass);
    return (mha_row_statistics){
        .entropy = entropy < 0.0 ? 0.0f : (float)entropy,
        .largest = weight_of(w->best[r], lse),
        .distance = (float)(factor * (reach + outside * mass)),
        .self = weight_of(row->near[1], lse),
        .previous = weight_of(row->near[0], lse),
        .next = weight_of(row->near[2], lse),
        .first = row->first > 0.0 ? (float)(row->first * exp((double)row->first_base - lse)) : 0.0f,
        .mass = (float)(factor * mass),
        .key = w->best_key[r]};
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
    const ptrdiff_t from = r * top_room(worker->plan);
    const mhai_statistics_scratch *const w = &worker->scratch->statistics;
    for (ptrdiff_t n = 0; n < top; n++) {
        const int64_t key = w->top_keys[from + n];
        const float weight = weighs && key >= 0 ? weight_of(w->top_scores[from + n], lse) : 0.0f;
        if (to->top_keys)
            to->top_keys[at + n] = weight == 0.0f ? -1 : key;
        if (to->top_weights)
            to->top_weights[at + n] = weight;
    }
}

/* to[j] += held[j] * factor. The last ones go through a buffer, with the same roundings. */
static void add_held(const mhak_table *kernels, float *to, const float *held, ptrdiff_t count,
                     float factor)
{
    float rest[MHAK_MAX_VECTOR] = {0};
    const ptrdiff_t whole = count - count % kernels->vector;
    const size_t left = sizeof(float) * (size_t)(count - whole);
    kernels->add_scaled(to, held, whole, factor);
    if (left == 0)
        return;
    memcpy(rest, to + whole, left);
    kernels->add_scaled(rest, held + whole, kernels->vector, factor);
    memcpy(to + whole, rest, left);
}

/* How many blocks, from n on and below `end`, lie side by side and have the same base. */
static ptrdiff_t run_of(const mhai_worker *worker, int r, ptrdiff_t n, ptrdiff_t end)
{
    const float *const bases = worker->scratch->statistics.bases;
    const ptrdiff_t slot = slot_of(worker, r, n);
    ptrdiff_t count = 1;
    while (n + count < end && slot_of(worker, r, n + count) == slot + count &&
           bases[slot + count] == bases[slot])
        count++;
    return count;
}

/* Adds the held p of one row, as weights, to the columns of their keys. */
static void add_columns(const mhai_worker *worker, int r, double lse)
{
    const mha_shape *const shape = &worker->call->shape;
    const mhai_row *const row = &worker->scratch->rows[r];
    const mhai_statistics_scratch *const w = &worker->scratch->statistics;
    const ptrdiff_t end = mhai_ceil_div(row->last, MHAK_BLOCK);
    float *const to = worker->call->options.statistics->columns +
                      (worker->batch.b * shape->H + row->h) * shape->S;
    for (ptrdiff_t n = row->first / MHAK_BLOCK, blocks; n < end; n += blocks) {
        const ptrdiff_t slot = slot_of(worker, r, n), key = n * MHAK_BLOCK;
        blocks = run_of(worker, r, n, end);
        if (w->bases[slot] != -INFINITY)
            add_held(worker->plan->kernels, to + key, w->held + slot * MHAK_BLOCK,
                     mhai_min(blocks * MHAK_BLOCK, shape->S - key),
                     (float)exp((double)w->bases[slot] - lse));
    }
}

void mhai_statistics_row(const mhai_run *run, const mhai_worker *worker, int r, float m, float l,
                         bool seen)
{
    if (!worker->plan->statistics)
        return;
    const double lse = (double)m + log((double)l);
    mha_row_statistics row = {.key = -1};
    const bool weighs = seen && worker->scratch->statistics.base[r] != -INFINITY &&
                        mhai_mode(worker->call, worker->scratch->rows[r].h) != MHA_HEAD_MEAN;
    if (weighs)
        row = statistics_of(worker, r, lse);
    if (row.largest == 0.0f) /* the sink has all of it */
        row = (mha_row_statistics){.key = -1};
    if (run->shared.rows)
        run->shared.rows[index_of(worker, r)] = row;
    store_top(worker, r, lse, weighs);
    if (worker->plan->columns && weighs)
        add_columns(worker, r, lse);
}

/* ------------------------------------------------------------------ heads ----- */

void mhai_statistics_clear_columns(const mhai_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t heads)
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

void mhai_statistics_head(const mhai_run *run, ptrdiff_t number)
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
    if (s->first_keys < 0 || s->top < 0 || s->top > MHAK_MAX_TOP)
        return mhai_fail(
            o, MHA_ERR_INDEX,
            "options.statistics has first_keys %td and top %td; they must be at least 0, "
            "top at most %d",
            s->first_keys, s->top, MHAK_MAX_TOP);
    if (s->top > 0 && call->shape.S > INT32_MAX)
        return mhai_fail(
            o, MHA_ERR_OVERFLOW,
            "options.statistics lists the largest weights of up to %d keys, not of %td", INT32_MAX,
            call->shape.S);
    return MHA_OK;
}

/* [B][H][rows] of `width` elements each. */
static void add_array(mhai_regions *list, const mha_shape *shape, const char *name, void *data,
                      ptrdiff_t rows, ptrdiff_t width, mha_dtype type)
{
    mha_view view = {data, 0, 0, width};
    if (!data)
        return;
    /* Strides that overflow are replaced by ones that the check of the regions finds too large. */
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
    const ptrdiff_t eights = (ptrdiff_t)sizeof(double); /* no field of the records is wider */
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
