/* SPDX-License-Identifier: MIT */
/* The options of "mha train": those that are settings of a training (model/training.h) are made
 * from a table, with their defaults in the help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/options.h"
#include "program/train_request.h"
#include "translator/marian_folder.h"

enum { HELP_MAX = 112 };

static const char details[] =
    "Without --pairs, the laboratory is trained: every sentence comes from a known grammar (\"mha\n"
    "corpus\"), so the true alignment and roles are known. With --pairs, real sentences are used:\n"
    "each line of FILE is a sentence, a tab and its translation, or \"A,B\" names two files with\n"
    "corresponding lines. A vocabulary of subwords is learnt from them, BLEU and chrF are printed\n"
    "during the training, and the model is written as a folder in Hugging Face's form, which "
    "other\n"
    "programs open too. --start FOLDER trains such a model further, on the same or other pairs:\n"
    "its sizes, tokenizer and weights are taken over, the learning rate begins again.\n"
    "\n"
    "The settings determine a training completely: the same settings and files give the same bits\n"
    "on the same instruction set, for any number of threads, and whether or not the training was\n"
    "interrupted. Ctrl-C saves a checkpoint and ends the program; --resume continues from it. The\n"
    "checkpoint is kept next to the model until the model is written.\n"
    "\n"
    "Examples:\n"
    "  mha train\n"
    "  mha train --resume\n"
    "  mha train -o small.safetensors --width 64 --heads 4 --ff 256 --steps 2000 --curve "
    "loss.svg\n"
    "  mha train --pairs train.tsv --valid valid.tsv -o my-translator\n"
    "  mha train --pairs mine.tsv --valid some.tsv --start models/en-fr --lr 3e-4 -o mine\n";

/* The settings that options can set: name, placeholder of the value, which kind of training they
 * are for, help. */
typedef enum setting_use { USE_BOTH, USE_LABORATORY, USE_PAIRS } setting_use;

static const struct {
    const char *name, *value;
    setting_use use;
    const char *help;
} setting_options[] = {
    {"steps", "N", USE_BOTH, "training steps"},
    {"batch", "N", USE_LABORATORY, "sentence pairs per step"},
    {"batch-tokens", "N", USE_PAIRS, "target tokens per step"},
    {"micro-batches", "N", USE_BOTH, "parts of a step; more need less memory"},
    {"width", "N", USE_BOTH, "width of the model"},
    {"heads", "N", USE_BOTH, "heads per attention"},
    {"ff", "N", USE_BOTH, "width of the feed-forward layer"},
    {"encoder-layers", "N", USE_BOTH, "layers of the encoder"},
    {"decoder-layers", "N", USE_BOTH, "layers of the decoder"},
    {"lr", "X", USE_BOTH, "peak learning rate"},
    {"warm-up", "N", USE_BOTH, "steps until the peak, at most a tenth"},
    {"schedule", "S", USE_BOTH, "after the peak: cosine or inverse-sqrt"},
    {"dropout", "P", USE_BOTH, "dropout rate"},
    {"head-dropout", "P", USE_BOTH, "dropout rate of whole heads"},
    {"bpe-dropout", "P", USE_PAIRS, "dropout rate of merges of subwords"},
    {"copy", "P", USE_PAIRS, "share of pairs with another name or number"},
    {"bare", "P", USE_PAIRS, "share of pairs without their final marks"},
    {"label-smoothing", "P", USE_BOTH, "share of the target spread over all words"},
    {"weight-decay", "X", USE_BOTH, "weight decay of matrices"},
    {"clip", "X", USE_BOTH, "largest gradient norm, 0: no limit"},
    {"ema", "X", USE_BOTH, "decay of a moving average of weights, 0: none"},
    {"average", "N", USE_BOTH, "mean of weights at N points of the end, 0: none"},
    {"average-every", "N", USE_BOTH, "steps between these points"},
    {"patience", "N", USE_BOTH, "end after N validations without gain, 0: never"},
    {"arithmetic", "A", USE_BOTH, "products: exact, or native in bf16, faster"},
    {"seed", "N", USE_BOTH, "seed of all random numbers"},
    {"sentences", "N", USE_LABORATORY, "different sentence pairs, 0: no limit"},
    {"unknown", "P", USE_LABORATORY, "share of sentences with an unknown word"},
};
enum { SETTING_OPTIONS = sizeof setting_options / sizeof setting_options[0], OTHER_OPTIONS = 19 };

typedef char option_help[HELP_MAX];

/* The help of a setting with its defaults, "(128; with --pairs 256)". */
static void setting_help(int n, option_help to)
{
    const training_config configs[] = {training_defaults(), training_text_defaults()};
    const int number = training_setting_find(setting_options[n].name);
    const char *const help = setting_options[n].help;
    char laboratory[TRAINING_TEXT_MAX], pairs[TRAINING_TEXT_MAX];
    training_setting_text(&configs[0], number, laboratory);
    training_setting_text(&configs[1], number, pairs);
    if (setting_options[n].use == USE_PAIRS)
        snprintf(to, HELP_MAX, "%s (with --pairs %s)", help, pairs);
    else if (setting_options[n].use == USE_LABORATORY)
        snprintf(to, HELP_MAX, "%s (%s; not with --pairs)", help, laboratory);
    else if (strcmp(laboratory, pairs) == 0)
        snprintf(to, HELP_MAX, "%s (%s)", help, laboratory);
    else
        snprintf(to, HELP_MAX, "%s (%s; with --pairs %s)", help, laboratory, pairs);
}

