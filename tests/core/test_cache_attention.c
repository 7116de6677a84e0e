/* SPDX-License-Identifier: MIT */
/*
 * Attention over a cache is attention over flat arrays of what the cache holds (cache_model.h): to
 * the bit for f32, f16 and bf16, nearly for i8, whose scales are applied elsewhere. Caches grow,
 * shrink and fork between the calls; whatever memory holds no token is NaN, in the cache and in the
 * flat arrays.
 */
#include "core/cache.h"
#include "format/convert.h"
#include "support/cache_model.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_B = 4 };

static void *take(ptrdiff_t count, size_t size, int fill)
{
    const size_t bytes = (size_t)count * size;
    void *const memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memset(memory, fill, bytes);
}

/* ----------------------------------------------------------------- scene ----- */

typedef struct scene {
    test_random random;
    mha_cache *cache;
    cache_model *model;
    mha_pool *pools[3]; /* 1, 2 and 3 threads */
} scene;

static ptrdiff_t below(scene *s, ptrdiff_t n)
{
    return (ptrdiff_t)test_random_below(&s->random, n);
}

static void grow(scene *s)
{
    const mha_cache_config *const c = &s->model->config;
    const int64_t sequence = below(s, c->sequences);
    const ptrdiff_t length = s->model->sequences[sequence].length;
    const ptrdiff_t most = c->kind == MHA_CACHE_RING ? MODEL_TOKENS : c->capacity;
    const ptrdiff_t count = mhai_min(most - length, 1 + below(s, below(s, 3) ? 40 : c->capacity));
    model_rows k = model_rows_new(&s->random, MHA_F32, 1, count, c->G, c->D);
    model_rows v = model_rows_new(&s->random, MHA_F32, 1, count, c->G, c->Dv);
    if (mha_cache_append(s->cache, 1, &sequence, count, NULL, k.view, MHA_F32, v.view, MHA_F32) ==
        MHA_OK)
        model_append(s->model, (ptrdiff_t)sequence, count, &k, &v, 0);
    model_rows_free(&k);
    model_rows_free(&v);
}

static void shrink(scene *s)
{
    const ptrdiff_t sequence = below(s, s->model->config.sequences);
    const model_sequence *const x = &s->model->sequences[sequence];
    const ptrdiff_t length = below(s, 4) ? x->first + below(s, x->length - x->first + 1) : 0;
    CHECK(mha_cache_truncate(s->cache, sequence, length) == MHA_OK, "truncate");
    model_truncate(s->model, sequence, length);
}

static void branch(scene *s)
{
    const ptrdiff_t to = below(s, s->model->config.sequences);
    const ptrdiff_t from = below(s, s->model->config.sequences);
    CHECK(mha_cache_fork(s->cache, to, from) == MHA_OK, "fork");
    model_fork(s->model, to, from);
}

/* One slot, all heads of it, becomes NaN. */
static void poison_slot(const mha_cache *cache, int32_t page, ptrdiff_t slot, const float *nan)
{
    const mha_cache_config *const c = &cache->config;
    for (ptrdiff_t g = 0; g < c->G; g++) {
        const mhai_token at = mhai_cache_slot(cache, page, slot, g);
        mhai_copy_strided(c->k_type, at.k, MHAI_GROUP, nan, 1, c->D);
        mhai_copy_strided(c->v_type, at.v, 1, nan, 1, c->Dv);
        if (at.k_scale)
            *at.k_scale = NAN;
        if (at.v_scale)
            *at.v_scale = NAN;
    }
}

/* Every slot in which no sequence has a token. */
static void poison(const mha_cache *cache)
{
    const ptrdiff_t P = cache->page_tokens;
    float nan[MHA_MAX_HEAD_WIDTH];
    bool *const holds = take(cache->page_count * P, sizeof *holds, 0);
    memset(nan, 255, sizeof nan);
    for (ptrdiff_t s = 0; s < cache->config.sequences; s++)
        for (int64_t t = cache->firsts[s]; t < cache->lengths[s]; t++) {
            const int64_t entry = cache->config.kind == MHA_CACHE_PAGED ? t / P : 0;
            holds[(mhai_cache_table(cache, s)[entry] - 1) * P + t % P] = true;
        }
    for (ptrdiff_t n = 0; n < cache->page_count * P; n++)
        if (!holds[n])
            poison_slot(cache, (int32_t)(1 + n / P), n % P, nan);
    free(holds);
}

