/* SPDX-License-Identifier: MIT */
/* Converts arguments to mha_options, with one small function per kind of option. */
#include "py_options.h"

#include <stdio.h>
#include <string.h>

/* What all readers below need. */
typedef struct reading {
    mhap_state *state;
    PyObject *const *values;
    const mha_shape *shape;
    mhap_options *o;
} reading;

int mhap_truth(PyObject *object)
{
    return object ? PyObject_IsTrue(object) : 0;
}

int mhap_choice(const mhap_state *state, PyObject *object, const char *name,
                const char *const *names)
{
    if (!PyUnicode_Check(object))
        return mhap_wrong_kind(name, object, "it must be a str");
    char list[256] = "";
    for (int n = 0; names[n]; n++) {
        if (PyUnicode_CompareWithASCIIString(object, names[n]) == 0)
            return n;
        const size_t end = strlen(list);
        snprintf(list + end, sizeof list - end, "%s\"%s\"", n > 0 ? ", " : "", names[n]);
    }
    const char *const text = PyUnicode_AsUTF8AndSize(object, NULL);
    return text ? mhap_fail(state, MHA_ERR_FLAG, "%s is \"%.40s\"; use one of %s", name, text, list)
                : -1;
}

void mhap_options_begin(mhap_options *o)
{
    memset(o, 0, sizeof *o);
    o->c.size = sizeof o->c;
    o->c.message = o->message;
    o->c.message_size = sizeof o->message;
    o->B = o->L = o->S = -1;
}

void mhap_options_end(mhap_options *o)
{
    mhap_release(&o->mask);
    mhap_release(&o->ignore_mask);
    mhap_release(&o->bias);
    mhap_kept_free(&o->kept);
}

/* --------------------------------------------------------------- packed ----- */

static int read_starts(mhap_state *state, PyObject *object, const char *name, mhap_options *o,
                       const int64_t **starts, ptrdiff_t *longest)
{
    ptrdiff_t count = 0;
    *starts = mhap_integers(state, object, name, -1, &count, &o->kept);
    if (!*starts)
        return -1;
    if (count < 1)
        return mhap_fail(state, MHA_ERR_LENGTH,
                         "%s is empty; it has one number more than there "
                         "are sequences",
                         name);
    if (o->B >= 0 && o->B != count - 1)
        return mhap_fail(state, MHA_ERR_SHAPE,
                         "key_starts has %td numbers and query_starts %td; give both for the same "
                         "sequences",
                         count, o->B + 1);
    o->B = count - 1;
    *longest = 0;
    for (ptrdiff_t b = 0; b < o->B; b++) {
        int64_t rows = 0;
        if (__builtin_sub_overflow((*starts)[b + 1], (*starts)[b], &rows) || rows < 0)
            return mhap_fail(state, MHA_ERR_LENGTH, "%s[%td] is %lld after %lld; starts ascend",
                             name, b + 1, (long long)(*starts)[b + 1], (long long)(*starts)[b]);
        *longest = rows > *longest ? (ptrdiff_t)rows : *longest;
    }
    return 0;
}

int mhap_starts_read(mhap_state *state, PyObject *const *values, mhap_options *o)
{
    PyObject *const queries = values[MHAP_QUERY_STARTS], *const keys = values[MHAP_KEY_STARTS];
    if (queries && read_starts(state, queries, "query_starts", o, &o->c.q_starts, &o->L))
        return -1;
    if (keys && read_starts(state, keys, "key_starts", o, &o->c.k_starts, &o->S))
        return -1;
    return 0;
}

/* ---------------------------------------------------------------- masks ----- */

/* Strides of an array that is broadcast to (B, H, L, S) as NumPy does: axes are aligned at the
 * last, and those that are missing or of extent 1 have stride 0. */
static int broadcast(const reading *r, const mhap_array *a, const char *name, ptrdiff_t strides[4])
{
    const ptrdiff_t full[] = {r->shape->B, r->shape->H, r->shape->L, r->shape->S};
    bool fits = a->axes <= 4;
    for (int n = 0; n < 4 && fits; n++) {
        const int axis = n - (4 - a->axes);
        const bool one = axis < 0 || a->shape[axis] == 1;
        strides[n] = one ? 0 : a->strides[axis];
        fits = one || a->shape[axis] == full[n];
    }
    if (fits)
        return 0;
    char has[MHAP_SHAPE_TEXT], wanted[MHAP_SHAPE_TEXT];
    return mhap_fail(
        r->state, MHA_ERR_SHAPE,
        "%s has shape %s, which does not broadcast to (B, H, L, S) = %s; put axes of 1 "
        "where it is the same for all: %s[:, None, None, :] for one row of keys a "
        "batch",
        name, mhap_shape_text(has, a->axes, a->shape), mhap_shape_text(wanted, 4, full), name);
}

