/* SPDX-License-Identifier: MIT */
/*
 * The backward pass of layers against the oracle, and the oracle against central differences of its
 * own forward pass, which in turn is compared with the library's.
 *
 * Errors are norms over a whole gradient: at most 3 times that of a naive computation in f32 and 3
 * times what is expected of one (tracked.h), since the one that was made may be right by luck. Over
 * many gradients, luck aside, the library must do as well as the naive loops. What is a sum of
 * nothing must be exactly 0.
 */
#include "support/layer_backward_case.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define U 0x1p-24

/* ------------------------------------------------------- central differences ---- */

/* A forward pass and the loss that d_output and d_lse are the gradients of. */
typedef struct slope {
    layer_case *c;
    layer_pass *pass;
    num *d_output, *d_lse;
    layer_numbers base, gradients;
} slope;

static num *normals(test_random *random, ptrdiff_t count)
{
    num *const x = nums(count);
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] = num_exact((double)test_random_normal(random));
    return x;
}

static slope slope_new(const layer_spec *spec)
{
    test_random random = {spec->seed ^ 0x6c6f7373};
    slope s = {.c = layer_case_new(spec)};
    backward_add_training(s.c->memory);
    s.pass = layer_pass_new(&s.c->p);
    const mha_layer_config *const f = &s.pass->config;
    s.d_output = normals(&random, spec->B * spec->L * f->output_width);
    s.d_lse = normals(&random, spec->B * f->H * spec->L);
    layer_pass_forward(s.pass);
    s.gradients = layer_pass_backward(s.pass, s.d_output, s.d_lse);
    s.base = layer_numbers_like(&s.pass->in);
    for (int part = 0; part < PARTS; part++)
        memcpy(s.base.of[part], s.pass->in.of[part],
               (size_t)s.base.count[part] * sizeof *s.base.of[part]);
    return s;
}

static void slope_free(slope *s)
{
    layer_numbers_free(&s->base);
    layer_numbers_free(&s->gradients);
    layer_pass_free(s->pass);
    layer_case_free(s->c);
    free(s->d_output);
    free(s->d_lse);
}

/* Sum of d_output output + d_lse lse over the rows there are; an empty row has no lse. */
static double loss_of(const slope *s)
{
    const layer_pass *const pass = s->pass;
    const mha_shape *const shape = &pass->op.shape;
    const ptrdiff_t width = pass->config.output_width;
    double sum = 0;
    layer_pass_forward(s->pass);
    for (ptrdiff_t b = 0; b < shape->B; b++)
        for (ptrdiff_t i = 0; i < call_queries(&pass->op, b); i++) {
            for (ptrdiff_t c = 0; c < width; c++) {
                const ptrdiff_t at = (b * shape->L + i) * width + c;
                sum += s->d_output[at].x * pass->output[at].x;
            }
            for (ptrdiff_t h = 0; h < shape->H; h++) {
                const ptrdiff_t at = (b * shape->H + h) * shape->L + i;
                sum += isinf(pass->lse[at].x) ? 0 : s->d_lse[at].x * pass->lse[at].x;
            }
        }
    return sum;
}

#define STEP 0x1p-18

/* The loss with the parts in `moved` so many steps along the directions. */
static double loss_at(const slope *s, unsigned moved, const layer_numbers *directions, double steps)
{
    for (int part = 0; part < PARTS; part++)
        for (ptrdiff_t n = 0; moved & 1u << part && n < s->base.count[part]; n++)
            s->pass->in.of[part][n].x =
                s->base.of[part][n].x + steps * STEP * directions->of[part][n].x;
    return loss_of(s);
}

/* Central differences of fourth order along the directions against the gradients. */
static void check_directions(const slope *s, unsigned moved, const layer_numbers *directions)
{
    const double near = loss_at(s, moved, directions, 1) - loss_at(s, moved, directions, -1);
    const double far = loss_at(s, moved, directions, 2) - loss_at(s, moved, directions, -2);
    const double rise = (8 * near - far) / (12 * STEP);
    double want = 0, size = 0;
    for (int part = 0; part < PARTS; part++)
        for (ptrdiff_t n = 0; moved & 1u << part && n < s->base.count[part]; n++) {
            const double term = s->gradients.of[part][n].x * directions->of[part][n].x;
            want += term;
            size += term * term;
        }
    loss_at(s, moved, directions, 0);
    CHECK(fabs(rise - want) <= 1e-6 * sqrt(size) + 1e-7, "%s: parts %#x: %.12g, differences %.12g",
          layer_case_name(s->c), moved, want, rise);
}

