/* SPDX-License-Identifier: MIT */
/* Writes a model as a folder in Hugging Face's form (marian_folder.h). */
#include "translator/marian_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translator/model_folder.h"

#define LOGITS_BIAS "final_logits_bias"

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

static void model_json(json *j, const void *content)
{
    config_json(j, content);
    ids_json(j, content);
}

static void generation_json(json *j, const void *content)
{
    const marian_content *const c = content;
    ids_json(j, c);
    json_integer(j, "num_beams", 4);
    json_integer(j, "max_length", c->config->positions);
}

static void tokenizer_json(json *j, const void *content)
{
    const marian_content *const c = content;
    json_string(j, "tokenizer_class", "PreTrainedTokenizerFast");
    json_string(j, "eos_token", "</s>");
    json_string(j, "unk_token", "<unk>");
    json_string(j, "pad_token", "<pad>");
    json_integer(j, "model_max_length", c->config->positions);
}

/* All parameters, and last the bias of the logits that Marian's models have: zeros. */
static mha_status write_parameters(const char *folder, const marian_content *content,
                                   char message[TRANSFORMER_MESSAGE_MAX])
{
    const uint64_t words = (uint64_t)content->config->words[TRANSFORMER_TARGET];
    float *const zeros = calloc((size_t)words, sizeof *zeros);
    if (!zeros) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: out of memory", folder);
        return MHA_ERR_MEMORY;
    }
    const folder_tensors tensors = {.config = content->config,
                                    .values = content->values,
                                    .type = content->type,
                                    .prefix = MARIAN_PREFIX,
                                    .extra = {LOGITS_BIAS, {2, {1, words}}, zeros},
                                    .notes = content->notes,
                                    .note_count = content->note_count};
    const mha_status status = model_folder_tensors(folder, &tensors, message);
    free(zeros);
    return status;
}

mha_status marian_folder_write(const char *folder, const marian_content *content,
                               char message[TRANSFORMER_MESSAGE_MAX])
{
    mha_status status = model_folder_make(folder, message);
    if (status == MHA_OK)
        status = write_parameters(folder, content, message);
    if (status == MHA_OK)
        status = model_folder_text(folder, "tokenizer.json", content->tokenizer,
                                   strlen(content->tokenizer), message);
    if (status == MHA_OK)
        status =
            model_folder_json(folder, "tokenizer_config.json", tokenizer_json, content, message);
    if (status == MHA_OK)
        status =
            model_folder_json(folder, "generation_config.json", generation_json, content, message);
    if (status == MHA_OK)
        status = model_folder_json(folder, "config.json", model_json, content, message);
    return status;
}
