/* SPDX-License-Identifier: MIT */
/* Allocates what a call returns in addition to its output, and builds the returned object. */
#include "py_result.h"

#include <math.h>
#include <string.h>

/* Whether the library leaves rows unwritten, because of lengths or packed sequences. */
static bool is_partial(const mhap_options *o)
{
    return o->c.q_lengths || o->c.q_starts;
}

PyObject *mhap_python_type(PyObject **slot, const char *name)
{
    if (!*slot) {
        PyObject *module = PyImport_ImportModule("mha._types");
        *slot = module ? PyObject_GetAttrString(module, name) : NULL;
        Py_XDECREF(module);
    }
    return *slot;
}

PyObject *mhap_output(mhap_state *state, PyObject *out, const mhap_array *like, bool partial,
                      int axes, const ptrdiff_t *shape, mhap_array *array)
{
    if (!out) {
        PyObject *result = mhap_new(state, like, like->type, axes, shape, array);
        if (result && partial)
            memset(array->data, 0, (size_t)mhap_count(axes, shape) * mhap_type_size(like->type));
        return result;
    }
    if (mhap_take_out(state, out, "out", array) || mhap_check_float(state, array, "out") ||
        mhap_check_shape(state, array, "out", axes, shape) || mhap_check_rows(state, array, "out"))
        return NULL;
    Py_INCREF(out);
    return out;
}

/* The axes of a result. */
typedef struct axes {
    int count, batch, heads, rows; /* indices of these axes, -1 if there is none */
    ptrdiff_t shape[MHAP_MAX_AXES];
} axes;

static int add_axis(axes *a, bool wanted, ptrdiff_t extent)
{
    if (!wanted)
        return -1;
    a->shape[a->count] = extent;
    return a->count++;
}

static mha_out out_of(const axes *a, const mhap_array *array)
{
    return (mha_out){array->data, a->batch < 0 ? 0 : array->strides[a->batch],
                     a->heads < 0 ? 0 : array->strides[a->heads], array->strides[a->rows]};
}

/* Takes `given`, or makes a new array of this shape. */
static PyObject *take_or_make(mhap_state *state, PyObject *given, const char *name, const axes *a,
                              mhap_type type, const mhap_array *like, mhap_array *array)
{
    if (!given)
        return mhap_new(state, like, type, a->count, a->shape, array);
    if (mhap_take_out(state, given, name, array) || mhap_check_float(state, array, name) ||
        mhap_check_shape(state, array, name, a->count, a->shape))
        return NULL;
    Py_INCREF(given);
    return given;
}

/* ------------------------------------------------------------------ lse ----- */

static void fill_lse(const mhap_array *array)
{
    const ptrdiff_t count = mhap_count(array->axes, array->shape);
    for (ptrdiff_t n = 0; n < count; n++)
        if (array->type == MHAP_F64)
            ((double *)array->data)[n] = -INFINITY;
        else
            ((float *)array->data)[n] = -INFINITY;
}

static int make_lse(mhap_state *state, PyObject *const *values, const mha_shape *s,
                    const mhap_array *like, mhap_options *o, mhap_extras *e)
{
    PyObject *const given = values[MHAP_LSE_OUT];
    const int wanted = given ? 1 : mhap_truth(values[MHAP_RETURN_LSE]);
    if (wanted <= 0)
        return wanted;
    const bool packed = e->form.packed_rows >= 0;
    const mhap_type type = s->q_type == MHA_F64 ? MHAP_F64 : MHAP_F32;
    axes a = {.count = 0};
    a.batch = add_axis(&a, e->form.batch && !packed, s->B);
    a.heads = add_axis(&a, e->form.heads, s->H);
    a.rows = add_axis(&a, true, packed ? e->form.packed_rows : s->L);
    e->lse = take_or_make(state, given, "lse_out", &a, type, like, &e->lse_array);
    if (!e->lse)
        return -1;
    if (e->lse_array.type != type)
        return mhap_fail(state, MHA_ERR_DTYPE, "lse_out has elements of type %s; it must be %s",
                         mhap_type_name(e->lse_array.type), mhap_type_name(type));
    if (!given && is_partial(o))
        fill_lse(&e->lse_array);
    o->c.lse = out_of(&a, &e->lse_array);
    return 0;
}

/* -------------------------------------------------------------- weights ----- */

