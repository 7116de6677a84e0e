/* SPDX-License-Identifier: MIT */
/*
 * Bytes become a story of the upper sections of the header: a merge; a linear and products with it,
 * forward and backward; a cache and what may happen to it; a layer that runs with or without a
 * cache, and back again if it kept a tape. Whatever the bytes say, every call returns a status,
 * touches nothing outside its buffers, and on error leaves outputs and caches as they were.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_layer.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_layer.c test.c        a test with pseudo-random bytes
 */
#include "support/cache_story.h"
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------- merge ---- */

static void tell_merge(fuzz *f)
{
    mha_shape s = {.B = fuzz_extent(f, 3, FUZZ_MAX_BATCH),
                   .H = fuzz_extent(f, 4, 8),
                   .L = fuzz_extent(f, 6, 40),
                   .Dv = fuzz_extent(f, 9, 80),
                   .o_type = fuzz_pick(f, 8) == 7 ? MHA_F64 : fuzz_type(f)};
    const size_t size = fuzz_type_size(s.o_type), lse_size = s.o_type == MHA_F64 ? 8 : 4;
    const fuzz_extents rows = {s.B, s.H, s.L, s.Dv}, sums = {s.B, s.H, s.L, 1};
    const mha_out o = fuzz_place_out(f, rows, size), lse = fuzz_place_out(f, sums, lse_size);
    const mha_view o2 = fuzz_place(f, rows, size, false);
    const mha_view lse2 = fuzz_place(f, sums, lse_size, false);
    fuzz_finish(f, mha_merge(&s, o, lse, fuzz_rare(f) ? mha_view_bhld(o.data, 1, 1, 1) : o2, lse2));
}

/* ---------------------------------------------------------------------- linear ---- */

/* [out][in] or [in][out], or with strides that are neither. */
static mha_matrix matrix(fuzz *f, ptrdiff_t outputs, ptrdiff_t inputs)
{
    const mha_dtype type = fuzz_type(f);
    const fuzz_extents n = {1, outputs, inputs, 1};
    const mha_view view = fuzz_place(f, n, fuzz_type_size(type), false);
    return (mha_matrix){fuzz_rare(f) ? NULL : view.data, type, view.sh, view.sl};
}

static mha_vector vector(fuzz *f, ptrdiff_t count)
{
    const mha_dtype type = fuzz_type(f);
    if (!fuzz_below(count, MHA_MAX_HEAD_WIDTH))
        return (mha_vector){NULL, type};
    return (mha_vector){fuzz_buffer(f, (size_t)count * fuzz_type_size(type)), type};
}

static mha_vector maybe_vector(fuzz *f, ptrdiff_t count)
{
    return vector(f, fuzz_pick(f, 2) ? count : -1);
}

static void run_linear(fuzz *f, const mha_linear *linear, ptrdiff_t inputs, ptrdiff_t outputs)
{
    const ptrdiff_t rows = fuzz_extent(f, 8, 80);
    const mha_dtype x_type = fuzz_type(f), y_type = fuzz_type(f);
    const fuzz_extents from = {1, 1, rows, inputs}, to = {1, 1, rows, outputs};
    const mha_view x = fuzz_place(f, from, fuzz_type_size(x_type), false);
    const mha_out y = fuzz_place_out(f, to, fuzz_type_size(y_type));
    mha_pool *const pool = fuzz_pool(f);
    const fuzz_work w =
        fuzz_work_new(f, mha_linear_work_size(linear, rows, mha_pool_threads(pool)));
    const mha_status status = mha_linear_run(linear, rows, x.data, x_type, x.sl, y.data, y_type,
                                             y.sl, w.data, w.size, pool);
    fuzz_finish(f, status);
    fuzz_work_free(&w, status);
    mha_pool_free(pool);
}

/* Where the gradient of a matrix goes, if anywhere. */
static mha_matrix_out matrix_out(fuzz *f, ptrdiff_t outputs, ptrdiff_t inputs)
{
    const bool transposed = fuzz_pick(f, 2);
    if (fuzz_pick(f, 3) == 0 || !fuzz_below(outputs, 1024) || !fuzz_below(inputs, 1024) ||
        inputs * outputs > FUZZ_SLOT_SIZE / 8)
        return (mha_matrix_out){NULL, outputs, inputs};
    float *const data = fuzz_output(f, (size_t)(outputs * inputs) * sizeof *data);
    mha_matrix_out out = {data, transposed ? 1 : inputs, transposed ? outputs : 1};
    if (fuzz_rare(f))
        *(fuzz_pick(f, 2) ? &out.out_stride : &out.in_stride) = fuzz_pick(f, 2) ? PTRDIFF_MAX : 0;
    return out;
}

