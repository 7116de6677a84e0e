/* SPDX-License-Identifier: MIT */
/* How many CPUs this process may use, on Windows: those of its group, which has at most 64. */
#include "core/internal.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

int mhai_cpu_count(void)
{
    DWORD_PTR own, all;
    return GetProcessAffinityMask(GetCurrentProcess(), &own, &all) && own != 0
               ? __builtin_popcountll(own)
               : 1;
}
