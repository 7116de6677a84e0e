/* SPDX-License-Identifier: MIT */
/*
 * mha prove: runs the claims of claims.h that the user names, or all of them, and prints their rows
 * as text or JSON. The exit code says whether every assertion holds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/output_file.h"
#include "base/suggest.h"
#include "base/terminal.h"
#include "claims/claims.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/data_svg.h"
#include "program/options.h"
#include "program/session.h"

static const char details[] =
    "Claims, by name or number; all of them if none is named:\n"
    "  1 scores       without projections no score exceeds both tokens' own scores; the\n"
    "                 same wording for the weights is false; what is true for them, and\n"
    "                 which W_Q and W_K let two tokens prefer each other\n"
    "  2 pointwise    a head whose tokens attend to themselves is a 1x1 convolution\n"
    "  3 convolution  K^2 heads compute any K x K convolution: codes, paddings, strides,\n"
    "                 dilations, factorings; two heads suffice for one channel; how many\n"
    "                 heads are needed for several channels\n"
    "  4 places       with one number per token, one head cannot read two places, two\n"
    "                 heads can; what one head keeps and loses of vectors\n"
    "  5 cost         parameters and operations do not grow with h at d = E/h\n"
    "  6 fold         with one head, W_V and W_O fold into one matrix; when they do not\n"
    "  7 heads        several heads are better than one, regularise and learn faster: true\n"
    "                 for one task, false for another; \"mha sweep\" for translators\n"
    "  8 data         attention needs more data than a convolution: errors over the number of\n"
    "                 pictures to learn from, with intervals, and what both cost; --full has more\n"
    "                 pictures, steps and seeds, and takes minutes\n"
    "\n"
    "A line with <= or >= is an assertion: the computed number and its bound. The others\n"
    "are for information.\n"
    "\n"
    "Exit code: 0 all assertions hold, 1 one does not hold, 2 wrong usage.\n"
    "\n"
    "Examples:\n"
    "  mha prove scores\n"
    "  mha prove 3 --json\n"
    "  mha prove --seed 7\n"
    "  mha prove data --full --svg data.svg\n";

/* ---------------------------------------------------------------- report ----- */

/* "ok" or "FAIL" for an assertion, blanks for other numbers. */
static void print_verdict(const terminal *t, const proof_row *row)
{
    const bool asserted = row->kind != PROOF_NOTE;
    if (asserted)
        terminal_style(stdout, t, row->holds ? STYLE_GOOD : STYLE_BAD);
    printf("  %-5s", !asserted ? "" : row->holds ? "ok" : "FAIL");
    if (asserted)
        terminal_plain(stdout, t);
}

static void print_row(const terminal *t, const proof_row *row)
{
    if (row->kind == PROOF_SAY) {
        printf("  %s\n", row->text);
        return;
    }
    print_verdict(t, row);
    printf("%-45s %11.6g", row->text, row->value);
    if (row->kind != PROOF_NOTE)
        printf("  %s %.6g", row->kind == PROOF_AT_MOST ? "<=" : ">=", row->bound);
    printf("\n");
}

static void print_proof(int number, const proof *p, double seconds)
{
    const terminal t = terminal_query(stdout);
    terminal_style(stdout, &t, STYLE_BOLD);
    printf("%d %s: %s", number + 1, claims[number].name, claims[number].title);
    terminal_plain(stdout, &t);
    printf("\n");
    for (int n = 0; n < p->count; n++)
        print_row(&t, &p->rows[n]);
    printf("  %d of %d assertions hold, %.2f s\n\n", p->asserted - p->failed, p->asserted, seconds);
}

/* One row as an object: its text, and the number and the assertion if it has them. */
static void row_json(json *j, const proof_row *row)
{
    json_open_object(j, NULL);
    json_string(j, row->kind == PROOF_SAY ? "text" : "what", row->text);
    if (row->kind != PROOF_SAY)
        json_number(j, "value", row->value);
    if (row->kind == PROOF_AT_MOST || row->kind == PROOF_AT_LEAST) {
        json_string(j, "relation", row->kind == PROOF_AT_MOST ? "<=" : ">=");
        json_number(j, "bound", row->bound);
        json_bool(j, "holds", row->holds);
    }
    json_close(j);
}

static void proof_json(json *j, int number, const proof *p, double seconds)
{
    json_open_object(j, NULL);
    json_string(j, "claim", claims[number].name);
    json_integer(j, "number", number + 1);
    json_string(j, "title", claims[number].title);
    json_bool(j, "holds", proof_holds(p));
    json_integer(j, "assertions", p->asserted);
    json_integer(j, "failed", p->failed);
    json_unsigned(j, "seed", p->seed);
    json_number(j, "seconds", seconds);
    json_open_array(j, "rows");
    for (int n = 0; n < p->count; n++)
        row_json(j, &p->rows[n]);
    json_close(j);
    json_close(j);
}

/* ------------------------------------------------------------------ run ------ */

enum { CLAIM_DATA = CLAIM_COUNT - 1 };

typedef struct prove_request {
    uint64_t seed;
    int64_t threads;
    bool as_json, full;
    const char *svg;     /* NULL: none */
    study_result *study; /* what is drawn there */
    mha_pool *pool;
    bool chosen[CLAIM_COUNT];
} prove_request;

