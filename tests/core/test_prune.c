/* SPDX-License-Identifier: MIT */
/*
 * Pruned layers. They are those one gets by cutting the weights by hand, to the bit; they give what
 * the whole layer gives with gates of 0, up to the order of sums in the output projection; and they
 * work with caches, every stored type and every grouping of heads.
 */
#include "support/faults.h"
#include "support/layer_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADS = 16 };

/* Heads that stay: at random, at least one. */
static ptrdiff_t choose(test_random *random, ptrdiff_t H, uint8_t *keep)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t h = 0; h < H; h++) {
        keep[h] = test_random_below(random, 3) ? (uint8_t)(1 + test_random_below(random, 255)) : 0;
        kept += keep[h] != 0;
    }
    if (kept == 0)
        keep[test_random_below(random, H)] = 1;
    return kept > 0 ? kept : 1;
}

static mha_layer *prune(const layer_case *c, const uint8_t *keep)
{
    mha_layer *pruned = NULL;
    char message[120] = "";
    const mha_status status = mha_layer_prune(&pruned, c->layer, keep, message, sizeof message);
    CHECK(status == MHA_OK && pruned, "%s: %s, %s", layer_case_name(c), mha_status_string(status),
          message);
    return pruned;
}

/* A layer at random whose options have no head axis but slopes and sinks. */
static layer_case *random_case(uint64_t seed)
{
    layer_spec spec = layer_spec_random(seed);
    spec.options &= ~(unsigned)(FEATURE_ATTEND | FEATURE_IGNORE | FEATURE_ADD | FEATURE_BIAS |
                                FEATURE_WEIGHTS | FEATURE_PLAIN_WEIGHTS);
    spec.options |= FEATURE_LSE;
    spec.output_type = MHA_F32;
    return layer_case_new(&spec);
}

/* ---------------------------------------------------------------- results */

typedef struct result {
    float *y, *lse; /* rows as they lie in memory; [B][H][L] or packed [H][rows] */
    ptrdiff_t count, rows;
} result;

static void *copy_of(const void *from, size_t bytes)
{
    void *const copy = malloc(bytes + 1);
    if (!copy)
        abort();
    return from ? memcpy(copy, from, bytes) : memset(copy, 0xa5, bytes);
}

static void result_free(result *r)
{
    free(r->y);
    free(r->lse);
}

/* Run a layer of H heads on the case's call, with slopes and sinks of the heads it has left. */
static result run(layer_case *c, const mha_layer *layer, const uint8_t *keep, const float *gates)
{
    const ptrdiff_t all = layer_defaults(&c->p.config).H, H = mha_layer_get_config(layer).H;
    const tensor *const y = &c->memory->tensors[TENSOR_O];
    const int64_t *const starts = c->p.call.options->q_starts;
    mha_options options = *c->p.call.options;
    mha_layer_call call = c->p.call;
    float slopes[MOST_HEADS], sinks[MOST_HEADS];
    ptrdiff_t n = 0;
    for (ptrdiff_t h = 0; h < all; h++)
        if (!keep || keep[h]) {
            slopes[n] = options.alibi_slopes ? options.alibi_slopes[h] : 0;
            sinks[n++] = options.sinks ? options.sinks[h] : 0;
        }
    options.alibi_slopes = options.alibi_slopes ? slopes : NULL;
    options.sinks = options.sinks ? sinks : NULL;
    options.gates = gates;
    result r = {.count = (ptrdiff_t)(y->bytes / sizeof(float)),
                .rows = starts ? (ptrdiff_t)starts[c->spec.B] : c->spec.L};
    const ptrdiff_t batches = starts ? 1 : c->spec.B;
    r.lse = copy_of(NULL, (size_t)(batches * H * r.rows) * sizeof *r.lse);
    options.lse = (mha_out){r.lse, H * r.rows, r.rows, 1};
    call.options = &options;
    problem_reset(c->memory);
    const mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
    CHECK(status == MHA_OK, "%s: %s, %s", layer_case_name(c), mha_status_string(status),
          c->memory->message);
    r.y = copy_of(y->memory, y->bytes);
    return r;
}

