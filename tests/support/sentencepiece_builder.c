/* SPDX-License-Identifier: MIT */
/* Writers of protobuf fields and of a double array in which every node has 256 units to itself. */
#include "support/sentencepiece_builder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(sentencepiece_builder *b, const void *data, size_t size)
{
    if (b->size + size > sizeof b->bytes) {
        fprintf(stderr, "a SentencePiece file of a test is too large\n");
        abort();
    }
    if (size > 0)
        memcpy(b->bytes + b->size, data, size);
    b->size += size;
}

static void put_varint(sentencepiece_builder *b, uint64_t value)
{
    do {
        const unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(b, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_tag(sentencepiece_builder *b, int field, int type)
{
    put_varint(b, (uint64_t)field << 3 | (uint64_t)type);
}

static void put_field(sentencepiece_builder *b, int field, const void *data, size_t size)
{
    put_tag(b, field, 2);
    put_varint(b, size);
    put(b, data, size);
}

void builder_piece(sentencepiece_builder *b, const char *piece, float score, int type)
{
    static sentencepiece_builder inner;
    inner.size = 0;
    put_field(&inner, 1, piece, strlen(piece));
    put_tag(&inner, 2, 5);
    put(&inner, &score, 4);
    put_tag(&inner, 3, 0);
    put_varint(&inner, (uint64_t)type);
    put_field(b, 1, inner.bytes, inner.size);
}

void builder_marks(sentencepiece_builder *b)
{
    builder_piece(b, "<unk>", 0, TYPE_UNKNOWN);
    builder_piece(b, "<s>", 0, TYPE_CONTROL);
    builder_piece(b, "</s>", 0, TYPE_CONTROL);
}

void builder_bytes(sentencepiece_builder *b)
{
    for (unsigned n = 0; n < 256; n++) {
        char piece[8];
        snprintf(piece, sizeof piece, "<0x%02X>", n & 0xff);
        builder_piece(b, piece, 0, TYPE_BYTE);
    }
}

void builder_number(sentencepiece_builder *b, int part, int field, int64_t value)
{
    static sentencepiece_builder inner;
    inner.size = 0;
    put_tag(&inner, field, 0);
    put_varint(&inner, (uint64_t)value);
    put_field(b, part, inner.bytes, inner.size);
}

void builder_data(sentencepiece_builder *b, int part, int field, const void *data, size_t size)
{
    static sentencepiece_builder inner;
    inner.size = 0;
    put_field(&inner, field, data, size);
    put_field(b, part, inner.bytes, inner.size);
}

enum { UNITS_MAX = 256 * 48 };

typedef struct double_array {
    uint32_t units[UNITS_MAX];
    uint32_t blocks; /* in use; the root's children are in block 1 */
} double_array;

/* The block of the children of a node, which gets one if it has none. */
static uint32_t children(double_array *a, uint32_t node)
{
    if (a->units[node] >> 10 == 0) {
        const uint32_t block = ++a->blocks * 256;
        if (block + 256 > UNITS_MAX)
            abort();
        a->units[node] |= (node ^ block) << 10;
    }
    return node ^ a->units[node] >> 10;
}

size_t charsmap_build(unsigned char *bytes, const charsmap_rule *rules, int count)
{
    static double_array a;
    memset(&a, 0, sizeof a);
    char texts[1024];
    size_t used = 0;
    for (int n = 0; n < count; n++) {
        uint32_t node = 0;
        for (const char *c = rules[n].from; *c; c++) {
            node = children(&a, node) ^ (unsigned char)*c;
            a.units[node] |= (unsigned char)*c;
        }
        a.units[children(&a, node)] = 1u << 31 | (uint32_t)used;
        a.units[node] |= 1u << 8;
        used += (size_t)snprintf(texts + used, sizeof texts - used, "%s", rules[n].to) + 1;
    }
    const uint32_t trie_bytes = (a.blocks + 1) * 256 * 4;
    memcpy(bytes, &trie_bytes, 4);
    memcpy(bytes + 4, a.units, trie_bytes);
    memcpy(bytes + 4 + trie_bytes, texts, used);
    return 4 + trie_bytes + used;
}
