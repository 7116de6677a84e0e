/* SPDX-License-Identifier: MIT */
/* The type mha.Linear: weights packed once, then y = activation(x W^T + bias) + residual. */
#include <stdlib.h>

#include "py_linear.h"

typedef struct linear {
    PyObject ob_base;
    mha_linear *linear;
    ptrdiff_t inputs, outputs;
    mha_dtype store;
    mha_activation activation;
    bool has_bias;
    int runs; /* calls of all threads that are computing */
    mhap_scratch scratch;
} linear;

static mhap_state *state_of(PyObject *object)
{
    return mhap_state_of(Py_TYPE(object));
}

/* ------------------------------------------------------------- creation ----- */

static int create(mhap_state *state, PyObject *weight, PyObject *bias, linear *self)
{
    char message[MHAP_MESSAGE] = "";
    mhap_array arrays[2] = {{.object = NULL}, {.object = NULL}};
    mha_linear_config c = {.size = sizeof c,
                           .stored = self->store,
                           .message = message,
                           .message_size = sizeof message};
    int failed =
        mhap_matrix_take(state, weight, "weight", &c.outputs, &c.inputs, &arrays[0], &c.weight) ||
        mhap_vector_take(state, bias, "bias", c.outputs, &arrays[1], &c.bias);
    if (!failed) {
        mha_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = mha_linear_create(&self->linear, &c);
        Py_END_ALLOW_THREADS;
        failed = mhap_check(state, status, message);
        self->inputs = c.inputs;
        self->outputs = c.outputs;
        self->has_bias = c.bias.data != NULL;
    }
    mhap_release(&arrays[0]);
    mhap_release(&arrays[1]);
    return failed ? -1 : 0;
}

static PyObject *linear_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"weight", "bias", "store", "activation", NULL};
    mhap_state *const state = mhap_state_of(type);
    PyObject *weight, *bias = Py_None, *store = Py_None, *activation = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O$OO:Linear", names, &weight, &bias, &store,
                                     &activation))
        return NULL;
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    linear *const self = (linear *)make(type, 0);
    if (self && (mhap_store_read(state, store, &self->store) ||
                 mhap_activation_read(state, activation, &self->activation) ||
                 create(state, weight, bias, self))) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void linear_dealloc(PyObject *object)
{
    linear *const self = (linear *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mha_linear_free(self->linear);
    free(self->scratch.memory);
    release(object);
    Py_DECREF(type);
}

/* ----------------------------------------------------------------- call ----- */

static mha_status run(linear *self, const mhap_lines *x, const mhap_lines *residual,
                      const mhap_lines *y, mha_pool *pool)
{
    const size_t size = mha_linear_work_size(self->linear, x->rows, mha_pool_threads(pool));
    void *const work = mhap_scratch_take(&self->scratch, size);
    mha_status status;
    self->runs++;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_linear_run_fused(self->linear, x->rows, x->array.data, (mha_dtype)x->array.type,
                                  x->stride, self->activation, residual->array.data,
                                  residual->stride, y->array.data, (mha_dtype)y->array.type,
                                  y->stride, work, work ? size : 0, pool);
    Py_END_ALLOW_THREADS;
    self->runs--;
    mhap_scratch_give(&self->scratch, work);
    return status;
}

static PyObject *linear_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"x", "residual", "out", "threads", NULL};
    linear *const self = (linear *)object;
    mhap_state *const state = state_of(object);
    PyObject *x, *residual = Py_None, *out = Py_None, *threads = Py_None, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OOO:Linear", names, &x, &residual, &out,
                                     &threads))
        return NULL;
    mhap_lines lines[3] = {{.rows = 0}, {.rows = 0}, {.rows = 0}};
    mha_pool *pool = NULL;
    if (!mhap_lines_take(state, x, "x", self->inputs, true, &lines[0]) &&
        !mhap_lines_like(state, residual, "residual", self->outputs, &lines[0], false, &lines[1]) &&
        !mhap_pool_for(state, threads == Py_None ? NULL : threads, &pool))
        result = mhap_lines_result(state, out, self->outputs, &lines[0], &lines[2]);
    if (result && mhap_check(state, run(self, &lines[0], &lines[1], &lines[2], pool), NULL))
        Py_CLEAR(result);
    for (int n = 0; n < 3; n++)
        mhap_release(&lines[n].array);
    return result;
}

