/* SPDX-License-Identifier: MIT */
/*
 * Estimates links of words (word_links.h):
 *
 *      words of both sides --number_words()--> types: equal words have equal numbers
 *      every (target word, source word) of a text is a cell; equal pairs of types share a place in
 *      the tables of probabilities --estimate()--> --link_text()--> links
 */
#include "heads/word_links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10 };

/* How fast links become rarer with their distance from the diagonal, where both sentences have the
 * length 1. */
static const double tension = 4.0;

/* A word of a text, without marks. */
typedef struct link_word {
    const char *word;
    int text, place; /* place: its row or column */
    int type;
} link_word;

/* The words of one side of all texts. */
typedef struct side_words {
    link_word *words;
    int *starts; /* [texts + 1] */
    int types;
} side_words;

typedef struct links_job {
    int texts;
    side_words sides[TRANSFORMER_SIDES];
    int64_t *cells; /* [texts + 1] the first cell of each text */
    int32_t *pairs; /* [all cells] the place of its pair of types in the tables */
    uint64_t *keys; /* [all cells] while places are found; then the first pair_count are unique */
    int64_t pair_count;
    double *table[2]; /* [pair_count] p(target | source), p(source | target) */
    double *counts;   /* [pair_count] */
    double *totals;   /* [types of the side with more of them] */
} links_job;

/* ----------------------------------------------------------------- words ----- */

/* Capital letters of ASCII are those of the beginning of a sentence. */
static int compare_words(const char *a, const char *b)
{
    for (;; a++, b++) {
        const int x = *a >= 'A' && *a <= 'Z' ? *a + 32 : (unsigned char)*a;
        const int y = *b >= 'A' && *b <= 'Z' ? *b + 32 : (unsigned char)*b;
        if (x != y || x == 0)
            return x - y;
    }
}

static int by_word(const void *a, const void *b)
{
    const link_word *const x = *(link_word *const *)a, *const y = *(link_word *const *)b;
    return compare_words(x->word, y->word);
}

/* Gives every word its type. */
static bool number_words(side_words *side, int count)
{
    link_word **const order = malloc(((size_t)count + 1) * sizeof(link_word *));
    if (!order)
        return false;
    for (int n = 0; n < count; n++)
        order[n] = &side->words[n];
    qsort(order, (size_t)count, sizeof(link_word *), by_word);
    for (int n = 0; n < count; n++) {
        side->types += n > 0 && by_word(&order[n - 1], &order[n]) != 0;
        order[n]->type = side->types;
    }
    side->types += count > 0;
    free(order);
    return true;
}

/* Lists the words of one side of all texts. Rows of cross-attention say the tokens after the first
 * one of the target. */
static bool list_words(side_words *side, const subject_text *texts, int count, bool target)
{
    int most = 0, words = 0;
    for (int n = 0; n < count; n++)
        most += target ? texts[n].target.count : texts[n].source.count;
    side->words = malloc(((size_t)most + 1) * sizeof *side->words);
    side->starts = calloc((size_t)count + 1, sizeof *side->starts);
    if (!side->words || !side->starts)
        return false;
    for (int n = 0; n < count; n++) {
        const subject_side *const from = target ? &texts[n].target : &texts[n].source;
        int place = -1;
        for (int k = target ? 1 : 0; k < from->count; k++) {
            place += place < 0 || !from->continues[k];
            if (from->continues[k] || from->marks[k])
                continue;
            const bool whole = from->wholes && from->wholes[k];
            side->words[words++] =
                (link_word){whole ? from->wholes[k] : from->words[k], n, place, 0};
        }
        side->starts[n + 1] = words;
    }
    return number_words(side, words);
}

/* ----------------------------------------------------------------- cells ----- */

static int words_of(const links_job *j, int side, int text)
{
    return j->sides[side].starts[text + 1] - j->sides[side].starts[text];
}

