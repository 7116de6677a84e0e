/* SPDX-License-Identifier: MIT */
/* The options of "mha train": those that are settings of a training (model/training.h) are made
 * from a table, with their defaults in the help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/options.h"
#include "program/train_request.h"

enum { HELP_MAX = 96 };

static const char details[] =
    "The sentences come from the grammar of \"mha corpus\". The settings determine a training\n"
    "completely: the same settings give the same bits on the same instruction set, for any number\n"
    "of threads, and whether or not the training was interrupted. Ctrl-C saves a checkpoint and\n"
    "ends the program; --resume continues from it. The checkpoint is kept next to the model until\n"
    "the model is written.\n"
    "\n"
    "Examples:\n"
    "  mha train\n"
    "  mha train --resume\n"
    "  mha train -o small.safetensors --width 64 --heads 4 --ff 256 --steps 2000 --curve "
    "loss.svg\n";

/* The settings that options can set: name, placeholder of the value, help. */
static const struct {
    const char *name, *value, *help;
} setting_options[] = {
    {"steps", "N", "training steps"},
    {"batch", "N", "sentence pairs per step"},
    {"width", "N", "width of the model"},
    {"heads", "N", "heads per attention"},
    {"ff", "N", "width of the feed-forward layer"},
    {"encoder-layers", "N", "layers of the encoder"},
    {"decoder-layers", "N", "layers of the decoder"},
    {"lr", "X", "peak learning rate"},
    {"warm-up", "N", "steps until the peak, at most a tenth"},
    {"dropout", "P", "dropout rate"},
    {"label-smoothing", "P", "share of the target spread over all words"},
    {"weight-decay", "X", "weight decay of matrices"},
    {"clip", "X", "largest gradient norm, 0: no limit"},
    {"seed", "N", "seed of all random numbers"},
    {"pairs", "N", "different sentence pairs, 0: no limit"},
    {"unknown", "P", "share of sentences with an unknown word"},
};
enum { SETTING_OPTIONS = sizeof setting_options / sizeof setting_options[0], OTHER_OPTIONS = 12 };

typedef char option_help[HELP_MAX];

/* Fills options[] and returns their number. help[] holds the texts with defaults, which must live
 * as long as the table. */
static int list_options(train_request *r, arg_option *options, option_help *help)
{
    const training_config config = training_defaults();
    char text[TRAINING_TEXT_MAX];
    int count = 0;
    options[count++] =
        (arg_option){"o", ARG_TEXT, &r->output, "FILE", "the model (" TRAIN_OUTPUT ")", 0, 0};
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
        {"layers", ARG_TEXT, &r->layers, "N", "layers of the encoder and of the decoder", 0, 0},
        {OPTION_THREADS(&r->threads)},
        {"resume", ARG_FLAG, &r->resume, NULL, "continue from the checkpoint", 0, 0},
        {"force", ARG_FLAG, &r->force, NULL, "replace an existing model", 0, 0},
        {"checkpoint", ARG_TEXT, &r->checkpoint, "FILE", "the checkpoint (next to the model)", 0,
         0},
        {"checkpoint-every", ARG_TEXT, &r->every, "T",
         "interval: minutes as in 5m, or steps as in 500 (5m)", 0, 0},
        {"curve", ARG_TEXT, &r->curve, "FILE", "draw the loss over the steps, as SVG", 0, 0},
        {"log", ARG_TEXT, &r->log, "FILE", "write the loss of every step, as CSV", 0, 0},
        {"type", ARG_TEXT, &r->type_name, "T", "type of the model's values, f16 or f32 (f16)", 0,
         0},
        {"evaluate", ARG_NUMBER, &r->evaluate, "N", "number of validation sentences (1000)", 1,
         1000000},
        {"quiet", ARG_FLAG, &r->quiet, NULL, "print no progress", 0, 0},
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
        .summary = "Train an English-French translator from scratch.",
        .details = details,
        .options = options,
        .option_count = list_options(r, options, help),
    };
    return args_parse(&command, argc, argv, NULL);
}

/* ------------------------------------------------------------ checking ----- */

/* Whether a message begins with the name of a setting, as in "steps 0: ...": it gets its dashes. */
static bool begins_with_setting(const char *message)
{
    char name[TRAINING_TEXT_MAX];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(message, " "), message);
    return training_setting_find(name) >= 0;
}

/* With --resume the checkpoint has the settings; those that are given are only compared with it,
 * so the combination is not checked here. A default warm-up is shortened for short trainings. */
static int read_settings(train_request *r)
{
    const int both[] = {training_setting_find("encoder-layers"),
                        training_setting_find("decoder-layers")};
    for (int n = 0; n < 2 && r->layers != NULL; n++) {
        if (r->given[both[n]] != NULL)
            return args_wrong("train: --layers sets the layers of both sides; leave out --%s",
                              training_setting_name(both[n]));
        r->given[both[n]] = r->layers;
    }
    r->config = training_defaults();
    for (int n = 0; n < TRAINING_SETTINGS; n++)
        if (r->given[n] != NULL && !training_setting_read(&r->config, n, r->given[n]))
            return args_wrong("train: --%s %s: not a valid number", training_setting_name(n),
                              r->given[n]);
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
        return args_wrong("train: --type %s: must be f16 or f32", r->type_name);
    r->type = half ? MHA_F16 : MHA_F32;
    return EXIT_GO_ON;
}

/* "5m" is minutes, "500" is steps; fractions are allowed for minutes only. */
static int read_every(train_request *r)
{
    char *end;
    const double number = strtod(r->every, &end);
    const bool minutes = end[0] == 'm' && end[1] == '\0';
    if (end == r->every || !(number > 0.0 && number < 1e9) || (!minutes && *end != '\0') ||
        (!minutes && number != (double)(int64_t)number))
        return args_wrong("train: --checkpoint-every %s: give minutes as in 5m, or steps as in 500",
                          r->every);
    r->every_steps = minutes ? 0 : (int64_t)number;
    r->every_seconds = 60.0 * number;
    return EXIT_GO_ON;
}

int train_options_read(train_request *r, int argc, char **argv)
{
    int code = parse(r, argc, argv);
    if (code == EXIT_GO_ON)
        code = read_settings(r);
    if (code == EXIT_GO_ON)
        code = read_type(r);
    if (code == EXIT_GO_ON)
        code = read_every(r);
    if (code == EXIT_GO_ON)
        code = train_files_name(r);
    if (code == EXIT_GO_ON)
        code = train_files_check(r);
    return code;
}
