/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the reader and the writer of safetensors share:
 *
 *      safetensors.c          types, messages
 *      safetensors_header.c   a header is taken apart and checked
 *      safetensors_read.c     files, and tensors out of them
 *      safetensors_write.c
 */
#ifndef MHAI_SAFETENSORS_PARTS_H
#define MHAI_SAFETENSORS_PARTS_H

#include "safetensors.h"

/* Where errors are told. */
typedef struct mhai_st_report {
    const char *path;
    char *message;
    size_t size;
} mhai_st_report;

/* "PATH: ..." */
mha_status mhai_st_fail(const mhai_st_report *report, mha_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* MHA_ERR_FILE: the file cannot be `done`, for the reason `error`. */
mha_status mhai_st_fail_file(const mhai_st_report *report, const char *done, int error);

/* The beginning of a name, fit for a message: printable, and not long. */
typedef struct mhai_st_shown {
    char text[64];
} mhai_st_shown;
mhai_st_shown mhai_st_show(const char *name);

/* Names and where their tensors are, in the order of the hashes. */
typedef struct mhai_st_entry {
    uint64_t hash;
    const mhai_st_tensor *tensor;
} mhai_st_entry;

/* A file with what it owns; `file` is what others see of it. */
typedef struct mhai_st_open_file {
    mhai_st_file file;
    char *header;
    mhai_st_tensor *tensors;
    uint64_t *extents; /* of all shapes */
    mhai_st_pair *pairs;
    mhai_st_entry *index;
    char *path;                 /* of a file on the disk */
    int fd;                     /* -1 for one in memory */
    const unsigned char *bytes; /* of the tensors in memory */
} mhai_st_open_file;

/* Takes the header apart; file.header_bytes and file.data_bytes are set, the rest is filled in. */
mha_status mhai_st_parse(mhai_st_open_file *f, unsigned flags, const mhai_st_report *report);

#endif
