/* SPDX-License-Identifier: MIT */
/*
 * Every argument of the operator is checked here, once. First what needs no data
 * (mhai_check_problem), then pointers, arrays and memory (mhai_check_data). Nothing is written
 * before all checks have passed.
 */
#include "core/statistics.h"

#include <math.h>
#include <string.h>

/* --------------------------------------------------------------- options ----- */

/* Bytes after the fields that this library knows must be 0: a newer caller then requests nothing
 * new. */
static bool all_zero(const char *bytes, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (bytes[n])
            return false;
    return true;
}

bool mhai_struct_read(const void *given, void *full, size_t least, size_t known)
{
    const size_t most = 1 << 16;
    size_t size;
    memcpy(&size, given, sizeof size);
    memset(full, 0, known);
    /* Every version of a struct ends at a multiple of its alignment, so no field is cut in two. */
    if (size < least || size > most || size % sizeof(void *) != 0)
        return false;
    if (size > known && !all_zero((const char *)given + known, size - known))
        return false;
    memcpy(full, given, size < known ? size : known);
    return true;
}

mha_status mhai_options_read(const mha_options *options, mha_options *full)
{
    memset(full, 0, sizeof *full);
    full->size = sizeof *full;
    if (!options)
        return MHA_OK;
    if (!mhai_struct_read(options, full, offsetof(mha_options, offset), sizeof *full))
        return MHA_ERR_STRUCT;
    full->size = sizeof *full;
    return MHA_OK;
}

mha_status mhai_check_arithmetic(const mha_options *message, const char *where,
                                 mha_arithmetic arithmetic)
{
    if (arithmetic == MHA_EXACT || arithmetic == MHA_NATIVE)
        return MHA_OK;
    return mhai_fail(message, MHA_ERR_FLAG, "%s.arithmetic is %d; use MHA_EXACT or MHA_NATIVE",
                     where, (int)arithmetic);
}

static mha_status check_scale(const mha_options *o, const char *name, double scale)
{
    return isfinite(scale) ? MHA_OK
                           : mhai_fail(o, MHA_ERR_SCALE,
                                       "options.%s is %g; use a finite number, or 0 for 1/sqrt(D)",
                                       name, scale);
}

static mha_status check_softcap(const mha_options *o, const char *name, double cap)
{
    return isfinite(cap) && cap >= 0
               ? MHA_OK
               : mhai_fail(o, MHA_ERR_SOFTCAP,
                           "options.%s is %g; use a positive number, or 0 for none", name, cap);
}

static mha_status check_numbers(const mha_options *o)
{
    const uint32_t known = MHA_CAUSAL | MHA_WINDOW | MHA_AVERAGE_WEIGHTS | MHA_TRAINING;
    if (o->flags & ~known)
        return mhai_fail(o, MHA_ERR_FLAG, "options.flags has unknown bits 0x%x", o->flags & ~known);
    if ((unsigned)o->position > MHA_POSITION_OFFSET)
        return mhai_fail(o, MHA_ERR_FLAG, "options.position is %d; use an MHA_POSITION_ value",
                         (int)o->position);
    if ((unsigned)o->weights_mode > MHA_WEIGHTS_BIAS)
        return mhai_fail(o, MHA_ERR_FLAG, "options.weights_mode is %d; use an MHA_WEIGHTS_ value",
                         (int)o->weights_mode);
    mha_status status;
    if ((status = check_scale(o, "scale", (double)o->scale)) ||
        (status = check_scale(o, "scale64", o->scale64)) ||
        (status = check_softcap(o, "softcap", (double)o->softcap)) ||
        (status = check_softcap(o, "softcap64", o->softcap64)))
        return status;
    if (!(o->dropout >= 0.0f && o->dropout < 1.0f - 0x1p-17f))
        return mhai_fail(o, MHA_ERR_DROPOUT,
                         "options.dropout is %g; use a probability below 1, or 0 for none",
                         (double)o->dropout);
    for (int n = 0; n < 4; n++)
        if (o->dropout_first[n] < 0 || o->dropout_first[n] > MHAI_MAX_EXTENT)
            return mhai_fail(o, MHA_ERR_DROPOUT,
                             "options.dropout_first[%d] is %lld; counters begin at 0 or later", n,
                             (long long)o->dropout_first[n]);
    if (o->gates && o->gates_sb < 0)
        return mhai_fail(o, MHA_ERR_STRIDE,
                         "options.gates_sb is %td; strides of gates are not "
                         "negative",
                         o->gates_sb);
    if ((o->flags & MHA_WINDOW) && (o->window_left < -1 || o->window_right < -1))
        return mhai_fail(o, MHA_ERR_WINDOW,
                         "the window is (%td, %td); an edge is a count of keys, "
                         "or -1 for open",
                         o->window_left, o->window_right);
    return mhai_check_arithmetic(o, "options", o->arithmetic);
}

