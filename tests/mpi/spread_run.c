/* SPDX-License-Identifier: MIT */
/* Problems for the tests of libmha_mpi: running and comparing them (spread.h). */
#include "mpi/spread_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- calls ----- */

/* A stride of 0 means a shared axis, on a rank without rows too. */
static ptrdiff_t stride_rows(ptrdiff_t rows)
{
    return rows > 0 ? rows : 1;
}

static mha_view view(const char *data, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width)
{
    return mha_view_bhld(data, heads, stride_rows(rows), width);
}

mha_view spread_view(const spread *s, const spread_data *d, char which)
{
    const mha_shape *const p = &s->shape;
    return which == 'q'   ? view(d->q, p->H, d->L, p->D)
           : which == 'k' ? view(d->k, p->G, d->S, p->D)
           : which == 'v' ? view(d->v, p->G, d->S, p->Dv)
                          : view(d->o, p->H, d->L, p->Dv);
}

static mha_out out(void *data, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width)
{
    return mha_out_bhld(data, heads, stride_rows(rows), width);
}

mha_options spread_options(const spread *s, const spread_data *d)
{
    const mha_shape *const p = &s->shape;
    const ptrdiff_t L = stride_rows(s->packed ? p->L : d->L);
    const ptrdiff_t all = stride_rows(s->packed ? p->L : s->whole.L);
    mha_options o = s->options;
    o.lse = out(d->lse, p->H, d->L, 1);
    if (d->attend)
        o.attend_mask = (mha_view){d->attend, L * p->S, 0, p->S};
    /* A mask that all rows share is its first row, which every rank takes from the whole. */
    if (d->attend && !s->attend_rows)
        o.attend_mask = (mha_view){s->whole.attend, all * p->S, 0, 0};
    if (d->ignore)
        o.ignore_mask = (mha_view){d->ignore, s->packed ? p->H * L * p->S : 0, L * p->S, p->S};
    if (d->add && s->add_rows)
        o.add_mask = (mha_view){d->add, (s->add_heads ? p->H : 1) * L * p->S,
                                s->add_heads ? L * p->S : 0, p->S};
    if (d->add && !s->add_rows)
        o.add_mask = (mha_view){s->whole.add, (s->add_heads ? p->H : 1) * all * p->S,
                                s->add_heads ? all * p->S : 0, 0};
    if (d->bias && s->bias_rows)
        o.bias = (mha_view){d->bias, s->bias_batches ? p->H * L * p->S : 0, L * p->S, p->S};
    if (d->bias && !s->bias_rows)
        o.bias = (mha_view){s->whole.bias, s->bias_batches ? p->H * all * p->S : 0, all * p->S, 0};
    if (s->statistics)
        o.statistics = &d->statistics;
    if (d->documents) {
        o.q_documents = (const int32_t *)(const void *)d->documents;
        o.q_documents_sb = L;
        o.k_documents = s->k_documents;
        o.k_documents_sb = p->S;
    }
    return o;
}

mha_gradients spread_gradients(const spread *s, const spread_data *d)
{
    const mha_shape *const p = &s->shape;
    mha_gradients g = {.size = sizeof g,
                       .d_o = view(d->d_o, p->H, d->L, p->Dv),
                       .d_o_type = s->gradients.d_o_type,
                       .d_lse = view(d->d_lse, p->H, d->L, 1),
                       .d_q = out(d->d_q, p->H, d->L, p->D),
                       .d_k = out(d->d_k, p->G, d->S, p->D),
                       .d_v = out(d->d_v, p->G, d->S, p->Dv)};
    const ptrdiff_t L = stride_rows(s->packed ? p->L : d->L);
    if (d->d_add)
        g.d_add_mask = out(d->d_add, p->H, L, p->S);
    if (d->d_bias)
        g.d_bias = out(d->d_bias, p->H, L, p->S);
    g.d_bias.sb = s->bias_batches ? g.d_bias.sb : 0;
    if (d->bias && !s->bias_rows && s->sums && !s->only_sinks)
        g.d_bias = (mha_out){d->d_bias_keys, s->bias_batches ? p->H * p->S : 0, p->S, 0};
    if (s->options.sinks && s->sums)
        g.d_sinks = d->d_sinks;
    if (s->options.alibi_slopes && s->sums && !s->only_sinks)
        g.d_alibi_slopes = d->d_slopes;
    if (s->options.gates && s->sums && !s->only_sinks)
        g.d_gates = d->d_gates;
    return g;
}

