/* SPDX-License-Identifier: MIT */
/*
 * What a SentencePiece model consists of, and the reader of its files: a protobuf message
 * "ModelProto" of the library sentencepiece. Other sources of the same data (GGUF, llama2.c) fill
 * in the same struct.
 */
#ifndef TEXT_SENTENCEPIECE_FILE_H
#define TEXT_SENTENCEPIECE_FILE_H

#include "text/precompiled.h"
#include "text/vocabulary.h"

typedef enum sentencepiece_kind {
    SENTENCEPIECE_UNIGRAM = 1,
    SENTENCEPIECE_BPE = 2
} sentencepiece_kind;

enum { UNKNOWN_SURFACE_MAX = 64 };

typedef struct sentencepiece_model {
    vocabulary *vocabulary;
    precompiled *rules; /* NULL: none */
    sentencepiece_kind kind;
    bool byte_fallback;
    bool space_is_suffix; /* the added space follows the text */
    bool adds_space;
    bool removes_extra_spaces;
    bool escapes_spaces; /* as U+2581 */
    int32_t unknown_id;
    int32_t begin_id, end_id, pad_id;          /* -1: none */
    char unknown_surface[UNKNOWN_SURFACE_MAX]; /* what an unknown token is decoded to */
} sentencepiece_model;

/* An empty vocabulary, and the defaults of ModelProto. MHA_ERR_MEMORY is the only error. */
mha_status sentencepiece_model_begin(sentencepiece_model *model);
void sentencepiece_model_free(sentencepiece_model *model);

/* Reads the bytes of a file. On error `model` is empty, and `message` says what is wrong. */
mha_status sentencepiece_model_read(sentencepiece_model *model, const void *bytes, size_t size,
                                    char *message, size_t message_size);

/* The flags of a piece by its type in the file: 1 normal, 2 unknown, 3 control, 4 user defined,
 * 5 unused, 6 byte. */
unsigned sentencepiece_type_flags(uint64_t type);

/* The last check, for all sources: there is one unknown piece, bytes are complete, marks exist. */
mha_status sentencepiece_model_check(sentencepiece_model *model, char *message,
                                     size_t message_size);

#endif
