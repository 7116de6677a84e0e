/* SPDX-License-Identifier: MIT */
/* A keyed hash of bytes and numbers, for tables that are filled from files. The key is random, so
 * that a file cannot choose entries that collide; it never changes a result. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint64_t hash_key(void);

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_number(uint64_t key, uint64_t number)
{
    return hash_mix(number ^ key, key | 0x9e3779b97f4a7c15u);
}

static inline uint64_t hash_bytes(uint64_t key, const char *bytes, size_t length)
{
    uint64_t hash = key ^ length, word;
    for (; length >= 8; length -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = hash_mix(hash ^ word, 0x9e3779b97f4a7c15u);
        hash += key;
    }
    word = 0;
    if (length) /* memcpy of nothing may be given a null pointer */
        memcpy(&word, bytes, length);
    return hash_mix(hash ^ word, key | 0xd6e8feb86659fd93u);
}

/* A slot of a table of `count` slots, for a hash. Tables have any size, and are filled up to five
 * eighths: little memory is unused, and a search still ends soon. */
static inline size_t hash_slot(uint64_t hash, size_t count)
{
    return (size_t)((unsigned __int128)hash * count >> 64);
}

static inline bool hash_full(size_t filled, size_t count)
{
    return filled >= count / 8 * 5;
}

/* Slots for so many entries. */
static inline size_t hash_slots_for(size_t entries)
{
    return (entries / 5 + 2) * 8;
}

#endif
