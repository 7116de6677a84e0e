/* SPDX-License-Identifier: MIT */
/*
 * What the options of several commands have in common: rows of their tables, names of attention
 * kinds, splits and heads, and words that are sentences.
 *
 * A function that reads a name returns EXIT_GO_ON, or EXIT_USAGE after a message on stderr that
 * begins with the name of the command.
 */
#ifndef PROGRAM_OPTIONS_H
#define PROGRAM_OPTIONS_H

#include "corpus/corpus.h"
#include "program/args.h"
#include "translator/head_settings.h"

/* Rows of option tables, to be put into braces; `target` points to the variable for the value. */
#define OPTION_MODEL(target, usual) \
    "model", ARG_TEXT, target, "PATH", "en-fr, lab, or a file or folder (" usual ")", 0, 0
#define OPTION_THREADS(target) \
    "threads", ARG_NUMBER, target, "T", "number of threads (one per CPU)", 1, MHA_MAX_THREADS
#define OPTION_SPLIT(target) "split", ARG_TEXT, target, "S", "train, valid or test (test)", 0, 0
#define OPTION_SEED(target) "seed", ARG_SEED, target, "N", "seed of the sentences (1)", 0, 0
#define OPTION_JSON(target) "json", ARG_FLAG, target, NULL, "print the result as JSON", 0, 0

/*
 * The index of `name` among `names`, or -1 after the message: no WHAT "NAME", with the nearest name
 * as a suggestion, else with all of them (of a long list with a reference to the help).
 */
int option_choose(const char *command, const char *what, const char *name, const char *const *names,
                  int count);

/* The attention_kind with this name, in any case of letters; ATTENTION_KINDS, which stands for all
 * of them, if the name is NULL. */
int option_kind(const char *command, const char *name, int *kind);

/* The split of the corpus with this name. */
int option_split(const char *command, const char *name, corpus_split *split);

typedef struct head_choice {
    int kind;        /* ATTENTION_KINDS: not given */
    int layer, head; /* counted from 1; layer 0: not given */
} head_choice;

/*
 * A head: "cross 2.4" as reports print it, "cross L2 H4", "cross.2.4" or "Cross, layer 2, head 4",
 * in any case of letters. The kind may be left out, and so may the layer: "2.4", "4". `option` is
 * named in the message.
 */
int option_head(const char *command, const char *option, const char *text, head_choice *choice);

/* "--" if a message of training_config_check() begins with the name of a setting, as in "steps 0:
 * ...", which is that of an option too; else "". */
const char *option_setting_dashes(const char *message);

/*
 * args_parse() for a command whose words are sentences: several words without a space in any of
 * them were given without quotes, and are joined into one sentence. The sentences are argv[1] to
 * argv[*sentences]. The caller frees *joined, which is NULL unless EXIT_GO_ON is returned.
 */
int options_parse_sentences(const arg_command *command, int argc, char **argv, int *sentences,
                            char **joined);

#endif
