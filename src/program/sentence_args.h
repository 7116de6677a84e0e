/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_SENTENCE_ARGS_H
#define PROGRAM_SENTENCE_ARGS_H

#include "program/args.h"

/* args_parse() of a command whose words are sentences: words that were given without quotes become
 * one. *sentences are at argv[1] and on. `joined` is for free(), NULL but after EXIT_GO_ON. */
int sentence_args_parse(const arg_command *command, int argc, char **argv, int *sentences,
                        char **joined);

#endif
