/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the reader and the writer of safetensors share:
 *
 *      safetensors.c          types, messages
 *      safetensors_header.c   a header is taken apart and checked
 *      safetensors_read.c     files, and tensors out of them
 *      safetensors_write.c
 */
#ifndef FORMAT_SAFETENSORS_PARTS_H
#define FORMAT_SAFETENSORS_PARTS_H

#include "format/safetensors.h"

/* Names and where their tensors are, in the order of the hashes. */
typedef struct safetensors_entry {
    uint64_t hash;
    const safetensors_tensor *tensor;
} safetensors_entry;

/* A file with what it owns; `file` is what others see of it. */
typedef struct safetensors_open_file {
    safetensors_file file;
    char *header;
    safetensors_tensor *tensors;
    uint64_t *extents; /* of all shapes */
    safetensors_pair *pairs;
    safetensors_entry *index;
    char *path;                 /* of a file on the disk */
    int fd;                     /* -1 for one in memory */
    const unsigned char *bytes; /* of the tensors in memory */
} safetensors_open_file;

/* Takes the header apart; file.header_bytes and file.data_bytes are set, the rest is filled in. */
mha_status safetensors_parse(safetensors_open_file *f, unsigned flags,
                             const safetensors_report *report);

#endif
