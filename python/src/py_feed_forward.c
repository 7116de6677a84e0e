/* SPDX-License-Identifier: MIT */
/* The type mha.FeedForward: down(activation(up(x))), or gated, down(activation(gate(x)) * up(x)),
 * with the inner rows kept in the cache. */
#include "py_packed.h"

typedef struct feed_forward {
    mhap_packed packed;
    mha_feed_forward *ff;
    ptrdiff_t inner;
} feed_forward;

const mha_feed_forward *mhap_feed_forward_of(PyObject *object)
{
    return ((const feed_forward *)object)->ff;
}

/* ------------------------------------------------------------- creation ----- */

enum { UP, DOWN, GATE, UP_BIAS, DOWN_BIAS, GATE_BIAS, WEIGHTS };

static int take_weights(mhap_state *state, PyObject *const *o, mha_feed_forward_config *c,
                        mhap_array *arrays)
{
    c->gated = o[GATE] && o[GATE] != Py_None;
    if (mhap_matrix_take(state, o[UP], "up", &c->inner, &c->inputs, &arrays[UP], &c->up) ||
        mhap_matrix_take(state, o[DOWN], "down", &c->outputs, &c->inner, &arrays[DOWN], &c->down) ||
        mhap_vector_take(state, o[UP_BIAS], "up_bias", c->inner, &arrays[UP_BIAS], &c->up_bias) ||
        mhap_vector_take(state, o[DOWN_BIAS], "down_bias", c->outputs, &arrays[DOWN_BIAS],
                         &c->down_bias))
        return -1;
    if (!c->gated)
        return o[GATE_BIAS] && o[GATE_BIAS] != Py_None
                   ? mhap_fail(state, MHA_ERR_FLAG, "gate_bias needs a gate")
                   : 0;
    return mhap_matrix_take(state, o[GATE], "gate", &c->inner, &c->inputs, &arrays[GATE],
                            &c->gate) ||
                   mhap_vector_take(state, o[GATE_BIAS], "gate_bias", c->inner, &arrays[GATE_BIAS],
                                    &c->gate_bias)
               ? -1
               : 0;
}

static int create(mhap_state *state, PyObject *const *objects, mha_feed_forward_config c,
                  feed_forward *self)
{
    char message[MHAP_MESSAGE] = "";
    mhap_array arrays[WEIGHTS];
    for (int n = 0; n < WEIGHTS; n++)
        arrays[n] = (mhap_array){.object = NULL};
    c.message = message;
    c.message_size = sizeof message;
    int failed = take_weights(state, objects, &c, arrays);
    if (!failed) {
        mha_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = mha_feed_forward_create(&self->ff, &c);
        Py_END_ALLOW_THREADS;
        failed = mhap_check(state, status, message);
        self->packed.inputs = c.inputs;
        self->packed.outputs = c.outputs;
        self->inner = c.inner;
    }
    for (int n = 0; n < WEIGHTS; n++)
        mhap_release(&arrays[n]);
    return failed;
}

static PyObject *feed_forward_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"up",        "down",  "gate",       "up_bias", "down_bias",
                            "gate_bias", "store", "activation", NULL};
    mhap_state *const state = mhap_state_of(type);
    PyObject *o[WEIGHTS] = {NULL}, *store = Py_None, *activation = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|$OOOOOO:FeedForward", names, &o[UP],
                                     &o[DOWN], &o[GATE], &o[UP_BIAS], &o[DOWN_BIAS], &o[GATE_BIAS],
                                     &store, &activation))
        return NULL;
    mha_feed_forward_config c = {.size = sizeof c};
    if (mhap_store_read(state, store, &c.stored) ||
        mhap_activation_read(state, activation, &c.activation))
        return NULL;
    feed_forward *const self = mhap_packed_allocate(type);
    if (self && create(state, o, c, self)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void feed_forward_dealloc(PyObject *object)
{
    mha_feed_forward_free(((feed_forward *)object)->ff);
    mhap_packed_dealloc(object);
}

/* ----------------------------------------------------------------- call ----- */

static size_t work_size(const mhap_packed *packed, ptrdiff_t rows, int threads)
{
    return mha_feed_forward_work_size(((const feed_forward *)packed)->ff, rows, threads);
}

static mha_status run(const mhap_packed *packed, const mhap_lines *x, const mhap_lines *residual,
                      const mhap_lines *y, void *work, size_t size, mha_pool *pool)
{
    return mha_feed_forward_run(((const feed_forward *)packed)->ff, x->rows, x->array.data,
                                x->stride, residual->array.data, residual->stride, y->array.data,
                                y->stride, work, size, pool);
}

static PyObject *feed_forward_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    static const mhap_packed_kind kind = {"O|$OOO:FeedForward", false, work_size, run};
    return mhap_packed_call(object, args, keywords, &kind);
}

static PyObject *feed_forward_repr(PyObject *object)
{
    const feed_forward *const self = (const feed_forward *)object;
    return PyUnicode_FromFormat("<mha.FeedForward: %zd -> %zd -> %zd>",
                                (Py_ssize_t)self->packed.inputs, (Py_ssize_t)self->inner,
                                (Py_ssize_t)self->packed.outputs);
}

static PyObject *feed_forward_nbytes(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(mha_feed_forward_bytes(((const feed_forward *)object)->ff));
}

/* ----------------------------------------------------------------- type ----- */

static PyGetSetDef attributes[] = {
    {"nbytes", feed_forward_nbytes, NULL, "Bytes of packed weights.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static const char doc[] =
    "FeedForward(up, down, *, gate=None, up_bias=None, down_bias=None, gate_bias=None,\n"
    "            store=\"f32\", activation=None)\n"
    "--\n\n"
    "The two linears of a transformer block: y = down(activation(up(x))) + residual; with a gate\n"
    "y = down(activation(gate(x)) * up(x)) + residual, as SwiGLU (\"silu\") and GeGLU "
    "(\"gelu\").\n\n"
    "up, gate: (inner, inputs); down: (outputs, inner). Weights and activations are those of\n"
    "mha.Linear. Call it: feed_forward(x, *, residual=None, out=None, threads=None), in f32.\n";

static PyType_Slot slots[] = {{Py_tp_doc, (void *)doc},
                              {Py_tp_new, feed_forward_new},
                              {Py_tp_dealloc, feed_forward_dealloc},
                              {Py_tp_call, feed_forward_call},
                              {Py_tp_repr, feed_forward_repr},
                              {Py_tp_getset, attributes},
                              {0, NULL}};

static PyType_Spec spec = {.name = "mha.FeedForward",
                           .basicsize = sizeof(feed_forward),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int mhap_feed_forward_type_add(PyObject *module, mhap_state *state)
{
    state->feed_forward_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->feed_forward_type
               ? PyModule_AddType(module, (PyTypeObject *)state->feed_forward_type)
               : -1;
}
