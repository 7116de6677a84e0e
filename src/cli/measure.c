/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attends.h"
#include "clock.h"
#include "terminal.h"

/* Long enough for the clock and a scheduler's tick, short enough for the same weather. */
#define ROUND_SECONDS 0.012
#define PEAK_SECONDS 0.006

/* Many times the caches of any core's share. */
#define ARENA_BYTES ((size_t)256 << 20)

/* A problem with fewer flops a byte than this counts as bound by memory. A fixed number near what
 * today's cores can do: which peak a word is held against must not change from run to run. */
#define FLOPS_PER_BYTE 8.0

/* ------------------------------------------------------------------ runs ----- */

static mha_status run_once(measure_subject *s)
{
    mha_view k = tensor_view(&s->p.k), v = tensor_view(&s->p.v);
    if (s->arena != NULL) {
        const char *copy = s->arena + (size_t)s->next_copy * s->copy_size;
        k.data = copy;
        v.data = copy + s->k_size;
        s->next_copy = (s->next_copy + 1) % s->copies;
    }
    return mha_plan_run(s->plan, tensor_view(&s->p.q), k, v, tensor_out(&s->p.o), &s->p.options,
                        s->work, s->work_size, s->pool);
}

static double seconds_of(measure_subject *s, int repeats)
{
    const double begin = clock_seconds();
    for (int n = 0; n < repeats; n++)
        run_once(s);
    return (clock_seconds() - begin) / repeats;
}

static double peak_of(const measure_subject *s)
{
    return s->memory_bound ? peak_bytes(&s->meter, s->arena, s->arena_size) : peak_flops(&s->meter);
}

static void measure_one(measure_subject *s, int round)
{
    measure_round *r = &s->round[round];
    r->before = peak_of(s);
    r->seconds = seconds_of(s, s->repeats);
    r->after = peak_of(s);
}

static void find_shares(measure_subject *s)
{
    const double work = s->memory_bound ? s->bytes : s->flops;
    for (int n = 0; n < s->rounds; n++) {
        double peaks[6] = {0};
        int count = 0;
        for (int near = n > 0 ? n - 1 : 0; near <= n + 1 && near < s->rounds; near++) {
            peaks[count++] = s->round[near].before;
            peaks[count++] = s->round[near].after;
        }
        s->round[n].peak = measure_quantile(peaks, count, 0.5);
        s->round[n].share = work / s->round[n].seconds / s->round[n].peak;
    }
}

/* -------------------------------------------------------------- creation ----- */

static size_t rounded(size_t size)
{
    return (size + 63) / 64 * 64;
}

static bool make_arena(measure_subject *s)
{
    s->k_size = rounded(tensor_bytes(&s->p.k));
    s->copy_size = s->k_size + rounded(tensor_bytes(&s->p.v));
    s->copies = (int)((ARENA_BYTES + s->copy_size - 1) / s->copy_size);
    s->arena_size = (size_t)s->copies * s->copy_size;
    s->arena = aligned_alloc(64, s->arena_size);
    if (s->arena == NULL)
        return false;
    memset(s->arena, 0, s->arena_size);
    for (int n = 0; n < s->copies; n++) {
        char *copy = s->arena + (size_t)n * s->copy_size;
        memcpy(copy, s->p.k.block, tensor_bytes(&s->p.k));
        memcpy(copy + s->k_size, s->p.v.block, tensor_bytes(&s->p.v));
    }
    return true;
}

static bool find_bound(measure_subject *s)
{
    s->memory_bound = s->flops / s->bytes < FLOPS_PER_BYTE;
    if (!s->memory_bound)
        return true;
    if (!make_arena(s))
        return false;
    peak_calibrate_reads(&s->meter, s->arena, s->arena_size);
    return true;
}

static void find_repeats(measure_subject *s)
{
    run_once(s);
    const double seconds = seconds_of(s, 1);
    s->repeats = seconds < ROUND_SECONDS ? (int)ceil(ROUND_SECONDS / seconds) : 1;
    if (s->memory_bound)
        s->repeats = (s->repeats + s->copies - 1) / s->copies * s->copies;
}

