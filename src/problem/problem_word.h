/* SPDX-License-Identifier: MIT */
/*
 * Problem words: one line that names an attention problem, for the program, tests and benchmarks.
 *
 *      b2h16g4l512s2048d64v32:causal:br:window=256,0:bf16:mask=bool50:t=2
 *      |____________________||__________________________________________|
 *         extents, any order             suffixes, any order
 *
 * Extents:  b batch (1), h query heads (1), g key/value heads (h), l queries, s keys (l),
 *           d width of a query or key head, v width of a value head (d). l and d must be given.
 * Suffixes: f32 f16 bf16 f64      type of q, k, v and o (f32)
 *           q=T k=T v=T o=T       type of one of them
 *           causal                keys up to the query's own position
 *           tl br offset=N        where query 0 stands among the keys: 0, s-l, N
 *           window=L[,R]          L keys before the position and R after it (0); -1 = open
 *           mask=boolP            boolean mask [l,s], P percent attended, one for all heads
 *           mask=add              additive mask [l,s], f32, one for all heads
 *           bias                  additive bias [h,l,s], f32
 *           alibi sink            slopes, sinks: one number a head
 *           softcap=X scale=X     X > 0; scale may be negative
 *           dropout=P             training, each weight dropped with probability P
 *           pad padN              true lengths of q and k are 1/N (half) of l and s
 *           padk padkN            the same for the keys only
 *           docs=N                N documents of equal length
 *           packed                sequences of lengths l/b, 2l/b, ... l one after another
 *           lse                   log-sum-exp is asked for
 *           weights[=MODE] avg    weights are asked for: softmax, raw, softcap, bias; averaged
 *           stats                 statistics of rows and heads are asked for; stats=columns,
 *           stats=top, stats=all  what keys receive, the 8 largest weights of rows, both
 *           grad                  the backward pass, not the forward one
 *           layout=bhld|blhd      order of the axes in memory (bhld)
 *           t=N                   threads
 */
#ifndef PROBLEM_WORD_H
#define PROBLEM_WORD_H

#include <stdbool.h>
#include <stddef.h>

#include <mha/mha.h>

#include "problem/word_reader.h"

typedef enum word_layout { WORD_BHLD, WORD_BLHD } word_layout;

/* Which statistics are asked for, as bits. */
enum { STATISTICS_ROWS = 1, STATISTICS_COLUMNS = 2, STATISTICS_TOP = 4 };

typedef struct problem_word {
    ptrdiff_t b, h, g, l, s, d, v;
    mha_dtype q_type, k_type, v_type, o_type;
    bool causal, window;
    mha_position position;
    ptrdiff_t offset, window_left, window_right;
    int bool_percent; /* -1: no boolean mask */
    bool add_mask, bias, alibi, sink;
    float softcap, scale; /* 0: off, default */
    float dropout;        /* 0: none */
    int pad;              /* 0: none, N: true lengths are 1/N */
    bool pad_keys_only;
    int documents; /* 0: none */
    bool packed, lse, weights, average, gradients;
    unsigned statistics; /* STATISTICS_ROWS and more; 0: none */
    mha_weights_mode weights_mode;
    word_layout layout;
    int threads; /* 0: not said */
} problem_word;

/* A word with all defaults; l and d are 1. */
problem_word word_default(void);

/* False for a word that is none; `message` then says what is wrong, where, and what was probably
 * meant. A word that parses describes a problem the library accepts. */
bool word_parse(problem_word *word, const char *text, char *message, size_t size);

/* The canonical spelling: parsing it gives the same word, and printing that the same text. Writes
 * at most `size` bytes, terminated, and returns the length of the whole text. */
size_t word_print(const problem_word *word, char *text, size_t size);

/* What the library is asked: the shape, and of the options all that is a number. */
mha_shape word_shape(const problem_word *word);
mha_options word_options(const problem_word *word);

/* The names of the suffixes, for messages and completion. */
extern const char *const word_suffixes[];
extern const int word_suffix_count;

#endif
