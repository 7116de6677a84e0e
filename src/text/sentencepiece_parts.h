/* SPDX-License-Identifier: MIT */
/* What the files of the SentencePiece tokenizer share; no other room includes it. */
#ifndef TEXT_SENTENCEPIECE_PARTS_H
#define TEXT_SENTENCEPIECE_PARTS_H

#include "text/piece_trie.h"
#include "text/sentencepiece.h"
#include "text/unigram.h"

struct sentencepiece {
    sentencepiece_model model;
    piece_trie user_symbols; /* kept whole */
    unigram *unigram;        /* NULL: BPE */
    size_t longest_piece;
    int32_t bytes[256];
    int32_t unused_count;
    int32_t *unused_numbers; /* by id: counts the unused pieces */
    bool adds_begin, adds_end;

    /* Marian; NULL: ids are those of the model. */
    vocabulary *own_ids;
    int32_t own_unknown_id, own_end_id, own_pad_id;
};

#define SPACE_SYMBOL "\xe2\x96\x81" /* U+2581 */
enum { SPACE_SYMBOL_BYTES = sizeof SPACE_SYMBOL - 1 };

/* A normalised text: byte n was made from the original bytes that begin at origins[n], and
 * origins[length] is where the last of them end. */
typedef struct normalized_text {
    char *text;
    size_t *origins;
    size_t length, room;
    bool failed; /* out of memory */
} normalized_text;

normalized_text sentencepiece_normalize(const sentencepiece *sp, const char *text, size_t length);
void normalized_text_free(normalized_text *normalized);

/* The pieces of a normalised text by BPE, with their bytes of it; the unknown id for characters
 * that have none. */
void sentencepiece_merge(const sentencepiece *sp, const char *normalized, size_t length,
                         token_list *list);

/* The path of another file in the same folder, which the caller frees; NULL: out of memory. */
char *sentencepiece_beside(const char *path, const char *name);

/* Makes a tokenizer of source.spm or target.spm use the ids of vocab.json, if that is beside it. */
mha_status sentencepiece_find_marian(sentencepiece *sp, const char *path, char *message,
                                     size_t message_size);

/* A piece that can be the result of splitting. */
static inline bool is_text_piece(const vocabulary *v, int32_t id)
{
    return id >= 0 && !(vocab_flags(v, id) & (PIECE_SPECIAL | PIECE_UNKNOWN | PIECE_BYTE));
}

#endif