/* Writes the element at `from` S times. */
static void repeat(char *to, const char *from, size_t size, ptrdiff_t count)
{
    for (ptrdiff_t j = 0; j < count; j++)
        memcpy(to + (size_t)j * size, from, size);
}

/* A copy with S columns of a mask with one, since the library reads adjacent columns. */
static int widen(const reading *r, const mhap_array *a, ptrdiff_t strides[4], const void **data)
{
    const mha_shape *const s = r->shape;
    const ptrdiff_t B = strides[0] ? s->B : 1, H = strides[1] ? s->H : 1, L = strides[2] ? s->L : 1;
    const size_t size = mhap_type_size(a->type);
    char *const wide = mhap_keep(&r->o->kept, (size_t)(B * H * L * s->S) * size);
    if (!wide)
        return -1;
    char *to = wide;
    for (ptrdiff_t b = 0; b < B; b++)
        for (ptrdiff_t h = 0; h < H; h++)
            for (ptrdiff_t i = 0; i < L; i++, to += (size_t)s->S * size) {
                const ptrdiff_t at = b * strides[0] + h * strides[1] + i * strides[2];
                repeat(to, (const char *)a->data + at * (ptrdiff_t)size, size, s->S);
            }
    *data = wide;
    strides[0] = strides[0] ? H * L * s->S : 0;
    strides[1] = strides[1] ? L * s->S : 0;
    strides[2] = strides[2] ? s->S : 0;
    return 0;
}

static int read_pairs(const reading *r, const mhap_array *a, const char *name, mha_view *view,
                      bool *widened)
{
    ptrdiff_t strides[4] = {0};
    if (broadcast(r, a, name, strides))
        return -1;
    const void *data = a->data;
    *widened = r->shape->S > 1 && strides[3] == 0;
    if (*widened ? widen(r, a, strides, &data) : mhap_check_rows(r->state, a, name))
        return -1;
    *view = (mha_view){data, strides[0], strides[1], strides[2]};
    return 0;
}

static int check_added(const reading *r, const mhap_array *a, const char *name)
{
    if (mhap_check_float(r->state, a, name))
        return -1;
    if (a->type != MHAP_F64 || r->shape->q_type == MHA_F64)
        return 0;
    return mhap_fail(r->state, MHA_ERR_DTYPE,
                     "%s is f64 and query is not; use %s.astype(\"float32\"), or %s.float() of "
                     "PyTorch",
                     name, name, name);
}

static int read_mask(const reading *r)
{
    mhap_options *const o = r->o;
    if (!r->values[MHAP_MASK])
        return 0;
    if (mhap_take(r->state, r->values[MHAP_MASK], "mask", &o->mask))
        return -1;
    if (o->mask.type == MHAP_BOOL)
        return read_pairs(r, &o->mask, "mask", &o->c.attend_mask, &o->mask_widened);
    if (o->mask.type > MHAP_F64)
        return mhap_fail(r->state, MHA_ERR_DTYPE,
                         "mask has elements of type %s; use bool (True attends) or floats, which "
                         "are added to the scores",
                         mhap_type_name(o->mask.type));
    o->c.add_mask_type = (mha_dtype)o->mask.type;
    if (check_added(r, &o->mask, "mask"))
        return -1;
    return read_pairs(r, &o->mask, "mask", &o->c.add_mask, &o->mask_widened);
}

static int read_ignore_mask(const reading *r)
{
    mhap_options *const o = r->o;
    bool widened = false;
    if (!r->values[MHAP_IGNORE_MASK])
        return 0;
    if (mhap_take(r->state, r->values[MHAP_IGNORE_MASK], "ignore_mask", &o->ignore_mask))
        return -1;
    if (o->ignore_mask.type != MHAP_BOOL)
        return mhap_fail(r->state, MHA_ERR_DTYPE,
                         "ignore_mask has elements of type %s; use bool, where True hides a key",
                         mhap_type_name(o->ignore_mask.type));
    return read_pairs(r, &o->ignore_mask, "ignore_mask", &o->c.ignore_mask, &widened);
}