/* Log-sum-exps of the heads that stay, of `whole` in `some`, to the bit: projections are equal. */
static void check_sums(const layer_case *c, const result *whole, const result *some,
                       const uint8_t *keep)
{
    const ptrdiff_t H = layer_defaults(&c->p.config).H;
    const ptrdiff_t batches = c->p.call.options->q_starts ? 1 : c->spec.B;
    ptrdiff_t n = 0;
    for (ptrdiff_t x = 0; x < batches * H; x++)
        if (keep[x % H]) {
            CHECK(memcmp(whole->lse + x * whole->rows, some->lse + n * some->rows,
                         sizeof(float) * (size_t)some->rows) == 0,
                  "%s: log-sum-exps of head %td", layer_case_name(c), x % H);
            n++;
        }
}

static void check_outputs(const layer_case *c, const result *a, const result *b)
{
    for (ptrdiff_t n = 0; n < a->count; n++) {
        const double x = (double)a->y[n], y = (double)b->y[n];
        /* Gaps hold a pattern that is no number of this size. */
        CHECK(memcmp(&a->y[n], &b->y[n], sizeof(float)) == 0 || fabs(x - y) <= 4e-6 * (8 + fabs(x)),
              "%s: element %td is %g, not %g", layer_case_name(c), n, y, x);
    }
}

static void equal_to_gates(void)
{
    const uint64_t first = test_seed(300);
    for (int64_t n = 0; n < test_effort(150); n++) {
        layer_case *const c = random_case(first + (uint64_t)n);
        test_random random = {first + (uint64_t)n};
        const ptrdiff_t H = layer_defaults(&c->p.config).H;
        uint8_t keep[MOST_HEADS] = {0};
        float gates[MOST_HEADS];
        choose(&random, H, keep);
        for (ptrdiff_t h = 0; h < H; h++)
            gates[h] = keep[h] ? 1 : 0;
        mha_layer *const pruned = prune(c, keep);
        if (pruned) {
            result whole = run(c, c->layer, NULL, gates), some = run(c, pruned, keep, NULL);
            check_sums(c, &whole, &some, keep);
            check_outputs(c, &whole, &some);
            result_free(&whole);
            result_free(&some);
        }
        mha_layer_free(pruned);
        layer_case_free(c);
    }
}

/* ----------------------------------------------------------- cut by hand */

/* Rows or columns `heads[n]` of a matrix of heads, n < count, `width` each; a vector is a matrix of
 * one column. */
static void *cut(const layer_case *c, const void *data, ptrdiff_t head_stride, ptrdiff_t stride,
                 const ptrdiff_t *heads, ptrdiff_t count, ptrdiff_t width, ptrdiff_t length)
{
    const mha_dtype type = c->spec.weight_type;
    const size_t size = mha_dtype_size(type);
    char *const to = problem_alloc(c->memory, (size_t)(count * width * length) * size);
    for (ptrdiff_t n = 0; n < count * width; n++)
        for (ptrdiff_t x = 0; x < length; x++)
            memcpy(to + (size_t)(n * length + x) * size,
                   (const char *)data +
                       ((heads[n / width] * width + n % width) * head_stride + x * stride) *
                           (ptrdiff_t)size,
                   size);
    return to;
}

static mha_matrix cut_outputs(const layer_case *c, mha_matrix m, const ptrdiff_t *heads,
                              ptrdiff_t count, ptrdiff_t width, ptrdiff_t inputs)
{
    return mha_matrix_out_in(cut(c, m.data, m.out_stride, m.in_stride, heads, count, width, inputs),
                             m.type, inputs);
}

static mha_vector cut_vector(const layer_case *c, mha_vector v, const ptrdiff_t *heads,
                             ptrdiff_t count, ptrdiff_t width)
{
    if (v.data)
        v.data = cut(c, v.data, 1, 0, heads, count, width, 1);
    return v;
}

