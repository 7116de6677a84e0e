/* SPDX-License-Identifier: MIT */
/*
 * mha translate: English to French with a trained model.
 *
 *      arguments, or lines of standard input --> groups of sentences
 *      source_read() each, translator_translate() all, then text, maps, SVG or JSON in their order
 *
 * translate_evaluate.c scores sentences of the corpus instead; translate_json.c writes JSON.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/line_reader.h"
#include "base/output_file.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/maps.h"
#include "program/model_session.h"
#include "program/options.h"
#include "program/session.h"
#include "program/translate_any.h"
#include "program/translate_evaluate.h"
#include "program/translate_json.h"

enum { TOGETHER = 128 };

static const char details[] =
    "Each TEXT is a sentence; words without quotes are joined into one sentence. Without TEXT,\n"
    "every line of standard input is translated.\n"
    "\n"
    "The model \"en-fr\" was trained on real sentences (\"mha train --pairs\"). With --model, any\n"
    "other encoder-decoder translates (Marian, T5, BART). Results of --best follow their\n"
    "confidence, the geometric mean of the probabilities of their tokens; on a terminal a\n"
    "translation with less than 0.35, or without a number of the sentence, is marked as unsure.\n"
    "\n"
    "The model \"lab\" is the laboratory: every sentence that it learnt comes from a known "
    "grammar\n"
    "(\"mha corpus\"), so the true alignment and roles are known. It reports sentences outside of\n"
    "this grammar, and copies words that it does not know. It is the default with --gold and\n"
    "--evaluate. Both models are searched for in models/, in the installed data and next to the\n"
    "program.\n"
    "\n"
    "Examples:\n"
    "  mha translate \"The cat that I saw yesterday ran away.\"\n"
    "  mha translate --attention \"Where is the station?\"\n"
    "  mha translate --best 4 \"She gave me a book.\"\n"
    "  mha translate --gold --beam 4 --best 4 \"she gives the boy a book\"\n"
    "  mha corpus --split test | cut -f 1 | mha translate --model lab\n"
    "  mha translate --evaluate 1000\n";

typedef struct translate_request {
    const char *model_file, *svg, *split_name, *penalty, *head_name, *store, *arithmetic;
    int64_t beam, best, layer, evaluate, threads; /* 0: not given */
    int head;                                     /* 0: all */
    uint64_t seed;
    bool attention, as_json, gold, errors, no_cache;

    translation_options options;
    corpus_split split;
} translate_request;

/* The state of one run. Sentences are translated in groups of up to TOGETHER. */
typedef struct translate_run {
    const translate_request *request;
    session session;
    terminal screen;
    json json;
    bool failed;
    source_sentence *sources; /* [TOGETHER] */
    translation *results;     /* [TOGETHER][nbest] */
} translate_run;

/* -------------------------------------------------------------- stderr ----- */

/* What is wrong with a sentence, with its line if it comes from standard input. */
static void warn(const translated *t)
{
    if (t->source->problem[0] != '\0') {
        source_print_place(t->source);
        fprintf(stderr, "%s\n", t->source->problem);
    }
    source_warn(t->source);
    if (t->results != NULL && !target_ends(t->results)) {
        source_print_place(t->source);
        fprintf(stderr, "the translation is cut off: it has no end\n");
    }
}

/* -------------------------------------------------------------- stdout ----- */

/* The best translation, or with --best all that were found, each with its score. */
static void print_targets(const translated *t, bool scores)
{
    for (int n = 0; n < t->count && (n == 0 || t->results[n].target_count > 0); n++) {
        corpus_sentence tokens;
        char text[CORPUS_TEXT_MAX];
        target_tokens(t, n, &tokens);
        corpus_detokenise(CORPUS_FRENCH, &tokens, text);
        if (scores)
            printf("%.4f\t", t->results[n].score);
        printf("%s\n", text);
    }
}

