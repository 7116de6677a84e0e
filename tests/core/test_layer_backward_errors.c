/* SPDX-License-Identifier: MIT */
/*
 * Tapes and backward passes of layers that cannot be: one field of a complete call is spoilt, then
 * two at once. Each has its own status, says why, and writes nothing.
 */
#include "support/layer_backward_case.h"

#include <stdlib.h>
#include <string.h>

/* Everything a backward pass is given, in one struct that the table can spoil. */
typedef struct subject {
    mha_layer_call call;
    mha_options options;
    uint64_t after_options; /* not zero: what options.size finds when it is too large */
    mha_layer_gradients g;
    uint64_t after_g;
    void *work;
    size_t work_size;
    float *apart; /* memory that nothing else uses */
} subject;

#define FAULT_SUBJECT subject
#include "support/fault_table.h"

/* Self-attention without anything; cross-attention with everything; packed sequences. */
enum { SELF = 1, CROSS = 2, PACKED = 4, DENSE = SELF | CROSS, RICH = CROSS | PACKED, ALL = 7 };

#define HUGE_STRIDES(kinds, view) \
    HUGE_STRIDE((kinds)&DENSE, view.sb, IS(OVERFLOW)), HUGE_STRIDE(kinds, view.sl, IS(OVERFLOW))

/* Some outputs laid over what is given. */
#define LAID_OVER(kinds, input)                                                                 \
    COPY(kinds, g.d_query.data, input, IS(OVERLAP)), COPY(kinds, g.q.data, input, IS(OVERLAP)), \
        COPY(kinds, g.o_bias, input, IS(OVERLAP)),                                              \
        COPY((kinds)&RICH, g.d_key.data, input, IS(OVERLAP)),                                   \
        COPY((kinds)&RICH, g.extra_key, input, IS(OVERLAP)),                                    \
        COPY((kinds)&RICH, g.k_norm, input, IS(OVERLAP)),                                       \
        COPY((kinds)&RICH, g.d_sinks, input, IS(OVERLAP)),                                      \
        COPY((kinds)&RICH, g.d_bias.data, input, IS(OVERLAP))

#define WRONG_ROWS(kinds, out)                                                                \
    MOVE(kinds, out.data, 1), MOVE(kinds, out.data, 2), HUGE_STRIDES(kinds, out),             \
        PUT((kinds)&DENSE, out.sb, 0, IS(STRIDE)), PUT((kinds)&DENSE, out.sb, 1, IS(STRIDE)), \
        PUT(kinds, out.sl, 0, IS(STRIDE)), PUT(kinds, out.sl, 23, IS(STRIDE)),                \
        PUT(kinds, out.sl, -23, IS(STRIDE))

/* The case has matrices [outputs][inputs] only. */
#define WRONG_MATRIX(out)                                                                  \
    MOVE(ALL, out.data, 2), PUT(ALL, out.in_stride, 2, IS(STRIDE)),                        \
        PUT(ALL, out.in_stride, 0, IS(STRIDE)), PUT(ALL, out.out_stride, 0, IS(STRIDE)),   \
        PUT(ALL, out.out_stride, 1, IS(STRIDE)), PUT(ALL, out.out_stride, 19, IS(STRIDE)), \
        HUGE_STRIDE(ALL, out.out_stride, IS(OVERFLOW))

