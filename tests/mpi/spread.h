/* SPDX-License-Identifier: MIT */
/*
 * Problems for the tests of libmha_mpi. Every rank makes the whole problem from the same seed and
 * computes it alone; then it takes its own rows and computes those with all ranks.
 */
#ifndef MHA_TEST_SPREAD_H
#define MHA_TEST_SPREAD_H

#include <mha/mha_mpi.h>

#include <stdbool.h>

#include "base/rng.h"

/* What a problem may have. */
enum {
    SPREAD_PACKED = 1 << 0,
    SPREAD_MASKS = 1 << 1, /* masks and biases, with or without rows */
    SPREAD_LENGTHS = 1 << 2,
    SPREAD_DROPOUT = 1 << 3,
    SPREAD_HEADS = 1 << 4, /* sinks, slopes, gates */
    SPREAD_DOCUMENTS = 1 << 5,
    SPREAD_TYPES = 1 << 6, /* f16 and bf16 */
    SPREAD_STATISTICS = 1 << 7,
    SPREAD_MODES = 1 << 8, /* of heads: such a problem has no backward pass */
    SPREAD_F64 = 1 << 9,   /* nor has one in f64 */
    SPREAD_NATIVE = 1 << 10,
    SPREAD_EVERYTHING = (1 << 11) - 1
};

/* Tensors of the whole, or of one rank: contiguous [B][heads][rows][width]; packed: one batch,
 * but for masks, biases and statistics. */
typedef struct spread_data {
    ptrdiff_t L, S; /* rows of each side */
    char *q, *k, *v, *o, *lse, *d_o, *d_lse;
    char *attend, *ignore, *add, *bias, *documents;
    char *rows, *top_keys, *top_weights; /* of statistics */
    float *d_q, *d_k, *d_v, *d_add, *d_bias, *d_bias_keys, *d_sinks, *d_slopes, *d_gates;
    float *columns;
    mha_head_statistics *head_statistics;
    mha_statistics statistics;
} spread_data;

enum { SPREAD_LISTS = 16 };

typedef struct spread {
    mha_shape shape;
    ptrdiff_t q_tokens, k_tokens;
    bool packed, attend_rows, add_rows, add_heads, bias_rows, bias_batches, statistics;
    bool wants_q, wants_keys; /* gradients of queries, of keys and values */
    bool sums, only_sinks;    /* gradients that are sums over rows: none, all, or of sinks */
    mha_options options;      /* without what has rows */
    mha_gradients gradients;  /* only which are wanted */
    int64_t q_starts[SPREAD_LISTS], k_starts[SPREAD_LISTS];
    int64_t q_lengths[SPREAD_LISTS], k_lengths[SPREAD_LISTS], offsets[SPREAD_LISTS];
    float sinks[64], slopes[64], gates[192];
    uint8_t modes[64];
    float means[64 * 64];
    int32_t *k_documents;
    spread_data whole, local;
    mha_mpi_layout queries, keys;
    int64_t starts[2][64];
    int ranks[2][64];
    int64_t *tokens[2]; /* of this rank */
    char message[256];  /* of the last run over ranks */
} spread;

/* Draws a problem; `has` limits what it may have, and `most` the tokens. */
spread *spread_new(uint64_t seed, unsigned has, ptrdiff_t most, const mha_mpi_group *group);
void spread_free(spread *s);

/* Draws layouts for other ranks of the same problem. */
void spread_lay_out(spread *s, rng *r, const mha_mpi_group *group);

/* Has the problem a backward pass? */
bool spread_goes_back(const spread *s);

/* The options and gradients of a call on `data`: the whole, or this rank's rows. */
mha_options spread_options(const spread *s, const spread_data *data);
mha_gradients spread_gradients(const spread *s, const spread_data *data);
mha_view spread_view(const spread *s, const spread_data *data, char which);

/* The whole problem on this rank alone, forward and backward. */
mha_status spread_run_alone(spread *s, bool backward);

/* This rank's rows with all ranks. Outputs hold a pattern before. */
mha_status spread_run(spread *s, const mha_mpi_plan *plan, bool backward, mha_pool *pool);

/* The same for other rows: those of the whole, if the plan is of a group of one rank. */
mha_status spread_run_on(spread *s, const spread_data *d, const mha_mpi_plan *plan, bool backward,
                         mha_pool *pool);

/* Does this rank have the bits of the whole? Otherwise the name of a tensor that differs. */
const char *spread_differs(const spread *s, bool backward);

/* The largest difference between this rank's results and the whole, relative to the largest number
 * of the tensor. */
double spread_distance(const spread *s, bool backward);

/* Fills this rank's outputs with the pattern, and looks whether they still hold it. */
void spread_clear(spread *s);
bool spread_is_clear(const spread *s);

#endif
