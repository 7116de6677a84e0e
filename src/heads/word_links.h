/* SPDX-License-Identifier: MIT */
/*
 * Which words of sentences and of their translations correspond, estimated from the sentences
 * alone, where no grammar and no people have said it:
 *
 *      IBM's model 1 with a preference for the diagonal (Brown et al. 1993, Dyer et al. 2013), by a
 *      few rounds of expectation and maximisation, once for the target given the source and once
 *      for the source given the target. Two words are linked if each is the other's best one.
 *
 * Nothing of the model whose heads are measured goes into it. The same sentences give the same
 * links.
 */
#ifndef HEADS_WORD_LINKS_H
#define HEADS_WORD_LINKS_H

#include "heads/subject.h"

/* The links of a text, in the numbers of the rows and columns of cross-attention on whole words:
 * bit j of links[i] links what row i says with column j. Columns from LINK_COLUMNS on have none. */
enum { LINK_COLUMNS = 64 };
typedef struct text_links {
    uint64_t *links; /* [count] */
    int count;       /* rows */
} text_links;

typedef struct word_links {
    text_links *texts; /* [count] */
    int count;
    int64_t words, linked; /* of the target in all, and those that have a link */
} word_links;

/* Of fewer texts the diagonal alone would decide: then the measures of heads have no links. */
enum { LINK_TEXTS_MIN = 20 };

/* False: out of memory. word_links_free() either way. */
bool word_links_find(word_links *made, const subject_text *texts, int count);
void word_links_free(word_links *links);

#endif
