/* SPDX-License-Identifier: MIT */
/*
 * A study: for each text the weights are captured and every measure of every head becomes a sample,
 * a sum and a count. Baselines are found from pairs of the corpus alone. Means and bootstrap
 * intervals are computed from the samples when they are wanted.
 */
#include "heads/head_study.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "heads/head_join.h"

static head_sample *sample_of(const head_study *s, int head, int measure, int sentence)
{
    return &s->samples[((ptrdiff_t)head * MEASURES + measure) * s->sentences + sentence];
}

/* ------------------------------------------------------------- measures ----- */

static bool measure_head(const head_study *s, int head, const capture *c, const head_scene *scene,
                         int sentence)
{
    const head_matrix m = head_matrix_of(c, head_at(s->shape, head));
    head_sample samples[MEASURES];
    if (!head_measure_sentence(&m, scene, samples))
        return false;
    for (int measure = 0; measure < MEASURES; measure++)
        *sample_of(s, head, measure, sentence) = samples[measure];
    return true;
}

/* ------------------------------------------------------------ diversity ----- */

static head_sample *diversity_of(const head_study *s, attention_kind kind, int layer)
{
    const int first = head_number(s->shape, (head_name){kind, layer, 0});
    return &s->diversity[(ptrdiff_t)(first / s->shape.heads) * s->sentences];
}

/* The heads of a layer on whole words: matrices [heads], of which joins [heads] are the memory. */
static bool join_layer(const head_study *s, const capture *c, head_name name,
                       const head_scene *scene, head_matrix *matrices, head_join *joins)
{
    for (name.head = 0; name.head < s->shape.heads; name.head++) {
        matrices[name.head] = head_matrix_of(c, name);
        if (!head_join_needed(&matrices[name.head], scene))
            continue;
        if (!head_join_make(&joins[name.head], &matrices[name.head], scene))
            return false;
        matrices[name.head] = joins[name.head].matrix;
    }
    return true;
}

static bool compare_layer(const head_study *s, const capture *c, head_name name,
                          const head_scene *scene, int sentence)
{
    const size_t heads = (size_t)s->shape.heads;
    head_matrix *const matrices = calloc(heads, sizeof *matrices);
    head_join *const joins = calloc(heads, sizeof *joins);
    bool fine = matrices && joins && join_layer(s, c, name, scene, matrices, joins);
    if (fine) {
        const double value = head_diversity(matrices, s->shape.heads);
        if (!isnan(value))
            diversity_of(s, name.kind, name.layer)[sentence] = (head_sample){(float)value, 1.0f};
    }
    for (int h = 0; joins && h < s->shape.heads; h++)
        head_join_free(&joins[h]);
    free(joins);
    free(matrices);
    return fine;
}

static bool compare_layers(const head_study *s, const capture *c, const head_scene *scenes,
                           int sentence)
{
    bool fine = true;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int layer = 0; layer < s->shape.layers[kind] && fine; layer++)
            fine = compare_layer(s, c, (head_name){(attention_kind)kind, layer, 0}, &scenes[kind],
                                 sentence);
    return fine;
}

double head_study_diversity(const head_study *s, attention_kind kind, int layer)
{
    const head_sample *const samples = diversity_of(s, kind, layer);
    double sum = 0.0, count = 0.0;
    for (int n = 0; n < s->sentences; n++) {
        sum += (double)samples[n].sum;
        count += (double)samples[n].count;
    }
    return count > 0.0 ? sum / count : NAN;
}

head_interval head_study_diversity_interval(const head_study *s, attention_kind kind, int layer)
{
    const uint64_t seed = (uint64_t)head_number(s->shape, (head_name){kind, layer, 0});
    return head_interval_of(diversity_of(s, kind, layer), s->sentences, seed);
}

/* ------------------------------------------------------------ sentences ----- */

static bool study_text(head_study *s, const subject *model, const subject_texts *texts, int n,
                       mha_pool *pool)
{
    static const capture_options options = {.weights = true};
    head_scene scenes[ATTENTION_KINDS];
    capture *const c = subject_texts_run(model, texts, n, &options, pool);
    bool fine = c != NULL;
    for (int kind = 0; fine && kind < ATTENTION_KINDS; kind++)
        if (s->shape.layers[kind] > 0) {
            scenes[kind] =
                head_scene_of(c, (attention_kind)kind, &model->words, subject_texts_gold(texts, n));
            if (kind == ATTENTION_CROSS && s->links.texts) {
                scenes[kind].links = s->links.texts[n].links;
                scenes[kind].link_count = s->links.texts[n].count;
            }
            s->tokens[kind] += c->kind[kind].rows;
            s->begins[kind] = scenes[kind].begins;
        }
    for (int head = 0; fine && head < s->heads; head++)
        fine = measure_head(s, head, c, &scenes[head_at(s->shape, head).kind], n);
    fine = fine && compare_layers(s, c, scenes, n);
    capture_free(c);
    return fine;
}

/* ------------------------------------------------------------ baselines ----- */

