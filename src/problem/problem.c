/* SPDX-License-Identifier: MIT */
/*
 * Problems as such: their memory, tensors by name, copies in f64 and in other layouts, and runs.
 * Words and specs become problems in problem_build.c; the numbers come from problem_fill.c.
 */
#include "problem/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/number.h"
#include "problem/problem_masks.h"

enum { ALIGNMENT = 64, INPUT_GAP = 0xff };

/* ---------------------------------------------------------------- memory ----- */

typedef struct problem_block problem_block;
struct problem_block {
    problem_block *next;
    void *handle;
};

void *problem_alloc(problem *p, size_t bytes)
{
    const problem_memory *memory = p->spec.memory;
    problem_block *block = malloc(sizeof *block);
    void *data = NULL;
    if (block == NULL)
        return NULL;
    if (memory != NULL)
        data = memory->take(bytes, &block->handle);
    else if (posix_memalign(&data, ALIGNMENT, bytes > 0 ? bytes : 1) == 0)
        block->handle = data;
    else
        data = NULL;
    if (data == NULL) {
        free(block);
        return NULL;
    }
    block->next = p->blocks;
    p->blocks = block;
    return data;
}

/* Frees what problem_alloc() returned last. */
static void free_newest(problem *p)
{
    const problem_memory *memory = p->spec.memory;
    problem_block *const block = p->blocks;
    p->blocks = block->next;
    (memory != NULL ? memory->give : free)(block->handle);
    free(block);
}

void problem_free(problem *p)
{
    while (p->blocks != NULL)
        free_newest(p);
    memset(p->tensors, 0, sizeof p->tensors);
}

/* Once per problem: tests pass the name to every check. */
static void set_name(problem *p)
{
    const size_t used = word_print(&p->word, p->name, WORD_TEXT_MAX);
    snprintf(p->name + used, sizeof p->name - used, " (seed %llu, features %#x)",
             (unsigned long long)p->spec.seed, p->spec.features);
}

void problem_begin(problem *p, const problem_spec *spec, const problem_word *word)
{
    memset(p, 0, sizeof *p);
    p->spec = *spec;
    p->word = *word;
    p->call.shape = spec->shape;
    p->call.options = word_options(word);
    set_name(p);
}

/* --------------------------------------------------------------- tensors ----- */

bool problem_tensor(problem *p, tensor_id id, size_t element, const ptrdiff_t n[4], rng *layout,
                    unsigned share)
{
    const bool lead = p->spec.memory == NULL;
    tensor *const t = &p->tensors[id];
    tensor_layout y = {.order = p->word.layout == WORD_BLHD};
    if (layout != NULL)
        y = tensor_random_layout(layout, lead);
    y.share = share;
    if (!tensor_lay_out(t, element, n, &y))
        return false;
    t->memory = problem_alloc(p, t->bytes);
    if (t->memory != NULL)
        memset(t->memory, id >= TENSOR_O ? PROBLEM_UNTOUCHED : INPUT_GAP, t->bytes);
    return t->memory != NULL;
}

void problem_connect(problem *p)
{
    attention_call *const call = &p->call;
    call->q = tensor_view(&p->tensors[TENSOR_Q]);
    call->k = tensor_view(&p->tensors[TENSOR_K]);
    call->v = tensor_view(&p->tensors[TENSOR_V]);
    call->o = tensor_out(&p->tensors[TENSOR_O]);
    call->options.attend_mask = tensor_view(&p->tensors[TENSOR_ATTEND]);
    call->options.ignore_mask = tensor_view(&p->tensors[TENSOR_IGNORE]);
    call->options.add_mask = tensor_view(&p->tensors[TENSOR_ADD]);
    call->options.bias = tensor_view(&p->tensors[TENSOR_BIAS]);
    call->options.lse = tensor_out(&p->tensors[TENSOR_LSE]);
    call->options.weights = tensor_out(&p->tensors[TENSOR_WEIGHTS]);
    call->options.message = p->message;
    call->options.message_size = sizeof p->message;
}

