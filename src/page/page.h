/* SPDX-License-Identifier: MIT */
/*
 * The interface of this room: the page of "mha view" as a whole. The page is a template, which
 * the build makes from src/page/web/, with the data of some sentences as JSON in its middle.
 *
 *      page_sentence.h    a sentence: words, weights and vectors of all heads, effects of ablation
 *      page_import.h      or, instead of a model and sentences, a file of attention weights
 *      page_study.h       roles and importance of the heads over a corpus
 *      page_ablation.h    the result of "mha ablate --json"
 *      page_lecture.h     a lecture: states of the page with texts
 *      page_compute.h     one attention of each kind step by step
 *      page_command.h     the command line that makes the page again
 *
 *      page_picture.h     the picture that a model of pictures reads
 *
 *      {"format": "mha-view-2", "command": ..., "model": {...}, "classes": [names], "study": {...},
 *       "ablation": {...},
 *       "sentences": [
 *          {"source": [words], "target": [words], ..., "kinds": [{"name": "encoder", ...}, ...]},
 *          ...]}
 *
 * page_attention.h describes an element of "kinds". The page of an imported file has no "model",
 * and its sentence has only words and kinds.
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdio.h>

#include "page/page_ablation.h"
#include "page/page_command.h"
#include "page/page_compute.h"
#include "page/page_import.h"
#include "page/page_lecture.h"
#include "page/page_sentence.h"
#include "page/page_study.h"

/* A picture to try, on a live page. */
typedef struct page_example {
    const char *name;
    const uint8_t *bytes; /* as the model reads it, [channels][side][side] */
} page_example;

/* All data of a page. The pointers are borrowed: the caller frees what they point to. */
typedef struct page_data {
    const subject *subject;        /* the model; NULL: the page shows an imported file */
    const char *command;           /* the command line that makes this page */
    bool words;                    /* the page begins with tokens joined to words */
    const page_study *study;       /* NULL: none */
    const page_ablation *ablation; /* NULL: none */
    page_import *import;           /* NULL: none; otherwise there are no other sentences */
    const page_sentence *sentences;
    const page_steps *steps;       /* [count]; NULL: none */
    const page_matrices *matrices; /* NULL: none */
    const page_lecture *lecture;   /* NULL: none */
    const page_example *examples;  /* [example_count] */
    int example_count;
    int count;
} page_data;

/* The heads that a page shows: those of the import if there is one, else those of the model. */
page_heads page_heads_of(const subject *model, const page_import *import);

/* The data as JSON text, for free(). NULL: out of memory, or the imported file can no longer be
 * read. */
char *page_json(const page_data *page);

/* Writes the template with such a text in its middle. The type of the argument is that of
 * output_file_write(). */
void page_write(FILE *file, const void *json_text);

/* The same for "mha serve": this page may send requests to the server that it comes from. */
void page_write_served(FILE *file, const char *json_text);

/* A file inside of a page. */
typedef struct page_file {
    const char *name;
    const unsigned char *bytes;
    size_t size;
} page_file;

/* A page that runs its model itself, in the browser. */
typedef struct page_live {
    const char *json_text;  /* with one sentence */
    page_file module;       /* mha_page.wasm */
    const page_file *files; /* [count] of the model */
    int count;
    const char *model;  /* the name of the file that is the model; "": all of them, as a folder */
    bool is_translator; /* one of "mha train" */
} page_live;

/* Writes such a page; `live` is a page_live. A page that is incomplete, because memory ran out,
 * says so when it is opened. */
void page_write_live(FILE *file, const void *live);

#endif
