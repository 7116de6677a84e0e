/* SPDX-License-Identifier: MIT */
/*
 * The kernel table: everything that touches many numbers, one slot per operation.
 *
 * The source of every slot is written once, in the .inc files of this folder, in the vector
 * vocabulary of simd.h, and compiled once per instruction set by kernels_<isa>.c. Vectors never
 * cross this header: arguments are plain pointers and numbers.
 *
 * Fixed sizes, on which the bits of a result depend (docs/numerics.md):
 *      MHAK_BLOCK  keys folded into the running softmax at once, counted from key 0; also the
 *                  length of a row of scores in memory
 *      MHAK_CHAIN  keys whose p * v are summed in one chain before partial sums are added
 *      MHAK_DEPTH  head elements summed in one chain before partial sums are added
 *      MHAK_SLICE  inputs of a linear summed in one chain before partial sums are added
 * Sizes that affect only speed: rows per tile, nr, nc, mr_qk, mr_pv.
 */
#ifndef MHAK_KERNELS_H
#define MHAK_KERNELS_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernels/block_layout.h"

/* Results are defined to the bit, so an operation on floats must be rounded to a float. The x87
 * unit of 32-bit x86 rounds only some of them. */
#if FLT_EVAL_METHOD != 0
#error "libmha needs float arithmetic in float; on 32-bit x86, compile with -msse2 -mfpmath=sse"
#endif

enum {
    MHAK_BLOCK = 128,
    MHAK_CHAIN = 32,
    MHAK_DEPTH = 256,
    MHAK_SLICE = 256,
    MHAK_WORDS = MHAK_BLOCK / 32, /* words of keep bits for one row of a block */
    MHAK_MAX_TOP = 64,            /* the longest list of a row's largest scores */
    MHAK_MAX_VECTOR = 16,         /* floats in the widest vector of any table */
    MHAK_MAX_PANEL = 32,          /* columns of the widest panel, nr of any table */
    MHAK_LINE = 64,               /* bytes in a cache line */
    MHAK_GROUP = 16,              /* keys of one group of a cache: a multiple of every vector */
    MHAK_NEXT_LEAST = 4096, /* bytes of keys that are brought in by loads while others are used: */
    MHAK_NEXT_MOST = 8192,  /* fewer arrive too late, more overflow the L1 cache */
    MHAK_TYPES = 5 /* storage types as in mha_dtype: f32, f16, bf16, no f64, and i8 in the slots
                    * that weights and caches are read by: pack_v, load_row, product, pv */
};

/*
 * Rows that will be read next. With few rows of queries nearly all time is spent waiting for
 * memory, so kernels prefetch these rows: `lines` cache lines of each of `count` rows, none for 0
 * lines. They are only prefetched, not read, so the addresses may be invalid.
 */
typedef struct mhak_prefetch {
    const char *rows;
    ptrdiff_t stride; /* in bytes */
    int lines, count;
} mhak_prefetch;

/* Rows of sums at the end of a product: y = activation(sums * scales + bias) + residual. */
typedef struct mhak_finish {
    int activation; /* as in mha_activation */
    int y_type;     /* of finish_fused, as in mha_dtype; f32 otherwise */
    int rows, columns;
    const float *sums; /* ld_sums floats per row; sums, scales and bias are whole vectors */
    ptrdiff_t ld_sums;
    const float *scales, *bias; /* scales NULL: 1 */
    const float *residual;      /* of finish_fused; NULL: none; may be y */
    void *y;
    ptrdiff_t residual_stride, y_stride; /* in elements */
} mhak_finish;

/* How norm_row normalises a row: (x - mean) / sqrt(variance + eps) * weight + bias, or without
 * `layer` x / sqrt(mean of x^2 + eps) * weight + bias. */
typedef struct mhak_norm {
    bool layer;
    ptrdiff_t width;
    double eps;
    const float *weight, *bias; /* [width]; NULL: 1 and 0 */
} mhak_norm;

/* Which weights dropout keeps: those whose 16 random bits are not below the threshold. */
typedef struct mhak_drop {
    uint64_t seed;
    uint32_t batch, head;
    uint32_t threshold; /* probability * 65536 */
} mhak_drop;

/* Where fold copies scores before they become p: those of row r to scores + r*stride. Masked ones
 * are -inf there. */
typedef struct mhak_hold {
    float *scores;
    ptrdiff_t stride;
} mhak_hold;

