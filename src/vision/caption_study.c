/* SPDX-License-Identifier: MIT */
/* Measures captions and what cross heads look at (caption_study.h). */
#include "vision/caption_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vision/caption_data.h"

enum { AT_ONCE = 64, ROWS = CAPTION_WORDS_MAX };

/* A word whose shape is known. */
typedef struct known_word {
    int64_t scene;
    int language, row; /* its place in the caption */
    uint64_t *patches; /* a bit for each patch that shows its shape */
} known_word;

typedef struct studying {
    caption_study *study;
    const captioner *model;
    int patches, blocks; /* of a picture; blocks of 64 bits for them */
    int64_t scenes;
    double *hits; /* [layers * heads][scenes] words of a scene that a head points at */
    int *known;   /* [scenes] words of a scene that pointing is measured on */
    float *cross; /* of the batch */
    scene *shown; /* [AT_ONCE] */
    scene_caption *captions;
    known_word *words; /* [scenes * ROWS] */
    uint64_t *bits;    /* [scenes * ROWS][blocks] */
} studying;

/* ----------------------------------------------------------------- patches ----- */

/* Whether a patch shows more of a shape than of any other. */
static bool shows(const vision_shape *v, const scene *s, int patch, int shape)
{
    const int across = vision_across(v);
    const int top = patch / across * v->stride, left = patch % across * v->stride;
    int counts[SCENE_SHAPES_MAX] = {0};
    for (int y = top; y < top + v->patch; y++)
        for (int x = left; x < left + v->patch; x++)
            if (s->shows[y * SCENE_SIDE + x] != SCENE_GROUND)
                counts[s->shows[y * SCENE_SIDE + x]]++;
    for (int n = 0; n < s->count; n++)
        if (n != shape && counts[n] >= counts[shape])
            return false;
    return counts[shape] > 0;
}

static bool has_bit(const uint64_t *bits, int number)
{
    return bits[number / 64] >> (number % 64) & 1;
}

/* -------------------------------------------------------------- one scene ----- */

static int largest(const float *weights, int count)
{
    int best = 0;
    for (int n = 1; n < count; n++)
        best = weights[n] > weights[best] ? n : best;
    return best;
}

/* Row `row` of pair n of the batch: which heads point at the shape of its word. */
static void point(studying *t, const batch *b, int n, int row, const known_word *word)
{
    const int heads = t->study->heads;
    const ptrdiff_t L = b->longest[TRANSFORMER_TARGET], S = b->longest[TRANSFORMER_SOURCE];
    for (int k = 0; k < t->study->layers * heads; k++) {
        const ptrdiff_t pair = (ptrdiff_t)(k / heads) * b->pairs + n;
        const float *const weights = t->cross + ((pair * heads + k % heads) * L + row) * S;
        t->hits[k * t->scenes + word->scene] += has_bit(word->patches, largest(weights, (int)S));
    }
}

static void study_word(studying *t, const batch *b, int n, int row, int64_t scene_number)
{
    const scene *const s = &t->shown[n];
    known_word *const word = &t->words[t->study->pointed];
    *word = (known_word){.scene = scene_number,
                         .language = (int)caption_language(scene_number),
                         .row = row,
                         .patches = t->bits + t->study->pointed * t->blocks};
    for (int patch = 0; patch < t->patches; patch++)
        if (shows(&t->model->config.vision, s, patch, t->captions[n].shapes[row]))
            word->patches[patch / 64] |= UINT64_C(1) << (patch % 64);
    point(t, b, n, row, word);
    t->known[scene_number]++;
    t->study->pointed++;
}

static void study_scene(studying *t, const batch *b, int n, int64_t scene_number)
{
    const row_score *const scores =
        network_scores(t->model->network) + b->starts[TRANSFORMER_TARGET][n];
    const scene_caption *const caption = &t->captions[n];
    const scene_language language = caption_language(scene_number);
    bool right = true;
    for (int row = 0; row <= caption->count; row++) {
        right = right && scores[row].right;
        t->study->words++;
        t->study->words_right += scores[row].right;
        if (row < caption->count && scores[row].right && caption->shapes[row] >= 0)
            study_word(t, b, n, row, scene_number);
    }
    t->study->scenes[language]++;
    t->study->right[language] += right;
}

static mha_status study_some(studying *t, uint64_t seed, corpus_split split, int64_t first,
                             int count)
{
    const captioner *const m = t->model;
    const network_mode mode = {.cross = t->cross};
    network_loss loss;
    batch *const b =
        caption_batch(&m->config, &m->scale, seed, split, first, count, t->shown, t->captions);
    if (!b)
        return MHA_ERR_MEMORY;
    const mha_status status = network_forward(m->network, b, &mode, &loss);
    for (int n = 0; n < count && status == MHA_OK; n++)
        study_scene(t, b, n, first + n);
    batch_free(b);
    return status;
}