static float *vector_out(fuzz *f, ptrdiff_t count)
{
    if (fuzz_pick(f, 3) == 0 || !fuzz_below(count, 4096))
        return NULL;
    return fuzz_output(f, (size_t)count * sizeof(float));
}

static void turn_linear(fuzz *f, const mha_linear *linear, ptrdiff_t inputs, ptrdiff_t outputs)
{
    const ptrdiff_t rows = fuzz_extent(f, 8, 80);
    const mha_dtype x_type = fuzz_type(f), d_y_type = fuzz_type(f);
    const fuzz_extents from = {1, 1, rows, inputs}, to = {1, 1, rows, outputs};
    const mha_view x = fuzz_place(f, from, fuzz_type_size(x_type), false);
    const mha_view d_y = fuzz_place(f, to, fuzz_type_size(d_y_type), false);
    mha_linear_gradients g = {.size = fuzz_struct_size(f, sizeof g),
                              .d_y = fuzz_rare(f) ? NULL : d_y.data,
                              .d_y_stride = d_y.sl,
                              .d_y_type = d_y_type,
                              .d_weight = matrix_out(f, outputs, inputs),
                              .d_bias = vector_out(f, outputs)};
    if (fuzz_pick(f, 2)) {
        const mha_out d_x = fuzz_place_out(f, from, sizeof(float));
        g.d_x = d_x.data;
        g.d_x_stride = d_x.sl;
    }
    mha_pool *const pool = fuzz_pool(f);
    const fuzz_work w =
        fuzz_work_new(f, mha_linear_backward_work_size(linear, rows, mha_pool_threads(pool)));
    const mha_status status =
        mha_linear_backward(linear, rows, x.data, x_type, x.sl, &g, w.data, w.size, pool);
    fuzz_finish(f, status);
    fuzz_work_free(&w, status);
    mha_pool_free(pool);
}

static void update_linear(fuzz *f, mha_linear *linear, ptrdiff_t inputs, ptrdiff_t outputs)
{
    const mha_matrix weight = matrix(f, outputs, inputs);
    fuzz_finish(f, mha_linear_update(linear, weight, maybe_vector(f, outputs)));
}

static void tell_linear(fuzz *f)
{
    mha_linear_config c = {.size = fuzz_struct_size(f, sizeof c),
                           .inputs = fuzz_extent(f, 40, 200),
                           .outputs = fuzz_extent(f, 40, 64),
                           .stored = fuzz_stored_type(f),
                           .message = fuzz_message(f),
                           .message_size = FUZZ_MESSAGE};
    c.weight = matrix(f, c.outputs, c.inputs);
    c.bias = maybe_vector(f, c.outputs);
    mha_linear *linear = NULL;
    fuzz_finish(f, mha_linear_create(&linear, &c));
    for (int n = 0; linear && n < 6; n++)
        if (n < 3)
            run_linear(f, linear, c.inputs, c.outputs);
        else if (n < 5)
            turn_linear(f, linear, c.inputs, c.outputs);
        else
            update_linear(f, linear, c.inputs, c.outputs);
    mha_linear_free(linear);
}

/* ----------------------------------------------------------------------- cache ---- */

static void tell_cache(fuzz *f)
{
    const mha_cache_config asked = fuzz_cache_config(f);
    mha_cache *cache = NULL;
    fuzz_finish(f, mha_cache_create(&cache, &asked));
    const mha_cache_config c = mha_cache_get_config(cache);
    for (int n = 0; cache && n < 30 && f->at < f->end; n++) {
        const uint64_t digest = fuzz_cache_digest(cache);
        const mha_status status = fuzz_cache_do(f, cache, &c);
        fuzz_finish(f, status);
        fuzz_cache_check(cache, digest, status);
    }
    mha_cache_free(cache);
}

/* ----------------------------------------------------------------------- layer ---- */

