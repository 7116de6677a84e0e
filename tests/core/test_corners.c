/* SPDX-License-Identifier: MIT */
/* Corners that were once wrong, one test each. */
#include "support/test.h"

#include <mha/mha.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill(float *x, int count, uint64_t seed)
{
    test_random random = {seed};
    for (int n = 0; n < count; n++)
        x[n] = test_random_float(&random);
}

/* A row that sees no key is 0 even if its sink is not a number. */
static void empty_rows_ignore_the_sink(void)
{
    static const float sinks[] = {INFINITY, NAN, -INFINITY, 1e30f};
    float q[4] = {1, 2, 3, 4}, o[4];
    for (int n = 0; n < 4; n++) {
        const mha_shape shape = {.B = 1, .H = 1, .L = 1, .S = 0, .D = 4};
        const mha_options options = {.size = sizeof options, .sinks = &sinks[n]};
        memset(o, 0xff, sizeof o);
        const mha_status status =
            mha_attention(&shape, mha_view_bhld(q, 1, 1, 4), mha_view_bhld(q, 1, 0, 4),
                          mha_view_bhld(q, 1, 0, 4), mha_out_bhld(o, 1, 1, 4), &options, NULL);
        CHECK(status == MHA_OK, "%s", mha_status_string(status));
        for (int c = 0; c < 4; c++)
            CHECK(o[c] == 0, "sink %g: o[%d] is %g", (double)sinks[n], c, (double)o[c]);
    }
}

enum { ROWS = 8, KEYS = 200, WIDTH = 16 };

static mha_options far_options(const float *slopes, ptrdiff_t offset)
{
    return (mha_options){.size = sizeof(mha_options),
                         .flags = MHA_WINDOW,
                         .position = MHA_POSITION_OFFSET,
                         .offset = offset,
                         .window_left = offset - 40,
                         .window_right = -1,
                         .alibi_slopes = slopes};
}

/* Positions beyond 2^24 are rounded, but in the same way alone and among other rows. */
static void far_positions_round_alike(void)
{
    static const ptrdiff_t offsets[] = {1 << 24, (1 << 24) + 7, 1 << 28};
    static float q[ROWS * WIDTH], k[KEYS * WIDTH], together[ROWS * WIDTH], alone[WIDTH];
    const float slope = 0.001f;
    fill(q, ROWS * WIDTH, 1);
    fill(k, KEYS * WIDTH, 2);
    const mha_view keys = mha_view_bhld(k, 1, KEYS, WIDTH);
    for (int n = 0; n < 3; n++) {
        const mha_shape all = {.B = 1, .H = 1, .L = ROWS, .S = KEYS, .D = WIDTH};
        const mha_options options = far_options(&slope, offsets[n]);
        mha_attention(&all, mha_view_bhld(q, 1, ROWS, WIDTH), keys, keys,
                      mha_out_bhld(together, 1, ROWS, WIDTH), &options, NULL);
        for (int i = 0; i < ROWS; i++) {
            const mha_shape one = {.B = 1, .H = 1, .L = 1, .S = KEYS, .D = WIDTH};
            mha_options at = far_options(&slope, offsets[n]);
            at.offset += i;
            at.window_left = offsets[n] - 40;
            mha_attention(&one, mha_view_bhld(q + i * WIDTH, 1, 1, WIDTH), keys, keys,
                          mha_out_bhld(alone, 1, 1, WIDTH), &at, NULL);
            CHECK(memcmp(alone, together + i * WIDTH, sizeof alone) == 0, "offset %td, row %d",
                  offsets[n], i);
        }
    }
}

