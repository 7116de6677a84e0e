/* SPDX-License-Identifier: MIT */
/* The tensors of a file as "mha tensors" prints them, the same for every kind of file. */
#ifndef PROGRAM_TENSOR_LIST_H
#define PROGRAM_TENSOR_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/json_writer.h"

typedef struct tensor_row {
    const char *name, *type; /* the type as the format names it */
    size_t rank;
    const uint64_t *shape;
    uint64_t bytes;
    bool has_offset;
    uint64_t offset;
} tensor_row;

typedef struct tensor_list {
    const char *path;
    size_t count;
    uint64_t bytes; /* of all tensors */
    const void *file;
    tensor_row (*row)(const void *file, size_t number);
} tensor_list;

/* The line "PATH: N tensors, N bytes". */
void tensor_list_print_title(const tensor_list *list);

/* A table with one line per tensor. */
void tensor_list_print_table(const tensor_list *list);

/* The array "tensors" of an object. */
void tensor_list_print_json(json *j, const tensor_list *list);

/* Prints text of a file that is not trusted: control characters become '?'. Adds spaces up to this
 * number of columns. */
void tensor_list_print_text(const char *text, int columns);

/* Lists a GGUF file or a model of llama2.c, as JSON if `j` is not NULL. False after a message if
 * the file is refused. */
bool tensor_list_show_gguf(const char *path, json *j);
bool tensor_list_show_llama2c(const char *path, json *j);

#endif
