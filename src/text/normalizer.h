/* SPDX-License-Identifier: MIT */
/* Normalizers: steps that change the characters of a text before it is divided. */
#ifndef TEXT_NORMALIZER_H
#define TEXT_NORMALIZER_H

#include "text/aligned_text.h"
#include "text/pattern.h"
#include "text/precompiled.h"

typedef enum normalizer_kind {
    NORMALIZE_NFC,
    NORMALIZE_NFD,
    NORMALIZE_NFKC,
    NORMALIZE_NFKD,
    NORMALIZE_CLEAN,           /* BERT: remove controls, all white space becomes " " */
    NORMALIZE_CHINESE,         /* BERT: a space on both sides of Chinese characters */
    NORMALIZE_DROP_NONSPACING, /* BERT: remove Mn, after NFD */
    NORMALIZE_LOWERCASE,
    NORMALIZE_LOWERCASE_ASCII,
    NORMALIZE_ENGLISH_NOT,   /* "don't" becomes "do not" */
    NORMALIZE_STRIP_ACCENTS, /* remove M */
    NORMALIZE_STRIP,         /* white space at the ends */
    NORMALIZE_REPLACE,
    NORMALIZE_PREPEND,
    NORMALIZE_NMT,
    NORMALIZE_PRECOMPILED,
    NORMALIZE_BYTE_LEVEL /* bytes become characters */
} normalizer_kind;

typedef struct normalizer_step {
    normalizer_kind kind;
    bool left, right;   /* STRIP */
    pattern *pattern;   /* REPLACE */
    char *content;      /* REPLACE, PREPEND */
    precompiled *rules; /* PRECOMPILED */
} normalizer_step;

void normalizer_step_free(normalizer_step *step);

/* Appends a part of a text, normalised, to another one. */
mha_status normalizer_apply(const normalizer_step *step, const aligned_text *from,
                            const split *part, aligned_text *to, pattern_scratch *scratch);

/* What divides words, for NORMALIZE_ENGLISH_NOT. */
#define WORD_BREAKS " \t\n\v\f\r.,;:!?\""

/* Helpers that pre-tokenizers use as well. */
void text_prepend(const aligned_text *from, const split *part, const char *content,
                  aligned_text *to);
void text_byte_level(const aligned_text *from, const split *part, aligned_text *to);
mha_status text_replace(const aligned_text *from, const split *part, const pattern *p,
                        const char *content, aligned_text *to, pattern_scratch *scratch);

/* The forms NFC, NFD, NFKC and NFKD. False: out of memory. */
bool unicode_normalize(const aligned_text *from, const split *part, bool compatible, bool compose,
                       aligned_text *to);

#endif
