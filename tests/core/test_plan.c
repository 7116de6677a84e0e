/* SPDX-License-Identifier: MIT */
/*
 * Plans: the workspace is as large as they say and not a byte larger, the explanation is whole,
 * and one plan serves many different runs.
 */
#define _GNU_SOURCE
#include "support/call.h"
#include "support/guard.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- small helpers ---- */

static void run_in_order(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int i = 0; i < tasks; i++)
        task(arg, i);
}

/* A pool that counts as `threads` threads without having any. */
static mha_pool *paper_pool(int threads)
{
    const mha_executor executor = {sizeof executor, NULL, threads, run_in_order};
    mha_pool *pool = NULL;
    CHECK(mha_pool_create_from(&pool, &executor) == MHA_OK, "%d threads", threads);
    return pool;
}

static mha_plan *plan_of(const call *c)
{
    mha_plan *plan = NULL;
    const mha_status status = mha_plan_create(&plan, &c->shape, &c->options);
    CHECK(status == MHA_OK && plan, "plan: %s", mha_status_string(status));
    return plan;
}

/* Shapes that take different paths: small, many rows, one query, long keys, wide, f16, f64. */
static const mha_shape shapes[] = {
    {.B = 2, .H = 4, .G = 2, .L = 5, .S = 7, .D = 8, .Dv = 12},
    {.B = 1, .H = 2, .G = 2, .L = 130, .S = 130, .D = 64, .Dv = 64},
    {.B = 1, .H = 8, .G = 2, .L = 1, .S = 2300, .D = 16, .Dv = 16},
    {.B = 2, .H = 1, .G = 1, .L = 3, .S = 1100, .D = 24, .Dv = 40},
    {.B = 1, .H = 2, .G = 1, .L = 17, .S = 33, .D = 300, .Dv = 1},
    {.B = 1,
     .H = 3,
     .G = 3,
     .L = 9,
     .S = 70,
     .D = 65,
     .Dv = 63,
     .q_type = MHA_F16,
     .k_type = MHA_BF16,
     .v_type = MHA_F16,
     .o_type = MHA_BF16},
    {.B = 2,
     .H = 2,
     .G = 1,
     .L = 4,
     .S = 9,
     .D = 5,
     .Dv = 6,
     .q_type = MHA_F64,
     .k_type = MHA_F64,
     .v_type = MHA_F64,
     .o_type = MHA_F64},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* ------------------------------------------------------------------- workspace ---- */

/* One run with exactly `need` bytes before a guard page (or after one), one with a byte less. */
static void exact_workspace(call *c, const call *serial, const mha_plan *plan, int threads,
                            guard_side side)
{
    const size_t need = mha_plan_work_size(plan, threads);
    mha_pool *pool = paper_pool(threads);
    guard_buffer work = guard_new(need, side);
    c->work = work.data;
    c->work_size = need;
    call_clear(c);
    mha_status status = call_run_plan(c, plan, pool);
    CHECK(status == MHA_OK, "%zu bytes for %d threads: %s", need, threads,
          mha_status_string(status));
    CHECK(guard_intact(&work), "%d threads: written outside the workspace", threads);
    CHECK(call_equal(c, serial), "%d threads: other bits", threads);
    if (need > 0) {
        call_clear(c);
        c->work_size = need - 1;
        status = call_run_plan(c, plan, pool);
        CHECK(status == MHA_ERR_WORKSPACE, "%zu bytes of %zu: %s", need - 1, need,
              mha_status_string(status));
    }
    guard_free(&work);
    mha_pool_free(pool);
}

static void workspace_is_exact(void)
{
    for (int i = 0; i < SHAPES * CALL_KINDS; i++) {
        const call_kind kind = (call_kind)(i % CALL_KINDS);
        call *serial = call_new(kind, &shapes[i / CALL_KINDS], 51);
        call *c = call_new(kind, &shapes[i / CALL_KINDS], 51);
        void *const own_work = c->work;
        mha_plan *plan = plan_of(c);
        CHECK(call_attend(serial, NULL) == MHA_OK, "serial");
        for (int threads = 1; threads <= 64; threads += threads < 9 ? 1 : 5)
            exact_workspace(c, serial, plan, threads, threads % 2 ? GUARD_AFTER : GUARD_BEFORE);
        exact_workspace(c, serial, plan, 64, GUARD_AFTER);
        c->work = own_work;
        mha_plan_free(plan);
        call_free(serial);
        call_free(c);
    }
}

static void workspace_at_any_alignment(void)
{
    call *serial = call_new(CALL_FULL, &shapes[1], 52), *c = call_new(CALL_FULL, &shapes[1], 52);
    CHECK(call_attend(serial, NULL) == MHA_OK, "serial");
    mha_plan *plan = plan_of(c);
    const size_t need = mha_plan_work_size(plan, 1);
    void *const own_work = c->work;
    guard_buffer work = guard_new(need + 64, GUARD_AFTER);
    for (size_t shift = 0; shift <= 64; shift++) {
        c->work = (char *)work.data + shift;
        c->work_size = need;
        call_clear(c);
        CHECK(call_run_plan(c, plan, NULL) == MHA_OK, "shifted by %zu", shift);
        CHECK(call_equal(c, serial), "shifted by %zu: other bits", shift);
    }
    guard_free(&work);
    c->work = own_work;
    mha_plan_free(plan);
    call_free(serial);
    call_free(c);
}

static void work_size_of_odd_counts(void)
{
    call *c = call_new(CALL_PLAIN, &shapes[0], 1);
    mha_plan *plan = plan_of(c);
    CHECK(mha_plan_work_size(plan, 0) == 0, "0 threads");
    CHECK(mha_plan_work_size(plan, -1) == 0, "-1 threads");
    CHECK(mha_plan_work_size(plan, MHA_MAX_THREADS) > 0, "many threads");
    mha_plan_free(plan);
    call_free(c);
}

static size_t work_size_of(ptrdiff_t L, ptrdiff_t S, int threads)
{
    const mha_shape shape = {.B = 1, .H = 12, .L = L, .S = S, .D = 64};
    mha_plan *plan = NULL;
    CHECK(mha_plan_create(&plan, &shape, NULL) == MHA_OK, "plan for L = %td", L);
    const size_t size = mha_plan_work_size(plan, threads);
    mha_plan_free(plan);
    return size;
}

static void workspace_does_not_grow_with_the_sequence(void)
{
    for (int threads = 1; threads <= 8; threads++) {
        const size_t limit = (size_t)threads * (16 << 20);
        const size_t size = work_size_of(16384, 16384, threads);
        CHECK(size < limit, "%zu bytes for %d threads", size, threads);
        CHECK(size == work_size_of(65536, 65536, threads), "grows with L and S");
        CHECK(size == work_size_of(65536, 16384, threads), "grows with L");
        CHECK(size == work_size_of(16384, 1 << 24, threads), "grows with S");
    }
}

/* ----------------------------------------------------------------- the text ---- */

static void check_text(const call *c)
{
    mha_plan *plan = plan_of(c);
    const size_t length = mha_plan_explain(plan, NULL, 0);
    char *const text = malloc(length + 64);
    if (!text)
        abort();
    memset(text, 0, length + 64);
    CHECK(length > 0 && mha_plan_explain(plan, text, length + 1) == length, "length");
    if (CHECK(strlen(text) == length, "%zu characters, not %zu", strlen(text), length)) {
        const char *const isa = mha_isa_base();
        CHECK(strstr(text, c->shape.o_type == MHA_F64 ? "reference"
                           : isa                      ? isa
                                                      : "no isa"),
              "no instruction set in: %s", text);
        CHECK(strstr(text, "byte") || strstr(text, "KiB") || strstr(text, "MiB"), "no bytes in: %s",
              text);
        CHECK(strcasestr(text, "flop"), "no flops in: %s", text);
    }
    for (size_t size = 0; size <= length; size += size < 20 ? 1 : 37) {
        char *cut = malloc(size + 8);
        memset(cut, 0x5a, size + 8);
        CHECK(mha_plan_explain(plan, cut, size) == length, "size %zu changes the length", size);
        CHECK(size == 0 || (strlen(cut) == size - 1 && memcmp(cut, text, size - 1) == 0),
              "size %zu: not the beginning of the text", size);
        CHECK(cut[size] == 0x5a, "size %zu: written past it", size);
        free(cut);
    }
    free(text);
    mha_plan_free(plan);
}

static void explanation(void)
{
    for (int i = 0; i < SHAPES * CALL_KINDS; i++) {
        call *c = call_new((call_kind)(i % CALL_KINDS), &shapes[i / CALL_KINDS], 1);
        check_text(c);
        call_free(c);
    }
}

static void explanation_names_the_tiles(void)
{
    call *c = call_new(CALL_PLAIN, &shapes[1], 1);
    mha_plan *plan = plan_of(c);
    char text[8192];
    CHECK(mha_plan_explain(plan, text, sizeof text) < sizeof text, "a very long text");
    CHECK(strstr(text, "tile"), "no tiles in: %s", text);
    mha_plan_free(plan);
    call_free(c);
}

/* ------------------------------------------------------------------ many runs ---- */

static void one_plan_many_runs(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        call *first = call_new((call_kind)kind, &shapes[1], 0);
        mha_plan *plan = plan_of(first);
        for (uint64_t seed = 0; seed < 5; seed++) {
            call *a = call_new((call_kind)kind, &shapes[1], seed);
            call *b = call_new((call_kind)kind, &shapes[1], seed);
            CHECK(call_attend(a, NULL) == MHA_OK && call_run_plan(b, plan, NULL) == MHA_OK, "run");
            CHECK(call_equal(a, b), "run %d of a plan gives other bits", (int)seed);
            call_free(a);
            call_free(b);
        }
        mha_plan_free(plan);
        call_free(first);
    }
}

