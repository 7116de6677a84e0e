/* SPDX-License-Identifier: MIT */
/* The configuration of a training: defaults, limits, and settings by name. */
#include "translator/training.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 1 << 16, BATCH_TOKENS_MAX = 1 << 20, MICRO_BATCHES_MAX = 4096 };

/* Dropout is rounded to multiples of 1/65536; closer to 1 it would drop everything. */
#define DROPOUT_MOST 0.999
#define GAIN_MOST 10.0
#define WEIGHT_MOST 1000.0
static const int64_t steps_max = 1000000000;

static int words_of(corpus_side side)
{
    corpus_vocabulary vocabulary;
    corpus_vocabulary_fill(&vocabulary, side);
    return WORDS_SPECIAL + vocabulary.count;
}

training_config training_defaults(void)
{
    const training_config config = {
        .model = {.form = FORM_LABORATORY,
                  .width = 128,
                  .heads = 8,
                  .ff_width = 512,
                  .layers = {2, 2},
                  .words = {words_of(CORPUS_ENGLISH), words_of(CORPUS_FRENCH)},
                  .positions = CORPUS_TOKENS_MAX},
        .seed = 1,
        .steps = 8000,
        .batch = 128,
        .micro_batches = 1,
        .warm_up = 400,
        .learning_rate = 2e-3,
        .beta1 = 0.9,
        .beta2 = 0.98,
        .epsilon = 1e-9,
        .weight_decay = 0.01,
        .clip = 1.0,
        .dropout = 0.05,
        .attention_gain = 1.0,
        .attention_dropout = TRAINING_AS_DROPOUT,
        .label_smoothing = 0.05,
        .unknown = 0.02,
    };
    return config;
}

training_config training_text_defaults(void)
{
    const training_config config = {
        .model = {.form = FORM_MARIAN,
                  .width = 256,
                  .heads = 8,
                  .ff_width = 1024,
                  .layers = {4, 2},
                  .words = {8000, 8000},
                  .positions = 256},
        .seed = 1,
        .steps = 8000,
        .batch_tokens = 2048,
        .micro_batches = 1,
        .warm_up = 1000,
        .learning_rate = 1e-3,
        .beta1 = 0.9,
        .beta2 = 0.98,
        .epsilon = 1e-9,
        .weight_decay = 0.01,
        .clip = 1.0,
        .dropout = 0.15,
        .attention_gain = 0.7071,
        .attention_dropout = TRAINING_AS_DROPOUT,
        .bpe_dropout = 0.05,
        .copy = 0.3,
        .numbers = 0.1,
        .join = 0.1,
        .bare = 0.1,
        .label_smoothing = 0.1,
        .ema = 0.998,
    };
    return config;
}

training_config training_vision_defaults(void)
{
    training_config config = {
        .model = {.form = FORM_VISION,
                  .width = 128,
                  .heads = 4,
                  .ff_width = 512,
                  .layers = {6, 0},
                  .words = {0, 10},
                  .vision = {.side = 28,
                             .channels = 1,
                             .patch = 4,
                             .stride = 4,
                             .pooling = VISION_MEAN,
                             .places = VISION_LEARNED}},
        .seed = 1,
        .steps = 14000,
        .batch = 128,
        .micro_batches = 1,
        .warm_up = 500,
        .learning_rate = 1e-3,
        .beta1 = 0.9,
        .beta2 = 0.99,
        .epsilon = 1e-8,
        .weight_decay = 0.05,
        .clip = 1.0,
        .attention_gain = 1.0,
        .attention_dropout = TRAINING_AS_DROPOUT,
        .label_smoothing = 0.1,
        .ema = 0.999,
        .crop = 2,
        .flip = 0.5,
        .erase = 0.25,
    };
    config.model.positions = vision_tokens(&config.model.vision);
    return config;
}

