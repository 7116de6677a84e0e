/* SPDX-License-Identifier: MIT */
#include "support/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_GAP = 0xff, OUTPUT_GAP = 0xa5 };

/* ----------------------------------------------------------------- memory */

void *case_alloc(test_case *c, size_t bytes)
{
    if (c->block_count == (int)(sizeof c->blocks / sizeof *c->blocks))
        abort();
    case_block *const block = &c->blocks[c->block_count++];
    if (c->spec.memory != CASE_HEAP) {
        const bool back = c->spec.memory == CASE_GUARD_BACK;
        block->guard = guard_new(bytes, back ? GUARD_AFTER : GUARD_BEFORE);
        return block->guard.data;
    }
    block->heap = malloc(bytes ? bytes : 1);
    if (!block->heap)
        abort();
    return block->heap;
}

void case_free(test_case *c)
{
    for (int n = 0; n < c->block_count; n++) {
        free(c->blocks[n].heap);
        guard_free(&c->blocks[n].guard);
    }
    free(c);
}

/* ---------------------------------------------------------------- tensors */

void *tensor_at(const tensor *t, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t index = t->origin + b * t->s[0] + h * t->s[1] + i * t->s[2] + j;
    return t->memory + index * (ptrdiff_t)t->element;
}

mha_dtype tensor_type(const test_case *c, tensor_id id)
{
    const mha_shape *shape = &c->call.shape;
    switch (id) {
    case T_Q:
        return shape->q_type;
    case T_K:
        return shape->k_type;
    case T_V:
        return shape->v_type;
    case T_O:
        return shape->o_type;
    case T_ADD:
        return c->call.options.add_mask_type;
    case T_BIAS:
        return c->call.options.bias_type;
    case T_LSE:
        return shape->q_type == MHA_F64 ? MHA_F64 : MHA_F32;
    case T_WEIGHTS:
        return c->call.options.weights_type;
    case T_ATTEND:
    case T_IGNORE:
    case T_COUNT:
        break;
    }
    abort();
}

double tensor_get(const test_case *c, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                  ptrdiff_t j)
{
    const void *const at = tensor_at(&c->tensors[id], b, h, i, j);
    const bool byte = id == T_ATTEND || id == T_IGNORE;
    return byte ? *(const unsigned char *)at : number_get(tensor_type(c, id), at, 0);
}

void tensor_set(test_case *c, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                double value)
{
    void *const at = tensor_at(&c->tensors[id], b, h, i, j);
    if (id == T_ATTEND || id == T_IGNORE) {
        *(unsigned char *)at = (unsigned char)value;
    } else {
        number_set(tensor_type(c, id), at, 0, value);
    }
}

static void swap(int *a, int *b)
{
    const int kept = *a;
    *a = *b;
    *b = kept;
}

/* Strides for t->n: rows first, heads next, batches outermost; or anything, if `random`. Axes
 * whose bit is in `broadcast` get extent 1 and stride 0. Returns the number of elements. */
static ptrdiff_t lay_out(tensor *t, test_random *random, unsigned broadcast)
{
    int order[3] = {2, 1, 0};
    if (random) {
        swap(&order[0], &order[test_random_below(random, 3)]);
        swap(&order[1], &order[1 + test_random_below(random, 2)]);
    }
    ptrdiff_t extent = t->n[3];
    t->origin = 0;
    for (int level = 0; level < 3; level++) {
        const int axis = order[level];
        if (broadcast & 1u << axis) {
            t->n[axis] = 1;
            t->s[axis] = 0;
            continue;
        }
        const ptrdiff_t gap = random ? (ptrdiff_t)test_random_below(random, 4) : 0;
        const ptrdiff_t step = extent + gap;
        const ptrdiff_t steps = t->n[axis] > 0 ? t->n[axis] - 1 : 0;
        const bool backwards = random && test_random_below(random, 4) == 0;
        t->s[axis] = backwards ? -step : step;
        t->origin += backwards ? steps * step : 0;
        extent += steps * step;
    }
    return extent;
}

