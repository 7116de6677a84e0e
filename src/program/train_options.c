/* SPDX-License-Identifier: MIT */
/* The options of "mha train": those that are settings of a training (model/training.h) are made
 * from a table, with their defaults in the help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/picture_folder.h"
#include "program/options.h"
#include "program/train_request.h"
#include "translator/marian_folder.h"

enum { HELP_MAX = 128 };

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
    "With --images, a vision transformer learns to classify pictures. SET is a folder with "
    "MNIST's\n"
    "files (IDX, plain or .gz), with CIFAR-10's binary files, or with a folder of PNG files for "
    "each\n"
    "class, in train and test or without these. The model is a folder too.\n"
    "\n"
    "With --scenes, a model learns to say in English and French what is in pictures of coloured\n"
    "shapes (\"mha scenes\"), always new ones. Captions count as right if every word is. With "
    "--detect\n"
    "too, it learns to find the shapes instead: what they are, and a box around each. The "
    "progress\n"
    "shows its average precision.\n"
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
    "  mha train --pairs mine.tsv --valid some.tsv --start models/en-fr --lr 3e-4 -o mine\n"
    "  mha train --images /usr/share/datasets/fashion-mnist -o vit --arithmetic native\n"
    "  mha train --scenes -o captions\n"
    "  mha train --scenes --detect -o detector\n";

/* The settings that options can set: name, placeholder of the value, which kinds of training they
 * are for, help. */
typedef enum train_kind {
    KIND_LABORATORY,
    KIND_PAIRS,
    KIND_IMAGES,
    KIND_SCENES,
    KIND_DETECT,
    KINDS
} train_kind;

enum {
    USE_LABORATORY = 1 << KIND_LABORATORY,
    USE_PAIRS = 1 << KIND_PAIRS,
    USE_IMAGES = 1 << KIND_IMAGES,
    USE_DETECT = 1 << KIND_DETECT,
    USE_SCENES = 1 << KIND_SCENES | USE_DETECT,
    USE_PICTURES = USE_IMAGES | USE_SCENES,
    USE_DECODER = USE_LABORATORY | USE_PAIRS | USE_SCENES,
    USE_BATCH = USE_LABORATORY | USE_PICTURES,
    USE_ALL = USE_BATCH | USE_PAIRS
};

static train_kind kind_of(const train_request *r)
{
    return r->pairs != NULL    ? KIND_PAIRS
           : r->images != NULL ? KIND_IMAGES
           : r->detect         ? KIND_DETECT
           : r->scenes         ? KIND_SCENES
                               : KIND_LABORATORY;
}

static training_config defaults_of(train_kind kind)
{
    return kind == KIND_PAIRS    ? training_text_defaults()
           : kind == KIND_IMAGES ? training_vision_defaults()
           : kind == KIND_SCENES ? training_caption_defaults()
           : kind == KIND_DETECT ? training_detection_defaults()
                                 : training_defaults();
}

