/* SPDX-License-Identifier: MIT */
/*
 * The tokenizer of the library sentencepiece: a text is normalised, its spaces become U+2581, and
 * it is split into pieces without splitting it into words first, by merging pairs (BPE) or by the
 * best sum of scores (unigram). Ids, offsets and decoded texts are those of the library.
 *
 * Any bytes may be given as text: a byte that is not UTF-8 is replaced by U+FFFD, as the library
 * does after its rules of normalisation have been looked up.
 */
#ifndef TEXT_SENTENCEPIECE_H
#define TEXT_SENTENCEPIECE_H

#include "format/gguf.h"
#include "text/sentencepiece_file.h"
#include "text/token_list.h"

typedef struct sentencepiece sentencepiece;

/*
 * Opens a file "*.model" or "*.spm". If the file tokenizer_config.json beside it says that there
 * are extra ids (T5), these marks are added: <extra_id_0> has the largest id.
 *
 * Marian: source.spm and target.spm split texts, but the ids are those of vocab.json beside them
 * (target_vocab.json for target.spm, if it exists), and a text may begin with a mark of its
 * language, ">>fr<<". So an encoder-decoder opens FOLDER/source.spm for texts to read and
 * FOLDER/target.spm for those to write: two tokenizers, usually with the same ids.
 */
mha_status sentencepiece_open(sentencepiece **sp, const char *path, char *message,
                              size_t message_size);

/* The same for the bytes of a file, with nothing beside it. */
mha_status sentencepiece_open_memory(sentencepiece **sp, const void *bytes, size_t size,
                                     char *message, size_t message_size);

/* The tokenizer of a GGUF file whose tokenizer.ggml.model is "llama" (BPE) or "t5" (unigram). The
 * file may be closed afterwards. */
mha_status sentencepiece_from_gguf(sentencepiece **sp, const gguf_file *file, char *message,
                                   size_t message_size);

/* A file tokenizer.bin of llama2.c. Its pieces have spaces, which become U+2581 here. */
mha_status sentencepiece_from_llama2c(sentencepiece **sp, const char *path, char *message,
                                      size_t message_size);

/* Takes over what `model` owns, on error too. */
mha_status sentencepiece_create(sentencepiece **sp, sentencepiece_model *model);

/* NULL is allowed. */
void sentencepiece_free(sentencepiece *sp);

/* Borrowed. Of Marian: that of vocab.json. */
const vocabulary *sentencepiece_vocabulary(const sentencepiece *sp);

/*
 * Ids are those of the vocabulary above; -1: none. Whether marks are added is what the GGUF file or
 * tokenizer_config.json (add_bos_token, add_eos_token) says, else: the begin for BPE that has such
 * a mark, as Llama; the end for models without a begin, as T5 and Marian.
 */
typedef struct sentencepiece_info {
    sentencepiece_kind kind;
    int32_t unknown_id, begin_id, end_id, pad_id;
    bool adds_begin, adds_end; /* the marks that the model expects around a text */
} sentencepiece_info;
sentencepiece_info sentencepiece_get_info(const sentencepiece *sp);

/* Appends the tokens of a text, without marks around it. Marks written in the text are text. Tokens
 * of a word after its first have the flag MHA_TOKEN_CONTINUES. */
void sentencepiece_encode(const sentencepiece *sp, const char *text, size_t length,
                          token_list *list);

/* The text of some tokens, terminated; the caller frees it. Marks are left out or written as they
 * are stored. MHA_ERR_INDEX: an id has no piece. */
mha_status sentencepiece_decode(const sentencepiece *sp, const int32_t *ids, ptrdiff_t count,
                                bool skip_marks, char **text, size_t *length);

#endif
