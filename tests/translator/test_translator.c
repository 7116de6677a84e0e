/* SPDX-License-Identifier: MIT */
/*
 * Tests of the translator: probabilities and weights agree with a plain transformer in double
 * (plain_transformer.h); the search finds the best sentences; the bits are the same with or without
 * caches, alone or in a batch, and for any number of threads.
 */
#include "translator/translator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/plain_transformer.h"
#include "support/test.h"
#include "support/tiny_model.h"

enum { NBEST_MAX = 8 };

typedef struct subject {
    transformer_config config;
    float *values;
    translator *model;
    tiny_sentences sentences;
    translation results[TINY_SENTENCES * NBEST_MAX];
} subject;

static subject *subject_from(const transformer_config *config, uint64_t seed)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    subject *const s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->config = *config;
    s->values = tiny_values(config, seed);
    s->model = translator_create(config, s->values, message);
    CHECK(s->model, "no model: %s", message);
    tiny_sentences_fill(&s->sentences, config, seed + 1);
    return s;
}

static subject *subject_new(uint64_t seed)
{
    const transformer_config config = tiny_config();
    return subject_from(&config, seed);
}

static void forget(subject *s)
{
    for (int n = 0; n < TINY_SENTENCES * NBEST_MAX; n++)
        free(s->results[n].weights);
    memset(s->results, 0, sizeof s->results);
}

static void subject_free(subject *s)
{
    forget(s);
    translator_free(s->model);
    free(s->values);
    free(s);
}

/* Translates sentences [first, first + count) into the results of the same numbers. */
static void translate(subject *s, int first, int count, const translation_options *options,
                      mha_pool *pool)
{
    const int nbest = options->nbest > 0 ? options->nbest : 1;
    const mha_status status =
        translator_translate(s->model, s->sentences.sources + first, s->sentences.lengths + first,
                             count, options, s->results + first * nbest, pool);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
}

static size_t weight_count(const subject *s, const translation *t)
{
    return (size_t)s->config.layers[TRANSFORMER_TARGET] * (size_t)s->config.heads *
           (size_t)t->target_count * (size_t)t->source_count;
}

static bool same(const subject *s, const translation *a, const translation *b)
{
    return a->source_count == b->source_count && a->target_count == b->target_count &&
           memcmp(a->source, b->source, sizeof a->source) == 0 &&
           memcmp(a->target, b->target, sizeof a->target) == 0 &&
           memcmp(&a->score, &b->score, sizeof a->score) == 0 && !a->weights == !b->weights &&
           (!a->weights ||
            memcmp(a->weights, b->weights, weight_count(s, a) * sizeof *a->weights) == 0);
}

static bool has_end(const translation *t)
{
    return t->target_count > 0 && t->target[t->target_count - 1] == WORD_END;
}

/* ---------------------------------------------------- plain transformer ----- */

typedef struct twin {
    plain_transformer plain;
    double log_probabilities[CORPUS_TOKENS_MAX * 64];
    double weights[2 * 4 * CORPUS_TOKENS_MAX * CORPUS_TOKENS_MAX];
} twin;

static void twin_run(twin *w, const translation *t)
{
    int read[CORPUS_TOKENS_MAX] = {WORD_BEGIN};
    memcpy(read + 1, t->target, (size_t)(t->target_count - 1) * sizeof *read);
    plain_transformer_run(&w->plain, t->source, t->source_count, read, t->target_count,
                          w->log_probabilities, w->weights);
}

/* Every word of a greedy translation is the most likely one, up to rounding. */
static void check_greedy(const subject *s, const twin *w, const translation *t)
{
    const int words = s->config.words[TRANSFORMER_TARGET];
    for (int i = 0; i < t->target_count; i++) {
        const double *const row = w->log_probabilities + i * words;
        for (int n = WORD_BEGIN + 1; n < words; n++)
            CHECK(row[n] < row[t->target[i]] + 1e-4, "word %d: %d with %g, but %d has %g", i,
                  t->target[i], row[t->target[i]], n, row[n]);
        CHECK(t->target[i] != WORD_END || i == t->target_count - 1, "goes on after the end");
    }
    CHECK(has_end(t) || t->target_count == s->config.positions, "no end, but %d words",
          t->target_count);
}

