/* SPDX-License-Identifier: MIT */
/*
 * The operator's backward pass. With p the weights, s the scores and delta = d_o . o - d_lse:
 *
 *      d_v = p^T . d_o                d_p = d_o . v^T             d_s = p * (d_p - delta)
 *      d_q = scale * d_s . k          d_k = scale * d_s^T . q
 *
 *      for each block of MHAK_BLOCK keys               their d_k, d_v collect in the scratch
 *          for each head that reads them
 *              for each tile of MHAI_BACK_ROWS rows    its d_q is added to the output
 *                  mask -> scores -> weights -> gradients
 *
 * Weights are computed again from the log-sum-exp, in one pass: five products. A unit of work has
 * whole heads, so that every sum is made by one worker in one order.
 */
#include "core/backward.h"

#include <math.h>
#include <string.h>

typedef struct back_task {
    const mhai_backward *pass;
    const mhai_back_scratch *scratch;
    const mhak_table *kernels;
    mhai_worker worker;
    mhai_block block;
    bool packed;      /* are values and key columns of the block packed? */
    bool keys_finite; /* if so: is every key finite? */
    int count;        /* rows of the tile, in scratch->tile.rows */
    int first, last;  /* keys of the block that any of them sees */
    mhai_cover cover;
} back_task;

static ptrdiff_t panel_columns(const back_task *task)
{
    return mhai_round_up(task->pass->call.shape.D, task->kernels->nr);
}

/* ---------------------------------------------------------------- delta ----- */

enum { DELTA_ROWS = 16 }; /* rows whose deltas are computed at once */

/* d_o . o of `count` rows from row i on. */
static void dot_outputs(const mhai_backward *pass, const mhai_batch *batch, ptrdiff_t h,
                        ptrdiff_t i, int count, double *dots)
{
    float o[MHA_MAX_HEAD_WIDTH], d_o[MHA_MAX_HEAD_WIDTH];
    const mha_shape *const shape = &pass->call.shape;
    const mha_gradients *const g = &pass->gradients;
    const mhak_table *const kernels = pass->plan.kernels;
    const void *const at =
        mhai_at(pass->o.data, shape->o_type, mhai_q_index(&pass->call, batch, &pass->o, h, i));
    const void *const d_at =
        mhai_at(g->d_o.data, g->d_o_type, mhai_q_index(&pass->call, batch, &g->d_o, h, i));
    const int dv = (int)shape->Dv;
    if (shape->o_type == MHA_F32 && g->d_o_type == MHA_F32) {
        kernels->dot_rows(at, pass->o.sl, d_at, g->d_o.sl, count, dv, dots);
        return;
    }
    for (int r = 0; r < count; r++) {
        kernels->load_row[shape->o_type](mhai_at(at, shape->o_type, r * pass->o.sl), dv, 1.0f, o);
        kernels->load_row[g->d_o_type](mhai_at(d_at, g->d_o_type, r * g->d_o.sl), dv, 1.0f, d_o);
        kernels->dot_rows(o, 0, d_o, 0, 1, dv, &dots[r]);
    }
}

/* delta of `count` rows from row i on; adds them to the gradient of the sink. */
static void delta_of(const mhai_backward *pass, const mhai_batch *batch, ptrdiff_t h, ptrdiff_t i,
                     int count, double *sink)
{
    const mha_view *const d_lse = &pass->gradients.d_lse;
    const float *const sinks = pass->call.options.sinks;
    float *const delta = mhai_back_delta(pass, batch->b, h);
    double dots[DELTA_ROWS];
    dot_outputs(pass, batch, h, i, count, dots);
    for (int r = 0; r < count; r++) {
        if (d_lse->data)
            dots[r] -= (double)((const float *)
                                    d_lse->data)[mhai_q_index(&pass->call, batch, d_lse, h, i + r)];
        delta[i + r] = (float)dots[r];
        if (!sinks)
            continue;
        const float lse = mhai_back_lse(pass, batch, h, i + r);
        if (lse != -INFINITY)
            *sink -= exp((double)sinks[h] - (double)lse) * (double)delta[i + r];
    }
}

/* Begins a head: delta of its rows, and its sums. Right before its rows are read for the other
 * gradients, so that they are read from memory once. */