static const link_word *word_at(const links_job *j, int side, int text, int n)
{
    return &j->sides[side].words[j->sides[side].starts[text] + n];
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t key_of(const links_job *j, int text, int target, int source)
{
    return (uint64_t)word_at(j, TRANSFORMER_TARGET, text, target)->type *
               (uint64_t)j->sides[TRANSFORMER_SOURCE].types +
           (uint64_t)word_at(j, TRANSFORMER_SOURCE, text, source)->type;
}

/* Calls for every cell of all texts; `find`: its place is looked up, else its key is collected. */
static void visit_cells(links_job *j, bool find)
{
    for (int text = 0; text < j->texts; text++) {
        const int sources = words_of(j, TRANSFORMER_SOURCE, text);
        for (int n = 0; n < words_of(j, TRANSFORMER_TARGET, text) * sources; n++) {
            const uint64_t key = key_of(j, text, n / sources, n % sources);
            if (!find) {
                j->keys[j->cells[text] + n] = key;
                continue;
            }
            const uint64_t *const at =
                bsearch(&key, j->keys, (size_t)j->pair_count, sizeof key, by_key);
            j->pairs[j->cells[text] + n] = (int32_t)(at - j->keys);
        }
    }
}

static bool make_cells(links_job *j)
{
    const int source_types = j->sides[TRANSFORMER_SOURCE].types;
    const int target_types = j->sides[TRANSFORMER_TARGET].types;
    j->cells = calloc((size_t)j->texts + 1, sizeof *j->cells);
    if (!j->cells)
        return false;
    for (int n = 0; n < j->texts; n++)
        j->cells[n + 1] = j->cells[n] + (int64_t)words_of(j, TRANSFORMER_SOURCE, n) *
                                            words_of(j, TRANSFORMER_TARGET, n);
    const size_t all = (size_t)j->cells[j->texts] + 1;
    j->keys = malloc(all * sizeof *j->keys);
    j->pairs = malloc(all * sizeof *j->pairs);
    j->counts = malloc(all * sizeof *j->counts);
    j->table[0] = malloc(all * sizeof *j->table[0]);
    j->table[1] = malloc(all * sizeof *j->table[1]);
    const int most = source_types > target_types ? source_types : target_types;
    j->totals = malloc(((size_t)most + 1) * sizeof *j->totals);
    if (!j->keys || !j->pairs || !j->counts || !j->table[0] || !j->table[1] || !j->totals)
        return false;
    visit_cells(j, false);
    qsort(j->keys, all - 1, sizeof *j->keys, by_key);
    for (size_t n = 0; n + 1 < all; n++)
        if (n == 0 || j->keys[n] != j->keys[n - 1])
            j->keys[j->pair_count++] = j->keys[n];
    visit_cells(j, true);
    return true;
}

/* -------------------------------------------------------------- estimate ----- */

/* The preference for words n of `count` and m of `others`. */
static double prior(int n, int count, int m, int others)
{
    return exp(-tension * fabs((n + 0.5) / count - (m + 0.5) / others));
}

/* The weight of word m of the other side as the origin of word n of the side that is explained. */
static double weigh(const links_job *j, bool back, int text, int n, int m)
{
    const int sources = words_of(j, TRANSFORMER_SOURCE, text);
    const int targets = words_of(j, TRANSFORMER_TARGET, text);
    const int64_t cell =
        j->cells[text] + (back ? (int64_t)m * sources + n : (int64_t)n * sources + m);
    return j->table[back][j->pairs[cell]] *
           (back ? prior(n, sources, m, targets) : prior(n, targets, m, sources));
}

/* Expected counts of all pairs of types. */
static void expect(links_job *j, bool back)
{
    const int side = back ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET;
    memset(j->counts, 0, (size_t)j->pair_count * sizeof *j->counts);
    for (int text = 0; text < j->texts; text++) {
        const int count = words_of(j, side, text), others = words_of(j, !side, text);
        const int sources = words_of(j, TRANSFORMER_SOURCE, text);
        for (int n = 0; n < count; n++) {
            double sum = 0.0;
            for (int m = 0; m < others; m++)
                sum += weigh(j, back, text, n, m);
            for (int m = 0; m < others && sum > 0.0; m++) {
                const int64_t cell =
                    j->cells[text] + (back ? (int64_t)m * sources + n : (int64_t)n * sources + m);
                j->counts[j->pairs[cell]] += weigh(j, back, text, n, m) / sum;
            }
        }
    }
}

/* Probabilities from counts: those of what one type is translated to add up to 1. */
static void maximise(links_job *j, bool back)
{
    const uint64_t sources = (uint64_t)j->sides[TRANSFORMER_SOURCE].types;
    const int types = j->sides[back ? TRANSFORMER_TARGET : TRANSFORMER_SOURCE].types;
    memset(j->totals, 0, (size_t)types * sizeof *j->totals);
    for (int64_t n = 0; n < j->pair_count; n++)
        j->totals[back ? j->keys[n] / sources : j->keys[n] % sources] += j->counts[n];
    for (int64_t n = 0; n < j->pair_count; n++) {
        const double total = j->totals[back ? j->keys[n] / sources : j->keys[n] % sources];
        j->table[back][n] = total > 0.0 ? j->counts[n] / total : 0.0;
    }
}

static void estimate(links_job *j, bool back)
{
    for (int64_t n = 0; n < j->pair_count; n++)
        j->table[back][n] = 1.0;
    for (int round = 0; round < ROUNDS; round++) {
        expect(j, back);
        maximise(j, back);
    }
}

/* ----------------------------------------------------------------- links ----- */

/* The best word of the other side; of equal ones the first. -1: there is none. */
static int best_of(const links_job *j, bool back, int text, int n)
{
    const int others = words_of(j, back ? TRANSFORMER_TARGET : TRANSFORMER_SOURCE, text);
    int best = -1;
    double most = 0.0;
    for (int m = 0; m < others; m++) {
        const double weight = weigh(j, back, text, n, m);
        if (weight > most) {
            most = weight;
            best = m;
        }
    }
    return best;
}

static bool link_text(const links_job *j, int text, word_links *to)
{
    const int words = words_of(j, TRANSFORMER_TARGET, text);
    text_links *const t = &to->texts[text];
    t->count = words > 0 ? word_at(j, TRANSFORMER_TARGET, text, words - 1)->place + 1 : 0;
    t->links = calloc((size_t)t->count + 1, sizeof *t->links);
    for (int n = 0; t->links && n < words; n++) {
        const int m = best_of(j, false, text, n);
        if (m < 0 || best_of(j, true, text, m) != n)
            continue;
        const int column = word_at(j, TRANSFORMER_SOURCE, text, m)->place;
        if (column >= LINK_COLUMNS)
            continue;
        t->links[word_at(j, TRANSFORMER_TARGET, text, n)->place] |= (uint64_t)1 << column;
        to->linked++;
    }
    to->words += words;
    return t->links;
}

bool word_links_find(word_links *made, const subject_text *texts, int count)
{
    links_job j = {.texts = count};
    *made = (word_links){.texts = calloc((size_t)count + 1, sizeof *made->texts), .count = count};
    bool fine = made->texts && list_words(&j.sides[TRANSFORMER_SOURCE], texts, count, false) &&
                list_words(&j.sides[TRANSFORMER_TARGET], texts, count, true) && make_cells(&j);
    for (int back = 0; fine && back < 2; back++)
        estimate(&j, back);
    for (int n = 0; fine && n < count; n++)
        fine = link_text(&j, n, made);
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        free(j.sides[side].words);
        free(j.sides[side].starts);
        free(j.table[side]);
    }
    free(j.cells);
    free(j.pairs);
    free(j.keys);
    free(j.counts);
    free(j.totals);
    return fine;
}

void word_links_free(word_links *links)
{
    for (int n = 0; links->texts && n < links->count; n++)
        free(links->texts[n].links);
    free(links->texts);
}
