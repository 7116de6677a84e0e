/* SPDX-License-Identifier: MIT */
/*
 * Checks that regions of memory do not overlap. Two regions are separated by their outer bounds or,
 * where they interleave (o beside q, k and v in one fused buffer), axis by axis by the strides they
 * share. Regions that interleave in other ways count as overlapping.
 */
#include "core/statistics.h"

/* ----------------------------------------------------------- one region ----- */

static size_t magnitude(ptrdiff_t x)
{
    return x < 0 ? 0 - (size_t)x : (size_t)x;
}

static bool empty(const mhai_region *r)
{
    return r->width == 0 || r->extent[0] == 0 || r->extent[1] == 0 || r->extent[2] == 0;
}

/* No memory is larger than this: a region that reaches further has wrong strides. */
#define MOST_BYTES (PTRDIFF_MAX >> (sizeof(ptrdiff_t) > 4 ? 7 : 0))

/* Fills in low and high; false if they do not fit in the address space. */
static bool bound(mhai_region *r)
{
    r->low = 0;
    r->high = r->width;
    for (int a = 0; a < MHAI_AXES; a++) {
        ptrdiff_t reach;
        if (__builtin_mul_overflow(r->extent[a] - 1, r->stride[a], &reach))
            return false;
        ptrdiff_t *const end = reach < 0 ? &r->low : &r->high;
        if (__builtin_add_overflow(*end, reach, end))
            return false;
    }
    if (r->low < -MOST_BYTES || r->high > MOST_BYTES)
        return false;
    const uintptr_t at = (uintptr_t)r->data;
    return at + (uintptr_t)r->high >= at && at >= magnitude(r->low < 0 ? r->low : 0);
}

/* Sorts axes by stride, largest first; axes of extent 1 do not matter and get stride 0. */
static void sort_axes(mhai_region *r)
{
    for (int a = 0; a < MHAI_AXES; a++)
        if (r->extent[a] == 1)
            r->stride[a] = 0;
    for (int a = 1; a < MHAI_AXES; a++)
        for (int b = a; b > 0; b--) {
            const ptrdiff_t x = r->stride[b - 1], y = r->stride[b];
            if (magnitude(x) >= magnitude(y))
                break;
            const ptrdiff_t extent = r->extent[b];
            r->stride[b] = x;
            r->stride[b - 1] = y;
            r->extent[b] = r->extent[b - 1];
            r->extent[b - 1] = extent;
        }
}

/* The same bytes, counted from the lowest address with strides that are not negative. */
static void make_strides_positive(mhai_region *r)
{
    r->data += r->low;
    r->high -= r->low;
    r->low = 0;
    for (int a = 0; a < MHAI_AXES; a++)
        r->stride[a] = r->stride[a] < 0 ? -r->stride[a] : r->stride[a];
}

/* A broadcast axis touches the same bytes repeatedly. */
static void drop_broadcasts(mhai_region *r)
{
    for (int a = 0; a < MHAI_AXES; a++)
        if (r->stride[a] == 0)
            r->extent[a] = 1;
}

/* Extends the run by axes that continue it without a gap, which leaves fewer strides to check. */
static void join_axes(mhai_region *r)
{
    for (int a = MHAI_AXES - 1; a >= 0; a--) {
        if (r->extent[a] == 1)
            continue;
        if (r->stride[a] != r->width)
            break;
        r->width *= r->extent[a];
        r->extent[a] = 1;
        r->stride[a] = 0;
    }
}

/* Do distinct elements have distinct addresses? Each axis must step over everything inside it. */
static bool apart(const mhai_region *r)
{
    ptrdiff_t inside = r->width;
    for (int a = MHAI_AXES - 1; a >= 0; a--) {
        if (r->extent[a] <= 1)
            continue;
        if (r->stride[a] < inside)
            return false;
        inside += (r->extent[a] - 1) * r->stride[a];
    }
    return true;
}

/* ---------------------------------------------------------- two regions ----- */

/* Bytes from the first to the last of the axes from `axis` on. */
static ptrdiff_t span(const mhai_region *r, int axis)
{
    ptrdiff_t bytes = r->width;
    for (int a = axis; a < MHAI_AXES; a++)
        bytes += (r->extent[a] - 1) * r->stride[a];
    return bytes;
}

static int next_axis(const mhai_region *r, int axis)
{
    while (axis < MHAI_AXES && r->extent[axis] == 1)
        axis++;
    return axis;
}

/* Stride of an axis; 0 past the last one. */
static ptrdiff_t step_of(const mhai_region *r, int axis)
{
    return axis < MHAI_AXES ? r->stride[axis] : 0;
}

/*
 * Are the parts of a and b from these axes on disjoint, if that of b starts `shift` bytes after
 * that of a? Yes if their spans do not meet. If everything inside the larger stride fits into it,
 * the repetitions can only meet at the remainder of the shift, from either side.
 */
