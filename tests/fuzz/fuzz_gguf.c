/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a GGUF file. The first byte says how: as they are; as they are after a valid header; or
 * as changes to one of the files of gguf_cases.h. Whatever the bytes say, a file is refused with a
 * message, or every value and tensor in it can be read.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_gguf.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_gguf.c test.c        a test with pseudo-random bytes
 */
#include "format/gguf.h"
#include "support/fuzz.h"
#include "support/gguf_cases.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 16 };

/* A file in a buffer of its exact size. */
typedef struct bytes_of_file {
    unsigned char *data;
    size_t size;
} bytes_of_file;

static bytes_of_file place(fuzz *f, const void *bytes, size_t size)
{
    size = size < FILE_MAX ? size : FILE_MAX;
    const bytes_of_file file = {fuzz_buffer(f, size), size};
    if (size)
        memcpy(file.data, bytes, size);
    return file;
}

/* The first two bytes are the numbers of tensors and pairs. */
static bytes_of_file after_header(fuzz *f, const uint8_t *bytes, size_t size)
{
    const size_t length = size > 2 ? size - 2 : 0;
    const gguf_case c = {.version = 3,
                         .tensors = size > 0 ? bytes[0] & 7 : 0,
                         .pairs = size > 1 ? bytes[1] & 7 : 0,
                         .body = (const char *)bytes + (size - length),
                         .body_length = length < FILE_MAX / 2 ? length : FILE_MAX / 2,
                         .alignment = 32,
                         .data = size > 1 ? (size_t)(bytes[1] & 0xf8) : 0};
    size_t made_size;
    unsigned char *const made = gguf_case_bytes(&c, &made_size);
    const bytes_of_file file = place(f, made, made_size);
    free(made);
    return file;
}

/* One of the files made by hand, or the sample, with some bytes changed, doubled or left out. */
static bytes_of_file changed_case(fuzz *f, const uint8_t *bytes, size_t size)
{
    const size_t all = 2 * (gguf_valid_count + gguf_invalid_count) + 1;
    const size_t which = size ? bytes[0] % all : 0;
    const gguf_case *const c = which < gguf_valid_count ? &gguf_valid[which]
                               : which < gguf_valid_count + gguf_invalid_count
                                   ? &gguf_invalid[which - gguf_valid_count]
                                   : &gguf_sample;
    size_t used;
    unsigned char *const made = gguf_case_bytes(c, &used);
    unsigned char *const changed = malloc(used + size);
    const size_t room = used + size;
    memcpy(changed, made, used);
    free(made);
    for (size_t n = 1; used && n + 2 < size; n += 3) {
        const size_t at = (size_t)(bytes[n] | (bytes[n + 1] & 3) << 8) % used;
        const unsigned action = bytes[n + 1] >> 2 & 3;
        if (action == 0 && used > 1)
            memmove(changed + at, changed + at + 1, --used - at);
        else if (action == 1 && used < room)
            memmove(changed + at + 1, changed + at, used++ - at);
        else if (action == 2)
            changed[at] ^= (unsigned char)(1 << bytes[n + 2] % 8);
        else
            changed[at] = bytes[n + 2];
    }
    const bytes_of_file file = place(f, changed, used);
    free(changed);
    return file;
}

static bytes_of_file make_file(fuzz *f, const uint8_t *bytes, size_t size)
{
    const uint8_t how = size ? bytes[0] % 3 : 0;
    const uint8_t *const rest = size ? bytes + 1 : bytes;
    const size_t left = size ? size - 1 : 0;
    return how == 0   ? place(f, rest, left)
           : how == 1 ? after_header(f, rest, left)
                      : changed_case(f, rest, left);
}

/* ---------------------------------------------------- a second opinion ----- */

static void check_inside(const bytes_of_file *b, const void *data, uint64_t bytes)
{
    const unsigned char *const at = data;
    if (at < b->data || at > b->data + b->size || bytes > (size_t)(b->data + b->size - at))
        fuzz_die("a value is not inside of the file");
}

static void check_pair(const gguf_file *file, const gguf_pair *pair, const bytes_of_file *b)
{
    check_inside(b, pair->key.text, pair->key.length);
    char *const key = malloc((size_t)pair->key.length + 1);
    memcpy(key, pair->key.text, (size_t)pair->key.length);
    key[pair->key.length] = '\0';
    if (gguf_find(file, key) != pair)
        fuzz_die("a key is not found");
    gguf_string string;
    int64_t integer;
    double number;
    bool truth;
    gguf_get_integer(file, key, &integer);
    gguf_get_number(file, key, &number);
    gguf_get_bool(file, key, &truth);
    if (gguf_get_string(file, key, &string))
        check_inside(b, string.text, string.length);
    free(key);
    for (uint64_t n = 0, at = 0; pair->type == GGUF_ARRAY && n < pair->count; n++) {
        if (pair->element == GGUF_STRING) {
            string = gguf_next_string(pair, &at);
            check_inside(b, string.text, string.length);
        } else {
            gguf_array_integer(pair, n);
            gguf_array_number(pair, n);
        }
    }
}

static void check_tensor(const gguf_file *file, const gguf_tensor *t, const bytes_of_file *b)
{
    check_inside(b, t->data, t->bytes);
    if (gguf_find_tensor(file, t->name) != t || strlen(t->name) > 64)
        fuzz_die("a tensor is not found");
    if (t->rank < 0 || t->rank > 4 || !gguf_tensor_type_name(t->ggml_type))
        fuzz_die("a tensor makes no sense");
    for (size_t n = 0; n < file->tensor_count; n++) {
        const gguf_tensor *const o = &file->tensors[n];
        const uintptr_t begin = (uintptr_t)t->data, other = (uintptr_t)o->data;
        if (o != t && o->bytes && t->bytes && begin < other + o->bytes && other < begin + t->bytes)
            fuzz_die("two tensors overlap");
    }
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    fuzz f = fuzz_begin(bytes, 0);
    const bytes_of_file b = make_file(&f, bytes, size);
    char message[300] = "";
    gguf_file *file = NULL;
    const mha_status status = gguf_open_memory(&file, b.data, b.size, message, sizeof message);
    if (status != MHA_OK && (status != MHA_ERR_FORMAT || file || strlen(message) < 20))
        fuzz_die(message);
    for (size_t n = 0; file && n < file->pair_count; n++)
        check_pair(file, &file->pairs[n], &b);
    for (size_t n = 0; file && n < file->tensor_count; n++)
        check_tensor(file, &file->tensors[n], &b);
    gguf_close(file);
    fuzz_finish(&f, status);
    return status == MHA_OK;
}

static void pseudo_random_files(void)
{
    uint8_t bytes[40];
    test_random random = {test_seed(101)};
    const int64_t rounds = test_effort(200000);
    int64_t valid = 0;
    for (int64_t i = 0; i < rounds; i++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        /* Most are files made by hand with a few changes. */
        bytes[0] = i % 8 ? 2 : bytes[0];
        const size_t size = (size_t)(2 + 3 * test_random_below(&random, 5));
        valid += fuzz_one(bytes, i % 8 ? size : sizeof bytes);
    }
    CHECK(rounds < 1000 || (valid > rounds / 50 && valid < rounds / 2), "%lld of %lld were valid",
          (long long)valid, (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_files)
