/* SPDX-License-Identifier: MIT */
/*
 * Modes and gates of heads in the library: normal, disabled, uniform, mean. A uniform head has a
 * twin among the problems without modes: the same with queries of 0, no bias but -inf, no slope and
 * no sink. Both must give the same bits, and the twin is compared with the oracle. Then small
 * problems by hand, a cache, a layer, and calls that must be refused.
 */
#include "support/layer_case.h"
#include "support/problems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 8, MOST_HEADS = 32 };

/* ------------------------------------------------------------------ twins */

typedef struct ablation {
    problem *c, *twin;
    uint8_t modes[MOST_HEADS];
    float *means, *gates;
} ablation;

static void flatten_numbers(problem *c, tensor_id id, const uint8_t *modes)
{
    const tensor *const t = &c->tensors[id];
    for (ptrdiff_t r = 0; t->memory && r < t->n[0] * t->n[1] * t->n[2]; r++) {
        const ptrdiff_t i = r % t->n[2], h = r / t->n[2] % t->n[1], b = r / t->n[2] / t->n[1];
        for (ptrdiff_t j = 0; modes[h] && j < t->n[3]; j++)
            if (id == TENSOR_Q || problem_get(c, id, b, h, i, j) != -INFINITY)
                problem_set(c, id, b, h, i, j, 0);
    }
}

static void flatten_heads(const float *given, const uint8_t *modes, ptrdiff_t H, float flat)
{
    float *const numbers = (float *)given;
    for (ptrdiff_t h = 0; numbers && h < H; h++)
        if (modes[h])
            numbers[h] = flat;
}

/* Random modes; the same one for all heads where heads share masks. */
static void choose_modes(ablation *a, test_random *random)
{
    const ptrdiff_t H = a->c->call.shape.H;
    const bool same = (a->c->spec.features & FEATURE_BROADCAST) != 0;
    for (ptrdiff_t h = 0; h < H; h++)
        a->modes[h] = (uint8_t)(same ? 1 + h % 2 : test_random_below(random, 3));
}

static ablation *ablation_new(const problem_spec *spec)
{
    ablation *const a = calloc(1, sizeof *a);
    test_random random = {spec->seed + 17};
    if (!a)
        abort();
    a->c = problem_new(spec);
    a->twin = problem_new(spec);
    const ptrdiff_t H = spec->shape.H, B = spec->shape.B, Dv = call_value_width(&a->c->call);
    choose_modes(a, &random);
    mha_options *const o = &a->c->call.options, *const plain = &a->twin->call.options;
    a->means = problem_alloc(a->c, (size_t)(H * Dv) * sizeof *a->means);
    for (ptrdiff_t n = 0; n < H * Dv; n++)
        a->means[n] = test_random_normal(&random);
    o->head_modes = memcpy(problem_alloc(a->c, (size_t)H), a->modes, (size_t)H);
    o->head_means = a->means;
    if (test_random_below(&random, 2)) {
        a->gates = problem_alloc(a->c, (size_t)(B * H) * sizeof *a->gates);
        for (ptrdiff_t n = 0; n < B * H; n++)
            a->gates[n] = test_random_below(&random, 3) ? test_random_normal(&random) : 0;
        o->gates = a->gates;
        o->gates_sb = H;
    }
    flatten_numbers(a->twin, TENSOR_Q, a->modes);
    flatten_numbers(a->twin, TENSOR_ADD, a->modes);
    flatten_numbers(a->twin, TENSOR_BIAS, a->modes);
    flatten_heads(plain->alibi_slopes, a->modes, H, 0);
    flatten_heads(plain->sinks, a->modes, H, -INFINITY);
    return a;
}

static void ablation_free(ablation *a)
{
    problem_delete(a->c);
    problem_delete(a->twin);
    free(a);
}

/* The expected output if that of the twin is `plain`. */
static double output_of(const ablation *a, ptrdiff_t b, ptrdiff_t h, ptrdiff_t c, bool empty,
                        double plain)
{
    const mha_dtype type = a->c->call.shape.o_type;
    const float gate = a->gates ? a->gates[b * a->c->call.shape.H + h] : 1;
    const float mean = a->means[h * call_value_width(&a->c->call) + c];
    if (a->modes[h] != MHA_HEAD_MEAN)
        return plain;
    if (empty)
        return 0;
    return number_round(type,
                        type == MHA_F64 ? (double)mean * (double)gate : (double)(mean * gate));
}

