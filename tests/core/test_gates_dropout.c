/* SPDX-License-Identifier: MIT */
/* Tests of the operator's head gates and dropout, forward and backward: against the reference path,
 * which drops the same weights, and against central differences through it. */
#include <mha/mha.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "support/test.h"

enum { B = 2, H = 4, G = 2, L = 70, S = 150, D = 20, DV = 12 };
enum { Q_SIZE = B * H * L * D, K_SIZE = B * G * S * D, V_SIZE = B * G * S * DV };
enum { O_SIZE = B * H * L * DV, ROWS = B * H * L };

/* Inputs in both precisions, and outputs. */
typedef struct problem_data {
    float q[Q_SIZE], k[K_SIZE], v[V_SIZE], o[O_SIZE], lse[ROWS];
    double q64[Q_SIZE], k64[K_SIZE], v64[V_SIZE], o64[O_SIZE], lse64[ROWS];
    float d_o[O_SIZE], d_q[Q_SIZE], d_k[K_SIZE], d_v[V_SIZE], d_gates[B * H];
} problem_data;

static void fill(test_random *random, float *x, double *x64, int count)
{
    for (int n = 0; n < count; n++) {
        x[n] = test_random_float(random);
        if (x64)
            x64[n] = (double)x[n];
    }
}

static problem_data *new_data(uint64_t seed)
{
    problem_data *const d = calloc(1, sizeof *d);
    test_random random = {test_seed(seed)};
    if (!d)
        abort();
    fill(&random, d->q, d->q64, Q_SIZE);
    fill(&random, d->k, d->k64, K_SIZE);
    fill(&random, d->v, d->v64, V_SIZE);
    fill(&random, d->d_o, NULL, O_SIZE);
    return d;
}

static mha_options causal(void)
{
    const mha_options options = {
        .size = sizeof options, .flags = MHA_CAUSAL, .position = MHA_POSITION_BOTTOM_RIGHT};
    return options;
}

static mha_options dropping(float probability, uint64_t seed)
{
    mha_options options = causal();
    options.flags |= MHA_TRAINING;
    options.dropout = probability;
    options.dropout_seed = seed;
    return options;
}

static void forward(problem_data *d, mha_options options, mha_pool *pool)
{
    const mha_shape shape = {.B = B, .H = H, .G = G, .L = L, .S = S, .D = D, .Dv = DV};
    options.lse = (mha_out){d->lse, H * L, L, 1};
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(d->q, H, L, D), mha_view_bhld(d->k, G, S, D),
                      mha_view_bhld(d->v, G, S, DV), mha_out_bhld(d->o, H, L, DV), &options, pool);
    CHECK(status == MHA_OK, "forward: %s", mha_status_string(status));
}

static void forward64(problem_data *d, mha_options options)
{
    const mha_shape shape = {.B = B,
                             .H = H,
                             .G = G,
                             .L = L,
                             .S = S,
                             .D = D,
                             .Dv = DV,
                             .q_type = MHA_F64,
                             .k_type = MHA_F64,
                             .v_type = MHA_F64,
                             .o_type = MHA_F64};
    options.lse = (mha_out){d->lse64, H * L, L, 1};
    const mha_status status = mha_attention(
        &shape, mha_view_bhld(d->q64, H, L, D), mha_view_bhld(d->k64, G, S, D),
        mha_view_bhld(d->v64, G, S, DV), mha_out_bhld(d->o64, H, L, DV), &options, NULL);
    CHECK(status == MHA_OK, "f64: %s", mha_status_string(status));
}

static double worst_error(const problem_data *d)
{
    double worst = 0;
    for (int n = 0; n < O_SIZE; n++) {
        const double error = fabs((double)d->o[n] - d->o64[n]);
        worst = error > worst || isnan(error) ? error : worst;
    }
    return worst;
}

