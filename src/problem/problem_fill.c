/* SPDX-License-Identifier: MIT */
/*
 * What problem_build.c puts into tensors: boolean masks, additive masks, and the numbers of q, k
 * and v. Inputs that are not filled stay NaN, so a read of them shows in the result.
 */
#include "problem/problem_fill.h"

#include <math.h>

#include "format/convert.h"
#include "problem/problem_masks.h"

enum { MINUS_INF_PERCENT = 8, EMPTY_BLOCK_PERCENT = 50 };

static void put(problem *p, tensor_id id, ptrdiff_t row, ptrdiff_t j, double value)
{
    const ptrdiff_t *const n = p->tensors[id].n;
    problem_set(p, id, row / n[2] / n[1], row / n[2] % n[1], row % n[2], j, value);
}

static ptrdiff_t row_count(const problem *p, tensor_id id)
{
    const ptrdiff_t *const n = p->tensors[id].n;
    return n[0] * n[1] * n[2];
}

/* ----------------------------------------------------------------- masks ----- */

/* A byte of a boolean mask: anything but 0 is true. */
static double truth(tensor_id id, bool attended, rng *random)
{
    static const unsigned char truths[] = {1, 255, 128, 2};
    return attended == (id == TENSOR_ATTEND) ? truths[rng_below(random, 4)] : 0;
}

void fill_bool_percent(problem *p, tensor_id id, int percent, rng *random)
{
    for (ptrdiff_t row = 0; row < row_count(p, id); row++)
        for (ptrdiff_t j = 0; j < p->tensors[id].n[3]; j++)
            put(p, id, row, j, rng_chance(random, percent) == (id == TENSOR_ATTEND));
}

/* Calls back for every key of every row, in runs whose lengths make whole blocks, single keys or
 * all keys of a row masked. */
static void each_run(problem *p, tensor_id id, rng *random,
                     void (*mark)(problem *, tensor_id, ptrdiff_t, ptrdiff_t, bool, rng *))
{
    const int64_t longest = (int64_t)1 << rng_below(random, 10);
    const int64_t density = 1 + rng_below(random, 8);
    const ptrdiff_t keys = p->tensors[id].n[3];
    for (ptrdiff_t row = 0; row < row_count(p, id); row++) {
        for (ptrdiff_t j = 0; j < keys;) {
            const bool masked = rng_below(random, 9) < density;
            for (int64_t left = 1 + rng_below(random, longest); left > 0 && j < keys; left--, j++)
                mark(p, id, row, j, masked, random);
        }
    }
}

static void mark_byte(problem *p, tensor_id id, ptrdiff_t row, ptrdiff_t j, bool masked,
                      rng *random)
{
    put(p, id, row, j, truth(id, !masked, random));
}

static void fill_blocks(problem *p, tensor_id id, rng *random)
{
    static const int percents[] = {0, 2, 10, 50, 50, 90, 98, 100};
    const int percent = percents[rng_below(random, 8)];
    const ptrdiff_t block = (ptrdiff_t)16 << rng_below(random, 4);
    bool empty = false;
    for (ptrdiff_t row = 0; row < row_count(p, id); row++) {
        for (ptrdiff_t j = 0; j < p->tensors[id].n[3]; j++) {
            if (j % block == 0)
                empty = rng_chance(random, EMPTY_BLOCK_PERCENT);
            put(p, id, row, j, truth(id, !empty && rng_chance(random, percent), random));
        }
    }
}

void fill_bool_random(problem *p, tensor_id id, rng *random)
{
    if (rng_chance(random, 60))
        each_run(p, id, random, mark_byte);
    else
        fill_blocks(p, id, random);
}

void fill_normal(problem *p, tensor_id id, double deviation, rng *random)
{
    for (ptrdiff_t row = 0; row < row_count(p, id); row++)
        for (ptrdiff_t j = 0; j < p->tensors[id].n[3]; j++)
            put(p, id, row, j, deviation * rng_normal(random));
}

static void mark_infinity(problem *p, tensor_id id, ptrdiff_t row, ptrdiff_t j, bool masked,
                          rng *random)
{
    (void)random;
    if (masked)
        put(p, id, row, j, -(double)INFINITY);
}

void fill_minus_infinity(problem *p, tensor_id id, rng *random)
{
    if (rng_chance(random, 60)) {
        each_run(p, id, random, mark_infinity);
        return;
    }
    for (ptrdiff_t row = 0; row < row_count(p, id); row++)
        for (ptrdiff_t j = 0; j < p->tensors[id].n[3]; j++)
            if (rng_chance(random, MINUS_INF_PERCENT))
                put(p, id, row, j, -(double)INFINITY);
}

/* ---------------------------------------------------------------- inputs ----- */

