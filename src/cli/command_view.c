/* SPDX-License-Identifier: MIT */
/*
 * mha view: one page that shows every head of a translator on some sentences.
 *
 *      text --sentence_pair_read()--> words, with those of the model's translation or of --to
 *      both --sentence_pair_capture()--> weights, queries, keys, values of all heads
 *      the same with one head after another closed, or blind: what each of them is good for
 *      sentences of the corpus --view_study_make()--> roles of the heads
 *      all of it --view_page_json(), view_page_write()--> the page
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "commands.h"
#include "heads_setup.h"
#include "join_words.h"
#include "model_path.h"
#include "sentence_pair.h"
#include "terminal.h"
#include "view_page.h"
#include "whole_file.h"

enum { SENTENCES_MAX = 16, STUDY_SENTENCES = 200 };

static const char details[] =
    "Each TEXT is a sentence; words without quotes are one sentence. The page shows what\n"
    "each head of the model looks at while it reads TEXT and says its translation. It is\n"
    "one file that any browser opens from disk, without a network. Two sentences or more\n"
    "can be compared with each other. The model is sought as by \"mha translate\".\n"
    "\n"
    "Examples:\n"
    "  mha view \"the cat that i saw yesterday ran away\"\n"
    "  mha view -o cats.html \"the black cat sleeps\" \"the black cats sleep\"\n"
    "  mha view --to \"le chat dort\" \"the cat sleeps\"\n";

typedef struct view_request {
    const char *model_file, *target, *output;
    int64_t threads, study;
} view_request;

/* One sentence with what its tokens point to. */
typedef struct view_item {
    sentence_pair pair;
    capture *heads;
} view_item;

typedef struct view_run {
    const view_request *request;
    translator *model;
    mha_pool *pool;
    view_item *items;         /* [count] */
    view_sentence *sentences; /* [count] */
    float *losses;            /* [count][2][heads] */
    int *said;                /* [count][heads][CORPUS_TOKENS_MAX] */
    int count;
    view_study study;
} view_run;

static bool out_of_memory(void)
{
    fprintf(stderr, "mha: out of memory\n");
    return false;
}

/* ------------------------------------------------------------ the texts ----- */

static bool same_tokens(const corpus_sentence *a, const corpus_sentence *b)
{
    for (int n = 0; n < a->count && n < b->count; n++)
        if (strcmp(a->tokens[n], b->tokens[n]) != 0)
            return false;
    return a->count == b->count;
}

static void find_gold(view_sentence *s)
{
    s->gold = corpus_translate(s->text, &s->pair, NULL, s->reason);
    if (!s->gold)
        return;
    s->gold = same_tokens(&s->source, &s->pair.side[CORPUS_ENGLISH]) &&
              same_tokens(&s->target, &s->pair.side[CORPUS_FRENCH]);
    if (!s->gold) {
        char french[CORPUS_TEXT_MAX];
        corpus_detokenise(CORPUS_FRENCH, &s->pair.side[CORPUS_FRENCH], french);
        snprintf(s->reason, sizeof s->reason, "the grammar translates it otherwise: %.200s",
                 french);
    }
}

/* ------------------------------------------------------------ the heads ----- */

static double sum_log_likelihood(const capture *heads)
{
    double sum = 0.0;
    for (int i = 0; i < heads->target_count; i++)
        sum += heads->log_likelihood[i];
    return sum;
}

/* The sentence with one head changed; NULL, with a message, without memory. */
static capture *capture_changed(const view_run *run, int n, capture_kind kind, uint8_t *changes,
                                int map, capture_change change)
{
    capture_options options = {.changes = {NULL}};
    options.changes[kind] = changes;
    changes[map] = (uint8_t)change;
    capture *const heads =
        sentence_pair_capture(&run->items[n].pair, run->model, &options, run->pool);
    changes[map] = CAPTURE_PLAIN;
    return heads;
}

