/* SPDX-License-Identifier: MIT */
/* The rows of "mha bench --table", by section. The numbers are the project's goals;
 * docs/benchmarks.md has the results. */
#include "bench/bench_rows.h"

#include <stddef.h>

/* -------------------------------------------------------------- operator ----- */

#define DECODE "b1h32g8l1s4096d128"

static const row operator_rows[] = {
    {ROW_SHARE, "b1h12l1024d64", NULL, 0.85},
    {ROW_SHARE, "b1h12l2048d64", NULL, 0.85},
    {ROW_SHARE, "b1h12l4096d64", NULL, 0.85},
    {ROW_SHARE, "b1h12l1024d128", NULL, 0.87},
    {ROW_SHARE, "b1h12l2048d128", NULL, 0.87},
    {ROW_SHARE, "b1h12l4096d128", NULL, 0.87},
    {ROW_SHARE, "b1h12l512d64", NULL, 0.78},
    {ROW_SHARE, "b32h12l128d64", NULL, 0.70},
    {ROW_SHARE, "b1h12l2048d64:causal", NULL, 0.78},
    {ROW_SHARE, "b1h12l4096d64:causal:window=256", NULL, 0.65},
    {ROW_SHARE, "b1h12l1024d64:mask=bool50", NULL, 0.70},
    {ROW_SHARE, "b1h12l1024d64:mask=add", NULL, 0.70},
    {ROW_TIME, "b8h12l512d64:pad", "b8h12l512d64", 0.55},
    {ROW_TIME, "b8h12l512d64:padk", "b8h12l512d64", 0.55},
    {ROW_SHARE, DECODE, NULL, 0.85},
    {ROW_SPEED, DECODE ":f16", DECODE, 1.8},
    {ROW_SPEED, DECODE ":bf16", DECODE, 1.8},
    {ROW_SPEED, "b1h12l1024d64:f16", "b1h12l1024d64", 0.95},
    {ROW_SPEED, "b1h12l1024d64:bf16", "b1h12l1024d64", 0.95},
    {ROW_SHARE_RATIO, "b1h12l1024d64:t=2", "b1h12l1024d64:t=1", 0.95},
    {ROW_TIME, "b1h12l2048d64:stats", "b1h12l2048d64", 1.15},
    {ROW_TIME, "b1h12l2048d64:stats=columns", "b1h12l2048d64", 1.15},
    {ROW_TIME, "b1h12l2048d64:stats=all", "b1h12l2048d64", 1.15},
    {ROW_WORKSPACE, "b1h12l16384d64", NULL, 16.0},
};

/* ------------------------------------------------------------- gradients ----- */

static const row gradient_rows[] = {
    {ROW_SHARE, "b1h12l1024d64:grad", NULL, 0.72},
    {ROW_SHARE, "b1h12l2048d64:grad", NULL, 0.72},
    {ROW_SHARE, "b1h12l1024d64:causal:grad", NULL, 0.72},
    {ROW_SHARE, "b1h12l2048d64:causal:grad", NULL, 0.72},
    {ROW_SHARE, "b1h12l1024d128:grad", NULL, 0.0},
    {ROW_SHARE_RATIO, "b1h12l1024d64:grad:t=2", "b1h12l1024d64:grad:t=1", 0.0},
    {ROW_TIME, "b1h12l1024d64:dropout=0.1", "b1h12l1024d64", 1.15},
    {ROW_TIME, "b1h12l1024d64:dropout=0.1:grad", "b1h12l1024d64:grad", 1.15},
};

/* ---------------------------------------------------------------- linear ----- */

/* The projections of presets: Q, K and V as one matrix, and the output projection. */
#define BERT_BASE_QKV "n2304k768"
#define BERT_BASE_O "n768k768"
#define BERT_LARGE_QKV "n3072k1024"
#define BERT_LARGE_O "n1024k1024"
#define GPT2_LARGE_QKV "n3840k1280"
#define GPT2_LARGE_O "n1280k1280"
#define GPT3_QKV "n36864k12288"
#define GPT3_O "n12288k12288"

