/* SPDX-License-Identifier: MIT */
/* Alignment error rates of heads (head_alignment.h). */
#include "heads/head_alignment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void aligned_pair_free(const subject *s, aligned_pair *pair)
{
    subject_text_free(s, &pair->text);
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        given_words_free(&pair->words[side]);
    free(pair->links);
    pair->links = NULL;
}

/* ------------------------------------------------------------- one pair ----- */

static int sources_of(const aligned_pair *p)
{
    return p->words[TRANSFORMER_SOURCE].count;
}

static int targets_of(const aligned_pair *p)
{
    return p->words[TRANSFORMER_TARGET].count;
}

/* The links of a pair that are sure, as the count of an empty alignment. */
static head_sample begin_score(const aligned_pair *p)
{
    head_sample score = {0.0f, 0.0f};
    for (ptrdiff_t n = 0; n < (ptrdiff_t)sources_of(p) * targets_of(p); n++)
        score.count += p->links[n] == LINK_SURE ? 1.0f : 0.0f;
    return score;
}

static void add_link(const aligned_pair *p, int target, int source, head_sample *score)
{
    const uint8_t link = p->links[(ptrdiff_t)target * sources_of(p) + source];
    score->sum += link == LINK_SURE ? 2.0f : link == LINK_POSSIBLE ? 1.0f : 0.0f;
    score->count += 1.0f;
}

head_sample alignment_score(const aligned_pair *p, const float *weights)
{
    const head_matrix m = {weights, targets_of(p), sources_of(p), false};
    head_sample score = begin_score(p);
    for (int t = 0; t < m.rows; t++) {
        const int source = head_argmax(&m, t, NULL);
        if (source >= 0)
            add_link(p, t, source, &score);
    }
    return score;
}

static head_sample score_diagonal(const aligned_pair *p)
{
    const int sources = sources_of(p), targets = targets_of(p);
    head_sample score = begin_score(p);
    for (int t = 0; t < targets; t++)
        add_link(p, t, (int)((2 * (int64_t)t + 1) * sources / (2 * (int64_t)targets)), &score);
    return score;
}

/* How many tokens each word of the target has, without the one that the decoder begins with. */
static void count_pieces(const token_words *tokens, int count, int *pieces)
{
    for (int n = 1; n < count; n++)
        for (int w = tokens[n].first; w < tokens[n].end; w++)
            pieces[w]++;
}

/* Adds one row to the row of a word. A token of several words has an equal share of each. */
static void add_row(const float *row, const token_words *columns, int count, float factor,
                    float *to)
{
    for (int j = 0; j < count; j++)
        for (int w = columns[j].first; w < columns[j].end; w++)
            to[w] += factor * row[j] / (float)(columns[j].end - columns[j].first);
}

bool alignment_join(const aligned_pair *p, const head_matrix *head, bool reads, float factor,
                    float *to)
{
    const subject_side *const source = &p->text.source, *const target = &p->text.target;
    token_words *const columns = calloc((size_t)source->count + 1, sizeof *columns);
    token_words *const rows = calloc((size_t)target->count + 1, sizeof *rows);
    int *const pieces = calloc((size_t)targets_of(p) + 1, sizeof *pieces);
    const bool fine = columns && rows && pieces;
    if (fine) {
        given_words_of_tokens(&p->words[TRANSFORMER_SOURCE], source, columns);
        given_words_of_tokens(&p->words[TRANSFORMER_TARGET], target, rows);
        count_pieces(rows, target->count, pieces);
    }
    for (int n = 1; fine && n < target->count; n++)
        for (int w = rows[n].first; w < rows[n].end; w++)
            add_row(head->weights + (ptrdiff_t)(reads ? n : n - 1) * head->columns, columns,
                    head->columns, factor / (float)pieces[w], to + (ptrdiff_t)w * sources_of(p));
    free(columns);
    free(rows);
    free(pieces);
    return fine;
}

/* ------------------------------------------------------------------ ways ----- */

int alignment_way_head(const alignment_study *s, int layer, int head)
{
    return layer * s->heads + head;
}

int alignment_way_layer(const alignment_study *s, int layer)
{
    return s->layers * s->heads + layer;
}

int alignment_way_all(const alignment_study *s)
{
    return s->layers * s->heads + s->layers;
}

int alignment_way_diagonal(const alignment_study *s)
{
    return alignment_way_all(s) + 1;
}

int alignment_ways(const alignment_study *s)
{
    return alignment_way_diagonal(s) + 1;
}

