/* SPDX-License-Identifier: MIT */
/* Hides source words one at a time (word_ablation.h). */
#include "heads/word_ablation.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------- one text ----- */

/* Tokens of a source word. */
typedef struct token_range {
    int first, end;
} token_range;

static token_range tokens_of(const word_pieces *p, int word)
{
    token_range range = {0, 0};
    while (range.first < p->tokens && p->word_of[range.first] != word)
        range.first++;
    range.end = range.first;
    while (range.end < p->tokens && p->word_of[range.end] == word)
        range.end++;
    return range;
}

/* The first source word that is not a mark, from `word` on; -1: there is none. */
static int next_word(const word_losses *l, const subject_side *source, int word)
{
    const word_pieces *const p = &l->source_pieces;
    while (word < p->words && source->marks[tokens_of(p, word).first])
        word++;
    return word < p->words ? word : -1;
}

/* to[targets] += factor * log-likelihoods of target words. */
static void add_likelihoods(const word_losses *l, const capture *c, double factor, double *to,
                            ptrdiff_t stride)
{
    for (int row = 0; row < c->scored; row++)
        to[l->said_pieces.word_of[row] * stride] += factor * c->log_likelihood[row];
}

/* Words of both sides; the last row counts if it is known what it should say. */
static bool list_words(word_losses *l, const subject_text *text, const capture *c)
{
    if (!whole_words_make(&l->whole, text) ||
        !word_pieces_make(&l->source_pieces, c->source_continues, c->source_count) ||
        !word_pieces_make(&l->said_pieces, c->says_more, c->target_count))
        return false;
    l->source_words = calloc((size_t)l->source_pieces.words + 1, sizeof *l->source_words);
    l->target_words = calloc((size_t)l->said_pieces.words + 1, sizeof *l->target_words);
    if (!l->source_words || !l->target_words)
        return false;
    for (int w = 0; (w = next_word(l, &text->source, w)) >= 0; w++)
        l->source_words[l->sources++] = l->whole.text.source.words[w];
    l->targets = c->scored > 0 ? l->said_pieces.word_of[c->scored - 1] + 1 : 0;
    for (int w = 0; w < l->targets; w++)
        l->target_words[w] = l->whole.text.expected[w];
    l->plain = calloc((size_t)l->targets + 1, sizeof *l->plain);
    l->lost = calloc((size_t)l->targets * (size_t)l->sources + 1, sizeof *l->lost);
    return l->plain && l->lost;
}

/* Column `n` of the losses. */
static bool hide(word_losses *l, const subject *model, const subject_text *text, mha_pool *pool,
                 bool *hidden, int n)
{
    const capture_options options = {.hidden = hidden};
    capture *const c = subject_run(model, text, &options, pool);
    if (!c)
        return false;
    for (int t = 0; t < l->targets; t++)
        l->lost[(ptrdiff_t)t * l->sources + n] = l->plain[t];
    add_likelihoods(l, c, -1.0, l->lost + n, l->sources);
    capture_free(c);
    return true;
}

static bool measure(word_losses *l, const subject *model, const subject_text *text,
                    const capture *plain, mha_pool *pool, void (*watch)(int done, int count))
{
    bool *const hidden = calloc((size_t)text->source.count + 1, sizeof *hidden);
    bool fine = hidden && list_words(l, text, plain);
    if (fine)
        add_likelihoods(l, plain, 1.0, l->plain, 1);
    for (int n = 0, w = 0; fine && n < l->sources; n++, w++) {
        w = next_word(l, &text->source, w);
        const token_range range = tokens_of(&l->source_pieces, w);
        for (int k = range.first; k < range.end; k++)
            hidden[k] = true;
        fine = hide(l, model, text, pool, hidden, n);
        for (int k = range.first; k < range.end; k++)
            hidden[k] = false;
        if (watch)
            watch(n + 1, l->sources);
    }
    free(hidden);
    return fine;
}

bool word_losses_measure(word_losses *l, const subject *model, const subject_text *text,
                         mha_pool *pool, void (*watch)(int done, int count))
{
    static const capture_options options = {.weights = false};
    *l = (word_losses){.sources = 0};
    capture *const plain = subject_run(model, text, &options, pool);
    const bool fine = plain && measure(l, model, text, plain, pool, watch);
    capture_free(plain);
    return fine;
}

