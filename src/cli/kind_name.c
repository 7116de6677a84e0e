/* SPDX-License-Identifier: MIT */
#include "kind_name.h"

#include <strings.h>

#include "args.h"
#include "head_settings.h"
#include "suggest.h"

int kind_find(const char *command, const char *name, int *kind)
{
    const char *names[CAPTURE_KINDS];
    *kind = CAPTURE_KINDS;
    if (name == NULL)
        return EXIT_GO_ON;
    for (int n = 0; n < CAPTURE_KINDS; n++) {
        names[n] = capture_kind_name((capture_kind)n);
        if (strcasecmp(name, names[n]) == 0) {
            *kind = n;
            return EXIT_GO_ON;
        }
    }
    const char *near = suggest_nearest(name, names, CAPTURE_KINDS);
    if (near != NULL)
        return args_wrong("%s: no kind \"%s\"; did you mean \"%s\"?", command, name, near);
    return args_wrong("%s: no kind \"%s\"; there are encoder, decoder and cross", command, name);
}
