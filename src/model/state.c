/* SPDX-License-Identifier: MIT */
/*
 * Section 3 of mha_model.h: a cache for each attention of the decoder, and the tokens that are in
 * them. All caches always have the same lengths.
 */
#include "model/state.h"

#include <stdlib.h>
#include <string.h>

/* A longer cache has pages, so that only the tokens that it has occupy memory. */
enum { CONTIGUOUS_MOST = 128 };

/* Hypotheses of a beam search share all pages but their last, which is copied when they part. */
enum { BEAM_PAGE = 32 };

/* ------------------------------------------------------------------ create ----- */

void mha_state_free(mha_state *state)
{
    if (!state)
        return;
    for (int n = 0; state->caches && n < state->cache_count; n++)
        mha_cache_free(state->caches[n]);
    free(state->caches);
    free(state->tokens);
    free(state->lengths);
    free(state->marks);
    free(state->source_starts);
    free(state);
}

static ptrdiff_t default_tokens(const mha_model *model)
{
    const int positions = model->files.description.positions;
    return positions > 0 ? positions : MODEL_DEFAULT_TOKENS;
}

mha_status state_allocate(mha_state **state, const mha_model *model, const mha_state_config *config)
{
    mha_state *const made = calloc(1, sizeof *made);
    if (!made)
        return MHA_ERR_MEMORY;
    const bool two = model->files.description.kind == MHA_MODEL_ENCODER_DECODER;
    const int layers = model->stack[STACK_DECODER].layers;
    made->model = model;
    made->type = config->type;
    made->beams = 1;
    made->sequences = config->sequences ? config->sequences : 1;
    made->capacity = config->capacity ? config->capacity : default_tokens(model);
    made->source_capacity =
        config->source_capacity ? config->source_capacity : default_tokens(model);
    made->cache_count = two ? 2 * layers : layers;
    made->caches = calloc((size_t)made->cache_count, sizeof(mha_cache *));
    size_t tokens;
    if (!__builtin_mul_overflow((size_t)made->sequences, (size_t)made->capacity, &tokens))
        made->tokens = calloc(tokens, sizeof *made->tokens);
    made->lengths = calloc((size_t)made->sequences, 4 * sizeof *made->lengths);
    made->marks = calloc((size_t)made->sequences, 1);
    if (!made->caches || !made->tokens || !made->lengths || !made->marks) {
        mha_state_free(made);
        return MHA_ERR_MEMORY;
    }
    made->source_lengths = made->lengths + made->sequences;
    made->spare_lengths = made->source_lengths + made->sequences;
    *state = made;
    return MHA_OK;
}

mha_cache_config state_cache_config(const mha_state *state, int n)
{
    const int layers = state->model->stack[STACK_DECODER].layers;
    const model_layer *const layer = &state->model->stack[STACK_DECODER].layer[n % layers];
    const mha_layer_config c =
        mha_layer_get_config(n < layers ? layer->self.layer : layer->cross.layer);
    const ptrdiff_t capacity = n < layers ? state->capacity : state->source_capacity;
    const mha_cache_config config = {
        .size = sizeof config,
        .kind = capacity > CONTIGUOUS_MOST ? MHA_CACHE_PAGED : MHA_CACHE_CONTIGUOUS,
        .sequences = n < layers ? state->sequences : state->sequences / state->beams,
        .capacity = capacity,
        .page_tokens = state->beams > 1 ? BEAM_PAGE : 0,
        .G = c.G,
        .D = c.D,
        .Dv = c.Dv,
        .k_type = state->type,
        .v_type = state->type};
    return config;
}

static mha_status check_config(const mha_model *model, const mha_state_config *c)
{
    if (c->size != sizeof *c)
        return MHA_ERR_STRUCT;
    if (!model->stack[STACK_DECODER].layers)
        return model_fail(c->message, c->message_size, MHA_ERR_FLAG,
                          "the model is an encoder, which has no state");
    if (c->sequences < 0 || c->capacity < 0 || c->source_capacity < 0)
        return model_fail(c->message, c->message_size, MHA_ERR_SHAPE,
                          "config has %td sequences of %td and %td tokens", c->sequences,
                          c->capacity, c->source_capacity);
    return MHA_OK;
}

static mha_status share_sources(mha_state *state, ptrdiff_t beams)
{
    state->beams = beams;
    if (beams == 1)
        return MHA_OK;
    state->source_starts = calloc((size_t)state->sequences + 1, 2 * sizeof *state->source_starts);
    state->sources = state->source_starts ? state->source_starts + state->sequences + 1 : NULL;
    return state->source_starts ? MHA_OK : MHA_ERR_MEMORY;
}

mha_status state_create_beams(mha_state **state, const mha_model *model,
                              const mha_state_config *config, ptrdiff_t beams)
{
    mha_state *made = NULL;
    mha_status status = state_allocate(&made, model, config);
    status = status ? status : share_sources(made, beams);
    if (status) {
        mha_state_free(made);
        return model_fail(config->message, config->message_size, status,
                          "no memory for the tokens of the state");
    }
    for (int n = 0; n < made->cache_count && !status; n++) {
        mha_cache_config cache = state_cache_config(made, n);
        cache.message = config->message;
        cache.message_size = config->message_size;
        status = mha_cache_create(&made->caches[n], &cache);
    }
    if (status) {
        mha_state_free(made);
        return status;
    }
    *state = made;
    return MHA_OK;
}

