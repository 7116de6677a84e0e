/* SPDX-License-Identifier: MIT */
/*
 * options.statistics on every way to attention: plans, parts that are not wanted, caches of every
 * kind, layers; and what is refused.
 */
#include "support/layer_case.h"
#include "support/problems.h"
#include "support/statistics_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Weights that were returned are f32, of scores that are a few units large. */
static const double unit = 0x1p-20;

static problem *small_case(unsigned features)
{
    const problem_spec spec = {.shape = {.B = 2, .H = 4, .G = 2, .L = 30, .S = 200, .D = 8},
                               .features = features,
                               .seed = 12};
    return problem_new(&spec);
}

static mha_status attend(problem *c, const mha_statistics *wanted)
{
    const attention_call *const p = &c->call;
    c->call.options.statistics = wanted;
    c->message[0] = '\0';
    return mha_attention(&p->shape, p->q, p->k, p->v, p->o, &p->options, NULL);
}

/* ---------------------------------------------------------------- parts, plans */

/* The parts of a sheet whose bits are set. */
static mha_statistics parts_of(const sheet *s, int parts)
{
    mha_statistics wanted = s->wanted;
    wanted.rows = parts & 1 ? wanted.rows : NULL;
    wanted.heads = parts & 2 ? wanted.heads : NULL;
    wanted.columns = parts & 4 ? wanted.columns : NULL;
    wanted.top_keys = parts & 8 ? wanted.top_keys : NULL;
    wanted.top_weights = parts & 16 ? wanted.top_weights : NULL;
    return wanted;
}

/* What was requested from `all`, the rest untouched, into `some`. */
static void check_parts(const sheet *all, const sheet *some, const mha_statistics *wanted,
                        int parts)
{
    sheet merged = *all, blank = *all;
    merged.wanted = *wanted;
    blank.wanted = some->wanted;
    sheet *const pattern = sheet_new(
        &(mha_shape){.B = all->B, .H = all->H, .L = all->L, .S = all->S}, 0, all->wanted.top);
    const mha_statistics want = parts_of(all, parts), unwanted = pattern->wanted;
    merged.wanted.rows = want.rows ? want.rows : unwanted.rows;
    merged.wanted.heads = want.heads ? want.heads : unwanted.heads;
    merged.wanted.columns = want.columns ? want.columns : unwanted.columns;
    merged.wanted.top_keys = want.top_keys ? want.top_keys : unwanted.top_keys;
    merged.wanted.top_weights = want.top_weights ? want.top_weights : unwanted.top_weights;
    CHECK(sheets_same(&blank, &merged), "parts %d", parts);
    sheet_free(pattern);
}

static void parts_stand_alone(void)
{
    for (int type = 0; type < 2; type++) {
        problem *const c = small_case(FEATURE_CAUSAL | FEATURE_SINKS);
        const problem_spec spec = {.shape = {.B = 1,
                                             .H = 2,
                                             .L = 9,
                                             .S = 40,
                                             .D = 8,
                                             .q_type = MHA_F64,
                                             .k_type = MHA_F64,
                                             .v_type = MHA_F64,
                                             .o_type = MHA_F64},
                                   .features = FEATURE_CAUSAL,
                                   .seed = 5};
        problem *const wide = problem_new(&spec), *const now = type ? wide : c;
        sheet *const all = sheet_new(&now->call.shape, 2, 3);
        sheet *const some = sheet_new(&now->call.shape, 2, 3);
        CHECK(attend(now, &all->wanted) == MHA_OK, "%s", now->message);
        for (int parts = 0; parts < 32; parts++) {
            const mha_statistics wanted = parts_of(some, parts);
            sheet_clear(some);
            CHECK(attend(now, &wanted) == MHA_OK, "%s", now->message);
            check_parts(all, some, &wanted, parts);
        }
        sheet_free(all);
        sheet_free(some);
        problem_delete(c);
        problem_delete(wide);
    }
}

static mha_status run_plan(const problem *c, const mha_plan *plan, const mha_statistics *wanted)
{
    const attention_call *const p = &c->call;
    mha_options options = p->options;
    options.statistics = wanted;
    const size_t size = mha_plan_work_size(plan, 1);
    void *const work = malloc(size);
    const mha_status status =
        mha_plan_run(plan, p->q, p->k, p->v, p->o, &options, work, size, NULL);
    free(work);
    return status;
}

