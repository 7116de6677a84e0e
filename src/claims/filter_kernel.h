/* SPDX-License-Identifier: MIT */
/* Kernels of mha conv: built-in ones with a name, and those in text files. */
#ifndef CLAIMS_FILTER_KERNEL_H
#define CLAIMS_FILTER_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

enum { KERNEL_SIZE_MAX = 11, KERNELS_AT_ONCE = 2, KERNEL_MESSAGE_MAX = 256 };

/* One kernel, or two: with two outputs a and b per channel, such as the two gradients of Sobel, the
 * picture is sqrt(a^2 + b^2). */
typedef struct conv_kernel {
    const char *name;
    ptrdiff_t size; /* rows and columns */
    int count;
    double taps[KERNELS_AT_ONCE]
               [KERNEL_SIZE_MAX * KERNEL_SIZE_MAX]; /* [size][size] each, exact in f32 */
} conv_kernel;

/*
 * Finds the kernel of this name, or reads the file at this path: K lines of K numbers separated by
 * blanks, K at most KERNEL_SIZE_MAX; "#" begins a comment. On failure returns false, with a
 * sentence in `message`, which has KERNEL_MESSAGE_MAX bytes.
 */
bool conv_kernel_find(conv_kernel *kernel, const char *name, char *message);

#endif
