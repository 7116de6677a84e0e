/* SPDX-License-Identifier: MIT */
/*
 * Claim 7: several heads are not better than one by themselves; the task decides. Layers with the
 * same weights, start, data and number of steps learn to read places (position_layer.h), and differ
 * in their heads only. Two tasks are enough to show both: where a token needs two places, two heads
 * are better and one never learns it; where it needs one place, eight heads generalise worse and
 * learn more slowly. What is compared are differences start by start, with 95 % intervals.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mean_interval.h"
#include "base/rng.h"
#include "claims/claims.h"
#include "claims/position_layer.h"

enum { T = 8, VALID = 64, MOST = 64, STARTS = 8, STEPS = 60, PLACES_MAX = 2 };
static const int offsets[PLACES_MAX] = {1, 3};
static const double target = 0.1; /* a loss, for counting steps */

/* Standard deviation of the first weights. With 0.5 one head fails in some starts, with a loss so
 * large that the interval of few data contains 0 for some seeds. */
static const double spread = 0.1;

/* What is trained: places that a token has to read, sequences to learn from, heads. */
typedef struct kind {
    int places, sequences, heads;
} kind;

/* Of each start: losses at the end, and the steps until the training loss is `target`. A start that
 * does not reach it counts with all steps. */
typedef struct outcome {
    double valid[STARTS], train[STARTS], gap[STARTS], steps[STARTS];
    int reached;
} outcome;

typedef struct examples {
    float x[MOST * T], wanted[MOST * T * PLACES_MAX];
    position_task task;
} examples;

static void fill(examples *e, const kind *k, int sequences, rng r)
{
    for (int n = 0; n < sequences * T; n++)
        e->x[n] = (float)rng_normal(&r);
    for (int n = 0; n < sequences * T; n++)
        for (int place = 0; place < k->places; place++)
            e->wanted[n * k->places + place] = e->x[n / T * T + (n % T + offsets[place]) % T];
    e->task = (position_task){T, k->places, sequences, e->x, e->wanted};
}

/* ------------------------------------------------------------ training ----- */

static mha_status train(position_layer *layer, const position_task *task, double *steps)
{
    mha_status status = MHA_OK;
    *steps = STEPS;
    for (int step = 0; step < STEPS && status == MHA_OK; step++) {
        double loss = NAN;
        status = position_layer_step(layer, task, 0.1, &loss);
        if (loss <= target && *steps == STEPS)
            *steps = step;
    }
    return status;
}

/* Sequences and first weights follow from the seed and the start, not from the heads. */
static mha_status run_start(const kind *k, uint64_t seed, int start, examples *known,
                            examples *fresh, outcome *o)
{
    const uint64_t series = 70 + 3 * (uint64_t)start;
    float w[T * (2 * T + 1 + PLACES_MAX)];
    position_layer *layer;
    rng r = rng_for(seed, series);
    fill(known, k, k->sequences, rng_for(seed, series + 1));
    fill(fresh, k, VALID, rng_for(seed, series + 2));
    for (ptrdiff_t n = 0; n < position_layer_weights(&known->task); n++)
        w[n] = (float)(spread * rng_normal(&r));
    mha_status status = position_layer_create(&layer, &known->task, k->heads, w);
    if (status == MHA_OK)
        status = train(layer, &known->task, &o->steps[start]);
    if (status == MHA_OK)
        status = position_layer_loss(layer, &known->task, &o->train[start]);
    if (status == MHA_OK)
        status = position_layer_loss(layer, &fresh->task, &o->valid[start]);
    position_layer_free(layer);
    o->gap[start] = o->valid[start] - o->train[start];
    o->reached += o->steps[start] < STEPS;
    return status;
}

static bool run_kind(proof *p, int places, int sequences, int heads, outcome *o)
{
    const kind k = {places, sequences, heads};
    examples *const known = proof_calloc(p, sizeof *known);
    examples *const fresh = proof_calloc(p, sizeof *fresh);
    bool fine = known != NULL && fresh != NULL;
    *o = (outcome){.reached = 0};
    for (int start = 0; start < STARTS && fine; start++)
        fine = proof_ok(p, run_start(&k, p->seed, start, known, fresh, o));
    free(known);
    free(fresh);
    return fine;
}

