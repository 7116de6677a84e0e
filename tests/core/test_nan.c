/* SPDX-License-Identifier: MIT */
/*
 * NaN and infinity: a masked key or value is unread, whatever it holds; an attended one shows in
 * exactly the rows that attend to it; an empty row is 0, never NaN.
 */
#include "support/problems.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 8, OUTPUTS = FEATURE_LSE | FEATURE_PLAIN_WEIGHTS };

/* A random shape with logits small enough that no attended weight underflows to 0. */
static problem_spec spec_with(uint64_t seed, unsigned features)
{
    problem_spec spec = problem_spec_random(seed, 2e5);
    spec.logits = spec.logits > 2 ? 2 : spec.logits;
    spec.features = features | OUTPUTS | (spec.features & FEATURE_STRIDES);
    return spec;
}

/* ------------------------------------------------------------- poisoning */

/* Which rows of k and v hold poison: one flag per row of the tensor. */
typedef struct poison {
    bool *flags;
    const tensor *keys;
} poison;

static bool *flag(const poison *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t row)
{
    return &p->flags[(b * p->keys->n[1] + g) * p->keys->n[2] + row];
}

/* Fill about one in `rarity` rows of `id` with `value`. */
static poison poison_rows(problem *c, tensor_id id, double value, int64_t rarity)
{
    const tensor *const t = &c->tensors[id];
    test_random random = {c->spec.seed};
    poison p = {calloc((size_t)(t->n[0] * t->n[1] * t->n[2]) + 1, 1), &c->tensors[TENSOR_K]};
    if (!p.flags)
        abort();
    for (ptrdiff_t r = 0; r < t->n[0] * t->n[1] * t->n[2]; r++) {
        const ptrdiff_t row = r % t->n[2], g = r / t->n[2] % t->n[1], b = r / t->n[2] / t->n[1];
        if (test_random_below(&random, rarity) != 0)
            continue;
        *flag(&p, b, g, row) = true;
        for (ptrdiff_t j = 0; j < t->n[3]; j++)
            problem_set(c, id, b, g, row, j, value);
    }
    return p;
}

/* Whether query i attends to a poisoned key. */
static bool reached(const problem *c, const poison *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const attention_call *const call = &c->call;
    const int64_t *const starts = call->options.k_starts;
    const ptrdiff_t g = h / (call->shape.H / call_groups(call));
    for (ptrdiff_t j = 0; j < call_keys(call, b); j++) {
        const bool here = starts ? *flag(p, 0, g, (ptrdiff_t)starts[b] + j) : *flag(p, b, g, j);
        if (here && call_attends(call, b, h, i, j))
            return true;
    }
    return false;
}

static bool same_row(const problem *a, const problem *b, tensor_id id, ptrdiff_t x, ptrdiff_t h,
                     ptrdiff_t i)
{
    const tensor *const t = &a->tensors[id];
    return memcmp(tensor_at(t, x, h, i, 0), tensor_at(&b->tensors[id], x, h, i, 0),
                  (size_t)t->n[3] * t->element) == 0;
}

/* Rows out of reach have the bits of the clean case; if `shows`, rows in reach are all NaN. */
static void compare_rows(const problem *clean, const problem *dirty, const poison *p, bool shows,
                         const char *what)
{
    const attention_call *const call = &clean->call;
    const int64_t *const starts = call->options.q_starts;
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        for (ptrdiff_t n = 0; n < call->shape.H * call_queries(call, b); n++) {
            const ptrdiff_t h = n / call_queries(call, b), i = n % call_queries(call, b);
            const ptrdiff_t x = starts ? 0 : b, row = starts ? (ptrdiff_t)starts[b] + i : i;
            if (!reached(clean, p, b, h, i)) {
                CHECK(same_row(clean, dirty, TENSOR_O, x, h, row) &&
                          same_row(clean, dirty, TENSOR_LSE, x, h, row) &&
                          same_row(clean, dirty, TENSOR_WEIGHTS, b, h, i),
                      "%s shows in row (%td,%td,%td): %s", what, b, h, i, clean->name);
                continue;
            }
            for (ptrdiff_t c = 0; shows && c < call_value_width(call); c++)
                CHECK(isnan(problem_get(dirty, TENSOR_O, x, h, row, c)),
                      "%s does not show in row (%td,%td,%td): %s", what, b, h, i, clean->name);
        }
    }
}

