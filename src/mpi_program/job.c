/* SPDX-License-Identifier: MIT */
/* The problem of a command (job.h). */
#include "mpi_program/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* The number of a place in a tensor, so that a rank can make any rows. */
static float number(uint64_t seed, int tensor, ptrdiff_t head, ptrdiff_t token, ptrdiff_t c)
{
    rng r = rng_for(seed + (uint64_t)tensor, (uint64_t)((head * 1048573 + token) * 1031 + c));
    return (float)rng_normal(&r);
}

static bool allocate(job_data *d, const mha_shape *s, ptrdiff_t rows)
{
    const size_t q = sizeof(float) * (size_t)(s->H * rows * s->D + 1);
    const size_t k = sizeof(float) * (size_t)(s->G * rows * s->D + 1);
    float **const all[] = {&d->q, &d->o, &d->lse, &d->d_o, &d->d_q, &d->k, &d->v, &d->d_k, &d->d_v};
    bool fine = true;
    d->rows = rows;
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
        *all[n] = calloc(1, n < 5 ? q : k);
        fine = fine && *all[n];
    }
    return fine;
}

static void free_data(job_data *d)
{
    float *const all[] = {d->q, d->o, d->lse, d->d_o, d->d_q, d->k, d->v, d->d_k, d->d_v};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        free(all[n]);
}

static void fill(float *to, uint64_t seed, int tensor, ptrdiff_t heads, ptrdiff_t width,
                 ptrdiff_t rows, const int64_t *tokens)
{
    for (ptrdiff_t n = 0; n < heads * rows * width; n++)
        to[n] = number(seed, tensor, n / width / rows,
                       tokens ? (ptrdiff_t)tokens[n / width % rows] : n / width % rows, n % width);
}

static void fill_data(const job *j, const job_data *d, uint64_t seed, const int64_t *tokens)
{
    const mha_shape *const s = &j->shape;
    fill(d->q, seed, 0, s->H, s->D, d->rows, tokens);
    fill(d->k, seed, 1, s->G, s->D, d->rows, tokens);
    fill(d->v, seed, 2, s->G, s->D, d->rows, tokens);
    fill(d->d_o, seed, 3, s->H, s->D, d->rows, tokens);
}

mha_status job_create(job *j, mha_mpi_group *group, const job_request *request, uint64_t seed)
{
    const int rank = mha_mpi_group_rank(group);
    const mha_mpi_plan_config config = {
        .size = sizeof config, .scheme = request->scheme, .heads = request->link > 0};
    *j = (job){
        .shape = {.B = 1,
                  .H = request->heads,
                  .G = request->groups,
                  .L = request->tokens,
                  .S = request->tokens,
                  .D = request->width,
                  .Dv = request->width},
        .options = {.size = sizeof j->options, .flags = request->full ? 0 : (uint32_t)MHA_CAUSAL},
        .layout = {.size = sizeof j->layout, .split = request->split, .tokens = request->tokens},
        .group = group};
    const ptrdiff_t rows = mha_mpi_rows(group, &j->layout, rank, NULL);
    j->tokens = calloc((size_t)rows + 1, sizeof *j->tokens);
    if (!j->tokens || !allocate(&j->whole, &j->shape, request->tokens) ||
        !allocate(&j->own, &j->shape, rows))
        return MHA_ERR_MEMORY;
    mha_mpi_rows(group, &j->layout, rank, j->tokens);
    fill_data(j, &j->whole, seed, NULL);
    fill_data(j, &j->own, seed, j->tokens);
    const mha_status status =
        mha_mpi_plan_create(&j->plan, group, &config, &j->shape, &j->layout, &j->layout);
    if (status)
        return status;
    const size_t run = mha_mpi_plan_work_size(j->plan, &j->options, 1, 0);
    const size_t back = mha_mpi_plan_work_size(j->plan, &j->options, 1, 1);
    j->work_size = run > back ? run : back;
    j->work = malloc(j->work_size);
    return j->work ? MHA_OK : MHA_ERR_MEMORY;
}

void job_free(job *j)
{
    mha_mpi_plan_free(j->plan);
    free_data(&j->whole);
    free_data(&j->own);
    free(j->tokens);
    free(j->work);
}

static mha_gradients gradients_of(const job *j, const job_data *d)
{
    const mha_shape *const s = &j->shape;
    const ptrdiff_t rows = d->rows ? d->rows : 1;
    return (mha_gradients){.size = sizeof(mha_gradients),
                           .d_o = mha_view_bhld(d->d_o, s->H, rows, s->D),
                           .d_q = mha_out_bhld(d->d_q, s->H, rows, s->D),
                           .d_k = mha_out_bhld(d->d_k, s->G, rows, s->D),
                           .d_v = mha_out_bhld(d->d_v, s->G, rows, s->D)};
}

static mha_status run_on(job *j, const job_data *d, bool alone, bool backward)
{
    const mha_shape *const s = &j->shape;
    const ptrdiff_t rows = d->rows ? d->rows : 1;
    const mha_view q = mha_view_bhld(d->q, s->H, rows, s->D),
                   k = mha_view_bhld(d->k, s->G, rows, s->D);
    const mha_view v = mha_view_bhld(d->v, s->G, rows, s->D),
                   o = mha_view_bhld(d->o, s->H, rows, s->D);
    const mha_gradients g = gradients_of(j, d);
    mha_options options = j->options;
    options.lse = mha_out_bhld(d->lse, s->H, rows, 1);
    const mha_out to = mha_out_bhld(d->o, s->H, rows, s->D);
    if (alone)
        return backward ? mha_attention_backward(s, q, k, v, o, &options, &g, NULL, 0, NULL)
                        : mha_attention(s, q, k, v, to, &options, NULL);
    return backward ? mha_mpi_plan_backward(j->plan, q, k, v, o, &options, &g, j->work,
                                            j->work_size, NULL)
                    : mha_mpi_plan_run(j->plan, q, k, v, to, &options, j->work, j->work_size, NULL);
}

mha_status job_run(job *j, bool backward)
{
    return run_on(j, &j->own, false, backward);
}

mha_status job_run_alone(job *j, bool backward)
{
    return run_on(j, &j->whole, true, backward);
}

static ptrdiff_t count_differences(const job *j, const float *own, const float *whole,
                                   ptrdiff_t heads)
{
    const ptrdiff_t width = j->shape.D, rows = j->own.rows;
    ptrdiff_t count = 0;
    for (ptrdiff_t n = 0; n < heads * rows; n++)
        count += memcmp(own + n * width,
                        whole + (n / rows * j->whole.rows + j->tokens[n % rows]) * width,
                        sizeof(float) * (size_t)width) != 0;
    return count;
}

ptrdiff_t job_differs(const job *j, bool backward)
{
    const mha_shape *const s = &j->shape;
    if (!backward)
        return count_differences(j, j->own.o, j->whole.o, s->H);
    return count_differences(j, j->own.d_q, j->whole.d_q, s->H) +
           count_differences(j, j->own.d_k, j->whole.d_k, s->G) +
           count_differences(j, j->own.d_v, j->whole.d_v, s->G);
}
