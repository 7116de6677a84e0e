/* SPDX-License-Identifier: MIT */
/*
 * Hidden source words: losses of whole words are those of captures in which all pieces of a word
 * are hidden; sums over target words do not depend on how words are cut; and losses by part of
 * speech are those of single words of the sentences.
 */
#include "heads/word_ablation.h"
#include "support/test.h"
#include "support/tiny_marian.h"
#include "support/tiny_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tiny_marian marian;

static double likelihood(const capture *c)
{
    double sum = 0.0;
    for (int n = 0; n < c->scored; n++)
        sum += c->log_likelihood[n];
    return sum;
}

static void words_are_whole(void)
{
    static const char *const sources[] = {"The", "zebra", "sleeps", "."};
    static const char *const targets[] = {"Le", "zèbre", "dort", ".", "</s>"};
    subject_text text = tiny_marian_read(&marian, "The zebra sleeps.", "Le zèbre dort.");
    word_losses l;
    if (!CHECK(word_losses_measure(&l, &marian.subject, &text, NULL, NULL), "no memory"))
        return;
    CHECK(l.sources == 4 && l.targets == 5, "%d x %d words", l.targets, l.sources);
    for (int n = 0; n < 4 && n < l.sources; n++)
        CHECK(strcmp(l.source_words[n], sources[n]) == 0, "\"%s\"", l.source_words[n]);
    for (int n = 0; n < 5 && n < l.targets; n++)
        CHECK(strcmp(l.target_words[n], targets[n]) == 0, "\"%s\"", l.target_words[n]);
    word_losses_free(&l);
    subject_text_free(&marian.subject, &text);
}

/* Hides tokens [first, end) directly. */
static double likelihood_without(const subject_text *text, int first, int end)
{
    bool hidden[64] = {false};
    const capture_options options = {.hidden = hidden};
    for (int n = first; n < end; n++)
        hidden[n] = true;
    capture *const c = subject_run(&marian.subject, text, &options, NULL);
    const double sum = likelihood(c);
    capture_free(c);
    return sum;
}

static void losses_are_those_of_captures(void)
{
    subject_text text = tiny_marian_read(&marian, "The zebra sleeps.", "Le zèbre dort.");
    word_losses l;
    CHECK(word_losses_measure(&l, &marian.subject, &text, NULL, NULL), "no memory");
    const double plain = likelihood_without(&text, 0, 0);
    double sum = 0.0;
    for (int t = 0; t < l.targets; t++)
        sum += l.plain[t];
    CHECK(fabs(sum - plain) < 1e-9, "%g, not %g", sum, plain);
    for (int s = 0, first = 0; s < l.sources; s++) {
        int end = first + 1;
        while (text.source.continues[end])
            end++;
        double lost = 0.0;
        for (int t = 0; t < l.targets; t++)
            lost += l.lost[t * l.sources + s];
        const double wanted = plain - likelihood_without(&text, first, end);
        CHECK(fabs(lost - wanted) < 1e-9 && fabs(wanted) > 1e-6, "word %d: %g, not %g", s, lost,
              wanted);
        CHECK(s != 1 || end - first > 1, "\"zebra\" is one token");
        first = end;
    }
    word_losses_free(&l);
    subject_text_free(&marian.subject, &text);
}

/* The row of a target word is that of the pieces that it is said in. */
static void rows_are_those_of_words(void)
{
    subject_text text = tiny_marian_read(&marian, "The zebra sleeps.", "Le zèbre dort.");
    static const capture_options options = {.weights = false};
    capture *const c = subject_run(&marian.subject, &text, &options, NULL);
    word_losses l;
    CHECK(word_losses_measure(&l, &marian.subject, &text, NULL, NULL), "no memory");
    int end = 2; /* token 1 is "Le", which row 0 says */
    while (text.target.continues[end + 1])
        end++;
    double wanted = 0.0;
    for (int row = 1; row < end; row++)
        wanted += c->log_likelihood[row];
    CHECK(end > 2 && fabs(l.plain[0] - c->log_likelihood[0]) < 1e-12 &&
              fabs(l.plain[1] - wanted) < 1e-12,
          "%g, not %g", l.plain[1], wanted);
    capture_free(c);
    word_losses_free(&l);
    subject_text_free(&marian.subject, &text);
}

/* ------------------------------------------------------ parts of speech ----- */

/* A translator with the words of the corpus and random parameters. */
static translator *random_translator(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    transformer_config config = tiny_config();
    config.words[0] = config.words[1] = 1024;
    config.positions = CORPUS_TOKENS_MAX;
    float *const values = tiny_values(&config, 3);
    translator *const model = translator_create(&config, values, message);
    CHECK(model, "%s", message);
    free(values);
    return model;
}

static double score_pair(const translator *model, const head_pair *pair, int hidden_word)
{
    bool hidden[CORPUS_TOKENS_MAX + 1] = {false};
    const capture_options options = {.hidden = hidden};
    if (hidden_word >= 0)
        hidden[hidden_word] = true;
    capture *const c = head_capture(model, pair, &options, NULL);
    const double sum = likelihood(c);
    capture_free(c);
    return sum;
}

static void parts_are_means_of_words(void)
{
    enum { PAIRS = 6 };
    translator *const model = random_translator();
    head_pair pairs[PAIRS] = {{.known = true}};
    double lost[PART_COUNT] = {0.0};
    int words[PART_COUNT] = {0};
    part_loss parts[PART_COUNT];
    for (int n = 0; n < PAIRS; n++) {
        head_pair *const p = &pairs[n];
        p->known = n != 3; /* one that the grammar does not know is left out */
        corpus_generate(1, CORPUS_TEST, (uint64_t)n, &p->gold, NULL);
        for (int side = 0; side < CORPUS_SIDES; side++) {
            p->words.count[side] = p->gold.side[side].count;
            for (int k = 0; k < p->words.count[side]; k++)
                p->words.words[side][k] = 5 + (n * 31 + k * 7 + side) % 900;
        }
        for (int w = 0; p->known && w < p->words.count[CORPUS_ENGLISH]; w++) {
            const corpus_part part = corpus_part_of(&p->gold, w);
            lost[part] += score_pair(model, p, -1) - score_pair(model, p, w);
            words[part]++;
        }
    }
    CHECK(part_losses_measure(model, pairs, PAIRS, NULL, parts, NULL) == MHA_OK, "no memory");
    for (int part = 0; part < PART_COUNT; part++) {
        CHECK(parts[part].words == words[part], "%d words", parts[part].words);
        if (words[part] == 0)
            continue;
        CHECK(fabs(parts[part].lost - lost[part] / words[part]) < 1e-9, "%s: %g, not %g",
              corpus_part_name((corpus_part)part), parts[part].lost, lost[part] / words[part]);
        CHECK(parts[part].interval.low <= parts[part].lost + 1e-6 &&
                  parts[part].interval.high >= parts[part].lost - 1e-6,
              "%s: %g..%g", corpus_part_name((corpus_part)part), parts[part].interval.low,
              parts[part].interval.high);
    }
    translator_free(model);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    if (tiny_marian_open(&marian, 5)) {
        RUN(words_are_whole);
        RUN(losses_are_those_of_captures);
        RUN(rows_are_those_of_words);
    }
    RUN(parts_are_means_of_words);
    tiny_marian_close(&marian);
    return test_end();
}
