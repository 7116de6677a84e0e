/* SPDX-License-Identifier: MIT */
/* Counts what was said of the pictures of each class. */
#include "vision/confusion.h"

#include <stdlib.h>

bool confusion_init(confusion *c, int classes)
{
    *c = (confusion){.classes = classes,
                     .counts = calloc((size_t)classes * (size_t)classes, sizeof *c->counts)};
    return c->counts != NULL;
}

void confusion_free(confusion *c)
{
    free(c->counts);
    *c = (confusion){0};
}

void confusion_add(confusion *c, int class, const float *logits)
{
    int said = 0;
    for (int n = 1; n < c->classes; n++)
        said = logits[n] > logits[said] ? n : said;
    c->counts[class * c->classes + said]++;
}

int64_t confusion_total(const confusion *c, int class)
{
    int64_t sum = 0;
    for (int n = 0; n < c->classes * c->classes; n++)
        if (class < 0 || n / c->classes == class)
            sum += c->counts[n];
    return sum;
}

int64_t confusion_right(const confusion *c, int class)
{
    int64_t sum = 0;
    for (int n = 0; n < c->classes; n++)
        if (class < 0 || n == class)
            sum += c->counts[n * c->classes + n];
    return sum;
}
