/* SPDX-License-Identifier: MIT */
/*
 * The page's JSON. The put_ functions below write one part of it each, in the order in which the
 * page has them; those that encode floats return false if out of memory, and the JSON is then
 * discarded.
 */
#include "page/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/unsure_translation.h"
#include "page/page_attention.h"
#include "page/page_picture.h"
#include "page/page_weights.h"
#include "page/page_words.h"

page_heads page_heads_of(const subject *model, const page_import *import)
{
    page_heads shape;
    for (int n = 0; n < ATTENTION_KINDS; n++) {
        const attention_kind kind = (attention_kind)n;
        shape.layers[n] =
            import != NULL ? page_import_layers(import, kind) : model->shape.layers[n];
        shape.heads[n] = import != NULL ? page_import_heads(import, kind) : model->shape.heads;
    }
    return shape;
}

/* Floats as base64 of their bytes (page_weights.h). */
static bool put_floats(json *j, const char *key, const float *values, size_t count)
{
    return page_put_text(j, key, page_floats_text(values, count));
}

static void put_model(json *j, const subject *model)
{
    json_open_object(j, "model");
    json_string(j, "family", model->family);
    json_integer(j, "width", model->width);
    json_integer(j, "heads", model->shape.heads);
    json_integer(j, "encoder_layers", model->shape.layers[ATTENTION_ENCODER]);
    json_integer(j, "decoder_layers", model->shape.layers[ATTENTION_DECODER]);
    json_bool(j, "translates", model->shape.layers[ATTENTION_CROSS] > 0);
    json_bool(j, "predicts", subject_predicts(model));
    if (model->reads_pictures)
        json_string(j, "reads", "pictures");
    json_close(j);
}

/* The words of a side, if there are any. */
static void put_side(json *j, const char *name, const subject_side *side)
{
    if (side->count > 0)
        page_side_put(j, name, side->words, side->marks, side->continues, side->count);
}

/* Which words of the source a translator does not know; other models have pieces for all words. */
static void put_unknown(json *j, const subject *model, const subject_side *side)
{
    json_open_array(j, "unknown");
    for (int n = 0; n < side->count; n++)
        if (model->translator != NULL && side->numbers[n] == WORD_UNKNOWN)
            json_integer(j, NULL, n);
    json_close(j);
}

/* The words that the model predicts, and how likely the expected ones are. */
static void put_predicted(json *j, const subject *model, const capture *heads)
{
    char room[SUBJECT_WORD_MAX];
    json_open_array(j, "said");
    for (int i = 0; i < heads->target_count; i++)
        json_string(j, NULL, subject_word(model, heads->predicted[i], room));
    json_close(j);
    json_open_array(j, "log_likelihood");
    for (int i = 0; i < heads->target_count; i++)
        json_number(j, NULL, i < heads->scored ? heads->log_likelihood[i] : NAN);
    json_close(j);
}

/* For each target word the positions of the source words that it comes from. */
static void put_alignment(json *j, const corpus_pair *pair)
{
    json_open_array(j, "alignment");
    for (int i = 0; i < pair->side[CORPUS_FRENCH].count; i++) {
        json_open_array(j, NULL);
        for (int s = 0; s < pair->side[CORPUS_ENGLISH].count; s++)
            if (pair->sources[i] >> s & 1)
                json_integer(j, NULL, s);
        json_close(j);
    }
    json_close(j);
}

/* Grammatical relations: for each the positions of its two words in source and target. */
static void put_roles(json *j, const corpus_pair *pair)
{
    static const char *const sides[CORPUS_SIDES] = {"source", "target"};
    json_open_array(j, "roles");
    for (int n = 0; n < pair->role_count; n++) {
        const corpus_role *const role = &pair->roles[n];
        json_open_object(j, NULL);
        json_string(j, "name", corpus_role_name(role->kind));
        for (int side = 0; side < CORPUS_SIDES; side++) {
            json_open_array(j, sides[side]);
            json_integer(j, NULL, role->first[side]);
            json_integer(j, NULL, role->second[side]);
            json_close(j);
        }
        json_close(j);
    }
    json_close(j);
}

