/* SPDX-License-Identifier: MIT */
/*
 * Layers with a cache: however a text is cut into calls, and however the cache lies in memory,
 * every token gets the bits it gets in one long causal call. A memory for cross-attention, stored
 * once and recalled, gives the bits of the direct call. A call that fails leaves no trace.
 */
#include "layer_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 3, GAP = 0xa5 };

/* ------------------------------------------------------------------------ texts ---- */

/* Ragged texts, and what one call without a cache makes of them. */
typedef struct text {
    layer_case *c; /* layer, inputs [B][L] and the outputs of the one call */
    mha_options options;
    int64_t lengths[BATCHES];
    snapshot whole;
} text;

static ptrdiff_t below(test_random *random, ptrdiff_t n)
{
    return (ptrdiff_t)test_random_below(random, n);
}

/* A layer at random, causal, perhaps with a window; window -1: none. */
static layer_spec text_spec(uint64_t seed, ptrdiff_t longest)
{
    layer_spec spec = layer_spec_random(seed);
    spec.parts &= ~(unsigned)(LAYER_CROSS | LAYER_VALUE | LAYER_POSITIONS);
    spec.options &= CASE_ALIBI | CASE_SINKS | CASE_SOFTCAP | CASE_SCALE | CASE_STRIDES;
    spec.options |= CASE_LSE | CASE_PLAIN_WEIGHTS;
    spec.config.key_width = spec.config.value_width = 0;
    spec.config.E = spec.config.E > 30 ? 30 : spec.config.E;
    spec.config.D = spec.config.D ? spec.config.D : 4;
    if (spec.config.rope.width > spec.config.D)
        spec.config.rope.width = 0;
    if (spec.config.D % 2 != 0 && spec.config.rope.width == 0)
        spec.config.rope = (mha_rope){0};
    spec.B = BATCHES;
    spec.L = longest;
    return spec;
}

static text *text_new(uint64_t seed, ptrdiff_t longest, ptrdiff_t window)
{
    const layer_spec spec = text_spec(seed, longest);
    test_random random = {seed};
    text *const t = calloc(1, sizeof *t);
    t->c = layer_case_new(&spec);
    mha_options *const o = &t->c->memory->call.options;
    for (int b = 0; b < BATCHES; b++)
        t->lengths[b] = b == 1 ? longest : 1 + below(&random, longest);
    o->flags |= MHA_CAUSAL;
    o->position = MHA_POSITION_TOP_LEFT;
    if (window >= 0) {
        o->flags |= MHA_WINDOW;
        o->window_left = window;
        o->window_right = -1;
    }
    t->options = *o;
    o->q_lengths = o->k_lengths = t->lengths;
    layer_case_run(t->c, NULL);
    layer_case_check(t->c, 8);
    t->whole = snapshot_take(t->c->memory);
    return t;
}

static void text_free(text *t)
{
    snapshot_free(&t->whole);
    layer_case_free(t->c);
    free(t);
}

/* ------------------------------------------------------------------------ calls ---- */

/* One call with tokens [at[b], at[b] + count[b]) of some texts, in memory of its own; what comes
 * out is put where the long call had put it. */
typedef struct step {
    const text *t;
    ptrdiff_t B, L;
    int64_t sequences[BATCHES], counts[BATCHES], at[BATCHES];
    unsigned char *x, *y;
    float *lse, *weights;
    mha_options options;
    mha_layer_call call;
} step;

static ptrdiff_t heads_of(const text *t)
{
    return t->c->p.config.H;
}

static void *filled(size_t bytes)
{
    void *const memory = malloc(bytes + 1);
    if (!memory)
        abort();
    return memset(memory, 0xff, bytes);
}

