/* SPDX-License-Identifier: MIT */
/* Looks up what is needed of NumPy and PyTorch, once, and creates new arrays of theirs. */
#include "py_libraries.h"
#include "py_dlpack.h"

/* sys.modules[name] as a borrowed reference, valid while the GIL is held; NULL, without an
 * exception, if it is not imported. */
static PyObject *imported(const char *name)
{
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *module = text ? PyImport_GetModule(text) : NULL;
    Py_XDECREF(text);
    PyErr_Clear();
    return module;
}

/* The keyword arguments of `empty` for every element type of the library. */
static int find_keywords(PyObject *module, mhap_library *library, bool device)
{
    static const char *const names[MHAP_RESULT_TYPES] = {"float32", "float16", "bfloat16",
                                                         "float64", "int64"};
    for (int n = 0; n < MHAP_RESULT_TYPES; n++) {
        PyObject *dtype = PyObject_GetAttrString(module, names[n]);
        if (!dtype) {
            PyErr_Clear();
            continue;
        }
        library->keywords[n] = device ? Py_BuildValue("{sNss}", "dtype", dtype, "device", "cpu")
                                      : Py_BuildValue("{sN}", "dtype", dtype);
        if (!library->keywords[n])
            return -1;
    }
    return 0;
}

/* Looks up torch.nn.Parameter, and the table of C functions, which older versions of PyTorch lack.
 */
static int find_torch(PyObject *module, mhap_library *library)
{
    PyObject *nn = PyObject_GetAttrString(module, "nn");
    library->parameter = nn ? PyObject_GetAttrString(nn, "Parameter") : NULL;
    Py_XDECREF(nn);
    if (!library->parameter)
        return -1;
    PyObject *capsule = PyObject_GetAttrString(library->array, "__dlpack_c_exchange_api__");
    const dl_exchange *exchange =
        capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    PyErr_Clear();
    while (exchange && exchange->major != 1)
        exchange = exchange->older;
    library->exchange = exchange;
    Py_XDECREF(capsule); /* the table is static in PyTorch and stays valid */
    return 0;
}

/* Fills in `library` if `name` is imported. If it is only partly imported, a later call tries
 * again. A copy is filled in, since other threads may run during the lookups. */
static void meet(mhap_library *library, const char *name, const char *array)
{
    PyObject *module = imported(name);
    if (!module)
        return;
    const bool torch = name[0] == 't';
    mhap_library found = {.array = PyObject_GetAttrString(module, array)};
    found.empty = found.array ? PyObject_GetAttrString(module, "empty") : NULL;
    const bool whole = found.empty && find_keywords(module, &found, torch) == 0 &&
                       (!torch || find_torch(module, &found) == 0);
    PyErr_Clear();
    if (whole && !library->array)
        *library = found;
    else
        mhap_library_clear(&found);
    Py_DECREF(module);
}

static bool is_one(PyObject *object, mhap_library *library, const char *name, const char *array)
{
    if (!library->array)
        meet(library, name, array);
    return library->array && PyObject_TypeCheck(object, (PyTypeObject *)library->array);
}

mhap_origin mhap_origin_of(mhap_state *state, PyObject *object)
{
    if (is_one(object, &state->torch, "torch", "Tensor"))
        return MHAP_TORCH;
    return is_one(object, &state->numpy, "numpy", "ndarray") ? MHAP_NUMPY : MHAP_OWN;
}

bool mhap_is_plain_tensor(const mhap_state *state, PyObject *object)
{
    const PyObject *const type = (PyObject *)Py_TYPE(object);
    return state->torch.array && (type == state->torch.array || type == state->torch.parameter);
}

