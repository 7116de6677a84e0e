/* SPDX-License-Identifier: MIT */
/* attention_backward(): reads which gradients are requested, allocates them, and calls the
 * library. */
#include "py_functions.h"
#include "py_pairs.h"

#include <string.h>

/* The gradients that can be requested, in the order of the named tuple Gradients. */
enum {
    WANT_QUERY,
    WANT_KEY,
    WANT_VALUE,
    WANT_BIAS,
    WANT_MASK,
    WANT_ALIBI_SLOPES,
    WANT_SINKS,
    WANT_GATES,
    WANTS
};
static const char *const want_names[] = {"query",        "key",   "value", "bias", "mask",
                                         "alibi_slopes", "sinks", "gates", NULL};

/* Slots of the function's own arguments. */
enum { OWN_D_OUTPUT, OWN_QUERY, OWN_KEY, OWN_VALUE, OWN_OUTPUT, OWN_LSE, OWN_WANT, OWN_D_LSE, OWN };

/* A backward pass with everything it owns. */
typedef struct backward {
    mhap_call call;
    mhap_tensor d_output, output;
    mhap_array lse, d_lse;
    mha_gradients c;
    bool wanted[WANTS];
    PyObject *results[WANTS];
    mhap_array arrays[WANTS]; /* the memory of the results */
    float *columns[WANTS];    /* see py_pairs.h */
} backward;

/* ----------------------------------------------------------------- want ----- */

static int want_one(const mhap_state *state, PyObject *name, bool *wanted)
{
    const int number = mhap_choice(state, name, "an element of want", want_names);
    if (number >= 0)
        wanted[number] = true;
    return number < 0 ? -1 : 0;
}

