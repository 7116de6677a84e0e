/* SPDX-License-Identifier: MIT */
/*
 * mha_merge(): joins two partial results of the same rows over different keys:
 *
 *      m = max(lse, lse2)        w = exp(lse - m)        w2 = exp(lse2 - m)
 *      o = (w * o + w2 * o2) / (w + w2)                  lse = m + log(w + w2)
 */
#include "core/internal.h"
#include "core/region.h"

#include <math.h>
#include <string.h>

/* The factors for a row of each part, and the log-sum-exp of both together. */
typedef struct shares {
    double first, second;
    double lse;
} shares;

/*
 * Neither log-sum-exp may be -inf. A part at +inf outweighs any finite one; if both are +inf, the
 * outputs become NaN.
 */
static shares share(double lse, double lse2)
{
    /* NaN is kept, although it compares as neither larger nor smaller. */
    const double m = lse2 > lse || isnan(lse2) ? lse2 : lse;
    if (m == (double)INFINITY && lse != lse2)
        return (shares){lse == m, lse2 == m, m};
    const double w = exp(lse - m), w2 = exp(lse2 - m);
    if (m == (double)INFINITY)
        return (shares){w, w2, m};
    return (shares){w / (w + w2), w2 / (w + w2), m + log(w + w2)};
}

/* ------------------------------------------------------------------ rows ----- */

/* o = first * o + second * o2 for one row of `n` elements of `type`; kernels NULL: f64. */
static void add_rows(const mhak_table *kernels, mha_dtype type, ptrdiff_t n, shares by, void *o,
                     const void *o2)
{
    if (!kernels) {
        double *const to = o;
        const double *const from = o2;
        for (ptrdiff_t c = 0; c < n; c++)
            to[c] = by.first * to[c] + by.second * from[c];
        return;
    }
    float sum[MHA_MAX_HEAD_WIDTH], part[MHA_MAX_HEAD_WIDTH];
    kernels->load_row[type](o, (int)n, (float)by.first, sum);
    kernels->load_row[type](o2, (int)n, (float)by.second, part);
    for (ptrdiff_t c = 0; c < n; c++)
        sum[c] += part[c];
    kernels->store_row[type](sum, (int)n, 1.0f, o);
}

static void merge_row(const mhak_table *kernels, const mha_shape *shape, void *o, void *lse,
                      const void *o2, const void *lse2)
{
    const mha_dtype type = shape->o_type, lse_type = kernels ? MHA_F32 : MHA_F64;
    const double first = mhai_element_read(lse, lse_type, 0);
    const double second = mhai_element_read(lse2, lse_type, 0);
    const double none = (double)-INFINITY;
    const size_t bytes = (size_t)shape->Dv * mha_dtype_size(type);
    if (first == none && second == none) {
        memset(o, 0, bytes);
    } else if (first == none) {
        memcpy(o, o2, bytes);
        mhai_element_write(lse, lse_type, 0, second);
    } else if (second != none) {
        const shares by = share(first, second);
        add_rows(kernels, type, shape->Dv, by, o, o2);
        mhai_element_write(lse, lse_type, 0, by.lse);
    }
}

/* ------------------------------------------------------------------ call ----- */

/* All tensors of a merge. Each has the rows of the shape. */
typedef struct tensors {
    mha_dtype type, lse_type;
    mha_out o, lse;
    mha_view o2, lse2;
} tensors;

/* The extents and types of a merge as those of an attention call, for its checks. */
static mha_shape as_problem(const mha_shape *s)
{
    const mha_dtype type = s->o_type;
    return (mha_shape){s->B, s->H, s->H, s->L, 0, s->Dv ? s->Dv : s->D, 0, type, type, type, type};
}

static mha_status check_tensors(const mhai_call *call, const tensors *t)
{
    const mha_shape *const s = &call->shape;
    mhai_regions list;
    mhai_regions_begin(&list, &call->options, s->B);
    mhai_regions_rows(&list, true, "o", mhai_as_view(t->o), t->type, s->H, s->L, s->Dv, NULL);
    mhai_regions_rows(&list, true, "lse", mhai_as_view(t->lse), t->lse_type, s->H, s->L, 1, NULL);
    mhai_regions_rows(&list, false, "o2", t->o2, t->type, s->H, s->L, s->Dv, NULL);
    mhai_regions_rows(&list, false, "lse2", t->lse2, t->lse_type, s->H, s->L, 1, NULL);
    return mhai_regions_check(&list, NULL, 0);
}

/* A merge as tasks of some rows each. */
typedef struct merging {
    const mhak_table *kernels; /* NULL: f64 */
    const mha_shape *shape;
    const tensors *tensors;
} merging;

enum { TASK_ROWS = 64 };

static void merge_some(void *arg, int worker, ptrdiff_t task)
{
    const merging *const m = arg;
    const mha_shape *const s = m->shape;
    const tensors *const t = m->tensors;
    const mha_view o = mhai_as_view(t->o), lse = mhai_as_view(t->lse);
    const ptrdiff_t end = mhai_min(s->B * s->H * s->L, (task + 1) * TASK_ROWS);
    (void)worker;
    for (ptrdiff_t n = task * TASK_ROWS; n < end; n++) {
        const ptrdiff_t i = n % s->L, h = n / s->L % s->H, b = n / s->L / s->H;
        merge_row(m->kernels, s, mhai_out_at(t->o.data, t->type, mhai_index(&o, false, b, 0, h, i)),
                  mhai_out_at(t->lse.data, t->lse_type, mhai_index(&lse, false, b, 0, h, i)),
                  mhai_at(t->o2.data, t->type, mhai_index(&t->o2, false, b, 0, h, i)),
                  mhai_at(t->lse2.data, t->lse_type, mhai_index(&t->lse2, false, b, 0, h, i)));
    }
}

mha_status mha_merge_pooled(const mha_shape *shape, mha_out o, mha_out lse, mha_view o2,
                            mha_view lse2, mha_pool *pool)
{
    mhai_call call = {.options = {.size = sizeof call.options}};
    const mhak_table *kernels;
    mha_status status;
    if (!shape)
        return MHA_ERR_NULL;
    const mha_shape problem = as_problem(shape);
    const bool exact = shape->o_type == MHA_F64;
    const tensors t = {shape->o_type, exact ? MHA_F64 : MHA_F32, o, lse, o2, lse2};
    if ((status = mhai_check_problem(&problem, &call)) || (status = mhai_kernels(&kernels)))
        return status;
    if (call.shape.Dv == 0)
        return MHA_OK;
    if ((status = check_tensors(&call, &t)))
        return status;
    merging all = {exact ? NULL : kernels, &call.shape, &t};
    mha_pool_run(pool, mhai_ceil_div(call.shape.B * call.shape.H * call.shape.L, TASK_ROWS),
                 merge_some, &all);
    return MHA_OK;
}

mha_status mha_merge(const mha_shape *shape, mha_out o, mha_out lse, mha_view o2, mha_view lse2)
{
    return mha_merge_pooled(shape, o, lse, o2, lse2, NULL);
}
