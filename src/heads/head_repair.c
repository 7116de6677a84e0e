/* SPDX-License-Identifier: MIT */
/*
 * Self-repair of each head of decoder and cross. Every batch of texts is run with the whole model,
 * then again without each head:
 *
 *      whole model --> deviations of all norms, gradients of all heads' outputs, direct effects
 *      without one --> logits, with its own deviations and with those of the whole model, and the
 *                      direct effects of the other heads
 */
#include "heads/head_repair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/direct_path.h"
#include "heads/subject_model_parts.h"

/* One run of the model on a batch. */
typedef struct repair_run {
    float *hidden;  /* [rows][width] */
    float *parts;   /* [parts][rows][width] */
    float *outputs; /* [attentions][rows][inner] of all heads */
} repair_run;

typedef struct repair_job {
    const mha_model *model;
    head_shape shape;
    direct_path path;
    mha_pool *pool;
    mha_capture *captures; /* [attentions] */
    int heads;             /* in all */

    /* Of the present batch. */
    const token_batch *batch;
    int64_t rows;
    float *streams; /* [layers + 1][rows][width], of which the first is read */
    repair_run plain, changed;
    double *word;    /* [rows][width] */
    double *inverse; /* [rows][direct_norms()] of the whole model */
    float *pulled;   /* [rows][attentions][inner] */
    double *logit;   /* [rows] of the whole model */
    double *lost;    /* [rows] */
    double *held;    /* [rows] the decrease at the deviations of the whole model */
    double *direct;  /* [rows][heads] direct effects */
    double *removed; /* [rows][heads] */
    double *room;    /* [threads][3 * width + direct_norms()] */

    /* Sums over all rows. */
    int64_t scored;
    double *sums;    /* [heads] direct effects */
    double *helped;  /* [heads][heads] the same without the first head */
    double *changes; /* [heads][3]: removed, lost, held */
} repair_job;

/* ---------------------------------------------------------------- memory ----- */

static double *doubles(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(double));
}

static float *floats(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(float));
}

static bool make_run(const direct_path *p, int64_t rows, repair_run *run)
{
    run->hidden = floats(rows * p->stream.width);
    run->parts = floats(rows * p->stream.width * p->stream.parts);
    run->outputs = floats(rows * p->inner * p->attention_count);
    return run->hidden && run->parts && run->outputs;
}

static int64_t room_size(const direct_path *p)
{
    return 3 * (int64_t)p->stream.width + direct_norms(p);
}

/* For batches of so many rows. */
static bool allocate(repair_job *j, int64_t rows)
{
    const direct_path *const p = &j->path;
    const int64_t width = p->stream.width;
    j->captures = calloc((size_t)p->attention_count, sizeof *j->captures);
    j->streams = floats((p->stream.parts + 1) * rows * width);
    j->word = doubles(rows * width);
    j->inverse = doubles(rows * direct_norms(p));
    j->pulled = floats(rows * p->attention_count * p->inner);
    j->logit = doubles(rows);
    j->lost = doubles(rows);
    j->held = doubles(rows);
    j->direct = doubles(rows * j->heads);
    j->removed = doubles(rows * j->heads);
    j->room = doubles(mha_pool_threads(j->pool) * room_size(p));
    j->sums = doubles(j->heads);
    j->helped = doubles((int64_t)j->heads * j->heads);
    j->changes = doubles((int64_t)j->heads * 3);
    return make_run(p, rows, &j->plain) && make_run(p, rows, &j->changed) && j->captures &&
           j->streams && j->word && j->inverse && j->pulled && j->logit && j->lost && j->held &&
           j->direct && j->removed && j->room && j->sums && j->helped && j->changes;
}

static void release(repair_job *j)
{
    void *const all[] = {j->captures,      j->streams,        j->word,          j->inverse,
                         j->pulled,        j->logit,          j->lost,          j->held,
                         j->direct,        j->removed,        j->room,          j->sums,
                         j->helped,        j->changes,        j->plain.hidden,  j->plain.parts,
                         j->plain.outputs, j->changed.hidden, j->changed.parts, j->changed.outputs};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        free(all[n]);
    direct_path_free(&j->path);
}

/* ------------------------------------------------------------------ rows ----- */

static const stream_part *attention_part(const repair_job *j, int attention)
{
    return &j->path.parts[j->path.attentions[attention]];
}

/* The number of the first head of an attention. */
static int first_head(const repair_job *j, int attention)
{
    const stream_part *const at = attention_part(j, attention);
    return head_number(j->shape, (head_name){(attention_kind)at->kind, at->layer, 0});
}

static bool is_scored(const repair_job *j, int64_t row)
{
    return j->batch->expected[row] >= 0;
}

static const float *output_of(const repair_job *j, const repair_run *run, int attention,
                              ptrdiff_t row)
{
    return run->outputs + (attention * j->rows + row) * j->path.inner;
}

