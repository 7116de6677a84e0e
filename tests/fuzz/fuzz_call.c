/* SPDX-License-Identifier: MIT */
/*
 * Bytes become a whole call: shape, strides, every option, buffers of the exact size between guard
 * pages. Whatever the bytes say, the library returns a status, touches nothing outside the
 * buffers, and on error leaves the outputs alone.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_call.c     a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_call.c test.c         a test with pseudo-random bytes
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

static mha_shape shape(fuzz *f)
{
    mha_shape s = {0};
    s.B = fuzz_extent(f, 3, FUZZ_MAX_BATCH);
    s.G = fuzz_extent(f, 2, 4);
    s.H = s.G > 0 && s.G < 8 ? s.G * (1 + fuzz_pick(f, 3)) : fuzz_extent(f, 4, 8);
    s.L = fuzz_extent(f, 6, 40);
    s.S = fuzz_extent(f, 8, 200);
    s.D = fuzz_extent(f, 9, 80);
    s.Dv = fuzz_rare(f) ? 0 : fuzz_extent(f, 9, 80);
    s.q_type = fuzz_type(f);
    s.k_type = fuzz_type(f);
    s.v_type = fuzz_type(f);
    s.o_type = fuzz_type(f);
    if (fuzz_pick(f, 8) == 7)
        s.q_type = s.k_type = s.v_type = s.o_type = MHA_F64;
    if (fuzz_pick(f, 16) == 15)
        s.D = MHA_MAX_HEAD_WIDTH + (fuzz_rare(f) ? 1 : 0), s.L = s.S = 2;
    return s;
}

typedef struct fuzz_call {
    mha_shape shape;
    mha_view q, k, v;
    mha_out o;
    const mha_options *options;
} fuzz_call;

static mha_status run_plan(const fuzz_call *c, size_t missing, mha_pool *pool)
{
    mha_plan *plan = NULL;
    mha_status status = mha_plan_create(&plan, &c->shape, c->options);
    if (status == MHA_OK) {
        const size_t need = mha_plan_work_size(plan, mha_pool_threads(pool));
        const size_t size = need > missing ? need - missing : 0;
        char *work = malloc(size ? size : 1);
        status = mha_plan_run(plan, c->q, c->k, c->v, c->o, c->options, work, size, pool);
        free(work);
    }
    mha_plan_free(plan);
    return status;
}

static mha_status run(fuzz *f, const fuzz_call *c)
{
    mha_pool *const pool = fuzz_pool(f);
    const bool planned = fuzz_pick(f, 2);
    const size_t missing = planned && fuzz_rare(f) ? 1 : 0;
    const mha_status status =
        planned ? run_plan(c, missing, pool)
                : mha_attention(&c->shape, c->q, c->k, c->v, c->o, c->options, pool);
    mha_pool_free(pool);
    return status;
}

static mha_status call_status(const uint8_t *bytes, size_t size)
{
    fuzz f = fuzz_begin(bytes, size);
    mha_options o = {.size = sizeof o, .message = fuzz_message(&f), .message_size = FUZZ_MESSAGE};
    ptrdiff_t q_rows, k_rows;
    fuzz_call c = {.shape = shape(&f), .options = &o};
    const mha_shape *s = &c.shape;
    fuzz_options(&f, s, s->S, &o, &q_rows, &k_rows);
    const fuzz_extents q = {o.q_starts ? 1 : s->B, s->H, q_rows, s->D};
    const fuzz_extents out = {q.batches, s->H, q_rows, s->Dv ? s->Dv : s->D};
    const fuzz_extents k = {o.k_starts ? 1 : s->B, s->G ? s->G : s->H, k_rows, s->D};
    const fuzz_extents v = {k.batches, k.heads, k_rows, out.width};
    c.q = fuzz_place(&f, q, fuzz_type_size(s->q_type), false);
    c.k = fuzz_place(&f, k, fuzz_type_size(s->k_type), false);
    c.v = fuzz_place(&f, v, fuzz_type_size(s->v_type), false);
    c.o = fuzz_place_out(&f, out, fuzz_type_size(s->o_type));
    if (fuzz_rare(&f) && !o.q_starts && !o.k_starts)
        c.options = NULL;

    const mha_status status = run(&f, &c);
    fuzz_finish(&f, status);
    return status;
}

static void pseudo_random_calls(void)
{
    uint8_t bytes[400];
    int counts[FUZZ_STATUSES] = {0};
    test_random random = {test_seed(2024)};
    const int64_t rounds = test_effort(60000);
    for (int64_t i = 0; i < rounds; i++) {
        fuzz_random_bytes(&random, bytes, sizeof bytes);
        counts[-call_status(bytes, sizeof bytes)]++;
    }
    int met = 0;
    for (int i = 0; i < FUZZ_STATUSES; i++)
        met += counts[i] > 0;
    CHECK(counts[0] > rounds / 5, "only %d of %lld calls were valid", counts[0], (long long)rounds);
    CHECK(rounds < 1000 || met > 8, "only %d different statuses", met);
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    return call_status(bytes, size) == MHA_OK;
}

FUZZ_TARGET(fuzz_one, pseudo_random_calls)
