/* SPDX-License-Identifier: MIT */
/* New files and folders that a process left under their temporary names when it was killed. */
#ifndef BASE_LEFTOVER_FILES_H
#define BASE_LEFTOVER_FILES_H

/*
 * Removes what mhai_file_open_new() and mhai_folder_open_new() made next to `path`, except that of
 * a running process: it is locked. A folder that was moved out of the way by a process that died
 * before it put the new one in its place gets its name back. What cannot be removed stays.
 */
void leftover_files_remove(const char *path);

/* The same for all paths in a folder whose names begin with `start`, in one pass. */
void leftover_files_remove_all(const char *folder, const char *start);

#endif
