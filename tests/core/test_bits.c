/* SPDX-License-Identifier: MIT */
/*
 * The bitwise promise: a query row gives the same bits whatever the number of threads, the batch
 * and heads it is computed with, the layout, the way a sequence is cut into calls, and whatever
 * else is requested.
 *
 * Shapes lie around every size at which keys or queries may be split. A part of the problems in
 * bf16 is computed in native arithmetic (MHA_NATIVE), which makes the same promise.
 */
#include "support/problems.h"

#include <stdlib.h>

enum { OUTPUTS = FEATURE_LSE | FEATURE_PLAIN_WEIGHTS, POOLS = 8 };

static const ptrdiff_t widths[] = {1, 5, 8, 16, 31, 32, 64, 80, 128, 129, 256, 300};
enum { WIDTHS = sizeof widths / sizeof *widths };

static const ptrdiff_t key_edges[] = {128, 256, 512, 1024, 2048, 4096};
enum { KEY_EDGES = sizeof key_edges / sizeof *key_edges };

/* ------------------------------------------------------------------ pools */

/* An executor that takes tasks from the last to the first. */
static void run_backwards(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int index = tasks - 1; index >= 0; index--)
        task(arg, index);
}

static void make_pools(mha_pool **pools)
{
    static const int threads[POOLS - 1] = {1, 2, 3, 4, 7, 8, 16};
    const mha_executor backwards = {sizeof backwards, NULL, 5, run_backwards};
    for (int n = 0; n < POOLS - 1; n++)
        if (mha_pool_create(&pools[n], threads[n]) != MHA_OK)
            abort();
    if (mha_pool_create_from(&pools[POOLS - 1], &backwards) != MHA_OK)
        abort();
}

static void free_pools(mha_pool **pools)
{
    for (int n = 0; n < POOLS; n++)
        mha_pool_free(pools[n]);
}

/* ------------------------------------------------------------------ specs */

static void set_type(problem_spec *spec, mha_dtype type)
{
    mha_shape *const s = &spec->shape;
    s->q_type = s->o_type = s->k_type = s->v_type = type;
}

/* The four types in turn, f32 most often, and bf16 in native arithmetic. */
static void set_types(problem_spec *spec, int64_t n)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_F32, MHA_BF16};
    set_type(spec, types[n % 5]);
    spec->features |= n % 5 == 4 ? FEATURE_NATIVE : 0;
}

static problem_spec random_spec(uint64_t seed, unsigned without)
{
    problem_spec spec = problem_spec_random(seed, 6e5);
    spec.features = (spec.features & ~(without | FEATURE_WEIGHTS)) | OUTPUTS;
    if (seed % 3 == 0) {
        set_type(&spec, MHA_BF16);
        spec.features |= FEATURE_NATIVE;
    }
    return spec;
}

/* Long rows of few queries, as after a cache: keys around an edge, any width, grouped or not. */
static problem_spec long_spec(int64_t n, ptrdiff_t L, unsigned features)
{
    const ptrdiff_t S = key_edges[n % KEY_EDGES] + (ptrdiff_t)(n / KEY_EDGES % 3) - 1;
    const ptrdiff_t G = 1 + (ptrdiff_t)(n % 2);
    problem_spec spec = {
        .shape = {.B = 1, .H = G * (1 + (ptrdiff_t)(n / 2 % 3)), .G = G, .L = L, .S = S},
        .features = features,
        .seed = 70000 + (uint64_t)n,
        .logits = 3,
    };
    spec.shape.D = widths[n * 5 % WIDTHS];
    set_types(&spec, n / 3);
    return spec;
}

/* ---------------------------------------------------------------- threads */

static void check_pools(const problem_spec *spec, mha_pool **pools)
{
    problem *const c = problem_new(spec);
    problem_run(c, NULL);
    snapshot alone = snapshot_of(c);
    for (int n = 0; n < POOLS; n++) {
        if (n % 2)
            problem_run_planned(c, pools[n]);
        else
            problem_run(c, pools[n]);
        CHECK(snapshot_same(&alone, c), "%d threads: %s", mha_pool_threads(pools[n]), c->name);
    }
    snapshot_free(&alone);
    problem_delete(c);
}

