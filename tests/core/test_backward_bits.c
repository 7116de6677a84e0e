/* SPDX-License-Identifier: MIT */
/*
 * What gradients do not depend on: threads, the batch a sequence stands in, layout, what else is
 * requested, and what lies in places that are masked.
 */
#include "support/backward_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- threads */

enum { POOLS = 5 };

/* An executor that takes tasks from the last to the first. */
static void run_backwards(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int index = tasks - 1; index >= 0; index--)
        task(arg, index);
}

static void make_pools(mha_pool **pools)
{
    static const int counts[POOLS - 1] = {1, 2, 3, 5};
    const mha_executor backwards = {sizeof backwards, NULL, 4, run_backwards};
    for (int n = 0; n < POOLS - 1; n++)
        if (mha_pool_create(&pools[n], counts[n]) != MHA_OK)
            abort();
    if (mha_pool_create_from(&pools[POOLS - 1], &backwards) != MHA_OK)
        abort();
}

static void check_pools(const problem_spec *spec, mha_pool **pools)
{
    backward_case *const x = backward_case_new(spec);
    size_t size, again;
    backward_run(x, true, NULL);
    unsigned char *const alone = backward_bytes(x, &size);
    for (int n = 0; n < POOLS; n++) {
        backward_run(x, n % 2 == 0, pools[n]);
        unsigned char *const now = backward_bytes(x, &again);
        CHECK(size == again && memcmp(alone, now, size) == 0, "%d threads: %s",
              mha_pool_threads(pools[n]), x->forward->name);
        free(now);
    }
    free(alone);
    backward_case_free(x);
}

static void threads(void)
{
    mha_pool *pools[POOLS];
    make_pools(pools);
    const uint64_t base = test_seed(93000);
    for (int64_t n = 0; n < test_effort(100); n++) {
        problem_spec spec = backward_spec(base + (uint64_t)n, 4e5);
        spec.memory = n % 2 ? &guard_memory_back : NULL;
        check_pools(&spec, pools);
    }
    for (int n = 0; n < POOLS; n++)
        mha_pool_free(pools[n]);
}

/* ------------------------------------------------- batches, layouts, requests */

static mha_out moved(mha_out out, const int64_t *starts, ptrdiff_t b)
{
    if (out.data)
        out.data = (float *)out.data + (starts ? (ptrdiff_t)starts[b] * out.sl : b * out.sb);
    return out;
}

static mha_view moved_view(mha_view view, mha_dtype type, const int64_t *starts, ptrdiff_t b)
{
    if (view.data)
        view.data = (const char *)view.data +
                    call_row_index(&view, starts, b, 0, 0) * (ptrdiff_t)mha_dtype_size(type);
    return view;
}

/* Batch b alone into the same tensors, and only queries, keys and values. */
static void run_batch(const backward_case *x, ptrdiff_t b)
{
    const mha_options *const o = &x->forward->call.options;
    const mha_gradients *const g = &x->call;
    const mha_gradients part = {
        .size = sizeof part,
        .d_o = moved_view(g->d_o, g->d_o_type, o->q_starts, b),
        .d_o_type = g->d_o_type,
        .d_lse = moved_view(g->d_lse, MHA_F32, o->q_starts, b),
        .d_q = moved(g->d_q, o->q_starts, b),
        .d_k = moved(g->d_k, o->k_starts, b),
        .d_v = moved(g->d_v, o->k_starts, b),
    };
    slice s;
    slice_begin(&s, &x->forward->call);
    slice_batch(&s, b);
    if (s.call.options.gates)
        s.call.options.gates += b * s.call.options.gates_sb;
    const attention_call *const p = &s.call;
    const mha_view out = {p->o.data, p->o.sb, p->o.sh, p->o.sl};
    const mha_status status =
        mha_attention_backward(&p->shape, p->q, p->k, p->v, out, &p->options, &part, NULL, 0, NULL);
    CHECK(status == MHA_OK, "%s: batch %td: status %d, %s", x->forward->name, b, (int)status,
          x->forward->message);
}

