/* SPDX-License-Identifier: MIT */
/* Folders of models that say what is in a picture, and what they say (captioner.h). */
#include "vision/captioner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/picture.h"
#include "vision/caption_data.h"
#include "vision/classes.h"
#include "vision/vision_folder.h"

#define MODEL_TYPE "mha_captions"

/* ----------------------------------------------------------------- writing ----- */

static void config_json(json *j, const void *content)
{
    static const char *const own[] = {"MhaCaptions"};
    const captioner_content *const c = content;
    const transformer_config *const m = c->config;
    json_strings(j, "architectures", own, 1);
    json_string(j, "model_type", MODEL_TYPE);
    json_integer(j, "hidden_size", m->width);
    json_integer(j, "num_attention_heads", m->heads);
    json_integer(j, "intermediate_size", m->ff_width);
    json_integer(j, "encoder_layers", m->layers[TRANSFORMER_SOURCE]);
    json_integer(j, "decoder_layers", m->layers[TRANSFORMER_TARGET]);
    json_integer(j, "image_size", m->vision.side);
    json_integer(j, "num_channels", m->vision.channels);
    json_integer(j, "patch_size", m->vision.patch);
    json_integer(j, "patch_stride", m->vision.stride);
    json_string(j, "places", vision_places_name(m->vision.places));
    json_integer(j, "max_position_embeddings", m->positions);
    json_open_array(j, "words");
    for (int n = 0; n < caption_word_count(); n++)
        json_string(j, NULL, caption_word(n));
    json_close(j);
    json_string(j, "torch_dtype", c->type == MHA_F16 ? "float16" : "float32");
}

static void preprocessor_json(json *j, const void *content)
{
    const captioner_content *const c = content;
    vision_folder_preprocessor(j, &c->config->vision, c->scale);
}

mha_status captioner_write(const char *folder, const captioner_content *c,
                           char message[TRANSFORMER_MESSAGE_MAX])
{
    const folder_tensors tensors = {.config = c->config,
                                    .values = c->values,
                                    .type = c->type,
                                    .prefix = "",
                                    .notes = c->notes,
                                    .note_count = c->note_count};
    mha_status status = model_folder_make(folder, message);
    if (status == MHA_OK)
        status = model_folder_tensors(folder, &tensors, message);
    if (status == MHA_OK)
        status =
            model_folder_json(folder, "preprocessor_config.json", preprocessor_json, c, message);
    if (status == MHA_OK)
        status = model_folder_json(folder, "config.json", config_json, c, message);
    return status;
}

/* ----------------------------------------------------------------- reading ----- */

bool captioner_is_folder(const char *folder)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    const char *type = "";
    folder_config r;
    if (folder_config_open(&r, folder, message) != MHA_OK)
        return false;
    json_tree_get_string(folder_config_member(&r, "model_type"), &type, NULL);
    const bool is = strcmp(type, MODEL_TYPE) == 0;
    json_tree_free(r.tree);
    return is;
}

static vision_places read_places(folder_config *r)
{
    const char *text = "";
    json_tree_get_string(folder_config_member(r, "places"), &text, NULL);
    for (int n = 0; n < VISION_PLACES; n++)
        if (strcmp(text, vision_places_name((vision_places)n)) == 0)
            return (vision_places)n;
    folder_config_refuse(r, "places", "\"learned\" or \"sines\"");
    return VISION_LEARNED;
}

/* The words must be those of captions, in their order. */
static void read_words(folder_config *r)
{
    const json_value *const list = folder_config_member(r, "words");
    bool same = list && json_tree_count(list) == (size_t)caption_word_count();
    for (int n = 0; same && n < caption_word_count(); n++) {
        const char *text;
        same = json_tree_get_string(json_tree_element(list, (size_t)n), &text, NULL) &&
               strcmp(text, caption_word(n)) == 0;
    }
    if (!same)
        folder_config_refuse(r, "words", "the list of words of captions of scenes");
}

mha_status captioner_read_config(folder_config *r, transformer_config *config)
{
    folder_config_expect(r, "model_type", MODEL_TYPE);
    read_words(r);
    const transformer_config read = {.form = FORM_CAPTIONS,
                                     .width = folder_config_size(r, "hidden_size"),
                                     .heads = folder_config_size(r, "num_attention_heads"),
                                     .ff_width = folder_config_size(r, "intermediate_size"),
                                     .layers = {folder_config_size(r, "encoder_layers"),
                                                folder_config_size(r, "decoder_layers")},
                                     .words = {0, WORDS_SPECIAL + caption_word_count()},
                                     .positions = folder_config_size(r, "max_position_embeddings"),
                                     .vision = {.side = folder_config_size(r, "image_size"),
                                                .channels = folder_config_size(r, "num_channels"),
                                                .patch = folder_config_size(r, "patch_size"),
                                                .stride = folder_config_size(r, "patch_stride"),
                                                .pooling = VISION_MEAN,
                                                .places = read_places(r)}};
    if (r->status == MHA_OK && read.vision.channels != SCENE_CHANNELS)
        folder_config_refuse(r, "num_channels", "3");
    return folder_config_close(r, &read, config);
}

