/* SPDX-License-Identifier: MIT */
/*
 * From a word or a spec to a problem: lengths, positions, masks, numbers per head, documents and
 * outputs. A feature of the spec is drawn at random; what the word has without such a feature is
 * made exactly as problem_word.h defines it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "problem/problem.h"
#include "problem/problem_fill.h"
#include "problem/problem_masks.h"

typedef struct builder {
    problem *p;
    const problem_word *word;
    rng random;
} builder;

static bool has(const builder *a, unsigned feature)
{
    return (a->p->spec.features & feature) != 0;
}

static bool is_wide(const builder *a)
{
    return a->word->q_type == MHA_F64;
}

/* --------------------------------------------------------------- lengths ----- */

/* True lengths in [0, limit(b)], often all of it; or what the word says. */
static bool make_lengths(builder *a, ptrdiff_t extent, bool random, const int64_t *starts,
                         const int64_t **to)
{
    const problem_word *const w = a->word;
    int64_t *const lengths = problem_alloc(a->p, (size_t)w->b * sizeof *lengths);
    if (lengths == NULL)
        return false;
    for (ptrdiff_t b = 0; b < w->b; b++) {
        const int64_t limit = starts ? starts[b + 1] - starts[b] : extent;
        const bool all = random && rng_below(&a->random, 4) == 0;
        lengths[b] = !random ? limit / w->pad : all ? limit : rng_below(&a->random, limit + 1);
    }
    *to = lengths;
    return true;
}

/* Ascending starts. At random the longest piece is at most `extent`, and the first row is not
 * always row 0; by the word, pieces grow evenly to `extent`. */
static bool make_starts(builder *a, ptrdiff_t extent, bool reach, const int64_t **to)
{
    const ptrdiff_t B = a->word->b;
    const bool random = has(a, FEATURE_PACKED);
    int64_t *const starts = problem_alloc(a->p, (size_t)(B + 1) * sizeof *starts);
    if (starts == NULL)
        return false;
    const int64_t longest = B > 0 ? rng_below(&a->random, B) : 0;
    starts[0] = random && rng_below(&a->random, 4) == 0 ? rng_below(&a->random, 5) : 0;
    for (ptrdiff_t b = 0; b < B; b++) {
        const int64_t drawn = reach && b == longest ? extent : rng_below(&a->random, extent + 1);
        starts[b + 1] = starts[b] + (random ? drawn : extent * (b + 1) / B);
    }
    *to = starts;
    return true;
}

static bool build_lengths(builder *a)
{
    const problem_word *const w = a->word;
    mha_options *const o = &a->p->call.options;
    const bool q = has(a, FEATURE_Q_LENGTHS), k = has(a, FEATURE_K_LENGTHS);
    if (w->packed && (!make_starts(a, w->l, true, &o->q_starts) ||
                      !make_starts(a, w->s, rng_chance(&a->random, 75), &o->k_starts)))
        return false;
    if ((q || (w->pad > 0 && !w->pad_keys_only)) &&
        !make_lengths(a, w->l, q, o->q_starts, &o->q_lengths))
        return false;
    return !(k || w->pad > 0) || make_lengths(a, w->s, k, o->k_starts, &o->k_lengths);
}

/* One offset per batch, now and then. */
static bool build_offsets(builder *a)
{
    const problem_word *const w = a->word;
    if (!has(a, FEATURE_OFFSET) || w->position != MHA_POSITION_OFFSET || rng_below(&a->random, 2))
        return true;
    int64_t *const offsets = problem_alloc(a->p, (size_t)w->b * sizeof *offsets);
    if (offsets == NULL)
        return false;
    for (ptrdiff_t b = 0; b < w->b; b++)
        offsets[b] = rng_between(&a->random, -w->l - 2, w->s + 3);
    a->p->call.options.offsets = offsets;
    return true;
}

/* The last digits of scale and soft cap, which only a double has. They round to the
 * floats; types other than f64 get them too, and ignore them. */
static void build_digits(builder *a)
{
    mha_options *const o = &a->p->call.options;
    rng r = rng_for(a->p->spec.seed, 3);
    if (has(a, FEATURE_SCALE))
        o->scale64 = (double)o->scale * (1.0 + 2e-8 * rng_unit(&r));
    if (has(a, FEATURE_SOFTCAP))
        o->softcap64 = (double)o->softcap * (1.0 + 2e-8 * rng_unit(&r));
}

