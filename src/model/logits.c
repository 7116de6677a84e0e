/* SPDX-License-Identifier: MIT */
/* Rows after the last norm become logits: scale, BERT's transform, output matrix, soft cap. */
#include "model/forward.h"

#include <math.h>
#include <string.h>

typedef struct softcap_job {
    float *logits;
    ptrdiff_t width;
    float cap;
} softcap_job;

static void softcap_task(void *arg, int worker, ptrdiff_t row)
{
    const softcap_job *const job = arg;
    float *const at = job->logits + row * job->width;
    (void)worker;
    for (ptrdiff_t n = 0; n < job->width; n++)
        at[n] = job->cap * tanhf(at[n] / job->cap);
}

static ptrdiff_t transform_width(const mha_model *model)
{
    return model->transform ? model->files.binding.transform.weight.outputs
                            : model->files.description.width;
}

ptrdiff_t logits_width(const mha_model *model)
{
    const ptrdiff_t width = model->files.description.width, inner = transform_width(model);
    return inner > width ? inner : width;
}

size_t logits_scratch(const mha_model *model, ptrdiff_t count, int threads)
{
    const size_t output = mha_linear_work_size(model->output, count, threads);
    const size_t transform =
        model->transform ? mha_linear_work_size(model->transform, count, threads) : 0;
    return output > transform ? output : transform;
}

/* The chosen rows, multiplied by the model's factor. */
static const float *choose(const mha_model *model, const float *hidden, const int64_t *rows,
                           ptrdiff_t count, float *chosen)
{
    const float scale = model->files.description.logit_scale;
    const ptrdiff_t width = model->files.description.width;
    const bool scaled = scale != 0.0f && scale != 1.0f;
    if (!rows && !scaled)
        return hidden;
    for (ptrdiff_t n = 0; n < count; n++) {
        const float *const from = hidden + (rows ? rows[n] : n) * width;
        for (ptrdiff_t c = 0; c < width; c++)
            chosen[n * width + c] = scaled ? from[c] * scale : from[c];
    }
    return chosen;
}

mha_status logits_run(const mha_model *model, const float *hidden, const int64_t *rows,
                      ptrdiff_t count, float *logits, float *chosen, float *transformed,
                      void *scratch, size_t scratch_size, mha_pool *pool)
{
    const model_description *const d = &model->files.description;
    const ptrdiff_t inner = transform_width(model), words = d->vocabulary;
    const float *from = choose(model, hidden, rows, count, chosen);
    mha_status status = MHA_OK;
    if (model->transform) {
        status = mha_linear_run_fused(model->transform, count, from, MHA_F32, d->width,
                                      d->transform_activation, NULL, 0, transformed, MHA_F32, inner,
                                      scratch, scratch_size, pool);
        from = transformed;
    }
    if (!status && model->transform_norm.weight) {
        const mha_norm_config norm = model_norm_config(model, &model->transform_norm, inner);
        status = mha_norm_run(&norm, count, from, inner, transformed, inner, pool);
        from = transformed;
    }
    if (!status)
        status = mha_linear_run(model->output, count, from, MHA_F32, inner, logits, MHA_F32, words,
                                scratch, scratch_size, pool);
    softcap_job cap = {logits, words, d->logit_softcap};
    if (!status && cap.cap > 0.0f)
        mha_pool_run(pool, count, softcap_task, &cap);
    return status;
}
