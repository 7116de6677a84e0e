/* SPDX-License-Identifier: MIT */
/*
 * _run() of a model: arrays of the caller -> mha_model_call. All arrays are contiguous and have the
 * sizes that the call needs, which is checked here; Python makes them.
 */
#include <string.h>

#include "py_model.h"
#include "py_result.h"

/* In the order of argument_names. */
enum {
    STARTS,
    IDS,
    SEGMENTS,
    SOURCE_STARTS,
    SOURCE_IDS,
    PIXELS,
    STATE,
    SEQUENCES,
    HIDDEN,
    LOGITS,
    LOGIT_ROWS,
    SOURCE_HIDDEN,
    POOLED,
    LABELS,
    STREAMS,
    HEADS,
    CAPTURES,
    THREADS,
    ARGUMENTS
};

static char *argument_names[] = {"starts",     "ids",     "segments",   "source_starts",
                                 "source_ids", "pixels",  "state",      "sequences",
                                 "hidden",     "logits",  "logit_rows", "source_hidden",
                                 "pooled",     "labels",  "streams",    "heads",
                                 "captures",   "threads", NULL};

/* One capture: the arrays it writes, and the statistics it collects. */
enum { WEIGHTS, Q, K, V, VECTORS, CAPTURED };

typedef struct capture {
    mhap_array arrays[CAPTURED];
    mha_shape shape;
    mhap_options options; /* holds the statistics and the chosen heads and rows */
    mhap_extras extras;
} capture;

typedef struct run {
    const mhap_model *self;
    mha_model_info info;
    PyObject *values[ARGUMENTS];
    mhap_array arrays[ARGUMENTS];
    mhap_rows rows, source;
    mhap_heads heads;
    mhap_sequences *state;
    mha_model_call call;
    mha_capture *captures;
    capture *captured;
    mhap_kept kept;
} run;

/* ------------------------------------------------------------- captures ----- */

