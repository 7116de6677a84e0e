/* SPDX-License-Identifier: MIT */
/* Reads numbers from Python objects: single ones, nested lists, and small arrays of any type. */
#include "py_numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *mhap_keep(mhap_kept *kept, size_t size)
{
    void *const memory = kept->count < MHAP_KEPT ? malloc(size ? size : 1) : NULL;
    if (!memory) {
        PyErr_NoMemory();
        return NULL;
    }
    kept->memory[kept->count++] = memory;
    return memory;
}

void mhap_kept_free(mhap_kept *kept)
{
    while (kept->count > 0)
        free(kept->memory[--kept->count]);
}

/* Whether the current exception means that an object is not a number of this kind. */
static bool no_number(void)
{
    return PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_OverflowError);
}

int mhap_integer(PyObject *object, const char *name, ptrdiff_t *value)
{
    *value = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    if (*value != -1 || !PyErr_Occurred())
        return 0;
    if (!no_number())
        return -1;
    PyErr_Clear();
    return mhap_wrong_kind(name, object, "it must be an integer of at most 64 bits");
}

int mhap_number(PyObject *object, const char *name, double *value)
{
    *value = PyFloat_AsDouble(object);
    if (*value != -1.0 || !PyErr_Occurred())
        return 0;
    if (!no_number())
        return -1;
    PyErr_Clear();
    return mhap_wrong_kind(name, object, "it must be a number");
}

/* ---------------------------------------------------------------- lists ----- */

/* Reads numbers from an array or from nested lists, one element at a time. */
typedef struct reader {
    const char *name;
    mhap_array array; /* if its object is NULL, numbers come from lists */
    int axes;
    ptrdiff_t shape[MHAP_MAX_AXES];
} reader;

static bool is_list(PyObject *object)
{
    return PyList_Check(object) || PyTuple_Check(object);
}

/* The items of a list or tuple itself, whatever methods a subclass overrides. */
static Py_ssize_t list_size(PyObject *list)
{
    return PyList_Check(list) ? PyList_Size(list) : PyTuple_Size(list);
}

/* A new reference; IndexError if the list has become shorter meanwhile. */
static PyObject *list_item(PyObject *list, Py_ssize_t n)
{
    return Py_XNewRef(PyList_Check(list) ? PyList_GetItem(list, n) : PyTuple_GetItem(list, n));
}

/* The extents of nested lists, from the first item of each. */
static int list_shape(PyObject *object, reader *r)
{
    Py_INCREF(object);
    while (is_list(object) && r->axes < MHAP_MAX_AXES) {
        const Py_ssize_t length = list_size(object);
        r->shape[r->axes++] = length;
        PyObject *const first = length > 0 ? list_item(object, 0) : NULL;
        Py_DECREF(object);
        if (!first)
            return length > 0 ? -1 : 0;
        object = first;
    }
    Py_DECREF(object);
    return 0;
}

static int reader_begin(mhap_state *state, PyObject *object, const char *name, reader *r)
{
    memset(r, 0, sizeof *r);
    r->name = name;
    if (is_list(object))
        return list_shape(object, r);
    if (PyLong_Check(object) || PyFloat_Check(object) || PyUnicode_Check(object))
        return mhap_wrong_kind(name, object, "it must be a list or an array of numbers");
    if (mhap_take(state, object, name, &r->array))
        return -1;
    r->axes = r->array.axes;
    memcpy(r->shape, r->array.shape, sizeof r->shape);
    return 0;
}

int mhap_axes(mhap_state *state, PyObject *object, const char *name)
{
    reader r;
    const int status = reader_begin(state, object, name, &r);
    mhap_release(&r.array);
    return status ? -1 : r.axes;
}

enum { ELEMENT_NAME = 64 };

static const char *element_name(const reader *r, char text[ELEMENT_NAME])
{
    snprintf(text, ELEMENT_NAME, "an element of %s", r->name);
    return text;
}

/* Stores one number: `item`, or if that is NULL the element of the array at `data`. */
typedef int (*store)(const reader *r, PyObject *item, const void *data, ptrdiff_t number, void *to);

