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

#include "base/utf8.h"
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
        memcpy(other + folder, name, strlen(name) + 1);
    }
    return other;
}

/* What tokenizer_config.json beside a file says. */
typedef struct config {
    int64_t extra_ids; /* of T5 */
    bool has_begin, adds_begin, has_end, adds_end;
} config;

/* No such file is no error, but a damaged one is. */
static mha_status read_config(config *c, const char *path, char *message, size_t message_size)
{
    enum { EXTRA_IDS_MAX = 4096 };
    char *const name = sentencepiece_beside(path, "tokenizer_config.json");
    json_tree *tree = NULL;
    mha_status status = name == NULL ? MHA_ERR_MEMORY : MHA_OK;
    *c = (config){0};
    if (name != NULL && access(name, F_OK) == 0)
        status = json_tree_read_file(&tree, name, message, message_size);
    if (tree != NULL) {
        const json_value *const root = json_tree_root(tree);
        json_tree_get_integer(json_tree_member(root, "extra_ids"), &c->extra_ids);
        c->has_begin = json_tree_get_bool(json_tree_member(root, "add_bos_token"), &c->adds_begin);
        c->has_end = json_tree_get_bool(json_tree_member(root, "add_eos_token"), &c->adds_end);
    }
    if (c->extra_ids < 0 || c->extra_ids > EXTRA_IDS_MAX) {
        say(message, message_size, name, "extra_ids is not a number from 0 to 4096");
        status = MHA_ERR_FORMAT;
    }
    json_tree_free(tree);
    free(name);
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

/* Makes a tokenizer of a model, which it takes over, and of the files beside it. */
static mha_status finish(sentencepiece **sp, sentencepiece_model *model, const char *path,
                         char *message, size_t message_size)
{
    config c;
    mha_status status = read_config(&c, path, message, message_size);
    if (status == MHA_OK)
        status = add_extra_ids(model, c.extra_ids);
    if (status != MHA_OK) {
        sentencepiece_model_free(model);
        return status;
    }
    status = sentencepiece_create(sp, model);
    if (status != MHA_OK)
        return status;
    (*sp)->adds_begin = c.has_begin ? c.adds_begin : (*sp)->adds_begin;
    (*sp)->adds_end = c.has_end ? c.adds_end : (*sp)->adds_end;
    status = sentencepiece_find_marian(*sp, path, message, message_size);
    if (status != MHA_OK) {
        sentencepiece_free(*sp);
        *sp = NULL;
    }
    return status;
}

mha_status sentencepiece_open(sentencepiece **sp, const char *path, char *message,
                              size_t message_size)
{
    char reason[REASON_MAX] = "";
    sentencepiece_model model;
    char *bytes;
    size_t size;
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
    status = finish(sp, &model, path, message, message_size);
    if (status == MHA_ERR_MEMORY)
        say(message, message_size, path, "out of memory");
    return status;
}

/* ----------------------------------------------------------- llama2.c ----- */

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

enum { LLAMA2C_MARKS = 3, LLAMA2C_BYTES = 256 };

/* Whether a piece of tokenizer.bin is a byte as older files write it: as the character of that
 * number, and not as "<0x41>". */
static bool is_plain_byte(int32_t id, const char *piece, size_t length)
{
    char character[4];
    const int32_t byte = id - LLAMA2C_MARKS;
    if (byte < 0 || byte >= LLAMA2C_BYTES)
        return false;
    return utf8_encode(character, (uint32_t)byte) == length &&
           memcmp(piece, character, length) == 0;
}

/* Adds a piece of tokenizer.bin: each space of it becomes U+2581. The three pieces before the bytes
 * are marks, written as "<unk>", "\n<s>\n" and "\n</s>\n" or in another way. */
static mha_status add_llama2c_piece(sentencepiece_model *model, const char *piece, size_t length,
                                    float score)
{
    enum { MARKS = LLAMA2C_MARKS, BYTES = LLAMA2C_BYTES };
    char byte[8];
    static const char *const marks[MARKS] = {"<unk>", "<s>", "</s>"};
    const int32_t id = vocab_size(model->vocabulary);
    bool added;
    if (is_plain_byte(id, piece, length)) {
        length = (size_t)snprintf(byte, sizeof byte, "<0x%02X>", (unsigned)(id - MARKS) & 0xff);
        piece = byte;
    }
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
    const bool is_byte = is_plain_byte(vocab_size(model->vocabulary), piece, length);
    if (isnan(score) || (!is_byte && memchr(piece, 0, length) != NULL))
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
    return status;
}
