/* SPDX-License-Identifier: MIT */
/* The tensors of a problem (spread_parts.h). */
#include "mpi/spread_parts.h"

#include <stdlib.h>
#include <string.h>

void *spread_block(size_t bytes)
{
    void *const at = calloc(1, bytes + 64);
    if (!at)
        abort();
    return at;
}

#define AT(field) offsetof(spread_data, field)

char **spread_at(const spread_data *d, const spread_tensor *t)
{
    return (char **)(uintptr_t)((const char *)d + t->at);
}

int spread_tensors(const spread *s, spread_tensor t[SPREAD_TENSORS])
{
    const mha_shape *const p = &s->shape;
    const ptrdiff_t H = p->H, G = p->G, rows = (ptrdiff_t)sizeof(mha_row_statistics);
    const ptrdiff_t keys = SPREAD_TOP * (ptrdiff_t)sizeof(int64_t);
    const bool batches = s->bias_batches;
    const spread_tensor all[SPREAD_TENSORS] = {
        {"q", AT(q), false, false, false, false, p->q_type, H, p->D, true},
        {"k", AT(k), true, false, false, false, p->k_type, G, p->D, true},
        {"v", AT(v), true, false, false, false, p->v_type, G, p->Dv, true},
        {"o", AT(o), false, true, false, false, p->o_type, H, p->Dv, true},
        {"lse", AT(lse), false, true, false, false, p->q_type == MHA_F64 ? MHA_F64 : MHA_F32, H, 1,
         true},
        {"d_o", AT(d_o), false, false, true, false, s->gradients.d_o_type, H, p->Dv, true},
        {"d_lse", AT(d_lse), false, false, true, false, MHA_F32, H, 1, true},
        {"attend", AT(attend), false, false, false, true, MHA_I8, 1, p->S, true},
        {"ignore", AT(ignore), false, false, false, true, MHA_I8, H, p->S, s->packed},
        {"add", AT(add), false, false, false, true, s->options.add_mask_type, s->add_heads ? H : 1,
         p->S, true},
        {"bias", AT(bias), false, false, false, true, s->options.bias_type, H, p->S, batches},
        {"documents", AT(documents), false, false, false, false, MHA_F32, 1, 1, true},
        {"d_q", AT(d_q), false, true, true, false, MHA_F32, H, p->D, true},
        {"d_k", AT(d_k), true, true, true, false, MHA_F32, G, p->D, true},
        {"d_v", AT(d_v), true, true, true, false, MHA_F32, G, p->Dv, true},
        {"d_add", AT(d_add), false, true, true, true, MHA_F32, H, p->S, true},
        {"d_bias", AT(d_bias), false, true, true, true, MHA_F32, H, p->S, batches},
        {"row statistics", AT(rows), false, true, false, true, MHA_I8, H, rows, true},
        {"top_keys", AT(top_keys), false, true, false, true, MHA_I8, H, keys, true},
        {"top_weights", AT(top_weights), false, true, false, true, MHA_F32, H, SPREAD_TOP, true}};
    memcpy(t, all, sizeof all);
    return SPREAD_TENSORS;
}

static bool is_padded(const spread *s, const spread_tensor *t)
{
    return s->packed && t->padded;
}

ptrdiff_t spread_batches(const spread *s, const spread_tensor *t)
{
    return s->packed || !t->batches ? 1 : s->shape.B;
}

static ptrdiff_t rows_of(const spread *s, const spread_data *d, const spread_tensor *t)
{
    return is_padded(s, t) ? s->shape.L : t->keys ? d->S : d->L;
}

size_t spread_bytes(const spread *s, const spread_data *d, const spread_tensor *t)
{
    const ptrdiff_t batches = is_padded(s, t) ? s->shape.B : spread_batches(s, t);
    return (size_t)(batches * t->heads * rows_of(s, d, t) * t->width) * mha_dtype_size(t->type);
}

ptrdiff_t spread_sequence(const spread *s, ptrdiff_t token)
{
    ptrdiff_t b = 0;
    while (token >= s->q_starts[b + 1])
        b++;
    return b;
}

/* The rows of a sequence are counted from the first one that is there. */
static ptrdiff_t row_in_sequence(const spread *s, const spread_data *d, ptrdiff_t row, ptrdiff_t *b)
{
    const bool whole = d == &s->whole;
    *b = spread_sequence(s, whole ? row : s->tokens[0][row]);
    ptrdiff_t first = whole ? s->q_starts[*b] : 0;
    while (!whole && s->tokens[0][first] < s->q_starts[*b])
        first++;
    return row - first;
}

char *spread_row(const spread *s, const spread_data *d, const spread_tensor *t, ptrdiff_t b,
                 ptrdiff_t h, ptrdiff_t row)
{
    if (is_padded(s, t))
        row = row_in_sequence(s, d, row, &b);
    return *spread_at(d, t) + ((b * t->heads + h) * rows_of(s, d, t) + row) * t->width *
                                  (ptrdiff_t)mha_dtype_size(t->type);
}

void spread_results(const spread *s, spread_result r[SPREAD_RESULTS])
{
    const mha_shape *const p = &s->shape;
    const size_t H = (size_t)p->H, all = (size_t)p->B * H, S = (size_t)p->S;
    const spread_result results[SPREAD_RESULTS] = {
        {"d_sinks", AT(d_sinks), true, sizeof(float) * H},
        {"d_alibi_slopes", AT(d_slopes), true, sizeof(float) * H},
        {"d_gates", AT(d_gates), true, sizeof(float) * (s->options.gates_sb ? all : H)},
        {"d_bias of keys", AT(d_bias_keys), true, sizeof(float) * S * (s->bias_batches ? all : H)},
        {"head statistics", AT(head_statistics), false, sizeof(mha_head_statistics) * all},
        {"columns", AT(columns), false, sizeof(float) * all * S}};
    memcpy(r, results, sizeof results);
}

char **spread_result_at(const spread_data *d, const spread_result *r)
{
    return (char **)(uintptr_t)((const char *)d + r->at);
}