/* A run may ask for what the plan knew of, or less. */
static void plans_foresee_statistics(void)
{
    problem *const c = small_case(FEATURE_CAUSAL);
    sheet *const all = sheet_new(&c->call.shape, 2, 5), *const some =
                                                            sheet_new(&c->call.shape, 2, 5);
    mha_plan *with = NULL, *without = NULL, *heads = NULL;
    CHECK(mha_plan_create(&without, &c->call.shape, &c->call.options) == MHA_OK, "plan");
    CHECK(attend(c, &all->wanted) == MHA_OK, "%s", c->message);
    snapshot plain = snapshot_of(c);
    CHECK(mha_plan_create(&with, &c->call.shape, &c->call.options) == MHA_OK, "plan");
    CHECK(run_plan(c, without, &some->wanted) == MHA_ERR_PLAN && sheet_untouched(some), "too much");
    problem_reset(c);
    CHECK(run_plan(c, with, NULL) == MHA_OK && snapshot_same(&plain, c), "none");
    for (int parts = 0; parts < 32; parts++) {
        const mha_statistics wanted = parts_of(some, parts);
        const bool room = !(parts & 2) || (parts & 1);
        sheet_clear(some);
        problem_reset(c);
        CHECK(run_plan(c, with, &wanted) == (room ? MHA_OK : MHA_ERR_PLAN), "parts %d", parts);
        CHECK(!room || snapshot_same(&plain, c), "output, parts %d", parts);
        if (room)
            check_parts(all, some, &wanted, parts);
    }
    mha_statistics wanted = parts_of(some, 2);
    c->call.options.statistics = &wanted;
    CHECK(mha_plan_create(&heads, &c->call.shape, &c->call.options) == MHA_OK, "plan for heads");
    sheet_clear(some);
    CHECK(run_plan(c, heads, &wanted) == MHA_OK, "heads");
    check_parts(all, some, &wanted, 2);
    wanted = parts_of(some, 4);
    CHECK(run_plan(c, heads, &wanted) == MHA_ERR_PLAN, "columns that were not foreseen");
    wanted = parts_of(some, 8);
    wanted.top = 6;
    CHECK(run_plan(c, with, &wanted) == MHA_ERR_PLAN, "a longer list");
    wanted.top = 2;
    CHECK(run_plan(c, with, &wanted) == MHA_OK && wanted.top_keys[2] == all->wanted.top_keys[5] &&
              wanted.top_keys[3] == all->wanted.top_keys[6],
          "a shorter list");
    mha_plan_free(with);
    mha_plan_free(without);
    mha_plan_free(heads);
    snapshot_free(&plain);
    sheet_free(all);
    sheet_free(some);
    problem_delete(c);
}

/* No rows or no width: nothing is written. No keys: every row is empty. */
static void nothing_to_see(void)
{
    for (int n = 0; n < 2; n++) {
        mha_shape shape = {.B = 1, .H = 2, .L = 3, .S = n ? 0 : 4, .D = n ? 4 : 0};
        sheet *const s = sheet_new(&shape, 0, 2);
        float x[64] = {0}, o[64];
        const mha_options options = {.size = sizeof options, .statistics = &s->wanted};
        const mha_view view = mha_view_bhld(x, 2, 3, shape.D);
        CHECK(mha_attention(&shape, view, view, view, mha_out_bhld(o, 2, 3, shape.D), &options,
                            NULL) == MHA_OK,
              "shape %d", n);
        CHECK(n == 1 || sheet_untouched(s), "heads of width 0");
        for (int i = 0; n == 1 && i < 6; i++)
            CHECK(s->wanted.rows[i].key == -1 && s->wanted.rows[i].mass == 0 &&
                      s->wanted.top_keys[2 * i + 1] == -1 && s->wanted.heads[i / 3].rows == 0,
                  "row %d", i);
        sheet_free(s);
    }
}

/* ---------------------------------------------------------------------- caches */

