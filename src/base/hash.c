/* SPDX-License-Identifier: MIT */
/* The random key of hash.h. */
#include "base/hash.h"

#include <sys/random.h>
#include <time.h>

uint64_t hash_key(void)
{
    uint64_t key = 0;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key)
        key = (uint64_t)clock() ^ (uint64_t)(uintptr_t)&key << 16;
    return key | 1;
}