/* ----------------------------------------------------------------- shape ----- */

static mha_status check_extents(const mha_shape *s, const mha_options *o)
{
    static const char *const names[] = {"B", "H", "G", "L", "S", "D", "Dv"};
    const ptrdiff_t extents[] = {s->B, s->H, s->G, s->L, s->S, s->D, s->Dv};
    for (int n = 0; n < 7; n++) {
        if (extents[n] < 0)
            return mhai_fail(o, MHA_ERR_SHAPE, "shape.%s is %td; extents must not be negative",
                             names[n], extents[n]);
        if (extents[n] > MHAI_MAX_EXTENT)
            return mhai_fail(o, MHA_ERR_OVERFLOW, "shape.%s is %td: larger than any memory",
                             names[n], extents[n]);
    }
    if (s->G > 0 && s->H % s->G != 0)
        return mhai_fail(o, MHA_ERR_SHAPE,
                         "H = %td query heads cannot share G = %td key/value "
                         "heads; H must be a multiple of G",
                         s->H, s->G);
    if (s->D > MHA_MAX_HEAD_WIDTH || s->Dv > MHA_MAX_HEAD_WIDTH)
        return mhai_fail(o, MHA_ERR_SHAPE, "D = %td, Dv = %td; a head is at most %d wide", s->D,
                         s->Dv, MHA_MAX_HEAD_WIDTH);
    return MHA_OK;
}

/* Row numbers and the workspace must be countable. */
static mha_status check_products(const mha_shape *s, const mha_options *o)
{
    ptrdiff_t rows, bytes;
    if (__builtin_mul_overflow(s->B, s->H, &rows) || __builtin_mul_overflow(rows, s->L, &rows) ||
        __builtin_mul_overflow(rows, 16, &bytes) || __builtin_mul_overflow(s->S, 32, &bytes))
        return mhai_fail(o, MHA_ERR_OVERFLOW, "B * H * L = %td * %td * %td rows cannot be counted",
                         s->B, s->H, s->L);
    return MHA_OK;
}

static bool is_f64(mha_dtype type)
{
    return type == MHA_F64;
}

static mha_status check_types(const mha_shape *s, const mha_options *o)
{
    const mha_dtype types[] = {s->q_type,        s->k_type,    s->v_type,      s->o_type,
                               o->add_mask_type, o->bias_type, o->weights_type};
    static const char *const names[] = {
        "shape.q_type",          "shape.k_type",      "shape.v_type",        "shape.o_type",
        "options.add_mask_type", "options.bias_type", "options.weights_type"};
    for (int n = 0; n < 7; n++) {
        if (mha_dtype_size(types[n]) == 0 || types[n] == MHA_I8)
            return mhai_fail(o, MHA_ERR_DTYPE, "%s is %d (%s); use MHA_F32, MHA_F16 or MHA_BF16%s",
                             names[n], (int)types[n], mhai_dtype_name(types[n]),
                             is_f64(s->q_type) ? ", or MHA_F64" : "");
        const bool mixed =
            n < 4 ? is_f64(types[n]) != is_f64(s->q_type) : is_f64(types[n]) && !is_f64(s->q_type);
        if (mixed)
            return mhai_fail(
                o, MHA_ERR_DTYPE,
                "%s does not go with shape.q_type: q, k, v and o are f64 together or not "
                "at all, and nothing else is f64 unless they are",
                names[n]);
    }
    return MHA_OK;
}