/* --------------------------------------------------------------- tensors ----- */

static rng *layout_of(builder *a)
{
    return has(a, FEATURE_STRIDES) ? &a->random : NULL;
}

/* q, k, v, o or lse. Rows of a packed tensor lie one after another, in a single batch. */
static bool make_rows(builder *a, tensor_id id, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width,
                      const int64_t *starts)
{
    const problem_word *const w = a->word;
    const ptrdiff_t n[4] = {starts ? 1 : w->b, heads, starts ? (ptrdiff_t)starts[w->b] : rows,
                            width};
    unsigned share = 0;
    if (id < TENSOR_O && has(a, FEATURE_BROADCAST))
        share =
            id == TENSOR_Q && rng_chance(&a->random, 75) ? 0 : (unsigned)rng_below(&a->random, 4);
    return problem_tensor(a->p, id, mha_dtype_size(problem_type(a->p, id)), n, layout_of(a), share);
}

static bool build_tensors(builder *a)
{
    const problem_word *const w = a->word;
    const mha_options *const o = &a->p->call.options;
    return make_rows(a, TENSOR_Q, w->h, w->l, w->d, o->q_starts) &&
           make_rows(a, TENSOR_K, w->g, w->s, w->d, o->k_starts) &&
           make_rows(a, TENSOR_V, w->g, w->s, w->v, o->k_starts) &&
           make_rows(a, TENSOR_O, w->h, w->l, w->v, o->q_starts) &&
           (!w->lse || make_rows(a, TENSOR_LSE, w->h, w->l, 1, o->q_starts));
}

/* ----------------------------------------------------------------- masks ----- */

/* A tensor over scores. Axes of `share` are shared, or any with FEATURE_BROADCAST. */
static bool make_scores(builder *a, tensor_id id, size_t element, bool random, unsigned share)
{
    const problem_word *const w = a->word;
    const ptrdiff_t n[4] = {w->b, w->h, w->l, w->s};
    if (random)
        share = has(a, FEATURE_BROADCAST) ? (unsigned)rng_below(&a->random, 8) : 0;
    return problem_tensor(a->p, id, element, n, random ? layout_of(a) : NULL, share);
}

static mha_dtype mask_type(builder *a)
{
    if (has(a, FEATURE_MASK_TYPES))
        return (mha_dtype)rng_below(&a->random, is_wide(a) ? 4 : 3);
    return is_wide(a) ? MHA_F64 : MHA_F32;
}

enum { SHARE_BATCHES = 1, SHARE_HEADS = 2 };

static bool build_bool_masks(builder *a)
{
    const bool random = has(a, FEATURE_ATTEND);
    if (a->word->bool_percent >= 0) {
        if (!make_scores(a, TENSOR_ATTEND, 1, random, SHARE_BATCHES | SHARE_HEADS))
            return false;
        if (random)
            fill_bool_random(a->p, TENSOR_ATTEND, &a->random);
        else
            fill_bool_percent(a->p, TENSOR_ATTEND, a->word->bool_percent, &a->random);
    }
    if (has(a, FEATURE_IGNORE)) {
        if (!make_scores(a, TENSOR_IGNORE, 1, true, 0))
            return false;
        fill_bool_random(a->p, TENSOR_IGNORE, &a->random);
    }
    return true;
}

static bool build_additive(builder *a)
{
    mha_options *const o = &a->p->call.options;
    if (a->word->add_mask) {
        const bool random = has(a, FEATURE_ADD);
        o->add_mask_type = mask_type(a);
        if (!make_scores(a, TENSOR_ADD, mha_dtype_size(o->add_mask_type), random,
                         SHARE_BATCHES | SHARE_HEADS))
            return false;
        fill_normal(a->p, TENSOR_ADD, random ? (double)rng_below(&a->random, 3) : 1.0, &a->random);
        if (random)
            fill_minus_infinity(a->p, TENSOR_ADD, &a->random);
    }
    if (a->word->bias) {
        const bool random = has(a, FEATURE_BIAS);
        o->bias_type = mask_type(a);
        if (!make_scores(a, TENSOR_BIAS, mha_dtype_size(o->bias_type), random, SHARE_BATCHES))
            return false;
        fill_normal(a->p, TENSOR_BIAS, random ? 2.0 : 1.0, &a->random);
        if (random && rng_below(&a->random, 3) == 0)
            fill_minus_infinity(a->p, TENSOR_BIAS, &a->random);
    }
    return true;
}

