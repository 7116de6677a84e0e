/* SPDX-License-Identifier: MIT */
/*
 * options.statistics against the oracle's weights: random problems with every option, closed forms,
 * ties, scores at the edge of f32, and bits that do not depend on threads, batches or masked
 * values. Layers, caches, plans and errors are in test_statistics_paths.c.
 */
#include "support/problems.h"
#include "support/statistics_oracle.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pool that lives until the end of a test; NULL for one thread. */
static mha_pool *pool_of(int threads)
{
    mha_pool *pool = NULL;
    if (threads > 1)
        CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool");
    return pool;
}

/* Run with a cleared sheet. */
static void run_with(problem *c, sheet *s, mha_pool *pool)
{
    sheet_clear(s);
    c->call.options.statistics = &s->wanted;
    problem_run(c, pool);
}

/* --------------------------------------------------------------- against weights */

/* What statistics must not notice, or notice as the oracle does. */
static void add_heads(problem *c, test_random *random)
{
    const ptrdiff_t H = c->call.shape.H, B = c->call.shape.B;
    const ptrdiff_t Dv = call_value_width(&c->call);
    mha_options *const o = &c->call.options;
    if (test_random_below(random, 2)) {
        uint8_t *const modes = problem_alloc(c, (size_t)H);
        float *const means = problem_alloc(c, (size_t)(H * Dv) * sizeof *means);
        for (ptrdiff_t h = 0; h < H; h++)
            modes[h] = (uint8_t)test_random_below(random, 3);
        for (ptrdiff_t n = 0; n < H * Dv; n++)
            means[n] = test_random_normal(random);
        o->head_modes = modes;
        o->head_means = means;
    }
    if (test_random_below(random, 2)) {
        float *const gates = problem_alloc(c, (size_t)(B * H) * sizeof *gates);
        for (ptrdiff_t n = 0; n < B * H; n++)
            gates[n] = test_random_below(random, 3) ? test_random_normal(random) : 0;
        o->gates = gates;
        o->gates_sb = H;
    }
    if (test_random_below(random, 2)) {
        o->flags |= MHA_TRAINING;
        o->dropout = 0.25f;
        o->dropout_seed = test_random_u64(random);
    }
}

/* The oracle's numbers; output, log-sum-exp and weights are what they are without statistics, and
 * statistics what they are with other numbers of threads and by plan. */
static void try_case(problem *c, ptrdiff_t first_keys, ptrdiff_t top, mha_pool *const *pools)
{
    sheet *const s = sheet_new(&c->call.shape, first_keys, top);
    sheet *const other = sheet_new(&c->call.shape, first_keys, top);
    problem_run(c, NULL);
    snapshot plain = snapshot_of(c);
    run_with(c, s, NULL);
    CHECK(snapshot_same(&plain, c), "%s: other outputs with statistics", c->name);
    sheet_check(s, &c->call, c->name);
    for (int n = 0; n < 2; n++) {
        run_with(c, other, pools[n]);
        CHECK(snapshot_same(&plain, c) && sheets_same(s, other), "%s: pool %d", c->name, n);
    }
    sheet_clear(other);
    problem_run_planned(c, pools[1]);
    CHECK(snapshot_same(&plain, c) && sheets_same(s, other), "%s: by plan", c->name);
    snapshot_free(&plain);
    sheet_free(s);
    sheet_free(other);
}

static void random_problems(void)
{
    static const ptrdiff_t tops[] = {0, 1, 3, 17, 64};
    mha_pool *const pools[] = {pool_of(2), pool_of(3)};
    const uint64_t first = test_seed(9100);
    for (int64_t n = 0; n < test_effort(200); n++) {
        test_random random = {first + (uint64_t)n};
        problem_spec spec = problem_spec_random(first + (uint64_t)n, 1e5);
        spec.memory = guard_memories[n % 3];
        problem *const c = problem_new(&spec);
        add_heads(c, &random);
        try_case(c, (ptrdiff_t)test_random_below(&random, 6), tops[n % 5], pools);
        problem_delete(c);
    }
    mha_pool_free(pools[0]);
    mha_pool_free(pools[1]);
}

/* Keys of several splits, which are merged; one row, few, several tiles, several tasks. */
static void long_problems(void)
{
    static const ptrdiff_t rows[] = {1, 5, 100, 900};
    static const unsigned features[] = {FEATURE_SINKS | FEATURE_K_LENGTHS, FEATURE_CAUSAL,
                                        FEATURE_ATTEND, FEATURE_WINDOW | FEATURE_CAUSAL};
    mha_pool *const pools[] = {pool_of(2), pool_of(3)};
    for (int n = 0; n < 4; n++) {
        const problem_spec spec = {
            .shape = {.B = 1,
                      .H = n == 3 ? 1 : 4,
                      .G = n == 3 ? 1 : 2,
                      .L = rows[n],
                      .S = 2500,
                      .D = 16,
                      .Dv = 8},
            .features = features[n],
            .seed = (uint64_t)n + 3,
            .logits = 3,
        };
        problem *const c = problem_new(&spec);
        try_case(c, 2000, 9, pools);
        problem_delete(c);
    }
    mha_pool_free(pools[0]);
    mha_pool_free(pools[1]);
}

