/* SPDX-License-Identifier: MIT */
/*
 * The n-grams of one sentence as the nodes of a trie, with their counts: those of a hypothesis, and
 * those of the references it is compared with. Both metrics, bleu.h and chrf.h, use it.
 *
 * A node is found from another node and a symbol in constant time, by a table with a random key, so
 * that no text can be made to be slow. The counts do not depend on the key.
 */
#ifndef TRANSLATOR_NGRAM_TRIE_H
#define TRANSLATOR_NGRAM_TRIE_H

#include <stddef.h>
#include <stdint.h>

#include <mha/mha.h>

/* Two tries in one: nodes of words (a path of bytes), and nodes of n-grams. */
enum { TRIE_WORDS, TRIE_NGRAMS, TRIE_ROOTS };

/* The longest text, in bytes: its nodes can be counted by an int32_t, with room to spare. */
enum { METRIC_TEXT_MAX = 1 << 27 };

typedef struct ngram_node {
    uint64_t key;      /* parent and symbol */
    uint32_t slot;     /* where the table has this node */
    int32_t said;      /* how often the hypothesis has the n-gram */
    int32_t reference; /* the reference that `now` counts */
    int32_t now, best; /* how often this reference has it; the most of all references so far */
} ngram_node;

/* Initialised to zero. */
typedef struct ngram_trie {
    ngram_node *nodes;
    size_t count, room;
    uint32_t *slots; /* [slot_count], a power of two */
    size_t slot_count;
    uint64_t hash_key;
} ngram_trie;

/* Begins a sentence: only the roots are left. */
mha_status ngram_trie_begin(ngram_trie *trie);
void ngram_trie_free(ngram_trie *trie);

/* The node below `parent` for this symbol; -1 if there is none. */
int32_t ngram_trie_find(const ngram_trie *trie, int32_t parent, uint32_t symbol);

/* The same; a node that is missing is added. -1 if out of memory. */
int32_t ngram_trie_add(ngram_trie *trie, int32_t parent, uint32_t symbol);

/* Adds the n-grams of a hypothesis, up to the given order, to those it has. */
mha_status ngram_trie_say(ngram_trie *trie, const uint32_t *symbols, size_t count, int order);

/*
 * Counts the n-grams of reference number `reference` (from 1, each number once):
 *      alone[n]    those of order n + 1 that the hypothesis has as well, each at most as often
 *      together[n] by how many this reference increases the matches with all references
 * Symbols that are not below 0xffffffff never match.
 */
void ngram_trie_match(ngram_trie *trie, const uint32_t *symbols, size_t count, int order,
                      int32_t reference, int64_t *alone, int64_t *together);

/* N-grams of an order, from 1, in a sequence. */
static inline int64_t ngram_count(size_t symbols, int order)
{
    return symbols < (size_t)order ? 0 : (int64_t)symbols - order + 1;
}

#endif
