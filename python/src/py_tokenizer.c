/* SPDX-License-Identifier: MIT */
/* The type mha._core.Tokenizer: a tokenizer of its own, or that of a model, which it keeps alive.
 */
#include "py_model.h"

#include <stdlib.h>
#include <string.h>

typedef struct tokenizer {
    PyObject ob_base;
    mha_tokenizer *own; /* NULL: the model's */
    const mha_tokenizer *tokenizer;
    PyObject *model;
} tokenizer;

static const mha_tokenizer *of(PyObject *object)
{
    return ((const tokenizer *)object)->tokenizer;
}

static mhap_state *state_of(PyObject *object)
{
    return mhap_state_of(Py_TYPE(object));
}

static tokenizer *allocate(PyTypeObject *type)
{
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return (tokenizer *)make(type, 0);
}

static PyObject *tokenizer_open(PyObject *type, PyObject *path)
{
    mhap_state *const state = mhap_state_of((PyTypeObject *)type);
    char message[MHAP_MESSAGE] = "";
    mha_tokenizer *made = NULL;
    mha_status status;
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *const name = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS;
    status = mha_tokenizer_open(&made, name, message, sizeof message);
    Py_END_ALLOW_THREADS;
    Py_DECREF(bytes);
    if (mhap_model_check(state, status, message))
        return NULL;
    tokenizer *const self = allocate((PyTypeObject *)type);
    if (self)
        self->tokenizer = self->own = made;
    else
        mha_tokenizer_free(made);
    return (PyObject *)self;
}

/* The tokenizer of a model; None if it has none. */
static PyObject *tokenizer_of_model(PyObject *type, PyObject *args)
{
    PyObject *model;
    int target = 0;
    if (!PyArg_ParseTuple(args, "O|p:_of", &model, &target) ||
        mhap_is_model(mhap_state_of((PyTypeObject *)type), model))
        return NULL;
    const mha_model *const m = ((const mhap_model *)model)->model;
    const mha_tokenizer *const found =
        target ? mha_model_target_tokenizer(m) : mha_model_tokenizer(m);
    if (!found)
        Py_RETURN_NONE;
    tokenizer *const self = allocate((PyTypeObject *)type);
    if (self) {
        self->tokenizer = found;
        self->model = Py_NewRef(model);
    }
    return (PyObject *)self;
}

