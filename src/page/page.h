/* SPDX-License-Identifier: MIT */
/*
 * The page of "mha view": a template that the build puts together from src/page/web/, with what the
 * heads do on some sentences as JSON in its middle.
 *
 *      {"format": "mha-view-2", "command": ..., "model": {...}, "sentences": [
 *          {"source": [words], "target": [words], ..., "kinds": [{"name": "encoder", ...}, ...]},
 *          ...]}
 *
 * page_attention.h has what is said of a kind. The page of an imported file has no "model", and its
 * sentence only words and kinds.
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdio.h>

#include "heads/capture.h"
#include "page/page_ablation.h"
#include "page/page_import.h"
#include "page/page_study.h"

/* What becomes of the sentence when one head after another is changed. Losses are by how much the
 * expected words become less likely, in nats. */
typedef struct page_head_effects {
    float *losses;         /* [layers][heads] of a closed head */
    float *uniform_losses; /* [layers][heads] of one that looks at all it may see alike */
    int *said;             /* [layers][heads][target_count] words with the head closed */
} page_head_effects;

typedef struct page_sentence {
    const char *text;
    corpus_sentence source, target; /* without ends */
    const capture *heads;
    page_head_effects closed[ATTENTION_KINDS];
    bool gold; /* the grammar knows the sentence, and gives this translation */
    corpus_pair pair;
    head_baselines baselines;        /* of this sentence */
    char reason[CORPUS_MESSAGE_MAX]; /* not gold */
} page_sentence;

typedef struct page_data {
    const translator *model;       /* NULL: imported */
    const head_words *words;       /* of the model */
    const char *command;           /* that makes this page */
    const page_study *study;       /* NULL: none */
    const page_ablation *ablation; /* NULL: none */
    page_import *import;           /* then there are no other sentences; NULL: none */
    const page_sentence *sentences;
    int count;
} page_data;

/* For free(); NULL: no memory, or an imported file that cannot be read any more. */
char *page_json(const page_data *page);

/* The page around such a text, for output_file_write(). */
void page_write(FILE *file, const void *json_text);

/* The same for "mha serve": this page asks for other sentences itself. */
void page_write_live(FILE *file, const char *json_text);

#endif