static void step_begin(step *s, const text *t, mha_cache *cache)
{
    const test_case *const m = t->c->memory;
    const tensor *const x = &m->tensors[T_Q], *const y = &m->tensors[T_O];
    const ptrdiff_t columns = m->tensors[T_WEIGHTS].n[3], H = heads_of(t);
    const ptrdiff_t E = x->n[3], width = y->n[3];
    s->x = filled((size_t)(s->B * s->L * E) * x->element);
    s->y = filled((size_t)(s->B * s->L * width) * y->element);
    s->lse = filled((size_t)(s->B * H * s->L) * sizeof(float));
    s->weights = filled((size_t)(s->B * H * s->L * columns) * sizeof(float));
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t i = 0; i < s->counts[b]; i++)
            memcpy(s->x + (size_t)((b * s->L + i) * E) * x->element,
                   tensor_at(x, s->sequences[b], 0, s->at[b] + i, 0), (size_t)E * x->element);
    s->options = t->options;
    s->options.position = MHA_POSITION_UNSET;
    s->options.q_lengths = s->counts;
    s->options.lse = (mha_out){s->lse, H * s->L, s->L, 1};
    s->options.weights = mha_out_bhld(s->weights, H, s->L, columns);
    s->call = (mha_layer_call){
        .size = sizeof s->call,
        .B = s->B,
        .L = s->L,
        .S = t->c->spec.L,
        .query = mha_view_ble(s->x, s->L, E),
        .output = mha_out_ble(s->y, s->L, width),
        .input_type = t->c->spec.input_type,
        .output_type = t->c->spec.output_type,
        .cache = cache,
        .sequences = s->sequences,
        .options = &s->options,
    };
}

static void step_keep(const step *s)
{
    const test_case *const m = s->t->c->memory;
    const tensor *const y = &m->tensors[T_O], *const w = &m->tensors[T_WEIGHTS];
    const size_t y_bytes = (size_t)y->n[3] * y->element, w_bytes = (size_t)w->n[3] * w->element;
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t i = 0; i < s->counts[b]; i++) {
            const ptrdiff_t q = s->sequences[b], token = (ptrdiff_t)s->at[b] + i;
            memcpy(tensor_at(y, q, 0, token, 0), s->y + (size_t)(b * s->L + i) * y_bytes, y_bytes);
            for (ptrdiff_t h = 0; h < heads_of(s->t); h++) {
                const ptrdiff_t row = (b * heads_of(s->t) + h) * s->L + i;
                memcpy(tensor_at(&m->tensors[T_LSE], q, h, token, 0), s->lse + row, sizeof(float));
                memcpy(tensor_at(w, q, h, token, 0), s->weights + row * w->n[3], w_bytes);
            }
        }
}

static void step_end(step *s)
{
    free(s->x);
    free(s->y);
    free(s->lse);
    free(s->weights);
}

/* ------------------------------------------------------------------- generation ---- */

typedef enum cut { ALL_AT_ONCE, CHUNKS, TOKENS, CUTS } cut;

/* Which sequences take part in the next call, in which order, with how many tokens. */
static bool choose(step *s, const text *t, const int64_t *done, cut how, test_random *random)
{
    const ptrdiff_t first = below(random, BATCHES);
    s->B = s->L = 0;
    for (ptrdiff_t n = 0; n < BATCHES; n++) {
        const ptrdiff_t sequence = (first + n) % BATCHES;
        const ptrdiff_t left = (ptrdiff_t)(t->lengths[sequence] - done[sequence]);
        if (left == 0 || (how == CHUNKS && below(random, 3) == 0))
            continue;
        const ptrdiff_t count = how == ALL_AT_ONCE ? left
                                : how == TOKENS    ? 1
                                                   : below(random, left + 1);
        s->sequences[s->B] = sequence;
        s->at[s->B] = done[sequence];
        s->counts[s->B++] = count;
        s->L = count > s->L ? count : s->L;
    }
    for (int b = 0; b < BATCHES; b++)
        if (done[b] < t->lengths[b])
            return true;
    return false;
}

/* Write the texts call by call; the outputs of the case then hold what came of it. */
static void generate(const text *t, mha_cache *cache, cut how, mha_pool *pool, uint64_t seed)
{
    test_random random = {seed};
    int64_t done[BATCHES] = {0};
    step s = {.t = t};
    case_clear(t->c->memory);
    while (choose(&s, t, done, how, &random)) {
        if (s.B == 0)
            continue;
        step_begin(&s, t, cache);
        const mha_status status = mha_layer_run(t->c->layer, &s.call, NULL, 0, pool);
        const bool ok = CHECK(status == MHA_OK, "%s: step at %lld: %s", layer_case_name(t->c),
                              (long long)s.at[0], mha_status_string(status));
        if (ok)
            step_keep(&s);
        step_end(&s);
        for (ptrdiff_t b = 0; b < s.B; b++)
            done[s.sequences[b]] += s.counts[b];
        if (!ok)
            return;
    }
    for (int b = 0; b < BATCHES; b++)
        CHECK(mha_cache_length(cache, b) == t->lengths[b], "length of %d is %td", b,
              mha_cache_length(cache, b));
}

