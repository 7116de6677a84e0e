/* SPDX-License-Identifier: MIT */
/*
 * Invalid layers and calls: each has its own status, writes nothing but a message, and works again
 * when the fault is gone.
 */
#include "support/layer_case.h"

#include <stdlib.h>
#include <string.h>

/* Everything that makes a layer and a call, in one struct in which the tables change one
 * value. */
typedef struct subject {
    mha_layer_config config;
    mha_layer_weights weights;
    mha_layer_call call;
    mha_options options;
    uint64_t after_options; /* not zero: what options.size finds when it is too large */
    void *work;
    size_t work_size;
    int64_t heads[2], rows[3], q_positions[16], k_positions[16];
    float frequencies[4];
} subject;

#define FAULT_SUBJECT subject
#include "support/fault_table.h"

/* Self-attention; cross-attention with every option; packed sequences. */
enum { SELF = 1, CROSS = 2, PACKED = 4, DENSE = SELF | CROSS, RICH = CROSS | PACKED, ALL = 7 };

#define HUGE_STRIDES(kinds, view, statuses) \
    HUGE_STRIDE((kinds)&DENSE, view.sb, statuses), HUGE_STRIDE(kinds, view.sl, statuses)

/* ------------------------------------------------------------ configurations ---- */

#define WRONG_EXTENT(field)                                                            \
    PUT(ALL, config.field, -1, IS(SHAPE)), PUT(ALL, config.field, INT_MIN, IS(SHAPE)), \
        PUT(ALL, config.field, PTRDIFF_MIN, IS(SHAPE)),                                \
        PUT(ALL, config.field, PTRDIFF_MAX, IS(SHAPE) | IS(OVERFLOW)),                 \
        PUT(ALL, config.field, PTRDIFF_MAX / 16, IS(SHAPE) | IS(OVERFLOW))

#define WRONG_MATRIX(name)                                                     \
    PUT(ALL, weights.name.data, 0, IS(NULL)), MOVE(ALL, weights.name.data, 1), \
        MOVE(ALL, weights.name.data, 2), WRONG_TYPE(ALL, weights.name.type),   \
        HUGE_STRIDE(ALL, weights.name.out_stride, IS(OVERFLOW)),               \
        HUGE_STRIDE(ALL, weights.name.in_stride, IS(OVERFLOW))

#define WRONG_VECTOR(name)                                            \
    MOVE(ALL, weights.name.data, 1), MOVE(ALL, weights.name.data, 2), \
        MOVE(ALL, weights.name.data, -1), WRONG_TYPE(ALL, weights.name.type)

