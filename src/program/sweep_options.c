/* SPDX-License-Identifier: MIT */
/* The options of "mha sweep". Its settings are those of a training (translator/training.h), with
 * defaults for a network that is small enough to be trained dozens of times. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "program/options.h"
#include "program/sweep_request.h"

enum { HELP_MAX = 112 };

static const char details[] =
    "Trains the laboratory (see \"mha train\") once for every number of heads, number of sentence\n"
    "pairs and seed. Width, steps and all other settings are the same; trainings of one seed "
    "begin\n"
    "with the same parameters and see the same sentences. Of each training are measured: the loss\n"
    "on held-out sentences (valid) and on training sentences (train), both without dropout, their\n"
    "difference (gap), the share of held-out sentences translated exactly, and the steps until "
    "the\n"
    "validation loss is --target. The table has means over the seeds with 95 % intervals "
    "(Student's\n"
    "t), and differences from the fewest heads, seed by seed.\n"
    "\n"
    "Every finished training is kept in the file of results. Ctrl-C ends the program; --resume\n"
    "skips the trainings that the file has, so that seeds, heads or data can also be added later.\n"
    "The numbers are the same for any number of threads.\n"
    "\n"
    "Examples:\n"
    "  mha sweep\n"
    "  mha sweep --heads 1,8 --data 300,1000,0 --seeds 5 -o heads.csv\n"
    "  mha sweep --heads 1,8 --data 300,1000,0 --seeds 8 -o heads.csv --resume\n";

static const struct {
    const char *name, *value, *help;
} setting_options[] = {
    {"steps", "N", "training steps"},
    {"batch", "N", "sentence pairs per step"},
    {"width", "N", "width of the model"},
    {"ff", "N", "width of the feed-forward layer"},
    {"lr", "X", "peak learning rate"},
    {"warm-up", "N", "steps until the peak (a tenth of all)"},
    {"dropout", "P", "dropout rate"},
    {"label-smoothing", "P", "share of the target spread over all words"},
    {"weight-decay", "X", "weight decay of matrices"},
    {"seed", "N", "the first seed"},
};
enum { SETTING_OPTIONS = sizeof setting_options / sizeof setting_options[0], OTHER_OPTIONS = 16 };

static training_config sweep_defaults(void)
{
    training_config config = training_defaults();
    config.model.width = 64;
    config.model.ff_width = 256;
    config.model.layers[TRANSFORMER_SOURCE] = config.model.layers[TRANSFORMER_TARGET] = 1;
    config.steps = 1000;
    config.batch = 64;
    config.warm_up = 100;
    config.learning_rate = 5e-3;
    return config;
}

/* --------------------------------------------------------------- parse ----- */

typedef char option_help[HELP_MAX];

/* Fills options[] and returns their number; help[] holds the texts with defaults. */
static int list_options(sweep_request *r, arg_option *options, option_help *help)
{
    const training_config defaults = sweep_defaults();
    const arg_option first[] = {
        {"heads", ARG_TEXT, &r->heads, "N,...", "numbers of heads (" SWEEP_HEADS ")", 0, 0},
        {"data", ARG_TEXT, &r->data, "N,...",
         "numbers of different sentence pairs, 0: no limit (" SWEEP_DATA ")", 0, 0},
        {"seeds", ARG_NUMBER, &r->seeds, "N", "trainings of each kind (3)", 1, SWEEP_SEEDS_MAX},
        {"o", ARG_TEXT, &r->output, "FILE", "the results, as CSV (" SWEEP_OUTPUT ")", 0, 0},
        {"svg", ARG_TEXT, &r->svg, "FILE", "the charts (next to the results)", 0, 0},
        {"log", ARG_TEXT, &r->log, "FILE", "write all learning curves, as CSV", 0, 0},
        {"resume", ARG_FLAG, &r->resume, NULL, "skip the trainings that the results have", 0, 0},
        {"force", ARG_FLAG, &r->force, NULL, "replace existing results", 0, 0},
        {"target", ARG_TEXT, &r->target_text, "X",
         "count steps until this validation loss (one that all reach)", 0, 0},
        {"evaluate", ARG_NUMBER, &r->evaluate, "N", "sentences of a measurement (500)", 1, 1000000},
        {"points", ARG_NUMBER, &r->points, "N", "validations during a training (25)", 1,
         SWEEP_POINTS_MAX},
    };
    const arg_option last[] = {
        {"layers", ARG_TEXT, &r->layers, "N", "layers of the encoder and of the decoder (1)", 0, 0},
        {OPTION_THREADS(&r->threads)},
        {OPTION_JSON(&r->json)},
        {"quiet", ARG_FLAG, &r->quiet, NULL, "print no progress", 0, 0},
    };
    int count = 0;
    for (size_t n = 0; n < sizeof first / sizeof first[0]; n++)
        options[count++] = first[n];
    for (int n = 0; n < SETTING_OPTIONS; n++) {
        const int number = training_setting_find(setting_options[n].name);
        char text[TRAINING_TEXT_MAX];
        training_setting_text(&defaults, number, text);
        if (strchr(setting_options[n].help, '(') != NULL)
            snprintf(help[n], HELP_MAX, "%s", setting_options[n].help);
        else
            snprintf(help[n], HELP_MAX, "%s (%s)", setting_options[n].help, text);
        options[count++] = (arg_option){setting_options[n].name,
                                        ARG_TEXT,
                                        &r->given[number],
                                        setting_options[n].value,
                                        help[n],
                                        0,
                                        0};
    }
    for (size_t n = 0; n < sizeof last / sizeof last[0]; n++)
        options[count++] = last[n];
    return count;
}

