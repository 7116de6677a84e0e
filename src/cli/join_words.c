/* SPDX-License-Identifier: MIT */
#include "join_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int join_words(char **argv, int words, char **joined)
{
    size_t size = 0, used = 0;
    *joined = NULL;
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
