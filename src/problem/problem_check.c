/* SPDX-License-Identifier: MIT */
#include "problem/problem_check.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "problem/attends.h"
#include "problem/compare.h"
#include "problem/oracle.h"

/* The f64 path and the row model each have errors of their own. */
#define F64_LIMIT 64.0

/* One set of outputs under test: those of the problem, or of its f64 twin. */
typedef struct subject {
    const problem *p;
    const char *name;
    double u, tiny, limit; /* unit roundoff, smallest normal number, largest E */
    double output, lse, weights;
    uint8_t *expected[3]; /* of o, lse, weights: 1 where an element must be written */
} subject;

typedef struct checker {
    subject subjects[2];
    row_model row;
    double *want, *bound; /* one row of averaged weights */
    check_result *result;
} checker;

__attribute__((format(printf, 2, 3))) static void blame(check_result *result, const char *format,
                                                        ...)
{
    if (result->failed)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(result->what, sizeof result->what, format, list);
    va_end(list);
    result->failed = true;
}

/* ------------------------------------------------- what must be written ----- */

static void mark(const tensor *t, uint8_t *map, ptrdiff_t index)
{
    if (t->block != NULL)
        map[index] = 1;
}

static bool untouched(const tensor *t, ptrdiff_t index)
{
    const size_t size = mha_dtype_size(t->type);
    const uint8_t *bytes = (const uint8_t *)t->block + (size_t)index * size;
    for (size_t n = 0; n < size; n++)
        if (bytes[n] != PROBLEM_UNTOUCHED)
            return false;
    return true;
}

static void check_untouched(checker *c, const subject *s, const tensor *t, const uint8_t *map,
                            const char *name)
{
    for (ptrdiff_t n = 0; t->block != NULL && n < t->count; n++) {
        if (!map[n] && !untouched(t, n)) {
            blame(c->result, "%s %s: element %td outside the result was written", s->name, name, n);
            return;
        }
    }
}

/* ------------------------------------------------------------- one value ----- */

typedef struct place {
    const char *name;
    ptrdiff_t b, h, i, at;
} place;

static void check_value(checker *c, subject *s, const tensor *t, uint8_t *map, ptrdiff_t index,
                        double want, double bound, double allowance, double *worst, place at)
{
    const double got = element_load(t->type, t->block, index);
    const double near = fmax(fabs(got), fabs(want));
    const double e = compare_error(got, want, bound, allowance + compare_half_ulp(t->type, near));
    mark(t, map, index);
    *worst = fmax(*worst, e);
    if (!(e <= s->limit))
        blame(c->result, "%s %s of b=%td h=%td i=%td at %td: %.9g instead of %.9g, E = %.3g",
              s->name, at.name, at.b, at.h, at.i, at.at, got, want, e);
}

static void check_output(checker *c, subject *s, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const row_model *row = &c->row;
    for (ptrdiff_t n = 0; n < s->p->shape.Dv; n++) {
        const double bound = s->u * row->output_magnitude[n] * (1.0 + row->magnitude);
        check_value(c, s, &s->p->o, s->expected[0], problem_o_index(s->p, b, h, i, n),
                    row->output[n], bound, s->tiny * row->value_magnitude[n], &s->output,
                    (place){"output", b, h, i, n});
    }
}

static void check_lse(checker *c, subject *s, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const row_model *row = &c->row;
    if (s->p->lse.block == NULL)
        return;
    const double size = isfinite(row->lse) ? fabs(row->lse) : 0.0;
    check_value(c, s, &s->p->lse, s->expected[1], problem_lse_index(s->p, b, h, i), row->lse,
                s->u * (1.0 + row->magnitude + size), 0.0, &s->lse,
                (place){"log-sum-exp", b, h, i, 0});
}

/* --------------------------------------------------------------- weights ----- */

/* What the weights output shows for key j, and the unit of its error. */
static double wanted_weight(const row_model *row, mha_weights_mode mode, ptrdiff_t j, double u,
                            double *bound)
{
    const bool inside = j < row->keys;
    *bound = inside ? u * (1.0 + row->magnitudes[j]) : 0.0;
    switch (mode) {
    case MHA_WEIGHTS_RAW:
        return inside ? row->raw[j] : 0.0;
    case MHA_WEIGHTS_SOFTCAP:
        return inside ? row->capped[j] : 0.0;
    case MHA_WEIGHTS_BIAS:
        return inside ? row->score[j] : -(double)INFINITY;
    case MHA_WEIGHTS_SOFTMAX:
        break;
    }
    *bound = inside ? u * row->weight[j] * (1.0 + row->magnitude) : 0.0;
    return inside ? row->weight[j] : 0.0;
}

