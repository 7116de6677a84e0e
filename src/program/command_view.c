/* SPDX-License-Identifier: MIT */
/*
 * mha view: one page that shows every head of a model on some sentences.
 *
 *      texts --page_sentence_make()--> translations, and what all heads do
 *      sentences of the corpus, or texts of a file --page_study_make()--> roles of the heads
 *      a file of "mha ablate" --page_ablation_read()--> what they are worth over a corpus
 *      or, instead of a model, a file of weights --page_import_open()--> what heads do
 *      all of it --page_json(), page_write()--> the page
 *      with --live, the model and what runs it --live_engine_open(), page_write_live()--> the page
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "page/page.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/heads_setup.h"
#include "program/live_engine.h"
#include "program/options.h"
#include "program/page_examples.h"
#include "program/session.h"
#include "program/small_model.h"
#include "program/texts.h"

enum { SENTENCES_MAX = 16 };

static const char details[] =
    "Each TEXT is a sentence; words without quotes are joined into one sentence. The page shows\n"
    "what each head of the model attends to while it reads TEXT and, if it is a translator, "
    "writes\n"
    "its translation. It is one file that any browser opens from disk, without a network. Two or\n"
    "more sentences can be compared with each other. Roles of the laboratory are found on "
    "sentences\n"
    "of its grammar, those of other models on the texts of --texts, on the sentence pairs that "
    "come\n"
    "with the model (sentences.tsv in its folder), or, without both, on each sentence.\n"
    "\n"
    "--weights shows attention weights of any model: a safetensors file with a tensor\n"
    "[heads, rows, columns] for each layer, named layer.0, layer.1 ... or encoder.0,\n"
    "decoder.0, cross.0 ... The words are in the file of --tokens: one per line, or an array in\n"
    "a file *.json. With tensors layer.0.q, layer.0.k, layer.0.v [heads, rows, width] and\n"
    "layer.0.norms [heads, columns] the page also shows how a weight is computed. --ablation adds\n"
    "the output of \"mha ablate --json\" for the same model.\n"
    "\n"
    "The view Compute shows one layer of each kind step by step, with its matrices: --layer. The\n"
    "page comes with a lecture of ten stops; --lecture replaces it by a text file:\n"
    "  # Title\n"
    "  ## Title of a stop\n"
    "  @ view=compute&step=project&head=3\n"
    "  Text of the stop. The line @ is what the page's address has after its #.\n"
    "\n"
    "--live writes the page of \"mha serve\" as one file, with the model and the code that runs "
    "it:\n"
    "type other sentences, disable heads, without a server or a network. It begins with TEXT, or\n"
    "with an example. The numbers are those of MHA_ISA=c. --store q8 rounds the matrices of a "
    "model\n"
    "in a folder to 8 bits, for a smaller page.\n"
    "\n"
    "Examples:\n"
    "  mha view \"The cat that I saw yesterday ran away.\"\n"
    "  mha view -o cats.html \"The black cat sleeps.\" \"The black cats sleep.\"\n"
    "  mha view --to \"Le chat dort.\" \"The cat sleeps.\"\n"
    "  mha ablate --json > cost.json\n"
    "  mha view --model lab --ablation cost.json \"the cat sleeps\"\n"
    "  mha view --model all-MiniLM-L6-v2 \"The tired cat ran away.\"\n"
    "  mha view --live --model lab -o live.html\n"
    "  mha view --live --store q8 --model all-MiniLM-L6-v2 -o live.html\n"
    "  mha view --weights bert.safetensors --tokens words.json -o bert.html\n"
    "  mha view --model lab --layer 2 --lecture talk.txt \"the cat sleeps\"\n";

typedef struct view_request {
    const char *model_file, *target, *output, *store;
    const char *weights, *tokens, *ablation, *texts, *lecture; /* files; NULL: none */
    int64_t threads, study, layer;
    bool words, live;
    bool joined; /* the text is words that were given one by one */
} view_request;