/* ---------------------------------------------------------------- a call ----- */

/* Arguments that both calls share, and the outputs of each. */
typedef struct query {
    mha_shape shape; /* with S */
    int64_t sequences[MOST_B], q_lengths[MOST_B], k_lengths[MOST_B], lengths[MOST_B];
    mha_options options;
    float *q, *bias, *slopes;
    unsigned char *mask;
    void *k, *v; /* flat */
} query;

typedef struct outputs {
    float *o, *lse, *weights;
    ptrdiff_t o_count, lse_count, weights_count;
} outputs;

static float *random_floats(scene *s, ptrdiff_t count)
{
    float *const x = take(count, sizeof *x, 0);
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] = test_random_float(&s->random) * 2;
    return x;
}

/* Choose sequences and lengths. With a ring that has gone round, no row may look further back than
 * its first token: *left is the widest window. False where there is nothing to ask. */
static bool choose_rows(scene *s, query *x, ptrdiff_t *left)
{
    const bool shorten = below(s, 3) == 0, fewer = below(s, 3) == 0;
    ptrdiff_t L = below(s, 6) ? 1 + below(s, 6) : 20 + below(s, 30), longest = 0;
    *left = -1;
    x->shape.B = 1 + below(s, MOST_B);
    for (ptrdiff_t b = 0; b < x->shape.B; b++) {
        x->sequences[b] = below(s, s->model->config.sequences);
        const model_sequence *const m = &s->model->sequences[x->sequences[b]];
        x->lengths[b] = x->k_lengths[b] = m->length;
        longest = mhai_max(longest, m->length);
        if (m->first > 0)
            L = mhai_min(L, m->length - m->first);
        else if (shorten)
            x->k_lengths[b] = below(s, m->length + 1);
    }
    for (ptrdiff_t b = 0; b < x->shape.B && L > 0; b++) {
        const model_sequence *const m = &s->model->sequences[x->sequences[b]];
        x->q_lengths[b] = fewer ? 1 + below(s, L) : L;
        const ptrdiff_t widest = m->length - (ptrdiff_t)x->q_lengths[b] - m->first;
        if (m->first > 0 && (*left < 0 || widest < *left))
            *left = widest;
    }
    x->shape.L = L;
    x->shape.S = longest + (below(s, 3) ? 0 : below(s, 6));
    if (fewer)
        x->options.q_lengths = x->q_lengths;
    if (shorten)
        x->options.k_lengths = x->k_lengths;
    return L > 0;
}

static void choose_options(scene *s, query *x, ptrdiff_t left)
{
    mha_options *const o = &x->options;
    const ptrdiff_t B = x->shape.B, H = x->shape.H, L = x->shape.L, S = x->shape.S;
    if (left >= 0 || below(s, 3) == 0) {
        o->flags |= MHA_WINDOW;
        o->window_left = left < 0 ? below(s, 60) - 1 : below(s, 2) ? left : below(s, left + 1);
        o->window_right = below(s, 4) - 1;
    }
    if (below(s, 2))
        o->flags |= MHA_CAUSAL;
    if (below(s, 4) == 0)
        o->softcap = 3;
    if (below(s, 4) == 0) {
        o->alibi_slopes = x->slopes = random_floats(s, H);
        for (ptrdiff_t h = 0; h < H; h++)
            x->slopes[h] /= 100; /* large scores have large roundings */
    }
    if (below(s, 4) == 0)
        o->bias = mha_view_bhld(x->bias = random_floats(s, B * H * L * S), H, L, S);
    if (below(s, 4) == 0) {
        x->mask = take(B * L * S, 1, 0);
        for (ptrdiff_t n = 0; n < B * L * S; n++)
            x->mask[n] = below(s, 4) != 0;
        o->attend_mask = mha_view_bhld(x->mask, 1, L, S);
        o->attend_mask.sh = 0;
    }
    if (below(s, 8) == 0 && left < 0) {
        o->position = MHA_POSITION_OFFSET;
        o->offset = below(s, 50) - 10;
    }
    o->weights_mode = below(s, 3) ? MHA_WEIGHTS_SOFTMAX : MHA_WEIGHTS_BIAS;
}

