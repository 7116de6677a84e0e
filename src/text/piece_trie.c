/* SPDX-License-Identifier: MIT */
/*
 * A trie in three arrays (piece_trie.h). Pieces are sorted; then a node is a range of pieces with a
 * common beginning, and its children are found by walking through the range once.
 */
#include "text/piece_trie.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *piece;
    int32_t id;
} entry;

static int compare(const void *a, const void *b)
{
    const entry *const x = a, *const y = b;
    const int order = strcmp(x->piece, y->piece);
    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

/* The chosen pieces, sorted, each once. */
static entry *sorted_entries(const vocabulary *v, piece_filter filter, int32_t *count)
{
    const int32_t size = vocab_size(v);
    entry *const entries = malloc(((size_t)size + 1) * sizeof *entries);
    int32_t n = 0, unique = 0;
    if (entries == NULL)
        return NULL;
    for (int32_t id = 0; id < size; id++) {
        const unsigned flags = vocab_flags(v, id);
        const char *const piece = vocab_piece(v, id, NULL);
        if (piece != NULL && piece[0] != '\0' && (flags & filter.has) == filter.has &&
            !(flags & filter.lacks))
            entries[n++] = (entry){piece, id};
    }
    qsort(entries, (size_t)n, sizeof *entries, compare);
    for (int32_t i = 0; i < n; i++) {
        if (unique == 0 || strcmp(entries[unique - 1].piece, entries[i].piece) != 0)
            entries[unique++] = entries[i];
    }
    *count = unique;
    return entries;
}

/* A node for each byte that a piece does not share with the piece before it, and the root. */
static size_t count_nodes(const entry *entries, int32_t count)
{
    size_t nodes = 1;
    for (int32_t i = 0; i < count; i++) {
        const char *const before = i ? entries[i - 1].piece : "";
        const char *const piece = entries[i].piece;
        size_t common = 0;
        while (before[common] != '\0' && before[common] == piece[common])
            common++;
        nodes += strlen(piece + common);
    }
    return nodes;
}

/* The entries below a node. */
typedef struct range {
    int32_t begin, end;
} range;

/* Appends the children of node `n`, whose entries share `depth` bytes. */
static void add_children(piece_trie *trie, range *ranges, const entry *entries, int32_t n,
                         size_t depth)
{
    int32_t i = ranges[n].begin;
    trie->ids[n] = -1;
    trie->first[n] = trie->count;
    if (i < ranges[n].end && entries[i].piece[depth] == '\0')
        trie->ids[n] = entries[i++].id;
    while (i < ranges[n].end) {
        const char byte = entries[i].piece[depth];
        const int32_t begin = i;
        while (i < ranges[n].end && entries[i].piece[depth] == byte)
            i++;
        trie->byte[trie->count] = (unsigned char)byte;
        ranges[trie->count++] = (range){begin, i};
    }
}

static void build(piece_trie *trie, range *ranges, const entry *entries, int32_t count)
{
    int32_t level_end = 1;
    size_t depth = 0;
    ranges[0] = (range){0, count};
    trie->byte[0] = 0;
    trie->count = 1;
    for (int32_t n = 0; n < trie->count; n++) {
        if (n == level_end) {
            level_end = trie->count;
            depth++;
        }
        add_children(trie, ranges, entries, n, depth);
    }
    trie->first[trie->count] = trie->count;
    for (int byte = 0; byte < 256; byte++)
        trie->top[byte] = -1;
    for (int32_t n = trie->first[0]; n < trie->first[1]; n++)
        trie->top[trie->byte[n]] = n;
}

bool piece_trie_create(piece_trie *trie, const vocabulary *v, piece_filter filter)
{
    int32_t count = 0;
    memset(trie, 0, sizeof *trie);
    entry *const entries = sorted_entries(v, filter, &count);
    const size_t nodes = entries == NULL ? 0 : count_nodes(entries, count);
    bool done = false;
    if (entries != NULL && nodes < INT32_MAX) {
        range *const ranges = malloc(nodes * sizeof *ranges);
        trie->first = malloc((nodes + 1) * sizeof *trie->first);
        trie->ids = malloc(nodes * sizeof *trie->ids);
        trie->byte = malloc(nodes);
        done = ranges != NULL && trie->first != NULL && trie->ids != NULL && trie->byte != NULL;
        if (done)
            build(trie, ranges, entries, count);
        free(ranges);
    }
    free(entries);
    if (!done)
        piece_trie_free(trie);
    return done;
}

void piece_trie_free(piece_trie *trie)
{
    free(trie->first);
    free(trie->ids);
    free(trie->byte);
    memset(trie, 0, sizeof *trie);
}

size_t piece_trie_longest(const piece_trie *trie, const char *text, size_t length)
{
    int32_t node = PIECE_TRIE_ROOT;
    size_t longest = 0;
    for (size_t n = 0; n < length; n++) {
        node = piece_trie_child(trie, node, (unsigned char)text[n]);
        if (node < 0)
            break;
        if (trie->ids[node] >= 0)
            longest = n + 1;
    }
    return longest;
}
