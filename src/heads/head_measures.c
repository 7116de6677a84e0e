/* SPDX-License-Identifier: MIT */
/* One head on one sentence: head_metrics.c has the formulas, this file applies them to the words
 * of the sentence and to what the grammar knows of it. */
#include "heads/head_join.h"

#include <stdlib.h>
#include <string.h>

const char *head_measure_name(int measure)
{
    static const char *const names[MEASURES] = {
        [MEASURE_MASS + OFFSET_FAR - 1] = "prev",
        [MEASURE_MASS + OFFSET_FAR] = "self",
        [MEASURE_MASS + OFFSET_FAR + 1] = "next",
        [MEASURE_FIRST] = "first",
        [MEASURE_END] = "end",
        [MEASURE_ENTROPY] = "entropy",
        [MEASURE_SMOOTHED] = "smoothed",
        [MEASURE_BREADTH] = "broad",
        [MEASURE_CONFIDENCE] = "confidence",
        [MEASURE_DISTANCE] = "distance",
        [MEASURE_REACH] = "far",
        [MEASURE_RARE] = "rare",
        [MEASURE_DUPLICATE] = "duplicate",
        [MEASURE_INDUCTION] = "induction",
        [MEASURE_QUESTION] = "question",
        [MEASURE_ONE] = "one",
        [MEASURE_SAYS] = "says",
        [MEASURE_READS] = "reads",
    };
    return names[measure];
}

/* A measure with one value per sentence. */
static void put(head_sample *samples, int measure, double value)
{
    samples[measure] = (head_sample){(float)value, 1.0f};
}

/* ------------------------------------------------------- shape and words ----- */

/* Whether a column is a mark other than the begin mark. */
static bool is_end(const head_scene *scene, int j)
{
    return scene->special && scene->special[j] && !(j == 0 && scene->begins);
}

static bool has_end(const head_matrix *m, const head_scene *scene)
{
    bool any = false;
    for (int j = 0; j < m->columns; j++)
        any |= is_end(scene, j);
    return any;
}

/* Weight on the end mark, or on all of several: [SEP] also separates two texts. */
static double end_mass(const head_matrix *m, const head_scene *scene)
{
    double mass = 0.0;
    if (!has_end(m, scene))
        return head_column_mass(m, m->columns - 1);
    for (int j = 0; j < m->columns; j++)
        if (is_end(scene, j))
            mass += head_column_mass(m, j);
    return mass;
}

/* The columns that the rule for sinks measures are left out: the first one, and the last one if it
 * stands for the end. */
static double one_word(const head_matrix *m, const head_scene *scene)
{
    const bool last_is_end = scene->kind != ATTENTION_DECODER && !has_end(m, scene);
    return head_one_column(m, scene->special, 1, m->columns - last_is_end);
}

/* Measures of the weights alone. */
static void measure_shape(const head_matrix *m, const head_scene *scene, head_sample *samples)
{
    const double distance = head_distance(m, scene->special);
    for (int r = -OFFSET_FAR; r <= OFFSET_FAR; r++) {
        put(samples, MEASURE_MASS + OFFSET_FAR + r, head_offset_mass(m, r));
        put(samples, MEASURE_ARGMAX + OFFSET_FAR + r, head_offset_argmax(m, r));
    }
    put(samples, MEASURE_FIRST, head_column_mass(m, 0));
    if (scene->kind != ATTENTION_DECODER)
        put(samples, MEASURE_END, end_mass(m, scene));
    put(samples, MEASURE_ENTROPY, head_entropy(m));
    put(samples, MEASURE_SMOOTHED, head_entropy_smoothed(m));
    put(samples, MEASURE_BREADTH, head_breadth(m));
    put(samples, MEASURE_CONFIDENCE, head_confidence(m, scene->special));
    put(samples, MEASURE_DISTANCE, distance);
    put(samples, MEASURE_REACH, distance / m->columns);
    put(samples, MEASURE_ONE, one_word(m, scene));
}

/* Of the rows that see two ordinary words or more, the share whose largest weight is on the rarest
 * of them. */
static double find_rare(const head_matrix *m, const head_scene *scene)
{
    int rows = 0, found = 0;
    for (int i = 0; i < m->rows; i++) {
        int rarest = -1, choices = 0;
        for (int j = 0; j < head_seen(m, i); j++)
            if (!(scene->special && scene->special[j])) {
                choices++;
                if (rarest < 0 ||
                    scene->frequency[scene->tokens[j]] < scene->frequency[scene->tokens[rarest]])
                    rarest = j;
            }
        if (choices > 1) {
            rows++;
            found += head_argmax(m, i, scene->special) == rarest;
        }
    }
    return rows > 0 ? (double)found / rows : 0.0;
}

/* Measures that compare words. */
static void measure_words(const head_matrix *m, const head_scene *scene, head_sample *samples)
{
    if (scene->frequency)
        put(samples, MEASURE_RARE, find_rare(m, scene));
    if (scene->kind != ATTENTION_CROSS) {
        put(samples, MEASURE_DUPLICATE, head_detect(m, head_is_duplicate, scene->tokens));
        put(samples, MEASURE_INDUCTION, head_detect(m, head_is_induction, scene->tokens));
    }
    if (scene->question >= 0)
        put(samples, MEASURE_QUESTION, head_column_mass(m, scene->question));
}

/* ---------------------------------------------------------------- gold ----- */

