/* SPDX-License-Identifier: MIT */
/*
 * mha train: a translator from nothing.
 *
 *      options --> request --> training, new or from its checkpoint
 *      train_loop()            all steps, or an interrupt
 *      finish()                model file, accuracy, what to try next
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "base/output_file.h"
#include "base/shell_quote.h"
#include "model/accuracy.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/options.h"
#include "program/session.h"
#include "program/train_loop.h"

#define OUTPUT "models/en-fr.safetensors"

enum { PATH_MAX_LENGTH = 4096, HELP_MAX = 96, VALIDATION_MAX = 256, NOTES = TRAINING_SETTINGS + 2 };

static const char details[] =
    "The sentences come from the grammar of \"mha corpus\". All of a training follows from its\n"
    "settings: the same settings give the same bits on the same instruction set, whatever the\n"
    "number of threads, stopped and resumed or not. Ctrl-C saves a checkpoint and ends;\n"
    "--resume goes on from it.\n"
    "A checkpoint is kept beside the model until that is written.\n"
    "\n"
    "Examples:\n"
    "  mha train\n"
    "  mha train --resume\n"
    "  mha train -o small.safetensors --width 64 --heads 4 --ff 256 --steps 2000 --curve "
    "loss.svg\n";

/* The settings that options give, with what stands for their value and what they are. */
static const struct {
    const char *name, *value, *help;
} setting_options[] = {
    {"steps", "N", "steps of training"},
    {"batch", "N", "sentence pairs a step"},
    {"width", "N", "width of the model"},
    {"heads", "N", "heads of each attention"},
    {"ff", "N", "width inside the feed-forward"},
    {"encoder-layers", "N", "layers of the encoder"},
    {"decoder-layers", "N", "layers of the decoder"},
    {"lr", "X", "learning rate at its highest"},
    {"warm-up", "N", "steps until it is reached, at most a tenth"},
    {"dropout", "P", "share that is dropped"},
    {"label-smoothing", "P", "share of the target that is spread out"},
    {"weight-decay", "X", "decay of matrices"},
    {"clip", "X", "largest norm of the gradient, 0: any"},
    {"seed", "N", "seed of everything"},
    {"pairs", "N", "different sentence pairs, 0: ever new ones"},
    {"unknown", "P", "share of sentences with an unknown word"},
};
enum { SETTING_OPTIONS = sizeof setting_options / sizeof setting_options[0], OTHER_OPTIONS = 12 };

typedef struct train_request {
    const char *given[TRAINING_SETTINGS]; /* NULL: not given */
    const char *layers;                   /* of both sides */
    const char *output, *checkpoint, *curve, *log, *every, *type_name;
    int64_t threads, evaluate;
    bool resume, force, quiet;

    char checkpoint_path[PATH_MAX_LENGTH]; /* where none is given */
    int64_t every_steps;
    double every_seconds;
    mha_dtype type;
    training_config config; /* without --resume */
} train_request;

/* ------------------------------------------------------------- options ----- */

typedef char option_help[HELP_MAX];

static int list_options(train_request *r, arg_option *options, option_help *help)
{
    const training_config config = training_defaults();
    char text[TRAINING_TEXT_MAX];
    int count = 0;
    options[count++] =
        (arg_option){"o", ARG_TEXT, &r->output, "FILE", "the model (" OUTPUT ")", 0, 0};
    for (int n = 0; n < SETTING_OPTIONS; n++) {
        const int number = training_setting_find(setting_options[n].name);
        training_setting_text(&config, number, text);
        snprintf(help[n], HELP_MAX, "%s (%s)", setting_options[n].help, text);
        options[count++] = (arg_option){setting_options[n].name,
                                        ARG_TEXT,
                                        &r->given[number],
                                        setting_options[n].value,
                                        help[n],
                                        0,
                                        0};
    }
    const arg_option others[] = {
        {"layers", ARG_TEXT, &r->layers, "N", "layers of each side", 0, 0},
        {OPTION_THREADS(&r->threads)},
        {"resume", ARG_FLAG, &r->resume, NULL, "go on from the checkpoint", 0, 0},
        {"force", ARG_FLAG, &r->force, NULL, "replace a model that is there", 0, 0},
        {"checkpoint", ARG_TEXT, &r->checkpoint, "FILE", "the checkpoint (beside the model)", 0, 0},
        {"checkpoint-every", ARG_TEXT, &r->every, "T", "minutes as 5m, or steps as 500 (5m)", 0, 0},
        {"curve", ARG_TEXT, &r->curve, "FILE", "draw the loss over the steps, as SVG", 0, 0},
        {"log", ARG_TEXT, &r->log, "FILE", "write the loss of every step, as CSV", 0, 0},
        {"type", ARG_TEXT, &r->type_name, "T", "numbers of the model, f16 or f32 (f16)", 0, 0},
        {"evaluate", ARG_NUMBER, &r->evaluate, "N", "validation sentences (1000)", 1, 1000000},
        {"quiet", ARG_FLAG, &r->quiet, NULL, "no progress", 0, 0},
    };
    for (size_t n = 0; n < sizeof others / sizeof others[0]; n++)
        options[count++] = others[n];
    return count;
}

