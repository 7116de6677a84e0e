/* SPDX-License-Identifier: MIT */
/* Writes a model as a folder in Hugging Face's form (marian_folder.h). */
#include "translator/marian_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/replace_file.h"
#include "format/convert.h"
#include "format/json_writer.h"

enum { NAME_MAX_LENGTH = 4096 };

#define LOGITS_BIAS "final_logits_bias"

static mha_status fail(char message[TRANSFORMER_MESSAGE_MAX], mha_status status, const char *path,
                       const char *reason)
{
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: %.120s", path, reason);
    return status;
}

/* ----------------------------------------------------------- text files ----- */

static mha_status write_text(const char *folder, const char *name, const char *text, size_t length,
                             char message[TRANSFORMER_MESSAGE_MAX])
{
    char path[NAME_MAX_LENGTH], fresh[NAME_MAX_LENGTH + MHAI_FILE_SUFFIX];
    int fd;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int error = mhai_file_open_new(path, fresh, sizeof fresh, &fd);
    if (error == 0)
        error = mhai_file_finish_new(fd, fresh, path, mhai_file_write(fd, text, length));
    return error == 0 ? MHA_OK : fail(message, MHA_ERR_FILE, path, strerror(error));
}

static void config_json(json *j, const marian_content *c)
{
    static const char *const architectures[] = {"MarianMTModel"};
    static const char *const sides[] = {"encoder", "decoder"};
    const transformer_config *const m = c->config;
    char key[32];
    json_strings(j, "architectures", architectures, 1);
    json_string(j, "model_type", "marian");
    json_integer(j, "d_model", m->width);
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        snprintf(key, sizeof key, "%s_layers", sides[side]);
        json_integer(j, key, m->layers[side]);
        snprintf(key, sizeof key, "%s_attention_heads", sides[side]);
        json_integer(j, key, m->heads);
        snprintf(key, sizeof key, "%s_ffn_dim", sides[side]);
        json_integer(j, key, m->ff_width);
    }
    json_string(j, "activation_function", "relu");
    json_integer(j, "vocab_size", m->words[TRANSFORMER_TARGET]);
    json_integer(j, "decoder_vocab_size", m->words[TRANSFORMER_TARGET]);
    json_integer(j, "max_position_embeddings", m->positions);
    json_bool(j, "scale_embedding", true);
    json_bool(j, "share_encoder_decoder_embeddings", true);
    json_bool(j, "tie_word_embeddings", true);
    json_bool(j, "is_encoder_decoder", true);
    json_number(j, "dropout", 0.0);
    json_string(j, "torch_dtype", c->type == MHA_F16 ? "float16" : "float32");
}

static void ids_json(json *j, const marian_content *c)
{
    json_integer(j, "pad_token_id", c->begin);
    json_integer(j, "decoder_start_token_id", c->begin);
    json_integer(j, "eos_token_id", c->end);
    json_integer(j, "forced_eos_token_id", c->end);
}

static void model_json(json *j, const marian_content *c)
{
    config_json(j, c);
    ids_json(j, c);
}

static void generation_json(json *j, const marian_content *c)
{
    ids_json(j, c);
    json_integer(j, "num_beams", 4);
    json_integer(j, "max_length", c->config->positions);
}

static void tokenizer_json(json *j, const marian_content *c)
{
    json_string(j, "tokenizer_class", "PreTrainedTokenizerFast");
    json_string(j, "eos_token", "</s>");
    json_string(j, "unk_token", "<unk>");
    json_string(j, "pad_token", "<pad>");
    json_integer(j, "model_max_length", c->config->positions);
}

static mha_status write_json(const char *folder, const char *name,
                             void (*fill)(json *, const marian_content *),
                             const marian_content *content, char message[TRANSFORMER_MESSAGE_MAX])
{
    char *text = NULL;
    size_t length = 0;
    FILE *const file = open_memstream(&text, &length);
    if (!file)
        return fail(message, MHA_ERR_MEMORY, name, "out of memory");
    json j = json_begin(file);
    json_open_object(&j, NULL);
    fill(&j, content);
    json_close(&j);
    const bool fine = !ferror(file);
    const mha_status status = fclose(file) == 0 && fine
                                  ? write_text(folder, name, text, length, message)
                                  : fail(message, MHA_ERR_MEMORY, name, "out of memory");
    free(text);
    return status;
}

/* ---------------------------------------------------------- parameters ----- */

typedef struct folder_writer {
    const marian_content *content;
    const char *path;
    char *message;
    transformer_tensor tensors[TRANSFORMER_TENSORS_MAX];
    char names[TRANSFORMER_TENSORS_MAX][TRANSFORMER_NAME_MAX + sizeof MARIAN_PREFIX];
    uint64_t shapes[TRANSFORMER_TENSORS_MAX + 1][2];
    safetensors_item items[TRANSFORMER_TENSORS_MAX + 1];
    uint16_t *halves; /* [values], or NULL */
    void *bias;       /* the zeros of LOGITS_BIAS */
} folder_writer;

