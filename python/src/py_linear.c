/* SPDX-License-Identifier: MIT */
/* The type mha.Linear: weights packed once, then y = activation(x W^T + bias) + residual. */
#include "py_packed.h"

typedef struct linear {
    mhap_packed packed;
    mha_linear *linear;
    mha_dtype store;
    mha_activation activation;
    bool has_bias;
} linear;

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
        self->packed.inputs = c.inputs;
        self->packed.outputs = c.outputs;
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
    linear *const self = mhap_packed_allocate(type);
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
    mha_linear_free(((linear *)object)->linear);
    mhap_packed_dealloc(object);
}

/* ----------------------------------------------------------------- call ----- */

static size_t work_size(const mhap_packed *packed, ptrdiff_t rows, int threads)
{
    return mha_linear_work_size(((const linear *)packed)->linear, rows, threads);
}

static mha_status run(const mhap_packed *packed, const mhap_lines *x, const mhap_lines *residual,
                      const mhap_lines *y, void *work, size_t size, mha_pool *pool)
{
    const linear *const self = (const linear *)packed;
    return mha_linear_run_fused(self->linear, x->rows, x->array.data, (mha_dtype)x->array.type,
                                x->stride, self->activation, residual->array.data, residual->stride,
                                y->array.data, (mha_dtype)y->array.type, y->stride, work, size,
                                pool);
}

static PyObject *linear_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    static const mhap_packed_kind kind = {"O|$OOO:Linear", true, work_size, run};
    return mhap_packed_call(object, args, keywords, &kind);
}

/* -------------------------------------------------------------- methods ----- */

static PyObject *linear_update(PyObject *object, PyObject *args)
{
    linear *const self = (linear *)object;
    mhap_state *const state = mhap_state_of(Py_TYPE(object));
    PyObject *weight, *bias = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:update", &weight, &bias))
        return NULL;
    mhap_array arrays[2] = {{.object = NULL}, {.object = NULL}};
    mha_matrix matrix;
    mha_vector vector = {NULL, MHA_F32};
    ptrdiff_t outputs = self->packed.outputs, inputs = self->packed.inputs;
    int failed =
        mhap_matrix_take(state, weight, "weight", &outputs, &inputs, &arrays[0], &matrix) ||
        mhap_vector_take(state, bias, "bias", outputs, &arrays[1], &vector);
    if (!failed && self->packed.runs > 0) {
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
    return PyUnicode_FromFormat("<mha.Linear: %zd -> %zd, %s%s%s%s>",
                                (Py_ssize_t)self->packed.inputs, (Py_ssize_t)self->packed.outputs,
                                mhap_store_name(self->store), self->has_bias ? ", bias" : "",
                                activation ? ", " : "", activation ? activation : "");
}

static PyObject *linear_inputs(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(((const mhap_packed *)object)->inputs);
}

static PyObject *linear_outputs(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(((const mhap_packed *)object)->outputs);
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
    return mhap_type_add(module, &spec);
}
