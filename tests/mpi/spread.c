/* SPDX-License-Identifier: MIT */
/* Problems for the tests of libmha_mpi (spread.h). */
#include "mpi/spread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xa5 };

static void *block(size_t bytes)
{
    void *const at = calloc(1, bytes + 64);
    if (!at)
        abort();
    return at;
}

/* Numbers of moderate size in any type. */
static void fill(rng *r, void *to, mha_dtype type, ptrdiff_t count)
{
    for (ptrdiff_t n = 0; n < count; n++) {
        const uint64_t bits = rng_next(r);
        const float x = (float)rng_normal(r);
        uint32_t word;
        memcpy(&word, &x, sizeof word);
        if (type == MHA_F32)
            ((float *)to)[n] = x;
        else if (type == MHA_BF16)
            ((uint16_t *)to)[n] = (uint16_t)(word >> 16);
        else
            ((uint16_t *)to)[n] =
                (uint16_t)((bits & 0x8000u) | (12u + bits % 4) << 10 | (bits >> 20 & 0x3ffu));
    }
}

/* ----------------------------------------------------------------- tensors ----- */

/* The tensors that have rows. */
typedef struct row_tensor {
    const char *name;
    size_t at;      /* in spread_data */
    bool keys;      /* rows of keys; else of queries */
    bool out, back; /* written; of the backward pass */
    mha_dtype type;
    ptrdiff_t heads, width;
    bool batches; /* false: shared by all */
} row_tensor;

enum { ROW_TENSORS = 17 };

#define AT(field) offsetof(spread_data, field)

static char **at(const spread_data *d, const row_tensor *t)
{
    return (char **)(uintptr_t)((const char *)d + t->at);
}

static int list_tensors(const spread *s, row_tensor t[ROW_TENSORS])
{
    const mha_shape *const p = &s->shape;
    const ptrdiff_t H = p->H, G = p->G;
    const row_tensor all[ROW_TENSORS] = {
        {"q", AT(q), false, false, false, p->q_type, H, p->D, true},
        {"k", AT(k), true, false, false, p->k_type, G, p->D, true},
        {"v", AT(v), true, false, false, p->v_type, G, p->Dv, true},
        {"o", AT(o), false, true, false, p->o_type, H, p->Dv, true},
        {"lse", AT(lse), false, true, false, MHA_F32, H, 1, true},
        {"d_o", AT(d_o), false, false, true, s->gradients.d_o_type, H, p->Dv, true},
        {"d_lse", AT(d_lse), false, false, true, MHA_F32, H, 1, true},
        {"attend", AT(attend), false, false, false, MHA_I8, 1, p->S, true},
        {"ignore", AT(ignore), false, false, false, MHA_I8, H, p->S, false},
        {"add", AT(add), false, false, false, s->options.add_mask_type, s->add_heads ? H : 1, p->S,
         true},
        {"bias", AT(bias), false, false, false, s->options.bias_type, H, p->S, true},
        {"documents", AT(documents), false, false, false, MHA_F32, 1, 1, true},
        {"d_q", AT(d_q), false, true, true, MHA_F32, H, p->D, true},
        {"d_k", AT(d_k), true, true, true, MHA_F32, G, p->D, true},
        {"d_v", AT(d_v), true, true, true, MHA_F32, G, p->Dv, true},
        {"d_add", AT(d_add), false, true, true, MHA_F32, H, p->S, true},
        {"d_bias", AT(d_bias), false, true, true, MHA_F32, H, p->S, true}};
    memcpy(t, all, sizeof all);
    return ROW_TENSORS;
}

static ptrdiff_t batches_of(const spread *s, const row_tensor *t)
{
    return s->packed || !t->batches ? 1 : s->shape.B;
}

static size_t bytes_of(const spread *s, const spread_data *d, const row_tensor *t)
{
    return (size_t)(batches_of(s, t) * t->heads * (t->keys ? d->S : d->L) * t->width) *
           mha_dtype_size(t->type);
}