static void tokenizer_dealloc(PyObject *object)
{
    tokenizer *const self = (tokenizer *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mha_tokenizer_free(self->own);
    Py_XDECREF(self->model);
    release(object);
    Py_DECREF(type);
}

/* --------------------------------------------------------------- encode ----- */

/* [(id, flags, segment, begin, end), ...] */
static PyObject *token_list(const mha_tokens *tokens)
{
    PyObject *const list = PyList_New(tokens->count);
    for (ptrdiff_t n = 0; list && n < tokens->count; n++) {
        const mha_token *const t = &tokens->tokens[n];
        PyObject *const tuple =
            Py_BuildValue("(iIinn)", (int)t->id, (unsigned)t->flags, (int)t->segment,
                          (Py_ssize_t)t->begin, (Py_ssize_t)t->end);
        if (!tuple || PyList_SetItem(list, n, tuple)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *id_list(const mha_tokens *tokens)
{
    PyObject *const list = PyList_New(tokens->count);
    for (ptrdiff_t n = 0; list && n < tokens->count; n++) {
        PyObject *const id = PyLong_FromLong(tokens->tokens[n].id);
        if (!id || PyList_SetItem(list, n, id)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* _encode(text, pair, flags, ids_only): both texts are bytes of UTF-8. */
static PyObject *tokenizer_encode(PyObject *object, PyObject *args)
{
    const char *first, *second = NULL;
    Py_ssize_t first_length, second_length = 0;
    unsigned flags;
    int ids_only;
    if (!PyArg_ParseTuple(args, "y#z#Ip:_encode", &first, &first_length, &second, &second_length,
                          &flags, &ids_only))
        return NULL;
    mha_tokens tokens = {NULL, 0};
    mha_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = second ? mha_tokenizer_encode_pair(of(object), first, (size_t)first_length, second,
                                                (size_t)second_length, flags, &tokens)
                    : mha_tokenizer_encode(of(object), first, (size_t)first_length, flags, &tokens);
    Py_END_ALLOW_THREADS;
    PyObject *list = NULL;
    if (!mhap_check(state_of(object), status, NULL))
        list = ids_only ? id_list(&tokens) : token_list(&tokens);
    mha_tokens_free(&tokens);
    return list;
}

/* --------------------------------------------------------------- decode ----- */

/* Ids as int32. An id that does not fit becomes -1, which no tokenizer has. */
static int32_t *read_ids(mhap_state *state, PyObject *object, ptrdiff_t *count, mhap_kept *kept)
{
    const int64_t *const numbers = mhap_integers(state, object, "ids", -1, count, kept);
    int32_t *const ids = numbers ? mhap_keep(kept, (size_t)*count * sizeof *ids) : NULL;
    for (ptrdiff_t n = 0; ids && n < *count; n++)
        ids[n] = numbers[n] < 0 || numbers[n] > INT32_MAX ? -1 : (int32_t)numbers[n];
    return ids;
}

/* The first id that does not exist, for the message. */
static int no_such_id(PyObject *object, const int32_t *ids, ptrdiff_t count)
{
    const ptrdiff_t size = mha_tokenizer_size(of(object));
    ptrdiff_t at = 0;
    while (at < count - 1 && ids[at] >= 0 && ids[at] < size)
        at++;
    return mhap_fail(state_of(object), MHA_ERR_INDEX,
                     "ids[%td] does not exist: the tokenizer has the ids 0 to %td", at, size - 1);
}

/* _decode(ids, flags): a str; bytes that are no UTF-8 are replaced. */
static PyObject *tokenizer_decode(PyObject *object, PyObject *args)
{
    PyObject *list;
    unsigned flags;
    if (!PyArg_ParseTuple(args, "OI:_decode", &list, &flags))
        return NULL;
    mhap_kept kept = {.count = 0};
    ptrdiff_t count = 0;
    char *text = NULL;
    size_t length = 0;
    PyObject *result = NULL;
    const int32_t *const ids = read_ids(state_of(object), list, &count, &kept);
    if (ids) {
        mha_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = mha_tokenizer_decode(of(object), ids, count, flags, &text, &length);
        Py_END_ALLOW_THREADS;
        if (status == MHA_ERR_INDEX)
            no_such_id(object, ids, count);
        else if (!mhap_check(state_of(object), status, NULL))
            result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
    }
    mha_text_free(text);
    mhap_kept_free(&kept);
    return result;
}

/* ----------------------------------------------------------- vocabulary ----- */

static int read_id(PyObject *number, int32_t *id)
{
    ptrdiff_t value;
    if (mhap_integer(number, "id", &value))
        return -1;
    *id = value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
    return 0;
}

static PyObject *tokenizer_piece(PyObject *object, PyObject *number)
{
    int32_t id;
    if (read_id(number, &id))
        return NULL;
    const char *const piece = mha_tokenizer_piece(of(object), id);
    if (!piece) {
        mhap_fail(state_of(object), MHA_ERR_INDEX,
                  "id does not exist: the tokenizer has the ids 0 to %td",
                  mha_tokenizer_size(of(object)) - 1);
        return NULL;
    }
    return PyUnicode_DecodeUTF8(piece, (Py_ssize_t)strlen(piece), "replace");
}

static PyObject *tokenizer_find(PyObject *object, PyObject *piece)
{
    Py_ssize_t length;
    const char *const text = PyUnicode_AsUTF8AndSize(piece, &length);
    if (!text)
        return NULL;
    const int32_t id = strlen(text) == (size_t)length ? mha_tokenizer_find(of(object), text) : -1;
    if (id < 0)
        Py_RETURN_NONE;
    return PyLong_FromLong(id);
}

static PyObject *tokenizer_flags(PyObject *object, PyObject *number)
{
    int32_t id;
    if (read_id(number, &id))
        return NULL;
    return PyLong_FromUnsignedLong(mha_tokenizer_flags(of(object), id));
}

static PyObject *tokenizer_mark(PyObject *object, PyObject *number)
{
    int32_t mark;
    if (read_id(number, &mark))
        return NULL;
    const int32_t id = mark < 0 ? -1 : mha_tokenizer_mark(of(object), (mha_mark)mark);
    if (id < 0)
        Py_RETURN_NONE;
    return PyLong_FromLong(id);
}

/* ----------------------------------------------------------------- chat ----- */

/* Borrows the texts of [(role, content), ...] as C strings. */
static int read_messages(PyObject *list, mha_chat_message *messages)
{
    for (Py_ssize_t n = 0; n < PyList_Size(list); n++) {
        PyObject *const pair = PyList_GetItem(list, n);
        if (!PyTuple_Check(pair) ||
            !PyArg_ParseTuple(pair, "ss:message", &messages[n].role, &messages[n].content))
            return -1;
    }
    return 0;
}

static PyObject *tokenizer_chat(PyObject *object, PyObject *args)
{
    PyObject *list;
    int reply;
    char message[MHAP_MESSAGE] = "", *text = NULL;
    size_t length = 0;
    mhap_kept kept = {.count = 0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "O!p:_chat", &PyList_Type, &list, &reply))
        return NULL;
    const Py_ssize_t count = PyList_Size(list);
    mha_chat_message *const messages = mhap_keep(&kept, (size_t)count * sizeof *messages);
    if (messages && !read_messages(list, messages)) {
        const mha_status status = mha_tokenizer_chat(of(object), messages, count, reply, &text,
                                                     &length, message, sizeof message);
        if (!mhap_model_check(state_of(object), status, message))
            result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
    }
    mha_text_free(text);
    mhap_kept_free(&kept);
    return result;
}

/* ----------------------------------------------------------------- type ----- */

static PyObject *tokenizer_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(mha_tokenizer_size(of(object)));
}

static PyObject *tokenizer_kind(PyObject *object, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(mha_tokenizer_kind(of(object)));
}

static PyMethodDef methods[] = {
    {"_open", tokenizer_open, METH_O | METH_CLASS, NULL},
    {"_of", tokenizer_of_model, METH_VARARGS | METH_CLASS, NULL},
    {"_encode", tokenizer_encode, METH_VARARGS, NULL},
    {"_decode", tokenizer_decode, METH_VARARGS, NULL},
    {"_flags", tokenizer_flags, METH_O, NULL},
    {"_mark", tokenizer_mark, METH_O, NULL},
    {"_chat", tokenizer_chat, METH_VARARGS, NULL},
    {"piece", tokenizer_piece, METH_O,
     "piece($self, id, /)\n--\n\n"
     "The entry of the vocabulary as it is stored: \"##ing\", \"\304\240the\"."},
    {"find", tokenizer_find, METH_O,
     "find($self, piece, /)\n--\n\nThe id of an entry of the vocabulary; None if there is none."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {
    {"size", tokenizer_size, NULL, "The number of ids, which are 0 to size - 1.", NULL},
    {"kind", tokenizer_kind, NULL,
     "\"WordPiece\", \"byte-level BPE\", \"SentencePiece BPE\" or \"SentencePiece unigram\".",
     NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {{Py_tp_dealloc, tokenizer_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, attributes},
                              {0, NULL}};

static PyType_Spec spec = {.name = "mha._core.Tokenizer",
                           .basicsize = sizeof(tokenizer),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int mhap_tokenizer_type_add(PyObject *module, mhap_state *state)
{
    (void)state;
    return mhap_type_add(module, &spec);
}
