/* SPDX-License-Identifier: MIT */
/*
 * SentencePiece's BPE: beginning with single characters, the two neighbours whose joined piece has
 * the best score are merged, the leftmost of equals first. A heap has the candidates; those that a
 * merge has made impossible are recognised by their length when they reach the top. A piece that is
 * marked as unused takes part, but is split again at the end.
 */
#include <stdlib.h>

#include "text/sentencepiece_parts.h"

/* Part of the text; empty once it was merged into the one before it. */
typedef struct symbol {
    uint32_t begin, length;
    int32_t before, after; /* -1: none */
    bool is_fixed;
} symbol;

typedef struct candidate {
    float score;
    int32_t left, right;
    uint32_t length; /* of both, when it was pushed */
} candidate;

typedef struct merging {
    const sentencepiece *sp;
    const char *text;
    symbol *symbols;
    int32_t symbol_count;
    candidate *heap;
    size_t heap_count, heap_room;
    uint32_t *left_lengths; /* [unused_count]: how an unused piece was joined last */
    bool failed;
} merging;

static bool goes_first(const candidate *a, const candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void push(merging *m, candidate c)
{
    if (m->heap_count == m->heap_room) {
        const size_t room = m->heap_room * 2 + 64;
        candidate *const heap = realloc(m->heap, room * sizeof *heap);
        if (heap == NULL) {
            m->failed = true;
            return;
        }
        m->heap = heap;
        m->heap_room = room;
    }
    size_t at = m->heap_count++;
    for (; at > 0 && goes_first(&c, &m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = c;
}

static candidate pop(merging *m)
{
    const candidate top = m->heap[0], last = m->heap[--m->heap_count];
    size_t at = 0;
    for (size_t child = 1; child < m->heap_count; child = 2 * at + 1) {
        if (child + 1 < m->heap_count && goes_first(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!goes_first(&m->heap[child], &last))
            break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return top;
}

/* Pushes the pair if joined it is a piece. */
static void consider(merging *m, int32_t left, int32_t right)
{
    const vocabulary *const v = m->sp->model.vocabulary;
    if (left < 0 || right < 0 || m->symbols[left].is_fixed || m->symbols[right].is_fixed)
        return;
    const uint32_t length = m->symbols[left].length + m->symbols[right].length;
    if (length > m->sp->longest_piece)
        return;
    const int32_t id = vocab_find(v, m->text + m->symbols[left].begin, length);
    if (!is_text_piece(v, id))
        return;
    push(m, (candidate){(float)vocab_score(v, id), left, right, length});
    if (vocab_flags(v, id) & PIECE_UNUSED)
        m->left_lengths[m->sp->unused_numbers[id]] = m->symbols[left].length;
}

static void split_into_symbols(merging *m, size_t length)
{
    for (size_t at = 0; at < length;) {
        const size_t rest = length - at;
        const size_t fixed = piece_trie_longest(&m->sp->user_symbols, m->text + at, rest);
        const size_t bytes = fixed > 0 ? fixed : character_length(m->text + at, rest);
        const int32_t n = m->symbol_count++;
        m->symbols[n] =
            (symbol){(uint32_t)at, (uint32_t)bytes, n - 1, rest > bytes ? n + 1 : -1, fixed > 0};
        at += bytes;
    }
    for (int32_t n = 1; n < m->symbol_count; n++)
        consider(m, n - 1, n);
}

static void merge_pairs(merging *m)
{
    while (m->heap_count > 0 && !m->failed) {
        const candidate c = pop(m);
        symbol *const left = &m->symbols[c.left], *const right = &m->symbols[c.right];
        if (left->length == 0 || right->length == 0 || left->length + right->length != c.length)
            continue;
        left->length = c.length;
        left->after = right->after;
        if (right->after >= 0)
            m->symbols[right->after].before = c.left;
        right->length = 0;
        consider(m, left->before, c.left);
        consider(m, c.left, left->after);
    }
}

/* The bytes of the left part of an unused piece; 0: the part is a token. */
static uint32_t left_part(const merging *m, int32_t id)
{
    const bool unused = id >= 0 && vocab_flags(m->sp->model.vocabulary, id) & PIECE_UNUSED;
    return unused ? m->left_lengths[m->sp->unused_numbers[id]] : 0;
}

/* Adds the tokens of [begin, end). Unused pieces are split into their parts from the left, and the
 * rest is looked at afterwards; `ends` is a stack of where the rests end. */
static void add_symbol(const merging *m, uint32_t begin, uint32_t end, uint32_t *ends,
                       token_list *list)
{
    const vocabulary *const v = m->sp->model.vocabulary;
    size_t depth = 0;
    ends[depth++] = end;
    while (depth > 0) {
        end = ends[depth - 1];
        const int32_t id = vocab_find(v, m->text + begin, end - begin);
        const uint32_t left = left_part(m, id);
        if (left > 0 && left < end - begin) {
            ends[depth++] = begin + left;
            continue;
        }
        token_list_add(list, is_text_piece(v, id) ? id : m->sp->model.unknown_id, 0, begin, end);
        begin = end;
        depth--;
    }
}

static void add_tokens(merging *m, token_list *list)
{
    uint32_t *const ends = malloc((m->sp->longest_piece + 8) * sizeof *ends);
    m->failed = m->failed || ends == NULL;
    for (int32_t n = 0; n >= 0 && !m->failed; n = m->symbols[n].after) {
        const symbol *const s = &m->symbols[n];
        add_symbol(m, s->begin, s->begin + s->length, ends, list);
    }
    free(ends);
}

void sentencepiece_merge(const sentencepiece *sp, const char *normalized, size_t length,
                         token_list *list)
{
    merging m = {.sp = sp, .text = normalized};
    if (length == 0 || list->failed)
        return;
    if (length < INT32_MAX) {
        m.symbols = malloc(length * sizeof *m.symbols);
        m.left_lengths = calloc((size_t)sp->unused_count + 1, sizeof *m.left_lengths);
    }
    m.failed = m.symbols == NULL || m.left_lengths == NULL;
    if (!m.failed) {
        split_into_symbols(&m, length);
        merge_pairs(&m);
        add_tokens(&m, list);
    }
    list->failed = list->failed || m.failed;
    free(m.symbols);
    free(m.left_lengths);
    free(m.heap);
}
