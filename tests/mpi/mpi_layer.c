/* SPDX-License-Identifier: MIT */
/*
 * A layer over ranks, as docs/mpi.md has it: the two halves of libmha around a plan. Outputs and
 * gradients of inputs have the bits of mha_layer_run() and mha_layer_backward() on one machine;
 * gradients of weights are sums over pieces of tokens, with the same bits on any number of ranks.
 */
#include "mpi/mpi_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    E = 24,
    H = 4,
    G = 2,
    D = 6,
    LEAF = 8, /* tokens of a piece */
    LEAVES = 7,
    TOKENS = LEAF * LEAVES,
    QKV = (H + 2 * G) * D,
    WEIGHTS = E * QKV + E * H * D + 2 * D, /* of a layer: W_Q, W_K, W_V, W_O, two norms */
};

typedef struct weights {
    float q[E * H * D], k[E * G * D], v[E * G * D], o[E * H * D], q_norm[D], k_norm[D];
} weights;

static void draw(rng *r, float *to, size_t count, double scale)
{
    for (size_t n = 0; n < count; n++)
        to[n] = (float)(scale * rng_normal(r));
}

static mha_layer *layer_new(weights *w, uint64_t seed)
{
    rng r = {seed};
    draw(&r, (float *)w, sizeof *w / sizeof(float), 0.3);
    const mha_layer_config config = {.size = sizeof config,
                                     .E = E,
                                     .H = H,
                                     .G = G,
                                     .D = D,
                                     .norm = MHA_NORM_RMS,
                                     .rope = {.pairs = MHA_ROPE_HALVES}};
    const mha_layer_weights given = {.size = sizeof given,
                                     .q = mha_matrix_out_in(w->q, MHA_F32, E),
                                     .k = mha_matrix_out_in(w->k, MHA_F32, E),
                                     .v = mha_matrix_out_in(w->v, MHA_F32, E),
                                     .o = mha_matrix_out_in(w->o, MHA_F32, H * D),
                                     .q_norm = {w->q_norm, MHA_F32},
                                     .k_norm = {w->k_norm, MHA_F32}};
    mha_layer *layer = NULL;
    CHECK(mha_layer_create(&layer, &config, &given) == MHA_OK, "layer");
    return layer;
}

/* Some tokens: inputs, outputs, and what lies between. */
typedef struct rows {
    ptrdiff_t count;
    int64_t tokens[TOKENS];
    float x[TOKENS * E], y[TOKENS * E], d_y[TOKENS * E], d_x[TOKENS * E];
    float q[TOKENS * H * D], k[TOKENS * G * D], v[TOKENS * G * D], heads[TOKENS * H * D];
    float lse[TOKENS * H];
    float d_q[TOKENS * H * D], d_k[TOKENS * G * D], d_v[TOKENS * G * D], d_heads[TOKENS * H * D];
    _Alignas(64) unsigned char tape[1 << 17];
} rows;

/* A tape is aligned to 64. */
static rows *rows_new(void)
{
    rows *const r = aligned_alloc(64, sizeof *r);
    if (!r)
        abort();
    return memset(r, 0, sizeof *r);
}

static const mha_options causal = {.size = sizeof causal, .flags = MHA_CAUSAL};

/* The first half, for rows from `first` on. */
static mha_layer_call call_of(rows *r, ptrdiff_t first, ptrdiff_t count)
{
    return (mha_layer_call){.size = sizeof(mha_layer_call),
                            .B = 1,
                            .L = count,
                            .query = mha_view_ble(r->x + first * E, count, E),
                            .output = mha_out_ble(r->y + first * E, count, E),
                            .q_positions = r->tokens + first,
                            .k_positions = r->tokens + first,
                            .captured_q = mha_out_blhd(r->q + first * H * D, H, count, D),
                            .captured_k = mha_out_blhd(r->k + first * G * D, G, count, D),
                            .captured_v = mha_out_blhd(r->v + first * G * D, G, count, D),
                            .tape = r->tape,
                            .tape_size = sizeof r->tape};
}

static mha_layer_gradients gradients_of(rows *r, ptrdiff_t first, ptrdiff_t count, weights *w)
{
    mha_layer_gradients g = {.size = sizeof g,
                             .d_output = mha_view_ble(r->d_y + first * E, count, E)};
    if (!w) {
        g.d_query = mha_out_ble(r->d_x + first * E, count, E);
        return g;
    }
    g.q = (mha_matrix_out){w->q, E, 1};
    g.k = (mha_matrix_out){w->k, E, 1};
    g.v = (mha_matrix_out){w->v, E, 1};
    g.o = (mha_matrix_out){w->o, H * D, 1};
    g.q_norm = w->q_norm;
    g.k_norm = w->k_norm;
    return g;
}

