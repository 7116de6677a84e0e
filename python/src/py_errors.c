/* SPDX-License-Identifier: MIT */
/* mha.Error, and the translation of the library's messages, which name C fields, into messages that
 * name the arguments in Python. */
#include "py_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 1024 };

/* Names in the library's messages, and the corresponding arguments in Python. If one name is a
 * prefix of another, the longer one comes first. */
static const struct {
    const char *c, *python;
} words[] = {
    {"options.position (MHA_POSITION_TOP_LEFT, _BOTTOM_RIGHT or _OFFSET)",
     "position (\"top-left\", \"bottom-right\", a number, or one number per batch)"},
    {"options.attend_mask", "mask"},
    {"options.add_mask", "mask"},
    {"options.offsets", "position"},
    {"options.weights_head_count", "the number of weights_heads"},
    {"options.", ""},
    {"gradients.d_output_type", "d_output"},
    {"gradients.d_o_type", "d_output"},
    {"gradients.d_o", "d_output"},
    {"gradients.d_lse", "d_lse"},
    {"gradients.d_", "the gradient of "},
    {"gradients.", "the gradient of "},
    {" is NULL", " is None"},
    {"shape.q_type", "the type of query"},
    {"shape.k_type", "the type of key"},
    {"shape.v_type", "the type of value"},
    {"shape.o_type", "the type of out"},
    {"call.output", "out"},
    {"call.", ""},
    {"shape.", ""},
    {"k_documents", "key_documents"},
    {"q_documents", "query_documents"},
    {"q_lengths", "query_lengths"},
    {"k_lengths", "key_lengths"},
    {"q_starts", "query_starts"},
    {"k_starts", "key_starts"},
    {"add_mask_type", "the type of mask"},
    {"bias_type", "the type of bias"},
    {"weights_type", "the type of weights_out"},
    {"MHA_CACHE_STORE", "\"store\""},
    {"MHA_CACHE_RECALL", "\"recall\""},
    {"MHA_CACHE_STEP", "\"step\""},
    {"use an MHA_HEAD_ value", "use \"normal\", \"uniform\" or \"mean\""},
    {"MHA_HEAD_MEAN", "\"mean\""},
    {"MHA_F32", "f32"},
    {"MHA_F16", "f16"},
    {"MHA_BF16", "bf16"},
    {"MHA_F64", "f64"},
};

/* One-letter names are replaced only at the beginning of a message or as its last word. */
static const struct {
    char c;
    const char *python;
} tensors[] = {{'q', "query"}, {'k', "key"}, {'v', "value"}, {'o', "out"}};

static const char *tensor_name(char letter)
{
    for (size_t n = 0; n < sizeof tensors / sizeof *tensors; n++)
        if (tensors[n].c == letter)
            return tensors[n].python;
    return NULL;
}

static bool is_word_end(char c)
{
    return c == 0 || c == ' ' || c == ';' || c == ',' || c == ':';
}

/* The Python name for the text at `at`, or NULL; *length is the length of what it replaces. */
static const char *python_word(const char *text, const char *at, size_t *length)
{
    for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
        *length = strlen(words[n].c);
        if (strncmp(at, words[n].c, *length) == 0)
            return words[n].python;
    }
    *length = 1;
    const bool word = (at == text || at[-1] == ' ') && is_word_end(at[1]);
    return word ? tensor_name(*at) : NULL;
}

static void translate(const char *text, char *result, size_t size)
{
    size_t end = 0;
    for (const char *at = text; *at;) {
        size_t length = 1;
        const char *const word = python_word(text, at, &length);
        const int written = word ? snprintf(result + end, size - end, "%s", word)
                                 : snprintf(result + end, size - end, "%c", *at);
        end += (size_t)written;
        if (end >= size)
            return;
        at += word ? length : 1;
    }
    result[end] = 0;
}

/* Extracts "MHA_ERR_SHAPE" from "MHA_ERR_SHAPE: impossible shape". */
static PyObject *code_name(mha_status status)
{
    const char *const text = mha_status_string(status);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)strcspn(text, ":"));
}

static int set_attribute(PyObject *object, const char *name, PyObject *value)
{
    const int result = value ? PyObject_SetAttrString(object, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

static int raise_error(const mhap_state *state, mha_status status, const char *text)
{
    /* Text of the caller in the message may have been cut within a UTF-8 character. */
    PyObject *sentence = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *error = sentence ? PyObject_CallFunctionObjArgs(state->error, sentence, NULL) : NULL;
    Py_XDECREF(sentence);
    if (error && set_attribute(error, "status", PyLong_FromLong(status)) == 0 &&
        set_attribute(error, "code", code_name(status)) == 0)
        PyErr_SetObject(state->error, error);
    Py_XDECREF(error);
    return -1;
}

int mhap_fail(const mhap_state *state, mha_status status, const char *format, ...)
{
    char text[TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return raise_error(state, status, text);
}

int mhap_check(const mhap_state *state, mha_status status, const char *message)
{
    if (status == MHA_OK)
        return 0;
    char text[TEXT];
    if (message && *message)
        translate(message, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s", mha_status_string(status));
    if (status == MHA_ERR_MEMORY) {
        PyErr_SetString(PyExc_MemoryError, text);
        return -1;
    }
    return raise_error(state, status, text);
}

int mhap_wrong_kind(const char *name, PyObject *object, const char *wanted)
{
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    const Py_UCS4 letter = type && PyUnicode_GetLength(type) > 0 ? PyUnicode_ReadChar(type, 0) : 0;
    const bool vowel = letter > 0 && letter < 128 && strchr("aeiouAEIOU", (int)letter);
    if (type)
        PyErr_Format(PyExc_TypeError, "%s is %s %U; %s", name, vowel ? "an" : "a", type, wanted);
    Py_XDECREF(type);
    return -1;
}

/* The first line only; PyTorch may append lines that do not help users. */
static PyObject *first_line(PyObject *value)
{
    PyObject *text = value ? PyObject_Str(value) : NULL;
    PyObject *lines = text ? PyUnicode_Splitlines(text, 0) : NULL;
    PyObject *line = lines && PyList_Size(lines) > 0 ? PyList_GetItem(lines, 0) : text;
    Py_XINCREF(line);
    Py_XDECREF(lines);
    Py_XDECREF(text);
    return line;
}

/* Exceptions that are not about an argument, and are kept. */
static bool is_other_matter(const mhap_state *state)
{
    return PyErr_ExceptionMatches(state->error) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
           !PyErr_ExceptionMatches(PyExc_Exception);
}

int mhap_explain_error(const mhap_state *state, const char *name)
{
    PyObject *type, *value, *trace;
    if (is_other_matter(state))
        return -1;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *line = first_line(value);
    const char *const text = line ? PyUnicode_AsUTF8AndSize(line, NULL) : NULL;
    if (text)
        mhap_fail(state, MHA_ERR_FLAG, "%s cannot be used here: %s", name, text);
    Py_XDECREF(line);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

int mhap_errors_add(PyObject *module, mhap_state *state)
{
    PyObject *attributes = Py_BuildValue("{sisO}", "status", 0, "code", Py_None);
    state->error = attributes
                       ? PyErr_NewExceptionWithDoc(
                             "mha.Error",
                             "An invalid argument; the message describes it.\n\n"
                             "status is the number that the C library has for it, code its name,\n"
                             "such as \"MHA_ERR_SHAPE\".",
                             PyExc_ValueError, attributes)
                       : NULL;
    Py_XDECREF(attributes);
    return state->error ? PyModule_AddObjectRef(module, "Error", state->error) : -1;
}
