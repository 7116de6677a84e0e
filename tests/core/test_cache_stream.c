/* SPDX-License-Identifier: MIT */
/*
 * Caches as parts of larger files, through functions of the caller; and what a forged cache costs:
 * its numbers are compared with its size before memory is allocated for them.
 */
#include "core/cache_file.h"
#include "support/faults.h"
#include "support/memory_use.h"
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { G = 2, D = 3, DV = 5, TOKENS = 40, ROOM = 1 << 16 };

/* ----------------------------------------------------------- bytes in memory ----- */

typedef struct bytes {
    unsigned char data[ROOM];
    size_t used, at;
    int fail_after; /* calls until one fails; -1: none */
} bytes;

static int write_bytes(void *context, const void *data, size_t count)
{
    bytes *const to = context;
    if (to->fail_after >= 0 && to->fail_after-- == 0)
        return ENOSPC;
    if (count > ROOM - to->used)
        return EFBIG;
    memcpy(to->data + to->used, data, count);
    to->used += count;
    return 0;
}

static int read_bytes(void *context, void *data, size_t count)
{
    bytes *const from = context;
    if (from->fail_after >= 0 && from->fail_after-- == 0)
        return EACCES;
    if (count > from->used - from->at)
        return EIO;
    memcpy(data, from->data + from->at, count);
    from->at += count;
    return 0;
}

/* What is left of the bytes; the message is that of the last call. */
static char message[300];

static mha_stream stream_of(bytes *b)
{
    message[0] = 0;
    const mha_stream stream = {.size = sizeof stream,
                               .write = write_bytes,
                               .read = read_bytes,
                               .context = b,
                               .bytes = b->used - b->at,
                               .name = "a part",
                               .message = message,
                               .message_size = sizeof message};
    return stream;
}

static bytes *bytes_new(void)
{
    bytes *const made = calloc(1, sizeof *made);
    made->fail_after = -1;
    return made;
}

/* ------------------------------------------------------------------- a cache ----- */

static mha_cache_config config_of(mha_cache_kind kind)
{
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = 3,
                                     .capacity = 96,
                                     .G = G,
                                     .D = D,
                                     .Dv = DV,
                                     .k_type = MHA_F16,
                                     .v_type = MHA_I8};
    return config;
}

static mha_cache *cache_of(mha_cache_kind kind, int64_t sequence)
{
    const mha_cache_config config = config_of(kind);
    mha_cache *cache = NULL;
    float numbers[TOKENS * G * DV];
    for (int n = 0; n < TOKENS * G * DV; n++)
        numbers[n] = (float)(n % 13) - 6;
    const mha_view k = mha_view_blhd(numbers, G, TOKENS, D),
                   v = mha_view_blhd(numbers, G, TOKENS, DV);
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "create");
    CHECK(mha_cache_append(cache, 1, &sequence, TOKENS, NULL, k, MHA_F32, v, MHA_F32) == MHA_OK,
          "append");
    return cache;
}

static bool same_tokens(const mha_cache *a, const mha_cache *b, ptrdiff_t sequence)
{
    float rows[2][TOKENS * G * DV];
    const mha_cache *const both[] = {a, b};
    memset(rows, 0, sizeof rows);
    for (int n = 0; n < 2; n++)
        if (mha_cache_read(both[n], sequence, 0, TOKENS, (mha_out){0},
                           mha_out_blhd(rows[n], G, TOKENS, DV)))
            return false;
    return memcmp(rows[0], rows[1], sizeof rows[0]) == 0;
}

/* ------------------------------------------------------------------- streams ----- */

/* Three caches one after another, with other bytes between: no byte more is read than belongs to
 * each. */
static void parts_of_a_file(void)
{
    bytes *const b = bytes_new();
    mha_cache *caches[3];
    for (int kind = 0; kind < 3; kind++) {
        caches[kind] = cache_of((mha_cache_kind)kind, kind);
        const mha_stream stream = stream_of(b);
        CHECK(write_bytes(b, "between", 7) == 0, "between");
        CHECK(mha_cache_save_to(caches[kind], &stream) == MHA_OK, "%s", message);
    }
    CHECK(write_bytes(b, "the end", 7) == 0, "the end");
    for (int kind = 0; kind < 3; kind++) {
        char between[7];
        mha_cache *loaded;
        CHECK(read_bytes(b, between, 7) == 0 && memcmp(between, "between", 7) == 0, "at %zu",
              b->at);
        const mha_stream stream = stream_of(b);
        const mha_cache_config expected = config_of((mha_cache_kind)kind);
        if (CHECK(mha_cache_load_from(&loaded, &stream, &expected) == MHA_OK, "%s", message))
            CHECK(same_tokens(loaded, caches[kind], kind), "other tokens");
        mha_cache_free(loaded);
        mha_cache_free(caches[kind]);
    }
    CHECK(b->used - b->at == 7, "%zu bytes are left", b->used - b->at);
    free(b);
}

