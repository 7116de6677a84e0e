/* SPDX-License-Identifier: MIT */
/*
 * Measures and roles of the heads of golden/roles.json, which golden/make_role_goldens.py computes
 * a second time. tests/page/test_roles.mjs follows the same heads to the page of "mha view".
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"
#include "heads/head_roles.h"
#include "support/test.h"

enum { GOLDEN_SIDE = 24, GOLDEN_MEASURES = 32 };

/* A head with its numbers, as golden/make_role_goldens.py describes it. */
typedef struct golden_head {
    const char *name, *kind, *role, *nearest, *next;
    double rows, columns, question, score, next_score;
    bool causal, begins, has_sources, has_frequency;
    float weights[GOLDEN_SIDE * GOLDEN_SIDE];
    int tokens[GOLDEN_SIDE], frequency[GOLDEN_SIDE];
    bool special[GOLDEN_SIDE];
    corpus_pair gold;
    const char *measure_names[GOLDEN_MEASURES];
    double measures[GOLDEN_MEASURES]; /* NaN: not measured */
    int measure_count;
} golden_head;

static double number_of(json_reader *j)
{
    return json_reader_next(j) == JSON_NUMBER ? strtod(j->text, NULL) : NAN;
}

/* An array of numbers; -1 for null. */
static int read_integers(json_reader *j, int *values, int most)
{
    int count = 0;
    if (json_reader_next(j) != JSON_ARRAY)
        return -1;
    while (json_reader_next(j) == JSON_NUMBER && count < most)
        values[count++] = (int)strtol(j->text, NULL, 10);
    return count;
}

/* After the brackets of "weights" and of a row: pairs of column and weight. */
static void read_weights(json_reader *j, golden_head *h)
{
    int row = 0;
    json_reader_next(j);
    for (; json_reader_next(j) == JSON_ARRAY; row++)
        while (json_reader_next(j) == JSON_ARRAY) {
            const int column = (int)number_of(j);
            h->weights[row * (int)h->columns + column] = (float)number_of(j);
            json_reader_next(j);
        }
}

static void read_sources(json_reader *j, golden_head *h)
{
    int sources[GOLDEN_SIDE], *const count = &h->gold.side[CORPUS_FRENCH].count;
    if (json_reader_next(j) != JSON_ARRAY)
        return;
    h->has_sources = true;
    for (int words; (words = read_integers(j, sources, GOLDEN_SIDE)) >= 0; ++*count)
        for (int n = 0; n < words; n++)
            h->gold.sources[*count] |= 1ull << sources[n];
}

static void read_measures(json_reader *j, golden_head *h)
{
    json_reader_next(j);
    while (json_reader_next(j) == JSON_KEY && h->measure_count < GOLDEN_MEASURES) {
        h->measure_names[h->measure_count] = j->text;
        h->measures[h->measure_count++] = number_of(j);
    }
}

/* The value of a key that has a plain number, text or truth value; false for another key. */
static bool read_plain(json_reader *j, golden_head *h)
{
    const struct {
        const char *key, **text;
    } texts[] = {{"name", &h->name},
                 {"kind", &h->kind},
                 {"role", &h->role},
                 {"nearest", &h->nearest},
                 {"next", &h->next}};
    const struct {
        const char *key;
        double *number;
    } numbers[] = {{"rows", &h->rows},
                   {"columns", &h->columns},
                   {"question", &h->question},
                   {"score", &h->score},
                   {"next_score", &h->next_score}};
    for (size_t n = 0; n < sizeof texts / sizeof texts[0]; n++)
        if (strcmp(j->text, texts[n].key) == 0) {
            json_reader_next(j);
            *texts[n].text = j->text;
            return true;
        }
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        if (strcmp(j->text, numbers[n].key) == 0) {
            *numbers[n].number = number_of(j);
            return true;
        }
    return false;
}

static void read_field(json_reader *j, golden_head *h)
{
    int special[GOLDEN_SIDE];
    if (read_plain(j, h))
        return;
    const char *const key = j->text;
    if (strcmp(key, "causal") == 0)
        h->causal = json_reader_next(j) == JSON_TRUE;
    else if (strcmp(key, "begins") == 0)
        h->begins = json_reader_next(j) == JSON_TRUE;
    else if (strcmp(key, "weights") == 0)
        read_weights(j, h);
    else if (strcmp(key, "tokens") == 0)
        read_integers(j, h->tokens, GOLDEN_SIDE);
    else if (strcmp(key, "frequency") == 0)
        h->has_frequency = read_integers(j, h->frequency, GOLDEN_SIDE) >= 0;
    else if (strcmp(key, "sources") == 0)
        read_sources(j, h);
    else if (strcmp(key, "measures") == 0)
        read_measures(j, h);
    else if (strcmp(key, "special") == 0)
        for (int n = read_integers(j, special, GOLDEN_SIDE) - 1; n >= 0; n--)
            h->special[n] = special[n] != 0;
    else
        json_reader_skip(j);
}

