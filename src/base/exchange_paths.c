/* SPDX-License-Identifier: MIT */
/* renameat2() of Linux, which not every C library declares. */
#include "base/exchange_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int mhai_paths_exchange(const char *one, const char *other)
{
#ifdef SYS_renameat2
    const unsigned exchange = 2; /* RENAME_EXCHANGE */
    return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, exchange) == 0 ? 0 : errno;
#else
    (void)one;
    (void)other;
    return ENOSYS;
#endif
}
