/* SPDX-License-Identifier: MIT */
/*
 * mha show: what every head of a model attends to in one sentence, as heat maps.
 *
 *      text --subject_read()--> words --subject_run()--> weights of all heads
 *      sentences of the corpus, or of the model --heads_table_make()--> their roles, and which are
 * to be drawn both --show_maps_make()--> sheets, as text, SVG, TikZ or JSON
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/output_file.h"
#include "base/terminal.h"
#include "format/json_writer.h"
#include "heads/picture_study.h"
#include "heads/whole_words.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/heads_table.h"
#include "program/maps.h"
#include "program/options.h"

enum { STUDY_SENTENCES = 200 };

static const char details[] =
    "TEXT is a sentence; words without quotes are joined into one sentence. A row of a map shows\n"
    "how much its word attends to each word of the columns. Rows of the decoder are the words\n"
    "that it reads, rows of cross-attention the words that it writes. Maps are drawn in colour\n"
    "if the terminal has colours, else with characters from light to dark. The strongest one\n"
    "stands for the largest value of a layer. Below the title of a head is its role, which is\n"
    "found as by \"mha heads\": for the laboratory on sentences of its grammar, for other models "
    "on\n"
    "the texts of --texts, on the sentence pairs that come with the model (sentences.tsv in its\n"
    "folder), or, without both, on TEXT alone. --where takes the conditions of \"mha heads\". A\n"
    "head may also be written \"cross L2 H4\".\n"
    "\n"
    "Examples:\n"
    "  mha show --words \"The cat that I saw yesterday ran away.\"\n"
    "  mha show --kind cross --layer 2 --mean \"The old king sings.\"\n"
    "  mha show --model lab --where role=determiner \"the small black cat sleeps\"\n"
    "  mha show --values norm --svg heads.svg \"The cat sleeps.\"\n"
    "  mha show --head \"cross 2.4\" --tikz head.tex \"The cat sleeps.\"\n"
    "  mha show --model all-MiniLM-L6-v2 --layer 3 \"The tired cat ran away.\"\n";

typedef struct show_request {
    heads_setup setup;
    const char *text, *target, *kind_name, *head_name, *values_name, *where, *svg, *tikz;
    int64_t layer, width, study; /* 0: not given; study: none */
    int head;                    /* 0: all */
    int kind;                    /* ATTENTION_KINDS: all */
    bool layer_of_head;          /* --head gives the layer, not --layer */
    bool mean, norm, words, as_json;
} show_request;

/* -------------------------------------------------------------- options ----- */

static int find_values(show_request *r)
{
    static const char *const names[] = {"raw", "norm"};
    const int values = option_choose("show", "values", r->values_name, names, 2);
    r->norm = values == 1;
    return values < 0 ? EXIT_USAGE : EXIT_GO_ON;
}

/* --head may name the kind and the layer too. */
static int find_head(show_request *r, const arg_command *command)
{
    head_choice choice;
    if (r->head_name == NULL)
        return EXIT_GO_ON;
    int code = option_head("show", "head", r->head_name, &choice);
    if (code == EXIT_GO_ON)
        code = args_refuse(command, "mean", "is of several heads; leave it out with --head");
    if (code == EXIT_GO_ON && choice.kind != ATTENTION_KINDS)
        code = args_refuse(command, "kind", "is given by --head already; leave it out");
    if (code == EXIT_GO_ON && choice.layer > 0)
        code = args_refuse(command, "layer", "is given by --head already; leave it out");
    if (code != EXIT_GO_ON)
        return code;
    r->kind = choice.kind != ATTENTION_KINDS ? choice.kind : r->kind;
    r->layer = choice.layer > 0 ? choice.layer : r->layer;
    r->layer_of_head = choice.layer > 0;
    r->head = choice.head;
    return EXIT_GO_ON;
}

static bool draws_on_terminal(const show_request *r)
{
    return !r->as_json && r->svg == NULL && r->tikz == NULL;
}

