/* SPDX-License-Identifier: MIT */
/*
 * Weights of a binding become vectors of f32 and packed linears. What is shared by build.c and
 * build_layers.c:
 *
 *      build_vector, build_norm     copies as f32
 *      build_linear, build_type     packed matrices in the requested storage
 *      matrix_row                   single rows of a mapped matrix, as embeddings read them
 *
 * Mapped pages are released as soon as a matrix is packed, so that the weights are not in memory
 * twice.
 */
#include "model/model_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/convert.h"

enum { HASHED_NUMBERS = 256 }; /* of each matrix: a multiple of every block */

/* ----------------------------------------------------------------- memory ----- */

void *build_array(model_builder *builder, size_t count, size_t size)
{
    mha_model *const model = builder->model;
    void **const moved = mhai_array_grow(model->arrays, &model->array_room, model->array_count + 1,
                                         sizeof *model->arrays);
    if (!moved)
        return NULL;
    model->arrays = moved;
    void *const array = calloc(count + !count, size);
    if (array) {
        model->arrays[model->array_count++] = array;
        model->memory_bytes += count * size;
    }
    return array;
}

static mha_status no_memory(const model_builder *builder, const char *what)
{
    return model_fail(builder->message, builder->message_size, MHA_ERR_MEMORY,
                      "no memory for %s of the model", what);
}

/* ------------------------------------------------------------ plain numbers ----- */

