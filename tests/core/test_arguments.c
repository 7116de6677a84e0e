/* SPDX-License-Identifier: MIT */
/*
 * Wrong arguments, singly and in pairs, through mha_attention() and through a plan.
 *
 * A faulty call gives the status its row in the table says (a pair that of one of the two), leaves
 * every byte of every buffer as it was, and writes a message that ends where it should.
 */
#include "support/call.h"
#include "support/test.h"

#define FAULT_SUBJECT call
#include "support/fault_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the table ---- */

enum { PLAIN = 1 << CALL_PLAIN, FULL = 1 << CALL_FULL, PACKED = 1 << CALL_PACKED };
enum { DENSE = PLAIN | FULL, RICH = FULL | PACKED, ALL = PLAIN | FULL | PACKED };

#define HUGE_STRIDES(kinds, view, statuses)                                               \
    HUGE_STRIDE((kinds)&DENSE, view.sb, statuses), HUGE_STRIDE(kinds, view.sh, statuses), \
        HUGE_STRIDE(kinds, view.sl, statuses)

#define WRONG_CHOICE(field, index, count)                                                \
    POKE(RICH, field, index, -1, IS(INDEX)), POKE(RICH, field, index, count, IS(INDEX)), \
        POKE(RICH, field, index, INT64_MAX, IS(INDEX)),                                  \
        POKE(RICH, field, index, INT64_MIN, IS(INDEX))

/* The fields of statistics are as wide as elements of an array of numbers. */
#define WRONG_STATISTIC(field, value, code) \
    POKE(RICH, options.statistics, offsetof(mha_statistics, field) / 8, value, IS(code))

/* Every output laid over `input`. */
#define LAID_OVER(kinds, input)                                   \
    COPY(kinds, o.data, input, IS(OVERLAP)),                      \
        COPY((kinds)&RICH, options.lse.data, input, IS(OVERLAP)), \
        COPY((kinds)&RICH, options.weights.data, input, IS(OVERLAP))

