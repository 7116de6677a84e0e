/* SPDX-License-Identifier: MIT */
/*
 * Files of a model folder, which may be links. A link may lead to a place inside of the folder, or
 * to the folder "blobs" of the download cache of huggingface_hub, whose folders snapshots/REVISION
 * have only links to ../../blobs. Others could lead to any file of the machine.
 */
#ifndef FORMAT_FOLDER_FILE_H
#define FORMAT_FOLDER_FILE_H

#include <limits.h>

typedef enum folder_file {
    FOLDER_FILE_INSIDE,
    FOLDER_FILE_MISSING, /* there is no such file, or its path is too long */
    FOLDER_FILE_OUTSIDE  /* a link that leads to another place */
} folder_file;

/* The path of a file of a folder without links. */
folder_file folder_file_resolve(char path[PATH_MAX], const char *folder, const char *file);

#endif