/* Options of a run may differ from the plan's in everything that asks for no more. */
static void change_options(mha_options *o, int change)
{
    switch (change) {
    case 0:
        break;
    case 1:
        o->flags = MHA_CAUSAL, o->position = MHA_POSITION_BOTTOM_RIGHT;
        break;
    case 2:
        o->scale = 0.5f, o->softcap = 3;
        break;
    case 3:
        o->lse.data = NULL;
        break;
    case 4:
        o->weights.data = NULL;
        break;
    case 5:
        o->q_lengths = o->k_lengths = NULL;
        break;
    case 6:
        o->attend_mask.data = o->bias.data = NULL;
        break;
    case 7:
        o->weights_heads = NULL, o->weights_head_count = 0, o->flags |= MHA_AVERAGE_WEIGHTS;
        break;
    case 8:
        o->alibi_slopes = o->sinks = NULL, o->q_documents = o->k_documents = NULL;
        break;
    case 9:
        *o = (mha_options){.size = sizeof *o};
        break;
    }
}

static void runs_with_other_options(void)
{
    call *full = call_new(CALL_FULL, &shapes[1], 3);
    mha_plan *plan = plan_of(full);
    for (int change = 0; change < 10; change++) {
        call *a = call_new(CALL_FULL, &shapes[1], 3), *b = call_new(CALL_FULL, &shapes[1], 3);
        change_options(&a->options, change);
        change_options(&b->options, change);
        mha_status status = call_attend(a, NULL);
        CHECK(status == MHA_OK, "change %d alone: %s", change, mha_status_string(status));
        status = call_run_plan(b, plan, NULL);
        CHECK(status == MHA_OK, "change %d on the plan: %s", change, mha_status_string(status));
        CHECK(call_equal(a, b), "change %d: other bits", change);
        call_free(a);
        call_free(b);
    }
    mha_plan_free(plan);
    call_free(full);
}

