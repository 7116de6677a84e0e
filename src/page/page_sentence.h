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

/* What the tokens and numbers of a view_sentence point to. */
typedef struct view_item {
    sentence_pair pair;
    capture *heads;
    float *losses; /* [2][heads] */
    int *said;     /* [heads][CORPUS_TOKENS_MAX] */
} view_item;

/* `message` is written for false: the text or the target cannot be read, or there is no memory.
 * view_item_free() either way. */
bool view_item_make(view_item *item, view_sentence *sentence, const translator *model,
                    const pair_request *request, mha_pool *pool, char message[PAIR_MESSAGE_MAX]);
void view_item_free(view_item *item);

/* How "mha view" is called to make a page. */
typedef struct view_call {
    const char *output, *model_file, *target; /* all but the first may be NULL */
    const char *weights, *tokens, *ablation;  /* files */
    int study;                                /* sentences */
} view_call;

enum { VIEW_STUDY_SENTENCES = 200 }; /* where nobody says */

/* For free(); NULL: no memory. */
char *view_call_text(const view_call *call, const view_sentence *sentences, int count);

#endif
