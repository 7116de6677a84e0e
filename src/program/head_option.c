/* SPDX-License-Identifier: MIT */
#include "program/head_option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "program/args.h"

enum { NUMBER_MAX = 1000000 };

/* A number from 1 on, with or without `name` or its first letter in front; moves *at behind it. */
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

int head_option_read(const char *command, const char *option, const char *text, head_choice *choice)
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
    return args_wrong("%s: --%s %s: not a head; say \"cross 2.4\" or \"cross L2 H4\", counted from "
                      "1 (kinds: encoder, decoder, cross)",
                      command, option, text);
}