static int parse(train_request *r, int argc, char **argv)
{
    arg_option options[SETTING_OPTIONS + OTHER_OPTIONS];
    option_help help[SETTING_OPTIONS];
    const arg_command command = {
        .name = "train",
        .usage = "[-o FILE] [--resume] [OPTION...]",
        .summary = "Train an English-French translator from nothing.",
        .details = details,
        .options = options,
        .option_count = list_options(r, options, help),
    };
    return args_parse(&command, argc, argv, NULL);
}

/* ------------------------------------------------------------ checking ----- */

/* As in "steps 0: ...". */
static bool begins_with_setting(const char *message)
{
    char name[TRAINING_TEXT_MAX];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(message, " "), message);
    return training_setting_find(name) >= 0;
}

static int read_settings(train_request *r)
{
    const int both[] = {training_setting_find("encoder-layers"),
                        training_setting_find("decoder-layers")};
    for (int n = 0; n < 2 && r->layers != NULL; n++) {
        if (r->given[both[n]] != NULL)
            return args_wrong("train: --layers is for both sides; leave out --%s",
                              training_setting_name(both[n]));
        r->given[both[n]] = r->layers;
    }
    r->config = training_defaults();
    for (int n = 0; n < TRAINING_SETTINGS; n++)
        if (r->given[n] != NULL && !training_setting_read(&r->config, n, r->given[n]))
            return args_wrong("train: --%s %s: not a number that it takes",
                              training_setting_name(n), r->given[n]);
    if (r->given[training_setting_find("warm-up")] == NULL &&
        r->config.warm_up > r->config.steps / 10)
        r->config.warm_up = r->config.steps / 10;
    char message[TRANSFORMER_MESSAGE_MAX];
    if (!r->resume && !training_config_check(&r->config, message))
        return args_wrong("train: %s%s", begins_with_setting(message) ? "--" : "", message);
    return EXIT_GO_ON;
}

static int read_type(train_request *r)
{
    const bool half = strcmp(r->type_name, "f16") == 0;
    if (!half && strcmp(r->type_name, "f32") != 0)
        return args_wrong("train: --type %s: a model has f16 or f32", r->type_name);
    r->type = half ? MHA_F16 : MHA_F32;
    return EXIT_GO_ON;
}

static int read_every(train_request *r)
{
    char *end;
    const double number = strtod(r->every, &end);
    const bool minutes = end[0] == 'm' && end[1] == '\0';
    if (end == r->every || !(number > 0.0 && number < 1e9) || (!minutes && *end != '\0') ||
        (!minutes && number != (double)(int64_t)number))
        return args_wrong("train: --checkpoint-every %s: minutes as 5m, or steps as 500", r->every);
    r->every_steps = minutes ? 0 : (int64_t)number;
    r->every_seconds = 60.0 * number;
    return EXIT_GO_ON;
}

