/* SPDX-License-Identifier: MIT */
/* GGUF files for tests (gguf_builder.h). */
#include "support/gguf_builder.h"

#include "base/array.h"
#include "format/gguf.h"
#include "support/temp_files.h"
#include "support/tensor_lines.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 24, ALIGNMENT = 32 };

/* What a tensor is filled with. */
typedef struct gguf_data {
    uint64_t offset, bytes;
    mha_dtype type;
    float value;
} gguf_data;

/* ---------------------------------------------------------------- bytes ----- */

static void put(gguf_builder *g, const void *bytes, size_t count)
{
    unsigned char *const grown = mhai_array_grow(g->bytes, &g->room, g->size + count + 1, 1);
    if (!grown)
        builder_die("out of memory");
    g->bytes = grown;
    if (count)
        memcpy(g->bytes + g->size, bytes, count);
    g->size += count;
}

static void put_u32(gguf_builder *g, uint32_t value)
{
    put(g, &value, sizeof value);
}

static void put_u64(gguf_builder *g, uint64_t value)
{
    put(g, &value, sizeof value);
}

static void put_text(gguf_builder *g, const char *text)
{
    put_u64(g, strlen(text));
    put(g, text, strlen(text));
}

/* ---------------------------------------------------------------- pairs ----- */

static void begin_pair(gguf_builder *g, const char *key, gguf_type type)
{
    if (g->tensors)
        builder_die("a pair after tensors");
    g->pairs++;
    put_text(g, key);
    put_u32(g, type);
}

static void begin_array(gguf_builder *g, const char *key, gguf_type element, uint64_t count)
{
    begin_pair(g, key, GGUF_ARRAY);
    put_u32(g, element);
    put_u64(g, count);
}

void gguf_builder_text(gguf_builder *g, const char *key, const char *value)
{
    begin_pair(g, key, GGUF_STRING);
    put_text(g, value);
}

void gguf_builder_integer(gguf_builder *g, const char *key, uint32_t value)
{
    begin_pair(g, key, GGUF_U32);
    put_u32(g, value);
}

void gguf_builder_real(gguf_builder *g, const char *key, float value)
{
    begin_pair(g, key, GGUF_F32);
    put(g, &value, sizeof value);
}

void gguf_builder_bool(gguf_builder *g, const char *key, int value)
{
    const unsigned char byte = value != 0;
    begin_pair(g, key, GGUF_BOOL);
    put(g, &byte, 1);
}

void gguf_builder_texts(gguf_builder *g, const char *key, const char *const *values)
{
    uint64_t count = 0;
    while (values[count])
        count++;
    begin_array(g, key, GGUF_STRING, count);
    for (uint64_t n = 0; n < count; n++)
        put_text(g, values[n]);
}

void gguf_builder_integers(gguf_builder *g, const char *key, const int32_t *values, size_t count)
{
    begin_array(g, key, GGUF_I32, count);
    put(g, values, count * sizeof *values);
}

void gguf_builder_reals(gguf_builder *g, const char *key, const float *values, size_t count)
{
    begin_array(g, key, GGUF_F32, count);
    put(g, values, count * sizeof *values);
}

/* -------------------------------------------------------------- tensors ----- */

/* The number of a type in the file. */
static uint32_t ggml_type(mha_dtype type)
{
    switch (type) {
    case MHA_F32:
        return 0;
    case MHA_Q8_0:
        return 8;
    case MHA_Q4_K:
        return 12;
    case MHA_Q6_K:
        return 14;
    default:
        builder_die("a type that is not known");
    }
}

static void put_tensor(gguf_builder *g, const tensor_line *tensor, mha_dtype type, float value)
{
    const size_t bytes = mha_row_bytes(type, (ptrdiff_t)tensor_line_elements(tensor));
    gguf_data *const data =
        mhai_array_grow(g->data, &g->data_room, (size_t)g->tensors + 1, sizeof *data);
    if (!data)
        builder_die("out of memory");
    g->data = data;
    data[g->tensors++] = (gguf_data){g->offset, bytes, type, value};
    put_text(g, tensor->name);
    put_u32(g, (uint32_t)tensor->rank);
    for (size_t k = tensor->rank; k > 0; k--)
        put_u64(g, tensor->shape[k - 1]);
    put_u32(g, ggml_type(type));
    put_u64(g, g->offset);
    g->offset += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void put_tensors(gguf_builder *g, const char *tensors, int layers, mha_dtype type,
                        float value)
{
    static tensor_line list[TENSOR_LINES_MAX];
    const size_t count = tensor_lines_read(tensors, layers, list);
    for (size_t n = 0; n < count; n++)
        put_tensor(g, &list[n], type, value);
}

void gguf_builder_tensors(gguf_builder *g, const char *tensors, int layers, float value)
{
    put_tensors(g, tensors, layers, MHA_F32, value);
}

void gguf_builder_blocks(gguf_builder *g, const char *tensors, int layers, mha_dtype type)
{
    put_tensors(g, tensors, layers, type, 0);
}

/* Numbers at random with small scales, which are the half numbers of each block. */
static void fill_blocks(unsigned char *rows, size_t bytes, mha_dtype type, uint64_t seed)
{
    static const uint16_t scales[2] = {0x0500, 0x1000};
    const size_t block = mha_row_bytes(type, type == MHA_Q8_0 ? 32 : 256);
    test_random random = {seed};
    for (size_t n = 0; n < bytes; n++)
        rows[n] = (unsigned char)test_random_u64(&random);
    for (size_t at = 0; at < bytes; at += block) {
        if (type == MHA_Q6_K)
            memcpy(rows + at + block - 2, scales, 2);
        else
            memcpy(rows + at, type == MHA_Q8_0 ? scales + 1 : scales, type == MHA_Q8_0 ? 2 : 4);
    }
}

static void fill_tensor(const gguf_data *data, unsigned char *to, uint64_t number)
{
    if (data->type != MHA_F32)
        fill_blocks(to, (size_t)data->bytes, data->type, number);
    for (uint64_t at = 0; data->type == MHA_F32 && at < data->bytes; at += sizeof data->value)
        memcpy(to + at, &data->value, sizeof data->value);
}

/* ----------------------------------------------------------------- file ----- */

unsigned char *gguf_builder_file(const gguf_builder *g, size_t *size)
{
    const uint32_t version = 3;
    const size_t start =
        g->tensors ? (HEADER + g->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : HEADER + g->size;
    *size = start + (size_t)g->offset;
    unsigned char *const file = calloc(1, *size);
    if (!file)
        builder_die("out of memory");
    memcpy(file, "GGUF", 4);
    memcpy(file + 4, &version, 4);
    memcpy(file + 8, &g->tensors, 8);
    memcpy(file + 16, &g->pairs, 8);
    if (g->size)
        memcpy(file + HEADER, g->bytes, g->size);
    for (uint64_t n = 0; n < g->tensors; n++)
        fill_tensor(&g->data[n], file + start + g->data[n].offset, n);
    return file;
}

void gguf_builder_write(const gguf_builder *g, const char *path)
{
    size_t size;
    unsigned char *const bytes = gguf_builder_file(g, &size);
    if (!file_make(path, bytes, size))
        builder_die(path);
    free(bytes);
}

void gguf_builder_free(gguf_builder *g)
{
    free(g->bytes);
    free(g->data);
    *g = (gguf_builder){.bytes = NULL};
}
