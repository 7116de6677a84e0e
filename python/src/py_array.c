/* SPDX-License-Identifier: MIT */
/*
 * Accepts arrays of other libraries without a copy. There are three ways, and the first that an
 * object supports is used:
 *
 *      torch.Tensor itself     the C functions behind its __dlpack__
 *      the buffer protocol     NumPy, memoryview, array.array, mha.Array
 *      __dlpack__              everything else: JAX, subclasses of torch.Tensor, ...
 *
 * bfloat16 arrays of NumPy (ml_dtypes) have no buffer format and are taken as a view of 16-bit
 * integers.
 */
#include "py_array.h"
#include "py_dlpack.h"
#include "py_libraries.h"

#include <stdio.h>
#include <string.h>

/* The address of arrays without elements; it is never read or written. */
static const _Alignas(64) char nowhere[64];

static const struct {
    const char *name;
    uint8_t code, size;
} types[] = {
    [MHAP_F32] = {"f32", DL_FLOAT, 4},    [MHAP_F16] = {"f16", DL_FLOAT, 2},
    [MHAP_BF16] = {"bf16", DL_BFLOAT, 2}, [MHAP_F64] = {"f64", DL_FLOAT, 8},
    [MHAP_I8] = {"i8", DL_INT, 1},        [MHAP_BOOL] = {"bool", DL_BOOL, 1},
    [MHAP_U8] = {"u8", DL_UINT, 1},       [MHAP_I16] = {"i16", DL_INT, 2},
    [MHAP_U16] = {"u16", DL_UINT, 2},     [MHAP_I32] = {"i32", DL_INT, 4},
    [MHAP_U32] = {"u32", DL_UINT, 4},     [MHAP_I64] = {"i64", DL_INT, 8},
    [MHAP_U64] = {"u64", DL_UINT, 8},     [MHAP_OTHER] = {"a type unknown here", 255, 0},
};

size_t mhap_type_size(mhap_type type)
{
    return types[type].size;
}

const char *mhap_type_name(mhap_type type)
{
    return types[type].name;
}

uint8_t mhap_type_code(mhap_type type)
{
    return types[type].code;
}

static mhap_type type_of(unsigned code, size_t size)
{
    for (mhap_type type = MHAP_F32; type < MHAP_OTHER; type++)
        if (types[type].code == code && types[type].size == size)
            return type;
    return MHAP_OTHER;
}

ptrdiff_t mhap_count(int axes, const ptrdiff_t *shape)
{
    ptrdiff_t count = 1;
    for (int n = 0; n < axes; n++)
        count *= shape[n];
    return count;
}

const char *mhap_shape_text(char text[MHAP_SHAPE_TEXT], int axes, const ptrdiff_t *shape)
{
    int length = snprintf(text, MHAP_SHAPE_TEXT, "(");
    for (int n = 0; n < axes; n++)
        length += snprintf(text + length, (size_t)(MHAP_SHAPE_TEXT - length), "%s%td",
                           n > 0 ? ", " : "", shape[n]);
    snprintf(text + length, (size_t)(MHAP_SHAPE_TEXT - length), axes == 1 ? ",)" : ")");
    return text;
}

/* Checks that extents are not negative and that the bytes do not overflow, even with elements of
 * the widest type. Views with stride 0 can claim any size. */
static int check_extents(const mhap_state *state, const char *name, const mhap_array *array)
{
    ptrdiff_t bytes = 8;
    char text[MHAP_SHAPE_TEXT];
    for (int n = 0; n < array->axes; n++) {
        const ptrdiff_t extent = array->shape[n];
        if (extent < 0 || __builtin_mul_overflow(bytes, extent > 1 ? extent : 1, &bytes))
            return mhap_fail(state, extent < 0 ? MHA_ERR_SHAPE : MHA_ERR_OVERFLOW,
                             "%s has the shape %s, which %s", name,
                             mhap_shape_text(text, array->axes, array->shape),
                             extent < 0 ? "has a negative extent" : "is larger than any memory");
    }
    return 0;
}

/* Checks that all ways have in common; memory, extents and strides are already set. */
static int finish(const mhap_state *state, const char *name, mhap_array *array)
{
    if (mhap_count(array->axes, array->shape) == 0)
        array->data = (void *)nowhere;
    if (!array->data)
        return mhap_fail(state, MHA_ERR_NULL, "%s has elements but no memory", name);
    return 0;
}

