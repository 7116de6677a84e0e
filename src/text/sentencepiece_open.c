/* SPDX-License-Identifier: MIT */
/*
 * Opens SentencePiece tokenizers (sentencepiece.h): files of the library, with the extra ids that
 * tokenizer_config.json may announce, and llama2.c's tokenizer.bin. Marian's folders are in
 * sentencepiece_marian.c, GGUF files in sentencepiece_gguf.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/json_tree.h"
#include "format/mapped_file.h"
#include "text/sentencepiece_parts.h"

enum { SENTENCEPIECE_FILE_MAX = 256 << 20, REASON_MAX = 160 };

static void say(char *message, size_t message_size, const char *path, const char *what)
{
    if (message != NULL && message_size > 0)
        snprintf(message, message_size, "%s: %s", path, what);
}

mha_status sentencepiece_open_memory(sentencepiece **sp, const void *bytes, size_t size,
                                     char *message, size_t message_size)
{
    sentencepiece_model model;
    *sp = NULL;
    mha_status status = sentencepiece_model_read(&model, bytes, size, message, message_size);
    if (status == MHA_OK) {
        status = sentencepiece_create(sp, &model);
        if (status != MHA_OK && message != NULL && message_size > 0)
            snprintf(message, message_size, "out of memory");
    }
    return status;
}

char *sentencepiece_beside(const char *path, const char *name)
{
    const char *const slash = strrchr(path, '/');
    const size_t folder = slash == NULL ? 0 : (size_t)(slash + 1 - path);
    char *const other = malloc(folder + strlen(name) + 1);
    if (other != NULL) {
        memcpy(other, path, folder);
        strcpy(other + folder, name);
    }
    return other;
}

/* The number of extra ids of T5; 0 if the file does not say so. A damaged file is an error. */
static mha_status count_extra_ids(const char *path, int64_t *count, char *message,
                                  size_t message_size)
{
    enum { EXTRA_IDS_MAX = 4096 };
    char *const config = sentencepiece_beside(path, "tokenizer_config.json");
    json_tree *tree = NULL;
    mha_status status = config == NULL ? MHA_ERR_MEMORY : MHA_OK;
    *count = 0;
    if (config != NULL && access(config, F_OK) == 0)
        status = json_tree_read_file(&tree, config, message, message_size);
    if (tree != NULL) {
        json_tree_get_integer(json_tree_member(json_tree_root(tree), "extra_ids"), count);
        if (*count < 0 || *count > EXTRA_IDS_MAX) {
            say(message, message_size, config, "extra_ids is not a number from 0 to 4096");
            status = MHA_ERR_FORMAT;
        }
    }
    json_tree_free(tree);
    free(config);
    return status;
}

static mha_status add_extra_ids(sentencepiece_model *model, int64_t count)
{
    for (int64_t n = count - 1; n >= 0; n--) {
        char piece[32];
        const int length = snprintf(piece, sizeof piece, "<extra_id_%d>", (int)n);
        if (vocab_find(model->vocabulary, piece, (size_t)length) >= 0)
            return MHA_OK;
        if (!vocab_add(model->vocabulary, vocab_size(model->vocabulary), piece, (size_t)length, 0,
                       PIECE_SPECIAL))
            return MHA_ERR_MEMORY;
    }
    return MHA_OK;
}

mha_status sentencepiece_open(sentencepiece **sp, const char *path, char *message,
                              size_t message_size)
{
    char reason[REASON_MAX] = "out of memory";
    sentencepiece_model model;
    char *bytes;
    size_t size;
    int64_t extra_ids;
    *sp = NULL;
    mha_status status =
        mapped_file_read(&bytes, &size, path, SENTENCEPIECE_FILE_MAX, message, message_size);
    if (status != MHA_OK)
        return status;
    status = sentencepiece_model_read(&model, bytes, size, reason, sizeof reason);
    free(bytes);
    if (status != MHA_OK) {
        say(message, message_size, path, reason);
        return status;
    }
    status = count_extra_ids(path, &extra_ids, message, message_size);
    if (status == MHA_OK)
        status = add_extra_ids(&model, extra_ids);
    if (status != MHA_OK)
        sentencepiece_model_free(&model);
    else
        status = sentencepiece_create(sp, &model);
    if (status == MHA_OK)
        status = sentencepiece_find_marian(*sp, path, message, message_size);
    if (status == MHA_ERR_MEMORY)
        say(message, message_size, path, "out of memory");
    if (status != MHA_OK) {
        sentencepiece_free(*sp);
        *sp = NULL;
    }
    return status;
}

