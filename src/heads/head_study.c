/* SPDX-License-Identifier: MIT */
#include "heads/head_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* What is known of a sentence before any head is asked. */
typedef struct scene {
    head_study *study;
    const head_pair *pair;
    int sentence;
    int tokens[ATTENTION_KINDS][CORPUS_TOKENS_MAX]; /* of the columns */
    bool special[ATTENTION_KINDS][CORPUS_TOKENS_MAX];
    bool first[CORPUS_TOKENS_MAX], end[CORPUS_TOKENS_MAX], question[CORPUS_TOKENS_MAX];
    const int *frequency[TRANSFORMER_SIDES]; /* by word number */
} scene;

static head_sample *sample_of(const head_study *s, int head, int measure, int sentence)
{
    return &s->samples[((ptrdiff_t)head * MEASURES + measure) * s->sentences + sentence];
}

static void put(const scene *at, int head, int measure, double value)
{
    *sample_of(at->study, head, measure, at->sentence) = (head_sample){(float)value, 1.0f};
}

/* ------------------------------------------------------------ one head ----- */

/* Of rows with a choice, how often the largest weight is on the rarest of the words it sees. */
static double find_rare(const head_matrix *m, const bool *special, const int *tokens,
                        const int *frequency)
{
    int rows = 0, found = 0;
    for (int i = 0; i < m->rows; i++) {
        int rarest = -1, choices = 0;
        for (int j = 0; j < head_seen(m, i); j++)
            if (!special[j]) {
                choices++;
                if (rarest < 0 || frequency[tokens[j]] < frequency[tokens[rarest]])
                    rarest = j;
            }
        if (choices > 1) {
            rows++;
            found += head_argmax(m, i, special) == rarest;
        }
    }
    return rows > 0 ? (double)found / rows : 0.0;
}

static void measure_words(const scene *at, int head, attention_kind kind, const head_matrix *m)
{
    const int side = kind == ATTENTION_DECODER ? TRANSFORMER_TARGET : TRANSFORMER_SOURCE;
    const int *const tokens = at->tokens[kind];
    const bool *const special = at->special[kind];
    put(at, head, MEASURE_RARE, find_rare(m, special, tokens, at->frequency[side]));
    if (kind != ATTENTION_CROSS) {
        put(at, head, MEASURE_DUPLICATE, head_detect(m, head_is_duplicate, tokens));
        put(at, head, MEASURE_INDUCTION, head_detect(m, head_is_induction, tokens));
    }
    for (int j = 0; kind != ATTENTION_DECODER && j < m->columns; j++)
        if (at->question[j])
            put(at, head, MEASURE_QUESTION, head_mass(m, at->question));
}

static void measure_shape(const scene *at, int head, attention_kind kind, const head_matrix *m)
{
    const bool *const special = at->special[kind];
    const double distance = head_distance(m, special);
    for (int r = -OFFSET_FAR; r <= OFFSET_FAR; r++) {
        put(at, head, MEASURE_MASS + OFFSET_FAR + r, head_offset_mass(m, r));
        put(at, head, MEASURE_ARGMAX + OFFSET_FAR + r, head_offset_argmax(m, r));
    }
    put(at, head, MEASURE_FIRST, head_mass(m, at->first));
    if (kind != ATTENTION_DECODER)
        put(at, head, MEASURE_END, head_mass(m, at->end));
    put(at, head, MEASURE_ENTROPY, head_entropy(m));
    put(at, head, MEASURE_SMOOTHED, head_entropy_smoothed(m));
    put(at, head, MEASURE_BREADTH, head_breadth(m));
    put(at, head, MEASURE_CONFIDENCE, head_confidence(m, special));
    put(at, head, MEASURE_DISTANCE, distance);
    put(at, head, MEASURE_REACH, distance / m->columns);
}

/* ---------------------------------------------------------------- gold ----- */

/* Row and column of a relation in a matrix of the kind; false where the row cannot see it. */
static bool place_relation(const corpus_role *role, bool back, attention_kind kind, int *from,
                           int *to)
{
    const int side = kind == ATTENTION_ENCODER ? CORPUS_ENGLISH : CORPUS_FRENCH;
    const int shift = kind == ATTENTION_DECODER ? 1 : 0; /* WORD_BEGIN */
    const int first = role->first[side], second = role->second[side];
    *from = (back ? second : first) + shift;
    *to = (back ? first : second) + shift;
    return first >= 0 && second >= 0 && (kind == ATTENTION_ENCODER || *to < *from);
}

