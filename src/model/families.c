/* SPDX-License-Identifier: MIT */
/* The table of families. A new family is a line here, a table of fields and a function in one of
 * describe_*.c, and a table of names in one of bind_*.c, or those of a relative. */
#include "model/families.h"

#include <stdio.h>
#include <string.h>

static const model_family families[] = {
    {"bert",
     MHA_MODEL_ENCODER,
     bert_fields,
     describe_bert,
     {&bert_layout},
     &gguf_bert_layout,
     true},
    {"roberta", MHA_MODEL_ENCODER, roberta_fields, describe_roberta, {&roberta_layout}, NULL, true},
    {"xlm-roberta",
     MHA_MODEL_ENCODER,
     roberta_fields,
     describe_roberta,
     {&roberta_layout},
     NULL,
     true},
    {"camembert",
     MHA_MODEL_ENCODER,
     roberta_fields,
     describe_roberta,
     {&roberta_layout},
     NULL,
     true},
    {"distilbert",
     MHA_MODEL_ENCODER,
     distilbert_fields,
     describe_distilbert,
     {&distilbert_layout},
     NULL,
     true},
    {"albert", MHA_MODEL_ENCODER, albert_fields, describe_albert, {&albert_layout}, NULL, true},
    {"electra", MHA_MODEL_ENCODER, electra_fields, describe_electra, {&electra_layout}, NULL, true},
    {"vit", MHA_MODEL_IMAGE_ENCODER, vit_fields, describe_vit, {&vit_layout}, NULL, true},
    {"mha_vit",
     MHA_MODEL_IMAGE_ENCODER,
     mha_vit_fields,
     describe_mha_vit,
     {&vit_layout},
     NULL,
     true},
    {"deit", MHA_MODEL_IMAGE_ENCODER, vit_fields, describe_vit, {&deit_layout}, NULL, true},
    {"gpt2",
     MHA_MODEL_DECODER,
     gpt2_fields,
     describe_gpt2,
     {&gpt2_layout},
     &gguf_gpt2_layout,
     true},
    {"llama",
     MHA_MODEL_DECODER,
     llama_fields,
     describe_llama,
     {&llama_layout, &llama2c_layout},
     &gguf_llama_layout,
     false},
    {"mistral", MHA_MODEL_DECODER, mistral_fields, describe_llama, {&llama_layout}, NULL, false},
    {"qwen2",
     MHA_MODEL_DECODER,
     qwen2_fields,
     describe_qwen2,
     {&llama_layout},
     &gguf_llama_layout,
     false},
    {"qwen3",
     MHA_MODEL_DECODER,
     qwen3_fields,
     describe_qwen3,
     {&llama_layout},
     &gguf_llama_layout,
     false},
    {"gemma",
     MHA_MODEL_DECODER,
     gemma_fields,
     describe_gemma,
     {&llama_layout},
     &gguf_llama_layout,
     false},
    {"gemma2",
     MHA_MODEL_DECODER,
     gemma2_fields,
     describe_gemma2,
     {&gemma2_layout},
     &gguf_gemma2_layout,
     false},
    {"gemma3_text",
     MHA_MODEL_DECODER,
     gemma3_fields,
     describe_gemma3,
     {&gemma2_layout},
     &gguf_gemma2_layout,
     false},
    {"t5", MHA_MODEL_ENCODER_DECODER, t5_fields, describe_t5, {&t5_layout}, NULL, false},
    {"bart", MHA_MODEL_ENCODER_DECODER, bart_fields, describe_bart, {&bart_layout}, NULL, false},
    {"mbart", MHA_MODEL_ENCODER_DECODER, bart_fields, describe_mbart, {&bart_layout}, NULL, false},
    {"marian",
     MHA_MODEL_ENCODER_DECODER,
     marian_fields,
     describe_marian,
     {&pair_layout},
     NULL,
     false},
    {"transformer",
     MHA_MODEL_ENCODER_DECODER,
     transformer_fields,
     describe_transformer,
     {&pair_layout, &opennmt_layout},
     NULL,
     false},
    {"translator",
     MHA_MODEL_ENCODER_DECODER,
     translator_fields,
     describe_translator,
     {&pair_layout},
     NULL,
     false},
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