void tensor_fill(test_case *c, tensor_id id, double value)
{
    const ptrdiff_t *const n = c->tensors[id].n;
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++)
        for (ptrdiff_t j = 0; j < n[3]; j++)
            tensor_set(c, id, r / n[2] / n[1], r / n[2] % n[1], r % n[2], j, value);
}

void tensor_make(test_case *c, tensor_id id, size_t element, const ptrdiff_t n[4],
                 test_random *layout, unsigned broadcast)
{
    tensor *const t = &c->tensors[id];
    memcpy(t->n, n, sizeof t->n);
    t->element = element;
    t->bytes = (size_t)lay_out(t, layout, broadcast) * element;
    t->memory = case_alloc(c, t->bytes);
    memset(t->memory, id >= T_O ? OUTPUT_GAP : INPUT_GAP, t->bytes);
}

static mha_view tensor_view(const tensor *t)
{
    if (!t->memory) {
        return (mha_view){0};
    }
    return (mha_view){tensor_at(t, 0, 0, 0, 0), t->s[0], t->s[1], t->s[2]};
}

static mha_out tensor_out(const tensor *t)
{
    if (!t->memory) {
        return (mha_out){0};
    }
    return (mha_out){tensor_at(t, 0, 0, 0, 0), t->s[0], t->s[1], t->s[2]};
}

void case_connect(test_case *c)
{
    problem *const call = &c->call;
    call->q = tensor_view(&c->tensors[T_Q]);
    call->k = tensor_view(&c->tensors[T_K]);
    call->v = tensor_view(&c->tensors[T_V]);
    call->o = tensor_out(&c->tensors[T_O]);
    call->options.attend_mask = tensor_view(&c->tensors[T_ATTEND]);
    call->options.ignore_mask = tensor_view(&c->tensors[T_IGNORE]);
    call->options.add_mask = tensor_view(&c->tensors[T_ADD]);
    call->options.bias = tensor_view(&c->tensors[T_BIAS]);
    call->options.lse = tensor_out(&c->tensors[T_LSE]);
    call->options.weights = tensor_out(&c->tensors[T_WEIGHTS]);
    call->options.message = c->message;
    call->options.message_size = sizeof c->message;
}

bool tensors_same(const tensor *a, const tensor *b)
{
    for (ptrdiff_t x = 0; x < a->n[0]; x++) {
        for (ptrdiff_t h = 0; h < a->n[1]; h++) {
            for (ptrdiff_t i = 0; i < a->n[2]; i++) {
                const size_t bytes = (size_t)a->n[3] * a->element;
                if (memcmp(tensor_at(a, x, h, i, 0), tensor_at(b, x, h, i, 0), bytes) != 0)
                    return false;
            }
        }
    }
    return true;
}

/* ------------------------------------------------------------------ cases */

test_case *case_new(const case_spec *spec)
{
    test_case *const c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->spec = *spec;
    c->call.shape = spec->shape;
    c->call.options.size = sizeof(mha_options);
    return c;
}

test_case *case_relayout(const test_case *original, uint64_t seed)
{
    test_random random = {seed};
    test_case *const c = case_new(&original->spec);
    c->call = original->call;
    for (int id = 0; id < T_COUNT; id++) {
        const tensor *const from = &original->tensors[id];
        if (!from->memory)
            continue;
        tensor_make(c, (tensor_id)id, from->element, from->n, &random, 0);
        tensor *const to = &c->tensors[id];
        for (int axis = 0; axis < 3; axis++)
            to->s[axis] = from->s[axis] == 0 && from->n[axis] == 1 ? 0 : to->s[axis];
        const ptrdiff_t rows = from->n[0] * from->n[1] * from->n[2];
        for (ptrdiff_t r = 0; r < rows && id < T_O; r++) {
            const ptrdiff_t i = r % from->n[2], h = r / from->n[2] % from->n[1];
            const ptrdiff_t b = r / from->n[2] / from->n[1];
            memcpy(tensor_at(to, b, h, i, 0), tensor_at(from, b, h, i, 0),
                   (size_t)from->n[3] * from->element);
        }
    }
    case_connect(c);
    return c;
}

/* -------------------------------------------------------------------- run */