static void measure_relations(const scene *at, int head, attention_kind kind, const head_matrix *m)
{
    for (int n = 0; n < 2 * at->pair->gold.role_count; n++) {
        const corpus_role *const role = &at->pair->gold.roles[n / 2];
        bool skip[CORPUS_TOKENS_MAX];
        int from, to;
        if (!place_relation(role, n % 2, kind, &from, &to))
            continue;
        memcpy(skip, at->special[kind], sizeof skip);
        skip[from] = true;
        head_sample *const sample = sample_of(
            at->study, head, MEASURE_RELATION + 2 * (int)role->kind + n % 2, at->sentence);
        sample->sum += head_argmax(m, from, skip) == to ? 1.0f : 0.0f;
        sample->count += 1.0f;
    }
}

static void measure_alignment(const scene *at, int head, const head_matrix *m, bool reads)
{
    const corpus_pair *const gold = &at->pair->gold;
    const head_links links = head_align(m, reads, gold->sources, gold->side[CORPUS_FRENCH].count,
                                        at->special[ATTENTION_CROSS]);
    *sample_of(at->study, head, reads ? MEASURE_READS : MEASURE_SAYS, at->sentence) =
        (head_sample){(float)links.words_right, (float)links.words};
    *sample_of(at->study, head, reads ? MEASURE_F_READS : MEASURE_F_SAYS, at->sentence) =
        (head_sample){2.0f * (float)links.right, (float)(links.found + links.known)};
}

/* --------------------------------------------------------------- scenes ----- */

static void describe(scene *at, const capture *c)
{
    const int question = at->pair->known ? at->pair->gold.side[CORPUS_ENGLISH].count - 1 : -1;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const bool own = kind == ATTENTION_DECODER;
        const int *const words = own ? c->target : c->source;
        for (int j = 0; j < c->kind[kind].columns; j++) {
            at->tokens[kind][j] = words[j];
            at->special[kind][j] = words[j] == WORD_BEGIN || words[j] == WORD_END;
        }
    }
    at->first[0] = true;
    at->end[c->source_count - 1] = true;
    if (question >= 0 && strcmp(at->pair->gold.side[CORPUS_ENGLISH].tokens[question], "?") == 0)
        at->question[question] = true;
}

static void measure(const scene *at, const capture *c)
{
    const transformer_config *const config = &at->study->config;
    for (int head = 0; head < at->study->heads; head++) {
        const head_name name = head_at(config, head);
        const head_matrix m = head_matrix_of(c, name);
        measure_shape(at, head, name.kind, &m);
        measure_words(at, head, name.kind, &m);
        if (!at->pair->known)
            continue;
        if (name.kind != ATTENTION_CROSS) {
            measure_relations(at, head, name.kind, &m);
        } else {
            measure_alignment(at, head, &m, false);
            measure_alignment(at, head, &m, true);
        }
    }
}

static bool study_pair(head_study *s, const translator *model, const head_pair *pair, int sentence,
                       int *const *frequency, mha_pool *pool)
{
    static const capture_options options = {.weights = true};
    scene at = {.study = s, .pair = pair, .sentence = sentence};
    capture *const c = head_capture(model, pair, &options, pool);
    if (!c)
        return false;
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        at.frequency[side] = frequency[side];
    describe(&at, c);
    measure(&at, c);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        s->tokens[kind] += c->kind[kind].rows;
    capture_free(c);
    return true;
}

/* ------------------------------------------------------------ baselines ----- */

typedef struct offset_counts {
    int at[2 * CORPUS_TOKENS_MAX], words;
} offset_counts;

static head_baseline best_offset(const offset_counts *counts)
{
    int best = CORPUS_TOKENS_MAX;
    for (int n = 0; n < 2 * CORPUS_TOKENS_MAX; n++)
        best = counts->at[n] > counts->at[best] ? n : best;
    return (head_baseline){best - CORPUS_TOKENS_MAX,
                           counts->words > 0 ? (double)counts->at[best] / counts->words : 0.0,
                           counts->words};
}

static head_baseline find_baseline(const head_pair *pairs, int count, attention_kind kind,
                                   int relation)
{
    offset_counts counts = {0};
    for (int n = 0; n < count; n++)
        for (int k = 0; pairs[n].known && k < pairs[n].gold.role_count; k++) {
            const corpus_role *const role = &pairs[n].gold.roles[k];
            int from, to;
            if ((int)role->kind != relation / 2 ||
                !place_relation(role, relation % 2, kind, &from, &to))
                continue;
            counts.at[CORPUS_TOKENS_MAX + to - from]++;
            counts.words++;
        }
    return best_offset(&counts);
}

