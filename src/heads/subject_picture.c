/* SPDX-License-Identifier: MIT */
/*
 * The text of a model that reads pictures is the name of a picture: a PNG, PGM or PPM file, which
 * is scaled to the size that the model reads, and its pixels as the model's files say. Its tokens
 * are the marks of the model and then the patches, row by row: "1.3" is the third patch of the
 * first row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads/picture_object.h"
#include "heads/subject_model_parts.h"
#include "model/inspect.h"
#include "picture/picture_file.h"
#include "picture/picture_resize.h"

/* bytes[channels][size][size] of the file. */
static bool read_file(const mha_model_info *info, const char *path, uint8_t *bytes, char *message)
{
    char why[PICTURE_MESSAGE_MAX];
    picture p;
    if (!picture_file_read(path, &p, why)) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "the model reads pictures, but %s", why);
        return false;
    }
    const bool fine = picture_input(&p, (int)info->image_size, (int)info->channels, bytes);
    picture_free(&p);
    return fine || model_out_of_memory(message);
}

/* The marks of the model, then its patches. */
static void list_patches(model_side *m, int marks, int patches)
{
    for (int n = 0; n < marks + patches * patches; n++) {
        const int patch = n - marks;
        m->side.marks[n] = n < marks;
        m->side.numbers[n] = n;
        if (n < marks)
            snprintf(m->room[n], SUBJECT_WORD_MAX, n == 0 ? "[CLS]" : "[DIST]");
        else
            snprintf(m->room[n], SUBJECT_WORD_MAX, "%d.%d", patch / patches + 1,
                     patch % patches + 1);
        m->side.words[n] = m->room[n];
    }
    m->side.count = marks + patches * patches;
}

/* What the model reads, and which of its patches show the object. The text gets the bytes. False:
 * out of memory. */
static bool take_bytes(const subject *s, const mha_model_info *info, uint8_t *bytes, model_text *m)
{
    const int side = (int)info->image_size, channels = (int)info->channels;
    const size_t pixels = (size_t)side * (size_t)side;
    const picture_grid grid = {.side = side,
                               .channels = channels,
                               .patch = (int)info->patch,
                               .stride = model_picture_stride(model_of(s)),
                               .across = model_picture_across(model_of(s))};
    m->bytes = bytes;
    m->pixels = malloc((size_t)channels * pixels * sizeof *m->pixels);
    m->object = malloc((size_t)grid.across * (size_t)grid.across * sizeof *m->object);
    if (!m->pixels || !m->object)
        return false;
    for (size_t n = 0; n < (size_t)channels * pixels; n++) {
        const size_t c = n / pixels;
        m->pixels[n] = ((float)bytes[n] / 255.0f - info->image_mean[c]) / info->image_deviation[c];
    }
    m->picture = (subject_picture){.marks = model_picture_marks(model_of(s)),
                                   .across = grid.across,
                                   .side = side,
                                   .channels = channels,
                                   .patch = grid.patch,
                                   .stride = grid.stride,
                                   .bytes = bytes};
    if (picture_object_find(&grid, bytes, m->object))
        m->picture.object = m->object;
    return true;
}

bool subject_picture_size(const subject *s, int *side, int *channels)
{
    mha_model_info info = {.size = sizeof info};
    if (!s->reads_pictures || mha_model_get_info(model_of(s), &info) != MHA_OK)
        return false;
    *side = (int)info.image_size;
    *channels = (int)info.channels;
    return *channels == 1 || *channels == 3;
}

bool subject_picture_read(const subject *s, const pair_request *request, model_text *m,
                          char *message)
{
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model_of(s), &info);
    const int marks = model_picture_marks(model_of(s)), across = model_picture_across(model_of(s));
    const size_t size = (size_t)info.channels * (size_t)info.image_size * (size_t)info.image_size;
    model_side *const side = &m->sides[TRANSFORMER_SOURCE];
    if (info.channels != 1 && info.channels != 3) {
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "the model reads pictures of %td channels; grey or coloured ones can be given",
                 info.channels);
        return false;
    }
    uint8_t *const bytes = malloc(size);
    bool fine = bytes || model_out_of_memory(message);
    if (fine && request->picture)
        memcpy(bytes, request->picture, size);
    else if (fine)
        fine = read_file(&info, request->text, bytes, message);
    fine = fine && model_side_make(side, marks + across * across, message);
    if (!fine) {
        free(bytes);
        return false;
    }
    list_patches(side, marks, across);
    return take_bytes(s, &info, bytes, m) || model_out_of_memory(message);
}
