/* SPDX-License-Identifier: MIT */
/* Models of captions and detectors as subjects (scene_subject.h). */
#include "program/scene_subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/picture_file.h"
#include "picture/picture_resize.h"
#include "program/args.h"
#include "vision/captioner.h"
#include "vision/detector.h"

/* A run costs more than the effects of single heads may, which are not measured. */
#define COST_OF_NO_EFFECTS 1e30

/* One side: words, and what a subject_side needs besides. */
typedef struct scene_side {
    const char **words;
    char (*room)[SUBJECT_WORD_MAX];
    int *numbers;
    bool *marks, *continues;
} scene_side;

/* The memory of a text. */
typedef struct scene_text {
    scene_side sides[TRANSFORMER_SIDES];
    const char **expected;
    char *name, caption[CAPTION_TEXT_MAX];
    uint8_t *bytes;
    float *pixels;
    caption_said said;
    subject_box *boxes;
} scene_text;

static const scene_model *model_of(const subject *s)
{
    return s->model;
}

static bool says_words(const subject *s)
{
    return model_of(s)->config.form == FORM_CAPTIONS;
}

static bool out_of_memory(char *message)
{
    snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
    return false;
}

/* ----------------------------------------------------------------- words ----- */

static bool make_side(scene_side *m, subject_side *side, int count)
{
    m->words = calloc((size_t)count, sizeof *m->words);
    m->room = calloc((size_t)count, sizeof *m->room);
    m->numbers = calloc((size_t)count, sizeof *m->numbers);
    m->marks = calloc(2 * (size_t)count, sizeof *m->marks);
    if (!m->words || !m->room || !m->numbers || !m->marks)
        return false;
    m->continues = m->marks + count;
    for (int n = 0; n < count; n++)
        m->words[n] = m->room[n];
    *side = (subject_side){.count = count,
                           .words = m->words,
                           .numbers = m->numbers,
                           .marks = m->marks,
                           .continues = m->continues};
    return true;
}

static bool list_patches(const scene_model *m, scene_text *memory, subject_text *text)
{
    const int across = vision_across(&m->config.vision);
    scene_side *const side = &memory->sides[TRANSFORMER_SOURCE];
    if (!make_side(side, &text->source, across * across))
        return false;
    for (int n = 0; n < across * across; n++) {
        side->numbers[n] = n;
        snprintf(side->room[n], SUBJECT_WORD_MAX, "%d.%d", n / across + 1, n % across + 1);
    }
    return true;
}

static const char *word_of_caption(int number)
{
    const char *const word = number >= 0 ? caption_word(number) : NULL;
    return word != NULL ? word : "?";
}

/* Rows read the mark of the language and then the words, and say the words and then the end. */
static bool list_caption(scene_text *memory, subject_text *text)
{
    const caption_said *const said = &memory->said;
    scene_side *const side = &memory->sides[TRANSFORMER_TARGET];
    memory->expected = calloc((size_t)said->count + 1, sizeof *memory->expected);
    if (!make_side(side, &text->target, said->count + 1) || !memory->expected)
        return false;
    side->marks[0] = true;
    side->numbers[0] = WORDS_SPECIAL + (int)SCENE_ENGLISH;
    snprintf(side->room[0], SUBJECT_WORD_MAX, "<%s>", scene_language_name(SCENE_ENGLISH));
    for (int n = 0; n < said->count; n++) {
        side->numbers[n + 1] = WORDS_SPECIAL + said->words[n];
        snprintf(side->room[n + 1], SUBJECT_WORD_MAX, "%s", word_of_caption(said->words[n]));
        memory->expected[n] = side->room[n + 1];
    }
    memory->expected[said->count] = "<end>";
    text->expected = memory->expected;
    caption_text(said->words, said->count, memory->caption);
    text->translation = memory->caption;
    return true;
}