training_config training_caption_defaults(void)
{
    training_config config = training_vision_defaults();
    config.model = (transformer_config){.form = FORM_CAPTIONS,
                                        .width = 128,
                                        .heads = 4,
                                        .ff_width = 256,
                                        .layers = {4, 2},
                                        .words = {0, WORDS_SPECIAL + 1},
                                        .positions = 2,
                                        .vision = {.side = 40,
                                                   .channels = 3,
                                                   .patch = 8,
                                                   .stride = 4,
                                                   .pooling = VISION_MEAN,
                                                   .places = VISION_SINES}};
    config.steps = 20000;
    config.batch = 64;
    config.weight_decay = 0.01;
    config.label_smoothing = 0.0;
    config.crop = 0;
    config.flip = config.erase = 0.0;
    return config;
}

training_config training_detection_defaults(void)
{
    training_config config = training_caption_defaults();
    config.model.form = FORM_DETECTION;
    config.model.words[TRANSFORMER_SOURCE] = 1;
    config.model.words[TRANSFORMER_TARGET] = 2;
    config.model.positions = 8;
    config.detection = (detection_weights){.nothing = 0.3, .box = 5.0, .overlap = 2.0};
    return config;
}

/* --------------------------------------------------------------- check ----- */

__attribute__((format(printf, 2, 3))) static bool wrong(char message[TRANSFORMER_MESSAGE_MAX],
                                                        const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, TRANSFORMER_MESSAGE_MAX, format, list);
    va_end(list);
    return false;
}

/* Written so that NaN is wrong too. */
static bool share_is_wrong(double share)
{
    return !(share >= 0.0 && share < 1.0);
}

static bool check_rates(const training_config *c, char message[TRANSFORMER_MESSAGE_MAX])
{
    if (!(c->learning_rate > 0.0 && isfinite(c->learning_rate)))
        return wrong(message, "lr %g: the learning rate must be a positive number",
                     c->learning_rate);
    if (share_is_wrong(c->beta1) || share_is_wrong(c->beta2))
        return wrong(message, "beta1 %g, beta2 %g: both must be from 0 to below 1", c->beta1,
                     c->beta2);
    /* A parameter whose gradient was always 0 is divided by epsilon alone, in f32. */
    if (!(c->epsilon >= 1e-30 && c->epsilon <= 1.0))
        return wrong(message, "epsilon %g: it must be from 1e-30 to 1", c->epsilon);
    if (!(c->weight_decay >= 0.0 && isfinite(c->weight_decay)))
        return wrong(message, "weight-decay %g: it must be 0 or a positive number",
                     c->weight_decay);
    if (!(c->clip >= 0.0 && isfinite(c->clip)))
        return wrong(message, "clip %g: it must be 0, for no limit, or a positive number", c->clip);
    if (!(c->attention_gain > 0.0 && c->attention_gain <= GAIN_MOST))
        return wrong(message, "attention-gain %g: it must be above 0 and at most %g",
                     c->attention_gain, GAIN_MOST);
    if (share_is_wrong(c->dropout) || c->dropout > DROPOUT_MOST)
        return wrong(message, "dropout %g: it must be from 0 to %g", c->dropout, DROPOUT_MOST);
    if (c->attention_dropout != TRAINING_AS_DROPOUT &&
        (share_is_wrong(c->attention_dropout) || c->attention_dropout > DROPOUT_MOST))
        return wrong(message, "attention-dropout %g: it must be from 0 to %g", c->attention_dropout,
                     DROPOUT_MOST);
    if (share_is_wrong(c->head_dropout) || c->head_dropout > DROPOUT_MOST)
        return wrong(message, "head-dropout %g: it must be from 0 to %g", c->head_dropout,
                     DROPOUT_MOST);
    if (share_is_wrong(c->bpe_dropout))
        return wrong(message, "bpe-dropout %g: it must be from 0 to below 1", c->bpe_dropout);
    if (!(c->copy >= 0.0 && c->copy <= 1.0))
        return wrong(message, "copy %g: it must be from 0 to 1", c->copy);
    if (!(c->numbers >= 0.0 && c->numbers <= 1.0))
        return wrong(message, "numbers %g: it must be from 0 to 1", c->numbers);
    if (!(c->join >= 0.0 && c->join <= 1.0))
        return wrong(message, "join %g: it must be from 0 to 1", c->join);
    if (!(c->bare >= 0.0 && c->bare <= 1.0))
        return wrong(message, "bare %g: it must be from 0 to 1", c->bare);
    if (share_is_wrong(c->ema))
        return wrong(message, "ema %g: it must be from 0, for no average, to below 1", c->ema);
    if (share_is_wrong(c->label_smoothing))
        return wrong(message, "label-smoothing %g: it must be from 0 to below 1",
                     c->label_smoothing);
    if (!(c->unknown >= 0.0 && c->unknown <= 1.0))
        return wrong(message, "unknown %g: it must be from 0 to 1", c->unknown);
    return true;
}

