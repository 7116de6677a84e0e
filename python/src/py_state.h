/* SPDX-License-Identifier: MIT */
/*
 * Shared by all files of the extension: the state of the module, errors, thread pools. The other
 * headers are:
 *
 *      py_arguments.h   arguments of a call -> slots
 *      py_array.h       arrays of other libraries without a copy, new arrays for results
 *      py_numbers.h     short lists of numbers, copied
 *      py_options.h     slots -> mha_options
 *      py_call.h        inputs and options of one call of the operator
 *      py_result.h      log-sum-exp, weights and statistics that a call returns
 *      py_layer.h       layers, tapes and caches
 *      py_linear.h      linears, feed-forward, norms
 *      py_packed.h      what linears and feed-forward share
 *      py_model.h       tokenizers and models
 *
 * Functions that return int return 0, or -1 with a Python exception set. Functions that return a
 * PyObject return a new reference, or NULL with an exception set. All are called with the GIL held.
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

/* What is known of an array library, looked up when its first array is used. */
typedef struct mhap_library {
    PyObject *array;                       /* numpy.ndarray, torch.Tensor; NULL: not used yet */
    PyObject *parameter;                   /* torch.nn.Parameter */
    PyObject *empty;                       /* numpy.empty, torch.empty */
    PyObject *keywords[MHAP_RESULT_TYPES]; /* its keyword arguments for an element type, or NULL */
    const void *exchange;                  /* torch: C functions to get tensors without Python */
} mhap_library;

typedef struct mhap_pools mhap_pools;

typedef struct mhap_state {
    PyObject *error;                                          /* mha.Error */
    PyObject *array_type;                                     /* mha.Array */
    PyObject *option_names[MHAP_OPTIONS];                     /* interned */
    PyObject *result_type, *gradients_type, *statistics_type; /* NULL until first used */
    mhap_library numpy, torch;
    mhap_pools *pools;
    PyObject *layer_type, *tape_type, *cache_type, *feed_forward_type;
    PyObject *model_type, *sequences_type; /* NULL without libmha_model */
} mhap_state;

/* The state of the module that `type` or its base class belongs to. */
mhap_state *mhap_state_of(PyTypeObject *type);

/* Makes a type that only the module refers to. */
int mhap_type_add(PyObject *module, PyType_Spec *spec);

/* ---------------------------------------------------------- py_errors.c ----- */

/* Raises mha.Error with this message. Always returns -1. */
int mhap_fail(const mhap_state *state, mha_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Converts a status of the library: returns 0 for MHA_OK, else -1 with mha.Error (MemoryError for
 * MHA_ERR_MEMORY). Names of C fields in the message are replaced by those of Python arguments. */
int mhap_check(const mhap_state *state, mha_status status, const char *message);

/* Raises TypeError: "NAME is a TYPE; WANTED". Always returns -1. */
int mhap_wrong_kind(const char *name, PyObject *object, const char *wanted);

/* Replaces the current exception by an mha.Error with the name of the argument and the first line
 * of its text. An mha.Error, MemoryError or KeyboardInterrupt is kept. Always returns -1. */
int mhap_explain_error(const mhap_state *state, const char *name);

int mhap_errors_add(PyObject *module, mhap_state *state);

/* ------------------------------------------------------------ py_pool.c ----- */

/* The pool for a call: `threads` is the argument of that name, NULL for the default. *pool may be
 * NULL, which means one thread. Pools live as long as the process; a child of fork() gets its
 * own. */
int mhap_pool_for(mhap_state *state, PyObject *threads, mha_pool **pool);

PyObject *mhap_set_threads(PyObject *module, PyObject *count);
PyObject *mhap_get_threads(PyObject *module, PyObject *unused);

#endif
