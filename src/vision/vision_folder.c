/* SPDX-License-Identifier: MIT */
/* Writes the folder of a classifier of pictures (vision_folder.h). config.json comes last. */
#include "vision/vision_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translator/model_folder.h"

/* Whether ViT is all that the model is. */
static bool is_plain(const vision_shape *v)
{
    return v->pooling == VISION_CLASS && v->stride == v->patch;
}

/* ----------------------------------------------------------------- files ----- */

static void put_classes(json *j, const vision_content *c)
{
    const int classes = c->config->words[TRANSFORMER_TARGET];
    char number[16];
    json_open_object(j, "id2label");
    for (int n = 0; n < classes; n++) {
        snprintf(number, sizeof number, "%d", n);
        json_string(j, number, c->names[n]);
    }
    json_close(j);
    json_open_object(j, "label2id");
    for (int n = 0; n < classes; n++)
        json_integer(j, c->names[n], n);
    json_close(j);
}

static void config_json(json *j, const void *content)
{
    static const char *const plain[] = {"ViTForImageClassification"};
    static const char *const own[] = {"MhaViTForImageClassification"};
    const vision_content *const c = content;
    const transformer_config *const m = c->config;
    const vision_shape *const v = &m->vision;
    json_strings(j, "architectures", is_plain(v) ? plain : own, 1);
    json_string(j, "model_type", is_plain(v) ? "vit" : "mha_vit");
    json_integer(j, "hidden_size", m->width);
    json_integer(j, "num_hidden_layers", m->layers[TRANSFORMER_SOURCE]);
    json_integer(j, "num_attention_heads", m->heads);
    json_integer(j, "intermediate_size", m->ff_width);
    json_string(j, "hidden_act", "relu");
    json_number(j, "layer_norm_eps", 1e-5);
    json_integer(j, "image_size", v->side);
    json_integer(j, "patch_size", v->patch);
    json_integer(j, "num_channels", v->channels);
    if (!is_plain(v)) {
        json_integer(j, "patch_stride", v->stride);
        json_string(j, "pooling", vision_pooling_name(v->pooling));
    }
    json_bool(j, "qkv_bias", true);
    json_number(j, "hidden_dropout_prob", 0.0);
    json_number(j, "attention_probs_dropout_prob", 0.0);
    put_classes(j, c);
    json_string(j, "torch_dtype", c->type == MHA_F16 ? "float16" : "float32");
}

static void put_numbers(json *j, const char *key, const float *numbers, int count)
{
    json_open_array(j, key);
    for (int n = 0; n < count; n++)
        json_exact(j, NULL, (double)numbers[n]);
    json_close(j);
}

void vision_folder_preprocessor(json *j, const vision_shape *v, const pixel_scale *scale)
{
    json_string(j, "image_processor_type", "ViTImageProcessor");
    json_bool(j, "do_resize", true);
    json_open_object(j, "size");
    json_integer(j, "height", v->side);
    json_integer(j, "width", v->side);
    json_close(j);
    json_integer(j, "resample", 2);
    json_bool(j, "do_rescale", true);
    json_exact(j, "rescale_factor", 1.0 / 255.0);
    json_bool(j, "do_normalize", true);
    put_numbers(j, "image_mean", scale->mean, v->channels);
    put_numbers(j, "image_std", scale->deviation, v->channels);
}

static void preprocessor_json(json *j, const void *content)
{
    const vision_content *const c = content;
    vision_folder_preprocessor(j, &c->config->vision, c->scale);
}

/* ------------------------------------------------------------ parameters ----- */

/* The extents that transformers has: tokens in batches of 1, patches as pictures. */
static folder_shape shape_of(const transformer_config *config, const transformer_tensor *tensor)
{
    const vision_shape *const v = &config->vision;
    const uint64_t rows = (uint64_t)tensor->shape[0], columns = (uint64_t)tensor->shape[1];
    if (tensor->kind == PARAMETER_EMBEDDING)
        return (folder_shape){3, {1, rows, columns}};
    if (strcmp(tensor->name, "vit.embeddings.patch_embeddings.projection.weight") == 0)
        return (folder_shape){
            4, {rows, (uint64_t)v->channels, (uint64_t)v->patch, (uint64_t)v->patch}};
    return (folder_shape){(size_t)tensor->rank, {rows, columns}};
}

/* Sines are written as if they were learned. */
static mha_status write_parameters(const char *folder, const vision_content *c,
                                   char message[TRANSFORMER_MESSAGE_MAX])
{
    const uint64_t tokens = (uint64_t)c->config->positions, width = (uint64_t)c->config->width;
    folder_tensors tensors = {.config = c->config,
                              .values = c->values,
                              .type = c->type,
                              .prefix = "",
                              .shape = shape_of,
                              .notes = c->notes,
                              .note_count = c->note_count};
    float *codes = NULL;
    if (c->config->vision.places == VISION_SINES) {
        codes = malloc((size_t)(tokens * width) * sizeof *codes);
        if (codes == NULL) {
            snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: out of memory", folder);
            return MHA_ERR_MEMORY;
        }
        transformer_vision_codes(c->config, codes);
        tensors.extra =
            (folder_extra){"vit.embeddings.position_embeddings", {3, {1, tokens, width}}, codes};
    }
    const mha_status status = model_folder_tensors(folder, &tensors, message);
    free(codes);
    return status;
}

mha_status vision_folder_write(const char *folder, const vision_content *content,
                               char message[TRANSFORMER_MESSAGE_MAX])
{
    mha_status status = model_folder_make(folder, message);
    if (status == MHA_OK)
        status = write_parameters(folder, content, message);
    if (status == MHA_OK)
        status = model_folder_json(folder, "preprocessor_config.json", preprocessor_json, content,
                                   message);
    if (status == MHA_OK)
        status = model_folder_json(folder, "config.json", config_json, content, message);
    return status;
}
