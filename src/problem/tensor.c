/* SPDX-License-Identifier: MIT */
#include "problem/tensor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"

enum { ALIGNMENT = 64 };

/* Far more than any machine has; keeps all index arithmetic within 64 bits. */
#define COUNT_MAX ((ptrdiff_t)1 << 44)

static bool allocate(tensor *t)
{
    const size_t bytes = tensor_bytes(t);
    const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    t->block = aligned_alloc(ALIGNMENT, rounded);
    return t->block != NULL;
}

/* Puts one more axis around `run` elements and returns the length of the whole. */
static ptrdiff_t add_axis(tensor *t, ptrdiff_t *stride, ptrdiff_t run, ptrdiff_t extent, bool share,
                          bool flip)
{
    *stride = share ? 0 : run;
    if (share || extent <= 0)
        return run;
    if (run > COUNT_MAX / extent)
        return -1;
    if (flip) {
        t->base += (extent - 1) * run;
        *stride = -run;
    }
    return run * extent;
}

bool tensor_create(tensor *t, mha_dtype type, tensor_extent e, const tensor_layout *layout,
                   int fill)
{
    const tensor_layout plain = {0};
    const tensor_layout *y = layout != NULL ? layout : &plain;
    *t = (tensor){.type = type, .base = y->lead};
    ptrdiff_t run = e.width + y->gap[0];
    if (y->rows_outside)
        run = add_axis(t, &t->sh, run, e.h, y->share_h, y->flip_h);
    else
        run = add_axis(t, &t->sl, run, e.l, y->share_l, y->flip_l);
    if (run < 0)
        return false;
    run += y->gap[1];
    if (y->rows_outside)
        run = add_axis(t, &t->sl, run, e.l, y->share_l, y->flip_l);
    else
        run = add_axis(t, &t->sh, run, e.h, y->share_h, y->flip_h);
    if (run < 0)
        return false;
    run = add_axis(t, &t->sb, run + y->gap[2], e.b, y->share_b, y->flip_b);
    if (run < 0)
        return false;
    t->count = y->lead + run + 1;
    if (!allocate(t))
        return false;
    memset(t->block, fill, tensor_bytes(t));
    return true;
}

void tensor_free(tensor *t)
{
    free(t->block);
    t->block = NULL;
}

double tensor_read(const tensor *t, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c)
{
    return element_load(t->type, t->block, tensor_index(t, b, h, i, c));
}

size_t tensor_bytes(const tensor *t)
{
    return (size_t)t->count * mha_dtype_size(t->type);
}

static char *first_element(const tensor *t)
{
    return (char *)t->block + t->base * (ptrdiff_t)mha_dtype_size(t->type);
}

mha_view tensor_view(const tensor *t)
{
    return (mha_view){t->block != NULL ? first_element(t) : NULL, t->sb, t->sh, t->sl};
}

mha_out tensor_out(const tensor *t)
{
    return (mha_out){t->block != NULL ? first_element(t) : NULL, t->sb, t->sh, t->sl};
}

bool tensor_copy_f64(tensor *copy, const tensor *t)
{
    *copy = *t;
    copy->type = MHA_F64;
    if (t->block == NULL)
        return true;
    if (!allocate(copy))
        return false;
    double *out = copy->block;
    for (ptrdiff_t n = 0; n < t->count; n++)
        out[n] = element_load(t->type, t->block, n);
    return true;
}