/*
 * Statistics of rows. The sums, MHAK_SUMS vectors per row, are over the keys seen so far, lane by
 * lane: of p = exp(score - base), of p * (score - base), and of p times the distance of the key
 * from the anchor. Base is the largest m so far. Before the first key the sums are 0, base and best
 * -inf.
 */
enum { MHAK_MASS, MHAK_ENERGY, MHAK_REACH, MHAK_SUMS };

typedef struct mhak_statistics {
    float *sums;           /* [rows][MHAK_SUMS][vector] */
    float *base;           /* [rows] */
    float *best;           /* [rows]: the largest score, */
    int64_t *best_key;     /* and the key it belongs to, the first of several */
    const int64_t *anchor; /* [rows], keys */
    int64_t key;           /* column 0 of the block */
    float *held;           /* the p of row r are copied to held + r*held_stride; NULL: not copied */
    ptrdiff_t held_stride;
    const mhak_hold *hold; /* as in fold */

    /* The largest scores of each row and their keys in descending order; of equal scores the
     * earlier key is first. Lists have `top` entries, at most MHAK_MAX_TOP, rounded up to whole
     * vectors, and begin as -inf. */
    int top;
    float *top_scores;
    int32_t *top_keys;
} mhak_statistics;

/*
 * 32 inputs of a linear as whole numbers of three digits, least first:
 *
 *      x = (digits[0] + 256 * digits[1] + 65536 * digits[2]) * scale
 *
 * In native arithmetic only digits[0] is used. It takes the place of 32 floats. sums are those of
 * x, over inputs that share a scale: all of them, or two halves. low and high correct sums of
 * products for the bias b of the weights: they are -b times the sum of the whole numbers, high in
 * units of 256.
 */
enum { MHAK_DIGITS = 3 };

typedef struct mhak_digits {
    int8_t digits[MHAK_DIGITS][MHAK_BLOCK_GROUP];
    float scale, high_scale; /* and 256 times the scale */
    float sums[2];
    int32_t low[2], high[2];
} mhak_digits;

_Static_assert(sizeof(mhak_digits) == sizeof(float) * MHAK_BLOCK_GROUP, "in place of the floats");

/*
 * Rows of one head, or of heads that share keys, with 1 to MHAK_BLOCK keys; all of it f32. Strides
 * are in elements. Row r sees the first min(keys, sees + rise * r) keys, at least one.
 *
 * With `own` each row has keys and values of its own: those of row r begin k_row * r and v_row * r
 * elements later. Then k is not NULL, and d at least 8.
 */
typedef struct mhak_attend {
    int rows, keys, d, dv; /* d is at most MHAK_DEPTH */
    ptrdiff_t sees;
    int rise; /* 0 or 1 */
    float scale;
    const float *q, *k; /* k NULL: the keys are in groups */
    ptrdiff_t q_stride, k_stride;
    bool own;
    ptrdiff_t k_row, v_row;                       /* 0 without `own` */
    const float *groups[MHAK_BLOCK / MHAK_GROUP]; /* as in product_groups */
    const float *v[MHAK_BLOCK / MHAK_CHAIN];      /* the first row of each chain of keys */
    ptrdiff_t v_stride;
    const float *mask; /* added to the scores; -inf hides a key. NULL: none */
    ptrdiff_t mask_stride;
    float *o, *weights; /* weights NULL: not wanted */
    ptrdiff_t o_stride, weights_stride;
    int columns;           /* of the weights: those past the keys become 0 */
    float *m, *l;          /* [rows] */
    mhak_prefetch next[3]; /* rows of the next call: its queries, keys and values */

    /* Scratch. With `packs`, keys are packed even for few rows, since later calls use them too,
     * with `packed`. */
    int tile_rows;
    bool packs, packed;
    float *panels;            /* [MHAK_BLOCK][d] */
    float *scaled, *s, *sums; /* [tile_rows]: queries, MHAK_BLOCK scores, dv in whole vectors */
    ptrdiff_t ld_scaled, ld_sums;
    float *inverse; /* [tile_rows] */
} mhak_attend;