typedef struct cache_case {
    mha_cache_kind kind;
    mha_dtype type;
    ptrdiff_t tokens, capacity, window;
} cache_case;

/* Statistics of 4 heads on 2 over the last tokens, and those of the weights of the same call. */
static void check_cache(const cache_case *c, mha_pool *pool)
{
    enum { L = 6, D = 16 };
    mha_cache *cache = NULL;
    test_random random = {test_seed(8)};
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = c->kind,
                                     .sequences = 1,
                                     .capacity = c->capacity,
                                     .G = 2,
                                     .D = D,
                                     .k_type = c->type,
                                     .v_type = c->type};
    const mha_shape shape = {.B = 1, .H = 4, .L = L, .S = c->tokens};
    const ptrdiff_t count = 2 * c->tokens * D;
    float *const x = malloc((size_t)count * sizeof *x), q[4 * L * D], o[2][4 * L * D];
    float *const weights = malloc((size_t)(4 * L * c->tokens) * sizeof *weights);
    double *const row = malloc((size_t)c->tokens * sizeof *row);
    sheet *const s = sheet_new(&shape, 3, 4);
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] = test_random_normal(&random);
    for (int n = 0; n < 4 * L * D; n++)
        q[n] = test_random_normal(&random);
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "cache");
    const mha_view kv = mha_view_blhd(x, 2, c->tokens, D), view = mha_view_bhld(q, 4, L, D);
    CHECK(mha_cache_append(cache, 1, NULL, c->tokens, NULL, kv, MHA_F32, kv, MHA_F32) == MHA_OK,
          "append");
    mha_options options = {.size = sizeof options,
                           .flags = MHA_CAUSAL | MHA_WINDOW,
                           .window_left = c->window,
                           .weights = mha_out_bhld(weights, 4, L, c->tokens)};
    for (int n = 0; n < 2; n++) {
        options.statistics = n ? &s->wanted : NULL;
        const size_t size = mha_cache_work_size(cache, &shape, &options, mha_pool_threads(pool));
        void *const work = malloc(size);
        const mha_status status = mha_cache_attention(
            cache, NULL, &shape, view, mha_out_bhld(o[n], 4, L, D), &options, work, size, pool);
        CHECK(size < 1 << 26 && status == MHA_OK, "%zu bytes: %s", size, mha_status_string(status));
        free(work);
    }
    CHECK(memcmp(o[0], o[1], sizeof o[0]) == 0, "other outputs");
    for (ptrdiff_t n = 0; n < 4 * L; n++) {
        for (ptrdiff_t j = 0; j < c->tokens; j++)
            row[j] = (double)weights[n * c->tokens + j];
        const sheet_row at = {0, n / L, n % L, c->tokens, c->tokens - L + n % L, row, unit};
        sheet_check_row(s, &at, "cache");
    }
    sheet_check_heads(s, NULL, "cache");
    mha_cache_free(cache);
    sheet_free(s);
    free(x);
    free(weights);
    free(row);
}

static void caches_of_every_kind(void)
{
    static const cache_case cases[] = {
        {MHA_CACHE_CONTIGUOUS, MHA_F32, 300, 400, -1},
        {MHA_CACHE_CONTIGUOUS, MHA_I8, 1500, 2000, -1},
        {MHA_CACHE_PAGED, MHA_BF16, 700, 900, 200},
        {MHA_CACHE_PAGED, MHA_I8, 130, 256, -1},
        {MHA_CACHE_RING, MHA_F32, 3000, 256, 200},
        {MHA_CACHE_RING, MHA_F16, 1100, 96, 60},
        {MHA_CACHE_RING, MHA_I8, 5000, 320, 310},
    };
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        check_cache(&cases[n], NULL);
        check_cache(&cases[n], pool);
    }
    mha_pool_free(pool);
}

/* ---------------------------------------------------------------------- layers */

