/* SPDX-License-Identifier: MIT */
/* The pieces of a tokenizer, with their ids, scores and flags. A piece is a string of bytes without
 * a zero byte. */
#ifndef TEXT_VOCABULARY_H
#define TEXT_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PIECE_SPECIAL = 1 << 0, /* a mark, never the result of splitting a text */
    PIECE_UNKNOWN = 1 << 1,
    PIECE_BYTE = 1 << 2, /* "<0x41>": one byte, for text that has no piece */
    PIECE_UNUSED = 1 << 3,
    PIECE_USER = 1 << 4, /* always kept whole */
    PIECE_ADDED = 1 << 5 /* found in texts as it is; the model does not have it */
};

typedef struct vocabulary vocabulary;

vocabulary *vocab_create(void);
void vocab_free(vocabulary *v);

/* Ids may come in any order; those that were left out have no piece. False: out of memory, or the
 * id has a piece already, or is larger than VOCABULARY_MAX. If two ids have the same piece,
 * vocab_find() returns the first that was added. */
enum { VOCABULARY_MAX = 4 * 1024 * 1024 };
/* What ids of so many pieces must be less than, so that a small file cannot take much memory. */
static inline int32_t vocab_limit(size_t pieces)
{
    return pieces < (VOCABULARY_MAX - 65536) / 4 ? (int32_t)pieces * 4 + 65536 : VOCABULARY_MAX;
}
bool vocab_add(vocabulary *v, int32_t id, const char *piece, size_t length, double score,
               unsigned flags);

/* One more than the largest id. */
int32_t vocab_size(const vocabulary *v);

/* -1 if there is no such piece. */
int32_t vocab_find(const vocabulary *v, const char *piece, size_t length);
/* The same without pieces that are not the model's own (PIECE_ADDED). */
int32_t vocab_find_model(const vocabulary *v, const char *piece, size_t length);

/* Terminated; NULL for an id without a piece. `length` may be NULL. */
const char *vocab_piece(const vocabulary *v, int32_t id, size_t *length);
double vocab_score(const vocabulary *v, int32_t id);
unsigned vocab_flags(const vocabulary *v, int32_t id);
void vocab_set_flags(vocabulary *v, int32_t id, unsigned flags);

#endif
