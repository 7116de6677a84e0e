/* SPDX-License-Identifier: MIT */
/*
 * Tests of the reader of llama2.c's files: names, shapes and places of all tensors of both
 * versions, with and without an output matrix; headers that violate a rule; and files of the wrong
 * length.
 */
#include "format/llama2c.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH, INNER, LAYERS, HEADS, KEY_HEADS, VOCABULARY, POSITIONS, NUMBERS };

typedef struct sample {
    int version;
    bool tied;
    int32_t numbers[NUMBERS];
    size_t size;
    unsigned char *bytes;
} sample;

static void put_number(unsigned char *at, uint32_t value)
{
    for (int n = 0; n < 4; n++)
        at[n] = (unsigned char)(value >> 8 * n);
}

static size_t header_of(const sample *s)
{
    return s->version ? 256 : 28;
}

/* Two layers of width 8 with 4 heads and 2 key heads, 5 words, 3 positions. Element n after the
 * header is the number n. */
static sample make_sample(int version, bool tied)
{
    enum { D = 8, F = 6, L = 2, KEYS = 4, V = 5, S = 3, HEAD = 2 };
    sample s = {.version = version, .tied = tied, .numbers = {D, F, L, 4, 2, V, S}};
    const size_t layer = D + D * D + 2 * KEYS * D + D * D + D + 3 * D * F;
    const size_t count = V * D + L * layer + D + (version ? 0 : S * HEAD) + (tied ? 0 : V * D);
    s.size = header_of(&s) + 4 * count;
    s.bytes = calloc(s.size, 1);
    unsigned char *const at = s.bytes + (version ? 8 : 0);
    for (int n = 0; n < NUMBERS; n++)
        put_number(at + 4 * n, (uint32_t)s.numbers[n]);
    if (version) {
        put_number(s.bytes, 0x616b3432);
        put_number(s.bytes + 4, (uint32_t)version);
        s.bytes[8 + 4 * NUMBERS] = tied;
    } else if (!tied) {
        put_number(at + 4 * VOCABULARY, (uint32_t)-V);
    }
    for (size_t n = 0; n < count; n++) {
        const float value = (float)n;
        memcpy(s.bytes + header_of(&s) + 4 * n, &value, 4);
    }
    return s;
}

/* Expects a tensor of this name and shape that begins with element *next, and goes on after it. */
static void expect_tensor(const llama2c_file *file, const char *name, uint64_t rows,
                          uint64_t columns, size_t *next)
{
    const llama2c_tensor *found = NULL;
    for (size_t n = 0; n < file->tensor_count; n++)
        if (strcmp(file->tensors[n].name, name) == 0)
            found = &file->tensors[n];
    if (!CHECK(found, "%s is missing", name))
        return;
    float first;
    memcpy(&first, found->data, 4);
    CHECK(found->rank == (columns ? 2 : 1) && found->shape[0] == rows && found->shape[1] == columns,
          "the shape of %s", name);
    CHECK((size_t)first == *next, "%s begins with element %g, not %zu", name, (double)first, *next);
    *next += (size_t)(rows * (columns ? columns : 1));
}

static void expect_layers(const llama2c_file *file, const char *part, uint64_t rows,
                          uint64_t columns, size_t *next)
{
    for (int layer = 0; layer < 2; layer++) {
        char name[64];
        snprintf(name, sizeof name, "layers.%d.%s", layer, part);
        expect_tensor(file, name, rows, columns, next);
    }
}

static void expect_all(const sample *s, const llama2c_file *file)
{
    size_t next = 0;
    CHECK(file->width == 8 && file->inner == 6 && file->layers == 2 && file->heads == 4 &&
              file->key_heads == 2 && file->vocabulary == 5 && file->positions == 3 &&
              file->tied == s->tied && file->bytes == s->size,
          "numbers");
    CHECK(file->tensor_count == (s->tied ? 20 : 21), "%zu tensors", file->tensor_count);
    if (s->version == 0)
        expect_tensor(file, "tok_embeddings", 5, 8, &next);
    expect_layers(file, "attention_norm", 8, 0, &next);
    if (s->version == 1) {
        expect_layers(file, "ffn_norm", 8, 0, &next);
        expect_tensor(file, "norm", 8, 0, &next);
        expect_tensor(file, "tok_embeddings", 5, 8, &next);
    }
    expect_layers(file, "wq", 8, 8, &next);
    expect_layers(file, "wk", 4, 8, &next);
    expect_layers(file, "wv", 4, 8, &next);
    expect_layers(file, "wo", 8, 8, &next);
    if (s->version == 0)
        expect_layers(file, "ffn_norm", 8, 0, &next);
    expect_layers(file, "w1", 6, 8, &next);
    expect_layers(file, "w2", 8, 6, &next);
    expect_layers(file, "w3", 6, 8, &next);
    if (s->version == 0) {
        expect_tensor(file, "norm", 8, 0, &next);
        next += 3 * 2;
    }
    if (!s->tied)
        expect_tensor(file, "output", 5, 8, &next);
    CHECK(header_of(s) + 4 * next == s->size, "%zu elements", next);
}

