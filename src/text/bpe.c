/* SPDX-License-Identifier: MIT */
/*
 * Byte pair encoding (bpe.h). A word is a list of symbols in an array, linked in both directions.
 * Pairs wait in a heap by rank and place; a pair that has changed since it was put there is ignored
 * when it is taken out. Short words need no heap: the best pair is searched in the list.
 */
#include "text/bpe.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_WORD = 24, NONE = -1 };

typedef struct merge {
    int32_t left, right; /* left -1: an empty slot */
    int32_t rank, merged;
} merge;

struct bpe {
    const vocabulary *v;
    bpe_config config;
    char *prefix, *suffix;
    size_t prefix_length, suffix_length, longest_piece;
    merge *merges;
    size_t merge_count, slot_count;
    uint64_t key;
    int32_t next_rank;
    int32_t latin[0x250]; /* pieces of single characters, without prefix and suffix */
};

typedef struct symbol {
    int32_t id;
    uint32_t begin;  /* of the bytes of the word, with ranks by vocabulary */
    uint32_t length; /* bytes of the word; 0: merged into the symbol before it */
    int32_t before, after;
} symbol;

typedef struct pair {
    int32_t rank, merged;
    int32_t place;
} pair;

struct bpe_work {
    symbol *symbols;
    size_t count, room;
    pair *heap;
    size_t heap_count, heap_room;
    double dropout;
    rng random;
    pair *passed; /* over, since the last merge */
    size_t passed_count, passed_room;
    text_buffer text;
    bool failed;
};

/* ----------------------------------------------------------------- model ----- */

static char *copy_of(const char *text, size_t *length)
{
    *length = text ? strlen(text) : 0;
    return *length ? text_copy(text) : NULL;
}

static size_t longest_piece(const vocabulary *v)
{
    size_t longest = 0, length;
    for (int32_t id = 0; id < vocab_size(v); id++)
        if (vocab_piece(v, id, &length) && length > longest)
            longest = length;
    return longest;
}

bpe *bpe_create(const vocabulary *v, const bpe_config *config)
{
    bpe *const model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    model->v = v;
    model->config = *config;
    model->key = hash_key();
    model->prefix = copy_of(config->prefix, &model->prefix_length);
    model->suffix = copy_of(config->suffix, &model->suffix_length);
    model->longest_piece = longest_piece(v);
    for (uint32_t c = 0; c < 0x250; c++) {
        char bytes[4];
        model->latin[c] = vocab_find_model(v, bytes, utf8_encode(bytes, c));
    }
    if ((model->prefix_length && !model->prefix) || (model->suffix_length && !model->suffix)) {
        bpe_free(model);
        return NULL;
    }
    return model;
}

void bpe_free(bpe *model)
{
    if (!model)
        return;
    free(model->prefix);
    free(model->suffix);
    free(model->merges);
    free(model);
}

static size_t slot_of(const bpe *model, int32_t left, int32_t right)
{
    const uint64_t both = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t slot = hash_slot(hash_number(model->key, both), model->slot_count);
    while (model->merges[slot].left >= 0 &&
           (model->merges[slot].left != left || model->merges[slot].right != right))
        slot = slot + 1 < model->slot_count ? slot + 1 : 0;
    return slot;
}

/* Room for so many merges in all. */
bool bpe_reserve(bpe *model, size_t merges)
{
    const size_t old_count = model->slot_count, count = hash_slots_for(merges);
    merge *const old = model->merges;
    if (count <= old_count)
        return true;
    if (count > SIZE_MAX / sizeof *old)
        return false;
    merge *const slots = malloc(count * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0xff, count * sizeof *slots);
    model->merges = slots;
    model->slot_count = count;
    for (size_t n = 0; n < old_count; n++)
        if (old[n].left >= 0)
            slots[slot_of(model, old[n].left, old[n].right)] = old[n];
    free(old);
    return true;
}

bool bpe_add_merge(bpe *model, int32_t left, int32_t right, int32_t merged)
{
    if (hash_full(model->merge_count, model->slot_count) &&
        !bpe_reserve(model, model->merge_count + model->merge_count / 2 + 64))
        return false;
    merge *const slot = &model->merges[slot_of(model, left, right)];
    model->merge_count += slot->left < 0;
    *slot = (merge){left, right, model->next_rank++, merged};
    return true;
}

/* --------------------------------------------------------------- symbols ----- */

bpe_work *bpe_work_create(const bpe_dropout *dropout)
{
    bpe_work *const work = calloc(1, sizeof *work);
    if (work && dropout) {
        work->dropout = dropout->probability;
        work->random = rng_for(dropout->seed, 0);
    }
    return work;
}