static attention_kind kind_named(const char *name)
{
    int kind = 0;
    while (kind < ATTENTION_CROSS && strcmp(attention_kind_name((attention_kind)kind), name) != 0)
        kind++;
    return (attention_kind)kind;
}

/* A measure by its name; the two error rates are 1 less a measure. */
static double measure_named(const head_means *means, const char *name)
{
    for (int n = 0; n < MEASURES; n++)
        if (head_measure_name(n) != NULL && strcmp(head_measure_name(n), name) == 0)
            return means->mean[n];
    if (strcmp(name, "aer_says") == 0)
        return 1.0 - means->mean[MEASURE_F_SAYS];
    if (strcmp(name, "aer_reads") == 0)
        return 1.0 - means->mean[MEASURE_F_READS];
    CHECK(false, "there is no measure %s", name);
    return NAN;
}

static bool close_to(double got, double wanted)
{
    return isnan(wanted) ? isnan(got) : fabs(got - wanted) < 1e-6;
}

static void check_golden(const golden_head *h)
{
    if (!CHECK(h->name && h->kind && h->role && h->nearest && h->next, "a head without a key"))
        return;
    const head_matrix m = {h->weights, (int)h->rows, (int)h->columns, h->causal};
    const head_scene scene = {.kind = kind_named(h->kind),
                              .tokens = h->tokens,
                              .special = h->special,
                              .begins = h->begins,
                              .question = (int)h->question,
                              .frequency = h->has_frequency ? h->frequency : NULL,
                              .gold = h->has_sources ? &h->gold : NULL};
    const head_pair pair = {.known = h->has_sources, .gold = h->gold};
    head_baselines baselines;
    head_sample samples[MEASURES];
    head_baselines_find(&baselines, &pair, 1);
    head_measure_sentence(&m, &scene, samples);
    const head_means means = head_means_of(&scene, samples, &baselines);
    const head_role role = head_role_choose(&means);
    for (int n = 0; n < h->measure_count; n++)
        CHECK(close_to(measure_named(&means, h->measure_names[n]), h->measures[n]),
              "%s: %s is %.9g, not %.9g", h->name, h->measure_names[n],
              measure_named(&means, h->measure_names[n]), h->measures[n]);
    CHECK(strcmp(role.found ? role.best.name : ROLE_NONE, h->role) == 0, "%s: %s, not %s", h->name,
          role.found ? role.best.name : ROLE_NONE, h->role);
    CHECK(strcmp(role.best.name, h->nearest) == 0 && close_to(role.best.score, h->score),
          "%s: %s %.9g, not %s %.9g", h->name, role.best.name, role.best.score, h->nearest,
          h->score);
    CHECK(strcmp(role.next.name, h->next) == 0 && close_to(role.next.score, h->next_score),
          "%s: next %s %.9g, not %s %.9g", h->name, role.next.name, role.next.score, h->next,
          h->next_score);
}

static char *read_golden(size_t *length)
{
    enum { ROOM = 1 << 20 };
    FILE *const file = fopen(MHA_GOLDEN_FOLDER "/roles.json", "rb");
    char *const text = malloc(ROOM);
    if (!CHECK(file && text, "no golden file"))
        abort();
    *length = fread(text, 1, ROOM, file);
    fclose(file);
    return text;
}

static void golden_heads_have_their_roles(void)
{
    size_t length;
    char *const text = read_golden(&length);
    json_reader j = json_reader_begin(text, length);
    int heads = 0;
    json_reader_next(&j);
    for (; json_reader_next(&j) == JSON_OBJECT; heads++) {
        golden_head *const h = calloc(1, sizeof *h);
        if (!h)
            abort();
        while (json_reader_next(&j) == JSON_KEY)
            read_field(&j, h);
        check_golden(h);
        free(h);
    }
    CHECK(json_reader_next(&j) == JSON_END && heads > 50, "%d heads were read", heads);
    json_reader_free(&j);
    free(text);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(golden_heads_have_their_roles);
    return test_end();
}
