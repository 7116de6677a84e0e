/* SPDX-License-Identifier: MIT */
/*
 * Layers: random configurations against the oracle, in memory between guard pages,
 * with NaN in every row that does not count; and the bits of a row, which depend on nothing but
 * the row.
 */
#include "support/layer_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Units of u * size, see layer_oracle.h: three sums and a softmax in sequence. */
static const double limit = 8;

/* ---------------------------------------------------------------------- oracle ---- */

static double try_spec(const layer_spec *spec)
{
    double worst = 0;
    layer_case *const c = layer_case_new(spec);
    if (c->layer) {
        layer_case_run(c, NULL);
        worst = layer_case_check(c, limit);
    }
    layer_case_free(c);
    return worst;
}

static void random_configurations(void)
{
    const uint64_t first = test_seed(1);
    for (int64_t n = 0; n < test_effort(500); n++) {
        layer_spec spec = layer_spec_random(first + (uint64_t)n);
        spec.memory = guard_memories[n % 3];
        try_spec(&spec);
    }
}

/* Every part and every option, alone and with all other parts. */
static void parts_one_by_one(void)
{
    for (unsigned bit = 1; bit <= LAYER_EVERYTHING; bit <<= 1)
        for (int norm = 0; norm < 3; norm++) {
            layer_spec spec = layer_spec_small(bit, FEATURE_OUTPUTS);
            spec.config.norm = (mha_norm)norm;
            spec.config.rope.pairs = (mha_rope_pairs)norm;
            spec.parts = bit;
            try_spec(&spec);
            spec.parts = LAYER_EVERYTHING & ~bit;
            try_spec(&spec);
        }
}

static void options_one_by_one(void)
{
    for (unsigned bit = 1; bit <= FEATURE_EVERYTHING; bit <<= 1)
        for (int n = 0; n < 8; n++) {
            layer_spec spec = layer_spec_small(n & 1 ? LAYER_CROSS : 0, bit | FEATURE_OUTPUTS);
            spec.parts |= n & 2 ? LAYER_EXTRA : 0u;
            spec.config.flags = n & 4 ? MHA_LAYER_ZERO_ATTN : 0;
            spec.config.rope.pairs = MHA_ROPE_HALVES;
            spec.seed = 1000 + (uint64_t)n;
            try_spec(&spec);
            spec.options &= ~(unsigned)FEATURE_PLAIN_WEIGHTS;
            spec.options |= FEATURE_WEIGHTS;
            try_spec(&spec);
        }
}

static void every_type(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16};
    static const mha_dtype stored[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    for (int n = 0; n < 108; n++) {
        layer_spec spec = layer_spec_small(n % 2 ? LAYER_CROSS | LAYER_VALUE : 0, FEATURE_OUTPUTS);
        spec.config.stored = stored[n % 4];
        spec.weight_type = types[n / 4 % 3];
        spec.input_type = types[n / 12 % 3];
        spec.output_type = types[n / 36];
        spec.seed = (uint64_t)n;
        try_spec(&spec);
    }
}

/* Wide enough for several slices of inputs and panels of outputs, long enough for several blocks
 * of keys. */
static void larger_layers(void)
{
    layer_spec spec = layer_spec_small(0, FEATURE_CAUSAL);
    spec.config.E = 320;
    spec.config.H = 5;
    spec.config.G = 0;
    spec.config.Dv = 0;
    spec.L = 70;
    try_spec(&spec);
    spec.parts |= LAYER_CROSS;
    spec.options = FEATURE_K_LENGTHS;
    spec.config.E = 65;
    spec.B = 1;
    spec.L = 3;
    spec.S = 2100;
    try_spec(&spec);
    spec.L = 210;
    spec.S = 130;
    try_spec(&spec);
}

