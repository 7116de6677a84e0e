/* SPDX-License-Identifier: MIT */
/*
 * From a spec to a case: draws lengths, offsets, masks and numbers from the seed of the spec.
 */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ specs */

static ptrdiff_t one_of(test_random *random, const ptrdiff_t *list, int count)
{
    return list[test_random_below(random, count)];
}

/* Mostly small, often near a multiple of 16, now and then large. */
static ptrdiff_t random_extent(test_random *random, ptrdiff_t large)
{
    switch (test_random_below(random, 8)) {
    case 0:
        return 1;
    case 1:
    case 2:
        return 1 + (ptrdiff_t)test_random_below(random, 16);
    case 3:
        return 15 + 16 * (ptrdiff_t)test_random_below(random, 8) +
               (ptrdiff_t)test_random_below(random, 3);
    case 4:
        return 1 + (ptrdiff_t)test_random_below(random, large);
    default:
        return 1 + (ptrdiff_t)test_random_below(random, 80);
    }
}

static ptrdiff_t random_width(test_random *random)
{
    static const ptrdiff_t usual[] = {8, 16, 32, 40, 64, 64, 80, 96, 112, 128, 160, 256};
    const int count = (int)(sizeof usual / sizeof *usual);
    return test_random_below(random, 2) ? one_of(random, usual, count)
                                        : random_extent(random, MHA_MAX_HEAD_WIDTH);
}

static mha_dtype random_type(test_random *random)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F32, MHA_F16, MHA_BF16};
    return types[test_random_below(random, 4)];
}

static void random_types(test_random *random, mha_shape *shape)
{
    if (test_random_below(random, 12) == 0) {
        shape->q_type = shape->k_type = shape->v_type = shape->o_type = MHA_F64;
    } else if (test_random_below(random, 2)) {
        shape->q_type = random_type(random);
        shape->k_type = random_type(random);
        shape->v_type = random_type(random);
        shape->o_type = random_type(random);
    }
}

static void limit_cost(mha_shape *shape, double cost)
{
    ptrdiff_t *const extents[] = {&shape->D, &shape->S, &shape->L, &shape->B};
    for (int n = 0;; n = (n + 1) % 4) {
        const double now = (double)shape->B * (double)shape->H * (double)shape->L *
                           (double)shape->S * (double)(shape->D + shape->Dv);
        if (now <= cost)
            return;
        ptrdiff_t *const extent = extents[n];
        *extent = *extent > 1 ? *extent - *extent / 3 - 1 : 1;
    }
}

case_spec case_spec_random(uint64_t seed, double cost)
{
    test_random random = {seed * 0x9e3779b97f4a7c15u + 1};
    case_spec spec = {.seed = seed};
    mha_shape *const shape = &spec.shape;
    shape->B = 1 + (ptrdiff_t)test_random_below(&random, 4);
    shape->G = 1 + (ptrdiff_t)test_random_below(&random, 3);
    shape->H = shape->G * (1 + (ptrdiff_t)test_random_below(&random, 4));
    shape->L = random_extent(&random, 500);
    shape->S = test_random_below(&random, 3) ? random_extent(&random, 3000) : shape->L;
    shape->D = random_width(&random);
    shape->Dv = test_random_below(&random, 3) ? 0 : random_width(&random);
    random_types(&random, shape);
    limit_cost(shape, cost);
    const unsigned rarity = 1 + (unsigned)test_random_below(&random, 6);
    for (unsigned bit = 1; bit <= CASE_EVERYTHING; bit <<= 1)
        spec.features |= test_random_below(&random, rarity) == 0 ? bit : 0;
    spec.features &= CASE_EVERYTHING;
    spec.logits = exp2((double)test_random_below(&random, 13700) / 1000 - 7.65);
    return spec;
}

case_spec case_spec_with(uint64_t seed, unsigned features)
{
    case_spec spec = case_spec_random(seed, 3e5);
    mha_shape *const s = &spec.shape;
    if (s->q_type == MHA_F64)
        s->q_type = s->k_type = s->v_type = s->o_type = MHA_F32;
    spec.features = features | (spec.features & CASE_STRIDES);
    return spec;
}

/* ------------------------------------------------------------------ build */

typedef struct builder {
    test_case *c;
    test_random random;
    unsigned features;
    mha_shape shape; /* defaults filled in */
} builder;

static bool has(const builder *a, unsigned feature)
{
    return (a->features & feature) != 0;
}

