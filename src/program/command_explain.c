/* SPDX-License-Identifier: MIT */
/* mha explain: the plan for a problem word, or what a layer word asks for, in words. A backward
 * pass has no plan of its own: what can be said of it follows the plan of its forward pass. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench_case.h"
#include "format/json_writer.h"
#include "problem/explain_layer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/session.h"

enum { LAYER_TEXT_MAX = 2048, BACKWARD_TEXT_MAX = 1024 };

static const char details[] =
    "Nothing is computed and no memory is allocated for tensors, so any size is possible.\n"
    "\"mha help words\" explains the words.\n"
    "\n"
    "Examples:\n"
    "  mha explain b1h12l1024d64\n"
    "  mha explain --threads 8 b1h32g8l1s131072d128:bf16\n"
    "  mha explain layer:bert-base:l512\n";

/* A plan asks which pointers are given, never what they point to. */
typedef struct stand_ins {
    int64_t number;
    int32_t id;
    float real;
    double cell;
    mha_row_statistics row;
    mha_head_statistics head;
    mha_statistics statistics;
} stand_ins;

static void set_outputs(const problem_word *w, mha_options *o, stand_ins *x)
{
    const bool f64 = w->q_type == MHA_F64;
    if (w->lse || w->gradients)
        o->lse = (mha_out){&x->cell, w->h * w->l, w->l, 1};
    x->statistics = (mha_statistics){.size = sizeof x->statistics, .rows = &x->row};
    x->statistics.heads = &x->head;
    if (w->statistics & STATISTICS_COLUMNS)
        x->statistics.columns = &x->real;
    if (w->statistics & STATISTICS_TOP) {
        x->statistics.top = 8;
        x->statistics.top_weights = &x->real;
    }
    if (w->statistics)
        o->statistics = &x->statistics;
    if (!w->weights)
        return;
    o->weights = mha_out_bhld(&x->cell, w->average ? 1 : w->h, w->l, w->s);
    o->weights_type = f64 ? MHA_F64 : MHA_F32;
}

static void set_lengths(const problem_word *w, mha_options *o, stand_ins *x)
{
    if (w->packed)
        o->q_starts = o->k_starts = &x->number;
    if (w->pad > 0)
        o->k_lengths = &x->number;
    if (w->pad > 0 && !w->pad_keys_only)
        o->q_lengths = &x->number;
    if (w->documents > 0) {
        o->q_documents = o->k_documents = &x->id;
        o->q_documents_sb = w->l;
        o->k_documents_sb = w->s;
    }
}

static mha_options options_of(const problem_word *w, stand_ins *x)
{
    mha_options o = word_options(w);
    if (w->bool_percent >= 0)
        o.attend_mask = (mha_view){&x->cell, 0, 0, w->s};
    if (w->add_mask)
        o.add_mask = (mha_view){&x->cell, 0, 0, w->s};
    if (w->bias)
        o.bias = (mha_view){&x->cell, 0, w->l * w->s, w->s};
    o.alibi_slopes = w->alibi ? &x->real : NULL;
    o.sinks = w->sink ? &x->real : NULL;
    set_lengths(w, &o, x);
    set_outputs(w, &o, x);
    return o;
}

static mha_status plan_of(const problem_word *w, mha_plan **plan, char *message, size_t size)
{
    stand_ins x = {0};
    const mha_shape shape = word_shape(w);
    mha_options options = options_of(w, &x);
    options.message = message;
    options.message_size = size;
    message[0] = '\0';
    return mha_plan_create(plan, &shape, &options);
}

static size_t backward_work(const problem_word *w, int threads)
{
    stand_ins x = {0};
    const mha_shape shape = word_shape(w);
    const mha_options options = options_of(w, &x);
    return mha_backward_work_size(&shape, &options, threads);
}