static void check_poison(const problem_spec *spec, tensor_id id, double value)
{
    problem *const clean = problem_new(spec), *const dirty = problem_new(spec);
    const poison p = poison_rows(dirty, id, value, 1 + (int64_t)spec->seed % 9);
    problem_run(clean, NULL);
    problem_run(dirty, NULL);
    char what[40];
    snprintf(what, sizeof what, "%g in %s", value, id == TENSOR_K ? "a key" : "a value");
    compare_rows(clean, dirty, &p, isnan(value), what);
    free(p.flags);
    problem_delete(clean);
    problem_delete(dirty);
}

static void check_masked(unsigned features, uint64_t seed)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 1e30};
    const problem_spec spec = spec_with(seed, features);
    for (int n = 0; n < 4; n++) {
        check_poison(&spec, TENSOR_K, values[n]);
        check_poison(&spec, TENSOR_V, values[n]);
    }
}

static void check_kind(unsigned features)
{
    const uint64_t base = test_seed(80000);
    for (int64_t n = 0; n < test_effort(12); n++)
        check_masked(features, base + (uint64_t)n);
}

static void causal_future(void)
{
    check_kind(FEATURE_CAUSAL);
    check_kind(FEATURE_CAUSAL | FEATURE_OFFSET);
}

static void outside_the_window(void)
{
    check_kind(FEATURE_WINDOW | FEATURE_OFFSET);
}

static void not_attended(void)
{
    check_kind(FEATURE_ATTEND);
}

static void ignored(void)
{
    check_kind(FEATURE_IGNORE);
}

static void minus_infinity_added(void)
{
    check_kind(FEATURE_ADD | FEATURE_MASK_TYPES);
    check_kind(FEATURE_BIAS | FEATURE_MASK_TYPES);
    check_kind(FEATURE_BIAS | FEATURE_ADD | FEATURE_SOFTCAP);
}

static void past_the_length(void)
{
    check_kind(FEATURE_K_LENGTHS);
    check_kind(FEATURE_K_LENGTHS | FEATURE_Q_LENGTHS | FEATURE_CAUSAL);
}

static void packed_neighbours(void)
{
    check_kind(FEATURE_PACKED);
    check_kind(FEATURE_PACKED | FEATURE_K_LENGTHS | FEATURE_CAUSAL);
}

static void other_documents(void)
{
    check_kind(FEATURE_DOCUMENTS);
    check_kind(FEATURE_DOCUMENTS | FEATURE_PACKED);
}

static void everything_at_once(void)
{
    check_kind(FEATURE_MASKS | FEATURE_PACKED | FEATURE_ALIBI | FEATURE_SINKS | FEATURE_SOFTCAP);
}

