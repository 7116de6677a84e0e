/* SPDX-License-Identifier: MIT */
#include "problem/random_case.h"

#include <math.h>

#include "base/rng.h"

/* Multiplications and additions in one case: what double precision loops do in some ms. */
#define WORK_MAX 4e6

static ptrdiff_t pick(rng *r, const int *list, int count)
{
    return list[rng_below(r, count)];
}

static ptrdiff_t random_width(rng *r)
{
    static const int common[] = {8, 16, 32, 48, 64, 80, 96, 128, 192, 256};
    const int64_t kind = rng_below(r, 100);
    if (kind < 45)
        return (ptrdiff_t)rng_between(r, 1, 96);
    if (kind < 75)
        return pick(r, common, 10);
    if (kind < 95)
        return (ptrdiff_t)rng_between(r, 1, 256);
    return (ptrdiff_t)rng_between(r, 257, MHA_MAX_HEAD_WIDTH);
}

static ptrdiff_t random_rows(rng *r)
{
    static const int edges[] = {4, 6, 8, 12, 14, 16, 24, 32, 48, 60, 64, 96, 128, 192, 256, 512};
    const int64_t kind = rng_below(r, 100);
    if (kind < 10)
        return (ptrdiff_t)rng_below(r, 3);
    if (kind < 50)
        return (ptrdiff_t)rng_between(r, 1, 40);
    if (kind < 70)
        return (ptrdiff_t)rng_between(r, 1, 200);
    if (kind < 95)
        return pick(r, edges, 16) + (ptrdiff_t)rng_between(r, -1, 1);
    return (ptrdiff_t)rng_between(r, 1, 600);
}

static double work(const problem_word *w)
{
    return (double)w->b * (double)w->h * (double)w->l * (double)w->s * (double)(w->d + w->v);
}

static void draw_extents(rng *r, problem_word *w)
{
    w->b = (ptrdiff_t)rng_between(r, 1, 3);
    w->g = (ptrdiff_t)rng_between(r, 1, 4);
    w->h = w->g * (ptrdiff_t)rng_between(r, 1, rng_chance(r, 20) ? 8 : 3);
    w->d = random_width(r);
    w->v = rng_chance(r, 60) ? w->d : random_width(r);
    w->l = random_rows(r);
    w->s = rng_chance(r, 35) ? w->l : random_rows(r);
    if (rng_chance(r, 8)) {
        w->l = (ptrdiff_t)rng_between(r, 1, 4);
        w->s = (ptrdiff_t)rng_between(r, 600, 8192);
    }
    const bool square = w->l == w->s;
    while (work(w) > WORK_MAX) {
        if (w->b > 1)
            w->b--;
        else if (w->h > w->g)
            w->h -= w->g;
        else if (w->g > 1)
            w->h = w->g = w->g - 1;
        else if (w->l > 4)
            w->l = w->l * 2 / 3;
        else
            w->s = w->s * 2 / 3;
        if (square)
            w->s = w->l;
    }
}

static mha_dtype random_type(rng *r)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16};
    return types[rng_below(r, 3)];
}

static void draw_types(rng *r, problem_word *w)
{
    const int64_t kind = rng_below(r, 10);
    if (kind < 4)
        return;
    w->q_type = w->k_type = w->v_type = w->o_type = random_type(r);
    if (kind < 7)
        return;
    w->k_type = random_type(r);
    w->v_type = random_type(r);
    w->o_type = random_type(r);
}

static void draw_position(rng *r, problem_word *w, problem_style *style)
{
    w->causal = rng_chance(r, 40);
    w->window = rng_chance(r, 20);
    w->window_left = (ptrdiff_t)rng_between(r, -1, 1 + w->s / 2);
    w->window_right = (ptrdiff_t)rng_between(r, -1, 1 + w->s / 4);
    if (!w->window)
        w->window_left = w->window_right = 0;
    w->alibi = rng_chance(r, 12);
    w->position = (mha_position)rng_below(r, 4);
    if (w->position == MHA_POSITION_OFFSET) {
        w->offset = (ptrdiff_t)rng_between(r, -4, w->s + 4);
        style->offsets = rng_chance(r, 50);
    }
}

/* Unset is legal only where the number of keys is that of the queries in every batch. */
static void settle_position(problem_word *w, const problem_style *style)
{
    if (w->position == MHA_POSITION_UNSET && (w->l != w->s || style->lengths))
        w->position = MHA_POSITION_BOTTOM_RIGHT;
}

static void draw_masks(rng *r, problem_word *w, problem_style *style)
{
    static const int percents[] = {0, 1, 10, 50, 50, 90, 99, 100};
    if (rng_chance(r, 25))
        w->bool_percent = (int)pick(r, percents, 8);
    style->ignore_mask = rng_chance(r, 12);
    style->mask_block = rng_chance(r, 30) ? 16 << rng_below(r, 4) : 0;
    w->add_mask = rng_chance(r, 18);
    w->bias = rng_chance(r, 12);
    style->add_type = random_type(r);
    style->bias_type = random_type(r);
    style->minus_inf = rng_chance(r, 50);
    style->broadcast = rng_chance(r, 70);
    w->sink = rng_chance(r, 15);
    if (rng_chance(r, 15))
        w->softcap = (float)exp(6.0 * rng_unit(r) - 1.0);
    if (rng_chance(r, 20))
        w->scale = (float)((rng_chance(r, 15) ? -1.0 : 1.0) * exp(2.0 * rng_unit(r) - 3.0));
    if (rng_chance(r, 12))
        w->documents = (int)rng_between(r, 1, 5);
}

static void draw_outputs(rng *r, problem_word *w, problem_style *style)
{
    w->lse = rng_chance(r, 50);
    w->weights = rng_chance(r, 30);
    if (!w->weights)
        return;
    w->weights_mode = (mha_weights_mode)rng_below(r, 4);
    w->average = rng_chance(r, 30);
    style->weights_type = random_type(r);
    style->choose_heads = rng_chance(r, 30);
    style->choose_rows = rng_chance(r, 30);
}

static void draw_numbers(rng *r, problem_style *style)
{
    /* 1e-2 to 64, evenly by order of magnitude. */
    style->logit_scale = exp(log(1e-2) + rng_unit(r) * log(64.0 / 1e-2));
    style->values = rng_chance(r, 20) ? VALUES_ALTERNATING : VALUES_NORMAL;
    if (rng_chance(r, 8))
        style->values = VALUES_SAME_SIGN;
    style->poison = rng_chance(r, 50);
}

void random_case(uint64_t seed, uint64_t index, problem_word *word, problem_style *style)
{
    rng r = rng_for(seed, index);
    *word = word_default();
    *style = (problem_style){.seed = rng_next(&r)};
    draw_extents(&r, word);
    draw_types(&r, word);
    draw_position(&r, word, style);
    draw_masks(&r, word, style);
    draw_outputs(&r, word, style);
    draw_numbers(&r, style);
    style->strided = rng_chance(&r, 60);
    word->layout = rng_chance(&r, 50) ? WORD_BLHD : WORD_BHLD;
    style->lengths = rng_chance(&r, 25);
    word->packed = rng_chance(&r, 12);
    settle_position(word, style);
    if (rng_chance(&r, 15))
        word->statistics = STATISTICS_ROWS | (unsigned)rng_below(&r, 4) * STATISTICS_COLUMNS;
}
