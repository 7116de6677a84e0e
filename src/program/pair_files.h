/* SPDX-License-Identifier: MIT */
/* Files of sentence pairs that are named on the command line. */
#ifndef PROGRAM_PAIR_FILES_H
#define PROGRAM_PAIR_FILES_H

#include "translator/pair_file.h"

/* Opens "FILE", whose lines are a sentence, a tab and its translation, or "SOURCE,TARGET", and says
 * on stderr which lines are skipped. EXIT_GO_ON, or EXIT_FAILED after a message; pair_file_close()
 * either way. */
int pair_files_open(pair_file *file, const char *given);

#endif