/* "models/en-fr.safetensors" -> "models/en-fr.checkpoint.safetensors" */
static int name_checkpoint(train_request *r)
{
    static const char suffix[] = ".safetensors";
    const size_t all = strlen(r->output), end = sizeof suffix - 1;
    const bool has = all > end && strcmp(r->output + all - end, suffix) == 0;
    if (r->checkpoint != NULL)
        return EXIT_GO_ON;
    if (all + sizeof ".checkpoint.safetensors" > sizeof r->checkpoint_path)
        return args_wrong("train: the name of the model is too long");
    snprintf(r->checkpoint_path, sizeof r->checkpoint_path, "%.*s.checkpoint%s",
             (int)(has ? all - end : all), r->output, suffix);
    r->checkpoint = r->checkpoint_path;
    return EXIT_GO_ON;
}

/* The same name in the same folder, however that is spelt. */
static bool same_place(const char *a, const char *b)
{
    struct stat folder_a, folder_b;
    char copy_a[PATH_MAX_LENGTH], copy_b[PATH_MAX_LENGTH];
    snprintf(copy_a, sizeof copy_a, "%s", a);
    snprintf(copy_b, sizeof copy_b, "%s", b);
    if (strcmp(basename(copy_a), basename(copy_b)) != 0)
        return false;
    snprintf(copy_a, sizeof copy_a, "%s", a);
    snprintf(copy_b, sizeof copy_b, "%s", b);
    return stat(dirname(copy_a), &folder_a) == 0 && stat(dirname(copy_b), &folder_b) == 0 &&
           folder_a.st_dev == folder_b.st_dev && folder_a.st_ino == folder_b.st_ino;
}

/* No two files in one place; and all can be written, before hours are spent on them. */
static int check_files(const train_request *r)
{
    const char *const paths[] = {r->output, r->checkpoint, r->curve, r->log};
    for (int n = 0; n < 4; n++)
        for (int other = 0; other < n; other++)
            if (paths[n] != NULL && paths[other] != NULL && same_place(paths[n], paths[other]))
                return args_wrong("train: %s cannot be two things at once", paths[n]);
    for (int n = 0; n < 4; n++)
        if (paths[n] != NULL && !output_file_check(paths[n]))
            return EXIT_FAILED;
    return EXIT_GO_ON;
}

/* What is there already is not lost by a slip. Under the locks: it may be another training's. */
static int check_there(const train_request *r)
{
    struct stat there;
    if (r->resume && stat(r->checkpoint, &there) != 0 && errno == ENOENT) {
        fprintf(stderr,
                "mha: there is no checkpoint %s to go on from; without --resume a training begins "
                "anew\n",
                r->checkpoint);
        return EXIT_FAILED;
    }
    if (!r->force && stat(r->output, &there) == 0) {
        fprintf(stderr, "mha: there is a model: %s. -o FILE writes another, --force replaces it\n",
                r->output);
        return EXIT_FAILED;
    }
    if (!r->resume && stat(r->checkpoint, &there) == 0) {
        fprintf(stderr,
                "mha: there is a checkpoint: %s. Go on from it with --resume, or delete it to "
                "begin anew\n",
                r->checkpoint);
        return EXIT_FAILED;
    }
    return EXIT_GO_ON;
}

static int check(train_request *r)
{
    int code = read_settings(r);
    if (code == EXIT_GO_ON)
        code = read_type(r);
    if (code == EXIT_GO_ON)
        code = read_every(r);
    if (code == EXIT_GO_ON)
        code = name_checkpoint(r);
    if (code == EXIT_GO_ON)
        code = check_files(r);
    return code;
}

/* -------------------------------------------------------------- resume ----- */

/* Settings may be given again, but not others: the training would not be the one it was. */
static int compare_settings(const train_request *r, const training_config *config)
{
    char was[TRAINING_TEXT_MAX], now[TRAINING_TEXT_MAX];
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        if (r->given[n] == NULL)
            continue;
        training_setting_text(config, n, was);
        training_setting_text(&r->config, n, now);
        if (strcmp(was, now) != 0)
            return args_wrong("train: --%s %s: the checkpoint was made with %s; leave it out, or "
                              "delete %s to begin anew",
                              training_setting_name(n), now, was, r->checkpoint);
    }
    return EXIT_GO_ON;
}