static mha_cache *cache_for(const text *t, mha_cache_kind kind, ptrdiff_t capacity, mha_dtype type)
{
    const mha_layer_config f = layer_defaults(&t->c->p.config);
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = BATCHES,
                                     .capacity = capacity,
                                     .page_tokens = kind == MHA_CACHE_PAGED ? 32 : 0,
                                     .G = f.G,
                                     .D = f.D,
                                     .Dv = f.Dv,
                                     .k_type = type,
                                     .v_type = type};
    mha_cache *cache = NULL;
    const mha_status status = mha_cache_create(&cache, &config);
    CHECK(status == MHA_OK, "cache: %s", mha_status_string(status));
    return cache;
}

static void check_generation(const text *t, mha_cache_kind kind, ptrdiff_t capacity, mha_pool *pool)
{
    for (int how = 0; how < CUTS; how++) {
        mha_cache *const cache = cache_for(t, kind, capacity, MHA_F32);
        generate(t, cache, (cut)how, how == CHUNKS ? pool : NULL, t->c->spec.seed + 3);
        CHECK(snapshot_same(&t->whole, t->c->memory), "%s: other bits, cache %d, cut %d",
              layer_case_name(t->c), (int)kind, how);
        mha_cache_free(cache);
    }
}

static void contiguous_and_paged(void)
{
    const uint64_t first = test_seed(100);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(40); n++) {
        const ptrdiff_t longest = n % 10 == 0 ? 150 : 1 + (ptrdiff_t)(n * 7 % 70);
        text *const t = text_new(first + (uint64_t)n, longest, n % 3 == 0 ? n % 20 : -1);
        check_generation(t, MHA_CACHE_CONTIGUOUS, longest, pool);
        check_generation(t, MHA_CACHE_PAGED, longest + 5, pool);
        text_free(t);
    }
    mha_pool_free(pool);
}

/* Longer than one partial softmax of the operator. */
static void long_texts(void)
{
    text *const t = text_new(test_seed(77), 1100, -1);
    for (int kind = 0; kind < 2; kind++) {
        mha_cache *const cache =
            cache_for(t, kind ? MHA_CACHE_PAGED : MHA_CACHE_CONTIGUOUS, 1100, MHA_F32);
        generate(t, cache, CHUNKS, NULL, 5);
        CHECK(snapshot_same(&t->whole, t->c->memory), "%s: other bits", layer_case_name(t->c));
        mha_cache_free(cache);
    }
    text_free(t);
}

/* Rings of exactly the window and larger ones; texts that go round many times, in one call too. */
static void rings(void)
{
    static const ptrdiff_t windows[] = {31, 63, 0, 1, 20, 30, 32, 40};
    const uint64_t first = test_seed(300);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(24); n++) {
        const ptrdiff_t window = windows[n % 8];
        text *const t = text_new(first + (uint64_t)n, 1 + (ptrdiff_t)(n * 53 % 230), window);
        check_generation(t, MHA_CACHE_RING, window + 1, pool);
        check_generation(t, MHA_CACHE_RING, window + 50, pool);
        text_free(t);
    }
    mha_pool_free(pool);
}

/* Narrow caches round each token once: the cuts agree with each other to the bit, and with f32 as
 * far as the type goes. */
static void narrow_caches(void)
{
    static const struct {
        mha_dtype type;
        double tolerance;
    } types[] = {{MHA_F16, 0.02}, {MHA_BF16, 0.1}, {MHA_I8, 0.2}};
    for (int n = 0; n < 24; n++) {
        const mha_dtype type = types[n % 3].type;
        layer_case *c = NULL;
        text *const t = text_new(500 + (uint64_t)n, 40, n % 2 ? 31 : -1);
        c = t->c;
        const mha_cache_kind kind = n % 2 ? MHA_CACHE_RING : n % 4 ? MHA_CACHE_PAGED : 0;
        mha_cache *cache = cache_for(t, kind, 40, type);
        generate(t, cache, TOKENS, NULL, 1);
        mha_cache_free(cache);
        snapshot tokens = snapshot_take(c->memory);
        cache = cache_for(t, kind, 40, type);
        generate(t, cache, CHUNKS, NULL, 2);
        mha_cache_free(cache);
        CHECK(snapshot_same(&tokens, c->memory), "%s: other bits, type %d", layer_case_name(c),
              (int)type);
        const float *const near = (const float *)(void *)t->whole.bytes[T_WEIGHTS];
        const float *const got = (const float *)(void *)tokens.bytes[T_WEIGHTS];
        const size_t count = c->memory->tensors[T_WEIGHTS].bytes / sizeof(float);
        for (size_t k = 0; k < count; k++)
            CHECK(memcmp(&got[k], &near[k], 4) == 0 ||
                      fabs((double)got[k] - (double)near[k]) <= types[n % 3].tolerance,
                  "%s: type %d, weight %zu is %g, in f32 %g", layer_case_name(c), (int)type, k,
                  (double)got[k], (double)near[k]);
        snapshot_free(&tokens);
        text_free(t);
    }
}

