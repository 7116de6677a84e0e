/* SPDX-License-Identifier: MIT */
/* Packs pairs of ids. Also converts sentences of the corpus to word numbers, and replaces some
 * words by WORD_UNKNOWN so that a model learns to copy unknown words. */
#include "translator/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

void word_numbers_fill(word_numbers *numbers)
{
    for (int side = 0; side < CORPUS_SIDES; side++)
        corpus_vocabulary_fill(&numbers->side[side], (corpus_side)side);
}

static void number_words(const word_numbers *numbers, const corpus_pair *pair, numbered_pair *out)
{
    for (int side = 0; side < CORPUS_SIDES; side++) {
        const corpus_sentence *const sentence = &pair->side[side];
        out->count[side] = sentence->count;
        for (int n = 0; n < sentence->count; n++) {
            const int found = corpus_vocabulary_find(&numbers->side[side], sentence->tokens[n]);
            out->words[side][n] = found < 0 ? WORD_UNKNOWN : WORDS_SPECIAL + found;
        }
    }
}

/* ------------------------------------------------------------- unknown ----- */

/* The French token that is aligned with English token `source` one to one; -1 if there is none. */
static int translation_of(const corpus_pair *pair, int source)
{
    int found = -1;
    for (int n = 0; n < pair->side[CORPUS_FRENCH].count; n++) {
        if (!(pair->sources[n] >> source & 1))
            continue;
        if (found >= 0 || pair->sources[n] != UINT64_C(1) << source)
            return -1;
        found = n;
    }
    return found;
}

/* Makes a random word and its translation unknown. */
static void forget_a_word(rng *r, const corpus_pair *pair, numbered_pair *numbered)
{
    int candidates[CORPUS_TOKENS_MAX], count = 0;
    for (int n = 0; n < pair->side[CORPUS_ENGLISH].count; n++)
        if (translation_of(pair, n) >= 0)
            candidates[count++] = n;
    if (count == 0)
        return;
    const int source = candidates[rng_below(r, count)];
    numbered->words[CORPUS_ENGLISH][source] = WORD_UNKNOWN;
    numbered->words[CORPUS_FRENCH][translation_of(pair, source)] = WORD_UNKNOWN;
}

/* Makes the random series of unknown words independent of that of the sentences. */
static const uint64_t forget_series = UINT64_C(0x6b79e3f1c52d84a7);

/* --------------------------------------------------------------- batch ----- */

/* Allocates the batch and its arrays as one block, with room for `rows` rows per side. */
static batch *allocate(int pairs, size_t rows)
{
    const size_t n = (size_t)pairs;
    const size_t starts_size = TRANSFORMER_SIDES * (n + 1) * sizeof(int64_t);
    batch *const b = calloc(1, sizeof *b + starts_size + 5 * rows * sizeof(int));
    if (!b)
        return NULL;
    b->pairs = pairs;
    int64_t *const starts = (int64_t *)(b + 1);
    int *const ints = (int *)(starts + TRANSFORMER_SIDES * (n + 1));
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        b->starts[side] = starts + (size_t)side * (n + 1);
        b->words[side] = ints + (size_t)(2 * side) * rows;
        b->positions[side] = ints + (size_t)(2 * side + 1) * rows;
    }
    b->expected = ints + 4 * rows;
    return b;
}

static void close_sentence(batch *b, int side, int pair, int count)
{
    int *const positions = b->positions[side] + b->rows[side];
    for (int n = 0; n < count; n++)
        positions[n] = n;
    b->rows[side] += count;
    b->starts[side][pair + 1] = b->rows[side];
    if (count > b->longest[side])
        b->longest[side] = count;
}

/* Appends the target of a pair after its begin mark. */
static void append_target(batch *b, int pair, const int *ids, int count, sentence_marks marks)
{
    int *const said = b->words[TRANSFORMER_TARGET] + b->rows[TRANSFORMER_TARGET];
    int *const expected = b->expected + b->rows[TRANSFORMER_TARGET];
    said[0] = marks.begin;
    if (count > 0) {
        memcpy(said + 1, ids, (size_t)count * sizeof *said);
        memcpy(expected, ids, (size_t)count * sizeof *expected);
    }
    expected[count] = marks.end;
    close_sentence(b, TRANSFORMER_TARGET, pair, count + 1);
}

