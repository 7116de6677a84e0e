/* SPDX-License-Identifier: MIT */
/*
 * The type mha._core.Stack: the layers of an encoder with norms after each part, for mha.hf.
 *
 *      x = norm(x + attention(x));  x = norm(x + feed_forward(x))        layer after layer
 *
 * on packed sequences, in one call: for a short text, four calls of Python per layer take a tenth
 * of the time of the layer.
 */
#include <stdlib.h>
#include <string.h>

#include "py_packed.h"

enum { NORMS = 2 };

typedef struct stack_layer {
    PyObject *layer, *feed_forward; /* references */
    mha_norm_config norms[NORMS];
} stack_layer;

typedef struct stack {
    PyObject ob_base;
    Py_ssize_t count;
    ptrdiff_t width;
    stack_layer *layers; /* [count] */
    float *vectors;      /* [count][NORMS][weight, bias][width] */
    mhap_scratch scratch;
} stack;

static mha_layer *layer_of(const stack_layer *at)
{
    return ((const mhap_layer *)at->layer)->layer;
}

/* -------------------------------------------------------------- creation ----- */

static int take_parts(mhap_state *state, stack *self, stack_layer *at)
{
    if (PyObject_IsInstance(at->layer, state->layer_type) != 1 ||
        PyObject_IsInstance(at->feed_forward, state->feed_forward_type) != 1) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a stack has mha.Layer and mha.FeedForward");
        return -1;
    }
    const mha_layer_config c = mha_layer_get_config(layer_of(at));
    const mhap_packed *const packed = (const mhap_packed *)at->feed_forward;
    if (self->width == 0)
        self->width = c.E;
    if (c.E != self->width || c.output_width != self->width || packed->inputs != self->width ||
        packed->outputs != self->width)
        return mhap_fail(state, MHA_ERR_SHAPE, "all parts of a stack must have the same width");
    return 0;
}

/* A norm: (weight, bias, eps). */
static int take_norm(mhap_state *state, const stack *self, PyObject *norm, float *vectors,
                     mha_norm_config *to)
{
    static const char *const names[] = {"weight", "bias"};
    PyObject *objects[2];
    double eps;
    mhap_kept kept = {.count = 0};
    if (!PyArg_ParseTuple(norm, "OOd:norm", &objects[0], &objects[1], &eps))
        return -1;
    int status = 0;
    for (int n = 0; n < 2 && !status; n++) {
        const float *const from = mhap_floats(state, objects[n], names[n], 1, &self->width, &kept);
        status = from ? 0 : -1;
        if (from)
            memcpy(vectors + n * self->width, from, sizeof *from * (size_t)self->width);
    }
    mhap_kept_free(&kept);
    *to = (mha_norm_config){.size = sizeof *to,
                            .kind = MHA_NORM_LAYER,
                            .width = self->width,
                            .eps = (float)eps,
                            .weight = vectors,
                            .bias = vectors + self->width};
    return status;
}

/* Layer n: (layer, feed_forward, first norm, second norm). */
static int take_layer(mhap_state *state, stack *self, Py_ssize_t n, PyObject *item)
{
    stack_layer *const at = &self->layers[n];
    PyObject *parts[2], *norms[NORMS];
    if (!PyArg_ParseTuple(item, "OOOO:layer", &parts[0], &parts[1], &norms[0], &norms[1]))
        return -1;
    at->layer = Py_NewRef(parts[0]);
    at->feed_forward = Py_NewRef(parts[1]);
    if (take_parts(state, self, at))
        return -1;
    const size_t one = 2 * (size_t)self->width;
    if (!self->vectors)
        self->vectors = malloc((size_t)self->count * NORMS * one * sizeof *self->vectors);
    if (!self->vectors) {
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < NORMS; k++)
        if (take_norm(state, self, norms[k], self->vectors + ((size_t)n * NORMS + (size_t)k) * one,
                      &at->norms[k]))
            return -1;
    return 0;
}

