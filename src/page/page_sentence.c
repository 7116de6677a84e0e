/* SPDX-License-Identifier: MIT */
/*
 * Makes a sentence of the page. The model is run once with everything captured, then twice per head
 * (disabled, uniform) without: only the likelihood and the predicted words of those runs are kept.
 */
#include "page/page_sentence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads/head_pairs.h"

/* A sentence while it is made. */
typedef struct making {
    page_sentence_memory *memory;
    page_sentence *sentence;
    const translator *model;
    const pair_request *request;
    mha_pool *pool;
    uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads] copy of the request's, to vary */
    char *message;
} making;

static bool out_of_memory(const making *m)
{
    snprintf(m->message, PAIR_MESSAGE_MAX, "out of memory");
    return false;
}

/* Heads in all layers of a kind. */
static int kind_heads(const making *m, int kind)
{
    const transformer_config *const config = translator_config(m->model);
    return attention_kind_layers(config, (attention_kind)kind) * config->heads;
}

/* --------------------------------------------------------------- heads ----- */

/* The sentence with the present changes, for capture_free(); NULL, with a message: out of memory.
 */
static capture *capture_with(const making *m, capture_options options)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        options.changes[kind] = m->changes[kind];
    capture *const heads = sentence_pair_capture(&m->memory->pair, m->model, &options, m->pool);
    if (heads == NULL)
        out_of_memory(m);
    return heads;
}

static double sum_log_likelihood(const capture *heads)
{
    double sum = 0.0;
    for (int i = 0; i < heads->target_count; i++)
        sum += heads->log_likelihood[i];
    return sum;
}

/* The sentence with one more head in a mode; its own mode is restored afterwards. */
static capture *capture_changed(const making *m, int kind, int map, head_mode mode)
{
    uint8_t *const place = &m->changes[kind][map];
    const uint8_t before = *place;
    *place = (uint8_t)mode;
    capture *const heads = capture_with(m, (capture_options){.weights = false});
    *place = before;
    return heads;
}

/* Measures head `map` of a kind, counted layer by layer. */
static bool measure_head(const making *m, int kind, int map)
{
    const capture *const plain = m->memory->heads;
    const page_head_effects *const effects = &m->sentence->effects[kind];
    const double likely = sum_log_likelihood(plain);
    capture *const zero = capture_changed(m, kind, map, HEAD_ZERO);
    capture *const uniform = zero != NULL ? capture_changed(m, kind, map, HEAD_UNIFORM) : NULL;
    if (uniform != NULL) {
        effects->losses[map] = (float)(likely - sum_log_likelihood(zero));
        effects->uniform_losses[map] = (float)(likely - sum_log_likelihood(uniform));
        memcpy(effects->predicted + (ptrdiff_t)map * plain->target_count, zero->predicted,
               (size_t)plain->target_count * sizeof zero->predicted[0]);
    }
    capture_free(zero);
    capture_free(uniform);
    return uniform != NULL;
}

/* Divides the arrays of all heads between the kinds. */
static void place_effects(const making *m)
{
    const transformer_config *const config = translator_config(m->model);
    float *const losses = m->memory->losses, *const uniform = losses + head_count(config);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const int first = head_number(config, (head_name){(attention_kind)kind, 0, 0});
        m->sentence->effects[kind] =
            (page_head_effects){losses + first, uniform + first,
                                m->memory->predicted + (ptrdiff_t)first * CORPUS_TOKENS_MAX};
    }
}

static bool fill_heads(const making *m)
{
    page_sentence_memory *const memory = m->memory;
    m->sentence->heads = memory->heads =
        capture_with(m, (capture_options){.weights = true, .vectors = true});
    bool fine = memory->heads != NULL;
    place_effects(m);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int map = 0; fine && map < kind_heads(m, kind); map++)
            fine = measure_head(m, kind, map);
    return fine;
}

/* ---------------------------------------------------------------- gold ----- */

static bool same_tokens(const corpus_sentence *a, const corpus_sentence *b)
{
    for (int n = 0; n < a->count && n < b->count; n++)
        if (strcmp(a->tokens[n], b->tokens[n]) != 0)
            return false;
    return a->count == b->count;
}

/* Looks the sentence up in the grammar: alignment and roles are only known if its translation is
 * the one that the decoder reads. */
static void find_gold(page_sentence *s)
{
    s->gold = corpus_translate(s->text, &s->pair, NULL, s->reason);
    if (!s->gold)
        return;
    s->gold = same_tokens(&s->source, &s->pair.side[CORPUS_ENGLISH]) &&
              same_tokens(&s->target, &s->pair.side[CORPUS_FRENCH]);
    if (!s->gold) {
        char french[CORPUS_TEXT_MAX];
        corpus_detokenise(CORPUS_FRENCH, &s->pair.side[CORPUS_FRENCH], french);
        snprintf(s->reason, sizeof s->reason, "the grammar translates it otherwise: %.200s",
                 french);
    }
}

/* As "mha heads TEXT" finds them. */
static void find_baselines(page_sentence *s)
{
    const head_pair pair = {.known = s->gold, .gold = s->pair};
    head_baselines_find(&s->baselines, &pair, 1);
}

/* --------------------------------------------------------------- whole ----- */

/* Copies the changes of the request; kinds without any get an array of HEAD_NORMAL. */
static bool copy_changes(making *m)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const size_t count = (size_t)kind_heads(m, kind);
        if ((m->changes[kind] = calloc(count + 1, 1)) == NULL)
            return out_of_memory(m);
        if (m->request->changes[kind] != NULL)
            memcpy(m->changes[kind], m->request->changes[kind], count);
    }
    return true;
}

bool page_sentence_make(page_sentence_memory *memory, page_sentence *sentence,
                        const translator *model, const pair_request *request, mha_pool *pool,
                        char message[PAIR_MESSAGE_MAX])
{
    making m = {memory, sentence, model, request, pool, {NULL}, message};
    const size_t heads = (size_t)head_count(translator_config(model));
    *memory = (page_sentence_memory){.heads = NULL};
    *sentence = (page_sentence){.text = NULL};
    memory->losses = calloc(2 * heads, sizeof *memory->losses);
    memory->predicted = calloc(heads * CORPUS_TOKENS_MAX, sizeof *memory->predicted);
    bool fine = ((memory->losses != NULL && memory->predicted != NULL) || out_of_memory(&m)) &&
                copy_changes(&m) &&
                sentence_pair_read(&memory->pair, model, request, pool, message);
    if (fine) {
        sentence->text = memory->pair.source.text;
        sentence->source = memory->pair.source.tokens;
        sentence->target = memory->pair.target;
        find_gold(sentence);
        find_baselines(sentence);
        fine = fill_heads(&m);
    }
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        free(m.changes[kind]);
    return fine;
}

void page_sentence_free(page_sentence_memory *memory)
{
    capture_free(memory->heads);
    sentence_pair_free(&memory->pair);
    free(memory->losses);
    free(memory->predicted);
}