mha_dtype problem_type(const problem *p, tensor_id id)
{
    const mha_shape *const shape = &p->call.shape;
    switch (id) {
    case TENSOR_Q:
        return shape->q_type;
    case TENSOR_K:
        return shape->k_type;
    case TENSOR_V:
        return shape->v_type;
    case TENSOR_O:
        return shape->o_type;
    case TENSOR_ADD:
        return p->call.options.add_mask_type;
    case TENSOR_BIAS:
        return p->call.options.bias_type;
    case TENSOR_LSE:
        return shape->q_type == MHA_F64 ? MHA_F64 : MHA_F32;
    case TENSOR_WEIGHTS:
        return p->call.options.weights_type;
    case TENSOR_ATTEND:
    case TENSOR_IGNORE:
    case TENSOR_COUNT:
        break;
    }
    abort();
}

static bool is_boolean(tensor_id id)
{
    return id == TENSOR_ATTEND || id == TENSOR_IGNORE;
}

double problem_get(const problem *p, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                   ptrdiff_t j)
{
    const void *const at = tensor_at(&p->tensors[id], b, h, i, j);
    return is_boolean(id) ? *(const unsigned char *)at : number_get(problem_type(p, id), at, 0);
}

void problem_set(problem *p, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                 double value)
{
    void *const at = tensor_at(&p->tensors[id], b, h, i, j);
    if (is_boolean(id))
        *(unsigned char *)at = (unsigned char)value;
    else
        number_set(problem_type(p, id), at, 0, value);
}

void problem_set_all(problem *p, tensor_id id, double value)
{
    const ptrdiff_t *const n = p->tensors[id].n;
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++)
        for (ptrdiff_t j = 0; j < n[3]; j++)
            problem_set(p, id, r / n[2] / n[1], r / n[2] % n[1], r % n[2], j, value);
}

/* ---------------------------------------------------------------- copies ----- */

/* The tensor in f64, gaps included. */
static bool widen(problem *twin, const problem *p, tensor_id id)
{
    const tensor *const from = &p->tensors[id];
    tensor *const to = &twin->tensors[id];
    if (from->memory == NULL)
        return true;
    const size_t count = from->bytes / from->element;
    to->element = sizeof(double);
    to->bytes = count * sizeof(double);
    to->memory = problem_alloc(twin, to->bytes);
    if (to->memory != NULL)
        number_get_row(problem_type(p, id), from->memory, 0, (ptrdiff_t)count,
                       (double *)(void *)to->memory);
    return to->memory != NULL;
}

static bool make_lse(problem *p)
{
    const mha_shape *const s = &p->call.shape;
    const int64_t *const starts = p->call.options.q_starts;
    const ptrdiff_t n[4] = {starts ? 1 : s->B, s->H, starts ? (ptrdiff_t)starts[s->B] : s->L, 1};
    return problem_tensor(p, TENSOR_LSE, sizeof(double), n, NULL, 0);
}

bool problem_twin(problem *twin, const problem *p)
{
    *twin = *p;
    twin->blocks = NULL;
    mha_shape *const s = &twin->call.shape;
    if (!widen(twin, p, TENSOR_Q) || !widen(twin, p, TENSOR_K) || !widen(twin, p, TENSOR_V) ||
        !widen(twin, p, TENSOR_O) || !widen(twin, p, TENSOR_WEIGHTS) || !make_lse(twin)) {
        problem_free(twin);
        return false;
    }
    s->q_type = s->k_type = s->v_type = s->o_type = MHA_F64;
    twin->call.options.weights_type = MHA_F64;
    if (p->call.shape.q_type != MHA_F64) /* then these digits did not count */
        twin->call.options.scale64 = twin->call.options.softcap64 = 0.0;
    problem_connect(twin);
    problem_reset(twin);
    return true;
}

