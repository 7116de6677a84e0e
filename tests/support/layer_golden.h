/* SPDX-License-Identifier: MIT */
/* Calls of layers out of golden files, whose fields and tensors golden/make_layer_goldens.py lists.
 */
#ifndef MHA_TEST_LAYER_GOLDEN_H
#define MHA_TEST_LAYER_GOLDEN_H

#include "support/golden_file.h"
#include "support/layer_oracle.h"

/* Everything but where results go. Points into the golden and to `options`, which it fills. */
layer_problem layer_golden_problem(const golden *g, mha_options *options);

/* Rows of an input or output, batch or sequence first; none where there is no such tensor. */
mha_view layer_golden_rows(const golden *g, const char *name, ptrdiff_t rows, ptrdiff_t width);

#endif