static void begin_head(const mhai_backward *pass, const mhai_batch *batch, ptrdiff_t h)
{
    double sink = 0.0;
    for (ptrdiff_t i = 0; i < batch->queries; i += DELTA_ROWS)
        delta_of(pass, batch, h, i, (int)mhai_min(DELTA_ROWS, batch->queries - i), &sink);
    double *const sums = pass->sums + MHAI_SUMS * (batch->b * pass->call.shape.H + h);
    sums[MHAI_SLOPE] = sums[MHAI_GATE] = 0.0;
    sums[MHAI_SINK] = sink;
}

/* ------------------------------------------------------ a block of keys ----- */

/* Values as panels of rows, for d_o . v^T. */
static void pack_values(const back_task *task)
{
    const mhai_call *const call = &task->pass->call;
    const int nr = task->kernels->nr, dv = (int)call->shape.Dv;
    for (int j = 0; j < task->block.keys; j += nr)
        task->kernels->pack_k[call->shape.v_type](
            mhai_at(task->block.v, call->shape.v_type, j * call->v.sl), call->v.sl,
            (int)mhai_min(nr, task->block.keys - j), dv, nr,
            task->scratch->v_panels + (ptrdiff_t)j * dv);
}

/* Sets columns [width, all) of rows to 0: kernels read whole vectors or panels. */
static void clear_columns(float *x, ptrdiff_t ld, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t all)
{
    for (ptrdiff_t r = 0; width < all && r < rows; r++)
        memset(x + r * ld + width, 0, sizeof(float) * (size_t)(all - width));
}

/* Keys, scaled, as panels of columns, for d_s . k. */
static void pack_columns(const back_task *task)
{
    const mhai_call *const call = &task->pass->call;
    const mha_dtype type = call->shape.k_type;
    const ptrdiff_t nr = task->kernels->nr, d = call->shape.D;
    for (ptrdiff_t c = 0; c < d; c += nr) {
        float *const columns = task->scratch->k_columns + c * MHAK_BLOCK;
        const ptrdiff_t width = mhai_min(nr, d - c);
        task->kernels->load_rows[type](mhai_at(task->block.k, type, c), call->k.sl,
                                       task->block.keys, (int)width, (float)call->scale, columns,
                                       nr);
        clear_columns(columns, nr, task->block.keys, width, nr);
    }
}

static bool columns_finite(const back_task *task)
{
    const ptrdiff_t nr = task->kernels->nr, rows = task->block.keys;
    bool finite = true;
    for (ptrdiff_t c = 0; c < task->pass->call.shape.D; c += nr)
        finite &= task->kernels->all_finite(task->scratch->k_columns + c * MHAK_BLOCK, rows * nr);
    return finite;
}

/* Packs the block when the first row sees it: a block that no row sees is not read. */
static void pack_block(back_task *task)
{
    if (task->packed)
        return;
    pack_values(task);
    pack_columns(task);
    task->keys_finite = columns_finite(task);
    task->packed = true;
}

/* --------------------------------------------------------- a tile of rows ----- */

void mhai_backward_load(const mhai_backward *pass, const mhai_back_scratch *scratch,
                        const mhai_worker *worker)
{
    const mha_gradients *const g = &pass->gradients;
    mhai_load_queries(worker, 0, worker->count);
    for (int r = 0, n; r < worker->count; r += n) {
        const mhai_row *const row = &scratch->tile.rows[r];
        const ptrdiff_t at = mhai_q_index(&pass->call, &worker->batch, &g->d_o, row->h, row->i);
        n = mhai_consecutive_rows(row, worker->count - r);
        pass->plan.kernels->load_rows[g->d_o_type](
            mhai_at(g->d_o.data, g->d_o_type, at), g->d_o.sl, n, (int)pass->call.shape.Dv, 1.0f,
            scratch->d_o + r * pass->plan.ldo, pass->plan.ldo);
    }
}

/* A row that sees no key of the block must add nothing to it, but 0 times NaN is NaN: so it is
 * cleared. */
