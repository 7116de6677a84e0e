/* SPDX-License-Identifier: MIT */
/* What calls return in addition to the output: log-sum-exp, weights, statistics; named tuples. */
#ifndef MHAP_RESULT_H
#define MHAP_RESULT_H

#include "py_options.h"

/* The axes of results, which are those of the query. */
typedef struct mhap_form {
    bool batch, heads;
    ptrdiff_t packed_rows; /* total rows of packed queries; -1: not packed */
} mhap_form;

typedef struct mhap_extras {
    PyObject *lse, *weights; /* returned to the caller; NULL if not requested */
    mhap_array lse_array, weights_array;
    PyObject *rows, *heads, *columns, *top_keys, *top_weights; /* mha.Arrays: py_statistics.c */
    mhap_origin origin;
    mhap_form form;
} mhap_extras;

/*
 * Makes what the arguments request, or takes it from lse_out and weights_out, and sets it in o->c:
 *
 *      lse         (B, H, L), packed (H, rows), f32 (f64 for f64)
 *      weights     (B, heads, rows, columns), averaged (B, rows, columns), f32
 *      statistics
 *
 * without the batch or head axis if the form has none. `columns` is S, or more for a layer with
 * extra keys. Rows that the call does not write are 0, and their log-sum-exp is -inf. Results are
 * arrays like `like`. *extras is initialised here; call mhap_extras_end() even after an error.
 */
int mhap_extras_make(mhap_state *state, PyObject *const *values, const mha_shape *shape,
                     ptrdiff_t columns, mhap_form form, const mhap_array *like, mhap_options *o,
                     mhap_extras *extras);

/* The output alone, or a Result if more was requested. Takes ownership of `output`, which may be
 * NULL for none. */
PyObject *mhap_extras_result(mhap_state *state, const mha_shape *shape, PyObject *output,
                             const mhap_options *o, const mhap_extras *extras);

void mhap_extras_end(mhap_extras *extras);

/*
 * The array for an output of this shape: `out` if given (of any float type), else a new one with
 * library and element type of `like`, filled with 0 if `partial` says that the call does not write
 * all of it. Returns the object for the caller of the function.
 */
PyObject *mhap_output(mhap_state *state, PyObject *out, const mhap_array *like, bool partial,
                      int axes, const ptrdiff_t *shape, mhap_array *array);

/* In py_statistics.c: allocates what the argument `statistics` requests and sets it in
 * o->statistics; and makes the mha.Statistics with views of that memory. */
int mhap_statistics_make(mhap_state *state, PyObject *wanted, const mha_shape *shape,
                         mhap_options *o, mhap_extras *extras);
PyObject *mhap_statistics_result(mhap_state *state, const mha_shape *shape, const mhap_options *o,
                                 const mhap_extras *extras);

/* A class of mha._types, such as a named tuple, as a borrowed reference. It is looked up once and
 * kept in *slot. */
PyObject *mhap_python_type(PyObject **slot, const char *name);

#endif
