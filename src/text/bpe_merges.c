/* SPDX-License-Identifier: MIT */
/*
 * Finds merges (bpe_merges.h). The characters of all distinct words are symbols in one array,
 * linked in both directions within their word:
 *
 *      word 0: l o w         word 1: l o w e r
 *              0 1 2                 3 4 5 6 7         pair (l, o): places 0 and 3
 *
 * Each pair of neighbours has its count and a list of the places where it began once. A merge
 * visits only these places and changes the counts of the pairs next to them. Pairs wait in a heap
 * with the count that they had when they were put there. Counts of waiting pairs only decrease,
 * except those of pairs that a merge has just made, which are put there again; so the first one
 * whose count is still right is the most frequent.
 */
#include "text/bpe_merges.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "text/text_buffer.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
enum { NO_PIECE = -1 };

typedef struct symbol {
    int32_t piece; /* NO_PIECE: a character without a piece, or merged into the symbol before it */
    uint32_t before, after; /* NONE at the ends of a word */
    uint32_t word;
} symbol;

/* A place of a pair, and the next one in its list. */
typedef struct place {
    uint32_t symbol, next;
} place;

typedef struct pair {
    bpe_pair pieces;
    uint64_t count;
    uint32_t first, last; /* of its list in `places`, or NONE */
    bool is_new;          /* listed in `made` */
} pair;

/* A pair that waits, with the count that it had. */
typedef struct waiting {
    uint64_t count;
    bpe_pair pieces;
    uint32_t pair;
} waiting;

typedef struct finder {
    const word_counts *words;
    const bpe_merge_limits *limits;
    vocabulary *v;
    symbol *symbols;
    size_t symbol_count;
    uint8_t *characters; /* of each piece */
    place *places;
    size_t place_count, place_room;
    pair *pairs;
    size_t pair_count, pair_room;
    uint32_t *slots; /* numbers of pairs; NONE: empty */
    size_t slot_count;
    uint64_t key;
    waiting *heap;
    size_t heap_count, heap_room;
    uint32_t *made; /* pairs that the current merge has made */
    size_t made_count, made_room;
    bool failed; /* out of memory */
} finder;

/* ----------------------------------------------------------------- pairs ----- */

static size_t slot_of(const finder *f, bpe_pair pieces)
{
    const size_t mask = f->slot_count - 1;
    const uint64_t both = (uint64_t)(uint32_t)pieces.left << 32 | (uint32_t)pieces.right;
    size_t slot = (size_t)hash_number(f->key, both) & mask;
    for (; f->slots[slot] != NONE; slot = (slot + 1) & mask) {
        const bpe_pair *const p = &f->pairs[f->slots[slot]].pieces;
        if (p->left == pieces.left && p->right == pieces.right)
            break;
    }
    return slot;
}

static bool grow_slots(finder *f)
{
    if (f->pair_count * 2 < f->slot_count)
        return true;
    const size_t count = f->slot_count ? f->slot_count * 2 : 4096;
    uint32_t *const slots = malloc(count * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0xff, count * sizeof *slots);
    free(f->slots);
    f->slots = slots;
    f->slot_count = count;
    for (size_t n = 0; n < f->pair_count; n++)
        slots[slot_of(f, f->pairs[n].pieces)] = (uint32_t)n;
    return true;
}

/* The pair, which is added if it is new; NULL: out of memory. */
static pair *find_or_add(finder *f, bpe_pair pieces)
{
    if (!grow_slots(f))
        return NULL;
    const size_t slot = slot_of(f, pieces);
    if (f->slots[slot] != NONE)
        return &f->pairs[f->slots[slot]];
    pair *const pairs = mhai_array_grow(f->pairs, &f->pair_room, f->pair_count + 1, sizeof *pairs);
    if (!pairs)
        return NULL;
    f->pairs = pairs;
    pairs[f->pair_count] = (pair){.pieces = pieces, .first = NONE, .last = NONE};
    f->slots[slot] = (uint32_t)f->pair_count;
    return &pairs[f->pair_count++];
}

/* Whether two pieces may become one. */
static bool can_merge(const finder *f, bpe_pair pieces)
{
    return pieces.left >= 0 && pieces.right >= 0 &&
           f->characters[pieces.left] + f->characters[pieces.right] <= BPE_PIECE_CHARACTERS_MAX;
}

static bpe_pair pair_at(const finder *f, uint32_t at)
{
    return (bpe_pair){f->symbols[at].piece, f->symbols[f->symbols[at].after].piece};
}

