/* SPDX-License-Identifier: MIT */
/* Files for tests, in a folder of their own that goes away with them. */
#ifndef MHA_TEMP_FILES_H
#define MHA_TEMP_FILES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct temp_folder {
    char path[128];
} temp_folder;

/* In TMPDIR, or /tmp. Ends the program if it cannot be made. */
temp_folder temp_folder_new(void);

/* With everything in it. */
void temp_folder_free(const temp_folder *folder);

/* How many files it has. */
int temp_folder_count(const temp_folder *folder);

/* Path of a file in the folder; the text stays until the second next call. */
const char *temp_path(const temp_folder *folder, const char *name);

/* The bytes of a file, for free(); NULL where it cannot be read. */
unsigned char *file_bytes(const char *path, size_t *size);
bool file_make(const char *path, const void *bytes, size_t size);

#endif
