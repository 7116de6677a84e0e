/* SPDX-License-Identifier: MIT */
/* The type mha._core.State: keys and values of running sequences. One call at a time may use it;
 * a second one gets a RuntimeError. */
#include "py_model.h"

static mhap_state *state_of(PyObject *object)
{
    return mhap_state_of(Py_TYPE(object));
}

static int enter(mhap_sequences *self)
{
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the state is being used by another call; wait for it, or make another "
                        "state with model.state()");
        return -1;
    }
    self->busy = true;
    return 0;
}

int mhap_sequences_enter(const mhap_model *model, PyObject *object, mhap_sequences **sequences)
{
    *sequences = NULL;
    if (!object || object == Py_None)
        return 0;
    const int is = PyObject_IsInstance(object, model->state->sequences_type);
    if (is <= 0)
        return is < 0 ? -1 : mhap_wrong_kind("state", object, "give an mha.State or None");
    mhap_sequences *const self = (mhap_sequences *)object;
    if (self->model != (const PyObject *)model)
        return mhap_fail(model->state, MHA_ERR_FLAG,
                         "the state belongs to another model: use model.state()");
    if (enter(self))
        return -1;
    *sequences = self;
    return 0;
}

void mhap_sequences_leave(mhap_sequences *sequences)
{
    if (sequences)
        sequences->busy = false;
}

static PyObject *wrap(PyTypeObject *type, mha_state *sequences, PyObject *model)
{
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    mhap_sequences *const self = (mhap_sequences *)make(type, 0);
    if (!self) {
        mha_state_free(sequences);
        return NULL;
    }
    self->sequences = sequences;
    self->model = Py_NewRef(model);
    while (mha_state_length(sequences, self->count) >= 0)
        self->count++;
    return (PyObject *)self;
}

/* _create(model, sequences, capacity, source_capacity, dtype) */
static PyObject *state_create(PyObject *type, PyObject *args)
{
    static const char *const names[] = {"f32", "f16", "bf16", "f64", "i8", NULL};
    mhap_state *const state = mhap_state_of((PyTypeObject *)type);
    char message[MHAP_MESSAGE] = "";
    mha_state_config c = {.size = sizeof c, .message = message, .message_size = sizeof message};
    PyObject *model, *dtype;
    if (!PyArg_ParseTuple(args, "OnnnO:_create", &model, &c.sequences, &c.capacity,
                          &c.source_capacity, &dtype) ||
        mhap_is_model(state, model))
        return NULL;
    const int number = mhap_choice(state, dtype, "dtype", names);
    if (number < 0)
        return NULL;
    c.type = (mha_dtype)number;
    mha_state *made = NULL;
    mha_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_state_create(&made, ((const mhap_model *)model)->model, &c);
    Py_END_ALLOW_THREADS;
    return mhap_model_check(state, status, message) ? NULL
                                                    : wrap((PyTypeObject *)type, made, model);
}

/* _load(model, path): the path as bytes. */
static PyObject *state_load(PyObject *type, PyObject *args)
{
    mhap_state *const state = mhap_state_of((PyTypeObject *)type);
    char message[MHAP_MESSAGE] = "";
    PyObject *model;
    const char *path;
    if (!PyArg_ParseTuple(args, "Oy:_load", &model, &path) || mhap_is_model(state, model))
        return NULL;
    mha_state *made = NULL;
    mha_status status;
    Py_BEGIN_ALLOW_THREADS;
    status =
        mha_state_load(&made, ((const mhap_model *)model)->model, path, message, sizeof message);
    Py_END_ALLOW_THREADS;
    return mhap_model_check(state, status, message) ? NULL
                                                    : wrap((PyTypeObject *)type, made, model);
}

static PyObject *state_save(PyObject *object, PyObject *path)
{
    mhap_sequences *const self = (mhap_sequences *)object;
    char message[MHAP_MESSAGE] = "";
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *const name = PyBytes_AsString(bytes);
    int status = enter(self);
    if (!status) {
        mha_status saved;
        Py_BEGIN_ALLOW_THREADS;
        saved = mha_state_save(self->sequences, name, message, sizeof message);
        Py_END_ALLOW_THREADS;
        self->busy = false;
        status = mhap_model_check(state_of(object), saved, message);
    }
    Py_DECREF(bytes);
    return status ? NULL : Py_NewRef(Py_None);
}

