/* SPDX-License-Identifier: MIT */
/* Tensors of four axes, in any layout that the library's views can describe. */
#ifndef PROBLEM_TENSOR_H
#define PROBLEM_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include <mha/mha.h>

#include "base/rng.h"

/* Element (b, h, i, c) is element origin + b*s[0] + h*s[1] + i*s[2] + c of memory. An extent of 1
 * with stride 0 is shared along its axis. */
typedef struct tensor {
    unsigned char *memory; /* NULL: no tensor */
    size_t bytes, element;
    ptrdiff_t origin;
    ptrdiff_t n[4];
    ptrdiff_t s[3];
} tensor;

/* How the axes lie in memory. All zero: contiguous [B, heads, rows, width]. */
typedef struct tensor_layout {
    int order;              /* 0 to 5: permutation of the three outer axes; 1: heads inside rows */
    ptrdiff_t lead, gap[3]; /* unused elements before everything, and after each step */
    unsigned flip, share; /* bits 0 to 2: axes with a negative stride, or with extent 1, stride 0 */
} tensor_layout;

/* Any of them, nothing shared; without a lead if the memory must be exact at its front. */
tensor_layout tensor_random_layout(rng *random, bool lead);

/* Sets everything but the memory: `bytes` of it are needed. False if they are too many to count. */
bool tensor_lay_out(tensor *t, size_t element, const ptrdiff_t n[4], const tensor_layout *layout);

/* Address of an element. */
void *tensor_at(const tensor *t, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c);

/* Views; of a tensor without memory they are empty. */
mha_view tensor_view(const tensor *t);
mha_out tensor_out(const tensor *t);

/* Whether tensors of equal extents hold the same bits, element by element. */
bool tensors_same(const tensor *a, const tensor *b);

#endif