/* With a smaller vocabulary than that of the corpus, embeddings would be read out of bounds. */
static bool check_corpus(const transformer_config *model, char message[TRANSFORMER_MESSAGE_MAX])
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const int words = words_of((corpus_side)side);
        if (model->words[side] != words)
            return wrong(message, "%s-words %d: the corpus has %d",
                         side == TRANSFORMER_SOURCE ? "source" : "target", model->words[side],
                         words);
    }
    if (model->positions != CORPUS_TOKENS_MAX)
        return wrong(message, "positions %d: sentences of the corpus have up to %d",
                     model->positions, CORPUS_TOKENS_MAX);
    return true;
}

static bool check_averages(const training_config *c, char message[TRANSFORMER_MESSAGE_MAX])
{
    if (c->average < 0 || c->average_every < 0 || c->patience < 0)
        return wrong(message,
                     "average %d, average-every %" PRId64 ", patience %d: none may be "
                     "negative",
                     c->average, c->average_every, c->patience);
    if (c->average > 0 && c->ema > 0.0)
        return wrong(message, "average %d and ema %g exclude each other; set one of them to 0",
                     c->average, c->ema);
    if (c->average > 0 &&
        (c->average_every < 1 || c->average - 1 > (c->steps - 1) / c->average_every))
        return wrong(message,
                     "average %d: there are not so many points with %" PRId64
                     " steps between them in a training of %" PRId64,
                     c->average, c->average_every, c->steps);
    return true;
}

static bool weight_is_wrong(double weight)
{
    return !(weight >= 0.0 && weight <= WEIGHT_MOST);
}

static bool check_pictures(const training_config *c, char message[TRANSFORMER_MESSAGE_MAX])
{
    const detection_weights *const w = &c->detection;
    if (c->model.form != FORM_VISION &&
        (c->crop != 0 || c->flip != 0.0 || c->erase != 0.0 || c->mix_up != 0.0))
        return wrong(message,
                     "crop, flip, erase and mix-up must be 0: the %s would not be true of "
                     "the picture",
                     c->model.form == FORM_CAPTIONS ? "caption" : "boxes");
    if (weight_is_wrong(w->nothing) || weight_is_wrong(w->box) || weight_is_wrong(w->overlap))
        return wrong(message,
                     "nothing-weight %g, box-weight %g, overlap-weight %g: they must be from 0 "
                     "to %g",
                     w->nothing, w->box, w->overlap, WEIGHT_MOST);
    if (c->crop < 0 || c->crop > c->model.vision.side)
        return wrong(message, "crop %d: it must be from 0 to the side of the pictures, %d", c->crop,
                     c->model.vision.side);
    if (!(c->flip >= 0.0 && c->flip <= 1.0) || !(c->erase >= 0.0 && c->erase <= 1.0))
        return wrong(message, "flip %g, erase %g: both must be from 0 to 1", c->flip, c->erase);
    if (!(c->mix_up >= 0.0 && c->mix_up <= 1.0))
        return wrong(message, "mix-up %g: it must be from 0, for none, to 1", c->mix_up);
    return true;
}

/* A step of the laboratory is a number of pairs, one of a file a number of tokens, one of pictures
 * a number of these. */
