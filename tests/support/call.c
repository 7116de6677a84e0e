/* SPDX-License-Identifier: MIT */
/*
 * Builds the calls that tests of arguments, plans and pools bend: one arena for outputs and inputs,
 * every option that goes with the kind of call, and fixed numbers in all of it.
 */
#include "support/call.h"

#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_SIZE = 4 << 20, ARENA_GAP = 64, PATTERN = 0xc3 };

mha_shape call_small_shape(void)
{
    return (mha_shape){.B = 2, .H = 4, .G = 2, .L = 5, .S = 7, .D = 8, .Dv = 12};
}

/* ---------------------------------------------------------------- the arena ---- */

/* The arena is laid out twice: once to learn its size, with arena = NULL, and once for real. */
static void *block(call *c, ptrdiff_t count, size_t size)
{
    const size_t at = c->arena_size;
    c->arena_size = (at + (size_t)count * size + ARENA_GAP) / 64 * 64 + 64;
    return c->arena ? c->arena + at : NULL;
}

static void put_number(void *data, ptrdiff_t index, mha_dtype type, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, 4);
    const uint16_t high = (uint16_t)(bits >> 16);
    /* Half a unit of f16 does not matter here, so exponent and fraction are simply cut. */
    const uint32_t exponent = bits >> 23 & 255;
    const uint32_t half = exponent < 113 ? 0 : (exponent - 112) << 10 | (bits >> 13 & 1023);
    const uint16_t f16 = (uint16_t)((bits >> 16 & 0x8000) | (exponent == 255 ? 0x7c00 : half));
    switch (type) {
    case MHA_F32:
        ((float *)data)[index] = number;
        break;
    case MHA_F64:
        ((double *)data)[index] = (double)number;
        break;
    case MHA_F16:
        memcpy((char *)data + 2 * index, &f16, 2);
        break;
    case MHA_BF16:
        memcpy((char *)data + 2 * index, &high, 2);
        break;
    default:
        break;
    }
}

/* Normal numbers; one in `masked` is -inf (0: none). */
static void *numbers(call *c, ptrdiff_t count, mha_dtype type, int masked, test_random *random)
{
    void *data = block(c, count, mha_dtype_size(type));
    for (ptrdiff_t i = 0; data && i < count; i++) {
        const bool out = masked > 0 && test_random_below(random, masked) == 0;
        put_number(data, i, type, out ? -INFINITY : test_random_normal(random));
    }
    return data;
}

/* Bytes that are non-zero, of any value, in `percent` of the places. */
static void *booleans(call *c, ptrdiff_t count, int percent, test_random *random)
{
    unsigned char *data = block(c, count, 1);
    for (ptrdiff_t i = 0; data && i < count; i++)
        data[i] = test_random_below(random, 100) < percent
                      ? (unsigned char)(1 + test_random_below(random, 255))
                      : 0;
    return data;
}

/* full, full - 1, full - 2, full, ... but not below 0. */
static int64_t *lengths(call *c, ptrdiff_t full)
{
    int64_t *data = block(c, c->shape.B, 8);
    for (ptrdiff_t b = 0; data && b < c->shape.B; b++)
        data[b] = full > b % 3 ? full - b % 3 : 0;
    return data;
}

/* Sequences of full, full - 1, full - 2, full, ... rows, from row 3 on. */
static int64_t *starts(call *c, ptrdiff_t full)
{
    int64_t *data = block(c, c->shape.B + 1, 8);
    if (data)
        data[0] = 3;
    for (ptrdiff_t b = 0; data && b < c->shape.B; b++)
        data[b + 1] = data[b] + (full > b % 3 ? full - b % 3 : 0);
    return data;
}

/* The rows of one batch, or of a packed view of all of them, fall into two documents. */
static int32_t *documents(call *c, ptrdiff_t batches, ptrdiff_t rows)
{
    int32_t *data = block(c, batches * rows, 4);
    for (ptrdiff_t i = 0; data && i < batches * rows; i++)
        data[i] = (int32_t)(i % rows * 3 / (2 * rows));
    return data;
}

/* ------------------------------------------------------------------ options ---- */

