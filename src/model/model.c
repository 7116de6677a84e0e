/* SPDX-License-Identifier: MIT */
/* Section 2 of mha_model.h: opening and freeing a model, and what it is. */
#include "model/model_parts.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_words.h"

/* -------------------------------------------------------------------- free ----- */

static void free_layer(model_layer *layer)
{
    if (layer->self.owned)
        mha_layer_free(layer->self.layer);
    if (layer->cross.owned)
        mha_layer_free(layer->cross.layer);
    if (layer->ff_owned)
        mha_feed_forward_free(layer->ff);
}

typedef struct tokenizers {
    mha_tokenizer *source, *target; /* NULL: none; target may be the same */
} tokenizers;

static void free_tokenizers(const tokenizers *t)
{
    if (t->target != t->source)
        mha_tokenizer_free(t->target);
    mha_tokenizer_free(t->source);
}

static void free_outputs(mha_model *model)
{
    mha_linear *const linears[] = {model->transform,       model->output, model->pooler,
                                   model->label_transform, model->label,  model->label_distilled};
    for (size_t n = 0; n < sizeof linears / sizeof linears[0]; n++)
        mha_linear_free(linears[n]);
    for (int s = 0; s < STACKS; s++) {
        mha_linear_free(model->stack[s].project);
        mha_linear_free(model->stack[s].patches);
    }
    const tokenizers t = {model->tokenizer, model->target_tokenizer};
    free_tokenizers(&t);
    model_files_close(&model->files);
}

void mha_model_free(mha_model *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) > 1)
        return;
    generate_memory_free(atomic_load(&model->memory));
    for (int s = 0; s < STACKS; s++)
        for (int n = 0; n < model->stack[s].layers; n++)
            free_layer(&model->stack[s].layer[n]);
    if (!model->parent)
        free_outputs(model);
    for (size_t n = 0; n < model->array_count; n++)
        free(model->arrays[n]);
    free(model->arrays);
    mha_arena_free(model->arena);
    mha_model_free(model->parent);
    free(model);
}

/* -------------------------------------------------------------------- open ----- */

/* A config of before it had an arithmetic is shorter. */
static mha_status read_config(const mha_model_config *given, mha_model_config *full)
{
    const size_t first = offsetof(mha_model_config, arithmetic);
    *full = (mha_model_config){.size = sizeof *full};
    if (!given)
        return MHA_OK;
    if (given->size != sizeof *full && given->size != first)
        return MHA_ERR_STRUCT;
    memcpy(full, given, given->size);
    return MHA_OK;
}

static mha_status check_config(const mha_model_config *config)
{
    if (config->arithmetic != MHA_EXACT && config->arithmetic != MHA_NATIVE)
        return model_fail(config->message, config->message_size, MHA_ERR_FLAG,
                          "config.arithmetic is %d; use MHA_EXACT or MHA_NATIVE",
                          (int)config->arithmetic);
    if ((unsigned)config->storage > MHA_STORE_Q4)
        return model_fail(config->message, config->message_size, MHA_ERR_FLAG,
                          "config.storage is %d; use an MHA_STORE_ value", (int)config->storage);
    return MHA_OK;
}

/* A tokenizer that the caller names must be there; one beside the model is optional, but not if it
 * is damaged. */
static mha_status open_tokenizers(tokenizers *t, const model_files *files,
                                  const mha_model_config *config)
{
    const char *const path = config->tokenizer ? config->tokenizer : files->tokenizer_path;
    const char *const target = config->tokenizer ? NULL : files->target_tokenizer_path;
    mha_status status = MHA_OK;
    if (path)
        status = mha_tokenizer_open(&t->source, path, config->message, config->message_size);
    if (!status && target)
        status = tokenizer_open_target(&t->target, target, config->message, config->message_size);
    if (!t->target)
        t->target = t->source;
    return status;
}

/* Tokenizers are opened first: what only they need from the files is out of memory again before
 * the weights are packed. */
