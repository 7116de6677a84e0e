/* SPDX-License-Identifier: MIT */
/*
 * Memory that a model keeps between generations. A state and logits of many sequences are tens of
 * megabytes; allocated again for every call, the system clears them first, which costs as much as a
 * tenth of a translation. So a call leaves them to the model, and the next call that is not much
 * smaller or larger takes them from there. Calls at the same time do not wait for each other: one
 * finds the memory, the others find nothing and take their own.
 */
#include "model/generate_parts.h"

#include <stdlib.h>

#include "model/state.h"

/* What has been used is kept if it has this size; less is not worth it, more is not polite. */
enum { KEPT_LEAST = 256 << 10, KEPT_MOST = 64 << 20, SOURCE_STEP = 32, FEWER_MOST = 4 };

struct generate_memory {
    mha_state *state;
    float *logits;
    size_t logit_count;
    void *work;
    size_t work_size;
};

static _Atomic(generate_memory *) *place_of(const mha_model *model)
{
    return &((mha_model *)model)->memory; /* the only part of it that a call changes */
}

void generate_memory_free(generate_memory *memory)
{
    if (!memory)
        return;
    mha_state_free(memory->state);
    free(memory->logits);
    free(memory->work);
    free(memory);
}

mha_status generate_memory_take(generator *g)
{
    g->memory = atomic_exchange(place_of(g->model), NULL);
    if (!g->memory)
        g->memory = calloc(1, sizeof *g->memory);
    return g->memory ? MHA_OK : generate_fail(g, MHA_ERR_MEMORY, "no memory for a text");
}

/* Bytes of keys and values that sequences have now; pages that they do not reach are not used. */
static size_t used_bytes(const mha_state *state)
{
    const size_t room =
        (size_t)state->sequences * (size_t)(state->capacity + state->source_capacity);
    int64_t tokens = 0;
    for (ptrdiff_t n = 0; n < state->sequences; n++)
        tokens += state->lengths[n] + state->source_lengths[n];
    return mha_state_bytes(state) / room * (size_t)tokens;
}

void generate_memory_give(generator *g, bool usable)
{
    generate_memory *memory = g->memory;
    g->memory = NULL;
    if (!memory)
        return;
    const size_t size = memory->logit_count * sizeof *memory->logits + memory->work_size +
                        (memory->state ? used_bytes(memory->state) : 0);
    if (usable && size >= KEPT_LEAST && size <= KEPT_MOST)
        memory = atomic_exchange(place_of(g->model), memory);
    generate_memory_free(memory);
}

/* ------------------------------------------------------------------- parts ----- */

/* A state of more sequences will do, but those that are not used cost time in every step. */
static bool fits(const mha_state *state, const mha_state_config *wanted, ptrdiff_t beams)
{
    return state && state->sequences >= wanted->sequences &&
           state->sequences <= FEWER_MOST * wanted->sequences && state->beams == beams &&
           state->capacity >= wanted->capacity && state->source_capacity >= wanted->source_capacity;
}

static mha_status restart(mha_state *state)
{
    mha_status status = MHA_OK;
    for (ptrdiff_t n = 0; n < state->sequences && !status; n++) {
        status = mha_state_truncate(state, n, 0);
        state->source_lengths[n] = 0;
    }
    return status;
}

mha_status generate_memory_state(generator *g, const mha_state_config *wanted, mha_state **state)
{
    generate_memory *const memory = g->memory;
    mha_state_config config = *wanted;
    mha_status status = MHA_OK;
    if (fits(memory->state, wanted, g->beams)) {
        status = restart(memory->state);
    } else {
        mha_state_free(memory->state);
        memory->state = NULL;
        config.source_capacity = (config.source_capacity + SOURCE_STEP - 1) / SOURCE_STEP *
                                 SOURCE_STEP; /* the next text may be a little longer */
        status = state_create_beams(&memory->state, g->model, &config, g->beams);
    }
    *state = memory->state;
    return status;
}

float *generate_memory_logits(generator *g, size_t count)
{
    generate_memory *const memory = g->memory;
    if (count > memory->logit_count) {
        free(memory->logits);
        memory->logits = malloc(count * sizeof *memory->logits);
        memory->logit_count = memory->logits ? count : 0;
    }
    return memory->logits;
}

void *generate_memory_work(generator *g, size_t size, size_t *available)
{
    generate_memory *const memory = g->memory;
    if (size > memory->work_size) {
        free(memory->work);
        memory->work = work_allocate(size);
        memory->work_size = memory->work ? size : 0;
    }
    *available = memory->work_size;
    return memory->work;
}
