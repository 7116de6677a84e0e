/* SPDX-License-Identifier: MIT */
/*
 * The tables of "mha sweep", one for each number of sentence pairs:
 *
 *      heads     valid loss     train loss            gap        exact %  steps to 0.81
 *          1   0.812 ±0.021  ...
 *      difference from 1 head, seed by seed; * if its interval does not contain 0
 *          2  -0.034 ±0.012*  ...
 *
 * and below, for which numbers of heads the usual claims are supported.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/terminal.h"
#include "format/json_writer.h"
#include "program/sweep_request.h"

enum { CELL_TEXT = 48, COLUMN = 15, COLUMN_HEADS = 5 };

void sweep_data_text(int64_t data, char text[64])
{
    if (data > 0)
        snprintf(text, 64, "%" PRId64 " sentence pairs", data);
    else
        snprintf(text, 64, "always new sentence pairs");
}

double sweep_report_target(const sweep_report *r, int data)
{
    return isnan(r->request->target) ? sweep_common_target(r->table, &r->request->grid, data)
                                     : r->request->target;
}

/* --------------------------------------------------------------- cells ----- */

/* How a measure is printed: digits after the point, and a factor. */
static const struct {
    const char *name;
    int digits;
    double factor;
} formats[SWEEP_MEASURES] = {
    {"valid loss", 3, 1.0}, {"train loss", 3, 1.0}, {"gap", 3, 1.0},
    {"exact %", 1, 100.0},  {"steps to", 0, 1.0},
};

/* "0.812 ±0.021", the mean alone if there is one seed, "-" if there is none. */
static void cell_text(const mean_interval *i, sweep_measure measure, const char *sign,
                      char text[CELL_TEXT])
{
    const int digits = formats[measure].digits;
    const double factor = formats[measure].factor;
    if (isnan(i->mean))
        snprintf(text, CELL_TEXT, "-");
    else if (isinf(i->half))
        snprintf(text, CELL_TEXT, "%.*f", digits, factor * i->mean);
    else
        snprintf(text, CELL_TEXT, "%.*f %s%.*f", digits, factor * i->mean, sign, digits,
                 factor * i->half);
}

/* Right-aligned in the column of a measure; the sign of two bytes has one column. `mark` follows,
 * except that no line ends with a space. */
static void put_cell(sweep_measure measure, const char *text, char mark)
{
    int columns = 0;
    for (const char *at = text; *at != '\0'; at++)
        columns += (*at & 0xc0) != 0x80;
    printf("%*s%s", COLUMN - 1 - columns > 0 ? COLUMN - 1 - columns : 1, "", text);
    if (mark != ' ' || measure != SWEEP_MEASURES - 1)
        putchar(mark);
}

/* -------------------------------------------------------------- tables ----- */

typedef struct sweep_sheet {
    const sweep_report *report;
    int data; /* its number in the grid */
    double target;
    const char *sign;
} sweep_sheet;

static mean_interval difference(const sweep_sheet *s, int heads, sweep_measure measure)
{
    return sweep_difference(s->report->table, &s->report->request->grid, s->data, heads, measure,
                            s->target);
}

static void put_head_line(const sweep_sheet *s)
{
    printf("%*s", COLUMN_HEADS, "heads");
    for (int m = 0; m < SWEEP_MEASURES; m++) {
        char text[CELL_TEXT];
        if (m == SWEEP_STEPS)
            snprintf(text, sizeof text, "%s %.2f", formats[m].name, s->target);
        put_cell((sweep_measure)m, m == SWEEP_STEPS ? text : formats[m].name, ' ');
    }
    printf("\n");
}

/* Trainings that do not reach the target have no number of steps: they are counted instead. */
static void put_means(const sweep_sheet *s, int heads)
{
    const sweep_grid *const grid = &s->report->request->grid;
    char text[CELL_TEXT];
    printf("%*d", COLUMN_HEADS, grid->heads[heads]);
    for (int m = 0; m < SWEEP_MEASURES; m++) {
        const mean_interval i =
            sweep_mean(s->report->table, grid, s->data, heads, (sweep_measure)m, s->target);
        cell_text(&i, (sweep_measure)m, s->sign, text);
        if (m == SWEEP_STEPS && isnan(i.mean))
            snprintf(text, sizeof text, "reached: %d/%d",
                     sweep_reached(s->report->table, grid, s->data, heads, s->target), i.count);
        put_cell((sweep_measure)m, text, ' ');
    }
    printf("\n");
}

static void put_differences(const sweep_sheet *s, int heads)
{
    char text[CELL_TEXT];
    printf("%*d", COLUMN_HEADS, s->report->request->grid.heads[heads]);
    for (int m = 0; m < SWEEP_MEASURES; m++) {
        const mean_interval i = difference(s, heads, (sweep_measure)m);
        cell_text(&i, (sweep_measure)m, s->sign, text);
        put_cell((sweep_measure)m, text, mean_interval_sign(&i) != 0 ? '*' : ' ');
    }
    printf("\n");
}

/* ------------------------------------------------------------- verdicts ---- */

/* The claims, each about a measure that several heads are said to lower. */
static const struct {
    const char *text;
    sweep_measure measure;
} sayings[] = {
    {"lower validation loss", SWEEP_VALID},
    {"smaller gap", SWEEP_GAP},
    {"fewer steps", SWEEP_STEPS},
};
enum { SAYINGS = sizeof sayings / sizeof sayings[0] };

