/* SPDX-License-Identifier: MIT */
/*
 * Two answers for every gradient: in double precision, with sizes of errors, from the rows of
 * problem/oracle.h; and naively in f32. Masks and positions are those of problem/problem_masks.h.
 */
#include "support/backward_oracle.h"

#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- answers */

static double *doubles(ptrdiff_t count)
{
    double *const array = calloc((size_t)count + 1, sizeof *array);
    if (!array)
        abort();
    return array;
}

ptrdiff_t gradient_count(const gradient *g)
{
    return g->n[0] * g->n[1] * g->n[2] * g->n[3];
}

ptrdiff_t gradient_index(const gradient *g, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    return ((b * g->n[1] + h) * g->n[2] + i) * g->n[3] + j;
}

gradient gradient_new(const ptrdiff_t n[4])
{
    gradient g = {.n = {n[0], n[1], n[2], n[3]}};
    g.x = doubles(gradient_count(&g));
    g.size = doubles(gradient_count(&g));
    return g;
}

void gradient_free(gradient *g)
{
    free(g->x);
    free(g->size);
}

static backward_answer answer_new(const attention_call *p)
{
    const mha_shape *const s = &p->shape;
    const ptrdiff_t G = call_groups(p), Dv = call_value_width(p);
    const ptrdiff_t n[GRAD_COUNT][4] = {
        [GRAD_Q] = {s->B, s->H, s->L, s->D}, [GRAD_K] = {s->B, G, s->S, s->D},
        [GRAD_V] = {s->B, G, s->S, Dv},      [GRAD_BIAS] = {s->B, s->H, s->L, s->S},
        [GRAD_ALIBI] = {1, 1, 1, s->H},      [GRAD_SINKS] = {1, 1, 1, s->H},
        [GRAD_GATES] = {s->B, 1, 1, s->H},
    };
    backward_answer answer;
    for (int id = 0; id < GRAD_COUNT; id++)
        answer.of[id] = gradient_new(n[id]);
    return answer;
}

void backward_answer_free(backward_answer *answer)
{
    for (int id = 0; id < GRAD_COUNT; id++)
        gradient_free(&answer->of[id]);
}

/* ----------------------------------------------------------------- inputs */

typedef struct place {
    ptrdiff_t b, h, g, i;
} place;

static double distance(const attention_call *p, const place *at, ptrdiff_t j)
{
    return fabs((double)(at->i + call_offset(p, at->b) - j));
}

static double q_of(const attention_call *p, const place *at, ptrdiff_t c)
{
    const ptrdiff_t row = call_row_index(&p->q, p->options.q_starts, at->b, at->h, at->i);
    return number_get(p->shape.q_type, p->q.data, row + c);
}

static double k_of(const attention_call *p, const place *at, ptrdiff_t j, ptrdiff_t c)
{
    const ptrdiff_t row = call_row_index(&p->k, p->options.k_starts, at->b, at->g, j);
    return number_get(p->shape.k_type, p->k.data, row + c);
}

static double v_of(const attention_call *p, const place *at, ptrdiff_t j, ptrdiff_t c)
{
    const ptrdiff_t row = call_row_index(&p->v, p->options.k_starts, at->b, at->g, j);
    return number_get(p->shape.v_type, p->v.data, row + c);
}

static double o_of(const attention_call *p, const place *at, ptrdiff_t c)
{
    const mha_view o = call_view_of(&p->o);
    const ptrdiff_t row = call_row_index(&o, p->options.q_starts, at->b, at->h, at->i);
    return number_get(p->shape.o_type, o.data, row + c);
}

static double d_o_of(const backward_problem *p, const place *at, ptrdiff_t c)
{
    const int64_t *const starts = p->forward.options.q_starts;
    const ptrdiff_t row = call_row_index(&p->d_o, starts, at->b, at->h, at->i);
    return number_get(p->d_o_type, p->d_o.data, row + c);
}

static double d_lse_of(const backward_problem *p, const place *at)
{
    if (!p->d_lse.data)
        return 0;
    const int64_t *const starts = p->forward.options.q_starts;
    return number_get(p->d_lse_type, p->d_lse.data,
                      call_row_index(&p->d_lse, starts, at->b, at->h, at->i));
}

