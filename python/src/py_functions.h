/* SPDX-License-Identifier: MIT */
/* The functions of the module, for its method table in py_module.c. */
#ifndef MHAP_FUNCTIONS_H
#define MHAP_FUNCTIONS_H

#include "py_call.h"

PyObject *mhap_attention(PyObject *module, PyObject *const *args, Py_ssize_t count,
                         PyObject *names);
PyObject *mhap_attention_weights(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                 PyObject *names);
PyObject *mhap_head_statistics(PyObject *module, PyObject *const *args, Py_ssize_t count,
                               PyObject *names);
PyObject *mhap_attention_backward(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names);
PyObject *mhap_merge(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names);

#endif
