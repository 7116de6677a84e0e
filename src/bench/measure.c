/* SPDX-License-Identifier: MIT */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/terminal.h"

/* Long enough for the clock and a scheduler's tick, short enough for the same weather. */
#define ROUND_SECONDS 0.012
#define PEAK_SECONDS 0.006

/* ------------------------------------------------------------------ runs ----- */

/* Seconds of one run; negative if the library refuses one. */
static double seconds_of(const bench_case *what, int repeats)
{
    bool ok = true;
    const double begin = clock_seconds();
    for (int n = 0; n < repeats; n++)
        ok = what->run(what->body) == MHA_OK && ok;
    const double seconds = (clock_seconds() - begin) / repeats;
    return ok ? seconds : -1.0;
}

static void rest(double seconds)
{
    if (seconds > 0.0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

static double peak_of(const measure_case *s)
{
    return s->memory != NULL ? peak_bytes(&s->meter, s->memory, s->memory_size)
                             : peak_flops(&s->meter);
}

static void measure_one(measure_case *s, int round)
{
    measure_round *r = &s->round[round];
    r->before = peak_of(s);
    r->seconds = seconds_of(&s->what, s->repeats);
    rest(s->what.quiet);
    r->after = peak_of(s);
}

static void find_shares(measure_case *s)
{
    const double work = s->what.memory_bound ? s->what.bytes : s->what.flops;
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

/* Memory to measure the bandwidth on: what the bench_case reads, or as much. */
static bool find_memory(measure_case *s)
{
    s->memory = s->what.memory;
    s->memory_size = s->what.memory_size;
    if (s->memory == NULL) {
        s->memory = s->own_memory = bench_case_memory(BENCH_CASE_BYTES);
        s->memory_size = BENCH_CASE_BYTES;
    }
    if (s->memory == NULL)
        return false;
    peak_calibrate_reads(&s->meter, s->memory, s->memory_size);
    return true;
}

static void find_repeats(measure_case *s)
{
    const int copies = s->what.copies;
    seconds_of(&s->what, 1);
    const double seconds = fabs(seconds_of(&s->what, 1));
    s->repeats = seconds < ROUND_SECONDS ? (int)ceil(ROUND_SECONDS / seconds) : 1;
    s->repeats = (s->repeats + copies - 1) / copies * copies;
    s->seconds = seconds * s->repeats;
}

bool measure_create(measure_case *s, const bench_case_word *word, int threads, int rounds,
                    char *message, size_t size)
{
    memset(s, 0, sizeof *s);
    if (!bench_case_create(&s->what, word, threads, message, size))
        return false;
    snprintf(message, size, "%s: no memory to measure the bandwidth on", s->what.word);
    s->rounds = rounds;
    s->round = calloc((size_t)rounds, sizeof *s->round);
    bool ok = s->round != NULL;
    if (ok) {
        s->meter = peak_create(mha_isa_name(), s->what.threads, PEAK_SECONDS);
        ok = !s->what.memory_bound || find_memory(s);
    }
    if (ok)
        find_repeats(s);
    else
        measure_free(s);
    return ok;
}

void measure_free(measure_case *s)
{
    bench_case_free(&s->what);
    free(s->own_memory);
    free(s->round);
    memset(s, 0, sizeof *s);
}

/* --------------------------------------------------------------- summary ----- */

/* As many rounds as were asked for, or fewer where they would take too long. */
static int rounds_for(measure_case *const *cases, int count)
{
    double seconds = 0.0;
    for (int n = 0; n < count; n++)
        seconds += cases[n]->seconds;
    const double fit = fmax(MEASURE_SECONDS / seconds, ROUNDS_LEAST);
    return fit < cases[0]->rounds ? (int)fit : cases[0]->rounds;
}

static bool refused(const measure_case *s, int round, char *message, size_t size)
{
    const measure_round *r = &s->round[round];
    if (r->seconds > 0.0 && r->after > 0.0)
        return false;
    if (r->seconds <= 0.0)
        snprintf(message, size, "%s: a run failed", s->what.word);
    else
        snprintf(message, size, "%s: %d thread%s cannot be had", s->what.word, s->what.threads,
                 s->what.threads == 1 ? "" : "s");
    return true;
}

bool measure_run(measure_case *const *cases, int count, char *message, size_t size)
{
    const int rounds = rounds_for(cases, count);
    for (int round = 0; round < rounds; round++) {
        for (int n = 0; n < count; n++) {
            progress("%s: round %d of %d", cases[n]->what.word, round + 1, rounds);
            measure_one(cases[n], round);
            if (refused(cases[n], round, message, size)) {
                progress_end();
                return false;
            }
        }
    }
    for (int n = 0; n < count; n++) {
        cases[n]->rounds = rounds;
        find_shares(cases[n]);
    }
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

measure_summary measure_summarise(const measure_case *s)
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
