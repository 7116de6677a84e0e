/* SPDX-License-Identifier: MIT */
/* GGUF files for tests (gguf_builder.h). */
#include "support/gguf_builder.h"

#include "format/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(gguf_builder *g, const void *data, size_t size)
{
    if (size > sizeof g->bytes - g->size) {
        fprintf(stderr, "gguf_builder: too many bytes\n");
        exit(1);
    }
    if (size)
        memcpy(g->bytes + g->size, data, size);
    g->size += size;
}

static void put_text(gguf_builder *g, const char *text)
{
    const uint64_t length = strlen(text);
    put(g, &length, 8);
    put(g, text, length);
}

/* The number of pairs is at byte 16 of the file. */
static void put_key(gguf_builder *g, const char *key, uint32_t type)
{
    put_text(g, key);
    put(g, &type, 4);
    g->pairs++;
    memcpy(g->bytes + 16, &g->pairs, 8);
}

static void put_array(gguf_builder *g, const char *key, uint32_t element, uint64_t count)
{
    put_key(g, key, GGUF_ARRAY);
    put(g, &element, 4);
    put(g, &count, 8);
}

void gguf_build_begin(gguf_builder *g)
{
    const uint32_t version = 3;
    const uint64_t none = 0;
    g->size = 0;
    g->pairs = 0;
    put(g, "GGUF", 4);
    put(g, &version, 4);
    put(g, &none, 8);
    put(g, &none, 8);
}

void gguf_build_string(gguf_builder *g, const char *key, const char *value)
{
    put_key(g, key, GGUF_STRING);
    put_text(g, value);
}

void gguf_build_u32(gguf_builder *g, const char *key, uint32_t value)
{
    put_key(g, key, GGUF_U32);
    put(g, &value, 4);
}

void gguf_build_bool(gguf_builder *g, const char *key, int value)
{
    const unsigned char byte = value != 0;
    put_key(g, key, GGUF_BOOL);
    put(g, &byte, 1);
}

void gguf_build_strings(gguf_builder *g, const char *key, const char *const *values)
{
    uint64_t count = 0;
    while (values[count])
        count++;
    put_array(g, key, GGUF_STRING, count);
    for (uint64_t n = 0; n < count; n++)
        put_text(g, values[n]);
}

void gguf_build_i32s(gguf_builder *g, const char *key, const int32_t *values, size_t count)
{
    put_array(g, key, GGUF_I32, count);
    put(g, values, count * sizeof *values);
}