/* Rows are queries, called by what they find. */
static bool list_queries(const scene_model *m, scene_text *memory, subject_text *text,
                         char *message)
{
    const int queries = m->config.positions;
    scene_side *const side = &memory->sides[TRANSFORMER_TARGET];
    detection *const found = calloc((size_t)queries, sizeof *found);
    memory->boxes = calloc((size_t)queries, sizeof *memory->boxes);
    bool fine = found && memory->boxes && make_side(side, &text->target, queries);
    if (fine && detector_find(m, memory->pixels, found) != MHA_OK)
        fine = false;
    for (int q = 0; fine && q < queries; q++) {
        char name[DETECTION_NAME_MAX];
        const box *const b = &found[q].box;
        detection_name(found[q].class, name);
        side->numbers[q] = q;
        snprintf(side->room[q], SUBJECT_WORD_MAX, "%s", name);
        memory->boxes[q] = (subject_box){.left = b->at[0] - b->at[2] / 2.0,
                                         .top = b->at[1] - b->at[3] / 2.0,
                                         .width = b->at[2],
                                         .height = b->at[3],
                                         .score = found[q].score};
    }
    free(found);
    text->boxes = memory->boxes;
    return fine || out_of_memory(message);
}

/* --------------------------------------------------------------- methods ----- */

static bool read_picture(const scene_model *m, const pair_request *request, scene_text *memory,
                         char *message)
{
    const vision_shape *const v = &m->config.vision;
    const size_t plane = (size_t)v->side * (size_t)v->side;
    char why[PICTURE_MESSAGE_MAX];
    picture p;
    memory->bytes = malloc(scene_model_floats(m));
    memory->pixels = malloc(scene_model_floats(m) * sizeof *memory->pixels);
    if (!memory->bytes || !memory->pixels)
        return out_of_memory(message);
    if (!picture_file_read(request->text, &p, why)) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "the model reads pictures, but %s", why);
        return false;
    }
    const bool fine = picture_input(&p, v->side, v->channels, memory->bytes);
    picture_free(&p);
    for (size_t n = 0; fine && n < scene_model_floats(m); n++)
        memory->pixels[n] = m->scale.table[n / plane][memory->bytes[n]];
    return fine || out_of_memory(message);
}

static bool read_text(const subject *s, const pair_request *request, mha_pool *pool,
                      subject_text *text, char message[SUBJECT_MESSAGE_MAX])
{
    const scene_model *const m = model_of(s);
    const vision_shape *const v = &m->config.vision;
    scene_text *const memory = text->memory = calloc(1, sizeof *memory);
    (void)pool;
    if (!memory)
        return out_of_memory(message);
    if (request->target) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "--to: this model says its own words; leave it out");
        return false;
    }
    memory->name = strdup(request->text);
    if (!memory->name || !list_patches(m, memory, text))
        return out_of_memory(message);
    if (!read_picture(m, request, memory, message))
        return false;
    text->text = memory->name;
    text->picture = (subject_picture){.across = vision_across(v),
                                      .side = v->side,
                                      .channels = v->channels,
                                      .patch = v->patch,
                                      .stride = v->stride,
                                      .bytes = memory->bytes};
    if (!says_words(s))
        return list_queries(m, memory, text, message);
    return (captioner_say(m, memory->pixels, SCENE_ENGLISH, &memory->said) == MHA_OK &&
            list_caption(memory, text)) ||
           out_of_memory(message);
}

static void free_text(subject_text *text)
{
    scene_text *const m = text->memory;
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        free((void *)m->sides[side].words);
        free(m->sides[side].room);
        free(m->sides[side].numbers);
        free(m->sides[side].marks);
    }
    free((void *)m->expected);
    free(m->name);
    free(m->bytes);
    free(m->pixels);
    free(m->boxes);
    free(m);
}

static void warn(const subject_text *text)
{
    (void)text;
}

