/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a model of llama2.c: as they are, or as the numbers of a header, mostly small ones,
 * before as many bytes as a second calculation of the length asks for. A file is refused with a
 * message, or its tensors are inside of it, one after another.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_llama2c.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_llama2c.c test.c        a test with pseudo-random bytes
 */
#include "format/llama2c.h"
#include "support/fuzz.h"

#include <string.h>

enum { FILE_MAX = 1 << 16, NUMBERS = 7 };

/* A file in a buffer of its exact size. */
typedef struct bytes_of_file {
    unsigned char *data;
    size_t size;
} bytes_of_file;

static void put_number(unsigned char *at, int64_t value)
{
    for (int n = 0; n < 4; n++)
        at[n] = (unsigned char)((uint64_t)value >> 8 * n);
}

/* Bytes after the header; 0 if they are too many. */
static size_t data_bytes(const int64_t *number, bool version_1, bool tied)
{
    const int64_t width = number[0], inner = number[1], layers = number[2], heads = number[3];
    const int64_t words = number[5], head = heads ? width / heads : 0;
    for (int n = 0; n < NUMBERS; n++)
        if (number[n] < 0 || number[n] > 64)
            return 0;
    const int64_t layer =
        2 * width + 2 * width * width + 2 * number[4] * head * width + 3 * width * inner;
    const int64_t count = (tied ? 1 : 2) * words * width + layers * layer + width +
                          (version_1 ? 0 : number[6] * head);
    return count < FILE_MAX / 4 - 64 ? 4 * (size_t)count : 0;
}

static bytes_of_file make_file(fuzz *f)
{
    const bool version_1 = fuzz_pick(f, 2), tied = fuzz_pick(f, 2);
    const ptrdiff_t head = 2 * (1 + fuzz_pick(f, 4)), key_heads = 1 + fuzz_pick(f, 2);
    const ptrdiff_t heads = key_heads * (1 + fuzz_pick(f, 2));
    int64_t number[NUMBERS] = {head * heads, 1 + fuzz_pick(f, 8), 1 + fuzz_pick(f, 4), heads,
                               key_heads,    1 + fuzz_pick(f, 8), 1 + fuzz_pick(f, 4)};
    if (fuzz_rare(f))
        number[fuzz_pick(f, NUMBERS)] = fuzz_absurd(f);
    if (fuzz_rare(f))
        number[fuzz_pick(f, NUMBERS)] = fuzz_pick(f, 64);
    const size_t header = version_1 ? 256 : 28;
    const size_t size = header + data_bytes(number, version_1, tied) - (size_t)fuzz_rare(f);
    const bytes_of_file file = {fuzz_buffer(f, size), size};
    memset(file.data, 0, header < size ? header : size);
    if (version_1) {
        put_number(file.data, 0x616b3432);
        put_number(file.data + 4, fuzz_rare(f) ? fuzz_pick(f, 4) : 1);
        file.data[36] = tied;
    } else if (!tied) {
        number[5] = (int64_t)(0 - (uint64_t)number[5]);
    }
    for (int n = 0; n < NUMBERS - 1; n++)
        put_number(file.data + (version_1 ? 8 : 0) + 4 * n, number[n]);
    if (size >= header)
        put_number(file.data + (version_1 ? 8 : 0) + 24, number[6]);
    return file;
}

static bytes_of_file plain_file(fuzz *f, const uint8_t *bytes, size_t size)
{
    size = size < FILE_MAX ? size : FILE_MAX;
    const bytes_of_file file = {fuzz_buffer(f, size), size};
    if (size)
        memcpy(file.data, bytes, size);
    return file;
}

static void check_file(const llama2c_file *file, const bytes_of_file *b)
{
    size_t sum = 0;
    for (size_t n = 0; n < file->tensor_count; n++) {
        const llama2c_tensor *const t = &file->tensors[n];
        const unsigned char *const at = t->data;
        const size_t bytes = 4 * (size_t)t->shape[0] * (t->rank > 1 ? (size_t)t->shape[1] : 1);
        if (t->rank < 1 || t->rank > 2 || !memchr(t->name, 0, sizeof t->name))
            fuzz_die("a tensor makes no sense");
        if (at < b->data || bytes > (size_t)(b->data + b->size - at))
            fuzz_die("a tensor is not inside of the file");
        if (n && at < (const unsigned char *)file->tensors[n - 1].data)
            fuzz_die("the tensors are not in order");
        sum += bytes;
    }
    if (sum >= b->size || file->tensor_count != 9 * (size_t)file->layers + (file->tied ? 2 : 3))
        fuzz_die("the tensors are not the file");
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    fuzz f = fuzz_begin(bytes, size);
    const bytes_of_file b = fuzz_rare(&f) ? plain_file(&f, bytes, size) : make_file(&f);
    char message[300] = "";
    llama2c_file *file = NULL;
    const mha_status status = llama2c_open_memory(&file, b.data, b.size, message, sizeof message);
    if (status != MHA_OK && (status != MHA_ERR_FORMAT || file || strlen(message) < 20))
        fuzz_die(message);
    if (file)
        check_file(file, &b);
    llama2c_close(file);
    fuzz_finish(&f, status);
    return status == MHA_OK;
}

static void pseudo_random_files(void)
{
    uint8_t bytes[32];
    test_random random = {test_seed(102)};
    const int64_t rounds = test_effort(50000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        valid += fuzz_one(bytes, sizeof bytes);
    }
    CHECK(rounds < 1000 || (valid > rounds / 2 && valid < rounds), "%lld of %lld were valid",
          (long long)valid, (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_files)
