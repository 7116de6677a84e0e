/* SPDX-License-Identifier: MIT */
/*
 * Caches in files: what comes back is the same to the bit, and everything else is refused: files
 * cut anywhere, with any byte changed, and files made to deceive, whose checksum is right.
 */
#include "core/cache.h"
#include "core/cache_file.h"
#include "support/cache_model.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { G = 2, D = 3, DV = 5 };

static mha_cache *cache_of(mha_cache_kind kind, mha_dtype k_type, mha_dtype v_type,
                           ptrdiff_t sequences)
{
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = sequences,
                                     .capacity = 96,
                                     .page_tokens = 32,
                                     .pages = 9,
                                     .G = G,
                                     .D = D,
                                     .Dv = DV,
                                     .k_type = k_type,
                                     .v_type = v_type};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "create");
    return cache;
}

static void append(mha_cache *cache, cache_model *model, int64_t sequence, ptrdiff_t count,
                   test_random *random)
{
    model_rows k = model_rows_new(random, MHA_F32, 1, count, G, D);
    model_rows v = model_rows_new(random, MHA_F32, 1, count, G, DV);
    CHECK(mha_cache_append(cache, 1, &sequence, count, NULL, k.view, MHA_F32, v.view, MHA_F32) ==
              MHA_OK,
          "append");
    if (model)
        model_append(model, (ptrdiff_t)sequence, count, &k, &v, 0);
    model_rows_free(&k);
    model_rows_free(&v);
}

static mha_status save(const mha_cache *cache, const char *path)
{
    char message[300] = "";
    const mha_status status = mha_cache_save(cache, path, message, sizeof message);
    CHECK((status == MHA_OK) == (message[0] == 0), "%s says \"%s\"", mha_status_string(status),
          message);
    CHECK(status == MHA_OK || strstr(message, path), "\"%s\" names no file", message);
    return status;
}

/* Load and see that a failure is reported; `reported` must be in the message. */
static mha_status load(mha_cache **cache, const char *path, const char *reported)
{
    char message[400] = "";
    *cache = (mha_cache *)message;
    const mha_status status = mha_cache_load(cache, path, message, sizeof message);
    CHECK((status == MHA_OK) == (*cache != NULL), "cache and status disagree");
    CHECK((status == MHA_OK) == (message[0] == 0), "%s says \"%s\"", mha_status_string(status),
          message);
    CHECK(status == MHA_OK || strstr(message, path), "\"%s\" names no file", message);
    CHECK(!reported || strstr(message, reported), "\"%s\" does not say \"%s\"", message, reported);
    return status;
}

/* ----------------------------------------------------------- round trips ----- */

/* Some of everything: a full page, a part of one, an empty sequence, a fork that went on, a ring
 * that has gone round and back. */
static void fill(mha_cache *cache, cache_model *model, test_random *random)
{
    append(cache, model, 0, 64, random);
    append(cache, model, 1, 37, random);
    mha_cache_fork(cache, 2, 1);
    model_fork(model, 2, 1);
    append(cache, model, 2, 5, random);
    mha_cache_fork(cache, 3, 0);
    model_fork(model, 3, 0);
    if (model->config.kind == MHA_CACHE_RING) {
        append(cache, model, 0, 110, random);
        append(cache, model, 1, 90, random);
        mha_cache_truncate(cache, 1, 100);
        model_truncate(model, 1, 100);
    }
}

static bool same_config(const mha_cache_config *a, const mha_cache_config *b)
{
    return a->size == b->size && a->kind == b->kind && a->sequences == b->sequences &&
           a->capacity == b->capacity && a->page_tokens == b->page_tokens && a->pages == b->pages &&
           a->G == b->G && a->D == b->D && a->Dv == b->Dv && a->k_type == b->k_type &&
           a->v_type == b->v_type && !b->message && b->message_size == 0;
}

