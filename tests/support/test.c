/* SPDX-License-Identifier: MIT */
/*
 * The test harness: runs tests by name, counts failures, and reads the environment variables that
 * set seeds and effort.
 */
#include "support/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRINTED_FAILURES = 10 };

static struct {
    int passed, failed, skipped;
    int failures_here;
    bool skipped_here;
    uint64_t seed;
    bool seeded;
    int filter_count;
    char **filters;
    const char *program;
    const char *running;
} run;

void test_begin(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    run.program = slash ? slash + 1 : argv[0];
    run.filter_count = argc - 1;
    run.filters = argv + 1;
}

static bool wanted(const char *name)
{
    for (int i = 0; i < run.filter_count; i++)
        if (strstr(name, run.filters[i]))
            return true;
    return run.filter_count == 0;
}

void test_run(const char *name, void (*body)(void))
{
    if (!wanted(name))
        return;
    run.failures_here = 0;
    run.skipped_here = false;
    run.running = name;
    run.seeded = false;
    body();
    if (run.failures_here > 0) {
        run.failed++;
        printf("FAIL %s (%d failures", name, run.failures_here);
        if (run.seeded)
            printf("; MHA_TEST_SEED=%llu", (unsigned long long)run.seed);
        printf(")\n");
    } else if (run.skipped_here) {
        run.skipped++;
    } else {
        run.passed++;
        printf("ok   %s\n", name);
    }
    run.running = NULL;
    fflush(stdout);
}

bool test_check(bool ok, const char *file, int line, const char *format, ...)
{
    if (ok)
        return true;
    run.failed += run.running == NULL; /* what is set up outside of the tests counts as one */
    if (run.failures_here++ < PRINTED_FAILURES) {
        va_list list;
        va_start(list, format);
        printf("%s:%d: %s: ", file, line, run.running ? run.running : "outside of tests");
        vprintf(format, list);
        printf("\n");
        va_end(list);
    }
    return false;
}

void test_skip(const char *reason)
{
    run.skipped_here = true;
    printf("skip %s: %s\n", run.running, reason);
}

int test_end(void)
{
    printf("%s: %d passed, %d failed, %d skipped\n", run.program, run.passed, run.failed,
           run.skipped);
    return run.failed > 0;
}

uint64_t test_seed(uint64_t fallback)
{
    const char *text = getenv("MHA_TEST_SEED");
    run.seed = text && *text ? strtoull(text, NULL, 0) : fallback;
    run.seeded = true;
    return run.seed;
}

int64_t test_effort(int64_t base)
{
    const char *text = getenv("MHA_TEST_EFFORT");
    const double factor = text && *text ? strtod(text, NULL) : 1.0;
    const double count = factor * (double)base;
    return count < 1 ? 1 : (int64_t)count;
}
