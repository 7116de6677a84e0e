/* SPDX-License-Identifier: MIT */
/*
 * A call of mha_model_run() is checked here, completely, before anything is computed: a state is
 * never left half changed.
 */
#include "model/forward.h"

#include <string.h>

#define fail(pass, status, ...) \
    model_fail((pass)->call->message, (pass)->call->message_size, status, __VA_ARGS__)

enum { ROWS_MAX = 1 << 30 };

/* ---------------------------------------------------------------- sequences ----- */

static mha_status check_starts(const model_pass *pass, const int64_t *starts, const char *name,
                               pass_rows *side)
{
    if (starts[0] != 0)
        return fail(pass, MHA_ERR_LENGTH, "call.%s[0] is %lld; it must be 0", name,
                    (long long)starts[0]);
    side->starts = starts;
    for (ptrdiff_t b = 0; b < pass->B; b++) {
        if (starts[b + 1] <= starts[b] || starts[b + 1] > ROWS_MAX)
            return fail(pass, MHA_ERR_LENGTH,
                        "call.%s[%td] is %lld after %lld; every sequence has at least one token",
                        name, b + 1, (long long)starts[b + 1], (long long)starts[b]);
        const ptrdiff_t length = (ptrdiff_t)(starts[b + 1] - starts[b]);
        side->longest = length > side->longest ? length : side->longest;
    }
    side->rows = (ptrdiff_t)starts[pass->B];
    return MHA_OK;
}

static mha_status check_ids(const model_pass *pass, const int32_t *ids, const char *name, int stack,
                            pass_rows *side)
{
    const ptrdiff_t words = pass->model->files.binding.stack[stack].tokens.outputs;
    for (ptrdiff_t n = 0; n < side->rows; n++)
        if (ids[n] < 0 || ids[n] >= words)
            return fail(pass, MHA_ERR_INDEX, "call.%s[%td] is %d; the model has ids 0 to %td", name,
                        n, (int)ids[n], words - 1);
    side->ids = ids;
    return MHA_OK;
}

/* `past` is the number of tokens before them. */
static mha_status check_length(const model_pass *pass, int stack, ptrdiff_t past, ptrdiff_t length)
{
    const model_description *const d = &pass->model->files.description;
    const ptrdiff_t all = past + length;
    ptrdiff_t most = d->positions > 0 ? d->positions : PTRDIFF_MAX;
    if (d->stack[stack].embedding.position == POSITION_LEARNED) {
        const ptrdiff_t table = pass->model->files.binding.stack[stack].position.outputs -
                                d->stack[stack].embedding.position_offset;
        most = table < most ? table : most;
    }
    if (all > most)
        return fail(pass, MHA_ERR_LENGTH,
                    "a sequence would have %td tokens; the model has positions for %td", all, most);
    return MHA_OK;
}

static mha_status check_segments(const model_pass *pass)
{
    const mha_model_call *const c = pass->call;
    const int stack = model_last_stack(pass->model);
    const ptrdiff_t types = pass->model->files.binding.stack[stack].segments.outputs;
    if (!c->segments || !pass->model->files.binding.stack[stack].segments.data)
        return MHA_OK;
    for (ptrdiff_t n = 0; n < pass->side[stack].rows; n++)
        if (c->segments[n] < 0 || c->segments[n] >= types)
            return fail(pass, MHA_ERR_INDEX,
                        "call.segments[%td] is %d; the model has %td token types", n,
                        (int)c->segments[n], types);
    return MHA_OK;
}

/* --------------------------------------------------------------------- state ----- */

static mha_status check_sequence(const model_pass *pass, ptrdiff_t b)
{
    const mha_state *const state = pass->call->state;
    const ptrdiff_t n = pass_sequence(pass, b);
    if (n < 0 || n >= state->sequences)
        return fail(pass, MHA_ERR_SEQUENCE, "sequence %td of the call is %td; the state has %td", b,
                    n, state->sequences);
    if (state->marks[n])
        return fail(pass, MHA_ERR_SEQUENCE, "sequence %td of the state is listed twice", n);
    state->marks[n] = 1;
    return MHA_OK;
}

static mha_status check_room(const model_pass *pass, ptrdiff_t b)
{
    const mha_state *const state = pass->call->state;
    const pass_rows *const side = &pass->side[STACK_DECODER];
    const ptrdiff_t n = pass_sequence(pass, b), past = (ptrdiff_t)state->lengths[n];
    const ptrdiff_t length = (ptrdiff_t)(side->starts[b + 1] - side->starts[b]);
    if (past + length > state->capacity)
        return fail(pass, MHA_ERR_FULL,
                    "sequence %td has %td tokens and room for %td; %td more do not fit", n, past,
                    state->capacity, length);
    if (pass->model->files.description.kind != MHA_MODEL_ENCODER_DECODER)
        return MHA_OK;
    const pass_rows *const source = &pass->side[STACK_ENCODER];
    if (source->rows == 0 && state->source_lengths[state_source(state, n)] == 0)
        return fail(pass, MHA_ERR_NULL,
                    "sequence %td has no source text yet; give call.source_ids with its first "
                    "tokens",
                    n);
    if (source->rows > 0 && past > 0)
        return fail(pass, MHA_ERR_FLAG,
                    "sequence %td has %td tokens; truncate it to 0 before it gets a new source", n,
                    past);
    if (source->rows > 0 && source->starts[b + 1] - source->starts[b] > state->source_capacity)
        return fail(pass, MHA_ERR_FULL, "the source text of sequence %td has more than %td tokens",
                    n, state->source_capacity);
    return MHA_OK;
}