static const fault faults[] = {
    PUT(ALL, call.tape, 0, IS(NULL)),
    MOVE(ALL, call.tape, 1),
    MOVE(ALL, call.tape, 32),
    PUT(ALL, call.tape_size, 0, IS(WORKSPACE)),
    PUT(ALL, call.tape_size, 64, IS(WORKSPACE)),
    PUT(ALL, call.size, 0, IS(STRUCT)),
    PUT(ALL, call.size, sizeof(mha_layer_call) + 8, IS(STRUCT)),   /* finds options.size */
    PUT(ALL, call.size, offsetof(mha_layer_call, tape), IS(NULL)), /* of a time without tapes */
    PUT(ALL, call.size, offsetof(mha_layer_call, tape) + 1, IS(STRUCT)),
    PUT(ALL, call.B, -1, IS(SHAPE)),
    PUT(ALL, call.L, PTRDIFF_MIN, IS(SHAPE)),
    PUT(RICH, call.S, -1, IS(SHAPE)),
    PUT(ALL, call.query.data, 0, IS(NULL)),
    MOVE(ALL, call.query.data, 2),
    MOVE(RICH, call.key.data, 1),
    HUGE_STRIDES(ALL, call.query),
    HUGE_STRIDES(RICH, call.value),
    WRONG_TYPE(ALL, call.input_type),
    WRONG_TYPE(ALL, call.output_type),
    LAID_OVER(ALL, call.query.data),
    LAID_OVER(RICH, call.key.data),
    LAID_OVER(RICH, call.value.data),
    LAID_OVER(ALL, call.tape),

    PUT(ALL, options.size, 0, IS(STRUCT)),
    PUT(ALL, options.size, sizeof(mha_options) + 8, IS(STRUCT)),
    PUT(ALL, options.flags, 1u << 31, IS(FLAG)),
    REAL(ALL, options.scale, NAN, IS(SCALE)),
    REAL(ALL, options.softcap, -1, IS(SOFTCAP)),
    REAL(RICH, options.dropout, 1, IS(DROPOUT)),
    PUT(RICH, options.window_left, -2, IS(WINDOW)),
    PUT(ALL, options.position, 4, IS(FLAG)),
    WRONG_TYPE(RICH, options.bias_type),
    MOVE(RICH, options.bias.data, 1),
    PUT(RICH, options.k_documents, 0, IS(NULL)),
    WRONG_LENGTH(RICH, options.k_lengths, 0, 7),
    LAID_OVER(RICH, options.attend_mask.data),
    LAID_OVER(RICH, options.bias.data),
    LAID_OVER(RICH, options.lse.data),
    LAID_OVER(RICH, options.gates),
    MOVE(RICH, options.lse.data, 2),
    COPY(ALL, options.head_modes, apart, IS(FLAG)), /* for the forward pass only */

    PUT(ALL, g.size, 0, IS(STRUCT)),
    PUT(ALL, g.size, 1, IS(STRUCT)),
    PUT(ALL, g.size, -1, IS(STRUCT)),
    PUT(ALL, g.size, offsetof(mha_layer_gradients, d_lse) + 4, IS(STRUCT)),
    PUT(ALL, g.size, sizeof(mha_layer_gradients) + 1, IS(STRUCT)),
    PUT(ALL, g.size, sizeof(mha_layer_gradients) + 8, IS(STRUCT)),
    PUT(ALL, g.d_output.data, 0, IS(NULL)),
    MOVE(ALL, g.d_output.data, 2),
    HUGE_STRIDES(ALL, g.d_output),
    WRONG_TYPE(ALL, g.d_output_type),
    LAID_OVER(ALL, g.d_output.data),
    MOVE(RICH, g.d_lse.data, 2),
    HUGE_STRIDES(RICH, g.d_lse),
    LAID_OVER(RICH, g.d_lse.data),

    WRONG_ROWS(ALL, g.d_query),
    WRONG_ROWS(RICH, g.d_key),
    WRONG_ROWS(RICH, g.d_value),
    WRONG_MATRIX(g.q),
    WRONG_MATRIX(g.k),
    WRONG_MATRIX(g.v),
    WRONG_MATRIX(g.o),
    MOVE(ALL, g.q_bias, 1),
    MOVE(ALL, g.k_bias, 2),
    MOVE(ALL, g.v_bias, 3),
    MOVE(ALL, g.o_bias, 2),
    MOVE(RICH, g.extra_key, 2),
    MOVE(RICH, g.extra_value, 2),
    MOVE(RICH, g.q_norm, 2),
    MOVE(RICH, g.k_norm, 1),
    MOVE(RICH, g.q_norm_bias, 2),
    MOVE(RICH, g.k_norm_bias, 2),
    MOVE(RICH, g.d_bias.data, 2),
    MOVE(RICH, g.d_add_mask.data, 2),
    MOVE(RICH, g.d_alibi_slopes, 2),
    MOVE(RICH, g.d_sinks, 2),
    MOVE(RICH, g.d_gates, 2),
    PUT(RICH, g.d_bias.sl, 6, IS(STRIDE)),
    PUT(RICH, g.d_add_mask.sh, 1, IS(STRIDE)),
    HUGE_STRIDE(RICH, g.d_bias.sh, IS(OVERFLOW)),
    COPY(RICH, g.d_key.data, g.d_query.data, IS(OVERLAP)),
    COPY(RICH, g.d_value.data, g.d_key.data, IS(OVERLAP)),
    COPY(ALL, g.k.data, g.q.data, IS(OVERLAP)),
    COPY(ALL, g.o.data, g.v.data, IS(OVERLAP)),
    COPY(ALL, g.k_bias, g.q_bias, IS(OVERLAP)),
    COPY(ALL, g.o_bias, g.q.data, IS(OVERLAP)),
    COPY(RICH, g.extra_value, g.extra_key, IS(OVERLAP)),
    COPY(RICH, g.k_norm, g.q_norm, IS(OVERLAP)),
    COPY(RICH, g.q_norm_bias, g.q_norm, IS(OVERLAP)),
    COPY(RICH, g.d_add_mask.data, g.d_bias.data, IS(OVERLAP)),
    COPY(RICH, g.d_gates, g.d_sinks, IS(OVERLAP)),

    /* Gradients of what is not there. */
    COPY(SELF, g.d_key.data, apart, IS(NULL)),
    COPY(SELF, g.d_value.data, apart, IS(NULL)),
    COPY(SELF, g.extra_key, apart, IS(NULL)),
    COPY(SELF, g.extra_value, apart, IS(NULL)),
    COPY(SELF, g.q_norm, apart, IS(NULL)),
    COPY(SELF, g.k_norm, apart, IS(NULL)),
    COPY(SELF, g.q_norm_bias, apart, IS(NULL)),
    COPY(SELF, g.k_norm_bias, apart, IS(NULL)),
    COPY(SELF, g.d_bias.data, apart, IS(NULL)),
    COPY(SELF, g.d_add_mask.data, apart, IS(NULL)),
    COPY(SELF, g.d_alibi_slopes, apart, IS(NULL)),
    COPY(SELF, g.d_sinks, apart, IS(NULL)),
    COPY(SELF, g.d_gates, apart, IS(NULL)),
    PUT(RICH, options.sinks, 0, IS(NULL)),
    PUT(RICH, options.gates, 0, IS(NULL)),

    PUT(ALL, work_size, 0, IS(WORKSPACE)),
    PUT(ALL, work_size, 100, IS(WORKSPACE)),
    COPY(ALL, work, call.query.data, IS(OVERLAP)),
    COPY(ALL, work, call.tape, IS(OVERLAP)),
    COPY(ALL, work, g.d_output.data, IS(OVERLAP)),
    COPY(ALL, work, g.d_query.data, IS(OVERLAP)),
    COPY(ALL, work, g.o.data, IS(OVERLAP)),
    COPY(RICH, work, g.d_gates, IS(OVERLAP)),
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

/* ------------------------------------------------------------------ a good call ---- */

typedef struct bench {
    unsigned kind;
    layer_back *x;
    subject good;
    char message[200];
} bench;

static layer_spec bench_spec(unsigned kind)
{
    const unsigned parts = LAYER_EXTRA | LAYER_Q_NORM | LAYER_CROSS | LAYER_VALUE;
    const unsigned options = FEATURE_MASKS | FEATURE_ALIBI | FEATURE_SINKS | FEATURE_Q_LENGTHS |
                             FEATURE_LSE | BACKWARD_GATES | BACKWARD_DROPOUT |
                             (kind == PACKED ? FEATURE_PACKED : 0);
    layer_spec spec = layer_spec_small(kind == SELF ? 0 : parts, kind == SELF ? 0 : options);
    if (kind != SELF)
        spec.config.norm = MHA_NORM_RMS;
    return spec;
}

/* Every gradient there is, in the plainest layout. */
static void bench_begin(bench *b, unsigned kind)
{
    static float d_lse[2 * 4 * 64];
    const layer_spec spec = bench_spec(kind);
    *b = (bench){.kind = kind, .x = layer_back_new(&spec)};
    layer_back_forward(b->x, NULL);
    const mha_layer_call *const call = &b->x->c->p.call;
    subject *const s = &b->good;
    *s = (subject){.call = *call,
                   .options = *call->options,
                   .after_options = UINT64_MAX,
                   .g = b->x->call,
                   .after_g = UINT64_MAX,
                   .work_size = mha_layer_backward_work_size(b->x->c->layer, call, 1),
                   .apart = calloc(1 << 12, 1)};
    s->work = malloc(s->work_size);
    mha_matrix_out *const matrices[] = {&s->g.q, &s->g.k, &s->g.v, &s->g.o};
    const ptrdiff_t inputs[] = {24, 24, 24, 20};
    for (int n = 0; n < 4; n++) {
        matrices[n]->out_stride = inputs[n];
        matrices[n]->in_stride = 1;
    }
    if (kind != SELF)
        s->g.d_lse = (mha_view){d_lse, 4 * 16, 16, 1};
}

static void bench_end(bench *b)
{
    free(b->good.work);
    free(b->good.apart);
    layer_back_free(b->x);
}

/* A copy of the good one, complete: the call points to the options of the copy. */
static void copy_good(bench *b, subject *s)
{
    *s = b->good;
    s->call.options = &s->options;
    s->options.message = b->message;
    s->options.message_size = sizeof b->message;
    memset(b->message, 'x', sizeof b->message);
}

static mha_status run(const bench *b, const subject *s)
{
    return mha_layer_backward(b->x->c->layer, &s->call, &s->g, s->work, s->work_size, NULL);
}

/* The array element that POKE_ARRAY is about to spoil; NULL for other faults. */
static int64_t *poked(const fault *f, const subject *s)
{
    int64_t *array;
    memcpy(&array, (const char *)s + f->at, sizeof array);
    return f->action == POKE_ARRAY ? array + f->index : NULL;
}

static void run_faulty(bench *b, const fault *first, const fault *second)
{
    subject s;
    copy_good(b, &s);
    const char *const other = second ? second->name : "";
    int64_t *const array = poked(first, &s), *const more = second ? poked(second, &s) : NULL;
    const int64_t kept = array ? *array : 0, kept_too = more ? *more : 0;
    fault_apply(first, &s);
    if (second)
        fault_apply(second, &s);
    const mha_status status = run(b, &s);
    const unsigned wanted = first->statuses | (second ? second->statuses : 0);
    CHECK(status < 0 && (wanted >> -status & 1), "kind %u, %s, %s: %s (%s)", b->kind, first->name,
          other, mha_status_string(status), b->message);
    CHECK(status == MHA_ERR_STRUCT || (memchr(b->message, 0, sizeof b->message) && b->message[0]),
          "kind %u, %s, %s: no message", b->kind, first->name, other);
    if (more)
        *more = kept_too;
    if (array)
        *array = kept;
}

/* Faults of one field replace each other, and a copy of a spoilt field may be none. */
static bool together(const fault *a, const fault *b, unsigned kind)
{
    return a->kinds & b->kinds & kind && a->at != b->at &&
           !(a->action == COPY_POINTER && a->from == b->at) &&
           !(b->action == COPY_POINTER && b->from == a->at);
}

/* Outputs hold the pattern after all of `body`. */
static void with_each_kind(void (*body)(bench *b))
{
    for (unsigned kind = SELF; kind <= PACKED; kind <<= 1) {
        bench b;
        size_t size;
        bench_begin(&b, kind);
        unsigned char *const before = layer_back_bytes(b.x, &size);
        body(&b);
        unsigned char *const after = layer_back_bytes(b.x, &size);
        CHECK(memcmp(before, after, size) == 0, "kind %u: outputs have changed", kind);
        free(before);
        free(after);
        bench_end(&b);
    }
}

static void try_each(bench *b)
{
    for (int n = 0; n < FAULTS; n++)
        if (faults[n].kinds & b->kind)
            run_faulty(b, &faults[n], NULL);
}

static void try_pairs(bench *b)
{
    int64_t calls = 0;
    for (int n = 0; n < FAULTS; n++)
        for (int m = n + 1; m < FAULTS; m++)
            if (together(&faults[n], &faults[m], b->kind)) {
                run_faulty(b, &faults[n], &faults[m]);
                calls++;
            }
    CHECK(calls > 3000, "only %lld faulty calls", (long long)calls);
}

static void single_faults(void)
{
    with_each_kind(try_each);
}

static void pairs_of_faults(void)
{
    with_each_kind(try_pairs);
}

static void unspoilt_calls_succeed(void)
{
    for (unsigned kind = SELF; kind <= PACKED; kind <<= 1)
        for (int own = 0; own < 2; own++) {
            bench b;
            subject s;
            bench_begin(&b, kind);
            copy_good(&b, &s);
            s.work = own ? NULL : s.work;
            const mha_status status = run(&b, &s);
            CHECK(status == MHA_OK, "kind %u: %s (%s)", kind, mha_status_string(status), b.message);
            bench_end(&b);
        }
}

static void nothing_given(void)
{
    bench b;
    subject s;
    bench_begin(&b, SELF);
    copy_good(&b, &s);
    const mha_layer *const layer = b.x->c->layer;
    CHECK(mha_layer_backward(NULL, &s.call, &s.g, NULL, 0, NULL) == MHA_ERR_NULL, "no layer");
    CHECK(mha_layer_backward(layer, NULL, &s.g, NULL, 0, NULL) == MHA_ERR_NULL, "no call");
    CHECK(mha_layer_backward(layer, &s.call, NULL, NULL, 0, NULL) == MHA_ERR_NULL, "no gradients");
    CHECK(mha_layer_tape_size(NULL, &s.call) == 0, "a tape of no layer");
    CHECK(mha_layer_tape_size(layer, NULL) == 0, "a tape of no call");
    CHECK(mha_layer_backward_work_size(NULL, &s.call, 1) == 0, "work for no layer");
    CHECK(mha_layer_backward_work_size(layer, NULL, 1) == 0, "work for no call");
    CHECK(mha_layer_backward_work_size(layer, &s.call, 0) == 0, "work for no thread");
    CHECK(mha_layer_backward_work_size(layer, &s.call, MHA_MAX_THREADS + 1) == 0,
          "work for too many threads");
    s.call.L = -1;
    CHECK(mha_layer_tape_size(layer, &s.call) == 0, "a tape of no length");
    CHECK(mha_layer_backward_work_size(layer, &s.call, 1) == 0, "work for no length");
    bench_end(&b);
}

/* -------------------------------------------------------------------------- tapes ---- */

/* Sizes are exact, whatever the call, and do not depend on whether the tape is there yet. */
static void sizes_are_exact(void)
{
    for (uint64_t seed = 1; seed < 60; seed++) {
        const layer_spec spec = layer_back_spec(seed);
        layer_back *const x = layer_back_new(&spec);
        mha_layer_call *const call = &x->c->p.call;
        const size_t tape = call->tape_size;
        CHECK(mha_layer_tape_size(x->c->layer, call) == tape, "%s: another size with a tape",
              layer_case_name(x->c));
        call->tape_size = tape - 1;
        snapshot before = snapshot_of(x->c->memory);
        mha_status status = mha_layer_run(x->c->layer, call, NULL, 0, NULL);
        CHECK(status == MHA_ERR_WORKSPACE && snapshot_same(&before, x->c->memory), "%s: run: %s",
              layer_case_name(x->c), mha_status_string(status));
        call->tape_size = tape;
        layer_back_forward(x, NULL);
        const size_t size = mha_layer_backward_work_size(x->c->layer, call, 1);
        void *const work = malloc(size);
        status = mha_layer_backward(x->c->layer, call, &x->call, work, size - 1, NULL);
        CHECK(status == MHA_ERR_WORKSPACE, "%s: %s", layer_case_name(x->c),
              mha_status_string(status));
        free(work);
        snapshot_free(&before);
        layer_back_free(x);
    }
}

#define TAPE_FAULT(wanted, change)                                                          \
    do {                                                                                    \
        mha_layer_call call = *good;                                                        \
        change;                                                                             \
        const mha_status status = mha_layer_run(x->c->layer, &call, work, work_size, NULL); \
        CHECK(status == (wanted), "%s: %s", #change, mha_status_string(status));            \
        CHECK(snapshot_same(&before, x->c->memory), "%s: outputs written", #change);        \
    } while (0)

/* Runs that cannot keep their tape do nothing. */
static void tapes_that_cannot_be(void)
{
    const layer_spec spec = layer_spec_small(0, FEATURE_LSE);
    layer_back *const x = layer_back_new(&spec);
    const mha_layer_call *const good = &x->c->p.call;
    const size_t work_size = mha_layer_work_size(x->c->layer, good, 1);
    char *const work = aligned_alloc(64, (work_size + 63) / 64 * 64);
    problem_reset(x->c->memory);
    snapshot before = snapshot_of(x->c->memory);
    TAPE_FAULT(MHA_ERR_ALIGN, call.tape = (char *)call.tape + 4);
    TAPE_FAULT(MHA_ERR_ALIGN, call.tape = (char *)call.tape + 32);
    TAPE_FAULT(MHA_ERR_WORKSPACE, call.tape_size = 0);
    TAPE_FAULT(MHA_ERR_WORKSPACE, call.tape_size -= 1);
    TAPE_FAULT(MHA_ERR_OVERLAP, call.output.data = call.tape);
    TAPE_FAULT(MHA_ERR_OVERLAP, call.query.data = call.tape);
    TAPE_FAULT(MHA_ERR_OVERLAP, call.tape = work);
    snapshot_free(&before);
    free(work);
    layer_back_free(x);
}
#undef TAPE_FAULT

/* Gradients need all keys in one call. */
static void no_tape_with_a_cache(void)
{
    const layer_spec spec = layer_spec_small(0, FEATURE_CAUSAL);
    layer_back *const x = layer_back_new(&spec);
    const mha_cache_config config = {
        .size = sizeof config, .sequences = 2, .capacity = 40, .G = 2, .D = 6, .Dv = 5};
    mha_layer_call call = x->c->p.call;
    CHECK(mha_cache_create(&call.cache, &config) == MHA_OK, "cache");
    problem_reset(x->c->memory);
    snapshot before = snapshot_of(x->c->memory);
    mha_status status = mha_layer_run(x->c->layer, &call, NULL, 0, NULL);
    CHECK(status == MHA_ERR_FLAG, "run: %s", mha_status_string(status));
    CHECK(snapshot_same(&before, x->c->memory), "outputs written");
    CHECK(mha_cache_length(call.cache, 0) == 0, "the cache has grown");
    status = mha_layer_backward(x->c->layer, &call, &x->call, NULL, 0, NULL);
    CHECK(status == MHA_ERR_FLAG, "backward: %s", mha_status_string(status));
    CHECK(mha_layer_tape_size(x->c->layer, &call) == 0, "a size of a tape");
    CHECK(mha_layer_backward_work_size(x->c->layer, &call, 1) == 0, "a size of a workspace");
    snapshot_free(&before);
    mha_cache_free(call.cache);
    layer_back_free(x);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(unspoilt_calls_succeed);
    RUN(single_faults);
    RUN(pairs_of_faults);
    RUN(nothing_given);
    RUN(sizes_are_exact);
    RUN(tapes_that_cannot_be);
    RUN(no_tape_with_a_cache);
    return test_end();
}