static void check_score(const subject *s, const twin *w, const translation *t)
{
    double score = 0.0;
    for (int i = 0; i < t->target_count; i++)
        score += w->log_probabilities[i * s->config.words[TRANSFORMER_TARGET] + t->target[i]];
    CHECK(fabs(score - t->score) < 1e-4, "score %.9g, plainly %.9g", t->score, score);
}

static void check_weights(const subject *s, const twin *w, const translation *t)
{
    const size_t count = weight_count(s, t);
    for (size_t n = 0; n < count; n++)
        CHECK(fabs((double)t->weights[n] - w->weights[n]) < 1e-4, "weight %zu: %g, plainly %g", n,
              (double)t->weights[n], w->weights[n]);
    for (size_t row = 0; row < count / (size_t)t->source_count; row++) {
        double sum = 0.0;
        for (int j = 0; j < t->source_count; j++)
            sum += (double)t->weights[row * (size_t)t->source_count + (size_t)j];
        CHECK(fabs(sum - 1.0) < 1e-5, "row %zu sums to %g", row, sum);
    }
}

/* Checks scores and weights of translations against the plain transformer. Returns how many of them
 * are complete. */
static int check_against_twin(subject *s, int beam)
{
    static twin w;
    /* Long translations have changed their place in the beam often. */
    const translation_options options = {
        .beam = beam, .weights = true, .length_penalty = beam > 1 ? 1.0 : 0.0};
    int ends = 0;
    w.plain = plain_transformer_new(&s->config, s->values);
    forget(s);
    translate(s, 0, TINY_SENTENCES, &options, NULL);
    for (int k = 0; k < TINY_SENTENCES; k++) {
        const translation *const t = &s->results[k];
        if (!CHECK(t->target_count > 0 && t->weights, "nothing came of it"))
            continue;
        twin_run(&w, t);
        if (beam == 1)
            check_greedy(s, &w, t);
        check_score(s, &w, t);
        check_weights(s, &w, t);
        ends += has_end(t);
    }
    return ends;
}

static void agrees_with_the_plain_transformer(void)
{
    int ends = 0;
    for (int64_t n = 0; n < test_effort(3); n++) {
        subject *const s = subject_new(test_seed(40) + (uint64_t)n);
        ends += check_against_twin(s, 1);
        check_against_twin(s, 4);
        subject_free(s);
    }
    CHECK(ends > 0, "none came to an end: the test is weak");
}

/* --------------------------------------------------------------- search ----- */

/* All sentences of a tiny language, sorted by score. */
typedef struct sentence_list {
    struct sentence {
        int words[CORPUS_TOKENS_MAX], count;
        double score;
    } list[64];
    int count;
} sentence_list;

static int compare_sentences(const void *a, const void *b)
{
    const double x = ((const struct sentence *)a)->score, y = ((const struct sentence *)b)->score;
    return x > y ? -1 : x < y;
}

/* Lists all sentences that begin with the words read[1..count]; the longest need no end. */
static void list_sentences(twin *w, sentence_list *all, const translation *t, int *read, int count,
                           double score)
{
    const int words = w->plain.config.words[TRANSFORMER_TARGET];
    plain_transformer_run(&w->plain, t->source, t->source_count, read, count + 1,
                          w->log_probabilities, w->weights);
    double row[8];
    memcpy(row, w->log_probabilities + count * words, (size_t)words * sizeof *row);
    for (int n = WORD_BEGIN + 1; n < words; n++) {
        read[count + 1] = n;
        if (n == WORD_END || count + 1 == w->plain.config.positions) {
            struct sentence *const one = &all->list[all->count++];
            memcpy(one->words, read + 1, (size_t)(count + 1) * sizeof *read);
            one->count = count + 1;
            one->score = score + row[n];
        } else {
            list_sentences(w, all, t, read, count + 1, score + row[n]);
        }
    }
}

