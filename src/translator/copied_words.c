/* SPDX-License-Identifier: MIT */
/* Replaces names and numbers that stand on both sides of a pair (copied_words.h). */
#include "translator/copied_words.h"

#include <string.h>

enum { CANDIDATES_MAX = 8, NAME_LEAST = 3, WORD_MAX = 32, DIGITS_MAX = 6 };

typedef struct word_span {
    const char *text;
    size_t length;
} word_span;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Bytes of other characters than ASCII count as letters. */
static bool is_letter(char c)
{
    return is_capital(c) || (c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80;
}

/* The word or number at text[at], as long as it goes on; length 0 for other characters. */
static word_span span_at(const char *text, size_t length, size_t at)
{
    bool (*const fits)(char) = is_digit(text[at]) ? is_digit : is_letter;
    size_t end = at;
    while (end < length && fits(text[end]))
        end++;
    return (word_span){text + at, end - at};
}

/* A name, or a number of which more than one thing can be: not 0 and 1, which change the grammar.
 */
static bool can_be_copied(word_span word)
{
    if (word.length >= WORD_MAX)
        return false;
    if (is_digit(word.text[0]))
        return word.length > 1 || word.text[0] > '1';
    return word.length >= NAME_LEAST && is_capital(word.text[0]);
}

static bool same_word(word_span a, word_span b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* Calls `visit` with every word of a side, until it returns false. */
static void each_word(const pair_text *pair, int side, bool (*visit)(void *arg, word_span word),
                      void *arg)
{
    const char *const text = pair->text[side];
    for (size_t at = 0; at < pair->length[side];) {
        const word_span word = span_at(text, pair->length[side], at);
        if (word.length > 0 && !visit(arg, word))
            return;
        at += word.length > 0 ? word.length : 1;
    }
}

/* --------------------------------------------------------- candidates ----- */

typedef struct candidate_list {
    const pair_text *pair;
    word_span words[CANDIDATES_MAX];
    int count;
    word_span wanted; /* that is looked for on the other side */
    bool found;
} candidate_list;

static bool find_word(void *arg, word_span word)
{
    candidate_list *const list = arg;
    list->found = same_word(word, list->wanted);
    return !list->found;
}

static bool collect_word(void *arg, word_span word)
{
    candidate_list *const list = arg;
    if (!can_be_copied(word))
        return true;
    for (int n = 0; n < list->count; n++)
        if (same_word(list->words[n], word))
            return true;
    list->wanted = word;
    list->found = false;
    each_word(list->pair, TRANSFORMER_TARGET, find_word, list);
    if (list->found)
        list->words[list->count++] = word;
    return list->count < CANDIDATES_MAX;
}

/* -------------------------------------------------------- replacements ----- */

static const char *pick(rng *r, const char *const *list, int count)
{
    return list[rng_below(r, count)];
}
#define PICK(r, list) pick(r, list, (int)(sizeof(list) / sizeof((list)[0])))

static bool is_vowel(char c)
{
    return strchr("AEIOUYaeiouy", c) != NULL;
}

/* One to three syllables, the first with a vowel or a consonant at its beginning. */
static size_t make_name(rng *r, bool vowel, char name[WORD_MAX])
{
    static const char *const onsets[] = {"b",  "c",  "d",  "f",  "g",  "h",  "j",  "k",  "l",
                                         "m",  "n",  "p",  "r",  "s",  "t",  "v",  "w",  "z",
                                         "br", "ch", "dr", "fl", "gr", "kl", "kr", "ph", "qu",
                                         "sh", "sk", "st", "th", "tr", "vl", "zh", "sz", "ts"};
    static const char *const nuclei[] = {"a", "e", "i",  "o",  "u",  "y",  "a",  "e",
                                         "i", "o", "ai", "ee", "ei", "io", "oo", "ou"};
    static const char *const codas[] = {"",  "",  "",  "",  "n",  "r",  "s",  "l",   "m",
                                        "k", "t", "x", "d", "ck", "ng", "tz", "sky", "son"};
    const int syllables = 1 + (int)rng_below(r, 3);
    name[0] = '\0';
    for (int n = 0; n < syllables || strlen(name) < NAME_LEAST; n++) {
        if (n > 0 || !vowel)
            strcat(name, PICK(r, onsets));
        strcat(name, PICK(r, nuclei));
        strcat(name, PICK(r, codas));
    }
    name[0] = (char)(name[0] - 'a' + 'A');
    return strlen(name);
}

/* Two or more, without a 0 at the beginning. */
static size_t make_number(rng *r, size_t digits, char number[WORD_MAX])
{
    for (size_t n = 0; n < digits; n++)
        number[n] =
            (char)('0' + (n == 0 ? rng_between(r, digits == 1 ? 2 : 1, 9) : rng_below(r, 10)));
    return digits;
}

/* ---------------------------------------------------------------- pair ----- */

typedef struct replacement {
    word_span from, to;
} replacement;

static bool replace_side(const pair_text *pair, int side, const replacement *change,
                         pair_buffer *changed)
{
    const char *const text = pair->text[side];
    bool fits = true;
    changed->length[side] = 0;
    for (size_t at = 0; at < pair->length[side] && fits;) {
        const word_span word = span_at(text, pair->length[side], at);
        const word_span kept = word.length > 0 ? word : (word_span){text + at, 1};
        const word_span put = same_word(kept, change->from) ? change->to : kept;
        fits = pair_buffer_append(changed, side, put.text, put.length);
        at += kept.length;
    }
    return fits;
}

static size_t make_word(rng *r, word_span from, double numbers, char made[WORD_MAX])
{
    if (is_digit(from.text[0]))
        return make_number(r, from.length, made);
    const bool vowel = is_vowel(from.text[0]);
    /* Without numbers for names none is drawn: trainings of before give the same bits. */
    if (numbers > 0.0 && !vowel && rng_unit(r) < numbers)
        return make_number(r, (size_t)rng_between(r, 1, DIGITS_MAX), made);
    return make_name(r, vowel, made);
}

bool copied_words_replace(const pair_text *pair, double numbers, rng *r, pair_buffer *changed)
{
    candidate_list list = {.pair = pair};
    char made[WORD_MAX];
    each_word(pair, TRANSFORMER_SOURCE, collect_word, &list);
    if (list.count == 0)
        return false;
    const word_span from = list.words[rng_below(r, list.count)];
    const replacement change = {from, {made, make_word(r, from, numbers, made)}};
    return replace_side(pair, TRANSFORMER_SOURCE, &change, changed) &&
           replace_side(pair, TRANSFORMER_TARGET, &change, changed);
}
