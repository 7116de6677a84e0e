/* SPDX-License-Identifier: MIT */
/*
 * Makes the texts: one long causal call without a cache whose result is kept, and calls with a
 * cache on some of its tokens, which must give the same.
 */
#include "support/layer_text.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------ texts ---- */

static ptrdiff_t below(test_random *random, ptrdiff_t n)
{
    return (ptrdiff_t)test_random_below(random, n);
}

static layer_spec text_spec(uint64_t seed, ptrdiff_t longest)
{
    layer_spec spec = layer_spec_random(seed);
    spec.parts &= ~(unsigned)(LAYER_CROSS | LAYER_VALUE | LAYER_POSITIONS);
    spec.options &= FEATURE_ALIBI | FEATURE_SINKS | FEATURE_SOFTCAP | FEATURE_SCALE |
                    FEATURE_STRIDES | FEATURE_ATTEND | FEATURE_ADD | FEATURE_BIAS |
                    FEATURE_BROADCAST | FEATURE_MASK_TYPES;
    spec.options |= FEATURE_LSE | FEATURE_PLAIN_WEIGHTS;
    spec.config.key_width = spec.config.value_width = 0;
    spec.config.E = spec.config.E > 30 ? 30 : spec.config.E;
    spec.config.D = spec.config.D ? spec.config.D : 4;
    if (spec.config.rope.width > spec.config.D)
        spec.config.rope.width = 0;
    if (spec.config.D % 2 != 0 && spec.config.rope.width == 0)
        spec.config.rope = (mha_rope){0};
    spec.B = TEXTS;
    spec.L = longest;
    return spec;
}

text *text_new(uint64_t seed, ptrdiff_t longest, ptrdiff_t window)
{
    const layer_spec spec = text_spec(seed, longest);
    test_random random = {seed};
    text *const t = calloc(1, sizeof *t);
    t->c = layer_case_new(&spec);
    mha_options *const o = &t->c->memory->call.options;
    for (int b = 0; b < TEXTS; b++)
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
    t->whole = snapshot_of(t->c->memory);
    return t;
}

void text_free(text *t)
{
    snapshot_free(&t->whole);
    layer_case_free(t->c);
    free(t);
}

/* ------------------------------------------------------------------------ calls ---- */

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

/* The rows of a mask that belong to the step, [B,H,L,columns]. */
static mha_view cut_mask(step *s, int n, mha_view from, size_t element)
{
    const ptrdiff_t H = heads_of(s->t), columns = s->t->c->spec.L;
    if (!from.data)
        return from;
    char *const rows = filled((size_t)(s->B * H * s->L * columns) * element);
    for (ptrdiff_t r = 0; r < s->B * H * s->L; r++) {
        const ptrdiff_t b = r / s->L / H, h = r / s->L % H, i = r % s->L;
        const ptrdiff_t at =
            s->sequences[b] * from.sb + h * from.sh + (ptrdiff_t)(s->at[b] + i) * from.sl;
        if (i < s->counts[b])
            memcpy(rows + (size_t)(r * columns) * element,
                   (const char *)from.data + at * (ptrdiff_t)element, (size_t)columns * element);
    }
    s->masks[n] = rows;
    return mha_view_bhld(rows, H, s->L, columns);
}

static void cut_masks(step *s)
{
    mha_options *const o = &s->options;
    o->attend_mask = cut_mask(s, 0, o->attend_mask, 1);
    o->add_mask = cut_mask(s, 1, o->add_mask, mha_dtype_size(o->add_mask_type));
    o->bias = cut_mask(s, 2, o->bias, mha_dtype_size(o->bias_type));
}

/* Where the tokens stand, given explicitly: after those before. */
static const int64_t *list_positions(step *s)
{
    if (s->t->c->spec.seed % 2)
        return NULL;
    s->positions = filled((size_t)(s->B * s->L) * sizeof *s->positions);
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t i = 0; i < s->L; i++)
            s->positions[b * s->L + i] = s->at[b] + i;
    return s->positions;
}

void step_begin(step *s, mha_cache *cache)
{
    const text *const t = s->t;
    const problem *const m = t->c->memory;
    const tensor *const x = &m->tensors[TENSOR_Q], *const y = &m->tensors[TENSOR_O];
    const ptrdiff_t columns = m->tensors[TENSOR_WEIGHTS].n[3], H = heads_of(t);
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
    cut_masks(s);
    s->call = (mha_layer_call){
        .size = sizeof s->call,
        .B = s->B,
        .L = s->L,
        .S = t->c->spec.L,
        .query = mha_view_ble(s->x, s->L, E),
        .output = mha_out_ble(s->y, s->L, width),
        .input_type = t->c->spec.input_type,
        .output_type = t->c->spec.output_type,
        .q_positions = list_positions(s),
        .cache = cache,
        .sequences = s->sequences,
        .options = &s->options,
    };
}

void step_keep(const step *s)
{
    const problem *const m = s->t->c->memory;
    const tensor *const y = &m->tensors[TENSOR_O], *const w = &m->tensors[TENSOR_WEIGHTS];
    const size_t y_bytes = (size_t)y->n[3] * y->element, w_bytes = (size_t)w->n[3] * w->element;
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t i = 0; i < s->counts[b]; i++) {
            const ptrdiff_t q = s->sequences[b], token = (ptrdiff_t)s->at[b] + i;
            memcpy(tensor_at(y, q, 0, token, 0), s->y + (size_t)(b * s->L + i) * y_bytes, y_bytes);
            for (ptrdiff_t h = 0; h < heads_of(s->t); h++) {
                const ptrdiff_t row = (b * heads_of(s->t) + h) * s->L + i;
                memcpy(tensor_at(&m->tensors[TENSOR_LSE], q, h, token, 0), s->lse + row,
                       sizeof(float));
                memcpy(tensor_at(w, q, h, token, 0), s->weights + row * w->n[3], w_bytes);
            }
        }
}

void step_end(step *s)
{
    free(s->x);
    free(s->y);
    free(s->lse);
    free(s->weights);
    free(s->positions);
    s->positions = NULL;
    for (int n = 0; n < 3; n++) {
        free(s->masks[n]);
        s->masks[n] = NULL;
    }
}

/* ------------------------------------------------------------------- generation ---- */

/* Which sequences take part in the next call, in which order, with how many tokens. */
static bool choose(step *s, const text *t, const int64_t *done, text_cut how, test_random *random)
{
    const ptrdiff_t first = below(random, TEXTS);
    s->B = s->L = 0;
    for (ptrdiff_t n = 0; n < TEXTS; n++) {
        const ptrdiff_t sequence = (first + n) % TEXTS;
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
    for (int b = 0; b < TEXTS; b++)
        if (done[b] < t->lengths[b])
            return true;
    return false;
}

void text_generate(const text *t, mha_cache *cache, text_cut how, mha_pool *pool, uint64_t seed)
{
    test_random random = {seed};
    int64_t done[TEXTS] = {0};
    step s = {.t = t};
    problem_reset(t->c->memory);
    while (choose(&s, t, done, how, &random)) {
        if (s.B == 0)
            continue;
        step_begin(&s, cache);
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
    for (int b = 0; b < TEXTS; b++)
        CHECK(mha_cache_length(cache, b) == t->lengths[b], "length of %d is %td", b,
              mha_cache_length(cache, b));
}

mha_cache *text_cache(const text *t, mha_cache_kind kind, ptrdiff_t capacity, mha_dtype type)
{
    const mha_layer_config f = layer_defaults(&t->c->p.config);
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = TEXTS,
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