static void say_resumed(const train_request *r, const training *t)
{
    const char *const isa = training_loaded_isa(t);
    if (!r->quiet)
        fprintf(stderr, "resumed from %s after step %" PRId64 "\n", r->checkpoint,
                training_steps_done(t));
    if (strcmp(isa, mha_isa_name()) != 0)
        fprintf(
            stderr,
            "mha: note: the checkpoint was made with %s, and this is %s: the model will differ "
            "in some bits from one made in one go. MHA_ISA=%s forces the former where it runs\n",
            isa, mha_isa_name(), isa);
}

static int begin(const train_request *r, mha_pool *pool, training **made)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    *made = r->resume ? training_load(r->checkpoint, pool, message)
                      : training_create(&r->config, pool, message);
    if (*made == NULL) {
        fprintf(stderr, "mha: %s\n", message);
        return EXIT_FAILED;
    }
    const int code = compare_settings(r, training_get_config(*made));
    if (code == EXIT_GO_ON && r->resume)
        say_resumed(r, *made);
    return code;
}

/* -------------------------------------------------------------- finish ----- */

static mha_status save_model(const train_request *r, const training *t)
{
    const training_config *const config = training_get_config(t);
    char names[NOTES][TRAINING_TEXT_MAX], texts[NOTES][TRAINING_TEXT_MAX];
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    translator_note notes[NOTES];
    int count = 0;
    for (; count < TRAINING_SETTINGS; count++) {
        snprintf(names[count], sizeof names[count], "training.%s", training_setting_name(count));
        training_setting_text(config, count, texts[count]);
    }
    const training_history history = training_get_history(t);
    if (history.mark_count > 0) {
        const training_mark *const last = &history.marks[history.mark_count - 1];
        snprintf(names[count], sizeof names[count], "validation.loss");
        snprintf(texts[count++], sizeof texts[0], "%.6g", last->loss);
        snprintf(names[count], sizeof names[count], "validation.words-right");
        snprintf(texts[count++], sizeof texts[0], "%.6g", last->words_right);
    }
    for (int n = 0; n < count; n++)
        notes[n] = (translator_note){names[n], texts[n]};
    const mha_status status = translator_save(r->output, &config->model, training_values(t),
                                              r->type, notes, count, message);
    if (status != MHA_OK)
        fprintf(stderr, "mha: no model: %s\n", message);
    return status;
}

/* After a model that could not be written, when the training is saved. */
static void say_what_to_do(const train_request *r, mha_status status)
{
    if (status != MHA_ERR_FORMAT)
        fprintf(stderr, "mha: the training is saved in %s; --resume tries again\n", r->checkpoint);
    else if (r->type == MHA_F16)
        fprintf(stderr,
                "mha: f16 goes up to 65504, and this training has gone beyond. It is saved in %s; "
                "\"--resume --type f32\" writes it as it is. A lower --lr, another --seed or more "
                "--weight-decay keeps a new training smaller\n",
                r->checkpoint);
    else
        fprintf(stderr,
                "mha: the training has diverged. The same settings would go the same way: delete "
                "%s and begin anew with a lower --lr, a longer --warm-up or another --seed\n",
                r->checkpoint);
}

static void report(const train_request *r, const training *t)
{
    const training_config *const config = training_get_config(t);
    const training_history history = training_get_history(t);
    transformer_map map;
    struct stat file = {.st_size = 0};
    transformer_map_fill(&map, &config->model);
    stat(r->output, &file);
    printf("%s: %zu parameters as %s, %.2f MB\n", r->output, map.count, r->type_name,
           (double)file.st_size / 1e6);
    printf("steps              %" PRId64 " of %d pairs, seed %" PRIu64 "\n", config->steps,
           config->batch, config->seed);
    if (history.mark_count > 0) {
        const training_mark *const last = &history.marks[history.mark_count - 1];
        printf("validation loss    %.4f nats a word\n", last->loss);
        printf("words right        %.2f %%\n", 100.0 * last->words_right);
    }
}

