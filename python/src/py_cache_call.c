/* SPDX-License-Identifier: MIT */
/* KVCache.append() and KVCache.attention(). */
#include "py_call.h"
#include "py_layer.h"

/* --------------------------------------------------------------- append ----- */

typedef struct tokens {
    mhap_tensor key, value;
    const int64_t *sequences, *lengths;
    mhap_kept kept;
} tokens;

static int check_tokens(mhap_state *state, const mha_cache_config *c, const tokens *t)
{
    const mhap_tensor *const k = &t->key, *const v = &t->value;
    if (k->array.type == MHAP_F64 || v->array.type == MHAP_F64)
        return mhap_fail(state, MHA_ERR_DTYPE,
                         "key or value is f64; a cache takes f32, f16 and bf16: convert it to "
                         "float32");
    if (k->B != v->B || k->rows != v->rows)
        return mhap_fail(state, MHA_ERR_SHAPE,
                         "key has %td batches of %td tokens, value %td of %td; they must agree",
                         k->B, k->rows, v->B, v->rows);
    if (k->heads != c->G || v->heads != c->G || k->width != c->D || v->width != c->Dv)
        return mhap_fail(state, MHA_ERR_SHAPE,
                         "key has %td heads of width %td, value %td of %td; the cache has %td, of "
                         "%td and %td",
                         k->heads, k->width, v->heads, v->width, c->G, c->D, c->Dv);
    return 0;
}

static int tell_full(const mhap_state *state, const mha_cache *cache, mha_status status)
{
    const mha_cache_config c = mha_cache_get_config(cache);
    if (status == MHA_ERR_FULL)
        return mhap_fail(state, status,
                         "the cache has no room for these tokens: a sequence has at most %td, and "
                         "%td of %td pages are free",
                         c.capacity, mha_cache_free_pages(cache), c.pages);
    if (status == MHA_ERR_SEQUENCE)
        return mhap_fail(state, status,
                         "there is no such sequence, or it is listed twice; the cache has %td, "
                         "numbered from 0",
                         c.sequences);
    return mhap_check(state, status, NULL);
}

static int append(mhap_state *state, mhap_cache *self, const tokens *t)
{
    mha_status status;
    if (mhap_cache_enter(self, true))
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_cache_append(self->cache, t->key.B, t->sequences, t->key.rows, t->lengths,
                              t->key.view, (mha_dtype)t->key.array.type, t->value.view,
                              (mha_dtype)t->value.array.type);
    Py_END_ALLOW_THREADS;
    mhap_cache_leave(self, true);
    return tell_full(state, self->cache, status);
}

PyObject *mhap_cache_append(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"key", "value", "sequences", "lengths", "layout", NULL};
    mhap_cache *const self = (mhap_cache *)object;
    mhap_state *const state = mhap_state_of(Py_TYPE(object));
    PyObject *key, *value, *sequences = Py_None, *lengths = Py_None, *layout = Py_None;
    bool last;
    ptrdiff_t count;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|$OOO:append", names, &key, &value,
                                     &sequences, &lengths, &layout) ||
        mhap_layout_read(state, layout == Py_None ? NULL : layout, &last))
        return NULL;
    tokens t = {.sequences = NULL};
    const mha_cache_config c = mha_cache_get_config(self->cache);
    int status = mhap_tensor_read(state, key, "key", last, false, &t.key) ||
                 mhap_tensor_read(state, value, "value", last, false, &t.value) ||
                 check_tokens(state, &c, &t) ||
                 mhap_sequences_read(state, sequences == Py_None ? NULL : sequences, t.key.B,
                                     &t.sequences, &t.kept);
    if (!status && lengths != Py_None) {
        t.lengths = mhap_integers(state, lengths, "lengths", t.key.B, &count, &t.kept);
        status = !t.lengths;
    }
    status = status || append(state, self, &t);
    mhap_release(&t.key.array);
    mhap_release(&t.value.array);
    mhap_kept_free(&t.kept);
    return status ? NULL : Py_NewRef(Py_None);
}

/* ------------------------------------------------------------ attention ----- */

typedef struct recall {
    mhap_cache *cache;
    const int64_t *sequences;
    mhap_call call;
    mhap_array output;
} recall;

