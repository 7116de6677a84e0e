/* SPDX-License-Identifier: MIT */
/*
 * Heads whose keys fit in one block have a path of their own (src/core/one_block.c). Gates of 1
 * change no bit but keep a call off that path, so every problem is computed both ways and compared
 * bit by bit; with memory that ends at a page which must not be touched, since widths that are no
 * multiple of a vector are read in place.
 */
#include "support/problems.h"

#include <math.h>
#include <string.h>

enum { MOST_HEADS = 64 };

static float ones[MOST_HEADS];

/* The same problem along the general path, into the same outputs. */
static void check_both(const problem_spec *spec, mha_pool *pool)
{
    problem *const c = problem_new(spec);
    problem_run(c, pool);
    snapshot direct = snapshot_of(c);
    c->call.options.gates = ones;
    problem_run(c, NULL);
    CHECK(snapshot_same(&direct, c), "differs from the general path: %s", c->name);
    snapshot_free(&direct);
    problem_delete(c);
}

static ptrdiff_t draw(test_random *random, ptrdiff_t most)
{
    return 1 + (ptrdiff_t)test_random_below(random, most);
}

/* Few and many rows, one key up to a few more than a block, widths of all kinds. */
static problem_spec spec_of(test_random *random, unsigned features)
{
    static const ptrdiff_t widths[] = {1, 3, 7, 8, 15, 16, 17, 24, 31, 40, 59, 64, 72, 80, 96, 111};
    static const ptrdiff_t rows[] = {1, 2, 3, 4, 5, 9, 20, 33, 50, 70, 130};
    const ptrdiff_t G = draw(random, 3);
    problem_spec spec = {.features = features, .seed = test_random_u64(random), .logits = 2};
    mha_shape *const s = &spec.shape;
    *s = (mha_shape){.B = draw(random, 3), .G = G, .H = G * draw(random, 3)};
    s->L = rows[test_random_below(random, 11)];
    s->S = test_random_below(random, 3) ? draw(random, 40) : draw(random, 131);
    s->D = test_random_below(random, 8) ? widths[test_random_below(random, 16)] : draw(random, 260);
    s->Dv = test_random_below(random, 2) ? s->D : widths[test_random_below(random, 16)];
    spec.memory = guard_memories[test_random_below(random, 3)];
    return spec;
}

static void run_many(int64_t count, uint64_t seed, unsigned always, unsigned sometimes,
                     mha_pool *pool)
{
    test_random random = {test_seed(seed)};
    for (int64_t n = 0; n < test_effort(count); n++) {
        const unsigned chosen = sometimes & (unsigned)test_random_u64(&random);
        const problem_spec spec = spec_of(&random, always | chosen);
        check_both(&spec, pool);
    }
}

enum {
    ANY = FEATURE_CAUSAL | FEATURE_ADD | FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS | FEATURE_SCALE |
          FEATURE_OFFSET | FEATURE_LSE | FEATURE_PLAIN_WEIGHTS | FEATURE_STRIDES | FEATURE_BROADCAST
};

static void plain(void)
{
    run_many(600, 4100, 0, FEATURE_STRIDES | FEATURE_LSE, NULL);
}

static void everything(void)
{
    run_many(1500, 4200, 0, ANY, NULL);
}

static void additive_masks(void)
{
    run_many(500, 4300, FEATURE_ADD, FEATURE_POISON | FEATURE_PLAIN_WEIGHTS | FEATURE_BROADCAST,
             NULL);
}

static void causal(void)
{
    run_many(500, 4400, FEATURE_CAUSAL, FEATURE_POISON | FEATURE_OFFSET | FEATURE_PLAIN_WEIGHTS,
             NULL);
}

static void packed_batches(void)
{
    run_many(300, 4500, FEATURE_PACKED, FEATURE_CAUSAL | FEATURE_LSE | FEATURE_STRIDES, NULL);
}

static void threads(void)
{
    mha_pool *pool;
    if (!CHECK(mha_pool_create(&pool, 3) == MHA_OK, "no pool"))
        return;
    run_many(400, 4600, 0, ANY, pool);
    mha_pool_free(pool);
}

/* ------------------------------------------------------------ odd numbers */

enum { ROWS = 20, KEYS = 37, WIDTH = 24 };

