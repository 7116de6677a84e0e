/* SPDX-License-Identifier: MIT */
/*
 * Distinct words and their counts (word_counts.h): the bytes of all words one after another, and a
 * hash table with open addressing. The hash is keyed with a random number, so that a text cannot be
 * made whose words collide.
 */
#include "text/word_counts.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* The slot of a word, or the empty slot where it belongs. */
static size_t slot_of(const word_counts *c, uint64_t hash, const char *word, size_t length)
{
    const size_t mask = c->slot_count - 1;
    size_t slot = (size_t)hash & mask;
    for (; c->slots[slot]; slot = (slot + 1) & mask) {
        const counted_word *const w = &c->words[c->slots[slot] - 1];
        if (w->hash == hash && w->length == length && memcmp(c->bytes + w->at, word, length) == 0)
            break;
    }
    return slot;
}

static bool grow_slots(word_counts *c)
{
    if (c->count * 2 < c->slot_count)
        return true;
    const size_t count = c->slot_count ? c->slot_count * 2 : 1024, mask = count - 1;
    size_t *const slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t n = 0; n < c->count; n++) {
        size_t slot = (size_t)c->words[n].hash & mask;
        while (slots[slot])
            slot = (slot + 1) & mask;
        slots[slot] = n + 1;
    }
    free(c->slots);
    c->slots = slots;
    c->slot_count = count;
    return true;
}

static bool add_new(word_counts *c, size_t slot, uint64_t hash, const char *word, size_t length)
{
    counted_word *const words = mhai_array_grow(c->words, &c->room, c->count + 1, sizeof *words);
    if (!words)
        return false;
    c->words = words;
    char *const bytes = mhai_array_grow(c->bytes, &c->bytes_room, c->used + length, 1);
    if (!bytes)
        return false;
    c->bytes = bytes;
    memcpy(bytes + c->used, word, length);
    words[c->count++] = (counted_word){c->used, length, hash, 1};
    c->used += length;
    c->slots[slot] = c->count;
    return true;
}

bool word_counts_add(word_counts *counts, const char *word, size_t length)
{
    word_counts *const c = counts;
    if (length == 0)
        return true;
    c->key = c->key ? c->key : hash_key();
    if (!grow_slots(c))
        return false;
    const uint64_t hash = hash_bytes(c->key, word, length);
    const size_t slot = slot_of(c, hash, word, length);
    if (c->slots[slot] == 0)
        return add_new(c, slot, hash, word, length);
    c->words[c->slots[slot] - 1].count++;
    return true;
}

void word_counts_free(word_counts *counts)
{
    free(counts->words);
    free(counts->bytes);
    free(counts->slots);
    *counts = (word_counts){0};
}
