/* SPDX-License-Identifier: MIT */
/*
 * Makes a forward problem, runs it, and lays out the gradients as tensors of a second problem, with
 * exact memory and the pattern in every gap. backward_oracle.c says what must be in them.
 */
#include "support/backward_case.h"

#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xa5 };

const backward_output backward_outputs[BACKWARD_TENSORS] = {
    {TENSOR_Q, GRAD_Q, "d_q"},
    {TENSOR_K, GRAD_K, "d_k"},
    {TENSOR_V, GRAD_V, "d_v"},
    {TENSOR_BIAS, GRAD_BIAS, "d_bias"},
    {TENSOR_ADD, GRAD_BIAS, "d_add_mask"},
};

problem_spec backward_spec(uint64_t seed, double cost)
{
    problem_spec spec = problem_spec_random(seed, cost);
    mha_shape *const s = &spec.shape;
    if (s->q_type == MHA_F64)
        s->q_type = s->k_type = s->v_type = s->o_type = MHA_F32;
    spec.features = (spec.features & ~(unsigned)FEATURE_WEIGHTS) | FEATURE_LSE;
    spec.features |= seed % 3 == 0 ? (unsigned)BACKWARD_GATES : 0u;
    spec.features |= seed % 5 == 0 ? (unsigned)BACKWARD_DROPOUT : 0u;
    return spec;
}

void backward_add_training(problem *c)
{
    mha_options *const o = &c->call.options;
    const mha_shape *const s = &c->call.shape;
    test_random random = {c->spec.seed ^ 0x74726169};
    if (c->spec.features & BACKWARD_GATES) {
        const ptrdiff_t strides[] = {0, s->H, s->H + 2}, stride = strides[c->spec.seed / 3 % 3];
        const ptrdiff_t count = s->B > 0 ? (s->B - 1) * stride + s->H : 0;
        float *const gates = problem_alloc(c, (size_t)count * sizeof *gates);
        for (ptrdiff_t n = 0; n < count; n++)
            gates[n] = test_random_below(&random, 5) ? test_random_normal(&random) : 0;
        o->gates = gates;
        o->gates_sb = stride;
    }
    if (c->spec.features & BACKWARD_DROPOUT) {
        o->flags |= MHA_TRAINING;
        o->dropout = (float)test_random_below(&random, 60000) / 65536;
        o->dropout_seed = test_random_u64(&random);
    }
}

/* ------------------------------------------------------------------ build */

/* A tensor for the gradient of tensor `id`, with every row it has apart. */
static void make_rows(backward_case *x, tensor_id id, test_random *random)
{
    const mha_shape *const s = &x->forward->call.shape;
    const bool keys = id == TENSOR_K || id == TENSOR_V;
    const int64_t *const starts = backward_starts(x, id);
    const ptrdiff_t rows = starts ? (ptrdiff_t)starts[s->B] : keys ? s->S : s->L;
    const ptrdiff_t n[4] = {starts ? 1 : s->B, keys ? call_groups(&x->forward->call) : s->H, rows,
                            x->forward->tensors[id].n[3]};
    const bool strided = (x->forward->spec.features & FEATURE_STRIDES) != 0;
    problem_tensor(x->gradients, id, mha_dtype_size(problem_type(x->gradients, id)), n,
                   strided ? random : NULL, 0);
}

/* For a bias: summed over the axes along which it is broadcast, or over any axes. */
static void make_bias(backward_case *x, tensor_id id, test_random *random)
{
    const tensor *const t = &x->forward->tensors[id];
    const mha_shape *const s = &x->forward->call.shape;
    const ptrdiff_t n[4] = {s->B, s->H, s->L, s->S};
    unsigned axes = (unsigned)test_random_below(random, 8);
    if (test_random_below(random, 2))
        axes = (t->s[0] == 0) * 1u + (t->s[1] == 0) * 2u + (t->s[2] == 0) * 4u;
    const bool strided = (x->forward->spec.features & FEATURE_STRIDES) != 0;
    if (t->memory)
        problem_tensor(x->gradients, id, sizeof(float), n, strided ? random : NULL, axes);
}

static void fill_given(backward_case *x, tensor_id id, test_random *random)
{
    const ptrdiff_t *const n = x->gradients->tensors[id].n;
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++)
        for (ptrdiff_t j = 0; j < n[3]; j++)
            problem_set(x->gradients, id, r / n[2] / n[1], r / n[2] % n[1], r % n[2], j,
                        (double)test_random_normal(random));
}

/* Gates, and their gradients, have as many numbers as their stride says. */
static ptrdiff_t gate_count(const backward_case *x)
{
    const mha_shape *const s = &x->forward->call.shape;
    return s->B > 0 ? (s->B - 1) * x->forward->call.options.gates_sb + s->H : 0;
}

static float *numbers_for(backward_case *x, const float *of, ptrdiff_t count)
{
    return of ? problem_alloc(x->gradients, (size_t)count * sizeof(float)) : NULL;
}

