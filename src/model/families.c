/* SPDX-License-Identifier: MIT */
/* The table of families. A new family is a line here, a table of fields and a function in one of
 * describe_*.c, and a table of names in one of bind_*.c, or those of a relative. */
#include "model/families.h"

#include <stdio.h>
#include <string.h>

static const model_family families[] = {
    {"bert", MHA_MODEL_ENCODER, bert_fields, describe_bert, {&bert_layout}, &gguf_bert_layout},
    {"roberta", MHA_MODEL_ENCODER, roberta_fields, describe_roberta, {&roberta_layout}, NULL},
    {"xlm-roberta", MHA_MODEL_ENCODER, roberta_fields, describe_roberta, {&roberta_layout}, NULL},
    {"camembert", MHA_MODEL_ENCODER, roberta_fields, describe_roberta, {&roberta_layout}, NULL},
    {"distilbert",
     MHA_MODEL_ENCODER,
     distilbert_fields,
     describe_distilbert,
     {&distilbert_layout},
     NULL},
    {"albert", MHA_MODEL_ENCODER, albert_fields, describe_albert, {&albert_layout}, NULL},
    {"electra", MHA_MODEL_ENCODER, electra_fields, describe_electra, {&electra_layout}, NULL},
    {"vit", MHA_MODEL_IMAGE_ENCODER, vit_fields, describe_vit, {&vit_layout}, NULL},
    {"deit", MHA_MODEL_IMAGE_ENCODER, vit_fields, describe_vit, {&deit_layout}, NULL},
    {"gpt2", MHA_MODEL_DECODER, gpt2_fields, describe_gpt2, {&gpt2_layout}, &gguf_gpt2_layout},
    {"llama",
     MHA_MODEL_DECODER,
     llama_fields,
     describe_llama,
     {&llama_layout, &llama2c_layout},
     &gguf_llama_layout},
    {"mistral", MHA_MODEL_DECODER, mistral_fields, describe_llama, {&llama_layout}, NULL},
    {"qwen2", MHA_MODEL_DECODER, qwen2_fields, describe_qwen2, {&llama_layout}, &gguf_llama_layout},
    {"qwen3", MHA_MODEL_DECODER, qwen3_fields, describe_qwen3, {&llama_layout}, &gguf_llama_layout},
    {"gemma", MHA_MODEL_DECODER, gemma_fields, describe_gemma, {&llama_layout}, &gguf_llama_layout},
    {"gemma2",
     MHA_MODEL_DECODER,
     gemma2_fields,
     describe_gemma2,
     {&gemma2_layout},
     &gguf_gemma2_layout},
    {"gemma3_text",
     MHA_MODEL_DECODER,
     gemma3_fields,
     describe_gemma3,
     {&gemma2_layout},
     &gguf_gemma2_layout},
    {"t5", MHA_MODEL_ENCODER_DECODER, t5_fields, describe_t5, {&t5_layout}, NULL},
    {"bart", MHA_MODEL_ENCODER_DECODER, bart_fields, describe_bart, {&bart_layout}, NULL},
    {"mbart", MHA_MODEL_ENCODER_DECODER, bart_fields, describe_mbart, {&bart_layout}, NULL},
    {"marian", MHA_MODEL_ENCODER_DECODER, marian_fields, describe_marian, {&pair_layout}, NULL},
    {"transformer",
     MHA_MODEL_ENCODER_DECODER,
     transformer_fields,
     describe_transformer,
     {&pair_layout, &opennmt_layout},
     NULL},
    {"translator",
     MHA_MODEL_ENCODER_DECODER,
     translator_fields,
     describe_translator,
     {&pair_layout},
     NULL},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

const model_family *model_family_find(const char *name)
{
    for (int n = 0; n < FAMILIES; n++)
        if (strcmp(families[n].name, name) == 0)
            return &families[n];
    return NULL;
}

const char *mha_model_family_at(int number)
{
    return number >= 0 && number < FAMILIES ? families[number].name : NULL;
}

const char *model_family_list(char text[MODEL_FAMILY_LIST_MAX])
{
    size_t used = 0;
    for (int n = 0; n < FAMILIES; n++)
        used += (size_t)snprintf(text + used, MODEL_FAMILY_LIST_MAX - used, "%s%s", n ? ", " : "",
                                 families[n].name);
    return text;
}
