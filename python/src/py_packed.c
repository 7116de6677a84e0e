/* SPDX-License-Identifier: MIT */
/* What mha.Linear and mha.FeedForward share: packed weights that rows of an array are multiplied
 * with, y = f(x) + residual. */
#include "py_packed.h"

#include <stdlib.h>

void *mhap_packed_allocate(PyTypeObject *type)
{
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return make(type, 0);
}

void mhap_packed_dealloc(PyObject *object)
{
    mhap_packed *const self = (mhap_packed *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free(self->scratch.memory);
    release(object);
    Py_DECREF(type);
}

static mha_status run(mhap_packed *self, const mhap_packed_kind *kind, const mhap_lines lines[3],
                      mha_pool *pool)
{
    const size_t size = kind->work_size(self, lines[0].rows, mha_pool_threads(pool));
    void *const work = mhap_scratch_take(&self->scratch, size);
    mha_status status;
    self->runs++;
    Py_BEGIN_ALLOW_THREADS;
    status = kind->run(self, &lines[0], &lines[1], &lines[2], work, work ? size : 0, pool);
    Py_END_ALLOW_THREADS;
    self->runs--;
    mhap_scratch_give(&self->scratch, work);
    return status;
}

PyObject *mhap_packed_call(PyObject *object, PyObject *args, PyObject *keywords,
                           const mhap_packed_kind *kind)
{
    static char *names[] = {"x", "residual", "out", "threads", NULL};
    mhap_packed *const self = (mhap_packed *)object;
    mhap_state *const state = mhap_state_of(Py_TYPE(object));
    PyObject *x, *residual = Py_None, *out = Py_None, *threads = Py_None, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, kind->format, names, &x, &residual, &out,
                                     &threads))
        return NULL;
    mhap_lines lines[3] = {{.rows = 0}, {.rows = 0}, {.rows = 0}};
    mha_pool *pool = NULL;
    if (!mhap_lines_take(state, x, "x", self->inputs, kind->half, &lines[0]) &&
        !mhap_lines_like(state, residual, "residual", self->outputs, &lines[0], false, &lines[1]) &&
        !mhap_pool_for(state, threads == Py_None ? NULL : threads, &pool))
        result = mhap_lines_result(state, out, self->outputs, &lines[0], &lines[2]);
    if (result && mhap_check(state, run(self, kind, lines, pool), NULL))
        Py_CLEAR(result);
    for (int n = 0; n < 3; n++)
        mhap_release(&lines[n].array);
    return result;
}
