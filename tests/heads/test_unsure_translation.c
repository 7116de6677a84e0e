/* SPDX-License-Identifier: MIT */
/* Numbers that a translation lacks (heads/unsure_translation.h). */
#include "heads/unsure_translation.h"

#include <string.h>

#include "support/test.h"

typedef struct sentence_pair {
    const char *source, *target;
    const char *lost; /* NULL: none */
} sentence_pair;

static void check_pairs(const sentence_pair *pairs, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        char number[LOST_NUMBER_MAX] = "?";
        const bool lost = unsure_lost_number(pairs[n].source, pairs[n].target, number);
        CHECK(lost == (pairs[n].lost != NULL), "\"%s\", \"%s\": %s", pairs[n].source,
              pairs[n].target, number);
        CHECK(strcmp(number, lost && pairs[n].lost != NULL ? pairs[n].lost : "") == 0,
              "\"%s\": \"%s\"", pairs[n].source, number);
    }
}

static void numbers_that_are_kept(void)
{
    static const sentence_pair pairs[] = {
        {"", "", NULL},
        {"He sleeps.", "Il dort.", NULL},
        {"I was born in 1984.", "Je suis né en 1984.", NULL},
        {"14 March 1984", "le 14 mars 1984", NULL},
        {"It costs 1,250 euros.", "Ça coûte 1250 euros.", NULL},
        {"It costs 1,250 euros.", "Ça coûte 1 250 euros.", NULL},
        {"It costs 12500 euros.",
         "Ça coûte 12\xc2\xa0"
         "500 euros.",
         NULL},
        {"It costs 12500 euros.",
         "Ça coûte 12\xe2\x80\xaf"
         "500 euros.",
         NULL},
        {"It is 2.5 metres long.", "Il fait 2,5 mètres.", NULL},
        {"at 10:30", "à 10 h 30", NULL},
        {"at 7.30", "à 7 h 30", NULL},
        {"I have 2 dogs.", "J'ai deux chiens.", NULL},
        {"27 and 31", "31 et 27", NULL},
    };
    check_pairs(pairs, sizeof pairs / sizeof *pairs);
}

static void numbers_that_are_lost(void)
{
    static const sentence_pair pairs[] = {
        {"Room 9518", "Chambre 518", "9518"},
        {"27 and 31", "271", "27"},
        {"14 March 1984", "le 14 mars 1994", "1984"},
        {"12, then 34", "12, puis 43", "34"},
        {"It costs 1,250 euros.", "Ça coûte 1251 euros.", "1250"},
        {"It costs 1,250 euros.", "Ça coûte 250 euros.", "1250"},
        {"at 10:30", "à 10 h", "30"},
        {"15 dogs", "", "15"},
        {"0123456789012345678901234567890123456789", "", "0123456789012345678901234567890"},
    };
    check_pairs(pairs, sizeof pairs / sizeof *pairs);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(numbers_that_are_kept);
    RUN(numbers_that_are_lost);
    return test_end();
}
