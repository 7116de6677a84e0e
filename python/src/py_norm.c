/* SPDX-License-Identifier: MIT */
/* mha.norm(), and what it shares with linears: arrays as rows, matrices and vectors of weights. */
#include "py_linear.h"

/* ----------------------------------------------------------------- rows ----- */

/* Collapses all axes but the last into rows. */
static int collapse(mhap_state *state, const char *name, mhap_lines *l)
{
    const mhap_array *const a = &l->array;
    l->rows = 1;
    l->stride = 0;
    for (int n = a->axes - 2; n >= 0; n--) {
        if (a->shape[n] != 1 && l->rows > 1 && a->strides[n] != l->rows * l->stride)
            return mhap_fail(state, MHA_ERR_STRIDE,
                             "the rows of %s are not evenly spaced: make it contiguous", name);
        if (a->shape[n] != 1 && l->rows == 1)
            l->stride = a->strides[n];
        l->rows *= a->shape[n];
    }
    if (l->rows <= 1)
        l->stride = a->axes > 0 ? a->shape[a->axes - 1] : 0;
    return 0;
}

static int check_lines(mhap_state *state, const char *name, ptrdiff_t width, bool half,
                       mhap_lines *l)
{
    const mhap_array *const a = &l->array;
    char text[MHAP_SHAPE_TEXT];
    if (a->axes < 1 || a->shape[a->axes - 1] != width)
        return mhap_fail(state, MHA_ERR_SHAPE, "%s has shape %s; its last axis must have %td", name,
                         mhap_shape_text(text, a->axes, a->shape), width);
    if (a->type != MHAP_F32 && !(half && (a->type == MHAP_F16 || a->type == MHAP_BF16)))
        return mhap_fail(state, MHA_ERR_DTYPE, "%s has elements of type %s; it must be %s", name,
                         mhap_type_name(a->type), half ? "f32, f16 or bf16" : "f32");
    if (mhap_check_rows(state, a, name))
        return -1;
    return collapse(state, name, l);
}

int mhap_lines_take(mhap_state *state, PyObject *object, const char *name, ptrdiff_t width,
                    bool half, mhap_lines *lines)
{
    return mhap_take(state, object, name, &lines->array) ||
                   check_lines(state, name, width, half, lines)
               ? -1
               : 0;
}

int mhap_lines_like(mhap_state *state, PyObject *object, const char *name, ptrdiff_t width,
                    const mhap_lines *like, bool to_write, mhap_lines *lines)
{
    if (!object || object == Py_None)
        return 0;
    if ((to_write ? mhap_take_out(state, object, name, &lines->array)
                  : mhap_take(state, object, name, &lines->array)) ||
        check_lines(state, name, width, to_write && like->array.type != MHAP_F32, lines))
        return -1;
    bool same = lines->array.axes == like->array.axes;
    for (int n = 0; same && n < like->array.axes - 1; n++)
        same = lines->array.shape[n] == like->array.shape[n];
    return same ? 0
                : mhap_fail(state, MHA_ERR_SHAPE, "%s must have the axes of x before the last",
                            name);
}

PyObject *mhap_lines_result(mhap_state *state, PyObject *out, ptrdiff_t width,
                            const mhap_lines *like, mhap_lines *lines)
{
    if (out && out != Py_None)
        return mhap_lines_like(state, out, "out", width, like, true, lines) ? NULL : Py_NewRef(out);
    ptrdiff_t shape[MHAP_MAX_AXES];
    const int axes = like->array.axes;
    for (int n = 0; n < axes; n++)
        shape[n] = n < axes - 1 ? like->array.shape[n] : width;
    PyObject *const made =
        mhap_new(state, &like->array, like->array.type, axes, shape, &lines->array);
    lines->rows = like->rows;
    lines->stride = width;
    return made;
}

/* -------------------------------------------------------------- weights ----- */

static const char *const store_names[] = {"f32", "f16", "bf16", "i8", "q8", "q4", NULL};
static const mha_dtype stores[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8, MHA_Q8_0, MHA_Q4_1};
static const char *const activation_names[] = {"relu", "gelu", "gelu_tanh", "gelu_quick",
                                               "silu", "tanh", NULL};

int mhap_store_read(const mhap_state *state, PyObject *object, mha_dtype *store)
{
    const int n =
        !object || object == Py_None ? 0 : mhap_choice(state, object, "store", store_names);
    *store = n < 0 ? MHA_F32 : stores[n];
    return n < 0 ? -1 : 0;
}

const char *mhap_store_name(mha_dtype store)
{
    int n = 0;
    while (stores[n] != store)
        n++;
    return store_names[n];
}

int mhap_activation_read(const mhap_state *state, PyObject *object, mha_activation *activation)
{
    const int n = !object || object == Py_None
                      ? -1
                      : mhap_choice(state, object, "activation", activation_names);
    *activation = (mha_activation)(n + 1);
    return n < 0 && PyErr_Occurred() ? -1 : 0;
}

const char *mhap_activation_name(mha_activation activation)
{
    return activation == MHA_ACTIVATION_NONE ? NULL : activation_names[activation - 1];
}

