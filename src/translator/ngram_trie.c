/* SPDX-License-Identifier: MIT */
/* A trie in a hash table with open addressing. A slot holds the number of a node, which is valid if
 * the node names the slot in turn; so a new sentence begins without clearing the table. */
#include "translator/ngram_trie.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"

enum { FIRST_SLOTS = 256 };

static uint64_t key_of(int32_t parent, uint32_t symbol)
{
    return (uint64_t)(uint32_t)parent << 32 | symbol;
}

/* The slot of a key: the one that has it, or a free one. */
static size_t find_slot(const ngram_trie *trie, uint64_t key)
{
    const size_t mask = trie->slot_count - 1;
    size_t at = (size_t)hash_number(trie->hash_key, key) & mask;
    for (;; at = (at + 1) & mask) {
        const uint32_t node = trie->slots[at];
        if (node >= trie->count || node < TRIE_ROOTS || trie->nodes[node].slot != at ||
            trie->nodes[node].key == key)
            return at;
    }
}

static bool slot_has(const ngram_trie *trie, size_t at, uint64_t key)
{
    const uint32_t node = trie->slots[at];
    return node >= TRIE_ROOTS && node < trie->count && trie->nodes[node].slot == at &&
           trie->nodes[node].key == key;
}

/* A table of another size with the nodes of this sentence. */
static mha_status resize(ngram_trie *trie, size_t slot_count)
{
    uint32_t *const slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return MHA_ERR_MEMORY;
    free(trie->slots);
    trie->slots = slots;
    trie->slot_count = slot_count;
    const size_t count = trie->count;
    for (trie->count = TRIE_ROOTS; trie->count < count; trie->count++) {
        const size_t at = find_slot(trie, trie->nodes[trie->count].key);
        trie->slots[at] = (uint32_t)trie->count;
        trie->nodes[trie->count].slot = (uint32_t)at;
    }
    return MHA_OK;
}

/* Room for one more node, with a table that is at most half full. */
static mha_status make_room(ngram_trie *trie)
{
    ngram_node *const nodes =
        mhai_array_grow(trie->nodes, &trie->room, trie->count + 1, sizeof *nodes);
    if (nodes == NULL)
        return MHA_ERR_MEMORY;
    trie->nodes = nodes;
    return 2 * (trie->count + 1) > trie->slot_count ? resize(trie, 2 * trie->slot_count) : MHA_OK;
}

mha_status ngram_trie_begin(ngram_trie *trie)
{
    if (trie->slots == NULL) {
        trie->hash_key = hash_key();
        trie->nodes = mhai_array_grow(trie->nodes, &trie->room, TRIE_ROOTS, sizeof *trie->nodes);
        if (trie->nodes == NULL || resize(trie, FIRST_SLOTS) != MHA_OK)
            return MHA_ERR_MEMORY;
    }
    trie->count = TRIE_ROOTS;
    return MHA_OK;
}

void ngram_trie_free(ngram_trie *trie)
{
    free(trie->nodes);
    free(trie->slots);
    *trie = (ngram_trie){.nodes = NULL};
}

int32_t ngram_trie_find(const ngram_trie *trie, int32_t parent, uint32_t symbol)
{
    const uint64_t key = key_of(parent, symbol);
    const size_t at = find_slot(trie, key);
    return slot_has(trie, at, key) ? (int32_t)trie->slots[at] : -1;
}

int32_t ngram_trie_add(ngram_trie *trie, int32_t parent, uint32_t symbol)
{
    if (make_room(trie) != MHA_OK)
        return -1;
    const uint64_t key = key_of(parent, symbol);
    const size_t at = find_slot(trie, key);
    if (!slot_has(trie, at, key)) {
        trie->slots[at] = (uint32_t)trie->count;
        trie->nodes[trie->count++] = (ngram_node){.key = key, .slot = (uint32_t)at};
    }
    return (int32_t)trie->slots[at];
}

mha_status ngram_trie_say(ngram_trie *trie, const uint32_t *symbols, size_t count, int order)
{
    for (size_t first = 0; first < count; first++) {
        int32_t node = TRIE_NGRAMS;
        for (size_t n = 0; n < (size_t)order && first + n < count; n++) {
            node = ngram_trie_add(trie, node, symbols[first + n]);
            if (node < 0)
                return MHA_ERR_MEMORY;
            trie->nodes[node].said++;
        }
    }
    return MHA_OK;
}

void ngram_trie_match(ngram_trie *trie, const uint32_t *symbols, size_t count, int order,
                      int32_t reference, int64_t *alone, int64_t *together)
{
    for (size_t first = 0; first < count; first++) {
        int32_t at = TRIE_NGRAMS;
        for (size_t n = 0; n < (size_t)order && first + n < count; n++) {
            at = ngram_trie_find(trie, at, symbols[first + n]);
            if (at < 0)
                break;
            ngram_node *const node = &trie->nodes[at];
            if (node->reference != reference)
                node->now = 0;
            node->reference = reference;
            node->now++;
            alone[n] += node->now <= node->said;
            together[n] += node->now > node->best && node->now <= node->said;
            if (node->now > node->best)
                node->best = node->now;
        }
    }
}