static mha_status open_parts(mha_model **model, model_files *files, const mha_model_config *config)
{
    tokenizers t = {NULL, NULL};
    mha_status status = open_tokenizers(&t, files, config);
    const weight_source *const source = files->source;
    if (!status) {
        weight_source_release_all(source);
        status = model_build(model, files, config);
    }
    if (status) {
        free_tokenizers(&t);
        return status;
    }
    weight_source_release_all(source);
    (*model)->tokenizer = t.source;
    (*model)->target_tokenizer = t.target;
    return MHA_OK;
}

mha_status mha_model_open(mha_model **model, const char *path, const mha_model_config *given)
{
    mha_model_config full, *const config = &full;
    if (!model)
        return MHA_ERR_NULL;
    *model = NULL;
    mha_status status = read_config(given, &full);
    if (status || (status = check_config(config)))
        return status;
    if (!path)
        return model_fail(config->message, config->message_size, MHA_ERR_NULL, "path is NULL");
    model_files files = {0};
    mha_model *made = NULL;
    status = model_files_open(&files, path, config->message, config->message_size);
    if (status)
        return status;
    status = open_parts(&made, &files, config);
    if (status) {
        model_files_close(&files);
        return status;
    }
    *model = made;
    return MHA_OK;
}

/* -------------------------------------------------------------------- info ----- */

mha_status mha_model_get_info(const mha_model *model, mha_model_info *info)
{
    if (!model || !info)
        return MHA_ERR_NULL;
    if (info->size != sizeof *info)
        return MHA_ERR_STRUCT;
    const model_description *const d = &model->files.description;
    const stack_description *const s = &d->stack[model_last_stack(model)];
    *info = (mha_model_info){.size = sizeof *info,
                             .family = d->family,
                             .kind = d->kind,
                             .width = d->width,
                             .inner = s->inner,
                             .heads = s->attention.heads,
                             .key_heads = s->attention.key_heads,
                             .head_width = s->attention.head_width,
                             .vocabulary = d->vocabulary,
                             .positions = d->positions,
                             .recommended = d->usage.longest,
                             .has_logits = model->output != NULL,
                             .labels = model->label ? d->labels : 0,
                             .parameters = model->parameters,
                             .file_bytes = model->file_bytes,
                             .memory_bytes = model->memory_bytes,
                             .image_size = d->image_size,
                             .patch = d->patch,
                             .channels = d->channels,
                             .length_penalty = d->usage.length_penalty};
    memcpy(info->image_mean, d->usage.image_mean, sizeof info->image_mean);
    memcpy(info->image_deviation, d->usage.image_deviation, sizeof info->image_deviation);
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++) {
        const int layers = model->stack[attention_stack((mha_attention_kind)kind)].layers;
        for (int n = 0; n < layers; n++)
            info->layers[kind] += model_attention_at(model, (mha_attention_kind)kind, n) != NULL;
    }
    return MHA_OK;
}

const char *mha_model_arithmetic(const mha_model *model)
{
    return model ? model->arithmetic_words : NULL;
}

ptrdiff_t mha_model_heads(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer)
{
    if (!model || (unsigned)kind >= MHA_ATTENTION_KINDS)
        return -1;
    const model_attention *const attention = model_attention_at(model, kind, layer);
    return attention ? attention->heads : -1;
}

const mha_tokenizer *mha_model_tokenizer(const mha_model *model)
{
    return model ? model->tokenizer : NULL;
}

const mha_tokenizer *mha_model_target_tokenizer(const mha_model *model)
{
    return model ? model->target_tokenizer : NULL;
}

size_t mha_model_describe(const mha_model *model, char *text, size_t size)
{
    if (!model) {
        if (text && size > 0)
            text[0] = '\0';
        return 0;
    }
    return model_files_describe(&model->files, model->memory_bytes,
                                model->arithmetic == MHA_NATIVE ? model->arithmetic_words : NULL,
                                text, size);
}