static head_baseline find_alignment(const head_pair *pairs, int count, bool reads)
{
    offset_counts counts = {0};
    for (int n = 0; n < count; n++)
        for (int t = 0; pairs[n].known && t < pairs[n].gold.side[CORPUS_FRENCH].count; t++) {
            const uint64_t links = pairs[n].gold.sources[t];
            for (int j = 0; j < CORPUS_TOKENS_MAX; j++)
                counts.at[CORPUS_TOKENS_MAX + j - t - reads] += (int)(links >> j & 1);
            counts.words += links != 0;
        }
    return best_offset(&counts);
}

/* ---------------------------------------------------------------- study ----- */

enum { FREQUENCY_SENTENCES = 4000 };

/* How often each word is in training sentences. */
static bool count_words(const translator *model, int *frequency[TRANSFORMER_SIDES])
{
    const transformer_config *const config = translator_config(model);
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        frequency[side] = calloc((size_t)config->words[side], sizeof *frequency[side]);
        if (!frequency[side])
            return false;
    }
    for (int n = 0; n < FREQUENCY_SENTENCES; n++) {
        corpus_pair pair;
        corpus_generate(1, CORPUS_TRAIN, (uint64_t)n, &pair, NULL);
        for (int side = 0; side < TRANSFORMER_SIDES; side++)
            for (int k = 0; k < pair.side[side].count; k++)
                frequency[side][vocabulary_find(translator_vocabulary(model, side),
                                                pair.side[side].tokens[k])]++;
    }
    return true;
}

static bool run(head_study *s, const translator *model, const head_pair *pairs, mha_pool *pool,
                void (*watch)(int done, int count))
{
    int *frequency[TRANSFORMER_SIDES] = {NULL};
    bool fine = s->samples && count_words(model, frequency);
    for (int n = 0; n < s->sentences && fine; n++) {
        fine = study_pair(s, model, &pairs[n], n, frequency, pool);
        if (watch)
            watch(n + 1, s->sentences);
    }
    free(frequency[TRANSFORMER_SOURCE]);
    free(frequency[TRANSFORMER_TARGET]);
    return fine;
}

head_study *head_study_create(const translator *model, const head_pair *pairs, int count,
                              mha_pool *pool, void (*watch)(int done, int count))
{
    head_study *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->config = *translator_config(model);
    s->heads = head_count(&s->config);
    s->sentences = count;
    s->samples = calloc((size_t)s->heads * MEASURES * (size_t)count, sizeof *s->samples);
    for (int r = 0; r < RELATIONS; r++)
        for (int kind = 0; kind < ATTENTION_CROSS; kind++)
            s->baselines[kind][r] = find_baseline(pairs, count, (attention_kind)kind, r);
    for (int reads = 0; reads < 2; reads++)
        s->alignment[reads] = find_alignment(pairs, count, reads);
    if (run(s, model, pairs, pool, watch))
        return s;
    head_study_free(s);
    return NULL;
}

void head_study_free(head_study *s)
{
    if (s)
        free(s->samples);
    free(s);
}

const head_baseline *head_study_baseline(const head_study *s, attention_kind kind, int measure)
{
    if (measure >= MEASURE_RELATION && measure < MEASURE_SAYS)
        return &s->baselines[kind][measure - MEASURE_RELATION];
    if (measure == MEASURE_SAYS || measure == MEASURE_READS)
        return &s->alignment[measure - MEASURE_SAYS];
    return NULL;
}

/* ---------------------------------------------------------------- means ----- */

double head_study_count(const head_study *s, int head, int measure)
{
    double count = 0.0;
    for (int n = 0; n < s->sentences; n++)
        count += (double)sample_of(s, head, measure, n)->count;
    return count;
}

double head_study_mean(const head_study *s, int head, int measure)
{
    double sum = 0.0;
    for (int n = 0; n < s->sentences; n++)
        sum += (double)sample_of(s, head, measure, n)->sum;
    const double count = head_study_count(s, head, measure);
    return count > 0.0 ? sum / count : NAN;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { DRAWS = 1000 };

head_interval head_interval_of(const head_sample *samples, int count, uint64_t seed)
{
    double means[DRAWS];
    rng r = {seed};
    int drawn = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        double sum = 0.0, counted = 0.0;
        for (int n = 0; n < count; n++) {
            const head_sample *const one = &samples[rng_below(&r, count)];
            sum += (double)one->sum;
            counted += (double)one->count;
        }
        if (counted > 0.0)
            means[drawn++] = sum / counted;
    }
    if (drawn == 0)
        return (head_interval){NAN, NAN};
    qsort(means, (size_t)drawn, sizeof *means, ascending);
    return (head_interval){means[drawn * 25 / 1000], means[(drawn * 975 - 1) / 1000]};
}

head_interval head_study_interval(const head_study *s, int head, int measure)
{
    return head_interval_of(sample_of(s, head, measure, 0), s->sentences,
                            (uint64_t)head * MEASURES + (uint64_t)measure);
}
