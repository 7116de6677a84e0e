/* SPDX-License-Identifier: MIT */
/* The type mha.KVCache: creation, changing and reading the tokens of its sequences, files. append()
 * and attention() are in py_cache_call.c. */
#include "py_layer.h"

#include <stdlib.h>

static const char *const kind_names[] = {"contiguous", "ring", "paged", NULL};
static const char *const type_names[] = {"f32", "f16", "bf16", "f64", "i8", NULL};

/* ------------------------------------------------- readers and writers ----- */

int mhap_cache_enter(mhap_cache *self, bool to_write)
{
    if (self->written || (to_write && self->readers > 0)) {
        PyErr_Format(PyExc_RuntimeError, "the cache is being %s by another thread; wait for it",
                     self->written ? "changed" : "read");
        return -1;
    }
    if (to_write)
        self->written = true;
    else
        self->readers++;
    return 0;
}

void mhap_cache_leave(mhap_cache *self, bool to_write)
{
    if (to_write)
        self->written = false;
    else
        self->readers--;
}

int mhap_sequences_read(mhap_state *state, PyObject *object, ptrdiff_t B, const int64_t **sequences,
                        mhap_kept *kept)
{
    ptrdiff_t count;
    *sequences = object ? mhap_chosen(state, object, "sequences", B, &count, kept) : NULL;
    return object && !*sequences ? -1 : 0;
}

static mhap_state *state_of(const mhap_cache *self)
{
    return mhap_state_of(Py_TYPE((PyObject *)self));
}

/* ------------------------------------------------------------- creation ----- */

static int read_type(mhap_state *state, PyObject *object, const char *name, mha_dtype *type)
{
    if (!object || object == Py_None)
        return 0;
    const int number = mhap_choice(state, object, name, type_names);
    *type = (mha_dtype)number;
    return number < 0 ? -1 : 0;
}

static PyObject *wrap(PyTypeObject *type, mha_cache *cache)
{
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    mhap_cache *const self = (mhap_cache *)make(type, 0);
    if (!self)
        mha_cache_free(cache);
    else
        self->cache = cache;
    return (PyObject *)self;
}

static PyObject *create(PyTypeObject *type, mha_cache_config config)
{
    char message[MHAP_MESSAGE] = "";
    mha_cache *cache = NULL;
    mha_status status;
    config.message = message;
    config.message_size = sizeof message;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_cache_create(&cache, &config);
    Py_END_ALLOW_THREADS;
    return mhap_check(mhap_state_of(type), status, message) ? NULL : wrap(type, cache);
}

static PyObject *cache_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {
        "sequences", "capacity",    "kv_heads",    "head_width", "kind", "value_head_width",
        "dtype",     "value_dtype", "page_tokens", "pages",      NULL};
    mhap_state *const state = mhap_state_of(type);
    mha_cache_config c = {.size = sizeof c};
    PyObject *kind = NULL, *value_width = NULL, *dtype = NULL, *value_dtype = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "nnnn|$OOOOnn:KVCache", names, &c.sequences,
                                     &c.capacity, &c.G, &c.D, &kind, &value_width, &dtype,
                                     &value_dtype, &c.page_tokens, &c.pages))
        return NULL;
    const int number = kind ? mhap_choice(state, kind, "kind", kind_names) : 0;
    if (number < 0 || read_type(state, dtype, "dtype", &c.k_type))
        return NULL;
    c.kind = (mha_cache_kind)number;
    c.v_type = c.k_type;
    if (read_type(state, value_dtype, "value_dtype", &c.v_type) ||
        (value_width && value_width != Py_None &&
         mhap_integer(value_width, "value_head_width", &c.Dv)))
        return NULL;
    return create(type, c);
}

