/* SPDX-License-Identifier: MIT */
/* A small SentencePiece model, and checks of what a tokenizer makes of a text and of ids. */
#ifndef MHA_SENTENCEPIECE_CASE_H
#define MHA_SENTENCEPIECE_CASE_H

#include "support/sentencepiece_builder.h"
#include "text/sentencepiece.h"

#define SPACE "\xe2\x96\x81" /* U+2581 */

/* Fields of trainer_spec and of normalizer_spec. */
enum { MODEL_TYPE = 3, SUFFIX = 24, BYTE_FALLBACK = 35, BEGIN_ID = 41, SURFACE = 44 };
enum { CHARSMAP = 2, ADD_SPACE = 3, REMOVE_SPACES = 4, ESCAPE = 5 };

/* Ids: 0 <unk>, 1 <s>, 2 </s>, 3 "▁", 4 a, 5 b, 6 ab, 7 "▁a", 8 "▁ab", 9 é. */
void small_model(sentencepiece_builder *b, int kind);

/* Fails the test if the model is refused; NULL then, which the checks accept. */
sentencepiece *open_model(const sentencepiece_builder *b);

/* The tokens of a text are `wanted`: "ID:BEGIN-END ...". */
void check_bytes(const sentencepiece *sp, const char *text, size_t length, const char *wanted);
void check_tokens(const sentencepiece *sp, const char *text, const char *wanted);

void check_text(const sentencepiece *sp, const int32_t *ids, ptrdiff_t count, bool skip_marks,
                const char *wanted);
/* Two arguments. */
#define IDS(...) (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / 4

#endif