/* Tokens of the model as a tensor [B][S][G][width] of `type`; NaN where there is none. */
static void *flatten(const scene *s, const query *x, bool keys, mha_dtype type)
{
    const mha_cache_config *const c = &s->model->config;
    const ptrdiff_t row = c->G * (keys ? c->D : c->Dv);
    void *const flat = take(x->shape.B * x->shape.S * row, mha_dtype_size(type), 255);
    for (ptrdiff_t b = 0; b < x->shape.B; b++) {
        const model_sequence *const m = &s->model->sequences[x->sequences[b]];
        const float *const from = keys ? m->k : m->v;
        for (ptrdiff_t n = m->first * row; n < m->length * row; n++)
            element_store(type, flat, b * x->shape.S * row + n, (double)from[n]);
    }
    return flat;
}

static bool choose(scene *s, query *x)
{
    const mha_cache_config *const c = &s->model->config;
    ptrdiff_t left;
    memset(x, 0, sizeof *x);
    x->options.size = sizeof x->options;
    if (!choose_rows(s, x, &left))
        return false;
    x->shape.G = c->G;
    x->shape.H = c->G << below(s, 3);
    x->shape.D = c->D;
    x->shape.Dv = c->Dv;
    x->shape.k_type = c->k_type == MHA_I8 ? MHA_F32 : c->k_type;
    x->shape.v_type = c->v_type == MHA_I8 ? MHA_F32 : c->v_type;
    choose_options(s, x, left);
    x->q = random_floats(s, x->shape.B * x->shape.H * x->shape.L * c->D);
    x->k = flatten(s, x, true, x->shape.k_type);
    x->v = flatten(s, x, false, x->shape.v_type);
    return true;
}

static void query_free(query *x)
{
    free(x->q);
    free(x->k);
    free(x->v);
    free(x->bias);
    free(x->slopes);
    free(x->mask);
}

static outputs outputs_new(const query *x)
{
    const mha_shape *const n = &x->shape;
    outputs out = {.lse_count = n->B * n->H * n->L};
    out.o_count = out.lse_count * n->Dv;
    out.weights_count = out.lse_count * n->S;
    out.o = take(out.o_count, sizeof(float), 1);
    out.lse = take(out.lse_count, sizeof(float), 1);
    out.weights = take(out.weights_count, sizeof(float), 1);
    return out;
}

static void outputs_free(outputs *out)
{
    free(out->o);
    free(out->lse);
    free(out->weights);
}

static mha_options with_outputs(const query *x, const outputs *out)
{
    mha_options options = x->options;
    options.lse = mha_out_bhld(out->lse, x->shape.H, x->shape.L, 1);
    options.weights = mha_out_bhld(out->weights, x->shape.H, x->shape.L, x->shape.S);
    return options;
}

/* Over the flat arrays. */
static void run_flat(const query *x, const outputs *out)
{
    const mha_shape *const n = &x->shape;
    mha_options options = with_outputs(x, out);
    options.k_lengths = x->k_lengths;
    if (options.position == MHA_POSITION_UNSET)
        options.position = MHA_POSITION_BOTTOM_RIGHT;
    const mha_status status =
        mha_attention(n, mha_view_bhld(x->q, n->H, n->L, n->D),
                      mha_view_blhd(x->k, n->G, n->S, n->D), mha_view_blhd(x->v, n->G, n->S, n->Dv),
                      mha_out_bhld(out->o, n->H, n->L, n->Dv), &options, NULL);
    CHECK(status == MHA_OK, "flat: %s", mha_status_string(status));
}

/* Over the cache; with memory of its own in some of the calls. */
static void run_cached(scene *s, const query *x, const outputs *out, int threads)
{
    char message[300] = "";
    mha_options options = with_outputs(x, out);
    mha_shape shape = x->shape;
    shape.k_type = shape.v_type = MHA_F32;
    shape.G = below(s, 2) ? 0 : shape.G;
    options.message = message;
    options.message_size = sizeof message;
    const size_t size = mha_cache_work_size(s->cache, &shape, &options, threads);
    void *const work = below(s, 2) ? NULL : take((ptrdiff_t)size, 1, 255);
    CHECK(size > 0, "no work size");
    const mha_status status = mha_cache_attention(s->cache, x->sequences, &shape,
                                                  mha_view_bhld(x->q, shape.H, shape.L, shape.D),
                                                  mha_out_bhld(out->o, shape.H, shape.L, shape.Dv),
                                                  &options, work, size, s->pools[threads - 1]);
    CHECK(status == MHA_OK, "%s: %s", mha_status_string(status), message);
    free(work);
}

