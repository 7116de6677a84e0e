/* SPDX-License-Identifier: MIT */
/* The running program, as macOS knows it. */
#include "base/program_path.h"

#include <limits.h>
#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool program_path(char *path, size_t size)
{
    char name[PATH_MAX];
    uint32_t room = sizeof name;
    char *const whole = _NSGetExecutablePath(name, &room) == 0 ? realpath(name, NULL) : NULL;
    const bool fits = whole && strlen(whole) < size;
    if (fits)
        memcpy(path, whole, strlen(whole) + 1);
    free(whole);
    return fits;
}