static int read_want(const mhap_state *state, PyObject *want, bool *wanted)
{
    if (!want) {
        wanted[WANT_QUERY] = wanted[WANT_KEY] = wanted[WANT_VALUE] = true;
        return 0;
    }
    PyObject *iterator = PyUnicode_Check(want) ? NULL : PyObject_GetIter(want);
    if (!iterator) {
        PyErr_Clear();
        return mhap_wrong_kind("want", want, "it must be several names, as (\"query\", \"bias\")");
    }
    int status = 0;
    for (PyObject *name; status == 0 && (name = PyIter_Next(iterator));) {
        status = want_one(state, name, wanted);
        Py_DECREF(name);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? -1 : status;
}

static int check_wanted(const backward *b)
{
    const mha_options *const c = &b->call.o.c;
    const bool given[WANTS] = {
        true, true, true, c->bias.data, c->add_mask.data, c->alibi_slopes, c->sinks, c->gates};
    for (int n = 0; n < WANTS; n++)
        if (b->wanted[n] && !given[n])
            return mhap_fail(b->call.state, MHA_ERR_NULL, "the gradient of %s is wanted, but %s %s",
                             want_names[n], want_names[n],
                             n == WANT_MASK && c->attend_mask.data ? "is boolean and has none"
                                                                   : "was not given");
    return 0;
}

/* --------------------------------------------------------------- inputs ----- */

/* The output of the forward pass, or its gradient. */
static int read_output(backward *b, PyObject *object, const char *name, mhap_tensor *tensor)
{
    const mhap_call *const call = &b->call;
    ptrdiff_t shape[MHAP_MAX_AXES];
    const int axes = mhap_shape_like(&call->query, call->shape.Dv, shape);
    return mhap_tensor_read(call->state, object, name, call->heads_last, call->o.c.q_starts,
                            tensor) ||
                   mhap_check_shape(call->state, &tensor->array, name, axes, shape)
               ? -1
               : 0;
}

static int read_inputs(backward *b, PyObject *const *own)
{
    mhap_call *const call = &b->call;
    mha_view lse;
    if (read_want(call->state, own[OWN_WANT], b->wanted) || check_wanted(b) ||
        read_output(b, own[OWN_D_OUTPUT], "d_output", &b->d_output) ||
        read_output(b, own[OWN_OUTPUT], "output", &b->output) ||
        mhap_lse_read(call, own[OWN_LSE], "lse", &b->lse, &lse))
        return -1;
    call->o.c.lse = mhap_as_out(lse);
    call->shape.o_type = (mha_dtype)b->output.array.type;
    b->c = (mha_gradients){.size = sizeof b->c,
                           .d_o = b->d_output.view,
                           .d_o_type = (mha_dtype)b->d_output.array.type};
    if (own[OWN_D_LSE] && mhap_lse_read(call, own[OWN_D_LSE], "d_lse", &b->d_lse, &b->c.d_lse))
        return -1;
    return 0;
}

/* -------------------------------------------------------------- results ----- */

/* A new f32 array for a gradient. It is 0, since packed sequences may not cover all rows. */
static int make(backward *b, int number, int axes, const ptrdiff_t *shape)
{
    mhap_array *const array = &b->arrays[number];
    b->results[number] =
        mhap_new(b->call.state, &b->call.query.array, MHAP_F32, axes, shape, array);
    if (!b->results[number])
        return -1;
    memset(array->data, 0, (size_t)mhap_count(axes, shape) * sizeof(float));
    return 0;
}

static int make_like_input(backward *b, int number, const mhap_tensor *input, mha_out *out)
{
    if (!b->wanted[number])
        return 0;
    if (make(b, number, input->array.axes, input->array.shape))
        return -1;
    mhap_tensor tensor = {.name = "a gradient", .array = b->arrays[number]};
    const bool packed = number == WANT_QUERY ? b->call.o.c.q_starts : b->call.o.c.k_starts;
    if (mhap_tensor_view(b->call.state, b->call.heads_last, packed, &tensor))
        return -1;
    *out = mhap_as_out(tensor.view);
    return 0;
}

static int make_like_pairs(backward *b, int number, const mhap_array *a, mha_out *out)
{
    if (!b->wanted[number])
        return 0;
    if (make(b, number, a->axes, a->shape))
        return -1;
    return mhap_pairs_out(&b->call.shape, a, &b->arrays[number], &b->call.o.kept, out,
                          &b->columns[number]);
}

static int make_vector(backward *b, int number, bool per_batch, float **out)
{
    const ptrdiff_t shape[] = {b->call.shape.B, b->call.shape.H};
    if (!b->wanted[number])
        return 0;
    if (make(b, number, per_batch ? 2 : 1, per_batch ? shape : shape + 1))
        return -1;
    *out = b->arrays[number].data;
    return 0;
}

static int make_results(backward *b)
{
    const mhap_call *const call = &b->call;
    mha_gradients *const c = &b->c;
    return make_like_input(b, WANT_QUERY, &call->query, &c->d_q) ||
                   make_like_input(b, WANT_KEY, &call->key, &c->d_k) ||
                   make_like_input(b, WANT_VALUE, &call->value, &c->d_v) ||
                   make_like_pairs(b, WANT_BIAS, &call->o.bias, &c->d_bias) ||
                   make_like_pairs(b, WANT_MASK, &call->o.mask, &c->d_add_mask) ||
                   make_vector(b, WANT_ALIBI_SLOPES, false, &c->d_alibi_slopes) ||
                   make_vector(b, WANT_SINKS, false, &c->d_sinks) ||
                   make_vector(b, WANT_GATES, call->o.c.gates_sb != 0, &c->d_gates)
               ? -1
               : 0;
}

/* ------------------------------------------------------------- the call ----- */

static int run(backward *b)
{
    mhap_call *const call = &b->call;
    mha_status status = MHA_OK;
    Py_BEGIN_ALLOW_THREADS;
    status =
        mha_attention_backward(&call->shape, call->query.view, call->key.view, call->value.view,
                               b->output.view, &call->o.c, &b->c, NULL, 0, call->pool);
    mhap_pairs_sum(&call->shape, b->columns[WANT_BIAS], &b->arrays[WANT_BIAS]);
    mhap_pairs_sum(&call->shape, b->columns[WANT_MASK], &b->arrays[WANT_MASK]);
    Py_END_ALLOW_THREADS;
    return mhap_check(call->state, status, call->o.message);
}

static PyObject *gather(const backward *b)
{
    PyObject *const type = mhap_python_type(&b->call.state->gradients_type, "Gradients");
    PyObject *fields[WANTS];
    for (int n = 0; n < WANTS; n++)
        fields[n] = b->results[n] ? b->results[n] : Py_None;
    return type ? PyObject_CallFunctionObjArgs(type, fields[0], fields[1], fields[2], fields[3],
                                               fields[4], fields[5], fields[6], fields[7], NULL)
                : NULL;
}

static void end(backward *b)
{
    for (int n = 0; n < WANTS; n++) {
        mhap_release(&b->arrays[n]);
        Py_XDECREF(b->results[n]);
    }
    mhap_release(&b->d_output.array);
    mhap_release(&b->output.array);
    mhap_release(&b->lse);
    mhap_release(&b->d_lse);
    mhap_call_end(&b->call);
}

PyObject *mhap_attention_backward(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names)
{
    static const char *const own_names[OWN] = {"d_output", "query", "key",  "value",
                                               "output",   "lse",   "want", "d_lse"};
    static const mhap_signature signature = {
        "attention_backward",
        own_names,
        OWN,
        OWN_WANT,
        OWN_WANT,
        MHAP_BIT(MHAP_OUT) | MHAP_BIT(MHAP_RETURN_LSE) | MHAP_BIT(MHAP_LSE_OUT) |
            MHAP_BIT(MHAP_RETURN_WEIGHTS) | MHAP_BIT(MHAP_AVERAGE_WEIGHTS) |
            MHAP_BIT(MHAP_WEIGHTS_HEADS) | MHAP_BIT(MHAP_WEIGHTS_ROWS) |
            MHAP_BIT(MHAP_WEIGHTS_OUT) | MHAP_BIT(MHAP_STATISTICS)};
    mhap_state *const state = PyModule_GetState(module);
    PyObject *own[OWN], *result = NULL;
    backward b;
    memset(&b, 0, sizeof b);
    if (mhap_arguments_fast(state, &signature, args, count, names, own, b.call.values))
        return NULL;
    if (mhap_call_begin(state, own[OWN_QUERY], own[OWN_KEY], own[OWN_VALUE], &b.call) == 0 &&
        read_inputs(&b, own) == 0 && make_results(&b) == 0 && run(&b) == 0)
        result = gather(&b);
    end(&b);
    return result;
}
