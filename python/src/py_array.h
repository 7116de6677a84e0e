/* SPDX-License-Identifier: MIT */
/*
 * Arrays of NumPy, PyTorch, JAX, and whoever else has the buffer protocol or __dlpack__, taken as
 * they lie in memory; and arrays made for results.
 *
 * Nothing is copied. An mhap_array that was taken holds its memory until mhap_release(); all zero
 * is an array that was never taken, and may be released too.
 */
#ifndef MHAP_ARRAY_H
#define MHAP_ARRAY_H

#include "py_state.h"

enum { MHAP_MAX_AXES = 8 };

/* Element types. Those that the library knows have its numbers. */
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

/* Where an array comes from, and so which kind of array a result is. */
typedef enum mhap_origin { MHAP_OWN, MHAP_NUMPY, MHAP_TORCH } mhap_origin;

typedef struct mhap_array {
    PyObject *object; /* what was taken; NULL: nothing */
    void *data;       /* never NULL in an array that was taken, even if it has no elements */
    mhap_type type;
    mhap_origin origin;
    bool read_only;
    int axes;
    ptrdiff_t shape[MHAP_MAX_AXES];
    ptrdiff_t strides[MHAP_MAX_AXES]; /* in elements */

    Py_buffer buffer; /* what keeps the memory: one of these two */
    void *held;
    void (*drop)(void *held);
} mhap_array;

/* Take an array to read. `name` is the argument it was given as, for errors: TypeError where the
 * object is no array, mha.Error where it is one that cannot be used from here (another device, a
 * tensor that requires a gradient while gradients are on). */
int mhap_take(mhap_state *state, PyObject *object, const char *name, mhap_array *array);

/* Take an array to write: not a read-only one. */
int mhap_take_out(mhap_state *state, PyObject *object, const char *name, mhap_array *array);

void mhap_release(mhap_array *array);

/*
 * A new array for a result, C-contiguous, its elements not set: of NumPy or PyTorch where `like`
 * is, else an mha.Array. *array is taken, to be written and released. bf16 is for results like a
 * bf16 array, of the types up to MHAP_F64 and MHAP_I64.
 */
PyObject *mhap_new(mhap_state *state, const mhap_array *like, mhap_type type, int axes,
                   const ptrdiff_t *shape, mhap_array *array);

/* An array over strided memory of an mha.Array, as NumPy, PyTorch or mha.Array like `origin`. The
 * memory lives as long as the view. Strides are in elements, the start in bytes. */
PyObject *mhap_view_of(mhap_state *state, mhap_origin origin, PyObject *memory, ptrdiff_t start,
                       mhap_type type, int axes, const ptrdiff_t *shape, const ptrdiff_t *strides);

/* Bytes of an element; 0 for MHAP_OTHER. "f32", "bool", ... */
size_t mhap_type_size(mhap_type type);
const char *mhap_type_name(mhap_type type);

/* One of f32, f16, bf16, f64; else mha.Error. */
int mhap_check_float(const mhap_state *state, const mhap_array *array, const char *name);

/* The elements of the last axis lie side by side; else mha.Error that says how to get there. */
int mhap_check_rows(const mhap_state *state, const mhap_array *array, const char *name);

/* The shape is just this one; else mha.Error. */
int mhap_check_shape(const mhap_state *state, const mhap_array *array, const char *name, int axes,
                     const ptrdiff_t *shape);

/* "(2, 8, 10)"; returns text. */
enum { MHAP_SHAPE_TEXT = 24 * MHAP_MAX_AXES };
const char *mhap_shape_text(char text[MHAP_SHAPE_TEXT], int axes, const ptrdiff_t *shape);

ptrdiff_t mhap_count(int axes, const ptrdiff_t *shape);

/* The type mha.Array; py_array_type.c. */
int mhap_array_type_add(PyObject *module, mhap_state *state);

/* A new mha.Array of memory that is 0, aligned to 64; *data is where it lies. */
PyObject *mhap_array_new(mhap_state *state, mhap_type type, int axes, const ptrdiff_t *shape,
                         void **data);

/* An mha.Array over memory of another one: see mhap_view_of(). */
PyObject *mhap_array_view(mhap_state *state, PyObject *memory, ptrdiff_t start, mhap_type type,
                          int axes, const ptrdiff_t *shape, const ptrdiff_t *strides);

#endif