static int read_bias(const reading *r)
{
    mhap_options *const o = r->o;
    if (!r->values[MHAP_BIAS])
        return 0;
    if (mhap_take(r->state, r->values[MHAP_BIAS], "bias", &o->bias) ||
        check_added(r, &o->bias, "bias"))
        return -1;
    o->c.bias_type = (mha_dtype)o->bias.type;
    return read_pairs(r, &o->bias, "bias", &o->c.bias, &o->bias_widened);
}

/* ---------------------------------------------------- positions, windows ----- */

static int read_position(const reading *r)
{
    static const char *const names[] = {"top-left", "bottom-right", NULL};
    static const mha_position positions[] = {MHA_POSITION_TOP_LEFT, MHA_POSITION_BOTTOM_RIGHT};
    PyObject *const value = r->values[MHAP_POSITION];
    mha_options *const c = &r->o->c;
    if (!value)
        return 0;
    if (PyUnicode_Check(value)) {
        const int n = mhap_choice(r->state, value, "position", names);
        c->position = n < 0 ? MHA_POSITION_UNSET : positions[n];
        return n < 0 ? -1 : 0;
    }
    if (PyFloat_Check(value))
        return mhap_wrong_kind("position", value,
                               "it must be \"top-left\", \"bottom-right\", an integer, or one for "
                               "each batch");
    c->position = MHA_POSITION_OFFSET;
    const int axes = PyLong_Check(value) ? 0 : mhap_axes(r->state, value, "position");
    if (axes <= 0)
        return axes < 0 ? -1 : mhap_integer(value, "position", &c->offset);
    ptrdiff_t count = 0;
    c->offsets = mhap_integers(r->state, value, "position", r->shape->B, &count, &r->o->kept);
    return c->offsets ? 0 : -1;
}

static int read_edge(PyObject *pair, int number, ptrdiff_t *edge)
{
    PyObject *value = PySequence_GetItem(pair, number);
    *edge = -1;
    const int status = !value             ? -1
                       : value == Py_None ? 0
                                          : mhap_integer(value, "an edge of window", edge);
    Py_XDECREF(value);
    return status;
}

static int read_window(const reading *r)
{
    PyObject *const pair = r->values[MHAP_WINDOW];
    mha_options *const c = &r->o->c;
    if (!pair)
        return 0;
    const bool is_pair = PySequence_Check(pair) && !PyUnicode_Check(pair);
    if (!is_pair || PySequence_Size(pair) != 2) {
        PyErr_Clear();
        return mhap_wrong_kind("window", pair,
                               "it must be a pair (left, right) of keys before and after the "
                               "query's position, None for an open side");
    }
    c->flags |= MHA_WINDOW;
    return read_edge(pair, 0, &c->window_left) || read_edge(pair, 1, &c->window_right) ? -1 : 0;
}

static int read_flags(const reading *r)
{
    if (r->values[MHAP_CAUSAL] && PyUnicode_Check(r->values[MHAP_CAUSAL]))
        return mhap_wrong_kind("causal", r->values[MHAP_CAUSAL],
                               "it must be True or False; position says where the queries stand");
    const int causal = mhap_truth(r->values[MHAP_CAUSAL]);
    const int average = mhap_truth(r->values[MHAP_AVERAGE_WEIGHTS]);
    if (causal < 0 || average < 0)
        return -1;
    r->o->c.flags |= (causal ? MHA_CAUSAL : 0u) | (average ? MHA_AVERAGE_WEIGHTS : 0u);
    return 0;
}

static int read_arithmetic(const reading *r)
{
    static const char *const names[] = {"exact", "native", NULL}; /* in the order of the enum */
    PyObject *const value = r->values[MHAP_ARITHMETIC];
    if (!value)
        return 0;
    const int n = mhap_choice(r->state, value, "arithmetic", names);
    r->o->c.arithmetic = n == 1 ? MHA_NATIVE : MHA_EXACT;
    return n < 0 ? -1 : 0;
}

/* -------------------------------------------------------------- numbers ----- */

