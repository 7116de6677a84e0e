/* SPDX-License-Identifier: MIT */
/* One vector per sequence: BERT's pooler, and the logits of a classifier. */
#include "model/forward.h"

#include <string.h>

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t linear_size(const mha_linear *linear, ptrdiff_t B, int threads)
{
    return linear ? mha_linear_work_size(linear, B, threads) : 0;
}

size_t pool_scratch(const mha_model *model, ptrdiff_t B, int threads)
{
    const size_t transform = larger(linear_size(model->pooler, B, threads),
                                    linear_size(model->label_transform, B, threads));
    const size_t label = larger(linear_size(model->label, B, threads),
                                linear_size(model->label_distilled, B, threads));
    return larger(transform, label);
}

/* Row n of every sequence; a decoder has read the whole sequence only in its last row. */
static void take_rows(const model_pass *pass, const float *hidden, ptrdiff_t n, float *to)
{
    const ptrdiff_t width = pass->model->files.description.width;
    const int stack = model_last_stack(pass->model);
    const pass_rows *const side = &pass->side[stack];
    for (ptrdiff_t b = 0; b < pass->B; b++) {
        const int64_t first = side->starts ? side->starts[b] : b * side->longest;
        const bool last = stack == STACK_DECODER && side->starts;
        const int64_t row = last ? side->starts[b + 1] - 1 : first + n;
        memcpy(to + b * width, hidden + row * width, (size_t)width * sizeof *to);
    }
}

/* The mean of the rows of every sequence, in double precision. */
static void take_means(const model_pass *pass, const float *hidden, float *to)
{
    const ptrdiff_t width = pass->model->files.description.width;
    const ptrdiff_t rows = pass->side[model_last_stack(pass->model)].longest;
    for (ptrdiff_t b = 0; b < pass->B; b++)
        for (ptrdiff_t c = 0; c < width; c++) {
            double sum = 0.0;
            for (ptrdiff_t n = 0; n < rows; n++)
                sum += (double)hidden[(b * rows + n) * width + c];
            to[b * width + c] = (float)(sum / (double)rows);
        }
}

static mha_status run_linear(const model_pass *pass, const mha_linear *linear, const float *from,
                             mha_activation activation, float *to, ptrdiff_t to_width)
{
    return mha_linear_run_fused(linear, pass->B, from, MHA_F32,
                                pass->model->files.description.width, activation, NULL, 0, to,
                                MHA_F32, to_width, pass->scratch, pass->scratch_size, pass->pool);
}

/* The mean of two classifiers, one for each mark. */
static mha_status add_distilled(const model_pass *pass, const float *hidden)
{
    const ptrdiff_t labels = pass->model->files.description.labels;
    float *const second = pass->transformed;
    take_rows(pass, hidden, 1, pass->chosen);
    const mha_status status = run_linear(pass, pass->model->label_distilled, pass->chosen,
                                         MHA_ACTIVATION_NONE, second, labels);
    for (ptrdiff_t n = 0; !status && n < pass->B * labels; n++)
        pass->call->labels[n] = (pass->call->labels[n] + second[n]) / 2.0f;
    return status;
}

static mha_status run_labels(const model_pass *pass, const float *hidden)
{
    const mha_model *const model = pass->model;
    const model_description *const d = &model->files.description;
    const mha_linear *const first = model->label_transform             ? model->label_transform
                                    : d->label_pooled && model->pooler ? model->pooler
                                                                       : NULL;
    const float *from = pass->chosen;
    mha_status status = MHA_OK;
    if (d->label_mean)
        take_means(pass, hidden, pass->chosen);
    else
        take_rows(pass, hidden, 0, pass->chosen);
    if (first) {
        status = run_linear(pass, first, pass->chosen,
                            first == model->pooler ? d->pooler_activation : d->label_activation,
                            pass->transformed, d->width);
        from = pass->transformed;
    }
    if (!status)
        status = run_linear(pass, model->label, from, MHA_ACTIVATION_NONE, pass->call->labels,
                            d->labels);
    if (!status && model->label_distilled)
        status = add_distilled(pass, hidden);
    return status;
}

mha_status pool_outputs(const model_pass *pass, const float *hidden)
{
    mha_status status = MHA_OK;
    if (pass->call->pooled) {
        take_rows(pass, hidden, 0, pass->chosen);
        status = run_linear(pass, pass->model->pooler, pass->chosen,
                            pass->model->files.description.pooler_activation, pass->call->pooled,
                            pass->model->files.description.width);
    }
    if (!status && pass->call->labels)
        status = run_labels(pass, hidden);
    return status;
}