static void connect(backward_case *x)
{
    const tensor *const t = x->gradients->tensors;
    const mha_options *const o = &x->forward->call.options;
    const ptrdiff_t H = x->forward->call.shape.H;
    x->call = (mha_gradients){
        .size = sizeof x->call,
        .d_o = tensor_view(&t[TENSOR_O]),
        .d_o_type = x->gradients->call.shape.o_type,
        .d_lse = tensor_view(&t[TENSOR_LSE]),
        .d_q = tensor_out(&t[TENSOR_Q]),
        .d_k = tensor_out(&t[TENSOR_K]),
        .d_v = tensor_out(&t[TENSOR_V]),
        .d_bias = tensor_out(&t[TENSOR_BIAS]),
        .d_add_mask = tensor_out(&t[TENSOR_ADD]),
        .d_alibi_slopes = numbers_for(x, o->alibi_slopes, H),
        .d_sinks = numbers_for(x, o->sinks, H),
        .d_gates = numbers_for(x, o->gates, gate_count(x)),
    };
}

backward_case *backward_case_new(const problem_spec *spec)
{
    static const tensor_id rows[] = {TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_O};
    test_random random = {spec->seed ^ 0x6261636b};
    problem_spec shadow = *spec;
    backward_case *const x = calloc(1, sizeof *x);
    if (!x)
        abort();
    x->forward = problem_new(spec);
    backward_add_training(x->forward);
    problem_run(x->forward, NULL);
    shadow.shape.q_type = shadow.shape.k_type = shadow.shape.v_type = MHA_F32;
    shadow.shape.o_type = (mha_dtype)test_random_below(&random, 3);
    x->gradients = problem_new_bare(&shadow);
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++)
        make_rows(x, rows[n], &random);
    make_bias(x, TENSOR_BIAS, &random);
    make_bias(x, TENSOR_ADD, &random);
    fill_given(x, TENSOR_O, &random);
    if (test_random_below(&random, 2)) {
        make_rows(x, TENSOR_LSE, &random);
        fill_given(x, TENSOR_LSE, &random);
    }
    connect(x);
    backward_clear(x);
    return x;
}

backward_case *backward_case_relayout(const backward_case *original, uint64_t seed)
{
    static const tensor_id given[] = {TENSOR_O, TENSOR_LSE};
    backward_case *const x = calloc(1, sizeof *x);
    if (!x)
        abort();
    x->forward = problem_new_layout(original->forward, seed);
    problem_run(x->forward, NULL);
    x->gradients = problem_new_layout(original->gradients, seed + 1);
    for (int k = 0; k < 2; k++) {
        const ptrdiff_t *const n = x->gradients->tensors[given[k]].n;
        for (ptrdiff_t at = 0; at < n[0] * n[1] * n[2] * n[3]; at++) {
            const ptrdiff_t row = at / n[3], i = row % n[2], h = row / n[2] % n[1];
            problem_set(
                x->gradients, given[k], row / n[2] / n[1], h, i, at % n[3],
                problem_get(original->gradients, given[k], row / n[2] / n[1], h, i, at % n[3]));
        }
    }
    connect(x);
    backward_clear(x);
    return x;
}

void backward_case_free(backward_case *x)
{
    problem_delete(x->forward);
    problem_delete(x->gradients);
    free(x);
}

backward_problem backward_problem_of(const backward_case *x)
{
    return (backward_problem){
        .forward = x->forward->call,
        .d_o = x->call.d_o,
        .d_o_type = x->call.d_o_type,
        .d_lse = x->call.d_lse,
        .d_lse_type = MHA_F32,
    };
}

const int64_t *backward_starts(const backward_case *x, tensor_id id)
{
    const mha_options *const o = &x->forward->call.options;
    if (id == TENSOR_BIAS || id == TENSOR_ADD)
        return NULL;
    return id == TENSOR_K || id == TENSOR_V ? o->k_starts : o->q_starts;
}

/* -------------------------------------------------------------------- run */

enum { BLOCKS = BACKWARD_TENSORS + 3 };

/* The n-th block of output memory; NULL where it is not part of the call. */
static unsigned char *output_block(const backward_case *x, int n, size_t *size)
{
    if (n < BACKWARD_TENSORS) {
        const tensor *const t = &x->gradients->tensors[backward_outputs[n].tensor];
        *size = t->bytes;
        return t->memory;
    }
    float *const arrays[] = {x->call.d_alibi_slopes, x->call.d_sinks, x->call.d_gates};
    const ptrdiff_t H = x->forward->call.shape.H;
    *size = sizeof(float) * (size_t)(n == BLOCKS - 1 ? gate_count(x) : H);
    return (unsigned char *)arrays[n - BACKWARD_TENSORS];
}

void backward_clear(backward_case *x)
{
    size_t size;
    for (int n = 0; n < BLOCKS; n++) {
        unsigned char *const block = output_block(x, n, &size);
        if (block)
            memset(block, PATTERN, size);
    }
}