/* --------------------------------------------------------------- compare ----- */

static bool near(float a, float b, float scale)
{
    return a == b || (isnan(a) && isnan(b)) || fabsf(a - b) <= 2e-5f * (scale + fabsf(a));
}

static bool same(const char *what, const float *wanted, const float *got, ptrdiff_t count,
                 bool to_the_bit)
{
    for (ptrdiff_t n = 0; n < count; n++) {
        const bool ok =
            to_the_bit ? memcmp(wanted + n, got + n, sizeof *got) == 0 : near(wanted[n], got[n], 3);
        if (!ok)
            return CHECK(false, "%s %td of %td: %.9g, not %.9g", what, n, count, (double)got[n],
                         (double)wanted[n]);
    }
    return true;
}

static bool same_outputs(const outputs *wanted, const outputs *got, bool to_the_bit)
{
    return same("output", wanted->o, got->o, wanted->o_count, to_the_bit) &&
           same("log-sum-exp", wanted->lse, got->lse, wanted->lse_count, to_the_bit) &&
           same("weight", wanted->weights, got->weights, wanted->weights_count, to_the_bit);
}

static bool attend(scene *s)
{
    const mha_cache_config *const c = &s->model->config;
    query x;
    if (!choose(s, &x))
        return true;
    outputs wanted = outputs_new(&x), first = outputs_new(&x);
    run_flat(&x, &wanted);
    run_cached(s, &x, &first, 1);
    bool ok = same_outputs(&wanted, &first, c->k_type != MHA_I8 && c->v_type != MHA_I8);
    for (int threads = 2; threads <= 3 && ok; threads++) {
        outputs other = outputs_new(&x);
        run_cached(s, &x, &other, threads);
        ok = CHECK(same_outputs(&first, &other, true), "%d threads", threads);
        outputs_free(&other);
    }
    CHECK(ok, "B %td H %td G %td L %td S %td D %td Dv %td flags %u window %td, %td", x.shape.B,
          x.shape.H, c->G, x.shape.L, x.shape.S, c->D, c->Dv, x.options.flags,
          x.options.window_left, x.options.window_right);
    outputs_free(&wanted);
    outputs_free(&first);
    query_free(&x);
    return ok;
}

/* ------------------------------------------------------------------ runs ----- */

static void run_scene(const mha_cache_config *config, uint64_t seed)
{
    const int64_t rounds = test_effort(40);
    scene s = {.random = {seed}};
    if (!CHECK(mha_cache_create(&s.cache, config) == MHA_OK, "create"))
        return;
    s.model = model_new(s.cache);
    for (int threads = 2; threads <= 3; threads++)
        CHECK(mha_pool_create(&s.pools[threads - 1], threads) == MHA_OK, "pool");
    bool ok = true;
    for (int64_t n = 0; n < rounds && ok; n++) {
        for (ptrdiff_t m = below(&s, 4); m >= 0; m--)
            grow(&s);
        if (below(&s, 4) == 0)
            shrink(&s);
        if (below(&s, 4) == 0)
            branch(&s);
        poison(s.cache);
        ok =
            CHECK(attend(&s), "round %lld: kind %d, pages of %td, types %d and %d", (long long)n,
                  (int)config->kind, config->page_tokens, (int)config->k_type, (int)config->v_type);
    }
    for (int threads = 2; threads <= 3; threads++)
        mha_pool_free(s.pools[threads - 1]);
    model_free(s.model);
    mha_cache_free(s.cache);
}

