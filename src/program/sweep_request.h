/* SPDX-License-Identifier: MIT */
/*
 * What "mha sweep" is asked to do, and the parts of the command:
 *
 *      sweep_options.c     the command line --> sweep_request
 *      command_sweep.c     the trainings, one after another; the file of results
 *      sweep_report.c      the tables, as text and as JSON
 *      sweep_svg.c         the charts
 *
 * Functions that return int return EXIT_GO_ON, or the exit code after a message on stderr.
 */
#ifndef PROGRAM_SWEEP_REQUEST_H
#define PROGRAM_SWEEP_REQUEST_H

#include "translator/sweep_summary.h"

#define SWEEP_OUTPUT "sweep.csv"
#define SWEEP_HEADS "1,2,4,8,16"
#define SWEEP_DATA "1000,0"
enum { SWEEP_PATH_MAX = 4096 };

typedef struct sweep_request {
    const char *given[TRAINING_SETTINGS]; /* NULL: not given */
    const char *layers, *heads, *data, *target_text;
    const char *output, *svg, *log;
    int64_t threads, seeds, evaluate, points;
    bool resume, force, json, quiet;

    char svg_path[SWEEP_PATH_MAX]; /* where none is given */
    sweep_settings settings;
    sweep_grid grid;
    double target; /* NaN: for each number of pairs the loss that all trainings reach */
} sweep_request;

/* Reads and checks the command line, all numbers of heads included, and that all files can be
 * written. */
int sweep_options_read(sweep_request *request, int argc, char **argv);

/* What is reported: the results of a request. */
typedef struct sweep_report {
    const sweep_request *request;
    const sweep_table *table;
} sweep_report;

/* The loss up to which steps are counted, for one number of pairs. */
double sweep_report_target(const sweep_report *report, int data);

void sweep_report_print(const sweep_report *report);
void sweep_report_json(const sweep_report *report);

/* For output_file_write(): `shown` is a const sweep_report *. */
void sweep_svg(FILE *file, const void *shown);

/* "1000 sentence pairs", or "new sentence pairs in every step". */
void sweep_data_text(int64_t data, char text[64]);

#endif
