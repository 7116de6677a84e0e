/* SPDX-License-Identifier: MIT */
/*
 * Problem words: one line that names an attention problem, for the program, tests and benchmarks.
 *
 *      b2h16g4l512s2048d64v32:causal:br:window=256,0:bf16:mask=bool50:t=2
 *      |____________________||__________________________________________|
 *         extents, any order             suffixes, any order
 *
 * The grammar is the table of suffixes in problem_word.c; `mha help words` prints it.
 */
#ifndef PROBLEM_WORD_H
#define PROBLEM_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <mha/mha.h>

#include "problem/word_reader.h"

typedef enum word_layout { WORD_BHLD, WORD_BLHD } word_layout;

/* Which statistics are requested, as bits. */
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
    bool native;         /* MHA_NATIVE */
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

/* The grammar for people, as `mha help words` shows it. */
void problem_word_help(FILE *file);

#endif
