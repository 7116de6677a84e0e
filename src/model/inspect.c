/* SPDX-License-Identifier: MIT */
/* Numbers of single heads that the forward pass does not compute, from the weights in the model's
 * files. */
#include "model/inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/forward.h"

/* norms[H][columns] += (row n of W_O, the part of head h) . v)^2 */
static void add_row(const float *row, ptrdiff_t H, ptrdiff_t G, ptrdiff_t D, const float *v,
                    ptrdiff_t columns, double *squares)
{
    for (ptrdiff_t h = 0; h < H; h++)
        for (ptrdiff_t j = 0; j < columns; j++) {
            const float *const value = v + (h / (H / G) * columns + j) * D;
            double sum = 0.0;
            for (ptrdiff_t c = 0; c < D; c++)
                sum += (double)row[h * D + c] * (double)value[c];
            squares[h * columns + j] += sum * sum;
        }
}

mha_status model_value_norms(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer,
                             const float *v, ptrdiff_t columns, float *norms)
{
    if (!model_attention_at(model, kind, layer))
        return MHA_ERR_INDEX;
    const attention_description *const a =
        &model->files.description.stack[attention_stack(kind)].attention;
    const bound_attention *const bound = model_bound_at(model, kind, layer);
    const bound_matrix *const w = &bound->o.weight;
    const ptrdiff_t H = mha_model_heads(model, kind, layer), cells = H * columns;
    if (!matrix_is_readable(w) || w->inputs != H * a->head_width)
        return MHA_ERR_DTYPE;
    const ptrdiff_t G = bound->k.weight.outputs / a->head_width;
    float *const row = malloc((size_t)w->inputs * sizeof *row);
    double *const squares = calloc((size_t)cells + 1, sizeof *squares);
    for (ptrdiff_t n = 0; row && squares && n < w->outputs; n++) {
        matrix_row(w, n, row);
        add_row(row, H, G, a->head_width, v, columns, squares);
    }
    for (ptrdiff_t n = 0; row && squares && n < cells; n++)
        norms[n] = (float)sqrt(squares[n]);
    const mha_status status = row && squares ? MHA_OK : MHA_ERR_MEMORY;
    free(row);
    free(squares);
    return status;
}

float model_score_scale(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer)
{
    const model_attention *const a = model_attention_at(model, kind, layer);
    return a ? a->scale : 0.0f;
}

bool model_scores_differ(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer)
{
    const model_attention *const a = model_attention_at(model, kind, layer);
    const bool relative = model->stack[attention_stack(kind)].relative != NULL;
    return a && (a->softcap != 0.0f || (relative && kind != MHA_ATTENTION_CROSS));
}

mha_rope model_rotation(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer)
{
    const stack_description *const stack = &model->files.description.stack[attention_stack(kind)];
    if (kind == MHA_ATTENTION_CROSS || !model_attention_at(model, kind, layer))
        return (mha_rope){.pairs = MHA_ROPE_NONE};
    mha_rope rope = model_rope(stack, (int)layer);
    if (rope.width == 0)
        rope.width = stack->attention.head_width;
    if (rope.base == 0.0)
        rope.base = 10000.0;
    return rope;
}

bool model_norms_heads(const mha_model *model, mha_attention_kind kind)
{
    const attention_description *const a =
        &model->files.description.stack[attention_stack(kind)].attention;
    return a->qk_norm != MHA_NORM_NONE;
}

mha_norm model_norm_kind(const mha_model *model, float *eps)
{
    *eps = model->files.description.norm_eps;
    return model->files.description.norm;
}

int32_t model_decoder_start(const mha_model *model)
{
    return model->files.description.usage.decoder_start;
}

int model_picture_marks(const mha_model *model)
{
    return model->files.description.extra_tokens;
}

mha_pooling model_pooling(const mha_model *model)
{
    const mha_pooling pooling = model->files.description.usage.pooling;
    return pooling == MHA_POOLING_MODEL ? MHA_POOLING_MEAN : pooling;
}

/* ------------------------------------------------------------- projections ----- */