static void round_trip(mha_cache_kind kind, mha_dtype k_type, mha_dtype v_type, const char *path)
{
    test_random random = {test_seed(11)};
    mha_cache *const cache = cache_of(kind, k_type, v_type, 5);
    cache_model *const model = model_new(cache);
    fill(cache, model, &random);
    CHECK(save(cache, path) == MHA_OK, "save");
    mha_cache *loaded;
    if (CHECK(load(&loaded, path, NULL) == MHA_OK, "load")) {
        const mha_cache_config a = mha_cache_get_config(cache), b = mha_cache_get_config(loaded);
        CHECK(same_config(&a, &b), "another config");
        CHECK(mha_cache_free_pages(loaded) == mha_cache_free_pages(cache),
              "%td free pages, not %td", mha_cache_free_pages(loaded), mha_cache_free_pages(cache));
        model_agrees_all(model, loaded, "loaded");
        append(loaded, model, 2, 20, &random);
        model_agrees_all(model, loaded, "loaded and gone on");
        mha_cache_free(loaded);
    }
    model_free(model);
    mha_cache_free(cache);
}

static void all_kinds_and_types(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    const temp_folder folder = temp_folder_new();
    for (int kind = 0; kind < 3; kind++)
        for (int n = 0; n < 16; n++)
            round_trip((mha_cache_kind)kind, types[n % 4], types[n / 4],
                       temp_path(&folder, "cache"));
    CHECK(temp_folder_count(&folder) == 1, "%d files are left", temp_folder_count(&folder));
    temp_folder_free(&folder);
}

/* An i8 row that is not finite stays so: the scale is kept to the bit. */
static void damage_is_kept(void)
{
    const temp_folder folder = temp_folder_new();
    const float inf[DV] = {1, __builtin_inff(), 2, 3, 4};
    const mha_view view = {inf, 0, 0, 0};
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_I8, MHA_I8, 1), *loaded;
    CHECK(mha_cache_append(cache, 1, NULL, 1, NULL, view, MHA_F32, view, MHA_F32) == MHA_OK, "-");
    CHECK(save(cache, temp_path(&folder, "cache")) == MHA_OK, "save");
    CHECK(load(&loaded, temp_path(&folder, "cache"), NULL) == MHA_OK, "load");
    float k[G * D];
    const mha_out out = mha_out_blhd(k, G, 1, D), none = {0};
    CHECK(mha_cache_read(loaded, 0, 0, 1, out, none) == MHA_OK, "read");
    CHECK(k[0] != k[0], "%g", (double)k[0]);
    mha_cache_free(loaded);
    mha_cache_free(cache);
    temp_folder_free(&folder);
}

/* The file does not show how the cache came to hold what it holds. */
static void same_content_same_file(void)
{
    const temp_folder folder = temp_folder_new();
    unsigned char *files[2];
    size_t sizes[2] = {0, 0};
    for (int n = 0; n < 2; n++) {
        test_random other = {5}, random = {6};
        mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F16, MHA_I8, 3);
        if (n == 1) {
            append(cache, NULL, 2, 33, &other);
            append(cache, NULL, 0, 70, &other);
            mha_cache_truncate(cache, 2, 0);
            mha_cache_truncate(cache, 0, 0);
        }
        append(cache, NULL, 1, 50, &random);
        append(cache, NULL, 0, 10, &random);
        if (n == 1) {
            append(cache, NULL, 1, 20, &other);
            mha_cache_truncate(cache, 1, 50);
        }
        CHECK(save(cache, temp_path(&folder, "cache")) == MHA_OK, "save");
        files[n] = file_bytes(temp_path(&folder, "cache"), &sizes[n]);
        mha_cache_free(cache);
    }
    CHECK(sizes[0] == sizes[1] && memcmp(files[0], files[1], sizes[0]) == 0,
          "%zu and %zu bytes differ", sizes[0], sizes[1]);
    free(files[0]);
    free(files[1]);
    temp_folder_free(&folder);
}

