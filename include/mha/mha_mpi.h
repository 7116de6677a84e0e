/* SPDX-License-Identifier: MIT */
/*
 * libmha_mpi: attention whose tokens and heads are spread over the ranks of an MPI job.
 *
 *      1. group      the ranks that work together
 *      2. layout     which tokens a rank has
 *      3. operator   attention and its backward pass over all ranks
 *      4. cache      decoding over keys and values that are spread over ranks
 *      5. sums       of arrays that ranks have, in one fixed order
 *
 * A function marked (all) is called by all ranks of its group, in the same order, with equal
 * arguments but for views, work and pool; views are of each rank's own rows. Before anything is
 * sent the ranks agree: what one of them refuses, all refuse, with one code, and outputs are
 * untouched. Only a group or plan that is NULL cannot be agreed about. MPI is the caller's: never
 * started or ended here. MPI_THREAD_FUNNELED suffices; calls then come from its thread.
 *
 * Promises:
 *   - GATHER, ALL_TO_ALL and GRID give the bits of mha_attention() and mha_attention_backward() on
 *     one machine, for any number of ranks and any layout. RING, caches and sums give the same bits
 *     for any number of ranks and any layout: partial results of fixed chunks of keys, or leaves,
 *     join in the order of one binary tree.
 *   - The ranks of a group have one version of libmha and one instruction set, or MHA_ERR_AGREE.
 *   - MHA_ERR_MPI: MPI failed or a rank is gone. MHA_ERR_TIMEOUT: a rank did not answer in time.
 *     Outputs are then of no use, `work` may be written to until MPI ends, and the group is broken:
 *     later calls return the same code at once. Go on with a new communicator, or not at all.
 *   - A group of one rank never calls MPI after it was created.
 *   - Runs use the given workspace; they allocate only some small plans. Nothing is ever printed.
 */
#ifndef MHA_MHA_MPI_H
#define MHA_MHA_MPI_H

#include <mha/mha.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ============================================================= 1. group ===== */

typedef struct mha_mpi_group mha_mpi_group;

typedef struct mha_mpi_group_config {
    size_t size;          /* sizeof(mha_mpi_group_config) */
    double timeout;       /* seconds without any progress after which a wait ends; 0: 300 */
    size_t message_bytes; /* largest message; 0: 2^28. MPI counts are int: always below 2^31 */
    char *message;        /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
} mha_mpi_group_config;

/* (all) On a copy of comm, which the caller may free afterwards. config NULL: the defaults.
 * from_int: comm as an integer, for other languages: MPI_Comm_c2f(), mpi4py's py2f(). On error
 * *group is NULL. */
MHA_API mha_status mha_mpi_group_create(mha_mpi_group **group, MPI_Comm comm,
                                        const mha_mpi_group_config *config);
MHA_API mha_status mha_mpi_group_from_int(mha_mpi_group **group, int comm,
                                          const mha_mpi_group_config *config);

/* (all), unless the group is broken, and before MPI_Finalize(). NULL is allowed. Plans and sums of
 * the group must not be used afterwards, only freed. */
MHA_API void mha_mpi_group_free(mha_mpi_group *group);

/* -1 for NULL. */
MHA_API int mha_mpi_group_rank(const mha_mpi_group *group);
MHA_API int mha_mpi_group_ranks(const mha_mpi_group *group);

/* (all) For decisions that all ranks must make alike: *number becomes that of the lowest rank whose
 * number is not 0, or stays 0 if there is none. MHA_ERR_AGREE, with *number set, if the `bytes`
 * bytes at `same` differ between ranks. Numbers are from 0 to INT_MAX - 1 (MHA_ERR_LENGTH). */
MHA_API mha_status mha_mpi_agree(mha_mpi_group *group, int *number, const void *same, size_t bytes);

/* ============================================================ 2. layout ===== */

typedef enum mha_mpi_split {
    MHA_MPI_BLOCKS = 0, /* one run of tokens a rank, as equal as possible */
    MHA_MPI_ZIGZAG = 1, /* two: one from the front, one as far from the back; fair if causal */
    MHA_MPI_GIVEN = 2   /* run n is starts[n] to starts[n+1] and belongs to ranks[n] */
} mha_mpi_split;

/* Which tokens a rank has; its runs lie one after another in its views. Runs may be empty, and
 * nothing needs to divide anything. */
typedef struct mha_mpi_layout {
    size_t size; /* sizeof(mha_mpi_layout) */
    mha_mpi_split split;
    ptrdiff_t tokens;      /* of all ranks */
    ptrdiff_t runs;        /* this and what follows only for MHA_MPI_GIVEN */
    const int64_t *starts; /* [runs + 1], ascending, from 0 to tokens */
    const int *ranks;      /* [runs] */
} mha_mpi_layout;

