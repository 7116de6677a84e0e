/* SPDX-License-Identifier: MIT */
/* The functions attention(), attention_weights() and head_statistics(). Arguments become a call
 * (py_call.c) with options (py_options.c), the call runs without the GIL, and results are returned
 * by py_result.c. */
#include "py_functions.h"

#include <string.h>

static PyObject *forward(mhap_call *call, mhap_array *output)
{
    const mhap_tensor *const q = &call->query;
    const mha_shape *const s = &call->shape;
    ptrdiff_t extents[MHAP_MAX_AXES];
    const int axes = mhap_shape_like(q, s->Dv, extents);
    const bool partial = call->o.c.q_lengths || call->o.c.q_starts || s->D == 0;
    PyObject *object =
        mhap_output(call->state, call->values[MHAP_OUT], &q->array, partial, axes, extents, output);
    if (!object)
        return NULL;
    mhap_tensor out = {.name = "out", .array = *output};
    call->shape.o_type = (mha_dtype)output->type;
    mha_status status = MHA_OK;
    if (mhap_tensor_view(call->state, call->heads_last, call->o.c.q_starts, &out) ||
        mhap_extras_make(call->state, call->values, s, s->S, call->form, &q->array, &call->o,
                         &call->extras)) {
        Py_DECREF(object);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = mha_attention(s, q->view, call->key.view, call->value.view, mhap_as_out(out.view),
                           &call->o.c, call->pool);
    Py_END_ALLOW_THREADS;
    if (mhap_check(call->state, status, call->o.message)) {
        Py_DECREF(object);
        return NULL;
    }
    return mhap_extras_result(call->state, s, object, &call->o, &call->extras);
}

PyObject *mhap_attention(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const own_names[] = {"query", "key", "value"};
    static const mhap_signature signature = {"attention", own_names, 3, 3, 3, 0};
    mhap_state *const state = PyModule_GetState(module);
    PyObject *own[3], *result = NULL;
    mhap_call call;
    mhap_array output = {.object = NULL};
    if (mhap_arguments_fast(state, &signature, args, count, names, own, call.values))
        return NULL;
    if (mhap_call_begin(state, own[0], own[1], own[2], &call) == 0)
        result = forward(&call, &output);
    mhap_release(&output);
    mhap_call_end(&call);
    return result;
}

/* Heads in mode "mean" have weights of 0 whatever the mean. Without values the width of a mean is
 * unknown, so zeros are used. */
static int make_means(mhap_call *call)
{
    mha_options *const c = &call->o.c;
    const size_t size = sizeof(float) * (size_t)(call->shape.H * call->shape.Dv);
    float *const means = c->head_modes ? mhap_keep(&call->o.kept, size) : NULL;
    if (means)
        memset(means, 0, size);
    c->head_means = means;
    return c->head_modes && !means ? -1 : 0;
}

/* -------------------------------------------------------------- weights ----- */

enum { OWN_QUERY = 0, OWN_KEY, OWN_LSE, OWN_HEADS, OWN_ROWS, OWN_WEIGHTS };

static PyObject *weights_alone(mhap_call *call, PyObject *lse, mhap_array *lse_array)
{
    mha_view view = {NULL, 0, 0, 0};
    if (lse && mhap_lse_read(call, lse, "lse", lse_array, &view))
        return NULL;
    if (make_means(call) ||
        mhap_extras_make(call->state, call->values, &call->shape, call->shape.S, call->form,
                         &call->query.array, &call->o, &call->extras))
        return NULL;
    call->o.c.lse = mhap_as_out(view);
    mha_status status = MHA_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_attention_weights(&call->shape, call->query.view, call->key.view, &call->o.c, NULL,
                                   0, call->pool);
    Py_END_ALLOW_THREADS;
    if (mhap_check(call->state, status, call->o.message))
        return NULL;
    PyObject *const weights = call->extras.weights;
    Py_INCREF(weights);
    return weights;
}

/* Arguments that have shorter names in attention_weights(). */
static int rename_options(PyObject *const *own, PyObject **values)
{
    values[MHAP_WEIGHTS_HEADS] = own[OWN_HEADS];
    values[MHAP_WEIGHTS_ROWS] = own[OWN_ROWS];
    values[MHAP_WEIGHTS_OUT] = values[MHAP_OUT];
    if (!values[MHAP_RETURN_WEIGHTS])
        values[MHAP_RETURN_WEIGHTS] = Py_True;
    if (values[MHAP_RETURN_WEIGHTS] != Py_False)
        return 0;
    PyErr_SetString(PyExc_TypeError, "attention_weights() returns weights: return_weights is True, "
                                     "or a mode such as \"raw\"");
    return -1;
}

static PyObject *replaced(PyObject *text, const char *from, const char *to)
{
    PyObject *before = PyUnicode_FromString(from), *after = PyUnicode_FromString(to);
    PyObject *result = text && before && after ? PyUnicode_Replace(text, before, after, -1) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(before);
    Py_XDECREF(after);
    return result;
}

/* Exceptions must use the shorter names, which are the ones the user passed. */
static void rename_error(const mhap_state *state)
{
    PyObject *type, *value, *trace;
    if (!PyErr_ExceptionMatches(state->error) && !PyErr_ExceptionMatches(PyExc_TypeError))
        return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = replaced(PyObject_Str(value), "weights_heads", "heads");
    text = replaced(text, "weights_rows", "rows");
    text = replaced(text, "weights_out", "out");
    PyObject *words = text ? PyTuple_Pack(1, text) : NULL;
    if (!words || PyObject_SetAttrString(value, "args", words))
        PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(words);
    PyErr_Restore(type, value, trace);
}

PyObject *mhap_attention_weights(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                 PyObject *names)
{
    static const char *const own_names[] = {"query", "key", "lse", "heads", "rows"};
    static const mhap_signature signature = {
        "attention_weights",
        own_names,
        OWN_WEIGHTS,
        2,
        2,
        MHAP_BIT(MHAP_RETURN_LSE) | MHAP_BIT(MHAP_LSE_OUT) | MHAP_BIT(MHAP_STATISTICS) |
            MHAP_BIT(MHAP_WEIGHTS_HEADS) | MHAP_BIT(MHAP_WEIGHTS_ROWS) |
            MHAP_BIT(MHAP_WEIGHTS_OUT) | MHAP_BIT(MHAP_GATES) | MHAP_BIT(MHAP_HEAD_MEANS) |
            MHAP_BIT(MHAP_DROPOUT) | MHAP_BIT(MHAP_DROPOUT_SEED)};
    mhap_state *const state = PyModule_GetState(module);
    PyObject *own[OWN_WEIGHTS], *result = NULL;
    mhap_call call;
    mhap_array lse = {.object = NULL};
    if (mhap_arguments_fast(state, &signature, args, count, names, own, call.values) ||
        rename_options(own, call.values))
        return NULL;
    if (mhap_call_begin(state, own[OWN_QUERY], own[OWN_KEY], NULL, &call) == 0)
        result = weights_alone(&call, own[OWN_LSE], &lse);
    if (!result)
        rename_error(state);
    mhap_release(&lse);
    mhap_call_end(&call);
    return result;
}

/* ----------------------------------------------------------- statistics ----- */

/* The library computes statistics together with an output. To make that cheap, the values are the
 * first column of the keys, and the output is discarded. */
static PyObject *statistics_alone(mhap_call *call)
{
    const mha_shape *const s = &call->shape;
    if (make_means(call) || mhap_extras_make(call->state, call->values, s, s->S, call->form,
                                             &call->query.array, &call->o, &call->extras))
        return NULL;
    if (!call->o.c.statistics) {
        mhap_fail(call->state, MHA_ERR_FLAG,
                  "statistics requests nothing; leave it out for rows and heads");
        return NULL;
    }
    const ptrdiff_t rows =
        call->form.packed_rows >= 0 ? call->form.packed_rows * s->H : s->B * s->H * s->L;
    void *const unseen = mhap_keep(&call->o.kept, (size_t)rows * sizeof(double));
    if (!unseen)
        return NULL;
    const mha_out out = {unseen, s->H * s->L,
                         call->form.packed_rows >= 0 ? call->form.packed_rows : s->L, 1};
    mha_status status = MHA_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_attention(s, call->query.view, call->key.view, call->key.view, out, &call->o.c,
                           call->pool);
    Py_END_ALLOW_THREADS;
    if (mhap_check(call->state, status, call->o.message))
        return NULL;
    return mhap_statistics_result(call->state, s, &call->o, &call->extras);
}

PyObject *mhap_head_statistics(PyObject *module, PyObject *const *args, Py_ssize_t count,
                               PyObject *names)
{
    static const char *const own_names[] = {"query", "key", "value"};
    static const mhap_signature signature = {
        "head_statistics",
        own_names,
        3,
        3,
        2,
        MHAP_BIT(MHAP_OUT) | MHAP_BIT(MHAP_RETURN_LSE) | MHAP_BIT(MHAP_LSE_OUT) |
            MHAP_BIT(MHAP_RETURN_WEIGHTS) | MHAP_BIT(MHAP_AVERAGE_WEIGHTS) |
            MHAP_BIT(MHAP_WEIGHTS_HEADS) | MHAP_BIT(MHAP_WEIGHTS_ROWS) |
            MHAP_BIT(MHAP_WEIGHTS_OUT) | MHAP_BIT(MHAP_HEAD_MEANS)};
    mhap_state *const state = PyModule_GetState(module);
    PyObject *own[3], *result = NULL;
    mhap_call call;
    if (mhap_arguments_fast(state, &signature, args, count, names, own, call.values))
        return NULL;
    /* cppcheck-suppress uninitvar ; mhap_arguments_fast() wrote them all */
    if (!call.values[MHAP_STATISTICS])
        call.values[MHAP_STATISTICS] = Py_True;
    if (mhap_call_begin(state, own[0], own[1], NULL, &call) == 0)
        result = statistics_alone(&call);
    mhap_call_end(&call);
    return result;
}