static int each_of_list(const reader *r, PyObject *object, int axis, ptrdiff_t *number, store put,
                        void *to)
{
    if (axis == r->axes)
        return put(r, object, NULL, (*number)++, to);
    if (!is_list(object) || list_size(object) != r->shape[axis]) {
        PyErr_Format(PyExc_TypeError, "%s: its lists are of different lengths", r->name);
        return -1;
    }
    for (ptrdiff_t n = 0; n < r->shape[axis]; n++) {
        PyObject *item = list_item(object, n);
        const int status = item ? each_of_list(r, item, axis + 1, number, put, to) : -1;
        Py_XDECREF(item);
        if (status)
            return -1;
    }
    return 0;
}

static int each_of_array(const reader *r, ptrdiff_t at, int axis, ptrdiff_t *number, store put,
                         void *to)
{
    const mhap_array *const a = &r->array;
    if (axis == r->axes)
        return put(r, NULL, (const char *)a->data + at * (ptrdiff_t)mhap_type_size(a->type),
                   (*number)++, to);
    for (ptrdiff_t n = 0; n < r->shape[axis]; n++)
        if (each_of_array(r, at + n * a->strides[axis], axis + 1, number, put, to))
            return -1;
    return 0;
}

/* Stores all numbers in C order and ends the reader. Returns -1, with an exception, on an error or
 * if `to` is NULL because there was no memory. */
static int reader_end(PyObject *object, reader *r, store put, void *to)
{
    ptrdiff_t number = 0;
    const int status = !to               ? -1
                       : r->array.object ? each_of_array(r, 0, 0, &number, put, to)
                                         : each_of_list(r, object, 0, &number, put, to);
    mhap_release(&r->array);
    return status;
}

/* ------------------------------------------------------------- elements ----- */

/* The element at `data`, which need not be aligned. */
#define READ(type)                            \
    ({                                        \
        type value_;                          \
        memcpy(&value_, data, sizeof value_); \
        value_;                               \
    })

static int element_integer(const reader *r, const void *data, int64_t *value)
{
    switch (r->array.type) {
    case MHAP_I8:
        *value = (READ(uint8_t) ^ 128) - 128;
        return 0;
    case MHAP_BOOL:
    case MHAP_U8:
        *value = READ(uint8_t);
        return 0;
    case MHAP_I16:
        *value = READ(int16_t);
        return 0;
    case MHAP_U16:
        *value = READ(uint16_t);
        return 0;
    case MHAP_I32:
        *value = READ(int32_t);
        return 0;
    case MHAP_U32:
        *value = READ(uint32_t);
        return 0;
    case MHAP_I64:
    case MHAP_U64:
        *value = READ(int64_t);
        if (r->array.type == MHAP_I64 || *value >= 0)
            return 0;
        PyErr_Format(PyExc_TypeError, "%s has a number above 2**63 - 1", r->name);
        return -1;
    default:
        PyErr_Format(PyExc_TypeError, "%s has elements of %s%s; it must be integers", r->name,
                     r->array.type == MHAP_OTHER ? "" : "type ", mhap_type_name(r->array.type));
        return -1;
    }
}

static int any_integer(const reader *r, PyObject *item, const void *data, int64_t *value)
{
    if (!item)
        return element_integer(r, data, value);
    ptrdiff_t number = 0;
    char name[ELEMENT_NAME];
    const int status = mhap_integer(item, element_name(r, name), &number);
    *value = number;
    return status;
}

static int put_int64(const reader *r, PyObject *item, const void *data, ptrdiff_t number, void *to)
{
    return any_integer(r, item, data, (int64_t *)to + number);
}

/* Refuses booleans: as indices they would be read as 1 and 0 instead of as a mask. */
static int put_chosen(const reader *r, PyObject *item, const void *data, ptrdiff_t number, void *to)
{
    if (item ? !PyBool_Check(item) : r->array.type != MHAP_BOOL)
        return put_int64(r, item, data, number, to);
    PyErr_Format(PyExc_TypeError,
                 "%s has elements of type bool; it must be integers, which np.flatnonzero() makes "
                 "of them",
                 r->name);
    return -1;
}

static int put_int32(const reader *r, PyObject *item, const void *data, ptrdiff_t number, void *to)
{
    int64_t value = 0;
    if (any_integer(r, item, data, &value))
        return -1;
    if (value < INT32_MIN || value > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: %lld is not a number of 32 bits", r->name,
                     (long long)value);
        return -1;
    }
    ((int32_t *)to)[number] = (int32_t)value;
    return 0;
}

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static float from_f16(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023, sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31)
        return fraction != 0 ? (float)NAN : (float)sign * INFINITY;
    if (exponent == 0)
        return (float)(sign * fraction * 0x1p-24);
    return (float)(sign * (1024 + fraction) * (double)(1u << exponent) * 0x1p-25);
}