/* ---------------------------------------------------------------- damage ----- */

/* A small file of each kind, as bytes. */
typedef struct sample {
    temp_folder folder;
    unsigned char *bytes;
    size_t size;
} sample;

static sample sample_new(mha_cache_kind kind)
{
    test_random random = {7};
    sample s = {.folder = temp_folder_new()};
    mha_cache *const cache = cache_of(kind, MHA_I8, MHA_F16, 3);
    append(cache, NULL, 0, 34, &random);
    append(cache, NULL, 2, kind == MHA_CACHE_RING ? 98 : 2, &random);
    mha_cache_fork(cache, 1, 0);
    CHECK(save(cache, temp_path(&s.folder, "good")) == MHA_OK, "save");
    s.bytes = file_bytes(temp_path(&s.folder, "good"), &s.size);
    mha_cache_free(cache);
    return s;
}

static void sample_free(sample *s)
{
    free(s->bytes);
    temp_folder_free(&s->folder);
}

/* Bytes that must be refused as what they are. */
static bool refused(const sample *s, const unsigned char *bytes, size_t size, const char *reported)
{
    mha_cache *cache;
    const char *const path = temp_path(&s->folder, "bad");
    file_make(path, bytes, size);
    const mha_status status = load(&cache, path, reported);
    mha_cache_free(cache);
    return CHECK(status == MHA_ERR_FORMAT, "%s", mha_status_string(status));
}

enum { STEP = TEST_WINDOWS ? 37 : 1 }; /* wine takes milliseconds for a file */

static void cut_anywhere(void)
{
    for (int kind = 0; kind < 3; kind++) {
        sample s = sample_new((mha_cache_kind)kind);
        for (size_t size = 0; size < s.size; size += STEP)
            if (!refused(&s, s.bytes, size, size < 8 ? "not a cache file" : "cut off"))
                CHECK(false, "kind %d cut after %zu of %zu bytes", kind, size, s.size);
        sample_free(&s);
    }
}

static void any_byte_changed(void)
{
    static const unsigned char changes[] = {1, 128, 255};
    for (int kind = 0; kind < 3; kind++) {
        sample s = sample_new((mha_cache_kind)kind);
        for (size_t at = 0; at < s.size; at += STEP)
            for (int n = 0; n < 3; n++) {
                s.bytes[at] ^= changes[n];
                if (!refused(&s, s.bytes, s.size, NULL))
                    CHECK(false, "kind %d, byte %zu ^ %d", kind, at, changes[n]);
                s.bytes[at] ^= changes[n];
            }
        sample_free(&s);
    }
}

static void bytes_behind_the_end(void)
{
    sample s = sample_new(MHA_CACHE_PAGED);
    unsigned char *const longer = calloc(1, s.size + 9);
    memcpy(longer, s.bytes, s.size);
    refused(&s, longer, s.size + 1, "1 bytes past its end");
    refused(&s, longer, s.size + 9, "9 bytes past its end");
    free(longer);
    sample_free(&s);
}

/* ---------------------------------------------------------------- malice ----- */

static void put(unsigned char *at, uint64_t x, int size)
{
    for (int n = 0; n < size; n++)
        at[n] = (unsigned char)(x >> 8 * n);
}

/* Make length field and checksum agree with what was changed. */
static void make_right(unsigned char *bytes, size_t size)
{
    put(bytes + 16, size, 8);
    put(bytes + size - 8, mhai_file_hash(MHAI_FILE_HASH_START, bytes, size - 8), 8);
}

typedef struct lie {
    size_t at;
    int size;
    uint64_t value;
    const char *reported;
} lie;