static int check_weight(const mhap_state *state, const mhap_array *array, const char *name)
{
    if (array->type == MHAP_F32 || array->type == MHAP_F16 || array->type == MHAP_BF16)
        return 0;
    return mhap_fail(state, MHA_ERR_DTYPE, "%s has elements of type %s; use f32, f16 or bf16", name,
                     mhap_type_name(array->type));
}

int mhap_matrix_take(mhap_state *state, PyObject *object, const char *name, ptrdiff_t *outputs,
                     ptrdiff_t *inputs, mhap_array *array, mha_matrix *matrix)
{
    if (mhap_take(state, object, name, array) || check_weight(state, array, name))
        return -1;
    if (array->axes != 2)
        return mhap_fail(state, MHA_ERR_SHAPE, "%s has %d axes; it must be (outputs, inputs)", name,
                         array->axes);
    const ptrdiff_t shape[] = {*outputs ? *outputs : array->shape[0],
                               *inputs ? *inputs : array->shape[1]};
    if (mhap_check_shape(state, array, name, 2, shape))
        return -1;
    *outputs = shape[0];
    *inputs = shape[1];
    *matrix =
        (mha_matrix){array->data, (mha_dtype)array->type, array->strides[0], array->strides[1]};
    return 0;
}

int mhap_vector_take(mhap_state *state, PyObject *object, const char *name, ptrdiff_t width,
                     mhap_array *array, mha_vector *vector)
{
    if (!object || object == Py_None)
        return 0;
    if (mhap_take(state, object, name, array) || check_weight(state, array, name) ||
        mhap_check_shape(state, array, name, 1, &width) || mhap_check_rows(state, array, name))
        return -1;
    *vector = (mha_vector){array->data, (mha_dtype)array->type};
    return 0;
}

/* ----------------------------------------------------------------- norm ----- */

/* What a call of norm() holds. */
typedef struct norm_call {
    mhap_lines x, y, residual, sum;
    mhap_array weight, bias;
    mha_vector weight_vector, bias_vector;
} norm_call;

static int take_vectors(mhap_state *state, PyObject *weight, PyObject *bias, ptrdiff_t width,
                        norm_call *n)
{
    if (mhap_vector_take(state, weight, "weight", width, &n->weight, &n->weight_vector) ||
        mhap_vector_take(state, bias, "bias", width, &n->bias, &n->bias_vector))
        return -1;
    if ((n->weight.data && n->weight.type != MHAP_F32) ||
        (n->bias.data && n->bias.type != MHAP_F32))
        return mhap_fail(state, MHA_ERR_DTYPE, "weight and bias of a norm must be f32");
    return 0;
}

static int run_norm(mhap_state *state, mha_norm_config *c, norm_call *n, PyObject *threads)
{
    mha_pool *pool = NULL;
    if (mhap_pool_for(state, threads == Py_None ? NULL : threads, &pool))
        return -1;
    c->weight = n->weight_vector.data;
    c->bias = n->bias_vector.data;
    c->residual = n->residual.array.data;
    c->residual_stride = n->residual.stride;
    c->sum = n->sum.array.data;
    c->sum_stride = n->sum.stride;
    mha_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_norm_run(c, n->x.rows, n->x.array.data, n->x.stride, n->y.array.data, n->y.stride,
                          pool);
    Py_END_ALLOW_THREADS;
    return mhap_check(state, status, NULL);
}

PyObject *mhap_norm(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"x",        "weight",  "bias", "kind",    "eps",
                            "residual", "sum_out", "out",  "threads", NULL};
    static const char *const kinds[] = {"rms", "layer", NULL};
    mhap_state *const state = PyModule_GetState(module);
    PyObject *x, *weight = Py_None, *bias = Py_None, *kind = NULL, *residual = Py_None;
    PyObject *sum = Py_None, *out = Py_None, *threads = Py_None;
    double eps = 1e-5;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO$OdOOOO:norm", names, &x, &weight, &bias,
                                     &kind, &eps, &residual, &sum, &out, &threads))
        return NULL;
    const int number = kind ? mhap_choice(state, kind, "kind", kinds) : 1;
    if (number < 0)
        return NULL;
    norm_call n = {.weight_vector = {NULL, MHA_F32}};
    PyObject *result = NULL;
    int failed = mhap_take(state, x, "x", &n.x.array);
    const ptrdiff_t width = !failed && n.x.array.axes > 0 ? n.x.array.shape[n.x.array.axes - 1] : 0;
    failed = failed || check_lines(state, "x", width, false, &n.x) ||
             take_vectors(state, weight, bias, width, &n) ||
             mhap_lines_like(state, residual, "residual", width, &n.x, false, &n.residual) ||
             mhap_lines_like(state, sum, "sum_out", width, &n.x, true, &n.sum) ||
             !(result = mhap_lines_result(state, out, width, &n.x, &n.y));
    if (!failed) {
        mha_norm_config c = {.size = sizeof c,
                             .kind = number == 0 ? MHA_NORM_RMS : MHA_NORM_LAYER,
                             .width = width,
                             .eps = (float)eps};
        if (run_norm(state, &c, &n, threads))
            Py_CLEAR(result);
    } else {
        Py_CLEAR(result);
    }
    mhap_release(&n.x.array);
    mhap_release(&n.y.array);
    mhap_release(&n.residual.array);
    mhap_release(&n.sum.array);
    mhap_release(&n.weight);
    mhap_release(&n.bias);
    return result;
}