/* Reports mistakes before the work begins. */
static int check(show_request *r, const arg_command *command)
{
    int none = 0;
    int code = option_kind("show", r->kind_name, &r->kind);
    if (code == EXIT_GO_ON)
        code = find_head(r, command);
    if (code == EXIT_GO_ON)
        code = find_values(r);
    if (code == EXIT_GO_ON && !draws_on_terminal(r))
        code = args_refuse(command, "width", "is for maps in the terminal; leave it out");
    if (code == EXIT_GO_ON && r->norm)
        code = args_refuse(command, "words",
                           "joins weights; norms are those of tokens: leave out "
                           "one of them");
    if (code == EXIT_GO_ON && r->where != NULL)
        code = heads_filter("show", r->where, NULL, &none);
    if (code == EXIT_GO_ON && r->where != NULL && r->study == 0)
        code = args_wrong("show: --where needs heads that are measured: a --study above 0");
    return code;
}

/* Checks what depends on the model. */
static int check_model(const show_request *r, const arg_command *command)
{
    if (r->setup.session.subject.reads_pictures &&
        args_refuse(command, "where words to",
                    "is about words; leave it out with a model that reads pictures") != EXIT_GO_ON)
        return EXIT_USAGE;
    const head_shape shape = r->setup.session.subject.shape;
    const char *const option = r->kind_name != NULL ? "kind" : "head";
    const char *const name = r->kind_name != NULL ? r->kind_name : r->head_name;
    int layers = 0;
    const int code = heads_setup_kind(&r->setup, "show", option, name, r->kind);
    if (code != EXIT_GO_ON)
        return code;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if ((r->kind == ATTENTION_KINDS || r->kind == kind) && shape.layers[kind] > layers)
            layers = shape.layers[kind];
    if (r->layer > layers && r->layer_of_head)
        return args_wrong("show: --head %s: there %s %d layer%s", r->head_name,
                          layers == 1 ? "is" : "are", layers, layers == 1 ? "" : "s");
    if (r->layer > layers)
        return args_wrong("show: --layer %d: there %s %d layer%s", (int)r->layer,
                          layers == 1 ? "is" : "are", layers, layers == 1 ? "" : "s");
    if (r->head > shape.heads)
        return args_wrong("show: --head %s: a layer has %d heads", r->head_name, shape.heads);
    return EXIT_GO_ON;
}

/* ---------------------------------------------------------------- heads ----- */

/* Whether --kind, --layer and --head admit this head. */
static bool is_selected(const show_request *r, head_name name)
{
    return (r->kind == ATTENTION_KINDS || r->kind == (int)name.kind) &&
           (r->layer == 0 || r->layer == name.layer + 1) &&
           (r->head == 0 || r->head == name.head + 1);
}

/* Fills drawn[] by the options and, if there is a table of measured heads, by --where; then roles[]
 * too. */
static void choose(const show_request *r, const heads_table *table, bool *drawn, const char **roles)
{
    const head_shape shape = r->setup.session.subject.shape;
    for (int n = 0; n < head_count(shape); n++)
        drawn[n] = table == NULL && is_selected(r, head_at(shape, n));
    if (table == NULL)
        return;
    int count = table->study->heads;
    for (int n = 0; n < count; n++)
        roles[n] = heads_role_name(&table->rows[n]);
    if (r->where != NULL)
        heads_filter("show", r->where, table->rows, &count);
    for (int n = 0; n < count; n++)
        drawn[table->rows[n].number] = is_selected(r, table->rows[n].name);
}

/* --------------------------------------------------------------- output ----- */

typedef struct show_picture {
    const show_request *request;
    const heatmap_sheet *sheets;
    int count;
} show_picture;

static void write_svg(FILE *file, const void *arg)
{
    const show_picture *const picture = arg;
    heatmap_svg(file, picture->sheets, picture->count,
                picture->request->norm ? "$ mha show --values norm" : "$ mha show");
}

static void write_tikz(FILE *file, const void *arg)
{
    const show_picture *const picture = arg;
    heatmap_tikz(file, picture->sheets, picture->count);
}

