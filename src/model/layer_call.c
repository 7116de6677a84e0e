/* SPDX-License-Identifier: MIT */
/* The call of one attention of a pass: its options, heads, captures and cache. */
#include "model/forward.h"

const mha_capture *pass_capture(const model_pass *pass, mha_attention_kind kind, int layer)
{
    const mha_model_call *const c = pass->call;
    for (ptrdiff_t n = 0; n < c->capture_count; n++)
        if (c->captures[n].kind == kind && c->captures[n].layer == layer)
            return &c->captures[n];
    return NULL;
}

static void add_heads(const mha_head_settings *heads, mha_attention_kind kind,
                      const model_attention *attention, mha_options *o)
{
    if (heads->gates[kind])
        o->gates = heads->gates[kind] + attention->heads_before;
    if (heads->modes[kind])
        o->head_modes = heads->modes[kind] + attention->heads_before;
    if (heads->means[kind])
        o->head_means = heads->means[kind] +
                        attention->heads_before * mha_layer_get_config(attention->layer).Dv;
}

static void add_capture(const mha_capture *capture, attention_call *to)
{
    mha_options *const o = &to->options;
    o->weights = capture->weights;
    o->weights_heads = capture->weights_heads;
    o->weights_head_count = capture->weights_head_count;
    o->weights_rows = capture->weights_rows;
    o->weights_row_count = capture->weights_row_count;
    o->statistics = capture->statistics;
    to->call.captured_q = capture->q;
    to->call.captured_k = capture->k;
    to->call.captured_v = capture->v;
    to->call.captured_heads = capture->heads;
}

static void add_relative(const model_pass *pass, int stack, const model_attention *attention,
                         mha_options *o)
{
    const ptrdiff_t width = relative_width(pass, stack);
    o->bias = (mha_view){pass->relative[stack] + pass->side[stack].longest - 1,
                         pass->side[stack].past ? attention->heads * width : 0, width, -1};
    o->bias_type = MHA_F32;
}

/* Keys of cross-attention: the encoder's output of this call, or what the state has of it. */
static void add_source(const model_pass *pass, int layer, attention_call *to)
{
    const mha_state *const state = pass->call->state;
    if (state) {
        const ptrdiff_t step = pass->cross.longest * pass->model->files.description.width;
        to->call.cache = state_cross(state, layer);
        to->call.cache_use = MHA_CACHE_RECALL;
        to->call.sequences = pass->cross.sequences;
        to->call.B = pass->cross.B;
        to->call.L = pass->cross.longest;
        to->call.query.sb = to->call.output.sb = step;
        to->options.q_starts = pass->cross.starts;
        return;
    }
    const pass_rows *const source = &pass->side[STACK_ENCODER];
    to->call.S = source->longest;
    to->call.key = (mha_view){pass->memory, 0, 0, pass->model->files.description.width};
    to->options.k_starts = source->starts;
}

void layer_call_fill(const model_pass *pass, mha_attention_kind kind, int layer, attention_call *to)
{
    const int stack = attention_stack(kind);
    const model_attention *const attention = model_attention_at(pass->model, kind, layer);
    const pass_rows *const side = &pass->side[stack];
    const mha_model_call *const c = pass->call;
    const ptrdiff_t width = pass->model->files.description.width;
    to->options = (mha_options){.size = sizeof to->options,
                                .flags = attention->flags,
                                .scale = attention->scale,
                                .softcap = attention->softcap,
                                .window_left = attention->window_left,
                                .window_right = attention->window_right,
                                .q_starts = side->starts,
                                .message = c->message,
                                .message_size = c->message_size};
    to->call = (mha_layer_call){.size = sizeof to->call,
                                .B = pass->B,
                                .L = side->longest,
                                .query = {pass->normed, side->longest * width, 0, width},
                                .output = {pass->part, side->longest * width, 0, width}};
    if (kind == MHA_ATTENTION_CROSS) {
        add_source(pass, layer, to);
    } else {
        if (kind == MHA_ATTENTION_DECODER && c->state) {
            to->call.cache = state_self(c->state, layer);
            to->call.sequences = c->sequences;
        }
        if (pass->model->stack[stack].relative)
            add_relative(pass, stack, attention, &to->options);
    }
    if (c->source_ignored && kind != MHA_ATTENTION_DECODER)
        to->options.ignore_mask =
            (mha_view){pass->ignored, pass->side[STACK_ENCODER].longest, 0, 0};
    const bool own = kind != MHA_ATTENTION_CROSS && stack == model_last_stack(pass->model);
    if (own && pass->changed && pass->changed->ignored)
        to->options.ignore_mask = (mha_view){pass->changed->ignored, 0, 0, 0};
    if (c->heads)
        add_heads(c->heads, kind, attention, &to->options);
    const mha_capture *const capture = pass_capture(pass, kind, layer);
    if (capture)
        add_capture(capture, to);
    to->call.options = &to->options;
}