/* The shape of a call, from the query, the configuration of the cache, and its longest sequence. */
static int make_shape(mhap_state *state, recall *r)
{
    const mha_cache_config c = mha_cache_get_config(r->cache->cache);
    mhap_call *const call = &r->call;
    const mhap_tensor *const q = &call->query;
    const bool packed = call->o.c.q_starts;
    if (packed && call->o.c.q_starts[call->o.B] > q->rows)
        return mhap_fail(state, MHA_ERR_LENGTH, "query_starts ends with %lld; query has %td rows",
                         (long long)call->o.c.q_starts[call->o.B], q->rows);
    if (q->width != c.D)
        return mhap_fail(state, MHA_ERR_SHAPE,
                         "query has heads of width %td; those of the cache are %td wide", q->width,
                         c.D);
    call->shape = (mha_shape){.B = packed ? call->o.B : q->B,
                              .H = q->heads,
                              .G = c.G,
                              .L = packed ? call->o.L : q->rows,
                              .D = c.D,
                              .Dv = c.Dv,
                              .q_type = (mha_dtype)q->array.type,
                              .o_type = (mha_dtype)q->array.type};
    call->form = (mhap_form){
        .batch = q->batch || packed, .heads = q->has_heads, .packed_rows = packed ? q->rows : -1};
    return 0;
}

static void find_columns(recall *r)
{
    mha_shape *const shape = &r->call.shape;
    for (ptrdiff_t b = 0; b < shape->B; b++) {
        const ptrdiff_t sequence = r->sequences ? (ptrdiff_t)r->sequences[b] : b;
        const ptrdiff_t length = mha_cache_length(r->cache->cache, sequence);
        shape->S = length > shape->S ? length : shape->S;
    }
}

static int begin(mhap_state *state, PyObject *const *own, recall *r)
{
    mhap_call *const call = &r->call;
    call->state = state;
    mhap_options_begin(&call->o);
    if (mhap_layout_read(state, call->values[MHAP_LAYOUT], &call->heads_last) ||
        mhap_starts_read(state, call->values, &call->o) ||
        mhap_tensor_read(state, own[0], "query", call->heads_last, call->o.c.q_starts,
                         &call->query) ||
        make_shape(state, r) ||
        mhap_sequences_read(state, own[1], call->shape.B, &r->sequences, &call->o.kept))
        return -1;
    find_columns(r);
    return mhap_options_read(state, call->values, &call->shape, &call->o) ||
                   mhap_pool_for(state, call->values[MHAP_THREADS], &call->pool)
               ? -1
               : 0;
}

static int compute(mhap_state *state, recall *r, mha_view out)
{
    mhap_call *const call = &r->call;
    mhap_cache *const cache = r->cache;
    mha_status status;
    const size_t size =
        mha_cache_work_size(cache->cache, &call->shape, &call->o.c, mha_pool_threads(call->pool));
    void *const work = mhap_scratch_take(&cache->scratch, size);
    Py_BEGIN_ALLOW_THREADS;
    status = mha_cache_attention(cache->cache, r->sequences, &call->shape, call->query.view,
                                 mhap_as_out(out), &call->o.c, work, work ? size : 0, call->pool);
    Py_END_ALLOW_THREADS;
    mhap_scratch_give(&cache->scratch, work);
    return mhap_check(state, status, call->o.message);
}

static PyObject *attend(mhap_state *state, recall *r)
{
    mhap_call *const call = &r->call;
    ptrdiff_t extents[MHAP_MAX_AXES];
    const int axes = mhap_shape_like(&call->query, call->shape.Dv, extents);
    const bool partial = call->o.c.q_lengths || call->o.c.q_starts;
    PyObject *const object = mhap_output(state, call->values[MHAP_OUT], &call->query.array, partial,
                                         axes, extents, &r->output);
    if (!object)
        return NULL;
    mhap_tensor out = {.name = "out", .array = r->output};
    call->shape.o_type = (mha_dtype)r->output.type;
    if (mhap_tensor_view(state, call->heads_last, call->o.c.q_starts, &out) ||
        mhap_extras_make(state, call->values, &call->shape, call->shape.S, call->form,
                         &call->query.array, &call->o, &call->extras) ||
        compute(state, r, out.view)) {
        Py_DECREF(object);
        return NULL;
    }
    return mhap_extras_result(state, &call->shape, object, &call->o, &call->extras);
}

PyObject *mhap_cache_attention(PyObject *object, PyObject *args, PyObject *keywords)
{
    static const char *const own_names[] = {"query", "sequences"};
    static const mhap_signature signature = {"KVCache.attention",      own_names, 2, 1, 1,
                                             MHAP_BIT(MHAP_KEY_STARTS)};
    mhap_state *const state = mhap_state_of(Py_TYPE(object));
    recall r = {.cache = (mhap_cache *)object};
    PyObject *own[2], *result = NULL;
    if (mhap_arguments(state, &signature, args, keywords, own, r.call.values) ||
        mhap_cache_enter(r.cache, false))
        return NULL;
    if (begin(state, own, &r) == 0)
        result = attend(state, &r);
    mhap_cache_leave(r.cache, false);
    mhap_release(&r.output);
    mhap_call_end(&r.call);
    return result;
}