static int read_float(const reading *r, mhap_option option, const char *name, float *to)
{
    double value = 0;
    if (!r->values[option])
        return 0;
    const int status = mhap_number(r->values[option], name, &value);
    *to = (float)value;
    return status;
}

/* A number that the library has as a float, and as a double for f64. */
static int read_real(const reading *r, mhap_option option, const char *name, float *narrow,
                     double *wide)
{
    const bool f64 = r->shape->q_type == MHA_F64;
    if (!r->values[option])
        return 0;
    return f64 ? mhap_number(r->values[option], name, wide) : read_float(r, option, name, narrow);
}

static int read_scale(const reading *r)
{
    mha_options *const c = &r->o->c;
    if (read_real(r, MHAP_SCALE, "scale", &c->scale, &c->scale64))
        return -1;
    if (r->values[MHAP_SCALE] && c->scale == 0 && c->scale64 == 0)
        return mhap_fail(r->state, MHA_ERR_SCALE,
                         "scale is 0; use None for 1/sqrt(D), or "
                         "head_modes for heads that look at all keys "
                         "alike");
    return read_real(r, MHAP_SOFTCAP, "softcap", &c->softcap, &c->softcap64);
}

static int read_seed(PyObject *object, uint64_t *seed)
{
    PyObject *number = PyNumber_Index(object);
    *seed = number ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    if (!PyErr_Occurred())
        return 0;
    PyErr_Clear();
    return mhap_wrong_kind("dropout_seed", object, "it must be an integer from 0 to 2**64 - 1");
}

static int read_dropout(const reading *r)
{
    mha_options *const c = &r->o->c;
    if (read_float(r, MHAP_DROPOUT, "dropout", &c->dropout))
        return -1;
    if (c->dropout != 0)
        c->flags |= MHA_TRAINING;
    PyObject *const seed = r->values[MHAP_DROPOUT_SEED];
    return seed ? read_seed(seed, &c->dropout_seed) : 0;
}

static int read_lengths(const reading *r, mhap_option option, const char *name, const int64_t **to)
{
    ptrdiff_t count = 0;
    if (!r->values[option])
        return 0;
    *to = mhap_integers(r->state, r->values[option], name, r->shape->B, &count, &r->o->kept);
    return *to ? 0 : -1;
}

static int read_vector(const reading *r, mhap_option option, const char *name, const float **to)
{
    if (!r->values[option])
        return 0;
    *to = mhap_floats(r->state, r->values[option], name, 1, &r->shape->H, &r->o->kept);
    return *to ? 0 : -1;
}

static int read_documents(const reading *r, mhap_option option, const char *name,
                          const int64_t *starts, ptrdiff_t rows, const int32_t **to,
                          ptrdiff_t *stride)
{
    const ptrdiff_t B = r->shape->B;
    if (!r->values[option])
        return 0;
    *stride = rows;
    *to = starts ? mhap_documents(r->state, r->values[option], name, 1, (ptrdiff_t)starts[B],
                                  &r->o->kept)
                 : mhap_documents(r->state, r->values[option], name, B, rows, &r->o->kept);
    return *to ? 0 : -1;
}

static int read_chosen(const reading *r, mhap_option option, const char *name, const int64_t **to,
                       ptrdiff_t *count)
{
    if (!r->values[option])
        return 0;
    *to = mhap_chosen(r->state, r->values[option], name, -1, count, &r->o->kept);
    return *to ? 0 : -1;
}

/* ---------------------------------------------------------------- heads ----- */

static int read_gates(const reading *r)
{
    const mha_shape *const s = r->shape;
    PyObject *const gates = r->values[MHAP_GATES];
    if (!gates)
        return 0;
    const int axes = mhap_axes(r->state, gates, "gates");
    if (axes < 0)
        return -1;
    const ptrdiff_t shape[] = {s->B, s->H};
    const int skip = axes == 2 ? 0 : 1;
    r->o->c.gates = mhap_floats(r->state, gates, "gates", 2 - skip, shape + skip, &r->o->kept);
    r->o->c.gates_sb = axes == 2 ? s->H : 0;
    return r->o->c.gates ? 0 : -1;
}

