/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions of tokenizers. They are written for other engines (Oniguruma, Rust's regex),
 * so a pattern is translated first: \s, \w, \d and \p{...} get the meaning and the Unicode version
 * of these engines. What would have another meaning in PCRE2 is refused.
 */
#ifndef TEXT_PATTERN_H
#define TEXT_PATTERN_H

#include <mha/mha.h>

#include <stdbool.h>

typedef struct pattern pattern;

/* `literal`: the text itself is searched. On an error `message` says why. */
mha_status pattern_create(pattern **made, const char *text, bool literal, char *message,
                          size_t message_size);
void pattern_free(pattern *p);

/* What a thread needs for matching; one for all patterns. NULL: out of memory. */
typedef struct pattern_scratch pattern_scratch;
pattern_scratch *pattern_scratch_create(void);
void pattern_scratch_free(pattern_scratch *scratch);

/* All matches, one after another, as the engines above find them:
 *
 *      pattern_search s = pattern_search_begin(pattern, scratch, text, length);
 *      while (pattern_search_next(&s)) ... s.begin, s.end
 *
 * The text is valid UTF-8. `status` is not MHA_OK if a match took more than the limits allow. */
typedef struct pattern_search {
    size_t begin, end;
    mha_status status;

    /* private */
    const pattern *pattern;
    pattern_scratch *scratch;
    const char *text;
    size_t length, from, last_end;
    bool any;
} pattern_search;

pattern_search pattern_search_begin(const pattern *p, pattern_scratch *scratch, const char *text,
                                    size_t length);
bool pattern_search_next(pattern_search *search);

#endif