static void state_dealloc(PyObject *object)
{
    mhap_sequences *const self = (mhap_sequences *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mha_state_free(self->sequences);
    Py_XDECREF(self->model);
    release(object);
    Py_DECREF(type);
}

/* -------------------------------------------------------------- methods ----- */

static int check_sequence(PyObject *object, Py_ssize_t sequence)
{
    const mhap_sequences *const self = (const mhap_sequences *)object;
    if (sequence >= 0 && sequence < self->count)
        return 0;
    return mhap_fail(state_of(object), MHA_ERR_SEQUENCE,
                     "sequence is %td; the state has %td, numbered from 0", sequence, self->count);
}

static PyObject *state_length(PyObject *object, PyObject *args)
{
    Py_ssize_t sequence = 0;
    if (!PyArg_ParseTuple(args, "|n:length", &sequence) || check_sequence(object, sequence))
        return NULL;
    return PyLong_FromSsize_t(
        mha_state_length(((const mhap_sequences *)object)->sequences, sequence));
}

static PyObject *state_tokens(PyObject *object, PyObject *args)
{
    mhap_sequences *const self = (mhap_sequences *)object;
    Py_ssize_t sequence = 0;
    if (!PyArg_ParseTuple(args, "|n:tokens", &sequence) || check_sequence(object, sequence) ||
        enter(self))
        return NULL;
    const ptrdiff_t length = mha_state_length(self->sequences, sequence);
    const int32_t *const tokens = mha_state_tokens(self->sequences, sequence);
    PyObject *list = PyList_New(length);
    for (ptrdiff_t n = 0; list && n < length; n++) {
        PyObject *const id = PyLong_FromLong(tokens[n]);
        if (!id || PyList_SetItem(list, n, id))
            Py_CLEAR(list);
    }
    self->busy = false;
    return list;
}

static PyObject *changed(PyObject *object, mha_status status, const char *what)
{
    ((mhap_sequences *)object)->busy = false;
    if (status == MHA_ERR_LENGTH)
        mhap_fail(state_of(object), status, "%s: the sequence has fewer tokens", what);
    else if (mhap_check(state_of(object), status, NULL) == 0)
        Py_RETURN_NONE;
    return NULL;
}

static PyObject *state_truncate(PyObject *object, PyObject *args)
{
    mhap_sequences *const self = (mhap_sequences *)object;
    Py_ssize_t length, sequence = 0;
    if (!PyArg_ParseTuple(args, "n|n:truncate", &length, &sequence) ||
        check_sequence(object, sequence) || enter(self))
        return NULL;
    return changed(object, mha_state_truncate(self->sequences, sequence, length), "truncate");
}

static PyObject *state_fork(PyObject *object, PyObject *args)
{
    mhap_sequences *const self = (mhap_sequences *)object;
    Py_ssize_t to, from;
    if (!PyArg_ParseTuple(args, "nn:fork", &to, &from) || check_sequence(object, to) ||
        check_sequence(object, from) || enter(self))
        return NULL;
    return changed(object, mha_state_fork(self->sequences, to, from), "fork");
}

static PyObject *state_reorder(PyObject *object, PyObject *parents)
{
    mhap_sequences *const self = (mhap_sequences *)object;
    mhap_kept kept = {.count = 0};
    ptrdiff_t count;
    const int64_t *const numbers =
        mhap_chosen(state_of(object), parents, "parents", self->count, &count, &kept);
    PyObject *result = NULL;
    if (numbers && !enter(self))
        result = changed(object, mha_state_reorder(self->sequences, numbers), "reorder");
    mhap_kept_free(&kept);
    return result;
}

/* ----------------------------------------------------------------- type ----- */

static PyObject *state_count(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(((const mhap_sequences *)object)->count);
}

static PyObject *state_nbytes(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(mha_state_bytes(((const mhap_sequences *)object)->sequences));
}

static PyObject *state_model(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef(((const mhap_sequences *)object)->model);
}

static PyMethodDef methods[] = {
    {"_create", state_create, METH_VARARGS | METH_CLASS, NULL},
    {"_load", state_load, METH_VARARGS | METH_CLASS, NULL},
    {"length", state_length, METH_VARARGS,
     "length($self, sequence=0, /)\n--\n\nThe number of tokens of a sequence."},
    {"tokens", state_tokens, METH_VARARGS,
     "tokens($self, sequence=0, /)\n--\n\nThe ids of the tokens of a sequence."},
    {"truncate", state_truncate, METH_VARARGS,
     "truncate($self, length, sequence=0, /)\n--\n\nRemove all tokens from `length` on."},
    {"fork", state_fork, METH_VARARGS,
     "fork($self, to, source, /)\n--\n\nSequence `to` becomes a copy of `source`."},
    {"reorder", state_reorder, METH_O,
     "reorder($self, parents, /)\n--\n\n"
     "Every sequence n becomes what parents[n] was before the call, for beam search."},
    {"save", state_save, METH_O,
     "save($self, path, /)\n--\n\n"
     "Write all sequences to a file, for State.load() with the same model."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {
    {"sequences", state_count, NULL, "The number of sequences.", NULL},
    {"nbytes", state_nbytes, NULL, "Bytes of memory.", NULL},
    {"model", state_model, NULL, "The model that the state belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {{Py_tp_dealloc, state_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, attributes},
                              {0, NULL}};

static PyType_Spec spec = {.name = "mha._core.State",
                           .basicsize = sizeof(mhap_sequences),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int mhap_sequences_type_add(PyObject *module, mhap_state *state)
{
    state->sequences_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->sequences_type ? PyModule_AddType(module, (PyTypeObject *)state->sequences_type)
                                 : -1;
}