static void study_progress(study_task task, int size)
{
    progress("claim %d of %d: %s, %s, %d pictures", CLAIM_DATA + 1, CLAIM_COUNT,
             claims[CLAIM_DATA].name, study_task_names[task], size);
}

/* Runs one claim and prints it, as JSON unless `j` is NULL. Returns whether it holds. */
static bool prove_one(const prove_request *request, int number, json *j)
{
    proof p = {.seed = request->seed,
               .pool = request->pool,
               .full = request->full,
               .study = request->study,
               .progress = study_progress};
    const double begin = clock_seconds();
    progress("claim %d of %d: %s", number + 1, CLAIM_COUNT, claims[number].name);
    claims[number].prove(&p);
    progress_end();
    if (j != NULL)
        proof_json(j, number, &p, clock_seconds() - begin);
    else
        print_proof(number, &p, clock_seconds() - begin);
    if (p.status != MHA_OK)
        fprintf(stderr, "mha: %s: %s\n", claims[number].name, mha_status_string(p.status));
    const bool holds = proof_holds(&p);
    proof_free(&p);
    return holds;
}

/* Runs the chosen claims in the order of their numbers. Returns the exit code. */
static int prove_chosen(const prove_request *request)
{
    json j = json_begin(stdout);
    int proved = 0, held = 0;
    if (request->as_json)
        json_open_array(&j, NULL);
    for (int n = 0; n < CLAIM_COUNT; n++)
        if (request->chosen[n]) {
            held += prove_one(request, n, request->as_json ? &j : NULL);
            proved++;
        }
    if (request->as_json)
        json_close(&j);
    else
        printf("%d of %d claims hold, seed %" PRIu64 ", isa %s\n", held, proved, request->seed,
               mha_isa_name());
    return held == proved ? EXIT_FINE : EXIT_FAILED;
}

/* Opens the pool, runs the claims and draws the chart. */
static int prove(prove_request *request)
{
    if (require_isa() == NULL || (request->svg != NULL && !output_file_check(request->svg)))
        return EXIT_FAILED;
    int code = session_open_pool(&request->pool, request->threads);
    if (code != EXIT_GO_ON)
        return code;
    if (request->svg != NULL)
        request->study = calloc(1, sizeof *request->study);
    if (request->svg != NULL && request->study == NULL)
        code = args_failed("out of memory");
    else
        code = prove_chosen(request);
    /* A claim that could not be run leaves no numbers. */
    if (request->study != NULL && request->study->plan.seeds > 0 &&
        !output_file_write(request->svg, data_svg, request->study))
        code = EXIT_FAILED;
    free(request->study);
    mha_pool_free(request->pool);
    return code;
}

/* The index of the claim with this name or number, or -1. */
static int find_claim(const char *word)
{
    for (int n = 0; n < CLAIM_COUNT; n++) {
        const char number[] = {(char)('1' + n), '\0'};
        if (strcmp(word, claims[n].name) == 0 || strcmp(word, number) == 0)
            return n;
    }
    return -1;
}

/* Reports an unknown claim, with the nearest name if there is one. */
static int unknown_claim(const char *word)
{
    const char *names[CLAIM_COUNT];
    for (int n = 0; n < CLAIM_COUNT; n++)
        names[n] = claims[n].name;
    const char *near = suggest_nearest(word, names, CLAIM_COUNT);
    if (near != NULL)
        return args_wrong("prove: no claim \"%s\"; did you mean \"%s\"?", word, near);
    return args_wrong("prove: no claim \"%s\"; see \"mha prove --help\"", word);
}

/* Marks the claims that are named on the command line, or all if there is none. */
static int choose(prove_request *request, char **argv, int words)
{
    for (int n = 1; n <= words; n++) {
        const int number = find_claim(argv[n]);
        if (number < 0)
            return unknown_claim(argv[n]);
        request->chosen[number] = true;
    }
    for (int n = 0; words == 0 && n < CLAIM_COUNT; n++)
        request->chosen[n] = true;
    if ((request->full || request->svg != NULL) && !request->chosen[CLAIM_DATA])
        return args_wrong("prove: --full and --svg belong to the claim \"%s\"",
                          claims[CLAIM_DATA].name);
    return EXIT_GO_ON;
}

int command_prove(int argc, char **argv)
{
    prove_request request = {.seed = 1};
    const arg_option options[] = {
        {"seed", ARG_SEED, &request.seed, "N", "seed of the random tokens and pictures (1)", 0, 0},
        {"full", ARG_FLAG, &request.full, NULL, "the claim data with all pictures and seeds", 0, 0},
        {"svg", ARG_TEXT, &request.svg, "FILE", "draw the errors of the claim data", 0, 0},
        {OPTION_THREADS(&request.threads)},
        {"json", ARG_FLAG, &request.as_json, NULL, "print the results as JSON", 0, 0},
    };
    const arg_command command = {
        .name = "prove",
        .usage = "[OPTION...] [CLAIM...]",
        .summary = "Check claims about attention by running them, and compare numbers with bounds.",
        .details = details,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .words_max = CLAIM_COUNT,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code == EXIT_GO_ON)
        code = choose(&request, argv, words);
    return code == EXIT_GO_ON ? prove(&request) : code;
}
