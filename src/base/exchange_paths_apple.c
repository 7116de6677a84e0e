/* SPDX-License-Identifier: MIT */
/* renamex_np() of macOS. */
#include "base/exchange_paths.h"

#include <errno.h>
#include <stdio.h>

int mhai_paths_exchange(const char *one, const char *other)
{
    return renamex_np(one, other, RENAME_SWAP) == 0 ? 0 : errno;
}