static int fill(mhap_state *state, stack *self, PyObject *layers)
{
    const Py_ssize_t count = PySequence_Size(layers);
    if (count < 1)
        return count < 0 ? -1 : mhap_fail(state, MHA_ERR_SHAPE, "a stack has at least one layer");
    self->layers = calloc((size_t)count, sizeof *self->layers);
    if (!self->layers) {
        PyErr_NoMemory();
        return -1;
    }
    self->count = count;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *const item = PySequence_GetItem(layers, n);
        const int status = item ? take_layer(state, self, n, item) : -1;
        Py_XDECREF(item);
        if (status)
            return -1;
    }
    return 0;
}

static PyObject *stack_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"layers", NULL};
    PyObject *layers;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:Stack", names, &layers))
        return NULL;
    stack *const self = mhap_packed_allocate(type);
    if (self && fill(mhap_state_of(type), self, layers)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void stack_dealloc(PyObject *object)
{
    stack *const self = (stack *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    for (Py_ssize_t n = 0; self->layers && n < self->count; n++) {
        Py_XDECREF(self->layers[n].layer);
        Py_XDECREF(self->layers[n].feed_forward);
    }
    free(self->layers);
    free(self->vectors);
    free(self->scratch.memory);
    release(object);
    Py_DECREF(type);
}

/* ----------------------------------------------------------------- call ----- */

/* One call of all layers. */
typedef struct stack_call {
    const stack *self;
    ptrdiff_t rows, B, longest;
    const int64_t *starts; /* [B+1] */
    mha_pool *pool;
    float *part; /* [rows][width]: what an attention gives */
    void *work;
    size_t work_size;
    char message[MHAP_MESSAGE];
} stack_call;

static mha_status run_attention(stack_call *c, const stack_layer *at, const float *x,
                                ptrdiff_t stride, size_t *work_size)
{
    const mha_options options = {.size = sizeof options,
                                 .q_starts = c->starts,
                                 .message = c->message,
                                 .message_size = sizeof c->message};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = c->B,
                                 .L = c->longest,
                                 .query = {x, 0, 0, stride},
                                 .output = {c->part, 0, 0, c->self->width},
                                 .options = &options};
    if (work_size) {
        *work_size = mha_layer_work_size(layer_of(at), &call, mha_pool_threads(c->pool));
        return MHA_OK;
    }
    return mha_layer_run(layer_of(at), &call, c->work, c->work_size, c->pool);
}

/* The bytes that the largest step of a layer needs. */
static size_t work_size_of(stack_call *c, const stack_layer *at, const float *x)
{
    const mha_feed_forward *const ff = mhap_feed_forward_of(at->feed_forward);
    const size_t other = mha_feed_forward_work_size(ff, c->rows, mha_pool_threads(c->pool));
    size_t size = 0;
    c->part = (float *)(void *)x; /* any address that is not NULL */
    run_attention(c, at, x, c->self->width, &size);
    return size > other ? size : other;
}

static mha_status run_layer(stack_call *c, const stack_layer *at, const float *x, ptrdiff_t stride,
                            float *y)
{
    const ptrdiff_t width = c->self->width;
    mha_norm_config first = at->norms[0];
    mha_status status = run_attention(c, at, x, stride, NULL);
    first.residual = x;
    first.residual_stride = stride;
    if (!status)
        status = mha_norm_run(&first, c->rows, c->part, width, y, width, c->pool);
    if (!status)
        status = mha_feed_forward_run(mhap_feed_forward_of(at->feed_forward), c->rows, y, width, y,
                                      width, y, width, c->work, c->work_size, c->pool);
    return status ? status : mha_norm_run(&at->norms[1], c->rows, y, width, y, width, c->pool);
}

static mha_status run_layers(stack_call *c, const mhap_lines *x, float *y)
{
    const float *from = x->array.data;
    ptrdiff_t stride = x->stride;
    mha_status status = MHA_OK;
    for (Py_ssize_t n = 0; n < c->self->count && !status; n++) {
        status = run_layer(c, &c->self->layers[n], from, stride, y);
        from = y;
        stride = c->self->width;
    }
    return status;
}

/* Weights must not be updated while they are used. */
static void count_runs(const stack *self, int change)
{
    for (Py_ssize_t n = 0; n < self->count; n++) {
        ((mhap_layer *)self->layers[n].layer)->runs += change;
        ((mhap_packed *)self->layers[n].feed_forward)->runs += change;
    }
}

static int run(mhap_state *state, stack *self, stack_call *c, const mhap_lines *x, float *y)
{
    for (Py_ssize_t n = 0; n < self->count; n++) {
        const size_t size = work_size_of(c, &self->layers[n], x->array.data);
        c->work_size = size > c->work_size ? size : c->work_size;
    }
    const size_t work = (c->work_size + 63) / 64 * 64;
    const size_t whole = work + sizeof(float) * (size_t)(c->rows * self->width);
    void *const scratch = mhap_scratch_take(&self->scratch, whole);
    c->work = scratch ? scratch : aligned_alloc(64, (whole + 63) / 64 * 64);
    if (!c->work) {
        PyErr_NoMemory();
        return -1;
    }
    c->part = (float *)(void *)((char *)c->work + work);
    mha_status status;
    count_runs(self, 1);
    Py_BEGIN_ALLOW_THREADS;
    status = run_layers(c, x, y);
    Py_END_ALLOW_THREADS;
    count_runs(self, -1);
    mhap_scratch_give(&self->scratch, scratch);
    if (!scratch)
        free(c->work);
    return mhap_check(state, status, c->message);
}

static int read_starts(mhap_state *state, PyObject *object, stack_call *c, mhap_kept *kept)
{
    ptrdiff_t count = 0;
    c->starts = mhap_integers(state, object, "starts", -1, &count, kept);
    if (!c->starts)
        return -1;
    c->B = count - 1;
    bool fits = count > 1 && c->starts[0] == 0 && c->starts[count - 1] == c->rows;
    for (ptrdiff_t b = 0; fits && b < c->B; b++) {
        const int64_t begin = c->starts[b], end = c->starts[b + 1];
        fits = end > begin && end <= c->rows;
        if (fits && end - begin > c->longest)
            c->longest = (ptrdiff_t)(end - begin);
    }
    return fits ? 0
                : mhap_fail(state, MHA_ERR_LENGTH,
                            "starts must go from 0 to the %td rows of x, and no sequence is empty",
                            c->rows);
}

static PyObject *stack_call_it(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"x", "starts", "threads", NULL};
    stack *const self = (stack *)object;
    mhap_state *const state = mhap_state_of(Py_TYPE(object));
    PyObject *x, *starts, *threads = Py_None, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|$O:Stack", names, &x, &starts, &threads))
        return NULL;
    mhap_lines from = {.rows = 0}, to = {.rows = 0};
    mhap_kept kept = {.count = 0};
    stack_call c = {.self = self};
    if (!mhap_lines_take(state, x, "x", self->width, false, &from)) {
        c.rows = from.rows;
        if (!read_starts(state, starts, &c, &kept) &&
            !mhap_pool_for(state, threads == Py_None ? NULL : threads, &c.pool))
            result = mhap_lines_result(state, NULL, self->width, &from, &to);
    }
    if (result && run(state, self, &c, &from, to.array.data))
        Py_CLEAR(result);
    mhap_release(&from.array);
    mhap_release(&to.array);
    mhap_kept_free(&kept);
    return result;
}

/* ----------------------------------------------------------------- type ----- */

static const char doc[] =
    "Stack(layers)\n"
    "--\n\n"
    "The layers of an encoder: [(mha.Layer, mha.FeedForward, norm, norm)], a norm being\n"
    "(weight, bias, eps). Call it: stack(x, starts, *, threads=None) with the rows of packed\n"
    "sequences, f32.\n";

static PyType_Slot slots[] = {{Py_tp_doc, (void *)doc},
                              {Py_tp_new, stack_new},
                              {Py_tp_dealloc, stack_dealloc},
                              {Py_tp_call, stack_call_it},
                              {0, NULL}};

static PyType_Spec spec = {.name = "mha._core.Stack",
                           .basicsize = sizeof(stack),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = slots};

int mhap_stack_type_add(PyObject *module, mhap_state *state)
{
    (void)state;
    return mhap_type_add(module, &spec);
}