static bool change_head(const view_run *run, int n, capture_kind kind, uint8_t *changes, int map)
{
    const capture *const open = run->items[n].heads;
    const view_closing *const closed = &run->sentences[n].closed[kind];
    const double likely = sum_log_likelihood(open);
    capture *const zero = capture_changed(run, n, kind, changes, map, CAPTURE_ZERO);
    capture *const uniform =
        zero != NULL ? capture_changed(run, n, kind, changes, map, CAPTURE_UNIFORM) : NULL;
    if (uniform != NULL) {
        closed->losses[map] = (float)(likely - sum_log_likelihood(zero));
        closed->uniform_losses[map] = (float)(likely - sum_log_likelihood(uniform));
        memcpy(closed->said + (ptrdiff_t)map * open->target_count, zero->said,
               (size_t)open->target_count * sizeof zero->said[0]);
    }
    capture_free(zero);
    capture_free(uniform);
    return uniform != NULL;
}

static bool change_kind(const view_run *run, int n, capture_kind kind)
{
    const capture_heads *const heads = &run->items[n].heads->kind[kind];
    const int maps = heads->layers * heads->heads;
    uint8_t *const changes = calloc((size_t)maps, sizeof *changes);
    bool fine = changes != NULL || out_of_memory();
    for (int map = 0; fine && map < maps; map++)
        fine = change_head(run, n, kind, changes, map);
    free(changes);
    return fine;
}

/* Where the numbers of sentence n lie. */
static void place_closings(const view_run *run, int n)
{
    const transformer_config *const config = translator_config(run->model);
    const ptrdiff_t all = head_count(config);
    for (int kind = 0; kind < CAPTURE_KINDS; kind++) {
        const int first = head_number(config, (head_name){(capture_kind)kind, 0, 0});
        float *const losses = run->losses + 2 * n * all + first;
        int *const said = run->said + (n * all + first) * CORPUS_TOKENS_MAX;
        run->sentences[n].closed[kind] = (view_closing){losses, losses + all, said};
    }
}

static bool fill_sentence(view_run *run, int n, const char *text)
{
    view_item *const item = &run->items[n];
    view_sentence *const s = &run->sentences[n];
    const capture_options options = {.weights = true, .vectors = true};
    if (!sentence_pair_read(&item->pair, run->model, text, run->request->target, run->pool))
        return false;
    s->text = item->pair.source.text;
    s->source = item->pair.source.tokens;
    s->target = item->pair.target;
    find_gold(s);
    place_closings(run, n);
    s->heads = item->heads = sentence_pair_capture(&item->pair, run->model, &options, run->pool);
    bool fine = item->heads != NULL;
    for (int kind = 0; fine && kind < CAPTURE_KINDS; kind++)
        fine = change_kind(run, n, (capture_kind)kind);
    return fine;
}

/* ------------------------------------------------------------- the page ----- */

/* An argument as a shell reads it. */
static void put_quoted(FILE *file, const char *text)
{
    fputc('\'', file);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (const char[]){*text, '\0'}, file);
    fputc('\'', file);
}

/* The command that makes this page; for free(). NULL: no memory. */
static char *command_text(const view_run *run)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    fputs("mha view -o ", file);
    put_quoted(file, run->request->output);
    if (run->request->model_file != NULL) {
        fputs(" --model ", file);
        put_quoted(file, run->request->model_file);
    }
    if (run->request->target != NULL) {
        fputs(" --to ", file);
        put_quoted(file, run->items[0].pair.target_text);
    }
    if (run->request->study != STUDY_SENTENCES)
        fprintf(file, " --study %d", (int)run->request->study);
    for (int n = 0; n < run->count; n++) {
        fputc(' ', file);
        put_quoted(file, run->sentences[n].text);
    }
    fclose(file);
    return text;
}

static void report(const view_run *run)
{
    struct stat about;
    const int heads = head_count(translator_config(run->model));
    const long long kilobytes =
        stat(run->request->output, &about) == 0 ? ((long long)about.st_size + 1023) / 1024 : 0;
    printf("%s: %d head%s, %d sentence%s, %lld KB; open it in a browser\n", run->request->output,
           heads, heads == 1 ? "" : "s", run->count, run->count == 1 ? "" : "s", kilobytes);
}

static bool write_page(const view_run *run)
{
    char *const command = command_text(run);
    const view_page page = {run->model, command, run->request->study > 0 ? &run->study : NULL,
                            run->sentences, run->count};
    char *const text = command != NULL ? view_page_json(&page) : NULL;
    const bool fine = text != NULL ? whole_file_write(run->request->output, view_page_write, text)
                                   : out_of_memory();
    free(text);
    free(command);
    return fine;
}