/* Where `value` stands in the list of chosen ones; -1 if it does not. */
static ptrdiff_t chosen(const int64_t *list, ptrdiff_t count, ptrdiff_t value)
{
    if (list == NULL)
        return value;
    for (ptrdiff_t n = 0; n < count; n++)
        if (list[n] == value)
            return n;
    return -1;
}

static void check_weights_row(checker *c, subject *s, ptrdiff_t head, ptrdiff_t row, place at)
{
    const problem *p = s->p;
    for (ptrdiff_t j = 0; j < p->shape.S; j++) {
        at.at = j;
        check_value(c, s, &p->weights, s->expected[2],
                    tensor_index(&p->weights, at.b, head, row, j), c->want[j], c->bound[j], s->tiny,
                    &s->weights, at);
    }
}

static void check_weights(checker *c, subject *s, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const mha_options *o = &s->p->options;
    const ptrdiff_t head = chosen(o->weights_heads, o->weights_head_count, h);
    const ptrdiff_t row = chosen(o->weights_rows, o->weights_row_count, i);
    if (s->p->weights.block == NULL || (o->flags & MHA_AVERAGE_WEIGHTS) || head < 0 || row < 0)
        return;
    for (ptrdiff_t j = 0; j < s->p->shape.S; j++)
        c->want[j] = wanted_weight(&c->row, o->weights_mode, j, s->u, &c->bound[j]);
    check_weights_row(c, s, head, row, (place){"weights", b, h, i, 0});
}

/* The mean over the chosen heads of one row; needs the model of every head again. */
static void check_average(checker *c, subject *s, ptrdiff_t b, ptrdiff_t i)
{
    const problem *p = s->p;
    const mha_options *o = &p->options;
    const ptrdiff_t row = chosen(o->weights_rows, o->weights_row_count, i);
    if (p->weights.block == NULL || !(o->flags & MHA_AVERAGE_WEIGHTS) || row < 0)
        return;
    const double heads = (double)(o->weights_heads ? o->weights_head_count : p->shape.H);
    memset(c->want, 0, (size_t)p->shape.S * sizeof *c->want);
    memset(c->bound, 0, (size_t)p->shape.S * sizeof *c->bound);
    for (ptrdiff_t h = 0; h < p->shape.H; h++) {
        if (chosen(o->weights_heads, o->weights_head_count, h) < 0)
            continue;
        row_model_compute(&c->row, c->subjects[0].p, c->subjects[1].p, b, h, i);
        for (ptrdiff_t j = 0; j < p->shape.S; j++) {
            double bound;
            const double want = wanted_weight(&c->row, o->weights_mode, j, s->u, &bound);
            c->want[j] += want / heads;
            /* The sum over heads rounds once more for every head. */
            c->bound[j] += bound / heads + (isfinite(want) ? s->u * fabs(want) : 0.0);
        }
    }
    check_weights_row(c, s, 0, row, (place){"averaged weights", b, -1, i, 0});
}

/* ----------------------------------------------------------------- whole ----- */

static void check_rows(checker *c)
{
    const problem *p = c->subjects[0].p, *twin = c->subjects[1].p;
    /* Heads of width 0: nothing is computed and nothing written. */
    for (ptrdiff_t b = 0; p->shape.D > 0 && b < p->shape.B; b++) {
        for (ptrdiff_t i = 0; i < problem_queries(p, b); i++) {
            for (ptrdiff_t h = 0; h < p->shape.H; h++) {
                row_model_compute(&c->row, p, twin, b, h, i);
                for (int n = 0; n < 2; n++) {
                    check_output(c, &c->subjects[n], b, h, i);
                    check_lse(c, &c->subjects[n], b, h, i);
                    check_weights(c, &c->subjects[n], b, h, i);
                }
            }
            for (int n = 0; n < 2; n++)
                check_average(c, &c->subjects[n], b, i);
        }
    }
}

static bool prepare(checker *c)
{
    const size_t S = (size_t)c->subjects[0].p->shape.S + 1;
    c->want = calloc(S, sizeof *c->want);
    c->bound = calloc(S, sizeof *c->bound);
    bool ok = row_model_create(&c->row, c->subjects[0].p) && c->want != NULL && c->bound != NULL;
    for (int n = 0; n < 2; n++) {
        const problem *p = c->subjects[n].p;
        const tensor *const outputs[] = {&p->o, &p->lse, &p->weights};
        for (int t = 0; t < 3; t++) {
            c->subjects[n].expected[t] = calloc((size_t)outputs[t]->count + 1, 1);
            ok = ok && c->subjects[n].expected[t] != NULL;
        }
    }
    return ok;
}

