/* SPDX-License-Identifier: MIT */
/*
 * Small models for model_builder_random(), with two layers each: matrices that are fused,
 * transposed, grouped or shared. They read 11 words, and have a width of 8.
 */
#ifndef MHA_TEST_SAVED_MODELS_H
#define MHA_TEST_SAVED_MODELS_H

#include <stdbool.h>

typedef struct saved_model {
    const char *name, *config, *tensors;
    bool half, pair;  /* weights in f16; an encoder and a decoder */
    const char *says; /* in the config.json of the model without some heads */
} saved_model;

enum { SAVED_BERT, SAVED_BERT_HALF, SAVED_ALBERT, SAVED_GPT2, SAVED_LLAMA, SAVED_T5, SAVED_MODELS };
extern const saved_model saved_models[SAVED_MODELS];

#endif
