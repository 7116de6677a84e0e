/* SPDX-License-Identifier: MIT */
/* One call of the operator, and the options that it shares with layers. */
#include "mhajs.h"

mha_options mhajs_options_read(const mhajs_options *o, ptrdiff_t H, ptrdiff_t L, ptrdiff_t S)
{
    return (mha_options){
        .size = sizeof(mha_options),
        .flags = o->flags,
        .scale = o->scale,
        .softcap = o->softcap,
        .position = (mha_position)o->position,
        .offset = o->offset,
        .window_left = o->window_left,
        .window_right = o->window_right,
        .attend_mask = {o->attend_mask, o->attend_sb, o->attend_sh, o->attend_sl},
        .bias = {o->bias, o->bias_sb, o->bias_sh, o->bias_sl},
        .k_lengths = o->key_lengths,
        .gates = o->gates,
        .lse = {o->lse, H * L, L, 1},
        .weights = mha_out_bhld(o->weights, H, L, S),
        .message = o->message,
        .message_size = (size_t)o->message_size,
    };
}

static mha_view view(const mhajs_attention_call *c, const float *data, ptrdiff_t heads,
                     ptrdiff_t rows, ptrdiff_t width)
{
    return c->side_by_side ? mha_view_blhd(data, heads, rows, width)
                           : mha_view_bhld(data, heads, rows, width);
}

mha_status mhajs_attention(const mhajs_attention_call *c)
{
    const mha_shape shape = {c->B,  c->H,    c->G,    c->L,    c->S,   c->D,
                             c->Dv, MHA_F32, MHA_F32, MHA_F32, MHA_F32};
    const mha_options options = mhajs_options_read(&c->options, c->H, c->L, c->S);
    const mha_view o = view(c, c->o, c->H, c->L, c->Dv);
    return mha_attention(&shape, view(c, c->q, c->H, c->L, c->D), view(c, c->k, c->G, c->S, c->D),
                         view(c, c->v, c->G, c->S, c->Dv), (mha_out){c->o, o.sb, o.sh, o.sl},
                         &options, NULL);
}