static int too_many_axes(const mhap_state *state, const char *name, int axes)
{
    return mhap_fail(state, MHA_ERR_SHAPE, "%s has %d axes; arrays here have at most %d", name,
                     axes, MHAP_MAX_AXES);
}

/* ------------------------------------------------------------- buffers ----- */

static mhap_type buffer_type(const Py_buffer *buffer)
{
    const char *format = buffer->format ? buffer->format : "B";
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    if (format[0] == 0 || format[1] != 0)
        return MHAP_OTHER;
    const size_t size = (size_t)buffer->itemsize;
    if (strchr("efd", *format))
        return type_of(DL_FLOAT, size);
    if (*format == '?')
        return type_of(DL_BOOL, size);
    if (strchr("bhilqn", *format))
        return type_of(DL_INT, size);
    return strchr("BHILQN", *format) ? type_of(DL_UINT, size) : MHAP_OTHER;
}

/* Strides in bytes. Some exporters, such as ctypes, leave them out although they were requested;
 * their arrays are C-contiguous. */
static void byte_strides(const Py_buffer *buffer, Py_ssize_t *strides)
{
    Py_ssize_t stride = buffer->itemsize;
    for (int n = buffer->ndim - 1; n >= 0; n--) {
        strides[n] = buffer->strides ? buffer->strides[n] : stride;
        stride *= buffer->shape[n];
    }
}

static int buffer_strides(const mhap_state *state, const char *name, mhap_array *array)
{
    const Py_buffer *const buffer = &array->buffer;
    Py_ssize_t strides[MHAP_MAX_AXES] = {0};
    if (buffer->ndim > MHAP_MAX_AXES)
        return too_many_axes(state, name, buffer->ndim);
    if (buffer->itemsize < 1)
        return mhap_fail(state, MHA_ERR_DTYPE, "%s has elements without a size", name);
    array->axes = buffer->ndim;
    for (int n = 0; n < buffer->ndim; n++)
        array->shape[n] = buffer->shape[n];
    if (check_extents(state, name, array))
        return -1;
    byte_strides(buffer, strides);
    for (int n = 0; n < buffer->ndim; n++) {
        if (strides[n] % buffer->itemsize != 0)
            return mhap_fail(
                state, MHA_ERR_ALIGN,
                "%s: axis %d has a stride of %zd bytes, which is not a whole number of "
                "its %zd-byte elements; copy it first (numpy.ascontiguousarray)",
                name, n, strides[n], buffer->itemsize);
        array->strides[n] = strides[n] / buffer->itemsize;
    }
    return 0;
}

static int take_buffer(const mhap_state *state, PyObject *object, const char *name,
                       mhap_array *array)
{
    if (PyObject_GetBuffer(object, &array->buffer, PyBUF_STRIDES | PyBUF_FORMAT))
        return -1;
    array->data = array->buffer.buf;
    array->read_only = array->buffer.readonly;
    array->type = buffer_type(&array->buffer);
    return buffer_strides(state, name, array);
}

/* Whether this is an array whose dtype is named bfloat16. No exception is set before or after. */
static bool is_bfloat16(PyObject *object)
{
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    const bool is =
        name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return is;
}

static int take_bfloat16(const mhap_state *state, PyObject *object, const char *name,
                         mhap_array *array)
{
    PyObject *bits = PyObject_CallMethod(object, "view", "s", "uint16");
    if (!bits)
        return -1;
    const int status = take_buffer(state, bits, name, array);
    Py_DECREF(bits); /* the buffer holds a reference */
    if (status)
        return status;
    if (array->type != MHAP_U16) /* a subclass may override view() */
        return mhap_fail(state, MHA_ERR_DTYPE, "%s: its view of 16-bit integers has another type",
                         name);
    array->type = MHAP_BF16;
    return 0;
}

/* -------------------------------------------------------------- DLPack ----- */

static bool on_cpu(const dl_tensor *tensor)
{
    return tensor->device == DL_CPU || tensor->device == DL_CUDA_HOST ||
           tensor->device == DL_ROCM_HOST || tensor->device == DL_CUDA_MANAGED;
}