/* Whole leading and trailing parts of long rows masked and poisoned. */
static void long_masked_parts(void)
{
    static const ptrdiff_t L[] = {1, 4, 30};
    for (int64_t n = 0; n < test_effort(12); n++) {
        const problem_spec spec = {
            .shape = {.B = 1, .H = 4, .G = 2, .L = L[n % 3], .S = 1500 + 97 * n, .D = 24},
            .features = OUTPUTS | FEATURE_ATTEND,
            .seed = 9 * (uint64_t)n,
        };
        problem *const clean = problem_new(&spec), *const dirty = problem_new(&spec);
        const ptrdiff_t first = 600 + 40 * n, last = spec.shape.S - 301;
        for (ptrdiff_t r = 0; r < 4 * spec.shape.L; r++)
            for (ptrdiff_t j = 0; j < spec.shape.S; j++) {
                const double on = j >= first && j < last;
                problem_set(clean, TENSOR_ATTEND, 0, r / spec.shape.L, r % spec.shape.L, j, on);
                problem_set(dirty, TENSOR_ATTEND, 0, r / spec.shape.L, r % spec.shape.L, j, on);
            }
        for (ptrdiff_t j = 0; j < spec.shape.S; j++)
            for (ptrdiff_t x = 0; (j < first || j >= last) && x < 2 * 24; x++) {
                problem_set(dirty, TENSOR_K, 0, x / 24, j, x % 24, NAN);
                problem_set(dirty, TENSOR_V, 0, x / 24, j, x % 24, j % 2 ? NAN : INFINITY);
            }
        problem_run(clean, NULL);
        problem_expect(clean, LIMIT);
        problem_run(dirty, NULL);
        CHECK(tensors_same(&clean->tensors[TENSOR_O], &dirty->tensors[TENSOR_O]) &&
                  tensors_same(&clean->tensors[TENSOR_LSE], &dirty->tensors[TENSOR_LSE]) &&
                  tensors_same(&clean->tensors[TENSOR_WEIGHTS], &dirty->tensors[TENSOR_WEIGHTS]),
              "keys outside [%td,%td) show", first, last);
        problem_delete(clean);
        problem_delete(dirty);
    }
}

/* NaN and inf in a bias or additive mask count for nothing where another mask rules the key out. */
static void masked_bias_is_unread(void)
{
    for (int64_t n = 0; n < test_effort(30); n++) {
        const unsigned masks[] = {FEATURE_CAUSAL | FEATURE_OFFSET, FEATURE_ATTEND,
                                  FEATURE_K_LENGTHS, FEATURE_DOCUMENTS,
                                  FEATURE_WINDOW | FEATURE_IGNORE};
        const problem_spec spec =
            spec_with(82000 + (uint64_t)n, FEATURE_BIAS | FEATURE_ADD | masks[n % 5]);
        problem *const clean = problem_new(&spec), *const dirty = problem_new(&spec);
        const mha_shape *const s = &spec.shape;
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L * s->S; r++) {
            const ptrdiff_t j = r % s->S, i = r / s->S % s->L, h = r / s->S / s->L % s->H;
            const ptrdiff_t b = r / s->S / s->L / s->H;
            if (call_attends(&clean->call, b, h, i, j))
                continue;
            /* One of the two may be the mask itself. */
            if (problem_get(dirty, TENSOR_ADD, b, h, i, j) != -INFINITY)
                problem_set(dirty, TENSOR_ADD, b, h, i, j, j % 2 ? NAN : INFINITY);
            else if (problem_get(dirty, TENSOR_BIAS, b, h, i, j) != -INFINITY)
                problem_set(dirty, TENSOR_BIAS, b, h, i, j, j % 2 ? INFINITY : NAN);
        }
        problem_run(clean, NULL);
        problem_run(dirty, NULL);
        CHECK(tensors_same(&clean->tensors[TENSOR_O], &dirty->tensors[TENSOR_O]) &&
                  tensors_same(&clean->tensors[TENSOR_LSE], &dirty->tensors[TENSOR_LSE]) &&
                  tensors_same(&clean->tensors[TENSOR_WEIGHTS], &dirty->tensors[TENSOR_WEIGHTS]),
              "NaN in a masked bias shows: %s", clean->name);
        problem_delete(clean);
        problem_delete(dirty);
    }
}

/* ------------------------------------------------------------- attended */