static bool check_batch(const training_config *c, char message[TRANSFORMER_MESSAGE_MAX])
{
    const bool tokens = c->model.form == FORM_MARIAN;
    if (!tokens && (c->batch < 1 || c->batch > BATCH_MAX))
        return wrong(message, "batch %d: a step must have from 1 to %d %s", c->batch, BATCH_MAX,
                     transformer_reads_pictures(&c->model) ? "pictures" : "sentence pairs");
    if (tokens && (c->batch_tokens < 1 || c->batch_tokens > BATCH_TOKENS_MAX))
        return wrong(message, "batch-tokens %d: a step must have from 1 to %d target tokens",
                     c->batch_tokens, BATCH_TOKENS_MAX);
    if (c->micro_batches < 1 || c->micro_batches > MICRO_BATCHES_MAX)
        return wrong(message, "micro-batches %d: a step must have from 1 to %d parts",
                     c->micro_batches, MICRO_BATCHES_MAX);
    if (c->sentences < 0)
        return wrong(message,
                     "sentences %" PRId64 ": it must be 0, for always new ones, or "
                     "positive",
                     c->sentences);
    return true;
}

bool training_config_check(const training_config *c, char message[TRANSFORMER_MESSAGE_MAX])
{
    if (!transformer_config_check(&c->model, message))
        return false;
    if (c->model.form == FORM_LABORATORY && !check_corpus(&c->model, message))
        return false;
    if (c->steps < 1 || c->steps > steps_max)
        return wrong(message, "steps %" PRId64 ": a training must have from 1 to %" PRId64 " steps",
                     c->steps, steps_max);
    if (c->warm_up < 0 || c->warm_up > c->steps)
        return wrong(message,
                     "warm-up %" PRId64 ": it must be from 0 to the number of steps, %" PRId64,
                     c->warm_up, c->steps);
    return check_batch(c, message) && check_rates(c, message) && check_averages(c, message) &&
           (!transformer_reads_pictures(&c->model) || check_pictures(c, message));
}

/* ------------------------------------------------------------ settings ----- */

typedef enum setting_kind {
    SETTING_INT,
    SETTING_INT64,
    SETTING_UINT64,
    SETTING_REAL,
    SETTING_FORM,
    SETTING_POOLING,
    SETTING_PLACES,
    SETTING_SCHEDULE,
    SETTING_ARITHMETIC
} setting_kind;

#define AT(member) offsetof(training_config, member)

