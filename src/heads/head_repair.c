/* SPDX-License-Identifier: MIT */
/*
 * Self-repair of each head of decoder and cross: all pairs are captured with the whole model, then
 * again with the head disabled, and the logits and direct effects of both are compared.
 */
#include "heads/head_repair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The captures of all pairs, with all heads or without one; rows of all pairs are consecutive. */
typedef struct effects {
    double *logit;     /* [rows] without the part that is due to the norm's bias */
    double *deviation; /* [rows] of the last norm */
    double *direct;    /* [heads] sum over the rows */
    /* [rows] NULL, or the deviations at which direct effects are taken instead of their own: so
     * that those of two models can be compared. */
    const double *held;
    int64_t rows;
} effects;

static int64_t count_rows(const head_pair *pairs, int count)
{
    int64_t rows = 0;
    for (int n = 0; n < count; n++)
        rows += pairs[n].words.count[CORPUS_FRENCH] + 1;
    return rows;
}

static bool allocate(effects *e, int heads, int64_t rows)
{
    e->logit = calloc((size_t)rows + 1, sizeof *e->logit);
    e->deviation = calloc((size_t)rows + 1, sizeof *e->deviation);
    e->direct = malloc((size_t)heads * sizeof *e->direct);
    return e->logit && e->deviation && e->direct;
}

static void release(const effects *e)
{
    free(e->logit);
    free(e->deviation);
    free(e->direct);
}

/* Appends the rows of one pair. */
static void add_capture(const transformer_config *config, const capture *c, effects *sum)
{
    double scale[CORPUS_TOKENS_MAX] = {0}; /* translator_longest() is at most that */
    for (int row = 0; row < c->target_count; row++) {
        const int64_t at = sum->rows + row;
        sum->logit[at] = c->logit[row] - c->norm_logit[row];
        sum->deviation[at] = c->deviation[row];
        scale[row] = sum->held ? c->deviation[row] / sum->held[at] : 1.0;
    }
    sum->rows += c->target_count;
    for (int head = 0; head < head_count(head_shape_of(config)); head++) {
        const head_name name = head_at(head_shape_of(config), head);
        const capture_heads *const h = &c->kind[name.kind];
        if (name.kind == ATTENTION_ENCODER)
            continue;
        const float *const direct =
            h->direct + (ptrdiff_t)(name.layer * h->heads + name.head) * h->rows;
        for (int row = 0; row < h->rows; row++)
            sum->direct[head] += (double)direct[row] * scale[row];
    }
}

/* Fills `sum` with the captures of all pairs. */
static mha_status measure(const translator *model, const head_pair *pairs, int count,
                          mha_pool *pool, const capture_options *options, effects *sum)
{
    const transformer_config *const config = translator_config(model);
    memset(sum->direct, 0, (size_t)head_count(head_shape_of(config)) * sizeof *sum->direct);
    sum->rows = 0;
    for (int n = 0; n < count; n++) {
        capture *const c = head_capture(model, &pairs[n], options, pool);
        if (!c)
            return MHA_ERR_MEMORY;
        add_capture(config, c, sum);
        capture_free(c);
    }
    return MHA_OK;
}

/* `disabled` is the model without `head`, with plain->deviation as its `held`. */
static head_repair compare(const effects *plain, const effects *disabled, int head, int heads)
{
    const double rows = (double)plain->rows;
    head_repair repair = {.direct = plain->direct[head] / rows, .helper = -1};
    double held = 0.0; /* the decrease at the deviations of the whole model */
    for (int64_t row = 0; row < plain->rows; row++) {
        const double scale = disabled->deviation[row] / plain->deviation[row];
        repair.lost += (plain->logit[row] - disabled->logit[row]) / rows;
        held += (plain->logit[row] - disabled->logit[row] * scale) / rows;
    }
    repair.known = fabs(repair.direct) >= REPAIR_DIRECT_MIN;
    repair.repair = repair.known ? 1.0 - repair.lost / repair.direct : NAN;
    repair.norm = repair.known ? (held - repair.lost) / repair.direct : NAN;
    for (int n = 0; n < heads; n++) {
        const double more = (disabled->direct[n] - plain->direct[n]) / rows;
        if (n != head && more > repair.help) {
            repair.help = more;
            repair.helper = n;
        }
    }
    return repair;
}

/* Fills `disabled` with the captures of all pairs without one head. */
static mha_status measure_head(const translator *model, const head_pair *pairs, int count,
                               mha_pool *pool, head_name name, effects *disabled)
{
    const transformer_config *const config = translator_config(model);
    uint8_t *const changes = calloc(
        (size_t)attention_kind_layers(config, name.kind) * (size_t)config->heads, sizeof *changes);
    if (!changes)
        return MHA_ERR_MEMORY;
    changes[name.layer * config->heads + name.head] = HEAD_ZERO;
    capture_options options = {.vectors = true};
    options.changes[name.kind] = changes;
    const mha_status status = measure(model, pairs, count, pool, &options, disabled);
    free(changes);
    return status;
}

mha_status head_repair_measure(const translator *model, const head_pair *pairs, int count,
                               mha_pool *pool, head_repair *repairs,
                               void (*watch)(int done, int count))
{
    static const capture_options whole = {.vectors = true};
    const transformer_config *const config = translator_config(model);
    const int heads = head_count(head_shape_of(config));
    const int64_t rows = count_rows(pairs, count);
    effects plain = {0}, disabled = {0};
    mha_status status = MHA_ERR_MEMORY;
    if (allocate(&plain, heads, rows) && allocate(&disabled, heads, rows))
        status = MHA_OK;
    disabled.held = plain.deviation;
    if (status == MHA_OK)
        status = measure(model, pairs, count, pool, &whole, &plain);
    for (int head = 0; head < heads && status == MHA_OK; head++) {
        const head_name name = head_at(head_shape_of(config), head);
        repairs[head] = (head_repair){.repair = NAN, .norm = NAN, .helper = -1};
        if (name.kind == ATTENTION_ENCODER)
            continue;
        status = measure_head(model, pairs, count, pool, name, &disabled);
        if (status == MHA_OK)
            repairs[head] = compare(&plain, &disabled, head, heads);
        if (watch)
            watch(head + 1, heads);
    }
    release(&plain);
    release(&disabled);
    return status;
}
