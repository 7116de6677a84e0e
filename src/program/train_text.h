/* SPDX-License-Identifier: MIT */
/* The files of "mha train --pairs": sentence pairs, their tokenizer, and both as training data. */
#ifndef PROGRAM_TRAIN_TEXT_H
#define PROGRAM_TRAIN_TEXT_H

#include "program/train_request.h"
#include "translator/text_data.h"

typedef struct train_text {
    pair_file train, valid;
    char *json; /* the text of tokenizer.json */
    mha_tokenizer *tokenizer;
    text_data *data;
} train_text;

/*
 * Reads the pairs, learns their vocabulary (or reads that of --tokenizer or --start, or with
 * --resume the one beside the model), writes it to the folder of the model, and sets the number of
 * words in the configuration of the request. Says what was read and which lines were skipped.
 * Initialised to zero by the caller, who calls train_text_close() in any case.
 */
int train_text_open(train_text *text, train_request *request, mha_pool *pool);
void train_text_close(train_text *text);

#endif
