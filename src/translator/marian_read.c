/* SPDX-License-Identifier: MIT */
/* Reads the folder of a model back (marian_folder.h), so that a training can begin with it. Files
 * are not trusted: every value of config.json that the transformer cannot follow is refused, and
 * all tensors are compared with those of the configuration before a number is read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "format/json_tree.h"
#include "translator/marian_folder.h"

enum { PATH_LENGTH_MAX = 4096 };

static mha_status name_file(char path[PATH_LENGTH_MAX], const char *folder, const char *name,
                            char message[TRANSFORMER_MESSAGE_MAX])
{
    if (snprintf(path, PATH_LENGTH_MAX, "%s/%s", folder, name) < PATH_LENGTH_MAX)
        return MHA_OK;
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: the name is too long", folder);
    return MHA_ERR_FILE;
}

/* -------------------------------------------------------- configuration ----- */

typedef struct config_reader {
    const char *path;
    const json_value *root;
    char *message;
    mha_status status; /* of the first value that was refused */
} config_reader;

static void refuse(config_reader *r, const char *key, const char *wanted)
{
    if (r->status == MHA_OK)
        snprintf(r->message, TRANSFORMER_MESSAGE_MAX, "%.120s: \"%s\" is not %s", r->path, key,
                 wanted);
    r->status = MHA_ERR_FORMAT;
}

static int read_size(config_reader *r, const char *key)
{
    int64_t value = 0;
    if (!json_tree_get_integer(json_tree_member(r->root, key), &value) || value < 1 ||
        value > INT32_MAX)
        refuse(r, key, "a positive integer");
    return r->status == MHA_OK ? (int)value : 1;
}

/* Both sides have this number, under "encoder_" and "decoder_". */
static int read_shared(config_reader *r, const char *name)
{
    char encoder[64], decoder[64];
    snprintf(encoder, sizeof encoder, "encoder_%s", name);
    snprintf(decoder, sizeof decoder, "decoder_%s", name);
    const int value = read_size(r, encoder);
    if (read_size(r, decoder) != value)
        refuse(r, decoder, "that of the encoder");
    return value;
}

static void expect_text(config_reader *r, const char *key, const char *wanted)
{
    const char *text = "";
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", wanted);
    if (!json_tree_get_string(json_tree_member(r->root, key), &text, NULL) ||
        strcmp(text, wanted) != 0)
        refuse(r, key, quoted);
}

/* A flag that must be set; as in transformers, tied embeddings need not be mentioned. */
static void expect_true(config_reader *r, const char *key, bool otherwise)
{
    bool value = otherwise;
    const json_value *const member = json_tree_member(r->root, key);
    if ((member && !json_tree_get_bool(member, &value)) || !value)
        refuse(r, key, "true");
}

mha_status marian_folder_config(const char *folder, transformer_config *config,
                                char message[TRANSFORMER_MESSAGE_MAX])
{
    char path[PATH_LENGTH_MAX];
    json_tree *tree = NULL;
    mha_status status = name_file(path, folder, "config.json", message);
    if (status == MHA_OK)
        status = json_tree_read_file(&tree, path, message, TRANSFORMER_MESSAGE_MAX);
    if (status != MHA_OK)
        return status;
    config_reader r = {.path = path, .root = json_tree_root(tree), .message = message};
    expect_text(&r, "model_type", "marian");
    expect_text(&r, "activation_function", "relu");
    expect_true(&r, "scale_embedding", false);
    expect_true(&r, "tie_word_embeddings", true);
    expect_true(&r, "share_encoder_decoder_embeddings", true);
    const int words = read_size(&r, "vocab_size");
    const transformer_config read = {
        .form = FORM_MARIAN,
        .width = read_size(&r, "d_model"),
        .heads = read_shared(&r, "attention_heads"),
        .ff_width = read_shared(&r, "ffn_dim"),
        .layers = {read_size(&r, "encoder_layers"), read_size(&r, "decoder_layers")},
        .words = {words, words},
        .positions = read_size(&r, "max_position_embeddings")};
    json_tree_free(tree);
    if (r.status == MHA_OK && !transformer_config_check(&read, message))
        r.status = MHA_ERR_FORMAT;
    if (r.status == MHA_OK)
        *config = read;
    return r.status;
}