mha_status mha_state_create(mha_state **state, const mha_model *model,
                            const mha_state_config *config)
{
    const mha_state_config none = {.size = sizeof none};
    if (!state)
        return MHA_ERR_NULL;
    *state = NULL;
    config = config ? config : &none;
    if (!model)
        return MHA_ERR_NULL;
    const mha_status status = check_config(model, config);
    return status ? status : state_create_beams(state, model, config, 1);
}

/* -------------------------------------------------------------------- read ----- */

static bool has_sequence(const mha_state *state, int64_t sequence)
{
    return state && sequence >= 0 && sequence < state->sequences;
}

ptrdiff_t mha_state_length(const mha_state *state, ptrdiff_t sequence)
{
    return has_sequence(state, sequence) ? (ptrdiff_t)state->lengths[sequence] : -1;
}

ptrdiff_t mha_state_capacity(const mha_state *state)
{
    return state ? state->capacity : 0;
}

const int32_t *mha_state_tokens(const mha_state *state, ptrdiff_t sequence)
{
    return has_sequence(state, sequence) ? state->tokens + sequence * state->capacity : NULL;
}

size_t mha_state_bytes(const mha_state *state)
{
    size_t bytes = 0;
    if (!state)
        return 0;
    for (int n = 0; n < state->cache_count; n++)
        bytes += mha_cache_bytes(state->caches[n]);
    return bytes + (size_t)(state->sequences * state->capacity) * sizeof *state->tokens;
}

/* ------------------------------------------------------------------ change ----- */

mha_status mha_state_truncate(mha_state *state, ptrdiff_t sequence, ptrdiff_t length)
{
    if (!state)
        return MHA_ERR_NULL;
    if (!has_sequence(state, sequence))
        return MHA_ERR_SEQUENCE;
    if (length < 0 || length > state->lengths[sequence])
        return MHA_ERR_LENGTH;
    for (int n = 0; n < state->model->stack[STACK_DECODER].layers; n++) {
        const mha_status status = mha_cache_truncate(state_self(state, n), sequence, length);
        if (status)
            return status;
    }
    state->lengths[sequence] = length;
    return MHA_OK;
}

mha_status mha_state_fork(mha_state *state, ptrdiff_t to, ptrdiff_t from)
{
    if (!state)
        return MHA_ERR_NULL;
    if (!has_sequence(state, to) || !has_sequence(state, from))
        return MHA_ERR_SEQUENCE;
    if (to == from)
        return MHA_OK;
    for (int n = 0; n < state->cache_count; n++) {
        const mha_status status = mha_cache_fork(state->caches[n], to, from);
        if (status)
            return status;
    }
    state->lengths[to] = state->lengths[from];
    state->source_lengths[to] = state->source_lengths[from];
    memcpy(state->tokens + to * state->capacity, state->tokens + from * state->capacity,
           (size_t)state->lengths[from] * sizeof *state->tokens);
    return MHA_OK;
}

static void reorder_tokens(mha_state *state, const int64_t *parents, int32_t *old)
{
    const size_t count = (size_t)state->sequences;
    const size_t row = (size_t)state->capacity;
    memcpy(old, state->tokens, count * row * sizeof *old);
    memcpy(state->spare_lengths, state->lengths, 2 * count * sizeof *state->lengths);
    for (size_t n = 0; n < count; n++) {
        const size_t parent = (size_t)parents[n];
        state->lengths[n] = state->spare_lengths[parent];
        state->source_lengths[n] = state->spare_lengths[count + parent];
        memcpy(state->tokens + n * row, old + parent * row,
               (size_t)state->lengths[n] * sizeof *old);
    }
}

mha_status mha_state_reorder(mha_state *state, const int64_t *parents)
{
    if (!state || !parents)
        return MHA_ERR_NULL;
    for (ptrdiff_t n = 0; n < state->sequences; n++)
        if (!has_sequence(state, parents[n]))
            return MHA_ERR_SEQUENCE;
    int32_t *const old = malloc((size_t)(state->sequences * state->capacity) * sizeof *old);
    if (!old)
        return MHA_ERR_MEMORY;
    mha_status status = MHA_OK;
    for (int n = 0; n < state->cache_count && !status; n++)
        status = mha_cache_reorder(state->caches[n], parents);
    if (!status)
        reorder_tokens(state, parents, old);
    free(old);
    return status;
}

mha_status state_reorder_beams(mha_state *state, const int64_t *parents)
{
    mha_status status = MHA_OK;
    for (int n = 0; n < state->model->stack[STACK_DECODER].layers && !status; n++)
        status = mha_cache_reorder(state_self(state, n), parents);
    memcpy(state->spare_lengths, state->lengths, (size_t)state->sequences * sizeof *state->lengths);
    for (ptrdiff_t n = 0; n < state->sequences && !status; n++)
        state->lengths[n] = state->spare_lengths[parents[n]];
    return status;
}
