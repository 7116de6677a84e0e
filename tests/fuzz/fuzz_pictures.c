/* SPDX-License-Identifier: MIT */
/*
 * Bytes as files of pictures: IDX, PGM and PPM with headers that are mostly right, CIFAR-10's
 * records, and gzip. A file is refused with a message, or every picture and label of it is where it
 * belongs.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_pictures.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_pictures.c test.c        a test with pseudo-random bytes
 */
#include <stdlib.h>
#include <string.h>

#include "picture/cifar.h"
#include "picture/gzip.h"
#include "picture/idx.h"
#include "picture/pnm_file.h"
#include "support/fuzz.h"

enum { FILE_MAX = 1 << 15, RECORD = 3073 };

static void put_number(uint8_t *at, size_t size, size_t place, int64_t value)
{
    for (size_t n = 0; n < 4 && place + n < size; n++)
        at[place + n] = (uint8_t)((uint64_t)value >> (24 - 8 * n));
}

static void check_set(const picture_set *set)
{
    uint64_t sum = 0;
    for (ptrdiff_t n = 0; n < set->count; n++)
        if (set->labels[n] >= set->classes)
            fuzz_die("a label is not one of the classes");
    for (size_t n = 0; n < (size_t)set->count * picture_set_bytes(set); n++)
        sum += set->pixels[n];
    if (sum > UINT64_MAX / 2 || set->count < 1)
        fuzz_die("a set makes no sense");
}

static bool try_idx(fuzz *f)
{
    const int64_t count = fuzz_pick(f, 8), rows = 1 + fuzz_pick(f, 8),
                  columns = 1 + fuzz_pick(f, 8);
    const size_t size = (size_t)(16 + count * rows * columns) - (size_t)fuzz_rare(f);
    const size_t label_size = (size_t)(8 + count) - (size_t)fuzz_rare(f);
    uint8_t *const pictures = fuzz_buffer(f, size), *const labels = fuzz_buffer(f, label_size);
    const int64_t numbers[] = {0x803, count, rows, columns};
    for (size_t n = 0; n < 4; n++)
        put_number(pictures, size, 4 * n, fuzz_rare(f) ? fuzz_absurd(f) : numbers[n]);
    put_number(labels, label_size, 0, fuzz_rare(f) ? fuzz_absurd(f) : 0x801);
    put_number(labels, label_size, 4, fuzz_rare(f) ? fuzz_absurd(f) : count);
    char message[PICTURE_MESSAGE_MAX] = "";
    picture_set set;
    const bool fine = idx_read(pictures, size, "a", labels, label_size, "b", &set, message);
    if (fine)
        check_set(&set);
    else if (strlen(message) < 10 || set.pixels)
        fuzz_die("a file is refused without a message");
    picture_set_free(&set);
    return fine;
}

static bool try_cifar(fuzz *f)
{
    const size_t size = (size_t)(1 + fuzz_pick(f, 3)) * RECORD - (size_t)fuzz_rare(f);
    uint8_t *const bytes = fuzz_buffer(f, size);
    for (size_t n = 0; n < size; n += RECORD)
        bytes[n] = (uint8_t)(fuzz_rare(f) ? 200 : fuzz_pick(f, 10));
    char message[PICTURE_MESSAGE_MAX] = "";
    picture_set set;
    const bool fine = cifar_read(bytes, size, "a", &set, message);
    if (fine)
        check_set(&set);
    else if (strlen(message) < 10 || set.pixels)
        fuzz_die("a file is refused without a message");
    picture_set_free(&set);
    return fine;
}

static bool try_gzip(fuzz *f, const uint8_t *bytes, size_t size)
{
    static const uint8_t begin[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    size = size < FILE_MAX ? size : FILE_MAX;
    uint8_t *const copy = fuzz_buffer(f, sizeof begin + size);
    uint8_t *data = NULL;
    size_t count = 0;
    memcpy(copy, begin, sizeof begin);
    if (size > 0)
        memcpy(copy + sizeof begin, bytes, size);
    const char *const why = gzip_inflate(copy, sizeof begin + size, 1 << 20, &data, &count);
    if (why == NULL ? count > 1 << 20 : data != NULL)
        fuzz_die("more than the limit, or something is left");
    free(data);
    return why == NULL;
}

/* A header that is mostly right, with a comment or not, then some of the pixels. */
static bool try_pnm(fuzz *f)
{
    char text[256];
    const int channels = fuzz_pick(f, 2) ? 3 : 1;
    const int64_t columns = fuzz_rare(f) ? fuzz_absurd(f) : 1 + fuzz_pick(f, 8);
    const int64_t rows = fuzz_rare(f) ? fuzz_absurd(f) : 1 + fuzz_pick(f, 8);
    const int length =
        snprintf(text, sizeof text, "P%d%s%lld %lld\n%d%s", channels == 3 ? 6 : 5,
                 fuzz_pick(f, 2) ? "\n" : " # c\n", (long long)columns, (long long)rows,
                 fuzz_rare(f) ? 65535 : 255, fuzz_rare(f) ? "x" : "\n");
    const size_t size = (size_t)length + (size_t)(8 * 8 * channels) - (size_t)(8 * fuzz_pick(f, 4));
    uint8_t *const bytes = fuzz_buffer(f, size);
    memcpy(bytes, text, (size_t)length);
    FILE *const file = fmemopen(bytes, size, "rb");
    if (!file)
        return false;
    char message[PICTURE_MESSAGE_MAX] = "";
    picture p;
    const bool fine = pnm_stream_read(file, "a", &p, message);
    fclose(file);
    if (fine ? p.rows != rows || p.columns != columns || p.channels != channels
             : strlen(message) < 10 || p.pixels != NULL)
        fuzz_die("another picture, or a file is refused without a message");
    picture_free(&p);
    return fine;
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    fuzz f = fuzz_begin(bytes, size);
    const ptrdiff_t kind = fuzz_pick(&f, 4);
    const bool fine = kind == 0   ? try_idx(&f)
                      : kind == 1 ? try_cifar(&f)
                      : kind == 2 ? try_pnm(&f)
                                  : try_gzip(&f, bytes, size);
    fuzz_finish(&f, fine ? MHA_OK : MHA_ERR_FORMAT);
    return fine;
}

static void pseudo_random_files(void)
{
    uint8_t bytes[64];
    test_random random = {test_seed(103)};
    const int64_t rounds = test_effort(20000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        valid += fuzz_one(bytes, sizeof bytes);
    }
    CHECK(rounds < 1000 || (valid > rounds / 4 && valid < rounds), "%lld of %lld were valid",
          (long long)valid, (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_files)