/* The layer of the heads that stay, each with a key/value head of its own. */
static mha_layer *cut_by_hand(const layer_case *c, const uint8_t *keep)
{
    const mha_layer_config f = layer_defaults(&c->p.config);
    const mha_layer_weights *const w = &c->p.weights;
    ptrdiff_t heads[MOST_HEADS], groups[MOST_HEADS], n = 0;
    for (ptrdiff_t h = 0; h < f.H; h++)
        if (keep[h]) {
            heads[n] = h;
            groups[n++] = h / (f.H / f.G);
        }
    mha_layer_config config = f;
    config.H = config.G = n;
    mha_layer_weights made = *w;
    made.q = cut_outputs(c, w->q, heads, n, f.D, f.E);
    made.k = cut_outputs(c, w->k, groups, n, f.D, f.key_width);
    made.v = cut_outputs(c, w->v, groups, n, f.Dv, f.value_width);
    made.o = mha_matrix_in_out(
        cut(c, w->o.data, w->o.in_stride, w->o.out_stride, heads, n, f.Dv, f.output_width),
        w->o.type, f.output_width);
    made.q_bias = cut_vector(c, w->q_bias, heads, n, f.D);
    made.k_bias = cut_vector(c, w->k_bias, groups, n, f.D);
    made.v_bias = cut_vector(c, w->v_bias, groups, n, f.Dv);
    made.extra_key = cut_vector(c, w->extra_key, groups, n, f.D);
    made.extra_value = cut_vector(c, w->extra_value, groups, n, f.Dv);
    mha_layer *layer = NULL;
    CHECK(mha_layer_create(&layer, &config, &made) == MHA_OK, "%s: by hand", layer_case_name(c));
    return layer;
}

static void equal_to_cut_weights(void)
{
    const uint64_t first = test_seed(600);
    for (int64_t n = 0; n < test_effort(150); n++) {
        layer_case *const c = random_case(first + (uint64_t)n);
        test_random random = {first + (uint64_t)n};
        uint8_t keep[MOST_HEADS] = {0};
        choose(&random, layer_defaults(&c->p.config).H, keep);
        mha_layer *const pruned = prune(c, keep), *const wanted = cut_by_hand(c, keep);
        /* i8 made again has scales of its own in W_O. */
        if (pruned && wanted && c->spec.config.stored != MHA_I8) {
            result a = run(c, wanted, keep, NULL), b = run(c, pruned, keep, NULL);
            CHECK(memcmp(a.y, b.y, sizeof(float) * (size_t)a.count) == 0, "%s: other bits",
                  layer_case_name(c));
            result_free(&a);
            result_free(&b);
        }
        mha_layer_free(pruned);
        mha_layer_free(wanted);
        layer_case_free(c);
    }
}

/* All heads, and heads in two steps. */
static void step_by_step(void)
{
    static const uint8_t all[4] = {1, 1, 1, 1}, first[4] = {1, 1, 0, 1}, then[3] = {0, 1, 1};
    static const uint8_t both[4] = {0, 1, 0, 1};
    for (int stored = 0; stored < 4; stored++) {
        layer_spec spec = layer_spec_small(LAYER_EXTRA, FEATURE_CAUSAL);
        spec.config.stored = (mha_dtype[]){MHA_F32, MHA_F16, MHA_BF16, MHA_I8}[stored];
        layer_case *const c = layer_case_new(&spec);
        mha_layer *const same = prune(c, all), *const once = prune(c, first), *twice = NULL;
        mha_layer *const direct = prune(c, both);
        CHECK(mha_layer_prune(&twice, once, then, NULL, 0) == MHA_OK, "the second step");
        result a = run(c, c->layer, NULL, NULL), b = run(c, same, all, NULL);
        result d = run(c, twice, both, NULL), e = run(c, direct, both, NULL);
        CHECK(memcmp(a.y, b.y, sizeof(float) * (size_t)a.count) == 0, "all heads");
        CHECK(memcmp(d.y, e.y, sizeof(float) * (size_t)d.count) == 0, "two steps");
        CHECK(mha_layer_bytes(same) == mha_layer_bytes(c->layer), "bytes of all heads");
        result_free(&a);
        result_free(&b);
        result_free(&d);
        result_free(&e);
        mha_layer_free(same);
        mha_layer_free(once);
        mha_layer_free(twice);
        mha_layer_free(direct);
        layer_case_free(c);
    }
}

