/* SPDX-License-Identifier: MIT */
/*
 * Layers and caches as Python objects.
 *
 *      py_layer.c           the type mha._core.Layer: creating, updating and pruning it
 *      py_layer_weights.c   a dictionary of arrays -> mha_layer_weights
 *      py_layer_call.c      one call: arrays and options -> mha_layer_call
 *      py_layer_tape.c      the type mha.Tape: a call that is kept, and its gradients
 *      py_cache.c           the type mha.KVCache
 *      py_cache_call.c      its append() and attention()
 *      py_presets.c         published configurations, random weights
 */
#ifndef MHAP_LAYER_H
#define MHAP_LAYER_H

#include "py_result.h"

/* A workspace that calls of an object reuse. */
typedef struct mhap_scratch {
    void *memory;
    size_t size;
    bool busy;
} mhap_scratch;

/* Takes `size` bytes, aligned to 64, until they are given back. NULL if another call uses them or
 * there is no memory; the library then allocates its own. */
void *mhap_scratch_take(mhap_scratch *scratch, size_t size);
void mhap_scratch_give(mhap_scratch *scratch, const void *memory);

/* ---------------------------------------------------------------- cache ----- */

typedef struct mhap_cache {
    PyObject ob_base;
    mha_cache *cache;
    int readers; /* running calls of all threads */
    bool written;
    mhap_scratch scratch;
} mhap_cache;

/* Begins to read or to change a cache: RuntimeError if a call of another thread conflicts. */
int mhap_cache_enter(mhap_cache *self, bool to_write);
void mhap_cache_leave(mhap_cache *self, bool to_write);

/* Reads the argument `sequences`: [B] numbers, NULL if it is not given. */
int mhap_sequences_read(mhap_state *state, PyObject *object, ptrdiff_t B, const int64_t **sequences,
                        mhap_kept *kept);

/* Methods of mha.KVCache in py_cache_call.c. */
PyObject *mhap_cache_append(PyObject *object, PyObject *args, PyObject *keywords);
PyObject *mhap_cache_attention(PyObject *object, PyObject *args, PyObject *keywords);

int mhap_cache_type_add(PyObject *module, mhap_state *state);

/* ---------------------------------------------------------------- layer ----- */

typedef struct mhap_layer {
    PyObject ob_base;
    mha_layer *layer;
    mhap_state *state;
    PyObject *rope;    /* the mha.Rope it was created with, or None */
    PyObject *threads; /* default of its calls; NULL: that of the module */
    bool batch_first;
    int runs;         /* running calls of all threads */
    unsigned version; /* how often its weights were changed */
    uint32_t given;   /* bit n: it has weight number n */
    mhap_scratch scratch;
} mhap_layer;

/* The weights that a layer can have, by number: the name in Python, and the field in C. */
enum { MHAP_MATRICES = 4, MHAP_WEIGHTS = 14 };
extern const char *const mhap_weight_names[MHAP_WEIGHTS];

/* The shape of a weight in a layer of this configuration, which has no defaults left; returns the
 * number of axes. */
int mhap_weight_shape(const mha_layer_config *config, int weight, ptrdiff_t shape[2]);

typedef struct mhap_layer_weights {
    mha_layer_weights c;
    mhap_array arrays[MHAP_WEIGHTS];
    uint32_t given;
} mhap_layer_weights;

/* Reads the argument `weights`, a dictionary. Call mhap_layer_weights_end() even after an error. */
int mhap_layer_weights_read(mhap_state *state, PyObject *dictionary, const mha_layer_config *config,
                            mhap_layer_weights *weights);
void mhap_layer_weights_end(mhap_layer_weights *weights);

/* Converts an mha.Rope or None for the library; frequencies are copied to memory of `kept`. */
int mhap_rope_read(mhap_state *state, PyObject *object, ptrdiff_t head_width, mha_rope *rope,
                   mhap_kept *kept);

/* A call with everything it owns. One that is all zero never began. */
typedef struct mhap_layer_run {
    mhap_layer *layer; /* a reference */
    mhap_cache *cache; /* a reference, or NULL */
    mhap_array query, key, value, output;
    bool batch_first;
    mhap_form form;
    mhap_options o;
    mhap_extras extras;
    mha_shape shape;
    mha_layer_call call;
    mha_pool *pool;
} mhap_layer_run;

/* Runs a call of `layer` with these arguments. If `with_tape` is set, the tape is kept in memory of
 * run->o.kept. Returns the object for the caller. Call mhap_layer_run_end() even after an error. */
PyObject *mhap_layer_run_call(mhap_layer *layer, PyObject *args, PyObject *keywords, bool with_tape,
                              mhap_layer_run *run);
void mhap_layer_run_end(mhap_layer_run *run);

/* A view of rows (b, i, c) of an array with 2 or 3 axes. */
mha_view mhap_rows_view(const mhap_array *array, bool batch_first);
mha_out mhap_rows_out(const mhap_array *array, bool batch_first);

/* The method Layer.tape(). */
PyObject *mhap_layer_tape(PyObject *object, PyObject *args, PyObject *keywords);

/* Adds the types of layers, mha.Tape and the presets to the module. */
int mhap_layer_types_add(PyObject *module, mhap_state *state);
int mhap_tape_type_add(PyObject *module, mhap_state *state);

/* -------------------------------------------------------------- presets ----- */

/* The functions _presets() and _uniform(), for mha/layer.py. */
int mhap_presets_add(PyObject *module);

#endif
