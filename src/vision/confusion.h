/* SPDX-License-Identifier: MIT */
/* How often pictures of one class are taken for another. */
#ifndef VISION_CONFUSION_H
#define VISION_CONFUSION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct confusion {
    int classes;
    int64_t *counts; /* [class][class that was said] */
} confusion;

/* False if out of memory. */
bool confusion_init(confusion *c, int classes);
void confusion_free(confusion *c);

/* Counts a picture by its logits: the largest one is said, the first of equals. */
void confusion_add(confusion *c, int class, const float *logits);

/* Pictures of a class, of all classes for -1; and those of them that were recognised. */
int64_t confusion_total(const confusion *c, int class);
int64_t confusion_right(const confusion *c, int class);

#endif
