/* SPDX-License-Identifier: MIT */
/* Problems made from words. The numbers that fill them are in problem_fill.c. */
#include "problem/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "problem/attends.h"
#include "problem/problem_fill.h"

typedef struct builder {
    problem *p;
    const problem_word *word;
    const problem_style *style;
    rng random;
} builder;

static void *keep(problem *p, size_t count, size_t size)
{
    void *array = calloc(count > 0 ? count : 1, size);
    if (array != NULL)
        p->arrays[p->array_count++] = array;
    return array;
}

/* --------------------------------------------------------------- lengths ----- */

static ptrdiff_t true_length(builder *b, ptrdiff_t longest, ptrdiff_t batch, bool keys)
{
    const problem_word *w = b->word;
    if (b->style->lengths)
        return (ptrdiff_t)rng_between(&b->random, 0, longest);
    if (w->packed)
        return longest * (batch + 1) / w->b;
    if (w->pad > 0 && (keys || !w->pad_keys_only))
        return longest / w->pad;
    return longest;
}

static bool make_lengths(builder *b, ptrdiff_t longest, bool keys, const int64_t **lengths)
{
    int64_t *array = keep(b->p, (size_t)b->word->b, sizeof *array);
    if (array == NULL)
        return false;
    for (ptrdiff_t n = 0; n < b->word->b; n++)
        array[n] = true_length(b, longest, n, keys);
    *lengths = array;
    return true;
}

static bool make_starts(builder *b, ptrdiff_t longest, bool keys, const int64_t **starts)
{
    int64_t *array = keep(b->p, (size_t)b->word->b + 1, sizeof *array);
    if (array == NULL)
        return false;
    array[0] = b->style->strided ? rng_below(&b->random, 3) : 0;
    for (ptrdiff_t n = 0; n < b->word->b; n++)
        array[n + 1] = array[n] + true_length(b, longest, n, keys);
    *starts = array;
    return true;
}

static bool build_lengths(builder *b)
{
    const problem_word *w = b->word;
    mha_options *options = &b->p->options;
    if (w->packed)
        return make_starts(b, w->l, false, &options->q_starts) &&
               make_starts(b, w->s, true, &options->k_starts);
    if (b->style->lengths || (w->pad > 0 && !w->pad_keys_only))
        if (!make_lengths(b, w->l, false, &options->q_lengths))
            return false;
    if (b->style->lengths || w->pad > 0)
        return make_lengths(b, w->s, true, &options->k_lengths);
    return true;
}

static bool build_offsets(builder *b)
{
    const problem_word *w = b->word;
    if (!b->style->offsets || w->position != MHA_POSITION_OFFSET)
        return true;
    int64_t *offsets = keep(b->p, (size_t)w->b, sizeof *offsets);
    if (offsets == NULL)
        return false;
    for (ptrdiff_t n = 0; n < w->b; n++)
        offsets[n] = rng_between(&b->random, -3, w->s + 3);
    b->p->options.offsets = offsets;
    return true;
}

/* --------------------------------------------------------------- tensors ----- */

static tensor_layout random_layout(rng *r, bool output)
{
    tensor_layout y = {.rows_outside = rng_chance(r, 50), .lead = rng_below(r, 9)};
    for (int axis = 0; axis < 3; axis++)
        y.gap[axis] = rng_chance(r, 40) ? rng_below(r, 20) : 0;
    y.flip_b = rng_chance(r, 10);
    y.flip_h = rng_chance(r, 10);
    y.flip_l = rng_chance(r, 10);
    y.share_b = !output && rng_chance(r, 8);
    y.share_h = !output && rng_chance(r, 5);
    return y;
}

static tensor_layout layout_for(builder *b, bool output)
{
    if (b->style->strided)
        return random_layout(&b->random, output);
    return (tensor_layout){.rows_outside = b->word->layout == WORD_BLHD};
}

/* Rows of a packed tensor lie one after another, in a single batch. */
static tensor_extent extent_for(const int64_t *starts, ptrdiff_t batches, ptrdiff_t heads,
                                ptrdiff_t rows, ptrdiff_t width)
{
    if (starts != NULL)
        return (tensor_extent){1, heads, (ptrdiff_t)starts[batches], width};
    return (tensor_extent){batches, heads, rows, width};
}

