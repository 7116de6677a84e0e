/* SPDX-License-Identifier: MIT */
/*
 * Greedy and beam search over many sentences together; base/beam.h defines the search over one. A
 * step computes the next words of all running hypotheses, and a sentence whose search is over
 * leaves the batch. Only hypotheses of the same sentence are compared, so that a sentence does not
 * depend on the others.
 */
#include "translator/translator_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/beam.h"

_Static_assert((int)TRANSLATION_BEAM_MAX == (int)BEAM_WIDTH_MAX, "one limit of the width");

/* Hypotheses that are computed together: enough to use the machine, few enough for its caches. */
enum { ROWS_TOGETHER = 128 };

typedef struct search {
    const translator *model;
    const translation_options *options;
    decoding decoding;
    int sentences, beam, limit;   /* limit: words of a translation, WORD_END included */
    beam_search *beams;           /* [sentences] */
    int64_t *sequences, *parents; /* [sentences * beam] */
    int *words;                   /* [rows][length], input of the step */
    float *logits;                /* [rows][target words] */
    beam_choice *choices;         /* [rows][beam + 1], the best of each row */
    float *weights;               /* [layers][rows][heads][longest] of a step, or NULL */
    float *history;               /* [limit][sentences * beam][layers][heads][longest], or NULL */
    int rows;
} search;

/* -------------------------------------------------------------- memory ----- */

static size_t weights_of_row(const search *s)
{
    const transformer_config *const config = &s->model->config;
    return (size_t)config->layers[TRANSFORMER_TARGET] * (size_t)config->heads *
           (size_t)s->decoding.longest;
}

static bool make_search(search *s)
{
    const size_t sentences = (size_t)s->sentences, width = (size_t)s->beam;
    const size_t rows = sentences * width;
    s->beams = calloc(sentences, sizeof *s->beams);
    s->sequences = malloc(rows * sizeof *s->sequences);
    s->parents = malloc(rows * sizeof *s->parents);
    s->words = malloc(rows * (size_t)s->limit * sizeof *s->words);
    s->logits =
        malloc(rows * (size_t)s->model->config.words[TRANSFORMER_TARGET] * sizeof *s->logits);
    s->choices = malloc(rows * (width + 1) * sizeof *s->choices);
    if (s->options->weights) {
        s->weights = malloc(rows * weights_of_row(s) * sizeof *s->weights);
        s->history = malloc((size_t)s->limit * rows * weights_of_row(s) * sizeof *s->history);
    }
    bool fine = s->beams && s->sequences && s->parents && s->words && s->logits && s->choices &&
                (!s->options->weights || (s->weights && s->history));
    for (size_t n = 0; fine && n < sentences; n++)
        fine = beam_begin(&s->beams[n], s->beam, s->limit, s->options->length_penalty);
    return fine;
}

static void free_search(search *s)
{
    decoding_end(&s->decoding);
    for (int n = 0; s->beams && n < s->sentences; n++)
        beam_free(&s->beams[n]);
    void *const blocks[] = {s->beams,  s->sequences, s->parents, s->words,
                            s->logits, s->choices,   s->weights, s->history};
    for (size_t n = 0; n < sizeof blocks / sizeof blocks[0]; n++)
        free(blocks[n]);
}

/* ------------------------------------------------------- best of a row ----- */

/* ln(sum of exp) of the logits. */
static double log_sum(const float *logits, int count)
{
    float most = logits[0];
    for (int n = 1; n < count; n++)
        most = logits[n] > most ? logits[n] : most;
    double sum = (double)expf(logits[0] - most);
    for (int n = 1; n < count; n++)
        sum += (double)expf(logits[n] - most);
    return (double)most + log(sum);
}

/* Finds the words with the largest logits, in descending order, of equal ones the first. Returns
 * their number, at most `room`. WORD_BEGIN is never chosen. If logits are NaN, any words will do.
 */
static int find_largest(const float *logits, int words, int room, int *largest)
{
    int count = 0;
    for (int word = WORD_BEGIN + 1; word < words; word++) {
        if (count == room && !(logits[word] > logits[largest[count - 1]]))
            continue;
        int at = count < room ? count++ : count - 1;
        for (; at > 0 && logits[word] > logits[largest[at - 1]]; at--)
            largest[at] = largest[at - 1];
        largest[at] = word;
    }
    return count;
}

/* Finds the best continuations of a row; if there are fewer than beam + 1, the rest have word -1. A
 * score of NaN becomes -INFINITY, so that a broken model does no further harm. */