/* Rows of a rank, -1 for an invalid layout or rank. tokens: which they are, [rows]; NULL: not
 * requested. */
MHA_API ptrdiff_t mha_mpi_rows(const mha_mpi_group *group, const mha_mpi_layout *layout, int rank,
                               int64_t *tokens);

/* ========================================================== 3. operator ===== */

typedef enum mha_mpi_scheme {
    MHA_MPI_AUTO = 0,       /* what moves least: mha_mpi_plan_explain() says why */
    MHA_MPI_GATHER = 1,     /* keys of some heads come to all ranks while others are computed */
    MHA_MPI_ALL_TO_ALL = 2, /* tokens of all heads for heads of all tokens, and back */
    MHA_MPI_GRID = 3,       /* head_ranks share the heads, teams of them share the rows */
    MHA_MPI_RING = 4        /* chunks of keys go round: least memory */
} mha_mpi_scheme;

#define MHA_MPI_CHUNK 4096 /* tokens of one partial result, unless chosen */

typedef struct mha_mpi_plan_config {
    size_t size; /* sizeof(mha_mpi_plan_config) */
    mha_mpi_scheme scheme;
    int head_ranks;  /* MHA_MPI_GRID: a divisor of the number of ranks; 0: chosen */
    ptrdiff_t heads; /* key/value heads that travel at once, not for RING; 0: chosen */
    ptrdiff_t chunk; /* MHA_MPI_RING: 0: MHA_MPI_CHUNK. Bits depend on it */
    char *message;   /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
} mha_mpi_plan_config;

typedef struct mha_mpi_plan mha_mpi_plan;

/*
 * (all) The shape is the whole's. The layouts have its L and S tokens; those of packed sequences
 * their q_starts[B] and k_starts[B]. Queries and keys may be spread differently. config NULL: the
 * defaults. On error *plan is NULL.
 */
MHA_API mha_status mha_mpi_plan_create(mha_mpi_plan **plan, mha_mpi_group *group,
                                       const mha_mpi_plan_config *config, const mha_shape *shape,
                                       const mha_mpi_layout *queries, const mha_mpi_layout *keys);

/* NULL is allowed. Not (all). */
MHA_API void mha_mpi_plan_free(mha_mpi_plan *plan);

/* Bytes of workspace for a run or, if `backward` is not 0, a backward pass with these options and
 * a pool of `threads` threads; gradients of biases and masks have the axes that these have. 0 if
 * they are not valid. Not (all). */
MHA_API size_t mha_mpi_plan_work_size(const mha_mpi_plan *plan, const mha_options *options,
                                      int threads, int backward);

/* Bytes that this rank sends in a run, or a backward pass without gradients of options that need
 * ALL_TO_ALL. 0 if the options are not valid. Not (all). */
MHA_API uint64_t mha_mpi_plan_sent(const mha_mpi_plan *plan, const mha_options *options,
                                   int backward);

/* The scheme with its reason, volumes, memory and balance, in words; as mha_plan_explain(). Not
 * (all). */
MHA_API size_t mha_mpi_plan_explain(const mha_mpi_plan *plan, char *text, size_t size);

/*
 * (all) As mha_attention(), on this rank's rows of q, k, v and o. Options are those of the whole
 * call: offsets, lengths, starts, heads, key axes. What has a query axis has this rank's rows:
 * masks, biases, q_documents, log-sum-exp. Which options are given, and which of their strides are
 * 0, is the same on all ranks, also on one without rows. With packed sequences, rows (b, i) of
 * masks and biases are those rows of sequence b that this rank has, counted from 0.
 *
 * Statistics of rows and their largest weights are of this rank's rows, [B][H][rows]; with packed
 * sequences [B][H][L], rows as above. Those of heads and of keys come to every rank. They are sums
 * over all rows of a head, so a call with statistics is computed as by ALL_TO_ALL. RING has none.
 *
 * Weights are of this rank's rows, (b, head, row, j) with the S columns of the whole, with the bits
 * of one call by every scheme. Lists of chosen heads and rows are those of the whole call; a rank
 * gets those of the chosen rows that it has, in the order of the list. But for all rows and heads
 * by GATHER, they are computed after the run: the keys of chosen heads come to all ranks, of all
 * chosen heads at once for a mean.
 *
 * Refused (MHA_ERR_FLAG): statistics by RING. docs/mpi.md has a table of all options.
 *
 * `work` needs mha_mpi_plan_work_size() bytes.
 */
