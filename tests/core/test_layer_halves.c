/* SPDX-License-Identifier: MIT */
/*
 * A layer in two halves: projections, attention by the operator and output give the bits of
 * mha_layer_run(), and their backward passes those of mha_layer_backward(), for random layers.
 */
#include "support/layer_backward_case.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

/* What lies between the halves, and gradients of it. */
typedef struct between {
    float *q, *k, *v, *heads, *lse, *d_q, *d_k, *d_v, *d_heads;
    ptrdiff_t q_rows, k_rows, S;
} between;

static float *numbers(ptrdiff_t count)
{
    float *const x = calloc((size_t)count + 1, sizeof *x);
    if (!x)
        abort();
    return x;
}

static between between_new(const mha_layer_call *call, const mha_layer_config *c)
{
    const mha_options *const o = call->options;
    between b = {.S = call->key.data ? call->S : call->L};
    const int64_t *const k_starts = call->key.data ? o->k_starts : o->q_starts;
    b.q_rows = o->q_starts ? (ptrdiff_t)o->q_starts[call->B] : call->B * call->L;
    b.k_rows = k_starts ? (ptrdiff_t)k_starts[call->B] : call->B * b.S;
    b.q = numbers(b.q_rows * c->H * c->D);
    b.k = numbers(b.k_rows * c->G * c->D);
    b.v = numbers(b.k_rows * c->G * c->Dv);
    b.heads = numbers(b.q_rows * c->H * c->Dv);
    b.lse = numbers(b.q_rows * c->H);
    b.d_q = numbers(b.q_rows * c->H * c->D);
    b.d_k = numbers(b.k_rows * c->G * c->D);
    b.d_v = numbers(b.k_rows * c->G * c->Dv);
    b.d_heads = numbers(b.q_rows * c->H * c->Dv);
    return b;
}

static void between_free(between *b)
{
    float *const all[] = {b->q, b->k, b->v, b->heads, b->lse, b->d_q, b->d_k, b->d_v, b->d_heads};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        free(all[n]);
}

/* The operator between the halves, forward. */
static mha_status attend(const mha_layer_call *call, const mha_layer_config *c, const between *b,
                         const mha_gradients *g)
{
    const mha_shape shape = {
        .B = call->B, .H = c->H, .G = c->G, .L = call->L, .S = b->S, .D = c->D, .Dv = c->Dv};
    mha_options options = *call->options;
    options.weights.data = NULL;
    options.statistics = NULL;
    if (!call->key.data)
        options.k_starts = options.q_starts;
    options.lse = options.q_starts ? (mha_out){b->lse, 0, b->q_rows, 1}
                                   : mha_out_bhld(b->lse, c->H, call->L, 1);
    const mha_view q = mha_view_blhd(b->q, c->H, call->L, c->D);
    const mha_view k = mha_view_blhd(b->k, c->G, b->S, c->D);
    const mha_view v = mha_view_blhd(b->v, c->G, b->S, c->Dv);
    if (g)
        return mha_attention_backward(&shape, q, k, v,
                                      mha_view_blhd(b->heads, c->H, call->L, c->Dv), &options, g,
                                      NULL, 0, NULL);
    return mha_attention(&shape, q, k, v, mha_out_blhd(b->heads, c->H, call->L, c->Dv), &options,
                         NULL);
}

static bool in_halves(const layer_back *x)
{
    const layer_spec *const s = &x->c->spec;
    return !(s->parts & LAYER_EXTRA) && !(s->config.flags & MHA_LAYER_ZERO_ATTN);
}

/* The whole forward pass in halves into the same output, which then has the same bytes. */
static void forward(const layer_back *x, mha_layer_call *call, const mha_layer_config *c,
                    const between *b, mha_pool *pool)
{
    const mha_layer *const layer = x->c->layer;
    call->captured_q = mha_out_blhd(b->q, c->H, call->L, c->D);
    call->captured_k = mha_out_blhd(b->k, c->G, b->S, c->D);
    call->captured_v = mha_out_blhd(b->v, c->G, b->S, c->Dv);
    CHECK(mha_layer_project(layer, call, NULL, 0, pool) == MHA_OK, "%s: project",
          layer_case_name(x->c));
    CHECK(attend(call, c, b, NULL) == MHA_OK, "%s: attend", layer_case_name(x->c));
    CHECK(mha_layer_output(layer, call, mha_view_blhd(b->heads, c->H, call->L, c->Dv), NULL, 0,
                           pool) == MHA_OK,
          "%s: output", layer_case_name(x->c));
}