/* A beam that is larger than the number of sentences finds them all. */
static void wide_beam_finds_everything(void)
{
    static twin w;
    const transformer_config config = {
        .width = 8, .heads = 2, .ff_width = 8, .layers = {1, 1}, .words = {5, 5}, .positions = 3};
    for (int n = 0; n < 6; n++) {
        subject *const s = subject_from(&config, 70 + (uint64_t)n);
        w.plain = plain_transformer_new(&config, s->values);
        const translation_options options = {.beam = TRANSLATION_BEAM_MAX, .nbest = NBEST_MAX};
        translate(s, 0, 3, &options, NULL);
        for (int k = 0; k < 3; k++) {
            const translation *const found = &s->results[k * NBEST_MAX];
            sentence_list all = {.count = 0};
            int read[CORPUS_TOKENS_MAX] = {WORD_BEGIN};
            list_sentences(&w, &all, found, read, 0, 0.0);
            CHECK(all.count == 40, "%d sentences", all.count);
            qsort(all.list, (size_t)all.count, sizeof all.list[0], compare_sentences);
            for (int r = 0; r < NBEST_MAX; r++)
                CHECK(found[r].target_count == all.list[r].count &&
                          memcmp(found[r].target, all.list[r].words,
                                 (size_t)all.list[r].count * sizeof(int)) == 0 &&
                          fabs(found[r].score - all.list[r].score) < 1e-4,
                      "model %d, sentence %d, rank %d: score %g, not %g", n, k, r, found[r].score,
                      all.list[r].score);
        }
        subject_free(s);
    }
}

/* The results of a beam are sorted by score and differ from each other. */
static void beams_are_ordered_and_differ(void)
{
    const translation_options options = {.beam = 6, .nbest = 6};
    const translation_options greedy = {.beam = 1};
    int better = 0;
    subject *const s = subject_new(5), *const g = subject_new(5);
    translate(s, 0, TINY_SENTENCES, &options, NULL);
    translate(g, 0, TINY_SENTENCES, &greedy, NULL);
    for (int n = 0; n < TINY_SENTENCES; n++) {
        const translation *const t = &s->results[n * 6];
        for (int r = 1; r < 6; r++) {
            CHECK(t[r].target_count > 0, "sentence %d has no translation %d", n, r);
            CHECK(t[r - 1].score >= t[r].score, "rank %d is better than the one before it", r);
            CHECK(t[r - 1].target_count != t[r].target_count ||
                      memcmp(t[r - 1].target, t[r].target, sizeof t[r].target) != 0,
                  "the same twice");
        }
        better += t->score > g->results[n].score;
    }
    CHECK(better > 0, "six beams are nowhere better than one");
    subject_free(s);
    subject_free(g);
}

/* If all words are equally likely, the first hypothesis and the first word are chosen. */
static void ties_are_decided_by_number(void)
{
    static const int wanted[][3] = {{WORD_END}, {2, WORD_END}, {2, 2, WORD_END}};
    const translation_options options = {.beam = 3, .nbest = 3};
    char message[TRANSFORMER_MESSAGE_MAX];
    subject *const s = subject_new(1);
    transformer_map map;
    transformer_map_fill(&map, &s->config);
    memset(s->values, 0, map.count * sizeof *s->values);
    translator_free(s->model);
    s->model = translator_create(&s->config, s->values, message);
    translate(s, 0, 1, &options, NULL);
    for (int r = 0; r < 3; r++)
        CHECK(s->results[r].target_count == r + 1 &&
                  memcmp(s->results[r].target, wanted[r], (size_t)(r + 1) * sizeof(int)) == 0,
              "rank %d", r);
    subject_free(s);
}

static void length_penalty_ranks(void)
{
    translation_options options = {.beam = 8, .nbest = 8};
    subject *const s = subject_new(21);
    int moved = 0;
    for (int n = 0; n < 2; n++) {
        int shortest[TINY_SENTENCES];
        for (int k = 0; k < TINY_SENTENCES; k++)
            shortest[k] = s->results[k * 8].target_count;
        options.length_penalty = n;
        translate(s, 0, TINY_SENTENCES, &options, NULL);
        for (int k = 0; k < TINY_SENTENCES; k++) {
            const translation *const t = &s->results[k * 8];
            moved += n == 1 && t->target_count > shortest[k];
            for (int r = 1; r < 8 && has_end(&t[r]); r++)
                CHECK(t[r - 1].score / pow(t[r - 1].target_count, n) >=
                          t[r].score / pow(t[r].target_count, n),
                      "rank %d, penalty %d", r, n);
        }
    }
    CHECK(moved > 0, "the penalty changes nothing");
    subject_free(s);
}

