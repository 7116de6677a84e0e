/* SPDX-License-Identifier: MIT */
/*
 * Sizes around every edge a tile or vector may have, in buffers of exactly the size needed that
 * lie against unreadable pages: once with the page after them, once before them. Plans get a
 * workspace of exactly the required size, placed in the same way.
 */
#include "support/problems.h"

#include <math.h>

enum { LIMIT = 8 };

/* Features in turn, so that every size meets several of them over the sweeps. */
static unsigned turn(int64_t n)
{
    static const unsigned features[] = {
        0,
        FEATURE_CAUSAL | FEATURE_LSE,
        FEATURE_ATTEND | FEATURE_IGNORE,
        FEATURE_ADD | FEATURE_BIAS | FEATURE_MASK_TYPES,
        FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS | FEATURE_LSE,
        FEATURE_WINDOW | FEATURE_DOCUMENTS | FEATURE_OFFSET,
        FEATURE_WEIGHTS | FEATURE_LSE,
        FEATURE_PACKED | FEATURE_LSE,
        FEATURE_ALIBI | FEATURE_SINKS | FEATURE_SOFTCAP | FEATURE_CAUSAL,
        FEATURE_STRIDES | FEATURE_LSE,
        FEATURE_EVERYTHING,
    };
    return features[n % (int64_t)(sizeof features / sizeof *features)];
}

static mha_shape shape_of(ptrdiff_t H, ptrdiff_t G, ptrdiff_t L, ptrdiff_t S, ptrdiff_t D,
                          ptrdiff_t Dv)
{
    return (mha_shape){.B = 1, .H = H, .G = G, .L = L, .S = S, .D = D, .Dv = Dv};
}

/* Types in turn as well: f32 in half of the cases. */
static void set_types(mha_shape *s, int64_t n)
{
    if (n % 2 == 0)
        return;
    s->q_type = (mha_dtype)(n / 2 % 3);
    s->k_type = (mha_dtype)(n / 6 % 3);
    s->v_type = (mha_dtype)(n / 6 % 3);
    s->o_type = (mha_dtype)(n / 4 % 3);
}

/* One case in both kinds of guarded memory. */
static void check_guarded(mha_shape shape, int64_t n)
{
    set_types(&shape, n);
    const problem_memory *const kinds[] = {&guard_memory_back, &guard_memory_front};
    for (int kind = 0; kind < 2; kind++) {
        const problem_spec spec = {
            .shape = shape, .features = turn(n), .seed = (uint64_t)n, .memory = kinds[kind]};
        problem *const c = problem_new(&spec);
        if (n % 2 == kind)
            problem_run(c, NULL);
        else
            problem_run_planned(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

static void check_queries(ptrdiff_t L)
{
    static const ptrdiff_t S[] = {1, 9, 17, 40, 65, 130}, D[] = {5, 16, 64, 33};
    for (int64_t n = 0; n < test_effort(3); n++) {
        const int64_t turn_of = n * 7 + L * 5;
        check_guarded(shape_of(1 + n % 2, 1, L, S[(L + n) % 6], D[turn_of % 4], 0), turn_of);
    }
}

static void query_counts(void)
{
    static const ptrdiff_t edges[] = {95,  96,  97,  127, 128, 129, 143, 144,
                                      145, 191, 192, 193, 255, 256, 257};
    for (ptrdiff_t L = 1; L <= 70; L++)
        check_queries(L);
    for (size_t n = 0; n < sizeof edges / sizeof *edges; n++)
        check_queries(edges[n]);
}

static void key_counts(void)
{
    static const ptrdiff_t edges[] = {8,   16,  24,  32,  48,  64,  80,   96,   112,
                                      128, 192, 256, 384, 512, 768, 1024, 2048, 4096};
    static const ptrdiff_t L[] = {1, 5, 20, 2}, D[] = {8, 1, 64, 33, 16};
    for (int64_t n = 0; n < test_effort((int64_t)(sizeof edges / sizeof *edges)); n++) {
        const ptrdiff_t edge = edges[(size_t)n % (sizeof edges / sizeof *edges)];
        for (ptrdiff_t S = edge - 1; S <= edge + 1; S++) {
            check_guarded(shape_of(2, 1, L[(n + S) % 4], S, D[n % 5], 0), n + S);
            check_guarded(shape_of(1, 1, L[S % 4], S, D[S % 5], 0), n * 3 + S * 5);
        }
    }
    for (ptrdiff_t S = 1; S <= 70; S++)
        check_guarded(shape_of(1, 1, L[S % 4], S, D[S % 5], 0), S);
}

static void check_width(ptrdiff_t D, ptrdiff_t Dv, int64_t n)
{
    check_guarded(shape_of(1, 1, 7, 35, D, Dv), n);
    check_guarded(shape_of(3, 1, 1, 50, D, Dv), n * 3 + 1);
}

static void head_widths(void)
{
    static const ptrdiff_t wide[] = {255, 256, 257, 300, 511, 512, 513, 1000, 1023, 1024};
    for (ptrdiff_t D = 1; D <= 130; D++)
        check_width(D, 0, D);
    for (size_t n = 0; n < sizeof wide / sizeof *wide; n++)
        check_width(wide[n], 0, (int64_t)n);
}

static void value_widths(void)
{
    static const ptrdiff_t widths[] = {1, 7, 8, 16, 31, 32, 33, 64, 96, 127, 128, 200, 1024};
    const int64_t count = (int64_t)(sizeof widths / sizeof *widths);
    for (int64_t n = 0; n < count * count; n++)
        if (n / count != n % count)
            check_width(widths[n / count], widths[n % count], n);
}

/* Random cases in guarded memory, with threads, by plan. */
static void anything_guarded(void)
{
    mha_pool *pool;
    if (!CHECK(mha_pool_create(&pool, 3) == MHA_OK, "no pool"))
        return;
    const uint64_t base = test_seed(9000);
    for (int64_t n = 0; n < test_effort(200); n++) {
        problem_spec spec = problem_spec_random(base + (uint64_t)n, 2e5);
        spec.memory = n % 2 ? &guard_memory_back : &guard_memory_front;
        problem *const c = problem_new(&spec);
        problem_run_planned(c, n % 3 ? pool : NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
    mha_pool_free(pool);
}

/* All 32 choices of zero among B, H, L, S and D: nothing is written but the empty rows of S = 0. */
static void zero_extents(void)
{
    for (unsigned zero = 0; zero < 32; zero++) {
        const problem_spec spec = {
            .shape = {.B = zero & 1 ? 0 : 2,
                      .H = zero & 2 ? 0 : 3,
                      .L = zero & 4 ? 0 : 5,
                      .S = zero & 8 ? 0 : 6,
                      .D = zero & 16 ? 0 : 7},
            .features = FEATURE_LSE | FEATURE_PLAIN_WEIGHTS,
            .seed = zero,
            .memory = &guard_memory_back,
        };
        problem *const c = problem_new(&spec);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_run_planned(c, NULL);
        problem_expect(c, LIMIT);
        if (zero == 8)
            CHECK(problem_get(c, TENSOR_O, 1, 2, 4, 6) == 0 &&
                      problem_get(c, TENSOR_LSE, 1, 2, 4, 0) == -INFINITY,
                  "no keys: not 0 and -inf");
        problem_delete(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(zero_extents);
    RUN(query_counts);
    RUN(key_counts);
    RUN(head_widths);
    RUN(value_widths);
    RUN(anything_guarded);
    return test_end();
}
