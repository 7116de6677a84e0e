/* SPDX-License-Identifier: MIT */
/* "Did you mean ...?" */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

/* The name that `text` was probably meant to be: the one with the fewest letters to insert, delete,
 * change or swap. NULL if none is near: the limit is about a third of the text. */
const char *suggest_nearest(const char *text, const char *const *names, int count);

#endif
