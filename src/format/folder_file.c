/* SPDX-License-Identifier: MIT */
/* Where the files of a model folder really are: see folder_file.h. */
#include "format/folder_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether `path` is inside of `folder`, both without links. */
static bool is_inside(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Replaces the last two names of a path, "/models/snapshots/1f00", by "blobs". */
static bool find_blobs(const char *folder, char blobs[PATH_MAX])
{
    snprintf(blobs, PATH_MAX, "%s", folder);
    for (int n = 0; n < 2; n++) {
        char *const slash = strrchr(blobs, '/');
        if (!slash || (n == 1 && strcmp(slash, "/snapshots") != 0))
            return false;
        *slash = '\0';
    }
    const size_t length = strlen(blobs);
    return snprintf(blobs + length, PATH_MAX - length, "/blobs") < (int)(PATH_MAX - length);
}

folder_file folder_file_resolve(char path[PATH_MAX], const char *folder, const char *file)
{
    char joined[PATH_MAX], home[PATH_MAX], blobs[PATH_MAX];
    const int length = snprintf(joined, sizeof joined, "%s/%s", folder, file);
    if (length < 0 || length >= PATH_MAX || !realpath(folder, home) || !realpath(joined, path))
        return FOLDER_FILE_MISSING;
    if (is_inside(path, home) || (find_blobs(home, blobs) && is_inside(path, blobs)))
        return FOLDER_FILE_INSIDE;
    return FOLDER_FILE_OUTSIDE;
}
