/* SPDX-License-Identifier: MIT */
/*
 * What a transformer block has beside attention, on arrays of any number of axes whose last one is
 * the width.
 *
 *      py_linear.c         the type mha.Linear
 *      py_feed_forward.c   the type mha.FeedForward
 *      py_packed.c         what both have in common
 *      py_stack.c          the type mha._core.Stack, layers of an encoder in one call
 *      py_norm.c           the function mha.norm(), and rows of arrays
 */
#ifndef MHAP_LINEAR_H
#define MHAP_LINEAR_H

#include "py_layer.h"

/* An array as rows of `width` elements, which start `stride` elements apart. */
typedef struct mhap_lines {
    mhap_array array;
    ptrdiff_t rows, stride;
} mhap_lines;

/* Takes an array whose last axis has `width` elements; the other axes must collapse to one. f32,
 * and f16 and bf16 if `half`. */
int mhap_lines_take(mhap_state *state, PyObject *object, const char *name, ptrdiff_t width,
                    bool half, mhap_lines *lines);

/* The same for an array that must have the other axes of `like`, for reading or for writing; None
 * and NULL leave it empty. */
int mhap_lines_like(mhap_state *state, PyObject *object, const char *name, ptrdiff_t width,
                    const mhap_lines *like, bool to_write, mhap_lines *lines);

/* The array for a result: `out`, or a new one with library, element type and axes of `like`. */
PyObject *mhap_lines_result(mhap_state *state, PyObject *out, ptrdiff_t width,
                            const mhap_lines *like, mhap_lines *lines);

/* The arguments `store` and `activation`; None is "f32" and no activation. */
int mhap_store_read(const mhap_state *state, PyObject *object, mha_dtype *store);
int mhap_activation_read(const mhap_state *state, PyObject *object, mha_activation *activation);
const char *mhap_store_name(mha_dtype store);
const char *mhap_activation_name(mha_activation activation); /* NULL: none */

/* Takes a matrix [outputs, inputs] with any strides, or a vector [outputs]: f32, f16 or bf16. Sizes
 * that are 0 are set from the array. None leaves a vector empty. */
int mhap_matrix_take(mhap_state *state, PyObject *object, const char *name, ptrdiff_t *outputs,
                     ptrdiff_t *inputs, mhap_array *array, mha_matrix *matrix);
int mhap_vector_take(mhap_state *state, PyObject *object, const char *name, ptrdiff_t width,
                     mhap_array *array, mha_vector *vector);

PyObject *mhap_norm(PyObject *module, PyObject *args, PyObject *keywords);
int mhap_linear_type_add(PyObject *module, mhap_state *state);
int mhap_feed_forward_type_add(PyObject *module, mhap_state *state);
int mhap_stack_type_add(PyObject *module, mhap_state *state);

#endif
