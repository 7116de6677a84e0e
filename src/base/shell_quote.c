/* SPDX-License-Identifier: MIT */
/* Quotes words for a POSIX shell: inside single quotes only the single quote itself is special, and
 * it is written as '\'' (end of the quotes, a quote, quotes again). */
#include "base/shell_quote.h"

#include <string.h>

void shell_quote(FILE *file, const char *word)
{
    fputc('\'', file);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            fputs("'\\''", file);
        else
            fputc(*word, file);
    fputc('\'', file);
}

void shell_quote_if_needed(FILE *file, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+@%";
    if (*word != '\0' && word[strspn(word, plain)] == '\0')
        fputs(word, file);
    else
        shell_quote(file, word);
}
