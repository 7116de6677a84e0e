/* SPDX-License-Identifier: MIT */
/* merge(): two partial results over different keys become one. */
#include "functions.h"

#include <string.h>

enum { OWN_OUTPUT, OWN_LSE, OWN_OUTPUT2, OWN_LSE2, OWN };

typedef struct merging {
    mhap_call call; /* of which the shape and form are used */
    mhap_tensor output, output2, result;
    mhap_array lse, lse2, lse_result;
    mha_view lse_view, lse2_view;
    PyObject *output_object, *lse_object;
} merging;

static int read_parts(merging *m, PyObject *const *own)
{
    mhap_call *const call = &m->call;
    mhap_state *const state = call->state;
    mhap_tensor *const o = &m->output;
    if (mhap_layout_read(state, call->values[MHAP_LAYOUT], &call->heads_last) ||
        mhap_tensor_read(state, own[OWN_OUTPUT], "output", call->heads_last, false, o) ||
        mhap_tensor_read(state, own[OWN_OUTPUT2], "output2", call->heads_last, false,
                         &m->output2) ||
        mhap_check_shape(state, &m->output2.array, "output2", o->array.axes, o->array.shape))
        return -1;
    const mha_dtype type = (mha_dtype)o->array.type;
    if (m->output2.array.type != o->array.type)
        return mhap_fail(state, MHA_ERR_DTYPE, "output is %s and output2 %s; they must be alike",
                         mhap_type_name(o->array.type), mhap_type_name(m->output2.array.type));
    call->shape = (mha_shape){.B = o->B,
                              .H = o->heads,
                              .L = o->rows,
                              .D = o->width,
                              .Dv = o->width,
                              .q_type = type,
                              .o_type = type};
    call->form = (mhap_form){.batch = o->batch, .heads = o->has_heads, .packed_rows = -1};
    return mhap_lse_read(call, own[OWN_LSE], "lse", &m->lse, &m->lse_view) ||
                   mhap_lse_read(call, own[OWN_LSE2], "lse2", &m->lse2, &m->lse2_view)
               ? -1
               : 0;
}

/* Copy elements (b, h, i), each of `size` bytes, as they are counted by both views. */
static void copy_rows(const mha_shape *s, mha_view to, mha_view from, size_t element, size_t size)
{
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t h = 0; h < s->H; h++)
            for (ptrdiff_t i = 0; i < s->L; i++) {
                const ptrdiff_t t = b * to.sb + h * to.sh + i * to.sl;
                const ptrdiff_t f = b * from.sb + h * from.sh + i * from.sl;
                memcpy((char *)to.data + t * (ptrdiff_t)element,
                       (const char *)from.data + f * (ptrdiff_t)element, size);
            }
}

/* Where the result goes: out, which may be the first part itself, or a new array. */
static int make_output(merging *m, PyObject *given)
{
    mhap_call *const call = &m->call;
    PyObject *const out = call->values[MHAP_OUT];
    const mhap_array *const like = &m->output.array;
    m->result.name = "out";
    m->output_object =
        mhap_output(call->state, out, like, false, like->axes, like->shape, &m->result.array);
    if (!m->output_object || mhap_tensor_view(call->state, call->heads_last, false, &m->result))
        return -1;
    if (m->result.array.type != like->type)
        return mhap_fail(call->state, MHA_ERR_DTYPE, "out is %s and output %s; they must be alike",
                         mhap_type_name(m->result.array.type), mhap_type_name(like->type));
    const size_t size = mhap_type_size(like->type);
    if (out != given)
        copy_rows(&call->shape, m->result.view, m->output.view, size,
                  size * (size_t)call->shape.Dv);
    return 0;
}

static int make_lse(merging *m, PyObject *given)
{
    mhap_call *const call = &m->call;
    PyObject *out = call->values[MHAP_LSE_OUT];
    mha_view view;
    if (out)
        Py_INCREF(out);
    else
        out = mhap_new(call->state, &m->output.array, m->lse.type, m->lse.axes, m->lse.shape,
                       &m->lse_result);
    m->lse_object = out;
    mhap_release(&m->lse_result);
    if (!out || mhap_lse_read(call, out, "lse_out", &m->lse_result, &view))
        return -1;
    if (m->lse_result.read_only)
        return mhap_fail(call->state, MHA_ERR_FLAG, "lse_out is read-only");
    const size_t size = mhap_type_size(m->lse.type);
    if (out != given)
        copy_rows(&call->shape, view, m->lse_view, size, size);
    m->lse_view = view;
    return 0;
}

static PyObject *run(merging *m)
{
    mhap_call *const call = &m->call;
    mha_status status = MHA_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_merge(&call->shape, mhap_as_out(m->result.view), mhap_as_out(m->lse_view),
                       m->output2.view, m->lse2_view);
    Py_END_ALLOW_THREADS;
    if (mhap_check(call->state, status, NULL))
        return NULL;
    PyObject *const type = mhap_python_type(&call->state->result_type, "Result");
    return type ? PyObject_CallFunctionObjArgs(type, m->output_object, m->lse_object, Py_None,
                                               Py_None, NULL)
                : NULL;
}

static void end(merging *m)
{
    mhap_release(&m->output.array);
    mhap_release(&m->output2.array);
    mhap_release(&m->result.array);
    mhap_release(&m->lse);
    mhap_release(&m->lse2);
    mhap_release(&m->lse_result);
    Py_XDECREF(m->output_object);
    Py_XDECREF(m->lse_object);
}

PyObject *mhap_merge(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const own_names[OWN] = {"output", "lse", "output2", "lse2"};
    static const mhap_signature signature = {
        "merge", own_names, OWN,
        OWN,     OWN,       ~(MHAP_BIT(MHAP_LAYOUT) | MHAP_BIT(MHAP_OUT) | MHAP_BIT(MHAP_LSE_OUT))};
    merging m;
    memset(&m, 0, sizeof m);
    m.call.state = PyModule_GetState(module);
    PyObject *own[OWN], *result = NULL;
    if (mhap_arguments_fast(m.call.state, &signature, args, count, names, own, m.call.values))
        return NULL;
    if (read_parts(&m, own) == 0 && make_output(&m, own[OWN_OUTPUT]) == 0 &&
        make_lse(&m, own[OWN_LSE]) == 0)
        result = run(&m);
    end(&m);
    return result;
}