/* A size that ends inside a field would cut a pointer in two. */
static void sizes_inside_a_field_are_refused(void)
{
    float x[4] = {1, 2, 3, 4}, o[4];
    const mha_shape shape = {.B = 1, .H = 1, .L = 1, .S = 1, .D = 4};
    for (size_t size = 1; size < sizeof(mha_options); size++) {
        const mha_options options = {.size = size};
        const mha_status status =
            mha_attention(&shape, mha_view_bhld(x, 1, 1, 4), mha_view_bhld(x, 1, 1, 4),
                          mha_view_bhld(x, 1, 1, 4), mha_out_bhld(o, 1, 1, 4), &options, NULL);
        const bool whole =
            size % _Alignof(mha_options) == 0 && size >= offsetof(mha_options, offset);
        CHECK(status == (whole ? MHA_OK : MHA_ERR_STRUCT), "size %zu: %s", size,
              mha_status_string(status));
    }
}

/* q and o woven into one buffer: the distance of o from q, and what they share. */
static mha_status woven(mha_view q, mha_out o, const float *k, ptrdiff_t heads, ptrdiff_t rows)
{
    const mha_shape shape = {.B = 2, .H = heads, .L = rows, .S = 3, .D = 4};
    const mha_view keys = mha_view_bhld(k, heads, 3, 4);
    return mha_attention(&shape, q, keys, keys, o, NULL, NULL);
}

static void woven_layouts_are_told_apart(void)
{
    enum { H = 3, LONG = 9, L = 5, D = 4, PAD = 2 };
    static float memory[2 * 2 * H * LONG * (D + PAD)], k[2 * H * 3 * D];
    const ptrdiff_t slab = H * LONG * D, row = 2 * H * (D + PAD);
    mha_view q = {memory, 2 * slab, LONG * D, D};
    mha_out o = {memory + slab, 2 * slab, LONG * D, D};
    CHECK(woven(q, o, k, H, L) == MHA_OK, "slabs with room after the rows");
    o.data = memory + slab - D;
    CHECK(woven(q, o, k, H, LONG) == MHA_ERR_OVERLAP, "slabs that touch");

    q = (mha_view){memory, L * row, D + PAD, row};
    o = (mha_out){memory + H * (D + PAD), L * row, D + PAD, row};
    CHECK(woven(q, o, k, H, L) == MHA_OK, "rows of q and o side by side, heads padded");
    o.data = memory + D;
    CHECK(woven(q, o, k, H, L) == MHA_ERR_OVERLAP, "heads of o in the padding of q");

    q = (mha_view){memory + (H - 1) * (D + PAD), L * row, -(D + PAD), row};
    o.data = memory + H * (D + PAD);
    CHECK(woven(q, o, k, H, L) == MHA_OK, "heads of q in reverse");
}

/* A workspace said to be larger than memory still may not hold the output. */
static void workspace_of_any_size_is_checked(void)
{
    const mha_shape shape = {.B = 1, .H = 1, .L = 1, .S = 1, .D = 4};
    float x[4] = {1, 2, 3, 4};
    mha_plan *plan = NULL;
    if (!CHECK(mha_plan_create(&plan, &shape, NULL) == MHA_OK, "no plan"))
        return;
    const size_t size = mha_plan_work_size(plan, 1);
    char *const work = malloc(size + 64);
    const mha_view one = mha_view_bhld(x, 1, 1, 4);
    const mha_out inside = mha_out_bhld((float *)(work + 64), 1, 1, 4);
    const mha_status status = mha_plan_run(plan, one, one, one, inside, NULL, work, SIZE_MAX, NULL);
    CHECK(status == MHA_ERR_OVERLAP, "%s", mha_status_string(status));
    free(work);
    mha_plan_free(plan);
}

/* With one key the stride of keys is not used, however large. */
static void strides_of_one_key_are_unused(void)
{
    float x[16], o[16];
    fill(x, 16, 3);
    const mha_shape shape = {.B = 1, .H = 1, .L = 1, .S = 1, .D = 16};
    const mha_view far = {x, 0, 0, PTRDIFF_MAX / 3};
    const mha_status status =
        mha_attention(&shape, far, far, far, mha_out_bhld(o, 1, 1, 16), NULL, NULL);
    CHECK(status == MHA_OK && memcmp(o, x, sizeof x) == 0, "%s", mha_status_string(status));
}