/* Prints the numbers of heads whose difference has this sign, after a word; nothing if there are
 * none. */
static void put_those(const sweep_sheet *s, sweep_measure measure, int sign, const char *word,
                      bool *first)
{
    const sweep_grid *const grid = &s->report->request->grid;
    bool any = false;
    for (int n = 1; n < grid->head_count; n++) {
        const mean_interval i = difference(s, n, measure);
        if (mean_interval_sign(&i) != sign)
            continue;
        printf("%s%s %d", any ? "," : *first ? "" : "; ", any ? "" : word, grid->heads[n]);
        any = true;
        *first = false;
    }
}

static void put_verdicts(const sweep_sheet *s)
{
    for (int n = 0; n < SAYINGS; n++) {
        bool first = true;
        printf("  %-22s ", sayings[n].text);
        put_those(s, sayings[n].measure, -1, "yes with", &first);
        put_those(s, sayings[n].measure, 1, "no, the opposite with", &first);
        put_those(s, sayings[n].measure, 0, "not decided with", &first);
        printf("\n");
    }
}

static void put_sheet(const sweep_sheet *s)
{
    const sweep_grid *const grid = &s->report->request->grid;
    const training_config *const config = &s->report->request->settings.config;
    const terminal t = terminal_query(stdout);
    char data[64];
    sweep_data_text(grid->data[s->data], data);
    terminal_style(stdout, &t, STYLE_BOLD);
    printf("%s", data);
    terminal_plain(stdout, &t);
    printf("; width %d, %" PRId64 " steps of %d; %d seed%s\n", config->model.width, config->steps,
           config->batch, grid->seeds, grid->seeds == 1 ? "" : "s");
    put_head_line(s);
    for (int n = 0; n < grid->head_count; n++)
        put_means(s, n);
    if (grid->head_count > 1) {
        printf("difference from %d head%s, seed by seed%s\n", grid->heads[0],
               grid->heads[0] == 1 ? "" : "s",
               grid->seeds > 1 ? "; * the interval does not contain 0" : "");
        for (int n = 1; n < grid->head_count; n++)
            put_differences(s, n);
    }
    if (grid->head_count > 1 && grid->seeds > 1)
        put_verdicts(s);
    printf("\n");
}

void sweep_report_print(const sweep_report *r)
{
    const sweep_request *const request = r->request;
    const terminal t = terminal_query(stdout);
    for (int n = 0; n < request->grid.data_count; n++) {
        const sweep_sheet sheet = {r, n, sweep_report_target(r, n), t.unicode ? "±" : "+-"};
        put_sheet(&sheet);
    }
    if (request->grid.seeds > 1)
        printf("After %s: half of the 95 %% interval over %d seeds (Student's t).\n",
               t.unicode ? "±" : "+-", request->grid.seeds);
    if (isnan(request->target))
        printf("Steps are counted until a validation loss that all trainings of a table reach.\n");
    printf("Results: %s, charts: %s\n", request->output, request->svg);
}

/* ---------------------------------------------------------------- JSON ----- */

static void interval_json(json *j, const char *key, const mean_interval *i)
{
    json_open_object(j, key);
    json_number(j, "mean", i->mean);
    json_number(j, "low", i->mean - i->half);
    json_number(j, "high", i->mean + i->half);
    json_integer(j, "seeds", i->count);
    json_close(j);
}

static const char *const measure_keys[SWEEP_MEASURES] = {"valid_loss", "train_loss", "gap", "exact",
                                                         "steps"};

static void cell_json(json *j, const sweep_sheet *s, int heads)
{
    const sweep_grid *const grid = &s->report->request->grid;
    json_open_object(j, NULL);
    json_integer(j, "data", grid->data[s->data]);
    json_integer(j, "heads", grid->heads[heads]);
    json_number(j, "target", s->target);
    json_integer(j, "reached", sweep_reached(s->report->table, grid, s->data, heads, s->target));
    for (int m = 0; m < SWEEP_MEASURES; m++) {
        const mean_interval i =
            sweep_mean(s->report->table, grid, s->data, heads, (sweep_measure)m, s->target);
        interval_json(j, measure_keys[m], &i);
    }
    json_open_object(j, "difference");
    for (int m = 0; m < SWEEP_MEASURES && heads > 0; m++) {
        const mean_interval i = difference(s, heads, (sweep_measure)m);
        interval_json(j, measure_keys[m], &i);
    }
    json_close(j);
    json_close(j);
}

static void settings_json(json *j, const sweep_settings *s)
{
    char text[TRAINING_TEXT_MAX];
    json_open_object(j, "settings");
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        training_setting_text(&s->config, n, text);
        json_string(j, training_setting_name(n), text);
    }
    json_integer(j, "evaluate", s->evaluate);
    json_integer(j, "points", s->points);
    json_close(j);
}

void sweep_report_json(const sweep_report *r)
{
    const sweep_grid *const grid = &r->request->grid;
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    settings_json(&j, &r->request->settings);
    json_unsigned(&j, "seed", grid->first_seed);
    json_integer(&j, "seeds", grid->seeds);
    json_string(&j, "results", r->request->output);
    json_string(&j, "svg", r->request->svg);
    json_open_array(&j, "cells");
    for (int n = 0; n < grid->data_count; n++)
        for (int h = 0; h < grid->head_count; h++) {
            const sweep_sheet sheet = {r, n, sweep_report_target(r, n), ""};
            cell_json(&j, &sheet, h);
        }
    json_close(&j);
    json_close(&j);
}
