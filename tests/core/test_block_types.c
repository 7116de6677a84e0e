/* SPDX-License-Identifier: MIT */
/*
 * Rows of block types: each weight is compared with a reference that computes it alone, from the
 * bytes of its block, in double precision. Then rows that are made from numbers, and blocks that
 * go into panels and out of them again.
 */
#include "core/linear.h"
#include "support/guard.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const mha_dtype types[] = {MHA_Q8_0, MHA_Q4_0, MHA_Q4_1, MHA_Q4_K, MHA_Q5_K, MHA_Q6_K};
static const int lengths[] = {32, 32, 32, 256, 256, 256};
static const int sizes[] = {34, 18, 20, 144, 176, 210};
enum { TYPES = 6 };

/* ------------------------------------------------------------- the reference ---- */

static double half_at(const uint8_t *p)
{
    const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double x = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31)
        x = fraction ? (double)NAN : (double)INFINITY;
    return bits & 0x8000 ? -x : x;
}

/* Four bits of `bytes`: those of the first `half` bytes' low halves, then of their high halves. */
static int nibble(const uint8_t *bytes, int half, int i)
{
    return i < half ? bytes[i] & 15 : bytes[i - half] >> 4;
}

/* Six bits: number j of eight scales (kind 0) or minimums (kind 1) in twelve bytes. */
static int six_bits(const uint8_t *s, int j, int kind)
{
    if (j < 4)
        return s[j + 4 * kind] & 63;
    const int low = kind ? s[j + 4] >> 4 : s[j + 4] & 15;
    return low | s[j - 4 + 4 * kind] >> 6 << 4;
}

static double weight_of_k(const uint8_t *block, int i, const uint8_t *low, int fifth)
{
    const int group = i / 32;
    const int q = nibble(low + i / 64 * 32, 32, i % 64) + 16 * fifth;
    const double scale = half_at(block) * six_bits(block + 4, group, 0);
    return scale * q - half_at(block + 2) * six_bits(block + 4, group, 1);
}

static double weight_of_q6_k(const uint8_t *block, int i)
{
    const int part = i / 128, within = i % 128;
    const int low = nibble(block + part * 64, 64, within);
    const int high = block[128 + part * 32 + within % 32] >> within / 32 * 2 & 3;
    return half_at(block + 208) * (int8_t)block[192 + i / 16] * ((low | high << 4) - 32);
}

/* Weight i of a block, as its definition has it. */
static double weight_of(mha_dtype type, const uint8_t *block, int i)
{
    switch (type) {
    case MHA_Q8_0:
        return half_at(block) * (int8_t)block[2 + i];
    case MHA_Q4_0:
        return half_at(block) * (nibble(block + 2, 16, i) - 8);
    case MHA_Q4_1:
        return half_at(block) * nibble(block + 4, 16, i) + half_at(block + 2);
    case MHA_Q4_K:
        return weight_of_k(block, i, block + 16, 0);
    case MHA_Q5_K:
        return weight_of_k(block, i, block + 48, block[16 + i % 32] >> i / 32 & 1);
    default:
        return weight_of_q6_k(block, i);
    }
}

/* Where a block has its f16 numbers. */
static int head_at(mha_dtype type, int n)
{
    return type == MHA_Q6_K ? 208 : 2 * n;
}

static int heads_of(mha_dtype type)
{
    return type == MHA_Q8_0 || type == MHA_Q4_0 || type == MHA_Q6_K ? 1 : 2;
}

static void set_half(uint8_t *p, int bits)
{
    p[0] = (uint8_t)bits;
    p[1] = (uint8_t)(bits >> 8);
}

/* ---------------------------------------------------------------------- to f32 ---- */

