/* SPDX-License-Identifier: MIT */
/* Tokenizers from texts that tests write, and tokens as texts that tests can compare. */
#ifndef MHA_TEST_TOKENS_H
#define MHA_TEST_TOKENS_H

#include "support/temp_files.h"

#include <mha/mha_model.h>

/* Writes a file into a folder. Ends the program if that fails. */
void put_file(const temp_folder *folder, const char *name, const char *text);

/* Opens a file in a folder; "": the folder itself. NULL is reported as a failure. */
mha_tokenizer *open_tokenizer(const temp_folder *folder, const char *name);

/* Opens a tokenizer.json of this text alone; and the status and message of one that is refused. */
mha_tokenizer *open_json(const char *json);
mha_status refusal(const char *name, const char *text, char *message, size_t size);

/*
 * Checks the tokens of a text: "id[begin,end]" with spaces between them, "id[]" for a mark, and
 * after it "+" for a token that continues a word, "?" for an unknown one, "!" for a mark, ":1" for
 * the second segment.
 */
void expect_tokens(const mha_tokenizer *t, const char *text, unsigned flags, const char *wanted);
void expect_pair(const mha_tokenizer *t, const char *first, const char *second, const char *wanted);

/* Checks the text of the ids of a list that ends with -1. */
void expect_text(const mha_tokenizer *t, const int32_t *ids, unsigned flags, const char *wanted);

#endif
