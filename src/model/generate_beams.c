/* SPDX-License-Identifier: MIT */
/*
 * Beam search over many texts together; base/beam.h defines the search over one. Hypothesis n of
 * text b is sequence b * beams + n of the state, whose source text all hypotheses of a text share.
 * A step runs the last tokens of all running hypotheses in one call; a text whose search is over
 * leaves the batch.
 */
#include "model/generate_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/state.h"

_Static_assert((int)MHA_BEAMS_MAX == (int)BEAM_WIDTH_MAX, "one limit of the width");

enum { CHOICES_MAX = MHA_BEAMS_MAX + 2 * MODEL_ENDS_MAX };

mha_status beams_begin(generator *g)
{
    const size_t rows = (size_t)(g->B * g->beams);
    g->choice_room = (int)g->beams + g->end_count;
    g->choices = calloc(rows * (size_t)g->choice_room, sizeof *g->choices);
    g->parents = calloc((size_t)g->state->sequences, sizeof *g->parents);
    bool fine = g->choices && g->parents;
    for (ptrdiff_t b = 0; b < g->B && fine; b++) {
        const ptrdiff_t most = g->sequences[b].most;
        fine = beam_begin(&g->sequences[b].beam, (int)g->beams,
                          most < INT32_MAX ? (int)most : INT32_MAX, g->config->length_penalty);
    }
    return fine ? MHA_OK
                : generate_fail(g, MHA_ERR_MEMORY, "no memory for %td hypotheses", g->B * g->beams);
}

void beams_free(generator *g)
{
    for (ptrdiff_t b = 0; g->sequences && b < g->B; b++)
        beam_free(&g->sequences[b].beam);
    free(g->choices);
    free(g->parents);
}

/* ------------------------------------------------------------------ choices ----- */

/* The number of the hypothesis whose logits are row n. */
static int hypothesis_of(const generator *g, ptrdiff_t n)
{
    int number = 0;
    while (n > number && g->owners[n - number - 1] == g->owners[n])
        number++;
    return number;
}

/* The best continuations of one row; those that there are not have token -1. A forced token is no
 * choice, so it costs nothing. */
static void rank_task(void *arg, int worker, ptrdiff_t n)
{
    (void)worker;
    const generator *const g = arg;
    const beam_search *const search = &g->sequences[g->owners[n]].beam;
    const model_usage *const usage = &g->model->files.description.usage;
    const float *const logits = g->logits + n * g->words;
    const int number = hypothesis_of(g, n);
    const double before = beam_score(search, number), total = sample_log_total(logits, g->words);
    const int32_t forced = generate_forced(g, search->running[number].length);
    int32_t ids[CHOICES_MAX];
    ids[0] = forced;
    const ptrdiff_t count = forced >= 0 ? 1
                                        : sample_best(logits, g->words, usage->forbidden,
                                                      usage->forbidden_count, g->choice_room, ids);
    for (ptrdiff_t k = 0; k < g->choice_room; k++) {
        const int32_t id = k < count ? ids[k] : -1;
        const double log = forced >= 0 && isfinite(total) ? 0.0
                           : id >= 0                      ? (double)logits[id] - total
                                                          : 0.0;
        g->choices[n * g->choice_room + k] = (beam_choice){
            .score = before + log, .parent = number, .token = id, .ends = generate_is_end(g, id)};
    }
}

/* -------------------------------------------------------------------- step ----- */

/* The rows [row, row + rows) of a text have been ranked. */
static mha_status advance(generator *g, ptrdiff_t b, ptrdiff_t row, ptrdiff_t rows)
{
    beam_search *const search = &g->sequences[b].beam;
    beam_choice *const choices = g->choices + row * g->choice_room;
    int parents[MHA_BEAMS_MAX];
    size_t count = 0;
    for (ptrdiff_t n = 0; n < rows * g->choice_room; n++) {
        if (isnan(choices[n].score))
            return generate_not_finite(g, b);
        if (choices[n].token >= 0)
            choices[count++] = choices[n];
    }
    if (search->over) /* there is no room for a token */
        return MHA_OK;
    if (!beam_step(search, choices, count, parents))
        return generate_fail(g, MHA_ERR_MEMORY, "no memory for the hypotheses of text %td",
                             g->first + b);
    for (int n = 0; n < search->running_count; n++)
        g->parents[b * g->beams + n] = b * g->beams + parents[n];
    return MHA_OK;
}

