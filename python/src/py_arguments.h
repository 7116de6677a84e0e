/* SPDX-License-Identifier: MIT */
/* The arguments of calls, and their assignment to slots. */
#ifndef MHAP_ARGUMENTS_H
#define MHAP_ARGUMENTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef struct mhap_state mhap_state;

/* The keyword arguments that attention() and all functions built on it share. */
#define MHAP_OPTION_LIST(X)               \
    X(LAYOUT, "layout")                   \
    X(OUT, "out")                         \
    X(SCALE, "scale")                     \
    X(CAUSAL, "causal")                   \
    X(POSITION, "position")               \
    X(WINDOW, "window")                   \
    X(MASK, "mask")                       \
    X(IGNORE_MASK, "ignore_mask")         \
    X(BIAS, "bias")                       \
    X(ALIBI_SLOPES, "alibi_slopes")       \
    X(SINKS, "sinks")                     \
    X(SOFTCAP, "softcap")                 \
    X(QUERY_LENGTHS, "query_lengths")     \
    X(KEY_LENGTHS, "key_lengths")         \
    X(QUERY_STARTS, "query_starts")       \
    X(KEY_STARTS, "key_starts")           \
    X(QUERY_DOCUMENTS, "query_documents") \
    X(KEY_DOCUMENTS, "key_documents")     \
    X(DROPOUT, "dropout")                 \
    X(DROPOUT_SEED, "dropout_seed")       \
    X(GATES, "gates")                     \
    X(HEAD_MODES, "head_modes")           \
    X(HEAD_MEANS, "head_means")           \
    X(RETURN_LSE, "return_lse")           \
    X(RETURN_WEIGHTS, "return_weights")   \
    X(AVERAGE_WEIGHTS, "average_weights") \
    X(WEIGHTS_HEADS, "weights_heads")     \
    X(WEIGHTS_ROWS, "weights_rows")       \
    X(WEIGHTS_OUT, "weights_out")         \
    X(LSE_OUT, "lse_out")                 \
    X(STATISTICS, "statistics")           \
    X(ARITHMETIC, "arithmetic")           \
    X(THREADS, "threads")

#define MHAP_OPTION_SLOT(id, name) MHAP_##id,
typedef enum mhap_option { MHAP_OPTION_LIST(MHAP_OPTION_SLOT) MHAP_OPTIONS } mhap_option;
#undef MHAP_OPTION_SLOT

/* The bit of an option in mhap_signature.refused. */
#define MHAP_BIT(option) (UINT64_C(1) << (option))

/* The signature of a function: its own arguments, with those that may be given by position first,
 * and all options except the refused ones, by keyword. */
typedef struct mhap_signature {
    const char *function; /* "attention" */
    const char *const *own;
    int own_count;
    int positional; /* number of its own arguments that may be given by position */
    int required;   /* number of its own arguments that must be given */
    uint64_t refused;
} mhap_signature;

/*
 * Assigns the arguments of a METH_FASTCALL | METH_KEYWORDS call to own[own_count] and
 * options[MHAP_OPTIONS]: borrowed references, NULL if an argument is missing or None. TypeError for
 * unknown, repeated and missing ones.
 */
int mhap_arguments_fast(const mhap_state *state, const mhap_signature *signature,
                        PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **own,
                        PyObject **options);

/* The same for a call with a tuple and a dictionary, which may be NULL. */
int mhap_arguments(const mhap_state *state, const mhap_signature *signature, PyObject *args,
                   PyObject *keywords, PyObject **own, PyObject **options);

/* The interned names of options, in the state. */
int mhap_option_names_add(mhap_state *state);

#endif
