/* SPDX-License-Identifier: MIT */
/*
 * What all files of the extension share: the state of the module, errors, pools of threads.
 *
 *      state.h       this
 *      arguments.h   keyword arguments of a call -> slots
 *      array.h       arrays of others taken without a copy, arrays made for results
 *      numbers.h     short lists of numbers, copied
 *      options.h     slots -> mha_options
 *      result.h      log-sum-exp, weights and statistics that a call returns
 *
 * Functions that return int give 0, or -1 with a Python exception set. Functions that return a
 * PyObject give a new reference, or NULL with an exception set. All are called with the GIL held.
 */
#ifndef MHAP_STATE_H
#define MHAP_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <mha/mha.h>
#include <stdbool.h>
#include <sys/types.h>

#include "py_arguments.h"

enum { MHAP_RESULT_TYPES = MHA_F64 + 2 }; /* the element types of results: floats, then int64 */

/* What is known of a library of arrays once one of its arrays was met. */
typedef struct mhap_library {
    PyObject *array;                       /* numpy.ndarray, torch.Tensor; NULL: not met yet */
    PyObject *parameter;                   /* torch.nn.Parameter */
    PyObject *empty;                       /* numpy.empty, torch.empty */
    PyObject *keywords[MHAP_RESULT_TYPES]; /* its keyword arguments for an element type, or NULL */
    const void *exchange;                  /* torch: how tensors are had without a Python call */
} mhap_library;

typedef struct mhap_pools mhap_pools;

typedef struct mhap_state {
    PyObject *error;                                          /* mha.Error */
    PyObject *array_type;                                     /* mha.Array */
    PyObject *option_names[MHAP_OPTIONS];                     /* interned */
    PyObject *result_type, *gradients_type, *statistics_type; /* NULL until first used */
    mhap_library numpy, torch;
    mhap_pools *pools;
    PyObject *layer_type, *tape_type, *cache_type;
} mhap_state;

/* The state of the module that `type`, or its base, was made for. */
mhap_state *mhap_state_of(PyTypeObject *type);

/* ---------------------------------------------------------- py_errors.c ----- */

/* Raise mha.Error with a sentence of our own. Always -1. */
int mhap_fail(const mhap_state *state, mha_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Raise what the library said: 0 for MHA_OK, else -1 with mha.Error (MemoryError for
 * MHA_ERR_MEMORY). The message, if not empty, is told in the words of Python's arguments. */
int mhap_check(const mhap_state *state, mha_status status, const char *message);

/* Raise TypeError: "NAME is a TYPE; WANTED". Always -1. */
int mhap_wrong_kind(const char *name, PyObject *object, const char *wanted);

/* The exception under way becomes an mha.Error that says which argument it is about, with the first
 * line of its text. An mha.Error, MemoryError or KeyboardInterrupt stays as it is. Always -1. */
int mhap_explain_error(const mhap_state *state, const char *name);

int mhap_errors_add(PyObject *module, mhap_state *state);

/* ------------------------------------------------------------ py_pool.c ----- */

/* The pool for a call: `threads` is the argument of that name, NULL for the default. *pool may
 * become NULL: one thread. Pools live as long as the process; a child of fork() gets its
 * own. */
int mhap_pool_for(mhap_state *state, PyObject *threads, mha_pool **pool);

PyObject *mhap_set_threads(PyObject *module, PyObject *count);
PyObject *mhap_get_threads(PyObject *module, PyObject *unused);

#endif