static bool is_empty(const attention_call *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    for (ptrdiff_t j = 0; j < call_keys(p, b); j++)
        if (call_attends(p, b, h, i, j))
            return false;
    return true;
}

static void check_outputs(const ablation *a)
{
    const attention_call *const p = &a->twin->call, *const mine = &a->c->call;
    const mha_view from = {p->o.data, p->o.sb, p->o.sh, p->o.sl};
    const mha_view to = {mine->o.data, mine->o.sb, mine->o.sh, mine->o.sl};
    for (ptrdiff_t b = 0; b < p->shape.B; b++)
        for (ptrdiff_t r = 0; r < p->shape.H * call_queries(p, b); r++) {
            const ptrdiff_t h = r % p->shape.H, i = r / p->shape.H;
            const bool empty = is_empty(p, b, h, i);
            const ptrdiff_t want_at = call_row_index(&from, p->options.q_starts, b, h, i);
            const ptrdiff_t got_at = call_row_index(&to, p->options.q_starts, b, h, i);
            for (ptrdiff_t c = 0; c < call_value_width(p); c++) {
                const double plain = number_get(p->shape.o_type, from.data, want_at + c);
                const double got = number_get(p->shape.o_type, to.data, got_at + c);
                const double want = output_of(a, b, h, c, empty, plain);
                CHECK(got == want, "%s: (%td,%td,%td,%td) of mode %d is %g, not %g", a->c->name, b,
                      h, i, c, a->modes[h], got, want);
            }
        }
}

/* Whether a row of returned weights includes a head in mode mean. */
static bool shows_mean(const ablation *a, ptrdiff_t n)
{
    const mha_options *const o = &a->c->call.options;
    const bool average = (o->flags & MHA_AVERAGE_WEIGHTS) != 0;
    const ptrdiff_t all = o->weights_heads ? o->weights_head_count : a->c->call.shape.H;
    bool any = false;
    for (ptrdiff_t x = average ? 0 : n; x < (average ? all : n + 1); x++)
        any |= a->modes[o->weights_heads ? o->weights_heads[x] : x] == MHA_HEAD_MEAN;
    return any;
}

/* Weights are those of the twin, but 0 for means. An average over heads of both sorts is skipped.
 */
static void check_weights(const ablation *a)
{
    const mha_options *const o = &a->c->call.options;
    const tensor *const t = &a->c->tensors[TENSOR_WEIGHTS], *const twin =
                                                                &a->twin->tensors[TENSOR_WEIGHTS];
    const bool softmax = o->weights_mode == MHA_WEIGHTS_SOFTMAX;
    for (ptrdiff_t r = 0; t->memory && r < t->n[0] * t->n[1] * t->n[2]; r++) {
        const ptrdiff_t i = r % t->n[2], n = r / t->n[2] % t->n[1], b = r / t->n[2] / t->n[1];
        const bool mean = softmax && shows_mean(a, n);
        if ((o->weights_rows ? o->weights_rows[i] : i) >= call_queries(&a->c->call, b))
            continue;
        for (ptrdiff_t j = 0; mean && !(o->flags & MHA_AVERAGE_WEIGHTS) && j < t->n[3]; j++)
            CHECK(problem_get(a->c, TENSOR_WEIGHTS, b, n, i, j) == 0, "%s: a mean weighs",
                  a->c->name);
        CHECK(mean || memcmp(tensor_at(t, b, n, i, 0), tensor_at(twin, b, n, i, 0),
                             (size_t)t->n[3] * t->element) == 0,
              "%s: weights of (%td,%td,%td)", a->c->name, b, n, i);
    }
}

/* The same weights without computing an output. */
static void check_weights_alone(const ablation *a, mha_pool *pool)
{
    const attention_call *const p = &a->c->call;
    snapshot before = snapshot_of(a->c);
    mha_options options = p->options;
    if (!options.weights.data || p->shape.B * p->shape.H * p->shape.L * p->shape.D == 0)
        return snapshot_free(&before);
    options.lse.data = NULL;
    memset(a->c->tensors[TENSOR_WEIGHTS].memory, 0xa5, a->c->tensors[TENSOR_WEIGHTS].bytes);
    const mha_status status = mha_attention_weights(&p->shape, p->q, p->k, &options, NULL, 0, pool);
    CHECK(status == MHA_OK && snapshot_same(&before, a->c), "%s: weights alone: %s", a->c->name,
          mha_status_string(status));
    snapshot_free(&before);
}