const char *case_name(const test_case *c)
{
    static char text[200];
    const mha_shape *const s = &c->call.shape;
    snprintf(text, sizeof text,
             "seed %llu b%tdh%tdg%tdl%tds%tdd%tdv%td types %d%d%d%d features %#x",
             (unsigned long long)c->spec.seed, s->B, s->H, s->G, s->L, s->S, s->D, s->Dv,
             (int)s->q_type, (int)s->k_type, (int)s->v_type, (int)s->o_type, c->spec.features);
    return text;
}

void case_clear(test_case *c)
{
    for (int id = T_O; id < T_COUNT; id++)
        if (c->tensors[id].memory)
            memset(c->tensors[id].memory, OUTPUT_GAP, c->tensors[id].bytes);
}

void case_run(test_case *c, mha_pool *pool)
{
    const problem *const p = &c->call;
    case_clear(c);
    c->message[0] = '\0';
    const mha_status status = mha_attention(&p->shape, p->q, p->k, p->v, p->o, &p->options, pool);
    CHECK(status == MHA_OK, "%s: status %d, %s", case_name(c), (int)status, c->message);
}

void case_run_plan(test_case *c, mha_pool *pool)
{
    const problem *const p = &c->call;
    mha_plan *plan;
    case_clear(c);
    mha_status status = mha_plan_create(&plan, &p->shape, &p->options);
    if (!CHECK(status == MHA_OK, "%s: plan: status %d, %s", case_name(c), (int)status,
               c->message)) {
        return;
    }
    const size_t size = mha_plan_work_size(plan, mha_pool_threads(pool));
    void *const work = case_alloc(c, size);
    status = mha_plan_run(plan, p->q, p->k, p->v, p->o, &p->options, work, size, pool);
    CHECK(status == MHA_OK, "%s: run: status %d, %s", case_name(c), (int)status, c->message);
    mha_plan_free(plan);
}

/* Blank out in `copy` what the call must have written, so that only gaps and unwritten rows are
 * left to hold the pattern. */
static void forgive(const test_case *c, tensor_id id, const tensor *copy)
{
    const problem *const p = &c->call;
    const tensor *const t = copy;
    const int64_t *const list = id == T_WEIGHTS ? p->options.weights_rows : NULL;
    const int64_t *const starts = id == T_WEIGHTS ? NULL : p->options.q_starts;
    for (ptrdiff_t b = 0; b < p->shape.B; b++) {
        const ptrdiff_t rows = id == T_WEIGHTS ? t->n[2] : oracle_queries(p, b);
        for (ptrdiff_t r = 0; r < rows; r++) {
            if ((list ? (ptrdiff_t)list[r] : r) >= oracle_queries(p, b))
                continue;
            for (ptrdiff_t h = 0; h < t->n[1]; h++) {
                const ptrdiff_t row = starts ? (ptrdiff_t)starts[b] + r : r;
                memset(tensor_at(t, starts ? 0 : b, h, row, 0), OUTPUT_GAP,
                       (size_t)t->n[3] * t->element);
            }
        }
    }
}

static void check_untouched(const test_case *c, tensor_id id)
{
    tensor copy = c->tensors[id];
    copy.memory = malloc(copy.bytes + 1);
    if (!copy.memory)
        abort();
    memcpy(copy.memory, c->tensors[id].memory, copy.bytes);
    if (c->call.shape.D > 0)
        forgive(c, id, &copy);
    size_t touched = 0;
    for (size_t n = 0; n < copy.bytes; n++)
        touched += copy.memory[n] != OUTPUT_GAP;
    CHECK(touched == 0, "%s: %zu bytes of output %d written that must not be", case_name(c),
          touched, (int)id);
    free(copy.memory);
}

void case_check_untouched(const test_case *c)
{
    for (int id = T_O; id < T_COUNT; id++)
        if (c->tensors[id].memory)
            check_untouched(c, (tensor_id)id);
}

double case_check(test_case *c, double limit)
{
    comparison result = {.limit = limit};
    oracle_compare(&c->call, &result);
    CHECK(result.failures == 0, "%s: %td wrong, first %s", case_name(c), result.failures,
          result.first);
    case_check_untouched(c);
    return result.worst;
}