static void clean_up(checker *c)
{
    row_model_free(&c->row);
    free(c->want);
    free(c->bound);
    for (int n = 0; n < 2; n++)
        for (int t = 0; t < 3; t++)
            free(c->subjects[n].expected[t]);
}

static subject subject_of(const problem *p, const char *name)
{
    if (p->shape.q_type == MHA_F64)
        return (subject){.p = p, .name = name, .u = 0x1p-53, .tiny = DBL_MIN, .limit = F64_LIMIT};
    return (subject){
        .p = p, .name = name, .u = 0x1p-24, .tiny = (double)FLT_MIN, .limit = CHECK_LIMIT};
}

static void check_against_model(problem *p, problem *twin, check_result *result)
{
    checker c = {.subjects = {subject_of(p, "result"), subject_of(twin, "f64")}, .result = result};
    if (!prepare(&c)) {
        blame(result, "out of memory");
    } else {
        check_rows(&c);
        for (int n = 0; n < 2; n++) {
            const subject *s = &c.subjects[n];
            check_untouched(&c, s, &s->p->o, s->expected[0], "output");
            check_untouched(&c, s, &s->p->lse, s->expected[1], "log-sum-exp");
            check_untouched(&c, s, &s->p->weights, s->expected[2], "weights");
        }
    }
    result->output = c.subjects[0].output;
    result->lse = c.subjects[0].lse;
    result->weights = c.subjects[0].weights;
    result->f64 = fmax(c.subjects[1].output, fmax(c.subjects[1].lse, c.subjects[1].weights));
    clean_up(&c);
}

/* ------------------------------------------------------------- same bits ----- */

static void *copy_block(const tensor *t)
{
    void *copy = malloc(t->block != NULL ? tensor_bytes(t) : 1);
    if (copy != NULL && t->block != NULL)
        memcpy(copy, t->block, tensor_bytes(t));
    return copy;
}

static void check_bits(const tensor *t, const void *before, const char *name, const char *change,
                       check_result *result)
{
    if (t->block != NULL && memcmp(t->block, before, tensor_bytes(t)) != 0)
        blame(result, "%s: other bits %s", name, change);
}

static bool run(problem *p, mha_pool *pool, bool planned, const char *name, check_result *result)
{
    char message[192] = "";
    p->options.message = message;
    p->options.message_size = sizeof message;
    problem_reset(p);
    const mha_status status = planned ? problem_attend_planned(p, pool) : problem_attend(p, pool);
    p->options.message = NULL;
    p->options.message_size = 0;
    if (status != MHA_OK)
        blame(result, "%s: %s (%s)", name, mha_status_string(status), message);
    return status == MHA_OK;
}

static void check_same_bits(problem *p, mha_pool *pool, check_result *result)
{
    void *o = copy_block(&p->o), *lse = copy_block(&p->lse), *weights = copy_block(&p->weights);
    if (o == NULL || lse == NULL || weights == NULL) {
        blame(result, "out of memory");
    } else if (run(p, pool, true, "planned run", result)) {
        check_bits(&p->o, o, "output", "with a plan and a pool", result);
        check_bits(&p->lse, lse, "log-sum-exp", "with a plan and a pool", result);
        check_bits(&p->weights, weights, "weights", "with a plan and a pool", result);
        const mha_options options = p->options;
        p->options.lse = p->options.weights = (mha_out){0};
        p->options.statistics = NULL;
        if (run(p, pool, false, "run without extra outputs", result))
            check_bits(&p->o, o, "output", "without log-sum-exp, weights and statistics", result);
        p->options = options;
    }
    free(o);
    free(lse);
    free(weights);
}

void check_problem(problem *p, mha_pool *pool, check_result *result)
{
    problem twin;
    memset(result, 0, sizeof *result);
    if (!problem_twin(&twin, p)) {
        blame(result, "out of memory");
        return;
    }
    if (run(p, NULL, false, "run", result) && run(&twin, pool, false, "f64 run", result))
        check_against_model(p, &twin, result);
    problem_free(&twin);
    if (!result->failed)
        check_same_bits(p, pool, result);
}