/* The plan, its workspace, the pool; and one run to see that the library takes it. */
static mha_status make_plan(measure_subject *s)
{
    mha_status status = MHA_OK;
    if (s->threads > 1)
        status = mha_pool_create(&s->pool, s->threads);
    if (status == MHA_OK)
        status = mha_plan_create(&s->plan, &s->p.shape, &s->p.options);
    if (status != MHA_OK)
        return status;
    s->work_size = mha_plan_work_size(s->plan, s->threads);
    s->work = aligned_alloc(64, rounded(s->work_size + 1));
    if (s->work == NULL)
        return MHA_ERR_MEMORY;
    memset(s->work, 0, s->work_size);
    return run_once(s);
}

/* Everything but the measure of the machine. */
static bool prepare(measure_subject *s, const problem_word *word, char *message, size_t size)
{
    char why[WORD_MESSAGE_MAX] = "";
    if (!problem_create(&s->p, word, NULL, message, size))
        return false;
    s->p.options.message = why;
    s->p.options.message_size = sizeof why;
    const mha_status status = make_plan(s);
    s->p.options.message = NULL;
    s->p.options.message_size = 0;
    s->flops = problem_flops(&s->p);
    s->bytes = problem_bytes(&s->p);
    if (status != MHA_OK)
        snprintf(message, size, "%s: %s. %s", s->word, mha_status_string(status), why);
    else if (s->flops == 0.0)
        snprintf(message, size, "%s: no query sees a key, so there is nothing to measure", s->word);
    return status == MHA_OK && s->flops > 0.0;
}

bool measure_create(measure_subject *s, const problem_word *word, int threads, int rounds,
                    char *message, size_t size)
{
    memset(s, 0, sizeof *s);
    word_print(word, s->word, sizeof s->word);
    snprintf(message, size, "%s: no memory for copies of the keys", s->word);
    s->threads = word->threads > 0 ? word->threads : threads;
    s->rounds = rounds;
    s->round = calloc((size_t)rounds, sizeof *s->round);
    bool ok = s->round != NULL && prepare(s, word, message, size);
    if (ok) {
        s->meter = peak_create(mha_isa_name(), s->threads, PEAK_SECONDS);
        ok = find_bound(s);
    }
    if (ok)
        find_repeats(s);
    else
        measure_free(s);
    return ok;
}

void measure_free(measure_subject *s)
{
    problem_free(&s->p);
    mha_plan_free(s->plan);
    mha_pool_free(s->pool);
    free(s->work);
    free(s->arena);
    free(s->round);
    memset(s, 0, sizeof *s);
}

/* --------------------------------------------------------------- summary ----- */

bool measure_run(measure_subject *const *subjects, int count, char *message, size_t size)
{
    const int rounds = subjects[0]->rounds;
    for (int round = 0; round < rounds; round++) {
        for (int n = 0; n < count; n++) {
            progress("%s: round %d of %d", subjects[n]->word, round + 1, rounds);
            measure_one(subjects[n], round);
            if (subjects[n]->round[round].after > 0.0)
                continue;
            progress_end();
            snprintf(message, size, "%s: %d threads cannot be had", subjects[n]->word,
                     subjects[n]->threads);
            return false;
        }
    }
    for (int n = 0; n < count; n++)
        find_shares(subjects[n]);
    progress_end();
    return true;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure_quantile(double *values, int count, double q)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    const double at = q * (count - 1);
    const int low = (int)at;
    if (low + 1 >= count)
        return values[count - 1];
    return values[low] + (at - low) * (values[low + 1] - values[low]);
}

measure_summary measure_summarise(const measure_subject *s)
{
    measure_summary sum = {0};
    double *values = calloc((size_t)s->rounds, sizeof *values);
    if (values == NULL)
        return sum;
    for (int n = 0; n < s->rounds; n++)
        values[n] = s->round[n].share;
    sum.upper = measure_quantile(values, s->rounds, 0.75);
    sum.median = measure_quantile(values, s->rounds, 0.5);
    sum.best = measure_quantile(values, s->rounds, 1.0);
    for (int n = 0; n < s->rounds; n++)
        values[n] = s->round[n].peak;
    sum.peak = measure_quantile(values, s->rounds, 0.5);
    for (int n = 0; n < s->rounds; n++)
        values[n] = s->round[n].seconds;
    sum.seconds = measure_quantile(values, s->rounds, 0.25);
    free(values);
    return sum;
}