static mha_layer_config layer_config(fuzz *f)
{
    mha_layer_config c = {.size = fuzz_struct_size(f, sizeof c),
                          .flags = (uint32_t)fuzz_pick(f, fuzz_rare(f) ? 256 : 2),
                          .norm_eps = fuzz_rare(f) ? fuzz_real(f) : 0,
                          .E = fuzz_extent(f, 16, 30),
                          .G = fuzz_extent(f, 2, 3),
                          .D = fuzz_extent(f, 8, 16),
                          .Dv = fuzz_pick(f, 3) ? 0 : fuzz_extent(f, 8, 16),
                          .key_width = fuzz_pick(f, 4) ? 0 : fuzz_extent(f, 16, 30),
                          .value_width = fuzz_pick(f, 4) ? 0 : fuzz_extent(f, 16, 30),
                          .output_width = fuzz_pick(f, 4) ? 0 : fuzz_extent(f, 16, 30),
                          .stored = fuzz_stored_type(f),
                          .norm = (mha_norm)fuzz_pick(f, fuzz_rare(f) ? 5 : 3),
                          .message = fuzz_message(f),
                          .message_size = FUZZ_MESSAGE};
    c.H = c.G > 0 && c.G < 8 ? c.G * (1 + fuzz_pick(f, 3)) : fuzz_extent(f, 4, 8);
    c.rope = fuzz_rope(f, c.D);
    return c;
}

/* A config with its defaults filled in. */
static mha_layer_config completed(mha_layer_config c)
{
    c.G = c.G ? c.G : c.H;
    c.D = c.D ? c.D : c.H > 0 ? c.E / c.H : 0;
    c.Dv = c.Dv ? c.Dv : c.D;
    c.key_width = c.key_width ? c.key_width : c.E;
    c.value_width = c.value_width ? c.value_width : c.key_width;
    c.output_width = c.output_width ? c.output_width : c.E;
    return c;
}

/* Of a completed config. */
static mha_layer_weights layer_weights(fuzz *f, const mha_layer_config *c)
{
    /* Products that overflow belong to configs that are refused before weights are looked at. */
    const bool small = fuzz_below(c->G, 64) && fuzz_below(c->H, 64) && fuzz_below(c->D, 64) &&
                       fuzz_below(c->Dv, 64);
    const ptrdiff_t q = small ? c->H * c->D : 0, k = small ? c->G * c->D : 0;
    const ptrdiff_t v = small ? c->G * c->Dv : 0, heads = small ? c->H * c->Dv : 0;
    mha_layer_weights w = {.size = fuzz_struct_size(f, sizeof w),
                           .q = matrix(f, q, c->E),
                           .k = matrix(f, k, c->key_width),
                           .v = matrix(f, v, c->value_width),
                           .o = matrix(f, c->output_width, heads),
                           .q_bias = maybe_vector(f, q),
                           .k_bias = maybe_vector(f, k),
                           .v_bias = maybe_vector(f, v),
                           .o_bias = maybe_vector(f, c->output_width),
                           .q_norm = maybe_vector(f, c->D),
                           .k_norm = maybe_vector(f, c->D),
                           .q_norm_bias = maybe_vector(f, c->D),
                           .k_norm_bias = maybe_vector(f, c->D)};
    if (fuzz_pick(f, 3) == 2) {
        w.extra_key = vector(f, k);
        w.extra_value = vector(f, fuzz_rare(f) ? -1 : v);
    }
    return w;
}

/* A layer, and the cache it may have. */
typedef struct player {
    const mha_layer *layer;
    mha_layer_config c;
    ptrdiff_t extras; /* keys that every sequence has besides its own */
    bool extra;       /* one of them is learned */
    mha_cache *cache;
    mha_cache_config kept;
} player;

/* Extents and inputs that go together, most of the time; `columns` is what masks are made for. */
static void choose_rows(fuzz *f, const player *p, mha_layer_call *call, ptrdiff_t *columns)
{
    const bool own_keys = p->c.key_width != p->c.E || p->c.value_width != p->c.E;
    const bool keyed = p->cache ? call->cache_use == MHA_CACHE_STORE : own_keys || fuzz_pick(f, 2);
    const ptrdiff_t longest = p->cache ? fuzz_cache_longest(p->cache, &p->kept) : 0;
    const ptrdiff_t more =
        call->cache_use != MHA_CACHE_RECALL && fuzz_below(call->L, 64) ? call->L : 0;
    static const char marker;
    call->S = *columns = keyed ? fuzz_extent(f, 8, 50) : call->L;
    if (keyed != fuzz_rare(f))
        call->key.data = &marker;
    if (keyed && (p->c.key_width != p->c.value_width || fuzz_pick(f, 2)))
        call->value.data = &marker;
    if (p->cache && !keyed)
        call->S = *columns = fuzz_columns(f, longest + more);
    if (!keyed && fuzz_pick(f, 4) == 0 && *columns >= longest + more)
        call->S = 0;
    if (!call->key.data && !p->cache && call->S == 0) /* means L, also where keys were intended */
        *columns = call->L;
}