/* ------------------------------------------------------------------------- bits */

/* Each batch and head alone gives what it gives among others. */
static void batches_and_heads_stand_alone(void)
{
    const uint64_t first = test_seed(9500);
    for (int64_t n = 0; n < test_effort(60); n++) {
        const problem_spec spec = problem_spec_random(first + (uint64_t)n, 5e4);
        problem *const c = problem_new(&spec);
        sheet *const all = sheet_new(&c->call.shape, 2, 4);
        run_with(c, all, NULL);
        for (ptrdiff_t m = 0; m < spec.shape.B * spec.shape.H; m++) {
            slice part;
            slice_begin(&part, &c->call);
            slice_batch(&part, m / spec.shape.H);
            slice_head(&part, m % spec.shape.H);
            sheet *const alone = sheet_new(&part.call.shape, 2, 4);
            part.call.options.statistics = &alone->wanted;
            slice_run(&part, NULL);
            CHECK(part.call.shape.L == 0 ||
                      sheets_same_head(alone, 0, 0, all, m / spec.shape.H, m % spec.shape.H),
                  "%s: (%td,%td) alone", c->name, m / spec.shape.H, m % spec.shape.H);
            sheet_free(alone);
        }
        sheet_free(all);
        problem_delete(c);
    }
}

/* Values that some rows do not see are NaN: their task is done twice, each row for itself. */
static void masked_values_change_nothing(void)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int n = 0; n < 6; n++) {
        const problem_spec spec = {
            .shape = {.B = 2, .H = 2, .L = 60, .S = n < 3 ? 300 : 1500, .D = 8},
            .features = FEATURE_ATTEND | FEATURE_LSE,
            .seed = (uint64_t)n + 40};
        problem *const c = problem_new(&spec);
        sheet *const clean = sheet_new(&spec.shape, 3, 5), *const odd_values =
                                                               sheet_new(&spec.shape, 3, 5);
        run_with(c, clean, NULL);
        for (ptrdiff_t j = 0; j < spec.shape.S; j += 7)
            for (ptrdiff_t m = 0; m < 4; m++)
                problem_set(c, TENSOR_V, m / 2, m % 2, j, j % 8, (double)odd[n % 3]);
        run_with(c, odd_values, NULL);
        CHECK(sheets_same(clean, odd_values), "case %d", n);
        sheet_check(odd_values, &c->call, "odd values");
        sheet_free(clean);
        sheet_free(odd_values);
        problem_delete(c);
    }
}

/* ------------------------------------------------------------------ closed forms */

enum { TOKENS = 200 };

/* One head whose scores are a bias alone. */
typedef struct picture {
    mha_shape shape;
    float *bias, *zeros, *o;
    mha_options options;
    sheet *s;
} picture;

static float *floats(ptrdiff_t count)
{
    float *const data = calloc((size_t)count, sizeof *data);
    if (!data)
        abort();
    return data;
}

static picture picture_new(ptrdiff_t rows, ptrdiff_t keys, ptrdiff_t first_keys, ptrdiff_t top)
{
    picture p = {.shape = {.B = 1, .H = 1, .L = rows, .S = keys, .D = 4}};
    p.bias = floats(rows * keys);
    p.zeros = floats(4 * (rows > keys ? rows : keys));
    p.o = floats(rows * 4);
    p.s = sheet_new(&p.shape, first_keys, top);
    p.options = (mha_options){.size = sizeof p.options, .bias = {p.bias, 0, 0, keys}};
    return p;
}

