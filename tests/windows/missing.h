/* SPDX-License-Identifier: MIT */
/*
 * What tests call of POSIX and Windows does not have. These functions fail there, as POSIX allows;
 * a test that needs them is skipped before it calls them (test_lacks() of support/test.h). On
 * Windows the compiler includes this file before every test.
 */
#ifndef TESTS_WINDOWS_MISSING_H
#define TESTS_WINDOWS_MISSING_H

#include "windows/posix.h"

enum { SIGKILL = 9 };
#define WIFEXITED(status) ((status) == 0)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((status) != 0)
#define WTERMSIG(status) (status)

static inline int missing_fail(void)
{
    errno = ENOSYS;
    return -1;
}

#define fork missing_fork /* a name that gcc knows */
static inline pid_t missing_fork(void)
{
    return missing_fail();
}

static inline pid_t waitpid(pid_t child, int *status, int options)
{
    (void)child;
    (void)status;
    (void)options;
    return missing_fail();
}

static inline int kill(pid_t child, int number)
{
    (void)child;
    (void)number;
    return missing_fail();
}

static inline int pause(void)
{
    return missing_fail();
}

static inline int symlink(const char *target, const char *path)
{
    (void)target;
    (void)path;
    return missing_fail();
}

static inline int mkfifo(const char *path, int mode)
{
    (void)path;
    (void)mode;
    return missing_fail();
}

/* Not the way of the library, so that a test may compare the two. */
typedef struct cpu_set_t {
    int count;
} cpu_set_t;
#define CPU_COUNT(set) ((set)->count)
static inline int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    const char *const number = getenv("NUMBER_OF_PROCESSORS");
    (void)process;
    (void)size;
    set->count = number ? atoi(number) : 0;
    return number ? 0 : missing_fail();
}

static inline int pipe(int fds[2])
{
    return _pipe(fds, 4096, _O_BINARY);
}

#endif