static void threads(void)
{
    mha_pool *pools[POOLS];
    make_pools(pools);
    const uint64_t base = test_seed(60000);
    for (int64_t n = 0; n < test_effort(60); n++) {
        const problem_spec spec = random_spec(base + (uint64_t)n, 0);
        check_pools(&spec, pools);
    }
    free_pools(pools);
}

static void threads_on_long_rows(void)
{
    static const ptrdiff_t L[] = {1, 2, 17};
    mha_pool *pools[POOLS];
    make_pools(pools);
    for (int64_t n = 0; n < test_effort(36); n++) {
        problem_spec spec = long_spec(n, L[n % 3], OUTPUTS | (n % 2 ? FEATURE_CAUSAL : 0));
        check_pools(&spec, pools);
        spec.shape.S = 5000 + (ptrdiff_t)n;
        spec.features = FEATURE_LSE | (n % 3 ? FEATURE_ATTEND | FEATURE_BIAS : 0);
        check_pools(&spec, pools);
    }
    free_pools(pools);
}

/* ------------------------------------------------- batches, heads, layouts */

/* Compute every batch and head by itself into the same buffers. */
static void check_alone(const problem_spec *spec)
{
    problem *const c = problem_new(spec);
    if (c->call.options.q_starts)
        c->call.options.weights = (mha_out){0};
    problem_run(c, NULL);
    snapshot together = snapshot_of(c);
    problem_reset(c);
    for (ptrdiff_t b = 0; b < spec->shape.B; b++) {
        for (ptrdiff_t h = 0; h < spec->shape.H; h++) {
            slice s;
            slice_begin(&s, &c->call);
            slice_batch(&s, b);
            slice_head(&s, h);
            slice_run(&s, NULL);
        }
    }
    CHECK(snapshot_same(&together, c), "each alone: %s", c->name);
    snapshot_free(&together);
    problem_delete(c);
}

static void batches_and_heads(void)
{
    const uint64_t base = test_seed(61000);
    for (int64_t n = 0; n < test_effort(200); n++) {
        const problem_spec spec = random_spec(base + (uint64_t)n, 0);
        check_alone(&spec);
    }
    for (int64_t n = 0; n < test_effort(36); n++) {
        const problem_spec spec = long_spec(n, 1 + n % 3, OUTPUTS);
        check_alone(&spec);
    }
}

static void check_layouts(const problem_spec *spec)
{
    problem *const c = problem_new(spec);
    problem_run(c, NULL);
    for (uint64_t n = 0; n < 3; n++) {
        problem *const other = problem_new_layout(c, spec->seed * 3 + n);
        problem_run(other, NULL);
        for (int id = TENSOR_O; id < TENSOR_COUNT; id++)
            CHECK(!c->tensors[id].memory || tensors_same(&c->tensors[id], &other->tensors[id]),
                  "output %d in other layout: %s", id, c->name);
        problem_delete(other);
    }
    problem_delete(c);
}

static void layouts(void)
{
    const uint64_t base = test_seed(62000);
    for (int64_t n = 0; n < test_effort(120); n++) {
        const problem_spec spec = random_spec(base + (uint64_t)n, 0);
        check_layouts(&spec);
    }
    for (int64_t n = 0; n < test_effort(18); n++) {
        const problem_spec spec = long_spec(n, 1 + 5 * (n % 2), OUTPUTS | FEATURE_SINKS);
        check_layouts(&spec);
    }
}

/* ----------------------------------------------------------------- chunks */

/* Cut the queries anywhere and compute the pieces into the same buffers. */
static void check_chunks(const problem_spec *spec, mha_pool *pool)
{
    problem *const c = problem_new(spec);
    test_random random = {spec->seed};
    problem_run(c, NULL);
    snapshot whole = snapshot_of(c);
    problem_reset(c);
    for (ptrdiff_t first = 0; first < spec->shape.L;) {
        const ptrdiff_t left = spec->shape.L - first;
        const int64_t longest = test_random_below(&random, 2) ? left : (left < 8 ? left : 8);
        const ptrdiff_t count = 1 + (ptrdiff_t)test_random_below(&random, longest);
        slice s;
        slice_begin(&s, &c->call);
        slice_queries(&s, first, count);
        slice_run(&s, pool);
        first += count;
    }
    CHECK(snapshot_same(&whole, c), "in chunks: %s", c->name);
    snapshot_free(&whole);
    problem_delete(c);
}

