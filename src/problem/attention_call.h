/* SPDX-License-Identifier: MIT */
#ifndef PROBLEM_ATTENTION_CALL_H
#define PROBLEM_ATTENTION_CALL_H

#include <mha/mha.h>

/* One call of mha_attention(), all but the pool. It owns nothing. */
typedef struct attention_call {
    mha_shape shape;
    mha_view q, k, v;
    mha_out o;
    mha_options options;
} attention_call;

#endif
