/* SPDX-License-Identifier: MIT */
/*
 * BPE-dropout: a text is divided into tokens in many ways, which trains a model on more than one
 * division of a word. Whenever a pair is to be merged, it is passed over with a probability; the
 * pairs that were passed over are tried again after the next merge, and if all of them were, the
 * word stays as it is. Decoding gives the same text.
 */
#ifndef TEXT_BPE_DROPOUT_H
#define TEXT_BPE_DROPOUT_H

#include <mha/mha_model.h>

typedef struct bpe_dropout {
    double probability; /* in [0, 1); 0: none */
    uint64_t seed;      /* the same seed gives the same tokens, on every machine */
} bpe_dropout;

/* mha_tokenizer_encode() with dropout. MHA_ERR_DROPOUT: a probability that is not in [0, 1);
 * MHA_ERR_FLAG: unknown flags, or a tokenizer that is not BPE. */
mha_status tokenizer_encode_dropout(const mha_tokenizer *tokenizer, const char *text, size_t length,
                                    unsigned flags, const bpe_dropout *dropout, mha_tokens *tokens);

#endif
