/* SPDX-License-Identifier: MIT */
/* Makes a translator from parameters (packed layers, position codes), its vocabularies, and access
 * to its parts. Files are in translator_file.c, translation is in beam_search.c. */
#include "translator/translator_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------- vocabulary ----- */

const char *vocabulary_special(int word)
{
    static const char *const names[WORDS_SPECIAL] = {"<begin>", "<end>", "<unknown>"};
    return names[word];
}

/* All words are copied into one block of text, so that the vocabulary does not depend on the memory
 * of the caller. */
bool vocabulary_make(vocabulary *v, const char *const *words, int count)
{
    const size_t total = WORDS_SPECIAL + (size_t)(count > 0 ? count : 0);
    const char **const list = calloc(total, sizeof *list);
    size_t bytes = 0;
    for (size_t n = 0; list && n < total; n++) {
        list[n] = n < WORDS_SPECIAL ? vocabulary_special((int)n) : words[n - WORDS_SPECIAL];
        bytes += strlen(list[n]) + 1;
    }
    char *const text = list ? malloc(bytes) : NULL;
    if (!text) {
        free(list);
        return false;
    }
    for (size_t n = 0, at = 0; n < total; n++) {
        const size_t size = strlen(list[n]) + 1;
        memcpy(text + at, list[n], size);
        list[n] = text + at;
        at += size;
    }
    *v = (vocabulary){list, (int)total, text};
    return true;
}

void vocabulary_free(vocabulary *v)
{
    free(v->text);
    free(v->words);
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int vocabulary_find(const vocabulary *v, const char *word)
{
    if (v->count <= WORDS_SPECIAL)
        return WORD_UNKNOWN;
    const char *const *const found =
        bsearch(&word, v->words + WORDS_SPECIAL, (size_t)(v->count - WORDS_SPECIAL), sizeof word,
                compare_words);
    return found ? (int)(found - v->words) : WORD_UNKNOWN;
}

/* -------------------------------------------------------------- layers ----- */

static mha_status make_attention(mha_layer **layer, const translator *t, const attention_at *at,
                                 char *message)
{
    const mha_layer_config config = {.size = sizeof config,
                                     .E = t->config.width,
                                     .H = t->config.heads,
                                     .message = message,
                                     .message_size = TRANSFORMER_MESSAGE_MAX};
    const mha_layer_weights weights = transformer_layer_weights(&t->config, at, t->values);
    return mha_layer_create(layer, &config, &weights);
}

static mha_status make_linear(mha_linear **linear, int inputs, int outputs, const float *weight,
                              const float *bias, char *message)
{
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = inputs,
                                      .outputs = outputs,
                                      .weight = mha_matrix_out_in(weight, MHA_F32, inputs),
                                      .bias = {bias, MHA_F32},
                                      .message = message,
                                      .message_size = TRANSFORMER_MESSAGE_MAX};
    return mha_linear_create(linear, &config);
}

/* Packs the weights of one encoder or decoder layer. After an error the layers made so far stay in
 * `t`, for translator_free(). */
static mha_status make_layer(translator *t, int side, int number, char *message)
{
    const layer_at *const at = &t->map.layers[side][number];
    coder_layer *const layer = &t->layers[side][number];
    const int width = t->config.width, inside = t->config.ff_width;
    mha_status status = make_attention(&layer->self, t, &at->self, message);
    if (!status && side == TRANSFORMER_TARGET)
        status = make_attention(&layer->cross, t, &at->cross, message);
    if (!status)
        status = make_linear(&layer->in, width, inside, t->values + at->ff.in.weight,
                             t->values + at->ff.in.bias, message);
    if (!status)
        status = make_linear(&layer->out, inside, width, t->values + at->ff.out.weight,
                             t->values + at->ff.out.bias, message);
    return status;
}

/* Packs all layers, and the target embedding as the linear layer for the logits. */
static mha_status make_layers(translator *t, char *message)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        for (int n = 0; n < t->config.layers[side]; n++) {
            const mha_status status = make_layer(t, side, n, message);
            if (status)
                return status;
        }
    return make_linear(&t->logits, t->config.width, t->config.words[TRANSFORMER_TARGET],
                       t->values + t->map.embedding[TRANSFORMER_TARGET], NULL, message);
}

