/* SPDX-License-Identifier: MIT */
/* Windows has nothing that exchanges two names. */
#include "base/exchange_paths.h"

#include <errno.h>

int mhai_paths_exchange(const char *one, const char *other)
{
    (void)one;
    (void)other;
    return ENOSYS;
}
