/* SPDX-License-Identifier: MIT */
/*
 * What the files of libmha_mpi share.
 *
 *      group.c      the communicator, agreement, waiting with a time limit
 *      layout.c     tokens and rows: runs of tokens
 *      parcel.c     rows of several tensors as one block of bytes, and back
 *      exchange.c   blocks of bytes between ranks, cut into messages
 *      plan.c       scheme, head ranks and teams; explain.c: in words; run.c: its runs
 *      call.c       what a run is given, checked; call_hash.c: what all ranks must agree on
 *      piece.c      a call of the operator for some rows and heads of the whole
 *      grid.c       GATHER, ALL_TO_ALL and GRID; share.c: results of heads, for every rank
 *      weights.c    weights of chosen heads and rows, and their mean
 *      ring.c       RING, forward and backward; tree.c: partial results in one fixed order
 *      sum.c        sums over ranks; cache.c: decoding over a spread cache
 */
#ifndef MHA_MPI_PARTS_H
#define MHA_MPI_PARTS_H

#include <mha/mha_mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline ptrdiff_t mhai_mpi_min(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}
static inline ptrdiff_t mhai_mpi_max(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

/* ---------------------------------------------------------------- group ----- */

struct mha_mpi_group {
    MPI_Comm comm; /* our own copy; errors are returned */
    int rank, ranks;
    double timeout;
    size_t message_bytes;
    mha_status broken; /* what every later call returns; MHA_OK: none */
};

/* A sentence for the caller, if there is room for one; returns status. */
mha_status mhai_mpi_fail(char *message, size_t size, mha_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The result of an MPI call: MHA_OK, or MHA_ERR_MPI and the group is broken. */
mha_status mhai_mpi_result(mha_mpi_group *group, int code);

/* FNV-1a over bytes, to compare arguments. */
uint64_t mhai_mpi_hash(uint64_t hash, const void *data, size_t bytes);
#define MHAI_MPI_HASH_START UINT64_C(0xcbf29ce484222325)

/*
 * Do all ranks go on? Returns the code of the lowest rank whose `status` is not MHA_OK;
 * MHA_ERR_AGREE if their hashes differ. A sentence about it goes to `message`, except on the rank
 * that refused, which has its own.
 */
mha_status mhai_mpi_agree(mha_mpi_group *group, mha_status status, uint64_t hash, char *message,
                          size_t message_size);

/* Seconds since some start. */
double mhai_mpi_now(void);

/* Looks at requests once, those that are done become MPI_REQUEST_NULL. *left: how many are not;
 * *progress: the time, if one was done. */
mha_status mhai_mpi_poll(mha_mpi_group *group, int count, MPI_Request *requests, int *left,
                         double *progress);

/* Waits for requests, which may be MPI_REQUEST_NULL. */
mha_status mhai_mpi_wait(mha_mpi_group *group, int count, MPI_Request *requests);

/* ------------------------------------------------------------ workspace ----- */

/* Memory from a block, aligned to 64; with base NULL it is only counted. */
typedef struct mhai_mpi_work {
    char *base;
    size_t used;
} mhai_mpi_work;

mhai_mpi_work mhai_mpi_work_begin(void *memory);
void *mhai_mpi_take(mhai_mpi_work *work, size_t bytes);

/* --------------------------------------------------------------- layout ----- */

/* Tokens [first, last), which are rows from `row` on of those who have them. */
typedef struct mhai_mpi_run {
    ptrdiff_t first, last, row;
} mhai_mpi_run;

/* Rows of one owner, in the order of their tokens. */
typedef struct mhai_mpi_rows {
    ptrdiff_t runs, rows;
    const mhai_mpi_run *run;
} mhai_mpi_rows;

/* Who has which tokens: the rows of every rank, of every team of ranks, and of all. */
typedef struct mhai_mpi_side {
    ptrdiff_t tokens;
    mhai_mpi_rows *ranks; /* [ranks] */
    mhai_mpi_rows *teams; /* [teams] */
    mhai_mpi_rows all;
    mhai_mpi_run *memory; /* of all runs */
} mhai_mpi_side;

mha_status mhai_mpi_layout_check(const mha_mpi_layout *layout, int ranks);

/* For teams of `team_ranks` consecutive ranks. MHA_ERR_MEMORY. */
mha_status mhai_mpi_side_create(mhai_mpi_side *side, const mha_mpi_layout *layout, int ranks,
                                int team_ranks);
void mhai_mpi_side_free(mhai_mpi_side *side);

/* Row of the first token at or after `token`; the number of rows if there is none. */
ptrdiff_t mhai_mpi_row_of(const mhai_mpi_rows *rows, ptrdiff_t token);

uint64_t mhai_mpi_layout_hash(uint64_t hash, const mha_mpi_layout *layout);

/* ------------------------------------------------------------- operands ----- */

/* The tensors of a call that have rows of tokens. */
enum {
    MHAI_MPI_K,
    MHAI_MPI_V,
    MHAI_MPI_Q,
    MHAI_MPI_O, /* written by a run, read by a backward pass */
    MHAI_MPI_LSE,
    MHAI_MPI_D_O,
    MHAI_MPI_D_LSE,
    MHAI_MPI_ATTEND,
    MHAI_MPI_IGNORE,
    MHAI_MPI_ADD,
    MHAI_MPI_BIAS,
    MHAI_MPI_DOCUMENTS,
    MHAI_MPI_D_Q,
    MHAI_MPI_D_K,
    MHAI_MPI_D_V,
    MHAI_MPI_D_ADD,
    MHAI_MPI_D_BIAS,
    MHAI_MPI_WEIGHTS, /* this and what follows is written by a run */
    MHAI_MPI_ROW_STATISTICS,
    MHAI_MPI_TOP_KEYS,
    MHAI_MPI_TOP_WEIGHTS,
    MHAI_MPI_OPERANDS
};

/* Element (b, h, row, c) is at byte b*sb + h*sh + row*sl + c*element from data on. What is not
 * packed although its call is, such as masks, has `starts`, those of the sequences: the rows of
 * sequence b are counted from its first one that is there. */
typedef struct mhai_mpi_tensor {
    char *data; /* NULL: the call has none */
    ptrdiff_t sb, sh, sl;
    size_t bytes, element; /* of a row of one head, and of an element */
    ptrdiff_t batches;     /* 1 if all batches share it or the call is packed */
    const int64_t *starts;
    ptrdiff_t sequences; /* of starts */
    ptrdiff_t per_group; /* its heads for each key/value head; 0: one for all */
    const mhai_mpi_side *side;
    const mhai_mpi_rows *rows; /* which rows there are */
    ptrdiff_t row_first;       /* the one that is row 0 */
    ptrdiff_t head_first;      /* the key/value head that its heads begin with */
} mhai_mpi_tensor;

/* Key/value heads [first, last). */
typedef struct mhai_mpi_heads {
    ptrdiff_t first, last;
} mhai_mpi_heads;

/* Tokens [first, last). */
typedef struct mhai_mpi_tokens {
    ptrdiff_t first, last;
} mhai_mpi_tokens;

/* Heads of a tensor for these key/value heads. */
static inline ptrdiff_t mhai_mpi_heads_of(const mhai_mpi_tensor *t, mhai_mpi_heads heads)
{
    return t->per_group ? t->per_group * (heads.last - heads.first) : heads.last > heads.first;
}

/* Where the rows of a token begin, for the first of these heads and batch or sequence b. */
char *mhai_mpi_at(const mhai_mpi_tensor *t, ptrdiff_t b, ptrdiff_t head, ptrdiff_t token);

/* Rows of `owner` among these tokens, and the bytes that they have. */
ptrdiff_t mhai_mpi_count_rows(const mhai_mpi_rows *owner, mhai_mpi_tokens tokens);
size_t mhai_mpi_parcel_bytes(const mhai_mpi_tensor *t, const mhai_mpi_rows *owner,
                             mhai_mpi_heads heads, mhai_mpi_tokens tokens);

/* The same tensor without gaps: these rows of `owner` and heads, from `data` on. */
mhai_mpi_tensor mhai_mpi_packed(const mhai_mpi_tensor *t, const mhai_mpi_rows *owner,
                                mhai_mpi_heads heads, mhai_mpi_tokens tokens, char *data);

/* Copies these rows of `owner`, and heads, which both tensors have. */
void mhai_mpi_copy(const mhai_mpi_tensor *to, const mhai_mpi_tensor *from,
                   const mhai_mpi_rows *owner, mhai_mpi_heads heads, mhai_mpi_tokens tokens);

/* ------------------------------------------------------------- exchange ----- */

/* Messages under way. */
typedef struct mhai_mpi_exchange {
    mha_mpi_group *group;
    MPI_Request *requests;
    int count;
    mha_status status; /* the first error */
} mhai_mpi_exchange;

/* Requests that a block of so many bytes needs. */
size_t mhai_mpi_messages(const mha_mpi_group *group, size_t bytes);

void mhai_mpi_send(mhai_mpi_exchange *x, const char *data, size_t bytes, int to, int tag);
void mhai_mpi_receive(mhai_mpi_exchange *x, char *data, size_t bytes, int from, int tag);

/* Rows as they lie in the workspace: a block for each run of rows of each head and batch, without
 * copies. Only where these are long: both ends must be of one opinion, which depends on the owner's
 * runs alone. */
bool mhai_mpi_is_direct(const mha_mpi_group *group, const mhai_mpi_tensor *t,
                        const mhai_mpi_rows *owner);
size_t mhai_mpi_row_messages(const mha_mpi_group *group, const mhai_mpi_tensor *t,
                             const mhai_mpi_rows *owner, mhai_mpi_heads heads);
void mhai_mpi_send_rows(mhai_mpi_exchange *x, const mhai_mpi_tensor *t, const mhai_mpi_rows *owner,
                        mhai_mpi_heads heads, int to, int tag);
void mhai_mpi_receive_rows(mhai_mpi_exchange *x, const mhai_mpi_tensor *t,
                           const mhai_mpi_rows *owner, mhai_mpi_heads heads, int from, int tag);

/* Lets MPI work; between slices of computation. */
void mhai_mpi_progress(mhai_mpi_exchange *x);

/* Waits for all messages under way. */
mha_status mhai_mpi_finish(mhai_mpi_exchange *x);

/* ----------------------------------------------------------------- plan ----- */

struct mha_mpi_plan {
    mha_mpi_group *group;
    mha_shape shape; /* G and Dv filled in */
    mha_mpi_scheme scheme;
    bool chosen;                 /* by AUTO */
    int head_ranks, teams;       /* their product is the number of ranks */
    ptrdiff_t heads, steps;      /* key/value heads at once, and how often */
    ptrdiff_t chunk;             /* of RING */
    mhai_mpi_side queries, keys; /* teams of head_ranks ranks */
    uint64_t hash;
    mha_mpi_plan *whole; /* the same by ALL_TO_ALL, for results that need all rows of a head; NULL:
                          * this is one, or RING */
};

static inline int mhai_mpi_team(const mha_mpi_plan *plan, int rank)
{
    return rank / plan->head_ranks;
}

/* Key/value heads of a rank in a step; none if first == last. */
mhai_mpi_heads mhai_mpi_step_heads(const mha_mpi_plan *plan, int rank, ptrdiff_t step);

/* ----------------------------------------------------------------- call ----- */

/* Results of heads that have no rows of tokens. A rank that computes a head has all of them, and
 * every rank gets them. */
enum {
    MHAI_MPI_D_SINKS,
    MHAI_MPI_D_SLOPES,
    MHAI_MPI_D_GATES,
    MHAI_MPI_D_ADD_KEYS, /* of a mask or bias without rows */
    MHAI_MPI_D_BIAS_KEYS,
    MHAI_MPI_HEAD_STATISTICS,
    MHAI_MPI_COLUMNS,
    MHAI_MPI_SHARED
};

/* That of batch b and query head h is at byte b*sb + h*sh from data on. */
typedef struct mhai_mpi_result_of_heads {
    char *data; /* NULL: not wanted */
    ptrdiff_t sb, sh;
    size_t bytes;
    ptrdiff_t batches; /* 1: a sum over them */
} mhai_mpi_result_of_heads;

/* A run or backward pass. */
typedef struct mhai_mpi_call {
    const mha_mpi_plan *plan;
    mha_options options; /* the caller's, all fields */
    mha_gradients gradients;
    bool backward, packed, wants_lse;
    bool weights_inside;                     /* are weights returned by the pieces of a run? */
    mhai_mpi_tensor own[MHAI_MPI_OPERANDS];  /* the caller's */
    mhai_mpi_tensor used[MHAI_MPI_OPERANDS]; /* what pieces read and write: these, or copies */
    mhai_mpi_result_of_heads shared[MHAI_MPI_SHARED];
    mha_statistics statistics; /* what pieces write: heads and columns of a piece, [B][its heads] */
    int threads;
    mha_pool *pool;

    int64_t *lists; /* [3][B]: offsets, query and key lengths of a piece */
    void *work;     /* of the operator; NULL: only its size is counted */
    size_t work_size;
    mhai_mpi_exchange exchange;
    mha_status status; /* the first error after agreement */
} mhai_mpi_call;

/* Reads and checks what a rank is given. */
mha_status mhai_mpi_call_read(mhai_mpi_call *call, const mha_mpi_plan *plan,
                              const mha_options *options, bool backward);
mha_status mhai_mpi_call_run(mhai_mpi_call *call, mha_view q, mha_view k, mha_view v, mha_out o);
mha_status mhai_mpi_call_backward(mhai_mpi_call *call, mha_view q, mha_view k, mha_view v,
                                  mha_view o, const mha_gradients *gradients);

/* The same without memory, to count: everything that may be requested, but results of heads only
 * if `shared`. */
void mhai_mpi_call_pretend(mhai_mpi_call *call, bool shared);

/* Is the offset of positions used? */
bool mhai_mpi_needs_position(const mha_options *options);

/* A number for all that must be equal on all ranks. */
uint64_t mhai_mpi_call_hash(const mhai_mpi_call *call);

/* ---------------------------------------------------------------- piece ----- */

/* Some rows and keys of the whole, for some heads. */
typedef struct mhai_mpi_piece {
    mhai_mpi_heads heads;
    ptrdiff_t b;                   /* one of packed sequences; -1: all batches or sequences */
    mhai_mpi_tokens queries, keys; /* of a batch: counted from its first. All of them if packed and
                                    * b is -1 */
    bool d_q, d_kv, shared;        /* backward: what is wanted */
} mhai_mpi_piece;

/* What the operator is given for a piece: without statistics, and with weights only if
 * call->weights_inside. */
mha_shape mhai_mpi_piece_shape(const mhai_mpi_call *call, const mhai_mpi_piece *piece);
mha_options mhai_mpi_piece_options(const mhai_mpi_call *call, const mhai_mpi_piece *piece);
mha_view mhai_mpi_piece_view(const mhai_mpi_call *call, const mhai_mpi_piece *piece, int operand);

/* Runs the operator for a piece, or counts its workspace. */
void mhai_mpi_piece_run(mhai_mpi_call *call, const mhai_mpi_piece *piece);

/* Runs pieces for these rows of tokens and all keys, in slices that let MPI work. */
void mhai_mpi_rows_run(mhai_mpi_call *call, mhai_mpi_heads heads, const mhai_mpi_rows *rows);

/* The position of query 0 of a batch among its keys, and its numbers of queries and keys. */
int64_t mhai_mpi_offset(const mhai_mpi_call *call, ptrdiff_t b);

/* A piece of all rows and keys of some heads. */
void mhai_mpi_heads_run(mhai_mpi_call *call, mhai_mpi_heads heads);

/* --------------------------------------------------------------- sharing ----- */

typedef struct mhai_mpi_sharing {
    char *blocks; /* what every rank of the team has computed, rank after rank */
} mhai_mpi_sharing;

/* Bytes that a rank has computed, and messages of an exchange of all. */
size_t mhai_mpi_share_bytes(const mhai_mpi_call *call, int rank);
size_t mhai_mpi_share_messages(const mhai_mpi_call *call);

/* Memory for the exchange, and for statistics of the heads of a piece. */
void mhai_mpi_share_carve(mhai_mpi_call *call, mhai_mpi_sharing *sharing, mhai_mpi_work *work);

/* Statistics of the heads of a piece, to where those of all are. */
void mhai_mpi_share_statistics(const mhai_mpi_call *call, mhai_mpi_heads heads);

/* Every rank of a team gets what the others have. */
void mhai_mpi_share(mhai_mpi_call *call, const mhai_mpi_sharing *sharing);

/* -------------------------------------------------------------- schemes ----- */

/* Carve what they need. Then they run, or count the workspace of the operator (call->work is
 * NULL). */
mha_status mhai_mpi_grid(mhai_mpi_call *call, mhai_mpi_work *work, bool runs);
uint64_t mhai_mpi_grid_sent(const mhai_mpi_call *call);
mha_status mhai_mpi_ring(mhai_mpi_call *call, mhai_mpi_work *work, bool runs);
uint64_t mhai_mpi_ring_sent(const mhai_mpi_call *call);

/* The run of a rank's rows that has chosen row `row` of a sequence, or of every batch; -1: none. */
ptrdiff_t mhai_mpi_chosen_run(const mhai_mpi_call *call, const mhai_mpi_rows *own, ptrdiff_t b,
                              int64_t row);

/* Weights that the pieces of a run do not return, of this rank's rows: keys come to all ranks. */
bool mhai_mpi_weights_wanted(const mhai_mpi_call *call);
mha_status mhai_mpi_weights(mhai_mpi_call *call, mhai_mpi_work *work, bool runs);
uint64_t mhai_mpi_weights_sent(const mhai_mpi_call *call);

/* A sink is one more key with value 0, for a row that has another; NULL: none. */
void mhai_mpi_add_sink(const float *sink, float *o, ptrdiff_t width, float *lse);

/* A row of f32 as another type: f32, f16 or bf16. */
void mhai_mpi_narrow(mha_dtype type, const float *from, ptrdiff_t count, void *to);

/* ----------------------------------------------------------------- tree ----- */

enum { MHAI_MPI_SLOTS = 160 }; /* more than any tree holds at once: leaves come in runs */

/* Which nodes are held where. */
typedef struct mhai_mpi_tree {
    ptrdiff_t leaves;
    int most; /* slots that were in use at once */
    struct {
        bool used;
        int level;
        ptrdiff_t index;
    } slots[MHAI_MPI_SLOTS];
} mhai_mpi_tree;

/* Nodes of a level, the level of the root, and the number of a node, level after level. */
ptrdiff_t mhai_mpi_tree_width(ptrdiff_t leaves, int level);
int mhai_mpi_tree_height(ptrdiff_t leaves);
ptrdiff_t mhai_mpi_tree_place(ptrdiff_t leaves, int level, ptrdiff_t index);

/* The rank that has all leaves of a node, but not all of the node above it; -1: none. */
int mhai_mpi_tree_holder(const int *owners, ptrdiff_t leaves, int level, ptrdiff_t index);

/* A free slot, for a new leaf. */
int mhai_mpi_tree_open(mhai_mpi_tree *tree);

/* The leaf in this slot is complete: joins what can be joined, right to left. Returns the slot that
 * has the result; that of the last leaf has the root. */
int mhai_mpi_tree_close(mhai_mpi_tree *tree, int slot, ptrdiff_t leaf,
                        void (*join)(void *context, int left, int right), void *context);

#endif