static const fault faults[] = {
    PUT(ALL, shape.B, -1, IS(SHAPE)),
    PUT(ALL, shape.B, PTRDIFF_MIN, IS(SHAPE)),
    PUT(ALL, shape.B, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(ALL, shape.B, PTRDIFF_MAX / 8, IS(OVERFLOW)),
    PUT(ALL, shape.H, -4, IS(SHAPE)),
    PUT(ALL, shape.H, 3, IS(SHAPE)),
    PUT(ALL, shape.H, 5, IS(SHAPE)),
    PUT(ALL, shape.H, INT_MAX, IS(SHAPE)),
    PUT(ALL, shape.H, PTRDIFF_MIN, IS(SHAPE)),
    PUT(ALL, shape.H, PTRDIFF_MAX - 1, IS(OVERFLOW) | IS(SHAPE)),
    PUT(ALL, shape.G, -1, IS(SHAPE)),
    PUT(ALL, shape.G, 8, IS(SHAPE)),
    PUT(ALL, shape.G, INT_MAX - 1, IS(SHAPE)),
    PUT(ALL, shape.G, PTRDIFF_MAX, IS(SHAPE) | IS(OVERFLOW)),
    PUT(ALL, shape.G, PTRDIFF_MIN, IS(SHAPE)),
    PUT(ALL, shape.L, -1, IS(SHAPE)),
    PUT(ALL, shape.L, PTRDIFF_MIN, IS(SHAPE)),
    PUT(DENSE, shape.L, INT_MAX, IS(STRIDE) | IS(OVERLAP) | IS(OVERFLOW) | IS(WORKSPACE)),
    PUT(DENSE, shape.L, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(FULL, shape.L, 6, IS(STRIDE)),
    PUT(ALL, shape.S, -1, IS(SHAPE)),
    PUT(ALL, shape.S, PTRDIFF_MIN, IS(SHAPE)),
    PUT(ALL, shape.S, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(RICH, shape.S, 8, IS(STRIDE)),
    PUT(ALL, shape.D, -1, IS(SHAPE)),
    PUT(ALL, shape.D, MHA_MAX_HEAD_WIDTH + 1, IS(SHAPE)),
    PUT(ALL, shape.D, INT_MAX, IS(SHAPE)),
    PUT(ALL, shape.D, PTRDIFF_MAX, IS(SHAPE) | IS(OVERFLOW)),
    PUT(ALL, shape.D, PTRDIFF_MIN, IS(SHAPE)),
    PUT(ALL, shape.Dv, -1, IS(SHAPE)),
    PUT(ALL, shape.Dv, 13, IS(STRIDE)),
    PUT(ALL, shape.Dv, MHA_MAX_HEAD_WIDTH + 1, IS(SHAPE)),
    PUT(ALL, shape.Dv, PTRDIFF_MAX, IS(SHAPE) | IS(OVERFLOW)),
    PUT(ALL, shape.Dv, PTRDIFF_MIN, IS(SHAPE)),
    WRONG_TYPE(ALL, shape.q_type),
    WRONG_TYPE(ALL, shape.k_type),
    WRONG_TYPE(ALL, shape.v_type),
    WRONG_TYPE(ALL, shape.o_type),

    PUT(ALL, q.data, 0, IS(NULL)),
    PUT(ALL, k.data, 0, IS(NULL)),
    PUT(ALL, v.data, 0, IS(NULL)),
    PUT(ALL, o.data, 0, IS(NULL)),
    MOVE(ALL, q.data, 1),
    MOVE(ALL, q.data, 2),
    MOVE(ALL, k.data, 3),
    MOVE(ALL, v.data, -1),
    MOVE(ALL, o.data, 1),
    MOVE(ALL, o.data, 2),
    HUGE_STRIDES(ALL, q, IS(OVERFLOW)),
    HUGE_STRIDES(ALL, k, IS(OVERFLOW)),
    HUGE_STRIDES(ALL, v, IS(OVERFLOW)),
    HUGE_STRIDES(ALL, o, IS(OVERFLOW)),
    PUT(DENSE, o.sb, 0, IS(STRIDE)),
    PUT(DENSE, o.sb, 1, IS(STRIDE)),
    PUT(DENSE, o.sb, -12, IS(STRIDE)),
    PUT(DENSE, o.sb, 48 * 5 - 1, IS(STRIDE)),
    PUT(ALL, o.sh, 0, IS(STRIDE)),
    PUT(ALL, o.sh, 11, IS(STRIDE)),
    PUT(ALL, o.sh, -11, IS(STRIDE)),
    PUT(ALL, o.sl, 0, IS(STRIDE)),
    PUT(ALL, o.sl, 1, IS(STRIDE)),
    PUT(ALL, o.sl, 47, IS(STRIDE)),
    PUT(ALL, o.sl, 12, IS(STRIDE)),
    LAID_OVER(ALL, q.data),
    LAID_OVER(ALL, k.data),
    LAID_OVER(ALL, v.data),

    PUT(ALL, options.size, 0, IS(STRUCT)),
    PUT(ALL, options.size, 1, IS(STRUCT)),
    PUT(ALL, options.size, -1, IS(STRUCT)),
    PUT(ALL, options.size, offsetof(mha_options, position) - 1, IS(STRUCT)),
    PUT(ALL, options.size, sizeof(mha_options) + 1, IS(STRUCT)),
    PUT(ALL, options.size, sizeof(mha_options) + 8, IS(STRUCT)),
    PUT(ALL, options.size, INT_MAX, IS(STRUCT)),
    PUT(ALL, options.size, PTRDIFF_MAX, IS(STRUCT)),
    PUT(ALL, options.flags, 1 << 4, IS(FLAG)),
    REAL(ALL, options.dropout, NAN, IS(DROPOUT)),
    REAL(ALL, options.dropout, -0.5, IS(DROPOUT)),
    REAL(ALL, options.dropout, 1, IS(DROPOUT)),
    PUT(ALL, options.flags, 1u << 31, IS(FLAG)),
    PUT(ALL, options.flags, UINT32_MAX, IS(FLAG)),
    REAL(ALL, options.scale, NAN, IS(SCALE)),
    REAL(ALL, options.scale, INFINITY, IS(SCALE)),
    REAL(ALL, options.scale, -INFINITY, IS(SCALE)),
    REAL(ALL, options.scale64, NAN, IS(SCALE)),
    REAL(ALL, options.scale64, INFINITY, IS(SCALE)),
    REAL(ALL, options.softcap64, NAN, IS(SOFTCAP)),
    REAL(ALL, options.softcap64, INFINITY, IS(SOFTCAP)),
    REAL(ALL, options.softcap64, -1, IS(SOFTCAP)),
    REAL(ALL, options.softcap, NAN, IS(SOFTCAP)),
    REAL(ALL, options.softcap, INFINITY, IS(SOFTCAP)),
    REAL(ALL, options.softcap, -1, IS(SOFTCAP)),
    PUT(FULL, options.position, MHA_POSITION_UNSET, IS(POSITION)),
    PUT(ALL, options.position, -1, IS(FLAG)),
    PUT(ALL, options.position, 4, IS(FLAG)),
    PUT(ALL, options.position, INT_MAX, IS(FLAG)),
    PUT(PLAIN, options.flags, MHA_CAUSAL, IS(POSITION)),
    PUT(PLAIN, options.flags, MHA_WINDOW, IS(POSITION)),
    PUT(RICH, options.window_left, -2, IS(WINDOW)),
    PUT(RICH, options.window_left, PTRDIFF_MIN, IS(WINDOW)),
    PUT(RICH, options.window_right, -2, IS(WINDOW)),
    PUT(RICH, options.window_right, INT_MIN, IS(WINDOW)),
    MOVE(RICH, options.offsets, 4),
    LAID_OVER(RICH, options.offsets),

    HUGE_STRIDES(RICH, options.attend_mask, IS(OVERFLOW)),
    HUGE_STRIDES(RICH, options.ignore_mask, IS(OVERFLOW)),
    HUGE_STRIDES(RICH, options.add_mask, IS(OVERFLOW)),
    HUGE_STRIDES(RICH, options.bias, IS(OVERFLOW)),
    LAID_OVER(RICH, options.attend_mask.data),
    LAID_OVER(RICH, options.ignore_mask.data),
    LAID_OVER(RICH, options.add_mask.data),
    LAID_OVER(RICH, options.bias.data),
    MOVE(RICH, options.add_mask.data, 2),
    MOVE(RICH, options.bias.data, 1),
    WRONG_TYPE(RICH, options.add_mask_type),
    WRONG_TYPE(RICH, options.bias_type),
    MOVE(RICH, options.alibi_slopes, 2),
    MOVE(RICH, options.sinks, 1),
    LAID_OVER(RICH, options.alibi_slopes),
    LAID_OVER(RICH, options.sinks),

    WRONG_LENGTH(FULL, options.q_lengths, 0, 5),
    WRONG_LENGTH(FULL, options.q_lengths, 1, 5),
    WRONG_LENGTH(RICH, options.k_lengths, 0, 7),
    WRONG_LENGTH(RICH, options.k_lengths, 1, 7),
    WRONG_LENGTH(PACKED, options.q_starts, 0, 3 + 5),
    WRONG_LENGTH(PACKED, options.q_starts, 1, 3 + 5),
    WRONG_LENGTH(PACKED, options.q_starts, 2, 3 + 5 + 5),
    WRONG_LENGTH(PACKED, options.k_starts, 0, 3 + 7),
    WRONG_LENGTH(PACKED, options.k_starts, 1, 3 + 7),
    WRONG_LENGTH(PACKED, options.k_starts, 2, 3 + 7 + 7),
    MOVE(FULL, options.q_lengths, 4),
    MOVE(RICH, options.k_lengths, 1),
    MOVE(PACKED, options.q_starts, 2),
    MOVE(PACKED, options.k_starts, 7),
    MOVE(RICH, options.q_documents, 2),
    MOVE(RICH, options.k_documents, 3),
    PUT(RICH, options.q_documents, 0, IS(NULL)),
    HUGE_STRIDE(FULL, options.q_documents_sb, IS(OVERFLOW)),
    HUGE_STRIDE(FULL, options.k_documents_sb, IS(OVERFLOW)),
    LAID_OVER(FULL, options.q_lengths),
    LAID_OVER(RICH, options.k_lengths),
    LAID_OVER(PACKED, options.q_starts),
    LAID_OVER(PACKED, options.k_starts),
    LAID_OVER(RICH, options.q_documents),
    LAID_OVER(RICH, options.k_documents),

    MOVE(RICH, options.lse.data, 2),
    HUGE_STRIDES(RICH, options.lse, IS(OVERFLOW)),
    PUT(FULL, options.lse.sb, 0, IS(STRIDE)),
    PUT(RICH, options.lse.sh, 0, IS(STRIDE)),
    PUT(RICH, options.lse.sl, 0, IS(STRIDE)),
    COPY(RICH, options.lse.data, o.data, IS(OVERLAP)),
    COPY(RICH, options.weights.data, o.data, IS(OVERLAP)),
    COPY(RICH, options.weights.data, options.lse.data, IS(OVERLAP)),

    MOVE(RICH, options.weights.data, 1),
    HUGE_STRIDES(RICH, options.weights, IS(OVERFLOW)),
    PUT(RICH, options.weights.sb, 0, IS(STRIDE)),
    PUT(RICH, options.weights.sh, 0, IS(STRIDE)),
    PUT(RICH, options.weights.sl, 0, IS(STRIDE)),
    PUT(RICH, options.weights.sl, 6, IS(STRIDE)),
    WRONG_TYPE(RICH, options.weights_type),
    PUT(RICH, options.weights_mode, -1, IS(FLAG)),
    PUT(RICH, options.weights_mode, 4, IS(FLAG)),
    PUT(RICH, options.weights_mode, INT_MAX, IS(FLAG)),
    WRONG_CHOICE(options.weights_heads, 0, 4),
    WRONG_CHOICE(options.weights_heads, 1, 4),
    WRONG_CHOICE(options.weights_rows, 0, 5),
    WRONG_CHOICE(options.weights_rows, 2, 5),
    PUT(RICH, options.weights_head_count, -1, IS(INDEX)),
    PUT(RICH, options.weights_head_count, PTRDIFF_MIN, IS(INDEX)),
    PUT(RICH, options.weights_row_count, -1, IS(INDEX)),
    PUT(RICH, options.weights_row_count, PTRDIFF_MIN, IS(INDEX)),
    MOVE(RICH, options.weights_heads, 4),
    MOVE(RICH, options.weights_rows, 1),
    LAID_OVER(RICH, options.weights_heads),
    LAID_OVER(RICH, options.weights_rows),

    MOVE(RICH, options.statistics, 4),
    WRONG_STATISTIC(size, 0, STRUCT),
    WRONG_STATISTIC(size, sizeof(mha_statistics) - 8, STRUCT),
    WRONG_STATISTIC(size, sizeof(mha_statistics) + 8, STRUCT),
    WRONG_STATISTIC(size, PTRDIFF_MAX, STRUCT),
    WRONG_STATISTIC(first_keys, -1, INDEX),
    WRONG_STATISTIC(first_keys, PTRDIFF_MIN, INDEX),
    WRONG_STATISTIC(top, -1, INDEX),
    WRONG_STATISTIC(top, 65, INDEX),
    WRONG_STATISTIC(top, PTRDIFF_MAX, INDEX),
    WRONG_STATISTIC(rows, 4, ALIGN),
    WRONG_STATISTIC(heads, 12, ALIGN),
    WRONG_STATISTIC(columns, 2, ALIGN),
    WRONG_STATISTIC(top_keys, 4, ALIGN),
    WRONG_STATISTIC(top_weights, 1, ALIGN),
    POKE(RICH, options.head_modes, 0, 3, IS(FLAG)),
    POKE(RICH, options.head_modes, 0, MHA_HEAD_MEAN, IS(NULL)),
    MOVE(RICH, options.head_means, 2),
    LAID_OVER(RICH, options.head_modes),
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

/* --------------------------------------------------------- spoiling a call ---- */

/* Faults of one field replace each other, and faults of one array can make up for each other. */
static bool same_field(const fault *a, const fault *b)
{
    return a->at == b->at;
}

/* ------------------------------------------------------------ one faulty call ---- */

typedef struct bench {
    call *good;
    unsigned char *pristine; /* a copy of its arena */
    int64_t calls;
} bench;

static bench bench_new(call_kind kind)
{
    const mha_shape shape = call_small_shape();
    bench b = {call_new(kind, &shape, test_seed(7)), NULL, 0};
    b.pristine = malloc(b.good->arena_size);
    memcpy(b.pristine, b.good->arena, b.good->arena_size);
    return b;
}

static void bench_free(bench *b)
{
    call_free(b->good);
    free(b->pristine);
}

/* Put the arena back; true if it was as it should be but for what the fault itself poked. */
static bool restore(bench *b, const unsigned char *expected)
{
    const bool same = memcmp(b->good->arena, expected, b->good->arena_size) == 0;
    memcpy(b->good->arena, b->pristine, b->good->arena_size);
    return same;
}

enum { MESSAGE_ROOM = 512, MESSAGE_FILL = 0x5a };

static void check_message(const char *what, const unsigned char *message, size_t size,
                          mha_status status)
{
    for (size_t i = size; i < MESSAGE_ROOM; i++)
        if (!CHECK(message[i] == MESSAGE_FILL, "%s: message past its %zu bytes", what, size))
            return;
    if (status == MHA_ERR_STRUCT || size == 0)
        return;
    CHECK(memchr(message, 0, size) != NULL, "%s: message of %zu bytes not ended", what, size);
    CHECK(size == 1 || message[0] != 0, "%s: no message", what);
}

typedef mha_status (*call_path)(const call *c, mha_pool *pool);

/* Run the good call with `first` and, if not NULL, `second`. */
static void run_faulty(bench *b, call_path path, const fault *first, const fault *second)
{
    static const size_t sizes[] = {0, 1, 8, 200, MESSAGE_ROOM};
    static unsigned char expected[1 << 17];
    unsigned char message[MESSAGE_ROOM];
    char what[200];
    call c = *b->good;
    snprintf(what, sizeof what, "%s%s%s", first->name, second ? ", " : "",
             second ? second->name : "");
    memset(message, MESSAGE_FILL, sizeof message);
    c.options.message = (char *)message;
    c.options.message_size = sizes[b->calls++ % 5];
    fault_apply(first, &c);
    if (second)
        fault_apply(second, &c);
    if (!CHECK(c.arena_size <= sizeof expected, "arena of %zu bytes", c.arena_size))
        return;
    memcpy(expected, c.arena, c.arena_size);

    const mha_status status = path(&c, NULL);
    const unsigned wanted = first->statuses | (second ? second->statuses : 0);
    CHECK(status < 0 && call_status_known(status) && (wanted >> -status & 1), "%s: %s", what,
          mha_status_string(status));
    CHECK(restore(b, expected), "%s: memory has changed", what);
    if (status < 0)
        check_message(what, message, c.options.message_size, status);
}

/* ------------------------------------------------------------------- tests ---- */

static const call_path paths[] = {call_attend, call_plan};

static int64_t calls_in_all;

static void unspoilt_calls_succeed(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++)
        for (int path = 0; path < 2; path++) {
            bench b = bench_new((call_kind)kind);
            char message[200] = "";
            b.good->options.message = message;
            b.good->options.message_size = sizeof message;
            const mha_status status = paths[path](b.good, NULL);
            CHECK(status == MHA_OK, "kind %d: %s (%s)", kind, mha_status_string(status), message);
            CHECK(!restore(&b, b.pristine), "kind %d wrote nothing", kind);
            bench_free(&b);
        }
}

static void single_faults(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        bench b = bench_new((call_kind)kind);
        for (int i = 0; i < FAULTS; i++)
            for (int path = 0; path < 2 && (faults[i].kinds >> kind & 1); path++)
                run_faulty(&b, paths[path], &faults[i], NULL);
        calls_in_all += b.calls;
        bench_free(&b);
    }
}

/* Every pair, in each kind of call that has both, on both ways. */
static void pairs_of_faults(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        bench b = bench_new((call_kind)kind);
        for (int i = 0; i < FAULTS; i++)
            for (int j = i + 1; j < FAULTS && (faults[i].kinds >> kind & 1); j++)
                if ((faults[j].kinds >> kind & 1) && !same_field(&faults[i], &faults[j]))
                    for (int path = 0; path < 2; path++)
                        run_faulty(&b, paths[path], &faults[i], &faults[j]);
        calls_in_all += b.calls;
        bench_free(&b);
    }
    CHECK(calls_in_all > 5000, "only %lld faulty calls", (long long)calls_in_all);
}

/* Faults that only mha_plan_run() can see. */
static void workspace_faults(void)
{
    static const fault work_faults[] = {
        PUT(ALL, work_size, 0, IS(WORKSPACE)),
        PUT(ALL, work_size, 1, IS(WORKSPACE)),
        PUT(ALL, work, 0, IS(NULL) | IS(WORKSPACE)),
        COPY(ALL, work, o.data, IS(OVERLAP)),
        COPY(RICH, work, options.lse.data, IS(OVERLAP)),
        COPY(RICH, work, options.weights.data, IS(OVERLAP)),
        COPY(ALL, work, q.data, IS(OVERLAP)),
        COPY(ALL, work, v.data, IS(OVERLAP)),
        COPY(RICH, work, options.bias.data, IS(OVERLAP)),
        COPY(ALL, o.data, work, IS(OVERLAP)),
    };
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        bench b = bench_new((call_kind)kind);
        for (size_t i = 0; i < sizeof work_faults / sizeof work_faults[0]; i++)
            if (work_faults[i].kinds >> kind & 1)
                run_faulty(&b, call_plan, &work_faults[i], NULL);
        bench_free(&b);
    }
}

