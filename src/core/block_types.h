/* SPDX-License-Identifier: MIT */
/*
 * The block types of GGUF files in memory: blocks of 32 or 256 consecutive inputs with their
 * scales, in rows without gaps. Blocks may have any alignment.
 */
#ifndef MHAI_BLOCK_TYPES_H
#define MHAI_BLOCK_TYPES_H

#include <stdbool.h>

#include <mha/mha.h>

#include "core/kernels/block_layout.h"

/* One block, unpacked. Its numbers are unsigned, as in block_layout.h. */
typedef struct mhai_unit {
    uint16_t heads[2];                         /* f16: scale and minimum, as far as they exist */
    uint8_t scales[MHAK_BLOCK_MOST_GROUPS][2]; /* bytes of scales, likewise */
    uint8_t q[MHAK_BLOCK_MOST];
} mhai_unit;

static inline bool mhai_is_block(mha_dtype type)
{
    return (unsigned)type >= MHA_Q8_0 && (unsigned)type <= MHA_Q6_K;
}

/* The number of a block type, MHAK_Q8_0 and so on. */
static inline int mhai_block_number(mha_dtype type)
{
    return (int)type - MHA_Q8_0;
}

/* Can rows of numbers be converted to this type? Not to the K types. */
static inline bool mhai_can_quantize(mha_dtype type)
{
    return type == MHA_Q8_0 || type == MHA_Q4_0 || type == MHA_Q4_1;
}

/* Elements and bytes of a block; 1 element for other types. */
ptrdiff_t mhai_block_length(mha_dtype type);
size_t mhai_block_bytes(mha_dtype type);

/* Unpacks one block. */
void mhai_block_read(mha_dtype type, const void *block, mhai_unit *unit);

/* A row of whole blocks as f32, and the row that is nearest to numbers, in a type that
 * mhai_can_quantize(). A block with a number that is not finite becomes NaN. */
void mhai_blocks_to_f32(mha_dtype type, const void *row, ptrdiff_t count, float *to);
void mhai_blocks_from_f32(mha_dtype type, const float *x, ptrdiff_t count, void *row);

#endif