void bpe_work_free(bpe_work *work)
{
    if (!work)
        return;
    free(work->symbols);
    free(work->heap);
    free(work->passed);
    text_buffer_free(&work->text);
    free(work);
}

static void add_symbol(bpe_work *work, int32_t id, size_t begin, size_t length)
{
    symbol *const symbols = work->failed ? NULL
                                         : mhai_array_grow(work->symbols, &work->room,
                                                           work->count + 1, sizeof *symbols);
    if (!symbols) {
        work->failed = true;
        return;
    }
    work->symbols = symbols;
    const int32_t number = (int32_t)work->count++;
    symbols[number] = (symbol){id, (uint32_t)begin, (uint32_t)length, number - 1, number + 1};
}

static int32_t byte_piece(const bpe *model, unsigned char byte)
{
    char piece[8];
    snprintf(piece, sizeof piece, "<0x%02X>", byte);
    return vocab_find_model(model->v, piece, 6);
}

/* The bytes of a character as pieces of their own; false if one of them has none. */
static bool add_bytes(const bpe *model, bpe_work *work, const char *text, size_t length,
                      size_t begin)
{
    for (size_t n = 0; n < length; n++)
        if (byte_piece(model, (unsigned char)text[n]) < 0)
            return false;
    for (size_t n = 0; n < length; n++)
        add_symbol(work, byte_piece(model, (unsigned char)text[n]), begin, 1);
    return true;
}

/* The text of a character with prefix and suffix. */
static const char *decorate(const bpe *model, bpe_work *work, const char *text, size_t *length,
                            bool first, bool last)
{
    if ((first || !model->prefix) && (!last || !model->suffix))
        return text;
    work->text.length = 0;
    if (!first)
        text_buffer_add(&work->text, model->prefix, model->prefix_length);
    text_buffer_add(&work->text, text, *length);
    if (last)
        text_buffer_add(&work->text, model->suffix, model->suffix_length);
    work->failed |= work->text.failed;
    *length = work->text.length;
    return work->failed ? text : work->text.bytes;
}

static int32_t piece_of(const bpe *model, const char *text, size_t length, uint32_t c, bool plain)
{
    return plain && c < 0x250 ? model->latin[c] : vocab_find_model(model->v, text, length);
}

/* Unknown characters wait, so that the next one can be fused with them. */
static void begin_symbols(const bpe *model, const char *word, size_t length, bpe_work *work)
{
    size_t unknown = 0, unknown_begin = 0;
    work->count = 0;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t c = 0xfffd;
        bytes = utf8_decode(word + at, length - at, &c);
        bytes += bytes == 0;
        size_t text_length = bytes;
        const char *const text =
            decorate(model, work, word + at, &text_length, at == 0, at + bytes == length);
        const int32_t id = piece_of(model, text, text_length, c, text == word + at);
        if (id < 0 && model->config.byte_fallback && add_bytes(model, work, text, text_length, at))
            continue;
        if (unknown && (id >= 0 || (model->config.unknown >= 0 && !model->config.fuse_unknown))) {
            add_symbol(work, model->config.unknown, unknown_begin, unknown);
            unknown = 0;
        }
        if (id >= 0)
            add_symbol(work, id, at, bytes);
        else if (model->config.unknown >= 0) {
            unknown_begin = unknown ? unknown_begin : at;
            unknown += bytes;
        }
    }
    if (unknown)
        add_symbol(work, model->config.unknown, unknown_begin, unknown);
    if (work->count && !work->failed)
        work->symbols[work->count - 1].after = NONE;
}

/* ----------------------------------------------------------------- pairs ----- */

/* The rank of the pair of a symbol and the one after it, and what they become; false if they are
 * not merged. */
static bool find_pair(const bpe *model, const bpe_work *work, const char *word, int32_t place,
                      pair *found)
{
    const symbol *const left = &work->symbols[place];
    if (left->after < 0)
        return false;
    const symbol *const right = &work->symbols[left->after];
    found->place = place;
    if (model->config.by_vocabulary) {
        const size_t length = left->length + right->length;
        found->merged = length <= model->longest_piece
                            ? vocab_find_model(model->v, word + left->begin, length)
                            : -1;
        found->rank = found->merged;
        return found->merged >= 0;
    }
    if (!model->slot_count)
        return false;
    const merge *const slot = &model->merges[slot_of(model, left->id, right->id)];
    found->rank = slot->rank;
    found->merged = slot->merged;
    return slot->left >= 0;
}

