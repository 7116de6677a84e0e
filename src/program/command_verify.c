/* SPDX-License-Identifier: MIT */
/* mha verify: random problems, and named ones, against double precision. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "format/json_writer.h"
#include "problem/layer_word.h"
#include "problem/problem_check.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/session.h"

enum { FAILURES_SHOWN = 20, THREADS_DEFAULT = 3 };

typedef struct tally {
    FILE *log; /* where failures go: stdout, unless that is for JSON */
    uint64_t seed;
    int64_t configs, failures;
    double output, lse, weights, f64; /* worst E of each kind */
    int64_t lse_count, weights_count; /* configurations that have them */
    char worst_case[64];
    char worst_word[WORD_TEXT_MAX];
} tally;

static const char details[] =
    "Every configuration is a random mixture of extents, element types, layouts, masks, biases "
    "and\n"
    "outputs. It is run alone, with a plan and a pool, and without its extra outputs (the bits "
    "must\n"
    "be the same), and compared with double precision. E is the error in units of\n"
    "    2^-24 * sum_j p_j |v_j| * (1 + max_j (sum_c |q_c k_jc| * scale + |bias_j|))\n"
    "after the rounding to f16 or bf16 storage has been subtracted; it must not exceed 8.\n"
    "\n"
    "Exit code: 0 success, 1 failures found, 2 wrong usage.\n"
    "\n"
    "Examples:\n"
    "  mha verify --configs 10000 --seed 7\n"
    "  mha verify --case 7:1234                       one of these again\n"
    "  mha verify --case b2h8g2l100d64:causal:bf16    a problem word\n";

static void count(tally *t, const check_result *result, const char *name, const problem_word *word)
{
    char text[WORD_TEXT_MAX];
    word_print(word, text, sizeof text);
    t->configs++;
    if (result->failed) {
        t->failures++;
        progress_end();
        if (t->failures <= FAILURES_SHOWN)
            fprintf(t->log, "%s verify --case %s  # %s: %s\n", args_program, name, text,
                    result->what);
    }
    if (result->output > t->output || t->configs == 1) {
        snprintf(t->worst_case, sizeof t->worst_case, "%s", name);
        snprintf(t->worst_word, sizeof t->worst_word, "%s", text);
    }
    t->output = fmax(t->output, result->output);
    t->lse = fmax(t->lse, result->lse);
    t->weights = fmax(t->weights, result->weights);
    t->f64 = fmax(t->f64, result->f64);
    t->lse_count += word->lse;
    t->weights_count += word->weights;
}

/* Checks a problem that was made, or reports why it was not. */
static bool check_one(tally *t, const char *name, bool made, problem *p, const char *message,
                      mha_pool *pool)
{
    check_result result;
    if (!made) {
        fprintf(stderr, "mha: %s\n", message);
        return false;
    }
    check_problem(p, pool, &result);
    count(t, &result, name, &p->word);
    problem_free(p);
    return true;
}

static bool check_random(tally *t, uint64_t seed, uint64_t index, mha_pool *pool)
{
    const problem_spec spec = problem_spec_case(seed, index);
    problem p;
    char name[64], message[WORD_MESSAGE_MAX];
    snprintf(name, sizeof name, "%" PRIu64 ":%" PRIu64, seed, index);
    const bool made = problem_build(&p, &spec, message, sizeof message);
    return check_one(t, name, made, &p, message, pool);
}

static int check_series(tally *t, int64_t configs, mha_pool *pool)
{
    for (int64_t n = 0; n < configs; n++) {
        progress("configurations: %" PRId64 " of %" PRId64 ", worst E %.2f, failures: %" PRId64, n,
                 configs, t->output, t->failures);
        if (!check_random(t, t->seed, (uint64_t)n, pool))
            return EXIT_FAILED;
    }
    progress_end();
    return EXIT_GO_ON;
}

