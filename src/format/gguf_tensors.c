/* SPDX-License-Identifier: MIT */
/*
 * The tensors of GGUF files: the table of ggml's element types, and the list of tensors, which is
 * read and then checked as a whole: every tensor is inside of the file and aligned, no two overlap,
 * and no name occurs twice. Offsets are relative to the first aligned byte after the list.
 */
#include "format/gguf_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"

#define REFUSE(c, ...) safetensors_fail((c)->report, MHA_ERR_FORMAT, __VA_ARGS__)

/* ----------------------------------------------------------------- types ----- */

/* `block` elements take `bytes` bytes. Types without a name were removed from ggml. */
static const struct {
    const char *name;
    uint16_t block, bytes;
    bool usable;
    mha_dtype type;
} types[] = {
    [0] = {"F32", 1, 4, true, MHA_F32},
    [1] = {"F16", 1, 2, true, MHA_F16},
    [2] = {"Q4_0", 32, 18, true, MHA_Q4_0},
    [3] = {"Q4_1", 32, 20, true, MHA_Q4_1},
    [6] = {"Q5_0", 32, 22, false, 0},
    [7] = {"Q5_1", 32, 24, false, 0},
    [8] = {"Q8_0", 32, 34, true, MHA_Q8_0},
    [9] = {"Q8_1", 32, 36, false, 0},
    [10] = {"Q2_K", 256, 84, false, 0},
    [11] = {"Q3_K", 256, 110, false, 0},
    [12] = {"Q4_K", 256, 144, true, MHA_Q4_K},
    [13] = {"Q5_K", 256, 176, true, MHA_Q5_K},
    [14] = {"Q6_K", 256, 210, true, MHA_Q6_K},
    [15] = {"Q8_K", 256, 292, false, 0},
    [16] = {"IQ2_XXS", 256, 66, false, 0},
    [17] = {"IQ2_XS", 256, 74, false, 0},
    [18] = {"IQ3_XXS", 256, 98, false, 0},
    [19] = {"IQ1_S", 256, 50, false, 0},
    [20] = {"IQ4_NL", 32, 18, false, 0},
    [21] = {"IQ3_S", 256, 110, false, 0},
    [22] = {"IQ2_S", 256, 82, false, 0},
    [23] = {"IQ4_XS", 256, 136, false, 0},
    [24] = {"I8", 1, 1, false, 0}, /* MHA_I8 has scales, this has none */
    [25] = {"I16", 1, 2, false, 0},
    [26] = {"I32", 1, 4, false, 0},
    [27] = {"I64", 1, 8, false, 0},
    [28] = {"F64", 1, 8, true, MHA_F64},
    [29] = {"IQ1_M", 256, 56, false, 0},
    [30] = {"BF16", 1, 2, true, MHA_BF16},
    [34] = {"TQ1_0", 256, 54, false, 0},
    [35] = {"TQ2_0", 256, 66, false, 0},
    [39] = {"MXFP4", 32, 17, false, 0},
    [40] = {"NVFP4", 64, 36, false, 0},
    [41] = {"Q1_0", 128, 18, false, 0},
    [42] = {"Q2_0", 64, 18, false, 0},
};
enum { TYPES = sizeof types / sizeof types[0] };

const char *gguf_tensor_type_name(uint32_t ggml_type)
{
    return ggml_type < TYPES ? types[ggml_type].name : NULL;
}

/* ------------------------------------------------------------- one tensor ----- */

static mha_status cut_list(const gguf_cursor *c, uint64_t number)
{
    return REFUSE(c, "the file ends within entry %" PRIu64 " of the list of tensors", number);
}

