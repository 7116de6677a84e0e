/* SPDX-License-Identifier: MIT */
/* The residual stream as a path (stream_path.h), from the weights of the model and its files. */
#include "model/stream_path.h"

#include <stdlib.h>
#include <string.h>

#include "model/model_parts.h"

static stream_norm norm_of(const model_norm *norm)
{
    return (stream_norm){norm->weight, norm->bias};
}

bool stream_path_of(const mha_model *model, stream_path *path)
{
    const model_description *const d = &model->files.description;
    const model_stack *const stack = &model->stack[model_last_stack(model)];
    *path = (stream_path){.width = d->width,
                          .parts = stack->layers * stack_parts(stack),
                          .centred = d->norm == MHA_NORM_LAYER,
                          .eps = (double)d->norm_eps,
                          .last = norm_of(&stack->final_norm)};
    return model->output && !model->transform && !model->transform_norm.weight;
}

stream_part stream_path_part(const mha_model *model, int part)
{
    const int last = model_last_stack(model);
    const model_stack *const stack = &model->stack[last];
    const int each = stack_parts(stack), place = part % each;
    const model_layer *const layer = &stack->layer[part / each];
    const bool cross = place == 1 && each == 3;
    const model_norms *const norms = place == each - 1 ? &layer->ff_norms
                                     : cross           ? &layer->cross.norms
                                                       : &layer->self.norms;
    return (stream_part){.is_attention = place < each - 1,
                         .kind = cross                   ? MHA_ATTENTION_CROSS
                                 : last == STACK_DECODER ? MHA_ATTENTION_DECODER
                                                         : MHA_ATTENTION_ENCODER,
                         .layer = part / each,
                         .inside = norm_of(&norms->inside),
                         .after = norm_of(&norms->after)};
}

mha_status stream_path_projection(const mha_model *model, mha_attention_kind kind, int layer,
                                  float *to)
{
    if (!model_attention_at(model, kind, layer))
        return MHA_ERR_INDEX;
    const attention_description *const a =
        &model->files.description.stack[attention_stack(kind)].attention;
    const bound_matrix *const w = &model_bound_at(model, kind, layer)->o.weight;
    if (!matrix_is_readable(w) || w->inputs != mha_model_heads(model, kind, layer) * a->head_width)
        return MHA_ERR_DTYPE;
    for (ptrdiff_t n = 0; n < w->outputs; n++)
        matrix_row(w, n, to + n * w->inputs);
    return MHA_OK;
}

mha_status stream_path_word(const mha_model *model, ptrdiff_t word, float *to)
{
    const bound_matrix *const w = &model->files.binding.output.weight;
    const float scale = model->files.description.logit_scale;
    if (!matrix_is_readable(w))
        return MHA_ERR_DTYPE;
    if (word < 0 || word >= w->outputs)
        return MHA_ERR_INDEX;
    matrix_row(w, word, to);
    for (ptrdiff_t c = 0; scale != 0.0f && c < w->inputs; c++)
        to[c] *= scale;
    return MHA_OK;
}

mha_status stream_path_mean_word(const mha_model *model, double *to)
{
    const bound_matrix *const w = &model->files.binding.output.weight;
    float *const row = malloc((size_t)w->inputs * sizeof *row);
    mha_status status = row ? MHA_OK : MHA_ERR_MEMORY;
    memset(to, 0, (size_t)w->inputs * sizeof *to);
    for (ptrdiff_t n = 0; n < w->outputs && status == MHA_OK; n++) {
        status = stream_path_word(model, n, row);
        for (ptrdiff_t c = 0; c < w->inputs && status == MHA_OK; c++)
            to[c] += (double)row[c] / (double)w->outputs;
    }
    free(row);
    return status;
}

mha_status stream_path_bias(const mha_model *model, ptrdiff_t word, double *to)
{
    const bound_linear *const output = &model->files.binding.output;
    const ptrdiff_t words = output->weight.outputs;
    *to = 0.0;
    if (word < 0 || word >= words)
        return MHA_ERR_INDEX;
    if (!output->bias.data)
        return MHA_OK;
    float *const bias = malloc((size_t)words * sizeof *bias);
    if (!bias)
        return MHA_ERR_MEMORY;
    vector_numbers(&output->bias, bias);
    for (ptrdiff_t n = 0; n < words; n++)
        *to -= (double)bias[n] / (double)words;
    *to += (double)bias[word];
    free(bias);
    return MHA_OK;
}
