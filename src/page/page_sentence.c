/* SPDX-License-Identifier: MIT */
/*
 * Makes a sentence of the page. The model is run once with everything captured, then twice per head
 * (disabled, uniform) without: only the likelihood and the predicted words of those runs are kept.
 */
#include "page/page_sentence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"

/* A sentence while it is made. */
typedef struct making {
    page_sentence *sentence;
    const subject *subject;
    const pair_request *request;
    mha_pool *pool;
    uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads] copy of the request's, to vary */
    char *message;
} making;

static bool out_of_memory(const making *m)
{
    snprintf(m->message, SUBJECT_MESSAGE_MAX, "out of memory");
    return false;
}

/* Heads in all layers of a kind. */
static int kind_heads(const making *m, int kind)
{
    return m->subject->shape.layers[kind] * m->subject->shape.heads;
}

/* --------------------------------------------------------------- heads ----- */

/* The sentence with the present changes, for capture_free(); NULL, with a message: out of memory.
 */
static capture *capture_with(const making *m, capture_options options)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        options.changes[kind] = m->changes[kind];
    capture *const heads = subject_run(m->subject, &m->sentence->text, &options, m->pool);
    if (heads == NULL)
        out_of_memory(m);
    return heads;
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
    const capture *const plain = m->sentence->heads;
    const page_head_effects *const effects = &m->sentence->effects[kind];
    capture *const zero = capture_changed(m, kind, map, HEAD_ZERO);
    capture *const uniform = zero != NULL ? capture_changed(m, kind, map, HEAD_UNIFORM) : NULL;
    if (uniform != NULL) {
        effects->losses[map] = (float)subject_loss(m->subject, plain, zero);
        effects->uniform_losses[map] = (float)subject_loss(m->subject, plain, uniform);
        for (int row = 0; row < plain->scored; row++)
            effects->word_losses[(ptrdiff_t)map * plain->target_count + row] =
                (float)(plain->log_likelihood[row] - zero->log_likelihood[row]);
        memcpy(effects->predicted + (ptrdiff_t)map * plain->target_count, zero->predicted,
               (size_t)plain->target_count * sizeof zero->predicted[0]);
    }
    capture_free(zero);
    capture_free(uniform);
    return uniform != NULL;
}

/* Allocates the arrays of all heads and divides them between the kinds. */
static bool make_effects(const making *m)
{
    page_sentence *const s = m->sentence;
    const size_t heads = (size_t)head_count(m->subject->shape);
    s->losses = calloc(2 * heads, sizeof *s->losses);
    const size_t words = heads * (size_t)s->heads->target_count + 1;
    s->word_losses = calloc(words, sizeof *s->word_losses);
    s->predicted = calloc(words, sizeof *s->predicted);
    if (s->losses == NULL || s->word_losses == NULL || s->predicted == NULL)
        return out_of_memory(m);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const int first = head_number(m->subject->shape, (head_name){(attention_kind)kind, 0, 0});
        s->effects[kind] =
            (page_head_effects){s->losses + first, s->losses + heads + first,
                                s->word_losses + (ptrdiff_t)first * s->heads->target_count,
                                s->predicted + (ptrdiff_t)first * s->heads->target_count};
    }
    return true;
}

/* Two runs per head; a run is dominated by the matrices, which every token is multiplied with. */
static double effects_cost(const making *m)
{
    const subject_text *const text = &m->sentence->text;
    return 2.0 * head_count(m->subject->shape) * m->subject->run_cost *
           (text->source.count + text->target.count);
}

static bool fill_heads(const making *m)
{
    page_sentence *const s = m->sentence;
    s->heads = capture_with(m, (capture_options){.weights = true, .vectors = true});
    bool fine = s->heads != NULL && make_effects(m);
    for (int kind = 0; s->has_effects && kind < ATTENTION_KINDS; kind++)
        for (int map = 0; fine && map < kind_heads(m, kind); map++) {
            if (effects_cost(m) > PAGE_LIVE_COST)
                progress("%s: head %d of %d", attention_kind_name((attention_kind)kind), map + 1,
                         kind_heads(m, kind));
            fine = measure_head(m, kind, map);
        }
    return fine;
}

/* As "mha heads TEXT" finds them. */
static void find_baselines(page_sentence *s)
{
    head_pair pair = {.known = s->text.gold != NULL};
    if (pair.known)
        pair.gold = *s->text.gold;
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

bool page_sentence_make(page_sentence *sentence, const subject *model, const pair_request *request,
                        double cost, mha_pool *pool, char message[SUBJECT_MESSAGE_MAX])
{
    making m = {sentence, model, request, pool, {NULL}, message};
    *sentence = (page_sentence){.heads = NULL};
    bool fine = copy_changes(&m) && subject_read(model, request, pool, &sentence->text, message);
    if (fine) {
        find_baselines(sentence);
        sentence->has_effects = effects_cost(&m) <= cost;
        fine = fill_heads(&m);
    }
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        free(m.changes[kind]);
    return fine;
}

void page_sentence_free(page_sentence *sentence, const subject *model)
{
    capture_free(sentence->heads);
    subject_text_free(model, &sentence->text);
    free(sentence->losses);
    free(sentence->word_losses);
    free(sentence->predicted);
}
