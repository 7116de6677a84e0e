/* SPDX-License-Identifier: MIT */
/*
 * Estimated links: words that go together in many sentences are linked although they are not on the
 * diagonal; rows and columns are those of whole words; marks have no links; and heads of an
 * encoder-decoder without a grammar are measured against them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "heads/head_roles.h"
#include "support/test.h"
#include "support/tiny_marian.h"

enum { TEXTS = 24, MOST = 8 };

/* A side of words, of which those that begin with '#' continue a word and those with '<' are
 * marks. */
typedef struct made_side {
    const char *words[MOST];
    const char *wholes[MOST];
    int numbers[MOST];
    bool marks[MOST], continues[MOST];
    char letters[64], joined[64];
} made_side;

static subject_side make_side(made_side *m, const char *text)
{
    subject_side side = {.words = m->words,
                         .wholes = m->wholes,
                         .numbers = m->numbers,
                         .marks = m->marks,
                         .continues = m->continues};
    char *end = m->joined;
    snprintf(m->letters, sizeof m->letters, "%s", text);
    for (char *word = strtok(m->letters, " "); word; word = strtok(NULL, " ")) {
        const int n = side.count++;
        m->words[n] = word;
        m->marks[n] = word[0] == '<';
        m->continues[n] = word[0] == '#';
        m->wholes[n] = NULL;
        if (m->continues[n]) {
            end = stpcpy(end - 1, word + 1) + 1;
            continue;
        }
        m->wholes[n] = end;
        end = stpcpy(end, word) + 1;
    }
    return side;
}

/* "the red cat" is "le chat rouge", "the cat is red" is "le chat est rouge": colours and animals
 * change places in every other text. */
static const char *const colours[][2] = {
    {"red", "rouge"}, {"black", "noir"}, {"gr #een", "ve #rt"}};
static const char *const animals[][2] = {
    {"cat", "chat"}, {"dog", "chien"}, {"bird", "oiseau"}, {"horse", "cheval"}};

static void fill_texts(subject_text *texts, made_side sides[][2])
{
    for (int n = 0; n < TEXTS; n++) {
        const int c = n % 3, a = n / 2 % 4;
        char source[64], target[64];
        snprintf(source, sizeof source, n % 2 ? "the %2$s is %1$s </s>" : "The %1$s %2$s </s>",
                 colours[c][0], animals[a][0]);
        snprintf(target, sizeof target, "<pad> le %s %s%s", animals[a][1], n % 2 ? "est " : "",
                 colours[c][1]);
        texts[n] = (subject_text){.source = make_side(&sides[n][0], source),
                                  .target = make_side(&sides[n][1], target)};
    }
}

static void words_that_change_places_are_linked(void)
{
    static made_side sides[TEXTS][2];
    subject_text texts[TEXTS];
    word_links links;
    fill_texts(texts, sides);
    CHECK(word_links_find(&links, texts, TEXTS), "out of memory");
    CHECK(links.words == 7 * TEXTS / 2 && links.linked == links.words, "%d of %d words linked",
          (int)links.linked, (int)links.words);
    for (int n = 0; n < TEXTS; n++) {
        static const uint64_t wanted[2][4] = {{1 << 0, 1 << 2, 1 << 1},
                                              {1, 1 << 1, 1 << 2, 1 << 3}};
        const text_links *const at = &links.texts[n];
        CHECK(at->count == 3 + n % 2 &&
                  memcmp(at->links, wanted[n % 2], (size_t)at->count * sizeof *at->links) == 0,
              "text %d: %d rows, %d %d %d", n, at->count, (int)at->links[0], (int)at->links[1],
              (int)at->links[2]);
    }
    word_links_free(&links);
}

static void a_word_has_one_link_or_none(void)
{
    static made_side sides[4][2];
    static const char *const given[4][2] = {{"</s>", "<pad> le"},
                                            {"the </s>", "<pad>"},
                                            {"the </s>", "<pad> le </s>"},
                                            {"the </s>", "<pad> le le"}};
    subject_text texts[4];
    word_links links;
    for (int n = 0; n < 4; n++)
        texts[n] = (subject_text){.source = make_side(&sides[n][0], given[n][0]),
                                  .target = make_side(&sides[n][1], given[n][1])};
    CHECK(word_links_find(&links, texts, 4), "out of memory");
    CHECK(links.texts[0].count == 1 && links.texts[0].links[0] == 0, "no source");
    CHECK(links.texts[1].count == 0, "no target");
    CHECK(links.texts[2].count == 1 && links.texts[2].links[0] == 1, "one word each");
    CHECK(links.texts[3].count == 2 && links.texts[3].links[0] + links.texts[3].links[1] == 1,
          "two words of which each would have the same one");
    CHECK(links.words == 4 && links.linked == 2, "%d of %d", (int)links.linked, (int)links.words);
    word_links_free(&links);
    CHECK(word_links_find(&links, texts, 0) && links.words == 0, "no texts");
    word_links_free(&links);
}

/* Texts of a model: too few of them give no links, enough give a measure and a baseline. */
static void heads_are_measured_against_them(void)
{
    static const char *const given[][2] = {{"The cat sleeps.", "Le chat dort."},
                                           {"Where is the station?", "Où est la gare ?"},
                                           {"The dog sleeps.", "Le chien dort."}};
    tiny_marian marian;
    subject_text texts[TEXTS];
    if (tiny_marian_open(&marian, 3)) {
        for (int n = 0; n < TEXTS; n++)
            texts[n] = tiny_marian_read(&marian, given[n % 3][0], given[n % 3][1]);
        const subject_texts few = {.texts = texts, .count = LINK_TEXTS_MIN - 1},
                            all = {.texts = texts, .count = TEXTS};
        head_study *const one = head_study_create(&marian.subject, &few, NULL, NULL);
        head_study *const many = head_study_create(&marian.subject, &all, NULL, NULL);
        const int head = many->heads - 1;
        CHECK(one->links.words == 0 && isnan(head_study_mean(one, head, MEASURE_SAYS)), "too few");
        CHECK(many->links.linked > 60 &&
                  head_study_count(many, head, MEASURE_SAYS) == (double)many->links.linked &&
                  many->baselines.alignment[0].count == many->links.linked,
              "%d links, %g measured", (int)many->links.linked,
              head_study_count(many, head, MEASURE_SAYS));
        CHECK(isnan(head_study_mean(many, head, MEASURE_F_SAYS)), "an error rate without a truth");
        CHECK(isnan(head_study_mean(many, 0, MEASURE_SAYS)), "the encoder has none");
        marian.subject.words.pieces = true;
        head_study *const pieces = head_study_create(&marian.subject, &all, NULL, NULL);
        CHECK(pieces->links.words == 0, "links are those of whole words");
        head_study_free(pieces);
        head_study_free(one);
        head_study_free(many);
        for (int n = 0; n < TEXTS; n++)
            subject_text_free(&marian.subject, &texts[n]);
    }
    tiny_marian_close(&marian);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(words_that_change_places_are_linked);
    RUN(a_word_has_one_link_or_none);
    RUN(heads_are_measured_against_them);
    return test_end();
}