/* The extra keys of a layer have weights, but no statistics. */
static void extra_keys_are_missing(void)
{
    for (int zero = 0; zero < 2; zero++) {
        layer_spec spec =
            layer_spec_small(LAYER_CROSS | LAYER_EXTRA, FEATURE_OUTPUTS | FEATURE_ATTEND);
        spec.config.flags = zero ? MHA_LAYER_ZERO_ATTN : 0u;
        layer_case *const c = layer_case_new(&spec);
        const tensor *const t = &c->memory->tensors[TENSOR_WEIGHTS];
        const ptrdiff_t S = t->n[3] - 1 - zero;
        const mha_shape shape = {.B = t->n[0], .H = t->n[1], .L = t->n[2], .S = S};
        sheet *const s = sheet_new(&shape, 0, 3);
        layer_case_run(c, NULL);
        snapshot plain = snapshot_of(c->memory);
        c->memory->call.options.statistics = &s->wanted;
        layer_case_run(c, NULL);
        CHECK(snapshot_same(&plain, c->memory), "other outputs");
        double row[64];
        for (ptrdiff_t n = 0; n < shape.B * shape.H * shape.L; n++) {
            sheet_row at = {.b = n / shape.L / shape.H,
                            .h = n / shape.L % shape.H,
                            .i = n % shape.L,
                            .keys = S,
                            .weights = row,
                            .unit = unit};
            at.position = at.i + call_offset(&c->memory->call, at.b);
            for (ptrdiff_t j = 0; j < S; j++)
                row[j] = problem_get(c->memory, TENSOR_WEIGHTS, at.b, at.h, at.i, j);
            sheet_check_row(s, &at, "layer");
            CHECK(s->wanted.rows[n].mass < 0.999f, "all of row %td", n);
        }
        sheet_check_heads(s, NULL, "layer");
        snapshot_free(&plain);
        sheet_free(s);
        layer_case_free(c);
    }
}

/* A step of many tokens with a cache of this kind; a ring takes them in pieces. */
static void step(const layer_case *c, mha_cache_kind kind, const mha_statistics *wanted, float *y)
{
    enum { TOKENS = 100, WIDTH = 24 };
    static float x[TOKENS * WIDTH];
    test_random random = {5};
    for (int n = 0; n < TOKENS * WIDTH; n++)
        x[n] = test_random_normal(&random);
    const mha_layer_config made = mha_layer_get_config(c->layer);
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = 1,
                                     .capacity = kind == MHA_CACHE_RING ? 32 : TOKENS,
                                     .G = made.G,
                                     .D = made.D,
                                     .Dv = made.Dv};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "cache");
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_CAUSAL | MHA_WINDOW,
                                 .window_left = 8,
                                 .statistics = wanted};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = TOKENS,
                                 .query = mha_view_ble(x, TOKENS, WIDTH),
                                 .output = mha_out_ble(y, TOKENS, WIDTH),
                                 .cache = cache,
                                 .cache_use = MHA_CACHE_STEP,
                                 .options = &options};
    const size_t size = mha_layer_work_size(c->layer, &call, 1);
    void *const work = malloc(size);
    const mha_status status = mha_layer_run(c->layer, &call, work, size, NULL);
    CHECK(status == MHA_OK, "kind %d: %s", (int)kind, mha_status_string(status));
    free(work);
    mha_cache_free(cache);
}

static void rings_step_in_pieces(void)
{
    const layer_spec spec = layer_spec_small(0, 0);
    layer_case *const c = layer_case_new(&spec);
    const mha_shape shape = {.B = 1, .H = 4, .L = 100, .S = 100};
    sheet *const whole = sheet_new(&shape, 2, 3), *const pieces = sheet_new(&shape, 2, 3);
    float y[2][100 * 24];
    step(c, MHA_CACHE_CONTIGUOUS, &whole->wanted, y[0]);
    step(c, MHA_CACHE_RING, &pieces->wanted, y[1]);
    CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0 && sheets_same(whole, pieces), "a ring");
    sheet_clear(pieces);
    const mha_statistics heads = parts_of(pieces, 2);
    step(c, MHA_CACHE_RING, &heads, y[1]);
    check_parts(whole, pieces, &heads, 2);
    CHECK(whole->wanted.heads[0].rows == 100 && whole->wanted.rows[50].distance <= 8, "window");
    sheet_free(whole);
    sheet_free(pieces);
    layer_case_free(c);
}

/* ---------------------------------------------------------------------- errors */