static void clear_unseeing_rows(const back_task *task)
{
    const mha_plan *const plan = &task->pass->plan;
    for (int r = 0; task->cover == MHAI_SOME && r < task->count; r++) {
        uint32_t any = 0;
        for (int w = 0; w < MHAK_WORDS; w++)
            any |= task->scratch->tile.keep[r * MHAK_WORDS + w];
        if (any)
            continue;
        memset(task->scratch->tile.q + r * plan->ldq, 0, sizeof(float) * (size_t)plan->ldq);
        memset(task->scratch->d_o + r * plan->ldo, 0, sizeof(float) * (size_t)plan->ldo);
    }
}

/* The columns that the tile needs, in whole words of keep bits. */
static int first_column(const back_task *task)
{
    return task->first / 32 * 32;
}
static int column_count(const back_task *task)
{
    return task->last - first_column(task);
}

/* The weights of the tile, in tile.s: exp(score - log-sum-exp), 0 where masked. */
static void compute_weights(back_task *task)
{
    const mhai_scratch *const tile = &task->scratch->tile;
    const int from = first_column(task);
    mhai_scores(&task->worker, &task->block, 0, task->count, task->first, task->last);
    mhai_scores_cap(&task->worker, task->count, task->first, task->last);
    if (task->pass->call.options.softcap > 0.0f)
        memcpy(task->scratch->capped, tile->s,
               sizeof(float) * (size_t)task->count * (size_t)MHAK_BLOCK);
    mhai_scores_bias(&task->worker, &task->block, 0, task->count, task->first, task->last);
    for (int r = 0; r < task->count; r++) {
        const mhai_row *const row = &tile->rows[r];
        uint32_t *const keep = tile->keep + r * MHAK_WORDS;
        if (task->cover == MHAI_ALL)
            mhai_keep_range(keep, task->first, task->last);
        float *const s = tile->s + r * MHAK_BLOCK + from;
        task->kernels->exp_scale(s, column_count(task), keep + from / 32,
                                 mhai_back_lse(task->pass, &task->worker.batch, row->h, row->i),
                                 1.0f, s);
    }
}

/* The keep bits of dropout for the tile. */
static void list_dropout(const back_task *task)
{
    const mhai_scratch *const tile = &task->scratch->tile;
    const mha_options *const o = &task->pass->call.options;
    const ptrdiff_t b = task->worker.batch.b;
    if (!o->gates && mhai_drop_threshold(o) == 0)
        return; /* they are not used */
    for (int r = 0; r < task->count; r++) {
        const mhak_drop drop = mhai_drop_of(&task->pass->call, b, tile->rows[r].h);
        uint32_t *const keep = task->scratch->dropout + r * MHAK_WORDS;
        if (drop.threshold > 0)
            mhai_drop_bits(task->kernels, &task->pass->call, &drop, tile->rows[r].i,
                           task->block.base / MHAK_BLOCK, keep);
        else
            memset(keep, 0xff, sizeof(uint32_t) * MHAK_WORDS);
    }
}

static float drop_factor_of(const back_task *task)
{
    return mhai_drop_factor(mhai_drop_threshold(&task->pass->call.options));
}

/* Applies gate and dropout: the same factors for weights and for their gradients. */
static void apply_gate_and_dropout(const back_task *task, float *s)
{
    const mhai_call *const call = &task->pass->call;
    const float gate = mhai_gate(call, task->worker.batch.b, task->scratch->tile.rows[0].h);
    if (gate == 1.0f && mhai_drop_threshold(&call->options) == 0)
        return;
    const int from = first_column(task);
    for (int r = 0; r < task->count; r++)
        task->kernels->drop_apply(s + r * MHAK_BLOCK + from, column_count(task),
                                  task->scratch->dropout + r * MHAK_WORDS + from / 32,
                                  gate * drop_factor_of(task));
}