static bool lie_apart(const mhai_region *a, int axis_a, const mhai_region *b, int axis_b,
                      ptrdiff_t shift)
{
    if (shift >= span(a, axis_a) || -shift >= span(b, axis_b))
        return true;
    axis_a = next_axis(a, axis_a);
    axis_b = next_axis(b, axis_b);
    const ptrdiff_t period = mhai_max(step_of(a, axis_a), step_of(b, axis_b));
    const int inner_a = axis_a + (step_of(a, axis_a) == period);
    const int inner_b = axis_b + (step_of(b, axis_b) == period);
    if (period == 0 || span(a, inner_a) > period || span(b, inner_b) > period)
        return false;
    const ptrdiff_t rest = ((shift % period) + period) % period;
    return lie_apart(a, inner_a, b, inner_b, rest) &&
           lie_apart(a, inner_a, b, inner_b, rest - period);
}

static bool overlap(const mhai_region *a, const mhai_region *b)
{
    const uintptr_t at_a = (uintptr_t)a->data, at_b = (uintptr_t)b->data;
    if (empty(a) || empty(b) || at_a + (uintptr_t)a->high <= at_b ||
        at_b + (uintptr_t)b->high <= at_a)
        return false;
    return !lie_apart(a, 0, b, 0, (ptrdiff_t)(at_b - at_a));
}

/* ------------------------------------------------------------- the list ----- */

static void add(mhai_regions *list, bool output, mhai_region r, ptrdiff_t element)
{
    const mha_options *const o = list->options;
    if (list->status || empty(&r))
        return;
    if (!r.data)
        list->status = mhai_fail(o, MHA_ERR_NULL, "%s is NULL", r.name);
    else if (!mhai_aligned(r.data, (size_t)element))
        list->status = mhai_fail(o, MHA_ERR_ALIGN, "%s is not aligned to its %td-byte elements",
                                 r.name, element);
    if (list->status)
        return;
    sort_axes(&r);
    if (!bound(&r)) {
        list->status = mhai_fail(o, MHA_ERR_OVERFLOW,
                                 "%s reaches beyond the address space; look "
                                 "at its strides",
                                 r.name);
        return;
    }
    make_strides_positive(&r);
    if (!output)
        drop_broadcasts(&r);
    join_axes(&r);
    if (output && !apart(&r)) {
        list->status = mhai_fail(o, MHA_ERR_STRIDE,
                                 "%s has elements that share an address; look "
                                 "at its strides",
                                 r.name);
        return;
    }
    if (output)
        list->outputs[list->output_count++] = r;
    else
        list->inputs[list->input_count++] = r;
}

void mhai_regions_rows(mhai_regions *list, bool output, const char *name, mha_view x,
                       mha_dtype type, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width,
                       const int64_t *starts)
{
    const ptrdiff_t size = (ptrdiff_t)mha_dtype_size(type), B = list->B;
    mhai_region r = {.name = name, .data = x.data, .width = width * size};
    r.extent[0] = starts ? 1 : B;
    r.extent[1] = heads;
    r.extent[2] = starts ? (ptrdiff_t)starts[B] : rows;
    const ptrdiff_t strides[MHAI_AXES] = {starts ? 0 : x.sb, x.sh, x.sl};
    bool fits = true;
    for (int a = 0; a < MHAI_AXES; a++)
        fits &= !__builtin_mul_overflow(strides[a], size, &r.stride[a]) || r.extent[a] <= 1;
    if (!fits && !list->status)
        list->status = mhai_fail(list->options, MHA_ERR_OVERFLOW,
                                 "%s reaches beyond the address space; look at its strides", name);
    add(list, output, r, size);
}

void mhai_regions_array(mhai_regions *list, const char *name, const void *data, ptrdiff_t count,
                        ptrdiff_t size)
{
    const mhai_region r = {.name = name, .data = data, .extent = {1, 1, 1}, .width = count * size};
    if (data)
        add(list, false, r, size);
}

/* A tensor over scores: [B][H][L][S]. */
static void add_pairs(mhai_regions *list, const mha_shape *s, const char *name, mha_view x,
                      mha_dtype type)
{
    if (x.data)
        mhai_regions_rows(list, false, name, x, type, s->H, s->L, s->S, NULL);
}

static void add_bytes(mhai_regions *list, const mha_shape *s, const char *name, mha_view x)
{
    const mhai_region r = {.name = name,
                           .data = x.data,
                           .extent = {s->B, s->H, s->L},
                           .stride = {x.sb, x.sh, x.sl},
                           .width = s->S};
    if (x.data)
        add(list, false, r, 1);
}

/* Document ids: [B][rows], or packed with those of all batches. */
static void add_documents(mhai_regions *list, const char *name, const int32_t *data, ptrdiff_t sb,
                          ptrdiff_t rows, const int64_t *starts)
{
    const mha_view x = {data, sb, 0, 1};
    if (data && starts)
        mhai_regions_array(list, name, data, (ptrdiff_t)starts[list->B], sizeof *data);
    else if (data)
        mhai_regions_rows(list, false, name, x, MHA_F32, 1, rows, 1, NULL);
}

