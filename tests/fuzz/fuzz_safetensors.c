/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a safetensors file. The first byte says how: as they are; as a header whose length is
 * right; as a header with as many bytes after it as its last offset says; or as changes to one of
 * the files of safetensors_cases.h. Whatever the bytes say, a file is refused with a message that
 * has a name, or everything in it holds together.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_safetensors.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_safetensors.c test.c        a test with pseudo-random bytes
 */
#include "format/safetensors.h"
#include "support/fuzz.h"
#include "support/safetensors_cases.h"

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

/* Header, then `data` bytes. */
static bytes_of_file with_length(fuzz *f, const uint8_t *header, size_t length, size_t data)
{
    size_t size;
    length = length < FILE_MAX / 2 ? length : FILE_MAX / 2;
    unsigned char *const made =
        st_bytes((const char *)header, length, data < FILE_MAX / 4 ? data : 0, 0, &size);
    const bytes_of_file file = place(f, made, size);
    free(made);
    return file;
}

/* The last number of the header: of a valid file most often the end of its last tensor. */
static size_t last_number(const uint8_t *header, size_t length)
{
    size_t end = length, value = 0;
    while (end > 0 && (header[end - 1] < '0' || header[end - 1] > '9'))
        end--;
    size_t begin = end;
    while (begin > 0 && header[begin - 1] >= '0' && header[begin - 1] <= '9')
        begin--;
    for (; begin < end && value < FILE_MAX; begin++)
        value = value * 10 + (size_t)(header[begin] - '0');
    return value;
}

/* One of the files made by hand, some of its bytes changed, doubled or left out. */
static bytes_of_file changed_case(fuzz *f, const uint8_t *bytes, size_t size)
{
    const size_t all = st_valid_count + st_invalid_count;
    const size_t which = size ? bytes[0] % all : 0;
    const st_case *const c =
        which < st_valid_count ? &st_valid[which] : &st_invalid[which - st_valid_count];
    const size_t length = c->header_length;
    unsigned char *const header = malloc(length + size + 1);
    size_t used = length;
    memcpy(header, c->header, length);
    for (size_t n = 1; n + 2 < size; n += 3) {
        const size_t at = used ? (size_t)(bytes[n] | (bytes[n + 1] & 1) << 8) % used : 0;
        const unsigned action = bytes[n + 1] >> 1 & 3;
        if (action == 0 && used) {
            memmove(header + at, header + at + 1, --used - at);
        } else if (action == 1 && used < length + size) {
            memmove(header + at + 1, header + at, used++ - at);
        } else if (used) {
            static const char likely[] = "0123456789[]{}\",:-.eE\\u abdfintsU8F32_";
            header[at] = action == 2 ? (unsigned char)likely[bytes[n + 2] % (sizeof likely - 1)]
                                     : bytes[n + 2];
        }
    }
    const bytes_of_file file = with_length(f, header, used, c->data);
    free(header);
    return file;
}

static bytes_of_file make_file(fuzz *f, const uint8_t *bytes, size_t size)
{
    const uint8_t how = size ? bytes[0] % 4 : 0;
    const uint8_t *const rest = size ? bytes + 1 : bytes;
    const size_t left = size ? size - 1 : 0;
    switch (how) {
    case 0:
        return place(f, rest, left);
    case 1:
        return with_length(f, rest, left, 0);
    case 2:
        return with_length(f, rest, left, last_number(rest, left));
    default:
        return changed_case(f, rest, left);
    }
}

/* A second opinion on what was accepted. */
static void check_file(fuzz *f, const safetensors_file *file, const bytes_of_file *b)
{
    uint64_t at = 0;
    if (8 + file->header_bytes + file->data_bytes != b->size)
        fuzz_die("the parts of the file are not the whole");
    for (size_t n = 0; n < file->count; n++) {
        const safetensors_tensor *const t = &file->tensors[n];
        __extension__ unsigned __int128 bits = safetensors_type_bits(t->type);
        for (size_t d = 0; d < t->rank; d++)
            bits *= t->shape[d];
        if (t->begin != at || t->end < at || bits != 8 * (t->end - at))
            fuzz_die("offsets and shape");
        if (safetensors_find(file, t->name) != t)
            fuzz_die("a tensor is not found, or there are two");
        at = t->end;
    }
    if (at != file->data_bytes)
        fuzz_die("bytes without a tensor");
    for (size_t n = 0; n < file->count && n < 4; n++) {
        const safetensors_tensor *const t = &file->tensors[n];
        void *const data = fuzz_buffer(f, (size_t)(t->end - t->begin));
        if (safetensors_read(file, t, data, NULL, 0) != MHA_OK)
            fuzz_die("a tensor cannot be read");
    }
    for (size_t n = 0; n < file->pair_count; n++)
        if (strlen(file->pairs[n].key) + strlen(file->pairs[n].value) > file->header_bytes)
            fuzz_die("metadata longer than the header");
}

static bool has_name(const char *message)
{
    static const char *const names[] = {"HeaderTooSmall",
                                        "HeaderTooLarge",
                                        "InvalidHeaderLength",
                                        "InvalidHeader",
                                        "ValidationOverflow",
                                        "MisalignedSlice",
                                        "TensorInvalidInfo",
                                        "MetadataIncompleteBuffer",
                                        "InvalidOffset",
                                        "DuplicateKey",
                                        "InvalidHeaderDeserialization"};
    const char *const name = message + strlen("memory: ");
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        if (strncmp(name, names[n], strlen(names[n])) == 0 &&
            strncmp(name + strlen(names[n]), ": ", 2) == 0)
            return true;
    return false;
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    fuzz f = fuzz_begin(bytes, 0);
    const bytes_of_file b = make_file(&f, bytes, size);
    char message[300] = "";
    safetensors_file *file = NULL, *strict = NULL;
    const mha_status status =
        safetensors_open_memory(&file, b.data, b.size, 0, message, sizeof message);
    if (status == MHA_OK)
        check_file(&f, file, &b);
    else if (status != MHA_ERR_FORMAT || file || !has_name(message))
        fuzz_die(message);
    /* Strict is the same, but that a warning is an error. */
    const mha_status hard =
        safetensors_open_memory(&strict, b.data, b.size, SAFETENSORS_STRICT, NULL, 0);
    if ((hard == MHA_OK) != (status == MHA_OK && file->warnings == 0))
        fuzz_die("strict");
    safetensors_close(file);
    safetensors_close(strict);
    fuzz_finish(&f, status);
    return status == MHA_OK;
}

static void pseudo_random_files(void)
{
    uint8_t bytes[40];
    test_random random = {test_seed(99)};
    const int64_t rounds = test_effort(200000);
    int64_t valid = 0;
    for (int64_t i = 0; i < rounds; i++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        /* Most are files made by hand with a few changes. */
        bytes[0] |= i % 8 ? 3 : 0;
        const size_t size = (size_t)(2 + 3 * test_random_below(&random, 5));
        valid += fuzz_one(bytes, i % 8 ? size : sizeof bytes);
    }
    CHECK(rounds < 1000 || (valid > rounds / 50 && valid < rounds / 2), "%lld of %lld were valid",
          (long long)valid, (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_files)