/* ----------------------------------------------------------------- groups */

static void groups_stay_equal(void)
{
    static const struct {
        ptrdiff_t H, G;
        const char *keep;
        ptrdiff_t kept, groups;
    } cuts[] = {
        {4, 4, "1011", 3, 3},         /* each head has its own */
        {4, 1, "0110", 2, 1},         /* one for all */
        {8, 2, "11000011", 4, 2},     /* two each */
        {8, 2, "11110000", 4, 1},     /* a group goes */
        {8, 2, "11111000", 5, 5},     /* 4 and 1: every head gets its own */
        {8, 2, "11111100", 6, 3},     /* 4 and 2: the first is there twice */
        {9, 3, "111000111", 6, 2},    /* the middle one goes */
        {12, 2, "111111111000", 9, 3} /* 6 and 3 */
    };
    for (size_t n = 0; n < sizeof cuts / sizeof *cuts; n++) {
        layer_spec spec = layer_spec_small(0, 0);
        spec.config.H = cuts[n].H;
        spec.config.G = cuts[n].G;
        spec.config.D = 6;
        layer_case *const c = layer_case_new(&spec);
        uint8_t keep[MOST_HEADS] = {0};
        for (ptrdiff_t h = 0; h < cuts[n].H; h++)
            keep[h] = cuts[n].keep[h] == '1';
        mha_layer *const pruned = prune(c, keep);
        const mha_layer_config made = mha_layer_get_config(pruned);
        CHECK(made.H == cuts[n].kept && made.G == cuts[n].groups, "%s: H = %td, G = %td",
              cuts[n].keep, made.H, made.G);
        mha_layer_free(pruned);
        layer_case_free(c);
    }
}

/* What is not about heads stays. */
static void the_rest_stays(void)
{
    layer_spec spec = layer_spec_small(LAYER_CROSS | LAYER_FREQUENCIES, 0);
    spec.config.norm = MHA_NORM_RMS;
    spec.config.rope = (mha_rope){.pairs = MHA_ROPE_NEIGHBOURS, .width = 4};
    spec.config.flags = MHA_LAYER_ZERO_ATTN;
    spec.config.E = 200;
    spec.config.D = 40;
    spec.config.key_width = spec.config.value_width = 9;
    spec.config.output_width = 31;
    spec.config.stored = MHA_I8;
    spec.config.G = 0;
    layer_case *const c = layer_case_new(&spec);
    static const uint8_t keep[4] = {0, 0, 9, 0};
    mha_layer *const pruned = prune(c, keep);
    const mha_layer_config made = mha_layer_get_config(pruned),
                           old = mha_layer_get_config(c->layer);
    CHECK(made.H == 1 && made.G == 1, "H = %td, G = %td", made.H, made.G);
    CHECK(made.E == old.E && made.D == old.D && made.Dv == old.Dv &&
              made.key_width == old.key_width && made.value_width == old.value_width &&
              made.output_width == old.output_width,
          "other widths");
    CHECK(made.stored == old.stored && made.flags == old.flags && made.norm == old.norm &&
              made.norm_eps == old.norm_eps,
          "other kinds");
    CHECK(made.rope.pairs == old.rope.pairs && made.rope.width == old.rope.width &&
              made.rope.base == old.rope.base && !made.rope.frequencies && !made.message,
          "another rotation");
    CHECK(mha_layer_bytes(pruned) * 2 < mha_layer_bytes(c->layer), "%zu of %zu bytes",
          mha_layer_bytes(pruned), mha_layer_bytes(c->layer));
    mha_layer_free(pruned);
    layer_case_free(c);
}

/* ------------------------------------------------------------------ cache */

