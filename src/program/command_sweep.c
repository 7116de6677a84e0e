/* SPDX-License-Identifier: MIT */
/*
 * mha sweep: the same training with different numbers of heads, on few and on much data, with
 * several seeds.
 *
 *      options --> request --> for each training that the results do not have:
 *                                  train, measure, replace the file of results
 *                              table, charts
 *
 * sweep_request.h lists the files that the parts are in.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/leftover_files.h"
#include "base/output_file.h"
#include "base/terminal.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/long_run.h"
#include "program/session.h"
#include "program/sweep_request.h"

/* ------------------------------------------------------------ progress ----- */

typedef struct sweep_pace {
    const sweep_request *request;
    sweep_key key;
    int number, trainings; /* this one, of all that the request names */
    int done, missing;     /* in this run, and at its beginning */
    int64_t step;          /* of this training */
    double started;
} sweep_pace;

static void time_left(const sweep_pace *p, char text[32])
{
    const double steps = (double)p->request->settings.config.steps;
    const double done = p->done * steps + (double)p->step, all = p->missing * steps;
    long_run_time_left((clock_seconds() - p->started) * (all - done) / done, text);
}

/* After every step: shows it, and ends the training if there was a signal. */
static bool watch_step(void *context, int64_t done)
{
    sweep_pace *const p = context;
    char left[32];
    p->step = done;
    if (!p->request->quiet && progress_is_live()) {
        time_left(p, left);
        progress("training %d of %d: %d head%s, data %" PRId64 ", seed %" PRIu64 ", step %" PRId64
                 "  %s",
                 p->number, p->trainings, p->key.heads, p->key.heads == 1 ? "" : "s", p->key.data,
                 p->key.seed, done, left);
    }
    return long_run_signal() == 0;
}

static void say_result(const sweep_pace *p, const sweep_result *r)
{
    const sweep_settings *const s = &p->request->settings;
    char left[32];
    if (p->request->quiet)
        return;
    time_left(p, left);
    progress_end();
    fprintf(stderr,
            "%d/%d  data %" PRId64 "  heads %d  seed %" PRIu64
            "  valid %.4f  train %.4f  exact %.1f %%  %s\n",
            p->number, p->trainings, p->key.data, p->key.heads, p->key.seed,
            r->valid[s->points - 1], r->train_loss, 100.0 * r->exact, left);
}

/* ----------------------------------------------------------- trainings ----- */

/* Trains one of the grid and replaces the file of results. */
static int train_one(const sweep_request *r, sweep_table *table, mha_pool *pool, sweep_pace *pace)
{
    const sweep_watch watch = {watch_step, pace};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    sweep_result result;
    pace->step = 0;
    const sweep_end end = sweep_train(&r->settings, &pace->key, pool, &watch, &result, message);
    if (end == SWEEP_STOPPED)
        return 128 + long_run_signal();
    progress_end();
    if (end == SWEEP_FAILED)
        return args_failed("data %" PRId64 ", %d heads, seed %" PRIu64 ": %s", pace->key.data,
                           pace->key.heads, pace->key.seed, message);
    say_result(pace, &result);
    if (!sweep_table_add(table, &result))
        return args_failed("out of memory");
    return output_file_write(r->output, sweep_table_write, table) ? EXIT_GO_ON : EXIT_FAILED;
}

static int count_missing(const sweep_request *r, const sweep_table *table)
{
    int missing = 0;
    for (int n = 0; n < sweep_grid_size(&r->grid); n++) {
        const sweep_key key = sweep_grid_key(&r->grid, n);
        missing += sweep_table_find(table, &key) == NULL;
    }
    return missing;
}

static int train_all(const sweep_request *r, sweep_table *table, mha_pool *pool)
{
    const int all = sweep_grid_size(&r->grid);
    sweep_pace pace = {.request = r,
                       .trainings = all,
                       .missing = count_missing(r, table),
                       .started = clock_seconds()};
    int code = EXIT_GO_ON;
    long_run run;
    long_run_begin(&run);
    for (int n = 0; n < all && code == EXIT_GO_ON; n++) {
        pace.key = sweep_grid_key(&r->grid, n);
        pace.number = n + 1;
        if (sweep_table_find(table, &pace.key) != NULL)
            continue;
        code = train_one(r, table, pool, &pace);
        pace.done++;
    }
    progress_end();
    long_run_end(&run);
    return code;
}

/* --------------------------------------------------------------- files ----- */

/* Results are not lost by mistake, and those of other settings are not mixed. To be called while
 * the lock is held. */
static int open_results(const sweep_request *r, sweep_table *table)
{
    char message[SWEEP_MESSAGE_MAX];
    struct stat there;
    const bool exists = stat(r->output, &there) == 0;
    if (r->resume && !exists)
        return args_failed("there is no file %s to resume from; leave out --resume to start",
                           r->output);
    if (exists && !r->resume && !r->force)
        return args_failed("the results %s exist. Continue with --resume, write others with -o "
                           "FILE, or replace them with --force",
                           r->output);
    if (r->resume && !sweep_table_read(table, r->output, message))
        return args_failed("%s", message);
    if (table->isa[0] != '\0' && strcmp(table->isa, mha_isa_base()) != 0 &&
        count_missing(r, table) > 0)
        fprintf(stderr,
                "mha: note: the results were made with %s, but this is %s: they will differ in "
                "some bits. MHA_ISA=%s forces the former on a CPU that has it\n",
                table->isa, mha_isa_base(), table->isa);
    return EXIT_GO_ON;
}

static int report(const sweep_request *r, const sweep_table *table)
{
    const sweep_report shown = {r, table};
    bool fine = output_file_write(r->svg, sweep_svg, &shown);
    if (r->log != NULL)
        fine = output_file_write(r->log, sweep_table_write_curves, table) && fine;
    if (r->json)
        sweep_report_json(&shown);
    else
        sweep_report_print(&shown);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

static int run(const sweep_request *r, int argc, char **argv)
{
    sweep_table table = {.settings = r->settings};
    mha_pool *pool = NULL;
    int code = session_open_pool(&pool, r->threads);
    if (code == EXIT_GO_ON)
        code = open_results(r, &table);
    if (code == EXIT_GO_ON)
        code = train_all(r, &table, pool);
    if (code == EXIT_GO_ON)
        code = report(r, &table);
    else if (code > 128) {
        const int all = sweep_grid_size(&r->grid), done = all - count_missing(r, &table);
        fprintf(stderr, "mha: stopped; %d of %d trainings are done%s%s\n", done, all,
                table.count > 0 ? " and kept in " : "", table.count > 0 ? r->output : "");
        long_run_say_resume(argc, argv, !r->resume && table.count > 0);
    }
    sweep_table_free(&table);
    mha_pool_free(pool);
    return code;
}

int command_sweep(int argc, char **argv)
{
    sweep_request r = {.output = SWEEP_OUTPUT,
                       .heads = SWEEP_HEADS,
                       .data = SWEEP_DATA,
                       .seeds = 3,
                       .evaluate = 500,
                       .points = 25};
    file_lock lock = {.name = NULL};
    int code = sweep_options_read(&r, argc, argv);
    if (code != EXIT_GO_ON)
        return code;
    code = EXIT_FAILED;
    if (file_lock_take(&lock, r.output, "sweep")) {
        leftover_files_remove(r.output);
        code = run(&r, argc, argv);
    }
    file_lock_release(&lock);
    return code;
}
