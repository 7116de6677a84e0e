/* SPDX-License-Identifier: MIT */
#include "bench_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "args.h"
#include "commands.h"
#include "json.h"
#include "measure.h"
#include "terminal.h"

typedef enum row_kind {
    ROW_SHARE,       /* share of the peak or of the bandwidth */
    ROW_TIME,        /* seconds of `word` / seconds of `against`; small is good */
    ROW_SPEED,       /* seconds of `against` / seconds of `word` */
    ROW_SHARE_RATIO, /* share of `word` / share of `against` */
    ROW_WORKSPACE    /* MiB of workspace a thread; small is good */
} row_kind;

typedef struct row {
    row_kind kind;
    const char *word, *against;
    double reach;
} row;

#define DECODE "b1h32g8l1s4096d128"

static const row rows[] = {
    {ROW_SHARE, "b1h12l1024d64", NULL, 0.85},
    {ROW_SHARE, "b1h12l2048d64", NULL, 0.85},
    {ROW_SHARE, "b1h12l4096d64", NULL, 0.85},
    {ROW_SHARE, "b1h12l1024d128", NULL, 0.87},
    {ROW_SHARE, "b1h12l2048d128", NULL, 0.87},
    {ROW_SHARE, "b1h12l4096d128", NULL, 0.87},
    {ROW_SHARE, "b1h12l512d64", NULL, 0.78},
    {ROW_SHARE, "b32h12l128d64", NULL, 0.70},
    {ROW_SHARE, "b1h12l2048d64:causal", NULL, 0.78},
    {ROW_SHARE, "b1h12l4096d64:causal:window=256", NULL, 0.65},
    {ROW_SHARE, "b1h12l1024d64:mask=bool50", NULL, 0.70},
    {ROW_SHARE, "b1h12l1024d64:mask=add", NULL, 0.70},
    {ROW_TIME, "b8h12l512d64:pad", "b8h12l512d64", 0.55},
    {ROW_TIME, "b8h12l512d64:padk", "b8h12l512d64", 0.55},
    {ROW_SHARE, DECODE, NULL, 0.85},
    {ROW_SPEED, DECODE ":f16", DECODE, 1.8},
    {ROW_SPEED, DECODE ":bf16", DECODE, 1.8},
    {ROW_SPEED, "b1h12l1024d64:f16", "b1h12l1024d64", 0.95},
    {ROW_SPEED, "b1h12l1024d64:bf16", "b1h12l1024d64", 0.95},
    {ROW_SHARE_RATIO, "b1h12l1024d64:t=2", "b1h12l1024d64:t=1", 0.95},
    {ROW_WORKSPACE, "b1h12l16384d64", NULL, 16.0},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

typedef struct figures {
    char label[2 * WORD_TEXT_MAX];
    const char *what;
    double measured, median; /* measured: the favourable quartile */
    bool small_is_good, reached;
} figures;

static const char *kind_name(row_kind kind, bool memory_bound)
{
    switch (kind) {
    case ROW_SHARE:
        return memory_bound ? "of bandwidth" : "of peak";
    case ROW_TIME:
        return "of its time";
    case ROW_SPEED:
        return "x its speed";
    case ROW_SHARE_RATIO:
        return "of its share";
    case ROW_WORKSPACE:
        return "MiB/thread";
    }
    return "";
}

static double round_value(const row *r, const measure_round *a, const measure_round *b)
{
    switch (r->kind) {
    case ROW_TIME:
        return a->seconds / b->seconds;
    case ROW_SPEED:
        return b->seconds / a->seconds;
    case ROW_SHARE_RATIO:
        return a->share / b->share;
    case ROW_SHARE:
    case ROW_WORKSPACE:
        break;
    }
    return a->share;
}

static bool summarise(const row *r, const measure_subject *a, const measure_subject *b, figures *f)
{
    double *values = calloc((size_t)a->rounds, sizeof *values);
    if (values == NULL)
        return false;
    for (int n = 0; n < a->rounds; n++)
        values[n] = round_value(r, &a->round[n], &b->round[n]);
    f->measured = measure_quantile(values, a->rounds, f->small_is_good ? 0.25 : 0.75);
    f->median = measure_quantile(values, a->rounds, 0.5);
    f->what = kind_name(r->kind, a->memory_bound);
    free(values);
    return true;
}

static bool parse(const char *text, problem_word *word)
{
    char message[WORD_MESSAGE_MAX];
    return word_parse(word, text, message, sizeof message);
}

/* Only asks the plan: nothing of that size is computed. */
static bool measure_workspace(const row *r, figures *f)
{
    problem_word word;
    mha_plan *plan;
    if (!parse(r->word, &word))
        return false;
    const mha_shape shape = word_shape(&word);
    if (mha_plan_create(&plan, &shape, NULL) != MHA_OK)
        return false;
    f->measured = f->median = (double)mha_plan_work_size(plan, 1) / 1048576.0;
    f->what = kind_name(r->kind, false);
    mha_plan_free(plan);
    return true;
}

static bool measure_row(const row *r, int rounds, int threads, figures *f)
{
    char message[WORD_MESSAGE_MAX + WORD_TEXT_MAX] = "";
    problem_word words[2];
    measure_subject subjects[2] = {0};
    measure_subject *const both[] = {&subjects[0], &subjects[1]};
    const int count = r->against != NULL ? 2 : 1;
    bool ok = parse(r->word, &words[0]) && (count == 1 || parse(r->against, &words[1]));
    for (int n = 0; ok && n < count; n++)
        ok = measure_create(&subjects[n], &words[n], threads, rounds, message, sizeof message);
    ok = ok && measure_run(both, count, message, sizeof message) &&
         summarise(r, &subjects[0], &subjects[count - 1], f);
    for (int n = 0; n < count; n++)
        measure_free(&subjects[n]);
    if (!ok)
        fprintf(stderr, "mha: %s\n", message);
    return ok;
}

static bool fill_row(const row *r, int rounds, int threads, figures *f)
{
    *f = (figures){.small_is_good = r->kind == ROW_TIME || r->kind == ROW_WORKSPACE};
    snprintf(f->label, sizeof f->label, "%s%s%s", r->word, r->against ? " against " : "",
             r->against ? r->against : "");
    if (!(r->kind == ROW_WORKSPACE ? measure_workspace(r, f) : measure_row(r, rounds, threads, f)))
        return false;
    f->reached = f->small_is_good ? f->measured <= r->reach : f->measured >= r->reach;
    return true;
}

static void print_row(const row *r, const figures *f)
{
    const terminal term = terminal_query(stdout);
    printf("%-58s %s%6.2f %9.3f %8.3f  %-13s", f->label, f->small_is_good ? "<=" : ">=", r->reach,
           f->measured, f->median, f->what);
    terminal_style(stdout, &term, f->reached ? STYLE_GOOD : STYLE_BAD);
    printf("%s", f->reached ? "reached" : "missed");
    terminal_plain(stdout, &term);
    printf("\n");
    fflush(stdout);
}

static void json_row(json *j, const row *r, const figures *f)
{
    json_open_object(j, NULL);
    json_string(j, "case", r->word);
    if (r->against != NULL)
        json_string(j, "against", r->against);
    json_string(j, "unit", f->what);
    json_number(j, "reach", r->reach);
    json_string(j, "good", f->small_is_good ? "small" : "large");
    json_number(j, "measured", f->measured);
    json_number(j, "median", f->median);
    json_bool(j, "reached", f->reached);
    json_close(j);
}

static int run_rows(int rounds, int threads, json *j)
{
    for (int n = 0; n < ROW_COUNT; n++) {
        figures f;
        if (!fill_row(&rows[n], rounds, threads, &f))
            return EXIT_FAILED;
        if (j != NULL)
            json_row(j, &rows[n], &f);
        else
            print_row(&rows[n], &f);
    }
    return EXIT_FINE;
}

int bench_table(int rounds, int threads, bool as_json)
{
    const char *isa = require_isa();
    if (isa == NULL)
        return EXIT_FAILED;
    if (!as_json) {
        printf("isa %s, %d thread%s, %d rounds; measured: the favourable quartile\n\n", isa,
               threads, threads == 1 ? "" : "s", rounds);
        printf("%-58s %8s %9s %8s\n", "case", "reach", "measured", "median");
        return run_rows(rounds, threads, NULL);
    }
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "isa", isa);
    json_integer(&j, "threads", threads);
    json_integer(&j, "rounds", rounds);
    json_open_array(&j, "rows");
    const int code = run_rows(rounds, threads, &j);
    json_close(&j);
    json_close(&j);
    return code;
}