static uint64_t count_at(const finder *f, uint32_t at)
{
    return f->words->words[f->symbols[at].word].count;
}

/* Counts the pair of a symbol and the one after it, and remembers the place. */
static bool add_place(finder *f, uint32_t at)
{
    const bpe_pair pieces = pair_at(f, at);
    if (!can_merge(f, pieces))
        return true;
    place *const places =
        mhai_array_grow(f->places, &f->place_room, f->place_count + 1, sizeof *places);
    if (!places)
        return false;
    f->places = places;
    uint32_t *const made = mhai_array_grow(f->made, &f->made_room, f->made_count + 1, sizeof *made);
    if (!made)
        return false;
    f->made = made;
    pair *const p = find_or_add(f, pieces);
    if (!p)
        return false;
    const uint32_t new = (uint32_t)f->place_count++;
    places[new] = (place){at, NONE};
    if (p->first == NONE)
        p->first = new;
    else
        places[p->last].next = new;
    p->last = new;
    p->count += count_at(f, at);
    if (!p->is_new)
        made[f->made_count++] = (uint32_t)(p - f->pairs);
    p->is_new = true;
    return true;
}

/* The pair at a place is no longer there. The place stays in its list, where it is recognised. */
static void remove_place(finder *f, uint32_t at)
{
    const bpe_pair pieces = pair_at(f, at);
    if (can_merge(f, pieces))
        f->pairs[f->slots[slot_of(f, pieces)]].count -= count_at(f, at);
}

/* ------------------------------------------------------------------ heap ----- */

static bool comes_before(const waiting *a, const waiting *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    if (a->pieces.left != b->pieces.left)
        return a->pieces.left < b->pieces.left;
    return a->pieces.right < b->pieces.right;
}

