/* SPDX-License-Identifier: MIT */
/* How many CPUs this process may use: on Linux, and in WebAssembly, which has one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "core/internal.h"

#include <sched.h>

int mhai_cpu_count(void)
{
#if defined(__EMSCRIPTEN__)
    return 1;
#else
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
#endif
}