static const struct setting {
    const char *name;
    setting_kind kind;
    size_t at;
} settings[] = {
    {"form", SETTING_FORM, AT(model.form)},
    {"width", SETTING_INT, AT(model.width)},
    {"heads", SETTING_INT, AT(model.heads)},
    {"ff", SETTING_INT, AT(model.ff_width)},
    {"encoder-layers", SETTING_INT, AT(model.layers[TRANSFORMER_SOURCE])},
    {"decoder-layers", SETTING_INT, AT(model.layers[TRANSFORMER_TARGET])},
    {"source-words", SETTING_INT, AT(model.words[TRANSFORMER_SOURCE])},
    {"target-words", SETTING_INT, AT(model.words[TRANSFORMER_TARGET])},
    {"positions", SETTING_INT, AT(model.positions)},
    {"seed", SETTING_UINT64, AT(seed)},
    {"steps", SETTING_INT64, AT(steps)},
    {"batch", SETTING_INT, AT(batch)},
    {"batch-tokens", SETTING_INT, AT(batch_tokens)},
    {"micro-batches", SETTING_INT, AT(micro_batches)},
    {"sentences", SETTING_INT64, AT(sentences)},
    {"warm-up", SETTING_INT64, AT(warm_up)},
    {"lr", SETTING_REAL, AT(learning_rate)},
    {"schedule", SETTING_SCHEDULE, AT(schedule)},
    {"beta1", SETTING_REAL, AT(beta1)},
    {"beta2", SETTING_REAL, AT(beta2)},
    {"epsilon", SETTING_REAL, AT(epsilon)},
    {"weight-decay", SETTING_REAL, AT(weight_decay)},
    {"clip", SETTING_REAL, AT(clip)},
    {"attention-gain", SETTING_REAL, AT(attention_gain)},
    {"dropout", SETTING_REAL, AT(dropout)},
    {"attention-dropout", SETTING_REAL, AT(attention_dropout)},
    {"head-dropout", SETTING_REAL, AT(head_dropout)},
    {"bpe-dropout", SETTING_REAL, AT(bpe_dropout)},
    {"copy", SETTING_REAL, AT(copy)},
    {"numbers", SETTING_REAL, AT(numbers)},
    {"join", SETTING_REAL, AT(join)},
    {"bare", SETTING_REAL, AT(bare)},
    {"label-smoothing", SETTING_REAL, AT(label_smoothing)},
    {"ema", SETTING_REAL, AT(ema)},
    {"average", SETTING_INT, AT(average)},
    {"average-every", SETTING_INT64, AT(average_every)},
    {"patience", SETTING_INT, AT(patience)},
    {"unknown", SETTING_REAL, AT(unknown)},
    {"arithmetic", SETTING_ARITHMETIC, AT(arithmetic)},
    {"image-size", SETTING_INT, AT(model.vision.side)},
    {"channels", SETTING_INT, AT(model.vision.channels)},
    {"patch", SETTING_INT, AT(model.vision.patch)},
    {"stride", SETTING_INT, AT(model.vision.stride)},
    {"pooling", SETTING_POOLING, AT(model.vision.pooling)},
    {"places", SETTING_PLACES, AT(model.vision.places)},
    {"crop", SETTING_INT, AT(crop)},
    {"flip", SETTING_REAL, AT(flip)},
    {"erase", SETTING_REAL, AT(erase)},
    {"mix-up", SETTING_REAL, AT(mix_up)},
    {"queries", SETTING_INT, AT(model.positions)},
    {"nothing-weight", SETTING_REAL, AT(detection.nothing)},
    {"box-weight", SETTING_REAL, AT(detection.box)},
    {"overlap-weight", SETTING_REAL, AT(detection.overlap)},
};
enum { FIRST_OF_DETECTION = TRAINING_SETTINGS - 4, FIRST_OF_PICTURES = FIRST_OF_DETECTION - 10 };
_Static_assert(sizeof settings / sizeof settings[0] == TRAINING_SETTINGS, "TRAINING_SETTINGS");

const char *training_setting_name(int number)
{
    return settings[number].name;
}

int training_setting_find(const char *name)
{
    for (int n = 0; n < TRAINING_SETTINGS; n++)
        if (strcmp(settings[n].name, name) == 0)
            return n;
    return -1;
}

static const char *const schedule_names[SCHEDULES] = {"cosine", "inverse-sqrt"};
static const char *const arithmetic_names[] = {[MHA_EXACT] = "exact", [MHA_NATIVE] = "native"};
enum { ARITHMETICS = sizeof arithmetic_names / sizeof arithmetic_names[0] };

/* The shortest text from which exactly this number is read. */
static void real_text(double value, char text[TRAINING_TEXT_MAX])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, TRAINING_TEXT_MAX, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

void training_setting_text(const training_config *config, int number, char text[TRAINING_TEXT_MAX])
{
    const void *const at = (const char *)config + settings[number].at;
    switch (settings[number].kind) {
    case SETTING_INT:
        snprintf(text, TRAINING_TEXT_MAX, "%d", *(const int *)at);
        break;
    case SETTING_INT64:
        snprintf(text, TRAINING_TEXT_MAX, "%" PRId64, *(const int64_t *)at);
        break;
    case SETTING_UINT64:
        snprintf(text, TRAINING_TEXT_MAX, "%" PRIu64, *(const uint64_t *)at);
        break;
    case SETTING_REAL:
        real_text(*(const double *)at, text);
        break;
    case SETTING_FORM:
        snprintf(text, TRAINING_TEXT_MAX, "%s",
                 transformer_form_name(*(const transformer_form *)at));
        break;
    case SETTING_POOLING:
        snprintf(text, TRAINING_TEXT_MAX, "%s", vision_pooling_name(*(const vision_pooling *)at));
        break;
    case SETTING_PLACES:
        snprintf(text, TRAINING_TEXT_MAX, "%s", vision_places_name(*(const vision_places *)at));
        break;
    case SETTING_SCHEDULE:
        snprintf(text, TRAINING_TEXT_MAX, "%s", schedule_names[*(const training_schedule *)at]);
        break;
    case SETTING_ARITHMETIC:
        snprintf(text, TRAINING_TEXT_MAX, "%s", arithmetic_names[*(const mha_arithmetic *)at]);
        break;
    }
}