static void rows_have_a_size(void)
{
    for (int t = 0; t < TYPES; t++) {
        CHECK(mha_dtype_size(types[t]) == 0, "type %d has single elements", types[t]);
        CHECK(mha_row_bytes(types[t], 0) == 0, "type %d: nothing", types[t]);
        for (int n = 1; n < 4; n++)
            CHECK(mha_row_bytes(types[t], n * lengths[t]) == (size_t)(n * sizes[t]), "type %d",
                  types[t]);
        CHECK(mha_row_bytes(types[t], lengths[t] + 1) == 0, "type %d: a part", types[t]);
        CHECK(mha_row_bytes(types[t], lengths[t] / 2) == 0, "type %d: half a block", types[t]);
        CHECK(mha_row_bytes(types[t], -lengths[t]) == 0, "type %d: negative", types[t]);
    }
    CHECK(mha_row_bytes(MHA_F32, 7) == 28 && mha_row_bytes(MHA_F16, 7) == 14, "f32, f16");
    CHECK(mha_row_bytes(MHA_BF16, 7) == 14 && mha_row_bytes(MHA_F64, 7) == 56, "bf16, f64");
    CHECK(mha_row_bytes(MHA_I8, 7) == 7, "i8");
    CHECK(mha_row_bytes((mha_dtype)11, 32) == 0 && mha_row_bytes((mha_dtype)-1, 32) == 0,
          "unknown types");
    CHECK(mha_row_bytes(MHA_F64, PTRDIFF_MAX) == 0, "more than memory");
}

static void check_weights(mha_dtype type, const uint8_t *row, int blocks, int length, int size)
{
    float *const to = malloc(sizeof *to * (size_t)(blocks * length));
    if (!to)
        abort();
    CHECK(mha_row_to_f32(type, row, blocks * length, to) == MHA_OK, "type %d", type);
    for (int n = 0; n < blocks * length; n++) {
        const float wanted = (float)weight_of(type, row + n / length * size, n % length);
        CHECK(isnan(wanted) ? isnan(to[n]) : memcmp(&to[n], &wanted, sizeof wanted) == 0,
              "type %d, weight %d: %a, not %a", type, n, (double)to[n], (double)wanted);
    }
    free(to);
}

/* Random bytes are valid blocks; they begin at odd addresses. */
static void weights_are_those_of_the_definition(void)
{
    enum { BLOCKS = 40 };
    test_random random = {test_seed(1901)};
    for (int64_t round = 0; round < test_effort(20); round++)
        for (int t = 0; t < TYPES; t++) {
            guard_buffer row = guard_new((size_t)(BLOCKS * sizes[t]) + 1, GUARD_BEFORE);
            uint8_t *const bytes = (uint8_t *)row.data + 1;
            for (int n = 0; n < BLOCKS * sizes[t]; n++)
                bytes[n] = (uint8_t)test_random_u64(&random);
            guard_seal(&row);
            check_weights(types[t], bytes, BLOCKS, lengths[t], sizes[t]);
            guard_free(&row);
        }
}

/* Scales and minimums of every kind: zeros, denormal, largest, infinite and NaN. */
static void unusual_scales(void)
{
    static const int halves[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00,
                                 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00};
    enum { HALVES = sizeof halves / sizeof *halves };
    test_random random = {test_seed(1902)};
    for (int t = 0; t < TYPES; t++)
        for (int n = 0; n < HALVES * HALVES; n++) {
            uint8_t block[210];
            for (int b = 0; b < sizes[t]; b++)
                block[b] = (uint8_t)test_random_u64(&random);
            set_half(block + head_at(types[t], 0), halves[n / HALVES]);
            if (heads_of(types[t]) == 2)
                set_half(block + head_at(types[t], 1), halves[n % HALVES]);
            check_weights(types[t], block, 1, lengths[t], sizes[t]);
        }
}

/* All numbers of a block, and all scales of a group, at the ends of their range. */
static void extreme_numbers(void)
{
    static const uint8_t fills[] = {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0, 0x55, 0xaa};
    for (int t = 0; t < TYPES; t++)
        for (size_t a = 0; a < sizeof fills; a++)
            for (size_t b = 0; b < sizeof fills; b++) {
                uint8_t block[210];
                for (int n = 0; n < sizes[t]; n++)
                    block[n] = n % 2 ? fills[a] : fills[b];
                for (int h = 0; h < heads_of(types[t]); h++)
                    set_half(block + head_at(types[t], h), 0x2e66 + 77 * h);
                check_weights(types[t], block, 1, lengths[t], sizes[t]);
            }
}

