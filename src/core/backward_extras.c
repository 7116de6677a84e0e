/* SPDX-License-Identifier: MIT */
/*
 * The backward pass of the extra key and value that a layer puts after all others: row by row and
 * in plain C, since there is only one of them. The key of zeros (MHA_LAYER_ZERO_ATTN) has no
 * gradient and contributes none.
 */
#include "core/backward.h"

#include <math.h>
#include <string.h>

typedef struct extra_key {
    const float *k, *v;        /* of the group */
    double *d_k, *d_v;         /* sums of the batch */
    float factor, drop_factor; /* gate and dropout together; dropout alone */
} extra_key;

static void add_to_query(const mhai_backward *pass, const mhai_worker *worker, const mhai_row *row,
                         const extra_key *extra, double d_score)
{
    const mha_view view = mhai_as_view(pass->gradients.d_q);
    if (!view.data)
        return;
    float *const d_q = (float *)pass->gradients.d_q.data +
                       mhai_q_index(&pass->call, &worker->batch, &view, row->h, row->i);
    for (ptrdiff_t c = 0; c < pass->call.shape.D; c++)
        d_q[c] += (float)(d_score * pass->call.scale * (double)extra->k[c]);
}

static void add_row(const mhai_backward *pass, const mhai_back_scratch *scratch,
                    const mhai_worker *worker, int r, const extra_key *extra)
{
    const mha_shape *const s = &pass->call.shape;
    const mhai_row *const row = &scratch->tile.rows[r];
    const float *const q = scratch->tile.q + r * pass->plan.ldq; /* scaled */
    const float *const d_o = scratch->d_o + r * pass->plan.ldo;
    const float score = mhai_extra_score(worker, r, 0, true), cap = pass->call.options.softcap;
    const ptrdiff_t b = worker->batch.b;
    const double weight =
        exp((double)score - (double)mhai_back_lse(pass, &worker->batch, row->h, row->i));
    const double d_weight = mhai_back_dot(d_o, extra->v, s->Dv);
    double d_score = weight * (d_weight * (double)extra->factor -
                               (double)mhai_back_delta(pass, b, row->h)[row->i]);
    if (cap > 0.0f)
        d_score *= 1.0 - (double)(score / cap) * (double)(score / cap);
    pass->sums[MHAI_SUMS * (b * s->H + row->h) + MHAI_GATE] +=
        weight * d_weight * (double)extra->drop_factor;
    add_to_query(pass, worker, row, extra, d_score);
    for (ptrdiff_t c = 0; c < s->D; c++)
        extra->d_k[c] += d_score * (double)q[c];
    for (ptrdiff_t c = 0; c < s->Dv; c++)
        extra->d_v[c] += weight * (double)extra->factor * (double)d_o[c];
}

static void run_tile(const mhai_backward *pass, const mhai_back_scratch *scratch,
                     mhai_worker *worker, extra_key *extra, ptrdiff_t h, ptrdiff_t i)
{
    const ptrdiff_t b = worker->batch.b;
    const mhak_drop drop = mhai_drop_of(&pass->call, b, h);
    worker->count = (int)mhai_min(MHAI_BACK_ROWS, worker->batch.queries - i);
    for (int r = 0; r < worker->count; r++)
        scratch->tile.rows[r] = (mhai_row){.h = h, .i = i + r};
    mhai_backward_load(pass, scratch, worker);
    for (int r = 0; r < worker->count; r++) {
        const bool keeps = mhai_call_keeps(&pass->call, &drop, i + r, pass->call.shape.S);
        extra->drop_factor = keeps ? mhai_drop_factor(drop.threshold) : 0.0f;
        extra->factor = extra->drop_factor * mhai_gate(&pass->call, b, h);
        add_row(pass, scratch, worker, r, extra);
    }
}

void mhai_backward_extras(const mhai_backward *pass, const mhai_back_scratch *scratch,
                          mhai_worker *worker)
{
    const mha_shape *const s = &pass->call.shape;
    const ptrdiff_t group = s->H / s->G, g = worker->g, width = s->D + s->Dv;
    double *const sums = pass->extras + (worker->batch.b * s->G + g) * width;
    extra_key extra = {.k = pass->call.extra.k + g * s->D,
                       .v = pass->call.extra.v + g * s->Dv,
                       .d_k = sums,
                       .d_v = sums + s->D};
    memset(sums, 0, sizeof(double) * (size_t)width);
    for (ptrdiff_t h = g * group; h < (g + 1) * group; h++)
        for (ptrdiff_t i = 0; i < worker->batch.queries; i += MHAI_BACK_ROWS)
            run_tile(pass, scratch, worker, &extra, h, i);
}