static void a_query_of_nan_is_its_own_row(void)
{
    for (int64_t n = 0; n < test_effort(30); n++) {
        const problem_spec spec = spec_with(83000 + (uint64_t)n, n % 2 ? FEATURE_CAUSAL : 0);
        problem *const clean = problem_new(&spec), *const dirty = problem_new(&spec);
        const mha_shape *const s = &spec.shape;
        const ptrdiff_t b = n % s->B, h = n % s->H, i = n % s->L;
        problem_set(dirty, TENSOR_Q, b, h, i, n % s->D, NAN);
        problem_run(clean, NULL);
        problem_run(dirty, NULL);
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L; r++) {
            const ptrdiff_t row = r % s->L, head = r / s->L % s->H, batch = r / s->L / s->H;
            const bool hit = row == i && head == h && batch == b;
            const bool empty = problem_get(clean, TENSOR_LSE, batch, head, row, 0) == -INFINITY;
            if (hit && !empty)
                CHECK(isnan(problem_get(dirty, TENSOR_O, batch, head, row, 0)) &&
                          isnan(problem_get(dirty, TENSOR_LSE, batch, head, row, 0)),
                      "NaN query is lost: %s", clean->name);
            else
                CHECK(same_row(clean, dirty, TENSOR_O, batch, head, row) &&
                          same_row(clean, dirty, TENSOR_LSE, batch, head, row) &&
                          same_row(clean, dirty, TENSOR_WEIGHTS, batch, head, row),
                      "NaN of another row shows: %s", clean->name);
        }
        problem_delete(clean);
        problem_delete(dirty);
    }
}