/* The gate's gradient is d_o . o before the gate: the sum of weights times their gradients. */
static void add_to_gate(const back_task *task)
{
    const ptrdiff_t b = task->worker.batch.b, H = task->pass->call.shape.H;
    double sum = 0.0;
    if (!task->pass->gradients.d_gates)
        return;
    for (int r = 0; r < task->count; r++) {
        const uint32_t *const seen = task->scratch->tile.keep + r * MHAK_WORDS;
        const uint32_t *const kept = task->scratch->dropout + r * MHAK_WORDS;
        for (int j = task->first; j < task->last; j++)
            if (seen[j / 32] & kept[j / 32] & 1u << (j % 32))
                sum += (double)task->scratch->tile.s[r * MHAK_BLOCK + j] *
                       (double)task->scratch->d[r * MHAK_BLOCK + j];
    }
    task->pass->sums[MHAI_SUMS * (b * H + task->scratch->tile.rows[0].h) + MHAI_GATE] +=
        sum * (double)drop_factor_of(task);
}

/* Gradients of the scores after bias, in scratch->d. */
static void compute_gradients(const back_task *task)
{
    const mhai_scratch *const tile = &task->scratch->tile;
    const int nr = task->kernels->nr, dv = (int)task->pass->call.shape.Dv;
    const ptrdiff_t ldo = task->pass->plan.ldo;
    for (int p = task->first / nr; p * nr < task->last; p++)
        for (int c = 0; c < dv; c += MHAK_DEPTH)
            task->kernels->product[MHA_F32](task->scratch->d_o + c, ldo,
                                            task->scratch->v_panels + ((ptrdiff_t)p * dv + c) * nr,
                                            (int)mhai_min(dv - c, MHAK_DEPTH), task->count, c > 0,
                                            task->scratch->d + p * nr, MHAK_BLOCK);
    add_to_gate(task);
    apply_gate_and_dropout(task, task->scratch->d);
    const int from = first_column(task);
    for (int r = 0; r < task->count; r++) {
        const mhai_row *const row = &tile->rows[r];
        task->kernels->score_gradient(
            tile->s + r * MHAK_BLOCK + from, task->scratch->d + r * MHAK_BLOCK + from,
            column_count(task), tile->keep + r * MHAK_WORDS + from / 32,
            mhai_back_delta(task->pass, task->worker.batch.b, row->h)[row->i]);
    }
}

static void add_to_bias(const back_task *task, const mha_out *out)
{
    if (!out->data)
        return;
    for (int r = 0; r < task->count; r++) {
        const mhai_row *const row = &task->scratch->tile.rows[r];
        float *const to = (float *)out->data + task->worker.batch.b * out->sb + row->h * out->sh +
                          row->i * out->sl + task->block.base + task->first;
        task->kernels->add_row[MHA_F32](to, task->scratch->d + r * MHAK_BLOCK + task->first,
                                        task->last - task->first);
    }
}

static void add_to_slope(const back_task *task)
{
    if (!task->pass->gradients.d_alibi_slopes)
        return;
    const ptrdiff_t b = task->worker.batch.b, H = task->pass->call.shape.H;
    for (int r = 0; r < task->count; r++) {
        const mhai_row *const row = &task->scratch->tile.rows[r];
        const float *const d = task->scratch->d + r * MHAK_BLOCK;
        double sum = 0.0;
        for (int j = task->first; j < task->last; j++) {
            const ptrdiff_t key = task->block.base + j, at = row->i + task->worker.batch.offset;
            sum -= (double)d[j] * fabs((double)(at - key));
        }
        task->pass->sums[MHAI_SUMS * (b * H + row->h) + MHAI_SLOPE] += sum;
    }
}

/* From gradients of the scores after the soft cap to those before it. */
static void uncap(const back_task *task)
{
    const float cap = task->pass->call.options.softcap;
    if (!(cap > 0.0f))
        return;
    for (int r = 0; r < task->count; r++)
        for (int j = task->first; j < task->last; j++) {
            const float t = task->scratch->capped[r * MHAK_BLOCK + j] / cap;
            float *const d = task->scratch->d + r * MHAK_BLOCK + j;
            *d = *d == 0.0f ? 0.0f : *d * (1.0f - t * t);
        }
}

/* ------------------------------------------------------------- three sums ----- */

static void key_products(const back_task *task, const float *columns, int row, int count)
{
    const ptrdiff_t nr = task->kernels->nr, width = panel_columns(task);
    for (ptrdiff_t c = 0; c < width; c += nr)
        task->kernels->product[MHA_F32](task->scratch->d + row * MHAK_BLOCK + task->first,
                                        MHAK_BLOCK, columns + c * MHAK_BLOCK + task->first * nr,
                                        task->last - task->first, count, false,
                                        task->scratch->d_q + row * width + c, width);
}

