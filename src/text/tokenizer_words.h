/* SPDX-License-Identifier: MIT */
/* The tokenizers of a model of "mha train", whose words are in the metadata of its file. */
#ifndef TEXT_TOKENIZER_WORDS_H
#define TEXT_TOKENIZER_WORDS_H

#include <mha/mha_model.h>

/* "format" in the metadata of the file. */
#define TRANSLATOR_FORMAT "mha-translator-1"

/* As mha_tokenizer_open(), which opens the one for the texts that the translator reads: the one for
 * those that it writes. */
mha_status tokenizer_open_target(mha_tokenizer **tokenizer, const char *path, char *message,
                                 size_t message_size);

#endif