static void batches_alone(void)
{
    const uint64_t base = test_seed(94000);
    for (int64_t n = 0; n < test_effort(150); n++) {
        problem_spec spec = backward_spec(base + (uint64_t)n, 2e5);
        spec.features &= ~(unsigned)BACKWARD_DROPOUT; /* which depends on the batch */
        backward_case *const x = backward_case_new(&spec), *const y = backward_case_new(&spec);
        backward_run(x, false, NULL);
        for (ptrdiff_t b = 0; b < spec.shape.B; b++)
            run_batch(y, b);
        for (int id = 0; id < 3; id++)
            CHECK(memcmp(x->gradients->tensors[id].memory, y->gradients->tensors[id].memory,
                         x->gradients->tensors[id].bytes) == 0,
                  "%s alone: %s", backward_outputs[id].name, x->forward->name);
        backward_case_free(x);
        backward_case_free(y);
    }
}

static void layouts(void)
{
    const uint64_t base = test_seed(95000);
    for (int64_t n = 0; n < test_effort(150); n++) {
        const problem_spec spec = backward_spec(base + (uint64_t)n, 2e5);
        backward_case *const x = backward_case_new(&spec);
        backward_case *const y = backward_case_relayout(x, base + (uint64_t)n);
        backward_run(x, false, NULL);
        backward_run(y, true, NULL);
        for (int k = 0; k < BACKWARD_TENSORS; k++) {
            const tensor_id id = backward_outputs[k].tensor;
            CHECK(!x->gradients->tensors[id].memory ||
                      tensors_same(&x->gradients->tensors[id], &y->gradients->tensors[id]),
                  "%s in other strides: %s", backward_outputs[k].name, x->forward->name);
        }
        size_t size, again;
        unsigned char *const a = backward_arrays(x, &size), *const b = backward_arrays(y, &again);
        CHECK(size == again && memcmp(a, b, size) == 0, "numbers of heads in other strides: %s",
              x->forward->name);
        free(a);
        free(b);
        backward_case_free(y);
        backward_case_free(x);
    }
}

/* Each gradient requested alone has the bits it has among the others. */
static void requests(void)
{
    const uint64_t base = test_seed(96000);
    for (int64_t n = 0; n < test_effort(60); n++) {
        const problem_spec spec = backward_spec(base + (uint64_t)n, 1e5);
        backward_case *const x = backward_case_new(&spec), *const y = backward_case_new(&spec);
        const mha_gradients all = y->call;
        backward_run(x, false, NULL);
        for (int k = 0; k < BACKWARD_TENSORS; k++) {
            const tensor_id id = backward_outputs[k].tensor;
            y->call = (mha_gradients){.size = sizeof all, .d_o = all.d_o, .d_lse = all.d_lse};
            y->call.d_o_type = all.d_o_type;
            mha_out *const wanted[] = {&y->call.d_q, &y->call.d_k, &y->call.d_v, &y->call.d_bias,
                                       &y->call.d_add_mask};
            const mha_out outs[] = {all.d_q, all.d_k, all.d_v, all.d_bias, all.d_add_mask};
            *wanted[k] = outs[k];
            if (!outs[k].data)
                continue;
            backward_run(y, false, NULL);
            CHECK(memcmp(x->gradients->tensors[id].memory, y->gradients->tensors[id].memory,
                         x->gradients->tensors[id].bytes) == 0,
                  "%s by itself: %s", backward_outputs[k].name, x->forward->name);
        }
        backward_case_free(x);
        backward_case_free(y);
    }
}

/* -------------------------------------------------------------------- NaN */

/* Rows of one tensor that hold poison, one flag each. */
typedef struct poison {
    const tensor *rows;
    bool *flags;
} poison;

static bool flagged(const poison *p, const int64_t *starts, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const ptrdiff_t *const n = p->rows->n;
    return p->flags[starts ? h * n[2] + (ptrdiff_t)starts[b] + i : (b * n[1] + h) * n[2] + i];
}

