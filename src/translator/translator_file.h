/* SPDX-License-Identifier: MIT */
/* Private: the metadata of a model, shared by translator_file.c and model_metadata.c. */
#ifndef TRANSLATOR_FILE_H
#define TRANSLATOR_FILE_H

#include "format/safetensors.h"
#include "translator/translator_parts.h"

/* The keys of the metadata of a model; only the checksum may be missing. Other keys are notes. */
enum {
    KEY_FORMAT,
    KEY_CONFIG,
    KEY_SOURCE,
    KEY_TARGET,
    MODEL_KEYS_NEEDED,
    KEY_CHECKSUM = MODEL_KEYS_NEEDED,
    MODEL_KEYS
};
const char *model_key(int key);

/* The words of one side without the special ones. */
typedef struct word_list {
    const char *const *words;
    int count;
} word_list;

/* Reports that there is no memory; returns MHA_ERR_MEMORY. */
mha_status model_fail_memory(const safetensors_report *report);

/* Configuration and vocabulary as JSON. The caller frees the vocabulary's text, which is NULL if
 * out of memory. */
enum { CONFIG_TEXT_MAX = 320 };
void model_config_text(const transformer_config *config, char text[CONFIG_TEXT_MAX]);
char *model_vocabulary_text(const word_list *list);

/* Read the same back, with strict checks. `count` is the number of words with the special ones. */
mha_status model_config_read(const safetensors_report *report, const char *text,
                             transformer_config *config);
mha_status model_vocabulary_read(const safetensors_report *report, int key, const char *text,
                                 int count, vocabulary *result);

#endif