static const struct {
    const char *name, *value;
    int use;
    const char *help;
} setting_options[] = {
    {"steps", "N", USE_ALL, "training steps"},
    {"batch", "N", USE_BATCH, "pairs or pictures per step"},
    {"batch-tokens", "N", USE_PAIRS, "target tokens per step"},
    {"micro-batches", "N", USE_ALL, "parts of a step; more need less memory"},
    {"width", "N", USE_ALL, "width of the model"},
    {"heads", "N", USE_ALL, "heads per attention"},
    {"ff", "N", USE_ALL, "width of the feed-forward layer"},
    {"encoder-layers", "N", USE_ALL, "layers of the encoder"},
    {"decoder-layers", "N", USE_DECODER, "layers of the decoder"},
    {"lr", "X", USE_ALL, "peak learning rate"},
    {"warm-up", "N", USE_ALL, "steps until the peak, at most a tenth"},
    {"schedule", "S", USE_ALL, "after the peak: cosine or inverse-sqrt"},
    {"attention-gain", "X", USE_ALL, "factor of the first q, k and v; PyTorch: 0.7071"},
    {"dropout", "P", USE_ALL, "dropout rate"},
    {"attention-dropout", "P", USE_ALL, "dropout rate of attention weights"},
    {"head-dropout", "P", USE_ALL, "dropout rate of whole heads"},
    {"bpe-dropout", "P", USE_PAIRS, "dropout rate of merges of subwords"},
    {"copy", "P", USE_PAIRS, "share of pairs with another name or number"},
    {"numbers", "P", USE_PAIRS, "share of these names that become numbers"},
    {"join", "P", USE_PAIRS, "share of pairs joined with another pair"},
    {"bare", "P", USE_PAIRS, "share of pairs without their final marks"},
    {"label-smoothing", "P", USE_ALL, "share of the target spread over all words"},
    {"weight-decay", "X", USE_ALL, "weight decay of matrices"},
    {"clip", "X", USE_ALL, "largest gradient norm, 0: no limit"},
    {"ema", "X", USE_ALL, "decay of an average of weights, 0: none"},
    {"average", "N", USE_ALL, "mean of weights at N points of the end, 0: none"},
    {"average-every", "N", USE_ALL, "steps between these points"},
    {"patience", "N", USE_ALL, "end after N validations without gain, 0: never"},
    {"arithmetic", "A", USE_ALL, "products: exact, or native in bf16, faster"},
    {"seed", "N", USE_ALL, "seed of all random numbers"},
    {"sentences", "N", USE_LABORATORY, "different sentence pairs, 0: no limit"},
    {"unknown", "P", USE_LABORATORY, "share of sentences with an unknown word"},
    {"image-size", "N", USE_IMAGES, "PNG files are scaled to N pixels a side"},
    {"patch", "N", USE_PICTURES, "pixels of a patch's side"},
    {"stride", "N", USE_PICTURES, "pixels from patch to patch"},
    {"pooling", "P", USE_IMAGES, "classify by: class, a token, or mean"},
    {"places", "P", USE_PICTURES, "positions: learned or sines"},
    {"crop", "N", USE_IMAGES, "move pictures by up to N pixels"},
    {"flip", "P", USE_IMAGES, "share of mirrored pictures"},
    {"erase", "P", USE_IMAGES, "share with an erased rectangle"},
    {"mix-up", "X", USE_IMAGES, "mix pairs by shares of Beta(X, X)"},
    {"queries", "N", USE_DETECT, "boxes that are said of every picture"},
    {"nothing-weight", "X", USE_DETECT, "loss of a query without a shape"},
    {"box-weight", "X", USE_DETECT, "loss of the distance of boxes"},
    {"overlap-weight", "X", USE_DETECT, "loss of their overlap"},
};
enum { SETTING_OPTIONS = sizeof setting_options / sizeof setting_options[0], OTHER_OPTIONS = 24 };

typedef char option_help[HELP_MAX];

/* Adds the default for a kind of training, such as "with --pairs 256", unless it is the one before.
 */
static void add_default(int n, train_kind kind, char last[TRAINING_TEXT_MAX], option_help to)
{
    static const char *const names[KINDS] = {"", "--pairs ", "--images ", "--scenes ", "--detect "};
    const training_config config = defaults_of(kind);
    const int number = training_setting_find(setting_options[n].name);
    const size_t used = strlen(to);
    char text[TRAINING_TEXT_MAX];
    if (!(setting_options[n].use >> kind & 1))
        return;
    if (strcmp(setting_options[n].name, "image-size") == 0)
        snprintf(text, sizeof text, "%d", PICTURE_FOLDER_SIDE);
    else if (strcmp(setting_options[n].name, "stride") == 0)
        snprintf(text, sizeof text, kind == KIND_IMAGES ? "as --patch" : "half of --patch");
    else if (strcmp(setting_options[n].name, "attention-dropout") == 0)
        snprintf(text, sizeof text, "as --dropout");
    else
        training_setting_text(&config, number, text);
    if (strcmp(text, last) != 0)
        snprintf(to + used, HELP_MAX - used, "%s%s%s%s",
                 !*last                          ? " ("
                 : strstr(to, "with --") != NULL ? ", "
                                                 : "; ",
                 kind != KIND_LABORATORY && strstr(to, "with --") == NULL ? "with " : "",
                 names[kind], text);
    snprintf(last, TRAINING_TEXT_MAX, "%s", text);
}