/* Which of the tensors the problem has, given that the whole has it. */
static void allocate(const spread *s, spread_data *d, const spread_data *like)
{
    row_tensor t[ROW_TENSORS];
    for (int n = list_tensors(s, t); n-- > 0;)
        if (!like || *at(like, &t[n]))
            *at(d, &t[n]) = block(bytes_of(s, d, &t[n]));
}

static void free_data(const spread *s, spread_data *d)
{
    row_tensor t[ROW_TENSORS];
    for (int n = list_tensors(s, t); n-- > 0;)
        free(*at(d, &t[n]));
    free(d->d_sinks);
    free(d->d_slopes);
    free(d->d_gates);
    memset(d, 0, sizeof *d);
}

/* Row `row` of a batch and head. */
static char *row_at(const spread *s, const spread_data *d, const row_tensor *t, ptrdiff_t b,
                    ptrdiff_t h, ptrdiff_t row)
{
    const ptrdiff_t rows = t->keys ? d->S : d->L;
    (void)s;
    return *at(d, t) +
           ((b * t->heads + h) * rows + row) * t->width * (ptrdiff_t)mha_dtype_size(t->type);
}

/* ------------------------------------------------------------------ drawing ----- */

static void draw_lists(spread *s, rng *r, unsigned has)
{
    mha_shape *const p = &s->shape;
    s->packed = (has & SPREAD_PACKED) && rng_chance(r, 25);
    for (ptrdiff_t b = 0; b < p->B; b++) {
        const ptrdiff_t rows = s->packed ? rng_between(r, 0, p->L) : p->L;
        const ptrdiff_t keys = s->packed ? rng_between(r, 0, p->S) : p->S;
        s->q_starts[b + 1] = s->q_starts[b] + rows;
        s->k_starts[b + 1] = s->k_starts[b] + keys;
        s->q_lengths[b] = rng_between(r, 0, rows);
        s->k_lengths[b] = rng_between(r, 0, keys);
        s->offsets[b] = rng_between(r, -3, p->S);
    }
    s->q_tokens = s->packed ? s->q_starts[p->B] : p->L;
    s->k_tokens = s->packed ? s->k_starts[p->B] : p->S;
    if (s->packed) {
        s->options.q_starts = s->q_starts;
        s->options.k_starts = s->k_starts;
    }
    if ((has & SPREAD_LENGTHS) && rng_chance(r, 25))
        s->options.q_lengths = s->q_lengths;
    if ((has & SPREAD_LENGTHS) && rng_chance(r, 25))
        s->options.k_lengths = s->k_lengths;
}

static void draw_position(spread *s, rng *r)
{
    mha_options *const o = &s->options;
    if (rng_chance(r, 60))
        o->flags |= MHA_CAUSAL;
    if (rng_chance(r, 25)) {
        o->flags |= MHA_WINDOW;
        o->window_left = rng_between(r, -1, 40);
        o->window_right = rng_between(r, -1, 10);
    }
    switch (rng_below(r, 4)) {
    case 0:
        o->position = MHA_POSITION_TOP_LEFT;
        break;
    case 1:
        o->position = MHA_POSITION_BOTTOM_RIGHT;
        break;
    default:
        o->position = MHA_POSITION_OFFSET;
        o->offset = s->shape.S - s->shape.L;
        if (rng_chance(r, 30))
            o->offsets = s->offsets;
    }
}

static void draw_heads(spread *s, rng *r)
{
    for (int h = 0; h < 64; h++) {
        s->sinks[h] = (float)rng_normal(r);
        s->slopes[h] = (float)rng_unit(r);
        s->gates[h] = rng_chance(r, 10) ? 0.0f : (float)rng_normal(r);
    }
    if (rng_chance(r, 30))
        s->options.sinks = s->sinks;
    if (rng_chance(r, 30))
        s->options.alibi_slopes = s->slopes;
    if (rng_chance(r, 30))
        s->options.gates = s->gates;
}

