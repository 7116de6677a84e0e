/* SPDX-License-Identifier: MIT */
/* Temporary files for tests, in a folder that is removed with them. */
#ifndef MHA_TEMP_FILES_H
#define MHA_TEMP_FILES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct temp_folder {
    char path[128];
} temp_folder;

/* Makes a folder in TMPDIR or /tmp. Ends the program if that fails. */
temp_folder temp_folder_new(void);

/* Removes the folder with everything in it. */
void temp_folder_free(const temp_folder *folder);

/* The number of files in it. */
int temp_folder_count(const temp_folder *folder);

/* The path of a file in the folder; the text stays valid until the second next call. */
const char *temp_path(const temp_folder *folder, const char *name);

/* The bytes of a file, which the caller frees; NULL if it cannot be read. */
unsigned char *file_bytes(const char *path, size_t *size);
bool file_make(const char *path, const void *bytes, size_t size);

#endif
