/* SPDX-License-Identifier: MIT */
/*
 * Claim 8: attention needs more data than a convolution, and more operations. Both learn to imitate
 * a 3 x 3 filter and to tell textures apart, from few and from many pictures (data_study.h); what
 * is compared are differences seed by seed, with 95 % intervals. Attention can do all that the
 * convolution can and has to find the places of the taps too; where taps lie outside of 3 x 3, only
 * attention can learn them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "claims/claims.h"
#include "claims/data_study.h"

/* What the differences attention - convolution say at one size. */
static void show_size(proof *p, const study_result *r, study_task task, int size)
{
    const int pictures = r->plan.sizes[size], last = r->plan.size_count - 1;
    const mean_interval i = study_difference(r, task, size);
    const double low = i.mean - i.half, high = i.mean + i.half;
    proof_note(p, study_mean(r, task, size, LEARN_CONVOLUTION).mean, "%d pictures: convolution",
               pictures);
    proof_note(p, study_mean(r, task, size, LEARN_ATTENTION).mean, "%d pictures: attention",
               pictures);
    if (task != STUDY_FAR && size == 0)
        proof_at_least(p, low, 0.0, "  difference, low end of the interval");
    else
        proof_note(p, low, "  difference, low end of the interval");
    if (task == STUDY_FAR && size == last)
        proof_at_most(p, high, 0.0, "  difference, high end of the interval");
    else
        proof_note(p, high, "  difference, high end of the interval");
}

/* The numbers of pictures with which differences have this sign, as "16, 64"; "" if none has. */
static const char *sizes_with(const study_result *r, study_task task, int sign, char *text,
                              size_t room)
{
    size_t used = 0;
    *text = '\0';
    for (int size = 0; size < r->plan.size_count && used < room; size++) {
        const mean_interval i = study_difference(r, task, size);
        if (mean_interval_sign(&i) == sign)
            used += (size_t)snprintf(text + used, room - used, "%s%d", used > 0 ? ", " : "",
                                     r->plan.sizes[size]);
    }
    return text;
}

/* Which of the two has the smaller error, with how many pictures. */
static void judge(proof *p, const study_result *r, study_task task)
{
    static const char *const verdicts[] = {"attention is better", "not decided",
                                           "the convolution is better"};
    char sizes[64];
    for (int sign = 1; sign >= -1; sign--)
        if (*sizes_with(r, task, sign, sizes, sizeof sizes) != '\0')
            proof_say(p, "  %s with %s pictures", verdicts[1 + sign], sizes);
}

/* The first number of pictures with which attention is as good as the convolution with the fewest;
 * NaN if there is none. */
static double pictures_needed(const study_result *r, study_task task)
{
    const double aim = study_mean(r, task, 0, LEARN_CONVOLUTION).mean;
    for (int size = 0; size < r->plan.size_count; size++)
        if (study_mean(r, task, size, LEARN_ATTENTION).mean <= aim)
            return r->plan.sizes[size];
    return NAN;
}

static void show_task(proof *p, const study_result *r, study_task task)
{
    static const char *const titles[STUDY_TASKS] = {
        "Imitate an unknown 3 x 3 filter, outputs with noise; share of squares lost:",
        "The same, but three of its nine taps lie outside of 3 x 3:",
        "Tell four textures apart; share of wrong answers (guessing: 0.75):"};
    proof_say(p, "%s", titles[task]);
    for (int size = 0; size < r->plan.size_count; size++)
        show_size(p, r, task, size);
    judge(p, r, task);
    const double needed = pictures_needed(r, task);
    if (task != STUDY_FAR && isfinite(needed))
        proof_note(p, needed, "attention: as good as the other's %d with", r->plan.sizes[0]);
}

static void show_costs(proof *p, const study_result *r)
{
    const double *const products = r->products[STUDY_NEAR];
    proof_say(p, "Costs for one picture of %d x %d pixels, 3 to 4 channels:", LEARN_SIDE,
              LEARN_SIDE);
    proof_note(p, (double)r->weights[STUDY_NEAR][LEARN_CONVOLUTION], "weights: convolution");
    proof_note(p, (double)r->weights[STUDY_NEAR][LEARN_ATTENTION], "weights: attention");
    proof_note(p, products[LEARN_CONVOLUTION], "multiply-adds: convolution");
    proof_note(p, products[LEARN_ATTENTION], "multiply-adds: attention");
    proof_at_least(p, products[LEARN_ATTENTION] / products[LEARN_CONVOLUTION], 1.0,
                   "  how many times as many");
    proof_note(p, (double)LEARN_HEADS * LEARN_PIXELS * LEARN_PIXELS, "exponentials: attention");
}

void prove_data_by(proof *p, const study_plan *plan)
{
    study_result *const r = proof_calloc(p, sizeof *r);
    if (r == NULL || !proof_ok(p, study_run(r, plan, p->pool, p->progress))) {
        free(r);
        return;
    }
    proof_say(p, "A 3 x 3 convolution and 9 heads with learnt relative positions: the same");
    proof_say(p, "pictures, %d steps of Adam; 64 more pictures choose %sthe state.", plan->steps,
              plan->rate_count > 1 ? "the rate and " : "");
    proof_say(p, "Errors on %d new pictures, means of %d seeds; intervals: 95 %%.", plan->fresh,
              plan->seeds);
    for (int task = 0; task < STUDY_TASKS; task++)
        show_task(p, r, (study_task)task);
    show_costs(p, r);
    proof_say(p, "So with few pictures the convolution is better at what it can do: attention");
    proof_say(p, "needs more to become as good. Taps outside of 3 x 3 only attention can learn.");
    if (p->study != NULL)
        *p->study = *r;
    free(r);
}

void prove_data(proof *p)
{
    const study_plan plan = p->full ? study_plan_full(p->seed) : study_plan_short(p->seed);
    prove_data_by(p, &plan);
}
