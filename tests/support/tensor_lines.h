/* SPDX-License-Identifier: MIT */
/*
 * Tensors of small model files as lines "NAME ROWS COLUMNS ...". A name with "#" stands for one
 * tensor per layer.
 */
#ifndef MHA_TENSOR_LINES_H
#define MHA_TENSOR_LINES_H

#include <stddef.h>
#include <stdint.h>

enum { TENSOR_NAME_ROOM = 120, TENSOR_LINES_MAX = 400 };

typedef struct tensor_line {
    char name[TENSOR_NAME_ROOM];
    size_t rank;
    uint64_t shape[4];
} tensor_line;

/* All tensors of a list; returns their number. Ends the program if there are too many. */
size_t tensor_lines_read(const char *lines, int layers, tensor_line tensors[TENSOR_LINES_MAX]);

size_t tensor_line_elements(const tensor_line *tensor);

/* Says what is wrong with a file that is built, and ends the program. */
_Noreturn void builder_die(const char *what);

#endif