/* Appends pair number `pair`: the source with the end mark, the target after the begin mark. */
static void append(batch *b, int pair, const id_pair *ids, sentence_marks marks)
{
    const int source = ids->count[TRANSFORMER_SOURCE];
    int *const read = b->words[TRANSFORMER_SOURCE] + b->rows[TRANSFORMER_SOURCE];
    memcpy(read, ids->ids[TRANSFORMER_SOURCE], (size_t)source * sizeof *read);
    read[source] = marks.end;
    close_sentence(b, TRANSFORMER_SOURCE, pair, source + 1);
    append_target(b, pair, ids->ids[TRANSFORMER_TARGET], ids->count[TRANSFORMER_TARGET], marks);
}

batch *batch_of_ids(const id_pair *pairs, int count, sentence_marks marks)
{
    size_t rows[TRANSFORMER_SIDES] = {0};
    for (int n = 0; n < count; n++)
        for (int side = 0; side < TRANSFORMER_SIDES; side++)
            rows[side] += (size_t)pairs[n].count[side] + 1;
    batch *const b = allocate(count, rows[0] > rows[1] ? rows[0] : rows[1]);
    for (int n = 0; b && n < count; n++)
        append(b, n, &pairs[n], marks);
    return b;
}

static const sentence_marks word_marks = {WORD_BEGIN, WORD_END};

static void append_numbered(batch *b, int pair, const numbered_pair *numbered)
{
    const id_pair ids = {{numbered->words[CORPUS_ENGLISH], numbered->words[CORPUS_FRENCH]},
                         {numbered->count[CORPUS_ENGLISH], numbered->count[CORPUS_FRENCH]}};
    append(b, pair, &ids, word_marks);
}

/* Room for `pairs` sentences of the corpus. */
static batch *allocate_numbered(int pairs)
{
    return allocate(pairs, (size_t)pairs * (CORPUS_TOKENS_MAX + 1));
}

batch *batch_pack(const numbered_pair *pairs, int count)
{
    batch *const b = allocate_numbered(count);
    for (int n = 0; b && n < count; n++)
        append_numbered(b, n, &pairs[n]);
    return b;
}

batch *batch_create(const word_numbers *numbers, uint64_t seed, corpus_split split,
                    const uint64_t *indices, int pairs, double unknown)
{
    batch *const b = allocate_numbered(pairs);
    if (!b)
        return NULL;
    for (int n = 0; n < pairs; n++) {
        corpus_pair pair;
        numbered_pair numbered;
        corpus_generate(seed, split, indices[n], &pair, NULL);
        number_words(numbers, &pair, &numbered);
        rng r = rng_for(seed ^ forget_series, indices[n]);
        if (rng_unit(&r) < unknown)
            forget_a_word(&r, &pair, &numbered);
        append_numbered(b, n, &numbered);
    }
    return b;
}

/* The rows of pairs [first, end) of a side. */
static void copy_side(batch *to, const batch *from, int side, int first, int end)
{
    const int64_t row = from->starts[side][first];
    const size_t bytes = (size_t)(from->starts[side][end] - row) * sizeof(int);
    memcpy(to->words[side], from->words[side] + row, bytes);
    if (side == TRANSFORMER_TARGET)
        memcpy(to->expected, from->expected + row, bytes);
    for (int n = first; n < end; n++)
        close_sentence(to, side, n - first,
                       (int)(from->starts[side][n + 1] - from->starts[side][n]));
}

/* Room for the pixels of all pictures and, where they can be mixed, for how. */
static bool add_pixels(batch *b, size_t picture_floats, bool mixes)
{
    const size_t count = (size_t)b->pairs, floats = count * picture_floats;
    const size_t mixed = mixes ? count * (sizeof *b->shares + sizeof *b->others) : 0;
    b->picture_floats = picture_floats;
    b->pixels = calloc(1, floats * sizeof *b->pixels + mixed + 1);
    if (b->pixels && mixes) {
        b->shares = b->pixels + floats;
        b->others = (int *)(b->shares + count);
    }
    return b->pixels != NULL;
}