/* A row without a key: 0 goes into the output projection. */
static void empty_rows_give_the_bias(void)
{
    layer_spec spec = layer_spec_small(0, FEATURE_OUTPUTS);
    layer_case *const c = layer_case_new(&spec);
    const int64_t none[2] = {0, 0};
    c->memory->call.options.k_lengths = none;
    layer_case_run(c, NULL);
    layer_case_check(c, 0);
    const float *const y = tensor_at(&c->memory->tensors[TENSOR_O], 1, 0, 2, 0);
    CHECK(memcmp(y, c->p.weights.o_bias.data, 24 * sizeof *y) == 0, "not the bias");
    layer_case_free(c);
}

/* The two keys every row sees are there even where no other is. */
static void extras_are_always_seen(void)
{
    layer_spec spec = layer_spec_small(LAYER_CROSS | LAYER_EXTRA, FEATURE_OUTPUTS);
    spec.config.flags = MHA_LAYER_ZERO_ATTN;
    layer_case *const c = layer_case_new(&spec);
    const int64_t none[2] = {0, 0};
    c->memory->call.options.k_lengths = none;
    layer_case_run(c, NULL);
    layer_case_check(c, limit);
    c->memory->call.options.k_lengths = NULL;
    c->p.call.S = 0;
    c->memory->call.shape.S = 0;
    mha_options *const o = &c->memory->call.options;
    o->weights.data = NULL;
    problem_reset(c->memory);
    const mha_status status = mha_layer_run(c->layer, &c->p.call, NULL, 0, NULL);
    CHECK(status == MHA_OK, "no keys at all: %s", mha_status_string(status));
    comparison result = {.limit = limit};
    layer_compare(&c->p, &result);
    CHECK(result.failures == 0, "no keys at all: %s", result.first);
    layer_case_free(c);
}

static void nothing_is_legal(void)
{
    for (int n = 0; n < 4; n++) {
        layer_spec spec = layer_spec_small(LAYER_CROSS, 0);
        layer_case *const c = layer_case_new(&spec);
        ptrdiff_t *const extents[] = {&c->p.call.B, &c->p.call.L, &c->p.call.S};
        for (int k = 0; k < 3; k++)
            *extents[k] = n == k || n == 3 ? 0 : *extents[k];
        c->memory->call.shape.B = c->p.call.B;
        c->memory->call.shape.L = c->p.call.L;
        layer_case_run(c, NULL);
        layer_case_check(c, limit);
        layer_case_free(c);
    }
}

/* ------------------------------------------------------------------------ bits ---- */

/* A case for the tests below, with weights only where every slice can give them. */
static layer_case *bits_case(uint64_t seed)
{
    layer_spec spec = layer_spec_random(seed);
    spec.options &= ~(unsigned)FEATURE_WEIGHTS;
    if (!(spec.options & FEATURE_PACKED))
        spec.options |= seed % 2 ? FEATURE_PLAIN_WEIGHTS : 0;
    return layer_case_new(&spec);
}

static void threads_do_not_matter(void)
{
    mha_pool *pools[2] = {NULL, NULL};
    const uint64_t first = test_seed(7000);
    for (int n = 0; n < 2; n++)
        CHECK(mha_pool_create(&pools[n], n + 2) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(120); n++) {
        layer_spec spec = layer_spec_random(first + (uint64_t)n);
        layer_case *const c = layer_case_new(&spec);
        layer_case_run(c, NULL);
        snapshot alone = snapshot_of(c->memory);
        for (int k = 0; k < 2; k++) {
            layer_case_run(c, pools[k]);
            CHECK(snapshot_same(&alone, c->memory), "%s: other bits with %d threads",
                  layer_case_name(c), k + 2);
        }
        problem_reset(c->memory);
        CHECK(mha_layer_run(c->layer, &c->p.call, NULL, 0, pools[0]) == MHA_OK, "own workspace");
        CHECK(snapshot_same(&alone, c->memory), "%s: other bits in a workspace of its own",
              layer_case_name(c));
        snapshot_free(&alone);
        layer_case_free(c);
    }
    mha_pool_free(pools[0]);
    mha_pool_free(pools[1]);
}