static void rank_row(void *arg, int worker, ptrdiff_t row)
{
    (void)worker;
    search *const s = arg;
    const int words = s->model->config.words[TRANSFORMER_TARGET], room = s->beam + 1;
    const float *const logits = s->logits + row * words;
    const int sentence = (int)s->sequences[row] / s->beam,
              number = (int)s->sequences[row] % s->beam;
    const double total = log_sum(logits, words), before = beam_score(&s->beams[sentence], number);
    int largest[TRANSLATION_BEAM_MAX + 1] = {0};
    const int count = find_largest(logits, words, room, largest);
    for (int n = 0; n < room; n++) {
        const int word = n < count ? largest[n] : -1;
        const double score = n < count ? before + ((double)logits[word] - total) : 0.0;
        s->choices[row * room + n] = (beam_choice){.score = isnan(score) ? -INFINITY : score,
                                                   .parent = number,
                                                   .token = word,
                                                   .ends = word == WORD_END};
    }
}

/* ---------------------------------------------------------------- step ----- */

/* The words of a running hypothesis, after WORD_BEGIN. */
static void read_words(const beam_search *b, int number, int *words)
{
    const beam_hypothesis *const h = &b->running[number];
    int at = h->length;
    for (int node = h->node; node >= 0; node = b->nodes[node].before)
        words[at--] = b->nodes[node].token;
    words[0] = WORD_BEGIN;
}

/* Lists the running hypotheses as rows, with their words so far. */
static void list_rows(search *s, int length)
{
    s->rows = 0;
    for (int sentence = 0; sentence < s->sentences; sentence++) {
        const beam_search *const b = &s->beams[sentence];
        for (int n = 0; !b->over && n < b->running_count; n++, s->rows++) {
            s->sequences[s->rows] = sentence * s->beam + n;
            read_words(b, n, s->words + s->rows * length);
        }
    }
}

/* Stores the weights of a step by sequence, [layers][heads][longest] each. */
static void keep_weights(search *s, int step)
{
    const size_t layers = (size_t)s->model->config.layers[TRANSFORMER_TARGET];
    const size_t row = weights_of_row(s), map = row / layers;
    float *const kept = s->history + (size_t)step * (size_t)(s->sentences * s->beam) * row;
    for (size_t n = 0; n < layers; n++)
        for (int b = 0; b < s->rows; b++)
            memcpy(kept + (size_t)s->sequences[b] * row + n * map,
                   s->weights + (n * (size_t)s->rows + (size_t)b) * map, map * sizeof *kept);
}

/* Chooses the hypotheses with which a sentence continues; its rows begin at `row`. */
static bool advance_sentence(search *s, int sentence, int row)
{
    beam_search *const b = &s->beams[sentence];
    beam_choice *const choices = s->choices + row * (s->beam + 1);
    int parents[TRANSLATION_BEAM_MAX], count = 0;
    for (int n = 0; n < b->running_count * (s->beam + 1); n++)
        if (choices[n].token >= 0)
            choices[count++] = choices[n];
    if (!beam_step(b, choices, (size_t)count, parents))
        return false;
    for (int n = 0; n < b->running_count; n++)
        s->parents[sentence * s->beam + n] = sentence * s->beam + parents[n];
    return true;
}

/* Advances all sentences, and reorders the caches if a sequence continues from another one. */
static mha_status advance(search *s)
{
    bool moved = false;
    for (int n = 0; n < s->sentences * s->beam; n++)
        s->parents[n] = n;
    for (int sentence = 0, row = 0; sentence < s->sentences; sentence++) {
        if (s->beams[sentence].over)
            continue;
        const int rows = s->beams[sentence].running_count;
        if (!advance_sentence(s, sentence, row))
            return MHA_ERR_MEMORY;
        row += rows;
    }
    for (int n = 0; n < s->sentences * s->beam; n++)
        moved |= s->parents[n] != n;
    return moved ? decoding_reorder(&s->decoding, s->parents) : MHA_OK;
}

static mha_status run_step(search *s, int step)
{
    const decoding_step call = {.rows = s->rows,
                                .sequences = s->sequences,
                                .length = step + 1,
                                .words = s->words,
                                .logits = s->logits,
                                .weights = s->weights};
    const mha_status status = decoding_run(&s->decoding, &call);
    if (status)
        return status;
    mha_pool_run(s->decoding.pool, s->rows, rank_row, s);
    if (s->weights)
        keep_weights(s, step);
    return advance(s);
}

static mha_status run_search(search *s)
{
    mha_status status = MHA_OK;
    for (int step = 0; step < s->limit && !status; step++) {
        list_rows(s, step + 1);
        if (s->rows == 0)
            break;
        status = run_step(s, step);
    }
    return status;
}

/* ------------------------------------------------------------- results ----- */

/* The weights of one translation, [layers][heads][target][source]. The row of a word was stored
 * under the sequence that it extended. Returns NULL if out of memory. */