static void fill_outputs(call *c, bool packed)
{
    const mha_shape *s = &c->shape;
    mha_options *o = &c->options;
    const bool exact = s->o_type == MHA_F64;
    const ptrdiff_t rows = packed ? 1 : s->L;
    o->weights_head_count = s->H < 2 ? s->H : 2;
    o->weights_row_count = s->L < 3 ? s->L : 3;
    o->lse.data = block(c, s->B * s->H * (s->L + 3), exact ? 8 : 4);
    o->lse.sh = packed ? 1 : rows;
    o->lse.sl = packed ? s->H : 1;
    o->lse.sb = s->H * s->L;
    o->weights = mha_out_bhld(
        block(c, s->B * o->weights_head_count * o->weights_row_count * s->S, exact ? 8 : 4),
        o->weights_head_count, o->weights_row_count, s->S);
    o->weights_type = exact ? MHA_F64 : MHA_F32;
}

enum { TOP = 3 };

/* Where all parts of the statistics go. */
static mha_statistics statistics_room(call *c)
{
    const ptrdiff_t heads = c->shape.B * c->shape.H, rows = heads * c->shape.L;
    return (mha_statistics){.size = sizeof(mha_statistics),
                            .first_keys = 2,
                            .rows = block(c, rows, sizeof(mha_row_statistics)),
                            .heads = block(c, heads, sizeof(mha_head_statistics)),
                            .columns = block(c, heads * c->shape.S, sizeof(float)),
                            .top = TOP,
                            .top_keys = block(c, rows * TOP, sizeof(int64_t)),
                            .top_weights = block(c, rows * TOP, sizeof(float))};
}

static void fill_statistics(call *c, const mha_statistics *room)
{
    mha_statistics *const data = block(c, 1, sizeof *data);
    if (data)
        *data = *room;
    c->options.statistics = data;
}

/* Every head attends as ever, but the last, which is uniform. */
static void fill_modes(call *c)
{
    uint8_t *const modes = block(c, c->shape.H, 1);
    for (ptrdiff_t h = 0; modes && h < c->shape.H; h++)
        modes[h] = h > 0 && h == c->shape.H - 1 ? MHA_HEAD_UNIFORM : MHA_HEAD_NORMAL;
    c->options.head_modes = modes;
}

static void fill_choice(call *c)
{
    mha_options *o = &c->options;
    int64_t *heads = block(c, o->weights_head_count, 8);
    int64_t *rows = block(c, o->weights_row_count, 8);
    for (ptrdiff_t i = 0; heads && i < o->weights_head_count; i++)
        heads[i] = c->shape.H - 1 - i;
    for (ptrdiff_t i = 0; rows && i < o->weights_row_count; i++)
        rows[i] = (i * 2 + 1) % c->shape.L;
    o->weights_heads = heads;
    o->weights_rows = rows;
}

static void fill_masks(call *c, test_random *random)
{
    const mha_shape *s = &c->shape;
    mha_options *o = &c->options;
    const ptrdiff_t all = s->B * s->H * s->L * s->S;
    o->add_mask_type = s->o_type == MHA_F64 ? MHA_F64 : MHA_F32;
    o->bias_type = s->o_type == MHA_F64 ? MHA_F32 : MHA_F16;
    o->attend_mask = mha_view_bhld(booleans(c, all, 80, random), s->H, s->L, s->S);
    o->ignore_mask = mha_view_bhld(booleans(c, all, 10, random), s->H, s->L, s->S);
    o->add_mask = mha_view_bhld(numbers(c, all, o->add_mask_type, 9, random), s->H, s->L, s->S);
    o->bias = mha_view_bhld(numbers(c, all, o->bias_type, 0, random), s->H, s->L, s->S);
    o->alibi_slopes = numbers(c, s->H, MHA_F32, 0, random);
    o->sinks = numbers(c, s->H, MHA_F32, 0, random);
}

static void fill_positions(call *c)
{
    mha_options *o = &c->options;
    int64_t *offsets = block(c, c->shape.B, 8);
    for (ptrdiff_t b = 0; offsets && b < c->shape.B; b++)
        offsets[b] = c->shape.S - c->shape.L + b % 2;
    o->offsets = offsets;
    o->position = MHA_POSITION_OFFSET;
    o->flags = MHA_CAUSAL | MHA_WINDOW;
    o->window_left = c->shape.S / 2;
    o->window_right = -1;
}