static void cache_dealloc(PyObject *object)
{
    mhap_cache *const self = (mhap_cache *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mha_cache_free(self->cache);
    free(self->scratch.memory);
    release(object);
    Py_DECREF(type);
}

/* ------------------------------------------------------------- changing ----- */

/* The library's functions that change tokens give no message, so the message is made here, with the
 * lengths. */
static PyObject *changed(mhap_cache *self, mha_status status, ptrdiff_t sequence, const char *what)
{
    mhap_cache_leave(self, true);
    if (status == MHA_OK)
        return Py_NewRef(Py_None);
    const mha_cache_config c = mha_cache_get_config(self->cache);
    const ptrdiff_t length = mha_cache_length(self->cache, sequence);
    if (status == MHA_ERR_SEQUENCE)
        mhap_fail(state_of(self), status, "%s: the cache has %td sequences, numbered from 0", what,
                  c.sequences);
    else if (status == MHA_ERR_LENGTH)
        mhap_fail(state_of(self), status,
                  "%s: no such tokens; sequence %td has those from %td up to %td", what, sequence,
                  mha_cache_first(self->cache, sequence), length);
    else if (status == MHA_ERR_FULL)
        mhap_fail(state_of(self), status,
                  "%s: no room; a sequence has at most %td tokens, and %td pages are free", what,
                  c.capacity, mha_cache_free_pages(self->cache));
    else if (status == MHA_ERR_FLAG)
        mhap_fail(state_of(self), status, "%s: not with a cache of kind %s", what,
                  kind_names[c.kind]);
    else
        mhap_check(state_of(self), status, NULL);
    return NULL;
}

static PyObject *cache_truncate(PyObject *object, PyObject *args)
{
    mhap_cache *const self = (mhap_cache *)object;
    Py_ssize_t sequence, length;
    if (!PyArg_ParseTuple(args, "nn:truncate", &sequence, &length) || mhap_cache_enter(self, true))
        return NULL;
    return changed(self, mha_cache_truncate(self->cache, sequence, length), sequence, "truncate");
}

static PyObject *cache_fork(PyObject *object, PyObject *args)
{
    mhap_cache *const self = (mhap_cache *)object;
    Py_ssize_t to, from;
    if (!PyArg_ParseTuple(args, "nn:fork", &to, &from) || mhap_cache_enter(self, true))
        return NULL;
    return changed(self, mha_cache_fork(self->cache, to, from), from, "fork");
}

static PyObject *cache_copy(PyObject *object, PyObject *args)
{
    mhap_cache *const self = (mhap_cache *)object;
    Py_ssize_t to, from, first, count;
    if (!PyArg_ParseTuple(args, "nnnn:copy", &to, &from, &first, &count) ||
        mhap_cache_enter(self, true))
        return NULL;
    return changed(self, mha_cache_copy(self->cache, to, from, first, count), from, "copy");
}

static PyObject *cache_remove(PyObject *object, PyObject *args)
{
    mhap_cache *const self = (mhap_cache *)object;
    Py_ssize_t sequence, first, count;
    if (!PyArg_ParseTuple(args, "nnn:remove", &sequence, &first, &count) ||
        mhap_cache_enter(self, true))
        return NULL;
    return changed(self, mha_cache_remove(self->cache, sequence, first, count), sequence, "remove");
}

static PyObject *cache_shift(PyObject *object, PyObject *args)
{
    mhap_cache *const self = (mhap_cache *)object;
    Py_ssize_t sequence, first, count, delta;
    PyObject *given, *result = NULL;
    mha_rope rope;
    mhap_kept kept = {.count = 0};
    if (!PyArg_ParseTuple(args, "nnnOn:shift", &sequence, &first, &count, &given, &delta))
        return NULL;
    const mha_cache_config c = mha_cache_get_config(self->cache);
    if (!mhap_rope_read(state_of(self), given, c.D, &rope, &kept) && !mhap_cache_enter(self, true))
        result = changed(self, mha_cache_shift(self->cache, sequence, first, count, &rope, delta),
                         sequence, "shift");
    mhap_kept_free(&kept);
    return result;
}

static PyObject *cache_reorder(PyObject *object, PyObject *parents)
{
    mhap_cache *const self = (mhap_cache *)object;
    mhap_kept kept = {.count = 0};
    PyObject *result = NULL;
    ptrdiff_t count;
    const ptrdiff_t sequences = mha_cache_get_config(self->cache).sequences;
    const int64_t *const numbers =
        mhap_integers(state_of(self), parents, "parents", sequences, &count, &kept);
    if (numbers && !mhap_cache_enter(self, true))
        result = changed(self, mha_cache_reorder(self->cache, numbers), 0, "reorder");
    mhap_kept_free(&kept);
    return result;
}

/* -------------------------------------------------------------- reading ----- */

static mha_out rows_of(const mhap_array *array)
{
    return (mha_out){array->data, 0, array->strides[0], array->strides[1]};
}

/* Returns keys and values of some tokens, as two mha.Array. */
static PyObject *read_tokens(mhap_cache *self, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t count)
{
    const mha_cache_config c = mha_cache_get_config(self->cache);
    const mhap_array own = {.origin = MHAP_OWN};
    const ptrdiff_t shapes[2][3] = {{c.G, count, c.D}, {c.G, count, c.Dv}};
    mhap_array arrays[2] = {{.object = NULL}, {.object = NULL}};
    PyObject *const key = mhap_new(state_of(self), &own, MHAP_F32, 3, shapes[0], &arrays[0]);
    PyObject *const value =
        key ? mhap_new(state_of(self), &own, MHAP_F32, 3, shapes[1], &arrays[1]) : NULL;
    PyObject *pair = NULL;
    if (value) {
        const mha_status status = mha_cache_read(self->cache, sequence, first, count,
                                                 rows_of(&arrays[0]), rows_of(&arrays[1]));
        if (!mhap_check(state_of(self), status, NULL))
            pair = PyTuple_Pack(2, key, value);
    }
    mhap_release(&arrays[0]);
    mhap_release(&arrays[1]);
    Py_XDECREF(key);
    Py_XDECREF(value);
    return pair;
}

static int check_tokens(const mhap_cache *self, ptrdiff_t sequence, ptrdiff_t first,
                        ptrdiff_t count)
{
    const ptrdiff_t oldest = mha_cache_first(self->cache, sequence);
    const ptrdiff_t length = mha_cache_length(self->cache, sequence);
    if (length < 0)
        return mhap_fail(state_of(self), MHA_ERR_SEQUENCE,
                         "sequence is %td; the cache has %td, numbered from 0", sequence,
                         mha_cache_get_config(self->cache).sequences);
    if (first >= oldest && first <= length && count >= 0 && count <= length - first)
        return 0;
    return mhap_fail(state_of(self), MHA_ERR_LENGTH,
                     "there are no %td tokens from %td on; sequence %td has those from %td up to "
                     "%td",
                     count, first, sequence, oldest, length);
}

static PyObject *cache_read(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"sequence", "first", "count", NULL};
    mhap_cache *const self = (mhap_cache *)object;
    Py_ssize_t sequence, first = -1, count = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "n|nn:read", names, &sequence, &first, &count))
        return NULL;
    first = first < 0 ? mha_cache_first(self->cache, sequence) : first;
    count = count < 0 ? mha_cache_length(self->cache, sequence) - first : count;
    if (check_tokens(self, sequence, first, count))
        return NULL;
    if (mhap_cache_enter(self, false))
        return NULL;
    PyObject *const pair = read_tokens(self, sequence, first, count);
    mhap_cache_leave(self, false);
    return pair;
}