static void every_tensor(void)
{
    for (int n = 0; n < 4; n++) {
        const sample s = make_sample(n / 2, n % 2);
        char message[300] = "";
        llama2c_file *file;
        if (CHECK(llama2c_open_memory(&file, s.bytes, s.size, message, sizeof message) == MHA_OK,
                  "version %d: %s", s.version, message))
            expect_all(&s, file);
        llama2c_close(file);
        free(s.bytes);
    }
    llama2c_close(NULL);
}

static void expect_refusal(const unsigned char *bytes, size_t size, const char *says)
{
    char message[300] = "";
    llama2c_file *file = (llama2c_file *)1;
    unsigned char *const copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, bytes, size);
    const mha_status status = llama2c_open_memory(&file, copy, size, message, sizeof message);
    CHECK(status == MHA_ERR_FORMAT && !file, "%s: %s", says, mha_status_string(status));
    CHECK(strncmp(message, "memory: ", 8) == 0 && strstr(message, says), "%s: %s", says, message);
    free(copy);
}

static void wrong_headers(void)
{
    static const struct {
        int number;
        int32_t value;
        const char *says;
    } cases[] = {
        {WIDTH, 0, "not positive"},
        {WIDTH, -8, "not positive"},
        {INNER, 0, "not positive"},
        {LAYERS, -1, "not positive"},
        {HEADS, 0, "not positive"},
        {KEY_HEADS, INT32_MIN, "not positive"},
        {VOCABULARY, 0, "not positive"},
        {VOCABULARY, INT32_MIN, "not positive"},
        {POSITIONS, 0, "not positive"},
        {HEADS, 3, "3 heads with 2 key heads do not fit"},
        {HEADS, 8, "8 heads with 2 key heads do not fit the width 8"},
        {KEY_HEADS, 3, "4 heads with 3 key heads do not fit"},
        {KEY_HEADS, 8, "4 heads with 8 key heads do not fit"},
        {INNER, 7, "its header asks for"},
        {POSITIONS, 4, "its header asks for"},
        {LAYERS, 3, "its header asks for"},
        {VOCABULARY, -5, "its header asks for"},
        {LAYERS, INT32_MAX, "its header asks for"},
    };
    const sample s = make_sample(0, true);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        unsigned char old[4], *const at = s.bytes + 4 * cases[n].number;
        memcpy(old, at, 4);
        put_number(at, (uint32_t)cases[n].value);
        expect_refusal(s.bytes, s.size, cases[n].says);
        memcpy(at, old, 4);
    }
    /* Every number as large as possible. */
    static const int32_t large[NUMBERS] = {INT32_MAX - 1, INT32_MAX, INT32_MAX, 1, 1,
                                           INT32_MAX,     INT32_MAX};
    for (int n = 0; n < NUMBERS; n++)
        put_number(s.bytes + 4 * n, (uint32_t)large[n]);
    expect_refusal(s.bytes, s.size, "its header asks for more than the");
    free(s.bytes);
}

static void other_versions(void)
{
    const sample s = make_sample(1, true);
    put_number(s.bytes + 4, 2);
    expect_refusal(s.bytes, s.size, "quantized to Q8_0 (version 2)");
    put_number(s.bytes + 4, 0);
    expect_refusal(s.bytes, s.size, "the unknown version 0");
    put_number(s.bytes + 4, UINT32_MAX);
    expect_refusal(s.bytes, s.size, "the unknown version -1");
    free(s.bytes);
}

static void wrong_lengths(void)
{
    for (int version = 0; version < 2; version++) {
        const sample s = make_sample(version, true);
        for (size_t size = 0; size < s.size; size++)
            expect_refusal(s.bytes, size,
                           size < header_of(&s) ? "ends within its header" : "its header asks for");
        unsigned char *const longer = calloc(s.size + 1, 1);
        memcpy(longer, s.bytes, s.size);
        expect_refusal(longer, s.size + 1, "its header asks for");
        free(longer);
        free(s.bytes);
    }
}

static void files(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "model.bin");
    const sample s = make_sample(0, false);
    char message[300] = "";
    llama2c_file *file;
    CHECK(llama2c_open(&file, path, message, sizeof message) == MHA_ERR_FILE && !file &&
              strstr(message, "model.bin: cannot be opened"),
          "no file: %s", message);
    CHECK(file_make(path, s.bytes, s.size), "make");
    if (CHECK(llama2c_open(&file, path, message, sizeof message) == MHA_OK, "%s", message))
        expect_all(&s, file);
    llama2c_close(file);
    free(s.bytes);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_tensor);
    RUN(wrong_headers);
    RUN(other_versions);
    RUN(wrong_lengths);
    RUN(files);
    return test_end();
}
