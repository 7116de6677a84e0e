/* SPDX-License-Identifier: MIT */
/* Counts which heads look at the right shape (pointing.h). */
#include "vision/pointing.h"

#include <stdlib.h>

/* A row whose shape is known. */
typedef struct known_row {
    int64_t scene;
    int place;
} known_row;

struct pointing {
    vision_shape vision;
    int layers, heads, places;
    int patches, blocks; /* of a picture; blocks of 64 bits for them */
    int64_t scenes, count;
    double *hits;    /* [layers * heads][scenes] rows of a scene of which a head points right */
    int *known;      /* [scenes] rows of a scene */
    known_row *rows; /* [rows_max] */
    uint64_t *bits;  /* [rows_max][blocks], one for each patch that shows the shape of a row */
};

pointing *pointing_new(const transformer_config *config, int64_t scenes, int64_t rows_max,
                       int places)
{
    const int layers = config->layers[TRANSFORMER_TARGET];
    const size_t all = (size_t)layers * (size_t)config->heads, count = (size_t)scenes + 1;
    const size_t patches = (size_t)vision_tokens(&config->vision), blocks = (patches + 63) / 64;
    const size_t most = (size_t)rows_max + 1;
    pointing *const p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (pointing){.vision = config->vision,
                    .layers = layers,
                    .heads = config->heads,
                    .places = places,
                    .patches = (int)patches,
                    .blocks = (int)blocks,
                    .scenes = scenes,
                    .hits = calloc(all, count * sizeof *p->hits),
                    .known = calloc(count, sizeof *p->known),
                    .rows = malloc(most * sizeof *p->rows),
                    .bits = calloc(most, blocks * sizeof *p->bits)};
    if (p->hits && p->known && p->rows && p->bits)
        return p;
    pointing_free(p);
    return NULL;
}

void pointing_free(pointing *p)
{
    if (!p)
        return;
    free(p->hits);
    free(p->known);
    free(p->rows);
    free(p->bits);
    free(p);
}

/* ----------------------------------------------------------------- one row ----- */

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

static int largest(const float *weights, int count)
{
    int best = 0;
    for (int n = 1; n < count; n++)
        best = weights[n] > weights[best] ? n : best;
    return best;
}

void pointing_add(pointing *p, const scene *s, int64_t number, int place, int shape, const batch *b,
                  int pair, int row, const float *cross)
{
    const ptrdiff_t L = b->longest[TRANSFORMER_TARGET], S = b->longest[TRANSFORMER_SOURCE];
    uint64_t *const bits = p->bits + p->count * p->blocks;
    for (int patch = 0; patch < p->patches; patch++)
        if (shows(&p->vision, s, patch, shape))
            bits[patch / 64] |= UINT64_C(1) << (patch % 64);
    for (int k = 0; k < p->layers * p->heads; k++) {
        const ptrdiff_t at = (ptrdiff_t)(k / p->heads) * b->pairs + pair;
        const float *const weights = cross + ((at * p->heads + k % p->heads) * L + row) * S;
        p->hits[k * p->scenes + number] += has_bit(bits, largest(weights, (int)S));
    }
    p->rows[p->count++] = (known_row){number, place};
    p->known[number]++;
}

/* ------------------------------------------------------------------ shares ----- */

/* The mean over all scenes that have known rows of the share of them. */
static mean_interval share_of(const pointing *p, const double *hits, double *shares)
{
    int count = 0;
    for (int64_t n = 0; n < p->scenes; n++)
        if (p->known[n] > 0)
            shares[count++] = hits[n] / p->known[n];
    return mean_interval_of(shares, count);
}

/* The hits of the best fixed patches: hits[scenes]. */
static void control_hits(const pointing *p, int *counts, double *hits)
{
    for (int64_t n = 0; n < p->count; n++)
        for (int patch = 0; patch < p->patches; patch++)
            counts[p->rows[n].place * p->patches + patch] +=
                has_bit(p->bits + n * p->blocks, patch);
    for (int place = 0; place < p->places; place++) {
        int *const own = counts + place * p->patches;
        int best = 0;
        for (int patch = 1; patch < p->patches; patch++)
            best = own[patch] > own[best] ? patch : best;
        own[0] = best; /* from here on the patch that is looked at */
    }
    for (int64_t n = 0; n < p->count; n++) {
        const int looked = counts[p->rows[n].place * p->patches];
        hits[p->rows[n].scene] += has_bit(p->bits + n * p->blocks, looked);
    }
}

mha_status pointing_finish(const pointing *p, pointing_result *result)
{
    const size_t scenes = (size_t)p->scenes + 1, all = (size_t)p->layers * (size_t)p->heads;
    double *const shares = malloc(scenes * sizeof *shares);
    double *const hits = calloc(scenes, sizeof *hits);
    int *const counts = calloc((size_t)p->places * (size_t)p->patches, sizeof *counts);
    *result = (pointing_result){.rows = p->count,
                                .layers = p->layers,
                                .heads = p->heads,
                                .shares = calloc(all, sizeof *result->shares)};
    const bool fine = shares && hits && counts && result->shares;
    for (size_t k = 0; fine && k < all; k++)
        result->shares[k] = share_of(p, p->hits + (int64_t)k * p->scenes, shares);
    if (fine) {
        control_hits(p, counts, hits);
        result->control = share_of(p, hits, shares);
    }
    free(shares);
    free(hits);
    free(counts);
    return fine ? MHA_OK : MHA_ERR_MEMORY;
}

void pointing_result_free(pointing_result *result)
{
    free(result->shares);
    result->shares = NULL;
}