static poison poison_rows(problem *c, tensor_id id, double value, test_random *random)
{
    const tensor *const t = &c->tensors[id];
    const ptrdiff_t *const n = t->n;
    const int64_t rarity = 1 + test_random_below(random, 9);
    poison p = {t, calloc((size_t)(n[0] * n[1] * n[2]) + 1, 1)};
    if (!p.flags)
        abort();
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++) {
        p.flags[r] = test_random_below(random, rarity) == 0;
        for (ptrdiff_t j = 0; p.flags[r] && j < n[3]; j++)
            problem_set(c, id, r / n[2] / n[1], r / n[2] % n[1], r % n[2], j, value);
    }
    return p;
}

/* Whether row (b,h,i) attends to a poisoned key. */
static bool reached(const attention_call *call, const poison *p, ptrdiff_t b, ptrdiff_t h,
                    ptrdiff_t i)
{
    const ptrdiff_t g = h / (call->shape.H / call_groups(call));
    for (ptrdiff_t j = 0; j < call_keys(call, b); j++)
        if (call_attends(call, b, h, i, j) && flagged(p, call->options.k_starts, b, g, j))
            return true;
    return false;
}

static void mark(gradient *g, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    for (ptrdiff_t c = 0; c < g->n[3]; c++)
        g->x[gradient_index(g, b, h, i, c)] = 1;
}

/* Mark what a poisoned row may show in. */
static void mark_row(const attention_call *call, backward_answer *marks, ptrdiff_t b, ptrdiff_t h,
                     ptrdiff_t i)
{
    const ptrdiff_t g = h / (call->shape.H / call_groups(call));
    gradient *const of = marks->of;
    mark(&of[GRAD_Q], b, h, i);
    for (ptrdiff_t j = 0; j < call_keys(call, b); j++)
        if (call_attends(call, b, h, i, j)) {
            mark(&of[GRAD_K], b, g, j);
            mark(&of[GRAD_V], b, g, j);
            of[GRAD_BIAS].x[gradient_index(&of[GRAD_BIAS], b, h, i, j)] = 1;
        }
    of[GRAD_ALIBI].x[h] = of[GRAD_SINKS].x[h] = 1;
    of[GRAD_GATES].x[gradient_index(&of[GRAD_GATES], b, 0, 0, h)] = 1;
}

/* Elements that are not marked have the same bits. */
static void compare_unmarked(const backward_case *clean, const backward_case *dirty,
                             const backward_output *output, const backward_answer *marks,
                             const char *what)
{
    const tensor *const a = &clean->gradients->tensors[output->tensor];
    const tensor *const b = &dirty->gradients->tensors[output->tensor];
    if (!a->memory)
        return;
    gradient m = gradient_fold(&marks->of[output->gradient], a,
                               backward_starts(clean, output->tensor), false);
    for (ptrdiff_t at = 0; at < gradient_count(&m); at++) {
        const ptrdiff_t j = at % m.n[3], row = at / m.n[3], i = row % m.n[2];
        const ptrdiff_t h = row / m.n[2] % m.n[1], x = row / m.n[2] / m.n[1];
        if (m.x[at] == 0 &&
            !CHECK(memcmp(tensor_at(a, x, h, i, j), tensor_at(b, x, h, i, j), sizeof(float)) == 0,
                   "%s shows in %s(%td,%td,%td,%td): %s", what, output->name, x, h, i, j,
                   clean->forward->name))
            break;
    }
    gradient_free(&m);
}

/* Numbers of heads; those of a batch are `stride` after those of the one before. */
static void compare_heads(const backward_case *clean, const float *a, const float *b,
                          const gradient *marks, ptrdiff_t stride, const char *what)
{
    const ptrdiff_t H = clean->forward->call.shape.H;
    for (ptrdiff_t n = 0; a && n < gradient_count(marks); n++) {
        const ptrdiff_t at = n / H * stride + n % H;
        CHECK(marks->x[n] != 0 || memcmp(&a[at], &b[at], sizeof *a) == 0,
              "%s shows in head %td: %s", what, n % H, clean->forward->name);
    }
}