static void chunks_of_queries(void)
{
    mha_pool *pool;
    if (!CHECK(mha_pool_create(&pool, 3) == MHA_OK, "no pool"))
        return;
    const uint64_t base = test_seed(63000);
    for (int64_t n = 0; n < test_effort(250); n++) {
        const problem_spec spec = random_spec(base + (uint64_t)n, FEATURE_PACKED);
        check_chunks(&spec, n % 2 ? pool : NULL);
    }
    for (int64_t n = 0; n < test_effort(36); n++) {
        const problem_spec spec = long_spec(n, 40, OUTPUTS | FEATURE_CAUSAL);
        check_chunks(&spec, NULL);
    }
    mha_pool_free(pool);
}

/* Ways to compute query i alone from a cache that may hold more keys than it sees. */
enum { BY_CAUSAL, BY_KEYS, BY_LENGTH, WAYS };

static void run_token(problem *c, ptrdiff_t i, int way)
{
    slice s;
    slice_begin(&s, &c->call);
    slice_queries(&s, i, 1);
    const ptrdiff_t seen = (ptrdiff_t)s.offsets[0] + 1;
    if (way != BY_CAUSAL)
        s.call.options.flags &= ~(unsigned)MHA_CAUSAL;
    if (way == BY_KEYS)
        slice_keys(&s, seen);
    if (way == BY_LENGTH) {
        for (ptrdiff_t b = 0; b < c->call.shape.B; b++)
            s.k_lengths[b] = seen;
        s.call.options.weights = (mha_out){0};
    }
    slice_run(&s, NULL);
}

/* A causal prefill, then the same rows token by token, in all ways. */
static void check_tokens(const problem_spec *spec)
{
    problem *const c = problem_new(spec);
    c->call.options.position = MHA_POSITION_BOTTOM_RIGHT;
    c->call.options.q_lengths = c->call.options.k_lengths = NULL;
    problem_run(c, NULL);
    snapshot prefill = snapshot_of(c);
    for (int way = 0; way < WAYS; way++) {
        problem_reset(c);
        for (ptrdiff_t i = 0; i < spec->shape.L; i++)
            run_token(c, i, way);
        CHECK(snapshot_same(&prefill, c), "token by token, way %d: %s", way, c->name);
    }
    snapshot_free(&prefill);
    problem_delete(c);
}

static void tokens(void)
{
    for (int64_t n = 0; n < test_effort(72); n++) {
        const unsigned more[] = {0, FEATURE_WINDOW, FEATURE_ALIBI | FEATURE_SINKS,
                                 FEATURE_SOFTCAP | FEATURE_BIAS};
        const problem_spec spec =
            long_spec(n, n % 3 ? 9 : 33, FEATURE_LSE | FEATURE_CAUSAL | more[n / 12 % 4]);
        check_tokens(&spec);
    }
}

static void tokens_from_the_first(void)
{
    for (int64_t n = 0; n < test_effort(WIDTHS); n++) {
        problem_spec spec = {
            .shape =
                {.B = 2, .H = 4, .G = n % 2 ? 4 : 1, .L = 140, .S = 140, .D = widths[n % WIDTHS]},
            .features = FEATURE_LSE | FEATURE_CAUSAL | (n % 3 ? FEATURE_STRIDES : 0),
            .seed = 64000 + (uint64_t)n,
        };
        set_types(&spec, n);
        check_tokens(&spec);
    }
}

/* So many keys that a single query goes through them in more than one go. */
static void tokens_with_many_keys(void)
{
    static const ptrdiff_t keys[] = {4224, 8191, 9300};
    for (int64_t n = 0; n < test_effort(6); n++) {
        problem_spec spec = {
            .shape = {.B = 1, .H = 4, .G = n % 2 ? 4 : 1, .L = 6, .S = keys[n % 3], .D = 64},
            .features =
                FEATURE_LSE | FEATURE_CAUSAL | (n % 3 == 1 ? FEATURE_SINKS | FEATURE_ALIBI : 0),
            .seed = 64500 + (uint64_t)n,
        };
        set_types(&spec, n);
        check_tokens(&spec);
    }
}

/* ----------------------------------------------------------------- extras */