/* What goes without saying in self-attention, and what a cache knows better. */
static void mend_options(fuzz *f, const mha_layer_call *call, mha_options *o, ptrdiff_t columns,
                         ptrdiff_t q_rows, ptrdiff_t *k_rows)
{
    if (call->cache) {
        if (!fuzz_rare(f))
            fuzz_drop_key_starts(o, columns, k_rows);
        if (call->cache_use == MHA_CACHE_STEP && !fuzz_rare(f))
            o->k_lengths = NULL;
    } else if (!call->key.data) {
        o->k_starts = o->q_starts;
        o->k_documents = o->q_documents;
        o->k_documents_sb = o->q_documents_sb;
        *k_rows = q_rows;
    }
}

/* Positions for `count` rows, most of them small. */
static const int64_t *some_positions(fuzz *f, ptrdiff_t count)
{
    static const int64_t far[] = {INT64_MIN, INT64_MAX, -7, 1000000};
    if (fuzz_pick(f, 3) || count < 0 || count > 2048)
        return NULL;
    int64_t *const list = fuzz_buffer(f, (size_t)count * sizeof *list);
    for (ptrdiff_t n = 0; n < count; n++)
        list[n] = fuzz_rare(f) ? far[fuzz_pick(f, 4)] : fuzz_pick(f, 200);
    return list;
}

/* Buffers for the inputs that choose_rows() wants, for output and positions. */
static void place_rows(fuzz *f, const player *p, mha_layer_call *call, ptrdiff_t q_rows,
                       ptrdiff_t k_rows)
{
    const mha_options *const o = call->options;
    const ptrdiff_t q_batches = o->q_starts ? 1 : call->B, k_batches = o->k_starts ? 1 : call->B;
    const size_t size = fuzz_type_size(call->input_type);
    const fuzz_extents q = {q_batches, 1, q_rows, p->c.E};
    const fuzz_extents k = {k_batches, 1, k_rows, p->c.key_width};
    const fuzz_extents v = {k_batches, 1, k_rows, p->c.value_width};
    const fuzz_extents y = {q_batches, 1, q_rows, p->c.output_width};
    const bool small = fuzz_below(call->B, 8) && fuzz_below(q_rows, 256) && fuzz_below(k_rows, 256);
    const ptrdiff_t more_rows = q_rows > k_rows ? q_rows : k_rows;
    call->query = fuzz_place(f, q, size, false);
    if (call->key.data)
        call->key = fuzz_place(f, k, size, false);
    if (call->value.data)
        call->value = fuzz_place(f, v, size, false);
    call->output = fuzz_place_out(f, y, fuzz_type_size(call->output_type));
    call->q_positions = some_positions(f, small ? call->B * q_rows : -1);
    call->k_positions = some_positions(f, small ? call->B * more_rows : -1);
    if (fuzz_rare(f))
        call->query.data = NULL;
    if (fuzz_rare(f))
        call->output.data = NULL;
}

static mha_status run_layer(fuzz *f, const player *p, const mha_layer_call *call)
{
    mha_pool *const pool = fuzz_pool(f);
    const fuzz_work w =
        fuzz_work_new(f, mha_layer_work_size(p->layer, call, mha_pool_threads(pool)));
    const mha_status status = mha_layer_run(p->layer, call, w.data, w.size, pool);
    fuzz_work_free(&w, status);
    mha_pool_free(pool);
    return status;
}

/* A tape for the call, of the size it is said to need, aligned. */
static void place_tape(fuzz *f, const player *p, mha_layer_call *call)
{
    const size_t needed = mha_layer_tape_size(p->layer, call), size = (needed + 63) / 64 * 64;
    if (size + FUZZ_MARGIN > FUZZ_SLOT_SIZE || call->size != sizeof *call)
        return;
    call->tape = fuzz_output(f, size);
    call->tape_size = needed;
}

/* As the inputs, with gaps or not, if wanted. */
static mha_out rows_out(fuzz *f, const mha_view *like, ptrdiff_t batches, ptrdiff_t rows,
                        ptrdiff_t width)
{
    const fuzz_extents n = {batches, 1, rows, width};
    return like->data && fuzz_pick(f, 3) ? fuzz_place_out(f, n, sizeof(float)) : (mha_out){0};
}

