/* SPDX-License-Identifier: MIT */
#ifndef PROBLEM_EXPLAIN_LAYER_H
#define PROBLEM_EXPLAIN_LAYER_H

#include "problem/layer_word.h"

/* What a layer word asks for, a line each: widths, weights, products, heads, cache, flops and
 * reads. Returns the length of the whole text, as snprintf does. */
size_t explain_layer(const layer_word *word, char *text, size_t size);

#endif
