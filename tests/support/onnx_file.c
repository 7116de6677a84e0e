/* SPDX-License-Identifier: MIT */
/* A small reader of protocol buffers, and on it tensors and the Attention node (onnx_file.h). */
#include "support/onnx_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------- the wire format ---- */

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

/* One field of a message: a number (wire types 0, 1, 5) or a range of bytes (wire type 2). */
typedef struct field {
    uint64_t id;
    int wire;
    uint64_t number;
    bytes text;
} field;

static bool read_varint(bytes *in, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        const uint8_t byte = *in->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(bytes *in, int size, uint64_t *value)
{
    if (in->end - in->at < size)
        return false;
    *value = 0;
    for (int i = 0; i < size; i++)
        *value |= (uint64_t)in->at[i] << (8 * i);
    in->at += size;
    return true;
}

static bool read_text(bytes *in, bytes *text)
{
    uint64_t size;
    if (!read_varint(in, &size) || size > (uint64_t)(in->end - in->at))
        return false;
    *text = (bytes){in->at, in->at + size};
    in->at += size;
    return true;
}

/* Reads the next field. Returns false at the end of the message, and on invalid input, where it
 * sets *broken. */
static bool next_field(bytes *in, field *out, bool *broken)
{
    uint64_t tag;
    if (in->at == in->end)
        return false;
    *out = (field){0};
    bool ok = read_varint(in, &tag);
    out->id = tag >> 3;
    out->wire = (int)(tag & 7);
    switch (out->wire) {
    case 0:
        ok = ok && read_varint(in, &out->number);
        break;
    case 1:
        ok = ok && read_fixed(in, 8, &out->number);
        break;
    case 2:
        ok = ok && read_text(in, &out->text);
        break;
    case 5:
        ok = ok && read_fixed(in, 4, &out->number);
        break;
    default:
        ok = false;
    }
    *broken = !ok;
    return ok;
}

static bool is_text(bytes text, const char *word)
{
    const size_t size = (size_t)(text.end - text.at);
    return size == strlen(word) && memcmp(text.at, word, size) == 0;
}

/* The whole file, which the caller frees; NULL if it cannot be read. */
static uint8_t *read_whole(const char *path, bytes *in)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *data = NULL;
    long size = -1;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        data = malloc((size_t)size + 1);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    if (data)
        *in = (bytes){data, data + size};
    return data;
}

/* ------------------------------------------------------------------ tensors ---- */

size_t onnx_type_size(int64_t type)
{
    switch (type) {
    case ONNX_FLOAT:
        return 4;
    case ONNX_INT64:
        return 8;
    case ONNX_BOOL:
        return 1;
    case ONNX_FLOAT16:
    case ONNX_BFLOAT16:
        return 2;
    default:
        return 0;
    }
}

static const char *add_dim(onnx_tensor *tensor, uint64_t dim)
{
    if (tensor->rank == ONNX_MAX_RANK)
        return "more than four dimensions";
    if (dim > 1 << 20)
        return "a dimension is negative or huge";
    tensor->dims[tensor->rank++] = (ptrdiff_t)dim;
    return NULL;
}

/* Dimensions are separate fields, or packed into one. */
static const char *add_dims(onnx_tensor *tensor, const field *dims)
{
    if (dims->wire == 0)
        return add_dim(tensor, dims->number);
    bytes in = dims->text;
    const char *error = NULL;
    while (!error && in.at < in.end) {
        uint64_t dim;
        error = read_varint(&in, &dim) ? add_dim(tensor, dim) : "broken dimensions";
    }
    return error;
}

static const char *take_data(onnx_tensor *tensor, bytes raw)
{
    const size_t size = onnx_type_size(tensor->type);
    if (size == 0)
        return "an element type that is not read here";
    tensor->count = 1;
    for (int i = 0; i < tensor->rank; i++)
        tensor->count *= (size_t)tensor->dims[i];
    if ((size_t)(raw.end - raw.at) != tensor->count * size)
        return "raw data of another size than the dimensions say";
    tensor->data = malloc(tensor->count * size + 1);
    if (!tensor->data)
        return "no memory";
    memcpy(tensor->data, raw.at, tensor->count * size);
    return NULL;
}

static const char *parse_tensor(bytes in, onnx_tensor *tensor)
{
    enum { DIMS = 1, DATA_TYPE = 2, NAME = 8, RAW_DATA = 9 };
    bytes raw = {in.at, in.at};
    const char *error = NULL;
    bool broken = false;
    field part;
    while (!error && next_field(&in, &part, &broken)) {
        switch (part.id) {
        case DIMS:
            error = add_dims(tensor, &part);
            break;
        case DATA_TYPE:
            tensor->type = (int64_t)part.number;
            break;
        case NAME:
            break;
        case RAW_DATA:
            raw = part.text;
            break;
        default:
            error = "a field that is not read here";
        }
    }
    if (broken)
        error = "broken file";
    return error ? error : take_data(tensor, raw);
}