typedef struct view_run {
    const view_request *request;
    session session;
    page_sentence *sentences; /* [count] */
    page_steps *steps;        /* [count] */
    page_matrices matrices;
    int count;
    page_study study;
    char study_file[MODEL_SENTENCES_MAX]; /* which the page names */
    page_ablation ablation;
    page_import *import; /* instead of a model */
    page_lecture lecture;
    page_examples examples; /* of a live page of a model that reads pictures */
} view_run;

static bool out_of_memory(void)
{
    fprintf(stderr, "mha: out of memory\n");
    return false;
}

/* Prints a message that may quote a file: control characters become "?". Returns false. */
static bool failed(const char *message)
{
    fputs("mha: ", stderr);
    while (*message != '\0') {
        uint32_t c;
        const size_t length = text_decode(message, &c);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            fputc('?', stderr);
        else
            fwrite(message, 1, length, stderr);
        message += length;
    }
    fputc('\n', stderr);
    return false;
}

/* Translates a text and captures its heads; false after a message. */
static bool fill_sentence(view_run *run, int n, const char *text)
{
    char message[SUBJECT_MESSAGE_MAX];
    const page_example *const example = run->examples.count > 0 ? run->examples.list : NULL;
    const pair_request request = {.text = example != NULL ? example->name : text,
                                  .target = run->request->target,
                                  .picture = example != NULL ? example->bytes : NULL};
    const bool fine = page_sentence_make(&run->sentences[n], &run->session.subject, &request,
                                         PAGE_EFFECTS_COST, run->session.pool, message);
    progress_end();
    if (fine)
        subject_warn(&run->session.subject, &run->sentences[n].text);
    else
        fprintf(stderr, "mha: %s\n", message);
    return fine;
}

/* The layers whose computation the page has, from 0: that of the request, or the last one of kinds
 * that have fewer. */
static void find_layers(const view_run *run, int layers[ATTENTION_KINDS])
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const int last = run->session.subject.shape.layers[kind] - 1;
        layers[kind] = run->request->layer <= last ? (int)run->request->layer - 1 : last;
    }
}

/* Models of scenes keep only the weights of their cross heads. */
static bool has_computation(const view_run *run)
{
    return run->request->layer > 0 && run->session.scenes == NULL;
}

/* The computation of all sentences; false after a message. */
static bool make_steps(view_run *run)
{
    const uint8_t *const changes[ATTENTION_KINDS] = {NULL};
    const subject *const model = &run->session.subject;
    int layers[ATTENTION_KINDS];
    find_layers(run, layers);
    bool fine = page_matrices_make(&run->matrices, model, layers, false);
    for (int n = 0; fine && n < run->count; n++)
        fine = page_steps_make(&run->steps[n], model, &run->sentences[n].text, changes, layers,
                               run->session.pool);
    return fine || out_of_memory();
}

/* What was written and how large it is. */
static void report(const view_run *run)
{
    struct stat about;
    const page_heads shape = page_heads_of(&run->session.subject, run->import);
    const int sentences = run->import != NULL ? 1 : run->count;
    int heads = 0;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        heads += shape.layers[kind] * shape.heads[kind];
    const long long kilobytes =
        stat(run->request->output, &about) == 0 ? ((long long)about.st_size + 1023) / 1024 : 0;
    const char *const unit = run->session.subject.reads_pictures ? "picture" : "sentence";
    printf("%s: %d head%s, %d %s%s, %lld KB; open it in a browser\n", run->request->output, heads,
           heads == 1 ? "" : "s", sentences, unit, sentences == 1 ? "" : "s", kilobytes);
}

static bool write_text(const view_run *run, const char *text)
{
    live_engine engine;
    if (!run->request->live)
        return output_file_write(run->request->output, page_write, text);
    bool fine = live_engine_open(&engine, &run->session);
    if (fine) {
        const page_live page = live_engine_page(&engine, text);
        fine = output_file_write(run->request->output, page_write_live, &page);
    }
    live_engine_close(&engine);
    return fine;
}

