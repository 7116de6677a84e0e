/* SPDX-License-Identifier: MIT */
/* A call of the operator: query, key and value as tensors, with the resulting shape and options. */
#ifndef MHAP_CALL_H
#define MHAP_CALL_H

#include "py_result.h"

/* An array as a tensor (b, h, i, c). */
typedef struct mhap_tensor {
    const char *name;
    mhap_array array;
    mha_view view;
    bool batch, has_heads; /* which axes it has in addition to rows and width */
    ptrdiff_t B, heads, rows, width;
} mhap_tensor;

/* A call with everything it owns. */
typedef struct mhap_call {
    mhap_state *state;
    PyObject *values[MHAP_OPTIONS]; /* borrowed references, see py_arguments.h */
    bool heads_last;                /* layout "blhd" */
    mhap_tensor query, key, value;
    mhap_options o;
    mha_shape shape;
    mhap_form form;
    mhap_extras extras;
    mha_pool *pool;
} mhap_call;

/*
 * Takes the inputs, and makes the shape, options and pool of a call whose arguments are in
 * call->values. If the value is NULL, values have width 1. Inputs that do not match give an
 * mha.Error. The caller must call mhap_call_end() even after an error.
 */
int mhap_call_begin(mhap_state *state, PyObject *query, PyObject *key, PyObject *value,
                    mhap_call *call);
void mhap_call_end(mhap_call *call);

/* The argument `layout`; NULL is "bhld". */
int mhap_layout_read(const mhap_state *state, PyObject *layout, bool *heads_last);

/* Takes an array of floats as a tensor. Packed tensors have no batch axis. */
int mhap_tensor_read(mhap_state *state, PyObject *object, const char *name, bool heads_last,
                     bool packed, mhap_tensor *tensor);

/* Makes a tensor of an array of floats that has already been taken. */
int mhap_tensor_view(const mhap_state *state, bool heads_last, bool packed, mhap_tensor *tensor);

mha_out mhap_as_out(mha_view view);

/* The shape of a tensor with the axes of `like` and another width; returns the number of axes. */
int mhap_shape_like(const mhap_tensor *like, ptrdiff_t width, ptrdiff_t shape[MHAP_MAX_AXES]);

/* Takes a log-sum-exp for reading, f32 (f64 for f64): (B, H, L), packed (H, rows), with the axes of
 * the query. */
int mhap_lse_read(mhap_call *call, PyObject *object, const char *name, mhap_array *array,
                  mha_view *view);

#endif