static bool allows(const attention_call *p, const place *at, ptrdiff_t j)
{
    return call_attends(p, at->b, at->h, at->i, j);
}

/* ---------------------------------------------------------------- dropout */

static void philox(uint32_t x[4], uint64_t seed)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 7; round++) {
        const uint64_t a = (uint64_t)0xd2511f53u * x[0], b = (uint64_t)0xcd9e8d57u * x[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
        for (int n = 0; n < 4; n++)
            x[n] = next[n];
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
}

bool oracle_keeps(uint64_t seed, double probability, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                  ptrdiff_t j)
{
    uint32_t x[4] = {(uint32_t)(j / 8), (uint32_t)i, (uint32_t)h, (uint32_t)b};
    philox(x, seed);
    return (x[j % 8 / 2] >> (j % 2 * 16) & 0xffff) >= probability * 65536;
}

/* What dropout multiplies the weight of key j with: 0 or 1 / (1 - probability). */
static double thinning(const attention_call *p, const place *at, ptrdiff_t j)
{
    const mha_options *const o = &p->options;
    const double probability = (double)o->dropout;
    if (!(o->flags & MHA_TRAINING) || probability == 0)
        return 1;
    return oracle_keeps(o->dropout_seed, probability, at->b, at->h, at->i, j)
               ? 1 / (1 - probability)
               : 0;
}

static double gate_of(const attention_call *p, const place *at)
{
    const mha_options *const o = &p->options;
    return o->gates ? (double)o->gates[at->b * o->gates_sb + at->h] : 1;
}

/* Call `row` for every row there is. */
static void for_rows(const backward_problem *p, backward_answer *answer,
                     void (*row)(const backward_problem *, const place *, backward_answer *))
{
    const mha_shape *const s = &p->forward.shape;
    for (ptrdiff_t b = 0; b < s->B && s->D > 0; b++)
        for (ptrdiff_t h = 0; h < s->H; h++)
            for (ptrdiff_t i = 0; i < call_queries(&p->forward, b); i++) {
                const place at = {b, h, call_group_of(&p->forward, h), i};
                row(p, &at, answer);
            }
}

/* ----------------------------------------------------------------- oracle */

static void grow(gradient *g, ptrdiff_t index, double x, double size)
{
    g->x[index] += x;
    g->size[index] += size;
}

/* d cap(score) / d score of key j. */
static double cap_slope(const attention_call *p, const place *at, ptrdiff_t j)
{
    const double cap = (double)p->options.softcap;
    if (cap == 0)
        return 1;
    double dot = 0;
    for (ptrdiff_t c = 0; c < p->shape.D; c++)
        dot += q_of(p, at, c) * k_of(p, at, j, c);
    const double slope = cosh(call_scale(p) * dot / cap);
    return 1 / (slope * slope);
}

/* d_o . v_j; *size grows by the magnitudes. */
static double weight_gradient(const backward_problem *p, const place *at, ptrdiff_t j, double *size)
{
    double dot = 0;
    for (ptrdiff_t c = 0; c < call_value_width(&p->forward); c++) {
        const double term = d_o_of(p, at, c) * v_of(&p->forward, at, j, c);
        dot += term;
        *size += fabs(term);
    }
    return dot;
}

/* Spread the gradient of the score of key j, and of its weight as gate and dropout leave it. */
static void oracle_pair(const backward_problem *p, const place *at, ptrdiff_t j, double weight,
                        double ds, double ds_size, double row_size, backward_answer *answer)
{
    const attention_call *const f = &p->forward;
    gradient *const of = answer->of;
    const double factor = call_scale(f) * cap_slope(f, at, j), size = fabs(call_scale(f)) * ds_size;
    for (ptrdiff_t c = 0; c < f->shape.D; c++) {
        const double q = q_of(f, at, c), k = k_of(f, at, j, c);
        grow(&of[GRAD_Q], gradient_index(&of[GRAD_Q], at->b, at->h, at->i, c), factor * ds * k,
             size * fabs(k));
        grow(&of[GRAD_K], gradient_index(&of[GRAD_K], at->b, at->g, j, c), factor * ds * q,
             size * fabs(q));
    }
    for (ptrdiff_t c = 0; c < call_value_width(f); c++) {
        const double term = weight * d_o_of(p, at, c);
        grow(&of[GRAD_V], gradient_index(&of[GRAD_V], at->b, at->g, j, c), term,
             row_size * fabs(term));
    }
    grow(&of[GRAD_BIAS], gradient_index(&of[GRAD_BIAS], at->b, at->h, at->i, j), ds, ds_size);
    grow(&of[GRAD_ALIBI], at->h, -ds * distance(f, at, j), ds_size * distance(f, at, j));
}

static void oracle_backward_row(const backward_problem *p, const place *at, backward_answer *answer)
{
    const attention_call *const f = &p->forward;
    const double d_lse = d_lse_of(p, at);
    double *const dp = doubles(f->shape.S), *const dp_size = doubles(f->shape.S);
    oracle_row row;
    oracle_row_init(&row, f);
    oracle_row_compute(&row, f, at->b, at->h, at->i);
    const double row_size = row.lse_size;
    double d_gate = 0, d_gate_size = 0;
    for (ptrdiff_t j = 0; j < f->shape.S; j++)
        if (allows(f, at, j)) {
            const double thinned = row.weights[j] * thinning(f, at, j);
            dp[j] = weight_gradient(p, at, j, &dp_size[j]);
            d_gate += thinned * dp[j];
            d_gate_size += thinned * dp_size[j];
        }
    const double gate = gate_of(f, at), delta = gate * d_gate - d_lse;
    const double delta_size = fabs(gate) * d_gate_size + fabs(d_lse);
    for (ptrdiff_t j = 0; j < f->shape.S; j++)
        if (allows(f, at, j)) {
            const double weight = row.weights[j], factor = gate * thinning(f, at, j);
            oracle_pair(p, at, j, weight * factor, weight * (factor * dp[j] - delta),
                        weight * (fabs(factor) * dp_size[j] + delta_size) * row_size, row_size,
                        answer);
        }
    grow(&answer->of[GRAD_GATES], gradient_index(&answer->of[GRAD_GATES], at->b, 0, 0, at->h),
         d_gate, d_gate_size * row_size);
    if (f->options.sinks && row.attended > 0) {
        const double weight = exp((double)f->options.sinks[at->h] - row.lse);
        grow(&answer->of[GRAD_SINKS], at->h, -weight * delta, weight * delta_size * row_size);
    }
    oracle_row_free(&row);
    free(dp);
    free(dp_size);
}

backward_answer backward_oracle(const backward_problem *p)
{
    backward_answer answer = answer_new(&p->forward);
    for_rows(p, &answer, oracle_backward_row);
    return answer;
}

/* ------------------------------------------------------------------ naive */

/* Add in f32 to an element that is kept as a double. */
static void grow_narrow(double *x, float by)
{
    *x = (double)((float)*x + by);
}

/* The score of key j, and in *slope the derivative of its soft cap. */
static float naive_score(const attention_call *p, const place *at, ptrdiff_t j, float *slope)
{
    const mha_options *const o = &p->options;
    float score = 0;
    for (ptrdiff_t c = 0; c < p->shape.D; c++)
        score += (float)q_of(p, at, c) * (float)k_of(p, at, j, c);
    score *= (float)call_scale(p);
    *slope = 1;
    if (o->softcap != 0) {
        const float t = tanhf(score / o->softcap);
        score = o->softcap * t;
        *slope = 1 - t * t;
    }
    score += (float)call_addend(&o->bias, o->bias_type, at->b, at->h, at->i, j);
    score += (float)call_addend(&o->add_mask, o->add_mask_type, at->b, at->h, at->i, j);
    return o->alibi_slopes ? score - o->alibi_slopes[at->h] * (float)distance(p, at, j) : score;
}

static void naive_pair(const backward_problem *p, const place *at, ptrdiff_t j, float weight,
                       float ds, float slope, backward_answer *answer)
{
    const attention_call *const f = &p->forward;
    gradient *const of = answer->of;
    const float scaled = ds * slope * (float)call_scale(f);
    double *const d_q = of[GRAD_Q].x + gradient_index(&of[GRAD_Q], at->b, at->h, at->i, 0);
    double *const d_k = of[GRAD_K].x + gradient_index(&of[GRAD_K], at->b, at->g, j, 0);
    double *const d_v = of[GRAD_V].x + gradient_index(&of[GRAD_V], at->b, at->g, j, 0);
    for (ptrdiff_t c = 0; c < f->shape.D; c++) {
        grow_narrow(&d_q[c], scaled * (float)k_of(f, at, j, c));
        grow_narrow(&d_k[c], scaled * (float)q_of(f, at, c));
    }
    for (ptrdiff_t c = 0; c < call_value_width(f); c++)
        grow_narrow(&d_v[c], weight * (float)d_o_of(p, at, c));
    of[GRAD_BIAS].x[gradient_index(&of[GRAD_BIAS], at->b, at->h, at->i, j)] = (double)ds;
    grow_narrow(&of[GRAD_ALIBI].x[at->h], -ds * (float)distance(f, at, j));
}

/* From scores to weights, which replace them; the weight of the sink comes back. Keys that are not
 * attended to have -inf. */
static float naive_softmax(const attention_call *p, const place *at, float *scores)
{
    const float sink = p->options.sinks ? p->options.sinks[at->h] : -INFINITY;
    float top = sink;
    for (ptrdiff_t j = 0; j < p->shape.S; j++)
        top = fmaxf(top, scores[j]);
    float sum = expf(sink - top);
    for (ptrdiff_t j = 0; j < p->shape.S; j++)
        sum += scores[j] = expf(scores[j] - top);
    for (ptrdiff_t j = 0; j < p->shape.S; j++)
        scores[j] /= sum;
    return expf(sink - top) / sum;
}

static float naive_weight_gradient(const backward_problem *p, const place *at, ptrdiff_t j)
{
    float dot = 0;
    for (ptrdiff_t c = 0; c < call_value_width(&p->forward); c++)
        dot += (float)d_o_of(p, at, c) * (float)v_of(&p->forward, at, j, c);
    return dot;
}

static void naive_row(const backward_problem *p, const place *at, backward_answer *answer)
{
    const attention_call *const f = &p->forward;
    float *const weights = calloc(2 * (size_t)f->shape.S + 1, sizeof *weights);
    if (!weights)
        abort();
    float *const slopes = weights + f->shape.S;
    bool any = false;
    for (ptrdiff_t j = 0; j < f->shape.S; j++) {
        const bool allowed = allows(f, at, j);
        weights[j] = allowed ? naive_score(f, at, j, &slopes[j]) : -INFINITY;
        any = any || allowed;
    }
    const float sink = any ? naive_softmax(f, at, weights) : 0;
    float delta = -(float)d_lse_of(p, at);
    for (ptrdiff_t c = 0; any && c < call_value_width(f); c++)
        delta += (float)d_o_of(p, at, c) * (float)o_of(f, at, c);
    float d_gate = 0;
    for (ptrdiff_t j = 0; any && j < f->shape.S; j++)
        if (allows(f, at, j)) {
            const float dp = naive_weight_gradient(p, at, j) * (float)thinning(f, at, j);
            const float gate = (float)gate_of(f, at);
            const float ds = weights[j] * (gate * dp - delta);
            naive_pair(p, at, j, weights[j] * gate * (float)thinning(f, at, j), ds, slopes[j],
                       answer);
            d_gate += weights[j] * dp;
        }
    gradient *const gates = &answer->of[GRAD_GATES];
    grow_narrow(&gates->x[gradient_index(gates, at->b, 0, 0, at->h)], d_gate);
    if (any)
        grow_narrow(&answer->of[GRAD_SINKS].x[at->h], -sink * delta);
    free(weights);
}

backward_answer backward_naive(const backward_problem *p)
{
    backward_answer answer = answer_new(&p->forward);
    for_rows(p, &answer, naive_row);
    return answer;
}
