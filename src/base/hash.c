/* SPDX-License-Identifier: MIT */
/* The random key of hash.h. */
#include "base/hash.h"

#include <stdbool.h>
#include <time.h>

#if defined(__EMSCRIPTEN__) || defined(__APPLE__)
#include <sys/random.h>
#include <unistd.h>
static bool draw(uint64_t *key)
{
    return getentropy(key, sizeof *key) == 0;
}
#else
#include <sys/random.h>
static bool draw(uint64_t *key)
{
    return getrandom(key, sizeof *key, GRND_NONBLOCK) == (ssize_t)sizeof *key;
}
#endif

uint64_t hash_key(void)
{
    uint64_t key = 0;
    if (!draw(&key))
        key = (uint64_t)clock() ^ (uint64_t)(uintptr_t)&key << 16;
    return key | 1;
}
