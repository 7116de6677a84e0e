/* SPDX-License-Identifier: MIT */
/* Memory and strides for gradients of broadcast masks and biases (py_pairs.h). */
#include "py_pairs.h"

#include <string.h>

/* Sets the strides of the axes, 0 if they are missing or of extent 1; returns the number of
 * elements. */
static ptrdiff_t strides_of(const mha_shape *s, const mhap_array *given, bool widened,
                            ptrdiff_t strides[4])
{
    const ptrdiff_t full[] = {s->B, s->H, s->L, s->S};
    ptrdiff_t stride = 1;
    for (int n = 3; n >= 0; n--) {
        const int axis = n - (4 - given->axes);
        const bool one = axis < 0 || given->shape[axis] == 1;
        const bool summed = one && !(n == 3 && widened);
        strides[n] = summed ? 0 : stride;
        stride *= summed ? 1 : full[n];
    }
    return stride;
}

int mhap_pairs_out(const mha_shape *shape, const mhap_array *given, const mhap_array *gradient,
                   mhap_kept *kept, mha_out *out, float **columns)
{
    const bool widened = shape->S != 1 && (given->axes == 0 || given->shape[given->axes - 1] == 1);
    ptrdiff_t strides[4];
    const ptrdiff_t count = strides_of(shape, given, widened, strides);
    void *data = gradient->data;
    *columns = NULL;
    if (widened) {
        data = mhap_keep(kept, (size_t)count * sizeof(float));
        if (!data)
            return -1;
        memset(data, 0, (size_t)count * sizeof(float));
        *columns = data;
    }
    *out = (mha_out){data, strides[0], strides[1], strides[2]};
    return 0;
}

void mhap_pairs_sum(const mha_shape *shape, const float *columns, const mhap_array *gradient)
{
    float *const to = gradient->data;
    const ptrdiff_t count = columns ? mhap_count(gradient->axes, gradient->shape) : 0;
    for (ptrdiff_t n = 0; n < count; n++, columns += shape->S) {
        double sum = 0;
        for (ptrdiff_t j = 0; j < shape->S; j++)
            sum += (double)columns[j];
        to[n] = (float)sum;
    }
}
