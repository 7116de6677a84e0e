/* SPDX-License-Identifier: MIT */
/*
 * Ids or pixels become rows: token vector * scale + position + token type, then a norm, then a
 * projection if the table is narrower than the model. Pictures are cut into patches, which a linear
 * projects. Tables are read from the mapped file, row by row.
 */
#include "model/forward.h"

#include <math.h>
#include <string.h>

enum { TASK_ROWS = 16 };

typedef struct embed_job {
    const model_pass *pass;
    int stack;
    float *to;
    ptrdiff_t width;
} embed_job;

/* ------------------------------------------------------------------- one row ----- */

void model_sines(const embedding_description *e, const double *frequencies, ptrdiff_t position,
                 float *to)
{
    const int half = e->width / 2;
    const bool beside = e->position == POSITION_SINES_NEIGHBOURS;
    for (int n = 0; n < half; n++) {
        const double angle = (double)position * frequencies[n];
        to[beside ? 2 * n : n] = (float)sin(angle);
        to[beside ? 2 * n + 1 : half + n] = (float)cos(angle);
    }
}

/* Adds sines and cosines of a position. */
static void add_sines(const embed_job *job, ptrdiff_t position, float *buffer, float *to)
{
    const mha_model *const model = job->pass->model;
    const embedding_description *const e = &model->files.description.stack[job->stack].embedding;
    const model_stack *const stack = &model->stack[job->stack];
    const float *sines = stack->sines + position * e->width;
    if (position >= stack->sine_rows) {
        model_sines(e, stack->frequencies, position, buffer);
        sines = buffer;
    }
    for (int c = 0; c < e->width / 2 * 2; c++)
        to[c] += sines[c];
}

/* Adds a row of a table, through a buffer on the stack. */
static void add_row(const bound_matrix *table, ptrdiff_t row, float *buffer, float *to)
{
    matrix_row(table, row, buffer);
    for (ptrdiff_t c = 0; c < table->inputs; c++)
        to[c] += buffer[c];
}

static void add_position(const embed_job *job, ptrdiff_t position, float *buffer, float *to)
{
    const mha_model *const model = job->pass->model;
    const embedding_description *const e = &model->files.description.stack[job->stack].embedding;
    position += e->position_offset;
    if (e->position == POSITION_LEARNED)
        add_row(&model->files.binding.stack[job->stack].position, position, buffer, to);
    else if (model->stack[job->stack].frequencies)
        add_sines(job, position, buffer, to);
}

static void embed_token(const embed_job *job, ptrdiff_t row, ptrdiff_t position, float *buffer)
{
    const model_pass *const pass = job->pass;
    const bound_stack *const bound = &pass->model->files.binding.stack[job->stack];
    const float scale = pass->model->files.description.stack[job->stack].embedding.scale;
    float *const to = job->to + row * job->width;
    matrix_row(&bound->tokens, pass->side[job->stack].ids[row], to);
    for (ptrdiff_t c = 0; scale != 0.0f && scale != 1.0f && c < job->width; c++)
        to[c] *= scale;
    if (bound->segments.data) {
        const bool given = pass->call->segments && job->stack == model_last_stack(pass->model);
        add_row(&bound->segments, given ? pass->call->segments[row] : 0, buffer, to);
    }
    add_position(job, position, buffer, to);
}

/* -------------------------------------------------------------------- tokens ----- */