/* Run queries [first, first + count) of batch b, by themselves. */
static void run_part(const layer_case *c, ptrdiff_t b, ptrdiff_t first, ptrdiff_t count)
{
    const attention_call *const whole = &c->memory->call;
    const int64_t *const q_starts = whole->options.q_starts, *const k_starts =
                                                                 whole->options.k_starts;
    slice s;
    slice_begin(&s, whole);
    slice_batch(&s, b);
    mha_layer_call call = c->p.call;
    call.key = s.call.k.data ? s.call.k : s.call.q;
    call.value = s.call.v;
    call.B = 1;
    call.S = s.call.shape.S;
    const ptrdiff_t rows = s.call.shape.L - first < count ? s.call.shape.L - first : count;
    slice_queries(&s, first, rows);
    call.L = rows;
    call.query = s.call.q;
    call.output = s.call.o;
    call.options = &s.call.options;
    if (call.q_positions) {
        call.q_positions += (q_starts ? (ptrdiff_t)q_starts[b] : b * c->p.call.L) + first;
        call.k_positions += k_starts ? (ptrdiff_t)k_starts[b] : b * layer_keys(&c->p);
    }
    const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
    CHECK(status == MHA_OK, "%s: part of batch %td: %s", layer_case_name(c), b,
          mha_status_string(status));
}

/* Batch by batch, some queries at a time: the same bits as all at once. */
static void parts_make_the_whole(void)
{
    const uint64_t first = test_seed(8000);
    for (int64_t n = 0; n < test_effort(200); n++) {
        layer_case *const c = bits_case(first + (uint64_t)n);
        const ptrdiff_t step = n % 3 == 0 ? c->spec.L : 1 + (ptrdiff_t)(n % 7);
        const int64_t *const starts = c->memory->call.options.q_starts;
        layer_case_run(c, NULL);
        snapshot whole = snapshot_of(c->memory);
        problem_reset(c->memory);
        for (ptrdiff_t b = 0; b < c->spec.B; b++) {
            const ptrdiff_t rows = starts ? (ptrdiff_t)(starts[b + 1] - starts[b]) : c->spec.L;
            for (ptrdiff_t i = 0; i < rows; i += step)
                run_part(c, b, i, step);
        }
        CHECK(snapshot_same(&whole, c->memory), "%s: other bits in parts of %td",
              layer_case_name(c), step);
        snapshot_free(&whole);
        layer_case_free(c);
    }
}

static void layout_does_not_matter(void)
{
    const uint64_t first = test_seed(9000);
    for (int64_t n = 0; n < test_effort(120); n++) {
        const layer_spec spec = layer_spec_random(first + (uint64_t)n);
        layer_case *const c = layer_case_new(&spec);
        layer_case_run(c, NULL);
        problem *const moved = problem_new_layout(c->memory, spec.seed + 1);
        mha_layer_call call = c->p.call;
        call.query = moved->call.q;
        call.key = moved->call.k;
        call.value = moved->call.v;
        call.output = moved->call.o;
        call.options = &moved->call.options;
        const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
        CHECK(status == MHA_OK, "%s: %s", layer_case_name(c), moved->message);
        for (int id = TENSOR_O; id < TENSOR_COUNT; id++)
            CHECK(!moved->tensors[id].memory ||
                      tensors_same(&c->memory->tensors[id], &moved->tensors[id]),
                  "%s: other bits of output %d in another layout", layer_case_name(c), id);
        problem_delete(moved);
        layer_case_free(c);
    }
}

