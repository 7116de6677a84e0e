/* SPDX-License-Identifier: MIT */
/*
 * The backward pass against the float64 oracle, and the oracle against central differences of the
 * library's f64 forward pass.
 *
 * Errors are norms over a whole gradient: at most 3 times those of a naive computation in f32 from
 * the same stored tensors. What is a sum of nothing must be exactly 0.
 */
#include "support/backward_case.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define U 0x1p-24

/* --------------------------------------------------------------- accuracy */

/* Norms of an error. */
typedef struct measure {
    double norm, largest;
} measure;

static measure measure_error(const gradient *want, const double *got)
{
    measure m = {0};
    for (ptrdiff_t at = 0; at < gradient_count(want); at++) {
        const double error = isnan(got[at]) ? INFINITY : fabs(got[at] - want->x[at]);
        m.norm = hypot(m.norm, error);
        m.largest = fmax(m.largest, error);
    }
    return m;
}

static double largest_of(const double *x, ptrdiff_t count)
{
    double largest = 0;
    for (ptrdiff_t at = 0; at < count; at++)
        largest = fmax(largest, fabs(x[at]));
    return largest;
}

static double norm_of(const double *x, ptrdiff_t count)
{
    double norm = 0;
    for (ptrdiff_t at = 0; at < count; at++)
        norm = hypot(norm, x[at]);
    return norm;
}

static void check_zeros(const backward_case *x, const char *name, const gradient *want,
                        const double *got)
{
    for (ptrdiff_t at = 0; at < gradient_count(want); at++)
        if (want->size[at] == 0 && !CHECK(got[at] == 0, "%s: %s[%td] is %g, must be 0",
                                          x->forward->name, name, at, got[at]))
            return;
}

/*
 * `got` against the oracle and the naive computation. One rounding of the scores and of the
 * log-sum-exp, as far as the terms depend on them, is always allowed: the naive result may be right
 * by luck, sums may cancel to nothing, and weights are made again from a log-sum-exp in f32.
 */
static void check_gradient(const backward_case *x, const char *name, const gradient *want,
                           const gradient *naive, const double *got)
{
    const ptrdiff_t count = gradient_count(want);
    const measure error = measure_error(want, got), plain = measure_error(want, naive->x);
    const double once = U * norm_of(want->size, count);
    check_zeros(x, name, want, got);
    CHECK(error.norm <= 3 * plain.norm + once + FLT_MIN, "%s: %s is %g off, naive %g, rounding %g",
          x->forward->name, name, error.norm, plain.norm, once);
    if (x->forward->spec.logits > 4 || x->forward->call.shape.o_type != MHA_F32)
        return;
    const double bound = 256 * U * largest_of(want->x, count) + U * largest_of(want->size, count);
    CHECK(error.largest <= bound + FLT_MIN, "%s: %s is %g off, bound %g", x->forward->name, name,
          error.largest, bound);
}

/* The numbers of a tensor in row-major order. Rows before the first of a packed one are 0. */
static double *tensor_numbers(const backward_case *x, tensor_id id)
{
    const ptrdiff_t *const n = x->gradients->tensors[id].n;
    const int64_t *const starts = backward_starts(x, id);
    double *const numbers = calloc((size_t)(n[0] * n[1] * n[2] * n[3]) + 1, sizeof *numbers);
    if (!numbers)
        abort();
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++)
        for (ptrdiff_t j = 0; j < n[3] && (!starts || r % n[2] >= (ptrdiff_t)starts[0]); j++)
            numbers[r * n[3] + j] =
                problem_get(x->gradients, id, r / n[2] / n[1], r / n[2] % n[1], r % n[2], j);
    return numbers;
}

static void check_tensor(const backward_case *x, const backward_output *output,
                         const backward_answer *want, const backward_answer *naive)
{
    const tensor *const t = &x->gradients->tensors[output->tensor];
    const int64_t *const starts = backward_starts(x, output->tensor);
    if (!t->memory)
        return;
    gradient exact = gradient_fold(&want->of[output->gradient], t, starts, false);
    gradient plain = gradient_fold(&naive->of[output->gradient], t, starts, true);
    double *const got = tensor_numbers(x, output->tensor);
    check_gradient(x, output->name, &exact, &plain, got);
    free(got);
    gradient_free(&exact);
    gradient_free(&plain);
}

/* Numbers of heads, in `batches` rows `stride` apart. */
static void check_heads(const backward_case *x, const char *name, const float *numbers,
                        const gradient *want, const gradient *naive, ptrdiff_t stride)
{
    const ptrdiff_t H = x->forward->call.shape.H;
    if (!numbers)
        return;
    double *const got = calloc((size_t)gradient_count(want) + 1, sizeof *got);
    if (!got)
        abort();
    for (ptrdiff_t n = 0; n < gradient_count(want); n++)
        got[n] = (double)numbers[n / H * stride + n % H];
    check_gradient(x, name, want, naive, got);
    free(got);
}

