/* SPDX-License-Identifier: MIT */
/*
 * The type mha.Array: the type of results if the inputs are of neither NumPy nor PyTorch, and the
 * memory of statistics. It has a shape, the buffer protocol and __dlpack__, but no arithmetic.
 */
#include "py_array.h"
#include "py_dlpack.h"
#include "py_libraries.h"

#include <stdlib.h>
#include <string.h>

typedef struct array_object {
    PyObject ob_base;
    char *data;
    void *memory;   /* freed with this array; NULL for a view */
    PyObject *base; /* the array that a view belongs to, or NULL */
    mhap_type type;
    int axes;
    Py_ssize_t shape[MHAP_MAX_AXES];
    Py_ssize_t strides[MHAP_MAX_AXES]; /* in bytes */
} array_object;

static array_object *array_alloc(const mhap_state *state, mhap_type type, int axes,
                                 const ptrdiff_t *shape)
{
    array_object *self = PyObject_New(array_object, (PyTypeObject *)state->array_type);
    if (!self)
        return NULL;
    self->data = NULL;
    self->memory = NULL;
    self->base = NULL;
    self->type = type;
    self->axes = axes;
    for (int n = 0; n < axes; n++)
        self->shape[n] = shape[n];
    return self;
}

PyObject *mhap_array_new(mhap_state *state, mhap_type type, int axes, const ptrdiff_t *shape,
                         void **data)
{
    size_t size = mhap_type_size(type);
    for (int n = 0; n < axes; n++)
        if (__builtin_mul_overflow(size, (size_t)shape[n], &size) || size > PTRDIFF_MAX - 128) {
            PyErr_NoMemory();
            return NULL;
        }
    array_object *self = array_alloc(state, type, axes, shape);
    if (!self)
        return NULL;
    self->memory = aligned_alloc(64, (size + 64) & ~(size_t)63);
    if (!self->memory) {
        Py_DECREF(self);
        PyErr_NoMemory();
        return NULL;
    }
    memset(self->memory, 0, size);
    *data = self->data = self->memory;
    Py_ssize_t stride = (Py_ssize_t)mhap_type_size(type);
    for (int n = axes - 1; n >= 0; n--) {
        self->strides[n] = stride;
        stride *= self->shape[n];
    }
    return (PyObject *)self;
}

PyObject *mhap_array_view(mhap_state *state, PyObject *memory, ptrdiff_t start, mhap_type type,
                          int axes, const ptrdiff_t *shape, const ptrdiff_t *strides)
{
    array_object *self = array_alloc(state, type, axes, shape);
    if (!self)
        return NULL;
    Py_INCREF(memory);
    self->base = memory;
    self->data = ((array_object *)memory)->data + start;
    for (int n = 0; n < axes; n++)
        self->strides[n] = strides[n] * (Py_ssize_t)mhap_type_size(type);
    return (PyObject *)self;
}

static void array_free(PyObject *object)
{
    array_object *const self = (array_object *)object;
    PyTypeObject *const type = Py_TYPE(object);
    free(self->memory);
    Py_XDECREF(self->base);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* -------------------------------------------------------------- buffers ----- */

static const char *format_of(mhap_type type)
{
    switch (type) {
    case MHAP_F32:
        return "f";
    case MHAP_F16:
        return "e";
    case MHAP_F64:
        return "d";
    case MHAP_I64:
        return "q";
    default:
        return NULL;
    }
}

static bool is_contiguous(const array_object *self)
{
    Py_ssize_t stride = (Py_ssize_t)mhap_type_size(self->type);
    for (int n = self->axes - 1; n >= 0; n--) {
        if (self->shape[n] != 1 && self->strides[n] != stride)
            return false;
        stride *= self->shape[n];
    }
    return true;
}

/* Whether the layout of an array satisfies the flags of a buffer request. */
static bool lies_as_wanted(const array_object *self, int flags)
{
    const int orders = PyBUF_C_CONTIGUOUS | PyBUF_F_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS;
    const bool any = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && !(flags & orders & ~PyBUF_STRIDES);
    const bool columns = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
    return any || (is_contiguous(self) && (!columns || self->axes < 2));
}

static int refuse_buffer(Py_buffer *view, const char *reason)
{
    view->obj = NULL;
    PyErr_SetString(PyExc_BufferError, reason);
    return -1;
}

static int array_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    array_object *const self = (array_object *)object;
    const char *const format = format_of(self->type);
    if (!format)
        return refuse_buffer(view, "bf16 has no buffer format; use __dlpack__ or tolist()");
    if (!lies_as_wanted(self, flags))
        return refuse_buffer(view, "this array is not contiguous; ask for a strided buffer");
    memset(view, 0, sizeof *view);
    view->buf = self->data;
    view->itemsize = (Py_ssize_t)mhap_type_size(self->type);
    view->len = view->itemsize * mhap_count(self->axes, self->shape);
    view->ndim = (flags & PyBUF_ND) ? self->axes : 1;
    view->format = (flags & PyBUF_FORMAT) ? (char *)format : NULL;
    view->shape = (flags & PyBUF_ND) ? self->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL;
    Py_INCREF(object);
    view->obj = object;
    return 0;
}

