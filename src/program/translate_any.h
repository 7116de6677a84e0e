/* SPDX-License-Identifier: MIT */
/* "mha translate" with an encoder-decoder that was not trained by "mha train": T5, BART, Marian. */
#ifndef PROGRAM_TRANSLATE_ANY_H
#define PROGRAM_TRANSLATE_ANY_H

#include <mha/mha_model.h>

#include <stdbool.h>

/* Translates the words of the command line or, if there are none, the lines of standard input, and
 * prints one line each. Returns the exit code. */
int translate_any(const mha_model *model, int words, char **argv, bool as_json, mha_pool *pool);

#endif