/* Pairs that are not frequent enough never become so again without being made again. */
static bool push(finder *f, uint32_t number)
{
    const pair *const p = &f->pairs[number];
    const waiting new = {p->count, p->pieces, number};
    if (p->count < f->limits->pair_count)
        return true;
    waiting *const heap = mhai_array_grow(f->heap, &f->heap_room, f->heap_count + 1, sizeof *heap);
    if (!heap)
        return false;
    f->heap = heap;
    size_t at = f->heap_count++;
    for (; at > 0 && comes_before(&new, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = new;
    return true;
}

static waiting pop(finder *f)
{
    waiting *const heap = f->heap;
    const waiting top = heap[0], last = heap[--f->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < f->heap_count; at = child) {
        if (child + 1 < f->heap_count && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static bool push_made(finder *f)
{
    for (size_t n = 0; n < f->made_count; n++) {
        f->pairs[f->made[n]].is_new = false;
        if (!push(f, f->made[n]))
            return false;
    }
    f->made_count = 0;
    return true;
}

/* The number of the most frequent pair; NONE: none is frequent enough, or out of memory. */
static uint32_t take_best(finder *f)
{
    while (f->heap_count) {
        const waiting top = pop(f);
        const uint64_t now = f->pairs[top.pair].count;
        if (top.count == now)
            return top.pair;
        if (top.count > now && !push(f, top.pair)) {
            f->failed = true;
            break;
        }
    }
    return NONE;
}

/* --------------------------------------------------------------- symbols ----- */

static size_t count_characters(const word_counts *words)
{
    size_t count = 0;
    for (size_t n = 0; n < words->used; n++)
        count += ((unsigned char)words->bytes[n] & 0xc0) != 0x80;
    return count;
}

static void put_word(finder *f, size_t number, const int32_t *character_pieces)
{
    const counted_word *const word = &f->words->words[number];
    const char *const text = f->words->bytes + word->at;
    const uint32_t first = (uint32_t)f->symbol_count;
    for (size_t at = 0; at < word->length;) {
        uint32_t c = 0;
        const uint32_t here = (uint32_t)f->symbol_count++;
        at += utf8_decode(text + at, word->length - at, &c);
        f->symbols[here] = (symbol){character_pieces[c], here == first ? NONE : here - 1, here + 1,
                                    (uint32_t)number};
    }
    f->symbols[f->symbol_count - 1].after = NONE;
}

static bool put_words(finder *f, const int32_t *character_pieces)
{
    for (size_t n = 0; n < f->words->count; n++)
        put_word(f, n, character_pieces);
    for (uint32_t at = 0; at < f->symbol_count; at++)
        if (f->symbols[at].after != NONE && !add_place(f, at))
            return false;
    return push_made(f);
}

/* --------------------------------------------------------------- merging ----- */

static bool merge_at(finder *f, uint32_t at, int32_t merged)
{
    symbol *const left = &f->symbols[at], *const right = &f->symbols[left->after];
    const uint32_t before = left->before, after = right->after;
    remove_place(f, at);
    if (before != NONE)
        remove_place(f, before);
    if (after != NONE)
        remove_place(f, left->after);
    left->piece = merged;
    left->after = after;
    right->piece = NO_PIECE;
    right->after = NONE;
    if (after != NONE)
        f->symbols[after].before = at;
    return (before == NONE || add_place(f, before)) && (after == NONE || add_place(f, at));
}

static bool is_still_there(const finder *f, uint32_t at, bpe_pair pieces)
{
    if (f->symbols[at].after == NONE)
        return false;
    const bpe_pair now = pair_at(f, at);
    return now.left == pieces.left && now.right == pieces.right;
}

/* The places of a pair are in order, from left to right: all of them were found in one pass over
 * the words, or over the places of the merge that made the later one of its pieces. Of overlapping
 * pairs the left one is merged. */
static bool merge_all(finder *f, uint32_t number, int32_t merged)
{
    const bpe_pair pieces = f->pairs[number].pieces;
    for (uint32_t n = f->pairs[number].first; n != NONE; n = f->places[n].next) {
        const uint32_t at = f->places[n].symbol;
        if (is_still_there(f, at, pieces) && !merge_at(f, at, merged))
            return false;
    }
    return push_made(f);
}

/* Adds the piece of two others; returns its id, or -1 if out of memory. The piece is always new: as
 * long as no piece crosses their ends, equal texts are divided equally, so a merge joins all places
 * where its text could have been joined otherwise. */
static int32_t add_piece(finder *f, bpe_pair pieces)
{
    const int32_t id = vocab_size(f->v);
    text_buffer text = {0};
    text_buffer_add_string(&text, vocab_piece(f->v, pieces.left, NULL));
    text_buffer_add_string(&text, vocab_piece(f->v, pieces.right, NULL));
    const bool ok = !text.failed && vocab_add(f->v, id, text.bytes, text.length, 0, 0);
    text_buffer_free(&text);
    f->characters[id] = (uint8_t)(f->characters[pieces.left] + f->characters[pieces.right]);
    return ok ? id : -1;
}

static bool add_merge(bpe_pair_list *merges, bpe_pair pieces)
{
    bpe_pair *const pairs =
        mhai_array_grow(merges->pairs, &merges->room, merges->count + 1, sizeof *pairs);
    if (!pairs)
        return false;
    merges->pairs = pairs;
    pairs[merges->count++] = pieces;
    return true;
}

static bool find_all(finder *f, bpe_pair_list *merges)
{
    while (vocab_size(f->v) < f->limits->vocabulary_size) {
        const uint32_t best = take_best(f);
        if (best == NONE)
            return !f->failed;
        const bpe_pair pieces = f->pairs[best].pieces;
        const int32_t merged = add_piece(f, pieces);
        if (merged < 0 || !add_merge(merges, pieces) || !merge_all(f, best, merged))
            return false;
    }
    return true;
}

static void free_all(finder *f)
{
    free(f->symbols);
    free(f->characters);
    free(f->places);
    free(f->pairs);
    free(f->slots);
    free(f->heap);
    free(f->made);
}

mha_status bpe_find_merges(const word_counts *words, const int32_t *character_pieces,
                           const bpe_merge_limits *limits, vocabulary *v, bpe_pair_list *merges)
{
    /* A place is added per character, and at most two per merge of two symbols. */
    const size_t characters = count_characters(words);
    if (characters > BPE_MERGE_CHARACTERS_MAX)
        return MHA_ERR_LENGTH;
    finder f = {.words = words, .limits = limits, .v = v, .key = hash_key()};
    f.symbols = malloc((characters + 1) * sizeof *f.symbols);
    f.characters = malloc((size_t)limits->vocabulary_size + (size_t)vocab_size(v) + 1);
    bool ok = f.symbols && f.characters;
    if (ok) {
        memset(f.characters, 1, (size_t)vocab_size(v));
        ok = put_words(&f, character_pieces) && find_all(&f, merges);
    }
    free_all(&f);
    return ok ? MHA_OK : MHA_ERR_MEMORY;
}

void bpe_pair_list_free(bpe_pair_list *list)
{
    free(list->pairs);
    *list = (bpe_pair_list){0};
}
