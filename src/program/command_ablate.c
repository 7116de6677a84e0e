/* SPDX-License-Identifier: MIT */
/*
 * mha ablate: what a model loses when heads are disabled, and how much the rest
 * compensates.
 *
 *      heads/head_ablation.h measures, this file collects an ablate_report, and ablate_report.c
 *      and ablate_svg.c print and draw it.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/output_file.h"
#include "base/terminal.h"
#include "program/ablate_report.h"
#include "program/ablate_words.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/heads_setup.h"
#include "program/options.h"

static const char details[] =
    "Every head is disabled alone, then all heads of each layer; with --together also every two\n"
    "heads of one kind. The decoder reads the correct words. A sentence is exact if all its words\n"
    "and its end are predicted correctly, in which case a greedy search finds it. If disabling a\n"
    "whole layer costs much more than the sum of its heads, the heads compensate for each other.\n"
    "\n"
    "Modes; all act before the output projection, and biases are kept:\n"
    "  zero     the head outputs zero\n"
    "  mean     it outputs its mean over sentences of train\n"
    "  uniform  it attends to all positions equally\n"
    "\n"
    "The model is as for \"mha heads\". Other models than translators need --texts or --pairs: "
    "the\n"
    "loss of a decoder is in nats per token of the texts, with --pairs of the translations; that\n"
    "of an encoder is 1 - the cosine of a text's vector and that of the whole model. \"mean\" is\n"
    "then the mean over the same texts. Sentence pairs that come with a model (sentences.tsv in "
    "its\n"
    "folder) are used if no others are given.\n"
    "\n"
    "With --repair, what a head adds to the logit of the correct word directly, past all other\n"
    "parts of the model, is compared with what the logit loses if the head is disabled.\n"
    "\n"
    "With --words, one word of the source is hidden at a time instead: no token attends to it, in\n"
    "the encoder and in cross-attention. For a TEXT, what each word of the translation then loses\n"
    "is drawn as a map; for the laboratory without a TEXT, means by part of speech are printed.\n"
    "\n"
    "Examples:\n"
    "  mha ablate\n"
    "  mha ablate --repair\n"
    "  mha ablate --repair --model en-fr --pairs test.tsv\n"
    "  mha ablate --mode mean --together --json\n"
    "  mha ablate --svg heads.svg\n"
    "  mha ablate --model all-MiniLM-L6-v2 --texts sentences.txt\n"
    "  mha ablate --model my-translator --pairs test.tsv --sentences 1000\n"
    "  mha ablate --words\n"
    "  mha ablate --words --model my-translator --svg words.svg \"The black cat sleeps.\"\n";

enum { MEAN_SENTENCES = 100 };

typedef struct ablate_request {
    heads_setup setup;
    const char *mode_name, *svg;
    head_mode mode;
    bool together, repair, as_json;
    bool words;
    const char *text, *target; /* with `words` */
} ablate_request;

static int find_mode(ablate_request *r)
{
    static const char *const names[] = {"zero", "mean", "uniform"};
    static const head_mode modes[] = {HEAD_ZERO, HEAD_MEAN, HEAD_UNIFORM};
    const int mode = option_choose("ablate", "mode", r->mode_name, names, 3);
    if (mode < 0)
        return EXIT_USAGE;
    r->mode = modes[mode];
    return EXIT_GO_ON;
}

/* ------------------------------------------------------------- measured ----- */

/* Every head alone. */
static mha_status measure_heads(head_ablation *a, ablate_report *report)
{
    mha_status status = MHA_OK;
    for (int head = 0; head < report->heads && status == MHA_OK; head++) {
        status = head_ablation_measure(a, &head, 1, &report->single[head]);
        heads_watch(head + 1, report->heads);
    }
    return status;
}

/* All heads of each layer together, and the sum of what they cost alone. */
static mha_status measure_layers(head_ablation *a, ablate_report *report)
{
    const int heads = report->shape.heads;
    int *const numbers = malloc((size_t)heads * sizeof *numbers);
    report->layers = calloc((size_t)(report->heads / heads), sizeof *report->layers);
    mha_status status = numbers != NULL && report->layers != NULL ? MHA_OK : MHA_ERR_MEMORY;
    for (int first = 0; first < report->heads && status == MHA_OK; first += heads) {
        const head_name name = head_at(report->shape, first);
        ablate_layer *const layer = &report->layers[report->layer_count++];
        *layer = (ablate_layer){.kind = name.kind, .layer = name.layer};
        for (int h = 0; h < heads; h++) {
            numbers[h] = first + h;
            layer->sum += report->single[first + h].delta;
        }
        status = head_ablation_measure(a, numbers, heads, &layer->damage);
    }
    free(numbers);
    return status;
}

