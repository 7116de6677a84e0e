/* SPDX-License-Identifier: MIT */
/* What translator_file.c and model_metadata.c share: the metadata of a model. */
#ifndef MODEL_TRANSLATOR_FILE_H
#define MODEL_TRANSLATOR_FILE_H

#include "format/safetensors.h"
#include "model/translator_parts.h"

/* Keys of the metadata that make a model, the last of which may be missing; others are notes. */
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

/* Words of one side without the special ones; printable. */
typedef struct word_list {
    const char *const *words;
    int count;
} word_list;

mha_status model_fail_memory(const safetensors_report *report);

/* As JSON; the latter for free(), NULL: no memory. */
enum { CONFIG_TEXT_MAX = 320 };
void model_config_text(const transformer_config *config, char text[CONFIG_TEXT_MAX]);
char *model_vocabulary_text(const word_list *list);

/* The way back, strictly. */
mha_status model_config_read(const safetensors_report *report, const char *text,
                             transformer_config *config);
mha_status model_vocabulary_read(const safetensors_report *report, int key, const char *text,
                                 int count, vocabulary *result);

#endif