/* The truth value of an attribute, or of the result of calling it. */
static int ask(PyObject *object, const char *name, bool call)
{
    PyObject *answer = PyObject_GetAttrString(object, name);
    if (answer && call) {
        PyObject *const method = answer;
        answer = PyObject_CallNoArgs(method);
        Py_DECREF(method);
    }
    const int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

static int gradients_are_on(void)
{
    PyObject *torch = imported("torch");
    const int on = torch ? ask(torch, "is_grad_enabled", true) : 0;
    Py_XDECREF(torch);
    return on;
}

int mhap_torch_check(const mhap_state *state, PyObject *tensor, const char *name)
{
    const int requires = ask(tensor, "requires_grad", false);
    const int lost = requires > 0 ? gradients_are_on() : requires;
    if (lost > 0)
        return mhap_fail(state, MHA_ERR_FLAG,
                         "%s requires a gradient, which this function does not follow; use "
                         "mha.torch, or torch.no_grad(), or %s.detach()",
                         name, name);
    const int negated = lost < 0 ? lost : ask(tensor, "is_neg", true);
    if (negated > 0)
        return mhap_fail(state, MHA_ERR_FLAG,
                         "%s is a negated view of other numbers; use %s.resolve_neg()", name, name);
    return negated;
}

static void clear(PyObject **slot)
{
    PyObject *const object = *slot;
    *slot = NULL;
    Py_XDECREF(object);
}

int mhap_library_visit(mhap_library *library, visitproc visit, void *arg)
{
    Py_VISIT(library->array);
    Py_VISIT(library->parameter);
    Py_VISIT(library->empty);
    for (int n = 0; n < MHAP_RESULT_TYPES; n++)
        Py_VISIT(library->keywords[n]);
    return 0;
}

void mhap_library_clear(mhap_library *library)
{
    clear(&library->array);
    clear(&library->parameter);
    clear(&library->empty);
    for (int n = 0; n < MHAP_RESULT_TYPES; n++)
        clear(&library->keywords[n]);
    library->exchange = NULL;
}

/* ------------------------------------------------------------ new arrays ----- */

PyObject *mhap_shape_tuple(int axes, const ptrdiff_t *shape)
{
    PyObject *tuple = PyTuple_New(axes);
    for (int n = 0; tuple && n < axes; n++) {
        PyObject *extent = PyLong_FromSsize_t(shape[n]);
        if (!extent || PyTuple_SetItem(tuple, n, extent)) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

/* The keyword arguments of `empty`, as a new reference. The bfloat16 of NumPy is available only as
 * the dtype of the array `like`. */
static PyObject *keywords_for(const mhap_library *library, const mhap_array *like, mhap_type type)
{
    PyObject *known = library->keywords[type == MHAP_I64 ? MHAP_RESULT_TYPES - 1 : (int)type];
    if (known) {
        Py_INCREF(known);
        return known;
    }
    PyObject *dtype = PyObject_GetAttrString(like->object, "dtype");
    return dtype ? Py_BuildValue("{sN}", "dtype", dtype) : NULL;
}

static PyObject *new_of(const mhap_library *library, const mhap_array *like, mhap_type type,
                        int axes, const ptrdiff_t *shape)
{
    PyObject *extents = mhap_shape_tuple(axes, shape);
    PyObject *args = extents ? PyTuple_Pack(1, extents) : NULL;
    PyObject *keywords = args ? keywords_for(library, like, type) : NULL;
    PyObject *array = keywords ? PyObject_Call(library->empty, args, keywords) : NULL;
    Py_XDECREF(keywords);
    Py_XDECREF(args);
    Py_XDECREF(extents);
    return array;
}

/* Checks the new array, since a subclass of numpy.ndarray may have changed its dtype meanwhile. */
static int take_new(mhap_state *state, PyObject *object, mhap_type type, int axes,
                    const ptrdiff_t *shape, mhap_array *array)
{
    if (mhap_take_out(state, object, "a new array", array))
        return -1;
    if (array->type == type && mhap_check_shape(state, array, "a new array", axes, shape) == 0)
        return 0;
    if (array->type != type)
        mhap_fail(state, MHA_ERR_DTYPE, "a new array has elements of type %s; %s was requested",
                  mhap_type_name(array->type), mhap_type_name(type));
    mhap_release(array);
    return -1;
}

PyObject *mhap_new(mhap_state *state, const mhap_array *like, mhap_type type, int axes,
                   const ptrdiff_t *shape, mhap_array *array)
{
    void *data = NULL;
    PyObject *object = like->origin == MHAP_TORCH ? new_of(&state->torch, like, type, axes, shape)
                       : like->origin == MHAP_NUMPY
                           ? new_of(&state->numpy, like, type, axes, shape)
                           : mhap_array_new(state, type, axes, shape, &data);
    if (object && take_new(state, object, type, axes, shape, array)) {
        Py_DECREF(object);
        return NULL;
    }
    return object;
}

/* Returns module.function(object). */
static PyObject *convert(const char *module, const char *function, PyObject *object)
{
    PyObject *library = imported(module);
    PyObject *result = library ? PyObject_CallMethod(library, function, "O", object) : NULL;
    Py_XDECREF(library);
    return result;
}

PyObject *mhap_view_of(mhap_state *state, mhap_origin origin, PyObject *memory, ptrdiff_t start,
                       mhap_type type, int axes, const ptrdiff_t *shape, const ptrdiff_t *strides)
{
    PyObject *view = mhap_array_view(state, memory, start, type, axes, shape, strides);
    if (!view || origin == MHAP_OWN)
        return view;
    PyObject *result = origin == MHAP_TORCH ? convert("torch", "from_dlpack", view)
                                            : convert("numpy", "asarray", view);
    Py_DECREF(view);
    return result;
}
