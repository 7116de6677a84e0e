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

/* The product of two numbers of 64 bits; its upper half is stored in *high. */
static inline uint64_t hash_product(uint64_t a, uint64_t b, uint64_t *high)
{
#ifdef __SIZEOF_INT128__
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;
    *high = (uint64_t)(product >> 64);
#else /* in halves of 32 bits: no sum overflows */
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    const uint64_t other = a_low * b_high + (uint32_t)middle;
    *high = a_high * b_high + (middle >> 32) + (other >> 32);
#endif
    return a * b;
}

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t high;
    const uint64_t low = hash_product(a, b, &high);
    return low ^ high;
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
    uint64_t slot;
    hash_product(hash, count, &slot);
    return (size_t)slot;
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
