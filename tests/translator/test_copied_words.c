/* SPDX-License-Identifier: MIT */
/* Names and numbers of both sides are replaced alike, and nothing else is. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "translator/copied_words.h"

static pair_text pair_of(const char *source, const char *target)
{
    return (pair_text){{source, target}, {strlen(source), strlen(target)}, 1};
}

/* The text between what stands before and after a word; false if that has changed. */
static bool between(const pair_buffer *changed, int side, const char *before, const char *after,
                    char word[64])
{
    const char *const text = changed->text[side];
    const size_t length = changed->length[side], first = strlen(before), last = strlen(after);
    if (length < first + last || memcmp(text, before, first) != 0 ||
        memcmp(text + length - last, after, last) != 0 || length - first - last >= 64)
        return false;
    memcpy(word, text + first, length - first - last);
    word[length - first - last] = '\0';
    return true;
}

static void names_are_replaced_on_both_sides(void)
{
    const pair_text pair = pair_of("I know Tom well.", "Je connais bien Tom.");
    int different = 0;
    char last[64] = "";
    for (uint64_t seed = 0; seed < 200; seed++) {
        rng r = rng_for(seed, 1);
        pair_buffer changed = {.length = {0, 0}};
        char words[2][64];
        if (!CHECK(copied_words_replace(&pair, 0.0, &r, &changed), "nothing replaced"))
            return;
        CHECK(between(&changed, 0, "I know ", " well.", words[0]), "%.*s", (int)changed.length[0],
              changed.text[0]);
        CHECK(between(&changed, 1, "Je connais bien ", ".", words[1]), "%.*s",
              (int)changed.length[1], changed.text[1]);
        CHECK(strcmp(words[0], words[1]) == 0, "%s and %s", words[0], words[1]);
        CHECK(strlen(words[0]) >= 3 && words[0][0] >= 'A' && words[0][0] <= 'Z' &&
                  strchr("AEIOUY", words[0][0]) == NULL,
              "%s for Tom", words[0]);
        different += strcmp(words[0], last) != 0;
        strcpy(last, words[0]);
    }
    CHECK(different > 190, "only %d names", different);
}

static void vowels_stay_vowels(void)
{
    const pair_text pair = pair_of("Anna's book", "le livre d'Anna");
    for (uint64_t seed = 0; seed < 50; seed++) {
        rng r = rng_for(seed, 2);
        pair_buffer changed = {.length = {0, 0}};
        char word[64];
        CHECK(copied_words_replace(&pair, 0.0, &r, &changed) &&
                  between(&changed, 1, "le livre d'", "", word) &&
                  strchr("AEIOUY", word[0]) != NULL,
              "%.*s", (int)changed.length[1], changed.text[1]);
    }
}

static void numbers_keep_their_digits(void)
{
    const pair_text pair = pair_of("He was born in 1990.", "Il est né en 1990.");
    for (uint64_t seed = 0; seed < 50; seed++) {
        rng r = rng_for(seed, 3);
        pair_buffer changed = {.length = {0, 0}};
        char words[2][64];
        CHECK(copied_words_replace(&pair, 0.0, &r, &changed) &&
                  between(&changed, 0, "He was born in ", ".", words[0]) &&
                  between(&changed, 1, "Il est né en ", ".", words[1]) &&
                  strcmp(words[0], words[1]) == 0 && strlen(words[0]) == 4 && words[0][0] != '0',
              "%.*s", (int)changed.length[0], changed.text[0]);
    }
}

/* A name becomes a number, except where French may elide the word before it. */
static void names_become_numbers(void)
{
    const pair_text pair = pair_of("I know Tom well.", "Je connais bien Tom.");
    const pair_text elided = pair_of("Anna's book", "le livre d'Anna");
    int lengths[7] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        rng r = rng_for(seed, 4);
        pair_buffer changed = {.length = {0, 0}};
        char words[2][64];
        if (!CHECK(copied_words_replace(&pair, 1.0, &r, &changed) &&
                       between(&changed, 0, "I know ", " well.", words[0]) &&
                       between(&changed, 1, "Je connais bien ", ".", words[1]) &&
                       strcmp(words[0], words[1]) == 0,
                   "%.*s", (int)changed.length[0], changed.text[0]))
            return;
        const size_t digits = strlen(words[0]);
        if (CHECK(digits >= 1 && digits <= 6 && strspn(words[0], "0123456789") == digits &&
                      words[0][0] != '0' && strcmp(words[0], "1") != 0,
                  "%s", words[0]))
            lengths[digits]++;
        CHECK(copied_words_replace(&elided, 1.0, &r, &changed) &&
                  between(&changed, 1, "le livre d'", "", words[1]) &&
                  strchr("AEIOUY", words[1][0]) != NULL,
              "%.*s", (int)changed.length[1], changed.text[1]);
    }
    for (int n = 1; n <= 6; n++)
        CHECK(lengths[n] > 10, "%d numbers of %d digits", lengths[n], n);
}

static void other_pairs_stay_as_they_are(void)
{
    static const char *const pairs[][2] = {
        {"I am here.", "Je suis là."},
        {"The Table.", "La table."},
        {"He has 1 dog.", "Il a 1 chien."},
        {"Tom's here.", "Thomas est là."},
        {"It is 12:00.", "Il est midi."},
        {"Go!", "Go !"},
        {"", ""},
        {"McDonald Tomson", "Tom"},
    };
    for (size_t n = 0; n < sizeof pairs / sizeof pairs[0]; n++) {
        const pair_text pair = pair_of(pairs[n][0], pairs[n][1]);
        rng r = {n};
        pair_buffer changed = {.length = {0, 0}};
        CHECK(!copied_words_replace(&pair, 0.0, &r, &changed), "%s", pairs[n][0]);
    }
}

static void long_pairs_stay_as_they_are(void)
{
    char *const text = malloc(PAIR_BUFFER_MAX + 10);
    memset(text, 'x', PAIR_BUFFER_MAX + 9);
    memcpy(text, "Tom ", 4);
    text[PAIR_BUFFER_MAX + 9] = '\0';
    const pair_text pair = pair_of(text, "Tom");
    rng r = {1};
    pair_buffer changed = {.length = {0, 0}};
    CHECK(!copied_words_replace(&pair, 0.0, &r, &changed), "there is no room for it");
    free(text);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(names_are_replaced_on_both_sides);
    RUN(vowels_stay_vowels);
    RUN(numbers_keep_their_digits);
    RUN(names_become_numbers);
    RUN(other_pairs_stay_as_they_are);
    RUN(long_pairs_stay_as_they_are);
    return test_end();
}