/* What was written is what is judged. */
static int judge(const train_request *r, uint64_t seed, mha_pool *pool)
{
    static const translation_options greedy = {.beam = 1};
    char message[TRANSFORMER_MESSAGE_MAX];
    translator *const made = translator_load(r->output, message);
    int64_t right;
    if (made == NULL) {
        fprintf(stderr, "mha: %s\n", message);
        return EXIT_FAILED;
    }
    const mha_status status =
        accuracy_measure(made, seed, CORPUS_VALID, r->evaluate, &greedy, pool, &right);
    translator_free(made);
    if (status != MHA_OK) {
        fprintf(stderr, "mha: the model does not translate: %s\n", mha_status_string(status));
        return EXIT_FAILED;
    }
    printf("sentences right    %.2f %% (%" PRId64 " of %" PRId64
           " of the validation set, every word)\n",
           100.0 * (double)right / (double)r->evaluate, right, r->evaluate);
    return EXIT_FINE;
}

static void say_next(const train_request *r)
{
    const char *const option = strcmp(r->output, OUTPUT) == 0 ? "" : " --model ";
    printf("\nTry: %s translate%s%s \"the cat that i saw yesterday ran away\"\n", args_program,
           option, *option != '\0' ? r->output : "");
}

static int finish(const train_request *r, const train_loop_job *job, mha_pool *pool)
{
    const mha_status status = save_model(r, job->training);
    if (status != MHA_OK) {
        if (train_loop_save(job) == EXIT_FINE)
            say_what_to_do(r, status);
        return EXIT_FAILED;
    }
    if (unlink(r->checkpoint) != 0 && errno != ENOENT)
        fprintf(stderr, "mha: cannot delete %s: %s\n", r->checkpoint, strerror(errno));
    report(r, job->training);
    fflush(stdout);
    const int code = judge(r, training_get_config(job->training)->seed, pool);
    if (code == EXIT_FINE)
        say_next(r);
    return train_loop_draw(job) == EXIT_FINE ? code : EXIT_FAILED;
}

/* ------------------------------------------------------------- command ----- */

static void say_how_to_go_on(const train_request *r, int argc, char **argv)
{
    fputs("go on with: ", stderr);
    shell_quote_if_needed(stderr, args_program);
    for (int n = 0; n < argc; n++) {
        fputc(' ', stderr);
        shell_quote_if_needed(stderr, argv[n]);
    }
    fprintf(stderr, "%s\n", r->resume ? "" : " --resume");
}

static int run(const train_request *r, mha_pool *pool, int argc, char **argv)
{
    train_loop_job job = {.checkpoint = r->checkpoint,
                          .curve = r->curve,
                          .log = r->log,
                          .every_steps = r->every_steps,
                          .every_seconds = r->every_seconds,
                          .validation = r->evaluate < VALIDATION_MAX ? r->evaluate : VALIDATION_MAX,
                          .quiet = r->quiet};
    int code = begin(r, pool, &job.training);
    if (code == EXIT_GO_ON)
        code = train_loop(&job);
    if (code == EXIT_GO_ON)
        code = finish(r, &job, pool);
    else if (code > 128)
        say_how_to_go_on(r, argc, argv);
    training_free(job.training);
    return code;
}

static int run_with_threads(const train_request *r, int argc, char **argv)
{
    mha_pool *pool;
    int code = session_open_pool(&pool, r->threads);
    if (code == EXIT_GO_ON)
        code = run(r, pool, argc, argv);
    mha_pool_free(pool);
    return code;
}

int command_train(int argc, char **argv)
{
    train_request r = {.output = OUTPUT, .every = "5m", .type_name = "f16", .evaluate = 1000};
    file_lock model = {.name = NULL}, checkpoint = {.name = NULL};
    int code = parse(&r, argc, argv);
    if (code == EXIT_GO_ON)
        code = check(&r);
    if (code != EXIT_GO_ON)
        return code;
    code = EXIT_FAILED;
    if (file_lock_take(&model, r.output, "training") &&
        file_lock_take(&checkpoint, r.checkpoint, "training"))
        code = check_there(&r);
    if (code == EXIT_GO_ON)
        code = run_with_threads(&r, argc, argv);
    file_lock_release(&checkpoint);
    file_lock_release(&model);
    return code;
}