static void fill_normal(builder *a, tensor_id id, double deviation)
{
    const ptrdiff_t *const n = a->c->tensors[id].n;
    for (ptrdiff_t b = 0; b < n[0]; b++)
        for (ptrdiff_t h = 0; h < n[1]; h++)
            for (ptrdiff_t i = 0; i < n[2]; i++)
                for (ptrdiff_t j = 0; j < n[3]; j++)
                    tensor_set(a->c, id, b, h, i, j,
                               deviation * (double)test_random_normal(&a->random));
}

/* In every row, runs of `off` between runs of something else, with lengths that make whole
 * blocks, single keys or all keys of a row masked. */
static void fill_masked(builder *a, tensor_id id, double off, double on_or_nan)
{
    const ptrdiff_t *const n = a->c->tensors[id].n;
    const int64_t longest = 1 << test_random_below(&a->random, 10);
    const int64_t density = 1 + test_random_below(&a->random, 8);
    for (ptrdiff_t row = 0; row < n[0] * n[1] * n[2]; row++) {
        const ptrdiff_t i = row % n[2], h = row / n[2] % n[1], b = row / n[2] / n[1];
        for (ptrdiff_t j = 0; j < n[3];) {
            const bool masked = test_random_below(&a->random, 9) < density;
            for (int64_t left = 1 + test_random_below(&a->random, longest); left > 0 && j < n[3];
                 left--, j++) {
                if (masked) {
                    tensor_set(a->c, id, b, h, i, j, off);
                } else if (!isnan(on_or_nan)) {
                    tensor_set(a->c, id, b, h, i, j, on_or_nan);
                }
            }
        }
    }
}

static test_random *layout_of(builder *a)
{
    return has(a, CASE_STRIDES) ? &a->random : NULL;
}

static unsigned random_broadcast(builder *a)
{
    return has(a, CASE_BROADCAST) ? (unsigned)test_random_below(&a->random, 8) : 0;
}

/* Lengths in [0, limit(b)]; often all of it. */
static int64_t *random_lengths(builder *a, ptrdiff_t extent, const int64_t *starts)
{
    int64_t *const lengths = case_alloc(a->c, (size_t)a->shape.B * sizeof *lengths);
    for (ptrdiff_t b = 0; b < a->shape.B; b++) {
        const int64_t limit = starts ? starts[b + 1] - starts[b] : extent;
        lengths[b] =
            test_random_below(&a->random, 4) ? test_random_below(&a->random, limit + 1) : limit;
    }
    return lengths;
}

/* Ascending starts whose longest piece is `extent`, beginning now and then after 0. */
static int64_t *random_starts(builder *a, ptrdiff_t extent)
{
    const ptrdiff_t B = a->shape.B;
    int64_t *const starts = case_alloc(a->c, (size_t)(B + 1) * sizeof *starts);
    const int64_t longest = B > 0 ? test_random_below(&a->random, B) : 0;
    starts[0] = test_random_below(&a->random, 4) ? 0 : test_random_below(&a->random, 5);
    for (ptrdiff_t b = 0; b < B; b++)
        starts[b + 1] =
            starts[b] + (b == longest ? extent : test_random_below(&a->random, extent + 1));
    return starts;
}

static void build_lengths(builder *a)
{
    mha_options *const o = &a->c->call.options;
    if (has(a, CASE_PACKED)) {
        o->q_starts = random_starts(a, a->shape.L);
        o->k_starts = random_starts(a, a->shape.S);
    }
    if (has(a, CASE_Q_LENGTHS))
        o->q_lengths = random_lengths(a, a->shape.L, o->q_starts);
    if (has(a, CASE_K_LENGTHS))
        o->k_lengths = random_lengths(a, a->shape.S, o->k_starts);
}

static void build_offsets(builder *a)
{
    mha_options *const o = &a->c->call.options;
    const mha_shape *const s = &a->shape;
    const bool lengths = has(a, CASE_PACKED | CASE_Q_LENGTHS | CASE_K_LENGTHS);
    if (!has(a, CASE_OFFSET)) {
        o->position = s->L == s->S && !lengths ? MHA_POSITION_UNSET : MHA_POSITION_BOTTOM_RIGHT;
        return;
    }
    o->position = (mha_position)(1 + test_random_below(&a->random, 3));
    const int64_t span = s->L + s->S + 2;
    o->offset = (ptrdiff_t)(test_random_below(&a->random, span) - s->L);
    if (o->position == MHA_POSITION_OFFSET && test_random_below(&a->random, 2)) {
        int64_t *const offsets = case_alloc(a->c, (size_t)s->B * sizeof *offsets);
        for (ptrdiff_t b = 0; b < s->B; b++)
            offsets[b] = test_random_below(&a->random, span) - s->L;
        o->offsets = offsets;
    }
}

