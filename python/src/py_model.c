/* SPDX-License-Identifier: MIT */
/* The type mha._core.Model: opening, describing and pruning a model. Its calls are in
 * py_model_call.c and py_model_text.c. */
#include <stdlib.h>
#include <string.h>

#include "py_model.h"

int mhap_model_check(const mhap_state *state, mha_status status, const char *message)
{
    if (status == MHA_OK || status == MHA_ERR_MEMORY || !message || !*message)
        return mhap_check(state, status, NULL);
    return mhap_fail(state, status, "%s", message);
}

int mhap_is_model(const mhap_state *state, PyObject *object)
{
    const int is = PyObject_IsInstance(object, state->model_type);
    if (is == 0)
        mhap_wrong_kind("model", object, "give an mha.Model");
    return is == 1 ? 0 : -1;
}

static mhap_model *allocate(PyTypeObject *type)
{
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    mhap_model *const self = (mhap_model *)make(type, 0);
    if (self)
        self->state = mhap_state_of(type);
    return self;
}

static PyObject *wrap(PyTypeObject *type, mha_model *model)
{
    mhap_model *const self = allocate(type);
    if (self)
        self->model = model;
    else
        mha_model_free(model);
    return (PyObject *)self;
}

/* _open(path, storage, tokenizer): paths as bytes. */
static PyObject *model_open(PyObject *type, PyObject *args)
{
    char message[MHAP_MESSAGE] = "";
    const char *path, *tokenizer;
    int storage;
    if (!PyArg_ParseTuple(args, "yiz:_open", &path, &storage, &tokenizer))
        return NULL;
    const mha_model_config config = {.size = sizeof config,
                                     .storage = (mha_model_storage)storage,
                                     .tokenizer = tokenizer,
                                     .message = message,
                                     .message_size = sizeof message};
    mha_model *model = NULL;
    mha_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_model_open(&model, path, &config);
    Py_END_ALLOW_THREADS;
    if (mhap_model_check(mhap_state_of((PyTypeObject *)type), status, message))
        return NULL;
    return wrap((PyTypeObject *)type, model);
}

static void model_dealloc(PyObject *object)
{
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mha_model_free(((mhap_model *)object)->model);
    release(object);
    Py_DECREF(type);
}

/* ----------------------------------------------------------- what it is ----- */

static PyObject *model_info(PyObject *object, PyObject *unused)
{
    (void)unused;
    const mhap_model *const self = (const mhap_model *)object;
    mha_model_info i = {.size = sizeof i};
    if (mhap_check(self->state, mha_model_get_info(self->model, &i), NULL))
        return NULL;
    return Py_BuildValue(
        "{ss si s(nnn) sn sn sn sn sn sn sn sn sO sn sL sn sn sn sn sn sd s(dddd) s(dddd)}",
        "family", i.family, "kind", (int)i.kind, "layers", (Py_ssize_t)i.layers[0],
        (Py_ssize_t)i.layers[1], (Py_ssize_t)i.layers[2], "width", (Py_ssize_t)i.width, "inner",
        (Py_ssize_t)i.inner, "heads", (Py_ssize_t)i.heads, "key_heads", (Py_ssize_t)i.key_heads,
        "head_width", (Py_ssize_t)i.head_width, "vocabulary", (Py_ssize_t)i.vocabulary, "positions",
        (Py_ssize_t)i.positions, "recommended", (Py_ssize_t)i.recommended, "has_logits",
        i.has_logits ? Py_True : Py_False, "labels", (Py_ssize_t)i.labels, "parameters",
        (long long)i.parameters, "file_bytes", (Py_ssize_t)i.file_bytes, "memory_bytes",
        (Py_ssize_t)i.memory_bytes, "image_size", (Py_ssize_t)i.image_size, "patch",
        (Py_ssize_t)i.patch, "channels", (Py_ssize_t)i.channels, "length_penalty", i.length_penalty,
        "image_mean", (double)i.image_mean[0], (double)i.image_mean[1], (double)i.image_mean[2],
        (double)i.image_mean[3], "image_deviation", (double)i.image_deviation[0],
        (double)i.image_deviation[1], (double)i.image_deviation[2], (double)i.image_deviation[3]);
}

static PyObject *model_describe(PyObject *object, PyObject *unused)
{
    (void)unused;
    const mha_model *const model = ((const mhap_model *)object)->model;
    const size_t length = mha_model_describe(model, NULL, 0);
    char *const text = malloc(length + 1);
    if (!text)
        return PyErr_NoMemory();
    mha_model_describe(model, text, length + 1);
    PyObject *const result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
    free(text);
    return result;
}

