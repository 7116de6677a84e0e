/* SPDX-License-Identifier: MIT */
/*
 * The kernels of attention in native arithmetic: q, k and v are bf16 and are multiplied as such, in
 * pairs, by instructions that add the two products of a pair to a sum in f32. Scores, maxima and
 * exponentials are f32; p is rounded to bf16 before it is multiplied. A table exists only where the
 * CPU has such instructions, and `native` of native.h points to it.
 *
 * Every sum is one chain over its pairs in ascending order: the pairs of elements of a head for a
 * score, the pairs of keys of a block for an output. How the two products of a pair are added is up
 * to the instruction, which takes subnormal numbers as 0.
 *
 * Panels hold pairs, as 32 bits each:
 *
 *      keys        panel[c/2*width + j]       elements c and c + 1 of key j; a missing one is 0
 *      values      panel[j/2*nv*vector + c]   column c of keys j and j + 1; a missing one is 0
 *
 * The columns of values are divided into panels of nv vectors, up to 4 and as even as possible, the
 * wider ones first; a panel has room for MHAK_BLOCK/2 rows.
 */
#ifndef MHAK_PAIRS_H
#define MHAK_PAIRS_H

#include "core/kernels/kernels.h"

typedef struct mhak_pairs {
    const char *name; /* the instruction that multiplies pairs */
    int vector;       /* as in the base table */
    int nr;           /* keys in one panel of K, at most */
    int mr_in_place;  /* most rows of score_in_place and add_in_place */

    /* Packs `keys` rows of K, `stride` elements apart, into one panel. `width` is `keys` rounded up
     * to whole vectors; keys that are missing are 0. */
    void (*pack_keys)(const void *k, ptrdiff_t stride, int keys, int d, int width, uint32_t *panel);

    /* Packs rows [first, last) of a block of V, both even, into panels. Rows from `keys` on, and
     * those whose keep bit is 0, become 0 and are not read; keep NULL: all are kept. Columns up to
     * the next whole vector are 0. v points at row 0 of the block. */
    void (*pack_values)(const void *v, ptrdiff_t stride, int first, int last, int keys, int dv,
                        const uint32_t *keep, uint32_t *panels);

    /* s = (q . k) * scale for `rows` rows of q, whole pairs, ldq elements apart, and `vectors`
     * (1 to 4) vectors of keys of a panel. Rows of s are MHAK_BLOCK long. */
    void (*score)(const uint16_t *q, ptrdiff_t ldq, const uint32_t *panel, int width, int vectors,
                  int pairs, int rows, float scale, float *s);

    /* The same for at most mr_in_place rows and `keys` keys, whole vectors, read in place. If there
     * are more than MHAK_BLOCK, s is as in qk_in_place of the base table. */
    void (*score_in_place)(const uint16_t *q, ptrdiff_t ldq, const void *k, ptrdiff_t stride, int d,
                           int keys, int rows, float scale, float *s);

    /* `fold` of the base table, to the bit, except that p is left as bf16, at the beginning of its
     * row of s. */
    void (*fold)(float *s, int rows, int first, int last, const uint32_t *keep, float *m, float *l,
                 float *alpha);

    /* Rounds columns [first, last) of rows of s to bf16, in the same way: whole vectors. */
    void (*round)(float *s, int rows, int first, int last);

    /* o = alpha * o + p . v for `rows` rows and keys [first, last) of a block, both even, first <
     * last, with values in panels. `vectors` are those of a row of o. */
    void (*add)(const float *p, const uint32_t *panels, int first, int last, int rows, int vectors,
                const float *alpha, float *o, ptrdiff_t ldo);

    /* The same for at most mr_in_place rows, with values in place: rows from `keys` on are not
     * read. dv counts whole vectors. `last` may lie in a block after the first, as in pv of the
     * base table. */
    void (*add_in_place)(const float *p, const void *v, ptrdiff_t stride, int first, int last,
                         int keys, int rows, int dv, const mhak_prefetch *ahead, const float *alpha,
                         float *o, ptrdiff_t ldo);
} mhak_pairs;

extern const mhak_pairs mhak_pairs_avx512bf16;
extern const mhak_pairs mhak_pairs_neonbf16;

#endif