static int by_extra(const void *a, const void *b)
{
    const double x = ((const ablate_pair *)a)->extra, y = ((const ablate_pair *)b)->extra;
    return (x < y) - (x > y);
}

/* Sorted by what a pair costs beyond its two heads alone. */
static mha_status measure_pairs(head_ablation *a, ablate_report *report)
{
    const size_t all = (size_t)report->heads * (size_t)report->heads / 2 + 1;
    report->pairs = malloc(all * sizeof *report->pairs);
    mha_status status = report->pairs != NULL ? MHA_OK : MHA_ERR_MEMORY;
    for (int g = 0; g < report->heads; g++)
        for (int h = g + 1; h < report->heads && status == MHA_OK; h++) {
            if (head_at(report->shape, g).kind != head_at(report->shape, h).kind)
                break;
            ablate_pair *const pair = &report->pairs[report->pair_count++];
            *pair = (ablate_pair){.heads = {g, h}};
            status = head_ablation_measure(a, pair->heads, 2, &pair->damage);
            pair->extra = pair->damage.delta - report->single[g].delta - report->single[h].delta;
            progress("pairs: head %d of %d", g + 1, report->heads);
        }
    if (status == MHA_OK)
        qsort(report->pairs, (size_t)report->pair_count, sizeof *report->pairs, by_extra);
    return status;
}

/* The laboratory is opened once more, as any other model. */
static mha_status measure_repair(const ablate_request *r, ablate_report *report)
{
    const session *const s = &r->setup.session;
    mha_model *opened = NULL;
    token_texts texts = {.texts = NULL};
    report->repairs = malloc((size_t)report->heads * sizeof *report->repairs);
    mha_status status = s->any != NULL ? MHA_OK : mha_model_open(&opened, s->path, NULL);
    if (status == MHA_OK &&
        (report->repairs == NULL || !token_texts_make(&texts, &s->subject, &r->setup.texts)))
        status = MHA_ERR_MEMORY;
    if (status == MHA_OK)
        status = head_repair_measure(s->any != NULL ? s->any : opened, report->shape, &texts,
                                     s->pool, report->repairs, heads_watch);
    token_texts_free(&texts);
    mha_model_free(opened);
    return status;
}

static mha_status measure(const ablate_request *r, head_ablation *a, ablate_report *report)
{
    report->single = malloc((size_t)report->heads * sizeof *report->single);
    report->plain = head_ablation_plain(a);
    mha_status status = report->single != NULL ? measure_heads(a, report) : MHA_ERR_MEMORY;
    if (status == MHA_OK)
        status = measure_layers(a, report);
    if (status == MHA_OK && r->together)
        status = measure_pairs(a, report);
    if (status == MHA_OK && r->repair)
        status = measure_repair(r, report);
    progress_end();
    return status;
}

/* ------------------------------------------------------------------ run ----- */

/* For the mode "mean", the means come from sentences of train, or from the texts themselves. NULL
 * if out of memory. */
static head_ablation *begin(const ablate_request *r)
{
    const heads_setup *const s = &r->setup;
    if (s->pairs == NULL)
        return head_ablation_create(&s->session.subject, &s->texts, r->mode,
                                    r->mode == HEAD_MEAN ? &s->texts : NULL, s->session.pool);
    head_pair *const means =
        r->mode == HEAD_MEAN
            ? head_pairs_of_corpus(s->session.model, s->seed, CORPUS_TRAIN, MEAN_SENTENCES)
            : NULL;
    const subject_texts mean_texts = {.pairs = means, .count = MEAN_SENTENCES};
    head_ablation *const a =
        r->mode == HEAD_MEAN && means == NULL
            ? NULL
            : head_ablation_create(&s->session.subject, &s->texts, r->mode,
                                   r->mode == HEAD_MEAN ? &mean_texts : NULL, s->session.pool);
    free(means);
    return a;
}

static int print(const ablate_request *r, const ablate_report *report)
{
    if (r->as_json)
        ablate_report_json(report);
    else
        ablate_report_text(report);
    if (r->svg != NULL && !output_file_write(r->svg, ablate_report_svg, report))
        return EXIT_FAILED;
    return EXIT_FINE;
}

/* Measures, prints and frees. */
static int run(const ablate_request *r)
{
    head_ablation *const a = begin(r);
    ablate_report report = {.model = r->setup.session.path,
                            .mode = r->mode_name,
                            .texts = heads_setup_file(&r->setup),
                            .unit = heads_setup_unit(&r->setup),
                            .translates = r->setup.session.model != NULL,
                            .predicts = subject_predicts(&r->setup.session.subject),
                            .split = r->setup.split,
                            .seed = r->setup.seed,
                            .shape = r->setup.session.subject.shape,
                            .heads = head_count(r->setup.session.subject.shape)};
    const mha_status status = a != NULL ? measure(r, a, &report) : MHA_ERR_MEMORY;
    const int code = status == MHA_OK ? print(r, &report) : heads_failed(status);
    head_ablation_free(a);
    free(report.single);
    free(report.layers);
    free(report.repairs);
    free(report.pairs);
    return code;
}

