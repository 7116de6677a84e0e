/* SPDX-License-Identifier: MIT */
/*
 * Test cases: a call of the library with all its buffers, made from a short description.
 *
 *      case_spec     what is wanted: shape, features, seed, kind of memory
 *      test_case     the call itself, owning every buffer; gaps between elements are NaN (inputs)
 *                    or a known pattern (outputs), every buffer has exactly the size it needs
 *      slice         the same call cut down to some batches, heads, queries or keys; a view only
 *
 * Everything follows from the spec: the same spec gives the same case everywhere.
 */
#ifndef MHA_TEST_CASES_H
#define MHA_TEST_CASES_H

#include "support/guard.h"
#include "support/oracle.h"
#include "support/test.h"

enum {
    CASE_CAUSAL = 1 << 0,
    CASE_WINDOW = 1 << 1,
    CASE_ATTEND = 1 << 2,
    CASE_IGNORE = 1 << 3,
    CASE_ADD = 1 << 4,  /* additive mask: numbers and -inf */
    CASE_BIAS = 1 << 5, /* bias: numbers, and -inf in one of three cases */
    CASE_ALIBI = 1 << 6,
    CASE_SINKS = 1 << 7,
    CASE_SOFTCAP = 1 << 8,
    CASE_Q_LENGTHS = 1 << 9,
    CASE_K_LENGTHS = 1 << 10,
    CASE_PACKED = 1 << 11,
    CASE_DOCUMENTS = 1 << 12,
    CASE_SCALE = 1 << 13,
    CASE_OFFSET = 1 << 14, /* any position mode; else unset where legal, else bottom right */
    CASE_LSE = 1 << 15,
    CASE_WEIGHTS = 1 << 16,       /* any mode, type, heads and rows */
    CASE_PLAIN_WEIGHTS = 1 << 17, /* softmax, f32 (f64), all heads and rows */
    CASE_STRIDES = 1 << 18,       /* any order of axes, gaps, negative strides; else [B,H,L,D] */
    CASE_BROADCAST = 1 << 19,     /* stride 0 here and there, in masks and in k and v */
    CASE_MASK_TYPES = 1 << 20,    /* additive masks of any type; else f32 (f64) */

    CASE_MASKS = CASE_CAUSAL | CASE_WINDOW | CASE_ATTEND | CASE_IGNORE | CASE_ADD | CASE_BIAS |
                 CASE_K_LENGTHS | CASE_DOCUMENTS,
    CASE_OUTPUTS = CASE_LSE | CASE_PLAIN_WEIGHTS,
    CASE_EVERYTHING = (1 << 21) - 1 - CASE_PLAIN_WEIGHTS
};

/* Where buffers lie: exact heap blocks, or against an unreadable page at their end or start. */
typedef enum case_memory { CASE_HEAP, CASE_GUARD_BACK, CASE_GUARD_FRONT } case_memory;

typedef struct case_spec {
    mha_shape shape;
    unsigned features;
    uint64_t seed;
    double logits; /* standard deviation of the scores; 0 means 1 */
    case_memory memory;
} case_spec;

/* Element (b,h,i,c) is element origin + b*s[0] + h*s[1] + i*s[2] + c of memory. An extent of 1
 * with stride 0 is broadcast. */
typedef struct tensor {
    unsigned char *memory;
    size_t bytes, element;
    ptrdiff_t origin;
    ptrdiff_t n[4];
    ptrdiff_t s[3];
} tensor;

typedef enum tensor_id {
    T_Q,
    T_K,
    T_V,
    T_ATTEND,
    T_IGNORE,
    T_ADD,
    T_BIAS,
    T_O, /* from here on outputs */
    T_LSE,
    T_WEIGHTS,
    T_COUNT
} tensor_id;

typedef struct case_block {
    void *heap; /* either this or the guard */
    guard_buffer guard;
} case_block;

typedef struct test_case {
    case_spec spec;
    problem call;
    tensor tensors[T_COUNT]; /* memory NULL: not part of the call */
    char message[256];
    case_block blocks[64];
    int block_count;
} test_case;