typedef struct wrong {
    const char *name;
    mha_statistics wanted;
    mha_status status;
} wrong;

static void refused(problem *c, const wrong *w)
{
    problem_reset(c);
    snapshot blank = snapshot_of(c);
    const mha_status status = attend(c, &w->wanted);
    CHECK(status == w->status && c->message[0], "%s: %s, \"%s\"", w->name,
          mha_status_string(status), c->message);
    CHECK(snapshot_same(&blank, c), "%s: written", w->name);
    snapshot_free(&blank);
}

static mha_statistics with(const sheet *s, size_t field, ptrdiff_t value)
{
    mha_statistics wanted = s->wanted;
    memcpy((char *)&wanted + field, &value, sizeof value);
    return wanted;
}

#define WITH(field, value) with(s, offsetof(mha_statistics, field), (ptrdiff_t)(value))

static void impossible_statistics(void)
{
    problem *const c = small_case(FEATURE_LSE);
    sheet *const s = sheet_new(&c->call.shape, 1, 4);
    const mha_statistics *const w = &s->wanted;
    const ptrdiff_t o = (ptrdiff_t)c->call.o.data, q = (ptrdiff_t)c->call.q.data;
    const wrong table[] = {
        {"size 0", WITH(size, 0), MHA_ERR_STRUCT},
        {"size - 1", WITH(size, sizeof *w - 1), MHA_ERR_STRUCT},
        {"size + 8", WITH(size, sizeof *w + 8), MHA_ERR_STRUCT},
        {"first_keys -1", WITH(first_keys, -1), MHA_ERR_INDEX},
        {"first_keys least", WITH(first_keys, PTRDIFF_MIN), MHA_ERR_INDEX},
        {"top -1", WITH(top, -1), MHA_ERR_INDEX},
        {"top 65", WITH(top, 65), MHA_ERR_INDEX},
        {"top most", WITH(top, PTRDIFF_MAX), MHA_ERR_INDEX},
        {"rows + 4", WITH(rows, (char *)w->rows + 4), MHA_ERR_ALIGN},
        {"heads + 4", WITH(heads, (char *)w->heads + 4), MHA_ERR_ALIGN},
        {"columns + 2", WITH(columns, (char *)w->columns + 2), MHA_ERR_ALIGN},
        {"top_keys + 4", WITH(top_keys, (char *)w->top_keys + 4), MHA_ERR_ALIGN},
        {"top_weights + 1", WITH(top_weights, (char *)w->top_weights + 1), MHA_ERR_ALIGN},
        {"rows in o", WITH(rows, o), MHA_ERR_OVERLAP},
        {"heads in rows", WITH(heads, w->rows), MHA_ERR_OVERLAP},
        {"columns in q", WITH(columns, q), MHA_ERR_OVERLAP},
        {"columns at the end of rows", WITH(columns, (char *)(w->rows + 2 * 4 * 30) - 4),
         MHA_ERR_OVERLAP},
        {"top_keys in top_weights", WITH(top_keys, w->top_weights), MHA_ERR_OVERLAP},
        {"top_weights in lse", WITH(top_weights, c->call.options.lse.data), MHA_ERR_OVERLAP},
    };
    for (size_t n = 0; n < sizeof table / sizeof table[0]; n++)
        refused(c, &table[n]);
    _Alignas(16) char room[sizeof *w + 8];
    memcpy(room + 4, w, sizeof *w);
    CHECK(attend(c, (const mha_statistics *)(const void *)(room + 4)) == MHA_ERR_ALIGN, "aligned");
    CHECK(sheet_untouched(s), "statistics of a call that was refused");
    const mha_statistics most = WITH(first_keys, PTRDIFF_MAX);
    CHECK(attend(c, &most) == MHA_OK && fabsf(w->rows[7].first - w->rows[7].mass) < 1e-6f,
          "all keys first");
    sheet_free(s);
    problem_delete(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(parts_stand_alone);
    RUN(plans_foresee_statistics);
    RUN(nothing_to_see);
    RUN(caches_of_every_kind);
    RUN(extra_keys_are_missing);
    RUN(rings_step_in_pieces);
    RUN(impossible_statistics);
    return test_end();
}
