/* SPDX-License-Identifier: MIT */
/*
 * Weights without an output: the bits of those that come with one, for every problem; or, from a
 * log-sum-exp kept from before, the same up to its rounding.
 */
#include "support/problems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_nothing(const mha_shape *s)
{
    return s->B == 0 || s->H == 0 || s->L == 0 || s->D == 0;
}

/* The weights alone, into cleared memory, with a workspace of exactly the required size. */
static void run_alone(problem *c, bool with_lse, mha_pool *pool)
{
    const attention_call *const p = &c->call;
    mha_options options = p->options;
    if (!with_lse)
        options.lse.data = NULL;
    memset(c->tensors[TENSOR_WEIGHTS].memory, 0xa5, c->tensors[TENSOR_WEIGHTS].bytes);
    const size_t size =
        mha_attention_weights_work_size(&p->shape, &options, mha_pool_threads(pool));
    CHECK(size > 0, "%s: no workspace", c->name);
    void *const work = problem_alloc(c, size);
    c->message[0] = '\0';
    const mha_status status =
        mha_attention_weights(&p->shape, p->q, p->k, &options, work, size, pool);
    CHECK(status == MHA_OK, "%s: status %d, %s", c->name, (int)status, c->message);
}

static void check_bits(const problem_spec *spec, mha_pool *pool)
{
    problem *const c = problem_new(spec);
    problem_run(c, NULL);
    snapshot whole = snapshot_of(c);
    run_alone(c, false, pool);
    CHECK(snapshot_same(&whole, c), "%s: other bits", c->name);
    snapshot_free(&whole);
    problem_delete(c);
}

static void bits_of_the_whole_call(void)
{
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    const uint64_t first = test_seed(9000);
    for (int64_t n = 0; n < test_effort(300); n++) {
        problem_spec spec = problem_spec_random(first + (uint64_t)n, 1e5);
        spec.features |= FEATURE_WEIGHTS;
        spec.memory = guard_memories[n % 3];
        check_bits(&spec, n % 2 ? pool : NULL);
    }
    mha_pool_free(pool);
}

/* Several splits of keys and tiles of rows; few rows read keys where they lie. */
static void bits_of_long_calls(void)
{
    static const ptrdiff_t rows[] = {1, 2, 7, 130};
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 4) == MHA_OK, "pool");
    for (int n = 0; n < 8; n++) {
        const problem_spec spec = {
            .shape = {.B = 1, .H = 4, .G = 2, .L = rows[n % 4], .S = 2500, .D = 64, .Dv = 8},
            .features = FEATURE_WEIGHTS | FEATURE_SINKS | (n & 4 ? FEATURE_CAUSAL : FEATURE_ATTEND),
            .seed = (uint64_t)n,
        };
        check_bits(&spec, n % 2 ? pool : NULL);
    }
    mha_pool_free(pool);
}

/* ----------------------------------------------------------- log-sum-exp */

static double lse_at(const attention_call *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const mha_out *const lse = &p->options.lse;
    const mha_view view = {lse->data, lse->sb, lse->sh, lse->sl};
    return number_get(p->shape.q_type == MHA_F64 ? MHA_F64 : MHA_F32, lse->data,
                      call_row_index(&view, p->options.q_starts, b, h, i));
}

/* A weight errs by the rounding of the log-sum-exp, and by that of score - lse, which is the
 * logarithm of the weight. */
static void check_near(const problem *c, const problem *whole)
{
    const tensor *const t = &c->tensors[TENSOR_WEIGHTS];
    const double u = c->call.shape.q_type == MHA_F64 ? 0x1p-50 : 0x1p-22;
    for (ptrdiff_t r = 0; r < t->n[0] * t->n[1] * t->n[2]; r++) {
        const ptrdiff_t i = r % t->n[2], h = r / t->n[2] % t->n[1], b = r / t->n[2] / t->n[1];
        if (i >= call_queries(&c->call, b))
            continue;
        const double lse = fabs(lse_at(&c->call, b, h, i));
        for (ptrdiff_t j = 0; j < t->n[3]; j++) {
            const double want = problem_get(whole, TENSOR_WEIGHTS, b, h, i, j);
            const double got = problem_get(c, TENSOR_WEIGHTS, b, h, i, j);
            const double limit = want == 0 ? 0 : u * (4 + lse - log(want)) * want + 1e-37;
            CHECK(fabs(got - want) <= limit, "%s: (%td,%td,%td,%td) is %g, not %g", c->name, b, h,
                  i, j, got, want);
        }
    }
}