/* Zero times a masked key that is not finite is not 0. Such blocks are computed row by row, with
 * masked keys replaced by 0. */
static void careful_key_products(const back_task *task)
{
    const ptrdiff_t nr = task->kernels->nr, width = panel_columns(task);
    for (int r = 0; r < task->count; r++) {
        const uint32_t *const keep = task->scratch->tile.keep + r * MHAK_WORDS;
        memcpy(task->scratch->cleaned, task->scratch->k_columns,
               sizeof(float) * (size_t)(width * MHAK_BLOCK));
        for (ptrdiff_t j = task->first; j < task->last; j++)
            for (ptrdiff_t c = 0; !(keep[j / 32] >> (j % 32) & 1u) && c < width; c += nr)
                memset(task->scratch->cleaned + c * MHAK_BLOCK + j * nr, 0,
                       sizeof(float) * (size_t)nr);
        key_products(task, task->scratch->cleaned, r, 1);
    }
}

static void add_to_queries(const back_task *task)
{
    const mhai_backward *const pass = task->pass;
    const mha_view d_q = mhai_as_view(pass->gradients.d_q);
    if (!d_q.data)
        return;
    if (task->keys_finite || task->cover == MHAI_ALL)
        key_products(task, task->scratch->k_columns, 0, task->count);
    else
        careful_key_products(task);
    for (int r = 0; r < task->count; r++) {
        const mhai_row *const row = &task->scratch->tile.rows[r];
        float *const to = (float *)pass->gradients.d_q.data +
                          mhai_q_index(&pass->call, &task->worker.batch, &d_q, row->h, row->i);
        task->kernels->add_row[MHA_F32](to, task->scratch->d_q + r * panel_columns(task),
                                        (int)pass->call.shape.D);
    }
}

static void add_to_keys(const back_task *task)
{
    const mhai_backward *const pass = task->pass;
    const mha_plan *const plan = &pass->plan;
    const int vector = task->kernels->vector, keys = task->last - task->first;
    if (pass->gradients.d_v.data)
        task->kernels->product_transposed(task->scratch->tile.s + task->first, MHAK_BLOCK,
                                          task->scratch->d_o, plan->ldo, task->count, keys,
                                          (int)mhai_round_up(pass->call.shape.Dv, vector),
                                          task->scratch->d_v + task->first * plan->ldo, plan->ldo);
    if (pass->gradients.d_k.data)
        task->kernels->product_transposed(task->scratch->d + task->first, MHAK_BLOCK,
                                          task->scratch->tile.q, plan->ldq, task->count, keys,
                                          (int)mhai_round_up(pass->call.shape.D, vector),
                                          task->scratch->d_k + task->first * plan->ldq, plan->ldq);
}

/* One tile of rows of head h against the block. */
static void run_tile(back_task *task, ptrdiff_t h, ptrdiff_t i)
{
    const mhai_call *const call = &task->pass->call;
    task->count = (int)mhai_min(MHAI_BACK_ROWS, task->worker.batch.queries - i);
    task->worker.count = task->count;
    for (int r = 0; r < task->count; r++) {
        mhai_row *const row = &task->scratch->tile.rows[r];
        *row = (mhai_row){.h = h, .i = i + r};
        mhai_row_range(call, &task->worker.batch, row);
    }
    task->cover = mhai_mask_block(call, task->kernels, &task->worker.batch,
                                  task->scratch->tile.rows, task->count, task->block.base,
                                  task->scratch->tile.keep, &task->first, &task->last);
    if (task->cover == MHAI_NONE)
        return;
    pack_block(task);
    list_dropout(task);
    mhai_backward_load(task->pass, task->scratch, &task->worker);
    clear_unseeing_rows(task);
    compute_weights(task);
    compute_gradients(task);
    add_to_bias(task, &task->pass->gradients.d_bias);
    add_to_bias(task, &task->pass->gradients.d_add_mask);
    add_to_slope(task);
    uncap(task);
    add_to_queries(task);
    apply_gate_and_dropout(task, task->scratch->tile.s);
    add_to_keys(task);
}