static ptrdiff_t random_edge(builder *a)
{
    const int64_t range = test_random_below(&a->random, 2) ? 8 : a->shape.S + 2;
    return (ptrdiff_t)(test_random_below(&a->random, range + 1) - 1);
}

static float *random_floats(builder *a, double low, double high)
{
    float *const values = case_alloc(a->c, (size_t)a->shape.H * sizeof *values);
    for (ptrdiff_t h = 0; h < a->shape.H; h++) {
        const double x = ((double)test_random_float(&a->random) + 1) / 2;
        values[h] = (float)(low + (high - low) * x);
    }
    return values;
}

static void build_numbers(builder *a)
{
    mha_options *const o = &a->c->call.options;
    o->flags |= has(a, CASE_CAUSAL) ? (unsigned)MHA_CAUSAL : 0u;
    if (has(a, CASE_WINDOW)) {
        o->flags |= MHA_WINDOW;
        o->window_left = random_edge(a);
        o->window_right = random_edge(a);
    }
    if (has(a, CASE_ALIBI))
        o->alibi_slopes = random_floats(a, 0, test_random_below(&a->random, 2) ? 0.05 : 1);
    if (has(a, CASE_SINKS))
        o->sinks = random_floats(a, -5, 10);
    if (has(a, CASE_SOFTCAP))
        o->softcap = (float)exp2((double)test_random_below(&a->random, 10) - 2);
    if (has(a, CASE_SCALE))
        o->scale = 0.01f + 2 * fabsf(test_random_float(&a->random));
}

/* Document ids in runs that ascend, or at random. */
static int32_t *random_documents(builder *a, ptrdiff_t count, ptrdiff_t run, bool shuffled)
{
    int32_t *const ids = case_alloc(a->c, (size_t)count * sizeof *ids);
    for (ptrdiff_t n = 0; n < count; n++)
        ids[n] = shuffled ? (int32_t)test_random_below(&a->random, 3) - 1 : (int32_t)(n / run);
    return ids;
}

static void build_documents(builder *a)
{
    mha_options *const o = &a->c->call.options;
    const ptrdiff_t B = a->shape.B, gap = (ptrdiff_t)test_random_below(&a->random, 3);
    const bool shuffled = test_random_below(&a->random, 4) == 0;
    const ptrdiff_t run = 1 + (ptrdiff_t)test_random_below(&a->random, a->shape.S + 1);
    o->q_documents_sb = a->shape.L + gap;
    o->k_documents_sb = a->shape.S + gap;
    const ptrdiff_t q_count = o->q_starts ? (ptrdiff_t)o->q_starts[B] : B * o->q_documents_sb;
    const ptrdiff_t k_count = o->k_starts ? (ptrdiff_t)o->k_starts[B] : B * o->k_documents_sb;
    o->q_documents = random_documents(a, q_count, run, shuffled);
    o->k_documents = random_documents(a, k_count, run, shuffled);
}

/* Make q, k, v, o or lse: rows of a packed tensor lie in one sequence. */
static void build_rows(builder *a, tensor_id id, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width,
                       const int64_t *starts)
{
    const bool shared = (id == T_K || id == T_V) && has(a, CASE_BROADCAST);
    const unsigned broadcast = shared ? (unsigned)test_random_below(&a->random, 4) : 0;
    const ptrdiff_t packed = starts ? (ptrdiff_t)starts[a->shape.B] : 0;
    const ptrdiff_t n[4] = {starts ? 1 : a->shape.B, heads, starts ? packed : rows, width};
    tensor_make(a->c, id, mha_dtype_size(tensor_type(a->c, id)), n, layout_of(a), broadcast);
}

static void build_qkvo(builder *a)
{
    const mha_shape *const s = &a->shape;
    const mha_options *const o = &a->c->call.options;
    const double logits = a->c->spec.logits > 0 ? a->c->spec.logits : 1;
    const double per_key = (o->scale != 0 ? (double)o->scale : 1 / sqrt((double)s->D + !s->D)) *
                           sqrt((double)s->D + !s->D);
    build_rows(a, T_Q, s->H, s->L, s->D, o->q_starts);
    build_rows(a, T_K, s->G, s->S, s->D, o->k_starts);
    build_rows(a, T_V, s->G, s->S, s->Dv, o->k_starts);
    build_rows(a, T_O, s->H, s->L, s->Dv, o->q_starts);
    fill_normal(a, T_Q, logits / per_key);
    fill_normal(a, T_K, 1);
    fill_normal(a, T_V, 1);
    if (has(a, CASE_LSE))
        build_rows(a, T_LSE, s->H, s->L, 1, o->q_starts);
}