static void try_spec(const problem_spec *spec, mha_pool *pool)
{
    ablation *const a = ablation_new(spec);
    problem_run(a->twin, NULL);
    problem_expect(a->twin, LIMIT);
    a->twin->call.options.gates = a->gates;
    a->twin->call.options.gates_sb = spec->shape.H;
    problem_run(a->twin, NULL);
    problem_run(a->c, pool);
    problem_expect_untouched(a->c);
    if (!a->gates)
        problem_expect(a->c, LIMIT);
    check_outputs(a);
    if (a->c->tensors[TENSOR_LSE].memory)
        CHECK(tensors_same(&a->c->tensors[TENSOR_LSE], &a->twin->tensors[TENSOR_LSE]),
              "%s: log-sum-exp", a->c->name);
    check_weights(a);
    check_weights_alone(a, pool);
    ablation_free(a);
}

static void random_problems(void)
{
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    const uint64_t first = test_seed(7000);
    for (int64_t n = 0; n < test_effort(150); n++) {
        problem_spec spec = problem_spec_random(first + (uint64_t)n, 1e5);
        spec.memory = guard_memories[n % 3];
        try_spec(&spec, n % 2 ? pool : NULL);
    }
    mha_pool_free(pool);
}

/* Problems with keys in several splits, with several tiles of rows, and with a single row. */
static void long_problems(void)
{
    static const ptrdiff_t rows[] = {1, 3, 100};
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 4) == MHA_OK, "pool");
    for (int n = 0; n < 3; n++) {
        const problem_spec spec = {
            .shape = {.B = 1, .H = 4, .G = 2, .L = rows[n], .S = 2500, .D = 16, .Dv = 8},
            .features = FEATURE_LSE | FEATURE_PLAIN_WEIGHTS | FEATURE_K_LENGTHS | FEATURE_SINKS,
            .seed = (uint64_t)n + 3,
        };
        try_spec(&spec, pool);
    }
    mha_pool_free(pool);
}

/* ------------------------------------------------------------------ by hand */

enum { KEYS = 5, WIDE = 3 };

/* Head 0 uniform, head 1 a mean; causal attention of three queries over integers, with key 1
 * masked: queries 0 and 1 see key 0, query 2 sees keys 0 and 2. */
static void results_by_hand(void)
{
    static const uint8_t modes[2] = {MHA_HEAD_UNIFORM, MHA_HEAD_MEAN};
    static const float means[2 * WIDE] = {9, 9, 9, 3, -1, 0.5f}, gates[2] = {2, -4};
    static const uint8_t ignore[KEYS] = {0, 1, 0, 0, 0};
    const float q[2 * 3 * 2] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, sinks[2] = {3, 3};
    float k[2 * KEYS * 2], v[2 * KEYS * WIDE], o[2 * 3 * WIDE], lse[6], weights[2 * 3 * KEYS];
    for (int n = 0; n < 2 * KEYS * 2; n++)
        k[n] = (float)(n % 7);
    for (int n = 0; n < 2 * KEYS * WIDE; n++)
        v[n] = (float)(n * n % 11);
    const mha_shape shape = {.B = 1, .H = 2, .L = 3, .S = KEYS, .D = 2, .Dv = WIDE};
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_CAUSAL,
                                 .position = MHA_POSITION_TOP_LEFT,
                                 .softcap = 5,
                                 .sinks = sinks,
                                 .ignore_mask = {ignore, 0, 0, 0},
                                 .lse = {lse, 6, 3, 1},
                                 .weights = {weights, 6 * KEYS, 3 * KEYS, KEYS},
                                 .gates = gates,
                                 .head_modes = modes,
                                 .head_means = means};
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(q, 2, 3, 2), mha_view_bhld(k, 2, KEYS, 2),
                      mha_view_bhld(v, 2, KEYS, WIDE), mha_out_bhld(o, 2, 3, WIDE), &options, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    for (int i = 0; i < 3; i++) {
        const int seen = i < 2 ? 1 : 2;
        for (int c = 0; c < WIDE; c++) {
            const float mean = seen == 1 ? v[c] : (v[c] + v[2 * WIDE + c]) / 2;
            CHECK(o[i * WIDE + c] == 2 * mean, "uniform (%d,%d): %g", i, c,
                  (double)o[i * WIDE + c]);
            CHECK(o[(3 + i) * WIDE + c] == -4 * means[WIDE + c], "mean (%d,%d)", i, c);
        }
        for (int j = 0; j < KEYS; j++) {
            const bool sees = j <= i && j != 1;
            CHECK(weights[i * KEYS + j] == (sees ? 1.0f / (float)seen : 0.0f), "weight %d %d", i,
                  j);
            CHECK(weights[(3 + i) * KEYS + j] == 0, "a mean weighs: %d %d", i, j);
        }
        CHECK(lse[i] == logf((float)seen) && lse[3 + i] == lse[i], "log-sum-exp %d", i);
    }
}

