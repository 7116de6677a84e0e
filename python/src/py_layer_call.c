/* SPDX-License-Identifier: MIT */
/*
 * One call of a layer:
 *
 *      take_inputs    arrays -> rows (b, i, c)
 *      read_cache     how a cache is used, and for which sequences
 *      read_extents   B, L and S of the call, in batches, packed, or over a cache
 *      mhap_options_read, mhap_extras_make, mhap_output
 *      compute        without the GIL
 */
#include "py_layer.h"

#include <string.h>

enum {
    QUERY,
    KEY,
    VALUE,
    CACHE,
    CACHE_USE,
    SEQUENCES,
    QUERY_POSITIONS,
    KEY_POSITIONS,
    BATCH_FIRST,
    OWN
};

static const char *const own_names[OWN] = {"query",           "key",           "value",
                                           "cache",           "cache_use",     "sequences",
                                           "query_positions", "key_positions", "batch_first"};

static const mhap_signature signature = {.function = "Layer",
                                         .own = own_names,
                                         .own_count = OWN,
                                         .positional = VALUE + 1,
                                         .refused = MHAP_BIT(MHAP_LAYOUT)};

/* The weight that adds one key to every sequence. */
enum { EXTRA_KEY = 8 };

/* --------------------------------------------------------------- inputs ----- */

static ptrdiff_t batch_of(const mhap_array *array, bool batch_first)
{
    return array->axes == 3 ? array->shape[batch_first ? 0 : 1] : 1;
}

static ptrdiff_t rows_of(const mhap_array *array, bool batch_first)
{
    return array->shape[array->axes == 3 && batch_first ? 1 : 0];
}

mha_view mhap_rows_view(const mhap_array *array, bool batch_first)
{
    const ptrdiff_t *const s = array->strides;
    if (array->axes == 2)
        return (mha_view){.data = array->data, .sl = s[0]};
    return (mha_view){
        .data = array->data, .sb = s[batch_first ? 0 : 1], .sl = s[batch_first ? 1 : 0]};
}

mha_out mhap_rows_out(const mhap_array *array, bool batch_first)
{
    const mha_view view = mhap_rows_view(array, batch_first);
    return (mha_out){.data = array->data, .sb = view.sb, .sl = view.sl};
}

static int check_rows(const mhap_state *state, const mhap_array *array, const char *name,
                      ptrdiff_t width, bool packed)
{
    char text[MHAP_SHAPE_TEXT];
    mhap_shape_text(text, array->axes, array->shape);
    if (array->type == MHAP_F64)
        return mhap_fail(state, MHA_ERR_DTYPE,
                         "%s is f64; a layer works in f32, f16 and bf16: convert it to float32",
                         name);
    if (array->axes != 2 && (packed || array->axes != 3))
        return mhap_fail(state, MHA_ERR_SHAPE, "%s has the shape %s; %s", name, text,
                         packed ? "packed rows are (rows, width)"
                                : "rows are (batch, rows, width) or (rows, width)");
    if (array->shape[array->axes - 1] != width)
        return mhap_fail(state, MHA_ERR_SHAPE,
                         "%s has the shape %s; the last axis of this layer's is %td wide", name,
                         text, width);
    return mhap_check_rows(state, array, name);
}

/* Takes one of the three inputs; it must have the same axes and type as `first`, which was taken
 * before. */
static int take_rows(mhap_state *state, PyObject *object, const char *name, ptrdiff_t width,
                     bool packed, const mhap_array *first, mhap_array *array)
{
    if (!object)
        return 0;
    if (mhap_take(state, object, name, array) || mhap_check_float(state, array, name) ||
        check_rows(state, array, name, width, packed))
        return -1;
    if (first->object && first->type != array->type)
        return mhap_fail(state, MHA_ERR_DTYPE,
                         "%s is %s but other inputs are %s; a call takes one type: convert one",
                         name, mhap_type_name(array->type), mhap_type_name(first->type));
    return 0;
}