/* Both halves backwards, for rows from `first` on whose d_q, d_k and d_v are known. */
static void pull_back(const mha_layer *layer, rows *r, ptrdiff_t first, ptrdiff_t count, weights *w)
{
    mha_layer_call call = call_of(r, first, count);
    const mha_layer_gradients g = gradients_of(r, first, count, w);
    const mha_out none = {0};
    CHECK(mha_layer_project(layer, &call, NULL, 0, NULL) == MHA_OK, "project");
    if (w)
        CHECK(mha_layer_output_backward(layer, &call,
                                        mha_view_blhd(r->heads + first * H * D, H, count, D), none,
                                        &g, NULL, 0, NULL) == MHA_OK,
              "output, backward");
    CHECK(mha_layer_project_backward(
              layer, &call, mha_view_blhd(r->d_q + first * H * D, H, count, D),
              mha_view_blhd(r->d_k + first * G * D, G, count, D),
              mha_view_blhd(r->d_v + first * G * D, G, count, D), &g, NULL, 0, NULL) == MHA_OK,
          "project, backward");
}

/* The layer over all ranks of the plan, forward and backward, but for the weights. */
static void run_spread(const mha_layer *layer, const mha_mpi_plan *plan, rows *r)
{
    const ptrdiff_t n = r->count;
    mha_options o = causal;
    mha_layer_call call = call_of(r, 0, n);
    const mha_layer_gradients g = gradients_of(r, 0, n, NULL);
    const size_t size = mha_mpi_plan_work_size(plan, &o, 1, 1) + (1 << 16);
    void *const work = malloc(size);
    o.lse = (mha_out){r->lse, TOKENS * H, TOKENS, 1};
    const mha_view q = mha_view_blhd(r->q, H, n, D), k = mha_view_blhd(r->k, G, n, D);
    const mha_view v = mha_view_blhd(r->v, G, n, D), heads = mha_view_blhd(r->heads, H, n, D);
    CHECK(mha_layer_project(layer, &call, NULL, 0, NULL) == MHA_OK, "project");
    CHECK(mha_mpi_plan_run(plan, q, k, v, mha_out_blhd(r->heads, H, n, D), &o, work, size, NULL) ==
              MHA_OK,
          "run");
    CHECK(mha_layer_output(layer, &call, heads, NULL, 0, NULL) == MHA_OK, "output");
    CHECK(mha_layer_output_backward(layer, &call, heads, mha_out_blhd(r->d_heads, H, n, D), &g,
                                    NULL, 0, NULL) == MHA_OK,
          "output, backward");
    const mha_gradients inner = {.size = sizeof inner,
                                 .d_o = mha_view_blhd(r->d_heads, H, n, D),
                                 .d_q = mha_out_blhd(r->d_q, H, n, D),
                                 .d_k = mha_out_blhd(r->d_k, G, n, D),
                                 .d_v = mha_out_blhd(r->d_v, G, n, D)};
    CHECK(mha_mpi_plan_backward(plan, q, k, v, heads, &o, &inner, work, size, NULL) == MHA_OK,
          "backward");
    pull_back(layer, r, 0, n, NULL);
    free(work);
}

/* Gradients of the weights: a leaf is a piece of tokens, which one rank has. */
static void sum_weights(const mha_layer *layer, mha_mpi_group *group, rows *r, weights *total)
{
    static weights part;
    mha_mpi_sum *sum = NULL;
    CHECK(sizeof part == WEIGHTS * sizeof(float), "size");
    CHECK(mha_mpi_sum_create(&sum, group, WEIGHTS, LEAVES) == MHA_OK, "sum");
    for (ptrdiff_t first = 0; first < r->count; first += LEAF) {
        pull_back(layer, r, first, LEAF, &part);
        CHECK(mha_mpi_sum_add(sum, (ptrdiff_t)r->tokens[first] / LEAF, (float *)&part) == MHA_OK,
              "add");
    }
    CHECK(mha_mpi_sum_finish(sum, (float *)total) == MHA_OK, "finish");
    mha_mpi_sum_free(sum);
}