static int read_tensor(const mhap_state *state, const char *name, const dl_tensor *tensor,
                       mhap_array *array)
{
    if (!on_cpu(tensor))
        return mhap_fail(state, MHA_ERR_FLAG,
                         "%s lies on device %d of DLPack's list, and this library computes on the "
                         "CPU; move it there first",
                         name, (int)tensor->device);
    if (tensor->axes > MHAP_MAX_AXES)
        return too_many_axes(state, name, tensor->axes);
    if (tensor->axes < 0 || (tensor->axes > 0 && !tensor->shape))
        return mhap_fail(state, MHA_ERR_NULL, "%s: its __dlpack__ tells no shape", name);
    const bool whole = tensor->lanes == 1 && tensor->bits % 8 == 0;
    array->data = tensor->data ? (char *)tensor->data + tensor->start : NULL;
    array->type = whole ? type_of(tensor->code, tensor->bits / 8) : MHAP_OTHER;
    array->axes = tensor->axes;
    for (int n = 0; n < tensor->axes; n++)
        array->shape[n] = tensor->shape[n];
    if (check_extents(state, name, array))
        return -1;
    ptrdiff_t stride = 1;
    for (int n = tensor->axes - 1; n >= 0; n--) {
        array->strides[n] = tensor->strides ? tensor->strides[n] : stride;
        stride *= tensor->shape[n];
    }
    return 0;
}

static void drop_versioned(void *held)
{
    dl_versioned *const tensor = held;
    if (tensor->drop)
        tensor->drop(tensor);
}

static void drop_managed(void *held)
{
    dl_managed *const tensor = held;
    if (tensor->drop)
        tensor->drop(tensor);
}

static int hold_versioned(const mhap_state *state, const char *name, dl_versioned *tensor,
                          mhap_array *array)
{
    array->held = tensor;
    array->drop = drop_versioned;
    if (tensor->major != 1)
        return mhap_fail(state, MHA_ERR_STRUCT,
                         "%s speaks version %u.%u of DLPack; 0 and 1 are "
                         "understood here",
                         name, (unsigned)tensor->major, (unsigned)tensor->minor);
    array->read_only = (tensor->flags & (DL_READ_ONLY | DL_COPIED)) != 0;
    return read_tensor(state, name, &tensor->tensor, array);
}

/* A tensor of version 0 does not say whether it may be written, so it is taken as read-only. */
static int hold_managed(const mhap_state *state, const char *name, dl_managed *tensor,
                        mhap_array *array)
{
    array->held = tensor;
    array->drop = drop_managed;
    array->read_only = true;
    return read_tensor(state, name, &tensor->tensor, array);
}

/* Renaming the capsule takes ownership of its tensor, as DLPack defines it. */
static int take_capsule(const mhap_state *state, PyObject *capsule, const char *name,
                        mhap_array *array)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *const tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned"))
            return -1;
        return hold_versioned(state, name, tensor, array);
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *const tensor = PyCapsule_GetPointer(capsule, "dltensor");
        if (PyCapsule_SetName(capsule, "used_dltensor"))
            return -1;
        return hold_managed(state, name, tensor, array);
    }
    return mhap_wrong_kind(name, capsule, "__dlpack__ must give a capsule of a tensor");
}

/* Older __dlpack__ methods do not know the argument max_version. */
static PyObject *call_dlpack(PyObject *method)
{
    PyObject *none = PyTuple_New(0);
    PyObject *keywords = Py_BuildValue("{s(ii)}", "max_version", 1, 0);
    PyObject *capsule = none && keywords ? PyObject_Call(method, none, keywords) : NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(keywords);
    Py_XDECREF(none);
    return capsule;
}

static int take_dlpack(const mhap_state *state, PyObject *object, const char *name,
                       mhap_array *array)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method) {
        PyErr_Clear();
        return mhap_wrong_kind(name, object,
                               "it must be an array of NumPy, PyTorch or JAX, or something else "
                               "with the buffer protocol or __dlpack__");
    }
    PyObject *capsule = call_dlpack(method);
    Py_DECREF(method);
    if (!capsule)
        return mhap_explain_error(state, name);
    const int status = take_capsule(state, capsule, name, array);
    Py_DECREF(capsule);
    return status;
}