static const fault wrong_layers[] = {
    PUT(ALL, config.size, 0, IS(STRUCT)),
    PUT(ALL, config.size, 1, IS(STRUCT)),
    PUT(ALL, config.size, -1, IS(STRUCT)),
    PUT(ALL, config.size, sizeof(mha_layer_config) - 1, IS(STRUCT)),
    PUT(ALL, config.size, sizeof(mha_layer_config) + 8, IS(STRUCT)), /* finds weights.size */
    PUT(ALL, config.size, INT_MAX, IS(STRUCT)),
    PUT(ALL, weights.size, 0, IS(STRUCT)),
    PUT(ALL, weights.size, 7, IS(STRUCT)),
    PUT(ALL, weights.size, -1, IS(STRUCT)),
    PUT(ALL, weights.size, sizeof(mha_layer_weights) + 8, IS(STRUCT)), /* finds call.size */
    PUT(ALL, config.flags, 2, IS(FLAG)),
    PUT(ALL, config.flags, 1u << 31, IS(FLAG)),
    PUT(ALL, config.flags, UINT32_MAX, IS(FLAG)),
    REAL(ALL, config.norm_eps, NAN, IS(SCALE)),
    REAL(ALL, config.norm_eps, INFINITY, IS(SCALE)),
    REAL(ALL, config.norm_eps, -1e-5, IS(SCALE)),
    PUT(ALL, config.norm, -1, IS(FLAG)),
    PUT(ALL, config.norm, 3, IS(FLAG)),
    PUT(ALL, config.norm, INT_MAX, IS(FLAG)),
    PUT(ALL, config.norm, MHA_NORM_NONE, IS(FLAG)), /* but there are norm weights */
    WRONG_EXTENT(E),
    WRONG_EXTENT(H),
    WRONG_EXTENT(G),
    WRONG_EXTENT(D),
    WRONG_EXTENT(Dv),
    WRONG_EXTENT(key_width),
    WRONG_EXTENT(value_width),
    WRONG_EXTENT(output_width),
    PUT(ALL, config.E, 0, IS(SHAPE)),
    PUT(ALL, config.H, 0, IS(SHAPE)),
    PUT(ALL, config.E, 25, IS(SHAPE)), /* not a multiple of H, and D is 0 */
    PUT(ALL, config.H, 5, IS(SHAPE)),
    PUT(ALL, config.G, 3, IS(SHAPE)),
    PUT(ALL, config.G, 8, IS(SHAPE)),
    PUT(ALL, config.D, MHA_MAX_HEAD_WIDTH + 1, IS(SHAPE)),
    PUT(ALL, config.Dv, MHA_MAX_HEAD_WIDTH + 1, IS(SHAPE)),
    PUT(ALL, config.stored, -1, IS(DTYPE)),
    PUT(ALL, config.stored, MHA_F64, IS(DTYPE)),
    PUT(ALL, config.stored, 11, IS(DTYPE)),
    PUT(ALL, config.stored, INT_MAX, IS(DTYPE)),
    PUT(ALL, config.rope.pairs, -1, IS(FLAG)),
    PUT(ALL, config.rope.pairs, 3, IS(FLAG)),
    PUT(ALL, config.rope.pairs, INT_MIN, IS(FLAG)),
    PUT(ALL, config.rope.width, 3, IS(SHAPE)),
    PUT(ALL, config.rope.width, 8, IS(SHAPE)), /* D is 6 */
    PUT(ALL, config.rope.width, -2, IS(SHAPE)),
    PUT(ALL, config.rope.width, PTRDIFF_MAX - 1, IS(SHAPE)),
    PUT(ALL, config.rope.width, PTRDIFF_MIN, IS(SHAPE)),
    REAL(SELF, config.rope.base, NAN, IS(SCALE)),
    REAL(SELF, config.rope.base, INFINITY, IS(SCALE)),
    REAL(SELF, config.rope.base, -10000, IS(SCALE)),
    MOVE(RICH, config.rope.frequencies, 1),
    MOVE(RICH, config.rope.frequencies, 2),
    REAL(RICH, frequencies[0], NAN, IS(SCALE)),
    REAL(RICH, frequencies[2], INFINITY, IS(SCALE)),
    WRONG_MATRIX(q),
    WRONG_MATRIX(k),
    WRONG_MATRIX(v),
    WRONG_MATRIX(o),
    WRONG_VECTOR(q_bias),
    WRONG_VECTOR(k_bias),
    WRONG_VECTOR(v_bias),
    WRONG_VECTOR(o_bias),
    WRONG_VECTOR(extra_key),
    WRONG_VECTOR(extra_value),
    WRONG_VECTOR(q_norm),
    WRONG_VECTOR(k_norm),
    WRONG_VECTOR(q_norm_bias),
    WRONG_VECTOR(k_norm_bias),
    PUT(ALL, weights.extra_key.data, 0, IS(NULL)),
    PUT(ALL, weights.extra_value.data, 0, IS(NULL)),
};

/* -------------------------------------------------------------------- calls ---- */

#define WRONG_CHOICE(field, index, count)                                                \
    POKE(RICH, field, index, -1, IS(INDEX)), POKE(RICH, field, index, count, IS(INDEX)), \
        POKE(RICH, field, index, INT64_MAX, IS(INDEX)),                                  \
        POKE(RICH, field, index, INT64_MIN, IS(INDEX))

/* Every output laid over `input`. */
#define LAID_OVER(kinds, input)                                   \
    COPY(kinds, call.output.data, input, IS(OVERLAP)),            \
        COPY((kinds)&RICH, options.lse.data, input, IS(OVERLAP)), \
        COPY((kinds)&RICH, options.weights.data, input, IS(OVERLAP))

