/* SPDX-License-Identifier: MIT */
/*
 * Section 5 of mha_model.h: texts become tokens, cut to the longest length, are sorted by length
 * and computed in groups of bounded rows; the rows of each text become one vector. Of an
 * encoder-decoder only the encoder runs.
 */
#include "model/forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_ROWS = 2048 };

typedef struct encode_text {
    ptrdiff_t number;
    int32_t *ids;
    ptrdiff_t count;
} encode_text;

typedef struct encoder {
    const mha_model *model;
    const mha_encode_config *config;
    mha_pool *pool;
    encode_text *texts; /* [count], the longest first */
    ptrdiff_t count;
    ptrdiff_t rows; /* of the largest group */
    float *hidden;
    int32_t *ids;
    int64_t *starts;
    double *sums; /* [width] */
    void *work;
    size_t work_size;
    float *vectors;
} encoder;

#define fail(e, status, ...) \
    model_fail((e)->config->message, (e)->config->message_size, status, __VA_ARGS__)

/* ------------------------------------------------------------------- tokens ----- */

static ptrdiff_t longest_text(const encoder *e)
{
    const model_description *const d = &e->model->files.description;
    ptrdiff_t longest = d->positions > 0 ? d->positions : PTRDIFF_MAX;
    if (d->usage.longest > 0 && d->usage.longest < longest && e->config->longest == 0)
        longest = d->usage.longest;
    return e->config->longest > 0 && e->config->longest < longest ? e->config->longest : longest;
}

/* Cuts the end off, but keeps a mark that the text ends with. */
static void copy_tokens(const mha_tokens *tokens, ptrdiff_t count, int32_t *ids)
{
    for (ptrdiff_t n = 0; n < count; n++)
        ids[n] = tokens->tokens[n].id;
    if (count < tokens->count && count > 1 &&
        (tokens->tokens[tokens->count - 1].flags & MHA_TOKEN_SPECIAL))
        ids[count - 1] = tokens->tokens[tokens->count - 1].id;
}

static mha_status tokenize(encoder *e, const char *text, ptrdiff_t number)
{
    encode_text *const to = &e->texts[number];
    mha_tokens tokens;
    if (!text)
        return fail(e, MHA_ERR_NULL, "texts[%td] is NULL", number);
    const mha_status status =
        mha_tokenizer_encode(e->model->tokenizer, text, strlen(text), MHA_TEXT_MARKS, &tokens);
    if (status)
        return fail(e, status, "texts[%td]: %s", number, mha_status_string(status));
    const ptrdiff_t longest = longest_text(e);
    to->number = number;
    to->count = tokens.count < longest ? tokens.count : longest;
    if (e->config->cut)
        e->config->cut[number] = tokens.count - to->count;
    to->ids = malloc((size_t)to->count * sizeof *to->ids + sizeof *to->ids);
    if (to->ids)
        copy_tokens(&tokens, to->count, to->ids);
    mha_tokens_free(&tokens);
    return to->ids ? MHA_OK : fail(e, MHA_ERR_MEMORY, "no memory for %td tokens", to->count);
}

static int by_length(const void *a, const void *b)
{
    const encode_text *const x = a, *const y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* ------------------------------------------------------------------- vectors ----- */

static mha_pooling pooling_of(const encoder *e)
{
    const mha_pooling said = e->model->files.description.usage.pooling;
    if (e->config->pooling != MHA_POOLING_MODEL)
        return e->config->pooling;
    return said != MHA_POOLING_MODEL ? said : MHA_POOLING_MEAN;
}

static void pool_mean(const float *rows, ptrdiff_t count, ptrdiff_t width, double *sums, float *to)
{
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t c = 0; c < width; c++)
            sums[c] += (double)rows[i * width + c];
    for (ptrdiff_t c = 0; c < width; c++)
        to[c] = (float)(sums[c] / (double)count);
}

static void pool_most(const float *rows, ptrdiff_t count, ptrdiff_t width, float *to)
{
    memcpy(to, rows, (size_t)width * sizeof *to);
    for (ptrdiff_t i = 1; i < count; i++)
        for (ptrdiff_t c = 0; c < width; c++)
            to[c] = rows[i * width + c] > to[c] ? rows[i * width + c] : to[c];
}

static void normalize(float *vector, ptrdiff_t width)
{
    double square = 0.0;
    for (ptrdiff_t c = 0; c < width; c++)
        square += (double)vector[c] * (double)vector[c];
    for (ptrdiff_t c = 0; c < width && square > 0.0; c++)
        vector[c] = (float)((double)vector[c] / sqrt(square));
}

static void pool_text(const encoder *e, const float *rows, ptrdiff_t count, float *to)
{
    const ptrdiff_t width = e->model->files.description.width;
    switch (pooling_of(e)) {
    case MHA_POOLING_FIRST:
        memcpy(to, rows, (size_t)width * sizeof *to);
        break;
    case MHA_POOLING_LAST:
        memcpy(to, rows + (count - 1) * width, (size_t)width * sizeof *to);
        break;
    case MHA_POOLING_MAX:
        pool_most(rows, count, width, to);
        break;
    default:
        pool_mean(rows, count, width, e->sums, to);
    }
    if (e->config->normalize > 0 ||
        (e->config->normalize == 0 && e->model->files.description.usage.normalize))
        normalize(to, width);
}

/* -------------------------------------------------------------------- groups ----- */

/* One more than the last text of the group that begins with `first`; texts are the longest first,
 * and those without tokens at the end are in no group. */