/* Tensor `id` of `p`, in another layout; outputs stay empty. */
static bool move(problem *copy, const problem *p, tensor_id id, rng *random)
{
    const tensor *const from = &p->tensors[id];
    tensor *const to = &copy->tensors[id];
    memset(to, 0, sizeof *to);
    if (from->memory == NULL)
        return true;
    if (!problem_tensor(copy, id, from->element, from->n, random, 0))
        return false;
    for (int axis = 0; axis < 3; axis++)
        to->s[axis] = from->s[axis] == 0 && from->n[axis] == 1 ? 0 : to->s[axis];
    const ptrdiff_t rows = from->n[0] * from->n[1] * from->n[2];
    for (ptrdiff_t r = 0; r < rows && id < TENSOR_O; r++) {
        const ptrdiff_t i = r % from->n[2], h = r / from->n[2] % from->n[1];
        const ptrdiff_t b = r / from->n[2] / from->n[1];
        memcpy(tensor_at(to, b, h, i, 0), tensor_at(from, b, h, i, 0),
               (size_t)from->n[3] * from->element);
    }
    return true;
}

bool problem_relayout(problem *copy, const problem *p, uint64_t seed)
{
    rng random = {seed};
    *copy = *p;
    copy->blocks = NULL;
    for (int id = 0; id < TENSOR_COUNT; id++) {
        if (!move(copy, p, (tensor_id)id, &random)) {
            problem_free(copy);
            return false;
        }
    }
    problem_connect(copy);
    return true;
}

/* --------------------------------------------------------------- running ----- */

void problem_reset(problem *p)
{
    for (int id = TENSOR_O; id < TENSOR_COUNT; id++)
        if (p->tensors[id].memory != NULL)
            memset(p->tensors[id].memory, PROBLEM_UNTOUCHED, p->tensors[id].bytes);
}

mha_status call_run(const attention_call *call, mha_pool *pool)
{
    return mha_attention(&call->shape, call->q, call->k, call->v, call->o, &call->options, pool);
}

mha_status problem_run_plan(problem *p, mha_pool *pool)
{
    const attention_call *const call = &p->call;
    mha_plan *plan;
    mha_status status = mha_plan_create(&plan, &call->shape, &call->options);
    if (status != MHA_OK)
        return status;
    const size_t size = mha_plan_work_size(plan, mha_pool_threads(pool));
    void *const work = problem_alloc(p, size);
    status = MHA_ERR_MEMORY;
    if (work != NULL) {
        status = mha_plan_run(plan, call->q, call->k, call->v, call->o, &call->options, work, size,
                              pool);
        free_newest(p);
    }
    mha_plan_free(plan);
    return status;
}

/* Fills in `copy` what the call must have written with the pattern, so that only gaps and unwritten
 * rows are left to differ. */
static void forgive(const problem *p, tensor_id id, const tensor *copy)
{
    const attention_call *const call = &p->call;
    const bool weights = id == TENSOR_WEIGHTS;
    const int64_t *const list = weights ? call->options.weights_rows : NULL;
    const int64_t *const starts = weights ? NULL : call->options.q_starts;
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        const ptrdiff_t queries = call_queries(call, b), rows = weights ? copy->n[2] : queries;
        for (ptrdiff_t r = 0; r < rows; r++) {
            if ((list ? (ptrdiff_t)list[r] : r) >= queries)
                continue;
            const ptrdiff_t row = starts ? (ptrdiff_t)starts[b] + r : r;
            for (ptrdiff_t h = 0; h < copy->n[1]; h++)
                memset(tensor_at(copy, starts ? 0 : b, h, row, 0), PROBLEM_UNTOUCHED,
                       (size_t)copy->n[3] * copy->element);
        }
    }
}

size_t problem_touched(const problem *p, tensor_id id)
{
    tensor copy = p->tensors[id];
    if (copy.memory == NULL)
        return 0;
    copy.memory = malloc(copy.bytes + 1);
    if (copy.memory == NULL)
        return SIZE_MAX;
    memcpy(copy.memory, p->tensors[id].memory, copy.bytes);
    if (p->call.shape.D > 0)
        forgive(p, id, &copy);
    size_t touched = 0;
    for (size_t n = 0; n < copy.bytes; n++)
        touched += copy.memory[n] != PROBLEM_UNTOUCHED;
    free(copy.memory);
    return touched;
}