/* ---------------------------------------------------------------- files ----- */

static PyObject *cache_save(PyObject *object, PyObject *path)
{
    mhap_cache *const self = (mhap_cache *)object;
    PyObject *bytes;
    char message[MHAP_MESSAGE] = "";
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *const name = PyBytes_AsString(bytes);
    int status = name ? mhap_cache_enter(self, false) : -1;
    if (!status) {
        mha_status saved;
        Py_BEGIN_ALLOW_THREADS;
        saved = mha_cache_save(self->cache, name, message, sizeof message);
        Py_END_ALLOW_THREADS;
        mhap_cache_leave(self, false);
        status = mhap_check(state_of(self), saved, message);
    }
    Py_DECREF(bytes);
    return status ? NULL : Py_NewRef(Py_None);
}

static PyObject *cache_load(PyObject *type, PyObject *path)
{
    PyObject *bytes;
    mha_cache *cache = NULL;
    mha_status status;
    char message[MHAP_MESSAGE] = "";
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *const name = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS;
    status = mha_cache_load(&cache, name, message, sizeof message);
    Py_END_ALLOW_THREADS;
    Py_DECREF(bytes);
    if (mhap_check(mhap_state_of((PyTypeObject *)type), status, message))
        return NULL;
    return wrap((PyTypeObject *)type, cache);
}