static int read_mode(const mhap_state *state, PyObject *value, uint8_t *mode)
{
    static const char *const names[] = {"normal", "uniform", "mean", NULL};
    if (value && PyUnicode_Check(value)) {
        const int n = mhap_choice(state, value, "an element of head_modes", names);
        *mode = (uint8_t)n;
        return n < 0 ? -1 : 0;
    }
    ptrdiff_t number = 0;
    if (!value || mhap_integer(value, "an element of head_modes", &number))
        return -1;
    *mode = number < 0 || number > UINT8_MAX ? UINT8_MAX : (uint8_t)number;
    return 0;
}

static int read_modes(const reading *r)
{
    PyObject *const list = r->values[MHAP_HEAD_MODES];
    const ptrdiff_t H = r->shape->H;
    if (!list)
        return 0;
    if (!PySequence_Check(list) || PyUnicode_Check(list) || PySequence_Size(list) != H) {
        PyErr_Clear();
        return mhap_wrong_kind("head_modes", list,
                               "it must have one of \"normal\", \"uniform\", \"mean\" for every "
                               "head");
    }
    uint8_t *const modes = mhap_keep(&r->o->kept, (size_t)H);
    for (ptrdiff_t h = 0; modes && h < H; h++) {
        PyObject *value = PySequence_GetItem(list, h);
        const int status = read_mode(r->state, value, &modes[h]);
        Py_XDECREF(value);
        if (status)
            return -1;
    }
    r->o->c.head_modes = modes;
    return modes ? 0 : -1;
}

static int read_means(const reading *r)
{
    const ptrdiff_t shape[] = {r->shape->H, r->shape->Dv};
    if (!r->values[MHAP_HEAD_MEANS])
        return 0;
    r->o->c.head_means =
        mhap_floats(r->state, r->values[MHAP_HEAD_MEANS], "head_means", 2, shape, &r->o->kept);
    return r->o->c.head_means ? 0 : -1;
}

/* ---------------------------------------------------------- all options ----- */

static int read_arrays(const reading *r)
{
    mha_options *const c = &r->o->c;
    const mha_shape *const s = r->shape;
    return read_lengths(r, MHAP_QUERY_LENGTHS, "query_lengths", &c->q_lengths) ||
                   read_lengths(r, MHAP_KEY_LENGTHS, "key_lengths", &c->k_lengths) ||
                   read_vector(r, MHAP_ALIBI_SLOPES, "alibi_slopes", &c->alibi_slopes) ||
                   read_vector(r, MHAP_SINKS, "sinks", &c->sinks) ||
                   read_documents(r, MHAP_QUERY_DOCUMENTS, "query_documents", c->q_starts, s->L,
                                  &c->q_documents, &c->q_documents_sb) ||
                   read_documents(r, MHAP_KEY_DOCUMENTS, "key_documents", c->k_starts, s->S,
                                  &c->k_documents, &c->k_documents_sb) ||
                   read_chosen(r, MHAP_WEIGHTS_HEADS, "weights_heads", &c->weights_heads,
                               &c->weights_head_count) ||
                   read_chosen(r, MHAP_WEIGHTS_ROWS, "weights_rows", &c->weights_rows,
                               &c->weights_row_count)
               ? -1
               : 0;
}

/* Checks that the bytes of arrays over rows and keys do not overflow: views with stride 0 can claim
 * to be larger than any memory. */
static int check_extents(const reading *r)
{
    const mha_shape *const s = r->shape;
    const ptrdiff_t extents[] = {s->B, s->H, s->L, s->S};
    ptrdiff_t bytes = 64;
    for (int n = 0; n < 4; n++)
        if (__builtin_mul_overflow(bytes, extents[n] > 1 ? extents[n] : 1, &bytes))
            return mhap_fail(r->state, MHA_ERR_OVERFLOW,
                             "B * H * L * S = %td * %td * %td * %td is larger than any memory",
                             s->B, s->H, s->L, s->S);
    return 0;
}

int mhap_options_read(mhap_state *state, PyObject *const *values, const mha_shape *shape,
                      mhap_options *o)
{
    const reading r = {state, values, shape, o};
    return check_extents(&r) || read_flags(&r) || read_scale(&r) || read_position(&r) ||
                   read_window(&r) || read_mask(&r) || read_ignore_mask(&r) || read_bias(&r) ||
                   read_dropout(&r) || read_gates(&r) || read_modes(&r) || read_means(&r) ||
                   read_arithmetic(&r) || read_arrays(&r)
               ? -1
               : 0;
}
