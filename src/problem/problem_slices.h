/* SPDX-License-Identifier: MIT */
/*
 * Parts of a problem: copies of its outputs (snapshots), and the same call on fewer batches, heads,
 * queries or keys (slices). A slice only moves pointers and numbers; the buffers stay those of the
 * problem.
 */
#ifndef PROBLEM_SLICES_H
#define PROBLEM_SLICES_H

#include "problem/problem.h"

/* ------------------------------------------------------------- snapshots ----- */

/* The raw memory of the outputs; NULL where the problem has none, or where it does not matter. */
typedef struct snapshot {
    unsigned char *bytes[TENSOR_COUNT];
} snapshot;

/* False if out of memory. */
bool snapshot_take(snapshot *s, const problem *p);
/* Whether outputs that are in the snapshot and in the problem still hold the same bytes. */
bool snapshot_same(const snapshot *s, const problem *p);
/* From now on this output does not matter. */
void snapshot_forget(snapshot *s, tensor_id id);
void snapshot_free(snapshot *s);

/* ---------------------------------------------------------------- slices ----- */

enum { SLICE_BATCHES = 16 };

/* `call` points into the slice: do not copy. */
typedef struct slice {
    attention_call call;
    int64_t offsets[SLICE_BATCHES], q_lengths[SLICE_BATCHES], k_lengths[SLICE_BATCHES];
} slice;

/* The whole call, position resolved to explicit offsets. Weights stay only where they are plain
 * (no lists, not averaged) and the call is not packed. At most SLICE_BATCHES batches. */
void slice_begin(slice *s, const attention_call *call);
/* Keep batch b alone; unpacks a packed call. */
void slice_batch(slice *s, ptrdiff_t b);
/* Keep query head h alone, and its key head. */
void slice_head(slice *s, ptrdiff_t h);
/* Keep queries [first, first + count). Not for packed calls. */
void slice_queries(slice *s, ptrdiff_t first, ptrdiff_t count);
/* Keep keys [0, count) and drop weights. Not for packed calls. */
void slice_keys(slice *s, ptrdiff_t count);

#endif
