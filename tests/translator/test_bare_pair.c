/* SPDX-License-Identifier: MIT */
/* Final marks are left out on both sides or on none, and nothing else is. */
#include "support/test.h"

#include <string.h>

#include "translator/bare_pair.h"

typedef struct bare_case {
    const char *source, *target, *bare_source, *bare_target;
} bare_case;

static pair_text pair_of(const bare_case *c)
{
    return (pair_text){{c->source, c->target}, {strlen(c->source), strlen(c->target)}, 1};
}

static void final_marks_are_left_out(void)
{
    static const bare_case cases[] = {
        {"I love you.", "Je t'aime.", "I love you", "Je t'aime"},
        {"Who is there?", "Qui est l\xc3\xa0 ?", "Who is there", "Qui est l\xc3\xa0"},
        {"Stop!", "Arr\xc3\xaate\xc2\xa0!", "Stop", "Arr\xc3\xaate"},
        {"Why?", "Pourquoi\xe2\x80\xaf?", "Why", "Pourquoi"},
        {"Why?", "Pourquoi \xe2\x80\xaf\xc2\xa0 ?", "Why", "Pourquoi"},
        {"Go.", "Va !", "Go", "Va"},
        {"It is 5.", "Il est 5.", "It is 5", "Il est 5"},
        {"a.", "\xc3\xa0.", "a", "\xc3\xa0"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        pair_text pair = pair_of(&cases[n]);
        CHECK(bare_pair_make(&pair), "%s", cases[n].source);
        CHECK(pair.length[0] == strlen(cases[n].bare_source) &&
                  pair.length[1] == strlen(cases[n].bare_target),
              "%.*s | %.*s", (int)pair.length[0], pair.text[0], (int)pair.length[1], pair.text[1]);
    }
}

static void other_pairs_stay(void)
{
    static const bare_case cases[] = {
        {"I love you", "Je t'aime.", "", ""},
        {"I love you.", "Je t'aime", "", ""},
        {"Well...", "Eh bien...", "", ""},
        {"At 5 p.m.", "\xc3\xa0 5 p.m.", "", ""},
        {"He said \"No.\"", "Il a dit non.", "", ""},
        {".", ".", "", ""},
        {" .", "a.", "", ""},
        {"What?!", "Quoi ?!", "", ""},
        {"", "", "", ""},
        {"a.", "", "", ""},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        pair_text pair = pair_of(&cases[n]);
        CHECK(!bare_pair_make(&pair), "%s", cases[n].source);
        CHECK(pair.length[0] == strlen(cases[n].source) &&
                  pair.length[1] == strlen(cases[n].target),
              "%s: changed", cases[n].source);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(final_marks_are_left_out);
    RUN(other_pairs_stay);
    return test_end();
}