mha_status beams_accept(generator *g)
{
    bool moved = false;
    mha_status status = MHA_OK;
    mha_pool_run(g->pool, g->owner_count, rank_task, g);
    for (ptrdiff_t n = 0; n < g->state->sequences; n++)
        g->parents[n] = n;
    for (ptrdiff_t n = 0, rows; n < g->owner_count && !status; n += rows) {
        for (rows = 1; n + rows < g->owner_count && g->owners[n + rows] == g->owners[n];)
            rows++;
        status = advance(g, g->owners[n], n, rows);
    }
    for (ptrdiff_t n = 0; n < g->B * g->beams; n++)
        moved |= g->parents[n] != n;
    return status || !moved ? status : state_reorder_beams(g->state, g->parents);
}

/* The last tokens of all running hypotheses of a text. */
static void add_hypotheses(generator *g, mha_model_call *call, ptrdiff_t b)
{
    const beam_search *const search = &g->sequences[b].beam;
    for (int n = 0; !search->over && n < search->running_count; n++) {
        const ptrdiff_t row = call->B++;
        g->ids[row] = beam_token(search, n);
        g->numbers[row] = b * g->beams + n;
        g->starts[row + 1] = row + 1;
        g->rows[row] = row;
        g->owners[row] = b;
    }
    g->owner_count = call->B;
}

mha_status beams_decode(generator *g)
{
    mha_status status = MHA_OK;
    while (!status) {
        mha_model_call call = generate_begin_call(g);
        for (ptrdiff_t b = 0; b < g->B; b++)
            add_hypotheses(g, &call, b);
        if (call.B == 0)
            break;
        status = generate_run_call(g, &call);
        status = status ? status : beams_accept(g);
    }
    return status;
}

/* ----------------------------------------------------------------- results ----- */

/* A finished hypothesis becomes the tokens of its text. */
static mha_status take_hypothesis(generator *g, ptrdiff_t b, const beam_hypothesis *h,
                                  const beam_node **path)
{
    generated *const s = &g->sequences[b];
    const int count = beam_path(&s->beam, h, path) - h->ended;
    s->count = s->context + count;
    for (int n = 0; n < count; n++)
        s->tokens[s->context + n] = path[n]->token;
    s->log_probability = count > 0 ? path[count - 1]->score : 0.0;
    s->end_log = h->ended ? path[count]->score - s->log_probability : 0.0;
    s->ended = s->marked = h->ended;
    text_stream_free(&s->stream);
    text_stream_begin(&s->stream, g->tokenizer, s->context, NULL, 0);
    const mha_status status = text_stream_add(&s->stream, s->tokens, s->count, true);
    return status ? generate_fail(g, status, "the text of sequence %td cannot be decoded",
                                  g->first + b)
                  : MHA_OK;
}

mha_status beams_results(generator *g, ptrdiff_t b, mha_generation *results)
{
    const beam_search *const search = &g->sequences[b].beam;
    const beam_node **const path = malloc(((size_t)g->sequences[b].most + 1) * sizeof *path);
    mha_status status = path ? MHA_OK : generate_fail(g, MHA_ERR_MEMORY, "no memory for a text");
    const beam_hypothesis none = {.node = -1};
    for (ptrdiff_t n = 0; n < g->best && !status; n++) {
        status =
            take_hypothesis(g, b, n < search->finished_count ? &search->finished[n] : &none, path);
        status = status ? status : generate_result(g, b, &results[n]);
    }
    free(path);
    return status;
}