/* The sequence that a row belongs to. */
static ptrdiff_t sequence_of(const pass_rows *side, ptrdiff_t B, ptrdiff_t row)
{
    ptrdiff_t low = 0, high = B - 1;
    while (low < high) {
        const ptrdiff_t middle = (low + high + 1) / 2;
        if (side->starts[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void embed_task(void *arg, int worker, ptrdiff_t number)
{
    const embed_job *const job = arg;
    const pass_rows *const side = &job->pass->side[job->stack];
    float *const buffer = job->pass->row_buffers + worker * job->width;
    const ptrdiff_t first = number * TASK_ROWS;
    const ptrdiff_t last = first + TASK_ROWS < side->rows ? first + TASK_ROWS : side->rows;
    for (ptrdiff_t row = first; row < last; row++) {
        const ptrdiff_t b = sequence_of(side, job->pass->B, row);
        const ptrdiff_t past = side->past ? (ptrdiff_t)side->past[b] : 0;
        embed_token(job, row, past + row - (ptrdiff_t)side->starts[b], buffer);
    }
}

/* ------------------------------------------------------------------ pictures ----- */

/* Row (b, y, x) of the patches: channel by channel, line by line. */
static void cut_patch(const model_pass *pass, ptrdiff_t number)
{
    const model_description *const d = &pass->model->files.description;
    const ptrdiff_t size = d->image_size, patch = d->patch, across = model_patches_across(d);
    const ptrdiff_t b = number / (across * across), place = number % (across * across);
    const ptrdiff_t top = place / across * model_patch_stride(d),
                    left = place % across * model_patch_stride(d);
    float *to = pass->pixels + number * d->channels * patch * patch;
    for (ptrdiff_t c = 0; c < d->channels; c++)
        for (ptrdiff_t y = 0; y < patch; y++, to += patch)
            memcpy(to, pass->call->pixels + ((b * d->channels + c) * size + top + y) * size + left,
                   (size_t)patch * sizeof *to);
}

static void cut_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    cut_patch(arg, number);
}

static mha_status embed_pictures(const model_pass *pass, embed_job *job)
{
    const mha_model *const model = pass->model;
    const model_stack *const stack = &model->stack[job->stack];
    const model_description *const d = &model->files.description;
    const ptrdiff_t across = model_patches_across(d), patches = across * across;
    const ptrdiff_t inputs = (ptrdiff_t)d->channels * d->patch * d->patch;
    const ptrdiff_t length = patches + d->extra_tokens;
    mha_pool_run(pass->pool, pass->B * patches, cut_task, (void *)pass);
    for (ptrdiff_t b = 0; b < pass->B; b++) {
        float *const rows = job->to + b * length * job->width;
        const mha_status status =
            mha_linear_run(stack->patches, patches, pass->pixels + b * patches * inputs, MHA_F32,
                           inputs, rows + d->extra_tokens * job->width, MHA_F32, job->width,
                           pass->scratch, pass->scratch_size, pass->pool);
        if (status)
            return status;
        const size_t bytes = (size_t)job->width * sizeof *rows;
        if (d->extra_tokens > 0)
            memcpy(rows, stack->class_token, bytes);
        if (d->extra_tokens > 1)
            memcpy(rows + job->width, stack->distillation_token, bytes);
        for (ptrdiff_t i = 0; i < length; i++)
            add_position(job, i, pass->row_buffers, rows + i * job->width);
    }
    return MHA_OK;
}

/* ----------------------------------------------------------------------- all ----- */

mha_norm_config model_norm_config(const mha_model *model, const model_norm *norm, ptrdiff_t width)
{
    const mha_norm_config config = {.size = sizeof config,
                                    .kind = model->files.description.norm,
                                    .width = width,
                                    .eps = model->files.description.norm_eps,
                                    .weight = norm->weight,
                                    .bias = norm->bias};
    return config;
}

mha_status embed_rows(const model_pass *pass, int stack)
{
    const model_stack *const s = &pass->model->stack[stack];
    const ptrdiff_t rows = pass->side[stack].rows, width = pass->model->files.description.width;
    embed_job job = {pass, stack, s->project ? pass->embedded : pass->x,
                     pass->model->files.description.stack[stack].embedding.width};
    mha_status status = MHA_OK;
    if (s->patches)
        status = embed_pictures(pass, &job);
    else
        mha_pool_run(pass->pool, (rows + TASK_ROWS - 1) / TASK_ROWS, embed_task, &job);
    if (!status && s->embedding_norm.weight) {
        const mha_norm_config norm = model_norm_config(pass->model, &s->embedding_norm, job.width);
        status = mha_norm_run(&norm, rows, job.to, job.width, job.to, job.width, pass->pool);
    }
    if (!status && s->project)
        status = mha_linear_run(s->project, rows, job.to, MHA_F32, job.width, pass->x, MHA_F32,
                                width, pass->scratch, pass->scratch_size, pass->pool);
    return status;
}
