/* SPDX-License-Identifier: MIT */
/* Builds SentencePiece files (protobuf) and their rules of normalisation (a double array). */
#ifndef MHA_SENTENCEPIECE_BUILDER_H
#define MHA_SENTENCEPIECE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

enum { SENTENCEPIECE_BYTES_MAX = 1 << 16 };

typedef struct sentencepiece_builder {
    unsigned char bytes[SENTENCEPIECE_BYTES_MAX];
    size_t size;
} sentencepiece_builder;

/* The types of pieces in the file. */
enum {
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_USER = 4,
    TYPE_UNUSED = 5,
    TYPE_BYTE = 6
};

void builder_piece(sentencepiece_builder *b, const char *piece, float score, int type);

/* "<unk>", "<s>" and "</s>". */
void builder_marks(sentencepiece_builder *b);

/* "<0x00>" .. "<0xFF>". */
void builder_bytes(sentencepiece_builder *b);

/* A field of trainer_spec (2) or normalizer_spec (3) with a number, or with bytes. */
enum { TRAINER = 2, NORMALIZER = 3 };
void builder_number(sentencepiece_builder *b, int part, int field, int64_t value);
void builder_data(sentencepiece_builder *b, int part, int field, const void *data, size_t size);

typedef struct charsmap_rule {
    const char *from, *to;
} charsmap_rule;

/* Rules as precompiled.h reads them; at most SENTENCEPIECE_BYTES_MAX bytes. Returns their number.
 */
size_t charsmap_build(unsigned char *bytes, const charsmap_rule *rules, int count);

#endif