static void refuse_lies(mha_cache_kind kind, const lie *lies, size_t count)
{
    sample s = sample_new(kind);
    unsigned char *const bytes = malloc(s.size);
    for (size_t n = 0; n < count; n++) {
        memcpy(bytes, s.bytes, s.size);
        put(bytes + lies[n].at, lies[n].value, lies[n].size);
        make_right(bytes, s.size);
        if (!refused(&s, bytes, s.size, lies[n].reported))
            CHECK(false, "kind %d, %llu at %zu", (int)kind, (unsigned long long)lies[n].value,
                  lies[n].at);
    }
    free(bytes);
    sample_free(&s);
}

enum {
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_SEQUENCES = 24,
    AT_CAPACITY = 32,
    AT_PAGE_TOKENS = 40,
    AT_PAGES = 48,
    AT_G = 56,
    AT_D = 64,
    AT_DV = 72,
    AT_K_TYPE = 80,
    AT_V_TYPE = 84,
    AT_FILE_PAGES = 88,
    AT_LENGTHS = 96,
    AT_TABLE = AT_LENGTHS + 3 * 16
};

static void paged_lies(void)
{
    static const lie lies[] = {{AT_VERSION, 4, 2, "version 2"},
                               {AT_VERSION, 4, 0, "version 0"},
                               {AT_KIND, 4, 3, "describes no cache"},
                               {AT_KIND, 4, 0xffffffff, "describes no cache"},
                               {AT_KIND, 4, MHA_CACHE_RING, "contradict"},
                               {AT_SEQUENCES, 8, 0, "describes no cache"},
                               {AT_SEQUENCES, 8, 4, NULL},
                               {AT_SEQUENCES, 8, 1000000, "more than the file holds"},
                               {AT_SEQUENCES, 8, UINT64_MAX, "describes no cache"},
                               {AT_CAPACITY, 8, 0, "describes no cache"},
                               {AT_CAPACITY, 8, 33, "cannot have tokens"},
                               {AT_CAPACITY, 8, UINT64_MAX / 2, "describes no cache"},
                               {AT_PAGE_TOKENS, 8, 0, "contradict"},
                               {AT_PAGE_TOKENS, 8, 33, "describes no cache"},
                               {AT_PAGE_TOKENS, 8, 64, NULL},
                               {AT_PAGES, 8, 0, "contradict"},
                               {AT_PAGES, 8, 2, "contradict"},
                               {AT_PAGES, 8, UINT64_MAX, "describes no cache"},
                               {AT_G, 8, 0, "describes no cache"},
                               {AT_G, 8, 3, "more than the file holds"},
                               {AT_G, 8, (uint64_t)1 << 48, "describes no cache"},
                               {AT_D, 8, 0, "describes no cache"},
                               {AT_D, 8, 1025, "describes no cache"},
                               {AT_D, 8, 4, "contradict"},
                               {AT_DV, 8, 0, "contradict"},
                               {AT_DV, 8, 6, "more than the file holds"},
                               {AT_K_TYPE, 4, MHA_F64, "describes no cache"},
                               {AT_K_TYPE, 4, MHA_F32, "more than the file holds"},
                               {AT_V_TYPE, 4, 77, "describes no cache"},
                               {AT_FILE_PAGES, 8, 2, "out of order"},
                               {AT_FILE_PAGES, 8, 4, "contradict"},
                               {AT_FILE_PAGES, 8, UINT64_MAX, "contradict"},
                               {AT_LENGTHS, 8, 97, "sequence 0 cannot have tokens"},
                               {AT_LENGTHS + 16, 8, UINT64_MAX, "sequence 1 cannot have tokens"},
                               {AT_LENGTHS, 8, 96, NULL},
                               {AT_LENGTHS + 32, 8, 3, "contradict"},
                               {AT_LENGTHS, 8, 0, NULL},
                               {AT_LENGTHS + 8, 8, 1, "cannot have tokens"},
                               {AT_TABLE, 4, 1, "out of order"},
                               {AT_TABLE, 4, 0xffffffff, "out of order"},
                               {AT_TABLE + 4, 4, 0, "out of order"},
                               {AT_TABLE + 4, 4, 2, "out of order"},
                               {AT_TABLE + 8, 4, 1, "out of order"},
                               {AT_TABLE + 12, 4, 0, "out of order"},
                               {AT_TABLE + 16, 4, 9, "out of order"},
                               {AT_TABLE + 16, 4, 0, NULL}};
    refuse_lies(MHA_CACHE_PAGED, lies, sizeof lies / sizeof lies[0]);
}

