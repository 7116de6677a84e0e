/* SPDX-License-Identifier: MIT */
/*
 * One sentence as the page of "mha view" shows it:
 *
 *      text --sentence_pair_read()--> its words, and those of the translation
 *      both --sentence_pair_capture()--> weights, queries, keys, values of all heads
 *      the same with one head after another closed, or blind: what each of them is good for
 *
 * Heads may be changed from the beginning. Then the translation is what such a model says, and what
 * a head is good for is measured beside the changed ones.
 */
#ifndef PAGE_SENTENCE_H
#define PAGE_SENTENCE_H

#include "heads/sentence_pair.h"
#include "page/page.h"

/* What the tokens and numbers of a page_sentence point to. */
typedef struct page_sentence_memory {
    sentence_pair pair;
    capture *heads;
    float *losses; /* [2][heads] */
    int *said;     /* [heads][CORPUS_TOKENS_MAX] */
} page_sentence_memory;

/* `message` is written for false: the text or the target cannot be read, or there is no memory.
 * page_sentence_free() either way. */
bool page_sentence_make(page_sentence_memory *item, page_sentence *sentence,
                        const translator *model, const pair_request *request, mha_pool *pool,
                        char message[PAIR_MESSAGE_MAX]);
void page_sentence_free(page_sentence_memory *item);

/* How "mha view" is called to make a page. */
typedef struct page_command {
    const char *output, *model_file, *target; /* all but the first may be NULL */
    const char *weights, *tokens, *ablation;  /* files */
    int study;                                /* sentences */
} page_command;

enum { PAGE_STUDY_SENTENCES = 200 }; /* where nobody says */

/* For free(); NULL: no memory. */
char *page_command_text(const page_command *call, const page_sentence *sentences, int count);

#endif
