/* SPDX-License-Identifier: MIT */
/*
 * Which query attends to which key in a call, where rows lie in memory, and what is added to
 * scores. Written from the public header without a look at the library, which it checks.
 */
#ifndef PROBLEM_MASKS_H
#define PROBLEM_MASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "problem/attention_call.h"

/* With defaults filled in: key/value heads, the width of a value head, the scale of scores. */
ptrdiff_t call_groups(const attention_call *call);
ptrdiff_t call_value_width(const attention_call *call);
double call_scale(const attention_call *call);
double call_softcap(const attention_call *call); /* 0: none */

/* The key/value head of query head h. */
ptrdiff_t call_group_of(const attention_call *call, ptrdiff_t h);

/* True number of queries and keys of batch b. */
ptrdiff_t call_queries(const attention_call *call, ptrdiff_t b);
ptrdiff_t call_keys(const attention_call *call, ptrdiff_t b);

/* The key position of query i of batch b is i + this. */
ptrdiff_t call_offset(const attention_call *call, ptrdiff_t b);

/* Element index of row i of batch b and head h. `starts` is NULL unless the tensor is packed. */
ptrdiff_t call_row_index(const mha_view *view, const int64_t *starts, ptrdiff_t b, ptrdiff_t h,
                         ptrdiff_t i);

/* Keys [*low, *high) that lengths, causal masking and the window leave to query i of batch b. */
void call_key_range(const attention_call *call, ptrdiff_t b, ptrdiff_t i, ptrdiff_t *low,
                    ptrdiff_t *high);

/* Whether query (b, h, i) attends to key j. i and j need not be within the true lengths. */
bool call_attends(const attention_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j);

/* Element (b, h, i, j) of an additive mask or bias; 0 where none is given. */
double call_addend(const mha_view *view, mha_dtype type, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                   ptrdiff_t j);

/* Everything that is added to a score: additive mask, bias, ALiBi. *size grows by the magnitudes.
 */
double call_added(const attention_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                  double *size);

/* An output as an input. */
mha_view call_view_of(const mha_out *out);

#endif
