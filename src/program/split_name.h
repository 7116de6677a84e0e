/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_SPLIT_NAME_H
#define PROGRAM_SPLIT_NAME_H

#include "corpus/corpus.h"

/* The split of this name. EXIT_GO_ON, or EXIT_USAGE after a message that begins with the command's
 * name. */
int split_find(const char *command, const char *name, corpus_split *split);

#endif
