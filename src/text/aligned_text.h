/* SPDX-License-Identifier: MIT */
/*
 * A text in valid UTF-8 that was derived from an original, with the bytes of the original that each
 * of its bytes came from; and its division into splits. A tokenizer changes and divides a text step
 * by step; tokens get the places of their first and last byte in the original.
 */
#ifndef TEXT_ALIGNED_TEXT_H
#define TEXT_ALIGNED_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct span {
    uint32_t begin, end;
} span;

typedef struct aligned_text {
    char *text;
    span *spans; /* one per byte */
    size_t length, text_room, span_room;
    bool failed; /* out of memory; later calls do nothing */
} aligned_text;

/* The bytes of a text. Bytes that are not UTF-8 become U+FFFD, one for each longest part of a
 * character. `length` < 2^32. */
void aligned_begin(aligned_text *to, const char *text, size_t length);
void aligned_free(aligned_text *text);
void aligned_clear(aligned_text *text);

/* Appends one character, or bytes [begin, end) of another text. */
void aligned_put(aligned_text *to, uint32_t c, span from);
void aligned_copy(aligned_text *to, const aligned_text *from, size_t begin, size_t end);

/* A part of a text, [begin, end). If `id` >= 0 it is a token already, from the bytes `origin` of
 * the original, which begin and end with so many characters of white space. */
typedef struct split {
    size_t begin, end;
    span origin; /* of a part that is no token, only `begin` is used */
    int32_t id;
    uint32_t leading, trailing;
} split;

typedef struct split_list {
    split *splits;
    size_t count, room;
    bool failed;
} split_list;

void split_list_add(split_list *list, split part);
void split_list_free(split_list *list);

/* The part [begin, end) of a text, without its place in a token. */
split split_of(const aligned_text *text, size_t begin, size_t end);

/*
 * Writes characters in place of those of a part of a text, and keeps the alignment. `change` says
 * what became of the characters at the place that was reached: 0: the next one is replaced; < 0:
 * so many more after it are removed; > 0: none, the character is inserted and belongs to the one
 * before it.
 */
typedef struct transform {
    const aligned_text *from;
    size_t at, begin, end;
    uint32_t origin;
    aligned_text *to;
} transform;

transform transform_begin(const aligned_text *from, const split *part, aligned_text *to);
void transform_put(transform *t, uint32_t c, ptrdiff_t change);

/* The character at `at` of a valid text, and its bytes. */
uint32_t aligned_character(const aligned_text *text, size_t at, size_t *bytes);

#endif