/* --------------------------------------------------------------- DLPack ----- */

/* A tensor to export, with the extents and strides it points to. */
typedef struct exported {
    union {
        dl_managed old;
        dl_versioned versioned;
    } tensor;
    int64_t shape[MHAP_MAX_AXES], strides[MHAP_MAX_AXES];
    PyObject *owner;
} exported;

/* The consumer may delete the tensor on any thread, without the GIL. */
static void exported_free(exported *export)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF(export->owner);
    PyGILState_Release(gil);
    free(export);
}

static void drop_old(dl_managed *tensor)
{
    exported_free(tensor->context);
}

static void drop_versioned(dl_versioned *tensor)
{
    exported_free(tensor->context);
}

static void fill_tensor(exported *export, const array_object *self, dl_tensor *tensor)
{
    const int64_t size = (int64_t)mhap_type_size(self->type);
    for (int n = 0; n < self->axes; n++) {
        export->shape[n] = self->shape[n];
        export->strides[n] = self->strides[n] / size;
    }
    *tensor = (dl_tensor){.data = self->data,
                          .device = DL_CPU,
                          .axes = self->axes,
                          .code = mhap_type_code(self->type),
                          .bits = (uint8_t)(8 * size),
                          .lanes = 1,
                          .shape = export->shape,
                          .strides = export->strides};
}

/* A capsule that was not consumed still owns its tensor. */
static void free_old_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        drop_old(PyCapsule_GetPointer(capsule, "dltensor"));
}

static void free_versioned_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        drop_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static PyObject *make_capsule(exported *export, const array_object *self, bool versioned)
{
    if (!versioned) {
        dl_managed *const tensor = &export->tensor.old;
        tensor->context = export;
        tensor->drop = drop_old;
        fill_tensor(export, self, &tensor->tensor);
        return PyCapsule_New(tensor, "dltensor", free_old_capsule);
    }
    dl_versioned *const tensor = &export->tensor.versioned;
    *tensor = (dl_versioned){.major = 1, .context = export, .drop = drop_versioned};
    fill_tensor(export, self, &tensor->tensor);
    return PyCapsule_New(tensor, "dltensor_versioned", free_versioned_capsule);
}

/* Returns 1 if the keyword arguments of __dlpack__ request version 1 or newer. A copy or another
 * device is refused. */
static int wants_versioned(PyObject *keywords)
{
    PyObject *version = keywords ? PyDict_GetItemString(keywords, "max_version") : NULL;
    PyObject *copy = keywords ? PyDict_GetItemString(keywords, "copy") : NULL;
    PyObject *device = keywords ? PyDict_GetItemString(keywords, "dl_device") : NULL;
    long number = DL_CPU;
    if (device && device != Py_None) {
        PyObject *first = PySequence_GetItem(device, 0);
        number = first ? PyLong_AsLong(first) : -1;
        Py_XDECREF(first);
        if (number == -1 && PyErr_Occurred())
            return -1;
    }
    if ((copy && copy == Py_True) || number != DL_CPU) {
        PyErr_SetString(PyExc_BufferError,
                        "an mha.Array is handed out as it is, on the CPU, and not copied");
        return -1;
    }
    if (!version || version == Py_None)
        return 0;
    PyObject *first = PySequence_GetItem(version, 0);
    const long major = first ? PyLong_AsLong(first) : -1;
    Py_XDECREF(first);
    return major == -1 && PyErr_Occurred() ? -1 : major >= 1;
}

