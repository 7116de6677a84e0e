/* SPDX-License-Identifier: MIT */
/* Pictures for a training, and a judgement of its model (train_images.h). */
#include "program/train_images.h"

#include <inttypes.h>
#include <mha/mha_model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "base/text.h"
#include "draw/heatmap.h"
#include "program/args.h"
#include "program/model_session.h"
#include "program/options.h"
#include "vision/vision_folder.h"

enum { JUDGED_AT_ONCE = 64, NAME_COLUMNS = 16 };

/* --------------------------------------------------------------- reading ----- */

/* The next of the names that commas separate; NULL at the end. */
static const char *next_name(const char *text, picture_class_name name, bool *fits)
{
    const size_t length = strcspn(text, ",");
    *fits = length > 0 && length < PICTURE_SET_NAME_MAX;
    snprintf(name, PICTURE_SET_NAME_MAX, "%.*s", (int)length, text);
    return text[length] == ',' ? text + length + 1 : NULL;
}

/* --classes: as many different names as there are classes. */
static int name_classes(train_images *images, const char *text)
{
    picture_set *const set = &images->train;
    int count = 0;
    const char *at = text;
    for (; at != NULL && count < set->classes; count++) {
        bool fits;
        at = next_name(at, set->names[count], &fits);
        for (int other = 0; other < count; other++)
            fits = fits && strcmp(set->names[other], set->names[count]) != 0;
        if (!fits)
            return args_wrong("train: --classes: \"%s\" is empty, too long or there twice",
                              set->names[count]);
    }
    return count == set->classes && at == NULL
               ? EXIT_GO_ON
               : args_wrong("train: --classes must have %d names, separated by commas",
                            set->classes);
}

/* The stride of patches is their size unless it is given. */
static int settle(train_images *images, train_request *r)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    vision_shape *const v = &r->config.model.vision;
    const int size = training_setting_find("image-size");
    if (r->given[training_setting_find("stride")] == NULL)
        v->stride = v->patch;
    if (r->given[size] != NULL && v->side != images->train.rows)
        return args_wrong("train: --image-size %d: the pictures of this set have %d pixels a side; "
                          "only PNG files are scaled",
                          v->side, images->train.rows);
    vision_data_configure(images->data, &r->config.model);
    if (!r->resume && !training_config_check(&r->config, message))
        return args_wrong("train: %s%s", option_setting_dashes(message), message);
    return EXIT_GO_ON;
}

int train_images_open(train_images *images, train_request *r)
{
    char message[PICTURE_MESSAGE_MAX];
    const int size = training_setting_find("image-size");
    const int side = r->given[size] != NULL ? r->config.model.vision.side : 0;
    if (side > PICTURE_SET_SIDE_MAX || side < 0)
        return args_wrong("train: --image-size %d: it must be from 1 to %d", side,
                          PICTURE_SET_SIDE_MAX);
    if (!picture_set_open(r->images, side, &images->train, &images->test, message))
        return args_failed("%s", message);
    const int code = r->classes != NULL ? name_classes(images, r->classes) : EXIT_GO_ON;
    if (code != EXIT_GO_ON)
        return code;
    images->data = vision_data_create(&images->train, &images->test, message);
    if (images->data == NULL)
        return args_failed("%s: %s", r->images, message);
    if (!r->quiet)
        fprintf(stderr, "%s: %td pictures of %d x %d in %d classes, %td more for the test\n",
                r->images, images->train.count, images->train.columns, images->train.rows,
                images->train.classes, images->test.count);
    return settle(images, r);
}

void train_images_close(train_images *images)
{
    vision_data_free(images->data);
    picture_set_free(&images->train);
    picture_set_free(&images->test);
}

/* --------------------------------------------------------------- writing ----- */

mha_status train_images_write(const train_images *images, const train_request *r, const training *t,
                              const safetensors_pair *notes, size_t note_count, const char *folder,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    const vision_content content = {.config = &training_get_config(t)->model,
                                    .values = training_values(t),
                                    .type = r->type,
                                    .scale = vision_data_scale(images->data),
                                    .names = images->train.names,
                                    .notes = notes,
                                    .note_count = note_count};
    return vision_folder_write(folder, &content, message);
}

/* --------------------------------------------------------------- judging ----- */

/* Classifies pictures [first, first + count) of a split. */
static int judge_some(const train_images *images, const mha_model *model, corpus_split split,
                      int64_t first, int count, float *logits, mha_pool *pool, confusion *c)
{
    training_data *const data = vision_data_base(images->data);
    training_config config = {.batch = count};
    config.model.positions = 1;
    batch *const b = data->some(data, &config, split, first, count);
    if (b == NULL)
        return args_failed("out of memory");
    char message[MODEL_MESSAGE_MAX] = "";
    const mha_model_call call = {.size = sizeof call,
                                 .B = count,
                                 .pixels = b->pixels,
                                 .labels = logits,
                                 .message = message,
                                 .message_size = sizeof message};
    const mha_status status = mha_model_run(model, &call, NULL, 0, pool);
    for (int n = 0; n < count && status == MHA_OK; n++)
        confusion_add(c, b->expected[n], logits + n * c->classes);
    batch_free(b);
    return status == MHA_OK ? EXIT_GO_ON
                            : args_failed("the model does not classify: %s",
                                          *message ? message : mha_status_string(status));
}