/* Which masks there are is drawn here; their rows exist or they are shared by all rows. */
static void draw_masks(spread *s, rng *r, unsigned has)
{
    spread_data *const w = &s->whole;
    row_tensor t[ROW_TENSORS];
    list_tensors(s, t);
    const bool masks = (has & SPREAD_MASKS) && !s->packed;
    const bool there[] = {masks && rng_chance(r, 25), masks && rng_chance(r, 15),
                          masks && rng_chance(r, 25), masks && rng_chance(r, 25),
                          (has & SPREAD_DOCUMENTS) && rng_chance(r, 20)};
    char **const blocks[] = {&w->attend, &w->ignore, &w->add, &w->bias, &w->documents};
    for (int n = 0; n < 5; n++) {
        const row_tensor *const mask = &t[7 + n];
        const ptrdiff_t count = (ptrdiff_t)(bytes_of(s, w, mask) / mha_dtype_size(mask->type));
        if (!there[n]) {
            free(*blocks[n]);
            *blocks[n] = NULL;
        } else if (n < 2) {
            for (ptrdiff_t c = 0; c < count; c++)
                (*blocks[n])[c] = (char)(rng_chance(r, 70) == (n == 0));
        } else if (n < 4) {
            fill(r, *blocks[n], mask->type, count);
        } else {
            for (ptrdiff_t c = 0; c < count; c++)
                ((int32_t *)(void *)*blocks[n])[c] = (int32_t)rng_below(r, 2);
        }
    }
    if (!there[4])
        return;
    const ptrdiff_t keys = s->packed ? s->k_tokens : s->shape.B * s->shape.S;
    s->k_documents = block(sizeof(int32_t) * (size_t)keys);
    for (ptrdiff_t c = 0; c < keys; c++)
        s->k_documents[c] = (int32_t)rng_below(r, 2);
}

static mha_dtype draw_type(rng *r, unsigned has)
{
    return (has & SPREAD_TYPES) && rng_chance(r, 40) ? (rng_chance(r, 50) ? MHA_F16 : MHA_BF16)
                                                     : MHA_F32;
}

static void draw_shape(spread *s, rng *r, unsigned has, ptrdiff_t most)
{
    mha_shape *const p = &s->shape;
    const ptrdiff_t R = rng_between(r, 1, 3);
    p->B = rng_between(r, 1, 3);
    p->G = rng_between(r, 1, 6);
    p->H = p->G * R;
    p->L = rng_chance(r, 6) ? rng_below(r, 4) : rng_between(r, 1, most);
    p->S = rng_chance(r, 50) ? p->L : rng_chance(r, 6) ? rng_below(r, 4) : rng_between(r, 1, most);
    p->D = rng_between(r, 1, 40);
    p->Dv = rng_chance(r, 50) ? p->D : rng_between(r, 1, 40);
    p->q_type = draw_type(r, has);
    p->k_type = draw_type(r, has);
    p->v_type = draw_type(r, has);
    p->o_type = draw_type(r, has);
    s->gradients.d_o_type = draw_type(r, has);
    s->options.add_mask_type = draw_type(r, has);
    s->options.bias_type = draw_type(r, has);
    s->attend_rows = rng_chance(r, 60);
    s->add_rows = rng_chance(r, 60);
    s->add_heads = rng_chance(r, 50);
    s->sums = rng_chance(r, 60);
}

/* --------------------------------------------------------------- this rank ----- */

