/* SPDX-License-Identifier: MIT */
#include "problem/problem_fill.h"

#include <math.h>

#include "format/convert.h"
#include "problem/attends.h"

enum { MINUS_INF_PERCENT = 8, EMPTY_BLOCK_PERCENT = 50 };

void fill_bool_mask(uint8_t *bytes, ptrdiff_t count, ptrdiff_t row, int percent, bool ones,
                    const problem_style *style, rng *random)
{
    static const uint8_t truths[] = {1, 255, 128, 2};
    const ptrdiff_t block = style->mask_block;
    bool empty = false;
    for (ptrdiff_t n = 0; n < count; n++) {
        if (block > 0 && (n % row) % block == 0)
            empty = rng_chance(random, EMPTY_BLOCK_PERCENT);
        const bool attended = !empty && rng_chance(random, percent < 0 ? 50 : percent);
        const uint8_t truth = style->strided ? truths[rng_below(random, 4)] : 1;
        bytes[n] = attended == ones ? truth : 0;
    }
}

void fill_additive(tensor *t, const problem_style *style, rng *random)
{
    for (ptrdiff_t n = 0; n < t->count; n++) {
        const bool masked = style->minus_inf && rng_chance(random, MINUS_INF_PERCENT);
        element_store(t->type, t->block, n, masked ? -(double)INFINITY : rng_normal(random));
    }
}

static double key_value(const problem_style *style, double base, rng *random)
{
    return style->values == VALUES_NORMAL ? rng_normal(random) : base + 1e-3 * rng_normal(random);
}

static double value_value(const problem_style *style, ptrdiff_t j, rng *random)
{
    if (style->values == VALUES_NORMAL)
        return rng_normal(random);
    const double sign = style->values == VALUES_ALTERNATING && (j & 1) ? -1.0 : 1.0;
    return sign * (1.0 + 1e-3 * rng_normal(random));
}

static void fill_queries(problem *p, const problem_style *style, rng *random)
{
    const double scale = style->logit_scale != 0.0 ? style->logit_scale : 1.0;
    for (ptrdiff_t b = 0; b < p->shape.B; b++)
        for (ptrdiff_t h = 0; h < p->shape.H; h++)
            for (ptrdiff_t i = 0; i < problem_queries(p, b); i++)
                for (ptrdiff_t c = 0; c < p->shape.D; c++)
                    element_store(p->q.type, p->q.block, problem_q_index(p, b, h, i, c),
                                  scale * rng_normal(random));
}

/* One head of keys and values in one batch. */
static void fill_head(problem *p, ptrdiff_t b, ptrdiff_t g, const problem_style *style, rng *random)
{
    double base[MHA_MAX_HEAD_WIDTH];
    for (ptrdiff_t c = 0; c < p->shape.D; c++)
        base[c] = rng_normal(random);
    for (ptrdiff_t j = 0; j < problem_keys(p, b); j++) {
        for (ptrdiff_t c = 0; c < p->shape.D; c++)
            element_store(p->k.type, p->k.block, problem_k_index(p, b, g, j, c),
                          key_value(style, base[c], random));
        for (ptrdiff_t c = 0; c < p->shape.Dv; c++)
            element_store(p->v.type, p->v.block, problem_v_index(p, b, g, j, c),
                          value_value(style, j, random));
    }
}

static bool anyone_attends(const problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j)
{
    const ptrdiff_t group = p->shape.H / p->shape.G;
    for (ptrdiff_t h = g * group; h < (g + 1) * group; h++)
        for (ptrdiff_t i = 0; i < problem_queries(p, b); i++)
            if (problem_attends(p, b, h, i, j))
                return true;
    return false;
}

static void poison_row(problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j)
{
    for (ptrdiff_t c = 0; c < p->shape.D; c++)
        element_store(p->k.type, p->k.block, problem_k_index(p, b, g, j, c), (double)NAN);
    for (ptrdiff_t c = 0; c < p->shape.Dv; c++)
        element_store(p->v.type, p->v.block, problem_v_index(p, b, g, j, c), (double)NAN);
}

static bool shared(const tensor *t, const problem *p)
{
    return (t->sb == 0 && p->shape.B > 1 && p->options.k_starts == NULL) ||
           (t->sh == 0 && p->shape.G > 1);
}

static void poison_keys(problem *p)
{
    const mha_weights_mode mode = p->options.weights_mode;
    const bool scores_shown =
        p->options.weights.data != NULL && (mode == MHA_WEIGHTS_RAW || mode == MHA_WEIGHTS_SOFTCAP);
    if (scores_shown || shared(&p->k, p) || shared(&p->v, p))
        return;
    for (ptrdiff_t b = 0; b < p->shape.B; b++)
        for (ptrdiff_t g = 0; g < p->shape.G; g++)
            for (ptrdiff_t j = 0; j < problem_keys(p, b); j++)
                if (!anyone_attends(p, b, g, j))
                    poison_row(p, b, g, j);
}

void fill_inputs(problem *p, const problem_style *style, rng *random)
{
    fill_queries(p, style, random);
    for (ptrdiff_t b = 0; b < p->shape.B; b++)
        for (ptrdiff_t g = 0; g < p->shape.G; g++)
            fill_head(p, b, g, style, random);
    if (style->poison)
        poison_keys(p);
}