static void extra_outputs(void)
{
    const uint64_t base = test_seed(65000);
    for (int64_t n = 0; n < test_effort(150); n++) {
        problem_spec spec = random_spec(base + (uint64_t)n, 0);
        spec = n % 5 ? spec : long_spec(n, 3, OUTPUTS);
        problem *const c = problem_new(&spec);
        mha_options *const o = &c->call.options;
        const mha_out lse = o->lse, weights = o->weights;
        o->lse = o->weights = (mha_out){0};
        problem_run(c, NULL);
        snapshot bare = snapshot_of(c);
        snapshot_forget(&bare, TENSOR_WEIGHTS);
        o->weights = weights;
        for (int mode = 0; mode < 4; mode++) {
            o->weights_mode = (mha_weights_mode)mode;
            problem_run(c, NULL);
            CHECK(snapshot_same(&bare, c), "with weights of mode %d: %s", mode, c->name);
        }
        snapshot_forget(&bare, TENSOR_LSE);
        o->lse = lse;
        problem_run(c, NULL);
        CHECK(snapshot_same(&bare, c), "with log-sum-exp and weights: %s", c->name);
        o->weights = (mha_out){0};
        problem_run(c, NULL);
        CHECK(snapshot_same(&bare, c), "with log-sum-exp: %s", c->name);
        snapshot_free(&bare);
        problem_delete(c);
    }
}

static void repeats(void)
{
    mha_pool *pool;
    if (!CHECK(mha_pool_create(&pool, 4) == MHA_OK, "no pool"))
        return;
    const mha_shape shapes[] = {{.B = 2, .H = 4, .G = 2, .L = 37, .S = 150, .D = 32},
                                {.B = 1, .H = 4, .G = 1, .L = 1, .S = 2500, .D = 64}};
    for (int shape = 0; shape < 2; shape++) {
        const problem_spec spec = {.shape = shapes[shape], .features = OUTPUTS, .seed = 66000};
        problem *const c = problem_new(&spec);
        problem_run(c, NULL);
        snapshot first = snapshot_of(c);
        for (int n = 0; n < 250; n++) {
            problem_run(c, pool);
            CHECK(snapshot_same(&first, c), "repeat %d of shape %d", n, shape);
        }
        snapshot_free(&first);
        problem_delete(c);
    }
    mha_pool_free(pool);
}

/* One plan for a capacity of keys, run again and again as a cache fills: the bits of calls made
 * to measure. */
static void one_plan_for_many_lengths(void)
{
    const problem_spec spec = {
        .shape = {.B = 2, .H = 4, .G = 2, .L = 1, .S = 1300, .D = 64},
        .features = FEATURE_LSE | FEATURE_K_LENGTHS,
        .seed = 67000,
    };
    problem *const c = problem_new(&spec);
    const attention_call *const p = &c->call;
    mha_plan *plan;
    int64_t lengths[2];
    c->call.options.k_lengths = lengths;
    if (!CHECK(mha_plan_create(&plan, &p->shape, &p->options) == MHA_OK, "no plan"))
        return;
    const size_t size = mha_plan_work_size(plan, 1);
    void *const work = problem_alloc(c, size);
    for (ptrdiff_t length = 1; length <= spec.shape.S; length += 43) {
        lengths[0] = length;
        lengths[1] = spec.shape.S - length;
        problem_reset(c);
        mha_status status =
            mha_plan_run(plan, p->q, p->k, p->v, p->o, &p->options, work, size, NULL);
        CHECK(status == MHA_OK, "length %td: status %d", length, (int)status);
        snapshot planned = snapshot_of(c);
        problem_reset(c);
        for (ptrdiff_t b = 0; b < 2; b++) {
            slice s;
            slice_begin(&s, p);
            slice_batch(&s, b);
            slice_keys(&s, (ptrdiff_t)lengths[b]);
            slice_run(&s, NULL);
        }
        CHECK(snapshot_same(&planned, c), "length %td: other bits", length);
        snapshot_free(&planned);
    }
    mha_plan_free(plan);
    problem_delete(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(threads);
    RUN(threads_on_long_rows);
    RUN(batches_and_heads);
    RUN(layouts);
    RUN(chunks_of_queries);
    RUN(tokens);
    RUN(tokens_from_the_first);
    RUN(tokens_with_many_keys);
    RUN(extra_outputs);
    RUN(repeats);
    RUN(one_plan_for_many_lengths);
    return test_end();
}
