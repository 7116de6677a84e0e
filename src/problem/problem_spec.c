/* SPDX-License-Identifier: MIT */
/*
 * Random specs, and the details of features that are numbers: edges of windows, positions, soft
 * caps and so on become a problem word here. The rest (lengths, masks, lists, layouts) is drawn
 * by problem_build.c.
 */
#include "problem/problem_spec.h"

#include <math.h>

#include "base/rng.h"

/* What double precision loops do in some milliseconds. */
#define CASE_COST 4e6

/* --------------------------------------------------------------- extents ----- */

static ptrdiff_t pick(rng *r, const int *list, int count)
{
    return list[rng_below(r, count)];
}

/* Mostly small, often at the edge of a tile or block, now and then large. */
static ptrdiff_t random_rows(rng *r, ptrdiff_t large)
{
    static const int edges[] = {4, 6, 8, 12, 14, 16, 24, 32, 48, 60, 64, 96, 128, 192, 256, 512};
    switch (rng_below(r, 10)) {
    case 0:
        return 1 + (ptrdiff_t)rng_below(r, 2);
    case 1:
    case 2:
        return 1 + (ptrdiff_t)rng_below(r, 16);
    case 3:
        return 15 + 16 * (ptrdiff_t)rng_below(r, 8) + (ptrdiff_t)rng_below(r, 3);
    case 4:
    case 5:
        return pick(r, edges, 16) + (ptrdiff_t)rng_between(r, -1, 1);
    case 6:
        return 1 + (ptrdiff_t)rng_below(r, large);
    default:
        return 1 + (ptrdiff_t)rng_below(r, 80);
    }
}

static ptrdiff_t random_width(rng *r)
{
    static const int usual[] = {8, 16, 32, 40, 48, 64, 64, 80, 96, 112, 128, 160, 192, 256};
    const int64_t kind = rng_below(r, 20);
    if (kind < 9)
        return pick(r, usual, 14);
    if (kind < 15)
        return (ptrdiff_t)rng_between(r, 1, 96);
    return (ptrdiff_t)rng_between(r, 1, kind < 19 ? 256 : MHA_MAX_HEAD_WIDTH);
}

static void draw_extents(rng *r, mha_shape *shape)
{
    shape->B = 1 + (ptrdiff_t)rng_below(r, 4);
    shape->G = 1 + (ptrdiff_t)rng_below(r, 4);
    shape->H = shape->G * (1 + (ptrdiff_t)rng_below(r, rng_chance(r, 15) ? 8 : 4));
    shape->D = random_width(r);
    shape->Dv = rng_below(r, 3) ? 0 : random_width(r);
    shape->L = random_rows(r, 600);
    shape->S = rng_below(r, 3) ? random_rows(r, 3000) : shape->L;
    if (rng_chance(r, 6)) {
        shape->L = 1 + (ptrdiff_t)rng_below(r, 4);
        shape->S = (ptrdiff_t)rng_between(r, 600, 8192);
    }
}

/* Makes the shape smaller until it costs at most `cost`; equal L and S stay equal. */
static void limit_cost(mha_shape *shape, double cost)
{
    ptrdiff_t *const extents[] = {&shape->D, &shape->S, &shape->L, &shape->B, &shape->Dv};
    const bool square = shape->L == shape->S;
    for (int n = 0;; n = (n + 1) % 5) {
        const double now = (double)shape->B * (double)shape->H * (double)shape->L *
                           (double)shape->S * (double)(shape->D + shape->Dv);
        if (now <= cost)
            return;
        ptrdiff_t *const extent = extents[n];
        *extent -= *extent > 1 ? *extent / 3 + (*extent == 2) : 0;
        if (square)
            shape->L = shape->S = shape->L < shape->S ? shape->L : shape->S;
    }
}

static mha_dtype random_type(rng *r)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F32, MHA_F16, MHA_BF16};
    return types[rng_below(r, 4)];
}

static void draw_types(rng *r, mha_shape *shape)
{
    const int64_t kind = rng_below(r, 12);
    if (kind < 5) /* f32 */
        return;
    shape->q_type = shape->k_type = shape->v_type = shape->o_type =
        kind == 5 ? MHA_F64 : random_type(r);
    if (kind < 8)
        return;
    shape->k_type = random_type(r);
    shape->v_type = random_type(r);
    shape->o_type = random_type(r);
}

problem_spec problem_spec_random(uint64_t seed, double cost)
{
    rng r = rng_for(seed, 0);
    problem_spec spec = {.seed = seed};
    draw_extents(&r, &spec.shape);
    draw_types(&r, &spec.shape);
    limit_cost(&spec.shape, cost);
    const int64_t rarity = 1 + rng_below(&r, 6);
    for (unsigned bit = 1; bit <= FEATURE_EVERYTHING; bit <<= 1)
        spec.features |= rng_below(&r, rarity) == 0 ? bit : 0u;
    spec.features &= FEATURE_EVERYTHING;
    /* 0.005 to 66, evenly by order of magnitude. */
    spec.logits = exp2(13.7 * rng_unit(&r) - 7.65);
    spec.values = rng_chance(&r, 15) ? VALUES_ALTERNATING : VALUES_NORMAL;
    if (rng_chance(&r, 8))
        spec.values = VALUES_SAME_SIGN;
    return spec;
}