static void plain_rows(void)
{
    static const float f32[] = {1.5f, -0.0f, 3e38f, 1e-40f};
    static const uint16_t f16[] = {0x3e00, 0x8000, 0x7bff, 0x0001, 0x7c00};
    static const uint16_t bf16[] = {0x3fc0, 0x8000, 0x7f7f, 0x0001, 0x7f80};
    float to[5];
    CHECK(mha_row_to_f32(MHA_F32, f32, 4, to) == MHA_OK && memcmp(to, f32, sizeof f32) == 0, "f32");
    CHECK(mha_row_to_f32(MHA_F16, f16, 5, to) == MHA_OK, "f16");
    CHECK(to[0] == 1.5f && to[1] == 0 && signbit(to[1]) && to[2] == 65504 && to[3] == 0x1p-24f &&
              isinf(to[4]),
          "f16 values");
    CHECK(mha_row_to_f32(MHA_BF16, bf16, 5, to) == MHA_OK, "bf16");
    CHECK(to[0] == 1.5f && to[2] > 3e38f && to[3] > 0 && isinf(to[4]), "bf16 values");
}

static void wrong_rows(void)
{
    static const uint8_t row[512];
    float to[512];
    memset(to, 0xa5, sizeof to);
    CHECK(mha_row_to_f32(MHA_F64, row, 32, to) == MHA_ERR_DTYPE, "f64");
    CHECK(mha_row_to_f32(MHA_I8, row, 32, to) == MHA_ERR_DTYPE, "i8");
    CHECK(mha_row_to_f32((mha_dtype)11, row, 32, to) == MHA_ERR_DTYPE, "unknown");
    CHECK(mha_row_to_f32(MHA_Q4_1, row, 33, to) == MHA_ERR_SHAPE, "a part of a block");
    CHECK(mha_row_to_f32(MHA_Q4_K, row, 32, to) == MHA_ERR_SHAPE, "a part of a long block");
    CHECK(mha_row_to_f32(MHA_Q4_1, row, -32, to) == MHA_ERR_SHAPE, "negative");
    CHECK(mha_row_to_f32(MHA_Q4_1, NULL, 32, to) == MHA_ERR_NULL, "no row");
    CHECK(mha_row_to_f32(MHA_Q4_1, row, 32, NULL) == MHA_ERR_NULL, "no room");
    CHECK(mha_row_to_f32(MHA_F16, row + 1, 32, to) == MHA_ERR_ALIGN, "misaligned");
    CHECK(mha_row_to_f32(MHA_Q4_1, NULL, 0, NULL) == MHA_OK, "nothing");
    for (size_t n = 0; n < sizeof to; n++)
        CHECK(((uint8_t *)to)[n] == 0xa5, "written");
}

/* -------------------------------------------------------------------- from f32 ---- */

/* Every number of a block is as near as its scale, as it was rounded, allows. */
static void numbers_are_rounded_to_the_nearest(void)
{
    enum { COUNT = 64 * 32 };
    static float x[COUNT], back[COUNT];
    static uint8_t row[COUNT / 32 * 34];
    static const double steps[] = {0.5, 1.0, 0.5}; /* Q4_0 has no 8, which may be one step away */
    test_random random = {test_seed(1903)};
    for (int64_t round = 0; round < test_effort(20); round++) {
        const float size = (float)ldexp(1.0, (int)test_random_below(&random, 12) - 4);
        for (int n = 0; n < COUNT; n++)
            x[n] = test_random_normal(&random) * size + (n / 32 % 3 == 1 ? size : 0.0f);
        for (int t = 0; t < 3; t++) {
            mhai_blocks_from_f32(types[t], x, COUNT, row);
            CHECK(mha_row_to_f32(types[t], row, COUNT, back) == MHA_OK, "back");
            for (int n = 0; n < COUNT; n++) {
                const uint8_t *const block = row + n / 32 * sizes[t];
                const double d = fabs(half_at(block));
                /* f16 moves the largest number by up to 2^-11 of itself, or the tiniest step. */
                const double allowed =
                    steps[t] * d + fabs((double)x[n]) * 0x1p-10 + 15 * d * 0x1p-11 + 8 * 0x1p-24;
                CHECK(fabs((double)back[n] - (double)x[n]) <= allowed, "type %d: %g became %g",
                      types[t], (double)x[n], (double)back[n]);
            }
        }
    }
}

