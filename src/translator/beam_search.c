/* SPDX-License-Identifier: MIT */
/*
 * Greedy and beam search.
 *
 * Every sentence has room for `beam` hypotheses, live or done. A step extends each live hypothesis
 * by all possible next words and keeps the best of these continuations, as many as there is room
 * for. Those that end in WORD_END are done and keep their place, so that the room for live ones
 * shrinks; a sentence without live hypotheses leaves the batch. With a beam of 1 this is greedy
 * search.
 *
 * Ties are broken by the number of the hypothesis, then by the number of the word. Only hypotheses
 * of the same sentence are compared, so that a sentence does not depend on the others.
 */
#include "translator/translator_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Hypotheses that are computed together: enough to use the machine, few enough for its caches. */
enum { ROWS_TOGETHER = 128 };

typedef struct hypothesis {
    int words[CORPUS_TOKENS_MAX]; /* without WORD_BEGIN */
    int from[CORPUS_TOKENS_MAX];  /* the sequence that was extended by each word */
    int count;
    double score;
} hypothesis;

typedef struct continuation {
    int parent, word; /* parent: number among the live ones of the sentence */
    double score;
} continuation;

typedef struct search {
    const translator *model;
    const translation_options *options;
    decoding decoding;
    int sentences, beam, limit;     /* limit: words of a translation, WORD_END included */
    hypothesis *live, *next, *done; /* [sentences][beam] */
    int *live_count, *done_count;   /* [sentences] */
    int64_t *sequences, *parents;   /* [sentences * beam] */
    int *words;                     /* [rows][length], input of the step */
    float *logits;                  /* [rows][target words] */
    continuation *best;             /* [rows][beam], the best of each row */
    continuation *merged;           /* [beam * beam] */
    float *weights;                 /* [layers][rows][heads][longest] of a step, or NULL */
    float *history;                 /* [limit][sentences * beam][layers][heads][longest], or NULL */
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
    const size_t sentences = (size_t)s->sentences, beam = (size_t)s->beam, rows = sentences * beam;
    s->live = malloc(rows * sizeof *s->live);
    s->next = malloc(rows * sizeof *s->next);
    s->done = malloc(rows * sizeof *s->done);
    s->live_count = calloc(sentences, sizeof *s->live_count);
    s->done_count = calloc(sentences, sizeof *s->done_count);
    s->sequences = malloc(rows * sizeof *s->sequences);
    s->parents = malloc(rows * sizeof *s->parents);
    s->words = malloc(rows * (size_t)s->limit * sizeof *s->words);
    s->logits =
        malloc(rows * (size_t)s->model->config.words[TRANSFORMER_TARGET] * sizeof *s->logits);
    s->best = malloc(rows * beam * sizeof *s->best);
    s->merged = malloc(beam * beam * sizeof *s->merged);
    if (s->options->weights) {
        s->weights = malloc(rows * weights_of_row(s) * sizeof *s->weights);
        s->history = malloc((size_t)s->limit * rows * weights_of_row(s) * sizeof *s->history);
    }
    return s->live && s->next && s->done && s->live_count && s->done_count && s->sequences &&
           s->parents && s->words && s->logits && s->best && s->merged &&
           (!s->options->weights || (s->weights && s->history));
}

static void free_search(search *s)
{
    decoding_end(&s->decoding);
    void *const blocks[] = {s->live,      s->next,    s->done,   s->live_count, s->done_count,
                            s->sequences, s->parents, s->words,  s->logits,     s->best,
                            s->merged,    s->weights, s->history};
    for (size_t n = 0; n < sizeof blocks / sizeof blocks[0]; n++)
        free(blocks[n]);
}

/* ------------------------------------------------------- best of a row ----- */

static bool is_better(const continuation *a, const continuation *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    return a->parent != b->parent ? a->parent < b->parent : a->word < b->word;
}

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

/* Finds the best continuations of a row; if there are fewer than `beam`, the rest have word -1. A
 * score of NaN becomes -INFINITY, so that a broken model does no further harm. */
static void rank_row(void *arg, int worker, ptrdiff_t row)
{
    (void)worker;
    search *const s = arg;
    const int words = s->model->config.words[TRANSFORMER_TARGET];
    const float *const logits = s->logits + row * words;
    const int64_t sequence = s->sequences[row];
    const double total = log_sum(logits, words), before = s->live[sequence].score;
    int largest[TRANSLATION_BEAM_MAX] = {0};
    const int count = find_largest(logits, words, s->beam, largest);
    for (int n = 0; n < s->beam; n++) {
        const double score = n < count ? before + ((double)logits[largest[n]] - total) : 0.0;
        s->best[row * s->beam + n] =
            (continuation){(int)(sequence % s->beam), n < count ? largest[n] : -1,
                           isnan(score) ? -INFINITY : score};
    }
}

/* ---------------------------------------------------------------- step ----- */

