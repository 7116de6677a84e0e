/* SPDX-License-Identifier: MIT */
/* The running program, as Linux knows it. */
#include "base/program_path.h"

#include <unistd.h>

bool program_path(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size);
    if (length <= 0 || (size_t)length >= size)
        return false;
    path[length] = '\0';
    return true;
}
