/* SPDX-License-Identifier: MIT */
/* Reads texts for a model: each line of a file becomes the tokens of the model (heads/subject.h).
 */
#include "program/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/terminal.h"
#include "format/text_file.h"
#include "picture/picture_resize.h"
#include "picture/picture_set.h"
#include "program/args.h"
#include "program/pair_files.h"

static int add_text(text_set *set, const session *s, const char *text, const char *place)
{
    const pair_request request = {.text = text};
    char message[SUBJECT_MESSAGE_MAX];
    if (subject_read(&s->subject, &request, s->pool, &set->texts[set->count++], message))
        return EXIT_GO_ON;
    progress_end();
    return place != NULL ? args_failed("%s: %s", place, message) : args_failed("%s", message);
}

/* Lines that have more than white space, at most `most`. */
static int64_t count_lines(const char *text, int64_t most)
{
    int64_t count = 0;
    while (*text != '\0' && count < most) {
        const size_t length = strcspn(text, "\n");
        count += strspn(text, " \t\r") < length;
        text += length + (text[length] == '\n');
    }
    return count;
}

static int read_lines(text_set *set, const session *s, const char *path, char *text, int64_t most)
{
    int code = EXIT_GO_ON;
    for (int line = 1; code == EXIT_GO_ON && *text != '\0' && set->count < most; line++) {
        char place[512];
        const size_t length = strcspn(text, "\n");
        char *const next = text + length + (text[length] == '\n');
        const bool empty = strspn(text, " \t\r") >= length;
        text[length] = '\0';
        if (length > 0 && text[length - 1] == '\r')
            text[length - 1] = '\0';
        snprintf(place, sizeof place, "%.400s:%d", path, line);
        if (!empty) {
            progress("reading text %d", set->count + 1);
            code = add_text(set, s, text, place);
        }
        text = next;
    }
    progress_end();
    return code;
}

int text_set_read(text_set *set, const session *s, const char *path, int64_t most)
{
    char message[TEXT_FILE_MESSAGE_MAX];
    size_t length;
    *set = (text_set){.texts = NULL};
    char *const text = text_file_read(path, &length, message);
    if (text == NULL)
        return args_failed("%s", message);
    const int64_t count = count_lines(text, most);
    set->texts = calloc((size_t)count + 1, sizeof *set->texts);
    int code = count == 0              ? args_failed("%s: there are no texts in it", path)
               : set->texts == NULL    ? args_failed("out of memory")
               : strlen(text) < length ? args_failed("%s: has a byte of 0", path)
                                       : read_lines(set, s, path, text, count);
    free(text);
    return code;
}

/* ---------------------------------------------------------------- pairs ----- */

/* Reads one pair as the next text of the set, unless it is too long. */
static int add_pair(text_set *set, const session *s, const char *given, const pair_text *pair)
{
    char *const sides[] = {strndup(pair->text[0], pair->length[0]),
                           strndup(pair->text[1], pair->length[1])};
    subject_text *const text = &set->texts[set->count];
    char message[SUBJECT_MESSAGE_MAX] = "out of memory";
    const pair_request request = {.text = sides[0], .target = sides[1]};
    const bool room = sides[0] != NULL && sides[1] != NULL;
    const bool fine = room && subject_read(&s->subject, &request, s->pool, text, message);
    const bool too_long = room && !fine && text->too_long;
    free(sides[0]);
    free(sides[1]);
    if (too_long)
        subject_text_free(&s->subject, text);
    set->too_long += too_long;
    set->count += !too_long;
    if (fine || too_long)
        return EXIT_GO_ON;
    progress_end();
    return args_failed("%s:%" PRId64 ": %s", given, pair->line, message);
}

static int add_pairs(text_set *set, const session *s, const char *given, const pair_file *file,
                     int64_t most)
{
    int code = EXIT_GO_ON;
    set->texts = calloc((size_t)(most < file->count ? most : file->count) + 1, sizeof *set->texts);
    if (set->texts == NULL)
        return args_failed("out of memory");
    for (int64_t n = 0; n < file->count && set->count < most && code == EXIT_GO_ON; n++) {
        progress("reading pair %d", set->count + 1);
        code = add_pair(set, s, given, &file->pairs[n]);
    }
    progress_end();
    if (code != EXIT_GO_ON)
        return code;
    if (set->too_long > 0)
        fprintf(stderr, "mha: %s: %d pairs left out, longer than the model's positions\n", given,
                set->too_long);
    return set->count > 0 ? EXIT_GO_ON : args_failed("%s: no pair is left", given);
}

