/* SPDX-License-Identifier: MIT */
/*
 * mha bench: problem and layer words as shares of the machine's peak. The bench room measures; this
 * file prints what was measured, bench_table.c the project's own table.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/terminal.h"
#include "bench/measure.h"
#include "bench/preset_words.h"
#include "format/json_writer.h"
#include "program/args.h"
#include "program/bench_table.h"
#include "program/commands.h"
#include "program/options.h"
#include "program/session.h"

enum { WORDS_MAX = 1000 };

static const char details[] =
    "Every round measures the machine's peak (fused multiply-adds in registers, or reads of\n"
    "memory if the problem is memory bound), the problem, and the peak again. The share is the\n"
    "necessary work divided by that peak. Work is 2*(D+Dv) flops per attended pair, 2*(3*D+2*Dv)\n"
    "in a backward pass, and 2 per weight and row; if memory bound, it is every attended key and\n"
    "value and every weight read once. With masks that have holes, groups of 16 keys count if one\n"
    "of them is attended. Quote the upper quartile over the rounds: other programs on the machine\n"
    "only ever slow a round down. The printed speed is that of the upper quartile, the peak is\n"
    "the median. A share above 1 means that the peak was disturbed: measure again. If rounds take\n"
    "seconds, fewer are made, but at least 5. One thread is measured in CPU time, so that other\n"
    "programs on a shared machine do not count; several threads in the time that passes. The\n"
    "column clock says which: cpu or wall.\n"
    "\n"
    "--preset measures the projections of a preset with 512, 2048 and 1 rows, its layer, and for\n"
    "a decoder a step with a cache. The sections of --table are operator, gradients, linear,\n"
    "layer and model; the default is all. The table compares linear layers with OpenBLAS, if it\n"
    "is installed (Debian: libopenblas0-pthread), using the weight layout that is faster there.\n"
    "\"mha help words\" explains the words.\n"
    "\n"
    "Examples:\n"
    "  mha bench b1h12l1024d64 b1h12l2048d64:causal\n"
    "  mha bench --threads 2 --json b1h32g8l1s4096d128:bf16\n"
    "  mha bench linear:m1n2304k768:i8 layer:bert-base:l512\n"
    "  mha bench --preset gpt2-small\n"
    "  mha bench --table operator\n";

static void print_head(void)
{
    printf("%-36s %8s %8s %8s %12s %12s %7s %6s\n", "word", "upper", "median", "best", "speed",
           "peak", "rounds", "clock");
}

static void print_row(const measure_case *s)
{
    const measure_summary sum = measure_summarise(s);
    const bench_case *what = &s->what;
    const double work = what->memory_bound ? what->bytes : what->flops;
    const char *unit = what->memory_bound ? "GB/s" : "GF/s";
    printf("%-36s %8.3f %8.3f %8.3f %7.1f %s %7.1f %s %7d %6s\n", what->word, sum.upper, sum.median,
           sum.best, work / sum.seconds * 1e-9, unit, sum.peak * 1e-9, unit, s->rounds,
           measure_clock(s));
    fflush(stdout);
    if (sum.upper > 1.0)
        fprintf(stderr,
                "mha: note: %s: a share above 1 is a fault of the meter, whose peak was disturbed; "
                "measure again\n",
                what->word);
}

/* Speeds are given both as GFLOP/s and as GB/s, whichever bounds the problem. */
static void json_row(json *j, const measure_case *s, const char *isa)
{
    const measure_summary sum = measure_summarise(s);
    const bench_case *what = &s->what;
    json_open_object(j, NULL);
    json_string(j, "word", what->word);
    json_number(j, what->memory_bound ? "share_of_bandwidth" : "share_of_peak", sum.upper);
    json_number(j, "median", sum.median);
    json_number(j, "best", sum.best);
    json_bool(j, "disturbed", sum.upper > 1.0);
    json_number(j, "gflops", what->flops / sum.seconds * 1e-9);
    json_number(j, "gbps", what->bytes / sum.seconds * 1e-9);
    json_number(j, what->memory_bound ? "peak_gbps" : "peak_gflops", sum.peak * 1e-9);
    json_number(j, "seconds", sum.seconds);
    json_string(j, "clock", measure_clock(s));
    json_integer(j, "rounds", s->rounds);
    json_string(j, "isa", isa);
    json_integer(j, "threads", what->threads);
    json_integer(j, "work_bytes", (int64_t)what->work_size);
    json_close(j);
}