/* NaN in what a head does not read has no effect: the keys of a uniform head, keys and values of a
 * mean, and the values of a disabled head whose log-sum-exp is wanted. */
static void what_is_not_read_has_no_effect(void)
{
    const problem_spec spec = {.shape = {.B = 2, .H = 6, .G = 3, .L = 70, .S = 300, .D = 16},
                               .features = FEATURE_LSE | FEATURE_ATTEND,
                               .seed = 5};
    static const uint8_t modes[6] = {1, 0, 2, 2, 0, 0};
    float means[6 * 16], gates[6] = {1, 1, 1, 1, 0, 0};
    problem *const c = problem_new(&spec);
    for (int n = 0; n < 6 * 16; n++)
        means[n] = (float)n;
    c->call.options.head_modes = modes;
    c->call.options.head_means = means;
    c->call.options.gates = gates;
    for (int n = 0; n < 2 * 300 * 16; n++) {
        const int b = n / 4800, j = n / 16 % 300;
        problem_set(c, TENSOR_K, b, 0, j, n % 16, NAN);
        problem_set(c, TENSOR_K, b, 1, j, n % 16, NAN);
        problem_set(c, TENSOR_V, b, 1, j, n % 16, NAN);
        problem_set(c, TENSOR_V, b, 2, j, n % 16, INFINITY);
    }
    problem_run(c, NULL);
    for (int n = 0; n < 2 * 6 * 70 * 16; n++) {
        const int b = n / 6720, h = n / 1120 % 6, i = n / 16 % 70;
        const double x = problem_get(c, TENSOR_O, b, h, i, n % 16);
        CHECK(h == 1 || isfinite(x), "(%d,%d,%d): %g", b, h, i, x);
        CHECK(h < 4 || x == 0, "a disabled head gives %g", x);
    }
    problem_delete(c);
}

/* -------------------------------------------------------------------- cache */

/* A cache gives the same as the arrays that it was filled from; i8 nearly the same. */
static void over_a_cache(void)
{
    enum { S = 200, L = 3, G = 2, H = 4, D = 8 };
    static const uint8_t modes[H] = {1, 0, 2, 1};
    static float k[G * S * D], v[G * S * D], q[H * L * D], means[H * D], o[2][H * L * D],
        lse[H * L];
    test_random random = {test_seed(8)};
    for (int n = 0; n < G * S * D; n++) {
        k[n] = test_random_normal(&random);
        v[n] = test_random_normal(&random);
    }
    for (int n = 0; n < H * L * D; n++)
        q[n] = test_random_normal(&random);
    for (int n = 0; n < H * D; n++)
        means[n] = (float)n;
    const mha_shape shape = {.B = 1, .H = H, .G = G, .L = L, .S = S, .D = D};
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_CAUSAL,
                                 .position = MHA_POSITION_BOTTOM_RIGHT,
                                 .lse = {lse, H * L, L, 1},
                                 .head_modes = modes,
                                 .head_means = means};
    const mha_view kv = mha_view_bhld(k, G, S, D), vv = mha_view_bhld(v, G, S, D);
    const mha_view qv = mha_view_bhld(q, H, L, D);
    CHECK(mha_attention(&shape, qv, kv, vv, mha_out_bhld(o[0], H, L, D), &options, NULL) == MHA_OK,
          "arrays");
    for (int type = 0; type < 2; type++) {
        const mha_dtype stored = type ? MHA_I8 : MHA_F32;
        const mha_cache_config config = {.size = sizeof config,
                                         .kind = MHA_CACHE_PAGED,
                                         .sequences = 1,
                                         .capacity = S,
                                         .page_tokens = 32,
                                         .G = G,
                                         .D = D,
                                         .k_type = stored,
                                         .v_type = stored};
        mha_cache *cache = NULL;
        const mha_shape queries = {.B = 1, .H = H, .L = L};
        CHECK(mha_cache_create(&cache, &config) == MHA_OK &&
                  mha_cache_append(cache, 1, NULL, S, NULL, kv, MHA_F32, vv, MHA_F32) == MHA_OK &&
                  mha_cache_attention(cache, NULL, &queries, qv, mha_out_bhld(o[1], H, L, D),
                                      &options, NULL, 0, NULL) == MHA_OK,
              "cache");
        for (int n = 0; n < H * L * D; n++) {
            const float slack = type && modes[n / L / D] != MHA_HEAD_MEAN ? 0.03f : 0;
            CHECK(fabsf(o[0][n] - o[1][n]) <= slack, "type %d, element %d: %g and %g", type, n,
                  (double)o[0][n], (double)o[1][n]);
        }
        mha_cache_free(cache);
    }
}