static int element_float(const reader *r, const void *data, float *value)
{
    switch (r->array.type) {
    case MHAP_F32:
        *value = READ(float);
        return 0;
    case MHAP_F64:
        *value = (float)READ(double);
        return 0;
    case MHAP_BF16:
        *value = from_bf16(READ(uint16_t));
        return 0;
    case MHAP_F16:
        *value = from_f16(READ(uint16_t));
        return 0;
    default: {
        int64_t whole = 0;
        const int status = element_integer(r, data, &whole);
        *value = (float)whole;
        return status;
    }
    }
}

static int put_float(const reader *r, PyObject *item, const void *data, ptrdiff_t number, void *to)
{
    float *const value = (float *)to + number;
    if (!item)
        return element_float(r, data, value);
    double wide = 0;
    char name[ELEMENT_NAME];
    const int status = mhap_number(item, element_name(r, name), &wide);
    *value = (float)wide;
    return status;
}

/* ------------------------------------------------------------ functions ----- */

static int fail_reader(const mhap_state *state, reader *r, int axes, const ptrdiff_t *shape)
{
    char has[MHAP_SHAPE_TEXT], wanted[MHAP_SHAPE_TEXT];
    mhap_release(&r->array);
    return mhap_fail(state, MHA_ERR_SHAPE, "%s has shape %s; it must be %s", r->name,
                     mhap_shape_text(has, r->axes, r->shape), mhap_shape_text(wanted, axes, shape));
}

static const int64_t *read_integers(mhap_state *state, PyObject *object, const char *name,
                                    ptrdiff_t wanted, store put, ptrdiff_t *count, mhap_kept *kept)
{
    reader r;
    if (reader_begin(state, object, name, &r))
        return NULL;
    if (r.axes != 1 || (wanted >= 0 && r.shape[0] != wanted)) {
        if (wanted >= 0) {
            fail_reader(state, &r, 1, &wanted);
            return NULL;
        }
        mhap_release(&r.array);
        mhap_fail(state, MHA_ERR_SHAPE, "%s has %d axes; it must be a list of integers", name,
                  r.axes);
        return NULL;
    }
    *count = r.shape[0];
    int64_t *const values = mhap_keep(kept, (size_t)*count * sizeof *values);
    return reader_end(object, &r, put, values) == 0 ? values : NULL;
}

const int64_t *mhap_integers(mhap_state *state, PyObject *object, const char *name,
                             ptrdiff_t wanted, ptrdiff_t *count, mhap_kept *kept)
{
    return read_integers(state, object, name, wanted, put_int64, count, kept);
}

const int64_t *mhap_chosen(mhap_state *state, PyObject *object, const char *name, ptrdiff_t wanted,
                           ptrdiff_t *count, mhap_kept *kept)
{
    return read_integers(state, object, name, wanted, put_chosen, count, kept);
}

const float *mhap_floats(mhap_state *state, PyObject *object, const char *name, int axes,
                         const ptrdiff_t *shape, mhap_kept *kept)
{
    reader r;
    if (reader_begin(state, object, name, &r))
        return NULL;
    if (r.axes != axes || memcmp(r.shape, shape, (size_t)axes * sizeof *shape) != 0) {
        fail_reader(state, &r, axes, shape);
        return NULL;
    }
    float *const values = mhap_keep(kept, (size_t)mhap_count(axes, shape) * sizeof *values);
    return reader_end(object, &r, put_float, values) == 0 ? values : NULL;
}

const int32_t *mhap_documents(mhap_state *state, PyObject *object, const char *name, ptrdiff_t B,
                              ptrdiff_t rows, mhap_kept *kept)
{
    const ptrdiff_t shape[] = {B, rows};
    reader r;
    if (reader_begin(state, object, name, &r))
        return NULL;
    const bool flat = B == 1 && r.axes == 1 && r.shape[0] >= rows;
    if (!flat && (r.axes != 2 || r.shape[0] != B || r.shape[1] != rows)) {
        fail_reader(state, &r, B == 1 ? 1 : 2, B == 1 ? shape + 1 : shape);
        return NULL;
    }
    int32_t *const values = mhap_keep(kept, (size_t)mhap_count(r.axes, r.shape) * sizeof *values);
    return reader_end(object, &r, put_int32, values) == 0 ? values : NULL;
}
