/* SPDX-License-Identifier: MIT */
/* The command line that makes a page again; the page shows it. */
#ifndef PAGE_COMMAND_H
#define PAGE_COMMAND_H

#include "page/page_sentence.h"

/* The arguments of "mha view" besides the sentences; NULL: not given. */
typedef struct page_command {
    const char *output; /* NULL: the page of "mha serve" */
    const char *model_file, *target;
    const char *weights, *tokens, *ablation, *texts, *lecture; /* files */
    const char *store;                                         /* a type of weights */
    bool words;                                                /* join the pieces of words */
    bool live;                                                 /* with the model inside */
    int study;                                                 /* sentences */
    const struct page_example *examples; /* pictures of a live page; the first is the sentence */
    int example_count;
    int layer; /* that of the computation; 1 is the default */
} page_command;

/* The command line, quoted for a shell, for free(). NULL: out of memory. */
char *page_command_text(const page_command *command, const page_sentence *sentences, int count);

#endif