static mha_status convert(folder_writer *w, const transformer_tensor *tensor)
{
    char reason[TRANSFORMER_MESSAGE_MAX];
    for (size_t n = tensor->at; n < tensor->at + tensor->count; n++) {
        const float value = w->content->values[n];
        if (w->halves)
            w->halves[n] = convert_f32_to_f16(value);
        if (isfinite(w->halves ? convert_f16_to_f32(w->halves[n]) : value))
            continue;
        snprintf(reason, sizeof reason, "element %zu of \"%s\" is %g: not a finite %s",
                 n - tensor->at, tensor->name, (double)value, w->halves ? "F16" : "number");
        return fail(w->message, MHA_ERR_FORMAT, w->path, reason);
    }
    return MHA_OK;
}

static safetensors_item item_of(folder_writer *w, int number)
{
    const transformer_tensor *const tensor = &w->tensors[number];
    snprintf(w->names[number], sizeof w->names[number], MARIAN_PREFIX "%s", tensor->name);
    for (int axis = 0; axis < tensor->rank; axis++)
        w->shapes[number][axis] = (uint64_t)tensor->shape[axis];
    return (safetensors_item){.name = w->names[number],
                              .type = w->halves ? SAFETENSORS_F16 : SAFETENSORS_F32,
                              .rank = (size_t)tensor->rank,
                              .shape = w->shapes[number],
                              .data = w->halves ? (const void *)(w->halves + tensor->at)
                                                : (const void *)(w->content->values + tensor->at)};
}

/* All tensors, and last the bias that Marian's models have. */
static mha_status make_items(folder_writer *w, size_t *count)
{
    const transformer_config *const config = w->content->config;
    const uint64_t words = (uint64_t)config->words[TRANSFORMER_TARGET];
    transformer_map map;
    transformer_map_fill(&map, config);
    const int tensors = transformer_tensors(config, w->tensors);
    if (w->content->type == MHA_F16)
        w->halves = malloc(map.count * sizeof *w->halves);
    w->bias = calloc((size_t)words, sizeof(float));
    if (!w->bias || (w->content->type == MHA_F16 && !w->halves))
        return fail(w->message, MHA_ERR_MEMORY, w->path, "out of memory");
    for (int n = 0; n < tensors; n++) {
        const mha_status status = convert(w, &w->tensors[n]);
        if (status != MHA_OK)
            return status;
        w->items[n] = item_of(w, n);
    }
    w->shapes[tensors][0] = 1;
    w->shapes[tensors][1] = words;
    w->items[tensors] = (safetensors_item){.name = LOGITS_BIAS,
                                           .type = w->items[0].type,
                                           .rank = 2,
                                           .shape = w->shapes[tensors],
                                           .data = w->bias};
    *count = (size_t)tensors + 1;
    return MHA_OK;
}

/* Readers of PyTorch look for "format". */
static mha_status write_items(folder_writer *w, size_t count)
{
    const size_t notes = w->content->note_count;
    safetensors_pair *const pairs = calloc(notes + 1, sizeof *pairs);
    if (!pairs)
        return fail(w->message, MHA_ERR_MEMORY, w->path, "out of memory");
    pairs[0] = (safetensors_pair){"format", "pt"};
    if (notes > 0)
        memcpy(pairs + 1, w->content->notes, notes * sizeof *pairs);
    const mha_status status = safetensors_write(w->path, w->items, count, pairs, notes + 1,
                                                w->message, TRANSFORMER_MESSAGE_MAX);
    free(pairs);
    return status;
}

static mha_status write_parameters(const char *folder, const marian_content *content,
                                   char message[TRANSFORMER_MESSAGE_MAX])
{
    char path[NAME_MAX_LENGTH];
    size_t count = 0;
    folder_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return fail(message, MHA_ERR_MEMORY, folder, "out of memory");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    w->content = content;
    w->path = path;
    w->message = message;
    mha_status status = make_items(w, &count);
    if (status == MHA_OK)
        status = write_items(w, count);
    free(w->halves);
    free(w->bias);
    free(w);
    return status;
}

/* --------------------------------------------------------------- folder ----- */

mha_status marian_folder_write(const char *folder, const marian_content *content,
                               char message[TRANSFORMER_MESSAGE_MAX])
{
    if (strlen(folder) > NAME_MAX_LENGTH - 64)
        return fail(message, MHA_ERR_FILE, folder, strerror(ENAMETOOLONG));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail(message, MHA_ERR_FILE, folder, strerror(errno));
    mha_status status = write_parameters(folder, content, message);
    if (status == MHA_OK)
        status = write_text(folder, "tokenizer.json", content->tokenizer,
                            strlen(content->tokenizer), message);
    if (status == MHA_OK)
        status = write_json(folder, "tokenizer_config.json", tokenizer_json, content, message);
    if (status == MHA_OK)
        status = write_json(folder, "generation_config.json", generation_json, content, message);
    if (status == MHA_OK)
        status = write_json(folder, "config.json", model_json, content, message);
    return status;
}