static float random_sink(builder *a, bool wide)
{
    return (float)(wide ? 15.0 * rng_unit(&a->random) - 5.0 : rng_normal(&a->random));
}

/* Slopes 1/2, 1/3, ... and normal sinks, or any. */
static bool build_per_head(builder *a)
{
    const problem_word *const w = a->word;
    mha_options *const o = &a->p->call.options;
    float *const slopes = problem_alloc(a->p, (size_t)w->h * sizeof *slopes);
    float *const sinks = problem_alloc(a->p, (size_t)w->h * sizeof *sinks);
    const double steepest = rng_below(&a->random, 2) ? 0.05 : 1.0;
    const bool wide = has(a, FEATURE_SINKS) && rng_below(&a->random, 2);
    if (slopes == NULL || sinks == NULL)
        return false;
    for (ptrdiff_t h = 0; h < w->h; h++) {
        const double drawn = steepest * rng_unit(&a->random);
        slopes[h] = (float)(has(a, FEATURE_ALIBI) ? drawn : 1.0 / (double)(2 + h));
        sinks[h] = random_sink(a, wide);
    }
    o->alibi_slopes = w->alibi ? slopes : NULL;
    o->sinks = w->sink ? sinks : NULL;
    return true;
}

/* ------------------------------------------------------------- documents ----- */

typedef struct documents {
    bool random, shuffled;
    ptrdiff_t run, gap; /* at random: length of a document, unused ids between batches */
} documents;

/* Ids in pieces of equal length, as the word says; or in runs that go on over batches; or,
 * shuffled, any of three. */
static bool make_documents(builder *a, const documents *how, ptrdiff_t rows, const int64_t *starts,
                           const int32_t **to, ptrdiff_t *stride)
{
    const problem_word *const w = a->word;
    *stride = rows + how->gap;
    const ptrdiff_t count = starts ? (ptrdiff_t)starts[w->b] : w->b * *stride;
    int32_t *const ids = problem_alloc(a->p, (size_t)count * sizeof *ids);
    if (ids == NULL)
        return false;
    for (ptrdiff_t n = 0; n < count; n++)
        ids[n] = how->shuffled ? (int32_t)rng_below(&a->random, 3) - 1
                 : how->random ? (int32_t)(n / how->run)
                               : 0;
    for (ptrdiff_t b = 0; !how->random && b < w->b; b++) {
        const ptrdiff_t first = starts ? (ptrdiff_t)starts[b] : b * *stride;
        for (ptrdiff_t i = 0; i < rows && first + i < count; i++)
            ids[first + i] = (int32_t)(i * w->documents / rows);
    }
    *to = ids;
    return true;
}

static bool build_documents(builder *a)
{
    const problem_word *const w = a->word;
    mha_options *const o = &a->p->call.options;
    documents how = {.random = has(a, FEATURE_DOCUMENTS)};
    if (w->documents == 0)
        return true;
    how.run = 1 + (ptrdiff_t)rng_below(&a->random, w->s + 1);
    if (how.random) {
        how.shuffled = rng_below(&a->random, 4) == 0;
        how.gap = (ptrdiff_t)rng_below(&a->random, 3);
    }
    return make_documents(a, &how, w->l, o->q_starts, &o->q_documents, &o->q_documents_sb) &&
           make_documents(a, &how, w->s, o->k_starts, &o->k_documents, &o->k_documents_sb);
}

/* --------------------------------------------------------------- outputs ----- */

/* Numbers below `limit`: any, some of them twice; or half of them in any order. */
static bool choose(builder *a, ptrdiff_t limit, const int64_t **to, ptrdiff_t *count)
{
    if (limit == 0 || rng_below(&a->random, 2))
        return true;
    const bool repeats = rng_below(&a->random, 2);
    int64_t *const list = problem_alloc(a->p, (size_t)(limit + 1) * sizeof *list);
    if (list == NULL)
        return false;
    for (ptrdiff_t n = 0; n <= limit; n++)
        list[n] = repeats ? rng_below(&a->random, limit) : n;
    for (ptrdiff_t n = limit - 1; n > 0; n--) {
        const ptrdiff_t other = (ptrdiff_t)rng_below(&a->random, n + 1);
        const int64_t kept = list[n];
        list[n] = list[other];
        list[other] = kept;
    }
    *to = list;
    *count = repeats ? 1 + (ptrdiff_t)rng_below(&a->random, limit + 1) : (limit + 1) / 2;
    return true;
}