/* The words that change when a head is disabled: only those that differ from the predicted ones. */
static void put_changed(json *j, const subject *model, const page_sentence *s, attention_kind kind)
{
    const capture_heads *const heads = &s->heads->kind[kind];
    const int rows = s->heads->target_count;
    const int *predicted = s->effects[kind].predicted;
    char room[SUBJECT_WORD_MAX];
    json_open_array(j, "changed");
    for (int map = 0; map < heads->layers * heads->heads; map++, predicted += rows)
        for (int i = 0; i < rows; i++)
            if (predicted[i] != s->heads->predicted[i]) {
                json_open_object(j, NULL);
                json_integer(j, "map", map);
                json_integer(j, "row", i);
                json_string(j, "word", subject_word(model, predicted[i], room));
                json_close(j);
            }
    json_close(j);
}

/* A page_attention.weights of captured heads. */
static const float *layer_of(void *arg, int layer)
{
    const capture_heads *const h = arg;
    return h->weights + (ptrdiff_t)layer * h->heads * h->rows * h->columns;
}

/* What a captured kind has in common with an imported one: shape, weights, measures, roles. */
static bool put_weights(json *j, const page_data *page, const page_sentence *s, attention_kind kind)
{
    const capture_heads *const h = &s->heads->kind[kind];
    const page_attention heads = {
        .scene = head_scene_of(s->heads, kind, &page->subject->words, s->text.gold),
        .baselines = &s->baselines,
        .picture =
            kind != ATTENTION_DECODER && s->text.picture.across > 0 ? &s->text.picture : NULL,
        .layers = h->layers,
        .heads = h->heads,
        .rows = h->rows,
        .columns = h->columns,
        .causal = kind == ATTENTION_DECODER,
        .weights = layer_of,
        .arg = (void *)h,
    };
    return page_attention_put(j, &heads);
}

/* Queries, keys and values, with which the page takes a weight apart. */
static bool put_vectors(json *j, const capture_heads *h)
{
    const size_t maps = (size_t)h->layers * (size_t)h->heads;
    const size_t rows = maps * (size_t)h->rows, columns = maps * (size_t)h->columns;
    const size_t width = (size_t)h->width;
    json_integer(j, "width", h->width);
    json_bool(j, "scores_differ", h->scores_differ);
    return put_floats(j, "q", h->q, rows * width) && put_floats(j, "k", h->k, columns * width) &&
           put_floats(j, "v", h->v, columns * width) &&
           (h->value_norms == NULL || put_floats(j, "value_norms", h->value_norms, columns));
}

/* An element of "kinds". A map is a head, counted layer by layer. */
static bool put_kind(json *j, const page_data *page, const page_sentence *s, attention_kind kind)
{
    const capture_heads *const h = &s->heads->kind[kind];
    const size_t maps = (size_t)h->layers * (size_t)h->heads;
    json_open_object(j, NULL);
    bool fine = put_weights(j, page, s, kind) && (h->q == NULL || put_vectors(j, h));
    if (fine && s->has_effects) {
        fine = put_floats(j, "losses", s->effects[kind].losses, maps) &&
               put_floats(j, "uniform_losses", s->effects[kind].uniform_losses, maps) &&
               (!subject_predicts(page->subject) ||
                put_floats(j, "word_losses", s->effects[kind].word_losses,
                           maps * (size_t)s->heads->target_count));
        put_changed(j, page->subject, s, kind);
    }
    json_close(j);
    return fine;
}

