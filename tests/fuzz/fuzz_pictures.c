/* SPDX-License-Identifier: MIT */
/*
 * Bytes as files of pictures: IDX, PGM and PPM with headers that are mostly right, CIFAR-10's
 * records, gzip, and PNG whose checksums are right. A file is refused with a message, or every
 * picture and label of it is where it belongs.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_pictures.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_pictures.c test.c        a test with pseudo-random bytes
 */
#include <stdlib.h>
#include <string.h>

#include "picture/cifar.h"
#include "picture/gzip.h"
#include "picture/idx.h"
#include "picture/png_file.h"
#include "picture/pnm_file.h"
#include "support/fuzz.h"
#include "support/png_builder.h"

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

/* A kind of PNG file, and its channels when it is read. */
typedef struct png_kind {
    int type, depth, samples, channels;
} png_kind;

static png_kind pick_png_kind(fuzz *f)
{
    static const png_kind kinds[] = {{PNG_GREY, 8, 1, 1},          {PNG_COLOUR, 8, 3, 3},
                                     {PNG_PALETTE, 8, 1, 3},       {PNG_GREY_ALPHA, 8, 2, 2},
                                     {PNG_COLOUR_ALPHA, 8, 4, 4},  {PNG_GREY, 1, 1, 1},
                                     {PNG_GREY, 2, 1, 1},          {PNG_GREY, 4, 1, 1},
                                     {PNG_GREY, 16, 1, 1},         {PNG_COLOUR, 16, 3, 3},
                                     {PNG_PALETTE, 1, 1, 3},       {PNG_PALETTE, 2, 1, 3},
                                     {PNG_PALETTE, 4, 1, 3},       {PNG_GREY_ALPHA, 16, 2, 2},
                                     {PNG_COLOUR_ALPHA, 16, 4, 4}, {7, 8, 4, 4},
                                     {PNG_COLOUR, 3, 3, 3}};
    enum { KINDS = sizeof kinds / sizeof *kinds, VALID = KINDS - 2 };
    return kinds[fuzz_rare(f) ? fuzz_pick(f, KINDS) : fuzz_pick(f, VALID)];
}

/* Chunks between header and pixels: a palette, sometimes what is transparent or unknown. True: some
 * of it is transparent. */
static bool put_png_chunks(fuzz *f, png_builder *png, png_kind kind)
{
    uint8_t bytes[3 * 256];
    for (size_t n = 0; n < sizeof bytes; n++)
        bytes[n] = (uint8_t)fuzz_pick(f, 256);
    const size_t colours = (size_t)1 << (kind.depth < 8 ? kind.depth : 8);
    if (kind.type == PNG_PALETTE && !fuzz_rare(f))
        png_chunk(png, "PLTE", bytes, fuzz_rare(f) ? (size_t)fuzz_pick(f, 256) : 3 * colours);
    if (fuzz_rare(f))
        png_chunk(png, fuzz_pick(f, 2) ? "teXt" : "gAMA", bytes, (size_t)fuzz_pick(f, 64));
    const bool opaque = kind.type == PNG_GREY_ALPHA || kind.type == PNG_COLOUR_ALPHA;
    if (opaque || fuzz_pick(f, 8) != 1)
        return false;
    png_chunk(png, "tRNS", bytes,
              kind.type == PNG_GREY     ? 2
              : kind.type == PNG_COLOUR ? 6
                                        : (size_t)fuzz_pick(f, (ptrdiff_t)colours));
    return true;
}

static png_builder make_png(fuzz *f, png_kind kind, uint32_t columns, uint32_t rows, bool *clear)
{
    uint8_t pixels[8 * (1 + 8 * 8)];
    const size_t line = 1 + (8 * (size_t)kind.samples * (size_t)kind.depth + 7) / 8;
    const size_t width = columns <= 8 ? columns : 8, height = rows <= 8 ? rows : 8;
    const size_t used = 1 + (width * (size_t)kind.samples * (size_t)kind.depth + 7) / 8;
    for (size_t n = 0; n < sizeof pixels && n < 8 * line; n++)
        pixels[n] = (uint8_t)(n % used > 0   ? fuzz_pick(f, 256)
                              : fuzz_rare(f) ? 200
                                             : fuzz_pick(f, 5));
    png_builder png = png_begin(columns, rows, kind.depth, kind.type, fuzz_rare(f));
    *clear = put_png_chunks(f, &png, kind);
    png_pixels(&png, pixels, used * height - (size_t)(height > 0 && fuzz_rare(f)));
    if (!fuzz_rare(f))
        png_end(&png);
    return png;
}

static int64_t valid_png;

static bool try_png(fuzz *f)
{
    const png_kind kind = pick_png_kind(f);
    const uint32_t columns =
        fuzz_rare(f) ? (uint32_t)fuzz_absurd(f) : 1 + (uint32_t)fuzz_pick(f, 8);
    const uint32_t rows = fuzz_rare(f) ? (uint32_t)fuzz_absurd(f) : 1 + (uint32_t)fuzz_pick(f, 8);
    bool clear = false;
    const png_builder png = make_png(f, kind, columns, rows, &clear);
    const size_t size = fuzz_rare(f) ? png.size / 2 : png.size;
    uint8_t *const bytes = fuzz_buffer(f, size);
    memcpy(bytes, png.bytes, size);
    if (fuzz_rare(f))
        bytes[fuzz_pick(f, size < 256 ? (ptrdiff_t)size : 256)] ^= 1;
    FILE *const file = fmemopen(bytes, size, "rb");
    if (!file)
        return false;
    char message[PICTURE_MESSAGE_MAX] = "";
    picture p;
    const bool fine = png_stream_read(file, "a", &p, message);
    fclose(file);
    /* A chunk for what is transparent may be refused, and a checksum that is wrong, ignored. */
    if (fine ? p.rows != rows || p.columns != columns ||
                   (p.channels != kind.channels && !(clear && p.channels == kind.channels + 1))
             : strlen(message) < 10 || p.pixels != NULL)
        fuzz_die("another picture, or a file is refused without a message");
    picture_free(&p);
    valid_png += fine;
    return fine;
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    fuzz f = fuzz_begin(bytes, size);
    const ptrdiff_t kind = fuzz_pick(&f, 5);
    const bool fine = kind == 0   ? try_idx(&f)
                      : kind == 1 ? try_cifar(&f)
                      : kind == 2 ? try_pnm(&f)
                      : kind == 3 ? try_png(&f)
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
    CHECK(rounds < 1000 || !png_file_supported() || valid_png > rounds / 10,
          "%lld of them were valid PNG files", (long long)valid_png);
}

FUZZ_TARGET(fuzz_one, pseudo_random_files)
