/* SPDX-License-Identifier: MIT */
/*
 * Statistics of heads. The library writes structs; Python gets one array per field, as strided
 * views of the same memory.
 */
#include "py_result.h"

#include <stddef.h>
#include <string.h>

/* What the argument `statistics` requests. */
typedef struct request {
    int rows, heads, columns;
    ptrdiff_t top, first_keys;
} request;

static int request_named(const mhap_state *state, PyObject *name, PyObject *value, request *w)
{
    static const char *const names[] = {"rows", "heads", "columns", "top", "first_keys", NULL};
    int *const flags[] = {&w->rows, &w->heads, &w->columns};
    const int n = mhap_choice(state, name, "an element of statistics", names);
    if (n < 0)
        return -1;
    if (n < 3) {
        *flags[n] = value ? mhap_truth(value) : 1;
        return *flags[n] < 0 ? -1 : 0;
    }
    if (!value)
        return mhap_fail(state, MHA_ERR_FLAG, "statistics: %s needs a number; write {\"%s\": 5}",
                         names[n], names[n]);
    ptrdiff_t *const number = n == 3 ? &w->top : &w->first_keys;
    if (mhap_integer(value, names[n], number))
        return -1;
    if (*number < 0 || (n == 3 && *number > 64))
        return mhap_fail(state, MHA_ERR_INDEX, "statistics: %s is %td; use 0 to %s", names[n],
                         *number, n == 3 ? "64" : "S");
    return 0;
}

static int request_list(const mhap_state *state, PyObject *list, request *w)
{
    PyObject *iterator = PyUnicode_Check(list) ? NULL : PyObject_GetIter(list);
    if (!iterator) {
        PyErr_Clear();
        return mhap_wrong_kind("statistics", list,
                               "it must be True, False, or some of \"rows\", \"heads\", "
                               "\"columns\", such as {\"heads\": True, \"top\": 5}");
    }
    int status = 0;
    for (PyObject *name; status == 0 && (name = PyIter_Next(iterator));) {
        status = request_named(state, name, NULL, w);
        Py_DECREF(name);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? -1 : status;
}

static int request_read(const mhap_state *state, PyObject *wanted, request *w)
{
    memset(w, 0, sizeof *w);
    if (!wanted || wanted == Py_False)
        return 0;
    if (wanted == Py_True) {
        w->rows = w->heads = 1;
        return 0;
    }
    if (!PyDict_Check(wanted))
        return request_list(state, wanted, w);
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(wanted, &at, &name, &value);) {
        Py_INCREF(value); /* its __index__ may remove it from the dictionary */
        const int status = request_named(state, name, value, w);
        Py_DECREF(value);
        if (status)
            return -1;
    }
    return 0;
}

/* --------------------------------------------------------------- memory ----- */

/* An mha.Array for B * H * `extent` structs of `size` bytes. */
static PyObject *memory_for(mhap_state *state, const mha_shape *s, ptrdiff_t extent, size_t size,
                            void **data)
{
    const ptrdiff_t shape[] = {s->B, s->H, extent, (ptrdiff_t)size / 4};
    return mhap_array_new(state, MHAP_F32, 4, shape, data);
}

static void no_keys(mha_row_statistics *rows, ptrdiff_t count)
{
    for (ptrdiff_t n = 0; n < count; n++)
        rows[n].key = -1;
}

static int make_lists(mhap_state *state, const mha_shape *s, mha_statistics *c, mhap_extras *e)
{
    void *data = NULL;
    const ptrdiff_t count = s->L * c->top;
    e->top_keys = memory_for(state, s, count, sizeof(int64_t), &data);
    c->top_keys = data;
    if (!e->top_keys)
        return -1;
    memset(data, -1, (size_t)(s->B * s->H * count) * sizeof(int64_t));
    e->top_weights = memory_for(state, s, count, sizeof(float), &data);
    c->top_weights = data;
    return e->top_weights ? 0 : -1;
}

int mhap_statistics_make(mhap_state *state, PyObject *wanted, const mha_shape *shape,
                         mhap_options *o, mhap_extras *e)
{
    request w;
    if (request_read(state, wanted, &w))
        return -1;
    if (!w.rows && !w.heads && !w.columns && !w.top)
        return 0;
    mha_statistics *const c = &o->statistics;
    *c = (mha_statistics){.size = sizeof *c, .first_keys = w.first_keys, .top = w.top};
    o->c.statistics = c;
    void *data = NULL;
    if (w.rows) {
        e->rows = memory_for(state, shape, shape->L, sizeof *c->rows, &data);
        c->rows = data;
        if (!e->rows)
            return -1;
        no_keys(c->rows, shape->B * shape->H * shape->L);
    }
    if (w.heads) {
        e->heads = memory_for(state, shape, 1, sizeof *c->heads, &data);
        c->heads = data;
        if (!e->heads)
            return -1;
    }
    if (w.columns) {
        e->columns = memory_for(state, shape, shape->S, sizeof *c->columns, &data);
        c->columns = data;
        if (!e->columns)
            return -1;
    }
    return w.top ? make_lists(state, shape, c, e) : 0;
}