/* -------------------------------------------------------------------- layer */

enum { E = 24, HEADS = 4, ROWS = 10 };

/* The output of a layer with 4 query and 2 key/value heads, 2 batches of 5 rows, with these
 * options. */
static void run_layer(layer_case *c, const float *gates, const uint8_t *modes, const float *means,
                      float *y)
{
    mha_options *const o = &c->memory->call.options;
    o->gates = gates;
    o->head_modes = modes;
    o->head_means = means;
    layer_case_run(c, NULL);
    memcpy(y, tensor_at(&c->memory->tensors[TENSOR_O], 0, 0, 0, 0), sizeof(float) * ROWS * E);
}

static double matrix_at(const mha_matrix *m, ptrdiff_t n, ptrdiff_t c)
{
    return number_get(m->type, m->data, n * m->out_stride + c * m->in_stride);
}

/* A gate is applied before W_O: disabling a head removes its contribution W_O o from the whole row,
 * not the columns of the output with its number. Biases stay. */
static void before_the_output_projection(void)
{
    const layer_spec spec = layer_spec_small(0, 0);
    layer_case *const c = layer_case_new(&spec);
    static const float disabled[HEADS] = {1, 0, 1, 1}, none[HEADS] = {0};
    float all[ROWS * E], gated[ROWS * E], alone[ROWS * E], nothing[ROWS * E];
    static const float only[HEADS] = {0, 1, 0, 0};
    run_layer(c, NULL, NULL, NULL, all);
    run_layer(c, disabled, NULL, NULL, gated);
    run_layer(c, only, NULL, NULL, alone);
    run_layer(c, none, NULL, NULL, nothing);
    double sliced = 0;
    for (int n = 0; n < ROWS * E; n++) {
        const double bias = number_get(MHA_F32, c->p.weights.o_bias.data, n % E);
        const double want = (double)all[n] - ((double)alone[n] - bias);
        CHECK(fabs((double)gated[n] - want) < 1e-5, "element %d: %g, not %g", n, (double)gated[n],
              want);
        CHECK((double)nothing[n] == bias, "all disabled: %g, not the bias %g", (double)nothing[n],
              bias);
        const bool mine = n % E / (E / HEADS) == 1;
        sliced = fmax(sliced, fabs((double)gated[n] - (mine ? 0 : (double)all[n])));
    }
    CHECK(sliced > 0.1, "a slice of the output is the same: %g", sliced);
    layer_case_free(c);
}

/* With all heads in mode mean each row is W_O means + b_O for every input. */
static void means_of_all_heads(void)
{
    static const uint8_t modes[HEADS] = {2, 2, 2, 2};
    const layer_spec spec = layer_spec_small(LAYER_EXTRA, 0);
    layer_case *const c = layer_case_new(&spec);
    const ptrdiff_t Dv = spec.config.Dv;
    float means[HEADS * 5], y[ROWS * E];
    for (int n = 0; n < HEADS * 5; n++)
        means[n] = (float)(n % 7) - 3;
    run_layer(c, NULL, modes, means, y);
    for (int n = 0; n < ROWS * E; n++) {
        double want = number_get(MHA_F32, c->p.weights.o_bias.data, n % E);
        for (ptrdiff_t x = 0; x < HEADS * Dv; x++)
            want += matrix_at(&c->p.weights.o, n % E, x) * (double)means[x];
        CHECK(fabs((double)y[n] - want) < 1e-5, "element %d: %g, not %g", n, (double)y[n], want);
    }
    layer_case_free(c);
}

/* Extra keys, which every row sees, count among the keys of a uniform head. */
static void extra_keys_are_keys(void)
{
    static const uint8_t modes[HEADS] = {1, 1, 1, 1};
    layer_spec spec =
        layer_spec_small(LAYER_CROSS | LAYER_EXTRA, FEATURE_OUTPUTS | FEATURE_SOFTCAP);
    spec.config.flags = MHA_LAYER_ZERO_ATTN;
    layer_case *const c = layer_case_new(&spec);
    float y[ROWS * E];
    run_layer(c, NULL, modes, NULL, y);
    for (int n = 0; n < 2 * HEADS * 5 * 9; n++) {
        const double w =
            problem_get(c->memory, TENSOR_WEIGHTS, n / 180, n / 45 % 4, n / 9 % 5, n % 9);
        CHECK(w == (double)(1.0f / 9), "element %d: %g", n, w);
    }
    layer_case_free(c);
}