const char *onnx_read_tensor(const char *path, onnx_tensor *tensor)
{
    bytes in;
    *tensor = (onnx_tensor){0};
    uint8_t *file = read_whole(path, &in);
    if (!file)
        return "cannot be read";
    const char *error = parse_tensor(in, tensor);
    free(file);
    return error;
}

void onnx_free_tensor(onnx_tensor *tensor)
{
    free(tensor->data);
    *tensor = (onnx_tensor){0};
}

static double half_number(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size;
    if (exponent == 31)
        size = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        size = ldexp(fraction, -24);
    else
        size = ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

double onnx_number(const void *data, int64_t type, size_t index)
{
    float number = 0;
    if (type == ONNX_FLOAT) {
        memcpy(&number, (const char *)data + 4 * index, 4);
        return (double)number;
    }
    uint16_t bits;
    memcpy(&bits, (const char *)data + 2 * index, 2);
    if (type == ONNX_FLOAT16)
        return half_number(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    memcpy(&number, &wide, 4);
    return (double)number;
}

/* ----------------------------------------------------------------- the node ---- */

static const char *parse_attribute(bytes in, onnx_node *node)
{
    enum { NAME = 1, FLOAT = 2, INT = 3 };
    bytes name = {in.at, in.at};
    uint64_t number = 0;
    float real = 0;
    bool broken = false;
    field part;
    while (next_field(&in, &part, &broken)) {
        if (part.id == NAME)
            name = part.text;
        if (part.id == INT)
            number = part.number;
        if (part.id == FLOAT) {
            const uint32_t low = (uint32_t)part.number;
            memcpy(&real, &low, 4);
        }
    }
    const struct {
        const char *name;
        int64_t *number;
        float *real;
    } known[] = {
        {"is_causal", &node->is_causal, NULL},
        {"q_num_heads", &node->q_num_heads, NULL},
        {"kv_num_heads", &node->kv_num_heads, NULL},
        {"qk_matmul_output_mode", &node->qk_matmul_output_mode, NULL},
        {"softmax_precision", &node->softmax_precision, NULL},
        {"scale", NULL, &node->scale},
        {"softcap", NULL, &node->softcap},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!is_text(name, known[i].name))
            continue;
        if (known[i].number)
            *known[i].number = (int64_t)number;
        else
            *known[i].real = real;
        return broken ? "broken attribute" : NULL;
    }
    return "an attribute that is not read here";
}

/* Marks the next of `count` inputs or outputs as given if its name is not empty. */
static const char *add_name(bool *given, int count, int *used, bytes name)
{
    if (*used == count)
        return "more inputs or outputs than Attention has";
    given[(*used)++] = name.at < name.end;
    return NULL;
}

static const char *parse_node(bytes in, onnx_node *node)
{
    enum { INPUT = 1, OUTPUT = 2, OP_TYPE = 4, ATTRIBUTE = 5 };
    int inputs = 0, outputs = 0;
    bool attention = false, broken = false;
    const char *error = NULL;
    field part;
    while (!error && next_field(&in, &part, &broken)) {
        if (part.id == INPUT)
            error = add_name(node->has_input, ONNX_INPUTS, &inputs, part.text);
        else if (part.id == OUTPUT)
            error = add_name(node->has_output, ONNX_OUTPUTS, &outputs, part.text);
        else if (part.id == OP_TYPE)
            attention = is_text(part.text, "Attention");
        else if (part.id == ATTRIBUTE)
            error = parse_attribute(part.text, node);
    }
    if (broken)
        return "broken node";
    return error ? error : attention ? NULL : "the node is not Attention";
}

static const char *parse_graph(bytes in, onnx_node *node)
{
    enum { NODE = 1, INITIALIZER = 5 };
    int nodes = 0;
    bool broken = false;
    const char *error = NULL;
    field part;
    while (!error && next_field(&in, &part, &broken)) {
        if (part.id == NODE && nodes++ == 0)
            error = parse_node(part.text, node);
        else if (part.id == NODE || part.id == INITIALIZER)
            error = "more than one node in the graph";
    }
    if (broken)
        return "broken graph";
    return error ? error : nodes == 1 ? NULL : "no node in the graph";
}

static const char *parse_model(bytes in, onnx_node *node)
{
    enum { GRAPH = 7 };
    const char *error = "no graph in the model";
    bool broken = false;
    field part;
    while (next_field(&in, &part, &broken))
        if (part.id == GRAPH)
            error = parse_graph(part.text, node);
    return broken ? "broken file" : error;
}

const char *onnx_read_node(const char *path, onnx_node *node)
{
    bytes in;
    *node = (onnx_node){0};
    uint8_t *file = read_whole(path, &in);
    if (!file)
        return "cannot be read";
    const char *error = parse_model(in, node);
    free(file);
    return error;
}
