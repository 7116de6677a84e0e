/* SPDX-License-Identifier: MIT */
/* Lets a classifier classify many pictures, and reports what it gets right (judge_images.h). */
#include "program/judge_images.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/output_file.h"
#include "base/text.h"
#include "draw/heatmap.h"
#include "program/args.h"
#include "program/model_session.h"

enum { JUDGED_AT_ONCE = 64, NAME_COLUMNS = 16 };

/* -------------------------------------------------------------- counting ----- */

/* Room for the pictures that are classified at once. */
typedef struct judged_some {
    float *pixels, *logits;
    int classes[JUDGED_AT_ONCE];
} judged_some;

static int judge_some(const judged_images *what, int64_t first, int count, judged_some *some,
                      const mha_model *model, mha_pool *pool, confusion *c)
{
    char message[MODEL_MESSAGE_MAX] = "";
    if (!what->fill(what->arg, first, count, some->pixels, some->classes))
        return args_failed("out of memory");
    const mha_model_call call = {.size = sizeof call,
                                 .B = count,
                                 .pixels = some->pixels,
                                 .labels = some->logits,
                                 .message = message,
                                 .message_size = sizeof message};
    const mha_status status = mha_model_run(model, &call, NULL, 0, pool);
    for (int n = 0; n < count && status == MHA_OK; n++)
        confusion_add(c, some->classes[n], some->logits + n * c->classes);
    return status == MHA_OK ? EXIT_GO_ON
                            : args_failed("the model does not classify: %s",
                                          *message ? message : mha_status_string(status));
}

int judge_images(const judged_images *what, const mha_model *model, mha_pool *pool, confusion *c)
{
    const size_t classes = (size_t)what->classes;
    judged_some some = {.pixels = malloc(JUDGED_AT_ONCE * what->floats * sizeof *some.pixels),
                        .logits = malloc(JUDGED_AT_ONCE * classes * sizeof *some.logits)};
    int code = confusion_init(c, what->classes) && some.pixels != NULL && some.logits != NULL
                   ? EXIT_GO_ON
                   : args_failed("out of memory");
    for (int64_t first = 0; first < what->count && code == EXIT_GO_ON; first += JUDGED_AT_ONCE) {
        const int64_t left = what->count - first;
        code = judge_some(what, first, (int)(left < JUDGED_AT_ONCE ? left : JUDGED_AT_ONCE), &some,
                          model, pool, c);
    }
    free(some.pixels);
    free(some.logits);
    return code;
}

/* ------------------------------------------------------------- reporting ----- */

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

void judge_images_print(const judged_images *what, const confusion *c)
{
    const int64_t right = confusion_right(c, -1), all = confusion_total(c, -1);
    printf("pictures right     %.2f %% (%" PRId64 " of %" PRId64 " of the %s set)\n",
           100.0 * (double)right / (double)all, right, all, what->from);
    for (int n = 0; n < c->classes; n++) {
        const int64_t total = confusion_total(c, n);
        const int other = most_confused(c, n);
        if (total == 0)
            continue;
        printf("  %-16s %6.2f %%", what->names[n],
               100.0 * (double)confusion_right(c, n) / (double)total);
        if (other >= 0)
            printf("   %.2f %% taken for %s",
                   100.0 * (double)c->counts[n * c->classes + other] / (double)total,
                   what->names[other]);
        putchar('\n');
    }
}

void judge_images_put(json *j, const judged_images *what, const confusion *c)
{
    json_open_object(j, NULL);
    json_string(j, "split", what->from);
    json_integer(j, "pictures", confusion_total(c, -1));
    json_integer(j, "right", confusion_right(c, -1));
    json_open_array(j, "classes");
    for (int n = 0; n < c->classes; n++)
        json_string(j, NULL, what->names[n]);
    json_close(j);
    json_open_array(j, "confusion");
    for (int n = 0; n < c->classes; n++) {
        json_open_array(j, NULL);
        for (int k = 0; k < c->classes; k++)
            json_integer(j, NULL, c->counts[n * c->classes + k]);
        json_close(j);
    }
    json_close(j);
    json_close(j);
}

/* ------------------------------------------------------------- confusion ----- */

typedef struct confusion_picture {
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
int judge_images_draw(const judged_images *what, const confusion *c, const char *path)
{
    const size_t classes = (size_t)c->classes;
    float *const shares = calloc(classes * classes, sizeof *shares);
    text_word *const words = calloc(classes, sizeof *words);
    bool fine = shares != NULL && words != NULL;
    for (int n = 0; fine && n < c->classes; n++) {
        const int64_t total = confusion_total(c, n);
        words[n] = word_of(what->names[n]);
        for (int k = 0; k < c->classes && total > 0; k++)
            shares[n * c->classes + k] =
                (float)((double)c->counts[n * c->classes + k] / (double)total);
    }
    const confusion_picture shown = {c, shares, words};
    if (!fine)
        args_failed("out of memory");
    fine = fine && output_file_write(path, put_confusion, &shown);
    free(shares);
    free(words);
    return fine ? EXIT_FINE : EXIT_FAILED;
}
