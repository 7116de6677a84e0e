/* SPDX-License-Identifier: MIT */
/* Numbers of single heads that the forward pass does not compute, from the weights in the model's
 * files. */
#include "model/inspect.h"

#include <math.h>
#include <stdlib.h>

#include "model/model_parts.h"

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