/* Lists the live hypotheses as rows, with their words so far. */
static void list_rows(search *s, int length)
{
    s->rows = 0;
    for (int sentence = 0; sentence < s->sentences; sentence++)
        for (int n = 0; n < s->live_count[sentence]; n++, s->rows++) {
            const int sequence = sentence * s->beam + n;
            int *const words = s->words + s->rows * length;
            s->sequences[s->rows] = sequence;
            words[0] = WORD_BEGIN;
            memcpy(words + 1, s->live[sequence].words, (size_t)(length - 1) * sizeof *words);
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

static int compare_continuations(const void *a, const void *b)
{
    return is_better(a, b) ? -1 : is_better(b, a) ? 1 : 0;
}

static hypothesis continued(const search *s, int sentence, const continuation *c)
{
    const int sequence = sentence * s->beam + c->parent;
    hypothesis h = s->live[sequence];
    h.words[h.count] = c->word;
    h.from[h.count++] = sequence;
    h.score = c->score;
    return h;
}

/* Chooses the hypotheses with which a sentence continues; its rows begin at `row`. */
static void advance_sentence(search *s, int sentence, int row)
{
    const int live = s->live_count[sentence], first = sentence * s->beam;
    const int room = s->beam - s->done_count[sentence];
    int count = 0, kept = 0;
    for (int n = 0; n < live * s->beam; n++)
        if (s->best[row * s->beam + n].word >= 0)
            s->merged[count++] = s->best[row * s->beam + n];
    qsort(s->merged, (size_t)count, sizeof *s->merged, compare_continuations);
    for (int n = 0; n < count && n < room; n++) {
        const continuation *const c = &s->merged[n];
        if (c->word == WORD_END) {
            s->done[first + s->done_count[sentence]++] = continued(s, sentence, c);
        } else {
            s->parents[first + kept] = first + c->parent;
            s->next[first + kept++] = continued(s, sentence, c);
        }
    }
    s->live_count[sentence] = kept;
}

/* Advances all sentences, and reorders the caches if a sequence continues from another one. */
static mha_status advance(search *s)
{
    bool moved = false;
    for (int n = 0; n < s->sentences * s->beam; n++)
        s->parents[n] = n;
    for (int sentence = 0, row = 0; sentence < s->sentences; sentence++) {
        const int live = s->live_count[sentence];
        if (live > 0)
            advance_sentence(s, sentence, row);
        row += live;
    }
    for (int n = 0; n < s->sentences * s->beam; n++)
        moved |= s->parents[n] != n;
    hypothesis *const old = s->live;
    s->live = s->next;
    s->next = old;
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
    for (int n = 0; n < s->sentences; n++) {
        s->live[n * s->beam] = (hypothesis){.score = 0.0};
        s->live_count[n] = 1;
    }
    for (int step = 0; step < s->limit; step++) {
        list_rows(s, step + 1);
        if (s->rows == 0)
            break;
        const mha_status status = run_step(s, step);
        if (status)
            return status;
    }
    return MHA_OK;
}

/* ------------------------------------------------------------- results ----- */

static double rank_of(const hypothesis *h, double penalty)
{
    return h->score / pow((double)h->count, penalty);
}

/* The best result that is not yet taken: complete ones before incomplete ones, of equal ones the
 * first. Results are numbered done first, then live. Returns -1 if there is none. */
static int find_best(const search *s, int sentence, bool *taken)
{
    const int done = s->done_count[sentence], first = sentence * s->beam;
    int best = -1;
    for (int n = 0; n < done; n++)
        if (!taken[n] &&
            (best < 0 || rank_of(&s->done[first + n], s->options->length_penalty) >
                             rank_of(&s->done[first + best], s->options->length_penalty)))
            best = n;
    for (int n = done; best < 0 && n < done + s->live_count[sentence]; n++)
        best = taken[n] ? -1 : n;
    if (best >= 0)
        taken[best] = true;
    return best;
}

/* The weights of one hypothesis, [layers][heads][target][source]. The row of a word was stored
 * under the sequence that it extended. Returns NULL if out of memory. */
static float *collect_weights(const search *s, const hypothesis *h, int source)
{
    const transformer_config *const config = &s->model->config;
    const size_t maps = (size_t)config->layers[TRANSFORMER_TARGET] * (size_t)config->heads;
    const size_t row = weights_of_row(s), sequences = (size_t)s->sentences * (size_t)s->beam;
    const size_t L = (size_t)h->count, S = (size_t)source, longest = (size_t)s->decoding.longest;
    float *const weights = malloc(maps * L * S * sizeof *weights);
    if (!weights)
        return NULL;
    for (size_t map = 0; map < maps; map++)
        for (size_t i = 0; i < L; i++)
            memcpy(weights + (map * L + i) * S,
                   s->history + (i * sequences + (size_t)h->from[i]) * row + map * longest,
                   S * sizeof *weights);
    return weights;
}

static mha_status fill_results(const search *s, int sentence, const int *source, int length,
                               int nbest, translation *results)
{
    bool taken[2 * TRANSLATION_BEAM_MAX] = {false};
    const int done = s->done_count[sentence], first = sentence * s->beam;
    for (int n = 0; n < nbest; n++) {
        translation *const t = &results[n];
        for (int i = 0; i <= length; i++)
            t->source[i] = i < length ? source[i] : WORD_END;
        t->source_count = length + 1;
        const int best = find_best(s, sentence, taken);
        if (best < 0)
            continue;
        const hypothesis *const h =
            best < done ? &s->done[first + best] : &s->live[first + best - done];
        memcpy(t->target, h->words, (size_t)h->count * sizeof *h->words);
        t->target_count = h->count;
        t->score = h->score;
        if (s->options->weights && n == 0 && !(t->weights = collect_weights(s, h, length + 1)))
            return MHA_ERR_MEMORY;
    }
    return MHA_OK;
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