static void missing_objects(void)
{
    const mha_shape shape = call_small_shape();
    call *c = call_new(CALL_PLAIN, &shape, 1);
    mha_plan *plan = (mha_plan *)c;
    mha_pool *pool = (mha_pool *)c;
    CHECK(mha_attention(NULL, c->q, c->k, c->v, c->o, NULL, NULL) == MHA_ERR_NULL, "shape");
    CHECK(mha_plan_create(NULL, &shape, NULL) == MHA_ERR_NULL, "plan");
    CHECK(mha_plan_create(&plan, NULL, NULL) == MHA_ERR_NULL && !plan, "shape of a plan");
    CHECK(call_run_plan(c, NULL, NULL) == MHA_ERR_NULL, "no plan to run");
    CHECK(mha_pool_create(NULL, 1) == MHA_ERR_NULL, "pool");
    CHECK(mha_pool_create_from(NULL, NULL) == MHA_ERR_NULL, "pool and executor");
    CHECK(mha_pool_create_from(&pool, NULL) == MHA_ERR_NULL && !pool, "executor");
    CHECK(mha_plan_work_size(NULL, 1) == 0 && mha_plan_explain(NULL, NULL, 0) == 0, "no plan");
    CHECK(mha_pool_threads(NULL) == 1, "threads of no pool");
    mha_plan_free(NULL);
    mha_pool_free(NULL);
    call_free(c);
}