problem_spec problem_spec_with(uint64_t seed, unsigned features)
{
    problem_spec spec = problem_spec_random(seed, 3e5);
    mha_shape *const s = &spec.shape;
    if (s->q_type == MHA_F64)
        s->q_type = s->k_type = s->v_type = s->o_type = MHA_F32;
    spec.features = features | (spec.features & FEATURE_STRIDES);
    return spec;
}

problem_spec problem_spec_case(uint64_t seed, uint64_t index)
{
    rng r = rng_for(seed, index);
    problem_spec spec = problem_spec_random(rng_next(&r), CASE_COST);
    if (rng_chance(&r, 3))
        spec.shape.L = 0;
    if (rng_chance(&r, 3))
        spec.shape.S = 0;
    if (rng_chance(&r, 15))
        spec.features |= FEATURE_STATISTICS;
    if (spec.shape.q_type != MHA_F64 && rng_chance(&r, 15)) {
        spec.features |= FEATURE_NATIVE;
        spec.shape.q_type = spec.shape.k_type = spec.shape.v_type = MHA_BF16;
    }
    return spec;
}

/* ------------------------------------------------------------------ word ----- */

static bool has(const problem_spec *spec, unsigned feature)
{
    return (spec->features & feature) != 0;
}

static problem_word word_of_shape(const mha_shape *s)
{
    problem_word w = word_default();
    w.b = s->B;
    w.h = s->H;
    w.g = s->G ? s->G : s->H;
    w.l = s->L;
    w.s = s->S;
    w.d = s->D;
    w.v = s->Dv ? s->Dv : s->D;
    w.q_type = s->q_type;
    w.k_type = s->k_type;
    w.v_type = s->v_type;
    w.o_type = s->o_type;
    return w;
}

static ptrdiff_t random_edge(rng *r, ptrdiff_t keys)
{
    const int64_t range = rng_below(r, 2) ? 8 : keys + 2;
    return (ptrdiff_t)rng_between(r, -1, range - 1);
}

static void draw_position(rng *r, const problem_spec *spec, problem_word *w)
{
    const bool lengths = has(spec, FEATURE_PACKED | FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS);
    if (has(spec, FEATURE_OFFSET)) {
        w->position = (mha_position)(1 + rng_below(r, 3));
        if (w->position == MHA_POSITION_OFFSET)
            w->offset = (ptrdiff_t)rng_between(r, -w->l - 2, w->s + 3);
    } else if (w->l != w->s || lengths) {
        w->position = MHA_POSITION_BOTTOM_RIGHT;
    }
    w->causal = has(spec, FEATURE_CAUSAL);
    w->window = has(spec, FEATURE_WINDOW);
    if (w->window) {
        w->window_left = random_edge(r, w->s);
        w->window_right = random_edge(r, w->s);
    }
}

static void draw_scores(rng *r, const problem_spec *spec, problem_word *w)
{
    if (has(spec, FEATURE_SOFTCAP))
        w->softcap = (float)exp2(9.0 * rng_unit(r) - 2.0);
    if (has(spec, FEATURE_SCALE)) {
        const double size =
            rng_below(r, 2) ? exp(2.0 * rng_unit(r) - 3.0) : 0.01 + 2.0 * rng_unit(r);
        w->scale = (float)(rng_chance(r, 15) ? -size : size);
    }
}

static void draw_outputs(rng *r, const problem_spec *spec, problem_word *w)
{
    w->lse = has(spec, FEATURE_LSE);
    w->weights = has(spec, FEATURE_WEIGHTS | FEATURE_PLAIN_WEIGHTS);
    if (has(spec, FEATURE_WEIGHTS) && !has(spec, FEATURE_PLAIN_WEIGHTS)) {
        w->weights_mode = (mha_weights_mode)rng_below(r, 4);
        w->average = rng_below(r, 4) == 0;
    }
    if (has(spec, FEATURE_STATISTICS))
        w->statistics = STATISTICS_ROWS | (unsigned)rng_below(r, 4) * STATISTICS_COLUMNS;
}

problem_word problem_spec_word(const problem_spec *spec)
{
    rng r = rng_for(spec->seed, 1);
    problem_word w = word_of_shape(&spec->shape);
    draw_position(&r, spec, &w);
    draw_scores(&r, spec, &w);
    draw_outputs(&r, spec, &w);
    w.bool_percent = has(spec, FEATURE_ATTEND) ? 50 : -1;
    w.add_mask = has(spec, FEATURE_ADD);
    w.bias = has(spec, FEATURE_BIAS);
    w.alibi = has(spec, FEATURE_ALIBI);
    w.sink = has(spec, FEATURE_SINKS);
    w.documents = has(spec, FEATURE_DOCUMENTS) ? 2 : 0;
    w.packed = has(spec, FEATURE_PACKED);
    w.native = has(spec, FEATURE_NATIVE);
    return w;
}