/* Returns 1 if weights are requested, and their mode. */
static int weights_wanted(const mhap_state *state, PyObject *const *values, mha_weights_mode *mode)
{
    static const char *const names[] = {"softmax", "raw", "softcap", "bias", NULL};
    PyObject *const value = values[MHAP_RETURN_WEIGHTS];
    *mode = MHA_WEIGHTS_SOFTMAX;
    if (value && PyUnicode_Check(value)) {
        const int number = mhap_choice(state, value, "return_weights", names);
        *mode = number < 0 ? MHA_WEIGHTS_SOFTMAX : (mha_weights_mode)number;
        return number < 0 ? -1 : 1;
    }
    return value ? mhap_truth(value) : values[MHAP_WEIGHTS_OUT] != NULL;
}

/* Refuses arguments that select weights if no weights are requested: the mistake would otherwise go
 * unnoticed. */
static int no_weights(const mhap_state *state, const mha_options *c)
{
    const char *const idle = c->weights_heads                 ? "weights_heads chooses"
                             : c->weights_rows                ? "weights_rows chooses"
                             : c->flags & MHA_AVERAGE_WEIGHTS ? "average_weights averages"
                                                              : NULL;
    return idle ? mhap_fail(state, MHA_ERR_FLAG,
                            "%s weights, but none are requested: add return_weights=True", idle)
                : 0;
}

static int make_weights(mhap_state *state, PyObject *const *values, const mha_shape *s,
                        ptrdiff_t columns, const mhap_array *like, mhap_options *o, mhap_extras *e)
{
    mha_options *const c = &o->c;
    PyObject *const given = values[MHAP_WEIGHTS_OUT];
    const int wanted = weights_wanted(state, values, &c->weights_mode);
    if (wanted <= 0)
        return wanted < 0 ? -1 : no_weights(state, c);
    const bool average = c->flags & MHA_AVERAGE_WEIGHTS;
    axes a = {.count = 0};
    a.batch = add_axis(&a, e->form.batch, s->B);
    a.heads =
        add_axis(&a, e->form.heads && !average, c->weights_heads ? c->weights_head_count : s->H);
    a.rows = add_axis(&a, true, c->weights_rows ? c->weights_row_count : s->L);
    add_axis(&a, true, columns);
    const mhap_type type = s->q_type == MHA_F64 ? MHAP_F64 : MHAP_F32;
    e->weights = take_or_make(state, given, "weights_out", &a, type, like, &e->weights_array);
    if (!e->weights || mhap_check_rows(state, &e->weights_array, "weights_out"))
        return -1;
    if (!given && is_partial(o))
        memset(e->weights_array.data, 0,
               (size_t)mhap_count(a.count, a.shape) * mhap_type_size(type));
    c->weights = out_of(&a, &e->weights_array);
    c->weights_type = (mha_dtype)e->weights_array.type;
    return 0;
}

/* -------------------------------------------------------------- results ----- */

int mhap_extras_make(mhap_state *state, PyObject *const *values, const mha_shape *shape,
                     ptrdiff_t columns, mhap_form form, const mhap_array *like, mhap_options *o,
                     mhap_extras *extras)
{
    memset(extras, 0, sizeof *extras);
    extras->form = form;
    extras->origin = like->origin;
    return make_lse(state, values, shape, like, o, extras) ||
                   make_weights(state, values, shape, columns, like, o, extras) ||
                   mhap_statistics_make(state, values[MHAP_STATISTICS], shape, o, extras)
               ? -1
               : 0;
}

static PyObject *or_none(PyObject *object)
{
    return object ? object : Py_None;
}

PyObject *mhap_extras_result(mhap_state *state, const mha_shape *shape, PyObject *output,
                             const mhap_options *o, const mhap_extras *extras)
{
    if (!extras->lse && !extras->weights && !o->c.statistics)
        return output;
    PyObject *const type = mhap_python_type(&state->result_type, "Result");
    PyObject *statistics = NULL;
    if (o->c.statistics)
        statistics = mhap_statistics_result(state, shape, o, extras);
    PyObject *result = NULL;
    if (type && (statistics || !o->c.statistics))
        result = PyObject_CallFunctionObjArgs(type, or_none(output), or_none(extras->lse),
                                              or_none(extras->weights), or_none(statistics), NULL);
    Py_XDECREF(statistics);
    Py_XDECREF(output);
    return result;
}

void mhap_extras_end(mhap_extras *extras)
{
    mhap_release(&extras->lse_array);
    mhap_release(&extras->weights_array);
    Py_XDECREF(extras->lse);
    Py_XDECREF(extras->weights);
    Py_XDECREF(extras->rows);
    Py_XDECREF(extras->heads);
    Py_XDECREF(extras->columns);
    Py_XDECREF(extras->top_keys);
    Py_XDECREF(extras->top_weights);
}
