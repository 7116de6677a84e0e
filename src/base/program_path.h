/* SPDX-License-Identifier: MIT */
/* Where the running program is. Every platform has its own file of this function. */
#ifndef BASE_PROGRAM_PATH_H
#define BASE_PROGRAM_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The file of the running program, with "/" between names and as far as possible without symbolic
 * links. False if it cannot be determined or has `size` bytes or more. */
bool program_path(char *path, size_t size);

#endif