typedef struct inputs {
    float q[ROWS * WIDTH], k[KEYS * WIDTH], v[KEYS * WIDTH], mask[ROWS * KEYS];
    float direct[ROWS * WIDTH], general[ROWS * WIDTH], lse[2][ROWS];
} inputs;

static void fill(float *x, int count, test_random *random)
{
    for (int n = 0; n < count; n++)
        x[n] = test_random_normal(random);
}

static void run_inputs(inputs *in, unsigned flags, bool general)
{
    const mha_shape s = {.B = 1, .H = 1, .L = ROWS, .S = KEYS, .D = WIDTH};
    const mha_options o = {.size = sizeof o,
                           .flags = flags,
                           .position = MHA_POSITION_TOP_LEFT,
                           .add_mask = {.data = in->mask, .sl = KEYS},
                           .lse = {.data = in->lse[general], .sl = 1},
                           .gates = general ? ones : NULL};
    CHECK(mha_attention(&s, mha_view_bhld(in->q, 1, ROWS, WIDTH),
                        mha_view_bhld(in->k, 1, KEYS, WIDTH), mha_view_bhld(in->v, 1, KEYS, WIDTH),
                        mha_out_bhld(general ? in->general : in->direct, 1, ROWS, WIDTH), &o,
                        NULL) == MHA_OK,
          "failed");
}

static bool same(const float *a, const float *b, int count)
{
    for (int n = 0; n < count; n++)
        if (memcmp(&a[n], &b[n], sizeof *a) != 0 && !(isnan(a[n]) && isnan(b[n])))
            return false;
    return true;
}

/* NaN and infinities at any place, hidden or not, do the same on both paths. */
static void odd_numbers(void)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, 1e-42f, -0.0f};
    test_random random = {test_seed(4700)};
    for (int64_t n = 0; n < test_effort(600); n++) {
        inputs in;
        fill(in.q, ROWS * WIDTH, &random);
        fill(in.k, KEYS * WIDTH, &random);
        fill(in.v, KEYS * WIDTH, &random);
        fill(in.mask, ROWS * KEYS, &random);
        for (int r = 0; n % 3 && r < ROWS * KEYS; r++)
            if (test_random_below(&random, n % 3 == 1 ? 40 : 2) == 0)
                in.mask[r] = -INFINITY;
        float *const places[] = {in.q, in.k, in.v, in.mask};
        static const int sizes[] = {ROWS * WIDTH, KEYS * WIDTH, KEYS * WIDTH, ROWS * KEYS};
        for (int64_t t = test_random_below(&random, 4); t >= 0; t--) {
            const int64_t which = test_random_below(&random, 4);
            places[which][test_random_below(&random, sizes[which])] =
                odd[test_random_below(&random, 6)];
        }
        const unsigned flags = n % 2 ? MHA_CAUSAL : 0;
        run_inputs(&in, flags, false);
        run_inputs(&in, flags, true);
        if (!CHECK(same(in.direct, in.general, ROWS * WIDTH) && same(in.lse[0], in.lse[1], ROWS),
                   "case %lld", (long long)n))
            return;
    }
}

/* Rows that see no key at all, among others. */
static void empty_rows(void)
{
    test_random random = {test_seed(4800)};
    inputs in;
    fill(in.q, ROWS * WIDTH, &random);
    fill(in.k, KEYS * WIDTH, &random);
    fill(in.v, KEYS * WIDTH, &random);
    fill(in.mask, ROWS * KEYS, &random);
    for (int j = 0; j < KEYS; j++)
        in.mask[7 * KEYS + j] = -INFINITY;
    run_inputs(&in, 0, false);
    run_inputs(&in, 0, true);
    CHECK(same(in.direct, in.general, ROWS * WIDTH) && same(in.lse[0], in.lse[1], ROWS), "differs");
    CHECK(in.lse[0][7] == -INFINITY && in.direct[7 * WIDTH] == 0.0f, "not empty");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    for (int h = 0; h < MOST_HEADS; h++)
        ones[h] = 1.0f;
    RUN(plain);
    RUN(everything);
    RUN(additive_masks);
    RUN(causal);
    RUN(packed_batches);
    RUN(threads);
    RUN(odd_numbers);
    RUN(empty_rows);
    return test_end();
}