/* -------------------------------------------------------------- report ----- */

static mean_interval difference(const double *several, const double *one)
{
    double d[STARTS];
    for (int n = 0; n < STARTS; n++)
        d[n] = several[n] - one[n];
    return mean_interval_of(d, STARTS);
}

static double mean(const double *values)
{
    return mean_interval_of(values, STARTS).mean;
}

/* What the differences say about a claim that several heads have less of something. */
static void judge(proof *p, const char *said, const mean_interval *i)
{
    static const char *const verdicts[] = {"supported", "not decided",
                                           "NOT supported, it is the opposite"};
    proof_say(p, "  \"%s\": %s here", said, verdicts[1 + mean_interval_sign(i)]);
}

static bool show_two_places(proof *p)
{
    outcome one, two;
    if (!run_kind(p, 2, 16, 1, &one) || !run_kind(p, 2, 16, 2, &two))
        return false;
    const mean_interval i = difference(two.valid, one.valid);
    proof_say(p, "Two places per token, 16 sequences:");
    proof_note(p, mean(one.valid), "1 head: validation loss");
    proof_note(p, mean(two.valid), "2 heads: validation loss");
    proof_at_most(p, i.mean + i.half, 0.0, "2 heads - 1 head, high end of the interval");
    judge(p, "several heads are better than one", &i);
    proof_note(p, one.reached, "1 head: starts of %d that reach a loss of %g", STARTS, target);
    proof_note(p, two.reached, "2 heads: the same");
    return true;
}

static bool show_few_data(proof *p)
{
    outcome one, many;
    if (!run_kind(p, 1, 4, 1, &one) || !run_kind(p, 1, 4, T, &many))
        return false;
    const mean_interval loss = difference(many.valid, one.valid);
    const mean_interval gap = difference(many.gap, one.gap);
    proof_say(p, "One place per token, 4 sequences:");
    proof_note(p, mean(one.valid), "1 head: validation loss");
    proof_note(p, mean(many.valid), "%d heads: validation loss", T);
    proof_at_least(p, loss.mean - loss.half, 0.0, "%d heads - 1 head, low end of the interval", T);
    judge(p, "several heads are better than one", &loss);
    proof_note(p, mean(one.gap), "1 head: validation - training loss");
    proof_note(p, mean(many.gap), "%d heads: validation - training loss", T);
    proof_at_least(p, gap.mean - gap.half, 0.0, "%d heads - 1 head, low end of the interval", T);
    judge(p, "several heads regularise", &gap);
    return true;
}

static bool show_steps(proof *p)
{
    outcome one, many;
    if (!run_kind(p, 1, 16, 1, &one) || !run_kind(p, 1, 16, T, &many))
        return false;
    const mean_interval i = difference(many.steps, one.steps);
    proof_say(p, "One place per token, 16 sequences, steps until the training loss is %g:", target);
    proof_note(p, mean(one.steps), "1 head");
    proof_note(p, mean(many.steps), "%d heads", T);
    proof_at_least(p, i.mean - i.half, 0.0, "%d heads - 1 head, low end of the interval", T);
    judge(p, "several heads learn faster", &i);
    return true;
}

void prove_heads(proof *p)
{
    proof_say(p, "Layers of width %d, all with as many weights, learn to read places of %d tokens",
              T, T);
    proof_say(p, "with one number each. The same %d starts and %d steps for any number of heads.",
              STARTS, STEPS);
    proof_say(p, "Loss: share of squares lost; validation: %d new sequences; intervals: 95 %%.",
              VALID);
    if (show_two_places(p) && show_few_data(p) && show_steps(p)) {
        proof_say(p, "So none of the three holds in general: the task decides. For translators");
        proof_say(p, "\"mha sweep\" measures it; docs/claims.md has the results.");
    }
}