static const float some_gates[B * H] = {1.0f, 0.5f, 0.0f, -2.0f, 0.25f, 0.0f, 3.0f, 1.0f};

/* -------------------------------------------------------------- dropout ----- */

static void dropout_is_that_of_the_reference(void)
{
    problem_data *const d = new_data(81);
    for (int n = 0; n < 4; n++) {
        const mha_options options = dropping(0.2f * (float)(n + 1), 77u + (uint64_t)n);
        forward(d, options, NULL);
        forward64(d, options);
        CHECK(worst_error(d) < 2e-5, "p %g: off by %g", (double)options.dropout, worst_error(d));
    }
    free(d);
}

/* With values of 1 an output is the sum of the kept weights: 1 on average, and not all equal. */
static void dropout_keeps_the_mean(void)
{
    problem_data *const d = new_data(82);
    for (int n = 0; n < V_SIZE; n++)
        d->v[n] = 1.0f;
    forward(d, dropping(0.25f, 5), NULL);
    double sum = 0, squares = 0;
    for (int row = 0; row < ROWS; row++) {
        const double x = (double)d->o[row * DV];
        sum += x;
        squares += (x - 1) * (x - 1);
    }
    /* A row of n about equal weights has variance p / (1 - p) / n; n is 81 to 150 here. */
    CHECK(fabs(sum / ROWS - 1) < 0.01, "mean %g", sum / ROWS);
    CHECK(squares / ROWS > 0.001 && squares / ROWS < 0.01, "variance %g", squares / ROWS);
    free(d);
}

static void dropout_depends_on_seed_alone(void)
{
    problem_data *const a = new_data(83), *const b = new_data(83);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    forward(a, dropping(0.3f, 9), NULL);
    forward(b, dropping(0.3f, 9), pool);
    CHECK(memcmp(a->o, b->o, sizeof a->o) == 0, "threads");
    CHECK(memcmp(a->lse, b->lse, sizeof a->lse) == 0, "log-sum-exp with threads");
    forward(b, dropping(0.3f, 10), NULL);
    CHECK(memcmp(a->o, b->o, sizeof a->o) != 0, "another seed drops the same");
    forward(b, causal(), NULL);
    CHECK(memcmp(a->lse, b->lse, sizeof a->lse) == 0, "the log-sum-exp knows dropout");
    mha_pool_free(pool);
    free(a);
    free(b);
}

/* Without MHA_TRAINING there is no dropout. */
static void no_training_no_dropout(void)
{
    problem_data *const a = new_data(84), *const b = new_data(84);
    mha_options options = dropping(0.5f, 3);
    options.flags &= ~(uint32_t)MHA_TRAINING;
    forward(a, options, NULL);
    forward(b, causal(), NULL);
    CHECK(memcmp(a->o, b->o, sizeof a->o) == 0, "dropout without MHA_TRAINING");
    forward(a, dropping(0.0f, 3), NULL);
    CHECK(memcmp(a->o, b->o, sizeof a->o) == 0, "dropout of 0");
    free(a);
    free(b);
}

static void impossible_dropouts(void)
{
    static const float wrong[] = {-0.1f, 1.0f, 2.0f, NAN, INFINITY, 0.9999999f};
    problem_data *const d = new_data(85);
    const mha_shape shape = {.B = B, .H = H, .G = G, .L = L, .S = S, .D = D, .Dv = DV};
    for (int n = 0; n < 6; n++) {
        const mha_options options = dropping(wrong[n], 1);
        const mha_status status = mha_attention(
            &shape, mha_view_bhld(d->q, H, L, D), mha_view_bhld(d->k, G, S, D),
            mha_view_bhld(d->v, G, S, DV), mha_out_bhld(d->o, H, L, DV), &options, NULL);
        CHECK(status == MHA_ERR_DROPOUT && d->o[0] == 0.0f, "%g: %s", (double)wrong[n],
              mha_status_string(status));
    }
    free(d);
}

