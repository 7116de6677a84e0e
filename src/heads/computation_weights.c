/* SPDX-License-Identifier: MIT */
/* The parameters of one attention and of the feed-forward after it, copied from a translator or
 * from a model of libmha_model. */
#include <stdlib.h>

#include "heads/subject_model_parts.h"
#include "model/inspect.h"

/* ---------------------------------------------------------- translator ----- */

static bool copy_linear(const translator *model, const weight_at *at, int outputs, int inputs,
                        linear_weights *to)
{
    const float *const values = translator_values(model);
    *to = (linear_weights){.outputs = outputs, .inputs = inputs};
    return computation_copy(&to->weight, values + at->weight, (ptrdiff_t)outputs * inputs) &&
           computation_copy(&to->bias, values + at->bias, outputs);
}

/* The feed-forward comes after self-attention in the encoder, else after cross-attention. */
bool computation_weights_of_translator(const subject *s, computation_weights *to)
{
    const translator *const model = s->translator;
    const transformer_config *const config = translator_config(model);
    const int E = config->width, F = config->ff_width;
    const int side = to->kind == ATTENTION_ENCODER ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET;
    const layer_at *const at = &translator_map(model)->layers[side][to->layer];
    const attention_at *const own = to->kind == ATTENTION_CROSS ? &at->cross : &at->self;
    const bool fine =
        copy_linear(model, &own->q, E, E, &to->q) && copy_linear(model, &own->k, E, E, &to->k) &&
        copy_linear(model, &own->v, E, E, &to->v) && copy_linear(model, &own->o, E, E, &to->o) &&
        copy_linear(model, &own->norm, E, 1, &to->norm);
    if (!fine || to->kind == ATTENTION_DECODER)
        return fine;
    return copy_linear(model, &at->ff.in, F, E, &to->in) &&
           copy_linear(model, &at->ff.out, E, F, &to->out) &&
           copy_linear(model, &at->ff.norm, E, 1, &to->ff_norm);
}

/* ---------------------------------------------------------- other models ----- */

/* A matrix that cannot be read is left out. */
static bool read_projection(const mha_model *model, const computation_weights *w,
                            model_projection which, linear_weights *to)
{
    const mha_attention_kind kind = (mha_attention_kind)w->kind;
    ptrdiff_t outputs, inputs;
    if (model_projection_size(model, kind, w->layer, which, &outputs, &inputs) != MHA_OK)
        return true;
    *to = (linear_weights){.outputs = (int)outputs,
                           .inputs = (int)inputs,
                           .weight = malloc((size_t)(outputs * inputs) * sizeof *to->weight + 1),
                           .bias = malloc((size_t)outputs * sizeof *to->bias + 1)};
    return to->weight && to->bias &&
           model_projection_read(model, kind, w->layer, which, to->weight, to->bias) == MHA_OK;
}

bool computation_weights_of_model(const subject *s, computation_weights *to)
{
    linear_weights *const parts[MODEL_PROJECTIONS] = {&to->q, &to->k, &to->v, &to->o};
    for (int n = 0; n < MODEL_PROJECTIONS; n++)
        if (!read_projection(model_of(s), to, (model_projection)n, parts[n]))
            return false;
    return true;
}