/* A plan made without options serves masks, not extra outputs. */
static void runs_that_ask_for_more(void)
{
    call *c = call_new(CALL_FULL, &shapes[0], 3), *blank = call_new(CALL_FULL, &shapes[0], 3);
    mha_plan *plan = NULL;
    CHECK(mha_plan_create(&plan, &c->shape, NULL) == MHA_OK, "plan");
    const mha_out weights = c->options.weights;
    char message[200] = "";
    c->options.message = message;
    c->options.message_size = sizeof message;

    c->options.weights.data = NULL;
    mha_status status = call_run_plan(c, plan, NULL);
    CHECK(status == MHA_ERR_PLAN && message[0], "lse: %s", mha_status_string(status));

    c->options.weights = weights;
    c->options.lse.data = NULL;
    message[0] = 0;
    status = call_run_plan(c, plan, NULL);
    CHECK(status == MHA_ERR_PLAN && message[0], "weights: %s", mha_status_string(status));

    c->options.weights.data = NULL;
    message[0] = 0;
    status = call_run_plan(c, plan, NULL);
    CHECK(status == MHA_ERR_PLAN && message[0], "statistics: %s", mha_status_string(status));
    CHECK(call_equal(c, blank), "a refused run wrote");

    c->options.statistics = NULL;
    CHECK(call_run_plan(c, plan, NULL) == MHA_OK, "masks only");
    call *same = call_new(CALL_FULL, &shapes[0], 3);
    same->options.weights.data = same->options.lse.data = NULL;
    same->options.statistics = NULL;
    CHECK(call_attend(same, NULL) == MHA_OK && call_equal(c, same), "masks only: other bits");
    mha_plan_free(plan);
    call_free(c);
    call_free(blank);
    call_free(same);
}

