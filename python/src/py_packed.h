/* SPDX-License-Identifier: MIT */
/* The part of mha.Linear and mha.FeedForward that is the same: see py_packed.c. */
#ifndef MHAP_PACKED_H
#define MHAP_PACKED_H

#include "py_linear.h"

/* The beginning of an object of either type. */
typedef struct mhap_packed {
    PyObject ob_base;
    ptrdiff_t inputs, outputs;
    int runs; /* calls of all threads that are computing */
    mhap_scratch scratch;
} mhap_packed;

/* What a type does in a call. */
typedef struct mhap_packed_kind {
    const char *format; /* of the arguments, with the name of the type */
    bool half;          /* x may be f16 and bf16 */
    size_t (*work_size)(const mhap_packed *self, ptrdiff_t rows, int threads);
    mha_status (*run)(const mhap_packed *self, const mhap_lines *x, const mhap_lines *residual,
                      const mhap_lines *y, void *work, size_t work_size, mha_pool *pool);
} mhap_packed_kind;

/* The weights of an mha.FeedForward. */
const mha_feed_forward *mhap_feed_forward_of(PyObject *object);

/* A new object, all zero; NULL with an exception. */
void *mhap_packed_allocate(PyTypeObject *type);

/* Frees the object, after its weights were freed. */
void mhap_packed_dealloc(PyObject *object);

/* self(x, *, residual=None, out=None, threads=None) */
PyObject *mhap_packed_call(PyObject *object, PyObject *args, PyObject *keywords,
                           const mhap_packed_kind *kind);

#endif
