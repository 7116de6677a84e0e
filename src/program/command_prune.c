/* SPDX-License-Identifier: MIT */
/*
 * mha prune: disables heads of a model one after another, the least important first. What is here
 * is for a translator; prune_any.c does the same for other models.
 *
 *      heads/head_pruning.h disables and measures; this file prints the steps, draws the curve
 *      (prune_curve.c) and writes the pruned model.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "base/terminal.h"
#include "format/convert.h"
#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/heads_setup.h"
#include "program/options.h"
#include "program/prune_any.h"
#include "program/prune_curve.h"
#include "translator/translator.h"

static const char details[] =
    "Disables the least important head, by mean |d loss / d gate| on sentences of valid, measures\n"
    "importance again, and repeats until N heads are left. After every step the model is measured\n"
    "on other sentences. The file that -o writes has the same tensors as before, but its output\n"
    "projections no longer read the disabled heads.\n"
    "\n"
    "Other models than translators need --texts or --pairs, unless sentence pairs come with them\n"
    "(sentences.tsv in the folder of the model). Their heads are disabled in the order of what "
    "each\n"
    "costs alone, with the loss of \"mha ablate\". -o writes a folder with smaller\n"
    "matrices, where every layer has at least one head left. With --zeros matrices keep their\n"
    "sizes, and any program reads the model; GGUF and llama2.c files are written in this way "
    "only.\n"
    "\n"
    "Examples:\n"
    "  mha prune --curve curve.svg\n"
    "  mha prune --keep 20 -o small.safetensors\n"
    "  mha translate --model small.safetensors \"the cat sleeps\"\n"
    "  mha prune --model all-MiniLM-L6-v2 --texts texts.txt --keep 60 -o small\n"
    "  mha embed --model small \"the cat sleeps\"\n";

enum { CHOOSE_SENTENCES = 128 };

typedef struct prune_request {
    heads_setup setup;
    int64_t keep;
    const char *curve, *output;
    bool zeros, replace, as_json;
} prune_request;

typedef struct prune_result {
    const prune_request *request;
    head_pruning *pruning;
    pruning_step *steps; /* [heads + 1] */
    int count, heads;
    attention_cost before, after;
} prune_result;

/* ---------------------------------------------------------------- print ----- */

static double percent(int64_t part, int64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0.0;
}

/* By how many per cent `after` is less. */
static double less(double after, double before)
{
    return 100.0 * (1.0 - after / before);
}

/* One step: heads left, the head that was disabled with its importance, and what the model still
 * does. */
static void print_step(const prune_result *r, int n)
{
    const pruning_step *const step = &r->steps[n];
    char label[HEAD_LABEL_MAX] = "";
    if (step->pruned >= 0)
        head_label(head_at(head_shape_of(translator_config(r->request->setup.session.model)),
                           step->pruned),
                   label);
    printf("%5d  %-13s", r->heads - n, label);
    if (step->pruned >= 0)
        printf("%11.4f", step->importance);
    else
        printf("%11s", "");
    printf(" %9.4f %9.2f %% %7.1f %%\n", step->total.loss,
           percent(step->total.right, step->total.words),
           percent(step->total.exact, step->total.sentences));
}

/* The heads that are left, by kind and layer. */
static void print_kept(const prune_result *r)
{
    const transformer_config *const config = translator_config(r->request->setup.session.model);
    printf("Kept:");
    for (int first = 0; first < r->heads; first += config->heads) {
        const head_name name = head_at(head_shape_of(config), first);
        printf("%s %s %d:", first > 0 ? ";" : "", attention_kind_name(name.kind), name.layer + 1);
        int kept = 0;
        for (int h = 0; h < config->heads; h++)
            if (head_pruning_keeps(r->pruning, first + h)) {
                printf(" %d", h + 1);
                kept++;
            }
        if (kept == 0)
            printf(" none");
    }
    printf(".\n");
}

/* The last step before the exact sentences first fall below this share of those at the start. */
static int cheapest(const prune_result *r, double share)
{
    int next = 1;
    while (next < r->count && r->steps[next].total.exact >= share * r->steps[0].total.exact)
        next++;
    return next - 1;
}

/* The steps, how many heads can be disabled at almost no cost, and what the layers then need. */
static void print_text(const prune_result *r)
{
    const heads_setup *const s = &r->request->setup;
    const terminal screen = terminal_query(stdout);
    printf("%s\nheads chosen on %d sentences of valid, measured on %d of %s, seed %" PRIu64
           ". Layers and heads count from 1.\n\n",
           s->session.path, CHOOSE_SENTENCES, (int)s->sentences, corpus_split_name(s->split),
           s->seed);
    terminal_style(stdout, &screen, STYLE_BOLD);
    printf("heads  disabled       importance      loss words right     exact");
    terminal_plain(stdout, &screen);
    printf("\n");
    for (int n = 0; n < r->count; n++)
        print_step(r, n);
    const int fine = cheapest(r, 0.99);
    printf("\n%d of %d heads can be disabled (%.0f %%) with 99 %% of the exact sentences left.\n",
           fine, r->heads, percent(fine, r->heads));
    if (head_pruning_left(r->pruning) == 0)
        return;
    print_kept(r);
    printf("All attention layers, pruned: %.0f of %.0f KB (%.0f %% less), %.2f of %.2f ms for 512 "
           "rows (%.0f %% less).\n",
           (double)r->after.bytes / 1024.0, (double)r->before.bytes / 1024.0,
           less((double)r->after.bytes, (double)r->before.bytes), 1e3 * r->after.seconds,
           1e3 * r->before.seconds, less(r->after.seconds, r->before.seconds));
}

