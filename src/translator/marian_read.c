/* SPDX-License-Identifier: MIT */
/* Reads the folder of a model back (marian_folder.h), so that a training can begin with it: every
 * value of config.json that the transformer cannot follow is refused. */
#include <stdio.h>

#include "translator/marian_folder.h"
#include "translator/model_folder_read.h"

/* Both sides have this number, under "encoder_" and "decoder_". */
static int read_shared(folder_config *r, const char *name)
{
    char encoder[64], decoder[64];
    snprintf(encoder, sizeof encoder, "encoder_%s", name);
    snprintf(decoder, sizeof decoder, "decoder_%s", name);
    const int value = folder_config_size(r, encoder);
    if (folder_config_size(r, decoder) != value)
        folder_config_refuse(r, decoder, "that of the encoder");
    return value;
}

/* A flag that must be set; as in transformers, tied embeddings need not be mentioned. */
static void expect_true(folder_config *r, const char *key, bool otherwise)
{
    bool value = otherwise;
    const json_value *const member = folder_config_member(r, key);
    if ((member && !json_tree_get_bool(member, &value)) || !value)
        folder_config_refuse(r, key, "true");
}

mha_status marian_folder_config(const char *folder, transformer_config *config,
                                char message[TRANSFORMER_MESSAGE_MAX])
{
    folder_config r;
    const mha_status status = folder_config_open(&r, folder, message);
    if (status != MHA_OK)
        return status;
    folder_config_expect(&r, "model_type", "marian");
    folder_config_expect(&r, "activation_function", "relu");
    expect_true(&r, "scale_embedding", false);
    expect_true(&r, "tie_word_embeddings", true);
    expect_true(&r, "share_encoder_decoder_embeddings", true);
    const int words = folder_config_size(&r, "vocab_size");
    const transformer_config read = {.form = FORM_MARIAN,
                                     .width = folder_config_size(&r, "d_model"),
                                     .heads = read_shared(&r, "attention_heads"),
                                     .ff_width = read_shared(&r, "ffn_dim"),
                                     .layers = {folder_config_size(&r, "encoder_layers"),
                                                folder_config_size(&r, "decoder_layers")},
                                     .words = {words, words},
                                     .positions =
                                         folder_config_size(&r, "max_position_embeddings")};
    return folder_config_close(&r, &read, config);
}

mha_status marian_folder_values(const char *folder, const transformer_config *config,
                                float **values, char message[TRANSFORMER_MESSAGE_MAX])
{
    const folder_values wanted = {.config = config, .prefix = MARIAN_PREFIX};
    return model_folder_values(folder, &wanted, values, message);
}