/* ---------------------------------------------------------------- gates ----- */

static void gates_are_factors(void)
{
    problem_data *const a = new_data(86), *const b = new_data(86);
    mha_options options = causal();
    forward(b, options, NULL);
    options.gates = some_gates;
    options.gates_sb = H;
    forward(a, options, NULL);
    forward64(a, options);
    CHECK(worst_error(a) < 2e-5, "off by %g", worst_error(a));
    for (int n = 0; n < O_SIZE; n++) {
        const float gate = some_gates[n / (L * DV)];
        CHECK(fabsf(a->o[n] - gate * b->o[n]) <= 1e-6f * fabsf(gate), "element %d", n);
        if (gate == 1.0f)
            CHECK(a->o[n] == b->o[n], "a gate of 1 changes element %d", n);
    }
    CHECK(memcmp(a->lse, b->lse, sizeof a->lse) == 0, "the log-sum-exp knows gates");
    free(a);
    free(b);
}

/* A head with gate 0 is not computed: the content of its keys does not matter. */
static void closed_heads_do_no_work(void)
{
    static const float gates[H] = {1.0f, 1.0f, 0.0f, 0.0f}; /* both heads of the second group */
    problem_data *const d = new_data(87);
    for (int b = 0; b < B; b++)
        for (int n = 0; n < S * D; n++)
            d->k[(b * G + 1) * S * D + n] = NAN;
    const mha_shape shape = {.B = B, .H = H, .G = G, .L = L, .S = S, .D = D, .Dv = DV};
    mha_options options = causal();
    options.gates = gates;
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(d->q, H, L, D), mha_view_bhld(d->k, G, S, D),
                      mha_view_bhld(d->v, G, S, DV), mha_out_bhld(d->o, H, L, DV), &options, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    for (int n = 0; n < O_SIZE; n++) {
        const bool open = gates[n / (L * DV) % H] != 0.0f;
        CHECK(open ? isfinite(d->o[n]) : d->o[n] == 0.0f, "element %d: %g", n, (double)d->o[n]);
    }
    free(d);
}

static void gates_go_forward_only(void)
{
    problem_data *const d = new_data(88);
    const mha_shape shape = {.B = B, .H = H, .G = G, .L = L, .S = S, .D = D, .Dv = DV};
    mha_options options = causal();
    options.gates = some_gates;
    options.gates_sb = -H;
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(d->q, H, L, D), mha_view_bhld(d->k, G, S, D),
                      mha_view_bhld(d->v, G, S, DV), mha_out_bhld(d->o, H, L, DV), &options, NULL);
    CHECK(status == MHA_ERR_STRIDE, "%s", mha_status_string(status));
    free(d);
}

/* ------------------------------------------------------------- backward ----- */

static void backward(problem_data *d, mha_options options)
{
    const mha_shape shape = {.B = B, .H = H, .G = G, .L = L, .S = S, .D = D, .Dv = DV};
    options.lse = (mha_out){d->lse, H * L, L, 1};
    const mha_gradients gradients = {.size = sizeof gradients,
                                     .d_o = mha_view_bhld(d->d_o, H, L, DV),
                                     .d_q = mha_out_bhld(d->d_q, H, L, D),
                                     .d_k = mha_out_bhld(d->d_k, G, S, D),
                                     .d_v = mha_out_bhld(d->d_v, G, S, DV),
                                     .d_gates = options.gates ? d->d_gates : NULL};
    const mha_status status =
        mha_attention_backward(&shape, mha_view_bhld(d->q, H, L, D), mha_view_bhld(d->k, G, S, D),
                               mha_view_bhld(d->v, G, S, DV), mha_view_bhld(d->o, H, L, DV),
                               &options, &gradients, NULL, 0, NULL);
    CHECK(status == MHA_OK, "backward: %s", mha_status_string(status));
}

