/* SPDX-License-Identifier: MIT */
/*
 * One sentence as the page of "mha view" shows it:
 *
 *      text --subject_read()--> its tokens, and those of the translation
 *      both --subject_run()--> weights, queries, keys and values of all heads
 *      the same with each head in turn disabled, then uniform --> the effect of each head
 *
 * The request may change heads from the start. Then the translation is that of the changed model,
 * and the effect of a head is measured in addition to those changes.
 */
#ifndef PAGE_SENTENCE_H
#define PAGE_SENTENCE_H

#include "heads/head_study.h"

/* How the sentence changes with each single head of a kind; a loss is that of subject_loss(). */
typedef struct page_head_effects {
    float *losses;         /* [layers][heads] with the head disabled */
    float *uniform_losses; /* [layers][heads] with equal weights on all columns that it sees */
    float *word_losses;    /* [layers][heads][target_count] what each expected token loses, in nats,
                            * with the head disabled; 0 if it is not known */
    int *predicted;        /* [layers][heads][target_count] words with the head disabled */
} page_head_effects;

typedef struct page_sentence {
    subject_text text;
    capture *heads;
    bool has_effects; /* without them their arrays are not filled */
    page_head_effects effects[ATTENTION_KINDS];
    head_baselines baselines; /* of relations and alignment, on this sentence alone */
    float *losses;            /* [2][heads of the model]: disabled, uniform */
    float *word_losses;       /* [heads of the model][target_count] */
    int *predicted;           /* [heads of the model][target_count] */
} page_sentence;

/* The largest cost of measuring the effects of all heads, in multiplications: what a page that is
 * written, and one that answers while somebody types, may take. */
#define PAGE_EFFECTS_COST 5e12
#define PAGE_LIVE_COST 2e11

/* Fills a sentence, with the effects of each single head if they cost at most `cost`: the model
 * runs twice per head. False, with a message: the text or the target cannot be read, or out of
 * memory. page_sentence_free() is called in either case. */
bool page_sentence_make(page_sentence *sentence, const subject *model, const pair_request *request,
                        double cost, mha_pool *pool, char message[SUBJECT_MESSAGE_MAX]);
void page_sentence_free(page_sentence *sentence, const subject *model);

#endif