/* ------------------------------------------------------------------- errors */

static void impossible_modes(void)
{
    const problem_spec spec = {.shape = {.B = 1, .H = 2, .L = 3, .S = 4, .D = 8}, .seed = 1};
    problem *const c = problem_new(&spec);
    uint8_t modes[2] = {0, 3};
    float means[17] = {0};
    mha_options *const o = &c->call.options;
    const attention_call *const p = &c->call;
    const struct {
        uint8_t mode;
        const float *means;
        mha_status status;
    } wrong[] = {
        {3, means, MHA_ERR_FLAG},
        {255, means, MHA_ERR_FLAG},
        {2, NULL, MHA_ERR_NULL},
        {2, (const float *)((const char *)means + 1), MHA_ERR_ALIGN},
        {1, p->o.data, MHA_ERR_OVERLAP},
    };
    o->head_modes = modes;
    for (int n = 0; n < 5; n++) {
        modes[1] = wrong[n].mode;
        o->head_means = wrong[n].means;
        problem_reset(c);
        snapshot blank = snapshot_of(c);
        c->message[0] = '\0';
        const mha_status status = mha_attention(&p->shape, p->q, p->k, p->v, p->o, o, NULL);
        CHECK(status == wrong[n].status && c->message[0], "%d: %s, \"%s\"", n,
              mha_status_string(status), c->message);
        CHECK(snapshot_same(&blank, c), "%d: written", n);
        snapshot_free(&blank);
    }
    o->head_modes = p->o.data;
    o->head_means = NULL;
    memset(p->o.data, 0, 2 * 3 * 8 * sizeof(float));
    CHECK(mha_attention(&p->shape, p->q, p->k, p->v, p->o, o, NULL) == MHA_ERR_OVERLAP,
          "modes in the output");
    problem_delete(c);
}

static void no_backward_pass(void)
{
    static const uint8_t modes[HEADS] = {0};
    static float lse[HEADS * ROWS], d_o[ROWS * E], d_q[ROWS * E], x[ROWS * E];
    const mha_shape shape = {.B = 1, .H = HEADS, .L = ROWS, .S = ROWS, .D = E / HEADS};
    const mha_options options = {
        .size = sizeof options, .lse = {lse, HEADS * ROWS, ROWS, 1}, .head_modes = modes};
    const mha_view view = mha_view_blhd(x, HEADS, ROWS, E / HEADS);
    const mha_gradients gradients = {.size = sizeof gradients,
                                     .d_o = mha_view_blhd(d_o, HEADS, ROWS, E / HEADS),
                                     .d_q = mha_out_blhd(d_q, HEADS, ROWS, E / HEADS)};
    CHECK(mha_attention_backward(&shape, view, view, view, view, &options, &gradients, NULL, 0,
                                 NULL) == MHA_ERR_FLAG,
          "a backward pass with modes");
    CHECK(mha_backward_work_size(&shape, &options, 1) == 0, "room for it");
    const layer_spec spec = layer_spec_small(0, 0);
    layer_case *const c = layer_case_new(&spec);
    mha_layer_call call = c->p.call;
    call.tape_size = mha_layer_tape_size(c->layer, &call);
    call.tape = aligned_alloc(64, (call.tape_size + 63) / 64 * 64);
    c->memory->call.options.head_modes = modes;
    CHECK(call.tape_size > 0 && mha_layer_tape_size(c->layer, &call) == 0, "room for a tape");
    CHECK(mha_layer_backward_work_size(c->layer, &call, 1) == 0, "room for a layer's pass");
    CHECK(mha_layer_run(c->layer, &call, NULL, 0, NULL) == MHA_ERR_FLAG, "a tape with modes");
    free(call.tape);
    layer_case_free(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(results_by_hand);
    RUN(random_problems);
    RUN(long_problems);
    RUN(what_is_not_read_has_no_effect);
    RUN(over_a_cache);
    RUN(before_the_output_projection);
    RUN(means_of_all_heads);
    RUN(extra_keys_are_keys);
    RUN(impossible_modes);
    RUN(no_backward_pass);
    return test_end();
}