/* Inputs are born as NaN (all bits set): what is not filled later must not be read. */
static bool build_tensors(builder *b)
{
    problem *p = b->p;
    const problem_word *w = b->word;
    const int64_t *qs = p->options.q_starts, *ks = p->options.k_starts;
    const tensor_layout q = layout_for(b, false), k = layout_for(b, false);
    const tensor_layout v = layout_for(b, false), o = layout_for(b, true);
    return tensor_create(&p->q, w->q_type, extent_for(qs, w->b, w->h, w->l, w->d), &q, 0xff) &&
           tensor_create(&p->k, w->k_type, extent_for(ks, w->b, w->g, w->s, w->d), &k, 0xff) &&
           tensor_create(&p->v, w->v_type, extent_for(ks, w->b, w->g, w->s, w->v), &v, 0xff) &&
           tensor_create(&p->o, w->o_type, extent_for(qs, w->b, w->h, w->l, w->v), &o,
                         PROBLEM_UNTOUCHED);
}

/* ----------------------------------------------------- masks and the like ----- */

static bool build_bool_mask(builder *b, mha_view *view, bool ones)
{
    const problem_word *w = b->word;
    const bool over_b = b->style->broadcast && rng_chance(&b->random, 50);
    const bool over_h = b->style->broadcast && rng_chance(&b->random, 50);
    const bool over_l = !b->style->broadcast || rng_chance(&b->random, 60);
    const ptrdiff_t row = w->s + (b->style->strided ? (ptrdiff_t)rng_below(&b->random, 5) : 0);
    const ptrdiff_t rows = over_l ? w->l : 1, heads = over_h ? w->h : 1;
    const ptrdiff_t batches = over_b ? w->b : 1;
    const ptrdiff_t count = batches * heads * rows * row;
    uint8_t *bytes = keep(b->p, (size_t)count + 1, 1);
    if (bytes == NULL)
        return false;
    fill_bool_mask(bytes, count, row, w->bool_percent, ones, b->style, &b->random);
    *view = (mha_view){bytes, over_b ? heads * rows * row : 0, over_h ? rows * row : 0,
                       over_l ? row : 0};
    return true;
}

static bool build_additive(builder *b, tensor *t, mha_dtype type, bool over_heads)
{
    const problem_word *w = b->word;
    tensor_layout y = {.share_b = true, .share_h = !over_heads};
    if (b->style->broadcast) {
        y = random_layout(&b->random, true);
        y.share_b = rng_chance(&b->random, 50);
        y.share_h = rng_chance(&b->random, 50);
        y.share_l = rng_chance(&b->random, 30);
    }
    if (!tensor_create(t, type, (tensor_extent){w->b, w->h, w->l, w->s}, &y, 0))
        return false;
    fill_additive(t, b->style, &b->random);
    return true;
}

static bool build_masks(builder *b)
{
    const problem_word *w = b->word;
    mha_options *options = &b->p->options;
    if (w->bool_percent >= 0 && !build_bool_mask(b, &options->attend_mask, true))
        return false;
    if (b->style->ignore_mask && !build_bool_mask(b, &options->ignore_mask, false))
        return false;
    if (w->add_mask && !build_additive(b, &b->p->add_mask, b->style->add_type, false))
        return false;
    if (w->bias && !build_additive(b, &b->p->bias, b->style->bias_type, true))
        return false;
    options->add_mask = tensor_view(&b->p->add_mask);
    options->add_mask_type = b->style->add_type;
    options->bias = tensor_view(&b->p->bias);
    options->bias_type = b->style->bias_type;
    return true;
}

static bool build_per_head(builder *b)
{
    const problem_word *w = b->word;
    float *slopes = keep(b->p, (size_t)w->h, sizeof *slopes);
    float *sinks = keep(b->p, (size_t)w->h, sizeof *sinks);
    if (slopes == NULL || sinks == NULL)
        return false;
    for (ptrdiff_t h = 0; h < w->h; h++) {
        slopes[h] = (float)(1.0 / (double)(2 + h));
        sinks[h] = (float)rng_normal(&b->random);
    }
    b->p->options.alibi_slopes = w->alibi ? slopes : NULL;
    b->p->options.sinks = w->sink ? sinks : NULL;
    return true;
}

/* Document ids: the rows of every batch in `documents` pieces of equal length. Packed sequences
 * lie one after another, so their ids do too. */