static PyObject *array_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    if (PyTuple_Size(args) != 0) {
        PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only");
        return NULL;
    }
    const int versioned = wants_versioned(keywords);
    exported *export = versioned < 0 ? NULL : calloc(1, sizeof *export);
    if (!export)
        return versioned < 0 ? NULL : PyErr_NoMemory();
    Py_INCREF(object);
    export->owner = object;
    PyObject *capsule = make_capsule(export, (const array_object *)object, versioned);
    if (!capsule)
        exported_free(export);
    return capsule;
}

static PyObject *array_dlpack_device(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

/* ------------------------------------------------------------ attributes ----- */

static PyObject *array_shape(PyObject *object, void *unused)
{
    (void)unused;
    const array_object *const self = (const array_object *)object;
    return mhap_shape_tuple(self->axes, self->shape);
}

static PyObject *array_dtype(PyObject *object, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(mhap_type_name(((const array_object *)object)->type));
}

static PyObject *array_repr(PyObject *object)
{
    const array_object *const self = (const array_object *)object;
    char text[MHAP_SHAPE_TEXT];
    return PyUnicode_FromFormat("mha.Array(shape=%s, dtype=%s)",
                                mhap_shape_text(text, self->axes, self->shape),
                                mhap_type_name(self->type));
}

/* Converts a bf16 array to f32. bf16 arrays are never views, since only results are bf16. */
static PyObject *widened(mhap_state *state, const array_object *self)
{
    void *data = NULL;
    PyObject *wide = mhap_array_new(state, MHAP_F32, self->axes, self->shape, &data);
    if (!wide)
        return NULL;
    const uint16_t *const from = (const void *)self->data;
    uint32_t *const to = data;
    const ptrdiff_t count = mhap_count(self->axes, self->shape);
    for (ptrdiff_t n = 0; n < count; n++)
        to[n] = (uint32_t)from[n] << 16;
    return wide;
}

static PyObject *array_tolist(PyObject *object, PyObject *unused)
{
    (void)unused;
    const array_object *const self = (const array_object *)object;
    PyObject *source = object;
    if (self->type == MHAP_BF16)
        source = widened(mhap_state_of(Py_TYPE(object)), self);
    else
        Py_INCREF(source);
    PyObject *view = source ? PyMemoryView_FromObject(source) : NULL;
    PyObject *list = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
    Py_XDECREF(view);
    Py_XDECREF(source);
    return list;
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A capsule for numpy.from_dlpack(), torch.from_dlpack(), jax.numpy.from_dlpack()."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nThe CPU, in DLPack's words."},
    {"tolist", array_tolist, METH_NOARGS,
     "tolist($self)\n--\n\nThe numbers as nested lists, one number for an array without axes."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"shape", array_shape, NULL, "The extents of its axes.", NULL},
    {"dtype", array_dtype, NULL, "The element type: f32, f16, bf16, f64 or i64.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, array_free},
    {Py_tp_repr, array_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_bf_getbuffer, array_get_buffer},
    {Py_tp_doc, "Numbers in memory, as a result of a call whose inputs came from neither NumPy nor "
                "PyTorch.\n\nHas the buffer protocol and __dlpack__: numpy.asarray(a), "
                "torch.from_dlpack(a) and\nmemoryview(a) see the same memory."},
    {0, NULL},
};

static PyType_Spec spec = {.name = "mha.Array",
                           .basicsize = (int)sizeof(array_object),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                    Py_TPFLAGS_IMMUTABLETYPE,
                           .slots = slots};

int mhap_array_type_add(PyObject *module, mhap_state *state)
{
    state->array_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->array_type ? PyModule_AddObjectRef(module, "Array", state->array_type) : -1;
}