static void explain_backward(const problem_word *w, word_printer *p)
{
    const double pairs = (double)w->b * (double)w->h * (double)w->l * (double)w->s;
    const double flops = 2.0 * (3.0 * (double)w->d + 2.0 * (double)w->v) * pairs;
    printer_put(p,
                "backward   after the pass above: weights are computed again from its log-sum-exp, "
                "so that memory grows with L + S\n");
    printer_put(p,
                "products   five instead of two: scores, gradients of weights, values, queries and "
                "keys; %.4g GFLOP if nothing is masked\n",
                flops * 1e-9);
    if (w->native)
        printer_put(p, "arithmetic exact, in f32: gradients have no native products\n");
    printer_put(p,
                "tasks      %td: query heads that share keys stay together, since they add to the "
                "same gradients",
                w->bias ? w->g : w->b * w->g);
    printer_put(p, w->bias && w->b > 1 ? "; batches too, since they share the bias\n" : "\n");
}

/* `work` is 0 where it is not known before weights are packed. */
static void report(const char *word, const char *text, size_t work, int threads, bool as_json)
{
    if (!as_json) {
        printf("%s\n%s", word, text);
        if (work > 0)
            printf("threads    %d: %zu byte%s of workspace\n", threads, work, work == 1 ? "" : "s");
        return;
    }
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "word", word);
    json_string(&j, "isa", mha_isa_name());
    json_integer(&j, "threads", threads);
    if (work > 0)
        json_integer(&j, "work_bytes", (int64_t)work);
    json_string(&j, "plan", text);
    json_close(&j);
}

static int explain_layer_word(const layer_word *word, int threads, bool as_json)
{
    char name[WORD_TEXT_MAX], text[LAYER_TEXT_MAX];
    layer_word_print(word, name, sizeof name);
    explain_layer(word, text, sizeof text);
    report(name, text, 0, threads, as_json);
    return EXIT_FINE;
}

static int explain_problem(const problem_word *word, int threads, bool as_json)
{
    char name[WORD_TEXT_MAX], message[WORD_MESSAGE_MAX];
    mha_plan *plan;
    word_print(word, name, sizeof name);
    const mha_status status = plan_of(word, &plan, message, sizeof message);
    if (status != MHA_OK) {
        fprintf(stderr, "mha: %s: %s. %s\n", name, mha_status_string(status), message);
        return EXIT_FAILED;
    }
    const size_t length = mha_plan_explain(plan, NULL, 0);
    char *text = malloc(length + BACKWARD_TEXT_MAX);
    if (text != NULL) {
        word_printer rest = {text + length, BACKWARD_TEXT_MAX, 0};
        mha_plan_explain(plan, text, length + 1);
        if (word->gradients)
            explain_backward(word, &rest);
        report(name, text,
               word->gradients ? backward_work(word, threads) : mha_plan_work_size(plan, threads),
               threads, as_json);
    } else {
        fprintf(stderr, "mha: out of memory\n");
    }
    const int code = text != NULL ? EXIT_FINE : EXIT_FAILED;
    free(text);
    mha_plan_free(plan);
    return code;
}

int command_explain(int argc, char **argv)
{
    int64_t threads = 0;
    bool as_json = false;
    const arg_option options[] = {
        {"threads", ARG_NUMBER, &threads, "T", "threads to plan the workspace for (1)", 1,
         MHA_MAX_THREADS},
        {"json", ARG_FLAG, &as_json, NULL, "print the result as JSON", 0, 0},
    };
    const arg_command command = {
        .name = "explain",
        .usage = "[--threads T] [--json] WORD",
        .summary = "Explain how a problem would be computed, and why.",
        .details = details,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .words_min = 1,
        .words_max = 1,
    };
    int words;
    const int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    bench_case_word word;
    char message[WORD_MESSAGE_MAX];
    if (!bench_case_word_parse(&word, argv[1], message, sizeof message))
        return args_wrong("explain: %s", message);
    if (word.is_layer && layer_word_is_model(&word.layer))
        return args_wrong("explain: %s words are for mha bench only",
                          layer_word_kinds[word.layer.kind]);
    const int own = word.is_layer ? word.layer.threads : word.problem.threads;
    const int used = own > 0 ? own : args_threads(threads, 1);
    if (used == 0)
        return EXIT_USAGE;
    if (require_isa() == NULL)
        return EXIT_FAILED;
    return word.is_layer ? explain_layer_word(&word.layer, used, as_json)
                         : explain_problem(&word.problem, used, as_json);
}
