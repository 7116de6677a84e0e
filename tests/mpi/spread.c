/* SPDX-License-Identifier: MIT */
/* Problems for the tests of libmha_mpi: drawing them (spread.h). */
#include "mpi/spread_parts.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of moderate size in any type. */
static void fill(rng *r, void *to, mha_dtype type, ptrdiff_t count)
{
    for (ptrdiff_t n = 0; n < count; n++) {
        const uint64_t bits = rng_next(r);
        const float x = (float)rng_normal(r);
        uint32_t word;
        memcpy(&word, &x, sizeof word);
        if (type == MHA_F64)
            ((double *)to)[n] = rng_normal(r);
        else if (type == MHA_F32)
            ((float *)to)[n] = x;
        else if (type == MHA_BF16)
            ((uint16_t *)to)[n] = (uint16_t)(word >> 16);
        else
            ((uint16_t *)to)[n] =
                (uint16_t)((bits & 0x8000u) | (12u + bits % 4) << 10 | (bits >> 20 & 0x3ffu));
    }
}

/* Which of the tensors the problem has, given that the whole has it. */
static void allocate(const spread *s, spread_data *d, const spread_data *like)
{
    spread_tensor t[SPREAD_TENSORS];
    for (int n = spread_tensors(s, t); n-- > 0;)
        if (!like || *spread_at(like, &t[n]))
            *spread_at(d, &t[n]) = spread_block(spread_bytes(s, d, &t[n]));
}

static void free_data(const spread *s, spread_data *d)
{
    spread_tensor t[SPREAD_TENSORS];
    for (int n = spread_tensors(s, t); n-- > 0;)
        free(*spread_at(d, &t[n]));
    spread_result r[SPREAD_RESULTS];
    spread_results(s, r);
    for (int n = 0; n < SPREAD_RESULTS; n++)
        free(*spread_result_at(d, &r[n]));
    memset(d, 0, sizeof *d);
}

/* Results of heads, and what statistics are requested. */
static void allocate_results(const spread *s, spread_data *d)
{
    spread_result r[SPREAD_RESULTS];
    spread_results(s, r);
    for (int n = 0; n < SPREAD_RESULTS; n++)
        *spread_result_at(d, &r[n]) = spread_block(r[n].bytes);
    d->statistics = (mha_statistics){.size = sizeof d->statistics,
                                     .first_keys = 2,
                                     .rows = (mha_row_statistics *)(void *)d->rows,
                                     .heads = d->head_statistics,
                                     .columns = d->columns,
                                     .top = SPREAD_TOP,
                                     .top_keys = (int64_t *)(void *)d->top_keys,
                                     .top_weights = (float *)(void *)d->top_weights};
}

/* ------------------------------------------------------------------ drawing ----- */

static void draw_lists(spread *s, rng *r, unsigned has)
{
    mha_shape *const p = &s->shape;
    s->packed = (has & SPREAD_PACKED) && rng_chance(r, 25);
    /* Sequences cannot share rows: those of a rank begin elsewhere in each. */
    s->bias_batches = s->bias_batches || (s->packed && s->bias_rows);
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
    }
    for (int n = 0; n < 192; n++)
        s->gates[n] = rng_chance(r, 10) ? 0.0f : (float)rng_normal(r);
    s->options.gates_sb = rng_chance(r, 50) ? s->shape.H : 0;
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
    spread_tensor t[SPREAD_TENSORS];
    spread_tensors(s, t);
    const bool masks = (has & SPREAD_MASKS) != 0;
    const bool there[] = {masks && rng_chance(r, 25), masks && rng_chance(r, 15),
                          masks && rng_chance(r, 25), masks && rng_chance(r, 25),
                          (has & SPREAD_DOCUMENTS) && rng_chance(r, 20)};
    char **const blocks[] = {&w->attend, &w->ignore, &w->add, &w->bias, &w->documents};
    for (int n = 0; n < 5; n++) {
        const spread_tensor *const mask = &t[7 + n];
        const ptrdiff_t count = (ptrdiff_t)(spread_bytes(s, w, mask) / mha_dtype_size(mask->type));
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
    s->k_documents = spread_block(sizeof(int32_t) * (size_t)keys);
    for (ptrdiff_t c = 0; c < keys; c++)
        s->k_documents[c] = (int32_t)rng_below(r, 2);
}

static mha_dtype draw_type(rng *r, unsigned has)
{
    return (has & SPREAD_TYPES) && rng_chance(r, 40) ? (rng_chance(r, 50) ? MHA_F16 : MHA_BF16)
                                                     : MHA_F32;
}