bool head_relation_place(const corpus_role *role, bool back, attention_kind kind, int *from,
                         int *to)
{
    const int side = kind == ATTENTION_ENCODER ? CORPUS_ENGLISH : CORPUS_FRENCH;
    const int shift = kind == ATTENTION_DECODER ? 1 : 0; /* WORD_BEGIN */
    const int first = role->first[side], second = role->second[side];
    *from = (back ? second : first) + shift;
    *to = (back ? first : second) + shift;
    return first >= 0 && second >= 0 && (kind == ATTENTION_ENCODER || *to < *from);
}

/* For each relation of the sentence, whether the largest weight of the row of one word is on the
 * other word. The word itself is left out: many heads have much weight there. */
static void measure_relations(const head_matrix *m, const head_scene *scene, head_sample *samples)
{
    for (int n = 0; n < 2 * scene->gold->role_count; n++) {
        const corpus_role *const role = &scene->gold->roles[n / 2];
        head_sample *const sample = &samples[MEASURE_RELATION + 2 * (int)role->kind + n % 2];
        bool skip[CORPUS_TOKENS_MAX] = {false}; /* the grammar's sentences are no longer */
        int from, to;
        if (!head_relation_place(role, n % 2, scene->kind, &from, &to))
            continue;
        if (scene->special)
            memcpy(skip, scene->special, (size_t)m->columns * sizeof skip[0]);
        skip[from] = true;
        sample->sum += head_argmax(m, from, skip) == to ? 1.0f : 0.0f;
        sample->count += 1.0f;
    }
}

/* Word n of the target is predicted by row n and read by row n + 1. */
static void measure_alignment(const head_matrix *m, const head_scene *scene, bool reads,
                              head_sample *samples)
{
    const corpus_pair *const gold = scene->gold;
    const head_links links =
        scene->links
            ? head_align(m, reads, scene->links, scene->link_count, scene->special)
            : head_align(m, reads, gold->sources, gold->side[CORPUS_FRENCH].count, scene->special);
    samples[reads ? MEASURE_READS : MEASURE_SAYS] =
        (head_sample){(float)links.words_right, (float)links.words};
    if (!scene->links) /* words without an estimated link may have one all the same */
        samples[reads ? MEASURE_F_READS : MEASURE_F_SAYS] =
            (head_sample){2.0f * (float)links.right, (float)(links.found + links.known)};
}

static void measure(const head_matrix *m, const head_scene *scene, head_sample *samples)
{
    memset(samples, 0, MEASURES * sizeof samples[0]);
    measure_shape(m, scene, samples);
    measure_words(m, scene, samples);
    if (scene->gold && scene->kind != ATTENTION_CROSS)
        measure_relations(m, scene, samples);
    const bool aligned = scene->kind == ATTENTION_CROSS && (scene->links || scene->gold);
    for (int reads = 0; aligned && reads < 2; reads++)
        measure_alignment(m, scene, reads, samples);
}

bool head_measure_sentence(const head_matrix *m, const head_scene *scene,
                           head_sample samples[MEASURES])
{
    if (!head_join_needed(m, scene)) {
        measure(m, scene, samples);
        return true;
    }
    head_join join;
    const bool fine = head_join_make(&join, m, scene);
    if (fine)
        measure(&join.matrix, &join.scene, samples);
    head_join_free(&join);
    return fine;
}

/* --------------------------------------------------- the words of a model ----- */

enum { FREQUENCY_SENTENCES = 4000 };

bool head_words_count(head_words *words, const translator *model)
{
    const transformer_config *const config = translator_config(model);
    const int question = vocabulary_find(translator_vocabulary(model, TRANSFORMER_SOURCE), "?");
    *words = (head_words){.question = {question == WORD_UNKNOWN ? -1 : question, -1}};
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        words->frequency[side] =
            calloc((size_t)config->words[side], sizeof *words->frequency[side]);
        if (!words->frequency[side])
            return false;
    }
    for (int n = 0; n < FREQUENCY_SENTENCES; n++) {
        corpus_pair pair;
        corpus_generate(1, CORPUS_TRAIN, (uint64_t)n, &pair, NULL);
        for (int side = 0; side < TRANSFORMER_SIDES; side++)
            for (int k = 0; k < pair.side[side].count; k++)
                words->frequency[side][vocabulary_find(translator_vocabulary(model, side),
                                                       pair.side[side].tokens[k])]++;
    }
    return true;
}

void head_words_free(head_words *words)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        free(words->frequency[side]);
}

head_scene head_scene_of(const capture *c, attention_kind kind, const head_words *words,
                         const corpus_pair *gold)
{
    const bool own = kind == ATTENTION_DECODER;
    const int side = own ? TRANSFORMER_TARGET : TRANSFORMER_SOURCE;
    const int *const tokens = own ? c->target : c->source;
    const bool *const marks = own ? c->target_marks : c->source_marks;
    head_scene scene = {
        .kind = kind,
        .tokens = tokens,
        .special = marks,
        .begins = marks[0] && (own || c->kind[kind].columns > 1),
        .row_continues = kind == ATTENTION_ENCODER   ? c->source_continues
                         : kind == ATTENTION_DECODER ? c->target_continues
                                                     : c->says_more,
        .column_continues = own ? c->target_continues : c->source_continues,
        .question = -1,
        .frequency = words->frequency[side],
        .gold = gold,
    };
    if (words->pieces)
        scene.row_continues = scene.column_continues = NULL;
    for (int j = 0; j < c->kind[kind].columns; j++)
        if (tokens[j] == words->question[side])
            scene.question = j;
    return scene;
}