/* How often each offset is right. */
typedef struct offset_counts {
    int at[2 * CORPUS_TOKENS_MAX]; /* at[CORPUS_TOKENS_MAX + offset] */
    int words;                     /* those that have a relation */
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

/* The baseline of a relation in encoder or decoder. */
static head_baseline find_baseline(const head_pair *pairs, int count, attention_kind kind,
                                   int relation)
{
    offset_counts counts = {0};
    for (int n = 0; n < count; n++)
        for (int k = 0; pairs[n].known && k < pairs[n].gold.role_count; k++) {
            const corpus_role *const role = &pairs[n].gold.roles[k];
            int from, to;
            if ((int)role->kind != relation / 2 ||
                !head_relation_place(role, relation % 2, kind, &from, &to))
                continue;
            counts.at[CORPUS_TOKENS_MAX + to - from]++;
            counts.words++;
        }
    return best_offset(&counts);
}

/* Counts the links of one text. The row that reads word t is t + 1, the one that predicts it t. */
static void count_links(offset_counts *counts, const uint64_t *links, int words, bool reads)
{
    for (int t = 0; t < words; t++) {
        const int row = t + reads;
        for (int j = row > CORPUS_TOKENS_MAX ? row - CORPUS_TOKENS_MAX : 0; j < CORPUS_TOKENS_MAX;
             j++)
            counts->at[CORPUS_TOKENS_MAX + j - row] += (int)(links[t] >> j & 1);
        counts->words += links[t] != 0;
    }
}

/* The baseline of cross-attention. */
static head_baseline find_alignment(const head_pair *pairs, int count, bool reads)
{
    offset_counts counts = {0};
    for (int n = 0; n < count; n++)
        if (pairs[n].known)
            count_links(&counts, pairs[n].gold.sources, pairs[n].gold.side[CORPUS_FRENCH].count,
                        reads);
    return best_offset(&counts);
}

void head_baselines_find(head_baselines *b, const head_pair *pairs, int count)
{
    for (int r = 0; r < RELATIONS; r++)
        for (int kind = 0; kind < ATTENTION_CROSS; kind++)
            b->relation[kind][r] = find_baseline(pairs, count, (attention_kind)kind, r);
    for (int reads = 0; reads < 2; reads++)
        b->alignment[reads] = find_alignment(pairs, count, reads);
}

/* Links that no grammar knows, from texts with their translations, and their baselines. They are
 * those of whole words. */
static bool find_links(head_study *s, const subject *model, const subject_texts *texts)
{
    if (model->translator || model->words.pieces || texts->count < LINK_TEXTS_MIN ||
        s->shape.layers[ATTENTION_CROSS] == 0)
        return true;
    if (!word_links_find(&s->links, texts->texts, texts->count))
        return false;
    for (int reads = 0; reads < 2; reads++) {
        offset_counts counts = {0};
        for (int n = 0; n < texts->count; n++)
            count_links(&counts, s->links.texts[n].links, s->links.texts[n].count, reads);
        s->baselines.alignment[reads] = best_offset(&counts);
    }
    return true;
}

/* ---------------------------------------------------------------- study ----- */

head_study *head_study_create(const subject *model, const subject_texts *texts, mha_pool *pool,
                              void (*watch)(int done, int count))
{
    head_study *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->shape = model->shape;
    s->heads = head_count(s->shape);
    s->sentences = texts->count;
    s->samples = calloc((size_t)s->heads * MEASURES * (size_t)texts->count, sizeof *s->samples);
    if (texts->pairs)
        head_baselines_find(&s->baselines, texts->pairs, texts->count);
    s->diversity =
        calloc((size_t)(s->heads / s->shape.heads) * (size_t)texts->count, sizeof *s->diversity);
    bool fine = s->samples != NULL && s->diversity != NULL && find_links(s, model, texts);
    for (int n = 0; n < s->sentences && fine; n++) {
        fine = study_text(s, model, texts, n, pool);
        if (watch)
            watch(n + 1, s->sentences);
    }
    if (fine)
        return s;
    head_study_free(s);
    return NULL;
}

void head_study_free(head_study *s)
{
    if (s) {
        free(s->samples);
        free(s->diversity);
        word_links_free(&s->links);
    }
    free(s);
}

const head_baseline *head_study_baseline(const head_study *s, attention_kind kind, int measure)
{
    if (measure >= MEASURE_RELATION && measure < MEASURE_SAYS)
        return &s->baselines.relation[kind][measure - MEASURE_RELATION];
    if (measure == MEASURE_SAYS || measure == MEASURE_READS)
        return &s->baselines.alignment[measure - MEASURE_SAYS];
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

/* A measure that is added at the end does not change the intervals of the others. */
enum { SEEDS_PER_HEAD = MEASURE_ONE };

head_interval head_study_interval(const head_study *s, int head, int measure)
{
    return head_interval_of(sample_of(s, head, measure, 0), s->sentences,
                            (uint64_t)head * SEEDS_PER_HEAD + (uint64_t)measure);
}
