/* SPDX-License-Identifier: MIT */
/*
 * Wrong arguments of the backward pass, singly and in pairs: the status its row in the table says
 * (a pair that of one of the two), a message, and every byte of every buffer as it was.
 */
#include "support/call.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

/* A backward call, and room past its structs that is not zero. */
typedef struct subject {
    mha_shape shape;
    mha_view q, k, v, o;
    mha_options options;
    uint64_t after_options;
    mha_gradients gradients;
    uint64_t after_gradients;
    void *work;
    size_t work_size;
} subject;

#define FAULT_SUBJECT subject
#include "support/fault_table.h"

/* ---------------------------------------------------------------- the table ---- */

enum { PLAIN = 1 << CALL_PLAIN, FULL = 1 << CALL_FULL, PACKED = 1 << CALL_PACKED };
enum { DENSE = PLAIN | FULL, RICH = FULL | PACKED, ALL = PLAIN | FULL | PACKED };

#define HUGE_STRIDES(kinds, view)                                                                 \
    HUGE_STRIDE((kinds)&DENSE, view.sb, IS(OVERFLOW)), HUGE_STRIDE(kinds, view.sh, IS(OVERFLOW)), \
        HUGE_STRIDE(kinds, view.sl, IS(OVERFLOW))

/* Every output laid over something that is read. */
#define LAID_OVER(kinds, input)                                            \
    COPY(kinds, gradients.d_q.data, input, IS(OVERLAP)),                   \
        COPY(kinds, gradients.d_k.data, input, IS(OVERLAP)),               \
        COPY(kinds, gradients.d_v.data, input, IS(OVERLAP)),               \
        COPY((kinds)&RICH, gradients.d_bias.data, input, IS(OVERLAP)),     \
        COPY((kinds)&RICH, gradients.d_add_mask.data, input, IS(OVERLAP)), \
        COPY((kinds)&RICH, gradients.d_alibi_slopes, input, IS(OVERLAP)),  \
        COPY((kinds)&RICH, gradients.d_sinks, input, IS(OVERLAP)),         \
        COPY((kinds)&RICH, gradients.d_gates, input, IS(OVERLAP))

#define SHARED_ADDRESSES(out)                                           \
    PUT(DENSE, out.sb, 0, IS(STRIDE)), PUT(ALL, out.sh, 0, IS(STRIDE)), \
        PUT(ALL, out.sl, 0, IS(STRIDE)), PUT(ALL, out.sl, 1, IS(STRIDE))