/* The queries of cross-attention: rows of all sequences that read the same source are one batch. */
static void group_sources(model_pass *pass)
{
    const mha_state *const state = pass->call->state;
    const pass_rows *const side = &pass->side[STACK_DECODER];
    pass->cross = (pass_sources){side->starts, pass->call->sequences, pass->B, side->longest};
    if (state->beams == 1)
        return;
    pass->cross = (pass_sources){state->source_starts, state->sources, 0, 0};
    for (ptrdiff_t b = 0; b < pass->B; b++) {
        const ptrdiff_t source = state_source(state, pass_sequence(pass, b));
        if (b == 0 || state->sources[pass->cross.B - 1] != source) {
            state->source_starts[pass->cross.B] = side->starts[b];
            state->sources[pass->cross.B++] = source;
        }
        state->source_starts[pass->cross.B] = side->starts[b + 1];
        const ptrdiff_t rows =
            (ptrdiff_t)(side->starts[b + 1] - state->source_starts[pass->cross.B - 1]);
        pass->cross.longest = rows > pass->cross.longest ? rows : pass->cross.longest;
    }
}

static mha_status check_state(model_pass *pass)
{
    const mha_state *const state = pass->call->state;
    if (!pass->model->stack[STACK_DECODER].layers)
        return fail(pass, MHA_ERR_FLAG, "call.state is for decoders; leave it NULL");
    if (state->model != pass->model)
        return fail(pass, MHA_ERR_FLAG, "call.state was made for another model");
    mha_status status = MHA_OK;
    memset(state->marks, 0, (size_t)state->sequences);
    for (ptrdiff_t b = 0; b < pass->B && !status; b++)
        status = check_sequence(pass, b);
    for (ptrdiff_t b = 0; b < pass->B && !status; b++) {
        const ptrdiff_t past = (ptrdiff_t)state->lengths[pass_sequence(pass, b)];
        pass->longest_past = past > pass->longest_past ? past : pass->longest_past;
        status = check_room(pass, b);
    }
    if (!status)
        group_sources(pass);
    return status;
}

/* -------------------------------------------------------------------- inputs ----- */

static mha_status check_side(model_pass *pass, int stack, const int64_t *starts, const int32_t *ids,
                             bool source)
{
    pass_rows *const side = &pass->side[stack];
    if (!starts || !ids)
        return fail(pass, MHA_ERR_NULL, "call.%s%s is NULL", source ? "source_" : "",
                    starts ? "ids" : "starts");
    mha_status status = check_starts(pass, starts, source ? "source_starts" : "starts", side);
    return status ? status : check_ids(pass, ids, source ? "source_ids" : "ids", stack, side);
}

static mha_status check_image(model_pass *pass)
{
    const model_description *const d = &pass->model->files.description;
    if (!pass->call->pixels)
        return fail(pass, MHA_ERR_NULL, "call.pixels is NULL; the model reads pictures");
    const ptrdiff_t across = model_patches_across(d);
    pass_rows *const side = &pass->side[STACK_ENCODER];
    side->longest = across * across + d->extra_tokens;
    if (pass->B > ROWS_MAX / side->longest)
        return fail(pass, MHA_ERR_OVERFLOW, "call.B is %td: too many pictures", pass->B);
    side->rows = pass->B * side->longest;
    return MHA_OK;
}

static mha_status check_source(model_pass *pass)
{
    const mha_model_call *const c = pass->call;
    const bool two = pass->model->files.description.kind == MHA_MODEL_ENCODER_DECODER;
    if (c->source_ignored && (c->state || !c->source_ids))
        return fail(pass, MHA_ERR_FLAG,
                    "call.source_ignored is for a call with source_ids and without a state");
    if (!c->source_starts && !c->source_ids) {
        if (two && !c->state)
            return fail(pass, MHA_ERR_NULL,
                        "call.source_ids is NULL; an encoder-decoder needs source texts, or a "
                        "state that has them");
        return MHA_OK;
    }
    if (!two)
        return fail(pass, MHA_ERR_FLAG, "call.source_ids is for encoder-decoders only");
    return check_side(pass, STACK_ENCODER, c->source_starts, c->source_ids, true);
}