/* All in f64, or in bf16 with the products of the CPU, if it has them. */
static void draw_arithmetic(spread *s, rng *r, unsigned has)
{
    mha_shape *const p = &s->shape;
    const bool f64 = (has & SPREAD_F64) && rng_chance(r, 6);
    const bool native = (has & SPREAD_NATIVE) && !f64 && rng_chance(r, 8);
    if (f64)
        p->q_type = p->k_type = p->v_type = p->o_type = MHA_F64;
    if (native) {
        p->q_type = p->k_type = p->v_type = MHA_BF16;
        s->options.arithmetic = MHA_NATIVE;
    }
}

static void draw_modes(spread *s, rng *r)
{
    for (int h = 0; h < 64; h++)
        s->modes[h] = (uint8_t)rng_below(r, 3);
    fill(r, s->means, MHA_F32, 64 * 64);
    if (s->shape.q_type != MHA_F64 && rng_chance(r, 15)) {
        s->options.head_modes = s->modes;
        s->options.head_means = s->means;
    }
}

bool spread_goes_back(const spread *s)
{
    return !s->options.head_modes && s->shape.q_type != MHA_F64;
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
    draw_arithmetic(s, r, has);
    s->gradients.d_o_type = draw_type(r, has);
    s->options.add_mask_type = draw_type(r, has);
    s->options.bias_type = draw_type(r, has);
    s->attend_rows = rng_chance(r, 60);
    s->add_rows = rng_chance(r, 60);
    s->add_heads = rng_chance(r, 50);
    s->bias_rows = rng_chance(r, 70);
    s->bias_batches = rng_chance(r, 60);
    s->sums = rng_chance(r, 60);
    s->wants_q = rng_chance(r, 85);
    s->wants_keys = rng_chance(r, 85);
    s->statistics = (has & SPREAD_STATISTICS) && rng_chance(r, 30);
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
    spread_tensor t[SPREAD_TENSORS];
    const int count = spread_tensors(s, t);
    allocate(s, &s->local, &s->whole);
    for (int n = 0; n < count; n++) {
        if (!*spread_at(&s->whole, &t[n]))
            continue;
        const ptrdiff_t rows = t[n].keys ? s->local.S : s->local.L;
        for (ptrdiff_t x = 0; x < spread_batches(s, &t[n]) * t[n].heads * rows; x++) {
            const ptrdiff_t row = x % rows, h = x / rows % t[n].heads, b = x / rows / t[n].heads;
            memcpy(spread_row(s, &s->local, &t[n], b, h, row),
                   spread_row(s, &s->whole, &t[n], b, h, s->tokens[t[n].keys][row]),
                   (size_t)t[n].width * mha_dtype_size(t[n].type));
        }
    }
    allocate_results(s, &s->local);
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
        s->tokens[side] = spread_block(sizeof(int64_t) * (size_t)rows);
        mha_mpi_rows(group, layouts[side], rank, s->tokens[side]);
        *(side ? &s->local.S : &s->local.L) = rows;
    }
    cut(s);
}

static void drop(void *block)
{
    char **const at = block;
    free(*at);
    *at = NULL;
}

/* Outputs that this problem has not. */
static void drop_outputs(spread *s)
{
    spread_data *const w = &s->whole;
    if (!w->bias || !s->bias_rows)
        drop(&w->d_bias);
    if (!w->add || !s->add_rows || !s->add_heads)
        drop(&w->d_add);
    if (!s->wants_q)
        drop(&w->d_q);
    if (!s->wants_keys) {
        drop(&w->d_k);
        drop(&w->d_v);
    }
    if (s->statistics)
        return;
    drop(&w->rows);
    drop(&w->top_keys);
    drop(&w->top_weights);
}

spread *spread_new(uint64_t seed, unsigned has, ptrdiff_t most, const mha_mpi_group *group)
{
    spread *const s = spread_block(sizeof *s);
    rng r = {seed};
    s->options = (mha_options){.size = sizeof s->options};
    draw_shape(s, &r, has, most);
    draw_lists(s, &r, has);
    draw_position(s, &r);
    if (has & SPREAD_HEADS)
        draw_heads(s, &r);
    if (has & SPREAD_MODES)
        draw_modes(s, &r);
    s->options.softcap = rng_chance(&r, 20) ? 2.5f : 0.0f;
    if ((has & SPREAD_DROPOUT) && rng_chance(&r, 30)) {
        s->options.flags |= MHA_TRAINING;
        s->options.dropout = 0.25f;
        s->options.dropout_seed = rng_next(&r);
    }
    s->whole.L = s->q_tokens;
    s->whole.S = s->k_tokens;
    allocate(s, &s->whole, NULL);
    spread_tensor t[SPREAD_TENSORS];
    spread_tensors(s, t);
    for (int n = 0; n < 7; n++)
        if (!t[n].out)
            fill(&r, *spread_at(&s->whole, &t[n]), t[n].type,
                 (ptrdiff_t)(spread_bytes(s, &s->whole, &t[n]) / mha_dtype_size(t[n].type)));
    draw_masks(s, &r, has);
    drop_outputs(s);
    allocate_results(s, &s->whole);
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