/* ----------------------------------------------------------- attributes ----- */

static PyObject *numbers_of(const mhap_cache *self,
                            ptrdiff_t (*number)(const mha_cache *cache, ptrdiff_t sequence))
{
    const ptrdiff_t sequences = mha_cache_get_config(self->cache).sequences;
    PyObject *const list = PyList_New(sequences);
    for (ptrdiff_t n = 0; list && n < sequences; n++) {
        PyObject *const item = PyLong_FromSsize_t(number(self->cache, n));
        if (!item || PyList_SetItem(list, n, item)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *cache_lengths(PyObject *self, void *unused)
{
    (void)unused;
    return numbers_of((const mhap_cache *)self, mha_cache_length);
}

static PyObject *cache_firsts(PyObject *self, void *unused)
{
    (void)unused;
    return numbers_of((const mhap_cache *)self, mha_cache_first);
}

static PyObject *cache_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(mha_cache_bytes(((const mhap_cache *)self)->cache));
}

static PyObject *cache_free_pages(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(mha_cache_free_pages(((const mhap_cache *)self)->cache));
}

static PyObject *cache_config(PyObject *self, void *unused)
{
    (void)unused;
    const mha_cache_config c = mha_cache_get_config(((const mhap_cache *)self)->cache);
    return Py_BuildValue("{sn sn sn sn sn ss ss ss sn sn}", "sequences", (Py_ssize_t)c.sequences,
                         "capacity", (Py_ssize_t)c.capacity, "kv_heads", (Py_ssize_t)c.G,
                         "head_width", (Py_ssize_t)c.D, "value_head_width", (Py_ssize_t)c.Dv,
                         "kind", kind_names[c.kind], "dtype", type_names[c.k_type], "value_dtype",
                         type_names[c.v_type], "page_tokens", (Py_ssize_t)c.page_tokens, "pages",
                         (Py_ssize_t)c.pages);
}

static PyObject *cache_repr(PyObject *object)
{
    const mha_cache_config c = mha_cache_get_config(((const mhap_cache *)object)->cache);
    return PyUnicode_FromFormat("<KVCache: %s, %s, %zd sequences of up to %zd tokens, %zd heads>",
                                kind_names[c.kind], type_names[c.k_type], (Py_ssize_t)c.sequences,
                                (Py_ssize_t)c.capacity, (Py_ssize_t)c.G);
}

/* ----------------------------------------------------------------- type ----- */

#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"append", WITH_KEYWORDS(mhap_cache_append), METH_VARARGS | METH_KEYWORDS,
     "append($self, key, value, *, sequences=None, lengths=None, layout=\"bhld\")\n--\n\n"
     "Append tokens: key (B, G, L, D), value (B, G, L, Dv), of layout \"blhd\" (B, L, G, D).\n"
     "Those of batch b go to sequences[b], or b; lengths[b] of them, or all. All or nothing."},
    {"attention", WITH_KEYWORDS(mhap_cache_attention), METH_VARARGS | METH_KEYWORDS,
     "attention($self, query, *, sequences=None, **options)\n--\n\n"
     "Attention of query (B, H, L, D) over the tokens of sequences[b], or b.\n\n"
     "Options and result are those of mha.attention(). The last query stands at the last token,\n"
     "unless position says otherwise; columns of masks and weights are the tokens of the longest\n"
     "sequence."},
    {"truncate", cache_truncate, METH_VARARGS,
     "truncate($self, sequence, length, /)\n--\n\nForget all tokens from length on; 0 empties it."},
    {"fork", cache_fork, METH_VARARGS,
     "fork($self, to, source, /)\n--\n\n"
     "Sequence `to` becomes what `source` is. Pages are shared until one of the two changes."},
    {"copy", cache_copy, METH_VARARGS,
     "copy($self, to, source, first, count, /)\n--\n\n"
     "Append count tokens of `source`, from first on, to sequence `to`, as they are stored."},
    {"remove", cache_remove, METH_VARARGS,
     "remove($self, sequence, first, count, /)\n--\n\n"
     "Take tokens out; later ones move down. Rotated keys want shift() then. Not for rings."},
    {"shift", cache_shift, METH_VARARGS,
     "shift($self, sequence, first, count, rope, delta, /)\n--\n\n"
     "Turn the keys of count tokens, from first on, by delta positions more."},
    {"reorder", cache_reorder, METH_O,
     "reorder($self, parents, /)\n--\n\n"
     "Beams: every sequence n becomes what parents[n] was before the call."},
    {"read", WITH_KEYWORDS(cache_read), METH_VARARGS | METH_KEYWORDS,
     "read($self, sequence, first=-1, count=-1)\n--\n\n"
     "Keys (G, count, D) and values (G, count, Dv) of tokens, as f32: from first on, or all."},
    {"save", cache_save, METH_O,
     "save($self, path, /)\n--\n\nWrite all sequences to a file, whole or not at all."},
    {"load", cache_load, METH_O | METH_CLASS,
     "load($type, path, /)\n--\n\nA cache out of a file that save() has written, the same to the "
     "bit."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {
    {"lengths", cache_lengths, NULL, "Tokens of each sequence, a list.", NULL},
    {"firsts", cache_firsts, NULL,
     "The first token of each sequence that is still there: not 0 in rings that went round.", NULL},
    {"config", cache_config, NULL, "What the cache was made with, a dict.", NULL},
    {"nbytes", cache_nbytes, NULL, "Bytes of memory.", NULL},
    {"free_pages", cache_free_pages, NULL, "Pages that no sequence uses; 0 if not paged.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static const char doc[] =
    "KVCache(sequences, capacity, kv_heads, head_width, *, kind=\"contiguous\",\n"
    "        value_head_width=None, dtype=\"f32\", value_dtype=None, page_tokens=0, pages=0)\n"
    "--\n\n"
    "Keys and values of sequences that grow, for one layer.\n\n"
    "capacity: most tokens of a sequence. kind: \"contiguous\"; \"ring\", which keeps the last\n"
    "capacity tokens; \"paged\", pages of page_tokens out of a store of `pages`, shared by forks.\n"
    "dtype: \"f32\", \"f16\", \"bf16\" or \"i8\"; of values too, unless value_dtype says more.\n\n"
    "One thread at a time may change a cache, any number may read it: RuntimeError else.\n\n"
    ">>> import mha, numpy\n"
    ">>> cache = mha.KVCache(1, 8, kv_heads=1, head_width=2)\n"
    ">>> tokens = numpy.ones((1, 1, 2, 2), \"float32\")\n"
    ">>> cache.append(tokens, tokens)\n"
    ">>> cache.lengths\n"
    "[2]\n";

static PyType_Slot slots[] = {{Py_tp_doc, (void *)doc},
                              {Py_tp_new, cache_new},
                              {Py_tp_dealloc, cache_dealloc},
                              {Py_tp_repr, cache_repr},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, attributes},
                              {0, NULL}};

static PyType_Spec spec = {.name = "mha.KVCache",
                           .basicsize = sizeof(mhap_cache),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int mhap_cache_type_add(PyObject *module, mhap_state *state)
{
    state->cache_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->cache_type ? PyModule_AddType(module, (PyTypeObject *)state->cache_type) : -1;
}
