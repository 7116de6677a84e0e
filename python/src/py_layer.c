/* SPDX-License-Identifier: MIT */
/* The type mha._core.Layer: creating, updating and pruning a layer. Calls are in py_layer_call.c,
 * gradients in py_layer_tape.c. */
#include "py_layer.h"

#include <stdlib.h>
#include <string.h>

/* Names of element types and of mha_norm, by their values. */
static const char *const stored_names[] = {"f32", "f16", "bf16", "f64", "i8", NULL};
static const char *const norm_names[] = {"none", "rms", "layer", NULL};

/* -------------------------------------------------------------- scratch ----- */

void *mhap_scratch_take(mhap_scratch *scratch, size_t size)
{
    if (scratch->busy || size == 0)
        return NULL;
    if (scratch->size < size) {
        free(scratch->memory);
        const size_t whole = (size + 63) / 64 * 64;
        scratch->memory = aligned_alloc(64, whole);
        scratch->size = scratch->memory ? whole : 0;
    }
    scratch->busy = scratch->memory != NULL;
    return scratch->memory;
}

void mhap_scratch_give(mhap_scratch *scratch, const void *memory)
{
    if (memory)
        scratch->busy = false;
}

/* ----------------------------------------------------------------- rope ----- */

static int rope_frequencies(mhap_state *state, PyObject *object, ptrdiff_t head_width,
                            mha_rope *rope, mhap_kept *kept)
{
    const ptrdiff_t shape[] = {(rope->width ? rope->width : head_width) / 2};
    rope->frequencies = mhap_floats(state, object, "frequencies", 1, shape, kept);
    return rope->frequencies ? 0 : -1;
}

/* The attribute `name`; NULL without an exception if it is None. */
static int attribute(PyObject *object, const char *name, PyObject **value)
{
    *value = PyObject_GetAttrString(object, name);
    if (!*value) {
        PyErr_Clear();
        return mhap_wrong_kind("rope", object, "give an mha.Rope or None");
    }
    if (*value == Py_None)
        Py_CLEAR(*value);
    return 0;
}

enum { PAIRS, WIDTH, BASE, FREQUENCIES, ROPE_PARTS };

static int read_parts(mhap_state *state, PyObject *const *parts, ptrdiff_t head_width,
                      mha_rope *rope, mhap_kept *kept)
{
    static const char *const pairs[] = {"none", "halves", "neighbours", NULL};
    const int kind = mhap_choice(state, parts[PAIRS] ? parts[PAIRS] : Py_None, "pairs", pairs);
    if (kind < 0 || (parts[WIDTH] && mhap_integer(parts[WIDTH], "width", &rope->width)) ||
        (parts[BASE] && mhap_number(parts[BASE], "base", &rope->base)))
        return -1;
    rope->pairs = (mha_rope_pairs)kind;
    return parts[FREQUENCIES] ? rope_frequencies(state, parts[FREQUENCIES], head_width, rope, kept)
                              : 0;
}

int mhap_rope_read(mhap_state *state, PyObject *object, ptrdiff_t head_width, mha_rope *rope,
                   mhap_kept *kept)
{
    static const char *const names[] = {"pairs", "width", "base", "frequencies"};
    PyObject *parts[ROPE_PARTS] = {NULL};
    int status = 0;
    *rope = (mha_rope){0};
    if (!object || object == Py_None)
        return 0;
    for (int n = 0; n < ROPE_PARTS && !status; n++)
        status = attribute(object, names[n], &parts[n]);
    if (!status)
        status = read_parts(state, parts, head_width, rope, kept);
    for (int n = 0; n < ROPE_PARTS; n++)
        Py_XDECREF(parts[n]);
    return status;
}

/* ------------------------------------------------------------- creation ----- */

enum { WIDTHS = 8 };

/* The arguments of Layer(), as borrowed references. */
typedef struct arguments {
    PyObject *widths[WIDTHS];
    PyObject *weights, *stored, *norm, *norm_eps, *rope, *zero, *batch_first, *threads;
} arguments;