static void add_arrays(mhai_regions *list, const mhai_call *call)
{
    const mha_shape *const s = &call->shape;
    const mha_options *const o = &call->options;
    mhai_regions_array(list, "options.offsets", o->offsets, s->B, 8);
    mhai_regions_array(list, "options.alibi_slopes", o->alibi_slopes, s->H, 4);
    mhai_regions_array(list, "options.sinks", o->sinks, s->H, 4);
    if (o->gates)
        mhai_regions_rows(list, false, "options.gates", (mha_view){o->gates, o->gates_sb, 1, 0},
                          MHA_F32, s->H, 1, 1, NULL);
    mhai_regions_array(list, "options.head_modes", o->head_modes, s->H, 1);
    mhai_regions_array(list, "options.head_means", o->head_means, s->H * s->Dv, 4);
    mhai_regions_array(list, "options.q_lengths", o->q_lengths, s->B, 8);
    mhai_regions_array(list, "options.k_lengths", o->k_lengths, s->B, 8);
    mhai_regions_array(list, "options.q_starts", o->q_starts, s->B + 1, 8);
    mhai_regions_array(list, "options.k_starts", o->k_starts, s->B + 1, 8);
    if (o->weights.data) {
        mhai_regions_array(list, "options.weights_heads", o->weights_heads, o->weights_head_count,
                           8);
        mhai_regions_array(list, "options.weights_rows", o->weights_rows, o->weights_row_count, 8);
    }
}

void mhai_regions_options(mhai_regions *list, const mhai_call *call, ptrdiff_t columns)
{
    const mha_shape *const s = &call->shape;
    const mha_options *const o = &call->options;
    add_bytes(list, s, "options.attend_mask", o->attend_mask);
    add_bytes(list, s, "options.ignore_mask", o->ignore_mask);
    add_pairs(list, s, "options.add_mask", o->add_mask, o->add_mask_type);
    add_pairs(list, s, "options.bias", o->bias, o->bias_type);
    add_arrays(list, call);
    add_documents(list, "options.q_documents", o->q_documents, o->q_documents_sb, s->L,
                  o->q_starts);
    add_documents(list, "options.k_documents", o->k_documents, o->k_documents_sb, s->S,
                  o->k_starts);
    if (o->lse.data)
        mhai_regions_rows(list, true, "options.lse", mhai_as_view(o->lse),
                          s->q_type == MHA_F64 ? MHA_F64 : MHA_F32, s->H, s->L, 1, o->q_starts);
    if (o->weights.data)
        mhai_regions_rows(list, true, "options.weights", mhai_as_view(o->weights), o->weights_type,
                          o->flags & MHA_AVERAGE_WEIGHTS ? 1 : mhai_weights_heads(call),
                          mhai_weights_rows(call), columns, NULL);
    mhai_statistics_regions(list, call);
}

static mha_status check_overlaps(const mhai_regions *list)
{
    for (int a = 0; a < list->output_count; a++) {
        for (int b = 0; b < a; b++)
            if (overlap(&list->outputs[a], &list->outputs[b]))
                return mhai_fail(list->options, MHA_ERR_OVERLAP, "%s overlaps %s",
                                 list->outputs[a].name, list->outputs[b].name);
        for (int b = 0; b < list->input_count; b++)
            if (overlap(&list->outputs[a], &list->inputs[b]))
                return mhai_fail(list->options, MHA_ERR_OVERLAP,
                                 "%s overlaps %s; nothing here works in place",
                                 list->outputs[a].name, list->inputs[b].name);
    }
    return MHA_OK;
}

mha_status mhai_regions_check(mhai_regions *list, const void *work, size_t work_size)
{
    if (list->status)
        return list->status;
    const mhai_region memory = {.name = "the workspace",
                                .data = work,
                                .extent = {1, 1, 1},
                                .width = (ptrdiff_t)work_size,
                                .high = (ptrdiff_t)work_size};
    for (int n = 0; work && n < list->input_count; n++)
        if (overlap(&memory, &list->inputs[n]))
            return mhai_fail(list->options, MHA_ERR_OVERLAP, "the workspace overlaps %s",
                             list->inputs[n].name);
    if (work)
        list->inputs[list->input_count++] = memory;
    return check_overlaps(list);
}

mha_status mhai_check_memory(const mhai_call *call, const void *work, size_t work_size)
{
    const mha_shape *const s = &call->shape;
    const mha_options *const o = &call->options;
    mhai_regions list;
    mhai_regions_begin(&list, o, s->B);
    mhai_regions_rows(&list, false, "q", call->q, s->q_type, s->H, s->L, s->D, o->q_starts);
    if (!call->cache) {
        mhai_regions_rows(&list, false, "k", call->k, s->k_type, s->G, s->S, s->D, o->k_starts);
        mhai_regions_rows(&list, false, "v", call->v, s->v_type, s->G, s->S, s->Dv, o->k_starts);
    }
    mhai_regions_rows(&list, true, "o", mhai_as_view(call->o), s->o_type, s->H, s->L, s->Dv,
                      o->q_starts);
    mhai_regions_options(&list, call, s->S);
    return mhai_regions_check(&list, work, work_size);
}
