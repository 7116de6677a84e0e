/* SPDX-License-Identifier: MIT */
/* mha bench: problem words as shares of the machine's peak. */
#include <stdbool.h>
#include <stdio.h>

#include "args.h"
#include "bench_table.h"
#include "commands.h"
#include "json.h"
#include "measure.h"
#include "terminal.h"

enum { WORDS_MAX = 1000 };

static const char details[] =
    "Every round measures the machine's peak (fused multiply-adds in registers, or reads of\n"
    "memory where a problem is bound by them), the problem, and the peak again. The share is the\n"
    "needed work, 2*(D+Dv) flops for every attended pair or every attended key and value read\n"
    "once, against that peak. Masks with holes: groups of 16 keys count that hold an attended\n"
    "one. The upper quartile over the rounds is the figure to quote: neighbours on a machine\n"
    "only ever slow a round down. The speed printed is that of the upper quartile, the peak the\n"
    "median. A share above 1 means that the peak was disturbed: measure again.\n"
    "\"mha help words\" explains the words.\n"
    "\n"
    "Examples:\n"
    "  mha bench b1h12l1024d64 b1h12l2048d64:causal\n"
    "  mha bench --threads 2 --json b1h32g8l1s4096d128:bf16\n"
    "  mha bench --table\n";

static void print_head(void)
{
    printf("%-36s %8s %8s %8s %12s %12s %7s\n", "word", "upper", "median", "best", "speed", "peak",
           "rounds");
}

static void print_row(const measure_subject *s)
{
    const measure_summary sum = measure_summarise(s);
    const double work = s->memory_bound ? s->bytes : s->flops;
    const char *unit = s->memory_bound ? "GB/s" : "GF/s";
    printf("%-36s %8.3f %8.3f %8.3f %7.1f %s %7.1f %s %7d\n", s->word, sum.upper, sum.median,
           sum.best, work / sum.seconds * 1e-9, unit, sum.peak * 1e-9, unit, s->rounds);
    fflush(stdout);
}

static void json_row(json *j, const measure_subject *s, const char *isa)
{
    const measure_summary sum = measure_summarise(s);
    json_open_object(j, NULL);
    json_string(j, "word", s->word);
    json_number(j, s->memory_bound ? "share_of_bandwidth" : "share_of_peak", sum.upper);
    json_number(j, "median", sum.median);
    json_number(j, "best", sum.best);
    json_number(j, "gflops", s->flops / sum.seconds * 1e-9);
    json_number(j, "gbps", s->bytes / sum.seconds * 1e-9);
    json_number(j, s->memory_bound ? "peak_gbps" : "peak_gflops", sum.peak * 1e-9);
    json_number(j, "seconds", sum.seconds);
    json_integer(j, "rounds", s->rounds);
    json_string(j, "isa", isa);
    json_integer(j, "threads", s->threads);
    json_integer(j, "work_bytes", (int64_t)s->work_size);
    json_close(j);
}

static bool parse_words(char **texts, int count, problem_word *words)
{
    char message[WORD_MESSAGE_MAX];
    for (int n = 0; n < count; n++) {
        if (!word_parse(&words[n], texts[n], message, sizeof message)) {
            args_wrong("bench: %s", message);
            return false;
        }
    }
    return true;
}

static int bench_words(const problem_word *words, int count, int threads, int rounds, json *j,
                       const char *isa)
{
    char message[WORD_MESSAGE_MAX + WORD_TEXT_MAX];
    for (int n = 0; n < count; n++) {
        measure_subject subject, *only = &subject;
        if (!measure_create(&subject, &words[n], threads, rounds, message, sizeof message) ||
            !measure_run(&only, 1, message, sizeof message)) {
            fprintf(stderr, "mha: %s\n", message);
            return EXIT_FAILED;
        }
        if (j != NULL)
            json_row(j, &subject, isa);
        else
            print_row(&subject);
        measure_free(&subject);
    }
    return EXIT_FINE;
}

static int bench(char **texts, int count, int threads, int rounds, bool as_json)
{
    static problem_word words[WORDS_MAX];
    if (!parse_words(texts, count, words))
        return EXIT_USAGE;
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

int command_bench(int argc, char **argv)
{
    int64_t threads = 0, rounds = ROUNDS_DEFAULT;
    bool as_json = false, table = false;
    const arg_option options[] = {
        {"threads", ARG_NUMBER, &threads, "T", "threads (1; t=T in a word wins)", 1,
         PEAK_MAX_THREADS},
        {"rounds", ARG_NUMBER, &rounds, "N", "rounds, 15 or more (15)", ROUNDS_DEFAULT, ROUNDS_MAX},
        {"table", ARG_FLAG, &table, NULL, "the project's own table with its goals", 0, 0},
        {"json", ARG_FLAG, &as_json, NULL, "the result as JSON", 0, 0},
    };
    const arg_command command = {
        .name = "bench",
        .usage = "[--threads T] [--rounds N] [--json] WORD... | --table",
        .summary = "Measure problems as a share of the machine's peak.",
        .details = details,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .words_max = WORDS_MAX,
    };
    int words;
    const int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    if (words == 0 && !table)
        return args_wrong("bench: which problem? Say mha bench b1h12l1024d64, or --table");
    if (words > 0 && table)
        return args_wrong("bench: --table has its own words; leave out \"%s\"", argv[1]);
    const int used = args_threads(threads, 1);
    if (used == 0)
        return EXIT_USAGE;
    if (table)
        return bench_table((int)rounds, used, as_json);
    return bench(argv + 1, words, used, (int)rounds, as_json);
}