/* As a bias or mask, if there is one. */
static mha_out bias_out(fuzz *f, const mha_view *like, const mha_layer_call *call, ptrdiff_t H,
                        ptrdiff_t S)
{
    const fuzz_extents n = {call->B, H, call->L, S};
    if (!like->data || fuzz_pick(f, 3) == 0 || call->B * H * call->L * S > FUZZ_SLOT_SIZE / 8)
        return (mha_out){0};
    return fuzz_place_out(f, n, sizeof(float));
}

/* Gradients of weights; rarely of some that are not there. */
static void want_weights(fuzz *f, const mha_layer_config *c, bool extra, mha_layer_gradients *g)
{
    const bool norm = c->norm != MHA_NORM_NONE || fuzz_rare(f);
    g->q = matrix_out(f, c->H * c->D, c->E);
    g->k = matrix_out(f, c->G * c->D, c->key_width);
    g->v = matrix_out(f, c->G * c->Dv, c->value_width);
    g->o = matrix_out(f, c->output_width, c->H * c->Dv);
    g->q_bias = vector_out(f, c->H * c->D);
    g->k_bias = vector_out(f, c->G * c->D);
    g->v_bias = vector_out(f, c->G * c->Dv);
    g->o_bias = vector_out(f, c->output_width);
    g->q_norm = vector_out(f, norm ? c->D : -1);
    g->k_norm = vector_out(f, norm ? c->D : -1);
    g->q_norm_bias = vector_out(f, norm ? c->D : -1);
    g->k_norm_bias = vector_out(f, norm ? c->D : -1);
    g->extra_key = vector_out(f, extra || fuzz_rare(f) ? c->G * c->D : -1);
    g->extra_value = vector_out(f, extra ? c->G * c->Dv : -1);
}

/* Back through a call that has succeeded. */
static mha_status turn_layer(fuzz *f, const player *p, const mha_layer_call *call, ptrdiff_t q_rows,
                             ptrdiff_t k_rows)
{
    const mha_options *const o = call->options;
    const ptrdiff_t q_batches = o->q_starts ? 1 : call->B, k_batches = o->k_starts ? 1 : call->B;
    const ptrdiff_t S = call->key.data ? call->S : call->L;
    const fuzz_extents y = {q_batches, 1, q_rows, p->c.output_width};
    const fuzz_extents lse = {q_batches, p->c.H, q_rows, 1};
    mha_layer_gradients g = {.size = fuzz_struct_size(f, sizeof g), .d_output_type = fuzz_type(f)};
    g.d_output = fuzz_place(f, y, fuzz_type_size(g.d_output_type), false);
    if (fuzz_pick(f, 3) == 0)
        g.d_lse = fuzz_place(f, lse, sizeof(float), false);
    g.d_query = rows_out(f, &call->query, q_batches, q_rows, p->c.E);
    g.d_key = rows_out(f, &call->key, k_batches, k_rows, p->c.key_width);
    g.d_value = rows_out(f, &call->value, k_batches, k_rows, p->c.value_width);
    want_weights(f, &p->c, p->extra, &g);
    g.d_bias = bias_out(f, &o->bias, call, p->c.H, S);
    g.d_add_mask = bias_out(f, &o->add_mask, call, p->c.H, S);
    g.d_alibi_slopes = vector_out(f, o->alibi_slopes ? p->c.H : -1);
    g.d_sinks = vector_out(f, o->sinks ? p->c.H : -1);
    if (o->gates)
        g.d_gates = vector_out(f, (o->gates_sb == 0 ? 1 : call->B) * p->c.H);
    mha_pool *const pool = fuzz_pool(f);
    const fuzz_work w =
        fuzz_work_new(f, mha_layer_backward_work_size(p->layer, call, mha_pool_threads(pool)));
    const mha_status status = mha_layer_backward(p->layer, call, &g, w.data, w.size, pool);
    fuzz_work_free(&w, status);
    mha_pool_free(pool);
    return status;
}