static void from_a_log_sum_exp(void)
{
    const uint64_t first = test_seed(9500);
    for (int64_t n = 0; n < test_effort(200); n++) {
        problem_spec spec = problem_spec_random(first + (uint64_t)n, 1e5);
        spec.features &= ~(unsigned)FEATURE_WEIGHTS;
        spec.features |= FEATURE_OUTPUTS;
        problem *const c = problem_new(&spec), *const whole = problem_new(&spec);
        problem_run(c, NULL);
        problem_run(whole, NULL);
        run_alone(c, true, NULL);
        CHECK(tensors_same(&c->tensors[TENSOR_LSE], &whole->tensors[TENSOR_LSE]),
              "%s: lse was written", c->name);
        check_near(c, whole);
        problem_expect_untouched(c);
        problem_delete(c);
        problem_delete(whole);
    }
}

enum { H = 2, L = 5, S = 300, CUT = 170, D = 16 };

static mha_options with_sums(float *lse, float *weights, ptrdiff_t keys)
{
    return (mha_options){.size = sizeof(mha_options),
                         .lse = {lse, H * L, L, 1},
                         .weights = {weights, H * L * keys, L * keys, keys}};
}

/* Of a sequence in two parts: the log-sum-exp of both together makes the weights of each those of
 * the whole. */
static void parts_of_a_whole(void)
{
    static float q[H * L * D], k[H * S * D], o[2][H * L * D], lse[2][H * L], both[H * L];
    static float part[H * L * S], whole[H * L * S];
    test_random random = {test_seed(3)};
    for (int n = 0; n < H * S * D; n++)
        k[n] = 2 * test_random_normal(&random);
    for (int n = 0; n < H * L * D; n++)
        q[n] = 2 * test_random_normal(&random);
    const mha_view queries = mha_view_bhld(q, H, L, D);
    const mha_shape all = {.B = 1, .H = H, .L = L, .S = S, .D = D};
    mha_options options = with_sums(both, whole, S);
    const mha_view keys = mha_view_bhld(k, H, S, D);
    CHECK(mha_attention(&all, queries, keys, keys, mha_out_bhld(o[0], H, L, D), &options, NULL) ==
              MHA_OK,
          "whole");
    const ptrdiff_t starts[3] = {0, CUT, S};
    for (int n = 0; n < 2; n++) {
        const mha_shape shape = {.B = 1, .H = H, .L = L, .S = starts[n + 1] - starts[n], .D = D};
        const mha_view some = {k + starts[n] * D, 0, S * D, D};
        options = with_sums(lse[n], part, shape.S);
        CHECK(mha_attention(&shape, queries, some, some, mha_out_bhld(o[n], H, L, D), &options,
                            NULL) == MHA_OK,
              "part %d", n);
    }
    const mha_out first = {lse[0], H * L, L, 1};
    const mha_view second = {lse[1], H * L, L, 1};
    CHECK(mha_merge(&all, mha_out_bhld(o[0], H, L, D), first, mha_view_bhld(o[1], H, L, D),
                    second) == MHA_OK,
          "merge");
    for (int n = 0; n < 2; n++) {
        const ptrdiff_t count = starts[n + 1] - starts[n];
        const mha_shape shape = {.B = 1, .H = H, .L = L, .S = count, .D = D};
        const mha_view some = {k + starts[n] * D, 0, S * D, D};
        options = with_sums(lse[0], part, count);
        CHECK(mha_attention_weights(&shape, queries, some, &options, NULL, 0, NULL) == MHA_OK,
              "weights of part %d", n);
        for (ptrdiff_t x = 0; x < H * L * count; x++) {
            const double want = (double)whole[x / count * S + starts[n] + x % count];
            CHECK(fabs((double)part[x] - want) < 1e-5, "part %d, %td: %g, not %g", n, x,
                  (double)part[x], want);
        }
    }
}

/* ---------------------------------------------------------------- corners */

/* Values and output are not there: their types and width do not count. */
static void values_do_not_count(void)
{
    const problem_spec spec = {.shape = {.B = 2, .H = 3, .L = 9, .S = 40, .D = 8},
                               .features = FEATURE_PLAIN_WEIGHTS,
                               .seed = 4};
    problem *const c = problem_new(&spec);
    problem_run(c, NULL);
    snapshot whole = snapshot_of(c);
    c->call.shape.v_type = MHA_F64;
    c->call.shape.o_type = (mha_dtype)77;
    c->call.shape.Dv = -5;
    run_alone(c, false, NULL);
    CHECK(snapshot_same(&whole, c), "other bits");
    snapshot_free(&whole);
    problem_delete(c);
}

/* One row of many costs the workspace of one row. */
static void room_for_a_tile(void)
{
    float weights;
    const mha_options options = {.size = sizeof options, .weights = {&weights, 1, 1, 1}};
    const mha_shape few = {.B = 1, .H = 16, .L = 64, .S = 4096, .D = 64};
    mha_shape many = few;
    many.B = 64;
    many.L = 1 << 20;
    const size_t small = mha_attention_weights_work_size(&few, &options, 1);
    const size_t large = mha_attention_weights_work_size(&many, &options, 1);
    CHECK(small > 0 && small == large && large < 1 << 20, "%zu and %zu bytes", small, large);
}