/* Whether a translation that the model wrote may be wrong, and which number it lacks. */
static void put_doubts(json *j, const subject_text *text)
{
    char number[LOST_NUMBER_MAX] = "";
    const bool lost =
        text->translation != NULL && unsure_lost_number(text->text, text->translation, number);
    json_bool(j, "unsure", lost || text->confidence < UNSURE_CONFIDENCE);
    if (lost)
        json_string(j, "lost_number", number);
}

static bool put_sentence(json *j, const page_data *page, const page_sentence *s,
                         const page_steps *steps)
{
    const subject_text *const text = &s->text;
    bool fine = true;
    json_open_object(j, NULL);
    json_string(j, "text", text->text);
    if (text->translation != NULL)
        json_string(j, "translation", text->translation);
    if (text->confidence > 0.0) {
        json_number(j, "confidence", text->confidence);
        put_doubts(j, text);
    }
    fine &= page_picture_put(j, &text->picture);
    page_probabilities_put(j, s->heads);
    page_boxes_put(j, text);
    put_side(j, "source", &text->source);
    put_side(j, "target", &text->target);
    put_unknown(j, page->subject, &text->source);
    if (text->expected != NULL) {
        json_strings(j, "expected", text->expected, text->target.count);
        put_predicted(j, page->subject, s->heads);
    }
    if (s->heads->vector != NULL)
        fine = put_floats(j, "vector", s->heads->vector, (size_t)s->heads->vector_width);
    if (text->gold != NULL) {
        put_alignment(j, text->gold);
        put_roles(j, text->gold);
    } else if (text->no_gold != NULL) {
        json_string(j, "no_gold", text->no_gold);
    }
    if (text->outside != NULL)
        json_string(j, "outside", text->outside);
    json_open_array(j, "kinds");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (s->heads->kind[kind].layers > 0)
            fine &= put_kind(j, page, s, (attention_kind)kind);
    json_close(j);
    if (steps != NULL)
        fine &= page_steps_put(j, steps);
    json_close(j);
    return fine;
}

/* Pictures to try, which a live page sends back. False: out of memory. */
static bool put_examples(json *j, const page_data *page)
{
    int side = 0, channels = 0;
    bool fine = subject_picture_size(page->subject, &side, &channels);
    const size_t size = (size_t)channels * (size_t)side * (size_t)side;
    json_open_array(j, "examples");
    for (int n = 0; fine && n < page->example_count; n++) {
        json_open_object(j, NULL);
        json_string(j, "name", page->examples[n].name);
        fine = page_put_text(j, "bytes", page_bytes_text(page->examples[n].bytes, size));
        json_close(j);
    }
    json_close(j);
    return fine;
}

char *page_json(const page_data *page)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    json j = json_begin(file);
    bool fine = true;
    json_open_object(&j, NULL);
    json_string(&j, "format", "mha-view-2");
    json_string(&j, "version", mha_version_string());
    json_string(&j, "command", page->command);
    if (page->words)
        json_bool(&j, "words", true);
    if (page->subject != NULL)
        put_model(&j, page->subject);
    if (page->subject != NULL && page->subject->classes != NULL)
        json_strings(&j, "classes", page->subject->classes, page->subject->class_count);
    if (page->study != NULL)
        page_study_put(&j, page->study);
    if (page->ablation != NULL)
        page_ablation_put(&j, page->ablation);
    if (page->lecture != NULL)
        page_lecture_put(&j, page->lecture);
    if (page->example_count > 0)
        fine = put_examples(&j, page);
    json_open_array(&j, "sentences");
    if (page->import != NULL)
        fine &= page_import_put(&j, page->import);
    for (int n = 0; n < page->count; n++)
        fine &= put_sentence(&j, page, &page->sentences[n],
                             page->steps != NULL ? &page->steps[n] : NULL);
    json_close(&j);
    if (page->matrices != NULL)
        fine &= page_matrices_put(&j, page->matrices);
    json_close(&j);
    fine &= ferror(file) == 0;
    fine &= fclose(file) == 0;
    if (!fine) {
        free(text);
        text = NULL;
    }
    return text;
}
