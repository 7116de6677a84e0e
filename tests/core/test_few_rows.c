/* SPDX-License-Identifier: MIT */
/*
 * Few rows against many keys, as in decoding: blocks of keys and values go through the kernels in
 * long runs, which masks, dropout and modes of heads must not disturb. Compared with the reference
 * path in double precision, which knows no blocks.
 */
#include "support/problems.h"

#include <math.h>
#include <string.h>

enum { HEADS = 8, GROUPS = 2, WIDTH = 128, MOST_KEYS = 5000, MOST_ROWS = 2 };

/* Numbers that every storage type holds exactly. */
typedef struct inputs {
    double q[HEADS * MOST_ROWS * WIDTH], k[GROUPS * MOST_KEYS * WIDTH],
        v[GROUPS * MOST_KEYS * WIDTH];
    char stored[3][GROUPS * MOST_KEYS * WIDTH * sizeof(float)];
    double want[HEADS * MOST_ROWS * WIDTH];
    float got[HEADS * MOST_ROWS * WIDTH];
    uint8_t attend[MOST_KEYS];
} inputs;

static inputs in;

static void fill(double *x, int count, test_random *random)
{
    for (int n = 0; n < count; n++)
        x[n] = (double)(test_random_below(random, 63) - 31) / 32;
}

/* To f32, whose upper half is bf16. */
static const void *store(const double *x, int count, mha_dtype type, char *to)
{
    for (int n = 0; n < count; n++) {
        const float single = (float)x[n];
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        const uint16_t half = (uint16_t)(bits >> 16);
        if (type == MHA_BF16)
            memcpy(to + 2 * n, &half, sizeof half);
        else
            memcpy(to + 4 * n, &single, sizeof single);
    }
    return to;
}

static mha_status attend(const mha_shape *s, const void *q, const void *k, const void *v, void *o,
                         const mha_options *options)
{
    return mha_attention(s, mha_view_bhld(q, s->H, s->L, s->D), mha_view_bhld(k, s->G, s->S, s->D),
                         mha_view_bhld(v, s->G, s->S, s->Dv), mha_out_bhld(o, s->H, s->L, s->Dv),
                         options, NULL);
}

static void compare(mha_shape s, const mha_options *options, const char *what)
{
    const int queries = (int)(s.H * s.L * s.D), keys = (int)(s.G * s.S * s.D);
    mha_shape exact = s;
    exact.q_type = exact.k_type = exact.v_type = exact.o_type = MHA_F64;
    CHECK(attend(&exact, in.q, in.k, in.v, in.want, options) == MHA_OK, "%s", what);
    CHECK(attend(&s, store(in.q, queries, MHA_F32, in.stored[0]),
                 store(in.k, keys, s.k_type, in.stored[1]),
                 store(in.v, keys, s.v_type, in.stored[2]), in.got, options) == MHA_OK,
          "%s", what);
    for (int n = 0; n < queries; n++)
        if (!CHECK(fabs((double)in.got[n] - in.want[n]) < 2e-6,
                   "%s, S %td, L %td, D %td: %g, not %g", what, s.S, s.L, s.D, (double)in.got[n],
                   in.want[n]))
            return;
}

/* Shapes whose tasks have 1 to 4 rows: some whole blocks, some keys more, one split and several. */
static mha_shape shape_of(int64_t n, test_random *random)
{
    static const ptrdiff_t S[] = {129, 256, 300, 1024, 1100, 2500, 4096, 4200, MOST_KEYS};
    static const mha_dtype types[] = {MHA_F32, MHA_BF16};
    const ptrdiff_t rows = 1 + n % MOST_ROWS, group = n % 3 == 0 ? 1 : 4 / rows;
    const mha_shape s = {.B = 1,
                         .H = GROUPS * group,
                         .G = GROUPS,
                         .L = rows,
                         .S = S[n % 9],
                         .D = n % 2 ? 64 : WIDTH,
                         .Dv = n % 2 ? 64 : WIDTH,
                         .k_type = types[n / 3 % 2],
                         .v_type = types[n / 2 % 2]};
    fill(in.q, (int)(s.H * s.L * s.D), random);
    fill(in.k, (int)(s.G * s.S * s.D), random);
    fill(in.v, (int)(s.G * s.S * s.D), random);
    return s;
}

