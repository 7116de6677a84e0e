/* SPDX-License-Identifier: MIT */
/* Descriptions of encoders: BERT and its relatives, ViT and DeiT. */
#include <math.h>
#include <string.h>

#include "model/describe.h"

#define AT(member) offsetof(model_description, member)
#define ENCODER(member) offsetof(model_description, stack[STACK_ENCODER].member)

/* What BERT and its relatives have in common, except for the defaults. */
#define BERT_SIZES(vocabulary_, width_, layers_, heads_, inner_)                        \
    {"vocab_size", FIELD_ROWS, AT(vocabulary), vocabulary_},                            \
        {"hidden_size dim", FIELD_WIDTH, AT(width), width_},                            \
        {"num_hidden_layers n_layers", FIELD_LAYERS, ENCODER(layers), layers_},         \
        {"num_attention_heads n_heads", FIELD_HEADS, ENCODER(attention.heads), heads_}, \
        {"intermediate_size hidden_dim", FIELD_WIDTH, ENCODER(inner), inner_},          \
        {"max_position_embeddings", FIELD_ROWS, AT(positions), 512},                    \
    {                                                                                   \
        "tie_word_embeddings", FIELD_BOOL, AT(tied), true                               \
    }
#define BERT_MORE(activation_, pad_)                                          \
    {"hidden_act activation", FIELD_ACTIVATION, AT(activation), activation_}, \
        {"layer_norm_eps", FIELD_EPS, AT(norm_eps), 1e-12},                   \
        {"type_vocab_size", FIELD_ROWS_ZERO, ENCODER(embedding.segments), 2}, \
    {                                                                         \
        "pad_token_id", FIELD_TOKEN, AT(usage.pad), pad_                      \
    }
#define TABLE_END              \
    {                          \
        NULL, FIELD_BOOL, 0, 0 \
    }

const config_field bert_fields[] = {BERT_SIZES(30522, 768, 12, 12, 3072),
                                    BERT_MORE(MHA_ACTIVATION_GELU, 0), TABLE_END};

const config_field roberta_fields[] = {BERT_SIZES(50265, 768, 12, 12, 3072),
                                       BERT_MORE(MHA_ACTIVATION_GELU, 1), TABLE_END};

const config_field distilbert_fields[] = {
    BERT_SIZES(30522, 768, 6, 12, 3072),
    {"activation", FIELD_ACTIVATION, AT(activation), MHA_ACTIVATION_GELU},
    {"pad_token_id", FIELD_TOKEN, AT(usage.pad), 0},
    TABLE_END};

const config_field albert_fields[] = {
    BERT_SIZES(30000, 4096, 12, 64, 16384),
    BERT_MORE(MHA_ACTIVATION_GELU_TANH, 0),
    {"embedding_size", FIELD_WIDTH, ENCODER(embedding.width), 128},
    TABLE_END};

const config_field electra_fields[] = {
    BERT_SIZES(30522, 256, 12, 4, 1024),
    BERT_MORE(MHA_ACTIVATION_GELU, 0),
    {"embedding_size", FIELD_WIDTH, ENCODER(embedding.width), 128},
    TABLE_END};

/* Fields that ViT, DeiT and their extension share. */
#define VIT_FIELDS                                                                 \
    {"hidden_size", FIELD_WIDTH, AT(width), 768},                                  \
        {"num_hidden_layers", FIELD_LAYERS, ENCODER(layers), 12},                  \
        {"num_attention_heads", FIELD_HEADS, ENCODER(attention.heads), 12},        \
        {"intermediate_size", FIELD_WIDTH, ENCODER(inner), 3072},                  \
        {"hidden_act", FIELD_ACTIVATION, AT(activation), MHA_ACTIVATION_GELU},     \
        {"layer_norm_eps", FIELD_EPS, AT(norm_eps), 1e-12},                        \
        {"image_size", FIELD_WIDTH, AT(image_size), 224},                          \
        {"patch_size", FIELD_WIDTH, AT(patch), 16},                                \
        {"num_channels", FIELD_WIDTH, AT(channels), 3},                            \
    {                                                                              \
        "pooler_act", FIELD_ACTIVATION, AT(pooler_activation), MHA_ACTIVATION_TANH \
    }

const config_field vit_fields[] = {VIT_FIELDS, TABLE_END};

const config_field mha_vit_fields[] = {
    VIT_FIELDS, {"patch_stride", FIELD_WIDTH_ZERO, AT(patch_stride), 0}, TABLE_END};

