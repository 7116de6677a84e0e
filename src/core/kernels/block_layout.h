/* SPDX-License-Identifier: MIT */
/*
 * How panels hold weights of the block types Q8_0 to Q6_K. A panel is a row of units: one block of
 * each of its nr outputs. All parts of a unit have one element per output, side by side:
 *
 *      heads               [1 or 2][nr] f16        scale, and minimum or scale of the minimums
 *      for each group of 32 inputs
 *          scales          [0 or 2][nr] bytes      of the group; Q6_K: of its two halves
 *          low words       [4 or 8][nr] 32 bits    numbers of 8 bits, or their low 4 bits
 *          high words      [0 to 2][nr] 32 bits    the other bits, 1 or 2 of each number
 *
 * Numbers are stored as unsigned ones: q - mhak_bias() is meant. The four inputs 4k .. 4k+3 are a
 * quad, whose numbers are the bytes of a word, once they are unpacked:
 *
 *      low words of 8 bits     word k is quad k
 *      low words of 4 bits     word i has quad 2i in the low halves of its bytes, 2i + 1 in the
 * high high words              bit by bit: quad k begins at bit k of every byte (Q5_K), or at bit
 *                              2(k % 4) of every byte of word k / 4 (Q6_K)
 */
#ifndef MHAK_BLOCK_LAYOUT_H
#define MHAK_BLOCK_LAYOUT_H

/* Block types, in the order of mha_dtype from MHA_Q8_0 on. */
enum { MHAK_Q8_0, MHAK_Q4_0, MHAK_Q4_1, MHAK_Q4_K, MHAK_Q5_K, MHAK_Q6_K, MHAK_BLOCK_TYPES };

enum {
    MHAK_BLOCK_GROUP = 32,      /* inputs of a group */
    MHAK_BLOCK_MOST = 256,      /* inputs of the longest block */
    MHAK_BLOCK_MOST_GROUPS = 8, /* its groups */
    MHAK_BLOCK_QUADS = 8        /* quads of a group */
};

/* Inputs of a block. */
static inline int mhak_block_inputs(int block)
{
    return block < MHAK_Q4_K ? MHAK_BLOCK_GROUP : MHAK_BLOCK_MOST;
}

/* Is a weight scale * q + minimum, or scale * q alone? */
static inline int mhak_has_minimum(int block)
{
    return block == MHAK_Q4_1 || block == MHAK_Q4_K || block == MHAK_Q5_K;
}

/* What is subtracted from a stored number. */
static inline int mhak_bias(int block)
{
    return block == MHAK_Q8_0 ? 128 : block == MHAK_Q4_0 ? 8 : block == MHAK_Q6_K ? 32 : 0;
}

/* Bits of a number. */
static inline int mhak_bits(int block)
{
    return block == MHAK_Q8_0 ? 8 : block == MHAK_Q6_K ? 6 : block == MHAK_Q5_K ? 5 : 4;
}

/* Inputs that share a scale. */
static inline int mhak_scale_inputs(int block)
{
    return block == MHAK_Q6_K ? MHAK_BLOCK_GROUP / 2 : MHAK_BLOCK_GROUP;
}

/* Bytes of the parts above, for one output. */
static inline int mhak_head_bytes(int block)
{
    return mhak_has_minimum(block) ? 4 : 2;
}
static inline int mhak_scale_bytes(int block)
{
    return block < MHAK_Q4_K ? 0 : 2;
}
static inline int mhak_low_bytes(int block)
{
    return block == MHAK_Q8_0 ? 32 : 16;
}
static inline int mhak_high_bytes(int block)
{
    return block == MHAK_Q5_K ? 4 : block == MHAK_Q6_K ? 8 : 0;
}
static inline int mhak_group_bytes(int block)
{
    return mhak_scale_bytes(block) + mhak_low_bytes(block) + mhak_high_bytes(block);
}
static inline int mhak_unit_bytes(int block)
{
    return mhak_head_bytes(block) +
           mhak_block_inputs(block) / MHAK_BLOCK_GROUP * mhak_group_bytes(block);
}

#endif