/* The help of a setting with its defaults, "(128; with --pairs 256)". */
static void setting_help(int n, option_help to)
{
    char last[TRAINING_TEXT_MAX] = "";
    snprintf(to, HELP_MAX, "%s", setting_options[n].help);
    for (int kind = 0; kind < KINDS; kind++)
        add_default(n, (train_kind)kind, last, to);
    const size_t used = strlen(to);
    snprintf(to + used, HELP_MAX - used,
             setting_options[n].use == USE_LABORATORY ? "; not with --pairs, --images or --scenes)"
                                                      : ")");
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
        {"images", ARG_TEXT, &r->images, "SET", "train on the pictures of this folder", 0, 0},
        {"classes", ARG_TEXT, &r->classes, "NAMES",
         "with --images: names of the classes, separated by commas", 0, 0},
        {"scenes", ARG_FLAG, &r->scenes, NULL, "train on scenes with captions", 0, 0},
        {"detect", ARG_FLAG, &r->detect, NULL, "with --scenes: find the shapes, by boxes, instead",
         0, 0},
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
        {"layers", ARG_TEXT, &r->layers, "N",
         "layers of the encoder and, but for classes, of the decoder", 0, 0},
        {OPTION_THREADS(&r->threads)},
        {"resume", ARG_FLAG, &r->resume, NULL, "continue from the checkpoint", 0, 0},
        {"force", ARG_FLAG, &r->force, NULL, "replace an existing model", 0, 0},
        {"checkpoint", ARG_TEXT, &r->checkpoint, "FILE", "the checkpoint (next to the model)", 0,
         0},
        {"checkpoint-every", ARG_TEXT, &r->every, "T",
         "interval: minutes as in 5m, or steps as in 500 (5m)", 0, 0},
        {"curve", ARG_TEXT, &r->curve, "FILE", "draw the loss over the steps, as SVG", 0, 0},
        {"confusion", ARG_TEXT, &r->confusion, "FILE",
         "with --images: draw what is taken for what, as SVG", 0, 0},
        {"log", ARG_TEXT, &r->log, "FILE", "write the loss of every step, as CSV", 0, 0},
        {"type", ARG_TEXT, &r->type_name, "T", "type of the model's values, f16 or f32 (f16)", 0,
         0},
        {"evaluate", ARG_NUMBER, &r->evaluate, "N", "validation sentences, or pictures (1000)", 1,
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
        .usage = "[-o FILE] [--pairs FILE --valid FILE | --images SET | --scenes [--detect]] "
                 "[--resume] [OPTION...]",
        .summary = "Train a translator, or a model of pictures, from scratch.",
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

static int refuse_setting(int n)
{
    const int use = setting_options[n].use;
    return args_wrong("train: --%s is for a training %s", setting_options[n].name,
                      use == USE_PAIRS      ? "with --pairs"
                      : use == USE_IMAGES   ? "with --images"
                      : use == USE_DETECT   ? "with --scenes --detect"
                      : use == USE_PICTURES ? "with --images or --scenes"
                      : use == USE_DECODER  ? "without --images"
                      : use == USE_BATCH    ? "without --pairs"
                                            : "without --pairs, --images and --scenes");
}

/* Options of one kind of training are errors with the others. */
static int check_kind(const train_request *r)
{
    if (r->pairs != NULL && r->valid == NULL)
        return args_wrong("train: --pairs also needs --valid FILE, pairs that are not in the first "
                          "file");
    if (r->pairs == NULL && (r->valid != NULL || r->tokenizer != NULL || r->vocabulary > 0 ||
                             r->positions > 0 || r->translate >= 0 || r->start != NULL))
        return args_wrong("train: --valid, --vocabulary, --tokenizer, --positions, --translate and "
                          "--start need --pairs FILE");
    if ((r->pairs != NULL) + (r->images != NULL) + r->scenes > 1)
        return args_wrong("train: --pairs, --images and --scenes exclude each other");
    if (r->detect && !r->scenes)
        return args_wrong("train: --detect needs --scenes");
    if (r->images == NULL && (r->classes != NULL || r->confusion != NULL))
        return args_wrong("train: --classes and --confusion need --images SET");
    if (r->images != NULL && strcmp(r->output, TRAIN_OUTPUT) == 0)
        return args_wrong("train: --images also needs -o FOLDER, where the model is written");
    if (r->scenes && strcmp(r->output, TRAIN_OUTPUT) == 0)
        return args_wrong("train: --scenes also needs -o FOLDER, where the model is written");
    for (int n = 0; n < SETTING_OPTIONS; n++)
        if (!(setting_options[n].use >> kind_of(r) & 1) &&
            r->given[training_setting_find(setting_options[n].name)] != NULL)
            return refuse_setting(n);
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
    for (int n = 0; n < (r->images != NULL ? 1 : 2) && r->layers != NULL; n++) {
        if (r->given[both[n]] != NULL)
            return args_wrong("train: --layers sets the layers of both sides; leave out --%s",
                              training_setting_name(both[n]));
        r->given[both[n]] = r->layers;
    }
    r->config = defaults_of(kind_of(r));
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
    /* Sizes of pictures and numbers of words are known when the set has been opened. */
    if (!r->resume && r->images == NULL && !r->scenes &&
        !training_config_check(&r->config, message))
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
