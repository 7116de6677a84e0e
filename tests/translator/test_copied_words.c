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
static bool between(const copied_pair *changed, int side, const char *before, const char *after,
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
        copied_pair changed = {.length = {0, 0}};
        char words[2][64];
        if (!CHECK(copied_words_replace(&pair, &r, &changed), "nothing replaced"))
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
        copied_pair changed = {.length = {0, 0}};
        char word[64];
        CHECK(copied_words_replace(&pair, &r, &changed) &&
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
        copied_pair changed = {.length = {0, 0}};
        char words[2][64];
        CHECK(copied_words_replace(&pair, &r, &changed) &&
                  between(&changed, 0, "He was born in ", ".", words[0]) &&
                  between(&changed, 1, "Il est né en ", ".", words[1]) &&
                  strcmp(words[0], words[1]) == 0 && strlen(words[0]) == 4 && words[0][0] != '0',
              "%.*s", (int)changed.length[0], changed.text[0]);
    }
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
        copied_pair changed = {.length = {0, 0}};
        CHECK(!copied_words_replace(&pair, &r, &changed), "%s", pairs[n][0]);
    }
}

static void long_pairs_stay_as_they_are(void)
{
    char *const text = malloc(COPIED_TEXT_MAX + 10);
    memset(text, 'x', COPIED_TEXT_MAX + 9);
    memcpy(text, "Tom ", 4);
    text[COPIED_TEXT_MAX + 9] = '\0';
    const pair_text pair = pair_of(text, "Tom");
    rng r = {1};
    copied_pair changed = {.length = {0, 0}};
    CHECK(!copied_words_replace(&pair, &r, &changed), "there is no room for it");
    free(text);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(names_are_replaced_on_both_sides);
    RUN(vowels_stay_vowels);
    RUN(numbers_keep_their_digits);
    RUN(other_pairs_stay_as_they_are);
    RUN(long_pairs_stay_as_they_are);
    return test_end();
}