typedef struct mhak_table {
    const char *name;
    int vector;      /* floats in a vector: row lengths of tiles are multiples of it */
    int nr;          /* keys in one panel of K */
    int nc;          /* columns in one panel of V */
    int mr_qk;       /* rows the product kernels take at once */
    int mr_pv;       /* rows the pv kernel takes at once */
    int mr_in_place; /* most rows of qk_in_place */

    /*
     * Packs `keys` (1..width) rows of K, `stride` elements apart, into one panel of f32:
     *
     *      k: keys x d, row-major        panel: d x width, panel[c*width + j] = k[j*stride + c]
     *
     * Columns past `keys` are 0. width is nr, or MHAK_GROUP for product_groups.
     */
    void (*pack_k[MHAK_TYPES])(const void *k, ptrdiff_t stride, int keys, int d, int width,
                               float *panel);

    /*
     * Packs rows [first, last) of a block of V into column panels of f32:
     *
     *      panels[(c/nc)*block*nc + j*nc + c%nc] = v[j*stride + c],   block = MHAK_BLOCK
     *
     * for c < dv; columns up to the next multiple of `vector` are 0. v points at row 0 of the
     * block. Where keep bits are given, a row whose bit is 0 becomes 0 and is not read.
     */
    void (*pack_v[MHAK_TYPES])(const void *v, ptrdiff_t stride, int first, int last, int dv,
                               const uint32_t *keep, float *panels);

    /* dst[c] = src[c] * factor for c < n. */
    void (*load_row[MHAK_TYPES])(const void *src, int n, float factor, float *dst);

    /* dst[c] = src[c] * factor, rounded to nearest even, for c < n; -0 becomes +0. */
    void (*store_row[MHAK_TYPES])(const float *src, int n, float factor, void *dst);

    /* The same for several rows: `stride` elements apart in storage, ldd or lds floats apart in
     * memory. Rows that are stored have one factor each. */
    void (*load_rows[MHAK_TYPES])(const void *src, ptrdiff_t stride, int rows, int n, float factor,
                                  float *dst, ptrdiff_t ldd);
    void (*store_rows[MHAK_TYPES])(const float *src, ptrdiff_t lds, int rows, int n,
                                   const float *factors, void *dst, ptrdiff_t stride);

    /*
     * Rows times one panel, of keys or of weights, in its storage type:
     *
     *          depth               nr                  nr
     *        +-------+         +-------+           +-------+
     *      x |       | . depth | panel |   =  rows |   y   |
     *   rows +-------+         +-------+           +-------+
     *
     * Each element is one chain of multiply-adds over the depth in ascending order. With `add` the
     * sum of the chain is added to y. i8: integers as they are stored; scales are applied later. x
     * has rows of ldx floats, y of ldy. Memory after the panel is prefetched, never read.
     */
    void (*product[MHAK_TYPES])(const float *x, ptrdiff_t ldx, const void *panel, int depth,
                                int rows, bool add, float *y, ptrdiff_t ldy);

    /*
     * The same with one or two groups of a cache as panels, `stride` elements apart: MHAK_GROUP
     * columns each, side by side in y. If two groups are followed by two others at `next`, with the
     * same depth and stride, these are read as well, to bring them into the cache; NULL: there are
     * none.
     */
    void (*product_groups[MHAK_TYPES])(const float *x, ptrdiff_t ldx, const void *group,
                                       ptrdiff_t stride, int groups, const void *next, int depth,
                                       int rows, bool add, float *y, ptrdiff_t ldy);

    /* The end of a product: dst[c] = src[c] * scales[c] + bias[c] for c < n, rounded to nearest
     * even; scales NULL: 1. */
    void (*finish_row[MHAK_TYPES])(const float *src, int n, const float *scales, const float *bias,
                                   void *dst);

    /* The same for the rows of a mhak_finish, with an activation and a residual. */
    void (*finish_fused)(const mhak_finish *finish);

    /* The end of a product whose panels are alternately those of a gate and of a value: y[c] =
     * activation(gate c) * value c, where both are scaled and have their bias added. Columns
     * [p*nr, (p+1)*nr) of the gate are those from 2*p*nr on in sums, scales and bias. */
    void (*finish_gated)(const mhak_finish *finish);

    /* y[c] = activation(x[c]) for c < n; y may be x. */
    void (*activate)(int activation, const float *x, ptrdiff_t n, float *y);

    /* One row of a norm, of x + residual (NULL: x), which is also written to sum (NULL: not). y may
     * be x or the residual, and so may sum. */
    void (*norm_row)(const mhak_norm *norm, const float *x, const float *residual, float *sum,
                     float *y);

    /* x[j] *= y[j] for j < n rounded up to whole vectors. */
    void (*scale_row)(float *x, const float *y, int n);

    /*
     * Scores of at most mr_in_place rows and `keys` keys, whole vectors, read in place: row j of K
     * is `stride` elements after row j-1. d is at most MHAK_DEPTH. Same bits as product. s has rows
     * of MHAK_BLOCK; if there are more keys than that, each block of them has `rows` rows, after
     * those of the block before. With `more` the next `vector` rows of K will be read too, and are
     * brought in.
     */
    void (*qk_in_place[MHAK_TYPES])(const float *q, ptrdiff_t ldq, const void *k, ptrdiff_t stride,
                                    int d, int keys, bool more, int rows, float *s);

    /*
     * Folds columns [first, last) of a block of scores into the running softmax of `rows` rows;
     * first is a multiple of `vector`, and so is last where keep is given. Columns of the last
     * vector past `last` count as -inf.
     *
     * Invariant, over every key folded in so far:
     *      m = max score        l = sum exp(score - m)        o = sum exp(score - m) * v
     *
     * This call folds the block into m and l, leaves exp(score - m) in s and in alpha the factor
     * that brings o to the new m; pv then restores the invariant. Where keep is given (MHAK_WORDS
     * words per row) a score whose bit is 0 counts as -inf, whatever it holds. With hold, scores
     * are copied first.
     */
    void (*fold)(float *s, int rows, int first, int last, const uint32_t *keep, float *m, float *l,
                 float *alpha, const mhak_hold *hold);

    /* The same when mask is added to the scores: that of column j of row r is mask[r*stride +
     * j-first]. Where it is -inf, the score counts as -inf, whatever it holds. Sets seen[r] where a
     * row sees a key; returns whether any key is hidden from any row. */
    bool (*fold_added)(float *s, int rows, int first, int last, const float *mask, ptrdiff_t stride,
                       float *m, float *l, float *alpha, bool *seen);

    /*
     * o = alpha * o + p . v for `rows` rows and keys [first, last) of a block, last > 0; first =
     * last leaves alpha * o. alpha NULL: 1.
     *
     *             keys               dv                        dv
     *         +--------+         +---------+              +---------+
     *       p |        |  . keys |    v    |   ->    rows |    o    |
     *    rows +--------+         +---------+              +---------+
     *
     * For each chain of MHAK_CHAIN keys an element is summed by multiply-adds over the keys in
     * ascending order; the sum of the first chain is added to alpha * o, the others to o.
     *
     * Column n*nc + c of row j of the block is v[n*panel + j*stride + c]; dv counts whole vectors.
     * There is one slot for each storage type of V.
     *
     * `last` may lie in a block after the first: then p has `rows` rows and alpha `rows` numbers
     * for each block, and the result is that of one call per block, to the bit.
     */
    void (*pv[MHAK_TYPES])(const float *p, const void *v, ptrdiff_t stride, ptrdiff_t panel,
                           int first, int last, int rows, int dv, const mhak_prefetch *ahead,
                           const float *alpha, float *o, ptrdiff_t ldo);

    /*
     * Merges the softmax state (m2, l2, o2) of later keys into (m, l, o) of earlier ones, for
     * `rows` rows; o and o2 have ldo floats per row, all of which are used.
     */
    void (*merge)(int rows, ptrdiff_t ldo, float *m, float *l, float *o, const float *m2,
                  const float *l2, const float *o2);

    /* s[j] = cap * tanh(s[j] / cap) for j < n rounded up to whole vectors. */
    void (*softcap)(float *s, int n, float cap);

    /* s[j] += src[j] for j < n. */
    void (*add_row[MHAK_TYPES])(float *s, const void *src, int n);

    /* s[j] -= slope * |position - j| for j < n rounded up to whole vectors. */
    void (*alibi)(float *s, int n, float slope, float position);

    /* to[j] = exp(s[j] - m) * factor where the keep bit is 1, else 0, for j < n; s has whole
     * vectors. to may be s. */
    void (*exp_scale)(const float *s, int n, const uint32_t *keep, float m, float factor,
                      float *to);

    /* The same, added to what `to` holds; to is not s. */
    void (*exp_scale_add)(const float *s, int n, const uint32_t *keep, float m, float factor,
                          float *to);

    /* fold, to the bit, that also adds the block to the statistics of its rows. */
    void (*fold_statistics)(float *s, int rows, int first, int last, const uint32_t *keep, float *m,
                            float *l, float *alpha, const mhak_statistics *statistics);

    /* dst[c] += src[c] * factor for c < n, whole vectors. */
    void (*add_scaled)(float *dst, const float *src, ptrdiff_t n, float factor);

    /*
     * y += x^T . w, for the gradients of keys and values:
     *
     *            rows               columns               columns
     *         +--------+          +---------+           +---------+
     *   depth |   x    |    depth |    w    |   ->  rows|    y    |
     *         +--------+          +---------+           +---------+
     *
     * y[r*ldy + c] += the chain of multiply-adds x[i*ldx + r] * w[i*ldw + c] over ascending i.
     * columns counts whole vectors.
     */
    void (*product_transposed)(const float *x, ptrdiff_t ldx, const float *w, ptrdiff_t ldw,
                               int depth, int rows, int columns, float *y, ptrdiff_t ldy);

    /* sums[r] = the sum of a[r*lda + c] * b[r*ldb + c] over ascending c < n, in double, each row a
     * plain sum. */
    void (*dot_rows)(const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, int rows, int n,
                     double *sums);

    /* d[j] = p[j] * (d[j] - delta) where the keep bit is 1, else 0, for j < n rounded up to whole
     * vectors: from the gradient of a weight to that of a score. */
    void (*score_gradient)(const float *p, float *d, int n, const uint32_t *keep, float delta);

    /*
     * Keep bits of a row and a block (number `block`, of MHAK_BLOCK keys): key j of the block has
     * bits 16*(j%8) .. of Philox4x32-7 of the counter (block * MHAK_BLOCK/8 + j/8, row, head,
     * batch) under the key `seed`, words and their halves in ascending order.
     */
    void (*drop_bits)(const mhak_drop *drop, uint32_t row, uint32_t block, uint32_t *keep);

    /* s[j] = s[j] * factor where the keep bit is 1, else 0, for j < n rounded up to whole
     * vectors. */
    void (*drop_apply)(float *s, int n, const uint32_t *keep, float factor);

    /* Clear keep bit j where src[j] (!= 0) is `drop`, for j < n. */
    void (*keep_bytes)(const uint8_t *src, int n, bool drop, uint32_t *keep);

    /* Clear keep bit j where src[j] is -inf, for j < n. */
    void (*keep_above[MHAK_TYPES])(const void *src, int n, uint32_t *keep);

    /* Clear keep bit j where ids[j] != id, for j < n. */
    void (*keep_equal)(const int32_t *ids, int n, int32_t id, uint32_t *keep);

    /* Is every one of n floats finite? n is a multiple of `vector`. */
    bool (*all_finite)(const float *x, ptrdiff_t n);

    /* y[i] = exp(x[i]) for x[i] <= 88: the exponential of fold, for its tests. n is a multiple of
     * `vector`. */
    void (*exp_row)(const float *x, ptrdiff_t n, float *y);

    /*
     * Rows from queries to output, with the bits of product, fold, pv and store_rows one after
     * another: o = p . v / l, m and l as after fold, and p / l as weights.
     *
     * Returns false, with any numbers in the outputs, where these slots alone do not give the
     * result: a row has no p above 0, or an output is not finite and there are hidden keys.
     */
    bool (*attend)(const mhak_attend *x);

    /* A slice of a panel of weights of a block type as a panel of f32: `depth` inputs, whole
     * blocks, to[c*nr + n] for input c and output n. */
    void (*load_blocks[MHAK_BLOCK_TYPES])(const void *slice, int depth, float *to);

    /*
     * The same product as `product`, of rows of mhak_digits and a slice of a panel of a block type
     * as it is stored. NULL where whole numbers are not faster. digits_rows makes the digits of
     * rows of `depth` floats, whole groups, in place, for weights of which `shared` inputs share a
     * scale and which are stored with this bias. Rows with an input that is not finite become NaN.
     */
    void (*digits_rows)(float *x, ptrdiff_t ldx, int rows, int depth, int shared, int bias);
    void (*product_digits[MHAK_BLOCK_TYPES])(const float *x, ptrdiff_t ldx, const void *slice,
                                             int depth, int rows, bool add, float *y,
                                             ptrdiff_t ldy);

    /*
     * Both for native arithmetic: with one digit, inputs being rounded to the nearest of 127 steps
     * of a scale, which is the largest of 32 inputs in size divided by 127. If 127 divided by that
     * one is not finite, all 32 are 0.
     */
    void (*digit_rows)(float *x, ptrdiff_t ldx, int rows, int depth, int shared, int bias);
    void (*product_digit[MHAK_BLOCK_TYPES])(const float *x, ptrdiff_t ldx, const void *slice,
                                            int depth, int rows, bool add, float *y, ptrdiff_t ldy);
} mhak_table;

extern const mhak_table mhak_table_c;
extern const mhak_table mhak_table_avx2;
extern const mhak_table mhak_table_avx512;
extern const mhak_table mhak_table_neon;
extern const mhak_table mhak_table_wasm;

#endif