/* The query input named again as key and value: nothing is fused then. */
static void fused_projections_do_not_matter(void)
{
    const uint64_t first = test_seed(10000);
    for (int64_t n = 0; n < test_effort(120); n++) {
        layer_spec spec = layer_spec_random(first + (uint64_t)n);
        spec.parts &= ~(unsigned)(LAYER_CROSS | LAYER_VALUE);
        spec.config.key_width = spec.config.value_width = 0;
        layer_case *const c = layer_case_new(&spec);
        layer_case_run(c, NULL);
        snapshot fused = snapshot_of(c->memory);
        for (int given = 1; given < 4; given++) {
            c->p.call.S = c->p.call.L;
            c->p.call.key = given & 1 ? c->p.call.query : (mha_view){0};
            c->p.call.value = given & 2 ? c->p.call.query : (mha_view){0};
            layer_case_run(c, NULL);
            CHECK(snapshot_same(&fused, c->memory), "%s: other bits with inputs %d given",
                  layer_case_name(c), given);
        }
        snapshot_free(&fused);
        layer_case_free(c);
    }
}

/* Weights and log-sum-exp are there or not: the output is the same. */
static void asking_for_more_does_not_matter(void)
{
    const uint64_t first = test_seed(11000);
    for (int64_t n = 0; n < test_effort(60); n++) {
        layer_spec spec = layer_spec_random(first + (uint64_t)n);
        spec.options |= FEATURE_LSE | FEATURE_WEIGHTS;
        layer_case *const c = layer_case_new(&spec);
        layer_case_run(c, NULL);
        snapshot all = snapshot_of(c->memory);
        mha_options plain = *c->p.call.options;
        plain.lse.data = plain.weights.data = NULL;
        plain.weights_heads = plain.weights_rows = NULL;
        plain.weights_head_count = plain.weights_row_count = 0;
        plain.flags &= ~(unsigned)MHA_AVERAGE_WEIGHTS;
        c->p.call.options = &plain;
        memset(c->memory->tensors[TENSOR_O].memory, 0xa5, c->memory->tensors[TENSOR_O].bytes);
        CHECK(mha_layer_run(c->layer, &c->p.call, NULL, 0, NULL) == MHA_OK, "run");
        CHECK(snapshot_same(&all, c->memory), "%s: other bits without weights", layer_case_name(c));
        snapshot_free(&all);
        layer_case_free(c);
    }
}

/* -------------------------------------------------------------------- the rest ---- */

/* NaN in one row of the input spoils the rows that see it and no other. */
static void damage_stays_where_it_is(void)
{
    layer_spec spec = layer_spec_small(0, FEATURE_CAUSAL | FEATURE_OUTPUTS);
    layer_case *const c = layer_case_new(&spec);
    layer_case_run(c, NULL);
    const size_t bytes = 24 * sizeof(float);
    float before[5][24];
    for (ptrdiff_t i = 0; i < 5; i++)
        memcpy(before[i], tensor_at(&c->memory->tensors[TENSOR_O], 0, 0, i, 0), bytes);
    problem_set(c->memory, TENSOR_Q, 0, 0, 3, 7, NAN);
    layer_case_run(c, NULL);
    for (ptrdiff_t i = 0; i < 5; i++) {
        const float *const y = tensor_at(&c->memory->tensors[TENSOR_O], 0, 0, i, 0);
        CHECK(i < 3 ? memcmp(y, before[i], bytes) == 0 : (bool)isnan(y[0]), "row %td: %g", i,
              (double)y[0]);
    }
    CHECK(!isnan(problem_get(c->memory, TENSOR_O, 1, 0, 4, 0)), "the other batch");
    layer_case_free(c);
}

/* One byte less than required is refused, whatever the call. */
static void workspace_is_exact(void)
{
    for (uint64_t seed = 1; seed < 60; seed++) {
        const layer_spec spec = layer_spec_random(seed);
        layer_case *const c = layer_case_new(&spec);
        const size_t size = mha_layer_work_size(c->layer, &c->p.call, 1);
        void *const work = malloc(size);
        problem_reset(c->memory);
        snapshot before = snapshot_of(c->memory);
        const mha_status status = mha_layer_run(c->layer, &c->p.call, work, size - 1, NULL);
        CHECK(status == MHA_ERR_WORKSPACE, "%s: %s", layer_case_name(c), mha_status_string(status));
        CHECK(snapshot_same(&before, c->memory), "%s: outputs written", layer_case_name(c));
        snapshot_free(&before);
        free(work);
        layer_case_free(c);
    }
}

