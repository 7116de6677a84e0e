/* SPDX-License-Identifier: MIT */
/* Makes a call of the operator from arguments: takes query, key and value, checks that they agree,
 * and derives the shape. Options are read by py_options.c. */
#include "py_call.h"

#include <string.h>

int mhap_layout_read(const mhap_state *state, PyObject *layout, bool *heads_last)
{
    static const char *const names[] = {"bhld", "blhd", NULL};
    const int number = layout ? mhap_choice(state, layout, "layout", names) : 0;
    *heads_last = number == 1;
    return number < 0 ? -1 : 0;
}

/* -------------------------------------------------------------- tensors ----- */

static int wrong_axes(const mhap_state *state, const mhap_tensor *t, bool heads_last, bool packed)
{
    char has[MHAP_SHAPE_TEXT];
    const char *const wanted = packed ? heads_last ? "(rows, heads, width) or (rows, width)"
                                                   : "(heads, rows, width) or (rows, width)"
                               : heads_last
                                   ? "(batch, rows, heads, width), (rows, heads, width) or (rows, "
                                     "width)"
                                   : "(batch, heads, rows, width), (heads, rows, width) or (rows, "
                                     "width)";
    return mhap_fail(state, MHA_ERR_SHAPE, "%s has shape %s; %sit must be %s", t->name,
                     mhap_shape_text(has, t->array.axes, t->array.shape),
                     packed ? "packed sequences have no batch axis: " : "", wanted);
}

int mhap_tensor_view(const mhap_state *state, bool heads_last, bool packed, mhap_tensor *t)
{
    const mhap_array *const a = &t->array;
    if (a->axes < 2 || a->axes > (packed ? 3 : 4))
        return wrong_axes(state, t, heads_last, packed);
    if (mhap_check_rows(state, a, t->name))
        return -1;
    t->batch = a->axes == 4;
    t->has_heads = a->axes >= 3;
    const int heads = a->axes - (heads_last ? 2 : 3);
    const int rows = a->axes - (heads_last && t->has_heads ? 3 : 2);
    t->B = t->batch ? a->shape[0] : 1;
    t->heads = t->has_heads ? a->shape[heads] : 1;
    t->rows = a->shape[rows];
    t->width = a->shape[a->axes - 1];
    t->view = (mha_view){a->data, t->batch ? a->strides[0] : 0,
                         t->has_heads ? a->strides[heads] : 0, a->strides[rows]};
    return 0;
}

int mhap_tensor_read(mhap_state *state, PyObject *object, const char *name, bool heads_last,
                     bool packed, mhap_tensor *t)
{
    t->name = name;
    return mhap_take(state, object, name, &t->array) || mhap_check_float(state, &t->array, name) ||
                   mhap_tensor_view(state, heads_last, packed, t)
               ? -1
               : 0;
}

mha_out mhap_as_out(mha_view view)
{
    return (mha_out){(void *)view.data, view.sb, view.sh, view.sl};
}

int mhap_shape_like(const mhap_tensor *like, ptrdiff_t width, ptrdiff_t shape[MHAP_MAX_AXES])
{
    const int axes = like->array.axes;
    memcpy(shape, like->array.shape, (size_t)axes * sizeof *shape);
    shape[axes - 1] = width;
    return axes;
}

/* -------------------------------------------------------------- the call ----- */

static int disagree(const mhap_call *call, const mhap_tensor *a, const mhap_tensor *b,
                    const char *what)
{
    char one[MHAP_SHAPE_TEXT], other[MHAP_SHAPE_TEXT];
    return mhap_fail(call->state, MHA_ERR_SHAPE,
                     "%s has shape %s and %s has shape %s: %s (the layout is \"%s\")", a->name,
                     mhap_shape_text(one, a->array.axes, a->array.shape), b->name,
                     mhap_shape_text(other, b->array.axes, b->array.shape), what,
                     call->heads_last ? "blhd" : "bhld");
}

/* Key and value must have the same batches, heads and rows. */
static int check_value(const mhap_call *call)
{
    const mhap_tensor *const k = &call->key, *const v = &call->value;
    if (!v->array.object)
        return 0;
    if (k->array.axes != v->array.axes || k->B != v->B || k->heads != v->heads ||
        k->rows != v->rows)
        return disagree(call, k, v, "they must agree in everything but the last axis");
    if (v->width == 0 && k->width != 0)
        return disagree(call, k, v, "values have no width");
    return 0;
}

/* f64 is a separate path of the library: all tensors are f64 or none is. */
static int check_double(const mhap_call *call, const mhap_tensor *t)
{
    const mhap_array *const q = &call->query.array, *const a = &t->array;
    if (!a->object || (q->type == MHAP_F64) == (a->type == MHAP_F64))
        return 0;
    const char *const wide = a->type == MHAP_F64 ? t->name : call->query.name;
    return mhap_fail(call->state, MHA_ERR_DTYPE,
                     "query is %s and %s is %s; f64 is for all of them or for none: use "
                     "%s.astype(\"float32\"), or %s.float() of PyTorch",
                     mhap_type_name(q->type), t->name, mhap_type_name(a->type), wide, wide);
}

