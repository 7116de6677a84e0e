/* SPDX-License-Identifier: MIT */
/*
 * The cross-attention of a translation, for "mha translate --attention":
 *
 *      text, translation --subject_read(), subject_run()--> weights of all heads
 *      --capture_join_words()--> of whole words --show_maps_make()--> the sheet of one layer
 */
#include "program/translate_maps.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/output_file.h"
#include "heads/whole_words.h"
#include "program/args.h"
#include "program/maps.h"

static void draw_svg(FILE *file, const void *arg)
{
    heatmap_svg(file, arg, 1, "$ mha translate --attention");
}

static int deliver(const translate_maps_request *r, const heatmap_sheet *sheet,
                   const terminal *screen)
{
    if (r->attention) {
        printf("\n");
        heatmap_draw(stdout, sheet, screen);
        printf("\n");
    }
    if (r->svg == NULL)
        return EXIT_GO_ON;
    if (!output_file_write(r->svg, draw_svg, sheet))
        return EXIT_FAILED;
    fprintf(stderr, "mha: wrote %s\n", r->svg);
    return EXIT_GO_ON;
}

/* Makes the one sheet of the scene, in which the heads of one layer are drawn. */
static int draw_scene(const translate_maps_request *r, const show_scene *scene,
                      const terminal *screen)
{
    show_maps maps;
    const int code = show_maps_make(&maps, scene) ? deliver(r, &maps.sheets[0].map.sheet, screen)
                                                  : args_failed("out of memory");
    show_maps_free(&maps);
    return code;
}

static int draw_heads(const subject *model, const translate_maps_request *r,
                      const subject_text *text, capture *heads, const terminal *screen)
{
    const int layers = model->shape.layers[ATTENTION_CROSS];
    const int layer = r->layer > 0 ? r->layer : layers;
    bool *const drawn = calloc((size_t)head_count(model->shape), sizeof *drawn);
    whole_words words = {.letters = NULL};
    int code = EXIT_FAILED;
    if (drawn == NULL || !capture_join_words(heads) || !whole_words_make(&words, text)) {
        args_failed("out of memory");
    } else {
        for (int head = 0; head < model->shape.heads; head++)
            drawn[head_number(model->shape, (head_name){ATTENTION_CROSS, layer - 1, head})] =
                r->head == 0 || r->head == head + 1;
        const show_scene scene = {.model = model,
                                  .text = &words.text,
                                  .heads = heads,
                                  .drawn = drawn,
                                  .mean = r->head == 0};
        code = draw_scene(r, &scene, screen);
    }
    whole_words_free(&words);
    free(drawn);
    return code;
}

int translate_maps_check(const session *opened, const translate_maps_request *request)
{
    const head_shape shape = opened->subject.shape;
    const bool drawn = request->attention || request->svg != NULL;
    if (drawn && opened->subject.methods == NULL)
        return args_failed("translate: heads of this model cannot be drawn: its layers have "
                           "different numbers of them");
    if (!drawn)
        return EXIT_GO_ON;
    const int layers = shape.layers[ATTENTION_CROSS];
    if (request->layer > layers)
        return args_wrong("translate: --layer %d: the decoder has %d layers", request->layer,
                          layers);
    if (request->head > shape.heads)
        return args_wrong("translate: --head %d: a layer has %d heads", request->head, shape.heads);
    return EXIT_GO_ON;
}

int translate_maps_draw(const session *opened, const translate_maps_request *request,
                        const char *text, const char *target, const terminal *screen)
{
    const subject *const model = &opened->subject;
    const pair_request pair = {.text = text, .target = target};
    const capture_options options = {.weights = true};
    char message[SUBJECT_MESSAGE_MAX];
    subject_text read = {.text = NULL};
    int code = EXIT_GO_ON;
    if (!subject_read(model, &pair, opened->pool, &read, message))
        code = args_failed("%s", message);
    capture *const heads =
        code == EXIT_GO_ON ? subject_run(model, &read, &options, opened->pool) : NULL;
    if (heads != NULL)
        code = draw_heads(model, request, &read, heads, screen);
    else if (code == EXIT_GO_ON)
        code = args_failed("out of memory");
    capture_free(heads);
    subject_text_free(model, &read);
    return code;
}