/* All numbers together, then some parts by themselves. */
static void difference_case(const layer_spec *spec)
{
    test_random random = {spec->seed};
    slope s = slope_new(spec);
    layer_numbers directions = layer_numbers_like(&s.base);
    for (int part = 0; part < PARTS; part++)
        for (ptrdiff_t n = 0; n < directions.count[part]; n++)
            directions.of[part][n].x = (double)test_random_normal(&random);
    check_directions(&s, (1u << PARTS) - 1, &directions);
    for (int tried = 0; tried < 3; tried++)
        check_directions(&s, 1u << test_random_below(&random, PARTS), &directions);
    layer_numbers_free(&directions);
    slope_free(&s);
}

/* A random spec with everything small. */
static layer_spec small_spec(uint64_t seed)
{
    layer_spec spec = layer_back_spec(seed);
    mha_layer_config f = layer_defaults(&spec.config);
    f.D = 1 + f.D % 7;
    f.Dv = 1 + f.Dv % 6;
    f.E = 1 + f.E % 11;
    f.key_width = spec.parts & LAYER_CROSS ? 1 + f.key_width % 9 : f.E;
    f.value_width = spec.parts & LAYER_VALUE ? 1 + f.value_width % 9 : f.key_width;
    f.output_width = 1 + f.output_width % 8;
    if (f.D < 2)
        f.rope = (mha_rope){0};
    f.rope.width = f.rope.width > f.D ? f.D / 2 * 2 : f.rope.width;
    f.H = f.G * (1 + f.H % 2);
    spec.config = f;
    spec.L = 1 + spec.L % 6;
    spec.S = 1 + spec.S % 7;
    return spec;
}

static void oracle_is_the_slope(void)
{
    const uint64_t base = test_seed(60000);
    for (int64_t n = 0; n < test_effort(600); n++) {
        const layer_spec spec = small_spec(base + (uint64_t)n);
        difference_case(&spec);
    }
}

/* ------------------------------------------------------------------- accuracy ---- */

typedef struct measure {
    double error, naive, expected;
} measure;

/* Squares of errors in units of the expected one, over all gradients since they were last put to
 * 0. */
static struct {
    double error, naive;
    int64_t count;
} totals;

static measure measure_elements(const layer_element *list, ptrdiff_t count)
{
    measure m = {0};
    for (ptrdiff_t n = 0; n < count; n++) {
        const num want = list[n].want;
        const double error = (double)*list[n].at - want.x;
        m.error += isnan(error) ? (double)INFINITY : error * error;
        m.naive += ((double)want.f - want.x) * ((double)want.f - want.x);
        m.expected += U * U * want.v;
    }
    m.error = sqrt(m.error);
    m.naive = sqrt(m.naive);
    m.expected = sqrt(m.expected);
    return m;
}

static void check_elements(const layer_back *x, const char *name, const layer_element *list,
                           ptrdiff_t count)
{
    for (ptrdiff_t n = 0; n < count; n++)
        if (list[n].want.v == 0 && list[n].want.x == 0 &&
            !CHECK(*list[n].at == 0, "%s: %s[%td] is %g, must be 0", layer_case_name(x->c), name, n,
                   (double)*list[n].at))
            break;
    const measure m = measure_elements(list, count);
    CHECK(m.error <= 3 * (m.naive + m.expected) + (double)FLT_MIN,
          "%s: %s is %g off, naive %g, expected %g", layer_case_name(x->c), name, m.error, m.naive,
          m.expected);
    if (m.expected > 0) {
        totals.error += m.error / m.expected * (m.error / m.expected);
        totals.naive += m.naive / m.expected * (m.naive / m.expected);
        totals.count++;
    }
}

static void check_gradients(layer_back *x)
{
    layer_numbers want = layer_back_oracle(x);
    for (int n = 0; n < LAYER_OUTPUTS; n++) {
        ptrdiff_t count;
        layer_element *const list = layer_back_elements(x, &want, n, &count);
        check_elements(x, layer_output_name(n), list, count);
        free(list);
    }
    layer_back_check_untouched(x, &want);
    layer_numbers_free(&want);
}

/* The tests of the forward pass know no gates and no dropout. */
static void check_output(const layer_back *x)
{
    layer_pass *const pass = layer_pass_new(&x->c->p);
    const mha_layer_call *const call = &x->c->p.call;
    const mha_view y = {call->output.data, call->output.sb, call->output.sh, call->output.sl};
    const ptrdiff_t width = pass->config.output_width;
    layer_pass_forward(pass);
    for (ptrdiff_t b = 0; b < call->B; b++)
        for (ptrdiff_t n = 0; n < call_queries(&pass->op, b) * width; n++) {
            const ptrdiff_t i = n / width, c = n % width;
            const num want = pass->output[(b * call->L + i) * width + c];
            const ptrdiff_t at = call_row_index(&y, pass->op.options.q_starts, b, 0, i) + c;
            const double error =
                compare_error(call->output_type, MHA_F32, number_get(call->output_type, y.data, at),
                              want.x, U * sqrt(want.v));
            CHECK(error <= 4, "%s: output(%td,%td,%td) is %g errors off", layer_case_name(x->c), b,
                  i, c, error);
        }
    layer_pass_free(pass);
}

