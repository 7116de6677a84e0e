/* SPDX-License-Identifier: MIT */
/* Keep bits: keep_bytes, keep_above and keep_equal clear exactly the bits they should. */
#include "support/kernel_bench.h"

#include <math.h>
#include <string.h>

/* Exactly the words that hold n bits. */
static span words_of(test_random *random, int n)
{
    return span_new(random, E_WORD, 0, (n + 31) / 32);
}

static void clear_bit(const span *words, int j)
{
    ((uint32_t *)words->origin)[j / 32] &= ~(1u << (j % 32));
}

static void keep_bytes_follows_both_polarities(const mhak_table *kernels)
{
    static const uint8_t values[] = {0, 0, 0, 1, 1, 2, 0x80, 0xff};
    test_random random = {test_seed(61)};
    for (int n = 0; n <= MHAK_BLOCK; n++)
        for (int drop = 0; drop <= 1; drop++) {
            span bytes = span_new(&random, E_BYTE, 0, n), keep = words_of(&random, n);
            uint8_t *const at = bytes.origin;
            span want = span_copy(&keep);
            for (int j = 0; j < n; j++) {
                at[j] = values[test_random_below(&random, sizeof values)];
                if ((at[j] != 0) == drop)
                    clear_bit(&want, j);
            }
            span_seal(&bytes);
            kernels->keep_bytes(bytes.origin, n, drop, keep.origin);
            span_check(&keep, &want, "%d bytes, drop %d", n, drop);
            span_free(&bytes);
            span_free(&keep);
            span_free(&want);
        }
}

static void every_byte_but_zero_is_true(const mhak_table *kernels)
{
    uint8_t bytes[MHAK_BLOCK];
    for (int base = 0; base < 256; base += MHAK_BLOCK) {
        uint32_t attend[MHAK_WORDS], ignore[MHAK_WORDS];
        memset(attend, 0xff, sizeof attend);
        memset(ignore, 0xff, sizeof ignore);
        for (int j = 0; j < MHAK_BLOCK; j++)
            bytes[j] = (uint8_t)(base + j);
        kernels->keep_bytes(bytes, MHAK_BLOCK, false, attend);
        kernels->keep_bytes(bytes, MHAK_BLOCK, true, ignore);
        for (int j = 0; j < MHAK_BLOCK; j++) {
            CHECK(bit_of(attend, j) == (bytes[j] != 0), "attend: byte %d", bytes[j]);
            CHECK(bit_of(ignore, j) == (bytes[j] == 0), "ignore: byte %d", bytes[j]);
        }
    }
}

static void check_keep_above(const mhak_table *kernels, test_random *random, element type, int n)
{
    span numbers = span_new(random, type, 0, n), keep = words_of(random, n);
    span want = span_copy(&keep);
    for (int j = 0; j < n; j++) {
        if (test_random_below(random, 3) == 0)
            span_set(&numbers, j, -INFINITY);
        if (span_get(&numbers, j) == -INFINITY)
            clear_bit(&want, j);
    }
    span_seal(&numbers);
    kernels->keep_above[type](numbers.origin, n, keep.origin);
    span_check(&keep, &want, "type %d, %d numbers", (int)type, n);
    span_free(&numbers);
    span_free(&keep);
    span_free(&want);
}

static void keep_above_clears_minus_infinity(const mhak_table *kernels)
{
    test_random random = {test_seed(62)};
    for (int n = 0; n <= MHAK_BLOCK; n++)
        for (int type = E_F32; type <= E_BF16; type++)
            check_keep_above(kernels, &random, (element)type, n);
}

/* Only -inf masks: not the smallest finite number, nor NaN of either sign. */
static void keep_above_knows_every_half(const mhak_table *kernels)
{
    static const uint16_t infinity[] = {[E_F16] = 0xfc00, [E_BF16] = 0xff80};
    for (int type = E_F16; type <= E_BF16; type++)
        for (int base = 0; base < 65536; base += MHAK_BLOCK) {
            uint16_t bits[MHAK_BLOCK];
            uint32_t keep[MHAK_WORDS];
            memset(keep, 0xff, sizeof keep);
            for (int j = 0; j < MHAK_BLOCK; j++)
                bits[j] = (uint16_t)(base + j);
            kernels->keep_above[type](bits, MHAK_BLOCK, keep);
            for (int j = 0; j < MHAK_BLOCK; j++)
                CHECK(bit_of(keep, j) == (bits[j] != infinity[type]), "type %d: %#x", type,
                      bits[j]);
        }
}

static void keep_equal_compares_documents(const mhak_table *kernels)
{
    static const int32_t ids[] = {0, 1, -1, INT32_MAX, INT32_MIN};
    enum { IDS = sizeof ids / sizeof ids[0] };
    test_random random = {test_seed(63)};
    for (int n = 0; n <= MHAK_BLOCK; n++) {
        span documents = span_new(&random, E_WORD, 0, n), keep = words_of(&random, n);
        span want = span_copy(&keep);
        int32_t *const at = documents.origin;
        const int32_t id = ids[test_random_below(&random, IDS)];
        for (int j = 0; j < n; j++) {
            at[j] = test_random_below(&random, 2) ? id : ids[test_random_below(&random, IDS)];
            if (at[j] != id)
                clear_bit(&want, j);
        }
        span_seal(&documents);
        kernels->keep_equal(documents.origin, n, id, keep.origin);
        span_check(&keep, &want, "%d documents, id %d", n, id);
        span_free(&documents);
        span_free(&keep);
        span_free(&want);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(keep_bytes_follows_both_polarities);
    RUN_KERNELS(every_byte_but_zero_is_true);
    RUN_KERNELS(keep_above_clears_minus_infinity);
    RUN_KERNELS(keep_above_knows_every_half);
    RUN_KERNELS(keep_equal_compares_documents);
    return test_end();
}
