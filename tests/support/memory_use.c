/* SPDX-License-Identifier: MIT */
/* Reads the numbers of memory_use.h from /proc; what wine shows there is not the program's. */
#include "support/memory_use.h"

#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line such as "VmRSS:     1234 kB". */
static size_t status_bytes(const char *name)
{
    char line[200];
    size_t bytes = 0;
    FILE *const file = TEST_SANITIZED || TEST_WINDOWS ? NULL : fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            bytes = strtoul(line + strlen(name), NULL, 10) * 1024;
    if (file)
        fclose(file);
    return bytes;
}

size_t memory_now(void)
{
    return status_bytes("VmRSS:");
}

/* Where the mark cannot be reset, it would be that of the whole program. */
static bool reset_mark(void)
{
    FILE *const file = fopen("/proc/self/clear_refs", "w");
    const bool written = file && fputs("5", file) >= 0;
    return file && fclose(file) == 0 && written;
}

static bool can_reset;

void memory_peak_reset(void)
{
    can_reset = reset_mark();
}

size_t memory_peak(void)
{
    return can_reset ? status_bytes("VmHWM:") : 0;
}