/* Widths that are no multiple of anything, usual ones, and one wider than a chain. */
static void run_widths(mha_cache_kind kind, ptrdiff_t capacity, ptrdiff_t page_tokens,
                       mha_dtype k_type, mha_dtype v_type, uint64_t seed)
{
    static const ptrdiff_t widths[][3] = {{2, 5, 7}, {3, 16, 16}, {1, 64, 64}, {2, 80, 33}};
    for (int n = 0; n < 4; n++) {
        const mha_cache_config config = {.size = sizeof config,
                                         .kind = kind,
                                         .sequences = 4,
                                         .capacity = capacity,
                                         .page_tokens = page_tokens,
                                         .G = widths[n][0],
                                         .D = widths[n][1],
                                         .Dv = widths[n][2],
                                         .k_type = k_type,
                                         .v_type = v_type};
        run_scene(&config, seed + (uint64_t)n);
    }
}

static void contiguous_f32(void)
{
    run_widths(MHA_CACHE_CONTIGUOUS, 300, 0, MHA_F32, MHA_F32, test_seed(21));
}

static void rings_f32(void)
{
    const uint64_t seed = test_seed(31);
    run_widths(MHA_CACHE_RING, 32, 0, MHA_F32, MHA_F32, seed);
    run_widths(MHA_CACHE_RING, 96, 0, MHA_F32, MHA_F32, seed + 4);
    run_widths(MHA_CACHE_RING, 200, 0, MHA_F32, MHA_F32, seed + 8);
}

static void pages_f32(void)
{
    static const ptrdiff_t pages[] = {32, 64, 96, 128, 160, 256};
    const uint64_t seed = test_seed(41);
    for (int n = 0; n < 6; n++)
        run_widths(MHA_CACHE_PAGED, 400, pages[n], MHA_F32, MHA_F32, seed + (uint64_t)(4 * n));
}

/* Keys enough for several splits. */
static void long_sequences(void)
{
    const uint64_t seed = test_seed(71);
    run_widths(MHA_CACHE_PAGED, 2000, 96, MHA_F32, MHA_F32, seed);
    run_widths(MHA_CACHE_CONTIGUOUS, 2000, 0, MHA_F16, MHA_BF16, seed + 4);
    run_widths(MHA_CACHE_RING, 1200, 0, MHA_F32, MHA_F32, seed + 8);
}

static void wide_heads(void)
{
    mha_cache_config config = {.size = sizeof config,
                               .kind = MHA_CACHE_PAGED,
                               .sequences = 3,
                               .capacity = 150,
                               .page_tokens = 64,
                               .G = 1,
                               .D = 300,
                               .Dv = 270};
    const uint64_t seed = test_seed(81);
    run_scene(&config, seed);
    config.k_type = MHA_BF16;
    run_scene(&config, seed + 1);
    config.k_type = config.v_type = MHA_I8;
    run_scene(&config, seed + 2);
}

static void halves(void)
{
    const uint64_t seed = test_seed(91);
    run_widths(MHA_CACHE_CONTIGUOUS, 200, 0, MHA_F16, MHA_F16, seed);
    run_widths(MHA_CACHE_PAGED, 200, 64, MHA_BF16, MHA_BF16, seed + 4);
    run_widths(MHA_CACHE_RING, 64, 0, MHA_F16, MHA_F32, seed + 8);
    run_widths(MHA_CACHE_PAGED, 200, 32, MHA_F32, MHA_BF16, seed + 12);
}

static void integers(void)
{
    const uint64_t seed = test_seed(101);
    run_widths(MHA_CACHE_CONTIGUOUS, 200, 0, MHA_I8, MHA_I8, seed);
    run_widths(MHA_CACHE_PAGED, 300, 96, MHA_I8, MHA_F16, seed + 4);
    run_widths(MHA_CACHE_RING, 64, 0, MHA_F32, MHA_I8, seed + 8);
    run_widths(MHA_CACHE_PAGED, 2000, 128, MHA_I8, MHA_I8, seed + 12);
}

/* ---------------------------------------------------------------- errors ----- */

typedef struct small_call {
    mha_cache *cache;
    float numbers[64 * 4], o[64 * 4];
    mha_shape shape;
    mha_options options;
} small_call;

static mha_status small_attend(small_call *x, const int64_t *sequences)
{
    return mha_cache_attention(
        x->cache, sequences, &x->shape, mha_view_bhld(x->numbers, x->shape.H, x->shape.L, 4),
        mha_out_bhld(x->o, x->shape.H, x->shape.L, 4), &x->options, NULL, 0, NULL);
}

