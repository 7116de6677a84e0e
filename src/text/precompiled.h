/* SPDX-License-Identifier: MIT */
/*
 * Rules that replace characters of a text before it is split: the "precompiled_charsmap" of
 * SentencePiece's files and of tokenizer.json. It is a trie of what is replaced, as a double array
 * of the library Darts, whose values are offsets into the replacements:
 *
 *      u32   bytes of the trie, little-endian
 *      u32[] units: bits 0..7 the byte of a node (bit 31 is 0), bit 8 whether a value hangs below
 *            it, bits 10..30 the offset to its children, times 256 if bit 9 is set;
 *            for a value: bit 31 is 1, the rest is the value
 *      char[] replacements, each terminated by a zero byte
 *
 * The bytes are not trusted: each step is checked.
 */
#ifndef TEXT_PRECOMPILED_H
#define TEXT_PRECOMPILED_H

#include <mha/mha.h>

#include <stdbool.h>

typedef struct precompiled precompiled;

/* Copies the bytes. MHA_ERR_FORMAT: the trie is longer than they are. */
mha_status precompiled_create(precompiled **rules, const void *bytes, size_t size);
void precompiled_free(precompiled *rules);

/* What the bytes [0, matched) of a text are replaced by. */
typedef struct replacement {
    size_t matched; /* 0: there is no rule for the beginning of the text */
    const char *text;
    size_t length;
} replacement;

/* The rule with the longest match at the beginning of a text: SentencePiece's way. */
replacement precompiled_longest(const precompiled *rules, const char *text, size_t length);

/*
 * The way of the library "tokenizers" differs: a grapheme cluster of fewer than 6 bytes, and else
 * each character, is replaced as a whole by the rule with the shortest match at its beginning.
 * `text` is valid UTF-8. `replace` is called for parts of the text, one after another, that become
 * `by`; parts that stay are replaced by themselves. A false of it ends the work, and is returned.
 */
typedef bool precompiled_part(void *context, size_t begin, size_t end, const char *by,
                              size_t length);
bool precompiled_graphemes(const precompiled *rules, const char *text, size_t length,
                           precompiled_part *replace, void *context);

#endif