/* Writes all sheets to the files of --svg and --tikz. */
static int save(const show_request *r, const show_maps *maps)
{
    heatmap_sheet *const sheets = calloc((size_t)maps->count + 1, sizeof *sheets);
    if (sheets == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    for (int n = 0; n < maps->count; n++)
        sheets[n] = maps->sheets[n].map.sheet;
    const show_picture picture = {r, sheets, maps->count};
    const char *const files[] = {r->svg, r->tikz};
    const bool fine = (r->svg == NULL || output_file_write(r->svg, write_svg, &picture)) &&
                      (r->tikz == NULL || output_file_write(r->tikz, write_tikz, &picture));
    for (int n = 0; fine && n < 2; n++)
        if (files[n] != NULL)
            fprintf(stderr, "mha: wrote %s\n", files[n]);
    free(sheets);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

/* What the roles were found on. */
static void print_study(const show_request *r)
{
    const heads_setup *const s = &r->setup;
    const int count = (int)s->sentences;
    if (s->pairs != NULL)
        printf("roles: on %d corpus sentence%s\n", count, count == 1 ? "" : "s");
    else if (heads_setup_file(s) != NULL)
        printf("roles: on %d %s%s of %s\n", count, heads_setup_unit(s), count == 1 ? "" : "s",
               heads_setup_file(s));
    else
        printf("roles: on this %s alone\n", heads_setup_unit(s));
}

/* The sentence, its translation, and the sheets. --width overrides the width of the terminal. */
static void print(const show_request *r, const show_scene *scene, const show_maps *maps)
{
    terminal screen = terminal_query(stdout);
    const subject_text *const text = scene->text;
    if (r->width > 0)
        screen.width = (int)r->width;
    printf("%s\n", text->text);
    if (text->translation != NULL)
        printf("%s\n", text->translation);
    if (scene->roles != NULL)
        print_study(r);
    if (maps->count == 0)
        printf("\nno head matches\n");
    for (int n = 0; n < maps->count; n++) {
        printf("\n");
        heatmap_draw(stdout, &maps->sheets[n].map.sheet, &screen);
    }
}

/* One map: a head with its role, or the mean of a sheet, which comes last. */
static void put_map(json *j, const show_sheet *sheet, int n, bool roles)
{
    const heatmap_sheet *const s = &sheet->map.sheet;
    const ptrdiff_t columns = s->columns.count, rows = s->rows.count;
    json_open_object(j, NULL);
    json_string(j, "kind", attention_kind_name(sheet->kind));
    json_integer(j, "layer", sheet->layer + 1);
    if (n < sheet->count)
        json_integer(j, "head", sheet->chosen[n] + 1);
    else
        json_bool(j, "mean", true);
    if (n < sheet->count && roles)
        json_string(j, "role", s->notes[n]);
    json_open_array(j, "cells");
    for (ptrdiff_t i = 0; i < rows; i++)
        json_numbers(j, NULL, s->weights + (n * rows + i) * columns, (int)columns);
    json_close(j);
    json_close(j);
}

static void print_json(const show_request *r, const show_scene *scene, const show_maps *maps)
{
    const subject_text *const text = scene->text;
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", r->setup.session.path);
    json_string(&j, "text", text->text);
    json_string(&j, "values", r->norm ? "norm" : "raw");
    json_integer(&j, "study", r->study > 0 ? r->setup.sentences : 0);
    if (r->study > 0 && heads_setup_file(&r->setup) != NULL)
        json_string(&j, "study_file", heads_setup_file(&r->setup));
    if (text->source.count > 0)
        json_strings(&j, "source", text->source.words, text->source.count);
    if (text->target.count > 0)
        json_strings(&j, "target", text->target.words, text->target.count);
    if (text->expected != NULL)
        json_strings(&j, "expected", text->expected, text->target.count);
    json_open_array(&j, "maps");
    for (int n = 0; n < maps->count; n++)
        for (int map = 0; map < maps->sheets[n].map.sheet.heads; map++)
            put_map(&j, &maps->sheets[n], map, scene->roles != NULL);
    json_close(&j);
    json_close(&j);
}

/* Prints or writes the maps. That no head was chosen is an error only if a file was requested. */
static int deliver(const show_request *r, const show_scene *scene, const show_maps *maps)
{
    const bool files = r->svg != NULL || r->tikz != NULL;
    if (maps->count == 0 && files)
        return args_failed("no head matches: nothing to write");
    if (r->as_json)
        print_json(r, scene, maps);
    else if (!files)
        print(r, scene, maps);
    return files ? save(r, maps) : EXIT_FINE;
}

/* ------------------------------------------------------------------ run ----- */

static int make_maps(const show_request *r, const show_scene *scene)
{
    show_maps maps;
    const int code =
        show_maps_make(&maps, scene) ? deliver(r, scene, &maps) : heads_failed(MHA_ERR_MEMORY);
    show_maps_free(&maps);
    return code;
}

/* The roles of heads that read pictures, as "mha heads" finds them. */
static int measure_pictures(const show_request *r, show_scene *scene, bool *drawn,
                            const char **roles)
{
    const session *const s = &r->setup.session;
    picture_study *const study =
        picture_study_create(&s->subject, &r->setup.texts, s->pool, heads_watch);
    progress_end();
    if (study == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    for (int n = 0; n < study->heads; n++) {
        const picture_role role = picture_study_role(study, n);
        roles[n] = role.found ? role.name : ROLE_NONE;
    }
    picture_study_free(study);
    choose(r, NULL, drawn, roles);
    scene->drawn = drawn;
    scene->roles = roles;
    return make_maps(r, scene);
}

/* Measures the heads if roles are wanted, then draws. drawn[] and roles[] have room for all heads.
 */
static int measure(const show_request *r, show_scene *scene, bool *drawn, const char **roles)
{
    heads_table table = {NULL, NULL};
    if (r->study > 0 && r->setup.session.subject.reads_pictures)
        return measure_pictures(r, scene, drawn, roles);
    const mha_status status = r->study > 0 ? heads_table_make(&table, &r->setup, -1) : MHA_OK;
    int code;
    if (status == MHA_OK) {
        choose(r, r->study > 0 ? &table : NULL, drawn, roles);
        scene->drawn = drawn;
        scene->roles = r->study > 0 ? roles : NULL;
        code = make_maps(r, scene);
    } else {
        code = heads_failed(status);
    }
    heads_table_free(&table);
    return code;
}

static bool has_norms(const capture *c)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (c->kind[kind].layers > 0 && c->kind[kind].value_norms == NULL)
            return false;
    return true;
}

/* Reads the text, captures its heads, and goes on with measuring and drawing. */
static int show(const show_request *r, subject_text *text)
{
    const heads_setup *const s = &r->setup;
    const capture_options options = {.weights = true, .vectors = r->norm};
    const subject *const model = &s->session.subject;
    const size_t heads = (size_t)head_count(model->shape);
    const pair_request request = {.text = r->text, .target = r->target};
    char message[SUBJECT_MESSAGE_MAX];
    if (!subject_read(model, &request, s->session.pool, text, message))
        return args_failed("%s", message);
    subject_warn(model, text);
    capture *const seen = subject_run(model, text, &options, s->session.pool);
    if (seen == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    if (r->norm && !has_norms(seen)) {
        capture_free(seen);
        return args_failed("--values norm: the output matrices of this model are stored in a type "
                           "that cannot be read; leave --values out");
    }
    bool *const drawn = calloc(heads, sizeof *drawn);
    const char **const roles = calloc(heads, sizeof *roles);
    whole_words words = {.letters = NULL};
    bool fine = drawn != NULL && roles != NULL;
    if (fine && r->words)
        fine = capture_join_words(seen) && whole_words_make(&words, text);
    show_scene scene = {.model = model,
                        .text = r->words ? &words.text : text,
                        .heads = seen,
                        .mean = r->mean,
                        .norm = r->norm};
    const int code = fine ? measure(r, &scene, drawn, roles) : heads_failed(MHA_ERR_MEMORY);
    whole_words_free(&words);
    free(drawn);
    free(roles);
    capture_free(seen);
    return code;
}

static int run(show_request *r, const arg_command *command)
{
    /* Without a study no sentence of the corpus is measured, and none needs to fit the model. */
    r->setup.sentences = r->study > 0 ? r->study : 1;
    r->setup.own_text = r->study == 0;
    r->setup.text = r->text;
    r->setup.role_text = true;
    int code = heads_setup_open(&r->setup, "show");
    if (code == EXIT_GO_ON)
        code = check_model(r, command);
    if (code == EXIT_GO_ON && ((r->svg != NULL && !output_file_check(r->svg)) ||
                               (r->tikz != NULL && !output_file_check(r->tikz))))
        code = EXIT_FAILED;
    subject_text text = {.text = NULL};
    if (code == EXIT_GO_ON)
        code = show(r, &text);
    subject_text_free(&r->setup.session.subject, &text);
    heads_setup_close(&r->setup);
    return code;
}

int command_show(int argc, char **argv)
{
    show_request r = {.setup = {.usual = SHIPPED_TRANSLATOR, .split_name = "test", .seed = 1},
                      .values_name = "raw",
                      .study = STUDY_SENTENCES};
    uint64_t given = 0;
    const arg_option options[] = {
        {"to", ARG_TEXT, &r.target, "FRENCH", "what the decoder reads (the model's translation)", 0,
         0},
        {OPTION_MODEL(&r.setup.model_file, "en-fr")},
        {OPTION_TEXTS(&r.setup.texts_file)},
        {"kind", ARG_TEXT, &r.kind_name, "K", "only heads of encoder, decoder or cross", 0, 0},
        {"layer", ARG_NUMBER, &r.layer, "N", "only heads of this layer", 1, TRANSFORMER_LAYERS_MAX},
        {"head", ARG_TEXT, &r.head_name, "H", "only this head: \"cross 2.4\", or 4 of every layer",
         0, 0},
        {"where", ARG_TEXT, &r.where, "W", "only heads for which all conditions hold", 0, 0},
        {"mean", ARG_FLAG, &r.mean, NULL, "add the mean of the heads of each layer", 0, 0},
        {"values", ARG_TEXT, &r.values_name, "V",
         "raw weights, or norm: weights times |v W_O| (raw)", 0, 0},
        {"study", ARG_NUMBER, &r.study, "N", "find roles on N corpus sentences (200; 0: no roles)",
         0, 100000},
        {"words", ARG_FLAG, &r.words, NULL, "join the tokens of a word", 0, 0},
        {"svg", ARG_TEXT, &r.svg, "FILE", "write the maps to an SVG file instead", 0, 0},
        {"tikz", ARG_TEXT, &r.tikz, "FILE", "write the maps for LaTeX, with their numbers", 0, 0},
        {"width", ARG_NUMBER, &r.width, "N", "columns to use (the width of the terminal)",
         TERMINAL_WIDTH_MIN, TERMINAL_WIDTH_MAX},
        {OPTION_THREADS(&r.setup.threads)},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "show",
        .usage = "[OPTION...] TEXT...",
        .summary = "Draw what every head of a model attends to in a sentence.",
        .details = details,
        ARG_OPTIONS(options),
        .words_min = 1,
        .words_max = INT_MAX,
        .given = &given,
    };
    int words;
    char *joined;
    int code = options_parse_sentences(&command, argc, argv, &words, &joined);
    if (code != EXIT_GO_ON)
        return code;
    r.text = argv[1];
    code =
        words > 1 ? args_wrong("show: one sentence at a time, not %d", words) : check(&r, &command);
    if (code == EXIT_GO_ON)
        code = run(&r, &command);
    free(joined);
    return code;
}