/* "SEED:INDEX"; false for anything else. */
static bool read_place(const char *text, uint64_t *seed, uint64_t *index)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (end == text || *end != ':' || end[1] < '0' || end[1] > '9')
        return false;
    *index = strtoull(end + 1, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool names_layer_word(const char *name)
{
    const size_t length = strcspn(name, ":");
    for (int n = 0; n < layer_word_kind_count; n++)
        if (strlen(layer_word_kinds[n]) == length &&
            strncmp(name, layer_word_kinds[n], length) == 0)
            return true;
    return false;
}

/* A place in a series does, a problem word never. */
static bool begins_with_digit(const char *name)
{
    return *name >= '0' && *name <= '9';
}

static int check_named(tally *t, const char *name, mha_pool *pool)
{
    problem_word word;
    char message[WORD_MESSAGE_MAX];
    if (begins_with_digit(name)) {
        uint64_t index;
        if (!read_place(name, &t->seed, &index))
            return args_wrong("verify: --case %s is neither SEED:INDEX nor a problem word", name);
        return check_random(t, t->seed, index, pool) ? EXIT_GO_ON : EXIT_FAILED;
    }
    if (names_layer_word(name))
        return args_wrong("verify: --case %s: layer words are for bench and explain", name);
    if (!word_parse(&word, name, message, sizeof message))
        return args_wrong("verify: %s", message);
    if (word.gradients || word.dropout > 0.0f)
        return args_wrong("verify: --case %s: %s is for bench and explain", name,
                          word.gradients ? "grad" : "dropout");
    problem p;
    const bool made = problem_create(&p, &word, t->seed, message, sizeof message);
    return check_one(t, name, made, &p, message, pool) ? EXIT_GO_ON : EXIT_FAILED;
}

static void report_json(const tally *t, const char *isa, int threads, double seconds)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_integer(&j, "configs", t->configs);
    json_number(&j, "worst_e", t->output);
    json_integer(&j, "failures", t->failures);
    json_unsigned(&j, "seed", t->seed);
    json_string(&j, "isa", isa);
    json_integer(&j, "threads", threads);
    json_number(&j, "limit", CHECK_LIMIT);
    json_string(&j, "worst_case", t->worst_case);
    json_string(&j, "worst_word", t->worst_word);
    json_number(&j, "worst_e_lse", t->lse);
    json_number(&j, "worst_e_weights", t->weights);
    json_number(&j, "worst_e_f64", t->f64);
    json_number(&j, "seconds", seconds);
    json_close(&j);
}

static void print_worst(const char *name, double worst, int64_t checked)
{
    if (checked == 0)
        printf("%-9s -\n", name);
    else
        printf("%-9s %.2f\n", name, worst);
}

static void report_text(const tally *t, const char *isa, int threads, double seconds)
{
    const terminal term = terminal_query(stdout);
    printf("%" PRId64 " configuration%s, seed %" PRIu64 ", isa %s, %d thread%s, %.1f s\n",
           t->configs, t->configs == 1 ? "" : "s", t->seed, isa, threads, threads == 1 ? "" : "s",
           seconds);
    printf("worst E   %.2f of %.0f allowed\n", t->output, CHECK_LIMIT);
    printf("          %s verify --case %s\n          %s\n", args_program, t->worst_case,
           t->worst_word);
    print_worst("lse", t->lse, t->lse_count);
    print_worst("weights", t->weights, t->weights_count);
    printf("f64 path  %.2f (in units of 2^-53)\n", t->f64);
    terminal_style(stdout, &term, t->failures > 0 ? STYLE_BAD : STYLE_GOOD);
    printf("failures  %" PRId64, t->failures);
    terminal_plain(stdout, &term);
    printf("\n");
}

static int verify(tally *t, const char *name, int64_t configs, int threads, bool as_json)
{
    mha_pool *pool;
    const char *isa = require_isa();
    if (isa == NULL)
        return EXIT_FAILED;
    const mha_status status = mha_pool_create(&pool, threads);
    if (status != MHA_OK) {
        fprintf(stderr, "mha: %d thread%s: %s\n", threads, threads == 1 ? "" : "s",
                mha_status_string(status));
        return EXIT_FAILED;
    }
    t->log = as_json ? stderr : stdout;
    const double begin = clock_seconds();
    const int code = name != NULL ? check_named(t, name, pool) : check_series(t, configs, pool);
    mha_pool_free(pool);
    if (code != EXIT_GO_ON)
        return code;
    (as_json ? report_json : report_text)(t, isa, threads, clock_seconds() - begin);
    return t->failures > 0 ? EXIT_FAILED : EXIT_FINE;
}

int command_verify(int argc, char **argv)
{
    int64_t configs = 1000, threads = 0;
    const char *name = NULL;
    bool as_json = false;
    tally t = {.seed = 1};
    uint64_t given = 0;
    const arg_option options[] = {
        {"configs", ARG_NUMBER, &configs, "N", "number of random configurations (1000)", 1,
         INT64_C(1000000000)},
        {"seed", ARG_SEED, &t.seed, "S", "seed of the series (1)", 0, 0},
        {"case", ARG_TEXT, &name, "CASE", "only this one: SEED:INDEX or a problem word", 0, 0},
        {"threads", ARG_NUMBER, &threads, "T", "threads of the pool (3)", 1, MHA_MAX_THREADS},
        {"json", ARG_FLAG, &as_json, NULL, "print the result as JSON", 0, 0},
    };
    const arg_command command = {
        .name = "verify",
        .usage = "[--configs N] [--seed S] [--case CASE] [--threads T] [--json]",
        .summary = "Check the library on random problems against double precision.",
        .details = details,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .given = &given,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code == EXIT_GO_ON && name != NULL)
        code = args_refuse(&command, begins_with_digit(name) ? "configs seed" : "configs",
                           "goes with a series; --case is one problem");
    if (code != EXIT_GO_ON)
        return code;
    const int count_of_threads = args_threads(threads, THREADS_DEFAULT);
    if (count_of_threads == 0)
        return EXIT_USAGE;
    return verify(&t, name, configs, count_of_threads, as_json);
}