/* Gates of all batches, or their sum. */
static void check_gates(const backward_case *x, const gradient *want, const gradient *naive)
{
    const mha_options *const o = &x->forward->call.options;
    const tensor shared = {
        .n = {o->gates_sb == 0 ? 1 : x->forward->call.shape.B, 1, 1, x->forward->call.shape.H}};
    gradient exact = gradient_fold(want, &shared, NULL, false);
    gradient plain = gradient_fold(naive, &shared, NULL, true);
    check_heads(x, "d_gates", x->call.d_gates, &exact, &plain, o->gates_sb);
    gradient_free(&exact);
    gradient_free(&plain);
}

static void check_backward(const backward_case *x)
{
    const backward_problem p = backward_problem_of(x);
    backward_answer want = backward_oracle(&p), naive = backward_naive(&p);
    for (int n = 0; n < BACKWARD_TENSORS; n++)
        check_tensor(x, &backward_outputs[n], &want, &naive);
    check_heads(x, "d_alibi_slopes", x->call.d_alibi_slopes, &want.of[GRAD_ALIBI],
                &naive.of[GRAD_ALIBI], 0);
    check_heads(x, "d_sinks", x->call.d_sinks, &want.of[GRAD_SINKS], &naive.of[GRAD_SINKS], 0);
    check_gates(x, &want.of[GRAD_GATES], &naive.of[GRAD_GATES]);
    backward_check_untouched(x);
    backward_answer_free(&want);
    backward_answer_free(&naive);
}

static void run_spec(const problem_spec *spec, int64_t n)
{
    problem_spec here = *spec;
    here.memory = guard_memories[n % 3];
    backward_case *const x = backward_case_new(&here);
    backward_run(x, n % 4 != 0, NULL);
    check_backward(x);
    backward_case_free(x);
}

static void random_configurations(void)
{
    const uint64_t base = test_seed(91000);
    for (int64_t n = 0; n < test_effort(400); n++) {
        const problem_spec spec = backward_spec(base + (uint64_t)n, 2e5);
        run_spec(&spec, n);
    }
}

/* Everything an option does, by itself and with grouped heads. */
static void one_option_at_a_time(void)
{
    const uint64_t base = test_seed(92000);
    const unsigned all =
        (FEATURE_EVERYTHING & ~(unsigned)FEATURE_WEIGHTS) | BACKWARD_GATES | BACKWARD_DROPOUT;
    for (unsigned bit = 1; bit <= all; bit <<= 1) {
        if (!(bit & all))
            continue;
        for (int64_t n = 0; n < test_effort(4); n++) {
            problem_spec spec = problem_spec_with(base + (uint64_t)n, bit | FEATURE_LSE);
            spec.logits = 1;
            run_spec(&spec, n);
        }
    }
}

/* Around every size at which rows, keys and widths are cut. */
static void edges_of_tiles(void)
{
    static const ptrdiff_t rows[] = {1, 63, 64, 65, 128, 130}, keys[] = {1, 16, 127, 128, 129, 257};
    static const ptrdiff_t widths[] = {1, 7, 8, 16, 17, 24, 64, 255, 256, 257};
    for (int n = 0; n < 36; n++) {
        problem_spec spec = {
            .shape = {.B = 1, .H = 2, .G = 1 + n % 2, .L = rows[n % 6], .S = keys[n / 6 % 6]},
            .features = FEATURE_LSE | (n % 3 ? 0 : FEATURE_CAUSAL | FEATURE_OFFSET),
            .seed = (uint64_t)n,
        };
        spec.shape.D = widths[n % 10];
        spec.shape.Dv = widths[n * 3 % 10];
        run_spec(&spec, n);
    }
}

/* --------------------------------------------------------------- no extent */

/* Without queries the gradients of keys are 0, without keys those of queries. */
static void no_queries_or_no_keys(void)
{
    const unsigned features = FEATURE_LSE | FEATURE_BIAS | FEATURE_SINKS | FEATURE_ALIBI;
    for (int n = 0; n < 16; n++) {
        problem_spec spec = {
            .shape = {.B = 2, .H = 4, .G = 2, .L = 5, .S = 6, .D = 8, .Dv = 12},
            .features = features | (n & 1 ? FEATURE_STRIDES : 0) |
                        (n & 2 ? FEATURE_PACKED | FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS : 0),
            .seed = (uint64_t)n};
        if (n & 4)
            spec.shape.L = 0;
        if (n & 8)
            spec.shape.S = 0;
        run_spec(&spec, n);
    }
}

