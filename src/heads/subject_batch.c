/* SPDX-License-Identifier: MIT */
/* Texts in batches (subject_batch.h). */
#include "heads/subject_batch.h"

#include <stdlib.h>
#include <string.h>

#include "heads/subject_model_parts.h"
#include "model/sample.h"

/* Rows of a batch, of either side; bytes of its logits; bytes of all kept states. A text that is
 * larger is a batch of its own. */
enum { BATCH_ROWS = 1024, LOGIT_BYTES = 32 << 20, KEPT_BYTES = 512 << 20 };

typedef struct text_batch {
    int first, count;                /* of the texts */
    int64_t *starts, *source_starts; /* [count + 1] */
    int32_t *ids, *source_ids;       /* [rows] */
    int32_t *expected;               /* [rows]; -1: not known */
    mha_state *state;                /* with the encoder's keys and values; NULL: not kept */
} text_batch;

struct subject_batches {
    const subject *subject;
    const subject_text *texts;
    int count, batch_count;
    text_batch *batches; /* [batch_count] */
    mha_pool *pool;
    ptrdiff_t vocabulary;
    float *logits; /* [rows of the largest batch][vocabulary] */
    /* Of the rows of one batch, by the tasks that read logits. */
    const text_batch *now;
    double *losses; /* [rows] */
    bool *right;    /* [rows] */
};

bool subject_batches_fit(const subject *s, const subject_texts *texts)
{
    return !s->translator && !s->reads_pictures && subject_predicts(s) && !texts->pairs;
}

static const model_text *memory_of(const subject_batches *b, int n)
{
    return b->texts[n].memory;
}

static int side_count(const subject_batches *b, int n, int side)
{
    return memory_of(b, n)->sides[side].side.count;
}

/* -------------------------------------------------------------- batches ----- */

/* One more than the last text of the batch that begins with `first`. */
static int batch_end(const subject_batches *b, int first)
{
    const int64_t words = (int64_t)b->vocabulary * (int64_t)sizeof(float);
    const int64_t most = LOGIT_BYTES / words < BATCH_ROWS ? LOGIT_BYTES / words : BATCH_ROWS;
    int64_t rows[TRANSFORMER_SIDES] = {0};
    int end = first;
    while (end < b->count) {
        rows[0] += side_count(b, end, TRANSFORMER_SOURCE);
        rows[1] += side_count(b, end, TRANSFORMER_TARGET);
        if (end > first && (rows[0] > BATCH_ROWS || rows[1] > most))
            break;
        end++;
    }
    return end;
}

static bool allocate(text_batch *t, int64_t rows, int64_t source_rows)
{
    const size_t count = (size_t)t->count + 1;
    t->starts = calloc(count, sizeof *t->starts);
    t->source_starts = calloc(count, sizeof *t->source_starts);
    t->ids = calloc((size_t)rows + 1, sizeof *t->ids);
    t->source_ids = calloc((size_t)source_rows + 1, sizeof *t->source_ids);
    t->expected = calloc((size_t)rows + 1, sizeof *t->expected);
    return t->starts && t->source_starts && t->ids && t->source_ids && t->expected;
}

/* Appends the tokens of one text. */
static void pack_text(text_batch *t, int n, const model_text *text)
{
    const model_side *const source = &text->sides[TRANSFORMER_SOURCE];
    const model_side *const target = &text->sides[TRANSFORMER_TARGET];
    const int64_t row = t->starts[n], source_row = t->source_starts[n];
    const int count = target->side.count, source_count = source->side.count;
    t->starts[n + 1] = row + count;
    t->source_starts[n + 1] = source_row + source_count;
    if (source_count > 0)
        memcpy(t->source_ids + source_row, source->ids, (size_t)source_count * sizeof *source->ids);
    memcpy(t->ids + row, target->ids, (size_t)count * sizeof *target->ids);
    for (int k = 0; k < count; k++)
        t->expected[row + k] = k + 1 < count ? target->ids[k + 1] : text->end;
}

static bool pack(const subject_batches *b, text_batch *t)
{
    int64_t rows[TRANSFORMER_SIDES] = {0};
    for (int n = 0; n < t->count; n++)
        for (int side = 0; side < TRANSFORMER_SIDES; side++)
            rows[side] += side_count(b, t->first + n, side);
    if (!allocate(t, rows[TRANSFORMER_TARGET], rows[TRANSFORMER_SOURCE]))
        return false;
    for (int n = 0; n < t->count; n++)
        pack_text(t, n, memory_of(b, t->first + n));
    return true;
}

static int64_t rows_of(const text_batch *t)
{
    return t->starts[t->count];
}

static bool has_source(const text_batch *t)
{
    return t->source_starts[t->count] > 0;
}

