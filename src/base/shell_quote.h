/* SPDX-License-Identifier: MIT */
/* Words of a command line that is printed for the reader to run again in a shell. */
#ifndef BASE_SHELL_QUOTE_H
#define BASE_SHELL_QUOTE_H

#include <stdio.h>

/* Writes the word in single quotes. */
void shell_quote(FILE *file, const char *word);

/* The same, but without quotes where a shell would read the word as it is. */
void shell_quote_if_needed(FILE *file, const char *word);

#endif