static char *argument_names[] = {
    "width",     "heads",       "kv_heads",     "head_width",    "value_head_width",
    "key_width", "value_width", "output_width", "weights",       "stored",
    "norm",      "norm_eps",    "rope",         "add_zero_attn", "batch_first",
    "threads",   NULL};

static int parse(PyObject *args, PyObject *keywords, arguments *a)
{
    PyObject **const w = a->widths;
    return PyArg_ParseTupleAndKeywords(args, keywords, "OO|$OOOOOOOOOOOOOO:Layer", argument_names,
                                       &w[0], &w[1], &w[2], &w[3], &w[4], &w[5], &w[6], &w[7],
                                       &a->weights, &a->stored, &a->norm, &a->norm_eps, &a->rope,
                                       &a->zero, &a->batch_first, &a->threads)
               ? 0
               : -1;
}

static bool is_given(const PyObject *object)
{
    return object && object != Py_None;
}

/* Checks that no extent is so large that a product of two overflows. */
static int read_widths(const mhap_state *state, PyObject *const *widths, mha_layer_config *c)
{
    ptrdiff_t *const targets[WIDTHS] = {&c->E,  &c->H,         &c->G,           &c->D,
                                        &c->Dv, &c->key_width, &c->value_width, &c->output_width};
    for (int n = 0; n < WIDTHS; n++) {
        if (is_given(widths[n]) && mhap_integer(widths[n], argument_names[n], targets[n]))
            return -1;
        if (*targets[n] < INT32_MIN || *targets[n] > INT32_MAX)
            return mhap_fail(state, MHA_ERR_OVERFLOW, "%s is %td, which no memory has room for",
                             argument_names[n], *targets[n]);
    }
    return 0;
}

/* Fills in defaults, so that the shapes of weights can be checked before calling the library. */
static void complete_widths(mha_layer_config *c)
{
    c->G = c->G ? c->G : c->H;
    c->D = c->D || c->H <= 0 ? c->D : c->E / c->H;
    c->Dv = c->Dv ? c->Dv : c->D;
    c->key_width = c->key_width ? c->key_width : c->E;
    c->value_width = c->value_width ? c->value_width : c->key_width;
    c->output_width = c->output_width ? c->output_width : c->E;
}

static int check_widths(const mhap_state *state, const mha_layer_config *c, bool head_width_given)
{
    if (c->E < 1 || c->H < 1)
        return mhap_fail(state, MHA_ERR_SHAPE, "width is %td and heads %td; both are 1 or more",
                         c->E, c->H);
    if (!head_width_given && c->E % c->H != 0)
        return mhap_fail(state, MHA_ERR_SHAPE,
                         "width %td is not a multiple of %td heads; give head_width", c->E, c->H);
    return 0;
}

static int read_choices(mhap_state *state, const arguments *a, mha_layer_config *c, mhap_kept *kept)
{
    int stored = MHA_F32, norm = MHA_NORM_NONE;
    double eps = 0;
    if ((is_given(a->stored) &&
         (stored = mhap_choice(state, a->stored, "stored", stored_names)) < 0) ||
        (is_given(a->norm) && (norm = mhap_choice(state, a->norm, "norm", norm_names)) < 0) ||
        (is_given(a->norm_eps) && mhap_number(a->norm_eps, "norm_eps", &eps)))
        return -1;
    c->stored = (mha_dtype)stored;
    c->norm = (mha_norm)norm;
    c->norm_eps = (float)eps;
    const int zero = is_given(a->zero) ? mhap_truth(a->zero) : 0;
    c->flags = zero > 0 ? MHA_LAYER_ZERO_ATTN : 0;
    return zero < 0 ? -1 : mhap_rope_read(state, a->rope, c->D, &c->rope, kept);
}