MHA_API mha_status mha_mpi_plan_run(const mha_mpi_plan *plan, mha_view q, mha_view k, mha_view v,
                                    mha_out o, const mha_options *options, void *work,
                                    size_t work_size, mha_pool *pool);

/*
 * (all) As mha_attention_backward(). Gradients of biases and masks with rows have this rank's rows.
 * Those of sinks, slopes, gates, and of biases and masks without rows, come to every rank; RING has
 * only sinks. Slopes, gates and biases without rows need all rows of a head on one rank: such a
 * pass is computed as by ALL_TO_ALL, and so is one with packed sequences and gradients of options.
 * Refused (MHA_ERR_FLAG): gradients of biases and masks that heads share, and of rows that packed
 * sequences share.
 */
MHA_API mha_status mha_mpi_plan_backward(const mha_mpi_plan *plan, mha_view q, mha_view k,
                                         mha_view v, mha_view o, const mha_options *options,
                                         const mha_gradients *gradients, void *work,
                                         size_t work_size, mha_pool *pool);

/* ============================================================= 4. cache ===== */

/*
 * Keys and values of growing sequences, stored in chunks. `block` chunks in a row belong to one
 * rank, then come those of the next. Bits depend on the chunk, not on blocks and ranks.
 */
typedef struct mha_mpi_cache mha_mpi_cache;

typedef struct mha_mpi_cache_config {
    size_t size;                   /* sizeof(mha_mpi_cache_config) */
    ptrdiff_t sequences, capacity; /* tokens of a sequence on all ranks together */
    ptrdiff_t chunk;               /* tokens; 0: 1024 */
    ptrdiff_t block;               /* chunks; 0: 4. A power of two sends least */
    ptrdiff_t G, D, Dv;            /* Dv = 0: D */
    mha_dtype k_type, v_type;      /* f32, f16, bf16 or i8 */
    char *message;                 /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
} mha_mpi_cache_config;

/* (all) On error *cache is NULL. */
MHA_API mha_status mha_mpi_cache_create(mha_mpi_cache **cache, mha_mpi_group *group,
                                        const mha_mpi_cache_config *config);

/* NULL is allowed. Not (all). */
MHA_API void mha_mpi_cache_free(mha_mpi_cache *cache);

/* Tokens of a sequence on all ranks; -1 if there is none. Not (all). */
MHA_API ptrdiff_t mha_mpi_cache_length(const mha_mpi_cache *cache, ptrdiff_t sequence);

/* (all) Appends tokens (g, i), i < count, sb is not used. All ranks give all of them, and each
 * stores its own. Completely or not at all. */
MHA_API mha_status mha_mpi_cache_append(mha_mpi_cache *cache, ptrdiff_t sequence, ptrdiff_t count,
                                        mha_view k, mha_dtype k_type, mha_view v, mha_dtype v_type);

/*
 * (all) Attention of queries that all ranks have over the tokens of all; every rank gets the
 * complete o. As mha_cache_attention(): B, H, L, q_type and o_type of the shape are used, and
 * without a position the last query is at the last token. Causal masks, windows, ALiBi, sinks, soft
 * cap, scale, gates and the log-sum-exp apply; other options are refused (MHA_ERR_FLAG). Memory is
 * allocated and freed.
 */
MHA_API mha_status mha_mpi_cache_attention(const mha_mpi_cache *cache, const int64_t *sequences,
                                           const mha_shape *shape, mha_view q, mha_out o,
                                           const mha_options *options, mha_pool *pool);

/* ============================================================== 5. sums ===== */

/*
 * The sum of `leaves` arrays of `count` numbers on any ranks: gradients of the parts of a
 * batch. Each leaf is added once in all, anywhere and in any order, which changes no bit. finish is
 * (all); every rank gets the total, and the sum is empty again. MHA_ERR_LENGTH if a leaf is missing
 * or there twice.
 */
typedef struct mha_mpi_sum mha_mpi_sum;

MHA_API mha_status mha_mpi_sum_create(mha_mpi_sum **sum, mha_mpi_group *group, ptrdiff_t count,
                                      ptrdiff_t leaves);
MHA_API mha_status mha_mpi_sum_add(mha_mpi_sum *sum, ptrdiff_t leaf, const float *data);
MHA_API mha_status mha_mpi_sum_finish(mha_mpi_sum *sum, float *total);

/* NULL is allowed. Not (all). */
MHA_API void mha_mpi_sum_free(mha_mpi_sum *sum);

#ifdef __cplusplus
}
#endif

#endif
