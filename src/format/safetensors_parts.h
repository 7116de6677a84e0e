/* SPDX-License-Identifier: MIT */
/*
 * Private declarations shared by the parts of the safetensors reader and writer:
 *
 *      safetensors.c          element types and messages
 *      safetensors_header.c   parses and checks a header
 *      safetensors_read.c     opens files, finds and reads tensors
 *      safetensors_write.c    writes files
 */
#ifndef FORMAT_SAFETENSORS_PARTS_H
#define FORMAT_SAFETENSORS_PARTS_H

#include "format/safetensors.h"

/* An entry of the index by name, which is sorted by hash. */
typedef struct safetensors_entry {
    uint64_t hash;
    const safetensors_tensor *tensor;
} safetensors_entry;

/* An open file with everything it owns. `file`, its first member, is what callers see. */
typedef struct safetensors_open_file {
    safetensors_file file;
    char *header; /* names, keys and values point into it */
    safetensors_tensor *tensors;
    uint64_t *extents; /* all shapes, one after another */
    safetensors_pair *pairs;
    safetensors_entry *index;
    char *path;                 /* for messages */
    int fd;                     /* -1 for a file in memory */
    const unsigned char *bytes; /* the file in memory, owned by the caller, or NULL */
} safetensors_open_file;

/* Parses and checks the header. The caller has set header, file.header_bytes and file.data_bytes;
 * the other fields of `file` are filled in. */
mha_status safetensors_parse(safetensors_open_file *f, unsigned flags,
                             const safetensors_report *report);

#endif