/* Measures the words one after another and prints each as soon as it is done; `j` NULL: as text. */
static int bench_words(const bench_case_word *words, int count, int threads, int rounds, json *j,
                       const char *isa)
{
    char message[WORD_MESSAGE_MAX + WORD_TEXT_MAX];
    for (int n = 0; n < count; n++) {
        measure_case s, *only = &s;
        if (!measure_create(&s, &words[n], threads, rounds, message, sizeof message) ||
            !measure_run(&only, 1, message, sizeof message))
            return args_failed("%s", message);
        if (j != NULL)
            json_row(j, &s, isa);
        else
            print_row(&s);
        measure_free(&s);
    }
    return EXIT_FINE;
}

static int bench(const bench_case_word *words, int count, int threads, int rounds, bool as_json)
{
    const char *isa = require_isa();
    if (isa == NULL)
        return EXIT_FAILED;
    if (!as_json) {
        print_head();
        return bench_words(words, count, threads, rounds, NULL, isa);
    }
    json j = json_begin(stdout);
    json_open_array(&j, NULL);
    const int code = bench_words(words, count, threads, rounds, &j, isa);
    json_close(&j);
    return code;
}

/* Fills words[] from the command line or from a preset and returns their number; 0 after a message.
 */
static int find_words(char **texts, int count, const char *preset, bench_case_word *words)
{
    char message[WORD_MESSAGE_MAX];
    if (preset != NULL) {
        const int found = preset_words(preset, words, message, sizeof message);
        if (found == 0)
            args_wrong("bench: %s", message);
        return found;
    }
    for (int n = 0; n < count; n++) {
        if (!bench_case_word_parse(&words[n], texts[n], message, sizeof message)) {
            args_wrong("bench: %s", message);
            return 0;
        }
    }
    return count;
}

/* The command measures words, a preset or the table; only one of them. */
static int check_usage(char **texts, int count, const char *preset, bool table)
{
    if (count == 0 && preset == NULL && !table)
        return args_wrong("bench: nothing to measure; give a WORD such as b1h12l1024d64, --preset "
                          "gpt2-small or --table");
    if (preset != NULL && (table || count > 0))
        return args_wrong("bench: --preset has its own words; leave out %s",
                          table ? "--table" : texts[0]);
    return EXIT_GO_ON;
}

static int run(char **texts, int count, const char *preset, int threads, int rounds, bool as_json)
{
    static bench_case_word words[WORDS_MAX];
    const int found = find_words(texts, count, preset, words);
    return found > 0 ? bench(words, found, threads, rounds, as_json) : EXIT_USAGE;
}

int command_bench(int argc, char **argv)
{
    int64_t threads = 0, rounds = ROUNDS_DEFAULT;
    bool as_json = false, table = false;
    const char *preset = NULL;
    const arg_option options[] = {
        {"threads", ARG_NUMBER, &threads, "T", "number of threads (1); t=T in a word overrides it",
         1, PEAK_MAX_THREADS},
        {"rounds", ARG_NUMBER, &rounds, "N", "number of rounds, at least 15 (15)", ROUNDS_DEFAULT,
         ROUNDS_MAX},
        {"preset", ARG_TEXT, &preset, "NAME", "projections, layer and decoding step of a preset", 0,
         0},
        {"table", ARG_FLAG, &table, NULL, "the table of the project's goals", 0, 0},
        {OPTION_JSON(&as_json)},
    };
    const arg_command command = {
        .name = "bench",
        .usage =
            "[--threads T] [--rounds N] [--json] WORD... | --preset NAME | --table [SECTION...]",
        .summary = "Measure problems as a share of the machine's peak.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = WORDS_MAX,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code == EXIT_GO_ON)
        code = check_usage(argv + 1, words, preset, table);
    if (code != EXIT_GO_ON)
        return code;
    const int used = args_threads(threads, 1);
    if (used == 0)
        return EXIT_USAGE;
    if (table)
        return bench_table(argv + 1, words, (int)rounds, used, as_json);
    return run(argv + 1, words, preset, used, (int)rounds, as_json);
}