void word_losses_free(word_losses *l)
{
    whole_words_free(&l->whole);
    word_pieces_free(&l->source_pieces);
    word_pieces_free(&l->said_pieces);
    free((void *)l->source_words);
    free((void *)l->target_words);
    free(l->plain);
    free(l->lost);
}

/* ------------------------------------------------------ parts of speech ----- */

/* Sums over the hidden words of one part of speech, in one sentence. */
typedef struct part_sums {
    int words;
    double lost, own, wrong;
} part_sums;

/* Compares a pair with and without English word `word`. */
static void add_word(const head_pair *pair, const capture *plain, const capture *hidden, int word,
                     part_sums *sums)
{
    sums->words++;
    for (int row = 0; row < plain->scored; row++) {
        const double lost = plain->log_likelihood[row] - hidden->log_likelihood[row];
        const bool own = row < pair->gold.side[CORPUS_FRENCH].count &&
                         (pair->gold.sources[row] >> word & 1) != 0;
        sums->lost += lost;
        sums->own += own ? lost : 0.0;
        sums->wrong += (hidden->predicted[row] != hidden->expected[row]) -
                       (plain->predicted[row] != plain->expected[row]);
    }
}

/* sums[PART_COUNT] of one pair. */
static mha_status hide_words(const translator *model, const head_pair *pair, mha_pool *pool,
                             part_sums *sums)
{
    bool hidden[CORPUS_TOKENS_MAX + 1] = {false};
    const capture_options whole = {.weights = false}, options = {.hidden = hidden};
    capture *const plain = head_capture(model, pair, &whole, pool);
    mha_status status = plain ? MHA_OK : MHA_ERR_MEMORY;
    for (int w = 0; status == MHA_OK && w < pair->gold.side[CORPUS_ENGLISH].count; w++) {
        const corpus_part part = corpus_part_of(&pair->gold, w);
        if (part == PART_COUNT)
            continue;
        hidden[w] = true;
        capture *const c = head_capture(model, pair, &options, pool);
        hidden[w] = false;
        if (c)
            add_word(pair, plain, c, w, &sums[part]);
        else
            status = MHA_ERR_MEMORY;
        capture_free(c);
    }
    capture_free(plain);
    return status;
}

/* The mean of one part of speech over all sentences: sums[count][PART_COUNT]. */
static part_loss summarise(const part_sums *sums, int count, int part, head_sample *samples)
{
    part_loss loss = {.words = 0};
    for (int n = 0; n < count; n++) {
        const part_sums *const one = &sums[(ptrdiff_t)n * PART_COUNT + part];
        samples[n] = (head_sample){(float)one->lost, (float)one->words};
        loss.words += one->words;
        loss.lost += one->lost;
        loss.own += one->own;
        loss.wrong += one->wrong;
    }
    loss.lost = loss.words > 0 ? loss.lost / loss.words : NAN;
    loss.own = loss.words > 0 ? loss.own / loss.words : NAN;
    loss.wrong = loss.words > 0 ? loss.wrong / loss.words : NAN;
    loss.interval = head_interval_of(samples, count, 1 + (uint64_t)part);
    return loss;
}

mha_status part_losses_measure(const translator *model, const head_pair *pairs, int count,
                               mha_pool *pool, part_loss *parts, void (*watch)(int done, int count))
{
    part_sums *const sums = calloc((size_t)count * PART_COUNT + 1, sizeof *sums);
    head_sample *const samples = calloc((size_t)count + 1, sizeof *samples);
    mha_status status = sums && samples ? MHA_OK : MHA_ERR_MEMORY;
    for (int n = 0; status == MHA_OK && n < count; n++) {
        if (pairs[n].known)
            status = hide_words(model, &pairs[n], pool, &sums[(ptrdiff_t)n * PART_COUNT]);
        if (watch)
            watch(n + 1, count);
    }
    for (int part = 0; status == MHA_OK && part < PART_COUNT; part++)
        parts[part] = summarise(sums, count, part, samples);
    free(sums);
    free(samples);
    return status;
}