/* All of it on the ranks of a group: pieces go to ranks in turn. */
static void run_group(const mha_layer *layer, mha_mpi_group *group, const rows *whole, rows *own,
                      weights *total, mha_mpi_scheme scheme)
{
    const int ranks = mha_mpi_group_ranks(group), rank = mha_mpi_group_rank(group);
    int64_t starts[LEAVES + 1];
    int owners[LEAVES];
    for (int n = 0; n <= LEAVES; n++)
        starts[n] = n * LEAF;
    for (int n = 0; n < LEAVES; n++)
        owners[n] = n % ranks;
    const mha_mpi_layout layout = {.size = sizeof layout,
                                   .split = MHA_MPI_GIVEN,
                                   .tokens = TOKENS,
                                   .runs = LEAVES,
                                   .starts = starts,
                                   .ranks = owners};
    const mha_shape shape = {.B = 1, .H = H, .G = G, .L = TOKENS, .S = TOKENS, .D = D};
    const mha_mpi_plan_config config = {.size = sizeof config, .scheme = scheme};
    mha_mpi_plan *plan = NULL;
    CHECK(mha_mpi_plan_create(&plan, group, &config, &shape, &layout, &layout) == MHA_OK, "plan");
    own->count = mha_mpi_rows(group, &layout, rank, own->tokens);
    for (ptrdiff_t n = 0; n < own->count; n++) {
        memcpy(own->x + n * E, whole->x + own->tokens[n] * E, sizeof(float) * E);
        memcpy(own->d_y + n * E, whole->d_y + own->tokens[n] * E, sizeof(float) * E);
    }
    run_spread(layer, plan, own);
    sum_weights(layer, group, own, total);
    mha_mpi_plan_free(plan);
}

static bool same_rows(const rows *own, const float *got, const float *want)
{
    bool same = true;
    for (ptrdiff_t n = 0; n < own->count; n++)
        same = same && memcmp(got + n * E, want + own->tokens[n] * E, sizeof(float) * E) == 0;
    return same;
}

static void check_layer(mha_mpi_group *group, mha_mpi_group *self, uint64_t seed,
                        mha_mpi_scheme scheme)
{
    static weights w, whole_gradients, total, alone_total;
    rows *const whole = rows_new(), *const own = rows_new(), *const alone = rows_new();
    mha_layer *const layer = layer_new(&w, seed);
    rng r = {seed + 1};
    draw(&r, whole->x, TOKENS * E, 1.0);
    draw(&r, whole->d_y, TOKENS * E, 1.0);
    for (int n = 0; n < TOKENS; n++)
        whole->tokens[n] = n;
    mha_layer_call call = call_of(whole, 0, TOKENS);
    call.options = &causal;
    mha_layer_gradients g = gradients_of(whole, 0, TOKENS, &whole_gradients);
    g.d_query = mha_out_ble(whole->d_x, TOKENS, E);
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK, "whole");
    CHECK(mha_layer_backward(layer, &call, &g, NULL, 0, NULL) == MHA_OK, "whole, backward");
    run_group(layer, self, whole, alone, &alone_total, scheme);
    run_group(layer, group, whole, own, &total, scheme);
    CHECK(same_rows(own, own->y, whole->y), "other outputs than mha_layer_run()");
    CHECK(same_rows(own, own->d_x, whole->d_x), "other gradients than mha_layer_backward()");
    CHECK(memcmp(&total, &alone_total, sizeof total) == 0,
          "gradients of weights depend on the number of ranks");
    double worst = 0.0;
    for (size_t n = 0; n < WEIGHTS; n++)
        worst = fmax(worst,
                     fabs((double)((float *)&total)[n] - (double)((float *)&whole_gradients)[n]));
    CHECK(worst < 2e-4, "gradients of weights are %g from those of one call", worst);
    mha_layer_free(layer);
    free(whole);
    free(own);
    free(alone);
}

int main(int argc, char **argv)
{
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    mha_mpi_group *self = NULL;
    CHECK(mha_mpi_group_create(&self, MPI_COMM_SELF, NULL) == MHA_OK, "group");
    mpi_test("a_layer_over_ranks_has_the_bits_of_one_machine");
    for (uint64_t seed = 1; seed <= 4; seed++)
        check_layer(group, self, seed, seed % 2 ? MHA_MPI_GATHER : MHA_MPI_ALL_TO_ALL);
    mha_mpi_group_free(self);
    return mpi_test_end(group);
}