/* A ring of 32 with `tokens` tokens in sequence 0. */
static small_call small_new(ptrdiff_t tokens)
{
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = MHA_CACHE_RING,
                                     .sequences = 2,
                                     .capacity = 32,
                                     .G = 1,
                                     .D = 4};
    small_call x = {.shape = {.B = 1, .H = 2, .L = 1}, .options = {.size = sizeof x.options}};
    CHECK(mha_cache_create(&x.cache, &config) == MHA_OK, "create");
    const mha_view view = mha_view_bhld(x.numbers, 1, tokens, 4);
    CHECK(mha_cache_append(x.cache, 1, NULL, tokens, NULL, view, MHA_F32, view, MHA_F32) == MHA_OK,
          "append");
    return x;
}

#define IS(call, wanted)                                                \
    do {                                                                \
        const mha_status got_ = (call);                                 \
        CHECK(got_ == (wanted), #call ": %s", mha_status_string(got_)); \
    } while (0)

/* A ring of 32 keeps a window of 32 for one query and of 30 before it for two; not one more. */
static void edge_of_the_window(void)
{
    small_call x = small_new(50);
    x.options.flags = MHA_WINDOW | MHA_CAUSAL;
    for (ptrdiff_t L = 1; L <= 32; L++) {
        x.shape.L = L;
        x.options.window_left = 32 - L;
        IS(small_attend(&x, NULL), MHA_OK);
        x.options.window_left = 33 - L;
        IS(small_attend(&x, NULL), MHA_ERR_WINDOW);
    }
    x.shape.L = 1;
    x.options.flags = MHA_CAUSAL;
    IS(small_attend(&x, NULL), MHA_ERR_WINDOW);
    mha_cache_free(x.cache);
    x = small_new(32);
    x.options.flags = MHA_CAUSAL;
    IS(small_attend(&x, NULL), MHA_OK);
    mha_cache_free(x.cache);
}

static void wrong_calls(void)
{
    small_call x = small_new(20);
    static const int64_t missing[] = {2}, negative[] = {-1}, longer[] = {21}, starts[] = {0, 20};
    IS(mha_cache_attention(NULL, NULL, &x.shape, mha_view_bhld(x.numbers, 2, 1, 4),
                           mha_out_bhld(x.o, 2, 1, 4), NULL, NULL, 0, NULL),
       MHA_ERR_NULL);
    IS(small_attend(&x, missing), MHA_ERR_SEQUENCE);
    IS(small_attend(&x, negative), MHA_ERR_SEQUENCE);
    x.shape.S = 19;
    IS(small_attend(&x, NULL), MHA_ERR_SHAPE);
    x.shape.S = 0;
    x.shape.G = 2;
    IS(small_attend(&x, NULL), MHA_ERR_SHAPE);
    x.shape.G = 0;
    x.shape.D = 5;
    IS(small_attend(&x, NULL), MHA_ERR_SHAPE);
    x.shape.D = 0;
    x.shape.q_type = x.shape.o_type = MHA_F64;
    IS(small_attend(&x, NULL), MHA_ERR_DTYPE);
    CHECK(mha_cache_work_size(x.cache, &x.shape, NULL, 1) == 0, "work for a wrong call");
    x.shape.q_type = x.shape.o_type = MHA_F32;
    CHECK(mha_cache_work_size(x.cache, &x.shape, NULL, 0) == 0, "work for no thread");
    x.options.k_lengths = longer;
    IS(small_attend(&x, NULL), MHA_ERR_LENGTH);
    x.options.k_lengths = NULL;
    x.options.k_starts = starts;
    IS(small_attend(&x, NULL), MHA_ERR_FLAG);
    x.options.k_starts = NULL;
    IS(small_attend(&x, NULL), MHA_OK);
    IS(mha_cache_attention(x.cache, NULL, &x.shape, mha_view_bhld(x.numbers, 2, 1, 4),
                           mha_out_bhld(x.o, 2, 1, 4), NULL, x.numbers, 8, NULL),
       MHA_ERR_WORKSPACE);
    mha_cache_free(x.cache);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(contiguous_f32);
    RUN(rings_f32);
    RUN(pages_f32);
    RUN(long_sequences);
    RUN(wide_heads);
    RUN(halves);
    RUN(integers);
    RUN(edge_of_the_window);
    RUN(wrong_calls);
    return test_end();
}