/* The workspace of the first call serves all later ones of the same size. */
static void workspace_of_the_first_call(void)
{
    text *const t = text_new(611, 90, -1);
    mha_cache *const cache = cache_for(t, MHA_CACHE_PAGED, 90, MHA_F32);
    step s = {.t = t, .B = 1, .L = 1, .sequences = {1}, .counts = {1}};
    size_t size = 0;
    for (s.at[0] = 0; s.at[0] < t->lengths[1]; s.at[0]++) {
        step_begin(&s, t, cache);
        if (s.at[0] == 0)
            size = mha_layer_work_size(t->c->layer, &s.call, 1);
        guard_buffer work = guard_new(size, s.at[0] % 2 ? GUARD_AFTER : GUARD_BEFORE);
        const mha_status status = mha_layer_run(t->c->layer, &s.call, work.data, size, NULL);
        CHECK(status == MHA_OK && size > 0, "token %lld: %s", (long long)s.at[0],
              mha_status_string(status));
        CHECK(guard_intact(&work), "written outside");
        guard_free(&work);
        step_end(&s);
    }
    mha_cache_free(cache);
    text_free(t);
}

/* ------------------------------------------------------------- cross-attention ---- */

static layer_spec memory_spec(uint64_t seed)
{
    layer_spec spec = layer_spec_random(seed);
    spec.parts |= LAYER_CROSS;
    spec.parts &= ~(unsigned)(LAYER_POSITIONS | LAYER_SEQUENCE_FIRST);
    if (!(spec.parts & LAYER_VALUE))
        spec.config.value_width = spec.config.key_width;
    spec.options &= ~(unsigned)(CASE_PACKED | CASE_STRIDES | CASE_DOCUMENTS | CASE_OFFSET);
    spec.options &= ~(unsigned)(CASE_CAUSAL | CASE_WINDOW | CASE_ALIBI);
    spec.options |= CASE_LSE;
    return spec;
}

/* Store the key and value inputs, `chunk` tokens a call. */
static void store(const layer_case *c, mha_cache *cache, ptrdiff_t chunk)
{
    const mha_layer_config f = layer_defaults(&c->p.config);
    const ptrdiff_t S = c->p.call.S, size = (ptrdiff_t)mha_dtype_size(c->spec.input_type);
    const problem *const op = &c->memory->call;
    for (ptrdiff_t at = 0; at < S; at += chunk) {
        const ptrdiff_t rows = S - at < chunk ? S - at : chunk;
        int64_t lengths[BATCHES] = {0};
        for (ptrdiff_t b = 0; b < c->p.call.B; b++) {
            const ptrdiff_t left = oracle_keys(op, b) - at;
            lengths[b] = left < 0 ? 0 : left < rows ? left : rows;
        }
        const mha_options options = {.size = sizeof options, .k_lengths = lengths};
        mha_layer_call call = {.size = sizeof call,
                               .B = c->p.call.B,
                               .S = rows,
                               .key = c->p.call.key,
                               .value = c->p.call.value,
                               .input_type = c->spec.input_type,
                               .cache = cache,
                               .cache_use = MHA_CACHE_STORE,
                               .options = &options};
        call.key.data = (const char *)call.key.data + at * f.key_width * size;
        if (call.value.data)
            call.value.data = (const char *)call.value.data + at * f.value_width * size;
        const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
        CHECK(status == MHA_OK, "%s: store: %s", layer_case_name(c), mha_status_string(status));
    }
}

