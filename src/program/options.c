/* SPDX-License-Identifier: MIT */
/*
 * How options name things: one of a few names, an attention kind, a split of the corpus, a head;
 * and words of the command line that are sentences. args.c reads the options themselves.
 */
#include "program/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "translator/training.h"

enum { NUMBER_MAX = 1000000, LIST_MAX = 8, LIST_BYTES = 256 };

/* --------------------------------------------------------------- names ----- */

/* "train, valid and test" */
static void list_names(const char *const *names, int count, char text[LIST_BYTES])
{
    size_t used = 0;
    for (int n = 0; n < count && used < LIST_BYTES; n++)
        used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s%s",
                                 n == 0           ? ""
                                 : n == count - 1 ? " and "
                                                  : ", ",
                                 names[n]);
}

static int no_such_name(const char *command, const char *what, const char *name,
                        const char *const *names, int count)
{
    char all[LIST_BYTES] = "";
    const char *const near = suggest_nearest(name, names, count);
    if (near != NULL)
        return args_wrong("%s: no %s \"%s\"; did you mean \"%s\"?", command, what, name, near);
    if (count > LIST_MAX)
        return args_wrong("%s: no %s \"%s\"; see \"mha %s --help\"", command, what, name, command);
    list_names(names, count, all);
    return args_wrong("%s: no %s \"%s\"; there are %s", command, what, name, all);
}

int option_choose(const char *command, const char *what, const char *name, const char *const *names,
                  int count)
{
    for (int n = 0; n < count; n++)
        if (strcmp(name, names[n]) == 0)
            return n;
    no_such_name(command, what, name, names, count);
    return -1;
}

int option_kind(const char *command, const char *name, int *kind)
{
    const char *names[ATTENTION_KINDS];
    *kind = ATTENTION_KINDS;
    if (name == NULL)
        return EXIT_GO_ON;
    for (int n = 0; n < ATTENTION_KINDS; n++) {
        names[n] = attention_kind_name((attention_kind)n);
        if (strcasecmp(name, names[n]) == 0) {
            *kind = n;
            return EXIT_GO_ON;
        }
    }
    return no_such_name(command, "kind", name, names, ATTENTION_KINDS);
}

int option_split(const char *command, const char *name, corpus_split *split)
{
    const char *names[CORPUS_SPLITS];
    for (int n = 0; n < CORPUS_SPLITS; n++)
        names[n] = corpus_split_name((corpus_split)n);
    const int chosen = option_choose(command, "split", name, names, CORPUS_SPLITS);
    if (chosen < 0)
        return EXIT_USAGE;
    *split = (corpus_split)chosen;
    return EXIT_GO_ON;
}

/* --------------------------------------------------------------- heads ----- */

/* Reads a number from 1 on, which `name` or its first letter may precede, and moves *at past it. */
static bool read_number(const char **at, const char *name, int *number)
{
    const char *digits = *at + strspn(*at, " .:,");
    size_t letters = 0;
    while (isalpha((unsigned char)digits[letters]))
        letters++;
    if (letters > 0 &&
        ((letters != 1 && letters != strlen(name)) || strncasecmp(digits, name, letters) != 0))
        return false;
    digits += letters;
    digits += strspn(digits, " ");
    char *end;
    const long read = isdigit((unsigned char)*digits) ? strtol(digits, &end, 10) : 0;
    if (read < 1 || read > NUMBER_MAX)
        return false;
    *number = (int)read;
    *at = end;
    return true;
}

static const char *skip_kind(const char *text, int *kind)
{
    text += strspn(text, " ");
    for (*kind = 0; *kind < ATTENTION_KINDS; ++*kind) {
        const char *const name = attention_kind_name((attention_kind)*kind);
        if (strncasecmp(text, name, strlen(name)) == 0)
            return text + strlen(name);
    }
    return text;
}

/* Two numbers are a layer and a head; a single one is a head. */
int option_head(const char *command, const char *option, const char *text, head_choice *choice)
{
    *choice = (head_choice){.layer = 0};
    const char *const numbers = skip_kind(text, &choice->kind);
    const char *at = numbers;
    bool fine =
        read_number(&at, "layer", &choice->layer) && read_number(&at, "head", &choice->head);
    if (!fine) {
        at = numbers;
        choice->layer = 0;
        fine = read_number(&at, "head", &choice->head);
    }
    if (fine && at[strspn(at, " ")] == '\0')
        return EXIT_GO_ON;
    return args_wrong("%s: --%s %s: not a head; use \"cross 2.4\" or \"cross L2 H4\", counted from "
                      "1 (kinds: encoder, decoder, cross)",
                      command, option, text);
}

/* ----------------------------------------------------------- sentences ----- */

/* Joins the words unless one of them has a space, and returns the number of sentences. Without
 * memory every word stays a sentence of its own. */
static int join_words(char **argv, int words, char **joined)
{
    size_t size = 0, used = 0;
    for (int n = 1; n <= words; n++) {
        if (strchr(argv[n], ' ') != NULL)
            return words;
        size += strlen(argv[n]) + 1;
    }
    if (words < 2 || (*joined = malloc(size)) == NULL)
        return words;
    for (int n = 1; n <= words; n++)
        used += (size_t)snprintf(*joined + used, size - used, "%s%s", n > 1 ? " " : "", argv[n]);
    argv[1] = *joined;
    return 1;
}

const char *option_setting_dashes(const char *message)
{
    char name[TRAINING_TEXT_MAX];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(message, " "), message);
    return training_setting_find(name) >= 0 ? "--" : "";
}

int options_parse_sentences(const arg_command *command, int argc, char **argv, int *sentences,
                            char **joined)
{
    *joined = NULL;
    const int code = args_parse(command, argc, argv, sentences);
    if (code == EXIT_GO_ON)
        *sentences = join_words(argv, *sentences, joined);
    return code;
}