static mha_status take_name(gguf_cursor *c, uint64_t number, char name[GGUF_NAME_MAX + 1])
{
    gguf_string string;
    if (!gguf_take_string(c, &string))
        return cut_list(c, number);
    if (string.length > GGUF_NAME_MAX)
        return REFUSE(c, "the name of tensor %" PRIu64 " has %" PRIu64 " bytes; %d are allowed",
                      number, string.length, GGUF_NAME_MAX);
    const size_t length = (size_t)string.length;
    if (memchr(string.text, '\0', length) || !mhai_utf8_valid(string.text, length))
        return REFUSE(c, "the name of tensor %" PRIu64 " is not UTF-8 text", number);
    memcpy(name, string.text, length);
    name[length] = '\0';
    return MHA_OK;
}

/* The file has the contiguous axis first. */
static mha_status take_shape(gguf_cursor *c, uint64_t number, gguf_tensor *tensor)
{
    uint32_t rank;
    if (!gguf_take_u32(c, &rank))
        return cut_list(c, number);
    if (rank > 4)
        return REFUSE(c, "the tensor \"%s\" has %" PRIu32 " axes; 4 are allowed",
                      safetensors_show(tensor->name).text, rank);
    tensor->rank = (int)rank;
    for (uint32_t n = rank; n-- > 0;)
        if (!gguf_take_u64(c, &tensor->shape[n]))
            return cut_list(c, number);
    return MHA_OK;
}

static mha_status take_tensor_type(gguf_cursor *c, uint64_t number, gguf_tensor *tensor)
{
    uint32_t type;
    if (!gguf_take_u32(c, &type))
        return cut_list(c, number);
    if (!gguf_tensor_type_name(type))
        return REFUSE(c, "the tensor \"%s\" has the unknown type %" PRIu32,
                      safetensors_show(tensor->name).text, type);
    tensor->ggml_type = type;
    tensor->usable = types[type].usable;
    tensor->type = types[type].type;
    return MHA_OK;
}

/* Sizes tensor->bytes. The number of elements must fit into int64_t, as in ggml. */
static mha_status measure(const gguf_cursor *c, gguf_tensor *tensor)
{
    const uint64_t block = types[tensor->ggml_type].block;
    const uint64_t row = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    uint64_t count = 1;
    bool overflow = false;
    for (int n = 0; n < tensor->rank; n++)
        overflow |= tensor->shape[n] > INT64_MAX ||
                    __builtin_mul_overflow(count, tensor->shape[n], &count) || count > INT64_MAX;
    overflow |= __builtin_mul_overflow(count / block, (uint64_t)types[tensor->ggml_type].bytes,
                                       &tensor->bytes);
    if (overflow)
        return REFUSE(c, "the shape of the tensor \"%s\" overflows",
                      safetensors_show(tensor->name).text);
    if (row % block != 0)
        return REFUSE(c,
                      "the tensor \"%s\" has rows of %" PRIu64 " elements, not a multiple of the "
                      "%" PRIu64 " in a block of %s",
                      safetensors_show(tensor->name).text, row, block,
                      gguf_tensor_type_name(tensor->ggml_type));
    return MHA_OK;
}

/* The offset is kept for place_tensors(), since the list does not end here. */
static mha_status take_tensor(gguf_cursor *c, uint64_t number, gguf_tensor *tensor,
                              char name[GGUF_NAME_MAX + 1], uint64_t *offset)
{
    tensor->name = name;
    mha_status status = take_name(c, number, name);
    if (status == MHA_OK)
        status = take_shape(c, number, tensor);
    if (status == MHA_OK)
        status = take_tensor_type(c, number, tensor);
    if (status == MHA_OK && !gguf_take_u64(c, offset))
        status = cut_list(c, number);
    return status == MHA_OK ? measure(c, tensor) : status;
}

/* --------------------------------------------------------------- the list ----- */

static int compare_names(const void *left, const void *right)
{
    const gguf_tensor_entry *const a = left, *const b = right;
    return strcmp(a->tensor->name, b->tensor->name);
}