static bool make_documents(builder *b, const int64_t *starts, ptrdiff_t rows, const int32_t **ids,
                           ptrdiff_t *stride)
{
    const problem_word *w = b->word;
    const ptrdiff_t total = starts != NULL ? (ptrdiff_t)starts[w->b] : w->b * rows;
    int32_t *array = keep(b->p, (size_t)total, sizeof *array);
    if (array == NULL)
        return false;
    for (ptrdiff_t batch = 0; batch < w->b; batch++)
        for (ptrdiff_t i = 0; i < rows; i++) {
            const ptrdiff_t at = (starts != NULL ? (ptrdiff_t)starts[batch] : batch * rows) + i;
            if (at < total)
                array[at] = (int32_t)(i * w->documents / rows);
        }
    *ids = array;
    *stride = rows;
    return true;
}

static bool build_documents(builder *b)
{
    mha_options *options = &b->p->options;
    if (b->word->documents == 0)
        return true;
    return make_documents(b, options->q_starts, b->word->l, &options->q_documents,
                          &options->q_documents_sb) &&
           make_documents(b, options->k_starts, b->word->s, &options->k_documents,
                          &options->k_documents_sb);
}

/* --------------------------------------------------------------- outputs ----- */

/* About half of [0, n) in some order without repeats, at least one; NULL and n when not chosen. */
static bool choose(builder *b, bool wanted, ptrdiff_t n, const int64_t **list, ptrdiff_t *count)
{
    if (!wanted || n == 0)
        return true;
    int64_t *array = keep(b->p, (size_t)n, sizeof *array);
    if (array == NULL)
        return false;
    for (ptrdiff_t i = 0; i < n; i++)
        array[i] = i;
    for (ptrdiff_t i = n - 1; i > 0; i--) {
        const ptrdiff_t other = (ptrdiff_t)rng_below(&b->random, i + 1);
        const int64_t swap = array[i];
        array[i] = array[other];
        array[other] = swap;
    }
    *list = array;
    *count = (n + 1) / 2;
    return true;
}

static bool build_weights(builder *b)
{
    problem *p = b->p;
    const problem_word *w = b->word;
    mha_options *options = &p->options;
    const mha_dtype type = w->q_type == MHA_F64 ? MHA_F64 : b->style->weights_type;
    if (!choose(b, b->style->choose_heads, w->h, &options->weights_heads,
                &options->weights_head_count) ||
        !choose(b, b->style->choose_rows, w->l, &options->weights_rows,
                &options->weights_row_count))
        return false;
    const ptrdiff_t heads = options->weights_heads ? options->weights_head_count : w->h;
    const ptrdiff_t rows = options->weights_rows ? options->weights_row_count : w->l;
    const tensor_layout y = layout_for(b, true);
    if (!tensor_create(&p->weights, type, (tensor_extent){w->b, w->average ? 1 : heads, rows, w->s},
                       &y, PROBLEM_UNTOUCHED))
        return false;
    options->weights = tensor_out(&p->weights);
    options->weights_type = type;
    return true;
}

static bool build_lse(problem *p, mha_dtype type, const tensor_layout *layout)
{
    const mha_shape *s = &p->shape;
    const tensor_extent extent = extent_for(p->options.q_starts, s->B, s->H, s->L, 1);
    if (!tensor_create(&p->lse, type, extent, layout, PROBLEM_UNTOUCHED))
        return false;
    p->options.lse = tensor_out(&p->lse);
    return true;
}

enum { STATISTICS_LISTED = 8 }; /* of the largest weights of a row */

/* They stay in the problem. */
static bool build_statistics(problem *p, unsigned wanted)
{
    const size_t heads = (size_t)(p->shape.B * p->shape.H), rows = heads * (size_t)p->shape.L;
    mha_statistics *statistics = keep(p, 1, sizeof *statistics);
    if (statistics == NULL)
        return false;
    statistics->size = sizeof *statistics;
    statistics->rows = keep(p, rows, sizeof *statistics->rows);
    statistics->heads = keep(p, heads, sizeof *statistics->heads);
    p->options.statistics = statistics;
    bool fine = statistics->rows != NULL && statistics->heads != NULL;
    if (fine && wanted & STATISTICS_COLUMNS) {
        statistics->columns = keep(p, heads * (size_t)p->shape.S, sizeof(float));
        fine = statistics->columns != NULL;
    }
    if (fine && wanted & STATISTICS_TOP) {
        statistics->top = STATISTICS_LISTED;
        statistics->top_keys = keep(p, rows * STATISTICS_LISTED, sizeof(int64_t));
        statistics->top_weights = keep(p, rows * STATISTICS_LISTED, sizeof(float));
        fine = statistics->top_keys != NULL && statistics->top_weights != NULL;
    }
    return fine;
}

