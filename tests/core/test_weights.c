/* SPDX-License-Identifier: MIT */
/* The returned weights: four modes, chosen heads and rows, averages, types, strides. */
#include "support/problems.h"

#include <math.h>

enum { LIMIT = 8 };

/* Random cases that all ask for weights, with `features` on top. */
static void check_with(unsigned features, int64_t count)
{
    const uint64_t base = test_seed(4000);
    for (int64_t n = 0; n < count; n++) {
        problem_spec spec = problem_spec_random(base + (uint64_t)n, 1e5);
        spec.features =
            features | FEATURE_WEIGHTS | (spec.features & (FEATURE_STRIDES | FEATURE_LSE));
        problem *const c = problem_new(&spec);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

static void plain(void)
{
    check_with(0, test_effort(120));
}

static void with_masks(void)
{
    check_with(FEATURE_CAUSAL | FEATURE_OFFSET, test_effort(60));
    check_with(FEATURE_ATTEND | FEATURE_IGNORE | FEATURE_BROADCAST, test_effort(60));
    check_with(FEATURE_ADD | FEATURE_BIAS | FEATURE_MASK_TYPES, test_effort(60));
    check_with(FEATURE_WINDOW | FEATURE_DOCUMENTS, test_effort(60));
}

static void with_softcap_sinks_and_alibi(void)
{
    check_with(FEATURE_SOFTCAP | FEATURE_SINKS | FEATURE_ALIBI | FEATURE_SCALE, test_effort(100));
}

static void with_lengths(void)
{
    check_with(FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS, test_effort(100));
}

static void with_packed_sequences(void)
{
    check_with(FEATURE_PACKED, test_effort(60));
    check_with(FEATURE_PACKED | FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS | FEATURE_CAUSAL,
               test_effort(60));
}

static void with_everything(void)
{
    check_with(FEATURE_EVERYTHING, test_effort(100));
}

static void with_threads(void)
{
    mha_pool *pool;
    if (!CHECK(mha_pool_create(&pool, 4) == MHA_OK, "no pool"))
        return;
    for (int64_t n = 0; n < test_effort(60); n++) {
        problem_spec spec = problem_spec_random(5000 + (uint64_t)n, 2e5);
        spec.features |= FEATURE_WEIGHTS;
        problem *const c = problem_new(&spec);
        problem_run(c, pool);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
    mha_pool_free(pool);
}

/* Two keys, every stage by hand: q.k = 2 and 4, scale 1/2, cap 4, bias (1, -inf). */
static void stages_by_hand(void)
{
    const float q = 2, k[2] = {1, 2}, v[2] = {3, 5}, bias[2] = {1, -INFINITY};
    const double cap[2] = {4 * tanh(0.25), 4 * tanh(0.5)};
    const double want[4][2] = {{1, 0}, {1, 2}, {cap[0], cap[1]}, {cap[0] + 1, -INFINITY}};
    for (int mode = 0; mode < 4; mode++) {
        float o, weights[2];
        const mha_shape shape = {1, 1, 1, 1, 2, 1, 1, MHA_F32, MHA_F32, MHA_F32, MHA_F32};
        const mha_options options = {
            .size = sizeof options,
            .scale = 0.5f,
            .softcap = 4,
            .bias = {bias, 0, 0, 0},
            .weights = {weights, 2, 2, 2},
            .weights_mode = (mha_weights_mode)mode,
        };
        const mha_status status =
            mha_attention(&shape, (mha_view){&q, 1, 1, 1}, (mha_view){k, 2, 2, 1},
                          (mha_view){v, 2, 2, 1}, (mha_out){&o, 1, 1, 1}, &options, NULL);
        CHECK(status == MHA_OK && o == 3, "mode %d: status %d, o %g", mode, (int)status, (double)o);
        for (int j = 0; j < 2; j++) {
            const double error =
                compare_error(MHA_F32, MHA_F32, (double)weights[j], want[mode][j], 0x1p-22);
            CHECK(error <= 1, "mode %d: weight %d is %.9g, must be %.9g", mode, j,
                  (double)weights[j], want[mode][j]);
        }
    }
}

/* Choosing heads and rows gives the bits of the full table, in the order of the lists. */
static void lists_pick_from_the_full_table(void)
{
    static const int64_t heads[] = {3, 0, 3, 5}, rows[] = {16, 2, 2, 0, 9};
    for (int mode = 0; mode < 4; mode++) {
        const problem_spec spec = {
            .shape = {.B = 2, .H = 6, .G = 3, .L = 17, .S = 45, .D = 24},
            .features = FEATURE_PLAIN_WEIGHTS | FEATURE_CAUSAL | FEATURE_BIAS | FEATURE_SOFTCAP,
            .seed = 11,
        };
        problem *const all = problem_new(&spec), *const some = problem_new(&spec);
        all->call.options.weights_mode = some->call.options.weights_mode = (mha_weights_mode)mode;
        some->call.options.weights_heads = heads;
        some->call.options.weights_head_count = 4;
        some->call.options.weights_rows = rows;
        some->call.options.weights_row_count = 5;
        problem_run(all, NULL);
        problem_run(some, NULL);
        for (int n = 0; n < 2 * 4 * 5 * 45; n++) {
            const int j = n % 45, r = n / 45 % 5, h = n / 45 / 5 % 4, b = n / 45 / 5 / 4;
            const double picked = problem_get(some, TENSOR_WEIGHTS, b, h, r, j);
            const double full = problem_get(all, TENSOR_WEIGHTS, b, heads[h], rows[r], j);
            CHECK(picked == full, "mode %d (%d,%d,%d,%d): %g, not %g", mode, b, h, r, j, picked,
                  full);
        }
        problem_delete(all);
        problem_delete(some);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(stages_by_hand);
    RUN(lists_pick_from_the_full_table);
    RUN(plain);
    RUN(with_masks);
    RUN(with_softcap_sinks_and_alibi);
    RUN(with_lengths);
    RUN(with_packed_sequences);
    RUN(with_everything);
    RUN(with_threads);
    return test_end();
}