/* The page contains the command that makes it again, so it is rebuilt from the request. */
static bool write_page(const view_run *run)
{
    const view_request *const r = run->request;
    const page_command call = {.output = r->output,
                               .model_file = r->model_file,
                               .target = run->count > 0 ? run->sentences[0].text.given : NULL,
                               .weights = r->weights,
                               .tokens = r->tokens,
                               .ablation = r->ablation,
                               .texts = r->texts,
                               .lecture = r->lecture,
                               .store = r->store,
                               .words = r->words,
                               .live = r->live,
                               .study = (int)r->study,
                               .examples = run->examples.list,
                               .example_count = run->examples.count,
                               .layer = (int)r->layer};
    const bool has_steps = run->import == NULL && !r->live && has_computation(run);
    char *const command = page_command_text(&call, run->sentences, run->count);
    const page_data page = {.subject = run->import == NULL ? &run->session.subject : NULL,
                            .command = command,
                            .words = r->words,
                            .study = run->study.heads != NULL ? &run->study : NULL,
                            .ablation = r->ablation != NULL ? &run->ablation : NULL,
                            .import = run->import,
                            .sentences = run->sentences,
                            .steps = has_steps ? run->steps : NULL,
                            .matrices = has_steps ? &run->matrices : NULL,
                            .lecture = &run->lecture,
                            .examples = run->examples.list,
                            .example_count = run->examples.count,
                            .count = run->count};
    char *const text = command != NULL ? page_json(&page) : NULL;
    const bool fine = text != NULL ? write_text(run, text) : out_of_memory();
    free(text);
    free(command);
    if (fine)
        report(run);
    return fine;
}

static bool make_room(view_run *run)
{
    run->sentences = calloc((size_t)run->count, sizeof *run->sentences);
    run->steps = calloc((size_t)run->count, sizeof *run->steps);
    return run->sentences != NULL && run->steps != NULL;
}

static void free_room(view_run *run)
{
    for (int n = 0; run->sentences != NULL && n < run->count; n++)
        page_sentence_free(&run->sentences[n], &run->session.subject);
    free(run->sentences);
    for (int n = 0; run->steps != NULL && n < run->count; n++)
        page_steps_free(&run->steps[n]);
    free(run->steps);
    page_matrices_free(&run->matrices);
    page_study_free(&run->study);
    page_ablation_free(&run->ablation);
    page_lecture_free(&run->lecture);
}

/* Read before the translations, so that a wrong file is reported at once. */
static bool read_ablation(view_run *run)
{
    char message[TEXT_FILE_MESSAGE_MAX];
    const page_heads shape = page_heads_of(&run->session.subject, run->import);
    if (run->request->ablation == NULL)
        return true;
    return page_ablation_read(&run->ablation, run->request->ablation, &shape, message) ||
           failed(message);
}

/* The lecture of a file, or our own. */
static bool read_lecture(view_run *run)
{
    char message[TEXT_FILE_MESSAGE_MAX];
    return page_lecture_read(&run->lecture, run->request->lecture,
                             run->session.subject.reads_pictures, message) ||
           failed(message);
}

/* The roles on the texts of a file, or on sentences that come with the model; of a model without
 * them they are those on the sentences themselves. */
static bool study_texts(view_run *run)
{
    text_set set;
    bool fine = text_set_read_study(&set, &run->session, run->request->texts, run->request->study,
                                    run->study_file) == EXIT_GO_ON;
    const subject_texts texts = text_set_texts(&set);
    if (fine && texts.count > 0)
        fine = page_study_texts(&run->study, &run->session.subject, &texts, run->study_file,
                                run->session.pool) == MHA_OK ||
               out_of_memory();
    text_set_free(&set, &run->session);
    return fine;
}

/* Finds the roles; a model that is too short for the corpus needs --study 0. Other models than
 * translators have no corpus. */
static bool make_study(view_run *run)
{
    if (run->request->texts != NULL || run->session.model == NULL)
        return study_texts(run);
    const mha_status status = page_study_make(&run->study, &run->session.subject,
                                              (int)run->request->study, run->session.pool);
    if (status == MHA_OK)
        return true;
    if (status != MHA_ERR_LENGTH)
        return out_of_memory();
    heads_too_short(run->session.model);
    fprintf(stderr, "mha: --study 0 makes a page without roles\n");
    return false;
}