/* Blocks [first, BLOCKS) one after another. */
static unsigned char *copy_blocks(const backward_case *x, int first, size_t *size)
{
    size_t block_size, at = 0;
    *size = 0;
    for (int n = first; n < BLOCKS; n++)
        *size += output_block(x, n, &block_size) ? block_size : 0;
    unsigned char *const bytes = malloc(*size + 1);
    if (!bytes)
        abort();
    for (int n = first; n < BLOCKS; n++) {
        const unsigned char *const block = output_block(x, n, &block_size);
        if (block) {
            memcpy(bytes + at, block, block_size);
            at += block_size;
        }
    }
    return bytes;
}

unsigned char *backward_bytes(const backward_case *x, size_t *size)
{
    return copy_blocks(x, 0, size);
}

unsigned char *backward_arrays(const backward_case *x, size_t *size)
{
    return copy_blocks(x, BACKWARD_TENSORS, size);
}

void backward_run(backward_case *x, bool workspace, mha_pool *pool)
{
    problem *const f = x->forward;
    const attention_call *const p = &f->call;
    const mha_view o = call_view_of(&p->o);
    const size_t size = mha_backward_work_size(&p->shape, &p->options, mha_pool_threads(pool));
    void *const work = workspace ? problem_alloc(x->gradients, size) : NULL;
    backward_clear(x);
    f->message[0] = '\0';
    CHECK(size > 0, "%s: no workspace size", f->name);
    const mha_status status = mha_attention_backward(&p->shape, p->q, p->k, p->v, o, &p->options,
                                                     &x->call, work, workspace ? size : 0, pool);
    CHECK(status == MHA_OK, "%s: backward: status %d, %s", f->name, (int)status, f->message);
}

/* ------------------------------------------------------------------ check */

gradient gradient_fold(const gradient *g, const tensor *t, const int64_t *starts, bool narrow)
{
    gradient sum = gradient_new(t->n);
    const ptrdiff_t *const n = g->n;
    for (ptrdiff_t at = 0; at < gradient_count(g); at++) {
        const ptrdiff_t j = at % n[3], i = at / n[3] % n[2], h = at / n[3] / n[2] % n[1];
        const ptrdiff_t b = at / n[3] / n[2] / n[1];
        if (starts && i >= (ptrdiff_t)(starts[b + 1] - starts[b]))
            continue;
        const ptrdiff_t row = starts ? (ptrdiff_t)starts[b] + i : t->n[2] == 1 ? 0 : i;
        const ptrdiff_t to =
            gradient_index(&sum, t->n[0] == 1 ? 0 : b, t->n[1] == 1 ? 0 : h, row, j);
        const double x = sum.x[to] + g->x[at];
        sum.x[to] = narrow ? (double)(float)x : x;
        sum.size[to] += g->size[at];
    }
    return sum;
}

static void check_untouched(const backward_case *x, const backward_output *output)
{
    const int64_t *const starts = backward_starts(x, output->tensor);
    tensor copy = x->gradients->tensors[output->tensor];
    copy.memory = malloc(copy.bytes + 1);
    if (!copy.memory)
        abort();
    memcpy(copy.memory, x->gradients->tensors[output->tensor].memory, copy.bytes);
    for (ptrdiff_t r = 0; r < copy.n[0] * copy.n[1] * copy.n[2]; r++) {
        const ptrdiff_t i = r % copy.n[2], h = r / copy.n[2] % copy.n[1];
        if (!starts || i >= (ptrdiff_t)starts[0])
            memset(tensor_at(&copy, r / copy.n[2] / copy.n[1], h, i, 0), PATTERN,
                   (size_t)copy.n[3] * copy.element);
    }
    size_t touched = 0;
    for (size_t n = 0; n < copy.bytes; n++)
        touched += copy.memory[n] != PATTERN;
    CHECK(touched == 0, "%s: %zu bytes beside %s written", x->forward->name, touched, output->name);
    free(copy.memory);
}

/* Between the gates of two batches. */
static void check_gate_gaps(const backward_case *x)
{
    const unsigned char *const bytes = (const unsigned char *)x->call.d_gates;
    const ptrdiff_t stride = x->forward->call.options.gates_sb, H = x->forward->call.shape.H;
    for (ptrdiff_t n = 0; bytes && n < gate_count(x) * (ptrdiff_t)sizeof(float); n++) {
        const ptrdiff_t at = n / (ptrdiff_t)sizeof(float);
        CHECK(stride == 0 || at % stride < H || bytes[n] == PATTERN, "%s: d_gates[%td] written",
              x->forward->name, at);
    }
}

void backward_check_untouched(const backward_case *x)
{
    check_gate_gaps(x);
    for (int n = 0; n < BACKWARD_TENSORS; n++)
        if (x->gradients->tensors[backward_outputs[n].tensor].memory)
            check_untouched(x, &backward_outputs[n]);
}
