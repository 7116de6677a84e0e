/* SPDX-License-Identifier: MIT */
/* Assigns the arguments of a call to slots, by position and by name, and reports unknown, repeated
 * and missing ones as Python does. */
#include "py_arguments.h"
#include "py_state.h"

#include <string.h>

#define OPTION_NAME(id, name) name,
static const char *const option_names[MHAP_OPTIONS] = {MHAP_OPTION_LIST(OPTION_NAME)};
#undef OPTION_NAME

int mhap_option_names_add(mhap_state *state)
{
    for (int n = 0; n < MHAP_OPTIONS; n++) {
        state->option_names[n] = PyUnicode_InternFromString(option_names[n]);
        if (!state->option_names[n])
            return -1;
    }
    return 0;
}

/* A call whose arguments are being assigned. */
typedef struct sorting {
    const mhap_state *state;
    const mhap_signature *signature;
    PyObject **own, **options;
    uint64_t own_given, options_given; /* bits of those that were given, even as None */
} sorting;

static int give(const char *function, const char *name, PyObject *value, uint64_t bit,
                uint64_t *given, PyObject **slot)
{
    if (*given & bit) {
        PyErr_Format(PyExc_TypeError, "%s() got two values for argument '%s'", function, name);
        return -1;
    }
    *given |= bit;
    *slot = value == Py_None ? NULL : value;
    return 0;
}

static int give_own(sorting *s, int n, PyObject *value)
{
    return give(s->signature->function, s->signature->own[n], value, UINT64_C(1) << n,
                &s->own_given, &s->own[n]);
}

static int give_option(sorting *s, int n, PyObject *value)
{
    return give(s->signature->function, option_names[n], value, MHAP_BIT(n), &s->options_given,
                &s->options[n]);
}

/* Names in a call are interned, as ours are, so pointers are compared first; only names that were
 * computed at run time are not interned. */
static int find_option(const sorting *s, PyObject *name)
{
    for (int n = 0; n < MHAP_OPTIONS; n++)
        if (name == s->state->option_names[n])
            return n;
    for (int n = 0; n < MHAP_OPTIONS; n++)
        if (PyUnicode_CompareWithASCIIString(name, option_names[n]) == 0)
            return n;
    return -1;
}

/* Names of options in other libraries, and their names here, for messages. */
static const struct {
    const char *other;
    mhap_option option;
    const char *here;
} other_names[] = {
    {"is_causal", MHAP_CAUSAL, "causal"},
    {"attn_mask", MHAP_MASK, "mask where True attends, ignore_mask where True hides"},
    {"key_padding_mask", MHAP_IGNORE_MASK, "ignore_mask=key_padding_mask[:, None, None, :]"},
    {"attention_mask", MHAP_MASK, "mask=attention_mask[:, None, None, :] != 0"},
    {"attn_bias", MHAP_BIAS, "bias"},
    {"dropout_p", MHAP_DROPOUT, "dropout"},
    {"need_weights", MHAP_RETURN_WEIGHTS, "return_weights"},
    {"output_attentions", MHAP_RETURN_WEIGHTS, "return_weights"},
    {"average_attn_weights", MHAP_AVERAGE_WEIGHTS, "average_weights"},
    {"softmax_scale", MHAP_SCALE, "scale"},
    {"scaling", MHAP_SCALE, "scale"},
    {"window_size", MHAP_WINDOW, "window"},
    {"cu_seqlens_q", MHAP_QUERY_STARTS, "query_starts"},
    {"cu_seqlens_k", MHAP_KEY_STARTS, "key_starts"},
};

static int unknown_name(const sorting *s, PyObject *name)
{
    const char *here = NULL;
    for (size_t n = 0; n < sizeof other_names / sizeof *other_names && !here; n++)
        if (!(s->signature->refused & MHAP_BIT(other_names[n].option)) &&
            PyUnicode_CompareWithASCIIString(name, other_names[n].other) == 0)
            here = other_names[n].here;
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'%s%s",
                 s->signature->function, name, here ? "; here it is " : "", here ? here : "");
    return -1;
}

static int give_named(sorting *s, PyObject *name, PyObject *value)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "%s(): keywords must be strings", s->signature->function);
        return -1;
    }
    for (int n = 0; n < s->signature->own_count; n++)
        if (PyUnicode_CompareWithASCIIString(name, s->signature->own[n]) == 0)
            return give_own(s, n, value);
    const int n = find_option(s, name);
    if (n >= 0 && !(s->signature->refused & MHAP_BIT(n)))
        return give_option(s, n, value);
    return unknown_name(s, name);
}

static sorting begin(const mhap_state *state, const mhap_signature *signature, PyObject **own,
                     PyObject **options)
{
    memset(own, 0, (size_t)signature->own_count * sizeof(PyObject *));
    memset(options, 0, MHAP_OPTIONS * sizeof(PyObject *));
    return (sorting){state, signature, own, options, 0, 0};
}

static int check_count(const mhap_signature *signature, Py_ssize_t count)
{
    if (count <= signature->positional)
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "%s() takes %d arguments by position but %zd were given; name the others",
                 signature->function, signature->positional, count);
    return -1;
}

static int check_required(const sorting *s)
{
    for (int n = 0; n < s->signature->required; n++)
        if (!s->own[n]) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", s->signature->function,
                         s->signature->own[n]);
            return -1;
        }
    return 0;
}

int mhap_arguments_fast(const mhap_state *state, const mhap_signature *signature,
                        PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **own,
                        PyObject **options)
{
    sorting s = begin(state, signature, own, options);
    if (check_count(signature, count))
        return -1;
    for (Py_ssize_t n = 0; n < count; n++)
        give_own(&s, (int)n, args[n]);
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t n = 0; n < named; n++)
        if (give_named(&s, PyTuple_GetItem(names, n), args[count + n]))
            return -1;
    return check_required(&s);
}

int mhap_arguments(const mhap_state *state, const mhap_signature *signature, PyObject *args,
                   PyObject *keywords, PyObject **own, PyObject **options)
{
    sorting s = begin(state, signature, own, options);
    const Py_ssize_t count = PyTuple_Size(args);
    if (check_count(signature, count))
        return -1;
    for (Py_ssize_t n = 0; n < count; n++)
        give_own(&s, (int)n, PyTuple_GetItem(args, n));
    PyObject *name, *value;
    for (Py_ssize_t at = 0; keywords && PyDict_Next(keywords, &at, &name, &value);)
        if (give_named(&s, name, value))
            return -1;
    return check_required(&s);
}