/* The public function is the one that stores weights, and refuses what it cannot do. */
static void rows_from_numbers(void)
{
    float x[64], to[64];
    uint8_t row[2 * 34], wanted[2 * 34];
    for (int n = 0; n < 64; n++)
        x[n] = (float)(n * n % 37) - 18.0f;
    for (int t = 0; t < 3; t++) {
        memset(row, 0xa5, sizeof row);
        mhai_blocks_from_f32(types[t], x, 64, wanted);
        CHECK(mha_row_from_f32(types[t], x, 64, row) == MHA_OK, "type %d", types[t]);
        CHECK(memcmp(row, wanted, mha_row_bytes(types[t], 64)) == 0, "type %d", types[t]);
    }
    memset(row, 0xa5, sizeof row);
    CHECK(mha_row_from_f32(MHA_F16, x, 64, row) == MHA_ERR_DTYPE, "f16");
    CHECK(mha_row_from_f32(MHA_Q4_K, x, 256, row) == MHA_ERR_DTYPE, "a K type");
    CHECK(mha_row_from_f32((mha_dtype)-1, x, 64, row) == MHA_ERR_DTYPE, "unknown");
    CHECK(mha_row_from_f32(MHA_Q8_0, x, 33, row) == MHA_ERR_SHAPE, "a part of a block");
    CHECK(mha_row_from_f32(MHA_Q8_0, x, -32, row) == MHA_ERR_SHAPE, "negative");
    CHECK(mha_row_from_f32(MHA_Q8_0, NULL, 32, row) == MHA_ERR_NULL, "no numbers");
    CHECK(mha_row_from_f32(MHA_Q8_0, x, 32, NULL) == MHA_ERR_NULL, "no room");
    CHECK(mha_row_from_f32(MHA_Q8_0, NULL, 0, NULL) == MHA_OK, "nothing");
    for (size_t n = 0; n < sizeof row; n++)
        CHECK(row[n] == 0xa5, "written");
    x[5] = INFINITY;
    CHECK(mha_row_from_f32(MHA_Q8_0, x, 64, row) == MHA_OK, "an infinity");
    CHECK(mha_row_to_f32(MHA_Q8_0, row, 64, to) == MHA_OK && isnan(to[0]) && to[40] == to[40],
          "makes its block NaN");
}

/* Blocks that other programs make of these numbers, to the bit. */
static void known_blocks(void)
{
    float x[32];
    uint8_t block[34];
    for (int n = 0; n < 32; n++)
        x[n] = (float)(n - 20) * 0.5f;
    mhai_blocks_from_f32(MHA_Q8_0, x, 32, block);
    CHECK(fabs(half_at(block) - 10.0 / 127) < 1e-4, "scale %g", half_at(block));
    CHECK((int8_t)block[2] == -127 && (int8_t)block[2 + 20] == 0 && (int8_t)block[2 + 31] == 70,
          "Q8_0");
    CHECK((int8_t)block[2 + 1] == -121 && (int8_t)block[2 + 21] == 6, "ties away from 0");
    mhai_blocks_from_f32(MHA_Q4_0, x, 32, block);
    CHECK(half_at(block) == 1.25, "the widest number is -8 times the scale");
    CHECK((block[2] & 15) == 0 && block[2 + 4] >> 4 == 8 && block[2 + 15] >> 4 == 12, "Q4_0");
    mhai_blocks_from_f32(MHA_Q4_1, x, 32, block);
    CHECK(half_at(block + 2) == -10.0, "minimum");
    CHECK((block[4] & 15) == 0 && block[4 + 15] >> 4 == 15, "Q4_1");
}

static void zeros_and_damage(void)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float x[64] = {0}, back[64];
    uint8_t row[68];
    for (int t = 0; t < 3; t++) {
        memset(x, 0, sizeof x);
        mhai_blocks_from_f32(types[t], x, 64, row);
        CHECK(mha_row_to_f32(types[t], row, 64, back) == MHA_OK, "back");
        for (int n = 0; n < 64; n++)
            CHECK(back[n] == 0, "type %d: 0 became %g", types[t], (double)back[n]);
        x[7] = 1e-45f;
        mhai_blocks_from_f32(types[t], x, 64, row);
        CHECK(mha_row_to_f32(types[t], row, 64, back) == MHA_OK, "back");
        CHECK(fabsf(back[7]) < 1e-6f && back[8] == 0, "type %d: denormal", types[t]);
        for (int b = 0; b < 3; b++) {
            x[7] = bad[b];
            x[40] = 1;
            mhai_blocks_from_f32(types[t], x, 64, row);
            CHECK(mha_row_to_f32(types[t], row, 64, back) == MHA_OK, "back");
            for (int n = 0; n < 64; n++)
                CHECK(n < 32 ? isnan(back[n]) : fabsf(back[n] - x[n]) < 1e-3f,
                      "type %d, %g: number %d is %g", types[t], (double)bad[b], n, (double)back[n]);
        }
    }
}