static int parse(sweep_request *r, int argc, char **argv)
{
    arg_option options[SETTING_OPTIONS + OTHER_OPTIONS];
    option_help help[SETTING_OPTIONS];
    const arg_command command = {
        .name = "sweep",
        .usage = "[--heads N,...] [--data N,...] [--seeds N] [OPTION...]",
        .summary = "Train with different numbers of heads, and compare.",
        .details = details,
        .options = options,
        .option_count = list_options(r, options, help),
    };
    return args_parse(&command, argc, argv, NULL);
}

/* --------------------------------------------------------------- lists ----- */

/* Reads "1,2,4": different numbers from `low` to `high`. */
static int read_list(const char *option, const char *text, int64_t low, int64_t high,
                     int64_t numbers[SWEEP_LIST_MAX], int *count)
{
    const char *at = text;
    for (*count = 0; *count < SWEEP_LIST_MAX;) {
        char *end;
        errno = 0;
        const long long number = strtoll(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || errno != 0 || number < low ||
            number > high)
            return args_wrong("sweep: --%s %s: give numbers from %" PRId64 " to %" PRId64
                              " with commas between them",
                              option, text, low, high);
        for (int n = 0; n < *count; n++)
            if (numbers[n] == number)
                return args_wrong("sweep: --%s %s: %lld is there twice", option, text, number);
        numbers[(*count)++] = number;
        if (*end == '\0')
            return EXIT_GO_ON;
        at = end + 1;
    }
    return args_wrong("sweep: --%s: more than %d numbers", option, SWEEP_LIST_MAX);
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int read_heads(sweep_request *r)
{
    const int width = r->settings.config.model.width;
    int64_t numbers[SWEEP_LIST_MAX];
    const int code =
        read_list("heads", r->heads, 1, MHA_MAX_HEAD_WIDTH, numbers, &r->grid.head_count);
    if (code != EXIT_GO_ON)
        return code;
    qsort(numbers, (size_t)r->grid.head_count, sizeof numbers[0], compare_numbers);
    for (int n = 0; n < r->grid.head_count; n++) {
        if (width % numbers[n] != 0)
            return args_wrong("sweep: --heads %" PRId64
                              ": the width %d cannot be divided into %" PRId64
                              " equal heads; leave it out or give another --width",
                              numbers[n], width, numbers[n]);
        r->grid.heads[n] = (int)numbers[n];
    }
    return EXIT_GO_ON;
}

/* More pairs than a training sees would be no limit, and the same training as with 0. */
static int read_data(sweep_request *r)
{
    const training_config *const c = &r->settings.config;
    const int64_t shown = c->steps * c->batch;
    const int code =
        read_list("data", r->data, 0, INT64_C(1) << 50, r->grid.data, &r->grid.data_count);
    for (int n = 0; n < r->grid.data_count && code == EXIT_GO_ON; n++)
        if (r->grid.data[n] >= shown)
            return args_wrong("sweep: --data %" PRId64 ": %" PRId64
                              " steps of %d pairs see %" PRId64
                              " pairs; give fewer, or 0 for no limit",
                              r->grid.data[n], c->steps, c->batch, shown);
    return code;
}

/* ------------------------------------------------------------ settings ----- */

static int read_settings(sweep_request *r)
{
    training_config *const c = &r->settings.config;
    *c = sweep_defaults();
    for (int side = 0; side < TRANSFORMER_SIDES && r->layers != NULL; side++) {
        const char *const name = side == 0 ? "encoder-layers" : "decoder-layers";
        if (!training_setting_read(c, training_setting_find(name), r->layers))
            return args_wrong("sweep: --layers %s: not a valid value", r->layers);
    }
    for (int n = 0; n < TRAINING_SETTINGS; n++)
        if (r->given[n] != NULL && !training_setting_read(c, n, r->given[n]))
            return args_wrong("sweep: --%s %s: not a valid value", training_setting_name(n),
                              r->given[n]);
    if (r->given[training_setting_find("warm-up")] == NULL)
        c->warm_up = c->steps / 10;
    r->settings.evaluate = r->evaluate;
    r->settings.points = (int)(c->steps > 0 && r->points > c->steps ? c->steps : r->points);
    r->grid.first_seed = c->seed;
    r->grid.seeds = (int)r->seeds;
    c->seed = 1; /* not of the settings in common */
    c->model.heads = 1;
    char message[TRANSFORMER_MESSAGE_MAX];
    if (!training_config_check(c, message))
        return args_wrong("sweep: %s%s", option_setting_dashes(message), message);
    return EXIT_GO_ON;
}

static int read_target(sweep_request *r)
{
    char *end;
    r->target = NAN;
    if (r->target_text == NULL)
        return EXIT_GO_ON;
    r->target = strtod(r->target_text, &end);
    if (end == r->target_text || *end != '\0' || !(r->target > 0.0 && isfinite(r->target)))
        return args_wrong("sweep: --target %s: a loss is a positive number", r->target_text);
    return EXIT_GO_ON;
}

/* Every number of heads with every other setting: known before anything is trained. */
static int check_trainings(const sweep_request *r)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    for (int n = 0; n < r->grid.head_count * r->grid.data_count; n++) {
        const sweep_key key = sweep_grid_key(&r->grid, n);
        const training_config config = sweep_config(&r->settings, &key);
        if (!training_config_check(&config, message))
            return args_wrong("sweep: %s%s", option_setting_dashes(message), message);
    }
    return EXIT_GO_ON;
}