/* Without batches, heads or width nothing is computed and nothing written. */
static void nothing_to_do(void)
{
    for (int n = 0; n < 3; n++) {
        problem_spec spec = {.shape = {.B = 2, .H = 2, .L = 5, .S = 6, .D = 8, .Dv = 12},
                             .features = FEATURE_LSE | FEATURE_BIAS | FEATURE_SINKS};
        ptrdiff_t *const extents[] = {&spec.shape.B, &spec.shape.H, &spec.shape.D};
        *extents[n] = 0;
        backward_case *const x = backward_case_new(&spec);
        size_t size, again;
        unsigned char *const before = backward_bytes(x, &size);
        backward_run(x, true, NULL);
        unsigned char *const after = backward_bytes(x, &again);
        CHECK(size == again && memcmp(before, after, size) == 0, "extent %d: written", n);
        free(before);
        free(after);
        backward_case_free(x);
    }
}

/* ----------------------------------------------------- central differences */

/* d_o and d_lse of a case in f64, and the loss whose gradient they are. */
typedef struct loss {
    problem *c;
    double *d_o, *d_lse; /* contiguous, packed or not like o */
    backward_problem problem;
} loss;

static double *normals(test_random *random, ptrdiff_t count)
{
    double *const numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        abort();
    for (ptrdiff_t n = 0; n < count; n++)
        numbers[n] = (double)test_random_normal(random);
    return numbers;
}

static loss loss_new(const problem_spec *spec)
{
    loss l = {.c = problem_new(spec)};
    backward_add_training(l.c);
    test_random random = {spec->seed ^ 0x6c6f7373};
    const ptrdiff_t *const n = l.c->tensors[TENSOR_O].n;
    l.d_o = normals(&random, n[0] * n[1] * n[2] * n[3]);
    l.d_lse = normals(&random, n[0] * n[1] * n[2]);
    l.problem = (backward_problem){
        .forward = l.c->call,
        .d_o = mha_view_bhld(l.d_o, n[1], n[2], n[3]),
        .d_o_type = MHA_F64,
        .d_lse = mha_view_bhld(l.d_lse, n[1], n[2], 1),
        .d_lse_type = MHA_F64,
    };
    return l;
}

static void loss_free(loss *l)
{
    problem_delete(l->c);
    free(l->d_o);
    free(l->d_lse);
}

/* Sum of d_o o + d_lse lse over the rows there are; an empty row counts for nothing. */
static double loss_now(const loss *l)
{
    const attention_call *const p = &l->c->call;
    double sum = 0;
    const mha_status status = mha_attention(&p->shape, p->q, p->k, p->v, p->o, &p->options, NULL);
    CHECK(status == MHA_OK, "%s: status %d", l->c->name, (int)status);
    for (ptrdiff_t b = 0; b < p->shape.B; b++)
        for (ptrdiff_t n = 0; n < p->shape.H * call_queries(p, b); n++) {
            const int64_t *const starts = p->options.q_starts;
            const ptrdiff_t h = n % p->shape.H, i = n / p->shape.H, x = starts ? 0 : b;
            const ptrdiff_t row = starts ? (ptrdiff_t)starts[b] + i : i;
            const double lse = problem_get(l->c, TENSOR_LSE, x, h, row, 0);
            if (lse == -INFINITY)
                continue;
            const mha_view *const d_o = &l->problem.d_o, *const d_lse = &l->problem.d_lse;
            sum += lse * l->d_lse[x * d_lse->sb + h * d_lse->sh + row];
            for (ptrdiff_t c = 0; c < call_value_width(p); c++)
                sum += problem_get(l->c, TENSOR_O, x, h, row, c) *
                       l->d_o[x * d_o->sb + h * d_o->sh + row * d_o->sl + c];
        }
    return sum;
}

#define STEP 0x1p-12

/* An input that can be moved: an element of a tensor in f64, or a float. */
typedef struct knob {
    double *wide;
    float *narrow;
    double value;
} knob;

static double loss_at(const loss *l, const knob *k, double steps)
{
    if (k->wide)
        *k->wide = k->value + steps * STEP;
    else
        *k->narrow = (float)(k->value + steps * STEP);
    return loss_now(l);
}

/* Central differences of fourth order. */
static double slope_of(const loss *l, const knob *k)
{
    const double near = loss_at(l, k, 1) - loss_at(l, k, -1);
    const double far = loss_at(l, k, 2) - loss_at(l, k, -2);
    loss_at(l, k, 0);
    return (8 * near - far) / (12 * STEP);
}

