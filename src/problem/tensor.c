/* SPDX-License-Identifier: MIT */
/*
 * Layouts of tensors: any order of the axes, gaps, negative strides and shared axes. The memory
 * belongs to the problem (problem.c) or the test that uses the tensor; it is exactly as long as the
 * last element needs, so that guard pages and sanitizers see any access past it.
 */
#include "problem/tensor.h"

#include <string.h>

/* Far more than any machine has; keeps all index arithmetic within the 32 or 64 bits of an index.
 */
#define COUNT_MAX (PTRDIFF_MAX >> (sizeof(ptrdiff_t) > 4 ? 19 : 4))

tensor_layout tensor_random_layout(rng *random, bool lead)
{
    const ptrdiff_t widest = rng_chance(random, 30) ? 20 : 4;
    tensor_layout y = {.order = (int)rng_below(random, 6)};
    y.lead = lead ? (ptrdiff_t)rng_below(random, 9) : 0;
    for (int axis = 0; axis < 3; axis++) {
        y.gap[axis] = (ptrdiff_t)rng_below(random, widest);
        y.flip |= rng_below(random, 4) == 0 ? 1u << axis : 0u;
    }
    return y;
}

/* Axes from the innermost to the outermost. */
static const int orders[6][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}, {0, 1, 2}};

bool tensor_lay_out(tensor *t, size_t element, const ptrdiff_t n[4], const tensor_layout *layout)
{
    const tensor_layout plain = {0};
    const tensor_layout *y = layout != NULL ? layout : &plain;
    *t = (tensor){.element = element, .origin = y->lead, .n = {n[0], n[1], n[2], n[3]}};
    ptrdiff_t extent = n[3];
    for (int level = 0; level < 3; level++) {
        const int axis = orders[y->order][level];
        if (y->share & 1u << axis) {
            t->n[axis] = 1;
            continue;
        }
        const ptrdiff_t step = extent + y->gap[level], steps = n[axis] > 0 ? n[axis] - 1 : 0;
        if (steps > 0 && step > COUNT_MAX / steps)
            return false;
        const bool flip = y->flip & 1u << axis;
        t->s[axis] = flip ? -step : step;
        t->origin += flip ? steps * step : 0;
        extent += steps * step;
    }
    t->bytes = (size_t)(y->lead + extent) * element;
    return extent < COUNT_MAX;
}

void *tensor_at(const tensor *t, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c)
{
    const ptrdiff_t index = t->origin + b * t->s[0] + h * t->s[1] + i * t->s[2] + c;
    return t->memory + index * (ptrdiff_t)t->element;
}

mha_view tensor_view(const tensor *t)
{
    if (t->memory == NULL)
        return (mha_view){0};
    return (mha_view){tensor_at(t, 0, 0, 0, 0), t->s[0], t->s[1], t->s[2]};
}

mha_out tensor_out(const tensor *t)
{
    if (t->memory == NULL)
        return (mha_out){0};
    return (mha_out){tensor_at(t, 0, 0, 0, 0), t->s[0], t->s[1], t->s[2]};
}

bool tensors_same(const tensor *a, const tensor *b)
{
    for (ptrdiff_t x = 0; x < a->n[0]; x++)
        for (ptrdiff_t h = 0; h < a->n[1]; h++)
            for (ptrdiff_t i = 0; i < a->n[2]; i++)
                if (memcmp(tensor_at(a, x, h, i, 0), tensor_at(b, x, h, i, 0),
                           (size_t)a->n[3] * a->element) != 0)
                    return false;
    return true;
}
