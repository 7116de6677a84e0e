/* SPDX-License-Identifier: MIT */
/* Weights of block types for tests of linears and layers. The caller frees what is returned. */
#ifndef MHA_BLOCK_ROWS_H
#define MHA_BLOCK_ROWS_H

#include <mha/mha.h>

enum { BLOCK_TYPES = 6 };
extern const mha_dtype block_types[BLOCK_TYPES];

/* Weights of one block. */
ptrdiff_t block_length(mha_dtype type);

/* Never NULL. */
void *block_memory(size_t bytes);

/* Rows of blocks with weights about 1 in size. */
uint8_t *block_rows_random(mha_dtype type, ptrdiff_t outputs, ptrdiff_t inputs, uint64_t seed);

/* The same weights as f32, by mha_row_to_f32(). */
float *block_rows_f32(mha_dtype type, const uint8_t *rows, ptrdiff_t outputs, ptrdiff_t inputs);

/* Inputs, roughly normal. */
float *random_numbers(ptrdiff_t count, uint64_t seed);

#endif