static ptrdiff_t group_end(const encoder *e, ptrdiff_t first, ptrdiff_t *rows)
{
    ptrdiff_t last = first;
    *rows = 0;
    while (last < e->count && e->texts[last].count > 0 &&
           (last == first || *rows + e->texts[last].count <= GROUP_ROWS))
        *rows += e->texts[last++].count;
    return last;
}

static mha_status run_group(encoder *e, ptrdiff_t first, ptrdiff_t last)
{
    const ptrdiff_t width = e->model->files.description.width;
    e->starts[0] = 0;
    for (ptrdiff_t n = first; n < last; n++) {
        memcpy(e->ids + e->starts[n - first], e->texts[n].ids,
               (size_t)e->texts[n].count * sizeof *e->ids);
        e->starts[n - first + 1] = e->starts[n - first] + e->texts[n].count;
    }
    const bool pair = e->model->files.description.kind == MHA_MODEL_ENCODER_DECODER;
    const mha_model_call call = {.size = sizeof call,
                                 .B = last - first,
                                 .starts = pair ? NULL : e->starts,
                                 .ids = pair ? NULL : e->ids,
                                 .source_starts = pair ? e->starts : NULL,
                                 .source_ids = pair ? e->ids : NULL,
                                 .hidden = pair ? NULL : e->hidden,
                                 .source_hidden = pair ? e->hidden : NULL,
                                 .heads = e->config->heads,
                                 .message = e->config->message,
                                 .message_size = e->config->message_size};
    const size_t needed = mha_model_work_size(e->model, &call, mha_pool_threads(e->pool));
    if (needed > e->work_size) {
        free(e->work);
        e->work = work_allocate(needed);
        e->work_size = e->work ? needed : 0;
        if (!e->work)
            return fail(e, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
    }
    const mha_status status =
        mha_model_run(e->model, &call, needed ? e->work : NULL, e->work_size, e->pool);
    for (ptrdiff_t n = first; n < last && !status; n++)
        pool_text(e, e->hidden + e->starts[n - first] * width, e->texts[n].count,
                  e->vectors + e->texts[n].number * width);
    return status;
}

static mha_status take_memory(encoder *e)
{
    ptrdiff_t rows;
    for (ptrdiff_t n = 0; n < e->count && e->texts[n].count > 0;) {
        n = group_end(e, n, &rows);
        e->rows = rows > e->rows ? rows : e->rows;
    }
    const size_t width = (size_t)e->model->files.description.width, all = (size_t)e->rows + 1;
    e->hidden = malloc(all * width * sizeof *e->hidden);
    e->ids = malloc(all * sizeof *e->ids);
    e->starts = malloc(((size_t)e->count + 1) * sizeof *e->starts);
    e->sums = malloc(width * sizeof *e->sums);
    return e->hidden && e->ids && e->starts && e->sums
               ? MHA_OK
               : fail(e, MHA_ERR_MEMORY, "no memory for %td rows", e->rows);
}

static mha_status encode_all(encoder *e, const char *const *texts)
{
    const size_t width = (size_t)e->model->files.description.width;
    mha_status status = MHA_OK;
    for (ptrdiff_t n = 0; n < e->count && !status; n++)
        status = tokenize(e, texts[n], n);
    if (status)
        return status;
    qsort(e->texts, (size_t)e->count, sizeof *e->texts, by_length);
    status = take_memory(e);
    ptrdiff_t first = 0, rows;
    while (!status && first < e->count && e->texts[first].count > 0) {
        const ptrdiff_t last = group_end(e, first, &rows);
        status = run_group(e, first, last);
        first = last;
    }
    for (; !status && first < e->count; first++)
        memset(e->vectors + (size_t)e->texts[first].number * width, 0, width * sizeof(float));
    return status;
}

static mha_status check(const encoder *e, const char *const *texts)
{
    if (!texts || !e->vectors)
        return fail(e, MHA_ERR_NULL, "%s is NULL", texts ? "vectors" : "texts");
    if (e->model->files.description.kind == MHA_MODEL_IMAGE_ENCODER)
        return fail(e, MHA_ERR_FLAG, "vectors are made of texts; the model reads pictures");
    if (!e->model->tokenizer)
        return fail(e, MHA_ERR_FLAG, "the model has no tokenizer; name one when it is opened");
    if ((unsigned)e->config->pooling > MHA_POOLING_MAX)
        return fail(e, MHA_ERR_FLAG, "config.pooling is %d; use an MHA_POOLING_ value",
                    (int)e->config->pooling);
    if (e->count < 0 || e->config->longest < 0)
        return fail(e, MHA_ERR_SHAPE, "count is %td, config.longest %td", e->count,
                    e->config->longest);
    return MHA_OK;
}

mha_status mha_model_encode(const mha_model *model, const char *const *texts, ptrdiff_t count,
                            const mha_encode_config *config, float *vectors, mha_pool *pool)
{
    const mha_encode_config none = {.size = sizeof none};
    encoder e = {.model = model,
                 .config = config ? config : &none,
                 .pool = pool,
                 .count = count,
                 .vectors = vectors};
    if (!model)
        return MHA_ERR_NULL;
    if (e.config->size != sizeof none)
        return MHA_ERR_STRUCT;
    mha_status status = check(&e, texts);
    if (status || count == 0)
        return status;
    e.texts = calloc((size_t)count, sizeof *e.texts);
    status = e.texts ? encode_all(&e, texts)
                     : fail(&e, MHA_ERR_MEMORY, "no memory for %td texts", count);
    for (ptrdiff_t n = 0; e.texts && n < count; n++)
        free(e.texts[n].ids);
    free(e.texts);
    free(e.hidden);
    free(e.ids);
    free(e.starts);
    free(e.sums);
    free(e.work);
    return status;
}
