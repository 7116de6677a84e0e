/* SPDX-License-Identifier: MIT */
/*
 * Sentences as sequences of symbols, for the metrics bleu.h and chrf.h: words, as the tokenizer 13a
 * of sacrebleu or white space separates them, and characters without white space.
 *
 * White space is what Python's str.split() takes for it. A byte that is not UTF-8 is a character of
 * its own.
 */
#ifndef TRANSLATOR_METRIC_TEXT_H
#define TRANSLATOR_METRIC_TEXT_H

#include "translator/ngram_trie.h"

/* What separates words: the tokenizer 13a, or white space only, for texts that are tokenized. */
typedef enum metric_words { METRIC_WORDS_13A, METRIC_WORDS_GIVEN } metric_words;

enum { METRIC_NO_WORD = -1 }; /* the symbol of a word that the trie does not have */

/* Memory of the functions below, which grows and is used again. Initialised to zero. */
typedef struct metric_text {
    char *bytes[2]; /* a sentence before and after a step of the tokenizer */
    size_t room[2];
    size_t used[2];
    uint32_t *symbols;
    size_t symbol_room, count; /* the result: symbols[0 .. count) */
} metric_text;

void metric_text_free(metric_text *text);

/* The characters of a sentence. MHA_ERR_MEMORY, or MHA_ERR_LENGTH for more than METRIC_TEXT_MAX
 * bytes; the same below. */
mha_status metric_text_characters(metric_text *text, const char *sentence);

/* The words of a hypothesis, as nodes of the trie. */
mha_status metric_text_say_words(metric_text *text, metric_words words, const char *sentence,
                                 ngram_trie *trie);

/* The words of a reference; METRIC_NO_WORD for those that the hypothesis does not have. */
mha_status metric_text_find_words(metric_text *text, metric_words words, const char *sentence,
                                  const ngram_trie *trie);

/* The sentence after the tokenizer 13a, its words separated by white space, terminated. Valid until
 * the next call. NULL if out of memory. */
const char *metric_text_separate(metric_text *text, const char *sentence);

#endif