static void configuration_comes_back(void)
{
    const layer_spec spec = layer_spec_small(LAYER_EXTRA, 0);
    layer_case *const c = layer_case_new(&spec);
    const mha_layer_config got = mha_layer_get_config(c->layer);
    CHECK(got.size == sizeof got && got.E == 24 && got.H == 4 && got.G == 2 && got.D == 6 &&
              got.Dv == 5 && got.key_width == 24 && got.value_width == 24 &&
              got.output_width == 24 && got.stored == MHA_F32,
          "widths");
    CHECK(got.norm_eps == 1e-5f && !got.message && !got.rope.frequencies, "defaults");
    CHECK(mha_layer_bytes(c->layer) >= (size_t)(24 * (24 + 12 + 10) + 20 * 24) * 4, "%zu bytes",
          mha_layer_bytes(c->layer));
    struct {
        mha_layer_config config;
        void *field; /* unknown to this library, and not set */
    } later = {.config = spec.config};
    mha_layer *layer = NULL;
    later.config.size = sizeof later;
    CHECK(mha_layer_create(&layer, &later.config, &c->p.weights) == MHA_OK &&
              mha_layer_get_config(layer).size == sizeof got,
          "a larger struct");
    mha_layer_free(layer);
    const mha_layer_config none = mha_layer_get_config(NULL);
    CHECK(none.size == 0 && none.E == 0 && mha_layer_bytes(NULL) == 0, "no layer");
    mha_layer_free(NULL);
    layer_case_free(c);
}

/* The caller's weights, norms and frequencies may go once the layer is made. */
static void weights_are_copied(void)
{
    for (uint64_t seed = 1; seed < 30; seed++) {
        layer_spec spec = layer_spec_random(seed);
        layer_case *const c = layer_case_new(&spec);
        layer_case_run(c, NULL);
        snapshot before = snapshot_of(c->memory);
        const mha_layer_config f = layer_defaults(&c->p.config);
        const size_t size = mha_dtype_size(spec.weight_type);
        const mha_layer_weights *const w = &c->p.weights;
        memset((void *)w->q.data, 0xff, (size_t)(f.E * f.H * f.D) * size);
        memset((void *)w->o.data, 0xff, (size_t)(f.H * f.Dv * f.output_width) * size);
        const mha_vector vectors[] = {w->q_bias, w->k_bias, w->q_norm, w->k_norm_bias,
                                      w->extra_key};
        for (int n = 0; n < 5; n++)
            if (vectors[n].data)
                memset((void *)vectors[n].data, 0xff, size);
        if (f.rope.frequencies)
            memset((void *)f.rope.frequencies, 0xff, sizeof(float));
        layer_case_run(c, NULL);
        CHECK(snapshot_same(&before, c->memory), "%s: other bits", layer_case_name(c));
        snapshot_free(&before);
        layer_case_free(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(random_configurations);
    RUN(parts_one_by_one);
    RUN(options_one_by_one);
    RUN(every_type);
    RUN(larger_layers);
    RUN(empty_rows_give_the_bias);
    RUN(extras_are_always_seen);
    RUN(nothing_is_legal);
    RUN(threads_do_not_matter);
    RUN(parts_make_the_whole);
    RUN(layout_does_not_matter);
    RUN(fused_projections_do_not_matter);
    RUN(asking_for_more_does_not_matter);
    RUN(damage_stays_where_it_is);
    RUN(workspace_is_exact);
    RUN(configuration_comes_back);
    RUN(weights_are_copied);
    return test_end();
}