/* Inputs are read only, and nothing past their ends is read. */
static void inputs_between_guard_pages(void)
{
    for (int i = 0; i < SHAPES * 2; i++) {
        const mha_shape *s = &shapes[i / 2];
        const guard_side side = i % 2 ? GUARD_AFTER : GUARD_BEFORE;
        call *serial = call_new(CALL_PLAIN, s, 61), *c = call_new(CALL_PLAIN, s, 61);
        CHECK(call_attend(serial, NULL) == MHA_OK, "serial");
        mha_view *const views[] = {&c->q, &c->k, &c->v};
        const size_t sizes[] = {
            (size_t)(s->B * s->L * s->H * s->D) * mha_dtype_size(s->q_type),
            (size_t)(s->B * s->S * s->G * s->D) * mha_dtype_size(s->k_type),
            (size_t)(s->B * s->S * s->G * s->Dv) * mha_dtype_size(s->v_type),
        };
        guard_buffer guards[3];
        for (int n = 0; n < 3; n++) {
            guards[n] = guard_new(sizes[n], side);
            memcpy(guards[n].data, views[n]->data, sizes[n]);
            views[n]->data = guards[n].data;
            guard_seal(&guards[n]);
        }
        CHECK(call_plan(c, NULL) == MHA_OK && call_equal(c, serial), "shape %d", i / 2);
        for (int n = 0; n < 3; n++)
            guard_free(&guards[n]);
        call_free(serial);
        call_free(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(workspace_is_exact);
    RUN(workspace_at_any_alignment);
    RUN(work_size_of_odd_counts);
    RUN(workspace_does_not_grow_with_the_sequence);
    RUN(explanation);
    RUN(explanation_names_the_tiles);
    RUN(one_plan_many_runs);
    RUN(runs_with_other_options);
    RUN(runs_that_ask_for_more);
    RUN(inputs_between_guard_pages);
    return test_end();
}