/* An empty batch of pictures; NULL if out of memory. */
static batch *allocate_pictures(int pictures, size_t rows, size_t picture_floats, bool mixes)
{
    batch *const b = allocate(pictures, rows);
    if (b && add_pixels(b, picture_floats, mixes))
        return b;
    batch_free(b);
    return NULL;
}

batch *batch_of_pictures(int pictures, int tokens, size_t picture_floats)
{
    const size_t rows = (size_t)pictures * (size_t)tokens;
    batch *const b = allocate_pictures(pictures, rows, picture_floats, true);
    for (int n = 0; b && n < pictures; n++) {
        close_sentence(b, TRANSFORMER_SOURCE, n, tokens);
        close_sentence(b, TRANSFORMER_TARGET, n, 1);
    }
    return b;
}

batch *batch_of_captions(const caption_ids *captions, int pictures, int end, int tokens,
                         size_t picture_floats)
{
    const size_t source = (size_t)pictures * (size_t)tokens;
    size_t target = 0;
    for (int n = 0; n < pictures; n++)
        target += (size_t)captions[n].count + 1;
    batch *const b =
        allocate_pictures(pictures, source > target ? source : target, picture_floats, false);
    for (int n = 0; b && n < pictures; n++) {
        const sentence_marks marks = {captions[n].begin, end};
        close_sentence(b, TRANSFORMER_SOURCE, n, tokens);
        append_target(b, n, captions[n].ids, captions[n].count, marks);
    }
    return b;
}

static bool add_things(batch *b, int room)
{
    const size_t pictures = (size_t)b->pairs;
    b->things_room = room;
    b->thing_counts = calloc(pictures + 1, sizeof *b->thing_counts);
    b->things = calloc(pictures * (size_t)room + 1, sizeof *b->things);
    return b->thing_counts != NULL && b->things != NULL;
}

batch *batch_of_queries(int pictures, int tokens, int queries, int room, size_t picture_floats)
{
    const size_t rows = (size_t)pictures * (size_t)(tokens > queries ? tokens : queries);
    batch *const b = allocate_pictures(pictures, rows, picture_floats, false);
    if (b && !add_things(b, room)) {
        batch_free(b);
        return NULL;
    }
    for (int n = 0; b && n < pictures; n++) {
        for (int k = 0; k < queries; k++)
            b->words[TRANSFORMER_TARGET][n * queries + k] = k;
        close_sentence(b, TRANSFORMER_SOURCE, n, tokens);
        close_sentence(b, TRANSFORMER_TARGET, n, queries);
    }
    return b;
}

/* The things of pairs [first, first + to->pairs). */
static void copy_things(batch *to, const batch *from, int first)
{
    const size_t at = (size_t)first, count = (size_t)to->pairs, room = (size_t)from->things_room;
    memcpy(to->thing_counts, from->thing_counts + at, count * sizeof *to->thing_counts);
    memcpy(to->things, from->things + at * room, count * room * sizeof *to->things);
}

/* The pictures of pairs [first, first + to->pairs). */
static void copy_pictures(batch *to, const batch *from, int first)
{
    const size_t at = (size_t)first, count = (size_t)to->pairs, floats = from->picture_floats;
    memcpy(to->pixels, from->pixels + at * floats, count * floats * sizeof *to->pixels);
    if (!from->shares)
        return;
    memcpy(to->others, from->others + at, count * sizeof *to->others);
    memcpy(to->shares, from->shares + at, count * sizeof *to->shares);
}

batch *batch_part(const batch *whole, int first, int end)
{
    size_t most = 0;
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const size_t rows = (size_t)(whole->starts[side][end] - whole->starts[side][first]);
        most = rows > most ? rows : most;
    }
    batch *const b = whole->pixels ? allocate_pictures(end - first, most, whole->picture_floats,
                                                       whole->shares != NULL)
                                   : allocate(end - first, most);
    if (b && whole->things && !add_things(b, whole->things_room)) {
        batch_free(b);
        return NULL;
    }
    for (int side = 0; b && side < TRANSFORMER_SIDES; side++)
        copy_side(b, whole, side, first, end);
    if (b && whole->pixels)
        copy_pictures(b, whole, first);
    if (b && whole->things)
        copy_things(b, whole, first);
    return b;
}

void batch_free(batch *b)
{
    if (b) {
        free(b->pixels);
        free(b->thing_counts);
        free(b->things);
    }
    free(b);
}
