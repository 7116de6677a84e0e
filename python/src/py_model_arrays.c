/* SPDX-License-Identifier: MIT */
/* What calls of models take: contiguous arrays of a known type and size, sequences of rows, and
 * settings of heads. The library gets pointers, so every size is checked here. */
#include <string.h>

#include "py_model.h"

static bool is_contiguous(const mhap_array *array)
{
    ptrdiff_t stride = 1;
    for (int n = array->axes - 1; n >= 0; n--) {
        if (array->shape[n] != 1 && array->strides[n] != stride)
            return false;
        stride *= array->shape[n];
    }
    return true;
}

int mhap_flat(mhap_state *state, PyObject *object, const char *name, mhap_type type,
              ptrdiff_t count, bool to_write, mhap_array *array)
{
    if (!object || object == Py_None)
        return 0;
    if (to_write ? mhap_take_out(state, object, name, array)
                 : mhap_take(state, object, name, array))
        return -1;
    const ptrdiff_t there = mhap_count(array->axes, array->shape);
    if (array->type != type)
        return mhap_fail(state, MHA_ERR_DTYPE, "%s has elements of type %s; it must be %s", name,
                         mhap_type_name(array->type), mhap_type_name(type));
    if (!is_contiguous(array))
        return mhap_fail(state, MHA_ERR_STRIDE, "%s is not contiguous: copy it first", name);
    if (count >= 0 && there != count)
        return mhap_fail(state, MHA_ERR_SHAPE, "%s has %td elements; it must have %td", name, there,
                         count);
    return 0;
}

/* ----------------------------------------------------------------- rows ----- */

static int check_starts(mhap_state *state, mhap_rows *r)
{
    if (r->B < 0 || r->starts[0] != 0)
        return mhap_fail(state, MHA_ERR_SHAPE, "starts must begin with 0");
    for (ptrdiff_t b = 0; b < r->B; b++) {
        const int64_t length = r->starts[b + 1] - r->starts[b];
        if (r->starts[b + 1] < r->starts[b] || r->starts[b + 1] > r->rows)
            return mhap_fail(state, MHA_ERR_SHAPE, "starts must grow up to the number of ids");
        r->longest = length > r->longest ? (ptrdiff_t)length : r->longest;
    }
    if (r->starts[r->B] != r->rows)
        return mhap_fail(state, MHA_ERR_SHAPE, "starts must end with the number of ids");
    return 0;
}

int mhap_rows_take(mhap_state *state, PyObject *starts, PyObject *ids, mhap_rows *rows)
{
    memset(rows, 0, sizeof *rows);
    if (!starts || starts == Py_None)
        return 0;
    if (mhap_flat(state, starts, "starts", MHAP_I64, -1, false, &rows->starts_array) ||
        mhap_flat(state, ids, "ids", MHAP_I32, -1, false, &rows->ids_array))
        return -1;
    if (!rows->ids_array.data || rows->starts_array.axes != 1 || rows->ids_array.axes != 1)
        return mhap_fail(state, MHA_ERR_SHAPE, "starts and ids must be arrays of one axis");
    rows->starts = rows->starts_array.data;
    rows->ids = rows->ids_array.data;
    rows->B = rows->starts_array.shape[0] - 1;
    rows->rows = rows->ids_array.shape[0];
    return check_starts(state, rows);
}

void mhap_rows_release(mhap_rows *rows)
{
    mhap_release(&rows->starts_array);
    mhap_release(&rows->ids_array);
}

/* ---------------------------------------------------------------- heads ----- */

ptrdiff_t mhap_heads_count(const mha_model *model, mha_attention_kind kind)
{
    ptrdiff_t sum = 0, heads;
    for (ptrdiff_t layer = 0; (heads = mha_model_heads(model, kind, layer)) >= 0; layer++)
        sum += heads;
    return sum;
}

static int take_kind(const mhap_model *self, PyObject *const *parts, int kind, mhap_heads *heads)
{
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(self->model, &info);
    const ptrdiff_t count = mhap_heads_count(self->model, (mha_attention_kind)kind);
    mhap_array *const arrays = &heads->arrays[3 * kind];
    if (mhap_flat(self->state, parts[0], "gates", MHAP_F32, count, false, &arrays[0]) ||
        mhap_flat(self->state, parts[1], "modes", MHAP_U8, count, false, &arrays[1]) ||
        mhap_flat(self->state, parts[2], "means", MHAP_F32, count * info.head_width, false,
                  &arrays[2]))
        return -1;
    heads->c.gates[kind] = arrays[0].data;
    heads->c.modes[kind] = arrays[1].data;
    heads->c.means[kind] = arrays[2].data;
    return 0;
}

int mhap_heads_take(const mhap_model *self, PyObject *object, mhap_heads *heads)
{
    memset(heads, 0, sizeof *heads);
    if (!object || object == Py_None)
        return 0;
    if (!PyTuple_Check(object))
        return mhap_wrong_kind("heads", object, "give a tuple");
    heads->c.size = sizeof heads->c;
    PyObject *o[3 * MHA_ATTENTION_KINDS];
    if (!PyArg_ParseTuple(object, "(OOO)(OOO)(OOO);heads: gates, modes and means for each kind",
                          &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &o[7], &o[8]))
        return -1;
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++) {
        PyObject *const parts[] = {o[kind], o[3 + kind], o[6 + kind]};
        if (take_kind(self, parts, kind, heads))
            return -1;
    }
    heads->settings = &heads->c;
    return 0;
}

void mhap_heads_release(mhap_heads *heads)
{
    for (int n = 0; n < 3 * MHA_ATTENTION_KINDS; n++)
        mhap_release(&heads->arrays[n]);
}