static void compare_gates(const backward_case *clean, const backward_case *dirty,
                          const gradient *marks, const char *what)
{
    const mha_shape *const s = &clean->forward->call.shape;
    const ptrdiff_t stride = clean->forward->call.options.gates_sb;
    const tensor shared = {.n = {stride == 0 ? 1 : s->B, 1, 1, s->H}};
    gradient folded = gradient_fold(marks, &shared, NULL, false);
    compare_heads(clean, clean->call.d_gates, dirty->call.d_gates, &folded, stride, what);
    gradient_free(&folded);
}

static void compare_clean(const backward_case *clean, const backward_case *dirty, const poison *p,
                          const char *what)
{
    const attention_call *const call = &clean->forward->call;
    const backward_problem of = backward_problem_of(clean);
    backward_answer marks = backward_oracle(&of);
    for (int id = 0; id < GRAD_COUNT; id++)
        memset(marks.of[id].x, 0, (size_t)gradient_count(&marks.of[id]) * sizeof(double));
    for (ptrdiff_t b = 0; b < call->shape.B; b++)
        for (ptrdiff_t n = 0; n < call->shape.H * call_queries(call, b); n++) {
            const ptrdiff_t h = n % call->shape.H, i = n / call->shape.H;
            if (reached(call, p, b, h, i))
                mark_row(call, &marks, b, h, i);
        }
    for (int n = 0; n < BACKWARD_TENSORS; n++)
        compare_unmarked(clean, dirty, &backward_outputs[n], &marks, what);
    compare_heads(clean, clean->call.d_alibi_slopes, dirty->call.d_alibi_slopes,
                  &marks.of[GRAD_ALIBI], 0, what);
    compare_heads(clean, clean->call.d_sinks, dirty->call.d_sinks, &marks.of[GRAD_SINKS], 0, what);
    compare_gates(clean, dirty, &marks.of[GRAD_GATES], what);
    backward_answer_free(&marks);
}

static problem_spec masked_spec(uint64_t seed)
{
    problem_spec spec = backward_spec(seed, 5e4);
    test_random random = {seed};
    /* A shared key would be poisoned for all its readers. */
    spec.features &= ~(unsigned)FEATURE_BROADCAST;
    for (int n = 0; n < 2; n++) {
        const unsigned masks[] = {FEATURE_CAUSAL | FEATURE_OFFSET,
                                  FEATURE_ATTEND,
                                  FEATURE_K_LENGTHS,
                                  FEATURE_DOCUMENTS,
                                  FEATURE_WINDOW,
                                  FEATURE_ADD,
                                  FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS,
                                  FEATURE_PACKED,
                                  FEATURE_IGNORE};
        spec.features |= masks[test_random_below(&random, 9)];
    }
    spec.logits = fmin(spec.logits, 2);
    return spec;
}

static void check_poison(uint64_t seed, tensor_id id, double value, const char *what)
{
    const problem_spec spec = masked_spec(seed);
    test_random random = {seed};
    backward_case *const clean = backward_case_new(&spec), *const dirty = backward_case_new(&spec);
    const poison p = poison_rows(dirty->forward, id, value, &random);
    problem_run(dirty->forward, NULL);
    backward_run(clean, false, NULL);
    backward_run(dirty, true, NULL);
    compare_clean(clean, dirty, &p, what);
    free(p.flags);
    backward_case_free(clean);
    backward_case_free(dirty);
}

static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};

/* A key or value that is not finite shows in the rows that attend to it, and in no other. */
static void masked_keys_are_unread(void)
{
    const uint64_t base = test_seed(97000);
    for (int64_t n = 0; n < test_effort(120); n++)
        check_poison(base + (uint64_t)n, TENSOR_K, odd[n % 3], "a masked key");
}

static void masked_values_are_unread(void)
{
    const uint64_t base = test_seed(97500);
    for (int64_t n = 0; n < test_effort(120); n++)
        check_poison(base + (uint64_t)n, TENSOR_V, odd[n % 3], "a masked value");
}

static void check_same(const backward_case *clean, const backward_case *dirty, const char *what)
{
    size_t size, again;
    unsigned char *const a = backward_bytes(clean, &size);
    unsigned char *const b = backward_bytes(dirty, &again);
    CHECK(size == again && memcmp(a, b, size) == 0, "%s shows: %s", what, clean->forward->name);
    free(a);
    free(b);
}