/* Token by token over a cache for the new G, as in one call. */
static void with_a_cache(void)
{
    enum { B = 2, L = 5, E = 24 };
    layer_spec spec = layer_spec_small(0, FEATURE_CAUSAL);
    layer_case *const c = layer_case_new(&spec);
    static const uint8_t keep[4] = {1, 1, 0, 1};
    mha_layer *const pruned = prune(c, keep);
    const mha_layer_config made = mha_layer_get_config(pruned);
    const mha_cache_config config = {.size = sizeof config,
                                     .sequences = B,
                                     .capacity = L,
                                     .G = made.G,
                                     .D = made.D,
                                     .Dv = made.Dv};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "cache");
    result whole = run(c, pruned, keep, NULL);
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    float y[B * E];
    for (ptrdiff_t i = 0; i < L; i++) {
        mha_layer_call step = c->p.call;
        step.L = 1;
        step.query.data = (const float *)step.query.data + i * step.query.sl;
        step.output = mha_out_ble(y, 1, E);
        step.cache = cache;
        step.options = &options;
        const mha_status status = mha_layer_run(pruned, &step, NULL, 0, NULL);
        CHECK(status == MHA_OK, "step %td: %s", i, mha_status_string(status));
        for (ptrdiff_t b = 0; b < B; b++)
            CHECK(memcmp(y + b * E, whole.y + (b * L + i) * E, sizeof(float) * E) == 0,
                  "token %td of batch %td: other bits", i, b);
    }
    result_free(&whole);
    mha_cache_free(cache);
    mha_layer_free(pruned);
    layer_case_free(c);
}

/* ----------------------------------------------------------------- errors */

static void wrong_arguments(void)
{
    const layer_spec spec = layer_spec_small(0, 0);
    layer_case *const c = layer_case_new(&spec);
    static const uint8_t none[4] = {0}, some[4] = {1};
    mha_layer *pruned = c->layer;
    char message[100] = "";
    CHECK(mha_layer_prune(&pruned, c->layer, none, message, sizeof message) == MHA_ERR_SHAPE &&
              !pruned && strstr(message, "at least 1"),
          "no head: \"%s\"", message);
    CHECK(mha_layer_prune(&pruned, c->layer, none, NULL, 0) == MHA_ERR_SHAPE, "without a message");
    CHECK(mha_layer_prune(NULL, c->layer, some, message, sizeof message) == MHA_ERR_NULL &&
              strstr(message, "pruned"),
          "nowhere to put it: \"%s\"", message);
    CHECK(mha_layer_prune(&pruned, NULL, some, message, sizeof message) == MHA_ERR_NULL &&
              strstr(message, "layer"),
          "no layer: \"%s\"", message);
    CHECK(mha_layer_prune(&pruned, c->layer, NULL, message, sizeof message) == MHA_ERR_NULL &&
              strstr(message, "keep"),
          "no list: \"%s\"", message);
    layer_case_free(c);
}

static void without_memory(void)
{
    layer_spec spec = layer_spec_small(LAYER_CROSS | LAYER_EXTRA, 0);
    spec.config.key_width = spec.config.value_width = 9;
    spec.config.stored = MHA_I8;
    layer_case *const c = layer_case_new(&spec);
    static const uint8_t keep[4] = {1, 1, 1, 0};
    mha_layer *pruned = NULL;
    faults_arm(MEMORY, 0, false);
    CHECK(mha_layer_prune(&pruned, c->layer, keep, NULL, 0) == MHA_OK, "with memory");
    const int requests = faults_requests(MEMORY);
    faults_disarm();
    mha_layer_free(pruned);
    for (int n = 1; n <= requests; n++) {
        pruned = c->layer;
        faults_arm(MEMORY, n, true);
        const mha_status status = mha_layer_prune(&pruned, c->layer, keep, NULL, 0);
        faults_disarm();
        CHECK(status == MHA_ERR_MEMORY && !pruned, "request %d: %s", n, mha_status_string(status));
        CHECK(faults_left(MEMORY) == 0, "request %d: %d blocks left", n, faults_left(MEMORY));
    }
    layer_case_free(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(equal_to_gates);
    RUN(equal_to_cut_weights);
    RUN(step_by_step);
    RUN(groups_stay_equal);
    RUN(the_rest_stays);
    RUN(with_a_cache);
    RUN(wrong_arguments);
    RUN(without_memory);
    return test_end();
}