static int take_tensor(const mhap_state *state, PyObject *object, const char *name,
                       mhap_array *array)
{
    if (mhap_torch_check(state, object, name))
        return -1;
    const dl_exchange *const exchange = state->torch.exchange;
    if (!exchange)
        return take_dlpack(state, object, name, array);
    dl_versioned *tensor = NULL;
    if (exchange->from_object(object, &tensor))
        return mhap_explain_error(state, name);
    return hold_versioned(state, name, tensor, array);
}

/* ------------------------------------------------------- choosing a way ----- */

/* An array that has the buffer protocol but refused it with the current exception. */
static int take_other_buffer(const mhap_state *state, PyObject *object, const char *name,
                             mhap_array *array)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const bool bits = array->origin == MHAP_NUMPY && is_bfloat16(object);
    const bool other = array->origin != MHAP_NUMPY && PyObject_HasAttrString(object, "__dlpack__");
    if (!bits && !other) {
        PyErr_Restore(type, value, trace);
        return mhap_explain_error(state, name);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return bits ? take_bfloat16(state, object, name, array)
                : take_dlpack(state, object, name, array);
}

static int take_any(mhap_state *state, PyObject *object, const char *name, mhap_array *array)
{
    array->origin = mhap_origin_of(state, object);
    if (mhap_is_plain_tensor(state, object))
        return take_tensor(state, object, name, array);
    if (!PyObject_CheckBuffer(object))
        return take_dlpack(state, object, name, array);
    if (take_buffer(state, object, name, array) == 0)
        return 0;
    return array->buffer.obj ? -1 : take_other_buffer(state, object, name, array);
}

int mhap_take(mhap_state *state, PyObject *object, const char *name, mhap_array *array)
{
    memset(array, 0, sizeof *array);
    if (take_any(state, object, name, array) || finish(state, name, array)) {
        mhap_release(array);
        return -1;
    }
    Py_INCREF(object);
    array->object = object;
    return 0;
}

int mhap_take_out(mhap_state *state, PyObject *object, const char *name, mhap_array *array)
{
    if (mhap_take(state, object, name, array))
        return -1;
    if (!array->read_only)
        return 0;
    mhap_release(array);
    return mhap_fail(state, MHA_ERR_FLAG,
                     "%s is read-only, or a copy of what was given; use an "
                     "array that can be written to",
                     name);
}

void mhap_release(mhap_array *array)
{
    if (array->held)
        array->drop(array->held);
    if (array->buffer.obj)
        PyBuffer_Release(&array->buffer);
    Py_XDECREF(array->object);
    memset(array, 0, sizeof *array);
}

/* --------------------------------------------------------------- checks ----- */

int mhap_check_float(const mhap_state *state, const mhap_array *array, const char *name)
{
    if (array->type <= MHAP_F64)
        return 0;
    return mhap_fail(state, MHA_ERR_DTYPE,
                     "%s has elements of %s%s; use f32, f16, bf16 or f64: %s.%s", name,
                     array->type == MHAP_OTHER ? "" : "type ", mhap_type_name(array->type), name,
                     array->origin == MHAP_TORCH ? "float()" : "astype(\"float32\")");
}

int mhap_check_rows(const mhap_state *state, const mhap_array *array, const char *name)
{
    const int last = array->axes - 1;
    if (last < 0 || array->shape[last] <= 1 || array->strides[last] == 1)
        return 0;
    return mhap_fail(state, MHA_ERR_STRIDE,
                     "%s: its last axis has stride %td, and must have stride 1 (any other axis may "
                     "have any stride); copy it first: %s",
                     name, array->strides[last],
                     array->origin == MHAP_TORCH ? "x.contiguous()" : "numpy.ascontiguousarray(x)");
}

int mhap_check_shape(const mhap_state *state, const mhap_array *array, const char *name, int axes,
                     const ptrdiff_t *shape)
{
    if (array->axes == axes &&
        (axes == 0 || memcmp(array->shape, shape, (size_t)axes * sizeof *shape) == 0))
        return 0;
    char has[MHAP_SHAPE_TEXT], wanted[MHAP_SHAPE_TEXT];
    return mhap_fail(state, MHA_ERR_SHAPE, "%s has shape %s; it must be %s", name,
                     mhap_shape_text(has, array->axes, array->shape),
                     mhap_shape_text(wanted, axes, shape));
}
