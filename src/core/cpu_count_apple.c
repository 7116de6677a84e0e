/* SPDX-License-Identifier: MIT */
/* How many CPUs there are, on macOS, where a process cannot be restricted to some of them. */
#include "core/internal.h"

#include <sys/sysctl.h>

int mhai_cpu_count(void)
{
    int count = 0;
    size_t size = sizeof count;
    return sysctlbyname("hw.logicalcpu", &count, &size, NULL, 0) == 0 && count > 0 ? count : 1;
}
