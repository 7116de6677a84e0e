/* SPDX-License-Identifier: MIT */
/*
 * Arrays of NumPy, PyTorch, JAX, and any other library with the buffer protocol or __dlpack__, used
 * in place without a copy; and new arrays for results.
 *
 * An mhap_array that was taken holds its memory until mhap_release(). One that is all zero was
 * never taken, and may be released too.
 */
#ifndef MHAP_ARRAY_H
#define MHAP_ARRAY_H

#include "py_state.h"

enum { MHAP_MAX_AXES = 8 };

/* Element types. Those of the library have the same values as in mha_dtype. */
typedef enum mhap_type {
    MHAP_F32 = MHA_F32,
    MHAP_F16 = MHA_F16,
    MHAP_BF16 = MHA_BF16,
    MHAP_F64 = MHA_F64,
    MHAP_I8 = MHA_I8,
    MHAP_BOOL,
    MHAP_U8,
    MHAP_I16,
    MHAP_U16,
    MHAP_I32,
    MHAP_U32,
    MHAP_I64,
    MHAP_U64,
    MHAP_OTHER
} mhap_type;

/* The library that an array comes from, which decides the type of results. */
typedef enum mhap_origin { MHAP_OWN, MHAP_NUMPY, MHAP_TORCH } mhap_origin;

typedef struct mhap_array {
    PyObject *object; /* the object that was taken, or NULL */
    void *data;       /* never NULL in an array that was taken, even if it has no elements */
    mhap_type type;
    mhap_origin origin;
    bool read_only;
    int axes;
    ptrdiff_t shape[MHAP_MAX_AXES];
    ptrdiff_t strides[MHAP_MAX_AXES]; /* in elements */

    Py_buffer buffer; /* one of these two holds the memory */
    void *held;
    void (*drop)(void *held);
} mhap_array;

/* Takes an array for reading. `name` is the argument's name for errors: TypeError if the object is
 * not an array, mha.Error if the array cannot be used (another device, a tensor that requires a
 * gradient while gradients are enabled). */
int mhap_take(mhap_state *state, PyObject *object, const char *name, mhap_array *array);

/* Takes an array for writing; read-only arrays are refused. */
int mhap_take_out(mhap_state *state, PyObject *object, const char *name, mhap_array *array);

void mhap_release(mhap_array *array);

/*
 * A new C-contiguous array for a result, with elements that are not set: of NumPy or PyTorch if
 * `like` is, else an mha.Array. *array is taken for writing, and must be released. The type is a
 * float type or MHAP_I64; bf16 only if `like` is bf16.
 */
PyObject *mhap_new(mhap_state *state, const mhap_array *like, mhap_type type, int axes,
                   const ptrdiff_t *shape, mhap_array *array);

/* A strided view of the memory of an mha.Array, as an array of the library `origin`. The view keeps
 * the memory alive. Strides are in elements, the start is in bytes. */
PyObject *mhap_view_of(mhap_state *state, mhap_origin origin, PyObject *memory, ptrdiff_t start,
                       mhap_type type, int axes, const ptrdiff_t *shape, const ptrdiff_t *strides);

/* The bytes of an element, 0 for MHAP_OTHER; and its name: "f32", "bool", ... */
size_t mhap_type_size(mhap_type type);
const char *mhap_type_name(mhap_type type);

/* Checks that the type is f32, f16, bf16 or f64; mha.Error otherwise. */
int mhap_check_float(const mhap_state *state, const mhap_array *array, const char *name);

/* Checks that the elements of the last axis are contiguous; mha.Error with advice otherwise. */
int mhap_check_rows(const mhap_state *state, const mhap_array *array, const char *name);

/* Checks that the array has this shape; mha.Error otherwise. */
int mhap_check_shape(const mhap_state *state, const mhap_array *array, const char *name, int axes,
                     const ptrdiff_t *shape);

/* Writes a shape as "(2, 8, 10)" and returns `text`. */
enum { MHAP_SHAPE_TEXT = 24 * MHAP_MAX_AXES };
const char *mhap_shape_text(char text[MHAP_SHAPE_TEXT], int axes, const ptrdiff_t *shape);

ptrdiff_t mhap_count(int axes, const ptrdiff_t *shape);

/* The type mha.Array; py_array_type.c. */
int mhap_array_type_add(PyObject *module, mhap_state *state);

/* A new mha.Array of zeros, aligned to 64 bytes; *data is its memory. */
PyObject *mhap_array_new(mhap_state *state, mhap_type type, int axes, const ptrdiff_t *shape,
                         void **data);

/* An mha.Array that is a view of another one; see mhap_view_of(). */
PyObject *mhap_array_view(mhap_state *state, PyObject *memory, ptrdiff_t start, mhap_type type,
                          int axes, const ptrdiff_t *shape, const ptrdiff_t *strides);

#endif