static bool read_form(const char *text, transformer_form *form)
{
    for (int n = 0; n < FORMS; n++)
        if (strcmp(text, transformer_form_name((transformer_form)n)) == 0) {
            *form = (transformer_form)n;
            return true;
        }
    return false;
}

static bool read_pooling(const char *text, vision_pooling *pooling)
{
    for (int n = 0; n < VISION_POOLINGS; n++)
        if (strcmp(text, vision_pooling_name((vision_pooling)n)) == 0) {
            *pooling = (vision_pooling)n;
            return true;
        }
    return false;
}

static bool read_places(const char *text, vision_places *places)
{
    for (int n = 0; n < VISION_PLACES; n++)
        if (strcmp(text, vision_places_name((vision_places)n)) == 0) {
            *places = (vision_places)n;
            return true;
        }
    return false;
}

static bool read_schedule(const char *text, training_schedule *schedule)
{
    for (int n = 0; n < SCHEDULES; n++)
        if (strcmp(text, schedule_names[n]) == 0) {
            *schedule = (training_schedule)n;
            return true;
        }
    return false;
}

static bool read_arithmetic(const char *text, mha_arithmetic *arithmetic)
{
    for (int n = 0; n < ARITHMETICS; n++)
        if (strcmp(text, arithmetic_names[n]) == 0) {
            *arithmetic = (mha_arithmetic)n;
            return true;
        }
    return false;
}

static bool read_integer(const char *text, long long low, long long high, long long *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *value >= low && *value <= high;
}

/* Decimal or 0x... */
static bool read_unsigned(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    const bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    *value = strtoull(text, &end, hexadecimal ? 16 : 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static bool read_real(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

bool training_setting_read(training_config *config, int number, const char *text)
{
    void *const at = (char *)config + settings[number].at;
    long long integer;
    uint64_t bits;
    double real;
    switch (settings[number].kind) {
    case SETTING_INT:
        if (!read_integer(text, INT_MIN, INT_MAX, &integer))
            return false;
        *(int *)at = (int)integer;
        return true;
    case SETTING_INT64:
        if (!read_integer(text, INT64_MIN, INT64_MAX, &integer))
            return false;
        *(int64_t *)at = integer;
        return true;
    case SETTING_UINT64:
        if (!read_unsigned(text, &bits))
            return false;
        *(uint64_t *)at = bits;
        return true;
    case SETTING_REAL:
        if (!read_real(text, &real))
            return false;
        *(double *)at = real;
        return true;
    case SETTING_FORM:
        return read_form(text, at);
    case SETTING_POOLING:
        return read_pooling(text, at);
    case SETTING_PLACES:
        return read_places(text, at);
    case SETTING_SCHEDULE:
        return read_schedule(text, at);
    case SETTING_ARITHMETIC:
        return read_arithmetic(text, at);
    }
    return false;
}

bool training_setting_is_recorded(const training_config *config, int number)
{
    if (number >= FIRST_OF_DETECTION)
        return config->model.form == FORM_DETECTION;
    if (number >= FIRST_OF_PICTURES)
        return transformer_reads_pictures(&config->model);
    switch (settings[number].at) {
    case AT(model.positions):
        return config->model.form != FORM_DETECTION;
    case AT(micro_batches):
        return config->micro_batches != 1;
    case AT(arithmetic):
        return config->arithmetic != MHA_EXACT;
    case AT(attention_gain):
        return config->attention_gain != 1.0;
    case AT(attention_dropout):
        return config->attention_dropout != TRAINING_AS_DROPOUT;
    case AT(numbers):
        return config->numbers != 0.0;
    case AT(join):
        return config->join != 0.0;
    case AT(bare):
        return config->bare != 0.0;
    default:
        return true;
    }
}