/* NULL: there is no such matrix. */
static const bound_linear *projection_at(const mha_model *model, mha_attention_kind kind,
                                         ptrdiff_t layer, model_projection which)
{
    if (!model_attention_at(model, kind, layer))
        return NULL;
    const bound_attention *const a = model_bound_at(model, kind, layer);
    const bound_linear *const all[MODEL_PROJECTIONS] = {&a->q, &a->k, &a->v, &a->o};
    return all[which];
}

mha_status model_projection_size(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer,
                                 model_projection which, ptrdiff_t *outputs, ptrdiff_t *inputs)
{
    const bound_linear *const linear = projection_at(model, kind, layer, which);
    if (!linear)
        return MHA_ERR_INDEX;
    *outputs = linear->weight.outputs;
    *inputs = linear->weight.inputs;
    return matrix_is_readable(&linear->weight) ? MHA_OK : MHA_ERR_DTYPE;
}

mha_status model_projection_read(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer,
                                 model_projection which, float *weight, float *bias)
{
    const bound_linear *const linear = projection_at(model, kind, layer, which);
    if (!linear)
        return MHA_ERR_INDEX;
    const bound_matrix *const w = &linear->weight;
    if (!matrix_is_readable(w))
        return MHA_ERR_DTYPE;
    for (ptrdiff_t n = 0; n < w->outputs; n++)
        matrix_row(w, n, weight + n * w->inputs);
    memset(bias, 0, (size_t)w->outputs * sizeof *bias);
    if (linear->bias.data)
        vector_numbers(&linear->bias, bias);
    return MHA_OK;
}

/* ------------------------------------------------------------------- parts ----- */

int model_layer_parts(const mha_model *model)
{
    return stack_parts(&model->stack[model_last_stack(model)]);
}

bool model_norm_first(const mha_model *model)
{
    return model->files.description.norm_first;
}

/* y = norm(x), or a copy of x if there is no norm. */
static mha_status norm_rows(const mha_model *model, const model_norm *norm, ptrdiff_t rows,
                            const float *x, float *y)
{
    const ptrdiff_t width = model->files.description.width;
    if (!norm->weight) {
        memcpy(y, x, (size_t)(rows * width) * sizeof *y);
        return MHA_OK;
    }
    const mha_norm_config config = model_norm_config(model, norm, width);
    return mha_norm_run(&config, rows, x, width, y, width, NULL);
}

mha_status model_part_steps(const mha_model *model, int part, ptrdiff_t rows, const float *stream,
                            const float *computed, float *input, float *after)
{
    const model_stack *const stack = &model->stack[model_last_stack(model)];
    const int each = stack_parts(stack), place = part % each;
    const model_layer *const layer = &stack->layer[part / each];
    const model_norms *const norms = place == each - 1         ? &layer->ff_norms
                                     : place == 1 && each == 3 ? &layer->cross.norms
                                                               : &layer->self.norms;
    const ptrdiff_t count = rows * model->files.description.width;
    float *const sum = malloc((size_t)count * sizeof *sum + 1);
    if (!sum)
        return MHA_ERR_MEMORY;
    mha_status status = norm_rows(model, &norms->before, rows, stream, input);
    if (status == MHA_OK)
        status = norm_rows(model, &norms->inside, rows, computed, sum);
    for (ptrdiff_t n = 0; status == MHA_OK && n < count; n++)
        sum[n] += stream[n];
    if (status == MHA_OK)
        status = norm_rows(model, &norms->after, rows, sum, after);
    free(sum);
    return status;
}

int model_picture_stride(const mha_model *model)
{
    return model_patch_stride(&model->files.description);
}

int model_picture_across(const mha_model *model)
{
    return model_patches_across(&model->files.description);
}

mha_status model_lens(const mha_model *model, ptrdiff_t rows, const float *stream, float *logits,
                      mha_pool *pool)
{
    const size_t width = (size_t)logits_width(model), count = (size_t)rows * width;
    float *const room = model->output ? malloc(3 * count * sizeof *room + 1) : NULL;
    if (!room)
        return model->output ? MHA_ERR_MEMORY : MHA_ERR_FLAG;
    const model_norm *const last = &model->stack[model_last_stack(model)].final_norm;
    mha_status status = norm_rows(model, last, rows, stream, room);
    if (status == MHA_OK)
        status = logits_run(model, room, NULL, rows, logits, room + count, room + 2 * count, NULL,
                            0, pool);
    free(room);
    return status;
}
