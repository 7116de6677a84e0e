/* SPDX-License-Identifier: MIT */
/*
 * mha bench --table: the rows of bench/bench_rows.h, each with its goal. Successive rows about the
 * same word form a group, whose cases are measured in turn so that ratios are of the same moments.
 */
#include "program/bench_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "bench/bench_rows.h"
#include "bench/measure.h"
#include "bench/openblas.h"
#include "format/json_writer.h"
#include "program/options.h"
#include "program/session.h"

enum { GROUP_MAX = 4, SECTIONS_MAX = 8 };

typedef struct figures {
    char label[2 * WORD_TEXT_MAX];
    const char *what;
    double measured, median; /* measured: the favourable quartile; NaN: not measured */
    bool small_is_good, reached;
} figures;

/* How the table is measured and printed. */
typedef struct table {
    int rounds, threads;
    bool openblas; /* whether it is installed */
    json *j;       /* NULL: text */
} table;

/* --------------------------------------------------------------- figures ----- */

/* What a row's number is: a share of a peak, or a ratio to what it is compared with. */
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

/* The number of a row in one round: `a` is the word, `b` what it is compared with. */
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

static figures figures_of(const row *r)
{
    figures f = {.what = kind_name(r->kind, false), .measured = (double)NAN};
    f.median = f.measured;
    f.small_is_good = r->kind == ROW_TIME || r->kind == ROW_WORKSPACE;
    snprintf(f.label, sizeof f.label, "%s%s%s", r->word, r->against ? " against " : "",
             r->against ? r->against : "");
    return f;
}

/* Quartile and median over the rounds. The favourable quartile is the lower one where small is
 * good. False if out of memory. */
static bool summarise(const row *r, const measure_case *a, const measure_case *b, figures *f)
{
    double *values = calloc((size_t)a->rounds, sizeof *values);
    if (values == NULL)
        return false;
    for (int n = 0; n < a->rounds; n++)
        values[n] = round_value(r, &a->round[n], &b->round[n]);
    f->measured = measure_quantile(values, a->rounds, f->small_is_good ? 0.25 : 0.75);
    f->median = measure_quantile(values, a->rounds, 0.5);
    f->what = kind_name(r->kind, a->what.memory_bound);
    free(values);
    return true;
}

/* -------------------------------------------------------------- printing ----- */

/* Whether the goal is reached; nothing for rows without a goal. */
static void print_verdict(const row *r, const figures *f)
{
    const terminal term = terminal_query(stdout);
    if (isnan(f->measured)) {
        printf("not measured: no " OPENBLAS_PACKAGE);
    } else if (r->reach > 0.0) {
        terminal_style(stdout, &term, f->reached ? STYLE_GOOD : STYLE_BAD);
        printf("%s", f->reached ? "reached" : "missed");
        terminal_plain(stdout, &term);
    }
    printf("\n");
}

static void print_row(const row *r, const figures *f)
{
    char reach[32] = "";
    if (r->reach > 0.0)
        snprintf(reach, sizeof reach, "%s%6.2f", f->small_is_good ? "<=" : ">=", r->reach);
    printf("%-60s %8s ", f->label, reach);
    if (isnan(f->measured))
        printf("%9s %8s  ", "-", "-");
    else
        printf("%9.3f %8.3f  ", f->measured, f->median);
    printf("%-13s", f->what);
    print_verdict(r, f);
    fflush(stdout);
}

static void json_row(json *j, const row *r, const figures *f)
{
    json_open_object(j, NULL);
    json_string(j, "case", r->word);
    if (r->against != NULL)
        json_string(j, "against", r->against);
    json_string(j, "unit", f->what);
    json_number(j, "reach", r->reach > 0.0 ? r->reach : (double)NAN);
    json_string(j, "good", f->small_is_good ? "small" : "large");
    json_number(j, "measured", f->measured);
    json_number(j, "median", f->median);
    if (r->reach > 0.0 && !isnan(f->measured))
        json_bool(j, "reached", f->reached);
    json_close(j);
}

/* Judges the row and prints it. */
static void show(const table *t, const row *r, figures *f)
{
    f->reached = f->small_is_good ? f->measured <= r->reach : f->measured >= r->reach;
    if (t->j != NULL)
        json_row(t->j, r, f);
    else
        print_row(r, f);
}

/* ---------------------------------------------------------------- groups ----- */

/* Cases that are measured in the same rounds: the word of the rows, and all that it is compared
 * with. */
typedef struct group {
    measure_case cases[GROUP_MAX];
    const char *words[GROUP_MAX];
    int count;
} group;

static bool parse(const char *text, bench_case_word *word)
{
    char message[WORD_MESSAGE_MAX];
    return bench_case_word_parse(word, text, message, sizeof message);
}

static bool add_case(group *g, const table *t, const char *text, char *message, size_t size)
{
    bench_case_word word;
    measure_case *s = &g->cases[g->count];
    if (!parse(text, &word) || !measure_create(s, &word, t->threads, t->rounds, message, size))
        return false;
    g->words[g->count++] = text;
    return true;
}

/* Whether a row cannot be measured because OpenBLAS is not installed. */
static bool is_missing(const table *t, const row *r)
{
    return !t->openblas && r->against != NULL && strncmp(r->against, "openblas:", 9) == 0;
}