/* ------------------------------------------------------------------ shares ----- */

/* The mean over all scenes that have known words of the share of them. */
static mean_interval share_of(const studying *t, const double *hits, double *shares)
{
    int count = 0;
    for (int64_t n = 0; n < t->scenes; n++)
        if (t->known[n] > 0)
            shares[count++] = hits[n] / t->known[n];
    return mean_interval_of(shares, count);
}

/* The hits of the best fixed patches: hits[scenes]. */
static void control_hits(const studying *t, int *counts, double *hits)
{
    const int places = SCENE_LANGUAGES * ROWS;
    for (int64_t n = 0; n < t->study->pointed; n++)
        for (int patch = 0; patch < t->patches; patch++)
            counts[(t->words[n].language * ROWS + t->words[n].row) * t->patches + patch] +=
                has_bit(t->words[n].patches, patch);
    for (int place = 0; place < places; place++) {
        int *const own = counts + place * t->patches;
        int best = 0;
        for (int patch = 1; patch < t->patches; patch++)
            best = own[patch] > own[best] ? patch : best;
        own[0] = best; /* from here on the patch that is looked at */
    }
    for (int64_t n = 0; n < t->study->pointed; n++) {
        const known_word *const word = &t->words[n];
        const int looked = counts[(word->language * ROWS + word->row) * t->patches];
        hits[word->scene] += has_bit(word->patches, looked);
    }
}

static mha_status find_shares(studying *t)
{
    const size_t scenes = (size_t)t->scenes;
    double *const shares = malloc(scenes * sizeof *shares);
    double *const hits = calloc(scenes, sizeof *hits);
    int *const counts =
        calloc((size_t)(SCENE_LANGUAGES * ROWS) * (size_t)t->patches, sizeof *counts);
    const bool fine = shares && hits && counts;
    for (int k = 0; fine && k < t->study->layers * t->study->heads; k++)
        t->study->pointing[k] = share_of(t, t->hits + k * t->scenes, shares);
    if (fine) {
        control_hits(t, counts, hits);
        t->study->control = share_of(t, hits, shares);
    }
    free(shares);
    free(hits);
    free(counts);
    return fine ? MHA_OK : MHA_ERR_MEMORY;
}

/* ----------------------------------------------------------------- measure ----- */

static mha_status study_all(studying *t, uint64_t seed, corpus_split split)
{
    for (int64_t first = 0; first < t->scenes; first += AT_ONCE) {
        const int64_t left = t->scenes - first;
        const mha_status status =
            study_some(t, seed, split, first, (int)(left < AT_ONCE ? left : AT_ONCE));
        if (status != MHA_OK)
            return status;
    }
    return find_shares(t);
}

mha_status caption_study_measure(caption_study *study, const captioner *model, uint64_t seed,
                                 corpus_split split, int64_t count)
{
    const transformer_config *const c = &model->config;
    *study = (caption_study){.layers = c->layers[TRANSFORMER_TARGET], .heads = c->heads};
    if (c->vision.side != SCENE_SIDE || c->positions < ROWS + 1)
        return MHA_ERR_SHAPE;
    const size_t all = (size_t)study->layers * (size_t)study->heads, scenes = (size_t)count;
    const size_t patches = (size_t)vision_tokens(&c->vision), blocks = (patches + 63) / 64;
    studying t = {.study = study,
                  .model = model,
                  .patches = (int)patches,
                  .blocks = (int)blocks,
                  .scenes = count,
                  .hits = calloc(all, scenes * sizeof *t.hits),
                  .known = calloc(scenes, sizeof *t.known),
                  .cross = calloc(all * AT_ONCE * (ROWS + 1), patches * sizeof *t.cross),
                  .shown = malloc(AT_ONCE * sizeof *t.shown),
                  .captions = malloc(AT_ONCE * sizeof *t.captions),
                  .words = malloc(scenes * ROWS * sizeof *t.words),
                  .bits = calloc(scenes * ROWS, blocks * sizeof *t.bits)};
    study->pointing = calloc(all, sizeof *study->pointing);
    const bool fine = t.hits && t.known && t.cross && t.shown && t.captions && t.words && t.bits &&
                      study->pointing;
    const mha_status status = fine ? study_all(&t, seed, split) : MHA_ERR_MEMORY;
    void *const blocks_of_memory[] = {t.hits,     t.known, t.cross, t.shown,
                                      t.captions, t.words, t.bits};
    for (size_t n = 0; n < sizeof blocks_of_memory / sizeof blocks_of_memory[0]; n++)
        free(blocks_of_memory[n]);
    return status;
}

void caption_study_free(caption_study *study)
{
    free(study->pointing);
    study->pointing = NULL;
}