static mha_dtype mask_type(builder *a)
{
    const bool wide = a->shape.q_type == MHA_F64;
    if (has(a, CASE_MASK_TYPES))
        return (mha_dtype)test_random_below(&a->random, wide ? 4 : 3);
    return wide ? MHA_F64 : MHA_F32;
}

static void build_masks(builder *a)
{
    mha_options *const o = &a->c->call.options;
    const ptrdiff_t n[4] = {a->shape.B, a->shape.H, a->shape.L, a->shape.S};
    if (has(a, CASE_ATTEND)) {
        tensor_make(a->c, T_ATTEND, 1, n, layout_of(a), random_broadcast(a));
        fill_masked(a, T_ATTEND, 0, 1 + (double)test_random_below(&a->random, 255));
    }
    if (has(a, CASE_IGNORE)) {
        tensor_make(a->c, T_IGNORE, 1, n, layout_of(a), random_broadcast(a));
        fill_masked(a, T_IGNORE, 1 + (double)test_random_below(&a->random, 255), 0);
    }
    if (has(a, CASE_ADD)) {
        o->add_mask_type = mask_type(a);
        tensor_make(a->c, T_ADD, mha_dtype_size(o->add_mask_type), n, layout_of(a),
                    random_broadcast(a));
        fill_normal(a, T_ADD, (double)test_random_below(&a->random, 3));
        fill_masked(a, T_ADD, -INFINITY, NAN);
    }
    if (has(a, CASE_BIAS)) {
        o->bias_type = mask_type(a);
        tensor_make(a->c, T_BIAS, mha_dtype_size(o->bias_type), n, layout_of(a),
                    random_broadcast(a));
        fill_normal(a, T_BIAS, 2);
        if (test_random_below(&a->random, 3) == 0)
            fill_masked(a, T_BIAS, -INFINITY, NAN);
    }
}

/* Numbers below `limit`, in any order, some of them twice. */
static int64_t *random_choice(builder *a, ptrdiff_t count, ptrdiff_t limit)
{
    int64_t *const list = case_alloc(a->c, (size_t)count * sizeof *list);
    for (ptrdiff_t n = 0; n < count; n++)
        list[n] = test_random_below(&a->random, limit);
    return list;
}

static void choose_weights(builder *a)
{
    mha_options *const o = &a->c->call.options;
    const mha_shape *const s = &a->shape;
    o->weights_mode = (mha_weights_mode)test_random_below(&a->random, 4);
    o->weights_type = (mha_dtype)test_random_below(&a->random, s->q_type == MHA_F64 ? 4 : 3);
    if (s->H > 0 && test_random_below(&a->random, 2)) {
        o->weights_head_count = 1 + (ptrdiff_t)test_random_below(&a->random, s->H + 1);
        o->weights_heads = random_choice(a, o->weights_head_count, s->H);
    }
    if (s->L > 0 && test_random_below(&a->random, 2)) {
        o->weights_row_count = 1 + (ptrdiff_t)test_random_below(&a->random, s->L + 1);
        o->weights_rows = random_choice(a, o->weights_row_count, s->L);
    }
    o->flags |= test_random_below(&a->random, 4) ? 0u : (unsigned)MHA_AVERAGE_WEIGHTS;
}

static void build_weights(builder *a)
{
    mha_options *const o = &a->c->call.options;
    const mha_shape *const s = &a->shape;
    if (has(a, CASE_PLAIN_WEIGHTS)) {
        o->weights_type = s->q_type == MHA_F64 ? MHA_F64 : MHA_F32;
    } else if (has(a, CASE_WEIGHTS)) {
        choose_weights(a);
    } else {
        return;
    }
    const ptrdiff_t heads = o->weights_heads ? o->weights_head_count : s->H;
    const ptrdiff_t rows = o->weights_rows ? o->weights_row_count : s->L;
    const ptrdiff_t n[4] = {s->B, o->flags & MHA_AVERAGE_WEIGHTS ? 1 : heads, rows, s->S};
    tensor_make(a->c, T_WEIGHTS, mha_dtype_size(o->weights_type), n, layout_of(a), 0);
}

test_case *case_build(const case_spec *spec)
{
    test_case *const c = case_new(spec);
    builder a = {c, {spec->seed}, spec->features, spec->shape};
    a.shape.G = oracle_groups(&c->call);
    a.shape.Dv = oracle_value_width(&c->call);
    build_lengths(&a);
    build_offsets(&a);
    build_numbers(&a);
    build_qkvo(&a);
    build_masks(&a);
    if (has(&a, CASE_DOCUMENTS))
        build_documents(&a);
    build_weights(&a);
    case_connect(c);
    return c;
}