/* ------------------------------------------------------------------ cases */

/* A spec drawn at random: every feature, types and layouts, sizes from 1 up to a cost (B*H*L*S*D)
 * of about `cost`. */
case_spec case_spec_random(uint64_t seed, double cost);

/* The same, small and not f64, with just these features and perhaps CASE_STRIDES. */
case_spec case_spec_with(uint64_t seed, unsigned features);

test_case *case_build(const case_spec *spec);

/* The same numbers in other strides. Shares the small arrays of `original`, which must live on. */
test_case *case_relayout(const test_case *original, uint64_t seed);

void case_free(test_case *c);

/* Exactly `bytes` bytes in the kind of memory of the case, freed with it. */
void *case_alloc(test_case *c, size_t bytes);

/* Fill all outputs with the pattern of unwritten memory. */
void case_clear(test_case *c);

/* case_clear() and mha_attention(); checks the status. */
void case_run(test_case *c, mha_pool *pool);

/* The same by plan, with a workspace of exactly the size asked for, in memory of the case. */
void case_run_plan(test_case *c, mha_pool *pool);

/* Check all outputs against the oracle with E <= limit, and that nothing else was written. Returns
 * the largest E. */
double case_check(test_case *c, double limit);

/* The second half of that: gaps and rows past a query length still hold the pattern. */
void case_check_untouched(const test_case *c);

/* What the case is, for messages. Points to a static buffer. */
const char *case_name(const test_case *c);

/* A case without tensors, and the step that points its call at the tensors it has by then. */
test_case *case_new(const case_spec *spec);
void case_connect(test_case *c);

/* ---------------------------------------------------------------- tensors */

/*
 * Give the case a tensor of extents n and elements of `element` bytes, all of it gap so far. The
 * layout is [B,H,L,D], or anything if `layout` is given; axes (bits 0 to 2) in `broadcast` get
 * extent 1 and stride 0.
 */
void tensor_make(test_case *c, tensor_id id, size_t element, const ptrdiff_t n[4],
                 test_random *layout, unsigned broadcast);

mha_dtype tensor_type(const test_case *c, tensor_id id);
double tensor_get(const test_case *c, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                  ptrdiff_t j);
void tensor_set(test_case *c, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                double value);

/* Set every element. */
void tensor_fill(test_case *c, tensor_id id, double value);

/* Address of an element. */
void *tensor_at(const tensor *t, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j);

/* A copy of the raw memory of the three outputs, and whether they still hold the same bytes. */
typedef struct snapshot {
    unsigned char *bytes[T_COUNT];
} snapshot;
snapshot snapshot_take(const test_case *c);
bool snapshot_same(const snapshot *before, const test_case *c);
void snapshot_free(snapshot *s);

/* Whether outputs of equal extents hold the same bits, element by element. */
bool tensors_same(const tensor *a, const tensor *b);

/* ----------------------------------------------------------------- slices */

enum { SLICE_BATCHES = 16 };

/* `call` points into the slice: do not copy. */
typedef struct slice {
    problem call;
    int64_t offsets[SLICE_BATCHES], q_lengths[SLICE_BATCHES], k_lengths[SLICE_BATCHES];
} slice;

/* The whole call, position resolved to explicit offsets. Weights stay only where they are plain
 * (no lists, not averaged) and the call is not packed. At most SLICE_BATCHES batches. */
void slice_begin(slice *s, const problem *call);
/* Keep batch b alone; unpacks a packed call. */
void slice_batch(slice *s, ptrdiff_t b);
/* Keep query head h alone, and its key head. */
void slice_head(slice *s, ptrdiff_t h);
/* Keep queries [first, first + count). Not for packed calls. */
void slice_queries(slice *s, ptrdiff_t first, ptrdiff_t count);
/* Keep keys [0, count) and drop weights. Not for packed calls. */
void slice_keys(slice *s, ptrdiff_t count);
/* mha_attention() on it; checks the status. */
void slice_run(const slice *s, mha_pool *pool);

#endif
