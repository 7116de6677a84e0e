/* SPDX-License-Identifier: MIT */
/* Models: opened from files of the host, run on one sequence, encode and generate. */
#include "mhajs_model.h"

#include <stdbool.h>
#include <stdlib.h>

mha_model *mhajs_model_open(const char *path, int32_t storage, char *message, int32_t message_size,
                            int32_t *status)
{
    const mha_model_config config = {.size = sizeof config,
                                     .storage = (mha_model_storage)storage,
                                     .message = message,
                                     .message_size = (size_t)message_size};
    mha_model *model = NULL;
    *status = mha_model_open(&model, path, &config);
    return model;
}

mha_status mhajs_model_info_get(const mha_model *model, mhajs_model_info *to)
{
    mha_model_info info = {.size = sizeof info};
    const mha_status status = mha_model_get_info(model, &info);
    if (status != MHA_OK)
        return status;
    *to = (mhajs_model_info){
        .family = info.family,
        .kind = (int32_t)info.kind,
        .width = (int32_t)info.width,
        .inner = (int32_t)info.inner,
        .heads = (int32_t)info.heads,
        .key_heads = (int32_t)info.key_heads,
        .head_width = (int32_t)info.head_width,
        .vocabulary = (int32_t)info.vocabulary,
        .positions = (int32_t)info.positions,
        .has_logits = info.has_logits,
        .labels = (int32_t)info.labels,
        .memory_bytes = (int32_t)info.memory_bytes,
        .parameters = (float)info.parameters,
    };
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++)
        to->layers[kind] = (int32_t)info.layers[kind];
    return MHA_OK;
}

static mha_head_settings settings(const mhajs_gates *from)
{
    mha_head_settings heads = {.size = sizeof heads};
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++)
        heads.gates[kind] = from->gates[kind];
    return heads;
}

mha_status mhajs_model_encode(const mha_model *model, const mhajs_encode_call *c)
{
    const mha_head_settings heads = settings(&c->gates);
    const mha_encode_config config = {.size = sizeof config,
                                      .pooling = (mha_pooling)c->pooling,
                                      .normalize = c->normalize,
                                      .longest = c->longest,
                                      .heads = &heads,
                                      .message = c->message,
                                      .message_size = (size_t)c->message_size};
    return mha_model_encode(model, c->texts, c->count, &config, c->vectors, NULL);
}

mha_status mhajs_model_run(const mha_model *model, const mhajs_run_call *c)
{
    const int64_t starts[] = {0, c->id_count}, source_starts[] = {0, c->source_count};
    const mha_head_settings heads = settings(&c->gates);
    const mha_attention_kind kind = (mha_attention_kind)c->weights_kind;
    const bool from_source =
        kind == MHA_ATTENTION_CROSS || (kind == MHA_ATTENTION_ENCODER && c->source_ids);
    const ptrdiff_t keys = from_source ? c->source_count : c->id_count;
    const ptrdiff_t rows = kind == MHA_ATTENTION_ENCODER ? keys : c->id_count;
    const mha_capture capture = {
        .kind = kind,
        .layer = c->weights_layer,
        .weights = mha_out_bhld(c->weights, c->weights_heads, rows, keys),
    };
    const mha_model_call call = {
        .size = sizeof call,
        .B = 1,
        .starts = c->ids ? starts : NULL,
        .ids = c->ids,
        .segments = c->segments,
        .source_starts = c->source_ids ? source_starts : NULL,
        .source_ids = c->source_ids,
        .hidden = c->hidden,
        .logits = c->logits,
        .logit_row_count = c->logits ? c->id_count : 0,
        .source_hidden = c->source_hidden,
        .labels = c->labels,
        .heads = &heads,
        .captures = &capture,
        .capture_count = c->weights ? 1 : 0,
        .message = c->message,
        .message_size = (size_t)c->message_size,
    };
    return mha_model_run(model, &call, NULL, 0, NULL);
}

/* -------------------------------------------------------------- generate ----- */

void mhajs_results_free(mhajs_result *results, int32_t count)
{
    for (int32_t n = 0; results && n < count; n++)
        mha_generation_free(&(mha_generation){.ids = results[n].ids, .text = results[n].text});
    free(results);
}

static mha_status generate(const mha_model *model, const mhajs_generate_call *c,
                           mha_generation *results)
{
    const mha_head_settings heads = settings(&c->gates);
    const mha_generate_config config = {
        .size = sizeof config,
        .most = c->most,
        .sampling = {.temperature = c->temperature,
                     .top_k = c->top_k,
                     .top_p = c->top_p,
                     .min_p = c->min_p,
                     .repetition_penalty = c->repetition_penalty,
                     .seed = c->seed},
        .stops = c->stops,
        .stop_count = c->stop_count,
        .heads = &heads,
        .message = c->message,
        .message_size = (size_t)c->message_size,
        .beams = c->beams,
        .length_penalty = (double)c->length_penalty,
    };
    return mha_model_generate(model, c->count, c->starts, c->ids, &config, results, NULL);
}

mhajs_result *mhajs_model_generate(const mha_model *model, const mhajs_generate_call *c,
                                   int32_t *status)
{
    const size_t count = c->count > 0 ? (size_t)c->count : 1;
    mha_generation *const made = calloc(count, sizeof *made);
    mhajs_result *const results = calloc(count, sizeof *results);
    *status = made && results ? (int32_t)generate(model, c, made) : (int32_t)MHA_ERR_MEMORY;
    for (int32_t n = 0; *status == MHA_OK && n < c->count; n++)
        results[n] = (mhajs_result){.text = made[n].text,
                                    .length = (int32_t)made[n].length,
                                    .ids = made[n].ids,
                                    .count = (int32_t)made[n].count,
                                    .ended = made[n].ended,
                                    .log_probability = (float)made[n].log_probability,
                                    .confidence = (float)made[n].confidence};
    free(made);
    if (*status == MHA_OK)
        return results;
    free(results);
    return NULL;
}