/* What the rows read and say, and how likely that is. */
static void take_words(const subject *s, const subject_text *text, capture *c)
{
    memcpy(c->source, text->source.numbers, (size_t)c->source_count * sizeof *c->source);
    memcpy(c->target, text->target.numbers, (size_t)c->target_count * sizeof *c->target);
    memcpy(c->target_marks, text->target.marks, (size_t)c->target_count);
    if (!says_words(s))
        return;
    const row_score *const scores = network_scores(model_of(s)->network);
    c->scored = c->target_count;
    for (int row = 0; row < c->target_count; row++) {
        c->expected[row] = row + 1 < c->target_count ? c->target[row + 1] : WORD_END;
        c->predicted[row] = c->expected[row];
        c->log_likelihood[row] = -scores[row].loss;
    }
}

/* to[maps][rows][patches] = from[rows][maps][patches] */
static void turn(const float *from, const capture_heads *h, float *to)
{
    const ptrdiff_t maps = (ptrdiff_t)h->layers * h->heads, columns = h->columns;
    for (ptrdiff_t row = 0; row < h->rows; row++)
        for (ptrdiff_t map = 0; map < maps; map++)
            memcpy(to + (map * h->rows + row) * columns, from + (row * maps + map) * columns,
                   (size_t)columns * sizeof *to);
}

static capture *run(const subject *s, const subject_text *text, const capture_options *options,
                    mha_pool *pool)
{
    const scene_model *const m = model_of(s);
    const scene_text *const memory = text->memory;
    capture *const c = capture_new(text->source.count, text->target.count);
    (void)options;
    (void)pool;
    if (!c)
        return NULL;
    capture_heads *const h = &c->kind[ATTENTION_CROSS];
    *h = (capture_heads){.layers = s->shape.layers[ATTENTION_CROSS],
                         .heads = s->shape.heads,
                         .rows = c->target_count,
                         .columns = c->source_count,
                         .width = s->shape.width};
    const size_t cells = scene_model_maps(m) * (size_t)h->rows * (size_t)h->columns;
    float *const weights = malloc(cells * sizeof *weights);
    h->weights = malloc(cells * sizeof *h->weights);
    mha_status status = MHA_ERR_MEMORY;
    if (weights && h->weights)
        status = says_words(s)
                     ? captioner_weights(m, memory->pixels, SCENE_ENGLISH, &memory->said, weights)
                     : detector_weights(m, memory->pixels, weights);
    if (status == MHA_OK) {
        turn(weights, h, h->weights);
        take_words(s, text, c);
    }
    free(weights);
    if (status == MHA_OK)
        return c;
    capture_free(c);
    return NULL;
}

static const char *word_of(const subject *s, int number, char room[SUBJECT_WORD_MAX])
{
    (void)s;
    snprintf(room, SUBJECT_WORD_MAX, "%s",
             number == WORD_END ? "<end>" : word_of_caption(number - WORDS_SPECIAL));
    return room;
}

/* ------------------------------------------------------------------ open ----- */

bool scene_subject_is_folder(const char *folder)
{
    return scene_model_is_folder(&captioner_kind, folder) ||
           scene_model_is_folder(&detector_kind, folder);
}

scene_model *scene_subject_open(subject *s, const char *folder, mha_pool *pool)
{
    static const subject_methods methods = {
        .read = read_text, .text_free = free_text, .warn = warn, .run = run, .word = word_of};
    const bool captions = scene_model_is_folder(&captioner_kind, folder);
    const scene_model_kind *const kind = captions ? &captioner_kind : &detector_kind;
    char message[TRANSFORMER_MESSAGE_MAX];
    scene_model *const m = scene_model_load(kind, folder, MHA_EXACT, pool, message);
    if (m == NULL) {
        args_failed("%s", message);
        return NULL;
    }
    *s = (subject){.methods = &methods,
                   .shape = {.heads = m->config.heads, .width = m->config.width / m->config.heads},
                   .reads_pictures = true,
                   .width = m->config.width,
                   .family = kind->type,
                   .side_names = {"the picture", captions ? "the words" : "the queries"},
                   .run_cost = COST_OF_NO_EFFECTS,
                   .words = {.question = {-1, -1}},
                   .model = m};
    s->shape.layers[ATTENTION_CROSS] = m->config.layers[TRANSFORMER_TARGET];
    return m;
}