static void ring_lies(void)
{
    static const lie lies[] = {{AT_CAPACITY, 8, 95, "contradict"},
                               {AT_CAPACITY, 8, 64, "cannot have tokens"},
                               {AT_PAGES, 8, 9, "contradict"},
                               {AT_PAGE_TOKENS, 8, 32, "contradict"},
                               {AT_LENGTHS + 8, 8, 35, "cannot have tokens"},
                               {AT_LENGTHS + 32, 8, 99, "cannot have tokens"},
                               {AT_LENGTHS + 32, 8, UINT64_MAX / 2, "cannot have tokens"},
                               {AT_LENGTHS + 32 + 8, 8, 1, "cannot have tokens"},
                               {AT_LENGTHS + 32 + 8, 8, UINT64_MAX, "cannot have tokens"},
                               {AT_TABLE, 4, 1, "out of order"},
                               {AT_TABLE + 4, 4, 0, "out of order"},
                               {AT_TABLE + 8, 4, 3, "out of order"}};
    refuse_lies(MHA_CACHE_RING, lies, sizeof lies / sizeof lies[0]);
}

static void contiguous_lies(void)
{
    static const lie lies[] = {
        {AT_KIND, 4, MHA_CACHE_PAGED, NULL},  {AT_CAPACITY, 8, 33, "cannot have tokens"},
        {AT_LENGTHS, 8, 35, "contradict"},    {AT_LENGTHS + 8, 8, 1, "cannot have tokens"},
        {AT_TABLE + 4, 4, 0, "out of order"}, {AT_FILE_PAGES, 8, 1, "out of order"}};
    refuse_lies(MHA_CACHE_CONTIGUOUS, lies, sizeof lies / sizeof lies[0]);
}

/* Lowest byte of a number between the length of the file and its pages. */
static size_t any_field(test_random *random)
{
    const size_t header = (size_t)test_random_below(random, (AT_TABLE - AT_SEQUENCES) / 8);
    switch (test_random_below(random, 4)) {
    case 0:
        return AT_TABLE + 4 * (size_t)test_random_below(random, 5);
    case 1:
        return test_random_below(random, 2) ? AT_V_TYPE : AT_KIND;
    default:
        return AT_SEQUENCES + 8 * header;
    }
}

/* Numbers changed at random, several at once, checksum right: refused, or a cache that works. */
static void random_lies(void)
{
    test_random random = {test_seed(12)};
    const int64_t rounds = test_effort(3000);
    for (int kind = 0; kind < 3; kind++) {
        sample s = sample_new((mha_cache_kind)kind);
        unsigned char *const bytes = malloc(s.size);
        const char *const path = temp_path(&s.folder, "bad");
        for (int64_t n = 0; n < rounds; n++) {
            memcpy(bytes, s.bytes, s.size);
            for (int64_t m = test_random_below(&random, 3); m >= 0; m--)
                bytes[any_field(&random)] = (unsigned char)test_random_below(&random, 100);
            make_right(bytes, s.size);
            file_make(path, bytes, s.size);
            mha_cache *cache = NULL;
            const mha_status status = mha_cache_load(&cache, path, NULL, 0);
            CHECK(status == MHA_OK || status == MHA_ERR_FORMAT, "%s", mha_status_string(status));
            for (ptrdiff_t a = 0; status == MHA_OK && a < 3; a++)
                CHECK(mha_cache_fork(cache, a, 0) == MHA_OK, "a cache that does not work");
            mha_cache_free(cache);
        }
        free(bytes);
        sample_free(&s);
    }
}