/* Rows [first, first + count) of one head of one batch. */
static void fill_rows(problem *p, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t first,
                      ptrdiff_t count, double deviation, rng *random)
{
    const tensor *const t = &p->tensors[id];
    const mha_dtype type = problem_type(p, id);
    const bool special = p->spec.values != VALUES_NORMAL && id != TENSOR_Q;
    double base[MHA_MAX_HEAD_WIDTH] = {0};
    for (ptrdiff_t c = 0; special && c < t->n[3]; c++)
        base[c] = id == TENSOR_K ? rng_normal(random) : 1.0;
    for (ptrdiff_t i = first; i < first + count; i++) {
        void *const row = tensor_at(t, b, h, i, 0);
        const bool flip = id == TENSOR_V && p->spec.values == VALUES_ALTERNATING && (i & 1);
        for (ptrdiff_t c = 0; c < t->n[3]; c++) {
            const double x = rng_normal(random);
            const double near = special ? base[c] + 1e-3 * x : 0.0;
            element_store(type, row, c, !special ? deviation * x : flip ? -near : near);
        }
    }
}

/* Rows up to the true lengths; the others stay NaN. */
static void fill_true_rows(problem *p, tensor_id id, double deviation, rng *random)
{
    const tensor *const t = &p->tensors[id];
    const attention_call *const call = &p->call;
    const bool keys = id != TENSOR_Q;
    const int64_t *const starts = keys ? call->options.k_starts : call->options.q_starts;
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        const ptrdiff_t count = keys ? call_keys(call, b) : call_queries(call, b);
        for (ptrdiff_t h = 0; h < t->n[1]; h++)
            fill_rows(p, id, starts || t->n[0] == 1 ? 0 : b, h, starts ? (ptrdiff_t)starts[b] : 0,
                      count, deviation, random);
    }
}

static void fill_input(problem *p, tensor_id id, double deviation, rng *random)
{
    const ptrdiff_t *const n = p->tensors[id].n;
    if (p->spec.features == 0 || (p->spec.features & FEATURE_POISON)) {
        fill_true_rows(p, id, deviation, random);
        return;
    }
    for (ptrdiff_t r = 0; r < n[0] * n[1]; r++)
        fill_rows(p, id, r / n[1], r % n[1], 0, n[2], deviation, random);
}

/* What queries must be multiplied with so that scores have the deviation of the spec. A word
 * without one has normal queries, whatever its scale. */
static double query_deviation(const problem *p)
{
    const double D = (double)p->call.shape.D, scale = (double)p->call.options.scale;
    const double logits = p->spec.logits > 0.0 ? p->spec.logits : 1.0;
    if (scale == 0.0 || D == 0.0 || (p->spec.features == 0 && p->spec.logits == 0.0))
        return logits;
    return logits / (fabs(scale) * sqrt(D));
}

static bool any_attends(const problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j)
{
    const attention_call *const call = &p->call;
    const ptrdiff_t group = call->shape.H / call_groups(call);
    for (ptrdiff_t h = g * group; h < (g + 1) * group; h++)
        for (ptrdiff_t i = 0; i < call_queries(call, b); i++)
            if (call_attends(call, b, h, i, j))
                return true;
    return false;
}

static void poison_row(problem *p, tensor_id id, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j)
{
    const int64_t *const starts = p->call.options.k_starts;
    for (ptrdiff_t c = 0; c < p->tensors[id].n[3]; c++)
        problem_set(p, id, starts ? 0 : b, g, starts ? (ptrdiff_t)starts[b] + j : j, c,
                    (double)NAN);
}

/* Whether batches or heads share rows: a row that one does not attend to is another's. */
static bool is_shared(const problem *p, tensor_id id)
{
    const tensor *const t = &p->tensors[id];
    const bool batches = t->s[0] == 0 && p->call.shape.B > 1 && p->call.options.k_starts == NULL;
    return batches || (t->s[1] == 0 && call_groups(&p->call) > 1);
}

/* Keys that no query attends to become NaN, unless their scores are requested. */
static void poison_keys(problem *p)
{
    const mha_weights_mode mode = p->word.weights_mode;
    if (p->word.weights && (mode == MHA_WEIGHTS_RAW || mode == MHA_WEIGHTS_SOFTCAP))
        return;
    if (is_shared(p, TENSOR_K) || is_shared(p, TENSOR_V))
        return;
    for (ptrdiff_t b = 0; b < p->call.shape.B; b++)
        for (ptrdiff_t g = 0; g < call_groups(&p->call); g++)
            for (ptrdiff_t j = 0; j < call_keys(&p->call, b); j++)
                if (!any_attends(p, b, g, j)) {
                    poison_row(p, TENSOR_K, b, g, j);
                    poison_row(p, TENSOR_V, b, g, j);
                }
}

void fill_inputs(problem *p, rng *random)
{
    fill_input(p, TENSOR_Q, query_deviation(p), random);
    fill_input(p, TENSOR_K, 1.0, random);
    fill_input(p, TENSOR_V, 1.0, random);
    if (p->spec.features & FEATURE_POISON)
        poison_keys(p);
}