static int check_inputs(const mhap_call *call)
{
    const mhap_tensor *const q = &call->query, *const k = &call->key;
    const bool q_packed = call->o.c.q_starts, k_packed = call->o.c.k_starts;
    if (q->has_heads != k->has_heads || (!q_packed && !k_packed && q->batch != k->batch))
        return disagree(call, q, k, "they must have the same axes");
    if (q->width != k->width)
        return disagree(call, q, k, "the widths of their heads differ");
    if ((k->heads == 0) != (q->heads == 0))
        return disagree(call, q, k, "one of them has no heads");
    if (k->heads > 0 && q->heads % k->heads != 0)
        return disagree(call, q, k, "the heads of query must be a multiple of those of key");
    if (!q_packed && !k_packed && q->B != k->B)
        return disagree(call, q, k, "their batches differ");
    return check_value(call) || check_double(call, k) || check_double(call, &call->value) ? -1 : 0;
}

/* Packed sequences must be within their tensor; the library does not know how long that is. */
static int check_packed(const mhap_call *call, const mhap_tensor *t, const int64_t *starts,
                        const char *name)
{
    const ptrdiff_t B = call->o.B;
    if (B < 0 || (!starts && t->B == B))
        return 0;
    if (!starts)
        return mhap_fail(call->state, MHA_ERR_SHAPE, "%s has %td batches; the starts tell of %td",
                         t->name, t->B, B);
    if (starts[B] <= t->rows)
        return 0;
    return mhap_fail(call->state, MHA_ERR_LENGTH, "%s ends with %lld; %s has %td rows", name,
                     (long long)starts[B], t->name, t->rows);
}

static void make_shape(mhap_call *call)
{
    const mhap_tensor *const q = &call->query, *const k = &call->key, *const v = &call->value;
    const mhap_options *const o = &call->o;
    const bool has_value = v->array.object;
    call->shape = (mha_shape){.B = o->B >= 0 ? o->B : q->B,
                              .H = q->heads,
                              .G = k->heads,
                              .L = o->L >= 0 ? o->L : q->rows,
                              .S = o->S >= 0 ? o->S : k->rows,
                              .D = q->width,
                              .Dv = has_value ? v->width : 1,
                              .q_type = (mha_dtype)q->array.type,
                              .k_type = (mha_dtype)k->array.type,
                              .v_type = (mha_dtype)(has_value ? v : k)->array.type,
                              .o_type = (mha_dtype)q->array.type};
    call->form = (mhap_form){.batch = q->batch || k->batch || o->B >= 0,
                             .heads = q->has_heads,
                             .packed_rows = o->c.q_starts ? q->rows : -1};
}

static int take_inputs(mhap_call *call, PyObject *query, PyObject *key, PyObject *value)
{
    mhap_state *const state = call->state;
    const bool last = call->heads_last, q_packed = call->o.c.q_starts,
               k_packed = call->o.c.k_starts;
    return mhap_tensor_read(state, query, "query", last, q_packed, &call->query) ||
                   mhap_tensor_read(state, key, "key", last, k_packed, &call->key) ||
                   (value &&
                    mhap_tensor_read(state, value, "value", last, k_packed, &call->value)) ||
                   check_inputs(call) ||
                   check_packed(call, &call->query, call->o.c.q_starts, "query_starts") ||
                   check_packed(call, &call->key, call->o.c.k_starts, "key_starts")
               ? -1
               : 0;
}

int mhap_call_begin(mhap_state *state, PyObject *query, PyObject *key, PyObject *value,
                    mhap_call *call)
{
    call->state = state;
    memset(&call->query, 0, sizeof call->query);
    memset(&call->key, 0, sizeof call->key);
    memset(&call->value, 0, sizeof call->value);
    memset(&call->extras, 0, sizeof call->extras);
    mhap_options_begin(&call->o);
    if (mhap_layout_read(state, call->values[MHAP_LAYOUT], &call->heads_last) ||
        mhap_starts_read(state, call->values, &call->o) || take_inputs(call, query, key, value))
        return -1;
    make_shape(call);
    return mhap_options_read(state, call->values, &call->shape, &call->o) ||
                   mhap_pool_for(state, call->values[MHAP_THREADS], &call->pool)
               ? -1
               : 0;
}

void mhap_call_end(mhap_call *call)
{
    mhap_extras_end(&call->extras);
    mhap_options_end(&call->o);
    mhap_release(&call->query.array);
    mhap_release(&call->key.array);
    mhap_release(&call->value.array);
}

int mhap_lse_read(mhap_call *call, PyObject *object, const char *name, mhap_array *array,
                  mha_view *view)
{
    const mha_shape *const s = &call->shape;
    const bool packed = call->form.packed_rows >= 0, batch = call->form.batch && !packed;
    ptrdiff_t shape[3];
    int axes = 0;
    if (batch)
        shape[axes++] = s->B;
    if (call->form.heads)
        shape[axes++] = s->H;
    shape[axes++] = packed ? call->form.packed_rows : s->L;
    if (mhap_take(call->state, object, name, array) ||
        mhap_check_shape(call->state, array, name, axes, shape))
        return -1;
    const mhap_type type = s->q_type == MHA_F64 ? MHAP_F64 : MHAP_F32;
    if (array->type != type)
        return mhap_fail(call->state, MHA_ERR_DTYPE, "%s has elements of type %s; it must be %s",
                         name, mhap_type_name(array->type), mhap_type_name(type));
    *view = (mha_view){array->data, batch ? array->strides[0] : 0,
                       call->form.heads ? array->strides[axes - 2] : 0, array->strides[axes - 1]};
    return 0;
}
