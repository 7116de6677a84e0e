/* SPDX-License-Identifier: MIT */
/*
 * Statistics of the corpus for "mha corpus". Sentences and combinations are collected as 64-bit
 * hashes in arrays, which are sorted at the end to count distinct ones and those that two splits
 * share.
 */
#include "corpus/corpus_stats.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------ sets of numbers ---- */

typedef struct number_set {
    uint64_t *items;
    size_t count, room;
} number_set;

static bool set_add(number_set *set, uint64_t item)
{
    if (set->count == set->room) {
        const size_t room = set->room == 0 ? 1024 : 2 * set->room;
        uint64_t *items = realloc(set->items, room * sizeof *items);
        if (items == NULL)
            return false;
        set->items = items;
        set->room = room;
    }
    set->items[set->count++] = item;
    return true;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the set and removes duplicates. */
static void set_finish(number_set *set)
{
    size_t kept = 0;
    if (set->count > 0)
        qsort(set->items, set->count, sizeof set->items[0], compare);
    for (size_t n = 0; n < set->count; n++)
        if (kept == 0 || set->items[n] != set->items[kept - 1])
            set->items[kept++] = set->items[n];
    set->count = kept;
}

static int64_t set_shared(const number_set *a, const number_set *b)
{
    int64_t shared = 0;
    for (size_t n = 0; n < a->count && b->count > 0; n++)
        shared += bsearch(&a->items[n], b->items, b->count, sizeof b->items[0], compare) != NULL;
    return shared;
}

static uint64_t hash_sentence(const corpus_sentence *sentence)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int n = 0; n < sentence->count; n++)
        h = corpus_hash(h, sentence->tokens[n]);
    return h;
}

/* ------------------------------------------------------------ one split ---- */

typedef struct split_sets {
    number_set sentences, combinations, held_out;
    bool seen[CORPUS_SIDES][CORPUS_WORDS_MAX];
} split_sets;

static void count_side(corpus_split_stats *stats, split_sets *sets, corpus_side side,
                       const corpus_sentence *sentence, const corpus_vocabulary *vocabulary)
{
    stats->tokens[side] += sentence->count;
    if (stats->shortest[side] == 0 || sentence->count < stats->shortest[side])
        stats->shortest[side] = sentence->count;
    if (sentence->count > stats->longest[side])
        stats->longest[side] = sentence->count;
    for (int n = 0; n < sentence->count; n++) {
        const int word = corpus_vocabulary_find(vocabulary, sentence->tokens[n]);
        if (word >= 0 && !sets->seen[side][word]) {
            sets->seen[side][word] = true;
            stats->words[side]++;
        }
    }
}

static bool count_combinations(split_sets *sets, const corpus_derivation *derivation,
                               corpus_split split)
{
    corpus_combination list[CORPUS_COMBINATIONS_MAX];
    const int count = corpus_combinations(derivation, list);
    for (int n = 0; n < count; n++) {
        const uint64_t h =
            corpus_hash(corpus_hash((uint64_t)list[n].kind, list[n].first), list[n].second);
        if (!set_add(&sets->combinations, h))
            return false;
        if (corpus_combination_split(&list[n]) == split && !set_add(&sets->held_out, h))
            return false;
    }
    return true;
}

static bool count_split(corpus_stats *stats, split_sets *sets, corpus_split split, uint64_t seed,
                        const corpus_vocabulary vocabularies[CORPUS_SIDES])
{
    corpus_split_stats *own = &stats->split[split];
    corpus_derivation derivation;
    corpus_pair pair;
    for (int64_t n = 0; n < stats->sentences; n++) {
        corpus_generate(seed, split, (uint64_t)n, &pair, &derivation);
        for (int side = 0; side < CORPUS_SIDES; side++)
            count_side(own, sets, (corpus_side)side, &pair.side[side], &vocabularies[side]);
        if (!set_add(&sets->sentences, hash_sentence(&pair.side[CORPUS_ENGLISH])) ||
            !count_combinations(sets, &derivation, split))
            return false;
    }
    set_finish(&sets->sentences);
    set_finish(&sets->combinations);
    set_finish(&sets->held_out);
    own->distinct = (int64_t)sets->sentences.count;
    own->combinations = (int64_t)sets->combinations.count;
    own->held_out = (int64_t)sets->held_out.count;
    return true;
}

/* -------------------------------------------------------------- grammar ---- */

static void count_possible(corpus_stats *stats, corpus_role_kind kind, const char *first,
                           const char *second)
{
    const corpus_combination combination = {kind, first, second};
    stats->possible[kind][corpus_combination_split(&combination)]++;
}

/* Counts all combinations that the lexicon allows, by kind and split. */
static void count_grammar(corpus_stats *stats)
{
    for (int n = 0; n < lexicon_noun_count; n++) {
        const lexicon_noun *noun = &lexicon_nouns[n];
        const char *name = noun->english[0];
        for (int k = 0; k < lexicon_adjective_count; k++)
            if (lexicon_adjectives[k].kinds & noun->kinds)
                count_possible(stats, ROLE_ADJECTIVE_NOUN, lexicon_adjectives[k].english, name);
        for (int k = 0; k < lexicon_verb_count; k++) {
            if (lexicon_verbs[k].subjects & noun->kinds)
                count_possible(stats, ROLE_SUBJECT_VERB, name, lexicon_verbs[k].name);
            if (lexicon_verbs[k].objects & noun->kinds)
                count_possible(stats, ROLE_VERB_OBJECT, lexicon_verbs[k].name, name);
        }
    }
}

/* -------------------------------------------------------------- measure ---- */

static bool measure(corpus_stats *stats, split_sets sets[CORPUS_SPLITS], uint64_t seed)
{
    corpus_vocabulary vocabularies[CORPUS_SIDES];
    for (int side = 0; side < CORPUS_SIDES; side++) {
        corpus_vocabulary_fill(&vocabularies[side], (corpus_side)side);
        stats->vocabulary[side] = vocabularies[side].count;
    }
    for (int split = 0; split < CORPUS_SPLITS; split++)
        if (!count_split(stats, &sets[split], (corpus_split)split, seed, vocabularies))
            return false;
    const split_sets *train = &sets[CORPUS_TRAIN];
    for (int split = CORPUS_VALID; split < CORPUS_SPLITS; split++) {
        stats->shared_sentences += set_shared(&sets[split].sentences, &train->sentences);
        stats->shared_combinations += set_shared(&sets[split].held_out, &train->combinations);
    }
    return true;
}

bool corpus_stats_measure(corpus_stats *stats, uint64_t seed, int64_t sentences)
{
    split_sets *sets = calloc(CORPUS_SPLITS, sizeof *sets);
    *stats = (corpus_stats){.sentences = sentences};
    if (sets == NULL)
        return false;
    count_grammar(stats);
    const bool done = measure(stats, sets, seed);
    for (int split = 0; split < CORPUS_SPLITS; split++) {
        free(sets[split].sentences.items);
        free(sets[split].combinations.items);
        free(sets[split].held_out.items);
    }
    free(sets);
    return done;
}