static mha_status load_all(bytes *b, const mha_cache_config *expected)
{
    mha_cache *loaded = (mha_cache *)message;
    b->at = 0;
    const mha_stream stream = stream_of(b);
    const mha_status status = mha_cache_load_from(&loaded, &stream, expected);
    CHECK((status == MHA_OK) == (loaded != NULL), "cache and status disagree");
    CHECK((status == MHA_OK) == (message[0] == 0), "%s says \"%s\"", mha_status_string(status),
          message);
    mha_cache_free(loaded);
    return status;
}

static void another_configuration(void)
{
    bytes *const b = bytes_new();
    const mha_stream stream = stream_of(b);
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, 0);
    CHECK(mha_cache_save_to(cache, &stream) == MHA_OK, "save");
    CHECK(load_all(b, NULL) == MHA_OK, "any");
    for (int n = 0; n < 10; n++) {
        mha_cache_config other = config_of(MHA_CACHE_PAGED);
        other.kind = n == 0 ? MHA_CACHE_RING : other.kind;
        other.sequences += n == 1;
        other.capacity += n == 2;
        other.page_tokens = n == 3 ? 64 : 0;
        other.pages = n == 4 ? 2 : 0;
        other.G += n == 5;
        other.D += n == 6;
        other.Dv += n == 7;
        other.k_type = n == 8 ? MHA_BF16 : other.k_type;
        other.v_type = n == 9 ? MHA_F32 : other.v_type;
        CHECK(load_all(b, &other) == MHA_ERR_FORMAT && strstr(message, "another configuration"),
              "field %d: \"%s\"", n, message);
    }
    const mha_cache_config none = {.size = sizeof none};
    CHECK(load_all(b, &none) == MHA_ERR_SHAPE, "no configuration");
    mha_cache_free(cache);
    free(b);
}

/* Damage is found at the end of the stream at the latest. */
static void any_byte_changed(void)
{
    bytes *const b = bytes_new();
    const mha_stream stream = stream_of(b);
    const mha_cache_config expected = config_of(MHA_CACHE_PAGED);
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, 1);
    CHECK(mha_cache_save_to(cache, &stream) == MHA_OK, "save");
    const size_t size = b->used;
    for (size_t at = 0; at < size; at++) {
        b->data[at] ^= 1;
        CHECK(load_all(b, &expected) == MHA_ERR_FORMAT, "byte %zu", at);
        b->data[at] ^= 1;
        b->used = at;
        CHECK(load_all(b, &expected) == MHA_ERR_FORMAT, "cut after %zu", at);
        b->used = size;
    }
    mha_cache_free(cache);
    free(b);
}

static void failing_functions(void)
{
    bytes *const b = bytes_new();
    const mha_stream stream = stream_of(b);
    mha_cache *const cache = cache_of(MHA_CACHE_RING, 0);
    b->fail_after = 0;
    CHECK(mha_cache_save_to(cache, &stream) == MHA_ERR_FILE && strstr(message, strerror(ENOSPC)) &&
              strstr(message, "a part"),
          "write: \"%s\"", message);
    b->fail_after = -1;
    CHECK(mha_cache_save_to(cache, &stream) == MHA_OK, "save");
    for (int n = 0; n < 2; n++) {
        b->fail_after = n;
        CHECK(load_all(b, NULL) == MHA_ERR_FILE, "call %d", n);
    }
    mha_cache_free(cache);
    free(b);
}

static void wrong_arguments(void)
{
    bytes *const b = bytes_new();
    mha_stream stream = stream_of(b);
    mha_cache *const cache = cache_of(MHA_CACHE_RING, 0), *loaded = cache;
    CHECK(mha_cache_save_to(cache, NULL) == MHA_ERR_NULL, "no stream");
    CHECK(mha_cache_save_to(NULL, &stream) == MHA_ERR_NULL && message[0], "no cache");
    CHECK(mha_cache_load_from(&loaded, NULL, NULL) == MHA_ERR_NULL && !loaded, "no stream");
    CHECK(mha_cache_load_from(NULL, &stream, NULL) == MHA_ERR_NULL, "no place");
    stream.read = NULL;
    CHECK(mha_cache_load_from(&loaded, &stream, NULL) == MHA_ERR_NULL, "no function");
    stream.write = NULL;
    CHECK(mha_cache_save_to(cache, &stream) == MHA_ERR_NULL, "no function");
    stream.size = 3;
    CHECK(mha_cache_save_to(cache, &stream) == MHA_ERR_STRUCT, "size");
    CHECK(mha_cache_load_from(&loaded, &stream, NULL) == MHA_ERR_STRUCT, "size");
    stream = stream_of(b);
    stream.name = NULL;
    CHECK(mha_cache_load_from(&loaded, &stream, NULL) == MHA_ERR_FORMAT &&
              strncmp(message, "cache: ", 7) == 0,
          "\"%s\"", message);
    mha_cache_free(cache);
    free(b);
}

/* -------------------------------------------------------------------- memory ----- */

static void put(bytes *b, size_t at, uint64_t x)
{
    for (int n = 0; n < 8; n++)
        b->data[at + (size_t)n] = (unsigned char)(x >> 8 * n);
}