static void draw_layout(spread *s, rng *r, int side, int ranks)
{
    mha_mpi_layout *const l = side ? &s->keys : &s->queries;
    *l = (mha_mpi_layout){.size = sizeof *l,
                          .split = (mha_mpi_split)rng_below(r, 3),
                          .tokens = side ? s->k_tokens : s->q_tokens};
    if (l->split != MHA_MPI_GIVEN)
        return;
    l->runs = rng_between(r, 1, 20);
    l->starts = s->starts[side];
    l->ranks = s->ranks[side];
    s->starts[side][0] = 0;
    for (ptrdiff_t n = 0; n < l->runs; n++) {
        const int64_t left = l->tokens - s->starts[side][n];
        s->starts[side][n + 1] =
            n + 1 == l->runs ? l->tokens : s->starts[side][n] + rng_below(r, left / 2 + 1);
        s->ranks[side][n] = (int)rng_below(r, ranks);
    }
}

/* This rank's rows of everything. */
static void cut(spread *s)
{
    row_tensor t[ROW_TENSORS];
    const int count = list_tensors(s, t);
    allocate(s, &s->local, &s->whole);
    for (int n = 0; n < count; n++) {
        if (!*at(&s->whole, &t[n]))
            continue;
        const ptrdiff_t rows = t[n].keys ? s->local.S : s->local.L;
        for (ptrdiff_t x = 0; x < batches_of(s, &t[n]) * t[n].heads * rows; x++) {
            const ptrdiff_t row = x % rows, h = x / rows % t[n].heads, b = x / rows / t[n].heads;
            memcpy(row_at(s, &s->local, &t[n], b, h, row),
                   row_at(s, &s->whole, &t[n], b, h, s->tokens[t[n].keys][row]),
                   (size_t)t[n].width * mha_dtype_size(t[n].type));
        }
    }
    s->local.d_sinks = block(sizeof(float) * (size_t)s->shape.H);
    s->local.d_slopes = block(sizeof(float) * (size_t)s->shape.H);
    s->local.d_gates = block(sizeof(float) * (size_t)s->shape.H);
}

void spread_lay_out(spread *s, rng *r, const mha_mpi_group *group)
{
    const mha_mpi_layout *const layouts[] = {&s->queries, &s->keys};
    free_data(s, &s->local);
    for (int side = 0; side < 2; side++) {
        draw_layout(s, r, side, mha_mpi_group_ranks(group));
        const int rank = mha_mpi_group_rank(group);
        const ptrdiff_t rows = mha_mpi_rows(group, layouts[side], rank, NULL);
        if (rows < 0)
            abort();
        free(s->tokens[side]);
        s->tokens[side] = block(sizeof(int64_t) * (size_t)rows);
        mha_mpi_rows(group, layouts[side], rank, s->tokens[side]);
        *(side ? &s->local.S : &s->local.L) = rows;
    }
    cut(s);
}

spread *spread_new(uint64_t seed, unsigned has, ptrdiff_t most, const mha_mpi_group *group)
{
    spread *const s = block(sizeof *s);
    rng r = {seed};
    s->options = (mha_options){.size = sizeof s->options};
    draw_shape(s, &r, has, most);
    draw_lists(s, &r, has);
    draw_position(s, &r);
    if (has & SPREAD_HEADS)
        draw_heads(s, &r);
    s->options.softcap = rng_chance(&r, 20) ? 2.5f : 0.0f;
    if ((has & SPREAD_DROPOUT) && rng_chance(&r, 30)) {
        s->options.flags |= MHA_TRAINING;
        s->options.dropout = 0.25f;
        s->options.dropout_seed = rng_next(&r);
    }
    s->whole.L = s->q_tokens;
    s->whole.S = s->k_tokens;
    allocate(s, &s->whole, NULL);
    row_tensor t[ROW_TENSORS];
    list_tensors(s, t);
    for (int n = 0; n < 7; n++)
        if (!t[n].out)
            fill(&r, *at(&s->whole, &t[n]), t[n].type,
                 (ptrdiff_t)(bytes_of(s, &s->whole, &t[n]) / mha_dtype_size(t[n].type)));
    draw_masks(s, &r, has);
    if (!s->whole.bias || s->packed) {
        free(s->whole.d_bias);
        s->whole.d_bias = NULL;
    }
    if (!s->whole.add || !s->add_rows || !s->add_heads || s->packed) {
        free(s->whole.d_add);
        s->whole.d_add = NULL;
    }
    s->whole.d_sinks = block(sizeof(float) * (size_t)s->shape.H);
    s->whole.d_slopes = block(sizeof(float) * (size_t)s->shape.H);
    s->whole.d_gates = block(sizeof(float) * (size_t)s->shape.H);
    spread_lay_out(s, &r, group);
    return s;
}