static void check_slope(const loss *l, const char *name, const knob *k, const gradient *want,
                        ptrdiff_t at)
{
    const double slope = slope_of(l, k);
    const double limit = 1e-6 * largest_of(want->x, gradient_count(want)) + 1e-9;
    CHECK(fabs(slope - want->x[at]) <= limit, "%s: %s[%td] is %.12g, differences say %.12g",
          l->c->name, name, at, want->x[at], slope);
}

enum { TRIED = 4 }; /* elements of each input */

static void difference_tensor(const loss *l, const backward_output *input,
                              const backward_answer *answer, test_random *random)
{
    const tensor *const t = &l->c->tensors[input->tensor];
    const mha_options *const o = &l->c->call.options;
    const bool keys = input->tensor == TENSOR_K || input->tensor == TENSOR_V;
    const bool bias = input->gradient == GRAD_BIAS;
    if (!t->memory)
        return;
    gradient want = gradient_fold(&answer->of[input->gradient], t,
                                  bias   ? NULL
                                  : keys ? o->k_starts
                                         : o->q_starts,
                                  false);
    const ptrdiff_t *const n = t->n;
    for (int tried = 0; tried < TRIED && gradient_count(&want) > 0; tried++) {
        const ptrdiff_t at = (ptrdiff_t)test_random_below(random, gradient_count(&want));
        const ptrdiff_t row = at / n[3];
        knob k = {.wide =
                      tensor_at(t, row / n[2] / n[1], row / n[2] % n[1], row % n[2], at % n[3])};
        k.value = *k.wide;
        check_slope(l, input->name, &k, &want, at);
    }
    gradient_free(&want);
}

/* Numbers of the options are f32: round them so that every step is exact. */
static float *round_numbers(problem *c, const float *numbers, ptrdiff_t count)
{
    float *const rounded = problem_alloc(c, (size_t)count * sizeof *rounded);
    for (ptrdiff_t n = 0; n < count; n++)
        rounded[n] = rintf(numbers[n] * 0x1p14f) * 0x1p-14f;
    return rounded;
}

static void difference_numbers(const loss *l, const char *name, float *numbers,
                               const gradient *want)
{
    for (ptrdiff_t n = 0; numbers && n < gradient_count(want); n++) {
        const knob k = {.narrow = &numbers[n], .value = (double)numbers[n]};
        check_slope(l, name, &k, want, n);
    }
}

static void difference_case(const problem_spec *spec)
{
    loss l = loss_new(spec);
    mha_options *const o = &l.c->call.options;
    const ptrdiff_t B = spec->shape.B, H = spec->shape.H;
    test_random random = {spec->seed};
    float *slopes = NULL, *sinks = NULL, *gates = NULL;
    if (o->alibi_slopes)
        o->alibi_slopes = slopes = round_numbers(l.c, o->alibi_slopes, H);
    if (o->sinks)
        o->sinks = sinks = round_numbers(l.c, o->sinks, H);
    if (o->gates)
        o->gates = gates = round_numbers(l.c, o->gates, o->gates_sb == 0 ? H : B * H);
    o->gates_sb = o->gates_sb == 0 ? 0 : H;
    l.problem.forward = l.c->call;
    backward_answer answer = backward_oracle(&l.problem);
    const tensor shared = {.n = {o->gates_sb == 0 ? 1 : B, 1, 1, H}};
    gradient d_gates = gradient_fold(&answer.of[GRAD_GATES], &shared, NULL, false);
    for (int n = 0; n < BACKWARD_TENSORS; n++)
        difference_tensor(&l, &backward_outputs[n], &answer, &random);
    difference_numbers(&l, "d_alibi_slopes", slopes, &answer.of[GRAD_ALIBI]);
    difference_numbers(&l, "d_sinks", sinks, &answer.of[GRAD_SINKS]);
    difference_numbers(&l, "d_gates", gates, &d_gates);
    gradient_free(&d_gates);
    backward_answer_free(&answer);
    loss_free(&l);
}

static void oracle_is_the_slope(void)
{
    const uint64_t base = test_seed(90000);
    for (int64_t n = 0; n < test_effort(500); n++) {
        problem_spec spec = backward_spec(base + (uint64_t)n, 2e4);
        mha_shape *const s = &spec.shape;
        s->q_type = s->k_type = s->v_type = s->o_type = MHA_F64;
        spec.features &= ~(unsigned)FEATURE_MASK_TYPES;
        spec.logits = fmin(spec.logits, 2);
        /* A step of a slope moves the score of a far key by more than differences bear. */
        s->S = s->S < 200 ? s->S : 200;
        difference_case(&spec);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(oracle_is_the_slope);
    RUN(random_configurations);
    RUN(one_option_at_a_time);
    RUN(edges_of_tiles);
    RUN(no_queries_or_no_keys);
    RUN(nothing_to_do);
    return test_end();
}