static int create(mhap_state *state, const arguments *a, mha_layer_config c, mhap_layer *self)
{
    char message[MHAP_MESSAGE] = "";
    mhap_layer_weights weights;
    c.message = message;
    c.message_size = sizeof message;
    int status = mhap_layer_weights_read(state, a->weights, &c, &weights);
    if (!status) {
        mha_status made;
        Py_BEGIN_ALLOW_THREADS;
        made = mha_layer_create(&self->layer, &c, &weights.c);
        Py_END_ALLOW_THREADS;
        status = mhap_check(state, made, message);
        self->given = weights.given;
    }
    mhap_layer_weights_end(&weights);
    return status;
}

static int fill(mhap_state *state, const arguments *a, mhap_layer *self)
{
    self->state = state;
    mha_layer_config config = {.size = sizeof config};
    mhap_kept kept = {.count = 0};
    if (!is_given(a->weights)) {
        PyErr_SetString(PyExc_TypeError, "a layer needs weights={'q': ..., 'k': ..., 'v': ..., "
                                         "'o': ...}; Layer.random() makes some to try");
        return -1;
    }
    if (read_widths(state, a->widths, &config) ||
        check_widths(state, &config, is_given(a->widths[3])))
        return -1;
    complete_widths(&config);
    const int first = is_given(a->batch_first) ? mhap_truth(a->batch_first) : 1;
    const int status =
        first < 0 || read_choices(state, a, &config, &kept) || create(state, a, config, self) ? -1
                                                                                              : 0;
    mhap_kept_free(&kept);
    self->batch_first = first > 0;
    self->rope = Py_NewRef(a->rope ? a->rope : Py_None);
    self->threads = is_given(a->threads) ? Py_NewRef(a->threads) : NULL;
    return status;
}

static mhap_layer *allocate(PyTypeObject *type)
{
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return (mhap_layer *)make(type, 0);
}