static void mean_over_no_head_is_refused(void)
{
    float x[4] = {1, 2, 3, 4}, o[4], w[1];
    const int64_t none = 0;
    const mha_shape shape = {.B = 1, .H = 1, .L = 1, .S = 1, .D = 4};
    const mha_view one = mha_view_bhld(x, 1, 1, 4);
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_AVERAGE_WEIGHTS,
                                 .weights = {w, 1, 1, 1},
                                 .weights_heads = &none};
    const mha_status status =
        mha_attention(&shape, one, one, one, mha_out_bhld(o, 1, 1, 4), &options, NULL);
    CHECK(status == MHA_ERR_INDEX, "%s", mha_status_string(status));
}

/* A forked child has the pool but not its threads; freeing it must not wait for them. */
static void forked_child_frees_the_pool(void)
{
    mha_pool *pool = NULL;
    if (!CHECK(mha_pool_create(&pool, 3) == MHA_OK, "no pool"))
        return;
    const pid_t child = fork();
    if (child == 0) {
        mha_pool_free(pool);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child ended with %d", status);
    mha_pool_free(pool);
}

/* Masks count past 2^32 keys: the only key and value, broadcast, in a window around them. */
static void masks_of_far_keys(void)
{
    const int64_t far = INT64_C(1) << 32;
    enum { BEHIND = 64, BEFORE = 512 };
    if (sizeof(ptrdiff_t) < 8) {
        test_skip("addresses have 32 bits");
        return;
    }
    const size_t size = (size_t)(far + BEHIND);
    unsigned char *const mask = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mask == MAP_FAILED) {
        test_skip("no 4 GiB of addresses");
        return;
    }
    float x[WIDTH] = {1}, o[WIDTH], lse;
    memset(mask + far - BEFORE, 1, BEFORE);
    const mha_shape shape = {
        .B = 1, .H = 1, .L = 1, .S = (ptrdiff_t)(far + BEHIND), .D = WIDTH, .Dv = WIDTH};
    const mha_view one = {x, 0, 0, 0};
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_WINDOW,
                                 .scale = 1,
                                 .position = MHA_POSITION_OFFSET,
                                 .offset = (ptrdiff_t)far,
                                 .window_left = 200,
                                 .window_right = 30,
                                 .ignore_mask = {mask, 0, 0, 0},
                                 .lse = {&lse, 0, 0, 0}};
    const mha_status status =
        mha_attention(&shape, one, one, one, mha_out_bhld(o, 1, 1, WIDTH), &options, NULL);
    CHECK(status == MHA_OK, "status %d", (int)status);
    CHECK(fabs((double)lse - (1 + log(31))) < 1e-5, "%g keys", exp((double)lse - 1));
    munmap(mask, size);
}

/* One query (1, 0), keys (1, 0) and (0, 1), values likewise: the first element of the output is
 * 1/(1 + exp(-s)), s the capped score. */
static double weight_of(double scale, double cap, bool wide, mha_options options)
{
    const double q[] = {1, 0}, kv[] = {1, 0, 0, 1};
    const float q32[] = {1, 0}, kv32[] = {1, 0, 0, 1};
    const mha_dtype type = wide ? MHA_F64 : MHA_F32;
    const mha_shape shape = {.B = 1,
                             .H = 1,
                             .L = 1,
                             .S = 2,
                             .D = 2,
                             .q_type = type,
                             .k_type = type,
                             .v_type = type,
                             .o_type = type};
    double o[2] = {0, 0};
    float o32[2] = {0, 0};
    options.size = sizeof options;
    options.scale = (float)scale;
    options.softcap = (float)cap;
    const mha_view keys = mha_view_bhld(wide ? (const void *)kv : kv32, 1, 2, 2);
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(wide ? (const void *)q : q32, 1, 1, 2), keys, keys,
                      mha_out_bhld(wide ? (void *)o : o32, 1, 1, 2), &options, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    return wide ? o[0] : (double)o32[0];
}