/* ------------------------------------------------------------ parameters ----- */

typedef struct value_reader {
    const safetensors_file *file;
    safetensors_report report;
    uint16_t *halves; /* room for the largest tensor */
} value_reader;

static bool has_shape(const safetensors_tensor *found, const transformer_tensor *wanted)
{
    if (found->rank != (size_t)wanted->rank)
        return false;
    for (int axis = 0; axis < wanted->rank; axis++)
        if (found->shape[axis] != (uint64_t)wanted->shape[axis])
            return false;
    return true;
}

static mha_status read_tensor(const value_reader *r, const transformer_tensor *wanted,
                              float *values)
{
    char name[TRANSFORMER_NAME_MAX + sizeof MARIAN_PREFIX];
    snprintf(name, sizeof name, MARIAN_PREFIX "%s", wanted->name);
    const safetensors_tensor *const found = safetensors_find(r->file, name);
    if (!found)
        return safetensors_fail(&r->report, MHA_ERR_FORMAT, "there is no tensor \"%s\"", name);
    if (!has_shape(found, wanted))
        return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                "\"%s\" has another shape than config.json says", name);
    const bool half = found->type == SAFETENSORS_F16;
    if (!half && found->type != SAFETENSORS_F32)
        return safetensors_fail(&r->report, MHA_ERR_FORMAT, "\"%s\" is %s, neither F16 nor F32",
                                name, safetensors_type_name(found->type));
    float *const to = values + wanted->at;
    const mha_status status = safetensors_read(
        r->file, found, half ? (void *)r->halves : (void *)to, r->report.message, r->report.size);
    for (size_t n = 0; n < wanted->count && status == MHA_OK; n++) {
        if (half)
            to[n] = convert_f16_to_f32(r->halves[n]);
        if (!isfinite(to[n]))
            return safetensors_fail(&r->report, MHA_ERR_FORMAT, "element %zu of \"%s\" is %g", n,
                                    name, (double)to[n]);
    }
    return status;
}

static mha_status read_tensors(value_reader *r, const transformer_config *config, float *values)
{
    transformer_tensor *const tensors = malloc(TRANSFORMER_TENSORS_MAX * sizeof *tensors);
    const int count = tensors ? transformer_tensors(config, tensors) : 0;
    size_t largest = 1;
    for (int n = 0; n < count; n++)
        largest = tensors[n].count > largest ? tensors[n].count : largest;
    r->halves = malloc(largest * sizeof *r->halves);
    mha_status status = tensors && r->halves ? MHA_OK : MHA_ERR_MEMORY;
    if (status != MHA_OK)
        safetensors_fail(&r->report, status, "out of memory");
    for (int n = 0; n < count && status == MHA_OK; n++)
        status = read_tensor(r, &tensors[n], values);
    free(r->halves);
    free(tensors);
    return status;
}

mha_status marian_folder_values(const char *folder, const transformer_config *config, float *values,
                                char message[TRANSFORMER_MESSAGE_MAX])
{
    char path[PATH_LENGTH_MAX];
    safetensors_file *file = NULL;
    mha_status status = name_file(path, folder, "model.safetensors", message);
    if (status == MHA_OK)
        status = safetensors_open(&file, path, 0, message, TRANSFORMER_MESSAGE_MAX);
    if (status == MHA_OK) {
        value_reader r = {.file = file, .report = {path, message, TRANSFORMER_MESSAGE_MAX}};
        status = read_tensors(&r, config, values);
    }
    safetensors_close(file);
    return status;
}