#define MATRIX_ROWS(NK)                                             \
    {ROW_SHARE, "linear:m512" NK, NULL, 0.88},                      \
        {ROW_SPEED, "linear:m512" NK, "openblas:m512" NK, 1.0},     \
        {ROW_SHARE, "linear:m2048" NK, NULL, 0.88},                 \
        {ROW_SPEED, "linear:m2048" NK, "openblas:m2048" NK, 1.0},   \
        {ROW_SPEED, "linear:m8" NK, "openblas:m8" NK, 2.0},         \
        {ROW_SPEED, "linear:m4" NK, "openblas:m4" NK, 2.0},         \
        {ROW_SPEED, "linear:m2" NK, "openblas:m2" NK, 2.0},         \
        {ROW_SHARE, "linear:m1" NK, NULL, 0.85},                    \
        {ROW_SPEED, "linear:m1" NK, "openblas:m1" NK, 2.0},         \
        {ROW_SPEED, "linear:m1" NK, "openblas:m1" NK ":gemv", 0.0}, \
        {ROW_SPEED, "linear:m1" NK ":bf16", "linear:m1" NK, 1.8},   \
        {ROW_SPEED, "linear:m1" NK ":i8", "linear:m1" NK, 3.0},

/* clang-format off */
static const row linear_rows[] = {
    MATRIX_ROWS(BERT_BASE_QKV)
    MATRIX_ROWS(BERT_BASE_O)
    MATRIX_ROWS(BERT_LARGE_QKV)
    MATRIX_ROWS(BERT_LARGE_O)
    MATRIX_ROWS(GPT2_LARGE_QKV)
    MATRIX_ROWS(GPT2_LARGE_O)
    MATRIX_ROWS(GPT3_QKV)
    MATRIX_ROWS(GPT3_O)
};
/* clang-format on */

/* ----------------------------------------------------------------- layer ----- */

static const row layer_rows[] = {
    {ROW_SHARE, "layer:bert-base:l128", NULL, 0.80},
    {ROW_SHARE, "layer:bert-base:l512", NULL, 0.80},
    {ROW_SHARE, "layer:gpt2-small:l1024:causal", NULL, 0.80},
    {ROW_SHARE, "layer:gpt2-large:l1024:causal", NULL, 0.80},
    {ROW_SHARE, "layer:gpt3:l512", NULL, 0.80},
    {ROW_SHARE, "layer:bert-base:l512:grad", NULL, 0.75},
    {ROW_SHARE, "decode:gpt2-small:s1024", NULL, 0.75},
    {ROW_SPEED, "cache:gpt2-small:s8192:i8", "cache:gpt2-small:s8192", 2.5},
};

/* ----------------------------------------------------------------- model ----- */

static const row model_rows[] = {
    {ROW_SHARE, "train:b128", NULL, 0.0},
    {ROW_SHARE_RATIO, "train:b128:t=2", "train:b128:t=1", 0.0},
    {ROW_SHARE, "train:b430:text", NULL, 0.70},
    {ROW_SHARE_RATIO, "train:b430:text:t=2", "train:b430:text:t=1", 0.90},
    {ROW_SHARE, "translate:b64", NULL, 0.0},
    {ROW_SPEED, "translate:b64", "translate:b64:nocache", 0.0},
    {ROW_SPEED, "translate:b1", "translate:b1:nocache", 0.0},
};

#define COUNT(ROWS) ((int)(sizeof(ROWS) / sizeof(ROWS)[0]))

const row_section row_sections[] = {
    {"operator", "Attention", operator_rows, COUNT(operator_rows)},
    {"gradients", "The backward pass of attention, and dropout", gradient_rows,
     COUNT(gradient_rows)},
    {"linear", "Projections", linear_rows, COUNT(linear_rows)},
    {"layer", "Layers and caches", layer_rows, COUNT(layer_rows)},
    {"model", "The translator: training and translation", model_rows, COUNT(model_rows)},
};
const int row_section_count = COUNT(row_sections);