static int judge_all(const train_images *images, const mha_model *model, int64_t most,
                     mha_pool *pool, confusion *c)
{
    const bool tests = images->test.count > 0;
    const int64_t all = tests ? images->test.count : vision_data_base(images->data)->valid;
    const int64_t count = !tests && most < all ? most : all;
    float *const logits = malloc((size_t)(JUDGED_AT_ONCE * c->classes) * sizeof *logits);
    int code = logits != NULL ? EXIT_GO_ON : args_failed("out of memory");
    for (int64_t first = 0; first < count && code == EXIT_GO_ON; first += JUDGED_AT_ONCE) {
        const int64_t left = count - first;
        code = judge_some(images, model, tests ? CORPUS_TEST : CORPUS_VALID, first,
                          (int)(left < JUDGED_AT_ONCE ? left : JUDGED_AT_ONCE), logits, pool, c);
    }
    free(logits);
    return code;
}

/* The class that pictures of a class are most often taken for; -1 if for none. */
static int most_confused(const confusion *c, int class)
{
    int found = -1;
    for (int n = 0; n < c->classes; n++) {
        const int64_t count = c->counts[class * c->classes + n];
        if (n != class && count > (found < 0 ? 0 : c->counts[class * c->classes + found]))
            found = n;
    }
    return found;
}

static void print_judgement(const train_images *images, const confusion *c)
{
    const int64_t right = confusion_right(c, -1), all = confusion_total(c, -1);
    printf("pictures right     %.2f %% (%" PRId64 " of %" PRId64 " of the %s set)\n",
           100.0 * (double)right / (double)all, right, all,
           images->test.count > 0 ? "test" : "validation");
    for (int n = 0; n < c->classes; n++) {
        const int64_t total = confusion_total(c, n);
        const int other = most_confused(c, n);
        if (total == 0)
            continue;
        printf("  %-16s %6.2f %%", images->train.names[n],
               100.0 * (double)confusion_right(c, n) / (double)total);
        if (other >= 0)
            printf("   %.2f %% taken for %s",
                   100.0 * (double)c->counts[n * c->classes + other] / (double)total,
                   images->train.names[other]);
        putchar('\n');
    }
}

/* ------------------------------------------------------------- confusion ----- */

typedef struct confusion_picture {
    const train_images *images;
    const confusion *counts;
    const float *shares;    /* [classes][classes] */
    const text_word *words; /* [classes] */
} confusion_picture;

static void put_confusion(FILE *file, const void *arg)
{
    static const char *const titles[] = {"class / said"};
    const confusion_picture *const p = arg;
    const heatmap_words words = {p->words, p->counts->classes};
    const heatmap_sheet sheet = {
        .rows = words, .columns = words, .heads = 1, .weights = p->shares, .titles = titles};
    char caption[128];
    snprintf(caption, sizeof caption, "Confusion matrix: %.2f %% of %" PRId64 " pictures right",
             100.0 * (double)confusion_right(p->counts, -1) /
                 (double)confusion_total(p->counts, -1),
             confusion_total(p->counts, -1));
    heatmap_svg(file, &sheet, 1, caption);
}

/* A name as one word of a picture. */
static text_word word_of(const char *name)
{
    picture_class_name joined;
    text_word word = {.columns = 0};
    snprintf(joined, sizeof joined, "%s", name);
    for (char *at = joined; *at != '\0'; at++)
        if (*at == ' ')
            *at = '_';
    text_split(joined, &word, 1, NAME_COLUMNS);
    return word;
}

/* Every row of the matrix as shares of its class. */
static int draw_confusion(const train_images *images, const confusion *c, const char *path)
{
    const size_t classes = (size_t)c->classes;
    float *const shares = calloc(classes * classes, sizeof *shares);
    text_word *const words = calloc(classes, sizeof *words);
    bool fine = shares != NULL && words != NULL;
    for (int n = 0; fine && n < c->classes; n++) {
        const int64_t total = confusion_total(c, n);
        words[n] = word_of(images->train.names[n]);
        for (int k = 0; k < c->classes && total > 0; k++)
            shares[n * c->classes + k] =
                (float)((double)c->counts[n * c->classes + k] / (double)total);
    }
    const confusion_picture shown = {images, c, shares, words};
    if (!fine)
        args_failed("out of memory");
    fine = fine && output_file_write(path, put_confusion, &shown);
    free(shares);
    free(words);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

int train_images_judge(const train_images *images, const train_request *r, mha_pool *pool)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model = NULL;
    confusion counts;
    if (mha_model_open(&model, r->output, &config) != MHA_OK)
        return args_failed("%s", message);
    int code =
        confusion_init(&counts, images->train.classes) ? EXIT_GO_ON : args_failed("out of memory");
    if (code == EXIT_GO_ON)
        code = judge_all(images, model, r->evaluate, pool, &counts);
    if (code == EXIT_GO_ON) {
        print_judgement(images, &counts);
        code = r->confusion != NULL ? draw_confusion(images, &counts, r->confusion) : EXIT_FINE;
    }
    confusion_free(&counts);
    mha_model_free(model);
    return code;
}
