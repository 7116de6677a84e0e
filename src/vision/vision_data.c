/* SPDX-License-Identifier: MIT */
/* Orders of the pictures, batches of a step, and batches for validation and test. */
#include "vision/vision_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Series of random numbers that differ from all others of a training. */
static const uint64_t split_series = UINT64_C(0x3c79ac492ba7b653);
static const uint64_t order_series = UINT64_C(0x1f67b3a7d92c40e5);
static const uint64_t change_series = UINT64_C(0x7d1e4c0b95a83f26);
static const uint64_t mix_series = UINT64_C(0x52c8d6e1f30b974a);

struct vision_data {
    training_data base;
    const picture_set *train, *test;
    pixel_scale scale;
    ptrdiff_t *split; /* [pictures]: first those for validation, then those for training */
    ptrdiff_t *order; /* [pictures for training]: their order in an epoch */
    uint64_t seed;    /* of that order */
    int64_t epoch;    /* -1: there is no order yet */
};

/* ----------------------------------------------------------------- order ----- */

static void shuffle(rng *r, ptrdiff_t *list, ptrdiff_t count)
{
    for (ptrdiff_t n = count - 1; n > 0; n--) {
        const ptrdiff_t other = (ptrdiff_t)rng_below(r, n + 1), kept = list[n];
        list[n] = list[other];
        list[other] = kept;
    }
}

static ptrdiff_t trained(const vision_data *d)
{
    return d->train->count - (ptrdiff_t)d->base.valid;
}

/* The picture that is seen at place `number` of the whole training. */
static ptrdiff_t picture_at(vision_data *d, uint64_t seed, int64_t number)
{
    const int64_t epoch = number / trained(d);
    if (d->epoch != epoch || d->seed != seed) {
        rng r = rng_for(seed ^ order_series, (uint64_t)epoch);
        memcpy(d->order, d->split + d->base.valid, (size_t)trained(d) * sizeof *d->order);
        shuffle(&r, d->order, trained(d));
        d->epoch = epoch;
        d->seed = seed;
    }
    return d->order[number % trained(d)];
}

/* --------------------------------------------------------------- batches ----- */

static batch *new_batch(const vision_data *d, const training_config *config, int count)
{
    return batch_of_pictures(count, config->model.positions, picture_set_bytes(d->train));
}

/* pixels = (1 - share) * pixels + share * others */
static void mix(float *pixels, const float *others, size_t count, float share)
{
    for (size_t n = 0; n < count; n++)
        pixels[n] += share * (others[n] - pixels[n]);
}

/* Mixes every picture with the one after it, and the last one with the first as it was. */
static bool mix_all(batch *b, const training_config *config, int64_t first)
{
    const size_t floats = b->picture_floats, bytes = floats * sizeof *b->pixels;
    float *const begin = malloc(bytes);
    if (begin == NULL)
        return false;
    const int head = b->expected[0];
    memcpy(begin, b->pixels, bytes);
    for (int n = 0; n < b->pairs; n++) {
        const bool last = n + 1 == b->pairs;
        rng r = rng_for(config->seed ^ mix_series, (uint64_t)(first + n));
        b->shares[n] = (float)mix_share_draw(&r, config->mix_up);
        b->others[n] = last ? head : b->expected[n + 1];
        mix(b->pixels + (size_t)n * floats, last ? begin : b->pixels + (size_t)(n + 1) * floats,
            floats, b->shares[n]);
    }
    free(begin);
    return true;
}

static batch *vision_step(training_data *base, const training_config *config, int64_t step)
{
    vision_data *const d = (vision_data *)base;
    const int64_t first = step * config->batch;
    const int side = d->train->rows, channels = d->train->channels;
    batch *const b = new_batch(d, config, config->batch);
    for (int n = 0; b != NULL && n < config->batch; n++) {
        const ptrdiff_t at = picture_at(d, config->seed, first + n);
        rng r = rng_for(config->seed ^ change_series, (uint64_t)(first + n));
        const augmentation a =
            augmentation_draw(&r, side, config->crop, config->flip, config->erase);
        augment(&a, &r, d->train->pixels + (size_t)at * b->picture_floats, channels, side,
                &d->scale, b->pixels + (size_t)n * b->picture_floats);
        b->expected[n] = b->others[n] = d->train->labels[at];
    }
    if (b != NULL && config->mix_up > 0.0 && !mix_all(b, config, first)) {
        batch_free(b);
        return NULL;
    }
    return b;
}