void spread_free(spread *s)
{
    free_data(s, &s->whole);
    free_data(s, &s->local);
    free(s->tokens[0]);
    free(s->tokens[1]);
    free(s->k_documents);
    free(s);
}

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
    const ptrdiff_t L = stride_rows(d->L), all = stride_rows(s->whole.L);
    mha_options o = s->options;
    o.lse = out(d->lse, p->H, d->L, 1);
    if (d->attend)
        o.attend_mask = view(d->attend, 1, d->L, p->S);
    o.attend_mask.sh = 0;
    /* A mask that all rows share is its first row, which every rank takes from the whole. */
    if (d->attend && !s->attend_rows)
        o.attend_mask = (mha_view){s->whole.attend, all * p->S, 0, 0};
    if (d->ignore)
        o.ignore_mask = (mha_view){d->ignore, 0, L * p->S, p->S};
    if (d->add && s->add_rows)
        o.add_mask = (mha_view){d->add, (s->add_heads ? p->H : 1) * L * p->S,
                                s->add_heads ? L * p->S : 0, p->S};
    if (d->add && !s->add_rows)
        o.add_mask = (mha_view){s->whole.add, (s->add_heads ? p->H : 1) * all * p->S,
                                s->add_heads ? all * p->S : 0, 0};
    if (d->bias)
        o.bias = view(d->bias, p->H, d->L, p->S);
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
    if (d->d_add)
        g.d_add_mask = out(d->d_add, p->H, d->L, p->S);
    if (d->d_bias)
        g.d_bias = out(d->d_bias, p->H, d->L, p->S);
    if (s->options.sinks && s->sums && !s->packed)
        g.d_sinks = d->d_sinks;
    if (s->options.alibi_slopes && s->sums && !s->packed)
        g.d_alibi_slopes = d->d_slopes;
    if (s->options.gates && s->sums && !s->packed)
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
    if (status || !backward)
        return status;
    return mha_attention_backward(&s->shape, spread_view(s, d, 'q'), spread_view(s, d, 'k'),
                                  spread_view(s, d, 'v'), spread_view(s, d, 'o'), &o, &g, NULL, 0,
                                  NULL);
}

void spread_clear(spread *s)
{
    row_tensor t[ROW_TENSORS];
    for (int n = list_tensors(s, t); n-- > 0;)
        if (t[n].out && *at(&s->local, &t[n]))
            memset(*at(&s->local, &t[n]), PATTERN, bytes_of(s, &s->local, &t[n]));
    memset(s->local.d_sinks, PATTERN, sizeof(float) * (size_t)s->shape.H);
    memset(s->local.d_slopes, PATTERN, sizeof(float) * (size_t)s->shape.H);
    memset(s->local.d_gates, PATTERN, sizeof(float) * (size_t)s->shape.H);
}

