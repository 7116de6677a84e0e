/* SPDX-License-Identifier: MIT */
/* Pre-tokenizers: steps that divide a text into splits, which the model then divides into tokens.
 */
#ifndef TEXT_PRE_TOKENIZER_H
#define TEXT_PRE_TOKENIZER_H

#include "text/aligned_text.h"
#include "text/pattern.h"

/* What becomes of the places where a text is divided. */
typedef enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS
} split_behavior;

typedef enum pre_tokenizer_kind {
    PRE_PATTERN,     /* Split, Whitespace */
    PRE_SPACE,       /* at white space */
    PRE_PUNCTUATION, /* at punctuation */
    PRE_NUMERIC,     /* at digits */
    PRE_CHARACTER,   /* at one character */
    PRE_BYTE_LEVEL,
    PRE_METASPACE
} pre_tokenizer_kind;

typedef enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } prepend_scheme;

typedef struct pre_tokenizer_step {
    pre_tokenizer_kind kind;
    split_behavior behavior;
    bool invert;        /* PATTERN: the matches are what is kept */
    pattern *pattern;   /* PATTERN; BYTE_LEVEL: NULL or the pattern that divides; METASPACE: " " */
    uint32_t character; /* CHARACTER, METASPACE */
    bool prefix_space;  /* BYTE_LEVEL: a space is added in front of a text without one */
    prepend_scheme scheme;
    bool divides; /* METASPACE */
} pre_tokenizer_step;

void pre_tokenizer_step_free(pre_tokenizer_step *step);

/* Texts and splits of one call, before and after a step. */
typedef struct text_work {
    aligned_text text, next;
    split_list splits, next_splits;
    split_list matches; /* of one split; `id` is 1 for a match, else 0 */
    pattern_scratch *scratch;
} text_work;

bool text_work_create(text_work *work);
void text_work_free(text_work *work);

/* The next text and splits become the current ones. MHA_ERR_MEMORY if any of them failed. */
mha_status text_work_swap_text(text_work *work);
mha_status text_work_swap_splits(text_work *work);

mha_status pre_tokenizer_apply(const pre_tokenizer_step *step, text_work *work);

#endif