/* Whether the grammar translates the sentence in the same way. */
static void print_gold(const translated *t, const terminal *screen)
{
    gold_translation gold;
    gold_find(&gold, t);
    if (!gold.known) {
        printf("  the grammar has no such sentence: %s\n", gold.reason);
        return;
    }
    terminal_style(stdout, screen, gold.agrees ? STYLE_GOOD : STYLE_BAD);
    printf("  the grammar %s%s", gold.agrees ? "agrees" : "says: ", gold.agrees ? "" : gold.text);
    terminal_plain(stdout, screen);
    printf("\n");
}

static void draw_svg(FILE *file, const void *arg)
{
    heatmap_svg(file, &((const layer_map *)arg)->sheet, 1, "$ mha translate --attention");
}

/* Draws the chosen layer and head to the terminal or to the file of --svg. False after a message.
 */
static bool draw(const translate_run *run, const translated *t)
{
    const translate_request *const r = run->request;
    const int layers = translator_config(run->session.model)->layers[TRANSFORMER_TARGET];
    const int layer = r->layer > 0 ? (int)r->layer : layers;
    layer_map map;
    bool fine = alignment_map_make(&map, t, layer, r->head);
    if (!fine)
        fprintf(stderr, "mha: out of memory\n");
    if (fine && r->attention && !r->as_json) {
        printf("\nLayer %d of %d: what each French word attends to in the English sentence\n\n",
               layer, layers);
        heatmap_draw(stdout, &map.sheet, &run->screen);
        printf("\n");
    }
    if (fine && r->svg != NULL)
        fine = output_file_write(r->svg, draw_svg, &map);
    layer_map_free(&map);
    return fine;
}

/* Everything about one sentence, in the requested form. A sentence that cannot be translated still
 * gets its line, so that lines of input and output correspond. */
static void print_sentence(translate_run *run, const translated *t)
{
    const translate_request *const r = run->request;
    const translate_json_parts parts = {r->attention, r->options.nbest > 1, r->gold};
    warn(t);
    run->failed |= t->source->problem[0] != '\0';
    if (r->as_json)
        translate_json(&run->json, t, &parts);
    else if (t->results == NULL)
        printf("\n");
    else
        print_targets(t, r->options.nbest > 1);
    if (t->results == NULL)
        return;
    if (r->gold && !r->as_json)
        print_gold(t, &run->screen);
    if (r->options.weights && (r->svg != NULL || !r->as_json))
        run->failed |= !draw(run, t);
}

/* -------------------------------------------------------------- groups ----- */

/* Empty sentences are not translated; their translation is empty. */
static bool can_be_translated(const source_sentence *source)
{
    return source->problem[0] == '\0' && source->tokens.count > 0;
}

/* With several unknown words, the weights show which one a copied word comes from. */
static translation_options group_options(const translate_run *run, int count)
{
    translation_options options = run->request->options;
    for (int n = 0; n < count; n++)
        options.weights |= run->sources[n].unknown_count > 1;
    return options;
}

/* Translates sources[0..count) together and prints them in their order. False, after a message, if
 * the translator fails, which happens only if out of memory. */
static bool translate_group(translate_run *run, int count)
{
    const int *words[TOGETHER] = {NULL};
    int lengths[TOGETHER] = {0}, wanted = 0;
    const int nbest = run->request->options.nbest;
    for (int n = 0; n < count; n++)
        if (can_be_translated(&run->sources[n])) {
            words[wanted] = run->sources[n].numbers;
            lengths[wanted++] = run->sources[n].tokens.count;
        }
    const translation_options options = group_options(run, count);
    const mha_status status = translator_translate(run->session.model, words, lengths, wanted,
                                                   &options, run->results, run->session.pool);
    if (status != MHA_OK) {
        fprintf(stderr, "mha: cannot translate: %s\n", mha_status_string(status));
        return false;
    }
    const translation *result = run->results;
    for (int n = 0; n < count; n++) {
        const bool done = can_be_translated(&run->sources[n]);
        const translated t = {run->session.model, &run->sources[n], done ? result : NULL,
                              done ? nbest : 0};
        print_sentence(run, &t);
        result += done ? nbest : 0;
    }
    for (int n = 0; n < wanted * nbest; n++)
        free(run->results[n].weights);
    return true;
}

