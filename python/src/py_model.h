/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers and models of libmha_model as Python objects. The types here are the compiled part:
 * they check memory and sizes, and the classes of mha/tokenizer.py and mha/model.py on top of them
 * have the names and defaults that users see.
 *
 *      py_tokenizer.c     the type mha._core.Tokenizer
 *      py_model.c         the type mha._core.Model: open, describe, prune
 *      py_model_call.c    its _run(): arrays -> mha_model_call, with captures
 *      py_model_arrays.c  contiguous arrays, sequences of rows, settings of heads
 *      py_model_text.c    its _encode(), _generate() and _score()
 *      py_model_state.c   the type mha._core.State
 */
#ifndef MHAP_MODEL_H
#define MHAP_MODEL_H

#include <mha/mha_model.h>

#include "py_numbers.h"
#include "py_options.h"

typedef struct mhap_model {
    PyObject ob_base;
    mha_model *model;
    mhap_state *state;
} mhap_model;

typedef struct mhap_sequences {
    PyObject ob_base;
    mha_state *sequences;
    PyObject *model; /* the mhap_model that it belongs to */
    ptrdiff_t count;
    bool busy;
} mhap_sequences;

/* As mhap_check(), for messages that name files, which must stay as they are. */
int mhap_model_check(const mhap_state *state, mha_status status, const char *message);

/* Checks that `object` is a model of this module; TypeError otherwise. */
int mhap_is_model(const mhap_state *state, PyObject *object);

/* --------------------------------------------------- py_model_arrays.c ----- */

/* Takes a C-contiguous array of `count` elements of this type (-1: any number), for reading or for
 * writing; mha.Error otherwise. None and NULL leave *array as it is. */
int mhap_flat(mhap_state *state, PyObject *object, const char *name, mhap_type type,
              ptrdiff_t count, bool to_write, mhap_array *array);

/* Sequences: starts[B+1] that grow from 0 up to the number of ids. */
typedef struct mhap_rows {
    mhap_array starts_array, ids_array;
    const int64_t *starts;
    const int32_t *ids;
    ptrdiff_t B, rows, longest;
} mhap_rows;

int mhap_rows_take(mhap_state *state, PyObject *starts, PyObject *ids, mhap_rows *rows);
void mhap_rows_release(mhap_rows *rows);

/* Settings of heads, from a tuple of three tuples (gates, modes, means), each with an array or None
 * for every kind of attention; None: no settings. */
typedef struct mhap_heads {
    mha_head_settings c;
    mhap_array arrays[3 * MHA_ATTENTION_KINDS];
    const mha_head_settings *settings; /* &c, or NULL */
} mhap_heads;

int mhap_heads_take(const mhap_model *self, PyObject *object, mhap_heads *heads);
void mhap_heads_release(mhap_heads *heads);

/* The heads of all layers of a kind of attention. */
ptrdiff_t mhap_heads_count(const mha_model *model, mha_attention_kind kind);

/* ---------------------------------------------------- py_model_state.c ----- */

/* Begins a call that uses a state: NULL without an exception for None, -1 with one if it belongs to
 * another model or is in use. */
int mhap_sequences_enter(const mhap_model *model, PyObject *object, mhap_sequences **sequences);
void mhap_sequences_leave(mhap_sequences *sequences);

/* --------------------------------------------- methods and their types ----- */

PyObject *mhap_model_run_call(PyObject *object, PyObject *args, PyObject *keywords);
PyObject *mhap_model_encode(PyObject *object, PyObject *args, PyObject *keywords);
PyObject *mhap_model_generate(PyObject *object, PyObject *args, PyObject *keywords);
PyObject *mhap_model_score(PyObject *object, PyObject *args, PyObject *keywords);

int mhap_tokenizer_type_add(PyObject *module, mhap_state *state);
int mhap_model_type_add(PyObject *module, mhap_state *state);
int mhap_sequences_type_add(PyObject *module, mhap_state *state);

#endif