static PyObject *model_heads(PyObject *object, PyObject *args)
{
    int kind;
    Py_ssize_t layer;
    if (!PyArg_ParseTuple(args, "in:_heads", &kind, &layer))
        return NULL;
    const mha_model *const model = ((const mhap_model *)object)->model;
    return PyLong_FromSsize_t(mha_model_heads(model, (mha_attention_kind)kind, layer));
}

static PyObject *families(PyObject *type, PyObject *unused)
{
    (void)type;
    (void)unused;
    PyObject *const list = PyList_New(0);
    const char *name;
    for (int n = 0; list && (name = mha_model_family_at(n)); n++) {
        PyObject *const text = PyUnicode_FromString(name);
        const int status = text ? PyList_Append(list, text) : -1;
        Py_XDECREF(text);
        if (status) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* _prune((keep, keep, keep)): arrays of bytes, [layers][H], or None. */
static PyObject *model_prune(PyObject *object, PyObject *args)
{
    const mhap_model *const self = (const mhap_model *)object;
    PyObject *lists[MHA_ATTENTION_KINDS];
    mhap_array arrays[MHA_ATTENTION_KINDS];
    const uint8_t *keep[MHA_ATTENTION_KINDS];
    char message[MHAP_MESSAGE] = "";
    mha_model *pruned = NULL;
    if (!PyArg_ParseTuple(args, "OOO:_prune", &lists[0], &lists[1], &lists[2]))
        return NULL;
    memset(arrays, 0, sizeof arrays);
    int status = 0;
    for (int kind = 0; kind < MHA_ATTENTION_KINDS && !status; kind++) {
        const ptrdiff_t count = mhap_heads_count(self->model, (mha_attention_kind)kind);
        status = mhap_flat(self->state, lists[kind], "keep", MHAP_U8, count, false, &arrays[kind]);
        keep[kind] = arrays[kind].data;
    }
    if (!status) {
        mha_status made;
        Py_BEGIN_ALLOW_THREADS;
        made = mha_model_prune(&pruned, self->model, keep, message, sizeof message);
        Py_END_ALLOW_THREADS;
        status = mhap_model_check(self->state, made, message);
    }
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++)
        mhap_release(&arrays[kind]);
    return status ? NULL : wrap(Py_TYPE(object), pruned);
}

/* _save(path, zeros, replace) */
static PyObject *model_save(PyObject *object, PyObject *args)
{
    const mhap_model *const self = (const mhap_model *)object;
    char message[MHAP_MESSAGE] = "";
    const char *path;
    int zeros, replace;
    if (!PyArg_ParseTuple(args, "ypp:_save", &path, &zeros, &replace))
        return NULL;
    const mha_save_config config = {.size = sizeof config,
                                    .zeros = zeros,
                                    .replace = replace,
                                    .message = message,
                                    .message_size = sizeof message};
    mha_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_model_save(self->model, path, &config);
    Py_END_ALLOW_THREADS;
    if (mhap_model_check(self->state, status, message))
        return NULL;
    Py_RETURN_NONE;
}

/* ----------------------------------------------------------------- type ----- */

#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"_open", model_open, METH_VARARGS | METH_CLASS, NULL},
    {"families", families, METH_NOARGS | METH_CLASS,
     "families($type, /)\n--\n\nThe names of the families of models that can be opened."},
    {"_info", model_info, METH_NOARGS, NULL},
    {"describe", model_describe, METH_NOARGS,
     "describe($self, /)\n--\n\n"
     "A table of what the model is, its parameters and memory, and a drawing of one layer."},
    {"_heads", model_heads, METH_VARARGS, NULL},
    {"_prune", model_prune, METH_VARARGS, NULL},
    {"_save", model_save, METH_VARARGS, NULL},
    {"_run", WITH_KEYWORDS(mhap_model_run_call), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_encode", WITH_KEYWORDS(mhap_model_encode), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_generate", WITH_KEYWORDS(mhap_model_generate), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_score", WITH_KEYWORDS(mhap_model_score), METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {{Py_tp_dealloc, model_dealloc}, {Py_tp_methods, methods}, {0, NULL}};

static PyType_Spec spec = {.name = "mha._core.Model",
                           .basicsize = sizeof(mhap_model),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int mhap_model_type_add(PyObject *module, mhap_state *state)
{
    state->model_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->model_type ? PyModule_AddType(module, (PyTypeObject *)state->model_type) : -1;
}