/* One infinite value: its column, and only that one, is infinite in the rows that attend. */
static void an_infinite_value_shows_in_its_column(void)
{
    for (int64_t n = 0; n < test_effort(30); n++) {
        problem_spec spec = spec_with(84000 + (uint64_t)n, FEATURE_CAUSAL | FEATURE_OFFSET);
        problem *const c = problem_new(&spec);
        const ptrdiff_t Dv = call_value_width(&c->call), j = n % spec.shape.S;
        problem_set(c, TENSOR_V, 0, 0, j, n % Dv, n % 2 ? INFINITY : -INFINITY);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

/* A small case with scores set through one coordinate: q = 1, k = score, no scale. */
static problem *score_case(ptrdiff_t L, ptrdiff_t S, const float *scores, unsigned features)
{
    const problem_spec spec = {
        .shape = {.B = 1, .H = 2, .G = 1, .L = L, .S = S, .D = 1, .Dv = 9},
        .features = features | FEATURE_LSE,
        .seed = 5,
    };
    problem *const c = problem_new(&spec);
    c->call.options.scale = 1;
    for (ptrdiff_t n = 0; n < 2 * L; n++)
        problem_set(c, TENSOR_Q, 0, n / L, n % L, 0, 1);
    for (ptrdiff_t j = 0; j < S; j++)
        problem_set(c, TENSOR_K, 0, 0, j, 0, (double)scores[j]);
    return c;
}

static bool all_nan(const problem *c)
{
    const ptrdiff_t *const n = c->tensors[TENSOR_O].n;
    for (ptrdiff_t r = 0; r < n[1] * n[2]; r++)
        for (ptrdiff_t j = 0; j < n[3]; j++)
            if (!isnan(problem_get(c, TENSOR_O, 0, r / n[2], r % n[2], j)))
                return false;
    return true;
}

static void fill(float *scores, ptrdiff_t from, ptrdiff_t to, float value)
{
    for (ptrdiff_t j = from; j < to; j++)
        scores[j] = value;
}

/* Scores of -inf that come from q.k are attended: a row of nothing else is NaN, not 0. */
static void only_minus_infinity_is_nan(void)
{
    static const ptrdiff_t S[] = {1, 7, 64, 700, 3000}, L[] = {1, 6, 40};
    static float scores[3000];
    fill(scores, 0, 3000, -INFINITY);
    for (int n = 0; n < 15; n++) {
        problem *const c = score_case(L[n / 5], S[n % 5], scores, 0);
        problem_run(c, NULL);
        CHECK(all_nan(c), "%td queries, %td keys: not NaN", L[n / 5], S[n % 5]);
        problem_delete(c);
    }
}

/* Long stretches of -inf beside finite scores weigh nothing. */
static void some_minus_infinity_is_no_weight(void)
{
    static const ptrdiff_t L[] = {1, 6, 40};
    static float scores[3000];
    for (int n = 0; n < 9; n++) {
        fill(scores, 0, 3000, -INFINITY);
        fill(scores, n % 3 * 1400 + 10, n % 3 * 1400 + 50, 0.5f);
        problem *const c = score_case(L[n / 3], 3000, scores, 0);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

/* Of a row whose keys all score -inf, weights are NaN, but for those of masked keys: with one block
 * of keys, where weights are made at once, and with two. */
static void masked_keys_of_a_row_of_nan(void)
{
    enum { ROWS = 2, MOST = 200 };
    static const ptrdiff_t extents[] = {5, 48, MOST};
    for (size_t n = 0; n < sizeof extents / sizeof extents[0]; n++) {
        const ptrdiff_t keys = extents[n];
        const float q[ROWS] = {1e30f, 0.0f};
        float k[MOST], o[ROWS], weights[ROWS * MOST];
        uint8_t ignored[MOST] = {0};
        for (ptrdiff_t j = 0; j < keys; j++)
            k[j] = -1e30f;
        ignored[3] = 1;
        const mha_shape shape = {.B = 1, .H = 1, .L = ROWS, .S = keys, .D = 1};
        const mha_options options = {.size = sizeof options,
                                     .ignore_mask = {ignored, 0, 0, 0},
                                     .weights = mha_out_bhld(weights, 1, ROWS, keys)};
        const mha_status status = mha_attention(
            &shape, mha_view_bhld(q, 1, ROWS, 1), mha_view_bhld(k, 1, keys, 1),
            mha_view_bhld(k, 1, keys, 1), mha_out_bhld(o, 1, ROWS, 1), &options, NULL);
        CHECK(status == MHA_OK && isnan(o[0]) && !isnan(o[1]), "%td keys: outputs", keys);
        for (ptrdiff_t j = 0; j < keys; j++)
            CHECK(j == 3 ? weights[j] == 0.0f : isnan(weights[j]), "%td keys: key %td is %g", keys,
                  j, (double)weights[j]);
    }
}

/* Rows of three tiles: those in the middle do not see a value that is NaN, and are done row by row.
 * What lies ready of V for the first must not be what they left. */
static void tiles_beside_one_that_hides_a_value(void)
{
    enum { ROWS = 144, TILE = 48, KEYS = 64, WIDTH = 3, HIDDEN = 5 };
    static float q[ROWS], k[KEYS], v[KEYS * WIDTH], o[ROWS * WIDTH];
    static uint8_t attends[ROWS * KEYS];
    memset(attends, 1, sizeof attends);
    for (int i = TILE; i < 2 * TILE; i++)
        attends[i * KEYS + HIDDEN] = 0;
    for (int c = 0; c < WIDTH; c++)
        v[HIDDEN * WIDTH + c] = NAN;
    const mha_shape shape = {.B = 1, .H = 1, .L = ROWS, .S = KEYS, .D = 1, .Dv = WIDTH};
    const mha_options options = {.size = sizeof options, .attend_mask = {attends, 0, 0, KEYS}};
    const mha_status status = mha_attention(
        &shape, mha_view_bhld(q, 1, ROWS, 1), mha_view_bhld(k, 1, KEYS, 1),
        mha_view_bhld(v, 1, KEYS, WIDTH), mha_out_bhld(o, 1, ROWS, WIDTH), &options, NULL);
    CHECK(status == MHA_OK, "status %d", (int)status);
    for (int i = 0; i < ROWS; i++)
        CHECK(isnan(o[i * WIDTH]) == (i < TILE || i >= 2 * TILE), "row %d is %g", i,
              (double)o[i * WIDTH]);
}

static void plus_infinity_is_nan(void)
{
    static const ptrdiff_t L[] = {1, 6, 40};
    static float scores[1500];
    for (int n = 0; n < 9; n++) {
        fill(scores, 0, 1500, 1);
        scores[n % 3 * 700] = INFINITY;
        problem *const c = score_case(L[n / 3], 1500, scores, 0);
        problem_run(c, NULL);
        CHECK(all_nan(c), "+inf as score %d: not NaN", n % 3 * 700);
        problem_delete(c);
    }
}

/* Softmax picks the largest of scores far apart, without overflow. */
static void logits_of_ten_thousand(void)
{
    static const ptrdiff_t L[] = {1, 6, 40};
    static float scores[1300];
    test_random random = {6};
    for (int n = 0; n < 30; n++) {
        for (ptrdiff_t j = 0; j < 1300; j++)
            scores[j] = n % 2 ? 1e4f * test_random_float(&random)
                              : (test_random_below(&random, 2) ? 1e4f : -1e4f);
        const ptrdiff_t S = 1 + (ptrdiff_t)test_random_below(&random, 1300);
        problem *const c = score_case(L[n % 3], S, scores, n % 5 ? 0 : FEATURE_SINKS);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

/* All scores equal and very negative, by q.k or by an additive mask: numbers, so the mean of v. */
static void very_negative_is_a_number(void)
{
    static const float lows[] = {-1e9f, -1e30f, -FLT_MAX};
    static const ptrdiff_t S[] = {1, 5, 64, 700};
    static float scores[700];
    for (int n = 0; n < 24; n++) {
        const float low = lows[n % 3];
        const ptrdiff_t keys = S[n / 3 % 4];
        fill(scores, 0, 700, n / 12 ? 0 : low);
        problem *const c = score_case(1 + n % 7, keys, scores, n / 12 ? FEATURE_ADD : 0);
        for (ptrdiff_t r = 0; n / 12 && r < 2 * c->call.shape.L * keys; r++)
            problem_set(c, TENSOR_ADD, 0, r / keys % 2, r / keys / 2, r % keys, (double)low);
        problem_run(c, NULL);
        double mean = 0, size = 0;
        for (ptrdiff_t j = 0; j < keys; j++) {
            mean += problem_get(c, TENSOR_V, 0, 0, j, 3) / (double)keys;
            size += fabs(problem_get(c, TENSOR_V, 0, 0, j, 3)) / (double)keys;
        }
        const double got = problem_get(c, TENSOR_O, 0, 1, 0, 3);
        CHECK(fabs(got - mean) <= 16 * 0x1p-24 * size, "%g by %s, %td keys: %g, not the mean %g",
              (double)low, n / 12 ? "mask" : "score", keys, got, mean);
        const double lse = problem_get(c, TENSOR_LSE, 0, 1, 0, 0);
        CHECK(fabs(lse - (double)low) <= 1e-6 * fabs((double)low) + 7, "lse of %g: %g", (double)low,
              lse);
        problem_delete(c);
    }
}

/* ------------------------------------------------------------ empty rows */

static void expect_empty(const problem *c, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    for (ptrdiff_t j = 0; j < c->tensors[TENSOR_O].n[3]; j++)
        CHECK(problem_get(c, TENSOR_O, b, h, i, j) == 0, "empty row (%td,%td,%td) is %g", b, h, i,
              problem_get(c, TENSOR_O, b, h, i, j));
    for (ptrdiff_t j = 0; j < c->tensors[TENSOR_WEIGHTS].n[3]; j++)
        CHECK(problem_get(c, TENSOR_WEIGHTS, b, h, i, j) == 0, "empty row has a weight");
    CHECK(problem_get(c, TENSOR_LSE, b, h, i, 0) == -INFINITY, "empty row has a log-sum-exp of %g",
          problem_get(c, TENSOR_LSE, b, h, i, 0));
}

/* A negative offset leaves leading rows without keys, whatever those hold. */
static void leading_rows_are_empty(void)
{
    for (ptrdiff_t n = 0; n < 40; n++) {
        const problem_spec spec = {
            .shape = {.B = 2, .H = 2, .L = 1 + 3 * n, .S = 1 + 7 * (n % 9), .D = 12, .Dv = 20},
            .features = OUTPUTS | FEATURE_CAUSAL,
            .seed = (uint64_t)n,
        };
        problem *const c = problem_new(&spec);
        c->call.options.position = MHA_POSITION_OFFSET;
        c->call.options.offset = -(n % 13) - spec.shape.L / 3;
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        for (ptrdiff_t i = 0; i < -c->call.options.offset && i < spec.shape.L; i++)
            expect_empty(c, n % 2, 1, i);
        problem_delete(c);
    }
}

static void rows_without_keys_are_empty(void)
{
    static const unsigned kinds[] = {FEATURE_ATTEND, FEATURE_IGNORE, FEATURE_ADD, FEATURE_BIAS};
    static const tensor_id ids[] = {TENSOR_ATTEND, TENSOR_IGNORE, TENSOR_ADD, TENSOR_BIAS};
    static const double off[] = {0, 1, -INFINITY, -INFINITY};
    for (int n = 0; n < 24; n++) {
        const int kind = n % 4;
        const problem_spec spec = {
            .shape = {.B = 1, .H = 3, .L = n / 4 * 9 + 1, .S = n / 4 * 130, .D = 16},
            .features = OUTPUTS | kinds[kind],
            .seed = (uint64_t)n,
        };
        problem *const c = problem_new(&spec);
        const ptrdiff_t row = spec.shape.L / 2;
        for (ptrdiff_t j = 0; j < spec.shape.S; j++) {
            problem_set(c, ids[kind], 0, 1, row, j, off[kind]);
            problem_set(c, TENSOR_K, 0, 1, j, 3, j % 3 ? 1 : 1e4);
        }
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        expect_empty(c, 0, 1, row);
        problem_delete(c);
    }
}

/* Rows past the query length and their log-sum-exp and weights are not written; problem_expect()
 * sees to it. The queries there hold NaN. */
static void rows_past_the_length_are_untouched(void)
{
    const uint64_t base = test_seed(86000);
    for (int64_t n = 0; n < test_effort(60); n++) {
        const problem_spec spec =
            spec_with(base + (uint64_t)n,
                      FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS | (n % 2 ? FEATURE_PACKED : 0));
        problem *const c = problem_new(&spec);
        const attention_call *const p = &c->call;
        for (ptrdiff_t b = 0; n % 2 == 0 && b < spec.shape.B; b++)
            for (ptrdiff_t i = call_queries(p, b); i < spec.shape.L; i++)
                for (ptrdiff_t x = 0; x < spec.shape.H * spec.shape.D; x++)
                    problem_set(c, TENSOR_Q, b, x / spec.shape.D, i, x % spec.shape.D, NAN);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(causal_future);
    RUN(outside_the_window);
    RUN(not_attended);
    RUN(ignored);
    RUN(minus_infinity_added);
    RUN(past_the_length);
    RUN(packed_neighbours);
    RUN(other_documents);
    RUN(everything_at_once);
    RUN(long_masked_parts);
    RUN(masked_bias_is_unread);
    RUN(a_query_of_nan_is_its_own_row);
    RUN(an_infinite_value_shows_in_its_column);
    RUN(only_minus_infinity_is_nan);
    RUN(some_minus_infinity_is_no_weight);
    RUN(masked_keys_of_a_row_of_nan);
    RUN(tiles_beside_one_that_hides_a_value);
    RUN(plus_infinity_is_nan);
    RUN(logits_of_ten_thousand);
    RUN(very_negative_is_a_number);
    RUN(leading_rows_are_empty);
    RUN(rows_without_keys_are_empty);
    RUN(rows_past_the_length_are_untouched);
    return test_end();
}