/* A scale and a soft cap of f64 keep all digits; other types do not read them. */
static void f64_has_all_digits(void)
{
    const double scale = 0.1, cap = 0.3, exact = 1 / (1 + exp(-cap * tanh(scale / cap)));
    const mha_options digits = {.scale64 = scale, .softcap64 = cap}, other = {.scale64 = 3};
    CHECK(fabs(weight_of(scale, cap, true, digits) - exact) < 1e-15, "f64 with all digits");
    CHECK(fabs(weight_of(0, 0, true, digits) - exact) < 1e-15, "f64 without the floats");
    const double rounded = fabs(weight_of(scale, cap, true, (mha_options){0}) - exact);
    CHECK(rounded > 1e-12 && rounded < 1e-8, "f64 of floats is off by %g", rounded);
    CHECK(weight_of(scale, cap, false, other) == weight_of(scale, cap, false, (mha_options){0}),
          "f32 does not read them");
}

/* The mean over heads of scores that are finite is finite, however large they are. */
static void means_of_large_scores_are_finite(void)
{
    enum { MOST_HEADS = 13 };
    static const float x[MOST_HEADS * 4];
    static float y[MOST_HEADS * 4];
    const float most = 3.4028234e38f, bias[4] = {-most, -INFINITY, most, 1};
    for (int heads = 1; heads <= MOST_HEADS; heads++) {
        const mha_shape shape = {.B = 1, .H = heads, .L = 2, .S = 2, .D = 2};
        const mha_view in = mha_view_bhld(x, heads, 2, 2);
        float weights[4];
        const mha_options options = {.size = sizeof options,
                                     .flags = MHA_AVERAGE_WEIGHTS,
                                     .bias = {bias, 0, 0, 2},
                                     .weights = {weights, 0, 0, 2},
                                     .weights_mode = MHA_WEIGHTS_BIAS};
        const mha_status status =
            mha_attention(&shape, in, in, in, mha_out_bhld(y, heads, 2, 2), &options, NULL);
        CHECK(status == MHA_OK, "%s", mha_status_string(status));
        for (int e = 0; e < 4; e++)
            CHECK(bias[e] == weights[e] || fabsf(weights[e] / bias[e] - 1) < 3e-7f,
                  "%d heads: %g for %g", heads, (double)weights[e], (double)bias[e]);
    }
}

/* The same in f64, whose masks are as large as a double can be. */
static void means_of_large_doubles_are_finite(void)
{
    enum { HEADS = 7 };
    static const double x[HEADS * 2], most = 1.7976931348623157e308;
    static double y[HEADS * 2], weight;
    const double bias = -most;
    const mha_shape shape = {.B = 1,
                             .H = HEADS,
                             .L = 1,
                             .S = 1,
                             .D = 2,
                             .q_type = MHA_F64,
                             .k_type = MHA_F64,
                             .v_type = MHA_F64,
                             .o_type = MHA_F64};
    const mha_view in = mha_view_bhld(x, HEADS, 1, 2);
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_AVERAGE_WEIGHTS,
                                 .bias = {&bias, 0, 0, 1},
                                 .bias_type = MHA_F64,
                                 .weights = {&weight, 0, 0, 1},
                                 .weights_type = MHA_F64,
                                 .weights_mode = MHA_WEIGHTS_BIAS};
    const mha_status status =
        mha_attention(&shape, in, in, in, mha_out_bhld(y, HEADS, 1, 2), &options, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    CHECK(fabs(weight / bias - 1) < 1e-15, "%g", weight);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(empty_rows_ignore_the_sink);
    RUN(far_positions_round_alike);
    RUN(sizes_inside_a_field_are_refused);
    RUN(woven_layouts_are_told_apart);
    RUN(workspace_of_any_size_is_checked);
    RUN(strides_of_one_key_are_unused);
    RUN(mean_over_no_head_is_refused);
    RUN(forked_child_frees_the_pool);
    RUN(masks_of_far_keys);
    RUN(f64_has_all_digits);
    RUN(means_of_large_scores_are_finite);
    RUN(means_of_large_doubles_are_finite);
    return test_end();
}