static void hash_numbers(model_builder *builder, const float *numbers, ptrdiff_t count)
{
    uint64_t hash = builder->hash;
    for (ptrdiff_t n = 0; n < count; n++) {
        uint32_t bits;
        memcpy(&bits, &numbers[n], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    builder->hash = hash;
}

static bool is_plain(mha_dtype type)
{
    return type == MHA_F32 || type == MHA_F16 || type == MHA_BF16;
}

/* Elements of a plain type, any stride, any alignment. */
static void plain_numbers(mha_dtype type, const char *data, ptrdiff_t stride, ptrdiff_t count,
                          float *to)
{
    if (type == MHA_F32) {
        for (ptrdiff_t n = 0; n < count; n++)
            memcpy(&to[n], data + n * stride * 4, sizeof *to);
        return;
    }
    for (ptrdiff_t n = 0; n < count; n++) {
        uint16_t bits;
        memcpy(&bits, data + n * stride * 2, sizeof bits);
        to[n] = type == MHA_F16 ? convert_f16_to_f32(bits) : convert_bf16_to_f32(bits);
    }
}

/* The first `count` numbers of row n. */
static void matrix_numbers(const bound_matrix *m, ptrdiff_t n, ptrdiff_t count, float *to)
{
    const char *const data = m->data;
    if (!is_plain(m->type)) {
        mha_row_to_f32(m->type, data + n * (ptrdiff_t)mha_row_bytes(m->type, m->out_stride), count,
                       to);
        return;
    }
    const ptrdiff_t size = (ptrdiff_t)mha_dtype_size(m->type);
    const char *const row = data + n * m->out_stride * size;
    if (m->in_stride == 1 && (uintptr_t)row % (size_t)size == 0)
        mha_row_to_f32(m->type, row, count, to);
    else
        plain_numbers(m->type, row, m->in_stride, count, to);
}

void matrix_row(const bound_matrix *matrix, ptrdiff_t n, float *to)
{
    matrix_numbers(matrix, n, matrix->inputs, to);
}

void vector_numbers(const bound_vector *vector, float *to)
{
    plain_numbers(vector->type, vector->data, 1, vector->count, to);
}

bool matrix_is_readable(const bound_matrix *matrix)
{
    return matrix->data && matrix->type != MHA_F64 && matrix->type != MHA_I8 &&
           mha_row_bytes(matrix->type, matrix->inputs) > 0;
}

mha_status build_check_rows(model_builder *builder, const char *what, const bound_matrix *matrix)
{
    if (!matrix->data)
        return MHA_OK;
    if (!matrix_is_readable(matrix))
        return model_fail(builder->message, builder->message_size, MHA_ERR_DTYPE,
                          "%s: elements of this type cannot be read row by row", what);
    float numbers[HASHED_NUMBERS];
    const ptrdiff_t count = matrix->inputs < HASHED_NUMBERS ? matrix->inputs : HASHED_NUMBERS;
    matrix_numbers(matrix, 0, count, numbers);
    hash_numbers(builder, numbers, count);
    matrix_numbers(matrix, matrix->outputs / 2, count, numbers);
    hash_numbers(builder, numbers, count);
    return MHA_OK;
}

mha_status build_vector(model_builder *builder, const bound_vector *vector, float add,
                        const float **to)
{
    *to = NULL;
    if (!vector->data)
        return MHA_OK;
    float *const numbers = build_array(builder, (size_t)vector->count, sizeof *numbers);
    if (!numbers)
        return no_memory(builder, "a vector");
    vector_numbers(vector, numbers);
    for (ptrdiff_t n = 0; n < vector->count && add != 0.0f; n++)
        numbers[n] += add;
    hash_numbers(builder, numbers, vector->count);
    *to = numbers;
    return MHA_OK;
}

mha_status build_norm(model_builder *builder, const bound_norm *norm, model_norm *to)
{
    const float add = builder->model->files.description.norm_add;
    const mha_status status = build_vector(builder, &norm->weight, add, &to->weight);
    return status ? status : build_vector(builder, &norm->bias, 0.0f, &to->bias);
}

/* --------------------------------------------------------------- matrices ----- */

mha_matrix build_matrix(const bound_matrix *matrix)
{
    const mha_matrix m = {matrix->data, matrix->type, matrix->out_stride, matrix->in_stride};
    return m;
}

mha_vector build_bias(const bound_vector *vector)
{
    const mha_vector v = {vector->data, vector->type};
    return v;
}

/* A block type needs whole blocks of inputs. */
static mha_dtype whole_blocks(mha_dtype type, const bound_linear *const *linears, int count)
{
    for (int n = 0; n < count; n++)
        if (mha_row_bytes(type, linears[n]->weight.inputs) == 0)
            return MHA_F16;
    return type;
}

/* The type that some matrices are stored in. */
mha_dtype build_type(const mha_model *model, const bound_linear *const *linears, int count)
{
    switch (model->storage) {
    case MHA_STORE_AS_FILE:
        return MHA_AS_GIVEN;
    case MHA_STORE_F16:
        return MHA_F16;
    case MHA_STORE_BF16:
        return MHA_BF16;
    case MHA_STORE_I8:
        return MHA_I8;
    case MHA_STORE_Q8:
        return whole_blocks(MHA_Q8_0, linears, count);
    case MHA_STORE_Q4:
        return whole_blocks(MHA_Q4_1, linears, count);
    default:
        return MHA_F32;
    }
}

/* Keeps the words about the first matrix whose products are native; without any, those of the
 * last. */
static void note_arithmetic(mha_model *model, const bound_linear *linear)
{
    const mha_dtype stored = build_type(model, &linear, 1);
    const char *const words = mha_arithmetic_explain(
        model->arithmetic, stored == MHA_AS_GIVEN ? linear->weight.type : stored,
        linear->weight.inputs);
    if (words && strncmp(model->arithmetic_words, "native", 6) != 0)
        model->arithmetic_words = words;
}

/* Counts a packed matrix in the fingerprint and gives its pages back to the system. */
void build_done(model_builder *builder, const bound_linear *linear)
{
    const bound_matrix *const m = &linear->weight;
    if (!m->data)
        return;
    note_arithmetic(builder->model, linear);
    float numbers[HASHED_NUMBERS];
    const ptrdiff_t count = m->inputs < HASHED_NUMBERS ? m->inputs : HASHED_NUMBERS;
    matrix_numbers(m, m->outputs / 2, count, numbers);
    hash_numbers(builder, numbers, count);
    if (builder->model->files.source && m->tensor)
        weight_source_release(builder->model->files.source, m->tensor);
}

mha_status build_linear(model_builder *builder, const char *what, const bound_linear *linear,
                        mha_linear **to)
{
    *to = NULL;
    if (!linear->weight.data)
        return MHA_OK;
    char reason[256] = "";
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = linear->weight.inputs,
                                      .outputs = linear->weight.outputs,
                                      .weight = build_matrix(&linear->weight),
                                      .bias = build_bias(&linear->bias),
                                      .stored = build_type(builder->model, &linear, 1),
                                      .message = reason,
                                      .message_size = sizeof reason,
                                      .arena = builder->model->arena,
                                      .arithmetic = builder->model->arithmetic};
    const mha_status status = mha_linear_create(to, &config);
    if (status)
        return model_fail(builder->message, builder->message_size, status, "%s: %s", what,
                          reason[0] ? reason : mha_status_string(status));
    builder->model->memory_bytes += mha_linear_bytes(*to);
    build_done(builder, linear);
    return MHA_OK;
}