/* --------------------------------------------------------------- files ----- */

/* "results/heads.csv" -> "results/heads.svg" */
static int name_files(sweep_request *r)
{
    const size_t all = strlen(r->output);
    const bool has = all > 4 && strcmp(r->output + all - 4, ".csv") == 0;
    if (all + sizeof ".svg" > sizeof r->svg_path)
        return args_wrong("sweep: the name of the results is too long");
    snprintf(r->svg_path, sizeof r->svg_path, "%.*s.svg", (int)(has ? all - 4 : all), r->output);
    if (r->svg == NULL)
        r->svg = r->svg_path;
    const char *const paths[] = {r->output, r->svg, r->log};
    for (int n = 0; n < 3; n++)
        for (int other = 0; other < n && paths[n] != NULL; other++)
            if (strcmp(paths[n], paths[other]) == 0)
                return args_wrong("sweep: %s is given for two different files", paths[n]);
    for (int n = 0; n < 3; n++)
        if (paths[n] != NULL && !output_file_check(paths[n]))
            return EXIT_FAILED;
    return EXIT_GO_ON;
}

int sweep_options_read(sweep_request *r, int argc, char **argv)
{
    int (*const parts[])(sweep_request *) = {read_settings, read_heads, read_data, read_target};
    int code = parse(r, argc, argv);
    for (size_t n = 0; n < sizeof parts / sizeof parts[0] && code == EXIT_GO_ON; n++)
        code = parts[n](r);
    if (code == EXIT_GO_ON)
        code = check_trainings(r);
    return code == EXIT_GO_ON ? name_files(r) : code;
}