static bool build_weights(builder *a)
{
    const problem_word *const w = a->word;
    mha_options *const o = &a->p->call.options;
    o->weights_type = is_wide(a) ? MHA_F64 : MHA_F32;
    if (!w->weights)
        return true;
    if (has(a, FEATURE_WEIGHTS) && !has(a, FEATURE_PLAIN_WEIGHTS)) {
        o->weights_type = (mha_dtype)rng_below(&a->random, is_wide(a) ? 4 : 3);
        if (!choose(a, w->h, &o->weights_heads, &o->weights_head_count) ||
            !choose(a, w->l, &o->weights_rows, &o->weights_row_count))
            return false;
    }
    const ptrdiff_t heads = o->weights_heads ? o->weights_head_count : w->h;
    const ptrdiff_t rows = o->weights_rows ? o->weights_row_count : w->l;
    const ptrdiff_t n[4] = {w->b, w->average ? 1 : heads, rows, w->s};
    return problem_tensor(a->p, TENSOR_WEIGHTS, mha_dtype_size(o->weights_type), n, layout_of(a),
                          0);
}

enum { STATISTICS_LISTED = 8 }; /* of the largest weights of a row */

static bool build_statistics(builder *a)
{
    problem *const p = a->p;
    const problem_word *const w = a->word;
    if (!w->statistics)
        return true;
    const size_t heads = (size_t)(w->b * w->h), rows = heads * (size_t)w->l;
    mha_statistics *const s = problem_alloc(p, sizeof *s);
    if (s == NULL)
        return false;
    *s = (mha_statistics){.size = sizeof *s};
    s->rows = problem_alloc(p, rows * sizeof *s->rows);
    s->heads = problem_alloc(p, heads * sizeof *s->heads);
    bool fine = s->rows != NULL && s->heads != NULL;
    if (w->statistics & STATISTICS_COLUMNS) {
        s->columns = problem_alloc(p, heads * (size_t)w->s * sizeof(float));
        fine = fine && s->columns != NULL;
    }
    if (w->statistics & STATISTICS_TOP) {
        s->top = STATISTICS_LISTED;
        s->top_keys = problem_alloc(p, rows * STATISTICS_LISTED * sizeof(int64_t));
        s->top_weights = problem_alloc(p, rows * STATISTICS_LISTED * sizeof(float));
        fine = fine && s->top_keys != NULL && s->top_weights != NULL;
    }
    p->call.options.statistics = s;
    return fine;
}

/* ----------------------------------------------------------------- whole ----- */

/* More than 2^40 elements in one array is a typing error, not a problem. */
static bool too_large(const problem_word *w)
{
    const double limit = 0x1p40, b = (double)w->b, h = (double)w->h;
    const double width = (double)(w->d > w->v ? w->d : w->v) + 1.0;
    const double rows = (double)(w->l > w->s ? w->l : w->s) + 1.0;
    const bool dense = w->bool_percent >= 0 || w->add_mask || w->bias || w->weights;
    return b * h * rows * width > limit || (dense && b * h * (double)w->l * (double)w->s > limit);
}

static bool build(problem *p, const problem_spec *spec, const problem_word *word, char *message,
                  size_t size)
{
    problem_begin(p, spec, word);
    builder a = {p, word, rng_for(spec->seed, 2)};
    build_digits(&a);
    if (!too_large(word) && build_lengths(&a) && build_offsets(&a) && build_tensors(&a) &&
        build_bool_masks(&a) && build_additive(&a) && build_per_head(&a) && build_documents(&a) &&
        build_weights(&a) && build_statistics(&a)) {
        problem_connect(p);
        fill_inputs(p, &a.random);
        return true;
    }
    problem_free(p);
    char text[WORD_TEXT_MAX];
    word_print(word, text, sizeof text);
    snprintf(message, size, "%s does not fit in memory", text);
    return false;
}

bool problem_create(problem *p, const problem_word *word, uint64_t seed, char *message, size_t size)
{
    const problem_spec spec = {.shape = word_shape(word), .seed = seed};
    return build(p, &spec, word, message, size);
}

bool problem_build(problem *p, const problem_spec *spec, char *message, size_t size)
{
    const problem_word word = problem_spec_word(spec);
    return build(p, spec, &word, message, size);
}