static mha_status do_call(fuzz *f, const player *p)
{
    mha_options o = {.size = sizeof o, .message = fuzz_message(f), .message_size = FUZZ_MESSAGE};
    mha_layer_call call = {.size = fuzz_struct_size(f, sizeof call),
                           .B = fuzz_extent(f, 2, FUZZ_MAX_BATCH),
                           .L = fuzz_extent(f, 5, 50),
                           .input_type = fuzz_type(f),
                           .output_type = fuzz_type(f),
                           .cache = p->cache,
                           .cache_use = (mha_cache_use)fuzz_pick(f, fuzz_rare(f) ? 5 : 3),
                           .options = &o};
    ptrdiff_t columns, q_rows, k_rows;
    choose_rows(f, p, &call, &columns);
    const mha_shape s = {call.B, p->c.H, p->c.G, call.L, columns, p->c.D, p->c.Dv, 0, 0, 0, 0};
    fuzz_options(f, &s, fuzz_below(columns, 1024) ? columns + p->extras : columns, &o, &q_rows,
                 &k_rows);
    mend_options(f, &call, &o, columns, q_rows, &k_rows);
    place_rows(f, p, &call, q_rows, k_rows);
    if (p->cache)
        call.sequences = fuzz_sequences(f, &p->kept, call.B);
    else if (fuzz_pick(f, 2))
        place_tape(f, p, &call);
    const mha_status status = run_layer(f, p, &call);
    if (status || !call.tape || fuzz_rare(f))
        return status;
    fuzz_succeeded(f);
    return turn_layer(f, p, &call, q_rows, k_rows);
}

/* A cache for the layer; rarely one for another layer. */
static void give_cache(fuzz *f, player *p)
{
    mha_cache_config asked = fuzz_cache_config(f);
    asked.size = sizeof asked;
    if (!fuzz_rare(f)) {
        asked.G = p->c.G;
        asked.D = p->c.D;
        asked.Dv = p->c.Dv;
    }
    fuzz_finish(f, mha_cache_create(&p->cache, &asked));
    p->kept = mha_cache_get_config(p->cache);
}

static mha_status update_layer(fuzz *f, mha_layer *layer, const mha_layer_config *c)
{
    const mha_layer_weights weights = layer_weights(f, c);
    return mha_layer_update(layer, &weights);
}

static void tell_layer(fuzz *f)
{
    const mha_layer_config asked = layer_config(f);
    const mha_layer_config full = completed(asked);
    const mha_layer_weights weights = layer_weights(f, &full);
    const bool zero = asked.flags & MHA_LAYER_ZERO_ATTN;
    mha_layer *layer = NULL;
    fuzz_finish(f, mha_layer_create(&layer, &asked, &weights));
    const bool extra = weights.extra_key.data != NULL;
    player p = {.layer = layer, .extras = extra + zero, .extra = extra};
    if (!layer)
        return;
    p.c = mha_layer_get_config(layer);
    if (fuzz_pick(f, 2))
        give_cache(f, &p);
    for (int n = 0; n < 12 && f->at < f->end; n++) {
        const uint64_t digest = fuzz_cache_digest(p.cache);
        const ptrdiff_t what = fuzz_pick(f, 8);
        const mha_status status = p.cache && what == 0 ? fuzz_cache_do(f, p.cache, &p.kept)
                                  : what == 1          ? update_layer(f, layer, &p.c)
                                                       : do_call(f, &p);
        fuzz_finish(f, status);
        fuzz_cache_check(p.cache, digest, status);
    }
    mha_cache_free(p.cache);
    mha_layer_free(layer);
}

/* ------------------------------------------------------------------- the story ---- */

/* Whether a call of the story was valid. */
static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    const int64_t before = fuzz_met(MHA_OK);
    fuzz f = fuzz_begin(bytes, size);
    switch (fuzz_pick(&f, 8)) {
    case 0:
        tell_merge(&f);
        break;
    case 1:
        tell_linear(&f);
        break;
    case 2:
    case 3:
        tell_cache(&f);
        break;
    default:
        tell_layer(&f);
        break;
    }
    return fuzz_met(MHA_OK) > before;
}

static void pseudo_random_stories(void)
{
    uint8_t bytes[1200];
    test_random random = {test_seed(2025)};
    const int64_t rounds = test_effort(10000);
    for (int64_t i = 0; i < rounds; i++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        fuzz_one(bytes, sizeof bytes);
    }
    int64_t calls = 0;
    int kinds = 0;
    for (int n = 0; n < FUZZ_STATUSES; n++) {
        calls += fuzz_met((mha_status)-n);
        kinds += fuzz_met((mha_status)-n) > 0;
    }
    CHECK(fuzz_met(MHA_OK) > calls / 3, "only %lld of %lld calls were valid",
          (long long)fuzz_met(MHA_OK), (long long)calls);
    CHECK(rounds < 1000 || kinds > 16, "only %d different statuses", kinds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_stories)