/* All sentences, then the study, then the page. Frees what it made. */
static bool make_page(view_run *run, char **texts)
{
    bool fine = (make_room(run) || out_of_memory()) && read_ablation(run) && read_lecture(run);
    for (int n = 0; fine && n < run->count; n++) {
        progress("%s %d of %d", run->session.subject.reads_pictures ? "picture" : "sentence", n + 1,
                 run->count);
        fine = fill_sentence(run, n, texts[n]);
    }
    if (fine && run->request->study > 0)
        fine = make_study(run);
    if (fine && has_computation(run))
        fine = make_steps(run);
    fine = fine && write_page(run);
    free_room(run);
    return fine;
}

/* A page of a file of weights: there is no model, and no sentence but the one in the file. */
static int run_import(const view_request *r)
{
    char message[TEXT_FILE_MESSAGE_MAX];
    view_run run = {.request = r};
    if (!output_file_check(r->output))
        return EXIT_FAILED;
    if ((run.import = page_import_open(r->weights, r->tokens, message)) == NULL) {
        failed(message);
        return EXIT_FAILED;
    }
    const bool fine = read_ablation(&run) && read_lecture(&run) && write_page(&run);
    free_room(&run);
    page_import_close(run.import);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

/* The first sentence of a live page is computed as the browser computes the others: with the
 * kernels that have the same bits. To be called before the model is opened. */
static bool prepare_live(void)
{
    return setenv("MHA_ISA", "c", 1) == 0;
}

/* What can be wrong with a live page is found out before anything is computed. */
static int prepare_live_page(view_run *run, char **texts, int count)
{
    char module[MODEL_PATH_MAX];
    int code = EXIT_GO_ON;
    if (run->session.subject.reads_pictures) {
        code = page_examples_read(&run->examples, &run->session, texts, count);
        run->count = 1;
    } else if (count > 1) {
        code = args_wrong("view: a live page begins with one sentence, not with %d", count);
    }
    return code != EXIT_GO_ON || model_path_find_module(module) ? code : EXIT_FAILED;
}

/* The pictures of a model that reads them: words that were joined into one sentence are the names
 * of several. names[] points into `joined`, which is cut, and has room for SENTENCES_MAX. */
static int split_names(char *joined, char **names)
{
    int count = 0;
    for (char *name = strtok(joined, " "); name != NULL; name = strtok(NULL, " ")) {
        if (count < SENTENCES_MAX)
            names[count] = name;
        count++;
    }
    return count;
}

/* What pages of models of scenes cannot have. */
static int check_scenes(const view_request *r, int count)
{
    if (r->live)
        return args_wrong("view: --live: models of captions and detectors have no live page; leave "
                          "it out");
    if (r->texts != NULL || r->ablation != NULL)
        return args_wrong(
            "view: heads of models of captions and detectors have no roles; leave out "
            "--texts and --ablation");
    return count > 0 ? EXIT_GO_ON : args_wrong("view: which picture? Give PNG files");
}

static int run_command(const view_request *r, const char *model_file, char **texts, int count)
{
    char *names[SENTENCES_MAX];
    view_run run = {.request = r, .count = count > 0 ? count : 1};
    int code = session_open_view(&run.session, model_file, SHIPPED_TRANSLATOR, r->threads);
    if (code == EXIT_GO_ON && run.session.subject.reads_pictures && r->joined) {
        run.count = count = split_names(texts[0], names);
        texts = names;
        if (count > SENTENCES_MAX)
            code = args_wrong("view: %d pictures; a page has room for %d", count, SENTENCES_MAX);
    }
    if (code == EXIT_GO_ON && run.session.scenes != NULL)
        code = check_scenes(r, count);
    if (code == EXIT_GO_ON && r->live)
        code = prepare_live_page(&run, texts, count);
    char *first = (char *)run.session.subject.first_text;
    if (code == EXIT_GO_ON)
        code = make_page(&run, count > 0 ? texts : &first) ? EXIT_FINE : EXIT_FAILED;
    page_examples_free(&run.examples);
    session_close(&run.session);
    return code;
}

/* The same for the model, or for a copy with smaller weights. */
static int run_model(const view_request *r, char **texts, int count)
{
    small_model copy;
    if (!output_file_check(r->output) || (r->live && !prepare_live()))
        return EXIT_FAILED;
    if (r->store == NULL)
        return run_command(r, r->model_file, texts, count);
    int code = small_model_make(&copy, r->model_file, r->output);
    if (code == EXIT_GO_ON)
        code = run_command(r, copy.path, texts, count);
    small_model_remove(&copy);
    return code;
}

/* Which options go together, and how many sentences there may be. */
static int check(const arg_command *command, const view_request *r, int words)
{
    if (r->weights != NULL && words > 0)
        return args_wrong("view: --weights shows a file, not a sentence; leave one of them out");
    if (r->weights != NULL)
        return args_refuse(command, "to model study texts layer threads live store",
                           "is for a model; leave it out with --weights");
    if (r->store != NULL && !r->live)
        return args_wrong("view: --store is for the weights in a live page; add --live");
    if (r->store != NULL && strcmp(r->store, "q8") != 0)
        return args_wrong("view: weights in a page are stored as in the model's files, or as q8");
    if (words > SENTENCES_MAX)
        return args_wrong("view: %d sentences; a page has room for %d", words, SENTENCES_MAX);
    if (r->live)
        return args_refuse(command, "to tokens",
                           "is not for a live page; leave it out with --live");
    if (words == 0)
        return args_wrong("view: TEXT is missing; usage: mha view %s", command->usage);
    if (r->target != NULL && words > 1)
        return args_wrong("view: --to is the translation of one sentence, not of %d", words);
    return args_refuse(command, "tokens", "names the words of a weights file; it needs --weights");
}

int command_view(int argc, char **argv)
{
    view_request r = {.output = "view.html", .study = PAGE_STUDY_SENTENCES, .layer = 1};
    const arg_option options[] = {
        {"o", ARG_TEXT, &r.output, "FILE", "the page to write (view.html)", 0, 0},
        {"to", ARG_TEXT, &r.target, "FRENCH", "what the decoder reads (the model's translation)", 0,
         0},
        {OPTION_MODEL(&r.model_file, "en-fr")},
        {"study", ARG_NUMBER, &r.study, "N",
         "find roles on N corpus sentences or texts (200; 0: none)", 0, 100000},
        {OPTION_TEXTS(&r.texts)},
        {"ablation", ARG_TEXT, &r.ablation, "FILE", "the output of \"mha ablate --json\"", 0, 0},
        {"weights", ARG_TEXT, &r.weights, "FILE", "attention weights to show instead of a model", 0,
         0},
        {"tokens", ARG_TEXT, &r.tokens, "FILE", "the words for --weights (1, 2, ...)", 0, 0},
        {"lecture", ARG_TEXT, &r.lecture, "FILE", "a lecture to give with the page (our own)", 0,
         0},
        {"layer", ARG_NUMBER, &r.layer, "N",
         "the layer that the view Compute shows step by step (1; 0: none)", 0, 100000},
        {"live", ARG_FLAG, &r.live, NULL, "put the model into the page: it answers by itself", 0,
         0},
        {"store", ARG_TEXT, &r.store, "TYPE",
         "weights in a live page as q8, of 8 bits (as the model's files)", 0, 0},
        {"words", ARG_FLAG, &r.words, NULL, "begin with the tokens of a word joined", 0, 0},
        {OPTION_THREADS(&r.threads)},
    };
    uint64_t given = 0;
    const arg_command command = {
        .name = "view",
        .usage = "[OPTION...] TEXT...",
        .summary = "Write a web page that shows every head on a sentence.",
        .details = details,
        ARG_OPTIONS(options),
        .words_min = 0,
        .words_max = 1024,
        .given = &given,
    };
    int words;
    char *joined;
    int code = options_parse_sentences(&command, argc, argv, &words, &joined);
    if (code != EXIT_GO_ON)
        return code;
    r.joined = joined != NULL;
    code = check(&command, &r, words);
    if (code == EXIT_GO_ON)
        code = r.weights != NULL ? run_import(&r) : run_model(&r, argv + 1, words);
    free(joined);
    return code;
}
