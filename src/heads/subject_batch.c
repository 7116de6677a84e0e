/* SPDX-License-Identifier: MIT */
/* Texts in batches (subject_batch.h). */
#include "heads/subject_batch.h"

#include <stdlib.h>

#include "heads/subject_model_parts.h"
#include "heads/token_batch.h"
#include "model/sample.h"

/* Bytes of the logits of a batch, and of all kept states. */
enum { LOGIT_BYTES = 32 << 20, KEPT_BYTES = 512 << 20 };

struct subject_batches {
    const subject *subject;
    token_texts texts;
    token_batches all;
    mha_pool *pool;
    ptrdiff_t vocabulary;
    float *logits; /* [rows of the largest batch][vocabulary] */
    /* Of the rows of one batch, by the tasks that read logits. */
    const token_batch *now;
    double *losses; /* [rows] */
    bool *right;    /* [rows] */
};

bool subject_batches_fit(const subject *s, const subject_texts *texts)
{
    return !s->translator && !s->reads_pictures && subject_predicts(s) && !texts->pairs;
}

static bool make_batches(subject_batches *b, const subject_texts *texts)
{
    const int64_t words = (int64_t)b->vocabulary * (int64_t)sizeof(float);
    if (!token_texts_make(&b->texts, b->subject, texts) ||
        !token_batches_make(&b->all, &b->texts, LOGIT_BYTES / words))
        return false;
    const size_t most = (size_t)b->all.most_rows;
    b->logits = malloc((most * (size_t)b->vocabulary + 1) * sizeof *b->logits);
    b->losses = malloc((most + 1) * sizeof *b->losses);
    b->right = malloc(most + 1);
    return b->logits && b->losses && b->right;
}

/* Of as many batches as there is room for; with the others results are the same. */
static mha_status keep_encoders(subject_batches *b)
{
    size_t bytes = 0;
    mha_status status = MHA_OK;
    for (int n = 0; n < b->all.count && bytes < KEPT_BYTES && status == MHA_OK; n++) {
        token_batch *const t = &b->all.batches[n];
        if (!token_batch_has_source(t))
            break;
        status = token_batch_keep(t, model_of(b->subject), b->pool);
        bytes += mha_state_bytes(t->state);
    }
    return status;
}

/* --------------------------------------------------------------- create ----- */

subject_batches *subject_batches_create(const subject *s, const subject_texts *texts,
                                        mha_pool *pool)
{
    subject_batches *const b = calloc(1, sizeof *b);
    mha_model_info info = {.size = sizeof info};
    if (!b || mha_model_get_info(s->model, &info) != MHA_OK) {
        free(b);
        return NULL;
    }
    b->subject = s;
    b->pool = pool;
    b->vocabulary = info.vocabulary;
    if (make_batches(b, texts) && keep_encoders(b) == MHA_OK)
        return b;
    subject_batches_free(b);
    return NULL;
}

void subject_batches_free(subject_batches *b)
{
    if (!b)
        return;
    token_batches_free(&b->all);
    token_texts_free(&b->texts);
    free(b->logits);
    free(b->losses);
    free(b->right);
    free(b);
}

/* ------------------------------------------------------------------ run ----- */

/* The loss of one row; a task of the pool. */
static void read_row(void *arg, int worker, ptrdiff_t row)
{
    const subject_batches *const b = arg;
    const float *const logits = b->logits + row * b->vocabulary;
    const int32_t expected = b->now->expected[row];
    ptrdiff_t best = 0;
    (void)worker;
    b->losses[row] = 0.0;
    b->right[row] = false;
    if (expected < 0)
        return;
    for (ptrdiff_t w = 1; w < b->vocabulary; w++)
        best = logits[w] > logits[best] ? w : best;
    b->losses[row] = sample_log_total(logits, b->vocabulary) - (double)logits[expected];
    b->right[row] = best == expected;
}

/* Logits of all rows of a batch; `again`: the encoder has changed. */
static mha_status run_batch(const subject_batches *b, const token_batch *t,
                            const mha_head_settings *heads, bool again)
{
    mha_model_call call;
    const mha_status status = token_batch_call(t, again, &call);
    call.logits = b->logits;
    call.logit_row_count = (ptrdiff_t)token_batch_rows(t);
    call.heads = heads;
    return status == MHA_OK ? mha_model_run(model_of(b->subject), &call, NULL, 0, b->pool) : status;
}

static void add_rows(const subject_batches *b, const token_batch *t, head_loss *each)
{
    for (int n = 0; n < t->count; n++) {
        head_loss *const loss = &each[t->first + n];
        *loss = (head_loss){.loss = 0.0};
        for (int64_t row = t->starts[n]; row < t->starts[n + 1]; row++) {
            loss->loss += b->losses[row];
            loss->right += b->right[row];
            loss->words += t->expected[row] >= 0;
        }
    }
}

/* Whether any head of the encoder is changed. */
static bool changes_encoder(const subject_batches *b, const capture_options *options)
{
    const head_shape shape = b->subject->shape;
    const uint8_t *const modes = options->changes[ATTENTION_ENCODER];
    for (int n = 0; modes && n < shape.layers[ATTENTION_ENCODER] * shape.heads; n++)
        if (modes[n] != HEAD_NORMAL)
            return true;
    return false;
}

mha_status subject_batches_run(subject_batches *b, const capture_options *options, head_loss *each)
{
    const bool again = changes_encoder(b, options);
    model_changes changes;
    const bool fine =
        model_changes_make(&changes, b->subject->shape, options->changes, options->means);
    mha_status status = fine ? MHA_OK : MHA_ERR_MEMORY;
    for (int n = 0; n < b->all.count && status == MHA_OK; n++) {
        const token_batch *const t = &b->all.batches[n];
        status = run_batch(b, t, &changes.settings, again);
        if (status != MHA_OK)
            break;
        b->now = t;
        mha_pool_run(b->pool, (ptrdiff_t)token_batch_rows(t), read_row, b);
        add_rows(b, t, each);
    }
    model_changes_free(&changes);
    return status;
}