static float *collect_weights(const search *s, int sentence, const beam_node *const *path,
                              int count, int source)
{
    const transformer_config *const config = &s->model->config;
    const size_t maps = (size_t)config->layers[TRANSFORMER_TARGET] * (size_t)config->heads;
    const size_t row = weights_of_row(s), sequences = (size_t)s->sentences * (size_t)s->beam;
    const size_t L = (size_t)count, S = (size_t)source, longest = (size_t)s->decoding.longest;
    const size_t first = (size_t)sentence * (size_t)s->beam;
    float *const weights = malloc(maps * L * S * sizeof *weights);
    if (!weights)
        return NULL;
    for (size_t map = 0; map < maps; map++)
        for (size_t i = 0; i < L; i++)
            memcpy(weights + (map * L + i) * S,
                   s->history + (i * sequences + first + (size_t)path[i]->parent) * row +
                       map * longest,
                   S * sizeof *weights);
    return weights;
}

static mha_status fill_result(const search *s, int sentence, int number, translation *t)
{
    const beam_search *const b = &s->beams[sentence];
    const beam_node *path[CORPUS_TOKENS_MAX];
    t->target_count = beam_path(b, &b->finished[number], path);
    for (int n = 0; n < t->target_count; n++)
        t->target[n] = path[n]->token;
    t->score = path[t->target_count - 1]->score;
    if (s->options->weights && number == 0)
        t->weights = collect_weights(s, sentence, path, t->target_count, t->source_count);
    return !s->options->weights || number > 0 || t->weights ? MHA_OK : MHA_ERR_MEMORY;
}

static mha_status fill_results(const search *s, int sentence, const int *source, int length,
                               int nbest, translation *results)
{
    mha_status status = MHA_OK;
    for (int n = 0; n < nbest && !status; n++) {
        translation *const t = &results[n];
        for (int i = 0; i <= length; i++)
            t->source[i] = i < length ? source[i] : WORD_END;
        t->source_count = length + 1;
        if (n < s->beams[sentence].finished_count)
            status = fill_result(s, sentence, n, t);
    }
    return status;
}

/* --------------------------------------------------------------- calls ----- */

static mha_status translate_some(const translator *model, const int *const *sources,
                                 const int *lengths, int count, const translation_options *options,
                                 int nbest, translation *results, mha_pool *pool)
{
    search s = {.model = model,
                .options = options,
                .decoding = {.model = model,
                             .pool = pool,
                             .sentences = count,
                             .beam = options->beam,
                             .cached = !options->no_cache},
                .sentences = count,
                .beam = options->beam,
                .limit = translator_longest(model)};
    mha_status status = decoding_begin(&s.decoding, sources, lengths);
    if (!status && !make_search(&s))
        status = MHA_ERR_MEMORY;
    if (!status)
        status = run_search(&s);
    for (int n = 0; !status && n < count; n++)
        status = fill_results(&s, n, sources[n], lengths[n], nbest, results + n * nbest);
    free_search(&s);
    return status;
}

static mha_status check_source(const translator *model, const int *source, int length)
{
    if (length < 0 || length >= translator_longest(model))
        return MHA_ERR_LENGTH;
    if (!source && length > 0)
        return MHA_ERR_NULL;
    for (int n = 0; n < length; n++)
        if (source[n] < 0 || source[n] >= model->config.words[TRANSFORMER_SOURCE])
            return MHA_ERR_INDEX;
    return MHA_OK;
}

static mha_status check_call(const translator *model, const int *const *sources, const int *lengths,
                             int count, const translation_options *options)
{
    if (count < 0)
        return MHA_ERR_LENGTH;
    if (options->beam < 1 || options->beam > TRANSLATION_BEAM_MAX || options->nbest < 0 ||
        options->nbest > options->beam || !isfinite(options->length_penalty))
        return MHA_ERR_FLAG;
    for (int n = 0; n < count; n++) {
        const mha_status status = check_source(model, sources[n], lengths[n]);
        if (status)
            return status;
    }
    return MHA_OK;
}

mha_status translator_translate(const translator *model, const int *const *sources,
                                const int *lengths, int count, const translation_options *options,
                                translation *results, mha_pool *pool)
{
    mha_status status = check_call(model, sources, lengths, count, options);
    if (status)
        return status;
    const int nbest = options->nbest > 0 ? options->nbest : 1;
    const int together = ROWS_TOGETHER / options->beam;
    for (int n = 0; n < count * nbest; n++)
        results[n] = (translation){0};
    for (int n = 0; !status && n < count; n += together)
        status = translate_some(model, sources + n, lengths + n,
                                count - n < together ? count - n : together, options, nbest,
                                results + n * nbest, pool);
    for (int n = 0; status && n < count * nbest; n++) {
        free(results[n].weights);
        results[n].weights = NULL;
    }
    return status;
}