static int take_inputs(mhap_state *state, PyObject *const *own, mhap_layer_run *run)
{
    const mha_layer_config c = mha_layer_get_config(run->layer->layer);
    const bool stores = run->call.cache_use == MHA_CACHE_STORE;
    const bool packed = run->o.c.q_starts != NULL;
    const bool keys_packed = run->o.c.k_starts != NULL;
    if (stores ? !own[KEY] : !own[QUERY]) {
        PyErr_Format(PyExc_TypeError, "%s is missing",
                     stores ? "key, which cache_use=\"store\" stores," : "query");
        return -1;
    }
    if (stores && own[QUERY])
        return mhap_fail(state, MHA_ERR_FLAG,
                         "query does not go with cache_use=\"store\", which takes key and value");
    if (own[VALUE] && !own[KEY])
        return mhap_fail(state, MHA_ERR_FLAG, "value is given without key; give both");
    if (take_rows(state, own[QUERY], "query", c.E, packed, &run->query, &run->query) ||
        take_rows(state, own[KEY], "key", c.key_width, keys_packed, &run->query, &run->key) ||
        take_rows(state, own[VALUE], "value", c.value_width, keys_packed, &run->key, &run->value))
        return -1;
    const mhap_array *const any = stores ? &run->key : &run->query;
    run->call.input_type = (mha_dtype)any->type;
    const bool first = run->batch_first;
    run->call.query = own[QUERY] ? mhap_rows_view(&run->query, first) : (mha_view){0};
    run->call.key = own[KEY] ? mhap_rows_view(&run->key, first) : (mha_view){0};
    run->call.value = own[VALUE] ? mhap_rows_view(&run->value, first) : (mha_view){0};
    return 0;
}

/* ---------------------------------------------------------------- cache ----- */

static int read_cache(mhap_state *state, PyObject *const *own, mhap_layer_run *run)
{
    static const char *const uses[] = {"step", "store", "recall", NULL};
    if (!own[CACHE]) {
        if (own[CACHE_USE] || own[SEQUENCES])
            return mhap_fail(state, MHA_ERR_NULL, "%s is given without a cache",
                             own[CACHE_USE] ? "cache_use" : "sequences");
        return 0;
    }
    if (!PyObject_TypeCheck(own[CACHE], (PyTypeObject *)state->cache_type))
        return mhap_wrong_kind("cache", own[CACHE], "give an mha.KVCache");
    const int use = own[CACHE_USE] ? mhap_choice(state, own[CACHE_USE], "cache_use", uses) : 0;
    if (use < 0)
        return -1;
    run->cache = (mhap_cache *)Py_NewRef(own[CACHE]);
    run->call.cache = run->cache->cache;
    run->call.cache_use = (mha_cache_use)use;
    return 0;
}

/* The number of tokens that batch b appends to its sequence. */
static ptrdiff_t new_tokens(const mhap_layer_run *run, const int64_t *lengths, ptrdiff_t b)
{
    const int64_t *const starts = run->o.c.q_starts;
    if (run->call.cache_use != MHA_CACHE_STEP)
        return 0;
    if (lengths)
        return (ptrdiff_t)lengths[b];
    return starts ? (ptrdiff_t)(starts[b + 1] - starts[b]) : run->call.L;
}

/* S of a call over a cache: the tokens of the longest sequence, including those of this call. */
static int read_columns(mhap_state *state, PyObject *const *own, PyObject *const *values,
                        mhap_layer_run *run)
{
    mha_layer_call *const call = &run->call;
    PyObject *const given = values[MHAP_QUERY_LENGTHS];
    const int64_t *lengths = NULL;
    ptrdiff_t count;
    if (mhap_sequences_read(state, own[SEQUENCES], call->B, &call->sequences, &run->o.kept))
        return -1;
    if (call->cache_use == MHA_CACHE_STORE)
        return 0;
    if (given &&
        !(lengths = mhap_integers(state, given, "query_lengths", call->B, &count, &run->o.kept)))
        return -1;
    for (ptrdiff_t b = 0; b < call->B; b++) {
        const ptrdiff_t sequence = call->sequences ? (ptrdiff_t)call->sequences[b] : b;
        const ptrdiff_t length =
            mha_cache_length(call->cache, sequence) + new_tokens(run, lengths, b);
        call->S = length > call->S ? length : call->S;
    }
    return 0;
}

/* -------------------------------------------------------------- extents ----- */

static int check_batch(const mhap_state *state, const char *name, ptrdiff_t found, ptrdiff_t B)
{
    if (found == B)
        return 0;
    return mhap_fail(state, MHA_ERR_SHAPE, "%s has a batch of %td; the others have %td", name,
                     found, B);
}

static int check_key(const mhap_state *state, const mhap_layer_run *run)
{
    const bool packed = run->o.c.k_starts != NULL, first = run->batch_first;
    const mhap_array *const key = &run->key, *const value = &run->value;
    if (!packed && check_batch(state, "key", batch_of(key, first), run->call.B))
        return -1;
    if (!value->object)
        return 0;
    if (value->axes != key->axes || batch_of(value, first) != batch_of(key, first) ||
        rows_of(value, first) != rows_of(key, first)) {
        char text[2][MHAP_SHAPE_TEXT];
        return mhap_fail(state, MHA_ERR_SHAPE,
                         "value has the shape %s and key %s; they differ in the last axis at most",
                         mhap_shape_text(text[0], value->axes, value->shape),
                         mhap_shape_text(text[1], key->axes, key->shape));
    }
    return 0;
}