static const measure_case *find_case(const group *g, const char *text)
{
    for (int n = 0; n < g->count; n++)
        if (strcmp(g->words[n], text) == 0)
            return &g->cases[n];
    return NULL;
}

/* Measures the cases of rows that have the same word; a case of several rows is measured once. */
static bool measure_group(group *g, const table *t, const row *rows, int count, char *message,
                          size_t size)
{
    measure_case *all[GROUP_MAX];
    if (!add_case(g, t, rows[0].word, message, size))
        return false;
    for (int n = 0; n < count; n++) {
        const char *against = rows[n].against;
        if (against == NULL || is_missing(t, &rows[n]) || find_case(g, against) != NULL)
            continue;
        if (g->count == GROUP_MAX || !add_case(g, t, against, message, size))
            return false;
    }
    for (int n = 0; n < g->count; n++)
        all[n] = &g->cases[n];
    return measure_run(all, g->count, message, size);
}

static bool show_group(const group *g, const table *t, const row *rows, int count)
{
    for (int n = 0; n < count; n++) {
        const row *r = &rows[n];
        figures f = figures_of(r);
        const measure_case *b = find_case(g, r->against != NULL ? r->against : r->word);
        if (b != NULL && !summarise(r, &g->cases[0], b, &f))
            return false;
        show(t, r, &f);
    }
    return true;
}

static bool run_group(const table *t, const row *rows, int count)
{
    char message[WORD_MESSAGE_MAX + WORD_TEXT_MAX] = "out of memory";
    group g = {0};
    const bool ok = measure_group(&g, t, rows, count, message, sizeof message) &&
                    show_group(&g, t, rows, count);
    for (int n = 0; n < g.count; n++)
        measure_free(&g.cases[n]);
    if (!ok)
        fprintf(stderr, "mha: %s\n", message);
    return ok;
}

/* The workspace of a plan; the problem itself is not computed. */
static bool run_workspace(const table *t, const row *r)
{
    bench_case_word word;
    mha_plan *plan;
    if (!parse(r->word, &word))
        return false;
    const mha_shape shape = word_shape(&word.problem);
    if (mha_plan_create(&plan, &shape, NULL) != MHA_OK)
        return false;
    figures f = figures_of(r);
    f.measured = f.median = (double)mha_plan_work_size(plan, 1) / 1048576.0;
    mha_plan_free(plan);
    show(t, r, &f);
    return true;
}

/* ----------------------------------------------------------------- whole ----- */

/* Rows about the same word are neighbours and form a group. */
static bool run_section(const table *t, const row_section *section)
{
    for (int n = 0, end; n < section->count; n = end) {
        const row *first = &section->rows[n];
        end = n + 1;
        while (end < section->count && strcmp(section->rows[end].word, first->word) == 0)
            end++;
        if (!(first->kind == ROW_WORKSPACE ? run_workspace(t, first)
                                           : run_group(t, first, end - n)))
            return false;
    }
    return true;
}

/* Marks the sections that are named, or all. False after a message on an unknown name. */
static bool choose(char *const *names, int count, bool *chosen)
{
    const char *known[SECTIONS_MAX];
    for (int n = 0; n < row_section_count; n++) {
        known[n] = row_sections[n].name;
        chosen[n] = count == 0;
    }
    for (int asked = 0; asked < count; asked++) {
        const int n = option_choose("bench", "section", names[asked], known, row_section_count);
        if (n < 0)
            return false;
        chosen[n] = true;
    }
    return true;
}

static int run_sections(const table *t, const bool *chosen)
{
    for (int n = 0; n < row_section_count; n++) {
        if (chosen[n] && t->j == NULL)
            printf("\n%-60s %8s %9s %8s\n", row_sections[n].title, "reach", "measured", "median");
        if (chosen[n] && !run_section(t, &row_sections[n]))
            return EXIT_FAILED;
    }
    return EXIT_FINE;
}

static bool find_openblas(void)
{
    char message[WORD_MESSAGE_MAX];
    openblas blas;
    const bool there = openblas_open(&blas, message, sizeof message);
    openblas_close(&blas);
    return there;
}

int bench_table(char *const *names, int count, int rounds, int threads, bool as_json)
{
    bool chosen[SECTIONS_MAX];
    if (!choose(names, count, chosen))
        return EXIT_USAGE;
    const char *isa = require_isa();
    if (isa == NULL)
        return EXIT_FAILED;
    json j = json_begin(stdout);
    const table t = {rounds, threads, find_openblas(), as_json ? &j : NULL};
    if (!as_json) {
        printf(
            "isa %s, %d thread%s, %d rounds; measured: the favourable quartile; clock: cpu time of "
            "one thread, wall time of several\n",
            isa, threads, threads == 1 ? "" : "s", rounds);
        return run_sections(&t, chosen);
    }
    json_open_object(&j, NULL);
    json_string(&j, "isa", isa);
    json_integer(&j, "threads", threads);
    json_integer(&j, "rounds", rounds);
    json_open_array(&j, "rows");
    const int code = run_sections(&t, chosen);
    json_close(&j);
    json_close(&j);
    return code;
}