static bool translate_arguments(translate_run *run, char **texts, int count)
{
    for (int first = 0; first < count; first += TOGETHER) {
        const int some = count - first < TOGETHER ? count - first : TOGETHER;
        for (int n = 0; n < some; n++) {
            run->sources[n].line = 0;
            source_read(&run->sources[n], run->session.model, texts[first + n], false);
        }
        if (!translate_group(run, some))
            return false;
    }
    return true;
}

/* Lines are translated in groups as they come: a user at a terminal gets every answer at once. */
static bool translate_lines(translate_run *run)
{
    line_reader reader = {.fd = STDIN_FILENO};
    int64_t line = 0;
    int count;
    bool fine = true;
    input_line *const lines = malloc(TOGETHER * sizeof *lines);
    if (lines == NULL) {
        fprintf(stderr, "mha: out of memory\n");
        return false;
    }
    while (fine && (count = line_reader_take(&reader, lines, TOGETHER)) > 0) {
        for (int n = 0; n < count; n++) {
            run->sources[n].line = ++line;
            source_read(&run->sources[n], run->session.model, lines[n].text, lines[n].cut);
        }
        fine = translate_group(run, count);
        fflush(stdout);
    }
    free(lines);
    if (reader.error != 0)
        fprintf(stderr, "mha: cannot read standard input: %s\n", strerror(reader.error));
    return fine && reader.error == 0;
}

/* Texts of the command line, or without any the lines of standard input. */
static int translate_all(translate_run *run, char **texts, int count)
{
    const translate_request *const r = run->request;
    run->sources = calloc(TOGETHER, sizeof *run->sources);
    run->results = calloc(TOGETHER * (size_t)r->options.nbest, sizeof *run->results);
    run->screen = terminal_query(stdout);
    run->json = json_begin(stdout);
    bool fine = run->sources != NULL && run->results != NULL;
    if (!fine)
        fprintf(stderr, "mha: out of memory\n");
    if (r->as_json)
        json_open_array(&run->json, NULL);
    if (fine)
        fine = count > 0 ? translate_arguments(run, texts, count) : translate_lines(run);
    if (r->as_json)
        json_close(&run->json);
    free(run->sources);
    free(run->results);
    return fine && !run->failed ? EXIT_FINE : EXIT_FAILED;
}

/* ------------------------------------------------------------- options ----- */

/* --head may name the layer too. */
static int find_head(translate_request *r, const arg_command *command)
{
    head_choice choice;
    if (r->head_name == NULL)
        return EXIT_GO_ON;
    int code = option_head("translate", "head", r->head_name, &choice);
    if (code == EXIT_GO_ON && choice.kind != ATTENTION_KINDS && choice.kind != ATTENTION_CROSS)
        code = args_wrong("translate: --head %s: only heads of cross-attention are drawn here; "
                          "\"mha show\" draws all",
                          r->head_name);
    if (code == EXIT_GO_ON && choice.layer > 0)
        code = args_refuse(command, "layer", "is given by --head already; leave it out");
    if (code != EXIT_GO_ON)
        return code;
    r->layer = choice.layer > 0 ? choice.layer : r->layer;
    r->head = choice.head;
    return EXIT_GO_ON;
}

/* Refuses options that would have no effect beside the others. */
static int check_unused(const translate_request *r, const arg_command *command)
{
    int code = EXIT_GO_ON;
    if (r->evaluate > 0)
        code = args_refuse(command, "attention layer head svg best gold",
                           "is for single sentences; leave it out with --evaluate");
    else
        code = args_refuse(command, "split seed errors", "needs --evaluate N");
    if (code == EXIT_GO_ON && r->as_json && r->svg == NULL)
        code = args_refuse(command, "layer head",
                           "selects what is drawn; JSON has all heads with --attention");
    return code;
}