/* Fills options[] and returns their number. help[] holds the texts with defaults, which must live
 * as long as the table. */
static int list_options(train_request *r, arg_option *options, option_help *help)
{
    int count = 0;
    const arg_option files[] = {
        {"o", ARG_TEXT, &r->output, "FILE", "the model (" TRAIN_OUTPUT ")", 0, 0},
        {"pairs", ARG_TEXT, &r->pairs, "FILE", "train on the sentence pairs of this file", 0, 0},
        {"valid", ARG_TEXT, &r->valid, "FILE", "pairs for validation; needed with --pairs", 0, 0},
        {"vocabulary", ARG_NUMBER, &r->vocabulary, "N", "with --pairs: subwords to learn (8000)",
         300, 1 << 20},
        {"tokenizer", ARG_TEXT, &r->tokenizer, "FILE", "a tokenizer.json, instead of learning one",
         0, 0},
        {"positions", ARG_NUMBER, &r->positions, "N",
         "with --pairs: tokens of the longest sentence (256)", 2, 1 << 16},
        {"start", ARG_TEXT, &r->start, "FOLDER",
         "with --pairs: begin with this model instead of random weights", 0, 0},
    };
    for (size_t n = 0; n < sizeof files / sizeof files[0]; n++)
        options[count++] = files[n];
    for (int n = 0; n < SETTING_OPTIONS; n++) {
        const int number = training_setting_find(setting_options[n].name);
        setting_help(n, help[n]);
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
        {"translate", ARG_NUMBER, &r->translate, "N",
         "with --pairs: sentences translated 10 times during training (300)", 0, 1000000},
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
        .usage = "[-o FILE] [--pairs FILE --valid FILE] [--resume] [OPTION...]",
        .summary = "Train an English-French translator from scratch.",
        .details = details,
        .options = options,
        .option_count = list_options(r, options, help),
    };
    return args_parse(&command, argc, argv, NULL);
}

/* ------------------------------------------------------------ checking ----- */

/* The options for sizes of a model; those of --start are given by its config.json. */
static int check_start(const train_request *r)
{
    static const char *const sizes[] = {"width", "heads", "ff", "encoder-layers", "decoder-layers"};
    const char *name = r->tokenizer != NULL ? "tokenizer"
                       : r->vocabulary > 0  ? "vocabulary"
                       : r->positions > 0   ? "positions"
                       : r->layers != NULL  ? "layers"
                                            : NULL;
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++)
        if (r->given[training_setting_find(sizes[n])] != NULL)
            name = sizes[n];
    return name != NULL ? args_wrong("train: the model of --start has its sizes and its tokenizer; "
                                     "leave out --%s",
                                     name)
                        : EXIT_GO_ON;
}

/* Options of one kind of training are errors with the other. */
static int check_kind(const train_request *r)
{
    if (r->pairs != NULL && r->valid == NULL)
        return args_wrong("train: --pairs also needs --valid FILE, pairs that are not in the first "
                          "file");
    if (r->pairs == NULL && (r->valid != NULL || r->tokenizer != NULL || r->vocabulary > 0 ||
                             r->positions > 0 || r->translate >= 0 || r->start != NULL))
        return args_wrong("train: --valid, --vocabulary, --tokenizer, --positions, --translate and "
                          "--start need --pairs FILE");
    const setting_use refused = r->pairs != NULL ? USE_LABORATORY : USE_PAIRS;
    for (int n = 0; n < SETTING_OPTIONS; n++)
        if (setting_options[n].use == refused &&
            r->given[training_setting_find(setting_options[n].name)] != NULL)
            return args_wrong("train: --%s is for a training %s --pairs", setting_options[n].name,
                              r->pairs != NULL ? "without" : "with");
    if (r->tokenizer != NULL && r->vocabulary > 0)
        return args_wrong("train: --tokenizer has its vocabulary; leave out --vocabulary");
    return r->start != NULL ? check_start(r) : EXIT_GO_ON;
}

/* The number of words is that of the tokenizer as soon as it is known. */
static void set_sizes(train_request *r)
{
    transformer_config *const model = &r->config.model;
    if (r->vocabulary > 0)
        model->words[TRANSFORMER_SOURCE] = model->words[TRANSFORMER_TARGET] = (int)r->vocabulary;
    if (r->positions > 0)
        model->positions = (int)r->positions;
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
    r->config = r->pairs != NULL ? training_text_defaults() : training_defaults();
    if (r->pairs != NULL)
        set_sizes(r);
    for (int n = 0; n < TRAINING_SETTINGS; n++)
        if (r->given[n] != NULL && !training_setting_read(&r->config, n, r->given[n]))
            return args_wrong("train: --%s %s: not a valid value", training_setting_name(n),
                              r->given[n]);
    if (r->given[training_setting_find("warm-up")] == NULL &&
        r->config.warm_up > r->config.steps / 10)
        r->config.warm_up = r->config.steps / 10;
    char message[TRANSFORMER_MESSAGE_MAX];
    if (r->start != NULL && marian_folder_config(r->start, &r->config.model, message) != MHA_OK)
        return args_failed("%s", message);
    if (!r->resume && !training_config_check(&r->config, message))
        return args_wrong("train: %s%s", option_setting_dashes(message), message);
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
    r->translate = -1;
    int code = parse(r, argc, argv);
    if (code == EXIT_GO_ON)
        code = check_kind(r);
    if (code == EXIT_GO_ON)
        code = read_settings(r);
    if (r->translate < 0)
        r->translate = 300;
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