mha_status spread_run_alone(spread *s, bool backward)
{
    const spread_data *const d = &s->whole;
    const mha_options o = spread_options(s, d);
    const mha_out to = out(d->o, s->shape.H, d->L, s->shape.Dv);
    mha_status status = mha_attention(&s->shape, spread_view(s, d, 'q'), spread_view(s, d, 'k'),
                                      spread_view(s, d, 'v'), to, &o, NULL);
    const mha_gradients g = spread_gradients(s, d);
    if (status || !backward || !spread_goes_back(s))
        return status;
    return mha_attention_backward(&s->shape, spread_view(s, d, 'q'), spread_view(s, d, 'k'),
                                  spread_view(s, d, 'v'), spread_view(s, d, 'o'), &o, &g, NULL, 0,
                                  NULL);
}

void spread_clear(spread *s)
{
    spread_tensor t[SPREAD_TENSORS];
    for (int n = spread_tensors(s, t); n-- > 0;)
        if (t[n].out && *spread_at(&s->local, &t[n]))
            memset(*spread_at(&s->local, &t[n]), SPREAD_PATTERN, spread_bytes(s, &s->local, &t[n]));
    spread_result r[SPREAD_RESULTS];
    spread_results(s, r);
    for (int n = 0; n < SPREAD_RESULTS; n++)
        memset(*spread_result_at(&s->local, &r[n]), SPREAD_PATTERN, r[n].bytes);
}

bool spread_is_clear(const spread *s)
{
    spread_tensor t[SPREAD_TENSORS];
    for (int n = spread_tensors(s, t); n-- > 0;)
        for (size_t x = 0;
             t[n].out && *spread_at(&s->local, &t[n]) && x < spread_bytes(s, &s->local, &t[n]); x++)
            if ((unsigned char)(*spread_at(&s->local, &t[n]))[x] != SPREAD_PATTERN)
                return false;
    return true;
}

mha_status spread_run(spread *s, const mha_mpi_plan *plan, bool backward, mha_pool *pool)
{
    return spread_run_on(s, &s->local, plan, backward, pool);
}

mha_status spread_run_on(spread *s, const spread_data *d, const mha_mpi_plan *plan, bool backward,
                         mha_pool *pool)
{
    mha_options o = spread_options(s, d);
    o.message = s->message;
    o.message_size = sizeof s->message;
    const mha_out to = out(d->o, s->shape.H, d->L, s->shape.Dv);
    const mha_gradients g = spread_gradients(s, d);
    const size_t size = mha_mpi_plan_work_size(plan, &o, mha_pool_threads(pool), backward);
    void *const work = spread_block(size);
    const mha_status status =
        backward ? mha_mpi_plan_backward(plan, spread_view(s, d, 'q'), spread_view(s, d, 'k'),
                                         spread_view(s, d, 'v'), spread_view(s, d, 'o'), &o, &g,
                                         work, size, pool)
                 : mha_mpi_plan_run(plan, spread_view(s, d, 'q'), spread_view(s, d, 'k'),
                                    spread_view(s, d, 'v'), to, &o, work, size, pool);
    if (status != MHA_ERR_TIMEOUT && status != MHA_ERR_MPI)
        free(work);
    return status;
}

/* --------------------------------------------------------------- comparing ----- */

/* Is this row one that a call writes? Rows past a query length are left alone by a run. */
static bool is_written(const spread *s, const spread_tensor *t, ptrdiff_t b, ptrdiff_t token)
{
    if (t->back || !s->options.q_lengths)
        return true;
    if (!s->packed)
        return token < s->q_lengths[b];
    b = spread_sequence(s, token);
    return token - s->q_starts[b] < s->q_lengths[b];
}

/* Is a row of bytes as spread_clear() has left it? */
static bool is_untouched(const char *row, size_t bytes)
{
    for (size_t n = 0; n < bytes; n++)
        if ((unsigned char)row[n] != SPREAD_PATTERN)
            return false;
    return true;
}

