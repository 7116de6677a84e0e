/* SPDX-License-Identifier: MIT */
/* How many CPUs there are, on macOS, where a process cannot be restricted to some of them, and what
 * those of AArch64 have. */
#include "core/internal.h"

#include <sys/sysctl.h>

int mhai_cpu_count(void)
{
    int count = 0;
    size_t size = sizeof count;
    return sysctlbyname("hw.logicalcpu", &count, &size, NULL, 0) == 0 && count > 0 ? count : 1;
}

#if defined(__aarch64__)
static bool has(const char *feature)
{
    int there = 0;
    size_t size = sizeof there;
    return sysctlbyname(feature, &there, &size, NULL, 0) == 0 && there != 0;
}

bool mhai_cpu_has_arm_dot(void)
{
    return has("hw.optional.arm.FEAT_DotProd");
}

bool mhai_cpu_has_arm_bf16(void)
{
    return has("hw.optional.arm.FEAT_BF16");
}
#endif