static void json_name(json *j, const char *key, head_name name)
{
    json_open_object(j, key);
    json_string(j, "kind", attention_kind_name(name.kind));
    json_integer(j, "layer", name.layer + 1);
    json_integer(j, "head", name.head + 1);
    json_close(j);
}

static void json_step(json *j, const prune_result *r, int n)
{
    const pruning_step *const step = &r->steps[n];
    json_open_object(j, NULL);
    json_integer(j, "heads", r->heads - n);
    if (step->pruned >= 0) {
        json_name(j, "closed",
                  head_at(head_shape_of(translator_config(r->request->setup.session.model)),
                          step->pruned));
        json_number(j, "importance", step->importance);
    }
    json_number(j, "loss", step->total.loss);
    json_number(j, "words_right", percent(step->total.right, step->total.words) / 100.0);
    json_number(j, "exact", percent(step->total.exact, step->total.sentences) / 100.0);
    json_close(j);
}

static void print_json(const prune_result *r)
{
    const heads_setup *const s = &r->request->setup;
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", s->session.path);
    json_string(&j, "split", corpus_split_name(s->split));
    json_unsigned(&j, "seed", s->seed);
    json_integer(&j, "sentences", s->sentences);
    json_integer(&j, "counted_from", 1);
    json_open_array(&j, "steps");
    for (int n = 0; n < r->count; n++)
        json_step(&j, r, n);
    json_close(&j);
    json_open_array(&j, "kept");
    for (int head = 0; head < r->heads; head++)
        if (head_pruning_keeps(r->pruning, head))
            json_name(&j, NULL, head_at(head_shape_of(translator_config(s->session.model)), head));
    json_close(&j);
    json_unsigned(&j, "attention_bytes", r->before.bytes);
    json_unsigned(&j, "attention_bytes_pruned", r->after.bytes);
    json_number(&j, "attention_seconds", r->before.seconds);
    json_number(&j, "attention_seconds_pruned", r->after.seconds);
    json_close(&j);
}

/* ----------------------------------------------------------------- save ----- */

/* f16 if no value changes by it, as in a model that was read from f16. */
static mha_dtype smallest_type(const float *values, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (convert_f16_to_f32(convert_f32_to_f16(values[n])) != values[n])
            return MHA_F32;
    return MHA_F16;
}

