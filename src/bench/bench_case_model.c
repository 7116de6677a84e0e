/* SPDX-License-Identifier: MIT */
/*
 * The translator as a bench case: a training step, always on the same sentences, of the laboratory
 * or of a model for files of pairs; or the translation of sentences of the test set with the
 * shipped model.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench_case.h"
#include "bench/bench_pairs.h"
#include "translator/batch.h"
#include "translator/model_path.h"
#include "translator/training.h"
#include "translator/translator.h"

typedef struct model_body {
    training *training; /* NULL for translation */
    bench_pairs *text;  /* its data, if it is one on files */
    translator *model;
    batch *pairs;
    translation_options options;
    const int **sources; /* [pairs] */
    int *lengths;
    translation *results;
    mha_pool *pool;
} model_body;

static void free_body(void *body)
{
    model_body *p = body;
    training_free(p->training);
    bench_pairs_free(p->text);
    translator_free(p->model);
    batch_free(p->pairs);
    mha_pool_free(p->pool);
    free(p->sources);
    free(p->lengths);
    free(p->results);
    free(p);
}

static mha_status run_training(void *body)
{
    training_result result;
    return training_step(((model_body *)body)->training, &result);
}

static mha_status run_translation(void *body)
{
    model_body *p = body;
    return translator_translate(p->model, p->sources, p->lengths, p->pairs->pairs, &p->options,
                                p->results, p->pool);
}

/* ----------------------------------------------------------------- flops ----- */

/* The flops of one forward pass over the pairs: 2 per weight and word. Attention itself is not
 * counted; on short sentences it is negligible. */
static double forward_flops(const transformer_config *c, const batch *pairs)
{
    const double e = c->width, ff = 2.0 * e * (double)c->ff_width;
    const double source = (double)pairs->rows[TRANSFORMER_SOURCE];
    const double target = (double)pairs->rows[TRANSFORMER_TARGET];
    const double encoder = (4.0 * e * e + ff) * (double)c->layers[TRANSFORMER_SOURCE];
    const double decoder = (6.0 * e * e + ff) * (double)c->layers[TRANSFORMER_TARGET];
    const double memory = 2.0 * e * e * (double)c->layers[TRANSFORMER_TARGET];
    const double words = e * (double)c->words[TRANSFORMER_TARGET];
    return 2.0 * (source * (encoder + memory) + target * (decoder + words));
}

/* The first w->b pairs of a split; batch_free(). */
static batch *corpus_pairs(const layer_word *w, corpus_split split)
{
    word_numbers numbers;
    uint64_t *indices = calloc((size_t)w->b, sizeof *indices);
    if (indices == NULL)
        return NULL;
    for (ptrdiff_t n = 0; n < w->b; n++)
        indices[n] = (uint64_t)n;
    word_numbers_fill(&numbers);
    batch *pairs = batch_create(&numbers, 1, split, indices, (int)w->b, 0.0);
    free(indices);
    return pairs;
}

/* -------------------------------------------------------------- creation ----- */

/* The settings of a training, laboratory or files. */
static training_config config_of(const layer_word *w)
{
    training_config config = w->text ? training_text_defaults() : training_defaults();
    if (!w->text) {
        config.batch = (int)w->b;
        config.sentences = w->b;
    }
    config.arithmetic = layer_word_arithmetic(w);
    return config;
}

/* The pairs of a case; those of a training on files are also its data. False if out of memory. */
static bool make_pairs(model_body *p, const layer_word *w)
{
    if (w->text) {
        p->text = bench_pairs_create((int)w->b, config_of(w).model.words[TRANSFORMER_TARGET]);
        p->pairs = p->text != NULL ? bench_pairs_batch(p->text) : NULL;
    } else {
        p->pairs = corpus_pairs(w, w->kind == WORD_TRAIN ? CORPUS_TRAIN : CORPUS_TEST);
    }
    return p->pairs != NULL;
}

static bool make_training(bench_case *bench, model_body *p, const layer_word *w, char *message,
                          size_t size)
{
    char why[TRANSFORMER_MESSAGE_MAX] = "";
    const training_config config = config_of(w);
    training_data *const data = p->text != NULL ? bench_pairs_data(p->text) : NULL;
    p->training = training_create(&config, data, p->pool, why);
    if (p->training == NULL) {
        snprintf(message, size, "%s: %s", bench->word, why);
        return false;
    }
    bench->flops = 3.0 * forward_flops(&config.model, p->pairs);
    bench->peak = config.arithmetic == MHA_NATIVE ? PEAK_BF16 : PEAK_F32;
    bench->run = run_training;
    return true;
}

static bool list_sources(model_body *p)
{
    const batch *b = p->pairs;
    const size_t count = (size_t)b->pairs;
    p->sources = calloc(count, sizeof *p->sources);
    p->lengths = calloc(count, sizeof *p->lengths);
    p->results = calloc(count, sizeof *p->results);
    if (p->sources == NULL || p->lengths == NULL || p->results == NULL)
        return false;
    const int64_t *starts = b->starts[TRANSFORMER_SOURCE];
    for (int n = 0; n < b->pairs; n++) {
        p->sources[n] = b->words[TRANSFORMER_SOURCE] + starts[n];
        p->lengths[n] = (int)(starts[n + 1] - starts[n]) - 1; /* without WORD_END */
    }
    return true;
}

static bool make_translation(bench_case *bench, model_body *p, const layer_word *w, char *message,
                             size_t size)
{
    char why[TRANSFORMER_MESSAGE_MAX] = "", path[MODEL_PATH_MAX];
    if (!model_path_find(NULL, SHIPPED_LABORATORY, path)) {
        snprintf(message, size, "%s: there is no model to translate with", bench->word);
        return false;
    }
    p->model = translator_load(path, why);
    if (p->model == NULL) {
        snprintf(message, size, "%s: %s", bench->word, why);
        return false;
    }
    p->options = (translation_options){.beam = 1, .no_cache = w->no_cache};
    bench->flops = forward_flops(translator_config(p->model), p->pairs);
    bench->run = run_translation;
    return list_sources(p);
}

bool bench_case_model(bench_case *bench, const layer_word *w, char *message, size_t size)
{
    model_body *p = calloc(1, sizeof *p);
    if (p == NULL)
        return false;
    bench->body = p;
    bench->free = free_body;
    if (!make_pairs(p, w) ||
        (bench->threads > 1 && mha_pool_create(&p->pool, bench->threads) != MHA_OK))
        return false;
    if (!(w->kind == WORD_TRAIN ? make_training(bench, p, w, message, size)
                                : make_translation(bench, p, w, message, size)))
        return false;
    const mha_status status = bench->run(p);
    if (status != MHA_OK)
        snprintf(message, size, "%s: %s", bench->word, mha_status_string(status));
    return status == MHA_OK;
}
