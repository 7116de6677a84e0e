/* SPDX-License-Identifier: MIT */
/* Converts a dictionary of arrays to mha_layer_weights, and checks names and shapes. */
#include "py_layer.h"

#include <stddef.h>
#include <string.h>

/* In the order of mha_layer_weights: the matrices first. */
const char *const mhap_weight_names[MHAP_WEIGHTS] = {
    "q",      "k",         "v",           "o",      "q_bias", "k_bias",      "v_bias",
    "o_bias", "extra_key", "extra_value", "q_norm", "k_norm", "q_norm_bias", "k_norm_bias"};

int mhap_weight_shape(const mha_layer_config *config, int weight, ptrdiff_t shape[2])
{
    const mha_layer_config *const c = config;
    const ptrdiff_t queries = c->H * c->D, keys = c->G * c->D, values = c->G * c->Dv;
    const ptrdiff_t outputs[MHAP_WEIGHTS] = {queries, keys,   values, c->output_width,
                                             queries, keys,   values, c->output_width,
                                             keys,    values, c->D,   c->D,
                                             c->D,    c->D};
    const ptrdiff_t inputs[MHAP_MATRICES] = {c->E, c->key_width, c->value_width, c->H * c->Dv};
    shape[0] = outputs[weight];
    if (weight >= MHAP_MATRICES)
        return 1;
    shape[1] = inputs[weight];
    return 2;
}

static mha_matrix *matrix_of(mha_layer_weights *weights, int number)
{
    mha_matrix *const matrices[MHAP_MATRICES] = {&weights->q, &weights->k, &weights->v,
                                                 &weights->o};
    return matrices[number];
}

static mha_vector *vector_of(mha_layer_weights *weights, int number)
{
    mha_vector *const vectors[MHAP_WEIGHTS - MHAP_MATRICES] = {
        &weights->q_bias,      &weights->k_bias,      &weights->v_bias, &weights->o_bias,
        &weights->extra_key,   &weights->extra_value, &weights->q_norm, &weights->k_norm,
        &weights->q_norm_bias, &weights->k_norm_bias};
    return vectors[number - MHAP_MATRICES];
}

static int check_names(PyObject *dictionary)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dictionary, &at, &key, &value)) {
        bool known = false;
        for (int n = 0; n < MHAP_WEIGHTS && PyUnicode_Check(key); n++)
            known |= PyUnicode_CompareWithASCIIString(key, mhap_weight_names[n]) == 0;
        if (!known) {
            PyErr_Format(PyExc_TypeError,
                         "weights has a %R; a layer knows q, k, v, o, each also with _bias, "
                         "extra_key, extra_value, q_norm, k_norm, q_norm_bias and k_norm_bias",
                         key);
            return -1;
        }
    }
    return 0;
}

static int read_weight(mhap_state *state, PyObject *object, int number,
                       const mha_layer_config *config, mhap_layer_weights *weights)
{
    mhap_array *const array = &weights->arrays[number];
    ptrdiff_t shape[2];
    char name[32];
    PyOS_snprintf(name, sizeof name, "weights['%s']", mhap_weight_names[number]);
    const int axes = mhap_weight_shape(config, number, shape);
    if (mhap_take(state, object, name, array) || mhap_check_float(state, array, name) ||
        mhap_check_shape(state, array, name, axes, shape))
        return -1;
    if (array->type == MHAP_F64)
        return mhap_fail(state, MHA_ERR_DTYPE,
                         "%s is f64; weights are f32, f16 or bf16: convert it to float32", name);
    weights->given |= UINT32_C(1) << number;
    if (number < MHAP_MATRICES) {
        *matrix_of(&weights->c, number) =
            (mha_matrix){array->data, (mha_dtype)array->type, array->strides[0], array->strides[1]};
        return 0;
    }
    *vector_of(&weights->c, number) = (mha_vector){array->data, (mha_dtype)array->type};
    return mhap_check_rows(state, array, name);
}

int mhap_layer_weights_read(mhap_state *state, PyObject *dictionary, const mha_layer_config *config,
                            mhap_layer_weights *weights)
{
    memset(weights, 0, sizeof *weights);
    weights->c.size = sizeof weights->c;
    if (!PyDict_Check(dictionary))
        return mhap_wrong_kind("weights", dictionary, "give a dict of arrays: q, k, v, o, ...");
    if (check_names(dictionary))
        return -1;
    for (int n = 0; n < MHAP_WEIGHTS; n++) {
        PyObject *const object = PyDict_GetItemString(dictionary, mhap_weight_names[n]);
        if (object && object != Py_None) {
            Py_INCREF(object); /* its __dlpack__ may remove it from the dictionary */
            const int status = read_weight(state, object, n, config, weights);
            Py_DECREF(object);
            if (status)
                return -1;
        } else if (n < MHAP_MATRICES) {
            PyErr_Format(PyExc_TypeError, "weights has no '%s'; a layer needs q, k, v and o",
                         mhap_weight_names[n]);
            return -1;
        }
    }
    return 0;
}

void mhap_layer_weights_end(mhap_layer_weights *weights)
{
    for (int n = 0; n < MHAP_WEIGHTS; n++)
        mhap_release(&weights->arrays[n]);
}