/* Results that were not requested are untouched. */
static const char *result_that_differs(const spread *s, bool backward)
{
    const mha_gradients g = spread_gradients(s, &s->local);
    const bool keys = g.d_bias.data && (float *)g.d_bias.data == s->local.d_bias_keys;
    const bool statistics = s->statistics && s->shape.L > 0; /* none without rows */
    const bool wanted[SPREAD_RESULTS] = {g.d_sinks != NULL, g.d_alibi_slopes != NULL,
                                         g.d_gates != NULL, keys,
                                         statistics,        statistics};
    spread_result r[SPREAD_RESULTS];
    spread_results(s, r);
    for (int n = 0; n < SPREAD_RESULTS; n++) {
        const char *const got = *spread_result_at(&s->local, &r[n]);
        if (r[n].back == backward &&
            (wanted[n] ? memcmp(got, *spread_result_at(&s->whole, &r[n]), r[n].bytes) != 0
                       : !is_untouched(got, r[n].bytes)))
            return r[n].name;
    }
    return NULL;
}

const char *spread_differs(const spread *s, bool backward)
{
    spread_tensor t[SPREAD_TENSORS];
    const int count = spread_tensors(s, t);
    for (int n = 0; n < count; n++) {
        if (!t[n].out || t[n].back != backward || !*spread_at(&s->local, &t[n]))
            continue;
        const ptrdiff_t rows = t[n].keys ? s->local.S : s->local.L;
        for (ptrdiff_t x = 0; x < spread_batches(s, &t[n]) * t[n].heads * rows; x++) {
            const ptrdiff_t row = x % rows, h = x / rows % t[n].heads, b = x / rows / t[n].heads;
            const ptrdiff_t token = s->tokens[t[n].keys][row];
            const char *const got = spread_row(s, &s->local, &t[n], b, h, row);
            const size_t bytes = (size_t)t[n].width * mha_dtype_size(t[n].type);
            if (is_written(s, &t[n], b, token)
                    ? memcmp(got, spread_row(s, &s->whole, &t[n], b, h, token), bytes) != 0
                    : !is_untouched(got, bytes))
                return t[n].name;
        }
    }
    return result_that_differs(s, backward);
}

static double number(const char *from, mha_dtype type, ptrdiff_t n)
{
    float x = 0.0f;
    if (type == MHA_F64)
        return ((const double *)(const void *)from)[n];
    mha_row_to_f32(type, from + n * (ptrdiff_t)mha_dtype_size(type), 1, &x);
    return (double)x;
}

double spread_distance(const spread *s, bool backward)
{
    spread_tensor t[SPREAD_TENSORS];
    double worst = 0.0;
    const int count = spread_tensors(s, t);
    for (int n = 0; n < count; n++) {
        const ptrdiff_t rows = t[n].keys ? s->local.S : s->local.L;
        double most = 0.0, apart = 0.0;
        if (!t[n].out || t[n].back != backward || !*spread_at(&s->local, &t[n]))
            continue;
        for (ptrdiff_t x = 0; x < spread_batches(s, &t[n]) * t[n].heads * rows; x++) {
            const ptrdiff_t row = x % rows, h = x / rows % t[n].heads, b = x / rows / t[n].heads;
            const ptrdiff_t token = s->tokens[t[n].keys][row];
            for (ptrdiff_t c = 0; is_written(s, &t[n], b, token) && c < t[n].width; c++) {
                const double got = number(spread_row(s, &s->local, &t[n], b, h, row), t[n].type, c);
                const double want =
                    number(spread_row(s, &s->whole, &t[n], b, h, token), t[n].type, c);
                if (got == want || (isnan(got) && isnan(want)))
                    continue;
                most = fmax(most, fabs(want));
                apart = fmax(apart, isfinite(got) ? fabs(got - want) : (double)INFINITY);
            }
        }
        worst = fmax(worst, apart / (most + 1e-3));
    }
    double most = 0.0, apart = 0.0;
    const float *const sinks = backward ? spread_gradients(s, &s->local).d_sinks : NULL;
    for (ptrdiff_t h = 0; sinks && h < s->shape.H; h++) {
        most = fmax(most, fabs((double)s->whole.d_sinks[h]));
        apart = fmax(apart, fabs((double)sinks[h] - (double)s->whole.d_sinks[h]));
    }
    return fmax(worst, apart / (most + 1e-1));
}
