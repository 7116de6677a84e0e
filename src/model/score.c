/* SPDX-License-Identifier: MIT */
/*
 * Log-probabilities of given tokens. Sequences are computed in groups, and logits for some rows at
 * a time, so that a large vocabulary does not need much memory.
 */
#include "model/forward.h"
#include "model/sample.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP_ROWS = 2048, LOGIT_ROWS = 64 };

typedef struct score_job {
    const mha_model *model;
    const int64_t *starts;
    const int32_t *ids;
    double *scores;
    mha_pool *pool;
    char *message;
    size_t message_size;
    float *hidden, *logits, *chosen, *transformed;
    int64_t *local; /* starts of the sequences of a group */
    int64_t *rows;  /* rows of the group whose next token is scored */
    void *scratch;
    size_t scratch_size;
    const int64_t *now; /* the rows whose logits are there */
    int64_t first;      /* the group's first row */
} score_job;

static void score_task(void *arg, int worker, ptrdiff_t n)
{
    const score_job *const job = arg;
    const ptrdiff_t words = job->model->files.description.vocabulary;
    const int64_t next = job->first + job->now[n] + 1;
    (void)worker;
    const float *const logits = job->logits + n * words;
    job->scores[next] = (double)logits[job->ids[next]] - sample_log_total(logits, words);
}

/* Rows of a group from its first to before its last sequence; returns their number. */
static ptrdiff_t list_rows(const score_job *job, ptrdiff_t first, ptrdiff_t last)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t b = first; b < last; b++) {
        job->scores[job->starts[b]] = 0.0;
        for (int64_t row = job->starts[b]; row + 1 < job->starts[b + 1]; row++)
            job->rows[count++] = row - job->first;
    }
    return count;
}

static mha_status score_group(score_job *job, const mha_head_settings *heads, ptrdiff_t first,
                              ptrdiff_t last)
{
    job->first = job->starts[first];
    for (ptrdiff_t b = first; b <= last; b++)
        job->local[b - first] = job->starts[b] - job->first;
    const mha_model_call call = {.size = sizeof call,
                                 .B = last - first,
                                 .starts = job->local,
                                 .ids = job->ids + job->first,
                                 .hidden = job->hidden,
                                 .heads = heads,
                                 .message = job->message,
                                 .message_size = job->message_size};
    mha_status status = mha_model_run(job->model, &call, NULL, 0, job->pool);
    if (status)
        return status;
    const ptrdiff_t rows = list_rows(job, first, last);
    for (ptrdiff_t n = 0; n < rows && !status; n += LOGIT_ROWS) {
        const ptrdiff_t count = rows - n < LOGIT_ROWS ? rows - n : LOGIT_ROWS;
        job->now = job->rows + n;
        status = logits_run(job->model, job->hidden, job->now, count, job->logits, job->chosen,
                            job->transformed, job->scratch, job->scratch_size, job->pool);
        if (!status)
            mha_pool_run(job->pool, count, score_task, job);
    }
    return status;
}

/* One more than the last sequence of the group that begins with `first`. */
static ptrdiff_t group_end(const int64_t *starts, ptrdiff_t first, ptrdiff_t B)
{
    ptrdiff_t last = first + 1;
    while (last < B && starts[last + 1] - starts[first] <= GROUP_ROWS)
        last++;
    return last;
}

static mha_status check(const score_job *job, ptrdiff_t B)
{
    const mha_model *const model = job->model;
    if (model->files.description.kind != MHA_MODEL_DECODER || !model->output)
        return model_fail(job->message, job->message_size, MHA_ERR_FLAG,
                          "only a decoder that predicts tokens can score them");
    if (job->starts[0] != 0)
        return model_fail(job->message, job->message_size, MHA_ERR_LENGTH, "starts[0] is not 0");
    for (ptrdiff_t b = 0; b < B; b++)
        if (job->starts[b + 1] <= job->starts[b])
            return model_fail(job->message, job->message_size, MHA_ERR_LENGTH,
                              "sequence %td is empty", b);
    return MHA_OK;
}

static mha_status score_all(score_job *job, ptrdiff_t B, const mha_head_settings *heads)
{
    int64_t most = 1;
    for (ptrdiff_t b = 0; b < B;) {
        const ptrdiff_t last = group_end(job->starts, b, B);
        most =
            job->starts[last] - job->starts[b] > most ? job->starts[last] - job->starts[b] : most;
        b = last;
    }
    const model_description *const d = &job->model->files.description;
    const size_t wide = sizeof(float) * (size_t)logits_width(job->model);
    job->scratch_size = logits_scratch(job->model, LOGIT_ROWS, mha_pool_threads(job->pool));
    model_work count = {0}, *work = &count;
    void *memory = NULL;
    for (int carved = 0; carved < 2; carved++) {
        model_work begun;
        if (carved) {
            memory = count.overflow ? NULL : work_allocate(count.used + WORK_ALIGN);
            if (!memory)
                return model_fail(job->message, job->message_size, MHA_ERR_MEMORY,
                                  "no memory for %lld rows", (long long)most);
            begun = work_begin(memory);
            work = &begun;
        }
        job->hidden = work_take(work, (ptrdiff_t)most, sizeof(float) * (size_t)d->width);
        job->logits = work_take(work, LOGIT_ROWS, sizeof(float) * (size_t)d->vocabulary);
        job->chosen = work_take(work, LOGIT_ROWS, wide);
        job->transformed = work_take(work, LOGIT_ROWS, wide);
        job->local = work_take(work, B + 1, sizeof *job->local);
        job->rows = work_take(work, (ptrdiff_t)most, sizeof *job->rows);
        job->scratch = work_take(work, (ptrdiff_t)job->scratch_size, 1);
    }
    mha_status status = MHA_OK;
    for (ptrdiff_t b = 0; b < B && !status;) {
        const ptrdiff_t last = group_end(job->starts, b, B);
        status = score_group(job, heads, b, last);
        b = last;
    }
    free(memory);
    return status;
}

mha_status mha_model_score(const mha_model *model, ptrdiff_t B, const int64_t *starts,
                           const int32_t *ids, const mha_head_settings *heads, double *scores,
                           char *message, size_t message_size, mha_pool *pool)
{
    score_job job = {.model = model,
                     .starts = starts,
                     .ids = ids,
                     .scores = scores,
                     .pool = pool,
                     .message = message,
                     .message_size = message_size};
    if (!model || !starts || !ids || !scores)
        return model_fail(message, message_size, MHA_ERR_NULL, "%s is NULL",
                          !model    ? "model"
                          : !starts ? "starts"
                          : !ids    ? "ids"
                                    : "scores");
    if (B < 0)
        return model_fail(message, message_size, MHA_ERR_SHAPE, "B is %td", B);
    if (B == 0)
        return MHA_OK;
    const mha_status status = check(&job, B);
    return status ? status : score_all(&job, B, heads);
}
