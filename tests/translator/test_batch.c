/* SPDX-License-Identifier: MIT */
/* Tests of batches: sentences of the corpus as packed word numbers, and words made unknown. */
#include "support/test.h"

#include <string.h>

#include "translator/batch.h"

enum { PAIRS = 40, SEED = 11 };

static word_numbers numbers;

static batch *make(corpus_split split, uint64_t first, int pairs, double unknown)
{
    uint64_t indices[PAIRS];
    for (int n = 0; n < pairs; n++)
        indices[n] = first + (uint64_t)n;
    return batch_create(&numbers, SEED, split, indices, pairs, unknown);
}

static const char *word_text(int side, int number)
{
    static const char *const special[WORDS_SPECIAL] = {"<begin>", "<end>", "<unknown>"};
    if (number < 0 || number >= WORDS_SPECIAL + numbers.side[side].count)
        return "<none>";
    return number < WORDS_SPECIAL ? special[number]
                                  : numbers.side[side].words[number - WORDS_SPECIAL];
}

/* Checks that the words from `row` on are those of the sentence. */
static void check_words(int side, const int *words, const corpus_sentence *sentence)
{
    for (int n = 0; n < sentence->count; n++)
        CHECK(strcmp(word_text(side, words[n]), sentence->tokens[n]) == 0, "%s, not %s",
              word_text(side, words[n]), sentence->tokens[n]);
}

static void check_pair(const batch *b, int n, const corpus_pair *pair)
{
    const corpus_sentence *const english = &pair->side[CORPUS_ENGLISH];
    const corpus_sentence *const french = &pair->side[CORPUS_FRENCH];
    const int64_t source = b->starts[TRANSFORMER_SOURCE][n];
    const int64_t target = b->starts[TRANSFORMER_TARGET][n];
    CHECK(b->starts[TRANSFORMER_SOURCE][n + 1] - source == english->count + 1, "source length");
    CHECK(b->starts[TRANSFORMER_TARGET][n + 1] - target == french->count + 1, "target length");
    const int *const read = b->words[TRANSFORMER_SOURCE] + source;
    const int *const said = b->words[TRANSFORMER_TARGET] + target;
    check_words(CORPUS_ENGLISH, read, english);
    CHECK(read[english->count] == WORD_END, "source ends with %d", read[english->count]);
    CHECK(said[0] == WORD_BEGIN, "target begins with %d", said[0]);
    check_words(CORPUS_FRENCH, said + 1, french);
    check_words(CORPUS_FRENCH, b->expected + target, french);
    CHECK(b->expected[target + french->count] == WORD_END, "expected ends otherwise");
}

static void batches_are_the_corpus(void)
{
    for (int split = 0; split < CORPUS_SPLITS; split++) {
        batch *const b = make((corpus_split)split, 100, PAIRS, 0.0);
        if (!CHECK(b != NULL, "no batch"))
            return;
        CHECK(b->pairs == PAIRS, "%d pairs", b->pairs);
        for (int n = 0; n < PAIRS; n++) {
            corpus_pair pair;
            corpus_generate(SEED, (corpus_split)split, 100 + (uint64_t)n, &pair, NULL);
            check_pair(b, n, &pair);
        }
        batch_free(b);
    }
}

static void rows_know_their_places(void)
{
    batch *const b = make(CORPUS_TRAIN, 0, PAIRS, 0.0);
    if (!CHECK(b != NULL, "no batch"))
        return;
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const int64_t *const starts = b->starts[side];
        int longest = 0;
        CHECK(starts[0] == 0 && starts[PAIRS] == b->rows[side], "side %d: ends", side);
        for (int n = 0; n < PAIRS; n++) {
            const int length = (int)(starts[n + 1] - starts[n]);
            longest = length > longest ? length : longest;
            for (int k = 0; k < length; k++)
                CHECK(b->positions[side][starts[n] + k] == k, "side %d pair %d", side, n);
        }
        CHECK(b->longest[side] == longest, "side %d: %d, not %d", side, b->longest[side], longest);
    }
    batch_free(b);
}

/* Whether English token `source` and French token `target` are aligned one to one. */
static bool alone(const corpus_pair *pair, int source, int target)
{
    for (int n = 0; n < pair->side[CORPUS_FRENCH].count; n++)
        if (n != target && (pair->sources[n] >> source & 1))
            return false;
    return pair->sources[target] == UINT64_C(1) << source;
}

/* The index of the only unknown word; -1: none, -2: several. */
static int unknown_place(const int *words, int count)
{
    int place = -1;
    for (int n = 0; n < count; n++)
        if (words[n] == WORD_UNKNOWN)
            place = place == -1 ? n : -2;
    return place;
}

static int count_unknown(const batch *b, int first)
{
    int found = 0;
    for (int n = 0; n < b->pairs; n++) {
        corpus_pair pair;
        corpus_generate(SEED, CORPUS_TRAIN, (uint64_t)first + (uint64_t)n, &pair, NULL);
        const int64_t start = b->starts[TRANSFORMER_TARGET][n];
        const int *const read = b->words[TRANSFORMER_SOURCE] + b->starts[TRANSFORMER_SOURCE][n];
        const int *const said = b->words[TRANSFORMER_TARGET] + start + 1;
        const int source = unknown_place(read, pair.side[CORPUS_ENGLISH].count);
        const int target = unknown_place(said, pair.side[CORPUS_FRENCH].count);
        CHECK(unknown_place(b->expected + start, pair.side[CORPUS_FRENCH].count) == target,
              "pair %d is to say something else than it reads", n);
        if (source == -1 && target == -1)
            continue;
        found++;
        if (CHECK(source >= 0 && target >= 0, "pair %d: %d, %d", n, source, target))
            CHECK(alone(&pair, source, target), "pair %d: %s is not just %s", n,
                  pair.side[CORPUS_ENGLISH].tokens[source],
                  pair.side[CORPUS_FRENCH].tokens[target]);
    }
    return found;
}

static void unknown_words_come_in_pairs(void)
{
    int found = 0, places = 0;
    for (int first = 0; first < 25 * PAIRS; first += PAIRS) {
        batch *const b = make(CORPUS_TRAIN, (uint64_t)first, PAIRS, 0.3);
        if (!CHECK(b != NULL, "no batch"))
            return;
        found += count_unknown(b, first);
        places += b->words[TRANSFORMER_SOURCE][0] == WORD_UNKNOWN;
        batch_free(b);
    }
    CHECK(found > 240 && found < 360, "%d of 1000 sentences", found);
    CHECK(places < 10, "always the first word");
}

static void a_sentence_does_not_depend_on_its_batch(void)
{
    batch *const all = make(CORPUS_TRAIN, 0, PAIRS, 0.5), *const one =
                                                              make(CORPUS_TRAIN, 7, 1, 0.5);
    if (CHECK(all != NULL && one != NULL, "no batch"))
        for (int side = 0; side < TRANSFORMER_SIDES; side++)
            CHECK(memcmp(all->words[side] + all->starts[side][7], one->words[side],
                         (size_t)one->rows[side] * sizeof(int)) == 0,
                  "side %d", side);
    batch_free(all);
    batch_free(one);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    word_numbers_fill(&numbers);
    RUN(batches_are_the_corpus);
    RUN(rows_know_their_places);
    RUN(unknown_words_come_in_pairs);
    RUN(a_sentence_does_not_depend_on_its_batch);
    return test_end();
}
