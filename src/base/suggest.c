/* SPDX-License-Identifier: MIT */
/* The nearest of some names by edit distance, for messages about misspelt words. */
#include "base/suggest.h"

#include <string.h>

enum { LONGEST = 31 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Edit distance where swapping two neighbours counts as one edit. Both texts have at most LONGEST
 * bytes. */
static int distance(const char *a, const char *b)
{
    int d[LONGEST + 1][LONGEST + 1];
    const int n = (int)strlen(a), m = (int)strlen(b);
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            d[i][j] = smaller(smaller(d[i - 1][j], d[i][j - 1]) + 1,
                              d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

const char *suggest_nearest(const char *text, const char *const *names, int count)
{
    const char *nearest = NULL;
    const size_t length = strlen(text);
    if (length == 0 || length > LONGEST)
        return NULL;
    int best = (int)length / 3 + 2;
    for (int n = 0; n < count; n++) {
        if (strlen(names[n]) > LONGEST)
            continue;
        const int far = strncmp(text, names[n], length) == 0 ? 1 : distance(text, names[n]);
        /* A name that shares no letter with the text is no suggestion. */
        if (far < best && far < (int)strlen(names[n])) {
            best = far;
            nearest = names[n];
        }
    }
    return nearest;
}
