/* SPDX-License-Identifier: MIT */
/* New files that a process left under their temporary names when it was killed. */
#ifndef BASE_LEFTOVER_FILES_H
#define BASE_LEFTOVER_FILES_H

/* Removes the files that mhai_file_open_new() made next to `path`, except those that a running
 * process is still writing: they are locked. What cannot be removed stays. */
void leftover_files_remove(const char *path);

#endif