/* Whether row i of batch b attends to anything; one past a length does not. */
static bool attends(const attention_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    bool any = false;
    for (ptrdiff_t j = 0; i < call_queries(call, b) && j < call_keys(call, b); j++)
        any = any || call_attends(call, b, h, i, j);
    return any;
}

/* Spoil what belongs to rows that attend to nothing: query, d_o and d_lse. */
static void spoil_empty_rows(backward_case *x, double value)
{
    const attention_call *const call = &x->forward->call;
    const mha_shape *const s = &call->shape;
    const int64_t *const starts = call->options.q_starts;
    problem *const cases[] = {x->forward, x->gradients, x->gradients};
    static const tensor_id ids[] = {TENSOR_Q, TENSOR_O, TENSOR_LSE};
    for (ptrdiff_t n = 0; n < s->B * s->H * s->L; n++) {
        const ptrdiff_t i = n % s->L, h = n / s->L % s->H, b = n / s->L / s->H;
        if (attends(call, b, h, i) || (starts && i >= (ptrdiff_t)(starts[b + 1] - starts[b])))
            continue;
        for (int k = 0; k < 3; k++)
            for (ptrdiff_t c = 0; c < cases[k]->tensors[ids[k]].n[3]; c++)
                problem_set(cases[k], ids[k], starts ? 0 : b, h,
                            starts ? (ptrdiff_t)starts[b] + i : i, c, value);
    }
}

static void empty_rows_and_padding_are_unread(void)
{
    const uint64_t base = test_seed(97800);
    for (int64_t n = 0; n < test_effort(150); n++) {
        const problem_spec spec = masked_spec(base + (uint64_t)n);
        backward_case *const clean = backward_case_new(&spec);
        backward_case *const dirty = backward_case_new(&spec);
        spoil_empty_rows(dirty, odd[n % 3]);
        problem_run(dirty->forward, NULL);
        backward_run(clean, false, NULL);
        backward_run(dirty, false, NULL);
        check_same(clean, dirty, "an empty row");
        backward_case_free(clean);
        backward_case_free(dirty);
    }
}

/* NaN and inf in a bias or additive mask count for nothing where another mask rules the key out. */
static void masked_bias_is_unread(void)
{
    const uint64_t base = test_seed(98000);
    for (int64_t n = 0; n < test_effort(60); n++) {
        problem_spec spec = masked_spec(base + (uint64_t)n);
        spec.features |= FEATURE_BIAS | FEATURE_ADD;
        backward_case *const clean = backward_case_new(&spec);
        backward_case *const dirty = backward_case_new(&spec);
        problem *const f = dirty->forward;
        const mha_shape *const s = &spec.shape;
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L * s->S; r++) {
            const ptrdiff_t j = r % s->S, i = r / s->S % s->L, h = r / s->S / s->L % s->H;
            const ptrdiff_t b = r / s->S / s->L / s->H;
            if (i < call_queries(&f->call, b) && call_attends(&clean->forward->call, b, h, i, j))
                continue;
            /* One of the two may be the mask itself. */
            if (problem_get(f, TENSOR_ADD, b, h, i, j) != -INFINITY)
                problem_set(f, TENSOR_ADD, b, h, i, j, j % 2 ? NAN : INFINITY);
            else if (problem_get(f, TENSOR_BIAS, b, h, i, j) != -INFINITY)
                problem_set(f, TENSOR_BIAS, b, h, i, j, j % 2 ? INFINITY : NAN);
        }
        problem_run(f, NULL);
        backward_run(clean, false, NULL);
        backward_run(dirty, false, NULL);
        check_same(clean, dirty, "a masked bias");
        backward_case_free(clean);
        backward_case_free(dirty);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(threads);
    RUN(batches_alone);
    RUN(layouts);
    RUN(requests);
    RUN(masked_keys_are_unread);
    RUN(masked_values_are_unread);
    RUN(empty_rows_and_padding_are_unread);
    RUN(masked_bias_is_unread);
    return test_end();
}