/* ---------------------------------------------------------------- views ----- */

typedef struct field {
    const char *name;
    mhap_type type;
    size_t start;
} field;

#define ROW(name) #name, MHAP_F32, offsetof(mha_row_statistics, name)
static const field row_fields[] = {
    {ROW(entropy)}, {ROW(largest)},  {ROW(distance)},
    {ROW(self)},    {ROW(previous)}, {ROW(next)},
    {ROW(first)},   {ROW(mass)},     {"key", MHAP_I64, offsetof(mha_row_statistics, key)}};
#undef ROW

#define HEAD(name) #name, MHAP_F64, offsetof(mha_head_statistics, name)
static const field head_fields[] = {
    {HEAD(entropy)}, {HEAD(largest)},  {HEAD(distance)},
    {HEAD(self)},    {HEAD(previous)}, {HEAD(next)},
    {HEAD(first)},   {HEAD(mass)},     {"rows", MHAP_I64, offsetof(mha_head_statistics, rows)}};
#undef HEAD

enum { FIELDS = sizeof row_fields / sizeof *row_fields };

/* A view of one field of structs of `size` bytes, which are stored as [B][H][extents...]. */
static PyObject *view_field(mhap_state *state, const mha_shape *s, const mhap_extras *e,
                            PyObject *memory, const field *f, size_t size, int extents,
                            const ptrdiff_t *extent)
{
    const ptrdiff_t full[] = {s->B, s->H, extents > 0 ? extent[0] : 1, extents > 1 ? extent[1] : 1};
    ptrdiff_t shape[4], strides[4], stride = (ptrdiff_t)(size / mhap_type_size(f->type));
    int axes = 0;
    for (int n = 0; n < 2 + extents; n++) {
        if ((n == 0 && !e->form.batch) || (n == 1 && !e->form.heads))
            continue;
        ptrdiff_t inner = stride;
        for (int m = n + 1; m < 4; m++)
            inner *= full[m];
        shape[axes] = full[n];
        strides[axes++] = inner;
    }
    return mhap_view_of(state, e->origin, memory, (ptrdiff_t)f->start, f->type, axes, shape,
                        strides);
}

/* A dictionary {"entropy": ..., ...}, or None if these statistics were not requested. */
static PyObject *view_structs(mhap_state *state, const mha_shape *s, const mhap_extras *e,
                              PyObject *memory, const field *fields, size_t size, int extents,
                              const ptrdiff_t *extent)
{
    if (!memory)
        Py_RETURN_NONE;
    PyObject *views = PyDict_New();
    for (int n = 0; views && n < FIELDS; n++) {
        PyObject *view = view_field(state, s, e, memory, &fields[n], size, extents, extent);
        const int status = view ? PyDict_SetItemString(views, fields[n].name, view) : -1;
        Py_XDECREF(view);
        if (status) {
            Py_DECREF(views);
            return NULL;
        }
    }
    return views;
}

static PyObject *view_plain(mhap_state *state, const mha_shape *s, const mhap_extras *e,
                            PyObject *memory, mhap_type type, int extents, const ptrdiff_t *extent)
{
    if (!memory)
        Py_RETURN_NONE;
    const field plain = {"", type, 0};
    return view_field(state, s, e, memory, &plain, mhap_type_size(type), extents, extent);
}

PyObject *mhap_statistics_result(mhap_state *state, const mha_shape *shape, const mhap_options *o,
                                 const mhap_extras *e)
{
    PyObject *const type = mhap_python_type(&state->statistics_type, "Statistics");
    if (!type)
        return NULL;
    const ptrdiff_t listed[] = {shape->L, o->statistics.top};
    enum { PARTS = 5 };
    PyObject *const parts[PARTS] = {
        view_structs(state, shape, e, e->rows, row_fields, sizeof(mha_row_statistics), 1,
                     &shape->L),
        view_structs(state, shape, e, e->heads, head_fields, sizeof(mha_head_statistics), 0, NULL),
        view_plain(state, shape, e, e->columns, MHAP_F32, 1, &shape->S),
        view_plain(state, shape, e, e->top_keys, MHAP_I64, 2, listed),
        view_plain(state, shape, e, e->top_weights, MHAP_F32, 2, listed)};
    bool whole = true;
    for (int n = 0; n < PARTS; n++)
        whole = whole && parts[n];
    PyObject *result = whole ? PyObject_CallFunctionObjArgs(type, parts[0], parts[1], parts[2],
                                                            parts[3], parts[4], NULL)
                             : NULL;
    for (int n = 0; n < PARTS; n++)
        Py_XDECREF(parts[n]);
    return result;
}
