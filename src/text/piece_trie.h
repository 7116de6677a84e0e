/* SPDX-License-Identifier: MIT */
/*
 * The pieces of a vocabulary as a tree of bytes, to find all pieces that begin at a place of a
 * text. Nodes are numbered level by level, so the children of a node are neighbours, sorted by
 * their byte.
 */
#ifndef TEXT_PIECE_TRIE_H
#define TEXT_PIECE_TRIE_H

#include "text/vocabulary.h"

typedef struct piece_trie {
    int32_t count;
    int32_t *first;      /* [count+1]: node n has the children [first[n], first[n+1]) */
    int32_t *ids;        /* [count]: of the piece that ends here; -1: none */
    unsigned char *byte; /* [count] */
    int32_t top[256];    /* the children of the root; -1: none */
} piece_trie;

/* Which pieces a trie has: those with all bits of `has` and no bit of `lacks` in their flags. */
typedef struct piece_filter {
    unsigned has, lacks;
} piece_filter;

/* False: out of memory, or pieces of more than 2^31 bytes in all. Of two ids with the same piece,
 * the smaller is taken. */
bool piece_trie_create(piece_trie *trie, const vocabulary *v, piece_filter filter);
void piece_trie_free(piece_trie *trie);

enum { PIECE_TRIE_ROOT = 0 };

/* The child of a node by its byte; -1 if there is none. */
static inline int32_t piece_trie_child(const piece_trie *trie, int32_t node, unsigned char byte)
{
    if (node == PIECE_TRIE_ROOT)
        return trie->top[byte];
    int32_t low = trie->first[node], high = trie->first[node + 1];
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (trie->byte[middle] == byte)
            return middle;
        if (trie->byte[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* The length of the longest piece that the text begins with; 0 if there is none. */
size_t piece_trie_longest(const piece_trie *trie, const char *text, size_t length);

#endif
