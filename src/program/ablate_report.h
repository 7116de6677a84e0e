/* SPDX-License-Identifier: MIT */
/* The results of mha ablate, and how they are printed and drawn. */
#ifndef PROGRAM_ABLATE_REPORT_H
#define PROGRAM_ABLATE_REPORT_H

#include "format/json_writer.h"
#include "heads/head_ablation.h"
#include "heads/head_repair.h"

/* Two heads of a kind disabled together. */
typedef struct ablate_pair {
    int heads[2];
    head_damage damage;
    double extra; /* delta, less those of the two alone: positive where they compensate for each
                     other */
} ablate_pair;

/* All heads of one layer of a kind. */
typedef struct ablate_layer {
    attention_kind kind;
    int layer;
    head_damage damage;
    double sum; /* of what its heads cost alone */
} ablate_layer;

typedef struct ablate_report {
    const char *model, *mode;
    const char *texts; /* the file of texts or pairs; NULL: sentences of the corpus */
    const char *unit;  /* "sentence pair", "picture" or "text" */
    bool translates;   /* a translator: words and sentences, not tokens and texts */
    bool predicts;     /* false: an encoder, whose loss is 1 - cosine */
    corpus_split split;
    uint64_t seed;
    head_shape shape;
    head_total plain;
    int heads;
    head_damage *single;  /* [heads] */
    head_repair *repairs; /* [heads], or NULL */
    ablate_layer *layers; /* [layer_count] */
    int layer_count;
    ablate_pair *pairs; /* by `extra`, the largest first; NULL: without --together */
    int pair_count;
} ablate_report;

/* What disabled heads do in a mode: completes the sentence "disabled heads ...". */
const char *ablate_mode_words(const char *mode);

/* What losses are measured in: "nats per word", "nats per token", "1 - cosine". */
const char *ablate_unit(const ablate_report *report);

/* "200 sentences of test", "1 text of notes.txt". */
enum { ABLATE_TEXTS_MAX = 320 };
const char *ablate_texts(const ablate_report *report, char room[ABLATE_TEXTS_MAX]);

void ablate_report_text(const ablate_report *report);
void ablate_report_json(const ablate_report *report);

/* A picture: each kind a grid of layers and heads, for output_file_write(). */
void ablate_report_svg(FILE *file, const void *report);

#endif