/* ----------------------------------------------------------------- files ----- */

static void files_that_are_none(void)
{
    if (test_lacks("no named pipes"))
        return;
    const temp_folder folder = temp_folder_new();
    mha_cache *const good = cache_of(MHA_CACHE_RING, MHA_F32, MHA_F32, 2), *cache;
    CHECK(load(&cache, temp_path(&folder, "missing"), "opened") == MHA_ERR_FILE, "missing");
    CHECK(load(&cache, folder.path, "not a regular file") == MHA_ERR_FILE, "a folder");
    mkfifo(temp_path(&folder, "pipe"), 0600);
    CHECK(load(&cache, temp_path(&folder, "pipe"), "not a regular file") == MHA_ERR_FILE, "a pipe");
    CHECK(save(good, temp_path(&folder, "no/where")) == MHA_ERR_FILE, "a folder that is not there");
    CHECK(save(good, folder.path) == MHA_ERR_FILE, "over a folder");
    CHECK(save(good, temp_path(&folder, "pipe")) == MHA_ERR_FILE, "over a pipe");
    CHECK(load(&cache, temp_path(&folder, "pipe"), "not a regular file") == MHA_ERR_FILE,
          "the pipe is still there");
    CHECK(temp_folder_count(&folder) == 1, "%d files", temp_folder_count(&folder));
    mha_cache_free(good);
    temp_folder_free(&folder);
}

/* A large empty cache comes back only where it is expected; any other is refused then. */
static void expected_caches(void)
{
    const temp_folder folder = temp_folder_new();
    mha_cache_config config = {
        .size = sizeof config, .sequences = 1, .capacity = 1 << 20, .G = 4, .D = 16};
    mha_cache *cache, *loaded;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "create");
    const char *const path = temp_path(&folder, "large");
    CHECK(save(cache, path) == MHA_OK, "save");
    CHECK(load(&loaded, path, "almost empty") == MHA_ERR_MEMORY && !loaded, "not expected");
    CHECK(mha_cache_load_as(&loaded, path, &config, NULL, 0) == MHA_OK, "expected");
    CHECK(mha_cache_bytes(loaded) == mha_cache_bytes(cache), "another size");
    mha_cache_free(loaded);
    config.D = 8;
    CHECK(mha_cache_load_as(&loaded, path, &config, NULL, 0) == MHA_ERR_FORMAT && !loaded, "other");
    config.D = 0;
    CHECK(mha_cache_load_as(&loaded, path, &config, NULL, 0) == MHA_ERR_SHAPE && !loaded, "none");
    mha_cache_free(cache);
    temp_folder_free(&folder);
}

static void null_arguments(void)
{
    mha_cache *const good = cache_of(MHA_CACHE_RING, MHA_F32, MHA_F32, 2), *cache = good;
    char message[100] = "";
    CHECK(mha_cache_save(NULL, "x", message, sizeof message) == MHA_ERR_NULL && message[0], "save");
    CHECK(mha_cache_save(good, NULL, NULL, 0) == MHA_ERR_NULL, "save to nothing");
    CHECK(mha_cache_load(&cache, NULL, NULL, 0) == MHA_ERR_NULL && !cache, "load from nothing");
    CHECK(mha_cache_load(NULL, "x", NULL, 0) == MHA_ERR_NULL, "load to nothing");
    mha_cache_free(good);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(all_kinds_and_types);
    RUN(damage_is_kept);
    RUN(same_content_same_file);
    RUN(cut_anywhere);
    RUN(any_byte_changed);
    RUN(bytes_behind_the_end);
    RUN(paged_lies);
    RUN(ring_lies);
    RUN(contiguous_lies);
    RUN(random_lies);
    RUN(files_that_are_none);
    RUN(expected_caches);
    RUN(null_arguments);
    return test_end();
}
