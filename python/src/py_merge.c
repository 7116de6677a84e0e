/* SPDX-License-Identifier: MIT */
/* merge(): combines two partial results over different keys into one. */
#include "py_functions.h"

#include <string.h>

enum { OWN_OUTPUT, OWN_LSE, OWN_OUTPUT2, OWN_LSE2, OWN };

typedef struct merging {
    mhap_call call; /* only its shape and form are used */
    mhap_tensor output, output2, result;
    mhap_array lse, lse2, lse_result;
    mha_view lse_view, lse2_view, lse_result_view;
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

/* Copies elements (b, h, i) of `size` bytes each, with the strides of both views. */
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

/* The array for the result: `out`, which may be the first part itself, or a new one. */
static int make_output(merging *m)
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
    return 0;
}

static int make_lse(merging *m)
{
    mhap_call *const call = &m->call;
    PyObject *out = call->values[MHAP_LSE_OUT];
    if (out)
        Py_INCREF(out);
    else
        out = mhap_new(call->state, &m->output.array, m->lse.type, m->lse.axes, m->lse.shape,
                       &m->lse_result);
    m->lse_object = out;
    mhap_release(&m->lse_result);
    if (!out || mhap_lse_read(call, out, "lse_out", &m->lse_result, &m->lse_result_view))
        return -1;
    if (m->lse_result.read_only)
        return mhap_fail(call->state, MHA_ERR_FLAG, "lse_out is read-only");
    return 0;
}

/* ---------------------------------------------------------------- copies ----- */

/* Rows in memory of `size` bytes each. */
typedef struct rows {
    const char *name;
    mha_view view;
    size_t element, size;
} rows;

/* The address of the first byte and the one after the last byte of all rows. */
static void span_of(const mha_shape *s, const rows *r, uintptr_t span[2])
{
    const ptrdiff_t extents[] = {s->B, s->H, s->L};
    const ptrdiff_t strides[] = {r->view.sb, r->view.sh, r->view.sl};
    span[0] = span[1] = (uintptr_t)r->view.data;
    for (int n = 0; n < 3; n++)
        span[strides[n] > 0] += (uintptr_t)(extents[n] - 1) * (uintptr_t)strides[n] * r->element;
    span[1] += r->size;
}

static int check_apart(const mhap_call *call, const rows *to, const rows *from)
{
    uintptr_t a[2], b[2];
    span_of(&call->shape, to, a);
    span_of(&call->shape, from, b);
    if (a[1] <= b[0] || b[1] <= a[0])
        return 0;
    return mhap_fail(call->state, MHA_ERR_OVERLAP,
                     "%s overlaps %s; only output and lse can be merged into, each as a whole",
                     to->name, from->name);
}

/* Copies the first part to the result, unless they are the same. The library then sees only the
 * result, so overlaps must be checked here. */
static int copy_parts(merging *m)
{
    const mhap_call *const call = &m->call;
    const mha_shape *const s = &call->shape;
    const size_t element = mhap_type_size(m->output.array.type), size = element * (size_t)s->Dv;
    const size_t lse = mhap_type_size(m->lse.type);
    const rows from[] = {{"output", m->output.view, element, size},
                         {"lse", m->lse_view, lse, lse},
                         {"output2", m->output2.view, element, size},
                         {"lse2", m->lse2_view, lse, lse}};
    const rows to[] = {{"out", m->result.view, element, size},
                       {"lse_out", m->lse_result_view, lse, lse}};
    if (s->B == 0 || s->H == 0 || s->L == 0)
        return 0;
    bool in_place[2];
    for (int n = 0; n < 2; n++) {
        in_place[n] = memcmp(&to[n].view, &from[n].view, sizeof to[n].view) == 0;
        for (int part = 0; part < 4; part++)
            if (!(n == part && in_place[n]) && check_apart(call, &to[n], &from[part]))
                return -1;
    }
    if (check_apart(call, &to[0], &to[1]))
        return -1;
    for (int n = 0; n < 2; n++)
        if (!in_place[n])
            copy_rows(s, to[n].view, from[n].view, to[n].element, to[n].size);
    return 0;
}

static PyObject *run(merging *m)
{
    mhap_call *const call = &m->call;
    mha_status status = MHA_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_merge(&call->shape, mhap_as_out(m->result.view), mhap_as_out(m->lse_result_view),
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
    if (read_parts(&m, own) == 0 && make_output(&m) == 0 && make_lse(&m) == 0 &&
        copy_parts(&m) == 0)
        result = run(&m);
    end(&m);
    return result;
}