static mha_status load(captioner *c, const char *folder, mha_arithmetic arithmetic, mha_pool *pool,
                       char message[TRANSFORMER_MESSAGE_MAX])
{
    char problem[PICTURE_MESSAGE_MAX];
    folder_config r;
    mha_status status = folder_config_open(&r, folder, message);
    if (status == MHA_OK)
        status = captioner_read_config(&r, &c->config);
    if (status != MHA_OK)
        return status;
    if (!classes_read_scale(folder, &c->scale, c->config.vision.channels, problem)) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "%s", problem);
        return MHA_ERR_FORMAT;
    }
    const folder_values wanted = {.config = &c->config, .prefix = ""};
    status = model_folder_values(folder, &wanted, &c->values, message);
    if (status != MHA_OK)
        return status;
    c->network = network_create(&c->config, c->values, arithmetic, pool);
    if (c->network)
        return MHA_OK;
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: out of memory", folder);
    return MHA_ERR_MEMORY;
}

captioner *captioner_load(const char *folder, mha_arithmetic arithmetic, mha_pool *pool,
                          char message[TRANSFORMER_MESSAGE_MAX])
{
    captioner *const c = calloc(1, sizeof *c);
    if (!c) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: out of memory", folder);
        return NULL;
    }
    if (load(c, folder, arithmetic, pool, message) == MHA_OK)
        return c;
    captioner_free(c);
    return NULL;
}

void captioner_free(captioner *c)
{
    if (!c)
        return;
    network_free(c->network);
    free(c->values);
    free(c);
}

/* ------------------------------------------------------------------ saying ----- */

/* Runs the model on one picture and the words so far. */
static mha_status run(const captioner *c, const float *pixels, const caption_ids *caption,
                      const network_mode *mode, network_loss *loss)
{
    const vision_shape *const v = &c->config.vision;
    const size_t floats = (size_t)v->channels * (size_t)v->side * (size_t)v->side;
    batch *const b = batch_of_captions(caption, 1, WORD_END, vision_tokens(v), floats);
    if (!b)
        return MHA_ERR_MEMORY;
    memcpy(b->pixels, pixels, floats * sizeof *pixels);
    const mha_status status = network_forward(c->network, b, mode, loss);
    batch_free(b);
    return status;
}

/* The word after ids[count], and the log-probability of these, with that of the end if that is the
 * word. */
static mha_status next_word(const captioner *c, const float *pixels, const caption_ids *caption,
                            int *word, double *score)
{
    int said[CAPTION_WORDS_MAX + 1];
    const network_mode mode = {.said = said};
    network_loss loss;
    const mha_status status = run(c, pixels, caption, &mode, &loss);
    if (status != MHA_OK)
        return status;
    *word = said[caption->count];
    *score = -loss.sum;
    if (*word != WORD_END)
        *score += network_scores(c->network)[caption->count].loss;
    return MHA_OK;
}

mha_status captioner_say(const captioner *c, const float *pixels, scene_language language,
                         caption_said *said)
{
    int ids[CAPTION_WORDS_MAX];
    caption_ids caption = {.ids = ids, .begin = WORDS_SPECIAL + (int)language};
    const int most =
        c->config.positions - 1 < CAPTION_WORDS_MAX ? c->config.positions - 1 : CAPTION_WORDS_MAX;
    for (;;) {
        int word;
        const mha_status status = next_word(c, pixels, &caption, &word, &said->score);
        if (status != MHA_OK)
            return status;
        said->complete = word == WORD_END;
        if (said->complete || caption.count == most)
            break;
        ids[caption.count++] = word;
    }
    said->count = caption.count;
    for (int n = 0; n < caption.count; n++)
        said->words[n] = ids[n] >= WORDS_SPECIAL ? ids[n] - WORDS_SPECIAL : -1;
    return MHA_OK;
}

/* weights[layers][heads][rows][patches] -> to[rows][layers][heads][patches] */
static void turn(const float *weights, size_t maps, size_t rows, size_t patches, float *to)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t map = 0; map < maps; map++)
            memcpy(to + (row * maps + map) * patches, weights + (map * rows + row) * patches,
                   patches * sizeof *to);
}

mha_status captioner_weights(const captioner *c, const float *pixels, scene_language language,
                             const caption_said *said, float *weights)
{
    const size_t maps = (size_t)c->config.layers[TRANSFORMER_TARGET] * (size_t)c->config.heads;
    const size_t patches = (size_t)vision_tokens(&c->config.vision);
    const size_t rows = (size_t)said->count + 1;
    int ids[CAPTION_WORDS_MAX];
    for (int n = 0; n < said->count; n++)
        ids[n] = said->words[n] < 0 ? WORD_UNKNOWN : WORDS_SPECIAL + said->words[n];
    const caption_ids caption = {ids, said->count, WORDS_SPECIAL + (int)language};
    float *const cross = calloc(maps * rows, patches * sizeof *cross);
    network_loss loss;
    if (!cross)
        return MHA_ERR_MEMORY;
    const mha_status status = run(c, pixels, &caption, &(network_mode){.cross = cross}, &loss);
    if (status == MHA_OK)
        turn(cross, maps, rows, patches, weights);
    free(cross);
    return status;
}
