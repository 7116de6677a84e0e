/* SPDX-License-Identifier: MIT */
/* Reads the first pictures of a live page (page_examples.h). */
#include "program/page_examples.h"

#include <stdlib.h>

#include "picture/picture_file.h"
#include "picture/picture_resize.h"
#include "program/args.h"
#include "scenes/scene.h"

enum { EXAMPLE_SEED = 1 };

static const char scene_name[] = "a scene";

static int read_file(const char *path, int side, int channels, uint8_t *to)
{
    char message[PICTURE_MESSAGE_MAX];
    picture p;
    if (!picture_file_read(path, &p, message))
        return args_failed("the model reads pictures, but %s", message);
    const bool fine = picture_input(&p, side, channels, to);
    picture_free(&p);
    return fine ? EXIT_GO_ON : args_failed("out of memory");
}

static int draw_scene(int side, int channels, uint8_t *to)
{
    scene *const s = malloc(sizeof *s);
    picture p = picture_new(SCENE_SIDE, SCENE_SIDE, SCENE_CHANNELS);
    bool fine = s != NULL && p.pixels != NULL;
    if (fine) {
        scene_generate(EXAMPLE_SEED, CORPUS_TEST, 0, s);
        for (int n = 0; n < SCENE_CHANNELS * SCENE_PIXELS; n++)
            p.pixels[n % SCENE_PIXELS * SCENE_CHANNELS + n / SCENE_PIXELS] = s->pixels[n];
        fine = picture_input(&p, side, channels, to);
    }
    picture_free(&p);
    free(s);
    return fine ? EXIT_GO_ON : args_failed("out of memory");
}

int page_examples_read(page_examples *e, const session *s, char **paths, int count)
{
    int side, channels;
    *e = (page_examples){.count = count > 0 ? count : 1};
    if (!subject_picture_size(&s->subject, &side, &channels))
        return args_failed("the model reads pictures that are neither grey nor coloured");
    const size_t size = (size_t)channels * (size_t)side * (size_t)side;
    e->list = calloc((size_t)e->count, sizeof *e->list);
    e->bytes = malloc((size_t)e->count * size);
    int code = e->list != NULL && e->bytes != NULL ? EXIT_GO_ON : args_failed("out of memory");
    for (int n = 0; code == EXIT_GO_ON && n < e->count; n++) {
        uint8_t *const to = e->bytes + (size_t)n * size;
        e->list[n] = (page_example){count > 0 ? paths[n] : scene_name, to};
        code = count > 0 ? read_file(paths[n], side, channels, to) : draw_scene(side, channels, to);
    }
    return code;
}

void page_examples_free(page_examples *e)
{
    free(e->list);
    free(e->bytes);
}