/* ----------------------------------------------------------- llama2.c ----- */

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Adds a piece of tokenizer.bin: each space of it becomes U+2581. The three pieces before the bytes
 * are marks, written as "<unk>", "\n<s>\n" and "\n</s>\n" or in another way. */
static mha_status add_llama2c_piece(sentencepiece_model *model, const char *piece, size_t length,
                                    float score)
{
    enum { MARKS = 3, BYTES = 256 };
    static const char *const marks[MARKS] = {"<unk>", "<s>", "</s>"};
    const int32_t id = vocab_size(model->vocabulary);
    bool added;
    if (id < MARKS) {
        added = vocab_add(model->vocabulary, id, marks[id], strlen(marks[id]), score,
                          id == 0 ? PIECE_UNKNOWN : PIECE_SPECIAL);
    } else {
        char *const stored = malloc(length * SPACE_SYMBOL_BYTES + 1);
        size_t used = 0;
        for (size_t n = 0; stored != NULL && n < length; n++) {
            const bool space = piece[n] == ' ';
            memcpy(stored + used, space ? SPACE_SYMBOL : piece + n, space ? SPACE_SYMBOL_BYTES : 1);
            used += space ? SPACE_SYMBOL_BYTES : 1;
        }
        added = stored != NULL && vocab_add(model->vocabulary, id, stored, used, score,
                                            id < MARKS + BYTES ? PIECE_BYTE : 0);
        free(stored);
    }
    return added ? MHA_OK : MHA_ERR_MEMORY;
}

/* Returns what is wrong with the next piece, or NULL and moves on. */
static const char *read_llama2c_piece(sentencepiece_model *model, const unsigned char *bytes,
                                      size_t size, size_t *at)
{
    enum { HEADER = 8, PIECE_MAX = 1 << 16 };
    if (size - *at < HEADER)
        return "the last piece is cut off";
    const uint32_t bits = read_u32(bytes + *at), length = read_u32(bytes + *at + 4);
    float score;
    memcpy(&score, &bits, sizeof score);
    *at += HEADER;
    if (length == 0 || length > PIECE_MAX || length > size - *at)
        return "a piece is empty or longer than the file";
    const char *const piece = (const char *)bytes + *at;
    if (isnan(score) || memchr(piece, 0, length) != NULL)
        return "a piece has a zero byte, or its score is not a number";
    if (vocab_size(model->vocabulary) >= VOCABULARY_MAX)
        return "more than 4194304 pieces";
    *at += length;
    return add_llama2c_piece(model, piece, length, score) == MHA_OK ? NULL : "out of memory";
}

static mha_status read_llama2c(sentencepiece_model *model, const unsigned char *bytes, size_t size,
                               char *reason)
{
    size_t at = 4; /* after the length of the longest piece */
    const char *wrong = size < 4 ? "the file is cut off" : NULL;
    if (sentencepiece_model_begin(model) != MHA_OK)
        wrong = "out of memory";
    model->kind = SENTENCEPIECE_BPE;
    model->byte_fallback = true;
    model->removes_extra_spaces = false;
    while (wrong == NULL && at < size)
        wrong = read_llama2c_piece(model, bytes, size, &at);
    if (wrong == NULL)
        return sentencepiece_model_check(model, reason, REASON_MAX);
    snprintf(reason, REASON_MAX, "%s", wrong);
    return strcmp(wrong, "out of memory") == 0 ? MHA_ERR_MEMORY : MHA_ERR_FORMAT;
}

mha_status sentencepiece_from_llama2c(sentencepiece **sp, const char *path, char *message,
                                      size_t message_size)
{
    char reason[REASON_MAX] = "out of memory";
    sentencepiece_model model;
    char *bytes;
    size_t size;
    *sp = NULL;
    mha_status status =
        mapped_file_read(&bytes, &size, path, SENTENCEPIECE_FILE_MAX, message, message_size);
    if (status != MHA_OK)
        return status;
    status = read_llama2c(&model, (const unsigned char *)bytes, size, reason);
    free(bytes);
    if (status == MHA_OK)
        status = sentencepiece_create(sp, &model);
    else
        sentencepiece_model_free(&model);
    if (status != MHA_OK)
        say(message, message_size, path, reason);
    else
        (*sp)->adds_begin = true;
    return status;
}