static void impossible_pools(void)
{
    static const int counts[] = {-1, INT_MIN, INT_MAX, MHA_MAX_THREADS + 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        mha_pool *pool = (mha_pool *)&counts;
        CHECK(mha_pool_create(&pool, counts[i]) == MHA_ERR_THREAD, "%d threads", counts[i]);
        CHECK(!pool, "a pool of %d threads", counts[i]);
    }
}

static void run_nothing(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context, (void)tasks, (void)task, (void)arg;
}

static void impossible_executors(void)
{
    static const struct {
        mha_executor executor;
        mha_status status;
    } table[] = {
        {{0, NULL, 2, run_nothing}, MHA_ERR_STRUCT},
        {{sizeof(mha_executor) - 1, NULL, 2, run_nothing}, MHA_ERR_STRUCT},
        {{sizeof(mha_executor), NULL, 2, NULL}, MHA_ERR_NULL},
        {{sizeof(mha_executor), NULL, 0, run_nothing}, MHA_ERR_THREAD},
        {{sizeof(mha_executor), NULL, -1, run_nothing}, MHA_ERR_THREAD},
        {{sizeof(mha_executor), NULL, MHA_MAX_THREADS + 1, run_nothing}, MHA_ERR_THREAD},
        {{sizeof(mha_executor), NULL, INT_MAX, run_nothing}, MHA_ERR_THREAD},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        mha_pool *pool = (mha_pool *)&table;
        const mha_status status = mha_pool_create_from(&pool, &table[i].executor);
        CHECK(status == table[i].status, "executor %zu: %s", i, mha_status_string(status));
        CHECK(!pool, "executor %zu gave a pool", i);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(unspoilt_calls_succeed);
    RUN(single_faults);
    RUN(pairs_of_faults);
    RUN(workspace_faults);
    RUN(missing_objects);
    RUN(impossible_pools);
    RUN(impossible_executors);
    return test_end();
}