static ptrdiff_t longest_keys(const run *r)
{
    ptrdiff_t longest = r->rows.longest;
    const int64_t *const sequences = r->call.sequences;
    for (ptrdiff_t b = 0; r->state && b < r->rows.B; b++) {
        const ptrdiff_t past =
            mha_state_length(r->state->sequences, sequences ? (ptrdiff_t)sequences[b] : b);
        const ptrdiff_t length = past + (ptrdiff_t)(r->rows.starts[b + 1] - r->rows.starts[b]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* The rows that queries and keys of an attention come from: for images, the patches. */
typedef struct extent {
    ptrdiff_t queries, longest_query, keys, longest_key;
} extent;

static int extent_of(const run *r, mha_attention_kind kind, extent *e)
{
    const mha_model_info *const i = &r->info;
    if (i->kind == MHA_MODEL_IMAGE_ENCODER) {
        const ptrdiff_t rows = i->positions; /* one per patch, and one or two marks */
        *e = (extent){r->call.B * rows, rows, r->call.B * rows, rows};
        return 0;
    }
    const bool pair = i->kind == MHA_MODEL_ENCODER_DECODER;
    const mhap_rows *const queries = pair && kind == MHA_ATTENTION_ENCODER ? &r->source : &r->rows;
    const mhap_rows *const keys = pair && kind != MHA_ATTENTION_DECODER ? &r->source : queries;
    if (!keys->starts || !queries->starts)
        return mhap_fail(r->self->state, MHA_ERR_FLAG,
                         "captures: the texts that this attention reads are not part of the call");
    *e = (extent){queries->rows, queries->longest, keys->rows,
                  kind == MHA_ATTENTION_DECODER ? longest_keys(r) : keys->longest};
    return 0;
}

static int take_vectors(run *r, PyObject *const *objects, const extent *e, ptrdiff_t heads,
                        capture *at, mha_capture *c)
{
    static const char *const names[] = {"weights", "q", "k", "v", "heads"};
    mha_out *const outs[] = {&c->weights, &c->q, &c->k, &c->v, &c->heads};
    const ptrdiff_t width = r->info.head_width;
    for (int n = Q; n < CAPTURED; n++) {
        const ptrdiff_t rows = n == K || n == V ? e->keys : e->queries;
        if (mhap_flat(r->self->state, objects[n], names[n], MHAP_F32, heads * rows * width, true,
                      &at->arrays[n]))
            return -1;
        *outs[n] = (mha_out){at->arrays[n].data, 0, rows * width, width};
    }
    return 0;
}

static int take_weights(run *r, PyObject *array, PyObject *chosen, PyObject *rows, capture *at,
                        mha_capture *c)
{
    mhap_state *const state = r->self->state;
    const mha_shape *const s = &at->shape;
    ptrdiff_t heads = s->H, lines = s->L;
    if (chosen != Py_None) {
        c->weights_heads = mhap_chosen(state, chosen, "heads", -1, &heads, &at->options.kept);
        c->weights_head_count = heads;
        if (!c->weights_heads)
            return -1;
    }
    if (rows != Py_None) {
        c->weights_rows = mhap_chosen(state, rows, "rows", -1, &lines, &at->options.kept);
        c->weights_row_count = lines;
        if (!c->weights_rows)
            return -1;
    }
    if (mhap_flat(state, array, "weights", MHAP_F32, s->B * heads * lines * s->S, true,
                  &at->arrays[WEIGHTS]))
        return -1;
    c->weights = mha_out_bhld(at->arrays[WEIGHTS].data, heads, lines, s->S);
    return 0;
}

static int take_capture(run *r, PyObject *tuple, capture *at, mha_capture *c)
{
    mhap_state *const state = r->self->state;
    PyObject *o[CAPTURED], *chosen, *rows, *statistics;
    int kind;
    Py_ssize_t layer;
    extent e = {0};
    if (!PyTuple_Check(tuple))
        return mhap_wrong_kind("a capture", tuple, "give a tuple");
    if (!PyArg_ParseTuple(tuple, "inOOOOOOOO:capture", &kind, &layer, &o[WEIGHTS], &chosen, &rows,
                          &statistics, &o[Q], &o[K], &o[V], &o[VECTORS]))
        return -1;
    c->kind = (mha_attention_kind)kind;
    c->layer = layer;
    const ptrdiff_t heads = mha_model_heads(r->self->model, c->kind, layer);
    if (heads < 0)
        return mhap_fail(state, MHA_ERR_INDEX, "the model has no such layer: %td", layer);
    if (extent_of(r, c->kind, &e))
        return -1;
    at->shape = (mha_shape){.B = r->call.B, .H = heads, .L = e.longest_query, .S = e.longest_key};
    at->extras.origin = MHAP_NUMPY;
    at->extras.form = (mhap_form){.batch = true, .heads = true, .packed_rows = -1};
    if (take_weights(r, o[WEIGHTS], chosen, rows, at, c) || take_vectors(r, o, &e, heads, at, c) ||
        mhap_statistics_make(state, statistics == Py_None ? NULL : statistics, &at->shape,
                             &at->options, &at->extras))
        return -1;
    c->statistics = at->options.c.statistics;
    return 0;
}

static int take_captures(run *r)
{
    PyObject *const list = r->values[CAPTURES];
    if (!list || list == Py_None)
        return 0;
    if (!PyList_Check(list))
        return mhap_wrong_kind("captures", list, "give a list");
    const Py_ssize_t count = PyList_Size(list);
    r->captures = mhap_keep(&r->kept, (size_t)count * sizeof *r->captures);
    r->captured = mhap_keep(&r->kept, (size_t)count * sizeof *r->captured);
    if (!r->captures || !r->captured)
        return -1;
    memset(r->captures, 0, (size_t)count * sizeof *r->captures);
    memset(r->captured, 0, (size_t)count * sizeof *r->captured);
    r->call.captures = r->captures;
    r->call.capture_count = count;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *const tuple = PyList_GetItem(list, n);
        if (!tuple || take_capture(r, tuple, &r->captured[n], &r->captures[n]))
            return -1;
    }
    return 0;
}

/* -------------------------------------------------------------- outputs ----- */

static int take_one(run *r, int argument, mhap_type type, ptrdiff_t count, bool to_write)
{
    return mhap_flat(r->self->state, r->values[argument], argument_names[argument], type, count,
                     to_write, &r->arrays[argument]);
}

/* The rows of the residual stream: those of the ids, or of the patches of pictures. */
static ptrdiff_t stream_rows(const run *r)
{
    extent e = {0};
    if (r->info.kind == MHA_MODEL_IMAGE_ENCODER)
        extent_of(r, MHA_ATTENTION_ENCODER, &e);
    return r->info.kind == MHA_MODEL_IMAGE_ENCODER ? e.queries : r->rows.rows;
}

static int take_outputs(run *r)
{
    const mha_model_info *const i = &r->info;
    const ptrdiff_t rows = stream_rows(r);
    if (take_one(r, LOGIT_ROWS, MHAP_I64, -1, false))
        return -1;
    const ptrdiff_t logits =
        r->arrays[LOGIT_ROWS].data ? r->arrays[LOGIT_ROWS].shape[0] : r->rows.rows;
    const bool decodes = i->kind == MHA_MODEL_DECODER || i->kind == MHA_MODEL_ENCODER_DECODER;
    const ptrdiff_t layers = i->layers[decodes ? MHA_ATTENTION_DECODER : MHA_ATTENTION_ENCODER];
    if (take_one(r, HIDDEN, MHAP_F32, rows * i->width, true) ||
        take_one(r, LOGITS, MHAP_F32, logits * i->vocabulary, true) ||
        take_one(r, SOURCE_HIDDEN, MHAP_F32, r->source.rows * i->width, true) ||
        take_one(r, POOLED, MHAP_F32, r->call.B * i->width, true) ||
        take_one(r, LABELS, MHAP_F32, r->call.B * i->labels, true) ||
        take_one(r, STREAMS, MHAP_F32, (layers + 1) * rows * i->width, true))
        return -1;
    mha_model_call *const c = &r->call;
    c->hidden = r->arrays[HIDDEN].data;
    c->logits = r->arrays[LOGITS].data;
    c->logit_rows = r->arrays[LOGIT_ROWS].data;
    c->logit_row_count = r->arrays[LOGIT_ROWS].data ? logits : 0;
    c->source_hidden = r->arrays[SOURCE_HIDDEN].data;
    c->pooled = r->arrays[POOLED].data;
    c->labels = r->arrays[LABELS].data;
    c->streams = r->arrays[STREAMS].data;
    return 0;
}

static int take_pixels(run *r)
{
    const mha_model_info *const i = &r->info;
    const ptrdiff_t picture = i->channels * i->image_size * i->image_size;
    if (take_one(r, PIXELS, MHAP_F32, -1, false))
        return -1;
    const mhap_array *const a = &r->arrays[PIXELS];
    const ptrdiff_t count = a->data ? mhap_count(a->axes, a->shape) : 0;
    if (a->data && (picture <= 0 || count % picture != 0))
        return mhap_fail(r->self->state, MHA_ERR_SHAPE,
                         "pixels has %td elements; a picture of this model has %td", count,
                         picture);
    if (a->data)
        r->call.B = count / picture;
    r->call.pixels = a->data;
    return 0;
}

static int take_inputs(run *r)
{
    mhap_state *const state = r->self->state;
    mha_model_call *const c = &r->call;
    if (mhap_rows_take(state, r->values[STARTS], r->values[IDS], &r->rows) ||
        mhap_rows_take(state, r->values[SOURCE_STARTS], r->values[SOURCE_IDS], &r->source))
        return -1;
    c->B = r->rows.starts ? r->rows.B : r->source.B;
    if (r->source.starts && r->source.B != c->B)
        return mhap_fail(state, MHA_ERR_SHAPE, "there are %td source texts for %td texts",
                         r->source.B, c->B);
    c->starts = r->rows.starts;
    c->ids = r->rows.ids;
    c->source_starts = r->source.starts;
    c->source_ids = r->source.ids;
    if (take_pixels(r) || take_one(r, SEGMENTS, MHAP_I32, r->rows.rows, false) ||
        take_one(r, SEQUENCES, MHAP_I64, c->B, false) ||
        mhap_heads_take(r->self, r->values[HEADS], &r->heads) ||
        mhap_sequences_enter(r->self, r->values[STATE], &r->state))
        return -1;
    c->segments = r->arrays[SEGMENTS].data;
    c->sequences = r->arrays[SEQUENCES].data;
    c->state = r->state ? r->state->sequences : NULL;
    c->heads = r->heads.settings;
    return 0;
}

/* ----------------------------------------------------------------- call ----- */

/* A list with the statistics of each capture, or None. */
static PyObject *statistics_list(const run *r)
{
    PyObject *const list = PyList_New(r->call.capture_count);
    for (ptrdiff_t n = 0; list && n < r->call.capture_count; n++) {
        const capture *const at = &r->captured[n];
        PyObject *const result =
            at->options.c.statistics
                ? mhap_statistics_result(r->self->state, &at->shape, &at->options, &at->extras)
                : Py_NewRef(Py_None);
        if (!result || PyList_SetItem(list, n, result)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *run_now(run *r)
{
    char message[MHAP_MESSAGE] = "";
    mha_pool *pool = NULL;
    PyObject *const threads = r->values[THREADS];
    if (mhap_pool_for(r->self->state, threads == Py_None ? NULL : threads, &pool))
        return NULL;
    r->call.message = message;
    r->call.message_size = sizeof message;
    mha_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_model_run(r->self->model, &r->call, NULL, 0, pool);
    Py_END_ALLOW_THREADS;
    return mhap_check(r->self->state, status, message) ? NULL : statistics_list(r);
}

static void release(run *r)
{
    for (int n = 0; n < ARGUMENTS; n++)
        mhap_release(&r->arrays[n]);
    for (ptrdiff_t n = 0; r->captured && n < r->call.capture_count; n++) {
        for (int m = 0; m < CAPTURED; m++)
            mhap_release(&r->captured[n].arrays[m]);
        mhap_kept_free(&r->captured[n].options.kept);
        mhap_extras_end(&r->captured[n].extras);
    }
    mhap_rows_release(&r->rows);
    mhap_rows_release(&r->source);
    mhap_heads_release(&r->heads);
    mhap_sequences_leave(r->state);
    mhap_kept_free(&r->kept);
}

PyObject *mhap_model_run_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    run r;
    memset(&r, 0, sizeof r);
    r.self = (const mhap_model *)object;
    r.info.size = sizeof r.info;
    r.call.size = sizeof r.call;
    PyObject **const v = r.values;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOOOOOOOOOOOOOOOO:_run", argument_names,
                                     &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8],
                                     &v[9], &v[10], &v[11], &v[12], &v[13], &v[14], &v[15], &v[16],
                                     &v[17]))
        return NULL;
    mha_model_get_info(r.self->model, &r.info);
    PyObject *result = NULL;
    if (!take_inputs(&r) && !take_outputs(&r) && !take_captures(&r))
        result = run_now(&r);
    release(&r);
    return result;
}