static mha_status check_lengths(const model_pass *pass)
{
    for (int s = 0; s < STACKS; s++) {
        const pass_rows *const side = &pass->side[s];
        for (ptrdiff_t b = 0; side->ids && b < pass->B; b++) {
            const bool kept = s == STACK_DECODER && pass->call->state;
            const ptrdiff_t past =
                kept ? (ptrdiff_t)pass->call->state->lengths[pass_sequence(pass, b)] : 0;
            const mha_status status =
                check_length(pass, s, past, (ptrdiff_t)(side->starts[b + 1] - side->starts[b]));
            if (status)
                return status;
        }
    }
    return MHA_OK;
}

/* ------------------------------------------------------------------- outputs ----- */

static mha_status check_outputs(const model_pass *pass)
{
    const mha_model_call *const c = pass->call;
    const mha_model *const model = pass->model;
    if (c->logits && !model->output)
        return fail(pass, MHA_ERR_FLAG, "call.logits: the model does not predict tokens");
    if (c->pooled && !model->pooler)
        return fail(pass, MHA_ERR_FLAG, "call.pooled: the model has no pooler");
    if (c->labels && !model->label)
        return fail(pass, MHA_ERR_FLAG, "call.labels: the model is no classifier");
    const bool source = pass->side[STACK_ENCODER].rows > 0 && model->stack[STACK_DECODER].layers;
    if (c->source_hidden && !source)
        return fail(pass, MHA_ERR_FLAG, "call.source_hidden: the call has no source text");
    const ptrdiff_t rows = pass->side[model_last_stack(model)].rows;
    if (rows == 0 && (pass_needs_hidden(pass) || c->streams || c->parts))
        return fail(pass, MHA_ERR_FLAG,
                    "call.ids is NULL, so that only the encoder runs; its output is "
                    "call.source_hidden");
    if (c->logits && c->logit_rows && c->logit_row_count < 0)
        return fail(pass, MHA_ERR_SHAPE, "call.logit_row_count is %td", c->logit_row_count);
    for (ptrdiff_t n = 0; c->logits && c->logit_rows && n < c->logit_row_count; n++)
        if (c->logit_rows[n] < 0 || c->logit_rows[n] >= rows)
            return fail(pass, MHA_ERR_INDEX, "call.logit_rows[%td] is %lld; the call has %td rows",
                        n, (long long)c->logit_rows[n], rows);
    return MHA_OK;
}

static mha_status check_captures(const model_pass *pass)
{
    const mha_model_call *const c = pass->call;
    if (c->heads && c->heads->size != sizeof *c->heads)
        return MHA_ERR_STRUCT;
    if (c->capture_count < 0 || (c->capture_count > 0 && !c->captures))
        return fail(pass, MHA_ERR_NULL, "call.captures is NULL or has %td elements",
                    c->capture_count);
    for (ptrdiff_t n = 0; n < c->capture_count; n++) {
        const mha_capture *const at = &c->captures[n];
        if ((unsigned)at->kind >= MHA_ATTENTION_KINDS ||
            !model_attention_at(pass->model, at->kind, at->layer))
            return fail(pass, MHA_ERR_INDEX, "call.captures[%td]: the model has no such attention",
                        n);
        if (pass->side[attention_stack(at->kind)].rows == 0)
            return fail(pass, MHA_ERR_FLAG, "call.captures[%td]: the %s does not run", n,
                        at->kind == MHA_ATTENTION_ENCODER ? "encoder" : "decoder");
        for (ptrdiff_t m = 0; m < n; m++)
            if (c->captures[m].kind == at->kind && c->captures[m].layer == at->layer)
                return fail(pass, MHA_ERR_FLAG, "call.captures[%td] names an attention twice", n);
    }
    return MHA_OK;
}

/* ---------------------------------------------------------------------- call ----- */

/* Has the call source texts and nothing else? */
static bool only_source(const mha_model *model, const mha_model_call *c)
{
    return model->files.description.kind == MHA_MODEL_ENCODER_DECODER && !c->state && !c->starts &&
           !c->ids && c->source_starts && c->source_ids;
}

mha_status pass_check(model_pass *pass, const mha_model *model, const mha_model_call *call)
{
    *pass = (model_pass){.model = model, .call = call};
    if (call->size != sizeof *call)
        return MHA_ERR_STRUCT;
    if (call->B < 0)
        return fail(pass, MHA_ERR_SHAPE, "call.B is %td", call->B);
    pass->B = call->B;
    if (pass->B == 0)
        return MHA_OK;
    const bool image = model->files.description.kind == MHA_MODEL_IMAGE_ENCODER;
    if (!image && call->pixels)
        return fail(pass, MHA_ERR_FLAG, "call.pixels: the model reads tokens");
    mha_status status = image                      ? check_image(pass)
                        : only_source(model, call) ? MHA_OK
                                                   : check_side(pass, model_last_stack(model),
                                                                call->starts, call->ids, false);
    if (status || (status = check_source(pass)) || (call->state && (status = check_state(pass))) ||
        (status = check_lengths(pass)) || (status = image ? MHA_OK : check_segments(pass)) ||
        (status = check_outputs(pass)))
        return status;
    return check_captures(pass);
}