static head_sample *sample_of(const alignment_study *s, bool reads, int way, int sentence)
{
    return &s->samples[((ptrdiff_t)reads * alignment_ways(s) + way) * s->sentences + sentence];
}

/* ---------------------------------------------------------------- study ----- */

/* Weights on whole words: of one head, and the means of a layer and of all. */
typedef struct word_weights {
    size_t cells;
    float *one, *layer, *all; /* [cells] */
} word_weights;

static bool weights_make(word_weights *w, const aligned_pair *p)
{
    w->cells = (size_t)sources_of(p) * (size_t)targets_of(p);
    w->one = calloc(3 * w->cells + 1, sizeof *w->one);
    if (w->one == NULL)
        return false;
    w->layer = w->one + w->cells;
    w->all = w->layer + w->cells;
    return true;
}

static void add_mean(const word_weights *w, float *to, const float *from, int count)
{
    for (size_t n = 0; n < w->cells; n++)
        to[n] += from[n] / (float)count;
}

static bool study_layer(alignment_study *s, const aligned_pair *p, const capture *c, int layer,
                        bool reads, int sentence, const word_weights *w)
{
    bool fine = true;
    memset(w->layer, 0, w->cells * sizeof *w->layer);
    for (int h = 0; h < s->heads && fine; h++) {
        const head_matrix m = head_matrix_of(c, (head_name){ATTENTION_CROSS, layer, h});
        memset(w->one, 0, w->cells * sizeof *w->one);
        fine = alignment_join(p, &m, reads, 1.0f, w->one);
        *sample_of(s, reads, alignment_way_head(s, layer, h), sentence) =
            alignment_score(p, w->one);
        add_mean(w, w->layer, w->one, s->heads);
    }
    *sample_of(s, reads, alignment_way_layer(s, layer), sentence) = alignment_score(p, w->layer);
    add_mean(w, w->all, w->layer, s->layers);
    return fine;
}

static bool study_pair(alignment_study *s, const aligned_pair *p, const capture *c, int sentence)
{
    word_weights w;
    bool fine = weights_make(&w, p);
    for (int reads = 0; reads < READINGS && fine; reads++) {
        memset(w.all, 0, w.cells * sizeof *w.all);
        for (int layer = 0; layer < s->layers && fine; layer++)
            fine = study_layer(s, p, c, layer, reads, sentence, &w);
        *sample_of(s, reads, alignment_way_all(s), sentence) = alignment_score(p, w.all);
        *sample_of(s, reads, alignment_way_diagonal(s), sentence) = score_diagonal(p);
    }
    free(w.one);
    return fine;
}

static void count_pair(alignment_study *s, const aligned_pair *p)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        s->words[side] += p->words[side].count;
    for (ptrdiff_t n = 0; n < (ptrdiff_t)sources_of(p) * targets_of(p); n++) {
        s->sure += p->links[n] == LINK_SURE;
        s->possible += p->links[n] == LINK_POSSIBLE;
    }
}

alignment_study *alignment_study_create(const subject *model, const aligned_pair *pairs, int count,
                                        mha_pool *pool, void (*watch)(int done, int count))
{
    static const capture_options options = {.weights = true};
    alignment_study *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->layers = model->shape.layers[ATTENTION_CROSS];
    s->heads = model->shape.heads;
    s->sentences = count;
    s->samples =
        calloc(READINGS * (size_t)alignment_ways(s) * (size_t)count + 1, sizeof *s->samples);
    bool fine = s->samples != NULL;
    for (int n = 0; n < count && fine; n++) {
        capture *const c = subject_run(model, &pairs[n].text, &options, pool);
        fine = c && study_pair(s, &pairs[n], c, n);
        capture_free(c);
        count_pair(s, &pairs[n]);
        if (watch)
            watch(n + 1, count);
    }
    if (fine)
        return s;
    alignment_study_free(s);
    return NULL;
}

void alignment_study_free(alignment_study *s)
{
    if (s)
        free(s->samples);
    free(s);
}

double alignment_error_rate(const alignment_study *s, bool reads, int way)
{
    const head_sample *const samples = sample_of(s, reads, way, 0);
    double sum = 0.0, count = 0.0;
    for (int n = 0; n < s->sentences; n++) {
        sum += (double)samples[n].sum;
        count += (double)samples[n].count;
    }
    return count > 0.0 ? 1.0 - sum / count : NAN;
}

head_interval alignment_interval(const alignment_study *s, bool reads, int way)
{
    const head_interval right =
        head_interval_of(sample_of(s, reads, way, 0), s->sentences, 1 + (uint64_t)way);
    return (head_interval){1.0 - right.high, 1.0 - right.low};
}
