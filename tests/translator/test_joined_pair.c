/* SPDX-License-Identifier: MIT */
/* Two pairs become one that has both sentences on both sides. */
#include "support/test.h"

#include <string.h>

#include "translator/joined_pair.h"

static pair_text pair_of(const char *source, const char *target)
{
    return (pair_text){{source, target}, {strlen(source), strlen(target)}, 1};
}

static bool is_text(const pair_buffer *pair, int side, const char *text)
{
    return pair->length[side] == strlen(text) && memcmp(pair->text[side], text, strlen(text)) == 0;
}

static void both_sentences_are_there(void)
{
    const pair_text first = pair_of("Hello.", "Bonjour."),
                    second = pair_of("How are you", "Comment allez-vous");
    pair_buffer joined = {.length = {7, 7}};
    CHECK(joined_pair_make(&first, &second, &joined), "not joined");
    CHECK(is_text(&joined, 0, "Hello. How are you"), "%.*s", (int)joined.length[0], joined.text[0]);
    CHECK(is_text(&joined, 1, "Bonjour. Comment allez-vous"), "%.*s", (int)joined.length[1],
          joined.text[1]);
    const pair_text text = pair_buffer_text(&joined, 5);
    CHECK(text.line == 5 && text.text[1] == joined.text[1] && text.length[0] == 18, "the text");
}

static void the_first_must_end(void)
{
    const pair_text second = pair_of("Go.", "Va.");
    static const char *const firsts[][2] = {
        {"Hello", "Bonjour."}, {"Hello.", "Bonjour"}, {"Well...", "Bien..."}, {"", ""}};
    for (size_t n = 0; n < sizeof firsts / sizeof firsts[0]; n++) {
        const pair_text first = pair_of(firsts[n][0], firsts[n][1]);
        pair_buffer joined;
        CHECK(!joined_pair_make(&first, &second, &joined), "%s", firsts[n][0]);
    }
}

static void there_is_room_or_none(void)
{
    static char longest[PAIR_BUFFER_MAX + 1];
    memset(longest, 'x', PAIR_BUFFER_MAX - 3);
    const pair_text first = pair_of("a.", "b.");
    pair_text second = pair_of("c", longest);
    pair_buffer joined;
    CHECK(joined_pair_make(&first, &second, &joined) && joined.length[1] == PAIR_BUFFER_MAX,
          "it fits");
    longest[PAIR_BUFFER_MAX - 3] = 'x';
    second = pair_of("c", longest);
    CHECK(!joined_pair_make(&first, &second, &joined), "there is no room for it");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(both_sentences_are_there);
    RUN(the_first_must_end);
    RUN(there_is_room_or_none);
    return test_end();
}