mha_status mhai_check_problem(const mha_shape *shape, mhai_call *call)
{
    const mha_options *const o = &call->options;
    mha_status status;
    if (!shape)
        return mhai_fail(o, MHA_ERR_NULL, "shape is NULL");
    if ((status = check_extents(shape, o)) || (status = check_types(shape, o)) ||
        (status = check_numbers(o)) || (status = mhai_check_statistics(call)))
        return status;
    call->shape = *shape;
    if (call->shape.G == 0)
        call->shape.G = call->shape.H;
    if (call->shape.Dv == 0)
        call->shape.Dv = call->shape.D;
    const bool wide = is_f64(shape->q_type);
    const double scale = wide && o->scale64 != 0 ? o->scale64 : (double)o->scale;
    call->scale = scale != 0 ? scale : 1 / sqrt((double)mhai_max(1, shape->D));
    call->softcap = wide && o->softcap64 != 0 ? o->softcap64 : (double)o->softcap;
    return check_products(&call->shape, o);
}

/* --------------------------------------------------------- length arrays ----- */

static mha_status check_starts(const mha_options *o, const char *name, const int64_t *starts,
                               ptrdiff_t B, ptrdiff_t longest)
{
    if (!starts)
        return MHA_OK;
    if (starts[0] < 0 || starts[0] > MHAI_MAX_EXTENT)
        return mhai_fail(o, MHA_ERR_LENGTH, "options.%s[0] is %lld; a start is a row of the view",
                         name, (long long)starts[0]);
    for (ptrdiff_t b = 0; b < B; b++) {
        if (starts[b + 1] < starts[b] || starts[b + 1] > MHAI_MAX_EXTENT)
            return mhai_fail(o, MHA_ERR_LENGTH, "options.%s[%td] is %lld after %lld; starts ascend",
                             name, b + 1, (long long)starts[b + 1], (long long)starts[b]);
        if (starts[b + 1] - starts[b] > longest)
            return mhai_fail(o, MHA_ERR_LENGTH,
                             "options.%s gives batch %td %lld rows; the shape "
                             "says at most %td",
                             name, b, (long long)(starts[b + 1] - starts[b]), longest);
    }
    return MHA_OK;
}

static mha_status check_lengths(const mha_options *o, const char *name, const int64_t *lengths,
                                const int64_t *starts, ptrdiff_t B, ptrdiff_t longest)
{
    if (!lengths)
        return MHA_OK;
    for (ptrdiff_t b = 0; b < B; b++) {
        const int64_t most = starts ? starts[b + 1] - starts[b] : longest;
        if (lengths[b] < 0 || lengths[b] > most)
            return mhai_fail(o, MHA_ERR_LENGTH, "options.%s[%td] is %lld; it must lie in [0, %lld]",
                             name, b, (long long)lengths[b], (long long)most);
    }
    return MHA_OK;
}

/* An unset position is unambiguous only where a batch has as many queries as keys. */
static mha_status check_positions(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    const bool used = (o->flags & (MHA_CAUSAL | MHA_WINDOW)) || o->alibi_slopes;
    if (!used || o->position != MHA_POSITION_UNSET)
        return MHA_OK;
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        const mhai_batch batch = mhai_batch_of(call, b);
        if (batch.queries != batch.keys)
            return mhai_fail(o, MHA_ERR_POSITION,
                             "batch %td has %td queries and %td keys: say "
                             "where query 0 stands with options.position (MHA_POSITION_TOP_LEFT, "
                             "_BOTTOM_RIGHT or _OFFSET)",
                             b, batch.queries, batch.keys);
    }
    return MHA_OK;
}

static mha_status check_arrays(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    const mha_shape *const s = &call->shape;
    mha_status status;
    if ((status = check_starts(o, "q_starts", o->q_starts, s->B, s->L)) ||
        (status = check_starts(o, "k_starts", o->k_starts, s->B, s->S)) ||
        (status = check_lengths(o, "q_lengths", o->q_lengths, o->q_starts, s->B, s->L)) ||
        (status = check_lengths(o, "k_lengths", o->k_lengths, o->k_starts, s->B, s->S)))
        return status;
    return check_positions(call);
}