/* The number of packed rows must match the starts; fewer would be read out of bounds. */
static int check_packed(const mhap_state *state, const mhap_array *array, const char *name,
                        const int64_t *starts, ptrdiff_t B)
{
    if (!starts || !array->object || array->shape[0] >= starts[B])
        return 0;
    return mhap_fail(state, MHA_ERR_LENGTH, "%s_starts end at %lld; %s has %td rows", name,
                     (long long)starts[B], name, array->shape[0]);
}

static int read_extents(mhap_state *state, PyObject *const *own, PyObject *const *values,
                        mhap_layer_run *run)
{
    mha_layer_call *const call = &run->call;
    const mhap_options *const o = &run->o;
    const bool first = run->batch_first, attends = run->query.object != NULL;
    const mhap_array *const leader = attends ? &run->query : &run->key;
    const bool packed = attends ? o->c.q_starts != NULL : o->c.k_starts != NULL;
    call->B = packed ? o->B : batch_of(leader, first);
    if (o->B >= 0 && o->B != call->B)
        return mhap_fail(state, MHA_ERR_SHAPE, "%s has a batch of %td; the starts tell of %td",
                         attends ? "query" : "key", call->B, o->B);
    if (attends)
        call->L = packed ? o->L : rows_of(&run->query, first);
    run->form = (mhap_form){.batch = packed || leader->axes == 3,
                            .heads = true,
                            .packed_rows = packed ? leader->shape[0] : -1};
    if (check_packed(state, &run->query, "query", o->c.q_starts, call->B) ||
        check_packed(state, &run->key, "key", o->c.k_starts, call->B))
        return -1;
    if (run->key.object) {
        call->S = o->c.k_starts ? o->S : rows_of(&run->key, first);
        if (check_key(state, run))
            return -1;
    } else if (!call->cache) {
        call->S = call->L;
    }
    return call->cache ? read_columns(state, own, values, run) : 0;
}

/* Reads [B][rows] numbers as int64. */
static int positions_of(mhap_state *state, PyObject *object, const char *name, ptrdiff_t B,
                        ptrdiff_t rows, mhap_kept *kept, const int64_t **positions)
{
    if (!object)
        return 0;
    const int32_t *const narrow = mhap_documents(state, object, name, B, rows, kept);
    int64_t *const wide = narrow ? mhap_keep(kept, (size_t)(B * rows) * sizeof *wide) : NULL;
    for (ptrdiff_t n = 0; wide && n < B * rows; n++)
        wide[n] = narrow[n];
    *positions = wide;
    return wide ? 0 : -1;
}

static int read_positions(mhap_state *state, PyObject *const *own, mhap_layer_run *run)
{
    mha_layer_call *const call = &run->call;
    const mha_options *const o = &run->o.c;
    const bool steps = call->cache && call->cache_use == MHA_CACHE_STEP;
    const ptrdiff_t L = o->q_starts ? run->query.shape[0] : call->L;
    const ptrdiff_t S = o->k_starts && run->key.object ? run->key.shape[0] : call->S;
    const bool like_query = steps || (o->q_starts && !run->key.object);
    const ptrdiff_t keys = like_query ? L : S;
    const bool keys_packed = like_query ? o->q_starts != NULL : o->k_starts != NULL;
    if (positions_of(state, own[QUERY_POSITIONS], "query_positions", o->q_starts ? 1 : call->B, L,
                     &run->o.kept, &call->q_positions))
        return -1;
    return positions_of(state, own[KEY_POSITIONS], "key_positions", keys_packed ? 1 : call->B, keys,
                        &run->o.kept, &call->k_positions);
}

/* -------------------------------------------------------------- running ----- */

static ptrdiff_t extra_columns(const mhap_layer *layer)
{
    const bool zero = mha_layer_get_config(layer->layer).flags & MHA_LAYER_ZERO_ATTN;
    return (layer->given >> EXTRA_KEY & 1) + (zero ? 1 : 0);
}

static PyObject *make_output(mhap_state *state, PyObject *const *values, mhap_layer_run *run)
{
    const mhap_array *const query = &run->query;
    ptrdiff_t shape[3];
    memcpy(shape, query->shape, sizeof shape);
    shape[query->axes - 1] = mha_layer_get_config(run->layer->layer).output_width;
    const bool partial = run->o.c.q_lengths || run->o.c.q_starts;
    PyObject *const output =
        mhap_output(state, values[MHAP_OUT], query, partial, query->axes, shape, &run->output);
    if (!output)
        return NULL;
    run->call.output = mhap_rows_out(&run->output, run->batch_first);
    run->call.output_type = (mha_dtype)run->output.type;
    return output;
}

