/* SPDX-License-Identifier: MIT */
/* The report of mha heads, as text and as JSON. */
#ifndef PROGRAM_HEADS_REPORT_H
#define PROGRAM_HEADS_REPORT_H

#include "format/json_writer.h"
#include "program/heads_columns.h"

typedef struct heads_report {
    const char *model; /* the file */
    const char *text;  /* the sentence; NULL: those of a file or split */
    const char *texts; /* the file of texts or pairs; NULL: sentences of the corpus */
    bool are_pairs;    /* it is one of sentence pairs */
    bool translates;   /* a translator: English and French */
    corpus_split split;
    uint64_t seed;
    const head_study *study;
    const heads_row *rows; /* [count], filtered and sorted */
    int count;
    const heads_row *all; /* [study->heads] */
    bool gold;            /* what heads find of the grammar, too */
    bool like;            /* how far they are from one of them, too */
} heads_report;

void heads_report_text(const heads_report *report);
void heads_report_json(const heads_report *report);

#endif
