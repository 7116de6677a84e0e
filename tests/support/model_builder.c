/* SPDX-License-Identifier: MIT */
/* Writes small model files (model_builder.h): lists of tensors become safetensors and GGUF files.
 */
#include "support/model_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/safetensors.h"
#include "support/test.h"

enum { NAME_ROOM = 120, TENSORS_MAX = 400, NUMBERS_MAX = 1 << 16 };

typedef struct built_tensor {
    char name[NAME_ROOM];
    size_t rank;
    uint64_t shape[4];
} built_tensor;

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "model_builder: %s\n", what);
    exit(1);
}

/* One line of a list, for one layer. */
static built_tensor read_line(const char *line, size_t length, int layer)
{
    built_tensor tensor = {.rank = 0};
    size_t used = 0, n = 0;
    for (; n < length && line[n] != ' ' && used + 12 < NAME_ROOM; n++)
        if (line[n] == '#')
            used += (size_t)snprintf(tensor.name + used, NAME_ROOM - used, "%d", layer);
        else
            tensor.name[used++] = line[n];
    while (n < length && tensor.rank < 4) {
        char *end;
        tensor.shape[tensor.rank++] = strtoull(line + n, &end, 10);
        n = (size_t)(end - line);
    }
    return tensor;
}

/* All tensors of a list. Returns their number. */
static size_t read_list(const char *list, int layers, built_tensor tensors[TENSORS_MAX])
{
    size_t count = 0;
    while (*list) {
        const size_t length = strcspn(list, "\n");
        const int repeat = memchr(list, '#', length) ? layers : 1;
        for (int layer = 0; length > 0 && layer < repeat; layer++) {
            if (count == TENSORS_MAX)
                die("too many tensors");
            tensors[count++] = read_line(list, length, layer);
        }
        list += length;
        list += *list == '\n';
    }
    return count;
}

static size_t elements(const built_tensor *tensor)
{
    size_t count = 1;
    for (size_t n = 0; n < tensor->rank; n++)
        count *= (size_t)tensor->shape[n];
    if (count > NUMBERS_MAX)
        die("a tensor is too large");
    return count;
}

/* ---------------------------------------------------------------- folders ----- */

void model_builder_tensors(const char *path, const char *tensors, int layers)
{
    static built_tensor list[TENSORS_MAX];
    static safetensors_item items[TENSORS_MAX];
    static float numbers[NUMBERS_MAX];
    char message[300];
    const size_t count = read_list(tensors, layers, list);
    for (int n = 0; n < NUMBERS_MAX; n++)
        numbers[n] = (float)n;
    for (size_t n = 0; n < count; n++) {
        (void)elements(&list[n]);
        items[n] =
            (safetensors_item){list[n].name, SAFETENSORS_F32, list[n].rank, list[n].shape, numbers};
    }
    if (safetensors_write(path, items, count, NULL, 0, message, sizeof message))
        die(message);
}

void model_builder_folder(const temp_folder *folder, const char *config, const char *tensors,
                          int layers)
{
    if (!file_make(temp_path(folder, "config.json"), config, strlen(config)))
        die("config.json cannot be written");
    model_builder_tensors(temp_path(folder, "model.safetensors"), tensors, layers);
}

/* ------------------------------------------------------------------- GGUF ----- */

enum { GGUF_HEADER = 24, GGUF_ALIGNMENT = 32 };

static void put(gguf_builder *g, const void *bytes, size_t count)
{
    if (g->room < g->size + count) {
        g->room = 2 * (g->size + count);
        g->bytes = realloc(g->bytes, g->room);
        if (!g->bytes)
            die("out of memory");
    }
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

static void begin_pair(gguf_builder *g, const char *key, uint32_t type)
{
    static const unsigned char header[GGUF_HEADER];
    if (g->size == 0)
        put(g, header, sizeof header);
    g->pairs++;
    put_text(g, key);
    put_u32(g, type);
}

void gguf_builder_text(gguf_builder *g, const char *key, const char *value)
{
    begin_pair(g, key, 8);
    put_text(g, value);
}

void gguf_builder_integer(gguf_builder *g, const char *key, uint32_t value)
{
    begin_pair(g, key, 4);
    put_u32(g, value);
}

void gguf_builder_real(gguf_builder *g, const char *key, float value)
{
    begin_pair(g, key, 6);
    put(g, &value, sizeof value);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

static void put_tensor(gguf_builder *g, const built_tensor *tensor, uint32_t type, uint64_t bytes)
{
    put_text(g, tensor->name);
    put_u32(g, (uint32_t)tensor->rank);
    for (size_t k = tensor->rank; k > 0; k--)
        put_u64(g, tensor->shape[k - 1]);
    put_u32(g, type);
    put_u64(g, g->offset);
    g->offset = aligned(g->offset + bytes);
    g->tensors++;
}

void gguf_builder_tensors(gguf_builder *g, const char *tensors, int layers)
{
    static built_tensor list[TENSORS_MAX];
    const size_t count = read_list(tensors, layers, list);
    for (size_t n = 0; n < count; n++)
        put_tensor(g, &list[n], 0, 4 * elements(&list[n]));
}

void gguf_builder_blocks(gguf_builder *g, const char *tensors, int layers, mha_dtype type)
{
    static built_tensor list[TENSORS_MAX];
    const size_t count = read_list(tensors, layers, list);
    for (size_t n = 0; n < count; n++) {
        const size_t bytes = mha_row_bytes(type, (ptrdiff_t)elements(&list[n]));
        if (g->block_count == GGUF_BUILDER_BLOCKS)
            die("too many tensors of block types");
        g->blocks[g->block_count].offset = g->offset;
        g->blocks[g->block_count].bytes = bytes;
        g->blocks[g->block_count++].type = type;
        put_tensor(g, &list[n], type == MHA_Q4_K ? 12 : 14, bytes);
    }
}

/* Numbers at random with small scales. */
static void fill_blocks(unsigned char *rows, size_t bytes, mha_dtype type, uint64_t seed)
{
    static const uint16_t heads[2] = {0x0500, 0x1000};
    const size_t block = mha_row_bytes(type, 256);
    test_random random = {seed};
    for (size_t n = 0; n < bytes; n++)
        rows[n] = (unsigned char)test_random_u64(&random);
    for (size_t at = 0; at < bytes; at += block) {
        if (type == MHA_Q4_K)
            memcpy(rows + at, heads, 4);
        else
            memcpy(rows + at + block - 2, heads, 2);
    }
}

unsigned char *gguf_builder_end(gguf_builder *g, float value, size_t *size)
{
    const uint32_t version = 3;
    const unsigned char zero = 0;
    while (g->size % GGUF_ALIGNMENT != 0)
        put(g, &zero, 1);
    const size_t data = g->size;
    for (uint64_t n = 0; n < g->offset; n += 4)
        put(g, &value, sizeof value);
    for (int n = 0; n < g->block_count; n++)
        fill_blocks(g->bytes + data + g->blocks[n].offset, g->blocks[n].bytes, g->blocks[n].type,
                    (uint64_t)n);
    memcpy(g->bytes, "GGUF", 4);
    memcpy(g->bytes + 4, &version, 4);
    memcpy(g->bytes + 8, &g->tensors, 8);
    memcpy(g->bytes + 16, &g->pairs, 8);
    *size = g->size;
    unsigned char *const bytes = g->bytes;
    *g = (gguf_builder){.bytes = NULL};
    return bytes;
}