static PyObject *layer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    arguments a = {.weights = NULL};
    if (parse(args, keywords, &a))
        return NULL;
    mhap_layer *const self = allocate(type);
    if (self && fill(mhap_state_of(type), &a, self)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void layer_dealloc(PyObject *object)
{
    mhap_layer *const self = (mhap_layer *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mha_layer_free(self->layer);
    free(self->scratch.memory);
    Py_XDECREF(self->rope);
    Py_XDECREF(self->threads);
    release(object);
    Py_DECREF(type);
}

/* -------------------------------------------------------------- methods ----- */

static PyObject *layer_update(PyObject *object, PyObject *dictionary)
{
    mhap_layer *const self = (mhap_layer *)object;
    mhap_state *const state = ((const mhap_layer *)object)->state;
    const mha_layer_config config = mha_layer_get_config(self->layer);
    mhap_layer_weights weights;
    int status = mhap_layer_weights_read(state, dictionary, &config, &weights);
    /* Checked only now, since other threads may have run while the weights were read. */
    if (!status && self->runs > 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the layer is computing in another thread; update it when that is done");
        status = -1;
    }
    if (!status)
        status = mhap_check(state, mha_layer_update(self->layer, &weights.c),
                            "extra keys and norms must be there just where they were before");
    if (!status) {
        self->given = weights.given;
        self->version++;
    }
    mhap_layer_weights_end(&weights);
    return status ? NULL : Py_NewRef(Py_None);
}

/* Returns a layer without the heads for which keep[h] is 0. */
static PyObject *prune(mhap_state *state, const mhap_layer *self, const uint8_t *keep)
{
    char message[MHAP_MESSAGE] = "";
    mhap_layer *const pruned = allocate(Py_TYPE((PyObject *)self));
    if (!pruned)
        return NULL;
    pruned->state = state;
    pruned->rope = Py_NewRef(self->rope);
    pruned->threads = Py_XNewRef(self->threads);
    pruned->batch_first = self->batch_first;
    pruned->given = self->given;
    const mha_status status =
        mha_layer_prune(&pruned->layer, self->layer, keep, message, sizeof message);
    if (mhap_check(state, status, message)) {
        Py_DECREF(pruned);
        return NULL;
    }
    return (PyObject *)pruned;
}

static PyObject *layer_prune(PyObject *object, PyObject *keep)
{
    const mhap_layer *const self = (const mhap_layer *)object;
    mhap_state *const state = ((const mhap_layer *)object)->state;
    mhap_kept kept = {.count = 0};
    ptrdiff_t count;
    const ptrdiff_t heads = mha_layer_get_config(self->layer).H;
    const int64_t *const numbers = mhap_integers(state, keep, "keep", heads, &count, &kept);
    uint8_t *const bytes = numbers ? mhap_keep(&kept, (size_t)heads) : NULL;
    for (ptrdiff_t h = 0; bytes && h < heads; h++)
        bytes[h] = numbers[h] != 0;
    PyObject *const pruned = bytes ? prune(state, self, bytes) : NULL;
    mhap_kept_free(&kept);
    return pruned;
}

static PyObject *layer_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    mhap_layer_run run = {.layer = NULL};
    PyObject *const result = mhap_layer_run_call((mhap_layer *)object, args, keywords, false, &run);
    mhap_layer_run_end(&run);
    return result;
}

static PyObject *layer_config(PyObject *object, void *unused)
{
    (void)unused;
    const mhap_layer *const self = (const mhap_layer *)object;
    const mha_layer_config c = mha_layer_get_config(self->layer);
    return Py_BuildValue(
        "{sn sn sn sn sn sn sn sn ss ss sd sO sO sO}", "width", (Py_ssize_t)c.E, "heads",
        (Py_ssize_t)c.H, "kv_heads", (Py_ssize_t)c.G, "head_width", (Py_ssize_t)c.D,
        "value_head_width", (Py_ssize_t)c.Dv, "key_width", (Py_ssize_t)c.key_width, "value_width",
        (Py_ssize_t)c.value_width, "output_width", (Py_ssize_t)c.output_width, "stored",
        stored_names[c.stored], "norm", norm_names[c.norm], "norm_eps", (double)c.norm_eps, "rope",
        self->rope, "add_zero_attn", c.flags & MHA_LAYER_ZERO_ATTN ? Py_True : Py_False,
        "batch_first", self->batch_first ? Py_True : Py_False);
}

static PyObject *layer_nbytes(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(mha_layer_bytes(((const mhap_layer *)object)->layer));
}

/* The casts avoid a warning: PyMethodDef has one type for all kinds of functions. */
static PyMethodDef methods[] = {
    {"update", layer_update, METH_O,
     "update($self, weights, /)\n--\n\n"
     "New weights in place of the old ones, as after a step of training.\n\n"
     "Extra keys and norms must be there just where they were before. RuntimeError while another\n"
     "thread's call is under way."},
    {"_prune", layer_prune, METH_O, NULL},
    {"tape", (PyCFunction)(void (*)(void))mhap_layer_tape, METH_VARARGS | METH_KEYWORDS,
     "tape($self, query, key=None, value=None, **options)\n--\n\n"
     "Call the layer and remember the call: a Tape, with the result and its backward pass.\n\n"
     ">>> import mha, numpy\n"
     ">>> layer = mha.Layer.random(8, 2)\n"
     ">>> tape = layer.tape(numpy.ones((3, 8), \"float32\"))\n"
     ">>> sorted(tape.backward(numpy.ones_like(tape.output)))\n"
     "['k', 'o', 'q', 'query', 'v']\n"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {{"config", layer_config, NULL,
                                    "What the layer was made with, defaults filled in: a dict.",
                                    NULL},
                                   {"nbytes", layer_nbytes, NULL, "Bytes of packed weights.", NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {{Py_tp_new, layer_new},     {Py_tp_dealloc, layer_dealloc},
                              {Py_tp_call, layer_call},   {Py_tp_methods, methods},
                              {Py_tp_getset, attributes}, {0, NULL}};

static PyType_Spec spec = {.name = "mha._core.Layer",
                           .basicsize = sizeof(mhap_layer),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int mhap_layer_types_add(PyObject *module, mhap_state *state)
{
    state->layer_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!state->layer_type || PyModule_AddType(module, (PyTypeObject *)state->layer_type))
        return -1;
    return mhap_tape_type_add(module, state) || mhap_presets_add(module) ? -1 : 0;
}
