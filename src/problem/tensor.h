/* SPDX-License-Identifier: MIT */
/* Tensors of four axes with memory of their own, in any layout the library's views can describe. */
#ifndef PROBLEM_TENSOR_H
#define PROBLEM_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include <mha/mha.h>

typedef struct tensor {
    mha_dtype type;
    ptrdiff_t count;      /* elements in `block`, gaps included */
    ptrdiff_t base;       /* where element (0, 0, 0, 0) lies */
    ptrdiff_t sb, sh, sl; /* as in mha_view */
    void *block;          /* NULL: no tensor */
} tensor;

/* How the axes lie in memory. All zero: contiguous [B, heads, rows, width]. */
typedef struct tensor_layout {
    bool rows_outside;              /* [B, rows, heads, width] */
    ptrdiff_t lead, gap[3];         /* unused elements before all, after each axis */
    bool flip_b, flip_h, flip_l;    /* negative strides */
    bool share_b, share_h, share_l; /* stride 0: inputs only */
} tensor_layout;

typedef struct tensor_extent {
    ptrdiff_t b, h, l, width;
} tensor_extent;

/* Memory aligned to 64 bytes, filled with `fill` bytes. False if there is none. */
bool tensor_create(tensor *t, mha_dtype type, tensor_extent extent, const tensor_layout *layout,
                   int fill);

/* NULL block is allowed. */
void tensor_free(tensor *t);

static inline ptrdiff_t tensor_index(const tensor *t, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                                     ptrdiff_t c)
{
    return t->base + b * t->sb + h * t->sh + i * t->sl + c;
}

double tensor_read(const tensor *t, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c);

size_t tensor_bytes(const tensor *t);
mha_view tensor_view(const tensor *t);
mha_out tensor_out(const tensor *t);

/* The same tensor in f64, gaps included; a tensor without memory gives one without. */
bool tensor_copy_f64(tensor *copy, const tensor *t);

#endif