static int check_evaluation(translate_request *r, int words)
{
    if (r->evaluate == 0)
        return EXIT_GO_ON;
    if (words > 0)
        return args_wrong("translate: --evaluate takes sentences of the corpus, not texts");
    return option_split("translate", r->split_name != NULL ? r->split_name : "test", &r->split);
}

static int check_penalty(translate_request *r)
{
    char *end;
    if (r->penalty == NULL)
        return EXIT_GO_ON;
    r->options.length_penalty = strtod(r->penalty, &end);
    if (end == r->penalty || *end != '\0' || !(fabs(r->options.length_penalty) <= 10.0))
        return args_wrong("translate: --length-penalty %s: not a number from -10 to 10",
                          r->penalty);
    return EXIT_GO_ON;
}

/* Derives the options of the search from the request and checks the combination. */
static int check(translate_request *r, const arg_command *command, int words)
{
    int code = find_head(r, command);
    if (code != EXIT_GO_ON)
        return code;
    r->attention |= (r->layer > 0 || r->head > 0) && r->svg == NULL;
    if (r->beam > 0 && r->best > r->beam)
        return args_wrong("translate: --best %d needs a --beam of at least that width",
                          (int)r->best);
    if (r->svg != NULL && words == 0 && r->evaluate == 0)
        return args_wrong("translate: --svg draws one sentence, which must be given as TEXT");
    const int best = r->best > 0 ? (int)r->best : 1;
    r->options = (translation_options){.beam = r->beam > 0 ? (int)r->beam : best,
                                       .nbest = best,
                                       .no_cache = r->no_cache,
                                       .weights = r->attention || r->svg != NULL};
    code = check_unused(r, command);
    if (code == EXIT_GO_ON)
        code = check_penalty(r);
    return code == EXIT_GO_ON ? check_evaluation(r, words) : code;
}

/* Without a beam there is nothing to rank. */
static int check_single(const translate_request *r, const arg_command *command, int beam)
{
    return beam > 1 || r->penalty == NULL
               ? EXIT_GO_ON
               : args_refuse(command, "length-penalty",
                             "ranks hypotheses; without --beam 2 or more there is only one");
}

/* Checks what depends on the model. */
static int check_model(const translate_request *r, const arg_command *command,
                       const translator *model)
{
    const transformer_config *const config = translator_config(model);
    if (r->layer > config->layers[TRANSFORMER_TARGET])
        return args_wrong("translate: --layer %d: the decoder has %d layers", (int)r->layer,
                          config->layers[TRANSFORMER_TARGET]);
    if (r->head > config->heads)
        return args_wrong("translate: --head %d: a layer has %d heads", r->head, config->heads);
    return check_single(r, command, r->options.beam);
}

static int run_with(const translate_request *r, const arg_command *command, translate_run *run,
                    char **argv, int words)
{
    const int code = check_model(r, command, run->session.model);
    if (code != EXIT_GO_ON)
        return code;
    if (r->evaluate == 0)
        return translate_all(run, argv + 1, words);
    const evaluation request = {.model = run->session.model,
                                .pool = run->session.pool,
                                .options = r->options,
                                .split = r->split,
                                .seed = r->seed,
                                .count = r->evaluate,
                                .as_json = r->as_json,
                                .errors = r->errors};
    return translate_evaluate(&request);
}

/* Options of the laboratory, which has a grammar and a corpus. */
static const char own_options[] = "gold evaluate split seed errors no-cache";

static int run_any(const translate_request *r, const session *s, char **argv, int words)
{
    const translate_any_request request = {
        .beam = (int)r->beam,
        .best = (int)r->best,
        .length_penalty = r->penalty != NULL ? r->options.length_penalty : (double)NAN,
        .as_json = r->as_json,
        .maps = {
            .layer = (int)r->layer, .head = r->head, .attention = r->attention, .svg = r->svg}};
    return translate_any(s, &request, words, argv);
}

