/* SPDX-License-Identifier: MIT */
#include "program/kind_name.h"

#include <strings.h>

#include "base/suggest.h"
#include "model/head_settings.h"
#include "program/args.h"

int kind_find(const char *command, const char *name, int *kind)
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
    const char *near = suggest_nearest(name, names, ATTENTION_KINDS);
    if (near != NULL)
        return args_wrong("%s: no kind \"%s\"; did you mean \"%s\"?", command, name, near);
    return args_wrong("%s: no kind \"%s\"; there are encoder, decoder and cross", command, name);
}