static bool build_outputs(builder *b)
{
    if (b->word->weights && !build_weights(b))
        return false;
    if (b->word->statistics && !build_statistics(b->p, b->word->statistics))
        return false;
    if (!b->word->lse)
        return true;
    const tensor_layout y = layout_for(b, true);
    return build_lse(b->p, b->word->q_type == MHA_F64 ? MHA_F64 : MHA_F32, &y);
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

bool problem_create(problem *p, const problem_word *word, const problem_style *style, char *message,
                    size_t size)
{
    const problem_style plain = {0};
    memset(p, 0, sizeof *p);
    builder b = {p, word, style != NULL ? style : &plain, {0}};
    b.random = rng_for(b.style->seed, 1);
    p->shape = word_shape(word);
    p->options = word_options(word);
    if (!too_large(word) && build_lengths(&b) && build_offsets(&b) && build_tensors(&b) &&
        build_masks(&b) && build_per_head(&b) && build_documents(&b) && build_outputs(&b)) {
        fill_inputs(p, b.style, &b.random);
        return true;
    }
    problem_free(p);
    char text[WORD_TEXT_MAX];
    word_print(word, text, sizeof text);
    snprintf(message, size, "%s does not fit in memory", text);
    return false;
}

bool problem_twin(problem *twin, const problem *p)
{
    *twin = *p;
    twin->array_count = 0;
    twin->lse.block = twin->add_mask.block = twin->bias.block = NULL;
    twin->shape.q_type = twin->shape.k_type = twin->shape.v_type = twin->shape.o_type = MHA_F64;
    twin->q.block = twin->k.block = twin->v.block = twin->o.block = twin->weights.block = NULL;
    const bool ok = tensor_copy_f64(&twin->q, &p->q) && tensor_copy_f64(&twin->k, &p->k) &&
                    tensor_copy_f64(&twin->v, &p->v) && tensor_copy_f64(&twin->o, &p->o) &&
                    tensor_copy_f64(&twin->weights, &p->weights) && build_lse(twin, MHA_F64, NULL);
    if (!ok) {
        problem_free(twin);
        return false;
    }
    twin->options.weights = tensor_out(&twin->weights);
    twin->options.weights_type = MHA_F64;
    problem_reset(twin);
    return true;
}

void problem_free(problem *p)
{
    tensor *const tensors[] = {&p->q,   &p->k,       &p->v,        &p->o,
                               &p->lse, &p->weights, &p->add_mask, &p->bias};
    for (size_t n = 0; n < sizeof tensors / sizeof tensors[0]; n++)
        tensor_free(tensors[n]);
    for (int n = 0; n < p->array_count; n++)
        free(p->arrays[n]);
    p->array_count = 0;
}

static void reset(tensor *t)
{
    if (t->block != NULL)
        memset(t->block, PROBLEM_UNTOUCHED, tensor_bytes(t));
}

void problem_reset(problem *p)
{
    reset(&p->o);
    reset(&p->lse);
    reset(&p->weights);
}

mha_status problem_attend(problem *p, mha_pool *pool)
{
    return mha_attention(&p->shape, tensor_view(&p->q), tensor_view(&p->k), tensor_view(&p->v),
                         tensor_out(&p->o), &p->options, pool);
}

mha_status problem_attend_planned(problem *p, mha_pool *pool)
{
    mha_plan *plan;
    mha_status status = mha_plan_create(&plan, &p->shape, &p->options);
    if (status != MHA_OK)
        return status;
    const size_t size = mha_plan_work_size(plan, mha_pool_threads(pool));
    void *work = malloc(size > 0 ? size : 1);
    status = MHA_ERR_MEMORY;
    if (work != NULL)
        status = mha_plan_run(plan, tensor_view(&p->q), tensor_view(&p->k), tensor_view(&p->v),
                              tensor_out(&p->o), &p->options, work, size, pool);
    free(work);
    mha_plan_free(plan);
    return status;
}