/* -------------------------------------------------------------- methods ----- */

static PyObject *linear_update(PyObject *object, PyObject *args)
{
    linear *const self = (linear *)object;
    mhap_state *const state = state_of(object);
    PyObject *weight, *bias = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:update", &weight, &bias))
        return NULL;
    mhap_array arrays[2] = {{.object = NULL}, {.object = NULL}};
    mha_matrix matrix;
    mha_vector vector = {NULL, MHA_F32};
    ptrdiff_t outputs = self->outputs, inputs = self->inputs;
    int failed =
        mhap_matrix_take(state, weight, "weight", &outputs, &inputs, &arrays[0], &matrix) ||
        mhap_vector_take(state, bias, "bias", outputs, &arrays[1], &vector);
    if (!failed && self->runs > 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the linear is computing in another thread; update it when that is done");
        failed = 1;
    }
    if (!failed &&
        (failed = mhap_check(state, mha_linear_update(self->linear, matrix, vector), NULL)) == 0)
        self->has_bias = vector.data != NULL;
    mhap_release(&arrays[0]);
    mhap_release(&arrays[1]);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyObject *linear_repr(PyObject *object)
{
    const linear *const self = (const linear *)object;
    const char *const activation = mhap_activation_name(self->activation);
    return PyUnicode_FromFormat("<mha.Linear: %zd -> %zd, %s%s%s%s>", (Py_ssize_t)self->inputs,
                                (Py_ssize_t)self->outputs, mhap_store_name(self->store),
                                self->has_bias ? ", bias" : "", activation ? ", " : "",
                                activation ? activation : "");
}

static PyObject *linear_inputs(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(((const linear *)object)->inputs);
}

static PyObject *linear_outputs(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(((const linear *)object)->outputs);
}

static PyObject *linear_nbytes(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(mha_linear_bytes(((const linear *)object)->linear));
}

static PyMethodDef methods[] = {
    {"update", linear_update, METH_VARARGS,
     "update($self, weight, bias=None, /)\n--\n\n"
     "Replace the weights by others of the same extents, as after a step of training."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {
    {"inputs", linear_inputs, NULL, "Elements of a row of x.", NULL},
    {"outputs", linear_outputs, NULL, "Elements of a row of y.", NULL},
    {"nbytes", linear_nbytes, NULL, "Bytes of packed weights.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static const char doc[] =
    "Linear(weight, bias=None, *, store=\"f32\", activation=None)\n"
    "--\n\n"
    "y = activation(x W^T + bias) + residual, with the weights packed once for this CPU.\n\n"
    "weight: (outputs, inputs) with any strides, f32, f16 or bf16; bias: (outputs,). It is "
    "copied.\n"
    "store: \"f32\", \"f16\", \"bf16\", \"i8\" with a scale per output, \"q8\" or \"q4\" with "
    "scales for\n"
    "groups of 32 inputs. activation: \"relu\", \"gelu\", \"gelu_tanh\", \"gelu_quick\", "
    "\"silu\", \"tanh\".\n\n"
    "Call it: linear(x, *, residual=None, out=None, threads=None). x: (..., inputs), f32, f16 or\n"
    "bf16, read in place; the result has its library, element type and axes. residual: f32.\n"
    "A row gives the same bits whatever the number of rows and threads.\n\n"
    ">>> import mha, numpy\n"
    ">>> linear = mha.Linear(numpy.eye(3, dtype=\"float32\"), activation=\"relu\")\n"
    ">>> linear(numpy.array([[1, -2, 3]], \"float32\")).tolist()\n"
    "[[1.0, 0.0, 3.0]]\n";

static PyType_Slot slots[] = {{Py_tp_doc, (void *)doc},        {Py_tp_new, linear_new},
                              {Py_tp_dealloc, linear_dealloc}, {Py_tp_call, linear_call},
                              {Py_tp_repr, linear_repr},       {Py_tp_methods, methods},
                              {Py_tp_getset, attributes},      {0, NULL}};

static PyType_Spec spec = {.name = "mha.Linear",
                           .basicsize = sizeof(linear),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int mhap_linear_type_add(PyObject *module, mhap_state *state)
{
    (void)state;
    PyObject *const type = PyType_FromModuleAndSpec(module, &spec, NULL);
    const int status = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return status;
}