/* ----------------------------------------------------------------- bits ----- */

static void check_all_same(const subject *a, const subject *b, int count, const char *what)
{
    for (int n = 0; n < count; n++)
        CHECK(same(a, &a->results[n], &b->results[n]), "%s: result %d has other bits", what, n);
}

static void cached_is_uncached(void)
{
    for (int64_t n = 0; n < test_effort(2); n++) {
        subject *const a = subject_new(test_seed(60) + (uint64_t)n);
        subject *const b = subject_new(test_seed(60) + (uint64_t)n);
        for (int beam = 1; beam <= 5; beam += 2) {
            translation_options options = {.beam = beam, .weights = true, .nbest = beam};
            forget(a);
            forget(b);
            translate(a, 0, TINY_SENTENCES, &options, NULL);
            options.no_cache = true;
            translate(b, 0, TINY_SENTENCES, &options, NULL);
            check_all_same(a, b, TINY_SENTENCES * beam, "without caches");
        }
        subject_free(a);
        subject_free(b);
    }
}

/* More sentences than are computed together, so that there are several groups. */
static void together_is_alone(void)
{
    const translation_options options = {.beam = 4, .weights = true, .nbest = 2};
    subject *const a = subject_new(test_seed(80)), *const b = subject_new(test_seed(80));
    translate(a, 0, TINY_SENTENCES, &options, NULL);
    for (int n = 0; n < TINY_SENTENCES; n++)
        translate(b, n, 1, &options, NULL);
    check_all_same(a, b, TINY_SENTENCES * 2, "alone");
    subject_free(a);
    subject_free(b);
}

static void threads_do_not_matter(void)
{
    const translation_options options = {.beam = 3, .weights = true};
    subject *const a = subject_new(test_seed(90)), *const b = subject_new(test_seed(90));
    translate(a, 0, TINY_SENTENCES, &options, NULL);
    for (int threads = 1; threads <= 3; threads++) {
        mha_pool *pool = NULL;
        CHECK(mha_pool_create(&pool, threads) == MHA_OK, "no pool");
        forget(b);
        translate(b, 0, TINY_SENTENCES, &options, pool);
        check_all_same(a, b, TINY_SENTENCES, "threads");
        mha_pool_free(pool);
    }
    subject_free(a);
    subject_free(b);
}

/* -------------------------------------------------------------- refusals ----- */

static mha_status try_one(const subject *s, const int *source, int length,
                          const translation_options *options)
{
    translation result = {.target_count = 77};
    const mha_status status =
        translator_translate(s->model, &source, &length, 1, options, &result, NULL);
    CHECK(status == MHA_OK || result.target_count == 77, "the result was touched");
    return status;
}

static void wrong_calls_are_refused(void)
{
    static const translation_options plain = {.beam = 1};
    static const struct {
        translation_options options;
        const char *what;
    } wrong[] = {{{.beam = 0}, "no beam"},
                 {{.beam = TRANSLATION_BEAM_MAX + 1}, "too wide a beam"},
                 {{.beam = 2, .nbest = 3}, "more than the beam"},
                 {{.beam = 2, .nbest = -1}, "fewer than none"},
                 {{.beam = 2, .length_penalty = (double)NAN}, "a penalty that is none"}};
    subject *const s = subject_new(1);
    const int words[12] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++)
        CHECK(try_one(s, words, 3, &wrong[n].options) == MHA_ERR_FLAG, "%s", wrong[n].what);
    CHECK(try_one(s, words, 11, &plain) == MHA_OK, "the longest");
    CHECK(try_one(s, words, 12, &plain) == MHA_ERR_LENGTH, "too long");
    CHECK(try_one(s, words, -1, &plain) == MHA_ERR_LENGTH, "shorter than nothing");
    CHECK(try_one(s, NULL, 0, &plain) == MHA_OK, "the empty sentence");
    CHECK(try_one(s, NULL, 1, &plain) == MHA_ERR_NULL, "no words");
    const int outside[] = {20}, below[] = {-1};
    CHECK(try_one(s, outside, 1, &plain) == MHA_ERR_INDEX, "a word too many");
    CHECK(try_one(s, below, 1, &plain) == MHA_ERR_INDEX, "a negative word");
    CHECK(translator_translate(s->model, NULL, NULL, 0, &plain, NULL, NULL) == MHA_OK, "none");
    subject_free(s);
}