static batch *vision_some(training_data *base, const training_config *config, corpus_split split,
                          int64_t first, int count)
{
    static const augmentation none = {.down = 0};
    const vision_data *const d = (const vision_data *)base;
    const picture_set *const set = split == CORPUS_TEST ? d->test : d->train;
    rng unused = {0};
    batch *const b = new_batch(d, config, count);
    for (int n = 0; b != NULL && n < count; n++) {
        const ptrdiff_t at =
            split == CORPUS_TEST ? (ptrdiff_t)first + n : d->split[(ptrdiff_t)first + n];
        augment(&none, &unused, set->pixels + (size_t)at * b->picture_floats, set->channels,
                set->rows, &d->scale, b->pixels + (size_t)n * b->picture_floats);
        b->expected[n] = b->others[n] = set->labels[at];
    }
    return b;
}

/* -------------------------------------------------------------- creation ----- */

static uint64_t set_hash(const picture_set *set)
{
    static const uint64_t prime = UINT64_C(0x100000001b3);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const size_t bytes = (size_t)set->count * picture_set_bytes(set);
    for (size_t n = 0; n < bytes; n++)
        hash = (hash ^ set->pixels[n]) * prime;
    for (ptrdiff_t n = 0; n < set->count; n++)
        hash = (hash ^ set->labels[n]) * prime;
    return (hash ^ (uint64_t)set->rows ^ (uint64_t)set->channels << 16) * prime;
}

static bool check(const picture_set *set, char *message)
{
    if (set->rows != set->columns)
        snprintf(message, PICTURE_MESSAGE_MAX,
                 "the pictures have %d x %d pixels; a model reads square ones", set->rows,
                 set->columns);
    else if (set->count < 10 || set->classes < 2)
        snprintf(message, PICTURE_MESSAGE_MAX,
                 "%td pictures of %d classes: at least 10 of 2 are needed to train and to validate",
                 set->count, set->classes);
    else
        return true;
    return false;
}

vision_data *vision_data_create(const picture_set *train, const picture_set *test, char *message)
{
    if (!check(train, message))
        return NULL;
    vision_data *const d = calloc(1, sizeof *d);
    if (d != NULL) {
        const ptrdiff_t tenth = train->count / 10;
        *d = (vision_data){.train = train, .test = test, .epoch = -1};
        d->split = malloc((size_t)train->count * sizeof *d->split);
        d->order = malloc((size_t)train->count * sizeof *d->order);
        d->base = (training_data){.step = vision_step,
                                  .some = vision_some,
                                  .valid = tenth < VISION_VALID_MAX ? tenth : VISION_VALID_MAX,
                                  .form = FORM_VISION,
                                  .hash = set_hash(train)};
    }
    if (d == NULL || d->split == NULL || d->order == NULL) {
        vision_data_free(d);
        snprintf(message, PICTURE_MESSAGE_MAX, "out of memory");
        return NULL;
    }
    rng r = rng_for(split_series, (uint64_t)train->count);
    for (ptrdiff_t n = 0; n < train->count; n++)
        d->split[n] = n;
    shuffle(&r, d->split, train->count);
    pixel_scale_measure(&d->scale, train->pixels, train->count, train->channels,
                        (size_t)train->rows * (size_t)train->columns);
    return d;
}

void vision_data_free(vision_data *d)
{
    if (d == NULL)
        return;
    free(d->split);
    free(d->order);
    free(d);
}

training_data *vision_data_base(vision_data *d)
{
    return &d->base;
}

const pixel_scale *vision_data_scale(const vision_data *d)
{
    return &d->scale;
}

void vision_data_configure(const vision_data *d, transformer_config *config)
{
    config->vision.side = d->train->rows;
    config->vision.channels = d->train->channels;
    config->words[TRANSFORMER_TARGET] = d->train->classes;
    if (config->vision.patch >= 1 && config->vision.stride >= 1 &&
        config->vision.patch <= config->vision.side)
        config->positions = vision_tokens(&config->vision);
}