static void try_spec(const layer_spec *spec, int64_t n)
{
    layer_back *const x = layer_back_new(spec);
    layer_back_forward(x, NULL);
    check_output(x);
    layer_back_run(x, n % 4 != 0, NULL);
    check_gradients(x);
    layer_back_free(x);
}

/* ------------------------------------------------------------- configurations ---- */

static void random_configurations(void)
{
    const uint64_t base = test_seed(61000);
    totals.error = totals.naive = 0;
    totals.count = 0;
    for (int64_t n = 0; n < test_effort(500); n++) {
        layer_spec spec =
            n % 4 == 0 ? layer_back_spec(base + (uint64_t)n) : small_spec(base + (uint64_t)n);
        spec.memory = guard_memories[n % 3];
        try_spec(&spec, n);
    }
    CHECK(totals.error <= 1.2 * totals.naive || totals.count < 1000,
          "errors are %g on average, naive ones %g", sqrt(totals.error / (double)totals.count),
          sqrt(totals.naive / (double)totals.count));
}

/* Every part, alone and with all others, for every norm and rotation. */
static void parts_one_by_one(void)
{
    for (unsigned bit = 1; bit <= LAYER_EVERYTHING; bit <<= 1)
        for (int norm = 0; norm < 3; norm++) {
            layer_spec spec = layer_spec_small(0, 0);
            spec.config.norm = (mha_norm)norm;
            spec.config.rope.pairs = (mha_rope_pairs)norm;
            spec.parts = bit;
            try_spec(&spec, norm);
            spec.parts = LAYER_EVERYTHING & ~bit;
            try_spec(&spec, norm);
        }
}

/* Every option, alone and beside the keys that all rows see. */
static void options_one_by_one(void)
{
    const unsigned all = FEATURE_EVERYTHING | BACKWARD_GATES | BACKWARD_DROPOUT;
    for (unsigned bit = 1; bit <= all; bit <<= 1)
        for (int n = 0; n < 4 && bit & all; n++) {
            layer_spec spec = layer_spec_small(n & 1 ? LAYER_CROSS : 0, bit);
            spec.parts |= n & 2 ? LAYER_EXTRA : 0u;
            spec.config.flags = n & 2 ? MHA_LAYER_ZERO_ATTN : 0;
            spec.config.rope.pairs = MHA_ROPE_HALVES;
            spec.seed = 1000 + (uint64_t)n;
            try_spec(&spec, n);
        }
}

static void every_type(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16};
    static const mha_dtype stored[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    for (int n = 0; n < 108; n++) {
        layer_spec spec = layer_spec_small(n % 2 ? LAYER_CROSS | LAYER_VALUE : 0, 0);
        spec.config.stored = stored[n % 4];
        spec.weight_type = types[n / 4 % 3];
        spec.input_type = types[n / 12 % 3];
        spec.output_type = types[n / 36];
        spec.seed = (uint64_t)n;
        try_spec(&spec, n);
    }
}

/* Wide and long enough for several panels, blocks of keys and tiles of rows. */
static void larger_layers(void)
{
    layer_spec spec = layer_spec_small(0, FEATURE_CAUSAL);
    spec.config.E = 96;
    spec.config.H = 3;
    spec.config.G = 0;
    spec.config.Dv = 0;
    spec.B = 1;
    spec.L = 150;
    spec.config.rope.pairs = MHA_ROPE_HALVES;
    try_spec(&spec, 0);
    spec.parts |= LAYER_CROSS | LAYER_EXTRA;
    spec.options = FEATURE_K_LENGTHS | BACKWARD_DROPOUT;
    spec.config.E = 33;
    spec.config.rope.pairs = MHA_ROPE_NONE;
    spec.L = 3;
    spec.S = 1100;
    try_spec(&spec, 1);
    spec.L = 140;
    spec.S = 70;
    try_spec(&spec, 2);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(oracle_is_the_slope);
    RUN(random_configurations);
    RUN(parts_one_by_one);
    RUN(options_one_by_one);
    RUN(every_type);
    RUN(larger_layers);
    return test_end();
}
