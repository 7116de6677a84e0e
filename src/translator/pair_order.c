/* SPDX-License-Identifier: MIT */
/* The epochs and batches of a training on files (pair_order.h). */
#include "translator/pair_order.h"

#include <stdlib.h>

#include "base/rng.h"

struct pair_order {
    const int *source, *target;
    int64_t pairs, batches;
    uint64_t seed;
    int64_t epoch;     /* of the arrays below; -1: none yet */
    int32_t *order;    /* [pairs] sorted by length */
    int32_t *scratch;  /* [pairs] */
    int32_t *starts;   /* [batches + 1] in order[] */
    int32_t *sequence; /* [batches] the batch of each step of the epoch */
};

static void shuffle(rng *r, int32_t *list, int64_t count)
{
    for (int64_t n = count - 1; n > 0; n--) {
        const int64_t other = rng_below(r, n + 1);
        const int32_t kept = list[n];
        list[n] = list[other];
        list[other] = kept;
    }
}

/* A stable counting sort of order[] by lengths: equal lengths stay shuffled. Returns false if out
 * of memory. */
static bool sort_by(pair_order *o, const int *lengths)
{
    int longest = 0;
    for (int64_t n = 0; n < o->pairs; n++)
        longest = lengths[n] > longest ? lengths[n] : longest;
    int64_t *const at = calloc((size_t)longest + 2, sizeof *at);
    if (!at)
        return false;
    for (int64_t n = 0; n < o->pairs; n++)
        at[lengths[n] + 1]++;
    for (int n = 0; n <= longest; n++)
        at[n + 1] += at[n];
    for (int64_t n = 0; n < o->pairs; n++)
        o->scratch[at[lengths[o->order[n]]]++] = o->order[n];
    for (int64_t n = 0; n < o->pairs; n++)
        o->order[n] = o->scratch[n];
    free(at);
    return true;
}

/* Cuts order[] into batches and returns their number; writes the starts unless they are NULL. */
static int64_t cut(const pair_order *o, int tokens, int32_t *starts)
{
    int64_t batches = 0, sum = 0;
    for (int64_t n = 0; n < o->pairs; n++) {
        const int length = o->target[o->order[n]];
        if (n == 0 || sum + length > tokens) {
            if (starts)
                starts[batches] = (int32_t)n;
            batches++;
            sum = 0;
        }
        sum += length;
    }
    if (starts)
        starts[batches] = (int32_t)o->pairs;
    return batches;
}

static void number(int32_t *list, int64_t count)
{
    for (int64_t n = 0; n < count; n++)
        list[n] = (int32_t)n;
}

/* Source lengths decide among equal target lengths. */
static bool sort(pair_order *o)
{
    return sort_by(o, o->source) && sort_by(o, o->target);
}

static bool begin_epoch(pair_order *o, int64_t epoch)
{
    /* The constant makes this series differ from those of the parameters and of dropout. */
    rng r = rng_for(o->seed + UINT64_C(0x27d4eb2f165667c5), (uint64_t)epoch);
    number(o->order, o->pairs);
    shuffle(&r, o->order, o->pairs);
    o->epoch = -1;
    if (!sort(o))
        return false;
    number(o->sequence, o->batches);
    shuffle(&r, o->sequence, o->batches);
    o->epoch = epoch;
    return true;
}

static bool allocate(pair_order *o, int tokens)
{
    o->order = calloc((size_t)o->pairs, sizeof *o->order);
    o->scratch = calloc((size_t)o->pairs, sizeof *o->scratch);
    if (!o->order || !o->scratch)
        return false;
    number(o->order, o->pairs);
    if (!sort(o))
        return false;
    o->batches = cut(o, tokens, NULL);
    o->starts = calloc((size_t)o->batches + 1, sizeof *o->starts);
    o->sequence = calloc((size_t)o->batches, sizeof *o->sequence);
    if (o->starts)
        cut(o, tokens, o->starts);
    return o->starts && o->sequence;
}

pair_order *pair_order_create(const int *source, const int *target, int64_t pairs, int tokens,
                              uint64_t seed)
{
    pair_order *const o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    *o =
        (pair_order){.source = source, .target = target, .pairs = pairs, .seed = seed, .epoch = -1};
    if (allocate(o, tokens))
        return o;
    pair_order_free(o);
    return NULL;
}

void pair_order_free(pair_order *o)
{
    if (!o)
        return;
    free(o->order);
    free(o->scratch);
    free(o->starts);
    free(o->sequence);
    free(o);
}

int64_t pair_order_batches(const pair_order *o)
{
    return o->batches;
}

const int32_t *pair_order_step(pair_order *o, int64_t step, int *count)
{
    if (o->epoch != step / o->batches && !begin_epoch(o, step / o->batches))
        return NULL;
    const int32_t *const starts = o->starts + o->sequence[step % o->batches];
    *count = (int)(starts[1] - starts[0]);
    return o->order + starts[0];
}
