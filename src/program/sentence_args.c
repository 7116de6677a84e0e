/* SPDX-License-Identifier: MIT */
#include "program/sentence_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many sentences there are then; a word with a space in it is one already. */
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

int sentence_args_parse(const arg_command *command, int argc, char **argv, int *sentences,
                        char **joined)
{
    *joined = NULL;
    const int code = args_parse(command, argc, argv, sentences);
    if (code == EXIT_GO_ON)
        *sentences = join_words(argv, *sentences, joined);
    return code;
}