static void memory_is_recalled(void)
{
    const uint64_t first = test_seed(900);
    for (int64_t n = 0; n < test_effort(80); n++) {
        const layer_spec spec = memory_spec(first + (uint64_t)n);
        layer_case *const c = layer_case_new(&spec);
        /* Rotation of queries counts from where the caller says, the same in both calls. */
        c->memory->call.options.position = MHA_POSITION_TOP_LEFT;
        layer_case_run(c, NULL);
        snapshot direct = snapshot_take(c->memory);
        const text view = {.c = c};
        mha_cache *const cache =
            cache_for(&view, n % 2 ? MHA_CACHE_PAGED : MHA_CACHE_CONTIGUOUS, spec.S, MHA_F32);
        store(c, cache, n % 3 ? spec.S : 1 + (ptrdiff_t)(n % 5));
        mha_options options = *c->p.call.options;
        options.k_lengths = NULL;
        mha_layer_call call = c->p.call;
        call.key = call.value = (mha_view){0};
        call.cache = cache;
        call.cache_use = MHA_CACHE_RECALL;
        call.options = &options;
        for (int again = 0; again < 2; again++) {
            case_clear(c->memory);
            const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
            CHECK(status == MHA_OK, "%s: recall: %s (%s)", layer_case_name(c),
                  mha_status_string(status), c->memory->message);
            CHECK(snapshot_same(&direct, c->memory), "%s: other bits from the memory",
                  layer_case_name(c));
        }
        snapshot_free(&direct);
        mha_cache_free(cache);
        layer_case_free(c);
    }
}

/* ----------------------------------------------------------------------- errors ---- */

typedef struct cache_state {
    ptrdiff_t lengths[BATCHES], pages;
    float keys[BATCHES][64];
} cache_state;

/* Lengths, pages, and the last keys of every sequence. */
static cache_state state_of(const mha_cache *cache)
{
    cache_state state = {.pages = mha_cache_free_pages(cache)};
    const mha_cache_config config = mha_cache_get_config(cache);
    for (int b = 0; b < BATCHES; b++) {
        state.lengths[b] = mha_cache_length(cache, b);
        if (state.lengths[b] > 0 && config.G * config.D <= 64)
            CHECK(mha_cache_read(cache, b, state.lengths[b] - 1, 1,
                                 (mha_out){state.keys[b], 0, config.D, config.D},
                                 (mha_out){0}) == MHA_OK,
                  "read");
    }
    return state;
}

/* The step must fail so, and nothing may be written anywhere. */
static void expect_refusal(step *s, const mha_layer_call *call, mha_status wanted, const char *what)
{
    const cache_state before = state_of(call->cache);
    const size_t bytes = (size_t)(s->B * s->L) *
                         (size_t)layer_defaults(&s->t->c->p.config).output_width *
                         mha_dtype_size(s->t->c->spec.output_type);
    memset(s->y, GAP, bytes);
    const mha_status status = mha_layer_run(s->t->c->layer, call, NULL, 0, NULL);
    CHECK(status == wanted, "%s: %s", what, mha_status_string(status));
    for (size_t n = 0; n < bytes; n++)
        CHECK(s->y[n] == GAP, "%s: output written", what);
    const cache_state after = state_of(call->cache);
    CHECK(memcmp(&before, &after, sizeof after) == 0, "%s: the cache changed", what);
}

/* One sequence of two would outgrow its room: neither grows. */
static void no_room_changes_nothing(void)
{
    for (int kind = 0; kind < 3; kind += 2) {
        text *const t = text_new(1200, 60, -1);
        mha_cache *const cache = cache_for(t, (mha_cache_kind)kind, 40, MHA_F32);
        t->lengths[0] = 10;
        t->lengths[1] = 38;
        t->lengths[2] = 1;
        generate(t, cache, CHUNKS, NULL, 4);
        step s = {.t = t, .B = 2, .L = 3, .sequences = {0, 1}, .counts = {3, 3}, .at = {10, 38}};
        step_begin(&s, t, cache);
        expect_refusal(&s, &s.call, MHA_ERR_FULL, "past the capacity");
        s.counts[1] = 2;
        CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "up to the capacity");
        CHECK(mha_cache_length(cache, 0) == 13 && mha_cache_length(cache, 1) == 40, "lengths");
        step_end(&s);
        mha_cache_free(cache);
        text_free(t);
    }
}