static int make_tape(mhap_state *state, mhap_layer_run *run)
{
    mha_layer_call *const call = &run->call;
    if (call->cache)
        return mhap_fail(state, MHA_ERR_FLAG, "a tape does not go with a cache");
    const size_t size = mha_layer_tape_size(run->layer->layer, call);
    char *const memory = mhap_keep(&run->o.kept, size + 64);
    if (!memory)
        return -1;
    call->tape = memory + (64 - (uintptr_t)memory % 64) % 64;
    call->tape_size = size;
    return 0;
}

static int compute(mhap_state *state, mhap_layer_run *run)
{
    mhap_layer *const layer = run->layer;
    mha_status status;
    const size_t size = mha_layer_work_size(layer->layer, &run->call, mha_pool_threads(run->pool));
    void *const work = mhap_scratch_take(&layer->scratch, size);
    layer->runs++;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_layer_run(layer->layer, &run->call, work, work ? size : 0, run->pool);
    Py_END_ALLOW_THREADS;
    layer->runs--;
    mhap_scratch_give(&layer->scratch, work);
    return mhap_check(state, status, run->o.message);
}

/* Reads everything that the call needs into `run`. Returns the output, or None if there is none. */
static PyObject *prepare(mhap_state *state, PyObject *const *own, PyObject *const *values,
                         bool with_tape, mhap_layer_run *run)
{
    const mha_layer_config c = mha_layer_get_config(run->layer->layer);
    mha_layer_call *const call = &run->call;
    if (mhap_starts_read(state, values, &run->o))
        return NULL;
    if (!own[KEY] && !call->cache && !run->o.c.k_starts) {
        run->o.c.k_starts = run->o.c.q_starts;
        run->o.S = run->o.L;
    }
    if (take_inputs(state, own, run) || read_extents(state, own, values, run) ||
        read_positions(state, own, run))
        return NULL;
    const mha_dtype type = call->input_type;
    run->shape =
        (mha_shape){call->B, c.H, c.G, call->L, call->S, c.D, c.Dv, type, type, type, type};
    PyObject *const threads = values[MHAP_THREADS] ? values[MHAP_THREADS] : run->layer->threads;
    if (mhap_options_read(state, values, &run->shape, &run->o) ||
        mhap_pool_for(state, threads, &run->pool))
        return NULL;
    call->options = &run->o.c;
    if (call->cache_use == MHA_CACHE_STORE)
        return Py_NewRef(Py_None);
    if (mhap_extras_make(state, values, &run->shape, call->S + extra_columns(run->layer), run->form,
                         &run->query, &run->o, &run->extras))
        return NULL;
    PyObject *const output = make_output(state, values, run);
    if (output && with_tape && make_tape(state, run)) {
        Py_DECREF(output);
        return NULL;
    }
    return output;
}

static PyObject *run_prepared(mhap_state *state, PyObject *output, mhap_layer_run *run)
{
    if (!output)
        return NULL;
    if (compute(state, run)) {
        Py_DECREF(output);
        return NULL;
    }
    if (run->call.cache_use == MHA_CACHE_STORE)
        return output;
    return mhap_extras_result(state, &run->shape, output, &run->o, &run->extras);
}

PyObject *mhap_layer_run_call(mhap_layer *layer, PyObject *args, PyObject *keywords, bool with_tape,
                              mhap_layer_run *run)
{
    mhap_state *const state = layer->state;
    PyObject *own[OWN], *values[MHAP_OPTIONS];
    mhap_options_begin(&run->o);
    run->layer = (mhap_layer *)Py_NewRef((PyObject *)layer);
    run->call.size = sizeof run->call;
    if (mhap_arguments(state, &signature, args, keywords, own, values) ||
        read_cache(state, own, run))
        return NULL;
    const int first = own[BATCH_FIRST] ? mhap_truth(own[BATCH_FIRST]) : layer->batch_first;
    if (first < 0)
        return NULL;
    run->batch_first = first;
    const bool writes = run->call.cache_use != MHA_CACHE_RECALL;
    if (run->cache && mhap_cache_enter(run->cache, writes))
        return NULL;
    PyObject *const result = run_prepared(state, prepare(state, own, values, with_tape, run), run);
    if (run->cache)
        mhap_cache_leave(run->cache, writes);
    return result;
}

void mhap_layer_run_end(mhap_layer_run *run)
{
    mhap_release(&run->query);
    mhap_release(&run->key);
    mhap_release(&run->value);
    mhap_release(&run->output);
    mhap_extras_end(&run->extras);
    mhap_options_end(&run->o);
    Py_CLEAR(run->layer);
    Py_CLEAR(run->cache);
}
