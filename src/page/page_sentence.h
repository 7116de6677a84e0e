/* SPDX-License-Identifier: MIT */
/*
 * One sentence as the page of "mha view" shows it:
 *
 *      text --sentence_pair_read()--> its words, and those of the translation
 *      both --sentence_pair_capture()--> weights, queries, keys and values of all heads
 *      the same with each head in turn disabled, then uniform --> the effect of each head
 *
 * The request may change heads from the start. Then the translation is that of the changed model,
 * and the effect of a head is measured in addition to those changes.
 */
#ifndef PAGE_SENTENCE_H
#define PAGE_SENTENCE_H

#include "heads/head_study.h"
#include "heads/sentence_pair.h"

/* How the sentence changes with each single head of a kind. A loss is the decrease of the
 * log-likelihood of the expected words, in nats. */
typedef struct page_head_effects {
    float *losses;         /* [layers][heads] with the head disabled */
    float *uniform_losses; /* [layers][heads] with equal weights on all columns that it sees */
    int *predicted;        /* [layers][heads][target_count] words with the head disabled */
} page_head_effects;

/* A sentence of the page. Its pointers lead into a page_sentence_memory. */
typedef struct page_sentence {
    const char *text;
    corpus_sentence source, target; /* without WORD_BEGIN and WORD_END */
    const capture *heads;
    page_head_effects effects[ATTENTION_KINDS];
    bool gold;                /* the grammar knows the sentence and translates it in the same way */
    corpus_pair pair;         /* the grammar's, if gold */
    head_baselines baselines; /* of relations and alignment, on this sentence alone */
    char reason[CORPUS_MESSAGE_MAX]; /* if not gold: why */
} page_sentence;

/* The memory that a page_sentence points into. It must not move. */
typedef struct page_sentence_memory {
    sentence_pair pair;
    capture *heads;
    float *losses;  /* [2][heads of the model]: disabled, uniform */
    int *predicted; /* [heads of the model][CORPUS_TOKENS_MAX] */
} page_sentence_memory;

/* Fills both structures. False, with a message: the text or the target cannot be read, or out of
 * memory. page_sentence_free() is called in either case. */
bool page_sentence_make(page_sentence_memory *memory, page_sentence *sentence,
                        const translator *model, const pair_request *request, mha_pool *pool,
                        char message[PAIR_MESSAGE_MAX]);
void page_sentence_free(page_sentence_memory *memory);

#endif