/* ------------------------------------------------------------------ units ----- */

static void store_keys(const back_task *task, const mha_out *out, const float *from, ptrdiff_t ld,
                       ptrdiff_t width, int count)
{
    const mha_view view = mhai_as_view(*out);
    if (out->data)
        task->kernels->load_rows[MHA_F32](from, ld, count, (int)width, 1.0f,
                                          (float *)out->data +
                                              mhai_k_index(&task->pass->call, &task->worker.batch,
                                                           &view, task->worker.g, task->block.base),
                                          out->sl);
}

/* A head whose gate is 0 has no gradients, except possibly those of the gate and of the
 * log-sum-exp. */
static bool closed(const back_task *task, ptrdiff_t h)
{
    return !task->pass->gradients.d_gates && !task->pass->gradients.d_lse.data &&
           mhai_gate(&task->pass->call, task->worker.batch.b, h) == 0.0f;
}

static void run_block(back_task *task, ptrdiff_t base, ptrdiff_t all_keys)
{
    const mhai_backward *const pass = task->pass;
    const mha_shape *const shape = &pass->call.shape;
    const ptrdiff_t group = shape->H / shape->G, h = task->worker.g * group;
    const int count = (int)mhai_min(MHAK_BLOCK, all_keys - base);
    memset(task->scratch->d_k, 0, sizeof(float) * (size_t)(count * pass->plan.ldq));
    memset(task->scratch->d_v, 0, sizeof(float) * (size_t)(count * pass->plan.ldo));
    task->packed = false;
    task->block = (mhai_block){.base = base};
    if (base < task->worker.batch.keys) {
        task->block = mhai_block_at(&task->worker, base);
        task->block.reuse_panel = false;
        for (ptrdiff_t n = 0; n < group; n++)
            for (ptrdiff_t i = closed(task, h + n) ? task->worker.batch.queries : 0;
                 i < task->worker.batch.queries; i += MHAI_BACK_ROWS)
                run_tile(task, h + n, i);
    }
    store_keys(task, &pass->gradients.d_k, task->scratch->d_k, pass->plan.ldq, shape->D, count);
    store_keys(task, &pass->gradients.d_v, task->scratch->d_v, pass->plan.ldo, shape->Dv, count);
}

/* Rows of a batch in its tensors, including those past its length. */
static ptrdiff_t whole(const int64_t *starts, ptrdiff_t b, ptrdiff_t extent)
{
    return starts ? (ptrdiff_t)(starts[b + 1] - starts[b]) : extent;
}

static void clear_queries(const back_task *task)
{
    const mhai_backward *const pass = task->pass;
    const mha_shape *const shape = &pass->call.shape;
    const mha_view d_q = mhai_as_view(pass->gradients.d_q);
    const ptrdiff_t group = shape->H / shape->G, b = task->worker.batch.b;
    const ptrdiff_t rows = whole(pass->call.options.q_starts, b, shape->L);
    for (ptrdiff_t n = 0; d_q.data && n < group * rows; n++) {
        const ptrdiff_t at = mhai_q_index(&pass->call, &task->worker.batch, &d_q,
                                          task->worker.g * group + n / rows, n % rows);
        memset((float *)pass->gradients.d_q.data + at, 0, sizeof(float) * (size_t)shape->D);
    }
}

static void run_group(const mhai_backward *pass, const mhai_back_scratch *scratch, ptrdiff_t b,
                      ptrdiff_t g)
{
    back_task task = {.pass = pass, .scratch = scratch, .kernels = pass->plan.kernels};
    task.worker = (mhai_worker){.plan = &pass->plan,
                                .call = &pass->call,
                                .scratch = &scratch->tile,
                                .batch = mhai_batch_of(&pass->call, b),
                                .g = g,
                                .count = MHAI_BACK_ROWS};
    const ptrdiff_t keys = whole(pass->call.options.k_starts, b, pass->call.shape.S);
    const ptrdiff_t group = pass->call.shape.H / pass->call.shape.G;
    for (ptrdiff_t n = 0; n < group; n++)
        begin_head(pass, &task.worker.batch, g * group + n);
    clear_queries(&task);
    for (ptrdiff_t base = 0; base < keys; base += MHAK_BLOCK)
        run_block(&task, base, keys);
    if (pass->call.extra.k)
        mhai_backward_extras(pass, scratch, &task.worker);
}

