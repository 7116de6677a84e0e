/* SPDX-License-Identifier: MIT */
/*
 * Bytes as changes to the file of a cache: the first say which cache was saved, then each three
 * change a byte or cut the file, and in most cases length and checksum are made to agree, as a
 * forger would. The file is refused with a message, or the cache in it works and can be saved and
 * loaded again.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_cache_file.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_cache_file.c test.c        a test with pseudo-random bytes
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cache_file.h"
#include "support/cache_story.h"
#include "support/fuzz.h"

enum { FILE_MAX = 1 << 15, AT_LENGTH = 16, TOKENS_MAX = 40 };

typedef struct memory_file {
    unsigned char bytes[FILE_MAX];
    size_t size, at; /* at: the next byte to read */
} memory_file;

static int write_bytes(void *context, const void *data, size_t count)
{
    memory_file *const file = context;
    if (count > FILE_MAX - file->size)
        return ENOSPC;
    memcpy(file->bytes + file->size, data, count);
    file->size += count;
    return 0;
}

static int read_bytes(void *context, void *data, size_t count)
{
    memory_file *const file = context;
    if (count > file->size - file->at)
        fuzz_die("more bytes are read than there are");
    memcpy(data, file->bytes + file->at, count);
    file->at += count;
    return 0;
}

/* A small cache with a few tokens in two of its three sequences. */
static mha_cache *make_cache(fuzz *f)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = (mha_cache_kind)fuzz_pick(f, 3),
                                     .sequences = 3,
                                     .capacity = 64,
                                     .page_tokens = 32,
                                     .pages = 5,
                                     .G = 1 + fuzz_pick(f, 2),
                                     .D = 4,
                                     .Dv = 2,
                                     .k_type = types[fuzz_pick(f, 4)],
                                     .v_type = types[fuzz_pick(f, 4)]};
    static const float numbers[3 * 2 * TOKENS_MAX * 4] = {1, -2, 3, 0.5f};
    const int64_t lengths[3] = {fuzz_pick(f, TOKENS_MAX), fuzz_pick(f, TOKENS_MAX), 0};
    const mha_view k = mha_view_bhld(numbers, config.G, TOKENS_MAX, config.D);
    const mha_view v = mha_view_bhld(numbers, config.G, TOKENS_MAX, config.Dv);
    mha_cache *cache = NULL;
    if (mha_cache_create(&cache, &config) != MHA_OK ||
        mha_cache_append(cache, 3, NULL, TOKENS_MAX, lengths, k, MHA_F32, v, MHA_F32) != MHA_OK)
        fuzz_die("a cache that should work");
    if (config.kind == MHA_CACHE_PAGED && fuzz_pick(f, 2) && mha_cache_fork(cache, 2, 0) != MHA_OK)
        fuzz_die("a fork that should work");
    return cache;
}

static void save(const mha_cache *cache, memory_file *file)
{
    const mha_stream stream = {.size = sizeof stream, .write = write_bytes, .context = file};
    file->size = file->at = 0;
    if (mha_cache_save_to(cache, &stream) != MHA_OK)
        fuzz_die("a cache that cannot be saved");
}

static mha_status load(mha_cache **cache, memory_file *file, char *message, size_t message_size)
{
    const mha_stream stream = {.size = sizeof stream,
                               .read = read_bytes,
                               .context = file,
                               .bytes = file->size,
                               .message = message,
                               .message_size = message_size};
    file->at = 0;
    return mha_cache_load_from(cache, &stream, NULL);
}

static void put_number(unsigned char *at, uint64_t value)
{
    for (int n = 0; n < 8; n++)
        at[n] = (unsigned char)(value >> 8 * n);
}

/* Mostly in the header, where the sizes are. */
static void change(fuzz *f, memory_file *file)
{
    const size_t header = file->size < 256 ? file->size : 256;
    const bool honest = fuzz_rare(f);
    const ptrdiff_t changes = fuzz_pick(f, 4);
    for (ptrdiff_t n = 0; n < changes && header; n++) {
        const size_t at = (size_t)fuzz_pick(f, 256) % header + (fuzz_pick(f, 4) ? 0 : header);
        if (fuzz_rare(f))
            file->size = at < file->size ? at : file->size;
        else if (at < file->size)
            file->bytes[at] = (unsigned char)fuzz_pick(f, 256);
    }
    if (honest || file->size < AT_LENGTH + 16)
        return;
    put_number(file->bytes + AT_LENGTH, file->size);
    put_number(file->bytes + file->size - 8,
               mhai_file_hash(MHAI_FILE_HASH_START, file->bytes, file->size - 8));
}

/* What was loaded can be used, and saved and loaded once more. */
static void use(fuzz *f, mha_cache *cache, memory_file *file)
{
    mha_cache *again = NULL;
    const mha_cache_config c = mha_cache_get_config(cache);
    if (mha_cache_bytes(cache) < FILE_MAX) {
        save(cache, file);
        if (load(&again, file, NULL, 0) != MHA_OK ||
            fuzz_cache_digest(again) != fuzz_cache_digest(cache))
            fuzz_die("a cache that changes when it is saved");
        mha_cache_free(again);
    }
    for (int n = 0; n < 4 && f->at < f->end; n++) {
        const uint64_t digest = fuzz_cache_digest(cache);
        const mha_status status = fuzz_cache_do(f, cache, &c);
        fuzz_finish(f, status);
        fuzz_cache_check(cache, digest, status);
    }
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    static memory_file file;
    fuzz f = fuzz_begin(bytes, size);
    mha_cache *cache = make_cache(&f);
    save(cache, &file);
    mha_cache_free(cache);
    change(&f, &file);
    char message[300] = "";
    const mha_status status = load(&cache, &file, message, sizeof message);
    if ((status == MHA_OK) != (cache != NULL) || (status != MHA_OK && strlen(message) < 10))
        fuzz_die("status, cache and message disagree");
    if (status != MHA_OK && status != MHA_ERR_FORMAT && status != MHA_ERR_MEMORY)
        fuzz_die(message);
    if (cache)
        use(&f, cache, &file);
    mha_cache_free(cache);
    return status == MHA_OK;
}

static void pseudo_random_files(void)
{
    uint8_t bytes[64];
    test_random random = {test_seed(131)};
    const int64_t rounds = test_effort(20000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        valid += fuzz_one(bytes, sizeof bytes);
    }
    CHECK(rounds < 1000 || (valid > rounds / 20 && valid < rounds), "%lld of %lld were valid",
          (long long)valid, (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_files)
