/* SPDX-License-Identifier: MIT */
/* What calls return beside the output: log-sum-exp, weights, statistics; named tuples. */
#ifndef MHAP_RESULT_H
#define MHAP_RESULT_H

#include "py_options.h"

/* Which axes results have: those that the query has. */
typedef struct mhap_form {
    bool batch, heads;
    ptrdiff_t packed_rows; /* rows of all packed queries together; -1: not packed */
} mhap_form;

typedef struct mhap_extras {
    PyObject *lse, *weights; /* what is returned; NULL where not asked for */
    mhap_array lse_array, weights_array;
    PyObject *rows, *heads, *columns, *top_keys, *top_weights; /* mha.Arrays: py_statistics.c */
    mhap_origin origin;
    mhap_form form;
} mhap_extras;

/*
 * Make, or take from lse_out and weights_out, what the arguments ask for, and enter it into o->c:
 *
 *      lse         (B, H, L), packed (H, rows), f32 (f64 for f64)
 *      weights     (B, heads, rows, columns), averaged (B, rows, columns), f32
 *      statistics
 *
 * without the batch or head axis where the form has none. `columns` is S, or more for a layer with
 * extra keys. Rows that the call will not write are 0, their log-sum-exp -inf. Results are arrays
 * like `like`. *extras need not be set before; after success or error, mhap_extras_end().
 */
int mhap_extras_make(mhap_state *state, PyObject *const *values, const mha_shape *shape,
                     ptrdiff_t columns, mhap_form form, const mhap_array *like, mhap_options *o,
                     mhap_extras *extras);

/* The output alone, or a Result where more was asked for. Takes over `output`; it may be NULL for
 * none. */
PyObject *mhap_extras_result(mhap_state *state, const mha_shape *shape, PyObject *output,
                             const mhap_options *o, const mhap_extras *extras);

void mhap_extras_end(mhap_extras *extras);

/*
 * The array for an output of this shape: `out` if given (any float type, kept as it is), else a new
 * one like `like` with its element type, 0 where `partial` says that not all of it is going to be
 * written. Returns what goes back to the caller of the call.
 */
PyObject *mhap_output(mhap_state *state, PyObject *out, const mhap_array *like, bool partial,
                      int axes, const ptrdiff_t *shape, mhap_array *array);

/* py_statistics.c: the memory for what the argument `statistics` asks for, entered into
 * o->statistics; and the mha.Statistics over that memory. */
int mhap_statistics_make(mhap_state *state, PyObject *wanted, const mha_shape *shape,
                         mhap_options *o, mhap_extras *extras);
PyObject *mhap_statistics_result(mhap_state *state, const mha_shape *shape, const mhap_options *o,
                                 const mhap_extras *extras);

/* A named tuple, or another class, of mha._types: looked up once, kept in *slot. Borrowed. */
PyObject *mhap_python_type(PyObject **slot, const char *name);

#endif