static void merge_at(bpe_work *work, int32_t place, int32_t merged)
{
    symbol *const left = &work->symbols[place], *const right = &work->symbols[left->after];
    left->id = merged;
    left->length += right->length;
    left->after = right->after;
    right->length = 0;
    if (left->after >= 0)
        work->symbols[left->after].before = place;
}

/* At most SHORT_WORD symbols. The ranks of all pairs are kept beside them. */
static void merge_short(const bpe *model, const char *word, bpe_work *work)
{
    pair pairs[SHORT_WORD];
    bool exists[SHORT_WORD];
    for (int32_t n = 0; n < (int32_t)work->count; n++)
        exists[n] = find_pair(model, work, word, n, &pairs[n]);
    for (;;) {
        int32_t best = NONE;
        for (int32_t n = 0; n >= 0; n = work->symbols[n].after)
            if (exists[n] && (best < 0 || pairs[n].rank < pairs[best].rank))
                best = n;
        if (best < 0)
            return;
        merge_at(work, best, pairs[best].merged);
        exists[best] = find_pair(model, work, word, best, &pairs[best]);
        const int32_t before = work->symbols[best].before;
        if (before >= 0)
            exists[before] = find_pair(model, work, word, before, &pairs[before]);
    }
}

static bool comes_before(const pair *a, const pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

static void push_pair(bpe_work *work, const pair *new)
{
    pair *const heap = work->failed ? NULL
                                    : mhai_array_grow(work->heap, &work->heap_room,
                                                      work->heap_count + 1, sizeof *heap);
    if (!heap) {
        work->failed = true;
        return;
    }
    work->heap = heap;
    size_t at = work->heap_count++;
    for (; at > 0 && comes_before(new, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = *new;
}

static pair pop_pair(bpe_work *work)
{
    pair *const heap = work->heap;
    const pair top = heap[0], last = heap[--work->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < work->heap_count; at = child) {
        if (child + 1 < work->heap_count && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static void push_at(const bpe *model, const char *word, bpe_work *work, int32_t place)
{
    pair found;
    if (place >= 0 && find_pair(model, work, word, place, &found))
        push_pair(work, &found);
}

/* Whether a pair is passed over now. */
static bool pass_over(bpe_work *work, const pair *top)
{
    if (work->dropout <= 0 || rng_unit(&work->random) >= work->dropout)
        return false;
    pair *const passed =
        mhai_array_grow(work->passed, &work->passed_room, work->passed_count + 1, sizeof *passed);
    work->failed |= !passed;
    if (!passed)
        return true;
    work->passed = passed;
    passed[work->passed_count++] = *top;
    return true;
}

static void push_passed(bpe_work *work)
{
    for (size_t n = 0; n < work->passed_count; n++)
        push_pair(work, &work->passed[n]);
    work->passed_count = 0;
}

static void merge_long(const bpe *model, const char *word, bpe_work *work)
{
    work->heap_count = work->passed_count = 0;
    for (int32_t n = 0; n < (int32_t)work->count; n++)
        push_at(model, word, work, n);
    while (work->heap_count && !work->failed) {
        const pair top = pop_pair(work);
        pair now;
        if (work->symbols[top.place].length == 0 ||
            !find_pair(model, work, word, top.place, &now) || now.merged != top.merged ||
            pass_over(work, &top))
            continue;
        push_passed(work);
        merge_at(work, top.place, top.merged);
        push_at(model, word, work, work->symbols[top.place].before);
        push_at(model, word, work, top.place);
    }
}

/* The place of a token is the sum of the lengths before it: characters without a token do not
 * count, as in "tokenizers". */
void bpe_encode(const bpe *model, const char *word, size_t length, bpe_work *work, token_list *list)
{
    const int32_t whole = model->config.whole_words ? vocab_find_model(model->v, word, length) : -1;
    if (length == 0)
        return;
    if (whole >= 0) {
        token_list_add(list, whole, 0, 0, length);
        return;
    }
    begin_symbols(model, word, length, work);
    if (work->failed) {
        list->failed = true;
        return;
    }
    if (work->count > SHORT_WORD || work->dropout > 0)
        merge_long(model, word, work);
    else if (work->count)
        merge_short(model, word, work);
    size_t at = 0;
    for (size_t n = 0; n < work->count && !work->failed; n++) {
        const symbol *const s = &work->symbols[n];
        if (s->length == 0)
            continue;
        const bool unknown = s->id == model->config.unknown;
        token_list_add(list, s->id, unknown ? MHA_TOKEN_UNKNOWN : 0, at, at + s->length);
        at += s->length;
    }
    list->failed |= work->failed;
}