static bool make_batches(subject_batches *b)
{
    int64_t most = 0;
    b->batches = calloc((size_t)b->count + 1, sizeof *b->batches);
    for (int first = 0; b->batches && first < b->count;) {
        text_batch *const t = &b->batches[b->batch_count++];
        *t = (text_batch){.first = first, .count = batch_end(b, first) - first};
        if (!pack(b, t))
            return false;
        most = rows_of(t) > most ? rows_of(t) : most;
        first += t->count;
    }
    b->logits = malloc(((size_t)most * (size_t)b->vocabulary + 1) * sizeof *b->logits);
    b->losses = malloc(((size_t)most + 1) * sizeof *b->losses);
    b->right = malloc((size_t)most + 1);
    return b->batches && b->logits && b->losses && b->right;
}

/* --------------------------------------------------------------- states ----- */

static int64_t longest(const int64_t *starts, int count)
{
    int64_t most = 1;
    for (int n = 0; n < count; n++)
        most = starts[n + 1] - starts[n] > most ? starts[n + 1] - starts[n] : most;
    return most;
}

/* Runs the encoder of a batch into a state, from which the decoder can be run many times. */
static mha_status keep_encoder(const subject_batches *b, text_batch *t)
{
    const mha_state_config config = {.size = sizeof config,
                                     .sequences = t->count,
                                     .capacity = longest(t->starts, t->count),
                                     .source_capacity = longest(t->source_starts, t->count)};
    const mha_status status = mha_state_create(&t->state, model_of(b->subject), &config);
    if (status != MHA_OK)
        return status;
    const mha_model_call call = {.size = sizeof call,
                                 .B = t->count,
                                 .starts = t->starts,
                                 .ids = t->ids,
                                 .source_starts = t->source_starts,
                                 .source_ids = t->source_ids,
                                 .state = t->state};
    return mha_model_run(model_of(b->subject), &call, NULL, 0, b->pool);
}

/* Of as many batches as there is room for; with the others results are the same. */
static mha_status keep_encoders(subject_batches *b)
{
    size_t bytes = 0;
    mha_status status = MHA_OK;
    for (int n = 0; n < b->batch_count && has_source(&b->batches[n]) && bytes < KEPT_BYTES; n++) {
        status = keep_encoder(b, &b->batches[n]);
        if (status != MHA_OK)
            return status;
        bytes += mha_state_bytes(b->batches[n].state);
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
    b->texts = texts->texts;
    b->count = texts->count;
    b->pool = pool;
    b->vocabulary = info.vocabulary;
    if (make_batches(b) && keep_encoders(b) == MHA_OK)
        return b;
    subject_batches_free(b);
    return NULL;
}

void subject_batches_free(subject_batches *b)
{
    if (!b)
        return;
    for (int n = 0; n < b->batch_count; n++) {
        text_batch *const t = &b->batches[n];
        free(t->starts);
        free(t->source_starts);
        free(t->ids);
        free(t->source_ids);
        free(t->expected);
        mha_state_free(t->state);
    }
    free(b->batches);
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

static mha_status empty_state(const text_batch *t)
{
    mha_status status = MHA_OK;
    for (int n = 0; n < t->count && status == MHA_OK; n++)
        status = mha_state_truncate(t->state, n, 0);
    return status;
}

/* Logits of all rows of a batch. */
static mha_status run_batch(const subject_batches *b, const text_batch *t,
                            const mha_head_settings *heads, bool kept)
{
    const bool encodes = has_source(t) && !kept;
    const mha_status status = kept ? empty_state(t) : MHA_OK;
    const mha_model_call call = {.size = sizeof call,
                                 .B = t->count,
                                 .starts = t->starts,
                                 .ids = t->ids,
                                 .source_starts = encodes ? t->source_starts : NULL,
                                 .source_ids = encodes ? t->source_ids : NULL,
                                 .state = kept ? t->state : NULL,
                                 .logits = b->logits,
                                 .logit_row_count = rows_of(t),
                                 .heads = heads};
    return status == MHA_OK ? mha_model_run(model_of(b->subject), &call, NULL, 0, b->pool) : status;
}

static void add_rows(const subject_batches *b, const text_batch *t, head_loss *each)
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
    for (int n = 0; n < b->batch_count && status == MHA_OK; n++) {
        const text_batch *const t = &b->batches[n];
        status = run_batch(b, t, &changes.settings, t->state && !again);
        if (status != MHA_OK)
            break;
        b->now = t;
        mha_pool_run(b->pool, (ptrdiff_t)rows_of(t), read_row, b);
        add_rows(b, t, each);
    }
    model_changes_free(&changes);
    return status;
}