/* The logit that the model itself has computed. */
static double model_logit(const repair_job *j, const repair_run *run, ptrdiff_t row)
{
    const ptrdiff_t width = j->path.stream.width;
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < width; c++)
        sum += (double)run->hidden[row * width + c] * j->word[row * width + c];
    return sum;
}

/* Direct effects of all heads in a row, from their outputs in a run. */
static void direct_row(const repair_job *j, const repair_run *run, ptrdiff_t row)
{
    const ptrdiff_t D = j->path.head_width;
    for (int a = 0; a < j->path.attention_count; a++) {
        const float *const output = output_of(j, run, a, row);
        const float *const pulled = j->pulled + (row * j->path.attention_count + a) * j->path.inner;
        double *const to = j->direct + row * j->heads + first_head(j, a);
        for (int h = 0; h < j->shape.heads; h++) {
            to[h] = 0.0;
            for (ptrdiff_t c = h * D; c < (h + 1) * D; c++)
                to[h] += (double)output[c] * (double)pulled[c];
        }
    }
}

static direct_rows rows_of(const repair_job *j, const repair_run *run)
{
    return (direct_rows){.embedded = j->streams, .parts = run->parts, .rows = j->rows};
}

/* What a row loses without each head of an attention, with norms that are computed again. */
static void remove_heads(const repair_job *j, int attention, ptrdiff_t row, double *room)
{
    const direct_path *const p = &j->path;
    const ptrdiff_t width = p->stream.width;
    const direct_rows rows = rows_of(j, &j->plain);
    const float *const output = output_of(j, &j->plain, attention, row);
    double *const to = j->removed + row * j->heads + first_head(j, attention);
    double *const head = room + 2 * width, *const inverse = room + 3 * width;
    const direct_removal removal = {p->attentions[attention], head};
    for (int h = 0; h < j->shape.heads; h++) {
        direct_output(p, attention, h, output + h * p->head_width, head);
        to[h] = j->logit[row] -
                direct_walk(p, &rows, row, j->word + row * width, &removal, false, inverse, room);
    }
}

static const direct_removal nothing = {-1, NULL};

/* Everything of a row of the whole model; a task of the pool, as the next. */
static void plain_row(void *arg, int worker, ptrdiff_t row)
{
    const repair_job *const j = arg;
    const direct_path *const p = &j->path;
    const direct_rows rows = rows_of(j, &j->plain);
    const double *const word = j->word + row * p->stream.width;
    double *const room = j->room + worker * room_size(p);
    double *const inverse = j->inverse + row * direct_norms(p);
    if (!is_scored(j, row))
        return;
    direct_walk(p, &rows, row, word, &nothing, false, inverse, room);
    direct_gradient(p, word, inverse, j->pulled + row * p->attention_count * p->inner, NULL, room);
    j->logit[row] = model_logit(j, &j->plain, row);
    direct_row(j, &j->plain, row);
    for (int a = 0; a < p->attention_count; a++)
        remove_heads(j, a, row, room);
}

static void changed_row(void *arg, int worker, ptrdiff_t row)
{
    const repair_job *const j = arg;
    const direct_path *const p = &j->path;
    const direct_rows rows = rows_of(j, &j->changed);
    double *const room = j->room + worker * room_size(p);
    if (!is_scored(j, row))
        return;
    j->lost[row] = j->logit[row] - model_logit(j, &j->changed, row);
    j->held[row] =
        j->logit[row] - direct_walk(p, &rows, row, j->word + row * p->stream.width, &nothing, true,
                                    j->inverse + row * direct_norms(p), room);
    direct_row(j, &j->changed, row);
}

/* ------------------------------------------------------------------ runs ----- */

static mha_status find_words(const repair_job *j)
{
    const ptrdiff_t width = j->path.stream.width;
    float *const row = floats(width);
    mha_status status = row ? MHA_OK : MHA_ERR_MEMORY;
    for (int64_t n = 0; n < j->rows && status == MHA_OK; n++)
        if (is_scored(j, n))
            status = direct_word(&j->path, j->batch->expected[n], row, j->word + n * width);
    free(row);
    return status;
}

static mha_status run_model(const repair_job *j, const mha_head_settings *heads, float *streams,
                            const repair_run *to)
{
    const direct_path *const p = &j->path;
    mha_model_call call;
    const mha_status status = token_batch_call(j->batch, false, &call);
    for (int a = 0; a < p->attention_count; a++) {
        const stream_part *const at = attention_part(j, a);
        j->captures[a] = (mha_capture){
            .kind = at->kind,
            .layer = at->layer,
            .heads = {to->outputs + a * j->rows * p->inner, 0, p->head_width, p->inner}};
    }
    call.hidden = to->hidden;
    call.parts = to->parts;
    call.streams = streams;
    call.heads = heads;
    call.captures = j->captures;
    call.capture_count = p->attention_count;
    return status == MHA_OK ? mha_model_run(j->model, &call, NULL, 0, j->pool) : status;
}