static mha_status check_chosen(const mha_options *o, const char *name, const int64_t *list,
                               ptrdiff_t count, ptrdiff_t extent)
{
    if (!list)
        return MHA_OK;
    if (count < 0 || count > MHAI_MAX_EXTENT)
        return mhai_fail(o, MHA_ERR_INDEX, "the count of options.%s is %td", name, count);
    for (ptrdiff_t n = 0; n < count; n++)
        if (list[n] < 0 || list[n] >= extent)
            return mhai_fail(o, MHA_ERR_INDEX, "options.%s[%td] is %lld; it must lie in [0, %td)",
                             name, n, (long long)list[n], extent);
    return MHA_OK;
}

static mha_status check_weights(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    mha_status status;
    if ((status = check_chosen(o, "weights_heads", o->weights_heads, o->weights_head_count,
                               call->shape.H)) ||
        (status =
             check_chosen(o, "weights_rows", o->weights_rows, o->weights_row_count, call->shape.L)))
        return status;
    if ((o->flags & MHA_AVERAGE_WEIGHTS) && mhai_weights_heads(call) == 0)
        return mhai_fail(o, MHA_ERR_INDEX, "options.weights_head_count is 0; a mean needs a head");
    return MHA_OK;
}

static mha_status check_modes(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    for (ptrdiff_t h = 0; o->head_modes && h < call->shape.H; h++) {
        if (o->head_modes[h] > MHA_HEAD_MEAN)
            return mhai_fail(o, MHA_ERR_FLAG,
                             "options.head_modes[%td] is %d; use an MHA_HEAD_ value", h,
                             (int)o->head_modes[h]);
        if (o->head_modes[h] == MHA_HEAD_MEAN && !o->head_means)
            return mhai_fail(o, MHA_ERR_NULL,
                             "options.head_means is NULL, but head %td has MHA_HEAD_MEAN", h);
    }
    return MHA_OK;
}

static mha_status check_documents(const mha_options *o)
{
    if (!o->q_documents == !o->k_documents)
        return MHA_OK;
    return mhai_fail(o, MHA_ERR_NULL,
                     "options.%s is NULL although the other is given; documents "
                     "need both",
                     o->q_documents ? "k_documents" : "q_documents");
}

/* ------------------------------------------------------------------ data ----- */

static mha_status check_arrays_aligned(const mha_options *o)
{
    const struct {
        const char *name;
        const void *data;
        size_t size;
    } arrays[] = {{"offsets", o->offsets, 8},
                  {"alibi_slopes", o->alibi_slopes, 4},
                  {"sinks", o->sinks, 4},
                  {"gates", o->gates, 4},
                  {"head_means", o->head_means, 4},
                  {"q_lengths", o->q_lengths, 8},
                  {"k_lengths", o->k_lengths, 8},
                  {"q_starts", o->q_starts, 8},
                  {"k_starts", o->k_starts, 8},
                  {"q_documents", o->q_documents, 4},
                  {"k_documents", o->k_documents, 4},
                  {"weights_heads", o->weights_heads, 8},
                  {"weights_rows", o->weights_rows, 8}};
    for (size_t n = 0; n < sizeof arrays / sizeof arrays[0]; n++)
        if (!mhai_aligned(arrays[n].data, arrays[n].size))
            return mhai_fail(o, MHA_ERR_ALIGN, "options.%s is not aligned to its %zu-byte elements",
                             arrays[n].name, arrays[n].size);
    return MHA_OK;
}

mha_status mhai_check_lists(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    mha_status status;
    if ((status = check_arrays_aligned(o)) || (status = check_documents(o)) ||
        (status = check_modes(call)) || (status = check_arrays(call)))
        return status;
    return o->weights.data ? check_weights(call) : MHA_OK;
}

mha_status mhai_check_data(const mhai_call *call, const void *work, size_t work_size)
{
    if (call->shape.B == 0 || call->shape.H == 0 || call->shape.L == 0 || call->shape.D == 0)
        return MHA_OK;
    const mha_status status = mhai_check_lists(call);
    return status ? status : mhai_check_memory(call, work, work_size);
}
