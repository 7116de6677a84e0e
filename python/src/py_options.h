/* SPDX-License-Identifier: MIT */
/* Converts slots of arguments (py_arguments.h) to mha_options, with everything they point to in one
 * struct. */
#ifndef MHAP_OPTIONS_H
#define MHAP_OPTIONS_H

#include "py_numbers.h"

enum { MHAP_MESSAGE = 512 };

/*
 * Usage, as in py_attention.c:
 *
 *      mhap_options o;
 *      mhap_options_begin(&o);
 *      mhap_starts_read(state, values, &o)         o.c.q_starts, o.c.k_starts; o.B, o.L, o.S
 *      ... make an mha_shape from the inputs ...
 *      mhap_options_read(state, values, &shape, &o)
 *      mhap_extras_make(...)                       py_result.h: lse, weights, statistics into o.c
 *      ... call the library with &o.c ...
 *      mhap_check(state, status, o.message)
 *      mhap_options_end(&o);                       also after an error
 */
typedef struct mhap_options {
    mha_options c; /* its message is the one below */
    char message[MHAP_MESSAGE];
    mha_statistics statistics;
    mhap_array mask, ignore_mask, bias; /* as they were given */
    bool mask_widened, bias_widened;    /* the last axis was 1, and a copy with S columns is used */
    mhap_kept kept;
    ptrdiff_t B, L, S; /* packed sequences: their number and longest; -1 if there are no starts */
} mhap_options;

void mhap_options_begin(mhap_options *o);

/* Reads the starts of packed sequences, which determine the shape. */
int mhap_starts_read(mhap_state *state, PyObject *const *values, mhap_options *o);

/* Reads all other options, except those that the call writes (out, lse, weights, statistics) and
 * threads.
 * Masks must broadcast to (B, H, L, S) of the shape, lengths have B numbers, and so on. G and Dv
 * of the shape are not 0. */
int mhap_options_read(mhap_state *state, PyObject *const *values, const mha_shape *shape,
                      mhap_options *o);

void mhap_options_end(mhap_options *o);

/* The truth value of an object; NULL is false. -1 with an exception on an error. */
int mhap_truth(PyObject *object);

/* The index of a str argument among `names` (NULL after the last). -1 with an exception that lists
 * them all. */
int mhap_choice(const mhap_state *state, PyObject *object, const char *name,
                const char *const *names);

#endif