static const fault wrong_calls[] = {
    PUT(ALL, call.size, 0, IS(STRUCT)),
    PUT(ALL, call.size, 1, IS(STRUCT)),
    PUT(ALL, call.size, -1, IS(STRUCT)),
    PUT(ALL, call.size, sizeof(mha_layer_call) + 8, IS(STRUCT)), /* finds options.size */
    PUT(ALL, call.size, INT_MAX, IS(STRUCT)),
    PUT(ALL, call.B, -1, IS(SHAPE)),
    PUT(ALL, call.B, PTRDIFF_MIN, IS(SHAPE)),
    PUT(ALL, call.B, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(ALL, call.L, -1, IS(SHAPE)),
    PUT(ALL, call.L, PTRDIFF_MIN, IS(SHAPE)),
    PUT(DENSE, call.L, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(ALL, call.S, -1, IS(SHAPE)),
    PUT(ALL, call.S, PTRDIFF_MIN, IS(SHAPE)),
    PUT(RICH, call.S, PTRDIFF_MAX, IS(OVERFLOW)),
    PUT(SELF, call.S, 4, IS(SHAPE)), /* no key input, and L is 5 */
    PUT(SELF, call.S, 6, IS(SHAPE)),
    PUT(ALL, call.query.data, 0, IS(NULL)),
    PUT(ALL, call.output.data, 0, IS(NULL)),
    MOVE(ALL, call.query.data, 1),
    MOVE(ALL, call.query.data, 2),
    MOVE(RICH, call.key.data, 3),
    MOVE(RICH, call.value.data, -1),
    MOVE(ALL, call.output.data, 1),
    MOVE(ALL, call.output.data, 2),
    HUGE_STRIDES(ALL, call.query, IS(OVERFLOW)),
    HUGE_STRIDES(RICH, call.key, IS(OVERFLOW)),
    HUGE_STRIDES(RICH, call.value, IS(OVERFLOW)),
    HUGE_STRIDES(ALL, call.output, IS(OVERFLOW)),
    PUT(DENSE, call.output.sb, 0, IS(STRIDE)),
    PUT(DENSE, call.output.sb, 1, IS(STRIDE)),
    PUT(DENSE, call.output.sb, 119, IS(STRIDE)),
    PUT(ALL, call.output.sl, 0, IS(STRIDE)),
    PUT(ALL, call.output.sl, 23, IS(STRIDE)),
    PUT(ALL, call.output.sl, -23, IS(STRIDE)),
    WRONG_TYPE(ALL, call.input_type),
    WRONG_TYPE(ALL, call.output_type),
    LAID_OVER(ALL, call.query.data),
    LAID_OVER(RICH, call.key.data),
    LAID_OVER(RICH, call.value.data),
    MOVE(RICH, call.q_positions, 4),
    MOVE(RICH, call.k_positions, 1),
    LAID_OVER(RICH, call.q_positions),
    LAID_OVER(RICH, call.k_positions),
    PUT(ALL, call.cache_use, -1, IS(FLAG)),
    PUT(ALL, call.cache_use, 3, IS(FLAG)),
    PUT(ALL, call.cache_use, INT_MAX, IS(FLAG)),
    PUT(ALL, call.cache_use, MHA_CACHE_STORE, IS(NULL) | IS(FLAG)), /* and no cache */
    PUT(ALL, call.cache_use, MHA_CACHE_RECALL, IS(NULL) | IS(FLAG)),
    COPY(ALL, work, call.output.data, IS(OVERLAP)),
    PUT(ALL, work_size, 0, IS(WORKSPACE)),
    PUT(ALL, work_size, 100, IS(WORKSPACE)),

    PUT(ALL, options.size, 0, IS(STRUCT)),
    PUT(ALL, options.size, 1, IS(STRUCT)),
    PUT(ALL, options.size, -1, IS(STRUCT)),
    PUT(ALL, options.size, sizeof(mha_options) + 8, IS(STRUCT)),
    PUT(ALL, options.flags, 1 << 4, IS(FLAG)),
    PUT(ALL, options.flags, 1u << 31, IS(FLAG)),
    REAL(ALL, options.scale, NAN, IS(SCALE)),
    REAL(ALL, options.scale, -INFINITY, IS(SCALE)),
    REAL(ALL, options.softcap, NAN, IS(SOFTCAP)),
    REAL(ALL, options.softcap, INFINITY, IS(SOFTCAP)),
    REAL(ALL, options.softcap, -1, IS(SOFTCAP)),
    PUT(ALL, options.position, -1, IS(FLAG)),
    PUT(ALL, options.position, 4, IS(FLAG)),
    PUT(CROSS, options.position, MHA_POSITION_UNSET, IS(POSITION)),
    PUT(RICH, options.window_left, -2, IS(WINDOW)),
    PUT(RICH, options.window_right, INT_MIN, IS(WINDOW)),
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
    WRONG_LENGTH(RICH, options.q_lengths, 0, 5),
    WRONG_LENGTH(RICH, options.q_lengths, 1, 5),
    WRONG_LENGTH(RICH, options.k_lengths, 0, 7),
    WRONG_LENGTH(RICH, options.k_lengths, 1, 7),
    POKE(PACKED, options.q_starts, 0, -1, IS(LENGTH)),
    POKE(PACKED, options.q_starts, 1, INT64_MAX, IS(LENGTH)),
    POKE(PACKED, options.q_starts, 2, INT64_MIN, IS(LENGTH)),
    POKE(PACKED, options.k_starts, 0, -1, IS(LENGTH)),
    POKE(PACKED, options.k_starts, 1, INT64_MAX, IS(LENGTH)),
    POKE(PACKED, options.k_starts, 2, INT64_MIN, IS(LENGTH)),
    MOVE(RICH, options.q_lengths, 4),
    MOVE(RICH, options.k_lengths, 1),
    MOVE(PACKED, options.q_starts, 2),
    MOVE(PACKED, options.k_starts, 7),
    MOVE(RICH, options.q_documents, 2),
    MOVE(RICH, options.k_documents, 3),
    PUT(RICH, options.q_documents, 0, IS(NULL)),
    PUT(RICH, options.k_documents, 0, IS(NULL)),
    LAID_OVER(RICH, options.q_lengths),
    LAID_OVER(RICH, options.k_lengths),
    LAID_OVER(PACKED, options.q_starts),
    LAID_OVER(PACKED, options.k_starts),
    LAID_OVER(RICH, options.q_documents),
    LAID_OVER(RICH, options.k_documents),
    MOVE(RICH, options.lse.data, 2),
    PUT(CROSS, options.lse.sb, 0, IS(STRIDE)),
    PUT(RICH, options.lse.sh, 0, IS(STRIDE)),
    PUT(RICH, options.lse.sl, 0, IS(STRIDE)),
    COPY(RICH, options.lse.data, call.output.data, IS(OVERLAP)),
    COPY(RICH, options.weights.data, call.output.data, IS(OVERLAP)),
    COPY(RICH, options.weights.data, options.lse.data, IS(OVERLAP)),
    MOVE(RICH, options.weights.data, 1),
    PUT(RICH, options.weights.sb, 0, IS(STRIDE)),
    PUT(RICH, options.weights.sh, 0, IS(STRIDE)),
    PUT(RICH, options.weights.sl, 0, IS(STRIDE)),
    PUT(RICH, options.weights.sl, 8, IS(STRIDE)), /* 7 keys and 2 more columns */
    WRONG_TYPE(RICH, options.weights_type),
    PUT(RICH, options.weights_mode, -1, IS(FLAG)),
    PUT(RICH, options.weights_mode, 4, IS(FLAG)),
    WRONG_CHOICE(options.weights_heads, 0, 4),
    WRONG_CHOICE(options.weights_heads, 1, 4),
    WRONG_CHOICE(options.weights_rows, 0, 5),
    WRONG_CHOICE(options.weights_rows, 2, 5),
    PUT(RICH, options.weights_head_count, -1, IS(INDEX)),
    PUT(RICH, options.weights_row_count, PTRDIFF_MIN, IS(INDEX)),
    MOVE(RICH, options.weights_heads, 4),
    MOVE(RICH, options.weights_rows, 1),
    LAID_OVER(RICH, options.weights_heads),
    LAID_OVER(RICH, options.weights_rows),
};

/* ------------------------------------------------------------------- running ---- */

/* A valid subject and its memory. */
typedef struct bench {
    unsigned kind;
    layer_case *c;
    subject good;
    char message[64];
} bench;

static void bench_begin(bench *b, unsigned kind)
{
    const unsigned parts = LAYER_EXTRA | LAYER_Q_NORM | LAYER_K_NORM | LAYER_Q_NORM_BIAS |
                           LAYER_K_NORM_BIAS | (kind == SELF ? 0 : LAYER_CROSS | LAYER_VALUE);
    const unsigned options = FEATURE_MASKS | FEATURE_ALIBI | FEATURE_SINKS | FEATURE_Q_LENGTHS |
                             FEATURE_OUTPUTS | (kind == PACKED ? FEATURE_PACKED : 0);
    layer_spec spec = layer_spec_small(parts, kind == SELF ? 0 : options);
    spec.config.flags = MHA_LAYER_ZERO_ATTN;
    spec.config.norm = MHA_NORM_RMS;
    spec.config.rope.pairs = MHA_ROPE_NEIGHBOURS;
    *b = (bench){.kind = kind, .c = layer_case_new(&spec)};
    b->good = (subject){.config = b->c->p.config,
                        .weights = b->c->p.weights,
                        .call = b->c->p.call,
                        .options = *b->c->p.call.options,
                        .after_options = UINT64_MAX,
                        .work_size = 1 << 22,
                        .heads = {3, 1},
                        .rows = {4, 0, 2},
                        .frequencies = {1, 0.5f, 0.25f}};
    b->good.work = malloc(b->good.work_size);
    problem_reset(b->c->memory);
}

static void bench_end(bench *b)
{
    free(b->good.work);
    layer_case_free(b->c);
}

/* A copy of the good one, complete: pointers from one of its parts to another. */
static void copy_good(bench *b, subject *s)
{
    *s = b->good;
    s->config.message = s->options.message = b->message;
    s->config.message_size = s->options.message_size = sizeof b->message;
    s->call.options = &s->options;
    if (b->kind != SELF) {
        s->config.rope.frequencies = s->frequencies;
        s->options.weights_heads = s->heads;
        s->options.weights_head_count = 2;
        s->options.weights_rows = s->rows;
        s->options.weights_row_count = 3;
        s->call.q_positions = s->q_positions;
        s->call.k_positions = s->k_positions;
    }
    memset(b->message, 0x55, sizeof b->message);
}

/* The array element that POKE_ARRAY is about to spoil; NULL for other faults. */
static int64_t *poked(const fault *f, const subject *s)
{
    int64_t *array;
    memcpy(&array, (const char *)s + f->at, sizeof array);
    return f->action == POKE_ARRAY ? array + f->index : NULL;
}

static void check_message(const bench *b, const fault *f, mha_status status)
{
    if (status == MHA_ERR_STRUCT)
        return;
    CHECK(memchr(b->message, '\0', sizeof b->message) != NULL && b->message[0] != '\0',
          "kind %u, %s: no message, or one without end", b->kind, f->name);
}

static void try_layer(bench *b, const fault *f)
{
    subject s;
    copy_good(b, &s);
    fault_apply(f, &s);
    mha_layer *layer = (mha_layer *)&s;
    const mha_status status = mha_layer_create(&layer, &s.config, &s.weights);
    CHECK(status < 0 && (f->statuses & 1u << -status), "kind %u, %s: %s", b->kind, f->name,
          mha_status_string(status));
    CHECK(!layer, "kind %u, %s: *layer is not NULL", b->kind, f->name);
    check_message(b, f, status);
    if (status == MHA_OK)
        mha_layer_free(layer);
}

static void try_call(bench *b, const fault *f)
{
    subject s;
    copy_good(b, &s);
    int64_t *const array = poked(f, &s);
    const int64_t kept = array ? *array : 0;
    snapshot before = snapshot_of(b->c->memory);
    fault_apply(f, &s);
    const mha_status status = mha_layer_run(b->c->layer, &s.call, s.work, s.work_size, NULL);
    CHECK(status < 0 && (f->statuses & 1u << -status), "kind %u, %s: %s", b->kind, f->name,
          mha_status_string(status));
    CHECK(snapshot_same(&before, b->c->memory), "kind %u, %s: outputs written", b->kind, f->name);
    check_message(b, f, status);
    /* A workspace size cannot be queried either, unless only the memory is at fault. */
    if (f->statuses & (IS(STRUCT) | IS(SHAPE) | IS(FLAG) | IS(DTYPE) | IS(POSITION)))
        CHECK(mha_layer_work_size(b->c->layer, &s.call, 1) == 0, "kind %u, %s: a workspace",
              b->kind, f->name);
    if (array)
        *array = kept;
    snapshot_free(&before);
}

/* The call without a fault works, before and after. */
static void check_good(bench *b)
{
    subject s;
    copy_good(b, &s);
    mha_layer *layer = NULL;
    mha_status status = mha_layer_create(&layer, &s.config, &s.weights);
    CHECK(status == MHA_OK, "kind %u: layer: %s", b->kind, mha_status_string(status));
    if (status == MHA_OK)
        status = mha_layer_run(layer, &s.call, s.work, s.work_size, NULL);
    CHECK(status == MHA_OK, "kind %u: call: %s", b->kind, mha_status_string(status));
    mha_layer_free(layer);
    problem_reset(b->c->memory);
}

static void try_all(const fault *table, size_t count, void (*try)(bench *, const fault *))
{
    for (unsigned kind = SELF; kind <= PACKED; kind <<= 1) {
        bench b;
        bench_begin(&b, kind);
        check_good(&b);
        for (size_t n = 0; n < count; n++)
            if (table[n].kinds & kind)
                try(&b, &table[n]);
        check_good(&b);
        bench_end(&b);
    }
}

static void layers_that_cannot_be(void)
{
    try_all(wrong_layers, sizeof wrong_layers / sizeof *wrong_layers, try_layer);
}

static void calls_that_cannot_be(void)
{
    try_all(wrong_calls, sizeof wrong_calls / sizeof *wrong_calls, try_call);
}

static void nothing_given(void)
{
    bench b;
    bench_begin(&b, SELF);
    const subject *const s = &b.good;
    mha_layer *layer = (mha_layer *)&b;
    CHECK(mha_layer_create(NULL, &s->config, &s->weights) == MHA_ERR_NULL, "nowhere to go");
    CHECK(mha_layer_create(&layer, NULL, &s->weights) == MHA_ERR_NULL && !layer, "no config");
    layer = (mha_layer *)&b;
    CHECK(mha_layer_create(&layer, &s->config, NULL) == MHA_ERR_NULL && !layer, "no weights");
    CHECK(mha_layer_run(NULL, &s->call, NULL, 0, NULL) == MHA_ERR_NULL, "no layer");
    CHECK(mha_layer_run(b.c->layer, NULL, NULL, 0, NULL) == MHA_ERR_NULL, "no call");
    CHECK(mha_layer_work_size(NULL, &s->call, 1) == 0, "work for no layer");
    CHECK(mha_layer_work_size(b.c->layer, NULL, 1) == 0, "work for no call");
    CHECK(mha_layer_work_size(b.c->layer, &b.c->p.call, 0) == 0, "work for no thread");
    CHECK(mha_layer_work_size(b.c->layer, &b.c->p.call, MHA_MAX_THREADS + 1) == 0,
          "work for too many threads");
    bench_end(&b);
}

/* Inputs that are missing must be as wide as the one that replaces them. */
static void stand_ins_must_fit(void)
{
    for (int n = 0; n < 2; n++) {
        layer_spec spec = layer_spec_small(LAYER_CROSS | LAYER_VALUE, 0);
        *(n ? &spec.config.value_width : &spec.config.key_width) = 7;
        layer_case *const c = layer_case_new(&spec);
        mha_layer_call call = c->p.call;
        *(n ? &call.value : &call.key) = (mha_view){0};
        call.S = n ? call.S : call.L;
        problem_reset(c->memory);
        snapshot before = snapshot_of(c->memory);
        const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
        CHECK(status == MHA_ERR_NULL, "%s", mha_status_string(status));
        CHECK(snapshot_same(&before, c->memory), "outputs written");
        snapshot_free(&before);
        layer_case_free(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(layers_that_cannot_be);
    RUN(calls_that_cannot_be);
    RUN(nothing_given);
    RUN(stand_ins_must_fit);
    return test_end();
}