/* --------------------------------------------------------------------- panels ---- */

static mha_linear *linear_of(mha_dtype type, const void *rows, ptrdiff_t outputs, ptrdiff_t inputs)
{
    mha_linear *linear = NULL;
    char message[200] = "";
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = inputs,
                                      .outputs = outputs,
                                      .weight = mha_matrix_out_in(rows, type, inputs),
                                      .stored = type,
                                      .message = message,
                                      .message_size = sizeof message};
    CHECK(mha_linear_create(&linear, &config) == MHA_OK, "%s", message);
    return linear;
}

/* Each block of each output comes out of the panels as it went in, and so do panels as f32. */
static void panels_hold_every_block(void)
{
    enum { OUTPUTS = 37, UNITS = 3 };
    test_random random = {test_seed(1904)};
    for (int t = 0; t < TYPES; t++) {
        const ptrdiff_t inputs = UNITS * lengths[t];
        const size_t bytes = (size_t)(OUTPUTS * UNITS * sizes[t]);
        guard_buffer rows = guard_new(bytes, GUARD_AFTER);
        uint8_t *const at = rows.data;
        for (size_t n = 0; n < bytes; n++)
            at[n] = (uint8_t)test_random_u64(&random);
        mha_linear *const linear = linear_of(types[t], at, OUTPUTS, inputs);
        const ptrdiff_t nr = linear->kernels->nr;
        float *const wide = malloc(sizeof *wide * (size_t)(lengths[t] * nr));
        for (ptrdiff_t n = 0; n < OUTPUTS; n++)
            for (ptrdiff_t u = 0; u < UNITS; u++) {
                const uint8_t *const block = at + (n * UNITS + u) * sizes[t];
                mhai_unit in, out;
                memset(&in, 0, sizeof in);
                mhai_block_read(types[t], block, &in);
                mhai_linear_get_block(linear, n, u, &out);
                CHECK(memcmp(&in, &out, sizeof in) == 0, "type %d, output %td", types[t], n);
                linear->kernels->load_blocks[t](mhai_linear_slice(linear, n / nr, u * lengths[t]),
                                                lengths[t], wide);
                for (int c = 0; c < lengths[t]; c++) {
                    const float got = wide[c * nr + n % nr];
                    const float wanted = (float)weight_of(types[t], block, c);
                    CHECK(isnan(wanted) ? isnan(got) : memcmp(&got, &wanted, 4) == 0,
                          "type %d, output %td, input %d: %g, not %g", types[t], n, c, (double)got,
                          (double)wanted);
                }
            }
        free(wide);
        mha_linear_free(linear);
        guard_free(&rows);
    }
}

/* Packed weights are hardly larger than a file's. */
static void packed_sizes(void)
{
    for (int t = 0; t < TYPES; t++) {
        const ptrdiff_t inputs = 1536, outputs = 96;
        void *const rows = calloc((size_t)outputs, mha_row_bytes(types[t], inputs));
        mha_linear *const linear = linear_of(types[t], rows, outputs, inputs);
        const double file = (double)outputs * (double)mha_row_bytes(types[t], inputs);
        CHECK((double)mha_linear_bytes(linear) <= 1.06 * file, "type %d: %zu bytes for %.0f",
              types[t], mha_linear_bytes(linear), file);
        mha_linear_free(linear);
        free(rows);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(rows_have_a_size);
    RUN(weights_are_those_of_the_definition);
    RUN(unusual_scales);
    RUN(extreme_numbers);
    RUN(plain_rows);
    RUN(wrong_rows);
    RUN(numbers_are_rounded_to_the_nearest);
    RUN(rows_from_numbers);
    RUN(known_blocks);
    RUN(zeros_and_damage);
    RUN(panels_hold_every_block);
    RUN(packed_sizes);
    return test_end();
}
