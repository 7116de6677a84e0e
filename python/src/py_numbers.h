/* SPDX-License-Identifier: MIT */
/*
 * Short lists of numbers: lengths, starts, slopes, chosen heads. They are given as lists, tuples or
 * arrays of any integer or float type, and are copied to memory of the caller's list `kept`.
 */
#ifndef MHAP_NUMBERS_H
#define MHAP_NUMBERS_H

#include "py_array.h"

enum { MHAP_KEPT = 24 };

/* Memory that lives until mhap_kept_free(). */
typedef struct mhap_kept {
    void *memory[MHAP_KEPT];
    int count;
} mhap_kept;

/* Allocates memory; NULL with MemoryError if there is none. Never NULL for 0 bytes. */
void *mhap_keep(mhap_kept *kept, size_t size);
void mhap_kept_free(mhap_kept *kept);

/* Reads [*count] integers; if `wanted` is not -1, there must be that many. NULL with an exception
 * on an error. */
const int64_t *mhap_integers(mhap_state *state, PyObject *object, const char *name,
                             ptrdiff_t wanted, ptrdiff_t *count, mhap_kept *kept);

/* The same for indices of heads, rows or sequences: TypeError for booleans. */
const int64_t *mhap_chosen(mhap_state *state, PyObject *object, const char *name, ptrdiff_t wanted,
                           ptrdiff_t *count, mhap_kept *kept);

/* Reads floats of exactly this shape as f32. NULL with an exception on an error. */
const float *mhap_floats(mhap_state *state, PyObject *object, const char *name, int axes,
                         const ptrdiff_t *shape, mhap_kept *kept);

/* The number of axes of an array or of nested lists. -1 with an exception on an error. */
int mhap_axes(mhap_state *state, PyObject *object, const char *name);

/* Reads integers of shape [B, rows] as int32; if B is 1, the first axis may be missing. */
const int32_t *mhap_documents(mhap_state *state, PyObject *object, const char *name, ptrdiff_t B,
                              ptrdiff_t rows, mhap_kept *kept);

/* Reads a single number; errors contain the name of the argument. */
int mhap_integer(PyObject *object, const char *name, ptrdiff_t *value);
int mhap_number(PyObject *object, const char *name, double *value);

#endif
