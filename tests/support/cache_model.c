/* SPDX-License-Identifier: MIT */
/*
 * A cache as plain arrays: every append, shift and copy is done on numbers that are rounded as the
 * cache stores them. Tests compare the library's cache with it.
 */
#include "support/cache_model.h"
#include "core/rope.h"
#include "format/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *take(size_t count, size_t size)
{
    void *const memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

static ptrdiff_t k_width(const cache_model *model)
{
    return model->config.G * model->config.D;
}

static ptrdiff_t v_width(const cache_model *model)
{
    return model->config.G * model->config.Dv;
}

cache_model *model_new(const mha_cache *cache)
{
    cache_model *const model = take(1, sizeof *model);
    model->config = mha_cache_get_config(cache);
    for (ptrdiff_t s = 0; s < model->config.sequences; s++) {
        model->sequences[s].k = take((size_t)(MODEL_TOKENS * k_width(model)), sizeof(float));
        model->sequences[s].v = take((size_t)(MODEL_TOKENS * v_width(model)), sizeof(float));
    }
    return model;
}

void model_free(cache_model *model)
{
    for (ptrdiff_t s = 0; s < model->config.sequences; s++) {
        free(model->sequences[s].k);
        free(model->sequences[s].v);
    }
    free(model);
}

/* ------------------------------------------------------------------ rows ----- */

model_rows model_rows_new(test_random *random, mha_dtype type, ptrdiff_t B, ptrdiff_t L,
                          ptrdiff_t heads, ptrdiff_t width)
{
    const size_t count = (size_t)(B * L * heads * width);
    const bool rows_outside = test_random_below(random, 2) == 0;
    model_rows rows = {.type = type, .L = L, .heads = heads, .width = width};
    rows.data = take(count, sizeof(float));
    rows.exact = take(count, sizeof(float));
    rows.view = rows_outside ? mha_view_blhd(rows.data, heads, L, width)
                             : mha_view_bhld(rows.data, heads, L, width);
    for (ptrdiff_t n = 0; n < (ptrdiff_t)count; n++) {
        const ptrdiff_t c = n % width, g = n / width % heads, i = n / width / heads % L,
                        b = n / width / heads / L;
        const ptrdiff_t at = b * rows.view.sb + g * rows.view.sh + i * rows.view.sl + c;
        element_store(type, rows.data, at, (double)test_random_float(random) * 3);
        rows.exact[n] = (float)element_load(type, rows.data, at);
    }
    return rows;
}

void model_rows_free(model_rows *rows)
{
    free(rows->data);
    free(rows->exact);
}

static void round_i8(float *row, ptrdiff_t width)
{
    float most = 0.0f;
    for (ptrdiff_t c = 0; c < width; c++)
        most = fmaxf(most, fabsf(row[c]));
    const float scale = most / 127.0f;
    for (ptrdiff_t c = 0; c < width; c++)
        row[c] = scale > 0.0f ? (float)(int)nearbyintf(row[c] / scale) * scale : 0.0f;
}

void model_round(mha_dtype type, float *row, ptrdiff_t width)
{
    if (type == MHA_I8) {
        round_i8(row, width);
        return;
    }
    uint32_t stored[1];
    for (ptrdiff_t c = 0; c < width; c++) {
        element_store(type, stored, 0, (double)row[c]);
        row[c] = (float)element_load(type, stored, 0);
    }
}

/* ------------------------------------------------------------ operations ----- */

/* A ring keeps no more than its capacity. */
static void grow(cache_model *model, model_sequence *s, ptrdiff_t count)
{
    s->length += count;
    if (model->config.kind == MHA_CACHE_RING && s->length - model->config.capacity > s->first)
        s->first = s->length - model->config.capacity;
}

static void append_row(mha_dtype type, float *to, const model_rows *from, ptrdiff_t b, ptrdiff_t i)
{
    for (ptrdiff_t g = 0; g < from->heads; g++) {
        memcpy(to + g * from->width,
               from->exact + ((b * from->L + i) * from->heads + g) * from->width,
               (size_t)from->width * sizeof *to);
        model_round(type, to + g * from->width, from->width);
    }
}

void model_append(cache_model *model, ptrdiff_t sequence, ptrdiff_t count, const model_rows *k,
                  const model_rows *v, ptrdiff_t b)
{
    model_sequence *const s = &model->sequences[sequence];
    for (ptrdiff_t i = 0; i < count; i++) {
        append_row(model->config.k_type, s->k + (s->length + i) * k_width(model), k, b, i);
        append_row(model->config.v_type, s->v + (s->length + i) * v_width(model), v, b, i);
    }
    grow(model, s, count);
}

void model_truncate(cache_model *model, ptrdiff_t sequence, ptrdiff_t length)
{
    model->sequences[sequence].length = length;
    if (length == 0)
        model->sequences[sequence].first = 0;
}

/* Copy `count` tokens; the two ranges may overlap. */
static void move_tokens(const cache_model *model, model_sequence *to, ptrdiff_t at,
                        const model_sequence *from, ptrdiff_t first, ptrdiff_t count)
{
    const ptrdiff_t kw = k_width(model), vw = v_width(model);
    memmove(to->k + at * kw, from->k + first * kw, (size_t)(count * kw) * sizeof(float));
    memmove(to->v + at * vw, from->v + first * vw, (size_t)(count * vw) * sizeof(float));
}

void model_fork(cache_model *model, ptrdiff_t to, ptrdiff_t from)
{
    model_sequence *const x = &model->sequences[to];
    const model_sequence *const y = &model->sequences[from];
    move_tokens(model, x, 0, y, 0, y->length);
    x->length = y->length;
    x->first = y->first;
}

void model_copy(cache_model *model, ptrdiff_t to, ptrdiff_t from, ptrdiff_t first, ptrdiff_t count)
{
    model_sequence *const x = &model->sequences[to];
    move_tokens(model, x, x->length, &model->sequences[from], first, count);
    grow(model, x, count);
}

void model_remove(cache_model *model, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t count)
{
    model_sequence *const s = &model->sequences[sequence];
    move_tokens(model, s, first, s, first + count, s->length - first - count);
    s->length -= count;
}

void model_shift(cache_model *model, ptrdiff_t sequence, ptrdiff_t first, ptrdiff_t count,
                 const mha_rope *rope, ptrdiff_t delta)
{
    const ptrdiff_t D = model->config.D;
    if (delta == 0)
        return;
    for (ptrdiff_t n = first * model->config.G; n < (first + count) * model->config.G; n++) {
        float *const head = model->sequences[sequence].k + n * D;
        mhai_rope_row(head, rope, D, (double)delta);
        model_round(model->config.k_type, head, D);
    }
}

void model_reorder(cache_model *model, const int64_t *parents)
{
    cache_model old = *model;
    for (ptrdiff_t s = 0; s < model->config.sequences; s++) {
        const model_sequence *const parent = &old.sequences[parents[s]];
        model_sequence *const fresh = &model->sequences[s];
        fresh->k = take((size_t)(MODEL_TOKENS * k_width(model)), sizeof(float));
        fresh->v = take((size_t)(MODEL_TOKENS * v_width(model)), sizeof(float));
        move_tokens(model, fresh, 0, parent, 0, parent->length);
        fresh->length = parent->length;
        fresh->first = parent->first;
    }
    for (ptrdiff_t s = 0; s < model->config.sequences; s++) {
        free(old.sequences[s].k);
        free(old.sequences[s].v);
    }
}

/* --------------------------------------------------------------- compare ----- */

/* Tokens [first, first + count) of one array. */
static bool same_bits(const char *when, const char *what, ptrdiff_t sequence, const float *wanted,
                      const float *got, ptrdiff_t first, ptrdiff_t count, ptrdiff_t width)
{
    if (memcmp(wanted, got, (size_t)(count * width) * sizeof *got) == 0)
        return true;
    for (ptrdiff_t n = 0; n < count * width; n++)
        if (memcmp(wanted + n, got + n, sizeof *got) != 0)
            return CHECK(false, "%s: sequence %td, %s of token %td, number %td: %.9g, not %.9g",
                         when, sequence, what, first + n / width, n % width, (double)got[n],
                         (double)wanted[n]);
    return true;
}

bool model_agrees(const cache_model *model, const mha_cache *cache, ptrdiff_t sequence,
                  const char *when)
{
    const mha_cache_config *const c = &model->config;
    const model_sequence *const s = &model->sequences[sequence];
    const ptrdiff_t length = mha_cache_length(cache, sequence);
    const ptrdiff_t first = mha_cache_first(cache, sequence), count = s->length - s->first;
    if (!CHECK(length == s->length && first == s->first,
               "%s: sequence %td has tokens %td to %td, not %td to %td", when, sequence, first,
               length, s->first, s->length))
        return false;
    float *const k = take((size_t)(count * k_width(model)), sizeof(float));
    float *const v = take((size_t)(count * v_width(model)), sizeof(float));
    const mha_status status =
        mha_cache_read(cache, sequence, first, count, mha_out_blhd(k, c->G, count, c->D),
                       mha_out_blhd(v, c->G, count, c->Dv));
    bool same = CHECK(status == MHA_OK, "%s: read: %s", when, mha_status_string(status));
    same = same && same_bits(when, "key", sequence, s->k + first * k_width(model), k, first, count,
                             k_width(model));
    same = same && same_bits(when, "value", sequence, s->v + first * v_width(model), v, first,
                             count, v_width(model));
    free(k);
    free(v);
    return same;
}

bool model_agrees_all(const cache_model *model, const mha_cache *cache, const char *when)
{
    bool same = true;
    for (ptrdiff_t s = 0; s < model->config.sequences && same; s++)
        same = model_agrees(model, cache, s, when);
    return same;
}
