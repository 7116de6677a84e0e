/* SPDX-License-Identifier: MIT */
/* Presets of published models, and random weights to try them with. */
#include "py_layer.h"

static PyObject *preset_row(const mha_preset_info *info)
{
    return Py_BuildValue("ssnnnnnO", info->name, info->title, (Py_ssize_t)info->E,
                         (Py_ssize_t)info->H, (Py_ssize_t)info->D, (Py_ssize_t)info->layers,
                         (Py_ssize_t)info->tokens, info->causal ? Py_True : Py_False);
}

/* _presets(): a list of tuples, one per preset. */
static PyObject *presets(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *const list = PyList_New(0);
    const mha_preset_info *info;
    for (int n = 0; list && (info = mha_preset_at(n)) != NULL; n++) {
        PyObject *const row = preset_row(info);
        const int failed = !row || PyList_Append(list, row);
        Py_XDECREF(row);
        if (failed) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* SplitMix64: number n of a seed, independent of the other numbers. */
static uint64_t mixed(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* _uniform(outputs, inputs, bound, seed): an mha.Array of numbers in [-bound, bound). */
static PyObject *uniform(PyObject *module, PyObject *args)
{
    Py_ssize_t outputs, inputs;
    double bound;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "nndK", &outputs, &inputs, &bound, &seed))
        return NULL;
    const ptrdiff_t shape[] = {outputs, inputs};
    void *data;
    PyObject *const array = mhap_array_new(PyModule_GetState(module), MHAP_F32, 2, shape, &data);
    if (!array)
        return NULL;
    float *const numbers = data;
    const ptrdiff_t count = outputs * inputs;
    Py_BEGIN_ALLOW_THREADS;
    for (ptrdiff_t n = 0; n < count; n++) {
        const double unit = (double)(mixed(seed, (uint64_t)n) >> 11) * 0x1p-53;
        numbers[n] = (float)(bound * (2 * unit - 1));
    }
    Py_END_ALLOW_THREADS;
    return array;
}

static PyMethodDef functions[] = {{"_presets", presets, METH_NOARGS, NULL},
                                  {"_uniform", uniform, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int mhap_presets_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
