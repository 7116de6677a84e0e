/* SPDX-License-Identifier: MIT */
/*
 * Layer words: one line that names a matrix product, a layer, a step of decoding or attention over
 * a cache, as problem words name an operator's problem.
 *
 *      linear:m512n2304k768:bf16           y = x W^T: m rows, n outputs, k inputs
 *      openblas:m512n2304k768              the same by OpenBLAS's sgemm; gemv: by its sgemv
 *      layer:bert-base:l512                a layer, projections and heads, of a preset
 *      layer:e512h8g2d64l100:causal        or of widths of one's own
 *      decode:gpt2-small:s1024:cache=i8    a layer's step: the last l (1) of s tokens, with a cache
 *      cache:gpt2-small:s8192:i8           the heads of such a step alone
 *      train:b128                          the laboratory's step of training on b sentence pairs
 *      train:b430:text                     that of a model for files of pairs, on random sentences
 *      translate:b64:nocache               b sentences translated, as the model in models/ does
 *
 * Extents:  m n k; or e model width, h query heads, g key/value heads (h), d and v widths of a head
 *           (e/h, d) unless a preset says them, b batch (1), l queries, s tokens in the cache.
 * Suffixes: f32 f16 bf16 i8       type of the stored weights, of the cache in a cache word (f32)
 *           native                products with the weights in their own type, not in f32
 *           cache=T               type of the cache of a step (f32)
 *           grad                  a layer's step of training: forward, then all gradients
 *           causal gemv nocache text t=N
 */
#ifndef PROBLEM_LAYER_WORD_H
#define PROBLEM_LAYER_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <mha/mha.h>

#include "problem/word_reader.h"

enum { PRESETS_MAX = 32 };

typedef enum layer_word_kind {
    WORD_LINEAR,
    WORD_OPENBLAS,
    WORD_LAYER,
    WORD_DECODE,
    WORD_CACHE,
    WORD_TRAIN,
    WORD_TRANSLATE
} layer_word_kind;

typedef struct layer_word {
    layer_word_kind kind;
    const mha_preset_info *preset; /* NULL: widths of its own */
    ptrdiff_t m, n, k;
    ptrdiff_t e, h, g, d, v, b, l, s;
    mha_dtype stored, cache;
    bool native, causal, grad, gemv, no_cache, text;
    int threads; /* 0: not said */
} layer_word;

/* Is the text meant as a layer word? No digit stands before its first colon, as in no problem
 * word. */
bool layer_word_meant(const char *text);

/* Is it about the translator? Such words are for benchmarks only, and say nothing of extents. */
bool layer_word_is_model(const layer_word *word);

/* As word_parse() and word_print(). */
bool layer_word_parse(layer_word *word, const char *text, char *message, size_t size);
size_t layer_word_print(const layer_word *word, char *text, size_t size);

/* The arithmetic of its products with weights. */
mha_arithmetic layer_word_arithmetic(const layer_word *word);

/* Rows that the weights are multiplied with, or the queries of every head. */
ptrdiff_t layer_word_rows(const layer_word *word);

/* Weights, biases not counted. */
double layer_word_weights(const layer_word *word);

/* Outputs of all projections: as many as there are biases. */
double layer_word_outputs(const layer_word *word);

/* Needed work: 2 for every weight and row, 2 * (D + Dv) for every attended pair; with gradients 3
 * times the first and 7/2 times the second. */
double layer_word_flops(const layer_word *word);

/* Needed reads: weights and cached keys and values once, as they are stored. */
double layer_word_weight_bytes(const layer_word *word);
double layer_word_cache_bytes(const layer_word *word);

/* The names of the presets, at most `max`; returns how many. */
int layer_word_presets(const char **names, int max);

extern const char *const layer_word_kinds[];
extern const int layer_word_kind_count;

/* The grammar for people, as `mha help words` shows it. */
void layer_word_help(FILE *file);

#endif
