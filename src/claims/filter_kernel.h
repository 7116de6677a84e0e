/* SPDX-License-Identifier: MIT */
/* Kernels for pictures: those with a name, and those of text files. */
#ifndef CLAIMS_FILTER_KERNEL_H
#define CLAIMS_FILTER_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

enum { KERNEL_SIZE_MAX = 11, KERNELS_AT_ONCE = 2, KERNEL_MESSAGE_MAX = 256 };

/* A filter is one kernel, or two whose outputs are the sides of a right angle: the picture is then
 * its longest side, as for the two gradients of Sobel. */
typedef struct conv_kernel {
    const char *name;
    ptrdiff_t size; /* rows and columns */
    int count;
    double taps[KERNELS_AT_ONCE][KERNEL_SIZE_MAX * KERNEL_SIZE_MAX]; /* [size][size] each, f32 */
} conv_kernel;

/*
 * The kernel of this name, or the one in the file at this path: K lines of K numbers with spaces
 * between them, K up to KERNEL_SIZE_MAX; "#" begins a comment. False with a sentence in `message`.
 */
bool conv_kernel_find(conv_kernel *kernel, const char *name, char *message);

#endif