/* For any parameters, even NaN, the search ends. */
static void search_ends_for_any_parameters(void)
{
    static const float poison[] = {NAN, INFINITY, -INFINITY, 3e38f};
    const translation_options options = {.beam = 4, .nbest = 4, .weights = true};
    char message[TRANSFORMER_MESSAGE_MAX];
    for (int n = 0; n < 4; n++) {
        subject *const s = subject_new(3);
        transformer_map map;
        transformer_map_fill(&map, &s->config);
        for (size_t k = 0; k < map.count; k += 97)
            s->values[k] = poison[n];
        translator_free(s->model);
        s->model = translator_create(&s->config, s->values, message);
        translate(s, 0, TINY_SENTENCES, &options, NULL);
        for (int k = 0; k < TINY_SENTENCES; k++)
            CHECK(s->results[k * 4].target_count > 0 && !isnan(s->results[k * 4].score),
                  "nothing came of it, or a score of %g", s->results[k * 4].score);
        subject_free(s);
    }
}

static void invalid_models(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const transformer_config good = tiny_config();
    float *const values = tiny_values(&good, 1);
    transformer_config bad = good;
    bad.heads = 5;
    CHECK(!translator_create(&bad, values, message) && strstr(message, "heads"), "\"%s\"", message);
    free(values);
}

/* ----------------------------------------------------------- vocabulary ----- */

static void words_are_those_of_the_corpus(void)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    const transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 1);
    translator *const t = translator_create(&config, values, message);
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        corpus_vocabulary corpus;
        corpus_vocabulary_fill(&corpus, (corpus_side)side);
        const vocabulary *const v = translator_vocabulary(t, side);
        CHECK(v->count == config.words[side], "%d words", v->count);
        for (int n = 0; n < corpus.count; n++)
            CHECK(strcmp(v->words[WORDS_SPECIAL + n], corpus.words[n]) == 0 &&
                      vocabulary_find(v, corpus.words[n]) == WORDS_SPECIAL + n,
                  "word %d", n);
        CHECK(vocabulary_find(v, "wug") == WORD_UNKNOWN, "wug is a word");
        CHECK(vocabulary_find(v, v->words[WORD_END]) == WORD_UNKNOWN, "the end can be typed");
        CHECK(vocabulary_find(v, "") == WORD_UNKNOWN, "nothing is a word");
    }
    CHECK(!translator_note_text(t, "x"), "a note from nowhere");
    translator_free(t);
    free(values);
}

static void other_words_have_no_names(void)
{
    subject *const s = subject_new(1);
    CHECK(translator_vocabulary(s->model, TRANSFORMER_SOURCE)->count == 0, "names");
    CHECK(vocabulary_find(translator_vocabulary(s->model, TRANSFORMER_SOURCE), "cat") ==
              WORD_UNKNOWN,
          "a word");
    CHECK(translator_longest(s->model) == s->config.positions, "longest");
    subject_free(s);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(agrees_with_the_plain_transformer);
    RUN(wide_beam_finds_everything);
    RUN(beams_are_ordered_and_differ);
    RUN(ties_are_decided_by_number);
    RUN(length_penalty_ranks);
    RUN(cached_is_uncached);
    RUN(together_is_alone);
    RUN(threads_do_not_matter);
    RUN(wrong_calls_are_refused);
    RUN(search_ends_for_any_parameters);
    RUN(invalid_models);
    RUN(words_are_those_of_the_corpus);
    RUN(other_words_have_no_names);
    return test_end();
}
