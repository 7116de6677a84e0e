/* SPDX-License-Identifier: MIT */
/* A call of mha_model_generate() is checked here, before anything is computed. */
#include "model/generate_parts.h"

#include <math.h>

#define fail generate_fail

static bool is_unusable(float x)
{
    return !(x >= 0.0f && x < INFINITY);
}

static mha_status check_prompt(const generator *g, ptrdiff_t b)
{
    const mha_state *const state = g->config->state;
    const int positions = g->model->files.description.positions;
    const ptrdiff_t count = generate_past(g, b) + generate_prompt(g, b);
    if (positions > 0 && count > positions)
        return fail(g, MHA_ERR_LENGTH, "prompt %td has %td tokens; the model reads %d", b, count,
                    positions);
    if (state && count > state->capacity)
        return fail(g, MHA_ERR_FULL,
                    "prompt %td and what the state has before it are %td tokens; it has room for "
                    "%td",
                    b, count, state->capacity);
    return MHA_OK;
}

static mha_status check_sampling(const generator *g)
{
    const mha_sampling *const s = &g->config->sampling;
    if (is_unusable(s->temperature) || is_unusable(s->top_p) || is_unusable(s->min_p) ||
        s->top_k < 0 || is_unusable(s->repetition_penalty) || s->repetition_last < 0)
        return fail(g, MHA_ERR_SCALE,
                    "config.sampling has a number that is negative or not finite");
    return MHA_OK;
}

mha_status generate_check_beams(const generator *g)
{
    const mha_generate_config *const c = g->config;
    const mha_sampling *const s = &c->sampling;
    if (c->beams < 0 || c->beams > MHA_BEAMS_MAX || c->best < 0 || g->best > g->beams)
        return fail(g, MHA_ERR_SHAPE,
                    "config.beams is %td and config.best %td; beams is at most %d, best at most "
                    "beams",
                    c->beams, c->best, MHA_BEAMS_MAX);
    if (!isfinite(c->length_penalty))
        return fail(g, MHA_ERR_SCALE, "config.length_penalty is not finite");
    const bool draws =
        s->temperature > 0.0f || (s->repetition_penalty != 0.0f && s->repetition_penalty != 1.0f);
    if (g->beams > 1 && (draws || c->stop_count > 0 || c->callback || c->state))
        return fail(g, MHA_ERR_FLAG, "config.beams does not go with %s; leave it out",
                    draws               ? "config.sampling"
                    : c->stop_count > 0 ? "config.stops"
                    : c->callback       ? "config.callback"
                                        : "config.state");
    return MHA_OK;
}

mha_status generate_check(const generator *g)
{
    const mha_generate_config *const c = g->config;
    if (!g->model->stack[STACK_DECODER].layers || !g->model->output)
        return fail(g, MHA_ERR_FLAG, "the model does not generate tokens");
    if (c->most < 0 || c->stop_count < 0 || (c->stop_count > 0 && !c->stops))
        return fail(g, MHA_ERR_SHAPE, "config.most is %td, config.stop_count %td", c->most,
                    c->stop_count);
    mha_status status = check_sampling(g);
    if (status)
        return status;
    for (ptrdiff_t n = 0; n < c->stop_count; n++)
        if (!c->stops[n])
            return fail(g, MHA_ERR_NULL, "config.stops[%td] is NULL", n);
    if (c->stop_count > 0 && !g->tokenizer)
        return fail(g, MHA_ERR_FLAG, "config.stops need a tokenizer, and the model has none");
    if (c->state && (c->state->model != g->model || c->state->sequences < g->B))
        return fail(g, MHA_ERR_SEQUENCE,
                    "config.state is of another model, or has less than %td sequences", g->B);
    if (g->prompt_starts[0] != 0)
        return fail(g, MHA_ERR_LENGTH, "starts[0] is not 0");
    for (ptrdiff_t b = 0; b < g->B; b++) {
        if (g->prompt_starts[b + 1] <= g->prompt_starts[b])
            return fail(g, MHA_ERR_LENGTH, "prompt %td is empty", b);
        if ((status = check_prompt(g, b)))
            return status;
    }
    return MHA_OK;
}
