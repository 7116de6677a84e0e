/* SPDX-License-Identifier: MIT */
/* Matrices of a saved model in a smaller type: rows of MHA_Q8_0, as bytes (weight_source.h). */
#include <stdlib.h>

#include "format/safetensors.h"
#include "model/save_parts.h"

enum { LEAST_ROWS = 64 }; /* matrices with fewer rows stay as they are */

static bool find_type(safetensors_type type, mha_dtype *to)
{
    *to = type == SAFETENSORS_F32 ? MHA_F32 : type == SAFETENSORS_F16 ? MHA_F16 : MHA_BF16;
    return type == SAFETENSORS_F32 || type == SAFETENSORS_F16 || type == SAFETENSORS_BF16;
}

bool saving_shrinks(const safetensors_item *item)
{
    mha_dtype type;
    return find_type(item->type, &type) && item->rank == 2 && item->shape[1] < PTRDIFF_MAX &&
           mha_row_bytes(MHA_Q8_0, (ptrdiff_t)item->shape[1]) > 0 && item->shape[0] >= LEAST_ROWS;
}

void *saving_shrink(const safetensors_item *item, uint64_t *row_bytes)
{
    const ptrdiff_t rows = (ptrdiff_t)item->shape[0], columns = (ptrdiff_t)item->shape[1];
    mha_dtype type;
    find_type(item->type, &type);
    *row_bytes = mha_row_bytes(MHA_Q8_0, columns);
    const size_t from_bytes = mha_row_bytes(type, columns);
    float *const numbers = malloc((size_t)columns * sizeof *numbers);
    char *const bytes = malloc((size_t)rows * (size_t)*row_bytes + 1);
    mha_status status = numbers && bytes ? MHA_OK : MHA_ERR_MEMORY;
    for (ptrdiff_t n = 0; n < rows && status == MHA_OK; n++) {
        const bound_matrix row = {.data = (const char *)item->data + (size_t)n * from_bytes,
                                  .type = type,
                                  .outputs = 1,
                                  .inputs = columns,
                                  .out_stride = columns,
                                  .in_stride = 1};
        matrix_row(&row, 0, numbers);
        status = mha_row_from_f32(MHA_Q8_0, numbers, columns, bytes + (size_t)n * *row_bytes);
    }
    free(numbers);
    if (status == MHA_OK)
        return bytes;
    free(bytes);
    return NULL;
}

/* Blocks go along the inputs, which must be side by side. */
static bool inputs_are_first(const mha_model *model)
{
    for (int n = 0; n < STACKS; n++)
        if (model->stack[n].layers &&
            model->files.binding.stack[n].layers[0].self.o.weight.in_stride != 1)
            return true;
    return false;
}

static bool has_bytes(const weight_source *source)
{
    for (size_t n = 0; n < weight_source_count(source); n++) {
        safetensors_item item;
        if (weight_source_item(source, n, &item) && item.type == SAFETENSORS_U8 && item.rank == 2)
            return true;
    }
    return false;
}

mha_status saving_check_storage(const model_saving *s, mha_model_storage storage)
{
    const model_files *const files = &s->model->files;
    if (storage == MHA_STORE_AS_FILE)
        return MHA_OK;
    if (storage != MHA_STORE_Q8)
        return saving_fail(s, MHA_ERR_FLAG, "weights can be saved as they are, or as q8");
    if (!files->folder)
        return saving_fail(s, MHA_ERR_FLAG, "only the weights of a folder can be saved as q8");
    if (inputs_are_first(s->model))
        return saving_fail(s, MHA_ERR_FLAG,
                           "the matrices of this model have their inputs first, so they cannot be "
                           "saved as q8");
    if (has_bytes(files->source))
        return saving_fail(s, MHA_ERR_FLAG, "the model has matrices of bytes already");
    return MHA_OK;
}
