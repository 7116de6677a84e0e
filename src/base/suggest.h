/* SPDX-License-Identifier: MIT */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

/* The one of `count` names that `text` was probably meant to be: fewest letters to insert, delete,
 * change or swap, and not more than a third of them. NULL if none is near. */
const char *suggest_nearest(const char *text, const char *const *names, int count);

#endif