static void no_pages_change_nothing(void)
{
    text *const t = text_new(1201, 60, -1);
    const mha_layer_config f = layer_defaults(&t->c->p.config);
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = MHA_CACHE_PAGED,
                                     .sequences = BATCHES,
                                     .capacity = 96,
                                     .page_tokens = 32,
                                     .pages = 3,
                                     .G = f.G,
                                     .D = f.D,
                                     .Dv = f.Dv};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "cache");
    t->lengths[0] = t->lengths[1] = 31;
    t->lengths[2] = 0;
    generate(t, cache, ALL_AT_ONCE, NULL, 4);
    step s = {.t = t, .B = 2, .L = 2, .sequences = {0, 1}, .counts = {2, 2}, .at = {31, 31}};
    step_begin(&s, t, cache);
    expect_refusal(&s, &s.call, MHA_ERR_FULL, "two pages where there is one");
    s.counts[1] = 1;
    CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "one page");
    CHECK(mha_cache_free_pages(cache) == 0, "pages left");
    step_end(&s);
    mha_cache_free(cache);
    text_free(t);
}

/* Calls with a cache that cannot be. */
static void wrong_calls(void)
{
    text *const t = text_new(1202, 8, -1);
    const mha_layer_config f = layer_defaults(&t->c->p.config);
    mha_cache *const cache = cache_for(t, MHA_CACHE_CONTIGUOUS, 20, MHA_F32);
    step s = {.t = t, .B = 2, .L = 2, .sequences = {0, 1}, .counts = {2, 2}};
    step_begin(&s, t, cache);
    const int64_t wrong_sequences[][2] = {{0, 0}, {0, 3}, {-1, 0}, {1, INT64_MAX}};
    for (int n = 0; n < 4; n++) {
        mha_layer_call call = s.call;
        call.sequences = wrong_sequences[n];
        expect_refusal(&s, &call, MHA_ERR_SEQUENCE, "sequences");
    }
    mha_layer_call call = s.call;
    call.cache_use = (mha_cache_use)3;
    expect_refusal(&s, &call, MHA_ERR_FLAG, "unknown use");
    call = s.call;
    call.S = 1;
    expect_refusal(&s, &call, MHA_ERR_SHAPE, "fewer columns than tokens");
    mha_options options = s.options;
    const int64_t starts[] = {0, 2, 4};
    options.k_starts = starts;
    call = s.call;
    call.options = &options;
    expect_refusal(&s, &call, MHA_ERR_FLAG, "k_starts");
    const int64_t too_long[] = {2, 3};
    options = s.options;
    options.q_lengths = too_long;
    expect_refusal(&s, &call, MHA_ERR_LENGTH, "q_lengths");

    const ptrdiff_t wrong[][3] = {{f.G + 1, f.D, f.Dv}, {f.G, f.D + 1, f.Dv}, {f.G, f.D, f.Dv + 1}};
    for (int n = 0; n < 3; n++) {
        const mha_cache_config config = {.size = sizeof config,
                                         .sequences = BATCHES,
                                         .capacity = 20,
                                         .G = wrong[n][0],
                                         .D = wrong[n][1],
                                         .Dv = wrong[n][2]};
        mha_cache *other = NULL;
        CHECK(mha_cache_create(&other, &config) == MHA_OK, "cache");
        call = s.call;
        call.cache = other;
        expect_refusal(&s, &call, MHA_ERR_SHAPE, "another layer's cache");
        mha_cache_free(other);
    }
    CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "the call itself");
    step_end(&s);
    mha_cache_free(cache);
    text_free(t);
}

/* A ring that keeps fewer tokens than a window sees is refused at once, not when it is full. */
static void rings_smaller_than_the_window(void)
{
    text *const t = text_new(1203, 8, 32);
    mha_cache *const cache = cache_for(t, MHA_CACHE_RING, 32, MHA_F32);
    step s = {.t = t, .B = 2, .L = 2, .sequences = {0, 1}, .counts = {2, 2}};
    step_begin(&s, t, cache);
    expect_refusal(&s, &s.call, MHA_ERR_WINDOW, "a window of 33 in a ring of 32");
    s.options.window_left = 31;
    CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "a window of 32");
    step_end(&s);
    mha_cache_free(cache);
    text_free(t);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(contiguous_and_paged);
    RUN(long_texts);
    RUN(rings);
    RUN(narrow_caches);
    RUN(workspace_of_the_first_call);
    RUN(memory_is_recalled);
    RUN(no_room_changes_nothing);
    RUN(no_pages_change_nothing);
    RUN(wrong_calls);
    RUN(rings_smaller_than_the_window);
    return test_end();
}