/* Writes the model with zeros where the output projections read disabled heads. */
static int save(const prune_result *r)
{
    const translator *const model = r->request->setup.session.model;
    char message[TRANSFORMER_MESSAGE_MAX] = "", kept[64];
    float *const values = head_pruning_values(r->pruning);
    if (values == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    snprintf(kept, sizeof kept, "%d of %d heads kept", head_pruning_left(r->pruning), r->heads);
    const translator_note note = {"pruned", kept};
    const mha_status status = translator_save_changed(
        r->request->output, model, values, smallest_type(values, translator_map(model)->count),
        &note, 1, message);
    free(values);
    if (status == MHA_OK)
        return EXIT_FINE;
    return args_failed("%s", message);
}

/* ------------------------------------------------------------------ run ----- */

/* Measures the whole model, then disables heads until `keep` are left, then times the layers. */
static mha_status prune(prune_result *r)
{
    mha_status status = head_pruning_measure(r->pruning, &r->steps[r->count++]);
    while (status == MHA_OK && head_pruning_left(r->pruning) > r->request->keep) {
        progress("%d heads left", head_pruning_left(r->pruning));
        status = head_pruning_prune(r->pruning, &r->steps[r->count++]);
    }
    progress_end();
    return status == MHA_OK ? head_pruning_cost(r->pruning, &r->before, &r->after) : status;
}

static int print(const prune_result *r)
{
    const prune_request *const request = r->request;
    const prune_curve curve = {r->steps, r->count, r->heads, request->setup.split};
    if (request->as_json)
        print_json(r);
    else
        print_text(r);
    if (request->curve != NULL && !output_file_write(request->curve, prune_curve_svg, &curve))
        return EXIT_FAILED;
    return request->output != NULL ? save(r) : EXIT_FINE;
}

/* `choose` are the CHOOSE_SENTENCES on which importance is measured. */
static int run_with(const prune_request *request, const head_pair *choose)
{
    const heads_setup *const s = &request->setup;
    const int heads = head_count(head_shape_of(translator_config(s->session.model)));
    prune_result r = {
        .request = request, .heads = heads, .steps = calloc((size_t)heads + 1, sizeof *r.steps)};
    r.pruning = head_pruning_create(s->session.model, choose, CHOOSE_SENTENCES, s->pairs,
                                    (int)s->sentences, s->session.pool);
    const mha_status status = r.pruning != NULL && r.steps != NULL ? prune(&r) : MHA_ERR_MEMORY;
    const int code = status == MHA_OK ? print(&r) : heads_failed(status);
    head_pruning_free(r.pruning);
    free(r.steps);
    return code;
}

static int run_any(const prune_request *request)
{
    const prune_any_request any = {.setup = &request->setup,
                                   .keep = request->keep,
                                   .output = request->output,
                                   .zeros = request->zeros,
                                   .replace = request->replace,
                                   .as_json = request->as_json};
    const int code = prune_any_check(&any);
    return code == EXIT_GO_ON ? prune_any(&any) : code;
}

/* Takes the sentences for importance from valid, so that the measured ones play no part in the
 * choice. */
static int run(const prune_request *request)
{
    const heads_setup *const s = &request->setup;
    const int heads = head_count(s->session.subject.shape);
    if (request->keep > heads)
        return args_wrong("prune: --keep %d: the model has %d heads", (int)request->keep, heads);
    if (s->pairs == NULL)
        return run_any(request);
    if (request->output != NULL && !output_file_check(request->output))
        return EXIT_FAILED;
    head_pair *const choose =
        head_pairs_of_corpus(s->session.model, s->seed, CORPUS_VALID, CHOOSE_SENTENCES);
    if (choose == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    const int code = head_pairs_fit(s->session.model, choose, CHOOSE_SENTENCES)
                         ? run_with(request, choose)
                         : heads_too_short(s->session.model);
    free(choose);
    return code;
}

/* Reports mistakes before the work begins. */
static int check(const prune_request *r)
{
    if (r->output != NULL && r->keep < 0)
        return args_wrong("prune: -o needs --keep N: the number of heads of the model to write");
    if ((r->zeros || r->replace) && r->output == NULL)
        return args_wrong("prune: --%s is about the model that -o writes",
                          r->zeros ? "zeros" : "replace");
    if (r->curve != NULL && !output_file_check(r->curve))
        return EXIT_FAILED;
    return EXIT_GO_ON;
}

int command_prune(int argc, char **argv)
{
    prune_request r = {
        .setup = {.usual = SHIPPED_LABORATORY, .split_name = "test", .sentences = 200, .seed = 1},
        .keep = -1};
    uint64_t given = 0;
    const arg_option options[] = {
        {"keep", ARG_NUMBER, &r.keep, "N", "number of heads to keep (0: the whole curve)", 0,
         1000000},
        {OPTION_MODEL(&r.setup.model_file, "lab; en-fr with --pairs")},
        {OPTION_TEXTS(&r.setup.texts_file)},
        {OPTION_IMAGES(&r.setup.images_folder)},
        {OPTION_PAIRS(&r.setup.pairs_file)},
        {"curve", ARG_TEXT, &r.curve, "FILE", "write the curve as SVG", 0, 0},
        {"o", ARG_TEXT, &r.output, "PATH", "write the pruned model to a file or folder", 0, 0},
        {"zeros", ARG_FLAG, &r.zeros, NULL, "with zeros in place of the heads", 0, 0},
        {"replace", ARG_FLAG, &r.replace, NULL, "replace a model that is at PATH", 0, 0},
        {HEADS_SENTENCES(r.setup)},
        {OPTION_SPLIT(&r.setup.split_name)},
        {OPTION_SEED(&r.setup.seed)},
        {OPTION_THREADS(&r.setup.threads)},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "prune",
        .usage = "[OPTION...]",
        .summary = "Disable the least important heads of a model one after another.",
        .details = details,
        ARG_OPTIONS(options),
        .given = &given,
    };
    int code = args_parse(&command, argc, argv, NULL);
    if (code == EXIT_GO_ON)
        code = check(&r);
    if (code != EXIT_GO_ON)
        return code;
    if (r.keep < 0)
        r.keep = 0;
    r.setup.needs = "--texts FILE or --pairs FILE";
    code = heads_setup_open(&r.setup, "prune");
    if (code == EXIT_GO_ON)
        code = heads_setup_refuse(&r.setup, &command, "split seed");
    if (code == EXIT_GO_ON && r.setup.pairs == NULL)
        code = args_refuse(&command, "curve",
                           "is for the laboratory on its corpus; other models are measured on "
                           "--texts or --pairs, and have no curve");
    if (code == EXIT_GO_ON)
        code = run(&r);
    heads_setup_close(&r.setup);
    return code;
}
