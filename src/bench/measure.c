/* SPDX-License-Identifier: MIT */
/* Interleaved rounds of peak, run and peak, and their summary; the method is in measure.h. */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/terminal.h"

/* Long enough for the resolution of the clock and a scheduler tick, short enough that the machine
 * does not change in between. */
#define ROUND_SECONDS 0.012
#define PEAK_SECONDS 0.006

/* ------------------------------------------------------------------ runs ----- */

/* The mean seconds of one run; negative if a run fails. */
static double seconds_of(const measure_case *c, int repeats)
{
    const bench_case *const what = &c->what;
    bool ok = true;
    const double begin = peak_seconds(&c->meter);
    for (int n = 0; n < repeats; n++)
        ok = what->run(what->body) == MHA_OK && ok;
    const double seconds = (peak_seconds(&c->meter) - begin) / repeats;
    return ok ? seconds : -1.0;
}

static void rest(double seconds)
{
    if (seconds > 0.0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

static double peak_of(const measure_case *c)
{
    return c->memory != NULL ? peak_bytes(&c->meter, c->memory, c->memory_size)
                             : peak_flops(&c->meter);
}

static void measure_one(measure_case *c, int round)
{
    measure_round *r = &c->round[round];
    r->before = peak_of(c);
    r->seconds = seconds_of(c, c->repeats);
    rest(c->what.quiet);
    r->after = peak_of(c);
}

static void find_shares(measure_case *c)
{
    const double work = c->what.memory_bound ? c->what.bytes : c->what.flops;
    for (int n = 0; n < c->rounds; n++) {
        double peaks[6] = {0};
        int count = 0;
        for (int near = n > 0 ? n - 1 : 0; near <= n + 1 && near < c->rounds; near++) {
            peaks[count++] = c->round[near].before;
            peaks[count++] = c->round[near].after;
        }
        c->round[n].peak = measure_quantile(peaks, count, 0.5);
        c->round[n].share = work / c->round[n].seconds / c->round[n].peak;
    }
}

/* -------------------------------------------------------------- creation ----- */

/* Sets the memory to measure the bandwidth on: what the case reads, or as much. */
static bool find_memory(measure_case *c)
{
    c->memory = c->what.memory;
    c->memory_size = c->what.memory_size;
    if (c->memory == NULL) {
        c->memory = c->own_memory = bench_case_memory(BENCH_CASE_BYTES);
        c->memory_size = BENCH_CASE_BYTES;
    }
    if (c->memory == NULL)
        return false;
    peak_calibrate_reads(&c->meter, c->memory, c->memory_size);
    return true;
}

/* Chooses the runs per round: enough for ROUND_SECONDS, and a multiple of the copies. */
static void find_repeats(measure_case *c)
{
    const int copies = c->what.copies;
    seconds_of(c, 1);
    const double seconds = fabs(seconds_of(c, 1));
    c->repeats = seconds < ROUND_SECONDS ? (int)ceil(ROUND_SECONDS / seconds) : 1;
    c->repeats = (c->repeats + copies - 1) / copies * copies;
    c->seconds = seconds * c->repeats;
}

bool measure_create(measure_case *c, const bench_case_word *word, int threads, int rounds,
                    char *message, size_t size)
{
    memset(c, 0, sizeof *c);
    if (!bench_case_create(&c->what, word, threads, message, size))
        return false;
    snprintf(message, size, "%s: out of memory to measure the bandwidth", c->what.word);
    c->rounds = rounds;
    c->round = calloc((size_t)rounds, sizeof *c->round);
    bool ok = c->round != NULL;
    if (ok) {
        c->meter = peak_create(mha_isa_name(), c->what.peak, c->what.threads, PEAK_SECONDS);
        ok = !c->what.memory_bound || find_memory(c);
    }
    if (ok)
        find_repeats(c);
    else
        measure_free(c);
    return ok;
}

void measure_free(measure_case *c)
{
    bench_case_free(&c->what);
    free(c->own_memory);
    free(c->round);
    memset(c, 0, sizeof *c);
}

/* --------------------------------------------------------------- summary ----- */

const char *measure_clock(const measure_case *c)
{
    return c->meter.cpu_time ? "cpu" : "wall";
}

/* The requested number of rounds, or fewer if they would take too long. */
static int rounds_for(measure_case *const *cases, int count)
{
    double seconds = 0.0;
    for (int n = 0; n < count; n++)
        seconds += cases[n]->seconds;
    const double fit = fmax(MEASURE_SECONDS / seconds, ROUNDS_LEAST);
    return fit < cases[0]->rounds ? (int)fit : cases[0]->rounds;
}

static bool refused(const measure_case *c, int round, char *message, size_t size)
{
    const measure_round *r = &c->round[round];
    if (r->seconds > 0.0 && r->after > 0.0)
        return false;
    if (r->seconds <= 0.0)
        snprintf(message, size, "%s: a run failed", c->what.word);
    else
        snprintf(message, size, "%s: cannot start %d thread%s", c->what.word, c->what.threads,
                 c->what.threads == 1 ? "" : "s");
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

measure_summary measure_summarise(const measure_case *c)
{
    measure_summary sum = {0};
    double *values = calloc((size_t)c->rounds, sizeof *values);
    if (values == NULL)
        return sum;
    for (int n = 0; n < c->rounds; n++)
        values[n] = c->round[n].share;
    sum.upper = measure_quantile(values, c->rounds, 0.75);
    sum.median = measure_quantile(values, c->rounds, 0.5);
    sum.best = measure_quantile(values, c->rounds, 1.0);
    for (int n = 0; n < c->rounds; n++)
        values[n] = c->round[n].peak;
    sum.peak = measure_quantile(values, c->rounds, 0.5);
    for (int n = 0; n < c->rounds; n++)
        values[n] = c->round[n].seconds;
    sum.seconds = measure_quantile(values, c->rounds, 0.25);
    free(values);
    return sum;
}