static void sign(bytes *b)
{
    put(b, 16, b->used);
    put(b, b->used - 8, mhai_file_hash(MHAI_FILE_HASH_START, b->data, b->used - 8));
}

enum { AT_SEQUENCES = 24, AT_CAPACITY = 32, AT_PAGES = 48, AT_G = 56, AT_LENGTHS = 96 };

/* The most bytes that were allocated at once while the bytes were loaded. */
static size_t cost_of(bytes *b, mha_status expected)
{
    sign(b);
    faults_arm(MEMORY, 0, false);
    const mha_status status = load_all(b, NULL);
    faults_disarm();
    CHECK(status == expected, "%s: %s", mha_status_string(status), message);
    CHECK(faults_left(MEMORY) == 0, "memory is left");
    return faults_peak();
}

/* Each number says far more than the bytes can hold: they are refused before it is believed. */
static void lies_cost_nothing(void)
{
    static const struct {
        const char *name;
        size_t at;
        uint64_t value, capacity;
    } lies[] = {{"a length", AT_LENGTHS, 1 << 24, 1 << 24},
                {"sequences", AT_SEQUENCES, 1 << 20, 0},
                {"heads", AT_G, 1 << 20, 0}};
    for (int kind = 0; kind < 3; kind++)
        for (size_t n = 0; n < sizeof lies / sizeof lies[0]; n++) {
            bytes *const b = bytes_new();
            const mha_stream stream = stream_of(b);
            mha_cache *const cache = cache_of((mha_cache_kind)kind, 0);
            CHECK(mha_cache_save_to(cache, &stream) == MHA_OK, "save");
            put(b, lies[n].at, lies[n].value);
            if (kind == MHA_CACHE_PAGED)
                put(b, AT_PAGES, 1 << 20);
            if (lies[n].capacity)
                put(b, AT_CAPACITY, lies[n].capacity);
            if (lies[n].at == AT_LENGTHS && kind == MHA_CACHE_RING)
                put(b, AT_LENGTHS + 8, 32); /* it has wrapped around */
            const size_t cost = cost_of(b, MHA_ERR_FORMAT);
            CHECK(cost <= b->used, "%s, kind %d: %zu bytes of memory for %zu bytes", lies[n].name,
                  kind, cost, b->used);
            mha_cache_free(cache);
            free(b);
        }
}

/* An almost empty cache of much memory is few bytes, which may be forged: it is refused before
 * memory is allocated for more than lengths. */
static void large_and_empty_is_refused(void)
{
    for (int kind = 0; kind < 3; kind++) {
        bytes *const b = bytes_new();
        const mha_stream stream = stream_of(b);
        mha_cache *const cache = cache_of((mha_cache_kind)kind, 0);
        CHECK(mha_cache_save_to(cache, &stream) == MHA_OK, "save");
        put(b, AT_CAPACITY, 1 << 22);
        if (kind == MHA_CACHE_PAGED)
            put(b, AT_PAGES, 1 << 18);
        const size_t cost = cost_of(b, MHA_ERR_MEMORY);
        CHECK(cost <= b->used, "kind %d: %zu bytes of memory for %zu bytes", kind, cost, b->used);
        CHECK(strstr(message, "almost empty"), "\"%s\"", message);
        mha_cache_free(cache);
        free(b);
    }
}

/* Where it is expected, its memory is reserved, and used only as far as there are tokens. */
static void large_and_empty(void)
{
    bytes *const b = bytes_new();
    mha_stream stream = stream_of(b);
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, 0), *loaded;
    CHECK(mha_cache_save_to(cache, &stream) == MHA_OK, "save");
    mha_cache_config expected = mha_cache_get_config(cache);
    expected.capacity = 1 << 24;
    expected.pages = sizeof(size_t) > 4 ? 1 << 20 : 1 << 17;
    put(b, AT_CAPACITY, (uint64_t)expected.capacity);
    put(b, AT_PAGES, (uint64_t)expected.pages);
    sign(b);
    stream = stream_of(b);
    const size_t before = memory_now();
    CHECK(mha_cache_load_from(&loaded, &stream, &expected) == MHA_OK, "%s", message);
    const size_t after = memory_now();
    CHECK(mha_cache_bytes(loaded) > (size_t)1 << 28, "%zu bytes", mha_cache_bytes(loaded));
    CHECK(same_tokens(loaded, cache, 0), "other tokens");
    /* An emulator counts its own tables too: 24 MB for this range of addresses. */
    CHECK(before == 0 || after - before < (size_t)64 << 20, "%zu bytes are used for %zu",
          after - before, b->used);
    mha_cache_free(loaded);
    mha_cache_free(cache);
    free(b);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(parts_of_a_file);
    RUN(another_configuration);
    RUN(any_byte_changed);
    RUN(failing_functions);
    RUN(wrong_arguments);
    RUN(lies_cost_nothing);
    RUN(large_and_empty_is_refused);
    RUN(large_and_empty);
    return test_end();
}