static void picture_run(picture *p)
{
    const mha_view q = mha_view_bhld(p->zeros, 1, p->shape.L, 4);
    const mha_view k = mha_view_bhld(p->zeros, 1, p->shape.S, 4);
    p->options.statistics = &p->s->wanted;
    const mha_status status =
        mha_attention(&p->shape, q, k, k, mha_out_bhld(p->o, 1, p->shape.L, 4), &p->options, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
}

static void picture_free(picture *p)
{
    free(p->bias);
    free(p->zeros);
    free(p->o);
    sheet_free(p->s);
}

static bool near(double got, double want)
{
    return fabs(got - want) <= 4e-7 * (1 + fabs(want));
}

/* Each row looks at one key: the one `by` before it. */
static void shifted_heads(void)
{
    for (ptrdiff_t by = -2; by <= 2; by++) {
        picture p = picture_new(TOKENS, TOKENS, 0, 2);
        for (ptrdiff_t n = 0; n < TOKENS * TOKENS; n++)
            p.bias[n] = n % TOKENS == n / TOKENS - by ? 7.0f : -INFINITY;
        picture_run(&p);
        int64_t seen = 0;
        for (ptrdiff_t i = 0; i < TOKENS; i++) {
            const mha_row_statistics *const r = &p.s->wanted.rows[i];
            const ptrdiff_t j = i - by;
            const bool sees = j >= 0 && j < TOKENS;
            seen += sees;
            CHECK(r->key == (sees ? j : -1) && r->largest == (float)sees && r->entropy == 0 &&
                      r->mass == (float)sees && r->self == (float)(sees && by == 0) &&
                      r->previous == (float)(sees && by == 1) &&
                      r->next == (float)(sees && by == -1) && r->first == (float)(sees && j == 0),
                  "row %td shifted by %td", i, by);
            CHECK(r->distance == (sees ? (float)llabs((long long)by) : 0), "distance %td", by);
            CHECK(p.s->wanted.top_keys[2 * i] == r->key && p.s->wanted.top_keys[2 * i + 1] == -1,
                  "keys of row %td", i);
            CHECK(p.s->wanted.columns[i] == (float)(i + by >= 0 && i + by < TOKENS), "column %td",
                  i);
        }
        CHECK(p.s->wanted.heads->rows == seen && p.s->wanted.heads->largest == 1, "shift %td", by);
        picture_free(&p);
    }
}

static void uniform_heads(void)
{
    static const ptrdiff_t keys[] = {1, 2, 7, 64, 129, 1500};
    for (int n = 0; n < 6; n++) {
        const double S = (double)keys[n];
        picture p = picture_new(5, keys[n], 2, 3);
        picture_run(&p);
        for (ptrdiff_t i = 0; i < 5; i++) {
            const mha_row_statistics *const r = &p.s->wanted.rows[i];
            double distance = 0;
            for (ptrdiff_t j = 0; j < keys[n]; j++)
                distance += fabs((double)(i - j)) / S;
            CHECK(near((double)r->entropy, log(S)) && near((double)r->largest, 1 / S) &&
                      near((double)r->distance, distance) && near((double)r->mass, 1) &&
                      near((double)r->first, fmin(2, S) / S),
                  "%td keys, row %td: entropy %g, distance %g", keys[n], i, (double)r->entropy,
                  (double)r->distance);
            CHECK(r->key == 0 && near((double)r->self, i < keys[n] ? 1 / S : 0), "%td keys: key",
                  keys[n]);
            for (ptrdiff_t m = 0; m < 3; m++)
                CHECK(p.s->wanted.top_keys[3 * i + m] == (m < keys[n] ? m : -1), "the first keys");
        }
        for (ptrdiff_t j = 0; j < keys[n]; j++)
            CHECK(near((double)p.s->wanted.columns[j], 5 / S), "column %td", j);
        picture_free(&p);
    }
}

static void one_column(void)
{
    picture p = picture_new(TOKENS, TOKENS, 0, 0);
    for (ptrdiff_t n = 0; n < TOKENS * TOKENS; n++)
        p.bias[n] = n % TOKENS == 150 ? 300.0f : 0.0f;
    picture_run(&p);
    for (ptrdiff_t j = 0; j < TOKENS; j++)
        CHECK(p.s->wanted.columns[j] == (j == 150 ? (float)TOKENS : 0), "column %td", j);
    CHECK(near(p.s->wanted.heads->distance, (150.0 * 151 + 49.0 * 50) / 2 / TOKENS), "distance %g",
          p.s->wanted.heads->distance);
    picture_free(&p);
}

/* A sink as strong as a key takes as much; one that is far stronger leaves nothing. */
static void sinks_take_their_share(void)
{
    static const float sinks[] = {0, 500, -INFINITY};
    for (int n = 0; n < 3; n++) {
        picture p = picture_new(3, 9, 0, 1);
        p.options.sinks = &sinks[n];
        picture_run(&p);
        const mha_row_statistics *const r = &p.s->wanted.rows[1];
        const double w = n == 0 ? 0.1 : n == 1 ? 0 : 1.0 / 9;
        CHECK(near((double)r->mass, 9 * w) && near((double)r->largest, w), "sink %d: mass %g", n,
              (double)r->mass);
        CHECK(near((double)r->entropy, w > 0 ? -9 * w * log(w) : 0), "sink %d: entropy %g", n,
              (double)r->entropy);
        CHECK(r->key == (n == 1 ? -1 : 0) && *p.s->wanted.top_keys == r->key, "sink %d: key", n);
        CHECK(p.s->wanted.heads->rows == (n == 1 ? 0 : 3), "sink %d: rows", n);
        picture_free(&p);
    }
}

/* ------------------------------------------------------------------- single keys */

/* Equal weights are listed by their keys, wherever blocks and splits end. */
static void ties_go_to_the_earlier_key(void)
{
    enum { KEYS = 1400, LISTED = 40 };
    test_random random = {test_seed(3)};
    picture p = picture_new(30, KEYS, 0, LISTED);
    for (ptrdiff_t n = 0; n < 30 * KEYS; n++)
        p.bias[n] = test_random_below(&random, 1 + 3 * (n / KEYS)) ? 0.0f : 2.0f;
    picture_run(&p);
    for (ptrdiff_t i = 0; i < 30; i++) {
        const float *const bias = p.bias + i * KEYS;
        int64_t want[LISTED] = {0};
        ptrdiff_t count = 0;
        for (int level = 2; level >= 0; level -= 2)
            for (ptrdiff_t j = 0; j < KEYS && count < LISTED; j++)
                if (bias[j] == (float)level)
                    want[count++] = j;
        CHECK(memcmp(want, p.s->wanted.top_keys + i * LISTED, sizeof want) == 0, "row %td", i);
        CHECK(p.s->wanted.rows[i].key == want[0], "row %td: key %lld, not %lld", i,
              (long long)p.s->wanted.rows[i].key, (long long)want[0]);
    }
    picture_free(&p);
}

/* Positions far outside of the keys: distances grow with them, keys stay what they are. */
static void positions_far_away(void)
{
    static const ptrdiff_t offsets[] = {300, 1 << 25, (ptrdiff_t)1 << 40, -5,
                                        -((ptrdiff_t)1 << 33)};
    for (int n = 0; n < 5; n++) {
        picture p = picture_new(4, 250, 0, 1);
        p.options.position = MHA_POSITION_OFFSET;
        p.options.offset = offsets[n];
        for (ptrdiff_t m = 0; m < 4 * 250; m++)
            p.bias[m] = m % 250 == 50 * (m / 250) + 3 ? 200.0f : 0.0f;
        picture_run(&p);
        for (ptrdiff_t i = 0; i < 4; i++) {
            const mha_row_statistics *const r = &p.s->wanted.rows[i];
            const double distance = fabs((double)(i + offsets[n] - (50 * i + 3)));
            CHECK(r->key == 50 * i + 3 && *p.s->wanted.top_keys == 3, "offset %td: key %lld",
                  offsets[n], (long long)r->key);
            CHECK(near((double)r->distance, distance), "offset %td: distance %g", offsets[n],
                  (double)r->distance);
        }
        picture_free(&p);
    }
}

/* Scores from one end of f32 to the other; sums of numbers that go beyond it weigh nothing. */
static void scores_at_the_edge(void)
{
    picture p = picture_new(3, 300, 0, 2);
    float *const mask = floats(3 * 300);
    for (ptrdiff_t j = 0; j < 300; j++) {
        p.bias[j] = j == 200 ? 3e38f : -3e38f;
        p.bias[300 + j] = mask[300 + j] = j == 250 ? 0.0f : -3e38f;
        p.bias[600 + j] = mask[600 + j] = -3e38f;
    }
    p.options.add_mask = (mha_view){mask, 0, 0, 300};
    picture_run(&p);
    for (int i = 0; i < 2; i++) {
        const mha_row_statistics *const r = &p.s->wanted.rows[i];
        CHECK(r->key == (i ? 250 : 200) && r->largest == 1 && r->entropy == 0 && r->mass == 1,
              "row %d: key %lld, entropy %g", i, (long long)r->key, (double)r->entropy);
        CHECK(p.s->wanted.top_keys[2 * i + 1] == -1, "row %d: a second key", i);
    }
    const mha_row_statistics *const none = &p.s->wanted.rows[2];
    CHECK(none->key == -1 && none->mass == 0 && none->entropy == 0, "nothing but -inf");
    CHECK(p.s->wanted.heads->rows == 2 && p.s->wanted.columns[200] == 1, "heads and columns");
    free(mask);
    picture_free(&p);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(random_problems);
    RUN(long_problems);
    RUN(batches_and_heads_stand_alone);
    RUN(masked_values_change_nothing);
    RUN(shifted_heads);
    RUN(uniform_heads);
    RUN(one_column);
    RUN(sinks_take_their_share);
    RUN(ties_go_to_the_earlier_key);
    RUN(positions_far_away);
    RUN(scores_at_the_edge);
    return test_end();
}
