/* SPDX-License-Identifier: MIT */
/*
 * The vocabulary of vocabulary.h: the bytes of all pieces one after another in one buffer, an entry
 * per id, and a hash table of ids with open addressing. The hash is keyed with a random number, so
 * a file cannot be made whose pieces collide.
 */
#include "text/vocabulary.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    uint32_t at; /* in the buffer of bytes */
    uint32_t length;
    uint8_t flags;
    bool exists;
} entry;

struct vocabulary {
    entry *entries;
    size_t count, room; /* count: one more than the largest id */
    double *scores;     /* [score_room], of ids less than that; NULL: all are 0 */
    size_t score_room;
    char *bytes;
    size_t used, bytes_room;
    int32_t *slots; /* ids; -1: empty */
    size_t slot_count, filled;
    uint64_t key;
};

vocabulary *vocab_create(void)
{
    vocabulary *const v = calloc(1, sizeof *v);
    if (v)
        v->key = hash_key();
    return v;
}

void vocab_free(vocabulary *v)
{
    if (!v)
        return;
    free(v->entries);
    free(v->scores);
    free(v->bytes);
    free(v->slots);
    free(v);
}

/* The slot of a piece, or the empty slot where it belongs. */
static size_t slot_of(const vocabulary *v, const char *piece, size_t length)
{
    size_t slot = hash_slot(hash_bytes(v->key, piece, length), v->slot_count);
    for (; v->slots[slot] >= 0; slot = slot + 1 < v->slot_count ? slot + 1 : 0) {
        const entry *const e = &v->entries[v->slots[slot]];
        if (e->length == length && memcmp(v->bytes + e->at, piece, length) == 0)
            break;
    }
    return slot;
}

static bool grow_slots(vocabulary *v)
{
    if (!hash_full(v->filled, v->slot_count))
        return true;
    const size_t old_count = v->slot_count;
    int32_t *const old = v->slots;
    const size_t count = hash_slots_for(v->filled + v->filled / 2 + 32);
    int32_t *const slots = malloc(count * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0xff, count * sizeof *slots);
    v->slots = slots;
    v->slot_count = count;
    for (size_t n = 0; n < old_count; n++)
        if (old[n] >= 0) {
            const entry *const e = &v->entries[old[n]];
            slots[slot_of(v, v->bytes + e->at, e->length)] = old[n];
        }
    free(old);
    return true;
}

static bool make_room(vocabulary *v, size_t id, size_t length)
{
    entry *const entries = mhai_array_grow(v->entries, &v->room, id + 1, sizeof *entries);
    if (!entries)
        return false;
    v->entries = entries;
    char *const bytes = mhai_array_grow(v->bytes, &v->bytes_room, v->used + length + 1, 1);
    if (!bytes)
        return false;
    v->bytes = bytes;
    return grow_slots(v);
}

/* Scores are stored from the first one on that is not 0. */
static bool set_score(vocabulary *v, size_t id, double score)
{
    if (score == 0 && id >= v->score_room)
        return true;
    const size_t before = v->score_room;
    double *const scores = mhai_array_grow(v->scores, &v->score_room, id + 1, sizeof *scores);
    if (!scores)
        return false;
    v->scores = scores;
    for (size_t n = before; n < v->score_room; n++)
        scores[n] = 0;
    scores[id] = score;
    return true;
}

bool vocab_add(vocabulary *v, int32_t id, const char *piece, size_t length, double score,
               unsigned flags)
{
    if (id < 0 || id >= VOCABULARY_MAX || length >= UINT32_MAX - v->used ||
        ((size_t)id < v->count && v->entries[id].exists) || !make_room(v, (size_t)id, length) ||
        !set_score(v, (size_t)id, score))
        return false;
    for (; v->count <= (size_t)id; v->count++)
        v->entries[v->count] = (entry){0};
    v->entries[id] = (entry){(uint32_t)v->used, (uint32_t)length, (uint8_t)flags, true};
    if (length)
        memcpy(v->bytes + v->used, piece, length);
    v->bytes[v->used + length] = '\0';
    v->used += length + 1;
    const size_t slot = slot_of(v, piece, length);
    if (v->slots[slot] < 0) {
        v->slots[slot] = id;
        v->filled++;
    }
    return true;
}

int32_t vocab_size(const vocabulary *v)
{
    return (int32_t)v->count;
}

int32_t vocab_find(const vocabulary *v, const char *piece, size_t length)
{
    return v->slot_count ? v->slots[slot_of(v, piece, length)] : -1;
}

int32_t vocab_find_model(const vocabulary *v, const char *piece, size_t length)
{
    const int32_t id = vocab_find(v, piece, length);
    return id >= 0 && v->entries[id].flags & PIECE_ADDED ? -1 : id;
}

static const entry *entry_of(const vocabulary *v, int32_t id)
{
    const bool exists = id >= 0 && (size_t)id < v->count && v->entries[id].exists;
    return exists ? &v->entries[id] : NULL;
}

const char *vocab_piece(const vocabulary *v, int32_t id, size_t *length)
{
    const entry *const e = entry_of(v, id);
    if (!e)
        return NULL;
    if (length)
        *length = e->length;
    return v->bytes + e->at;
}

double vocab_score(const vocabulary *v, int32_t id)
{
    return entry_of(v, id) && (size_t)id < v->score_room ? v->scores[id] : 0;
}

unsigned vocab_flags(const vocabulary *v, int32_t id)
{
    const entry *const e = entry_of(v, id);
    return e ? e->flags : 0;
}

void vocab_set_flags(vocabulary *v, int32_t id, unsigned flags)
{
    if (entry_of(v, id))
        v->entries[id].flags = (uint8_t)flags;
}
