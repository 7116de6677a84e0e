/* SPDX-License-Identifier: MIT */
/* Parts of speech: every word of many sentences has one, and those of some sentences are known. */
#include "corpus/part_of_speech.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"

static void every_word_has_a_part(void)
{
    int seen[PART_COUNT] = {0};
    for (uint64_t n = 0; n < 5000; n++) {
        corpus_pair pair;
        corpus_generate(3, CORPUS_TRAIN, n, &pair, NULL);
        for (int k = 0; k < pair.side[CORPUS_ENGLISH].count; k++) {
            const corpus_part part = corpus_part_of(&pair, k);
            if (CHECK(part < PART_COUNT, "\"%s\" has none", pair.side[CORPUS_ENGLISH].tokens[k]))
                seen[part]++;
        }
    }
    for (int part = 0; part < PART_COUNT; part++)
        CHECK(seen[part] > 50, "%s: %d words", corpus_part_name((corpus_part)part), seen[part]);
}

/* `wanted` has the first letters of the parts; v, x and o are verb, auxiliary and conjunction. */
static void check_parts(const char *text, const char *wanted)
{
    static const char letters[] = "nvxpd#ajzeorq";
    char message[CORPUS_MESSAGE_MAX], got[CORPUS_TOKENS_MAX + 1] = "";
    corpus_pair pair;
    if (!CHECK(corpus_translate(text, &pair, NULL, message), "%s: %s", text, message))
        return;
    for (int n = 0; n < pair.side[CORPUS_ENGLISH].count; n++)
        got[n] = letters[corpus_part_of(&pair, n)];
    CHECK(strcmp(got, wanted) == 0, "%s: %s, not %s", text, got, wanted);
}

static void parts_of_known_sentences(void)
{
    check_parts("the small black cat sleeps", "daanv");
    check_parts("she does not love her dog", "pxzvdn");
    check_parts("he sees her", "pvp");
    check_parts("the cat that i saw yesterday ran away", "dnrpvjve");
    check_parts("three dogs will never sleep", "#nxzv");
    check_parts("the turtle is tired because it was sleeping", "dnxaopxv");
    check_parts("who sleeps?", "qvq");
    check_parts("they were giving it to him", "pxvpep");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_word_has_a_part);
    RUN(parts_of_known_sentences);
    return test_end();
}