static void backward(const layer_back *x, const mha_layer_call *call, const mha_layer_config *c,
                     const between *b, mha_pool *pool)
{
    const mha_layer *const layer = x->c->layer;
    const mha_layer_gradients *const g = &x->call;
    const mha_view heads = mha_view_blhd(b->heads, c->H, call->L, c->Dv);
    CHECK(mha_layer_output_backward(layer, call, heads,
                                    mha_out_blhd(b->d_heads, c->H, call->L, c->Dv), g, NULL, 0,
                                    pool) == MHA_OK,
          "%s: output, backward", layer_case_name(x->c));
    const mha_gradients inner = {.size = sizeof inner,
                                 .d_o = mha_view_blhd(b->d_heads, c->H, call->L, c->Dv),
                                 .d_lse = g->d_lse,
                                 .d_q = mha_out_blhd(b->d_q, c->H, call->L, c->D),
                                 .d_k = mha_out_blhd(b->d_k, c->G, b->S, c->D),
                                 .d_v = mha_out_blhd(b->d_v, c->G, b->S, c->Dv),
                                 .d_bias = g->d_bias,
                                 .d_add_mask = g->d_add_mask,
                                 .d_alibi_slopes = g->d_alibi_slopes,
                                 .d_sinks = g->d_sinks,
                                 .d_gates = g->d_gates};
    CHECK(attend(call, c, b, &inner) == MHA_OK, "%s: attend, backward", layer_case_name(x->c));
    CHECK(mha_layer_project_backward(layer, call, mha_view_blhd(b->d_q, c->H, call->L, c->D),
                                     mha_view_blhd(b->d_k, c->G, b->S, c->D),
                                     mha_view_blhd(b->d_v, c->G, b->S, c->Dv), g, NULL, 0,
                                     pool) == MHA_OK,
          "%s: project, backward", layer_case_name(x->c));
}

/* Changes the first row of the output, if it is one that is computed. */
static void spoil_output(const mha_layer_call *call)
{
    const mha_options *const o = call->options;
    const bool some = call->B > 0 && call->L > 0 &&
                      (o->q_starts ? o->q_starts[1] > o->q_starts[0] : true) &&
                      (o->q_lengths ? o->q_lengths[0] > 0 : true);
    const ptrdiff_t at = o->q_starts && some ? (ptrdiff_t)o->q_starts[0] * call->output.sl : 0;
    if (some)
        ((unsigned char *)call->output.data)[at * (ptrdiff_t)mha_dtype_size(call->output_type)] ^=
            0x55;
}

static void halves_make_the_whole(void)
{
    const uint64_t base = test_seed(182000);
    mha_pool *pool;
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    int halves = 0;
    for (int64_t n = 0; n < test_effort(150); n++) {
        const layer_spec spec = layer_back_spec(base + (uint64_t)n);
        layer_back *const x = layer_back_new(&spec);
        size_t size, again;
        if (!in_halves(x)) {
            layer_back_free(x);
            continue;
        }
        halves++;
        layer_back_forward(x, NULL);
        layer_back_run(x, true, NULL);
        unsigned char *const want = layer_back_bytes(x, &size);
        const mha_layer_config c = mha_layer_get_config(x->c->layer);
        mha_layer_call call = x->c->p.call;
        const size_t tape_size = mha_layer_tape_size(x->c->layer, &call);
        void *const tape = aligned_alloc(64, (tape_size + 64) / 64 * 64);
        call.tape = tape;
        call.tape_size = tape_size;
        between b = between_new(&call, &c);
        snapshot output = snapshot_of(x->c->memory);
        spoil_output(&call);
        forward(x, &call, &c, &b, n % 2 ? pool : NULL);
        CHECK(snapshot_same(&output, x->c->memory), "%s: another output", layer_case_name(x->c));
        layer_back_clear(x);
        backward(x, &call, &c, &b, n % 2 ? pool : NULL);
        unsigned char *const got = layer_back_bytes(x, &again);
        CHECK(size == again && memcmp(got, want, size) == 0, "%s: other gradients",
              layer_case_name(x->c));
        snapshot_free(&output);
        free(want);
        free(got);
        free(tape);
        between_free(&b);
        layer_back_free(x);
    }
    CHECK(halves > test_effort(50) / 2, "only %d layers", halves);
    mha_pool_free(pool);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(halves_make_the_whole);
    return test_end();
}