int text_set_read_pairs(text_set *set, const session *s, const char *given, int64_t most)
{
    pair_file file;
    *set = (text_set){.texts = NULL};
    int code = pair_files_open(&file, given);
    if (code == EXIT_GO_ON)
        code = add_pairs(set, s, given, &file, most);
    pair_file_close(&file);
    return code;
}

/* ------------------------------------------------------------- pictures ----- */

/* Picture n of a set as a text of its own. */
static int add_picture(text_set *set, const session *s, const picture_set *pictures, ptrdiff_t n,
                       const mha_model_info *info, uint8_t *room)
{
    char name[PICTURE_SET_NAME_MAX + 32], message[SUBJECT_MESSAGE_MAX] = "out of memory";
    const size_t plane = (size_t)pictures->rows * (size_t)pictures->columns;
    const uint8_t *const bytes = pictures->pixels + (size_t)n * picture_set_bytes(pictures);
    picture p = picture_new(pictures->rows, pictures->columns, pictures->channels);
    for (size_t at = 0; p.pixels && at < picture_set_bytes(pictures); at++)
        p.pixels[at % plane * (size_t)p.channels + at / plane] = bytes[at];
    const pair_request request = {.text = name, .picture = room};
    snprintf(name, sizeof name, "%td: %s", n, pictures->names[pictures->labels[n]]);
    const bool fine =
        p.pixels && picture_input(&p, (int)info->image_size, (int)info->channels, room) &&
        subject_read(&s->subject, &request, s->pool, &set->texts[set->count++], message);
    picture_free(&p);
    return fine ? EXIT_GO_ON : args_failed("%s", message);
}

static int add_pictures(text_set *set, const session *s, const picture_set *pictures, int64_t most)
{
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(s->any, &info);
    const int64_t count = most < pictures->count ? most : pictures->count;
    uint8_t *const room =
        malloc((size_t)info.channels * (size_t)info.image_size * (size_t)info.image_size);
    set->texts = calloc((size_t)count + 1, sizeof *set->texts);
    int code = room && set->texts ? EXIT_GO_ON : args_failed("out of memory");
    for (int64_t n = 0; n < count && code == EXIT_GO_ON; n++)
        code = add_picture(set, s, pictures, (ptrdiff_t)(n * pictures->count / count), &info, room);
    free(room);
    return code;
}

int text_set_read_images(text_set *set, const session *s, const char *folder, int64_t most)
{
    char message[PICTURE_MESSAGE_MAX];
    picture_set train, test;
    *set = (text_set){.texts = NULL};
    if (!s->subject.reads_pictures)
        return args_wrong("--images: the model reads texts, not pictures");
    if (!picture_set_open(folder, 0, &train, &test, message))
        return args_failed("%s", message);
    const int code = add_pictures(set, s, test.count > 0 ? &test : &train, most);
    picture_set_free(&train);
    picture_set_free(&test);
    return code;
}

bool model_sentences(const session *s, char path[MODEL_SENTENCES_MAX])
{
    struct stat about;
    snprintf(path, MODEL_SENTENCES_MAX, "%s/" MODEL_SENTENCES, s->path);
    return s->any != NULL && s->subject.shape.layers[ATTENTION_CROSS] > 0 &&
           stat(path, &about) == 0;
}

int text_set_read_study(text_set *set, const session *s, const char *given, int64_t most,
                        char from[MODEL_SENTENCES_MAX])
{
    *set = (text_set){.texts = NULL};
    if (given == NULL)
        return model_sentences(s, from) ? text_set_read_pairs(set, s, from, most) : EXIT_GO_ON;
    snprintf(from, MODEL_SENTENCES_MAX, "%s", given);
    return text_set_read(set, s, given, most);
}

/* ------------------------------------------------------------------ set ----- */

int text_set_one(text_set *set, const session *s, const char *text)
{
    *set = (text_set){.texts = calloc(1, sizeof *set->texts)};
    if (set->texts == NULL)
        return args_failed("out of memory");
    const int code = add_text(set, s, text, NULL);
    if (code == EXIT_GO_ON)
        subject_warn(&s->subject, &set->texts[0]);
    return code;
}

void text_set_free(text_set *set, const session *s)
{
    for (int n = 0; n < set->count; n++)
        subject_text_free(&s->subject, &set->texts[n]);
    free(set->texts);
    *set = (text_set){.texts = NULL};
}

subject_texts text_set_texts(const text_set *set)
{
    return (subject_texts){.texts = set->texts, .count = set->count};
}

int texts_needed(const char *command, const char *instead)
{
    return args_wrong("%s: this model is not a translator of \"mha train\", so there is no corpus "
                      "to measure its heads on; give %s",
                      command, instead);
}
