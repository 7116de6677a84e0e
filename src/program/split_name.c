/* SPDX-License-Identifier: MIT */
#include "program/split_name.h"

#include <string.h>

#include "base/suggest.h"
#include "program/args.h"

int split_find(const char *command, const char *name, corpus_split *split)
{
    const char *names[CORPUS_SPLITS];
    for (int n = 0; n < CORPUS_SPLITS; n++) {
        names[n] = corpus_split_name((corpus_split)n);
        if (strcmp(name, names[n]) == 0) {
            *split = (corpus_split)n;
            return EXIT_GO_ON;
        }
    }
    const char *near = suggest_nearest(name, names, CORPUS_SPLITS);
    if (near != NULL)
        return args_wrong("%s: no split \"%s\"; did you mean \"%s\"?", command, name, near);
    return args_wrong("%s: no split \"%s\"; there are train, valid and test", command, name);
}
