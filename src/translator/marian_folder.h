/* SPDX-License-Identifier: MIT */
/*
 * A trained model of FORM_MARIAN as a folder in Hugging Face's form, which libmha_model,
 * transformers (MarianMTModel) and CTranslate2 can open:
 *
 *      model.safetensors          the parameters, F16 or F32, with the settings of the training
 *      config.json                architecture, sizes, ids of the marks
 *      generation_config.json     how to generate
 *      tokenizer.json             the tokenizer as it was learnt
 *      tokenizer_config.json      names of the marks
 *
 * Each file is replaced completely or not at all, and config.json last.
 */
#ifndef TRANSLATOR_MARIAN_FOLDER_H
#define TRANSLATOR_MARIAN_FOLDER_H

#include "format/safetensors.h"
#include "translator/transformer.h"

#define MARIAN_PREFIX "model." /* of the names of all tensors but the bias of the logits */

typedef struct marian_content {
    const transformer_config *config;
    const float *values;
    mha_dtype type;          /* MHA_F16 or MHA_F32 */
    const char *tokenizer;   /* the text of tokenizer.json */
    int begin, end, unknown; /* ids of the decoder's first token (the pad mark), </s> and <unk> */
    const safetensors_pair *notes; /* for the metadata */
    size_t note_count;
} marian_content;

/* Creates the folder if it does not exist. On an error returns its status, with the reason in
 * `message`: MHA_ERR_FORMAT if a value is not finite, or not in the requested type. */
mha_status marian_folder_write(const char *folder, const marian_content *content,
                               char message[TRANSFORMER_MESSAGE_MAX]);

/* The sizes of such a model. On an error returns its status, with the reason in `message`:
 * MHA_ERR_FORMAT for a model that is not of FORM_MARIAN. */
mha_status marian_folder_config(const char *folder, transformer_config *config,
                                char message[TRANSFORMER_MESSAGE_MAX]);

/* Its parameters, in the order of the map of `config`, for the caller to free; NULL after an error.
 * Tensors must have the shapes of the configuration and finite values; others than these are
 * ignored. */
mha_status marian_folder_values(const char *folder, const transformer_config *config,
                                float **values, char message[TRANSFORMER_MESSAGE_MAX]);

#endif