mha_status describe_bert(const config_reader *r, model_description *d)
{
    (void)r;
    d->norm = MHA_NORM_LAYER;
    d->stack[STACK_ENCODER].embedding.position = POSITION_LEARNED;
    d->transform_activation = d->activation;
    d->pooler_activation = MHA_ACTIVATION_TANH;
    d->label_pooled = true;
    return MHA_OK;
}

/* Positions of tokens are counted from the number of the pad mark + 1. */
mha_status describe_roberta(const config_reader *r, model_description *d)
{
    const mha_status status = describe_bert(r, d);
    const int offset = d->usage.pad + 1;
    d->stack[STACK_ENCODER].embedding.position_offset = offset;
    d->positions -= offset;
    d->transform_activation = MHA_ACTIVATION_GELU;
    d->label_pooled = false;
    d->label_activation = MHA_ACTIVATION_TANH;
    if (d->positions < 1)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"max_position_embeddings\" is %d, expected more than "
                           "\"pad_token_id\" + 1, which is %d",
                           d->positions + offset, offset);
    return status;
}

mha_status describe_distilbert(const config_reader *r, model_description *d)
{
    const mha_status status = describe_bert(r, d);
    d->norm_eps = 1e-12f;
    d->label_pooled = false;
    d->label_activation = MHA_ACTIVATION_RELU;
    return status;
}

/* Published models have one group: all layers share its weights. Pruned ones may have a group per
 * layer. Groups of several layers, and layers of several parts, do not exist. */
mha_status describe_albert(const config_reader *r, model_description *d)
{
    stack_description *const stack = &d->stack[STACK_ENCODER];
    double groups = 1, inner_groups = 1;
    mha_status status = describe_bert(r, d);
    if (!status)
        status = config_read_number(r, "num_hidden_groups", 1, MODEL_LAYERS_MAX, &groups);
    if (!status)
        status = config_read_number(r, "inner_group_num", 1, 1, &inner_groups);
    stack->shared = groups == 1;
    if (!status && groups != 1 && groups != stack->layers)
        status = config_fail(r, MHA_ERR_FORMAT,
                             "\"num_hidden_groups\" is %g, expected 1 or the number of layers, "
                             "which is %d",
                             groups, stack->layers);
    return status;
}

mha_status describe_electra(const config_reader *r, model_description *d)
{
    const mha_status status = describe_bert(r, d);
    d->transform_activation = MHA_ACTIVATION_GELU;
    d->label_pooled = false;
    d->label_activation = MHA_ACTIVATION_GELU;
    return status;
}

mha_status describe_vit(const config_reader *r, model_description *d)
{
    d->norm = MHA_NORM_LAYER;
    d->norm_first = true;
    d->stack[STACK_ENCODER].embedding.position = POSITION_LEARNED;
    if (d->image_size < d->patch)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"image_size\" is %d, expected at least \"patch_size\", which is %d",
                           d->image_size, d->patch);
    if ((double)d->channels * d->patch * d->patch > MODEL_WIDTH_MAX)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"patch_size\" is %d with %d channels, which is more than %d numbers",
                           d->patch, d->channels, MODEL_WIDTH_MAX);
    const double side = model_patches_across(d);
    d->extra_tokens = d->family[0] == 'd' ? 2 : d->label_mean ? 0 : 1;
    if (side * side > MODEL_WIDTH_MAX)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"image_size\" is %d, which is more than %d patches of %d",
                           d->image_size, MODEL_WIDTH_MAX, d->patch);
    d->positions = (int)(side * side) + d->extra_tokens;
    return MHA_OK;
}

/* ViT with patches that may overlap, and a classifier that may read their mean. */
mha_status describe_mha_vit(const config_reader *r, model_description *d)
{
    const config_value pooling = config_get(r, "pooling");
    d->label_mean = pooling.type == CONFIG_TEXT && strcmp(pooling.text, "mean") == 0;
    if (!d->label_mean && (pooling.type != CONFIG_TEXT || strcmp(pooling.text, "class") != 0))
        return config_fail(r, MHA_ERR_FORMAT, "\"pooling\" must be \"class\" or \"mean\"");
    if (d->patch_stride > d->patch)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"patch_stride\" is %d, expected at most \"patch_size\", which is %d",
                           d->patch_stride, d->patch);
    return describe_vit(r, d);
}
