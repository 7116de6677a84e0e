/* SPDX-License-Identifier: MIT */
/*
 * Short lists of numbers: lengths, starts, slopes, chosen heads. They come as lists, tuples or
 * arrays of any integer or float type and are copied into memory of the caller's list `kept`.
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

/* MemoryError and NULL where there is none. Never NULL for 0 bytes. */
void *mhap_keep(mhap_kept *kept, size_t size);
void mhap_kept_free(mhap_kept *kept);

/* [*count] integers; a `wanted` count other than -1 must be met. NULL with an exception set. */
const int64_t *mhap_integers(mhap_state *state, PyObject *object, const char *name,
                             ptrdiff_t wanted, ptrdiff_t *count, mhap_kept *kept);

/* The same for numbers that choose among heads, rows or sequences: TypeError for booleans. */
const int64_t *mhap_chosen(mhap_state *state, PyObject *object, const char *name, ptrdiff_t wanted,
                           ptrdiff_t *count, mhap_kept *kept);

/* Floats of just this shape, as f32. NULL with an exception set. */
const float *mhap_floats(mhap_state *state, PyObject *object, const char *name, int axes,
                         const ptrdiff_t *shape, mhap_kept *kept);

/* How many axes the numbers have: of an array, or of lists in lists. -1 with an exception set. */
int mhap_axes(mhap_state *state, PyObject *object, const char *name);

/* Integers of shape [B, rows] as int32; where B is 1, [rows] or more will do. */
const int32_t *mhap_documents(mhap_state *state, PyObject *object, const char *name, ptrdiff_t B,
                              ptrdiff_t rows, mhap_kept *kept);

/* A Python number as a C one, with the name of the argument in the error. */
int mhap_integer(PyObject *object, const char *name, ptrdiff_t *value);
int mhap_number(PyObject *object, const char *name, double *value);

#endif