static const fault faults[] = {
    PUT(ALL, shape.B, -1, IS(SHAPE)),
    PUT(ALL, shape.B, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(ALL, shape.H, 3, IS(SHAPE)),
    PUT(ALL, shape.G, 8, IS(SHAPE)),
    PUT(ALL, shape.L, -1, IS(SHAPE)),
    PUT(ALL, shape.S, PTRDIFF_MIN, IS(SHAPE)),
    PUT(ALL, shape.S, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(ALL, shape.D, MHA_MAX_HEAD_WIDTH + 1, IS(SHAPE)),
    PUT(ALL, shape.Dv, -1, IS(SHAPE)),
    WRONG_TYPE(ALL, shape.q_type),
    WRONG_TYPE(ALL, shape.k_type),
    WRONG_TYPE(ALL, shape.v_type),
    WRONG_TYPE(ALL, shape.o_type),

    PUT(ALL, q.data, 0, IS(NULL)),
    PUT(ALL, k.data, 0, IS(NULL)),
    PUT(ALL, v.data, 0, IS(NULL)),
    PUT(ALL, o.data, 0, IS(NULL)),
    MOVE(ALL, q.data, 1),
    MOVE(ALL, k.data, 2),
    MOVE(ALL, v.data, 3),
    MOVE(ALL, o.data, 2),
    HUGE_STRIDES(ALL, q),
    HUGE_STRIDES(ALL, k),
    HUGE_STRIDES(ALL, v),
    HUGE_STRIDES(ALL, o),
    LAID_OVER(ALL, q.data),
    LAID_OVER(ALL, k.data),
    LAID_OVER(ALL, v.data),
    LAID_OVER(ALL, o.data),

    PUT(ALL, options.size, 0, IS(STRUCT)),
    PUT(ALL, options.size, sizeof(mha_options) + 1, IS(STRUCT)),
    PUT(ALL, options.flags, 1u << 31, IS(FLAG)),
    REAL(ALL, options.scale, NAN, IS(SCALE)),
    REAL(ALL, options.softcap, -1, IS(SOFTCAP)),
    PUT(ALL, options.position, 4, IS(FLAG)),
    PUT(PLAIN, options.flags, MHA_CAUSAL, IS(POSITION)),
    PUT(RICH, options.window_left, -2, IS(WINDOW)),
    PUT(ALL, options.lse.data, 0, IS(NULL)),
    MOVE(ALL, options.lse.data, 2),
    HUGE_STRIDES(ALL, options.lse),
    LAID_OVER(ALL, options.lse.data),
    WRONG_TYPE(RICH, options.bias_type),
    MOVE(RICH, options.bias.data, 1),
    HUGE_STRIDES(RICH, options.add_mask),
    PUT(RICH, options.k_documents, 0, IS(NULL)),
    LAID_OVER(RICH, options.attend_mask.data),
    LAID_OVER(RICH, options.ignore_mask.data),
    LAID_OVER(RICH, options.add_mask.data),
    LAID_OVER(RICH, options.bias.data),
    LAID_OVER(RICH, options.alibi_slopes),
    LAID_OVER(RICH, options.sinks),
    LAID_OVER(RICH, options.gates),
    MOVE(RICH, options.gates, 2),
    PUT(RICH, options.gates_sb, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(RICH, options.gates_sb, PTRDIFF_MIN, IS(STRIDE)),
    PUT(RICH, options.gates_sb, -4, IS(STRIDE)),
    PUT(RICH, options.gates_sb, 3, IS(STRIDE)),
    REAL(ALL, options.dropout, NAN, IS(DROPOUT)),
    REAL(ALL, options.dropout, 1, IS(DROPOUT)),
    REAL(ALL, options.dropout, -0.5, IS(DROPOUT)),
    LAID_OVER(RICH, options.k_lengths),
    LAID_OVER(RICH, options.q_documents),
    WRONG_LENGTH(FULL, options.q_lengths, 1, 5),
    WRONG_LENGTH(RICH, options.k_lengths, 0, 7),
    WRONG_LENGTH(PACKED, options.q_starts, 1, 3 + 5),
    WRONG_LENGTH(PACKED, options.k_starts, 2, 3 + 7 + 7),

    PUT(ALL, gradients.size, 0, IS(STRUCT)),
    PUT(ALL, gradients.size, 1, IS(STRUCT)),
    PUT(ALL, gradients.size, -1, IS(STRUCT)),
    PUT(ALL, gradients.size, sizeof(size_t), IS(STRUCT)),
    PUT(ALL, gradients.size, offsetof(mha_gradients, d_o_type) + 4, IS(STRUCT)),
    PUT(ALL, gradients.size, sizeof(mha_gradients) + 1, IS(STRUCT)),
    PUT(ALL, gradients.size, sizeof(mha_gradients) + 8, IS(STRUCT)),
    PUT(ALL, gradients.size, PTRDIFF_MAX, IS(STRUCT)),
    PUT(ALL, gradients.d_o.data, 0, IS(NULL)),
    MOVE(ALL, gradients.d_o.data, 2),
    HUGE_STRIDES(ALL, gradients.d_o),
    WRONG_TYPE(ALL, gradients.d_o_type),
    LAID_OVER(ALL, gradients.d_o.data),
    MOVE(ALL, gradients.d_lse.data, 2),
    HUGE_STRIDES(ALL, gradients.d_lse),
    LAID_OVER(ALL, gradients.d_lse.data),

    MOVE(ALL, gradients.d_q.data, 1),
    MOVE(ALL, gradients.d_k.data, 2),
    MOVE(ALL, gradients.d_v.data, 3),
    MOVE(RICH, gradients.d_bias.data, 2),
    MOVE(RICH, gradients.d_add_mask.data, 2),
    MOVE(RICH, gradients.d_alibi_slopes, 2),
    MOVE(RICH, gradients.d_sinks, 2),
    MOVE(RICH, gradients.d_gates, 2),
    HUGE_STRIDES(ALL, gradients.d_q),
    HUGE_STRIDES(ALL, gradients.d_k),
    HUGE_STRIDES(ALL, gradients.d_v),
    HUGE_STRIDE(RICH, gradients.d_bias.sb, IS(OVERFLOW)),
    HUGE_STRIDE(RICH, gradients.d_add_mask.sl, IS(OVERFLOW)),
    SHARED_ADDRESSES(gradients.d_q),
    SHARED_ADDRESSES(gradients.d_k),
    SHARED_ADDRESSES(gradients.d_v),
    PUT(RICH, gradients.d_bias.sl, 6, IS(STRIDE)),
    PUT(RICH, gradients.d_bias.sh, 1, IS(STRIDE)),
    PUT(RICH, gradients.d_add_mask.sb, -6, IS(STRIDE)),
    COPY(ALL, gradients.d_k.data, gradients.d_q.data, IS(OVERLAP)),
    COPY(ALL, gradients.d_v.data, gradients.d_k.data, IS(OVERLAP)),
    COPY(RICH, gradients.d_add_mask.data, gradients.d_bias.data, IS(OVERLAP)),
    COPY(RICH, gradients.d_sinks, gradients.d_alibi_slopes, IS(OVERLAP)),
    COPY(RICH, gradients.d_alibi_slopes, gradients.d_v.data, IS(OVERLAP)),

    /* Gradients of what the call does not have. */
    PUT(RICH, options.bias.data, 0, IS(NULL)),
    PUT(RICH, options.add_mask.data, 0, IS(NULL)),
    PUT(RICH, options.alibi_slopes, 0, IS(NULL)),
    PUT(RICH, options.sinks, 0, IS(NULL)),
    PUT(RICH, options.gates, 0, IS(NULL)),

    PUT(ALL, work_size, 0, IS(WORKSPACE)),
    PUT(ALL, work_size, 1, IS(WORKSPACE)),
    COPY(ALL, work, q.data, IS(OVERLAP)),
    COPY(ALL, work, o.data, IS(OVERLAP)),
    COPY(ALL, work, options.lse.data, IS(OVERLAP)),
    COPY(RICH, work, options.bias.data, IS(OVERLAP)),
    COPY(ALL, work, gradients.d_o.data, IS(OVERLAP)),
    COPY(ALL, work, gradients.d_q.data, IS(OVERLAP)),
    COPY(RICH, work, gradients.d_sinks, IS(OVERLAP)),
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

/* --------------------------------------------------------------- a good call ---- */

enum { ROOM = 1 << 10, BLOCKS = 12, MESSAGE = 200 };

typedef struct bench {
    call *forward;
    subject good;
    float *arena; /* BLOCKS of ROOM floats: gradients, gates, and the lse of a plain call */
    unsigned char *pristine;
    size_t arena_size;
    char message[MESSAGE];
} bench;

static mha_out out_like(mha_view view, float *data)
{
    return (mha_out){data, view.sb, view.sh, view.sl};
}

static mha_view view_like(mha_view view, const float *data)
{
    return (mha_view){data, view.sb, view.sh, view.sl};
}

/* Run the forward call and ask for every gradient there is. */
static void fill_subject(bench *b)
{
    call *const c = b->forward;
    mha_options *const o = &c->options;
    float *blocks[BLOCKS];
    for (int n = 0; n < BLOCKS; n++)
        blocks[n] = b->arena + n * ROOM;
    if (!o->lse.data)
        o->lse = mha_out_bhld(blocks[9], c->shape.H, c->shape.L, 1);
    o->flags |= MHA_TRAINING;
    o->head_modes = NULL;
    o->gates = o->bias.data ? blocks[10] : NULL;
    o->gates_sb = o->bias.data ? c->shape.H : 0;
    CHECK(call_attend(c, NULL) == MHA_OK, "the forward call fails");
    const mha_view out = {c->o.data, c->o.sb, c->o.sh, c->o.sl};
    const mha_view lse = {o->lse.data, o->lse.sb, o->lse.sh, o->lse.sl};
    const bool rich = o->bias.data != NULL;
    b->good = (subject){
        .shape = c->shape,
        .q = c->q,
        .k = c->k,
        .v = c->v,
        .o = out,
        .options = *o,
        .after_options = UINT64_MAX,
        .after_gradients = UINT64_MAX,
        .work = c->work,
        .work_size = mha_backward_work_size(&c->shape, o, 1),
        .gradients =
            {
                .size = sizeof(mha_gradients),
                .d_o = view_like(out, blocks[0]),
                .d_lse = view_like(lse, blocks[1]),
                .d_q = out_like(c->q, blocks[2]),
                .d_k = out_like(c->k, blocks[3]),
                .d_v = out_like(c->v, blocks[4]),
                .d_bias = rich ? out_like(o->bias, blocks[5]) : (mha_out){0},
                .d_add_mask = rich ? out_like(o->add_mask, blocks[6]) : (mha_out){0},
                .d_alibi_slopes = rich ? blocks[7] : NULL,
                .d_sinks = rich ? blocks[8] : NULL,
                .d_gates = rich ? blocks[11] : NULL,
            },
    };
    CHECK(b->good.work_size > 0 && b->good.work_size <= c->work_size, "workspace of %zu bytes",
          b->good.work_size);
}

/* A copy of all memory a call could change, to be freed. */
static unsigned char *copy_memory(const bench *b)
{
    unsigned char *const copy = malloc(b->arena_size + b->forward->arena_size);
    if (!copy)
        abort();
    memcpy(copy, b->arena, b->arena_size);
    memcpy(copy + b->arena_size, b->forward->arena, b->forward->arena_size);
    return copy;
}

static bool memory_is(const bench *b, const unsigned char *copy)
{
    return memcmp(copy, b->arena, b->arena_size) == 0 &&
           memcmp(copy + b->arena_size, b->forward->arena, b->forward->arena_size) == 0;
}

static void restore_memory(const bench *b)
{
    memcpy(b->arena, b->pristine, b->arena_size);
    memcpy(b->forward->arena, b->pristine + b->arena_size, b->forward->arena_size);
}

static bench *bench_new(call_kind kind)
{
    const mha_shape shape = call_small_shape();
    test_random random = {test_seed(11)};
    bench *const b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->forward = call_new(kind, &shape, 11);
    b->arena_size = (size_t)BLOCKS * ROOM * sizeof *b->arena;
    b->arena = aligned_alloc(64, b->arena_size);
    if (!b->arena)
        abort();
    for (int n = 0; n < BLOCKS * ROOM; n++)
        b->arena[n] = test_random_normal(&random);
    fill_subject(b);
    b->pristine = copy_memory(b);
    return b;
}

static void bench_free(bench *b)
{
    call_free(b->forward);
    free(b->arena);
    free(b->pristine);
    free(b);
}

/* ------------------------------------------------------------------- faults ---- */

static mha_status run(const subject *s)
{
    return mha_attention_backward(&s->shape, s->q, s->k, s->v, s->o, &s->options, &s->gradients,
                                  s->work, s->work_size, NULL);
}

static void run_faulty(bench *b, const fault *first, const fault *second)
{
    subject s = b->good;
    const char *const other = second ? second->name : "";
    memset(b->message, 'x', sizeof b->message);
    s.options.message = b->message;
    s.options.message_size = sizeof b->message;
    fault_apply(first, &s);
    if (second)
        fault_apply(second, &s);
    unsigned char *const before = copy_memory(b);
    const mha_status status = run(&s);
    const unsigned wanted = first->statuses | (second ? second->statuses : 0);
    CHECK(status < 0 && call_status_known(status) && (wanted >> -status & 1), "%s, %s: %s",
          first->name, other, mha_status_string(status));
    CHECK(memory_is(b, before), "%s, %s: memory has changed", first->name, other);
    CHECK(status == MHA_OK || status == MHA_ERR_STRUCT ||
              (memchr(b->message, 0, sizeof b->message) && b->message[0]),
          "%s, %s: no message", first->name, other);
    free(before);
    restore_memory(b);
}

/* Faults of one field replace each other, and a copy of a spoilt field may be none. */
static bool together(const fault *a, const fault *b, int kind)
{
    const bool both = (a->kinds & b->kinds) >> kind & 1;
    return both && a->at != b->at && !(a->action == COPY_POINTER && a->from == b->at) &&
           !(b->action == COPY_POINTER && b->from == a->at);
}

static void single_faults(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        bench *const b = bench_new((call_kind)kind);
        for (int n = 0; n < FAULTS; n++)
            if (faults[n].kinds >> kind & 1)
                run_faulty(b, &faults[n], NULL);
        bench_free(b);
    }
}

static void pairs_of_faults(void)
{
    int64_t calls = 0;
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        bench *const b = bench_new((call_kind)kind);
        for (int n = 0; n < FAULTS; n++)
            for (int m = n + 1; m < FAULTS; m++)
                if (together(&faults[n], &faults[m], kind)) {
                    run_faulty(b, &faults[n], &faults[m]);
                    calls++;
                }
        bench_free(b);
    }
    CHECK(calls > 20000, "only %lld faulty calls", (long long)calls);
}

/* -------------------------------------------------------------------- others ---- */

static void unspoilt_calls_succeed(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++)
        for (int own = 0; own < 2; own++) {
            bench *const b = bench_new((call_kind)kind);
            subject s = b->good;
            s.options.message = b->message;
            s.options.message_size = sizeof b->message;
            if (own)
                s.work = NULL;
            const mha_status status = run(&s);
            CHECK(status == MHA_OK, "kind %d: %s (%s)", kind, mha_status_string(status),
                  b->message);
            CHECK(!memory_is(b, b->pristine), "kind %d wrote nothing", kind);
            bench_free(b);
        }
}

static void missing_structs(void)
{
    bench *const b = bench_new(CALL_FULL);
    const subject *const s = &b->good;
    CHECK(mha_attention_backward(NULL, s->q, s->k, s->v, s->o, &s->options, &s->gradients, NULL, 0,
                                 NULL) == MHA_ERR_NULL,
          "no shape");
    CHECK(mha_attention_backward(&s->shape, s->q, s->k, s->v, s->o, &s->options, NULL, NULL, 0,
                                 NULL) == MHA_ERR_NULL,
          "no gradients");
    CHECK(mha_attention_backward(&s->shape, s->q, s->k, s->v, s->o, NULL, &s->gradients, NULL, 0,
                                 NULL) == MHA_ERR_NULL,
          "no options, so no log-sum-exp");
    CHECK(memory_is(b, b->pristine), "memory has changed");
    bench_free(b);
}

static void double_precision_is_refused(void)
{
    bench *const b = bench_new(CALL_PLAIN);
    subject s = b->good;
    s.shape.q_type = s.shape.k_type = s.shape.v_type = s.shape.o_type = MHA_F64;
    CHECK(run(&s) == MHA_ERR_DTYPE, "f64");
    CHECK(mha_backward_work_size(&s.shape, &s.options, 1) == 0, "workspace for f64");
    CHECK(memory_is(b, b->pristine), "memory has changed");
    bench_free(b);
}

static void work_sizes(void)
{
    bench *const b = bench_new(CALL_FULL);
    subject s = b->good;
    CHECK(mha_backward_work_size(NULL, &s.options, 1) == 0, "no shape");
    CHECK(mha_backward_work_size(&s.shape, &s.options, 0) == 0, "no threads");
    CHECK(mha_backward_work_size(&s.shape, &s.options, MHA_MAX_THREADS + 1) == 0, "threads");
    CHECK(mha_backward_work_size(&s.shape, NULL, 1) > 0, "no options");
    const size_t one = mha_backward_work_size(&s.shape, &s.options, 1);
    CHECK(mha_backward_work_size(&s.shape, &s.options, 2) > one, "two threads need no more");
    s.work_size = one - 1;
    CHECK(run(&s) == MHA_ERR_WORKSPACE, "one byte too few");
    s.shape.H = 3;
    CHECK(mha_backward_work_size(&s.shape, &s.options, 1) == 0, "a wrong shape");
    bench_free(b);
}

/* What would be an error of the forward pass is none here. */
static void weights_are_not_looked_at(void)
{
    static const mha_statistics wrong = {.size = 1, .top = -1};
    bench *const b = bench_new(CALL_FULL);
    subject s = b->good;
    s.options.statistics = &wrong;
    s.options.weights = (mha_out){(char *)s.options.weights.data + 1, 0, 0, 0};
    s.options.weights_head_count = -1;
    CHECK(run(&s) == MHA_OK, "weights matter");
    CHECK(memcmp(b->forward->arena, b->pristine + b->arena_size, b->forward->arena_size) == 0,
          "memory of the forward pass has changed");
    bench_free(b);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(unspoilt_calls_succeed);
    RUN(single_faults);
    RUN(pairs_of_faults);
    RUN(missing_structs);
    RUN(double_precision_is_refused);
    RUN(work_sizes);
    RUN(weights_are_not_looked_at);
    return test_end();
}