static mha_status run_without(const repair_job *j, head_name name)
{
    const uint8_t *modes[ATTENTION_KINDS] = {NULL};
    static const float *const no_means[ATTENTION_KINDS] = {NULL};
    uint8_t *const changes = calloc((size_t)j->heads, sizeof *changes);
    model_changes settings = {.gates = NULL};
    mha_status status = MHA_ERR_MEMORY;
    if (changes) {
        changes[name.layer * j->shape.heads + name.head] = HEAD_ZERO;
        modes[name.kind] = changes;
        if (model_changes_make(&settings, j->shape, modes, no_means))
            status = run_model(j, &settings.settings, NULL, &j->changed);
        model_changes_free(&settings);
    }
    free(changes);
    return status;
}

/* --------------------------------------------------------------- measure ----- */

static void add_plain(repair_job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        if (!is_scored(j, row))
            continue;
        j->scored++;
        for (int head = 0; head < j->heads; head++) {
            j->sums[head] += j->direct[row * j->heads + head];
            j->changes[3 * head] += j->removed[row * j->heads + head];
        }
    }
}

static void add_changed(repair_job *j, int head)
{
    for (int64_t row = 0; row < j->rows; row++) {
        if (!is_scored(j, row))
            continue;
        j->changes[3 * head + 1] += j->lost[row];
        j->changes[3 * head + 2] += j->held[row];
        for (int other = 0; other < j->heads; other++)
            j->helped[head * j->heads + other] += j->direct[row * j->heads + other];
    }
}

static mha_status measure_batch(repair_job *j, token_batch *t)
{
    j->batch = t;
    j->rows = token_batch_rows(t);
    mha_status status = MHA_OK;
    if (token_batch_has_source(t))
        status = token_batch_keep(t, j->model, j->pool);
    if (status == MHA_OK)
        status = find_words(j);
    if (status == MHA_OK)
        status = run_model(j, NULL, j->streams, &j->plain);
    if (status == MHA_OK) {
        mha_pool_run(j->pool, (ptrdiff_t)j->rows, plain_row, j);
        add_plain(j);
    }
    for (int head = 0; head < j->heads && status == MHA_OK; head++) {
        const head_name name = head_at(j->shape, head);
        if (name.kind == ATTENTION_ENCODER)
            continue;
        status = run_without(j, name);
        if (status != MHA_OK)
            break;
        mha_pool_run(j->pool, (ptrdiff_t)j->rows, changed_row, j);
        add_changed(j, head);
    }
    mha_state_free(t->state);
    t->state = NULL;
    return status;
}

static head_repair result_of(const repair_job *j, int head)
{
    const double rows = j->scored > 0 ? (double)j->scored : 1.0;
    head_repair r = {.repair = NAN, .norm = NAN, .helper = -1};
    if (head_at(j->shape, head).kind == ATTENTION_ENCODER)
        return r;
    r.direct = j->sums[head] / rows;
    r.removed = j->changes[3 * head] / rows;
    r.lost = j->changes[3 * head + 1] / rows;
    r.held = j->changes[3 * head + 2] / rows;
    r.known = fabs(r.direct) >= REPAIR_DIRECT_MIN;
    if (r.known) {
        r.repair = 1.0 - r.lost / r.direct;
        r.norm = (r.held - r.lost) / r.direct;
    }
    for (int other = 0; other < j->heads; other++) {
        const double more = (j->helped[head * j->heads + other] - j->sums[other]) / rows;
        if (other != head && more > REPAIR_HELP_MIN && more > r.help) {
            r.help = more;
            r.helper = other;
        }
    }
    return r;
}

mha_status head_repair_measure(const mha_model *model, head_shape shape, const token_texts *texts,
                               mha_pool *pool, head_repair *repairs,
                               void (*watch)(int done, int count))
{
    repair_job job = {.model = model, .shape = shape, .heads = head_count(shape), .pool = pool};
    token_batches all = {.batches = NULL};
    mha_status status = direct_path_make(&job.path, model, shape);
    if (status == MHA_OK &&
        (!token_batches_make(&all, texts, BATCH_ROWS) || !allocate(&job, all.most_rows)))
        status = MHA_ERR_MEMORY;
    for (int n = 0; n < all.count && status == MHA_OK; n++) {
        status = measure_batch(&job, &all.batches[n]);
        if (watch)
            watch(n + 1, all.count);
    }
    for (int head = 0; head < job.heads && status == MHA_OK; head++)
        repairs[head] = result_of(&job, head);
    token_batches_free(&all);
    release(&job);
    return status;
}