static void fill_batches(call *c, bool packed)
{
    const mha_shape *s = &c->shape;
    mha_options *o = &c->options;
    o->k_lengths = lengths(c, s->S - (packed ? 2 : 0));
    if (packed) {
        o->q_starts = starts(c, s->L);
        o->k_starts = starts(c, s->S);
    } else {
        o->q_lengths = lengths(c, s->L);
    }
    o->q_documents = documents(c, packed ? 1 : s->B, packed ? s->B * s->L + 3 : s->L);
    o->k_documents = documents(c, packed ? 1 : s->B, packed ? s->B * s->S + 3 : s->S);
    o->q_documents_sb = s->L;
    o->k_documents_sb = s->S;
}

/* ------------------------------------------------------------------- a call ---- */

static void lay_out(call *c, call_kind kind, uint64_t seed)
{
    test_random random = {seed};
    const mha_shape *s = &c->shape;
    const bool packed = kind == CALL_PACKED;
    const ptrdiff_t L = packed ? s->B * s->L + 3 : s->L, S = packed ? s->B * s->S + 3 : s->S;
    const ptrdiff_t batches = packed ? 1 : s->B;
    c->arena_size = 0;
    c->options = (mha_options){.size = sizeof c->options};
    c->o = mha_out_blhd(block(c, batches * L * s->H * s->Dv, mha_dtype_size(s->o_type)), s->H, L,
                        s->Dv);
    mha_statistics room = {0};
    if (kind != CALL_PLAIN) {
        fill_outputs(c, packed);
        room = statistics_room(c);
    }
    c->outputs_size = c->arena_size;
    c->q =
        mha_view_blhd(numbers(c, batches * L * s->H * s->D, s->q_type, 0, &random), s->H, L, s->D);
    c->k =
        mha_view_blhd(numbers(c, batches * S * s->G * s->D, s->k_type, 0, &random), s->G, S, s->D);
    c->v = mha_view_blhd(numbers(c, batches * S * s->G * s->Dv, s->v_type, 0, &random), s->G, S,
                         s->Dv);
    if (kind != CALL_PLAIN) {
        fill_choice(c);
        fill_masks(c, &random);
        fill_positions(c);
        fill_batches(c, packed);
        fill_statistics(c, &room);
        fill_modes(c);
    }
}

static void *get(size_t size)
{
    void *data = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!data) {
        fprintf(stderr, "no memory for a test call\n");
        exit(2);
    }
    return data;
}

call *call_new(call_kind kind, const mha_shape *shape, uint64_t seed)
{
    call *c = get(sizeof *c);
    *c = (call){.shape = *shape, .after_options = UINT64_MAX, .work_size = WORK_SIZE};
    lay_out(c, kind, seed);
    c->arena = get(c->arena_size);
    memset(c->arena, PATTERN, c->arena_size);
    lay_out(c, kind, seed);
    c->work = get(c->work_size);
    return c;
}

void call_free(call *c)
{
    free(c->arena);
    free(c->work);
    free(c);
}

void call_clear(call *c)
{
    memset(c->arena, PATTERN, c->outputs_size);
}

mha_status call_attend(const call *c, mha_pool *pool)
{
    return mha_attention(&c->shape, c->q, c->k, c->v, c->o, &c->options, pool);
}

mha_status call_run_plan(const call *c, const mha_plan *plan, mha_pool *pool)
{
    return mha_plan_run(plan, c->q, c->k, c->v, c->o, &c->options, c->work, c->work_size, pool);
}

mha_status call_plan(const call *c, mha_pool *pool)
{
    mha_plan *plan = NULL;
    mha_status status = mha_plan_create(&plan, &c->shape, &c->options);
    if (status == MHA_OK)
        status = call_run_plan(c, plan, pool);
    mha_plan_free(plan);
    return status;
}

bool call_status_known(mha_status status)
{
    return status <= MHA_OK && strcmp(mha_status_string(status), "unknown status") != 0;
}

bool call_equal(const call *a, const call *b)
{
    return a->outputs_size == b->outputs_size && memcmp(a->arena, b->arena, a->outputs_size) == 0;
}
