/* SPDX-License-Identifier: MIT */
/*
 * What js/ calls of libmha_model.wasm, beside the functions of <mha/mha_model.h>. As in mhajs.h,
 * fields have 4 bytes each, in the order of the scripts.
 */
#ifndef MHAJS_MODEL_H
#define MHAJS_MODEL_H

#include <mha/mha_model.h>

#define MHAJS_API __attribute__((used))

/* NULL after an error: *status and the message say which. */
MHAJS_API mha_model *mhajs_model_open(const char *path, int32_t storage, char *message,
                                      int32_t message_size, int32_t *status);

/* Read by js/model.mjs. Numbers of 64 bits are of no use there as integers. */
typedef struct mhajs_model_info {
    const char *family;
    int32_t kind, layers[MHA_ATTENTION_KINDS], width, inner, heads, key_heads, head_width;
    int32_t vocabulary, positions, has_logits, labels, memory_bytes;
    float parameters;
} mhajs_model_info;

MHAJS_API mha_status mhajs_model_info_get(const mha_model *model, mhajs_model_info *info);

/* Gates, by kind: [layers][H], NULL: none. */
typedef struct mhajs_gates {
    const float *gates[MHA_ATTENTION_KINDS];
} mhajs_gates;

typedef struct mhajs_encode_call {
    const char *const *texts;
    int32_t count, pooling, normalize, longest;
    float *vectors;
    mhajs_gates gates;
    char *message;
    int32_t message_size;
} mhajs_encode_call;

MHAJS_API mha_status mhajs_model_encode(const mha_model *model, const mhajs_encode_call *call);

/* One sequence. Weights of one attention, [H][rows][keys], NULL: not requested. */
typedef struct mhajs_run_call {
    const int32_t *ids;
    int32_t id_count;
    const int32_t *source_ids;
    int32_t source_count;
    const int32_t *segments;
    float *hidden; /* [id_count][width] */
    float *logits; /* [id_count][vocabulary] */
    float *source_hidden;
    float *labels;
    int32_t weights_kind, weights_layer, weights_heads;
    float *weights;
    mhajs_gates gates;
    char *message;
    int32_t message_size;
} mhajs_run_call;

MHAJS_API mha_status mhajs_model_run(const mha_model *model, const mhajs_run_call *call);

typedef struct mhajs_generate_call {
    const int64_t *starts; /* [count + 1] */
    const int32_t *ids;
    int32_t count, most, beams;
    float length_penalty, temperature, top_p, min_p, repetition_penalty;
    int32_t top_k;
    uint32_t seed;
    const char *const *stops;
    int32_t stop_count;
    mhajs_gates gates;
    char *message;
    int32_t message_size;
} mhajs_generate_call;

/* One result per text; mhajs_results_free() frees them. NULL after an error. */
typedef struct mhajs_result {
    char *text;
    int32_t length;
    int32_t *ids;
    int32_t count, ended;
    float log_probability, confidence;
} mhajs_result;

MHAJS_API mhajs_result *mhajs_model_generate(const mha_model *model,
                                             const mhajs_generate_call *call, int32_t *status);
MHAJS_API void mhajs_results_free(mhajs_result *results, int32_t count);

/* NULL after an error. */
MHAJS_API mha_tokenizer *mhajs_tokenizer_open(const char *path, char *message, int32_t message_size,
                                              int32_t *status);

/* Tokens of a text, or of two if `second` is not NULL: 5 numbers each, id, flags, segment, begin,
 * end, for free(). NULL after an error. */
MHAJS_API int32_t *mhajs_tokenizer_encode(const mha_tokenizer *tokenizer, const char *first,
                                          int32_t first_length, const char *second,
                                          int32_t second_length, uint32_t flags, int32_t *count,
                                          int32_t *status);

/* The text of some tokens, for mha_text_free(). */
MHAJS_API char *mhajs_tokenizer_decode(const mha_tokenizer *tokenizer, const int32_t *ids,
                                       int32_t count, uint32_t flags, int32_t *length,
                                       int32_t *status);

#endif
