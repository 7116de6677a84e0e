/* SPDX-License-Identifier: MIT */
/*
 * The SentencePiece tokenizer inside of a GGUF file (sentencepiece.h): arrays of pieces, scores and
 * types, which have the same numbers as in SentencePiece's own files, and a few settings.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/sentencepiece_parts.h"

typedef struct arrays {
    const gguf_pair *tokens, *scores, *types;
} arrays;

static bool is_array(const gguf_pair *pair, gguf_type element, uint64_t count)
{
    return pair != NULL && pair->type == GGUF_ARRAY && pair->element == element &&
           pair->count == count;
}

/* Returns what is wrong with the arrays, or NULL. */
static const char *find_arrays(arrays *a, const gguf_file *file)
{
    a->tokens = gguf_find(file, "tokenizer.ggml.tokens");
    a->scores = gguf_find(file, "tokenizer.ggml.scores");
    a->types = gguf_find(file, "tokenizer.ggml.token_type");
    if (a->tokens == NULL || !is_array(a->tokens, GGUF_STRING, a->tokens->count))
        return "tokenizer.ggml.tokens is not a list of texts";
    if (a->tokens->count > VOCABULARY_MAX)
        return "tokenizer.ggml.tokens has more than 4194304 texts";
    if (!is_array(a->scores, GGUF_F32, a->tokens->count))
        return "tokenizer.ggml.scores does not have one f32 for each token";
    if (!is_array(a->types, GGUF_I32, a->tokens->count))
        return "tokenizer.ggml.token_type does not have one i32 for each token";
    return NULL;
}

static const char *read_pieces(sentencepiece_model *model, const arrays *a)
{
    uint64_t at = 0;
    for (uint64_t n = 0; n < a->tokens->count; n++) {
        const gguf_string piece = gguf_next_string(a->tokens, &at);
        const float score = (float)gguf_array_number(a->scores, n);
        const int64_t type = gguf_array_integer(a->types, n);
        if (piece.length > 0 && memchr(piece.text, 0, (size_t)piece.length) != NULL)
            return "a piece of tokenizer.ggml.tokens has a zero byte";
        if (isnan(score))
            return "a score of tokenizer.ggml.scores is not a number";
        if (type < 0 || type > 6)
            return "a type of tokenizer.ggml.token_type is unknown";
        const unsigned flags = sentencepiece_type_flags((uint64_t)type);
        model->byte_fallback = model->byte_fallback || flags & PIECE_BYTE;
        if (!vocab_add(model->vocabulary, (int32_t)n, piece.text, (size_t)piece.length, score,
                       flags))
            return "out of memory";
    }
    return NULL;
}

static int32_t get_id(const gguf_file *file, const char *key, int32_t otherwise)
{
    int64_t id;
    return gguf_get_integer(file, key, &id) && id >= 0 && id < VOCABULARY_MAX ? (int32_t)id
                                                                              : otherwise;
}

/* A file may say by the type of a piece that it is the unknown one, or by its id only. */
static void mark_unknown(sentencepiece_model *model, const gguf_file *file)
{
    vocabulary *const v = model->vocabulary;
    for (int32_t id = 0; id < vocab_size(v); id++) {
        if (vocab_flags(v, id) & PIECE_UNKNOWN)
            return;
    }
    const int32_t id = get_id(file, "tokenizer.ggml.unknown_token_id", 0);
    vocab_set_flags(v, id, vocab_flags(v, id) | PIECE_UNKNOWN);
}

static const char *read_rules(sentencepiece_model *model, const gguf_file *file)
{
    const gguf_pair *const rules = gguf_find(file, "tokenizer.ggml.precompiled_charsmap");
    if (rules == NULL || rules->count == 0)
        return NULL;
    if (rules->type != GGUF_ARRAY || (rules->element != GGUF_U8 && rules->element != GGUF_I8))
        return "tokenizer.ggml.precompiled_charsmap is not a list of bytes";
    const mha_status status = precompiled_create(&model->rules, rules->data, (size_t)rules->count);
    if (status == MHA_ERR_MEMORY)
        return "out of memory";
    return status == MHA_OK ? NULL : "tokenizer.ggml.precompiled_charsmap is damaged";
}

static const char *read_model(sentencepiece_model *model, const gguf_file *file, bool is_unigram)
{
    arrays a;
    if (sentencepiece_model_begin(model) != MHA_OK)
        return "out of memory";
    model->kind = is_unigram ? SENTENCEPIECE_UNIGRAM : SENTENCEPIECE_BPE;
    model->removes_extra_spaces = is_unigram;
    gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &model->adds_space);
    gguf_get_bool(file, "tokenizer.ggml.remove_extra_whitespaces", &model->removes_extra_spaces);
    model->begin_id = get_id(file, "tokenizer.ggml.bos_token_id", is_unigram ? -1 : 1);
    model->end_id = get_id(file, "tokenizer.ggml.eos_token_id", is_unigram ? 1 : 2);
    model->pad_id = get_id(file, "tokenizer.ggml.padding_token_id", -1);
    const char *wrong = find_arrays(&a, file);
    if (wrong == NULL)
        wrong = read_pieces(model, &a);
    if (wrong == NULL)
        wrong = read_rules(model, file);
    if (wrong == NULL)
        mark_unknown(model, file);
    return wrong;
}

mha_status sentencepiece_from_gguf(sentencepiece **sp, const gguf_file *file, char *message,
                                   size_t message_size)
{
    char reason[128] = "out of memory";
    gguf_string kind = {"", 0};
    sentencepiece_model model = {0};
    const char *wrong = NULL;
    *sp = NULL;
    gguf_get_string(file, "tokenizer.ggml.model", &kind);
    const bool is_llama = kind.length == 5 && memcmp(kind.text, "llama", 5) == 0;
    const bool is_t5 = kind.length == 2 && memcmp(kind.text, "t5", 2) == 0;
    if (!is_llama && !is_t5)
        wrong = "tokenizer.ggml.model is neither llama nor t5";
    else
        wrong = read_model(&model, file, is_t5);
    mha_status status = MHA_OK;
    if (wrong != NULL) {
        status = strcmp(wrong, "out of memory") == 0 ? MHA_ERR_MEMORY : MHA_ERR_FORMAT;
        snprintf(reason, sizeof reason, "%s", wrong);
    } else {
        status = sentencepiece_model_check(&model, reason, sizeof reason);
    }
    if (status == MHA_OK)
        status = sentencepiece_create(sp, &model);
    else
        sentencepiece_model_free(&model);
    if (status != MHA_OK && message != NULL && message_size > 0)
        snprintf(message, message_size, "%s", reason);
    if (status == MHA_OK) {
        (*sp)->adds_begin = is_llama;
        (*sp)->adds_end = is_t5;
        gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &(*sp)->adds_begin);
        gguf_get_bool(file, "tokenizer.ggml.add_eos_token", &(*sp)->adds_end);
    }
    return status;
}
