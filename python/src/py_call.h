/* SPDX-License-Identifier: MIT */
/* A call of the operator: query, key and value as tensors, and the shape and options they make. */
#ifndef MHAP_CALL_H
#define MHAP_CALL_H

#include "py_result.h"

/* An array seen as (b, h, i, c). */
typedef struct mhap_tensor {
    const char *name;
    mhap_array array;
    mha_view view;
    bool batch, has_heads; /* the axes it has beside rows and width */
    ptrdiff_t B, heads, rows, width;
} mhap_tensor;

/* All that a call holds on to. */
typedef struct mhap_call {
    mhap_state *state;
    PyObject *values[MHAP_OPTIONS]; /* borrowed: see arguments.h */
    bool heads_last;                /* layout "blhd" */
    mhap_tensor query, key, value;
    mhap_options o;
    mha_shape shape;
    mhap_form form;
    mhap_extras extras;
    mha_pool *pool;
} mhap_call;

/*
 * Take the inputs, and make the shape, options and pool of a call whose arguments are in
 * call->values. The value may be NULL: values of width 1 then. Inputs that do not go together are
 * an mha.Error. After success or error, mhap_call_end().
 */
int mhap_call_begin(mhap_state *state, PyObject *query, PyObject *key, PyObject *value,
                    mhap_call *call);
void mhap_call_end(mhap_call *call);

/* The argument `layout`; NULL is "bhld". */
int mhap_layout_read(const mhap_state *state, PyObject *layout, bool *heads_last);

/* Take an array of floats as a tensor. Packed tensors have no batch axis. */
int mhap_tensor_read(mhap_state *state, PyObject *object, const char *name, bool heads_last,
                     bool packed, mhap_tensor *tensor);

/* View an array of floats that has been taken. */
int mhap_tensor_view(const mhap_state *state, bool heads_last, bool packed, mhap_tensor *tensor);

mha_out mhap_as_out(mha_view view);

/* The shape of a tensor with the axes of `like` and another width; returns its axes. */
int mhap_shape_like(const mhap_tensor *like, ptrdiff_t width, ptrdiff_t shape[MHAP_MAX_AXES]);

/* Rows of a log-sum-exp to read, f32 (f64 for f64): (B, H, L), packed (H, rows), with the axes that
 * the query has. */
int mhap_lse_read(mhap_call *call, PyObject *object, const char *name, mhap_array *array,
                  mha_view *view);

#endif