/* The grammar and its corpus are those of the laboratory. */
static shipped_model usual_model(const translate_request *r)
{
    return r->gold || r->evaluate > 0 ? SHIPPED_LABORATORY : SHIPPED_TRANSLATOR;
}

static int run_command(const translate_request *r, const arg_command *command, char **argv,
                       int words)
{
    translate_run run = {.request = r};
    mha_model_config storage = {.size = sizeof storage};
    int code = model_storage_read("translate", r->store, r->arithmetic, &storage);
    if (code != EXIT_GO_ON)
        return code;
    code = session_open_text(&run.session, r->model_file, usual_model(r), r->threads, &storage);
    if (code == EXIT_GO_ON && run.session.any != NULL) {
        model_arithmetic_note(run.session.any, &storage);
        code = args_refuse(command, own_options,
                           "is about the grammar of the laboratory; it needs --model lab");
        if (code == EXIT_GO_ON && r->as_json)
            code = args_refuse(command, "attention",
                               "is for the terminal; \"mha show --json\" has the weights of all "
                               "heads of this model");
        if (code == EXIT_GO_ON && r->beam == 1)
            code = check_single(r, command, 1);
        if (code == EXIT_GO_ON)
            code = run_any(r, &run.session, argv, words);
    } else if (code == EXIT_GO_ON) {
        code = args_refuse(command, "store arithmetic",
                           "is not for the models of the laboratory, whose weights are f32");
        if (code == EXIT_GO_ON)
            code = run_with(r, command, &run, argv, words);
    }
    session_close(&run.session);
    return code;
}

int command_translate(int argc, char **argv)
{
    translate_request r = {.seed = 1};
    uint64_t given = 0;
    const arg_option options[] = {
        {OPTION_MODEL(&r.model_file, "en-fr")},
        {"beam", ARG_NUMBER, &r.beam, "N", "width of the beam search; 1 is greedy (4; lab 1)", 1,
         TRANSLATION_BEAM_MAX},
        {"best", ARG_NUMBER, &r.best, "N", "print N translations with their scores", 1,
         TRANSLATION_BEAM_MAX},
        {"length-penalty", ARG_TEXT, &r.penalty, "X",
         "rank by score / length^X (lab 0, others: their files)", 0, 0},
        {"attention", ARG_FLAG, &r.attention, NULL, "draw what each head attends to", 0, 0},
        {"layer", ARG_NUMBER, &r.layer, "N", "draw this decoder layer (the last)", 1,
         TRANSFORMER_LAYERS_MAX},
        {"head", ARG_TEXT, &r.head_name, "H", "draw this head only: 4, or \"cross 2.4\"", 0, 0},
        {"svg", ARG_TEXT, &r.svg, "FILE", "write the maps to a file", 0, 0},
        {"gold", ARG_FLAG, &r.gold, NULL, "compare with the grammar's translation", 0, 0},
        {"evaluate", ARG_NUMBER, &r.evaluate, "N", "translate N corpus sentences and count errors",
         1, 100000000},
        {OPTION_SPLIT(&r.split_name)},
        {OPTION_SEED(&r.seed)},
        {"errors", ARG_FLAG, &r.errors, NULL, "print the sentences that are wrong", 0, 0},
        {"no-cache", ARG_FLAG, &r.no_cache, NULL, "recompute all words in every step", 0, 0},
        {OPTION_STORE(&r.store)},
        {OPTION_ARITHMETIC(&r.arithmetic)},
        {OPTION_THREADS(&r.threads)},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "translate",
        .usage = "[OPTION...] [TEXT...]",
        .summary = "Translate English to French with a trained model.",
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
    if (r.svg != NULL && words > 1)
        code = args_wrong("translate: --svg draws one sentence, not %d", words);
    else
        code = check(&r, &command, words);
    if (code == EXIT_GO_ON && r.svg != NULL && !output_file_check(r.svg))
        code = EXIT_FAILED;
    if (code == EXIT_GO_ON)
        code = run_command(&r, &command, argv, words);
    free(joined);
    return code;
}
