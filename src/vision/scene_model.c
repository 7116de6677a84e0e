/* SPDX-License-Identifier: MIT */
/* Folders of models that read scenes (scene_model.h). */
#include "vision/scene_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/picture.h"
#include "vision/classes.h"
#include "vision/vision_folder.h"

/* ----------------------------------------------------------------- writing ----- */

typedef struct written {
    const scene_model_kind *kind;
    const scene_model_content *content;
} written;

static void config_json(json *j, const void *content)
{
    const written *const w = content;
    const transformer_config *const m = w->content->config;
    json_strings(j, "architectures", &w->kind->architecture, 1);
    json_string(j, "model_type", w->kind->type);
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
    w->kind->put(j, m);
    json_string(j, "torch_dtype", w->content->type == MHA_F16 ? "float16" : "float32");
}

static void preprocessor_json(json *j, const void *content)
{
    const scene_model_content *const c = ((const written *)content)->content;
    vision_folder_preprocessor(j, &c->config->vision, c->scale);
}

mha_status scene_model_write(const scene_model_kind *kind, const char *folder,
                             const scene_model_content *c, char message[TRANSFORMER_MESSAGE_MAX])
{
    const written w = {kind, c};
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
            model_folder_json(folder, "preprocessor_config.json", preprocessor_json, &w, message);
    if (status == MHA_OK)
        status = model_folder_json(folder, "config.json", config_json, &w, message);
    return status;
}

/* ----------------------------------------------------------------- reading ----- */

bool scene_model_is_folder(const scene_model_kind *kind, const char *folder)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    const char *type = "";
    folder_config r;
    if (folder_config_open(&r, folder, message) != MHA_OK)
        return false;
    json_tree_get_string(folder_config_member(&r, "model_type"), &type, NULL);
    const bool is = strcmp(type, kind->type) == 0;
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

mha_status scene_model_read_config(const scene_model_kind *kind, folder_config *r,
                                   transformer_config *config)
{
    folder_config_expect(r, "model_type", kind->type);
    transformer_config read = {.width = folder_config_size(r, "hidden_size"),
                               .heads = folder_config_size(r, "num_attention_heads"),
                               .ff_width = folder_config_size(r, "intermediate_size"),
                               .layers = {folder_config_size(r, "encoder_layers"),
                                          folder_config_size(r, "decoder_layers")},
                               .vision = {.side = folder_config_size(r, "image_size"),
                                          .channels = folder_config_size(r, "num_channels"),
                                          .patch = folder_config_size(r, "patch_size"),
                                          .stride = folder_config_size(r, "patch_stride"),
                                          .pooling = VISION_MEAN,
                                          .places = read_places(r)}};
    kind->read(r, &read);
    if (r->status == MHA_OK && read.vision.channels != SCENE_CHANNELS)
        folder_config_refuse(r, "num_channels", "3");
    return folder_config_close(r, &read, config);
}

static mha_status load(scene_model *m, const scene_model_kind *kind, const char *folder,
                       mha_arithmetic arithmetic, mha_pool *pool,
                       char message[TRANSFORMER_MESSAGE_MAX])
{
    char problem[PICTURE_MESSAGE_MAX];
    folder_config r;
    mha_status status = folder_config_open(&r, folder, message);
    if (status == MHA_OK)
        status = scene_model_read_config(kind, &r, &m->config);
    if (status != MHA_OK)
        return status;
    if (!classes_read_scale(folder, &m->scale, m->config.vision.channels, problem)) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "%s", problem);
        return MHA_ERR_FORMAT;
    }
    const folder_values wanted = {.config = &m->config, .prefix = ""};
    status = model_folder_values(folder, &wanted, &m->values, message);
    if (status != MHA_OK)
        return status;
    m->network = network_create(&m->config, m->values, arithmetic, pool);
    if (m->network)
        return MHA_OK;
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: out of memory", folder);
    return MHA_ERR_MEMORY;
}

scene_model *scene_model_load(const scene_model_kind *kind, const char *folder,
                              mha_arithmetic arithmetic, mha_pool *pool,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    scene_model *const m = calloc(1, sizeof *m);
    if (!m) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: out of memory", folder);
        return NULL;
    }
    if (load(m, kind, folder, arithmetic, pool, message) == MHA_OK)
        return m;
    scene_model_free(m);
    return NULL;
}

void scene_model_free(scene_model *m)
{
    if (!m)
        return;
    network_free(m->network);
    free(m->values);
    free(m);
}

/* ----------------------------------------------------------------- weights ----- */

size_t scene_model_floats(const scene_model *m)
{
    const vision_shape *const v = &m->config.vision;
    return (size_t)v->channels * (size_t)v->side * (size_t)v->side;
}

size_t scene_model_maps(const scene_model *m)
{
    return (size_t)m->config.layers[TRANSFORMER_TARGET] * (size_t)m->config.heads;
}

/* weights[layers][heads][rows][patches] -> to[rows][layers][heads][patches] */
static void turn(const float *weights, size_t maps, size_t rows, size_t patches, float *to)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t map = 0; map < maps; map++)
            memcpy(to + (row * maps + map) * patches, weights + (map * rows + row) * patches,
                   patches * sizeof *to);
}

mha_status scene_model_weights(const scene_model *m, const batch *b, float *weights)
{
    const size_t maps = scene_model_maps(m), rows = (size_t)b->rows[TRANSFORMER_TARGET];
    const size_t patches = (size_t)vision_tokens(&m->config.vision);
    float *const cross = calloc(maps * rows, patches * sizeof *cross);
    network_loss loss;
    if (!cross)
        return MHA_ERR_MEMORY;
    const mha_status status =
        network_forward(m->network, b, &(network_mode){.cross = cross}, &loss);
    if (status == MHA_OK)
        turn(cross, maps, rows, patches, weights);
    free(cross);
    return status;
}