static bool make_room(view_run *run)
{
    const size_t count = (size_t)run->count;
    const size_t heads = count * (size_t)head_count(translator_config(run->model));
    run->items = calloc(count, sizeof *run->items);
    run->sentences = calloc(count, sizeof *run->sentences);
    run->losses = calloc(heads * 2, sizeof *run->losses);
    run->said = calloc(heads * CORPUS_TOKENS_MAX, sizeof *run->said);
    return run->items != NULL && run->sentences != NULL && run->losses != NULL && run->said != NULL;
}

static void free_room(view_run *run)
{
    for (int n = 0; run->items != NULL && n < run->count; n++) {
        capture_free(run->items[n].heads);
        sentence_pair_free(&run->items[n].pair);
    }
    free(run->items);
    free(run->sentences);
    free(run->losses);
    free(run->said);
    view_study_free(&run->study);
}

static bool make_study(view_run *run)
{
    const mha_status status =
        view_study_make(&run->study, run->model, (int)run->request->study, run->pool);
    if (status == MHA_OK)
        return true;
    if (status != MHA_ERR_LENGTH)
        return out_of_memory();
    heads_too_short(run->model);
    fprintf(stderr, "mha: --study 0 makes a page without them\n");
    return false;
}

static bool make_page(view_run *run, char **texts)
{
    bool fine = make_room(run) || out_of_memory();
    for (int n = 0; fine && n < run->count; n++) {
        progress("sentence %d of %d", n + 1, run->count);
        fine = fill_sentence(run, n, texts[n]);
    }
    progress_end();
    if (fine && run->request->study > 0)
        fine = make_study(run);
    if (fine && (fine = write_page(run)))
        report(run);
    free_room(run);
    return fine;
}

static int run_command(const view_request *r, char **texts, int count)
{
    char path[MODEL_PATH_MAX], message[TRANSFORMER_MESSAGE_MAX] = "";
    view_run run = {.request = r, .count = count};
    const int threads = args_threads(r->threads, -1);
    if (threads == 0)
        return EXIT_USAGE;
    if (require_isa() == NULL || !model_path_find(r->model_file, path) ||
        !whole_file_possible(r->output))
        return EXIT_FAILED;
    if ((run.model = translator_load(path, message)) == NULL) {
        fprintf(stderr, "mha: %s\n", message);
        return EXIT_FAILED;
    }
    const mha_status status = mha_pool_create(&run.pool, threads > 0 ? threads : 0);
    if (status != MHA_OK)
        fprintf(stderr, "mha: no threads: %s\n", mha_status_string(status));
    const bool fine = status == MHA_OK && make_page(&run, texts);
    mha_pool_free(run.pool);
    translator_free(run.model);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

int command_view(int argc, char **argv)
{
    view_request r = {.output = "view.html", .study = STUDY_SENTENCES};
    const arg_option options[] = {
        {"o", ARG_TEXT, &r.output, "FILE", "where to write the page (view.html)", 0, 0},
        {"to", ARG_TEXT, &r.target, "FRENCH", "what the decoder reads (what the model says)", 0, 0},
        {"model", ARG_TEXT, &r.model_file, "FILE", "the model (models/en-fr.safetensors)", 0, 0},
        {"study", ARG_NUMBER, &r.study, "N", "roles over N sentences of the corpus (200; 0: none)",
         0, 100000},
        {"threads", ARG_NUMBER, &r.threads, "T", "threads (one for every CPU)", 1, MHA_MAX_THREADS},
    };
    const arg_command command = {
        .name = "view",
        .usage = "[OPTION...] TEXT...",
        .summary = "Write a page that shows every head on a sentence.",
        .details = details,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .words_min = 1,
        .words_max = 1024,
    };
    int words;
    char *joined = NULL;
    int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    words = join_words(argv, words, &joined);
    if (words > SENTENCES_MAX)
        code = args_wrong("view: %d sentences; a page has room for %d", words, SENTENCES_MAX);
    else if (r.target != NULL && words > 1)
        code = args_wrong("view: --to is the translation of one sentence, not of %d", words);
    else
        code = run_command(&r, argv + 1, words);
    free(joined);
    return code;
}
