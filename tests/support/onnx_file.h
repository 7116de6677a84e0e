/* SPDX-License-Identifier: MIT */
/*
 * Enough of the ONNX file format to read the conformance cases of the Attention operator: a
 * tensor (TensorProto with raw data), and the one Attention node of a model (ModelProto).
 * Anything else in a file is an error.
 */
#ifndef MHA_ONNX_FILE_H
#define MHA_ONNX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values of TensorProto.DataType that occur. */
enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9, ONNX_FLOAT16 = 10, ONNX_BFLOAT16 = 16 };

enum { ONNX_MAX_RANK = 4, ONNX_INPUTS = 7, ONNX_OUTPUTS = 4 };

/* Positions of the node's inputs and outputs. */
enum { ONNX_Q, ONNX_K, ONNX_V, ONNX_MASK, ONNX_PAST_KEY, ONNX_PAST_VALUE, ONNX_NONPAD };
enum { ONNX_Y, ONNX_PRESENT_KEY, ONNX_PRESENT_VALUE, ONNX_QK };

/* Row-major. The tensor owns `data`, which is NULL if it is not given. */
typedef struct onnx_tensor {
    int64_t type;
    int rank;
    ptrdiff_t dims[ONNX_MAX_RANK];
    size_t count; /* elements */
    void *data;
} onnx_tensor;

/* Attributes that are not in the file are 0, which is their default. */
typedef struct onnx_node {
    bool has_input[ONNX_INPUTS];
    bool has_output[ONNX_OUTPUTS];
    int64_t is_causal, q_num_heads, kv_num_heads, qk_matmul_output_mode, softmax_precision;
    float scale, softcap;
} onnx_node;

/* Both return NULL, or a description of what is wrong with the file. */
const char *onnx_read_tensor(const char *path, onnx_tensor *tensor);
const char *onnx_read_node(const char *path, onnx_node *node);

void onnx_free_tensor(onnx_tensor *tensor);

/* The bytes of one element; 0 for a type that is not in the list above. */
size_t onnx_type_size(int64_t type);

/* Element `index` of a FLOAT, FLOAT16 or BFLOAT16 array. */
double onnx_number(const void *data, int64_t type, size_t index);

#endif