static void nothing_to_do(void)
{
    for (int n = 0; n < 5; n++) {
        problem_spec spec = {.shape = {.B = 2, .H = 2, .L = 3, .S = 4, .D = 8},
                             .features = FEATURE_PLAIN_WEIGHTS | FEATURE_LSE,
                             .seed = 4};
        ptrdiff_t *const extents[] = {&spec.shape.B, &spec.shape.H, &spec.shape.L, &spec.shape.D,
                                      &spec.shape.S};
        *extents[n] = 0;
        problem *const c = problem_new(&spec);
        problem_reset(c);
        snapshot blank = snapshot_of(c);
        CHECK(is_nothing(&c->call.shape) || spec.shape.S == 0, "something");
        run_alone(c, true, NULL);
        CHECK(snapshot_same(&blank, c), "extent %d of 0: written", n);
        snapshot_free(&blank);
        problem_delete(c);
    }
}

/* ----------------------------------------------------------------- errors */

typedef struct attempt {
    const mha_shape *shape;
    mha_view q, k;
    mha_options options;
    void *work;
    size_t work_size;
} attempt;

static void null_weights(attempt *a)
{
    a->options.weights.data = NULL;
}
static void null_shape(attempt *a)
{
    a->shape = NULL;
}
static void null_q(attempt *a)
{
    a->q.data = NULL;
}
static void null_k(attempt *a)
{
    a->k.data = NULL;
}
static void weights_in_q(attempt *a)
{
    a->options.weights.data = (void *)a->q.data;
}
static void weights_in_k(attempt *a)
{
    a->options.weights.data = (void *)a->k.data;
}
static void weights_in_lse(attempt *a)
{
    a->options.weights.data = a->options.lse.data;
}
static void weights_in_work(attempt *a)
{
    a->work = a->options.weights.data;
    a->work_size = 1 << 20;
}
static void small_work(attempt *a)
{
    a->work = a;
    a->work_size = 16;
}
static void no_such_row(attempt *a)
{
    static const int64_t rows[] = {3};
    a->options.weights_rows = rows;
    a->options.weights_row_count = 1;
}
static void unaligned_lse(attempt *a)
{
    a->options.lse.data = (char *)a->options.lse.data + 2;
}
static void old_struct(attempt *a)
{
    a->options.size = 3;
}

static void wrong_arguments(void)
{
    static const struct {
        void (*bend)(attempt *a);
        mha_status status;
    } tries[] = {
        {null_weights, MHA_ERR_NULL},
        {null_shape, MHA_ERR_NULL},
        {null_q, MHA_ERR_NULL},
        {null_k, MHA_ERR_NULL},
        {weights_in_q, MHA_ERR_OVERLAP},
        {weights_in_k, MHA_ERR_OVERLAP},
        {weights_in_lse, MHA_ERR_OVERLAP},
        {weights_in_work, MHA_ERR_OVERLAP},
        {small_work, MHA_ERR_WORKSPACE},
        {no_such_row, MHA_ERR_INDEX},
        {unaligned_lse, MHA_ERR_ALIGN},
        {old_struct, MHA_ERR_STRUCT},
    };
    const problem_spec spec = {
        .shape = {.B = 1, .H = 2, .L = 3, .S = 4, .D = 8}, .features = FEATURE_OUTPUTS, .seed = 4};
    problem *const c = problem_new(&spec);
    problem_reset(c);
    snapshot blank = snapshot_of(c);
    for (size_t n = 0; n < sizeof tries / sizeof *tries; n++) {
        attempt a = {&c->call.shape, c->call.q, c->call.k, c->call.options, NULL, 0};
        tries[n].bend(&a);
        c->message[0] = '\0';
        const mha_status status =
            mha_attention_weights(a.shape, a.q, a.k, &a.options, a.work, a.work_size, NULL);
        CHECK(status == tries[n].status, "%zu: %s, \"%s\"", n, mha_status_string(status),
              c->message);
        CHECK(c->message[0] || status == MHA_ERR_STRUCT, "%zu: no message", n);
        CHECK(snapshot_same(&blank, c), "%zu: written", n);
    }
    CHECK(mha_attention_weights(&c->call.shape, c->call.q, c->call.k, NULL, NULL, 0, NULL) ==
              MHA_ERR_NULL,
          "no options");
    CHECK(mha_attention_weights_work_size(&c->call.shape, NULL, 1) == 0 &&
              mha_attention_weights_work_size(&c->call.shape, &c->call.options, 0) == 0,
          "a size for what cannot be");
    snapshot_free(&blank);
    problem_delete(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(bits_of_the_whole_call);
    RUN(bits_of_long_calls);
    RUN(from_a_log_sum_exp);
    RUN(parts_of_a_whole);
    RUN(values_do_not_count);
    RUN(room_for_a_tile);
    RUN(nothing_to_do);
    RUN(wrong_arguments);
    return test_end();
}