static void plain(void)
{
    test_random random = {test_seed(71)};
    for (int64_t n = 0; n < test_effort(18); n++)
        compare(shape_of(n, &random), NULL, "plain");
}

/* Hidden values are not numbers: tasks are done again, each row by itself. */
static void masks_with_hidden_nan(void)
{
    test_random random = {test_seed(72)};
    for (int64_t n = 0; n < test_effort(18); n++) {
        const mha_shape s = shape_of(n, &random);
        for (ptrdiff_t j = 0; j < s.S; j++) {
            in.attend[j] = test_random_below(&random, 90) != 0;
            for (ptrdiff_t c = 0; !in.attend[j] && n % 2 && c < s.G * s.D; c++)
                in.v[(c / s.D * s.S + j) * s.D + c % s.D] = (double)NAN;
        }
        const mha_options o = {.size = sizeof o, .attend_mask = {.data = in.attend}};
        compare(s, &o, "mask");
    }
}

/* Blocks that no row sees, and blocks that rows see in part, lie between whole ones. */
static void holes(void)
{
    test_random random = {test_seed(73)};
    for (int64_t n = 0; n < test_effort(18); n++) {
        const mha_shape s = shape_of(n, &random);
        const ptrdiff_t first = test_random_below(&random, s.S);
        const ptrdiff_t last = first + test_random_below(&random, s.S - first);
        for (ptrdiff_t j = 0; j < s.S; j++)
            in.attend[j] = j < first || j >= last;
        const mha_options o = {.size = sizeof o, .attend_mask = {.data = in.attend}};
        compare(s, &o, "hole");
    }
}

static void windows(void)
{
    test_random random = {test_seed(74)};
    for (int64_t n = 0; n < test_effort(18); n++) {
        const mha_shape s = shape_of(n, &random);
        const mha_options o = {.size = sizeof o,
                               .flags = MHA_CAUSAL | MHA_WINDOW,
                               .position = MHA_POSITION_BOTTOM_RIGHT,
                               .window_left = test_random_below(&random, s.S)};
        compare(s, &o, "window");
    }
}

static void dropped_weights(void)
{
    test_random random = {test_seed(75)};
    for (int64_t n = 0; n < test_effort(18); n++) {
        const mha_options o = {
            .size = sizeof o, .flags = MHA_TRAINING, .dropout = 0.25f, .dropout_seed = (uint64_t)n};
        compare(shape_of(n, &random), &o, "dropout");
    }
}

static void modes_of_heads(void)
{
    static const uint8_t modes[HEADS] = {1, 0, 2, 0, 0, 2, 1, 1};
    static const float means[HEADS * WIDTH] = {0.5f, -1.0f};
    test_random random = {test_seed(76)};
    for (int64_t n = 0; n < test_effort(18); n++) {
        const mha_options o = {.size = sizeof o, .head_modes = modes, .head_means = means};
        compare(shape_of(n, &random), &o, "modes");
    }
}

static void scores_with_more_to_them(void)
{
    static const float slopes[HEADS] = {0.01f, 0.02f, 0.03f, 0.04f, 0.05f, 0.06f, 0.07f, 0.08f};
    static const float sinks[HEADS] = {1.0f, -1.0f, 2.0f, 0.0f, 3.0f, 0.5f, 1.5f, -2.0f};
    test_random random = {test_seed(77)};
    for (int64_t n = 0; n < test_effort(18); n++) {
        const mha_options o = {.size = sizeof o,
                               .softcap = 5.0f,
                               .alibi_slopes = slopes,
                               .sinks = sinks,
                               .position = MHA_POSITION_BOTTOM_RIGHT};
        compare(shape_of(n, &random), &o, "soft cap, ALiBi and sinks");
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(plain);
    RUN(masks_with_hidden_nan);
    RUN(holes);
    RUN(windows);
    RUN(dropped_weights);
    RUN(modes_of_heads);
    RUN(scores_with_more_to_them);
    return test_end();
}