static int compare_places(const void *left, const void *right)
{
    const gguf_tensor *const a = ((const gguf_tensor_entry *)left)->tensor,
                             *const b = ((const gguf_tensor_entry *)right)->tensor;
    const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    if (x != y)
        return x < y ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static mha_status place_tensor(const gguf_cursor *c, gguf_tensor *tensor, uint64_t begin,
                               uint64_t offset, uint32_t alignment)
{
    const safetensors_shown name = safetensors_show(tensor->name);
    uint64_t end;
    if (offset % alignment != 0)
        return REFUSE(c,
                      "the offset %" PRIu64 " of the tensor \"%s\" is not a multiple of the "
                      "alignment %" PRIu32,
                      offset, name.text, alignment);
    if (__builtin_add_overflow(begin, offset, &begin) ||
        __builtin_add_overflow(begin, tensor->bytes, &end) || end > c->size)
        return REFUSE(c,
                      "the tensor \"%s\" of %" PRIu64 " bytes at offset %" PRIu64
                      " is not inside of the file of %" PRIu64 " bytes; was it copied completely?",
                      name.text, tensor->bytes, offset, c->size);
    tensor->data = c->bytes + begin;
    return MHA_OK;
}

/* Sorts twice: by place to find an overlap, then by name for gguf_find_tensor(). */
static mha_status check_list(gguf_open_file *f, const gguf_cursor *c)
{
    const size_t count = f->file.tensor_count;
    gguf_tensor_entry *const sorted = f->sorted_tensors;
    for (size_t n = 0; n < count; n++)
        sorted[n].tensor = &f->tensors[n];
    qsort(sorted, count, sizeof *sorted, compare_places);
    for (size_t n = 1; n < count; n++)
        if ((const unsigned char *)sorted[n - 1].tensor->data + sorted[n - 1].tensor->bytes >
            (const unsigned char *)sorted[n].tensor->data)
            return REFUSE(c, "the tensors \"%s\" and \"%s\" overlap",
                          safetensors_show(sorted[n - 1].tensor->name).text,
                          safetensors_show(sorted[n].tensor->name).text);
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t n = 1; n < count; n++)
        if (compare_names(&sorted[n - 1], &sorted[n]) == 0)
            return REFUSE(c, "the tensor \"%s\" occurs twice",
                          safetensors_show(sorted[n].tensor->name).text);
    return MHA_OK;
}

static mha_status read_list(gguf_open_file *f, gguf_cursor *c, uint64_t *offsets,
                            uint32_t alignment)
{
    const size_t count = f->file.tensor_count;
    mha_status status = MHA_OK;
    for (size_t n = 0; n < count && status == MHA_OK; n++)
        status = take_tensor(c, n, &f->tensors[n], f->names[n], &offsets[n]);
    if (status != MHA_OK)
        return status;
    /* At most 2^63 + 2^32: the cursor is inside of a file in memory. */
    const uint64_t begin = (c->at + alignment - 1) / alignment * alignment;
    for (size_t n = 0; n < count && status == MHA_OK; n++)
        status = place_tensor(c, &f->tensors[n], begin, offsets[n], alignment);
    return status == MHA_OK ? check_list(f, c) : status;
}

mha_status gguf_read_tensors(gguf_open_file *f, gguf_cursor *c, uint64_t count, uint32_t alignment)
{
    if (count > (c->size - c->at) / GGUF_TENSOR_MIN)
        return REFUSE(
            c, "the header announces %" PRIu64 " tensors, for which the file is too short", count);
    if (count == 0)
        return MHA_OK;
    f->tensors = calloc((size_t)count, sizeof *f->tensors);
    f->names = calloc((size_t)count, sizeof *f->names);
    f->sorted_tensors = malloc((size_t)count * sizeof *f->sorted_tensors);
    uint64_t *const offsets = malloc((size_t)count * sizeof *offsets);
    f->file.tensors = f->tensors;
    f->file.tensor_count = (size_t)count;
    const bool full = !f->tensors || !f->names || !f->sorted_tensors || !offsets;
    const mha_status status = full
                                  ? safetensors_fail(c->report, MHA_ERR_MEMORY,
                                                     "out of memory for %" PRIu64 " tensors", count)
                                  : read_list(f, c, offsets, alignment);
    free(offsets);
    return status;
}