bool spread_is_clear(const spread *s)
{
    row_tensor t[ROW_TENSORS];
    for (int n = list_tensors(s, t); n-- > 0;)
        for (size_t x = 0; t[n].out && *at(&s->local, &t[n]) && x < bytes_of(s, &s->local, &t[n]);
             x++)
            if ((unsigned char)(*at(&s->local, &t[n]))[x] != PATTERN)
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
    void *const work = block(size);
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
static bool is_written(const spread *s, const row_tensor *t, ptrdiff_t b, ptrdiff_t token)
{
    if (t->back || !s->options.q_lengths)
        return true;
    if (!s->packed)
        return token < s->q_lengths[b];
    for (b = 0; token >= s->q_starts[b + 1]; b++)
        ;
    return token - s->q_starts[b] < s->q_lengths[b];
}

/* Is a row of bytes as spread_clear() has left it? */
static bool is_untouched(const char *row, size_t bytes)
{
    for (size_t n = 0; n < bytes; n++)
        if ((unsigned char)row[n] != PATTERN)
            return false;
    return true;
}

const char *spread_differs(const spread *s, bool backward)
{
    row_tensor t[ROW_TENSORS];
    const int count = list_tensors(s, t);
    for (int n = 0; n < count; n++) {
        if (!t[n].out || t[n].back != backward || !*at(&s->local, &t[n]))
            continue;
        const ptrdiff_t rows = t[n].keys ? s->local.S : s->local.L;
        for (ptrdiff_t x = 0; x < batches_of(s, &t[n]) * t[n].heads * rows; x++) {
            const ptrdiff_t row = x % rows, h = x / rows % t[n].heads, b = x / rows / t[n].heads;
            const ptrdiff_t token = s->tokens[t[n].keys][row];
            const char *const got = row_at(s, &s->local, &t[n], b, h, row);
            const size_t bytes = (size_t)t[n].width * mha_dtype_size(t[n].type);
            if (is_written(s, &t[n], b, token)
                    ? memcmp(got, row_at(s, &s->whole, &t[n], b, h, token), bytes) != 0
                    : !is_untouched(got, bytes))
                return t[n].name;
        }
    }
    const mha_gradients g = spread_gradients(s, &s->local);
    const size_t bytes = sizeof(float) * (size_t)s->shape.H;
    if (backward && g.d_sinks && memcmp(g.d_sinks, s->whole.d_sinks, bytes) != 0)
        return "d_sinks";
    if (backward && g.d_alibi_slopes && memcmp(g.d_alibi_slopes, s->whole.d_slopes, bytes) != 0)
        return "d_alibi_slopes";
    if (backward && g.d_gates && memcmp(g.d_gates, s->whole.d_gates, bytes) != 0)
        return "d_gates";
    return NULL;
}

static double number(const char *from, mha_dtype type, ptrdiff_t n)
{
    float x = 0.0f;
    mha_row_to_f32(type, from + n * (ptrdiff_t)mha_dtype_size(type), 1, &x);
    return (double)x;
}

double spread_distance(const spread *s, bool backward)
{
    row_tensor t[ROW_TENSORS];
    double worst = 0.0;
    const int count = list_tensors(s, t);
    for (int n = 0; n < count; n++) {
        const ptrdiff_t rows = t[n].keys ? s->local.S : s->local.L;
        double most = 0.0, apart = 0.0;
        if (!t[n].out || t[n].back != backward || !*at(&s->local, &t[n]))
            continue;
        for (ptrdiff_t x = 0; x < batches_of(s, &t[n]) * t[n].heads * rows; x++) {
            const ptrdiff_t row = x % rows, h = x / rows % t[n].heads, b = x / rows / t[n].heads;
            const ptrdiff_t token = s->tokens[t[n].keys][row];
            for (ptrdiff_t c = 0; is_written(s, &t[n], b, token) && c < t[n].width; c++) {
                const double got = number(row_at(s, &s->local, &t[n], b, h, row), t[n].type, c);
                const double want = number(row_at(s, &s->whole, &t[n], b, h, token), t[n].type, c);
                if (got == want || (isnan(got) && isnan(want)))
                    continue;
                most = fmax(most, fabs(want));
                apart = fmax(apart, isfinite(got) ? fabs(got - want) : (double)INFINITY);
            }
        }
        worst = fmax(worst, apart / (most + 1e-3));
    }
    return worst;
}
