/* SPDX-License-Identifier: MIT */
/* What must be known of NumPy and PyTorch by name. Neither is ever imported from here: an array of
 * theirs exists only if the user has imported them. */
#ifndef MHAP_LIBRARIES_H
#define MHAP_LIBRARIES_H

#include "py_array.h"

mhap_origin mhap_origin_of(mhap_state *state, PyObject *object);

/* Whether this is a torch.Tensor or torch.nn.Parameter itself, not a subclass, which may behave
 * differently. */
bool mhap_is_plain_tensor(const mhap_state *state, PyObject *object);

/* Checks a plain tensor: mha.Error if it requires a gradient while gradients are enabled, or if its
 * numbers in memory are to be read negated. */
int mhap_torch_check(const mhap_state *state, PyObject *tensor, const char *name);

PyObject *mhap_shape_tuple(int axes, const ptrdiff_t *shape);

/* The DLPack code of an element type. */
uint8_t mhap_type_code(mhap_type type);

int mhap_library_visit(mhap_library *library, visitproc visit, void *arg);
void mhap_library_clear(mhap_library *library);

#endif
