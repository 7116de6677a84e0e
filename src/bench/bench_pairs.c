/* SPDX-License-Identifier: MIT */
/* Random sentence pairs (bench_pairs.h). */
#include "bench/bench_pairs.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

enum {
    SHORTEST = 4,     /* tokens of the source */
    LONGEST = 64,     /* of either side; hardly ever reached */
    MARKS = 2,        /* numbers that are no tokens of a sentence */
    TARGET_LEAST = 2, /* tokens of the target */
    SEED = 1
};

struct bench_pairs {
    training_data base;
    int count;
    int *ids; /* [count][TRANSFORMER_SIDES][LONGEST] */
    id_pair *pairs;
};

static const sentence_marks marks = {0, 1};

/* ---------------------------------------------------------------- random ----- */

/* Exponentially distributed. */
static double waiting(rng *r, double mean)
{
    return -mean * log1p(-rng_unit(r));
}

static int bounded(double length, int least)
{
    return (int)fmin(fmax(floor(length + 0.5), least), LONGEST);
}

/* A source has SHORTEST tokens and two exponentially distributed numbers more; its target is longer
 * by 1.5, with a deviation of 1.9. */
static void draw_lengths(rng *r, int lengths[TRANSFORMER_SIDES])
{
    const double source = SHORTEST + waiting(r, 2.0) + waiting(r, 2.0);
    lengths[TRANSFORMER_SOURCE] = bounded(source, SHORTEST);
    lengths[TRANSFORMER_TARGET] = bounded(source + 1.5 + 1.9 * rng_normal(r), TARGET_LEAST);
}

/* Number n with a probability of about 1 / n, as words of a language sorted by frequency. */
static int draw_token(rng *r, int words)
{
    return MARKS + (int)(exp(rng_unit(r) * log((double)(words - MARKS))) - 1.0);
}

static void draw_pair(bench_pairs *p, int number, int words)
{
    rng r = rng_for(SEED, (uint64_t)number);
    int lengths[TRANSFORMER_SIDES];
    draw_lengths(&r, lengths);
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        int *const ids = p->ids + ((ptrdiff_t)number * TRANSFORMER_SIDES + side) * LONGEST;
        for (int n = 0; n < lengths[side]; n++)
            ids[n] = draw_token(&r, words);
        p->pairs[number].ids[side] = ids;
        p->pairs[number].count[side] = lengths[side];
    }
}

/* ------------------------------------------------------------------ data ----- */

batch *bench_pairs_batch(const bench_pairs *p)
{
    return batch_of_ids(p->pairs, p->count, marks);
}

static batch *step_batch(training_data *data, const training_config *config, int64_t step)
{
    (void)config;
    (void)step;
    return bench_pairs_batch((const bench_pairs *)data);
}

static batch *some_batch(training_data *data, const training_config *config, corpus_split split,
                         int64_t first, int count)
{
    const bench_pairs *const p = (const bench_pairs *)data;
    (void)config;
    (void)split;
    return batch_of_ids(p->pairs + first, count, marks);
}

bench_pairs *bench_pairs_create(int count, int words)
{
    bench_pairs *const p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->base = (training_data){.step = step_batch, .some = some_batch, .valid = count};
    p->count = count;
    p->ids = calloc((size_t)count * TRANSFORMER_SIDES * LONGEST, sizeof *p->ids);
    p->pairs = calloc((size_t)count, sizeof *p->pairs);
    if (p->ids == NULL || p->pairs == NULL) {
        bench_pairs_free(p);
        return NULL;
    }
    for (int n = 0; n < count; n++)
        draw_pair(p, n, words);
    return p;
}

void bench_pairs_free(bench_pairs *p)
{
    if (p == NULL)
        return;
    free(p->ids);
    free(p->pairs);
    free(p);
}

training_data *bench_pairs_data(bench_pairs *p)
{
    return &p->base;
}
