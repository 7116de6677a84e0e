/* SPDX-License-Identifier: MIT */
/* The running program, as Windows knows it. */
#include "base/program_path.h"

#include <stdlib.h>
#include <string.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

bool program_path(char *path, size_t size)
{
    wchar_t wide[PATH_MAX];
    char name[PATH_MAX];
    const DWORD length = GetModuleFileNameW(NULL, wide, PATH_MAX);
    if (length == 0 || length == PATH_MAX ||
        WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, name, sizeof name, NULL,
                            NULL) == 0)
        return false;
    char *const whole = realpath(name, NULL);
    const bool fits = whole && strlen(whole) < size;
    if (fits)
        memcpy(path, whole, strlen(whole) + 1);
    free(whole);
    return fits;
}