/* The loss whose gradient with respect to o is d_o. */
static double loss(problem_data *d, const mha_options *options)
{
    double sum = 0;
    forward64(d, *options);
    for (int n = 0; n < O_SIZE; n++)
        sum += d->o64[n] * (double)d->d_o[n];
    return sum;
}

static void check_differences(problem_data *d, const mha_options *options, test_random *random)
{
    double *const inputs[] = {d->q64, d->k64, d->v64};
    const float *const gradients[] = {d->d_q, d->d_k, d->d_v};
    static const int sizes[] = {Q_SIZE, K_SIZE, V_SIZE};
    for (int n = 0; n < 36; n++) {
        const double step = 1e-5;
        double *const x = inputs[n % 3] + test_random_below(random, sizes[n % 3]);
        const double was = *x, got = (double)gradients[n % 3][x - inputs[n % 3]];
        *x = was + step;
        const double up = loss(d, options);
        *x = was - step;
        const double down = loss(d, options);
        *x = was;
        const double want = (up - down) / (2 * step);
        CHECK(fabs(got - want) < 1e-5 * (1 + fabs(want)), "input %d: %g, not %g", n % 3, got, want);
    }
}

static void gradients_pass_dropout_and_gates(void)
{
    problem_data *const d = new_data(89);
    test_random random = {test_seed(90)};
    mha_options options = dropping(0.3f, 11);
    options.gates = some_gates;
    options.gates_sb = H;
    forward(d, options, NULL);
    backward(d, options);
    check_differences(d, &options, &random);
    free(d);
}

/* The gradient of a gate is d_o . o before the gate, also where the gate is 0. */
static void gates_have_gradients(void)
{
    problem_data *const d = new_data(91);
    mha_options options = dropping(0.2f, 12);
    options.gates = some_gates;
    options.gates_sb = H;
    forward(d, options, NULL);
    backward(d, options);
    options.gates = NULL;
    forward64(d, options);
    for (int head = 0; head < B * H; head++) {
        double want = 0;
        for (int n = 0; n < L * DV; n++)
            want += d->o64[head * L * DV + n] * (double)d->d_o[head * L * DV + n];
        CHECK(fabs((double)d->d_gates[head] - want) < 1e-4, "head %d: %g, not %g", head,
              (double)d->d_gates[head], want);
    }
    free(d);
}

/* All kernels drop the same weights as the scalar code. */
static void kernels_drop_as_the_twin(void)
{
    const mhak_table *kernels;
    test_random random = {test_seed(92)};
    CHECK(mhai_kernels(&kernels) == MHA_OK, "kernels");
    for (int n = 0; n < 300; n++) {
        const mhak_drop drop = {test_random_u64(&random), (uint32_t)test_random_below(&random, 99),
                                (uint32_t)test_random_below(&random, 99),
                                (uint32_t)test_random_below(&random, 65536)};
        const uint32_t row = (uint32_t)test_random_below(&random, 100000);
        const uint32_t block = (uint32_t)test_random_below(&random, 1000);
        uint32_t keep[MHAK_WORDS];
        kernels->drop_bits(&drop, row, block, keep);
        for (int j = 0; j < MHAK_BLOCK; j++)
            CHECK((keep[j / 32] >> (j % 32) & 1u) ==
                      mhai_drop_keeps(&drop, (ptrdiff_t)row, (ptrdiff_t)block * MHAK_BLOCK + j),
                  "row %u, block %u, key %d", row, block, j);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(dropout_is_that_of_the_reference);
    RUN(dropout_keeps_the_mean);
    RUN(dropout_depends_on_seed_alone);
    RUN(no_training_no_dropout);
    RUN(impossible_dropouts);
    RUN(gates_are_factors);
    RUN(closed_heads_do_no_work);
    RUN(gates_go_forward_only);
    RUN(gradients_pass_dropout_and_gates);
    RUN(gates_have_gradients);
    RUN(kernels_drop_as_the_twin);
    return test_end();
}