/* ---------------------------------------------------------------- words ----- */

/* Refuses options that would have no effect beside the others. */
static int check_words(const ablate_request *r, const arg_command *command)
{
    if (!r->words && r->text != NULL)
        return args_wrong("ablate: a TEXT is for --words; heads are measured on --texts or "
                          "--pairs");
    if (!r->words)
        return args_refuse(command, "to", "is the translation of a TEXT with --words");
    int code = args_refuse(command, "mode together repair texts pairs",
                           "is about heads; leave it out with --words");
    if (code == EXIT_GO_ON && r->text != NULL)
        code = args_refuse(command, "sentences split seed",
                           "selects sentences of the corpus; leave it out with a TEXT");
    if (code == EXIT_GO_ON && r->text == NULL)
        code = args_refuse(command, "to svg", "is about a TEXT, which is missing");
    return code;
}

/* The model alone if there is a TEXT, else sentences of the corpus. */
static int run_words(ablate_request *r)
{
    heads_setup *const s = &r->setup;
    s->needs = "a TEXT";
    s->corpus_only = true;
    const int code = r->text != NULL
                         ? session_open(&s->session, s->model_file, SHIPPED_TRANSLATOR, s->threads)
                         : heads_setup_open(s, "ablate");
    const ablate_words_request request = {
        .setup = s, .text = r->text, .target = r->target, .svg = r->svg, .as_json = r->as_json};
    return code == EXIT_GO_ON ? ablate_words(&request) : code;
}

/* Every head of the model. */
static int run_heads(ablate_request *r, const arg_command *command)
{
    r->setup.needs = "--texts FILE or --pairs FILE";
    int code = heads_setup_open(&r->setup, "ablate");
    if (code == EXIT_GO_ON && r->repair && !subject_predicts(&r->setup.session.subject))
        code = args_wrong("ablate: --repair compares what a head adds to the logit of a token with "
                          "what is lost without it; this model predicts no tokens");
    if (code == EXIT_GO_ON)
        code = heads_setup_refuse(&r->setup, command, "split seed");
    return code == EXIT_GO_ON ? run(r) : code;
}

int command_ablate(int argc, char **argv)
{
    ablate_request r = {
        .setup = {.usual = SHIPPED_LABORATORY, .split_name = "test", .sentences = 200, .seed = 1},
        .mode_name = "zero"};
    uint64_t given = 0;
    const arg_option options[] = {
        {OPTION_MODEL(&r.setup.model_file, "lab; en-fr with --pairs or a TEXT")},
        {OPTION_TEXTS(&r.setup.texts_file)},
        {OPTION_IMAGES(&r.setup.images_folder)},
        {OPTION_PAIRS(&r.setup.pairs_file)},
        {"mode", ARG_TEXT, &r.mode_name, "M", "zero, mean or uniform (zero)", 0, 0},
        {"together", ARG_FLAG, &r.together, NULL, "also disable every two heads of one kind", 0, 0},
        {"repair", ARG_FLAG, &r.repair, NULL, "also measure how much the rest compensates", 0, 0},
        {"words", ARG_FLAG, &r.words, NULL, "hide words of the source instead of heads", 0, 0},
        {"to", ARG_TEXT, &r.target, "TEXT", "with --words: the translation (the model's own)", 0,
         0},
        {HEADS_SENTENCES(r.setup)},
        {OPTION_SPLIT(&r.setup.split_name)},
        {OPTION_SEED(&r.setup.seed)},
        {"svg", ARG_TEXT, &r.svg, "FILE", "write the losses as a picture", 0, 0},
        {OPTION_THREADS(&r.setup.threads)},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "ablate",
        .usage = "[OPTION...] [--words [TEXT...]]",
        .summary = "Disable heads of a model, or hide words, and measure the loss.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = INT_MAX,
        .given = &given,
    };
    int words;
    char *joined;
    int code = options_parse_sentences(&command, argc, argv, &words, &joined);
    if (code != EXIT_GO_ON)
        return code;
    r.text = words > 0 ? argv[1] : NULL;
    code = words > 1 ? args_wrong("ablate: one text at a time, not %d", words) : find_mode(&r);
    if (code == EXIT_GO_ON)
        code = check_words(&r, &command);
    if (code == EXIT_GO_ON && r.svg != NULL && !output_file_check(r.svg))
        code = EXIT_FAILED;
    if (code == EXIT_GO_ON)
        code = r.words ? run_words(&r) : run_heads(&r, &command);
    heads_setup_close(&r.setup);
    free(joined);
    return code;
}