static void clear_bias(const mhai_backward *pass, const mha_out *out, ptrdiff_t b, ptrdiff_t h)
{
    const mha_shape *const shape = &pass->call.shape;
    const ptrdiff_t rows = out->sl == 0 ? 1 : shape->L; /* one row for all, even where L is 0 */
    for (ptrdiff_t i = 0; out->data && i < rows; i++)
        memset((float *)out->data + b * out->sb + h * out->sh + i * out->sl, 0,
               sizeof(float) * (size_t)shape->S);
}

void mhai_backward_unit(const mhai_backward *pass, const mhai_back_scratch *scratch, ptrdiff_t unit)
{
    const mha_shape *const shape = &pass->call.shape;
    const ptrdiff_t group = shape->H / shape->G;
    const ptrdiff_t groups = pass->joins_heads ? shape->G : 1;
    const ptrdiff_t batches = pass->joins_batches ? shape->B : 1;
    const ptrdiff_t g = pass->joins_heads ? 0 : unit % shape->G;
    const ptrdiff_t b = pass->joins_batches ? 0 : unit / (pass->joins_heads ? 1 : shape->G);
    for (ptrdiff_t n = 0; n < batches * groups * group; n++) {
        const ptrdiff_t at = b + n / (groups * group), h = g * group + n % (groups * group);
        clear_bias(pass, &pass->gradients.d_bias, at, h);
        clear_bias(pass, &pass->gradients.d_add_mask, at, h);
    }
    const ptrdiff_t rows = mhai_min(MHAI_BACK_ROWS, shape->L), vector = pass->plan.kernels->vector;
    clear_columns(scratch->tile.q, pass->plan.ldq, rows, shape->D, mhai_round_up(shape->D, vector));
    clear_columns(scratch->d_o, pass->plan.ldo, rows, shape->Dv, pass->plan.ldo);
    for (ptrdiff_t n = 0; n < batches * groups; n++)
        run_group(pass, scratch, b + n / groups, g + n % groups);
}

/* -------------------------------------------------------------- workspace ----- */

mhai_back_scratch mhai_back_scratch_take(const mhai_backward *pass, mhai_work *work)
{
    const mha_shape *const shape = &pass->call.shape;
    const size_t rows = MHAI_BACK_ROWS, scores = rows * MHAK_BLOCK;
    const size_t columns = (size_t)mhai_round_up(shape->D, pass->plan.kernels->nr);
    const size_t ldq = (size_t)pass->plan.ldq, ldo = (size_t)pass->plan.ldo;
    mhai_back_scratch s = {0};
    s.tile.rows = mhai_work_take(work, rows, sizeof(mhai_row));
    s.tile.q = mhai_work_take(work, rows * ldq, sizeof(float));
    s.tile.s = mhai_work_take(work, scores, sizeof(float));
    s.tile.keep = mhai_work_take(work, rows * MHAK_WORDS, sizeof(uint32_t));
    s.tile.k_panels = mhai_work_take(work, (size_t)shape->D * MHAK_BLOCK, sizeof(float));
    s.d = mhai_work_take(work, scores, sizeof(float));
    s.capped = mhai_work_take(work, pass->call.options.softcap > 0.0f ? scores : 0, sizeof(float));
    s.dropout = mhai_work_take(work, rows * MHAK_WORDS, sizeof(uint32_t));
    s.d_o = mhai_work_take(work, rows * ldo, sizeof(float));
    s.v_panels = mhai_work_take(work, (size_t)shape->Dv * MHAK_BLOCK, sizeof(float));
    s.k_columns = mhai_work_take(work, columns * MHAK_BLOCK, sizeof(float));
    s.cleaned = mhai_work_take(work, columns * MHAK_BLOCK, sizeof(float));
    s.d_q = mhai_work_take(work, rows * columns, sizeof(float));
    s.d_k = mhai_work_take(work, MHAK_BLOCK * ldq, sizeof(float));
    s.d_v = mhai_work_take(work, MHAK_BLOCK * ldo, sizeof(float));
    return s;
}