static mha_status make_codes(translator *t)
{
    const int longest = translator_longest(t);
    t->codes = malloc((size_t)longest * (size_t)t->config.width * sizeof *t->codes);
    if (!t->codes)
        return MHA_ERR_MEMORY;
    transformer_positions(&t->config, 0, longest, t->codes);
    return MHA_OK;
}

translator *translator_build(const transformer_config *config, float *values,
                             char message[TRANSFORMER_MESSAGE_MAX])
{
    translator *const t = values ? calloc(1, sizeof *t) : NULL;
    if (!t) {
        free(values);
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "out of memory for the model");
        return NULL;
    }
    t->config = *config;
    t->values = values;
    transformer_map_fill(&t->map, config);
    mha_status status = make_codes(t);
    if (!status)
        status = make_layers(t, message);
    if (status) {
        if (!*message)
            snprintf(message, TRANSFORMER_MESSAGE_MAX, "%s", mha_status_string(status));
        translator_free(t);
        return NULL;
    }
    return t;
}

/* ------------------------------------------------- creation and access ----- */

static float *copy_values(const transformer_config *config, const float *values)
{
    transformer_map map;
    transformer_map_fill(&map, config);
    float *const copy = malloc(map.count * sizeof *copy);
    if (copy)
        memcpy(copy, values, map.count * sizeof *copy);
    return copy;
}

/* Uses the vocabularies of the corpus where the number of words agrees. */
static bool take_corpus_words(translator *t)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        corpus_vocabulary corpus;
        corpus_vocabulary_fill(&corpus, (corpus_side)side);
        if (t->config.words[side] == WORDS_SPECIAL + corpus.count &&
            !vocabulary_make(&t->words[side], corpus.words, corpus.count))
            return false;
    }
    return true;
}

static bool has_corpus_words(const vocabulary *v, corpus_side side)
{
    corpus_vocabulary corpus;
    corpus_vocabulary_fill(&corpus, side);
    bool same = v->count == WORDS_SPECIAL + corpus.count;
    for (int n = 0; same && n < corpus.count; n++)
        same = strcmp(v->words[WORDS_SPECIAL + n], corpus.words[n]) == 0;
    return same;
}

void translator_find_laboratory(translator *t)
{
    t->laboratory = has_corpus_words(&t->words[TRANSFORMER_SOURCE], CORPUS_ENGLISH) &&
                    has_corpus_words(&t->words[TRANSFORMER_TARGET], CORPUS_FRENCH);
}

bool translator_is_laboratory(const translator *t)
{
    return t->laboratory;
}

translator *translator_create(const transformer_config *config, const float *values,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    *message = 0;
    if (!transformer_config_check(config, message))
        return NULL;
    translator *const t = translator_build(config, copy_values(config, values), message);
    if (t && !take_corpus_words(t)) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "out of memory for the vocabularies");
        translator_free(t);
        return NULL;
    }
    if (t)
        translator_find_laboratory(t);
    return t;
}

static void free_layer(const coder_layer *layer)
{
    mha_layer_free(layer->self);
    mha_layer_free(layer->cross);
    mha_linear_free(layer->in);
    mha_linear_free(layer->out);
}

void translator_free(translator *t)
{
    if (!t)
        return;
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        for (int n = 0; n < TRANSFORMER_LAYERS_MAX; n++)
            free_layer(&t->layers[side][n]);
        vocabulary_free(&t->words[side]);
    }
    mha_linear_free(t->logits);
    for (int n = 0; n < t->note_count; n++)
        free((char *)t->notes[n].name);
    free(t->notes);
    free(t->values);
    free(t->codes);
    free(t);
}

const float *translator_values(const translator *t)
{
    return t->values;
}

const transformer_map *translator_map(const translator *t)
{
    return &t->map;
}

const coder_layer *translator_layer(const translator *t, int side, int layer)
{
    return &t->layers[side][layer];
}

const mha_linear *translator_logits(const translator *t)
{
    return t->logits;
}

const transformer_config *translator_config(const translator *t)
{
    return &t->config;
}

const vocabulary *translator_vocabulary(const translator *t, int side)
{
    return &t->words[side];
}

const char *translator_note_text(const translator *t, const char *name)
{
    for (int n = 0; n < t->note_count; n++)
        if (strcmp(t->notes[n].name, name) == 0)
            return t->notes[n].text;
    return NULL;
}

int translator_longest(const translator *t)
{
    return t->config.positions < CORPUS_TOKENS_MAX ? t->config.positions : CORPUS_TOKENS_MAX;
}
