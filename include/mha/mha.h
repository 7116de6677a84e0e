/* SPDX-License-Identifier: MIT */
/*
 * libmha: multi-head attention on CPUs.
 *
 *      o = softmax(scale * q . k^T + bias, masked) . v      for every batch and head
 *
 * Read this file from top to bottom; it is built in storeys:
 *
 *      1. words      status codes, element types, version
 *      2. nouns      shape, views, options
 *      3. one call   mha_attention(): allocates what it needs and frees it
 *      4. plans      decide once, then run with the caller's memory and no allocation
 *      5. threads    a pool of ours, or the caller's own executor
 *
 * One alphabet everywhere: B batch, L queries, S keys, H query heads, G key/value heads,
 * D width of a query or key head, Dv width of a value head; b, h, i, j, c index them.
 *
 * Promises that hold for every call:
 *   - A query row gives the same bits whatever the number of threads, the batch it stands in,
 *     the layout of the views, the way a sequence is cut into calls, and whatever else is asked
 *     for (log-sum-exp, weights). This holds per instruction set (see mha_isa_name).
 *   - What a masked key or value holds (NaN, Inf, garbage) reaches no output. Keys outside causal,
 *     window and lengths are not read at all; of keys that a boolean mask, -inf or documents rule
 *     out, whole blocks are skipped and single ones may be read and dropped.
 *   - A row with no key to attend to gives 0, weights 0 and log-sum-exp -inf. Never NaN.
 *   - An error is a code; outputs are then untouched. The library never prints, aborts or exits.
 */
#ifndef MHA_MHA_H
#define MHA_MHA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MHA_API __attribute__((visibility("default")))
#else
#define MHA_API
#endif

/* ============================================================= 1. words ===== */

#define MHA_VERSION_MAJOR 0
#define MHA_VERSION_MINOR 1
#define MHA_VERSION_PATCH 0

/* Major * 1000000 + minor * 1000 + patch of the library that is running. */
MHA_API int mha_version(void);

/* The same as text, "0.1.0". */
MHA_API const char *mha_version_string(void);

/* Every function that can fail returns one of these. The numbers are frozen. */
typedef enum mha_status {
    MHA_OK = 0,
    MHA_ERR_NULL = -1,       /* a pointer that must be given is NULL */
    MHA_ERR_STRUCT = -2,     /* the `size` field of a struct is not one this library knows */
    MHA_ERR_SHAPE = -3,      /* negative extent, H not a multiple of G, head wider than allowed */
    MHA_ERR_OVERFLOW = -4,   /* extents and strides whose product does not fit in memory */
    MHA_ERR_DTYPE = -5,      /* unknown element type, or MHA_F64 mixed with others */
    MHA_ERR_STRIDE = -6,     /* two elements of one output would share an address */
    MHA_ERR_ALIGN = -7,      /* a pointer is not aligned to its element type */
    MHA_ERR_OVERLAP = -8,    /* an output overlaps an input, another output or the workspace */
    MHA_ERR_SCALE = -9,      /* scale is NaN or infinite */
    MHA_ERR_SOFTCAP = -10,   /* softcap is negative, NaN or infinite */
    MHA_ERR_FLAG = -11,      /* unknown bit in flags, or unknown value of an enum */
    MHA_ERR_WINDOW = -12,    /* a window edge below -1 */
    MHA_ERR_POSITION = -13,  /* causal, window or ALiBi with L != S and no word on the alignment */
    MHA_ERR_LENGTH = -14,    /* a length, start or offset array holds an impossible number */
    MHA_ERR_INDEX = -15,     /* a chosen head or row for the weights does not exist */
    MHA_ERR_WORKSPACE = -16, /* the caller's workspace is too small */
    MHA_ERR_PLAN = -17,      /* the options of this run need more than the plan was made for */
    MHA_ERR_MEMORY = -18,    /* an allocation failed */
    MHA_ERR_THREAD = -19,    /* a thread could not be created, or a thread count is impossible */
    MHA_ERR_ISA = -20        /* MHA_ISA names an unknown instruction set or one this CPU lacks */
} mha_status;

/* The name of a code and what it means; "unknown status" for a number that is none. */
MHA_API const char *mha_status_string(mha_status status);

/* Element types. f16 and bf16 are storage: scores, softmax and sums are f32. */
typedef enum mha_dtype { MHA_F32 = 0, MHA_F16 = 1, MHA_BF16 = 2, MHA_F64 = 3 } mha_dtype;

/* Bytes of one element; 0 for an unknown type. */
MHA_API size_t mha_dtype_size(mha_dtype dtype);

/* The instruction set in use on this machine: "c", "avx2", "avx512" or "neon". The environment
 * variable MHA_ISA forces one. NULL where it names one that cannot run (see MHA_ERR_ISA). */
MHA_API const char *mha_isa_name(void);

/* ============================================================= 2. nouns ===== */

/* Largest D and Dv. */
#define MHA_MAX_HEAD_WIDTH 1024

/*
 * What is to be computed: extents and element types. Zero-initialise, then fill in.
 *
 * G = 0 means G = H. Dv = 0 means Dv = D. H must be a multiple of G; query head h reads
 * key/value head h / (H/G).
 * B, H, L or D of 0 is legal: nothing is computed and nothing written. S = 0 is legal: every
 * row is empty. MHA_F64 works in double precision throughout, along the slow and exact reference
 * path, and must then be the type of q, k, v and o alike; the other three mix freely.
 * With packed sequences (see mha_options) L and S are the longest query and key length.
 */
typedef struct mha_shape {
    ptrdiff_t B, H, G, L, S, D, Dv;
    mha_dtype q_type, k_type, v_type, o_type;
} mha_shape;

/*
 * A tensor the library reads: element (b, h, i, c) is data[b*sb + h*sh + i*sl + c].
 * Strides count elements. Stride 0 broadcasts; negative strides are legal. [B,L,H,D] and
 * [B,H,L,D] differ only in numbers: mha_view_bhld() and mha_view_blhd() fill them in.
 */
typedef struct mha_view {
    const void *data;
    ptrdiff_t sb, sh, sl;
} mha_view;

/* A tensor the library writes. No two of its elements may share an address. */
typedef struct mha_out {
    void *data;
    ptrdiff_t sb, sh, sl;
} mha_out;

/* Contiguous [B, heads, rows, width]. */
static inline mha_view mha_view_bhld(const void *data, ptrdiff_t heads, ptrdiff_t rows,
                                     ptrdiff_t width)
{
    mha_view view = {data, heads * rows * width, rows * width, width};
    return view;
}

/* Contiguous [B, rows, heads, width]: heads side by side, as a projection leaves them. */
static inline mha_view mha_view_blhd(const void *data, ptrdiff_t heads, ptrdiff_t rows,
                                     ptrdiff_t width)
{
    mha_view view = {data, rows * heads * width, width, heads * width};
    return view;
}

static inline mha_out mha_out_bhld(void *data, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width)
{
    mha_out out = {data, heads * rows * width, rows * width, width};
    return out;
}

static inline mha_out mha_out_blhd(void *data, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width)
{
    mha_out out = {data, rows * heads * width, width, heads * width};
    return out;
}

/* Bits of mha_options.flags. */
enum {
    MHA_CAUSAL = 1u << 0,         /* query i sees keys j <= i + offset */
    MHA_WINDOW = 1u << 1,         /* and keys i+offset-window_left <= j <= i+offset+window_right */
    MHA_AVERAGE_WEIGHTS = 1u << 2 /* weights: one mean over the chosen heads, not one per head */
};

/*
 * Where query 0 stands among the keys: key position = i + offset. Used by causal, window and
 * ALiBi. Nothing is guessed: with L == S (in every batch) unset means offset 0, otherwise the
 * caller says which of the conventions in use is meant.
 */
typedef enum mha_position {
    MHA_POSITION_UNSET = 0,
    MHA_POSITION_TOP_LEFT = 1,     /* offset 0 (PyTorch, JAX) */
    MHA_POSITION_BOTTOM_RIGHT = 2, /* offset = keys - queries of that batch (FlashAttention) */
    MHA_POSITION_OFFSET = 3        /* the number in `offset`, or offsets[b] if given */
} mha_position;

/* What the returned weights show. */
typedef enum mha_weights_mode {
    MHA_WEIGHTS_SOFTMAX = 0, /* the attention weights; rows sum to 1 (less with a sink) */
    MHA_WEIGHTS_RAW = 1,     /* scale * q.k */
    MHA_WEIGHTS_SOFTCAP = 2, /* after the soft cap */
    MHA_WEIGHTS_BIAS = 3     /* after bias and masks: a masked key is -inf */
} mha_weights_mode;

/*
 * How it is to be computed. NULL, or all zero but `size`, is plain attention. Fields are only
 * ever appended, so a program built against an older header keeps working.
 *
 * Order of work for one row:
 *      scale -> softcap -> + bias + add_mask + ALiBi -> masks -> (sink) -> softmax -> . V
 * All masks apply together; none replaces another.
 */
typedef struct mha_options {
    size_t size;    /* sizeof(mha_options) */
    uint32_t flags; /* MHA_CAUSAL | ... */
    float scale;    /* 0: 1/sqrt(D) */
    float softcap;  /* 0: off; else score = cap * tanh(score / cap) */

    mha_position position;  /* where query 0 stands among the keys */
    ptrdiff_t offset;       /* only for MHA_POSITION_OFFSET; negative is legal */
    const int64_t *offsets; /* only for MHA_POSITION_OFFSET: [B], instead of `offset` */
    ptrdiff_t window_left;  /* only with MHA_WINDOW: keys before the position; -1 = open */
    ptrdiff_t window_right; /* only with MHA_WINDOW: keys after the position; -1 = open */

    /* Boolean masks, one byte an element (b,h,i,j), unit stride over j, stride 0 broadcasts.
     * Two names for the two polarities in use; both may be given. */
    mha_view attend_mask; /* non-zero = attend (SDPA, ONNX, JAX) */
    mha_view ignore_mask; /* non-zero = masked (PyTorch's key_padding_mask) */

    /* Numbers added to the scores, element (b,h,i,j), unit stride over j, stride 0 broadcasts.
     * Exactly -inf masks the key; a very negative number is a number. */
    mha_view add_mask;
    mha_dtype add_mask_type; /* f32, f16, bf16; f64 with f64 shapes only */
    mha_view bias;           /* the same once more, for a learned bias beside a mask */
    mha_dtype bias_type;

    const float *alibi_slopes; /* [H]: adds -slope * |i + offset - j| */
    const float *sinks;        /* [H]: one more logit in the denominator, with value 0 */

    /* True lengths, [B] each, 0 <= length <= L (or S). Rows past the query length are not
     * computed and not written; keys past the key length are masked. */
    const int64_t *q_lengths;
    const int64_t *k_lengths;

    /* Packed sequences: [B+1] ascending. Row i of batch b is row q_starts[b] + i of the view and
     * sb is not used (so for q, o, lse; k_starts for k, v). Lengths follow from the starts; a
     * length array shortens them. Masks, bias and weights stay (b,h,i,j). */
    const int64_t *q_starts;
    const int64_t *k_starts;

    /* Document ids: a query sees only keys with its own id. Row i of batch b is
     * q_documents[b*q_documents_sb + i] (packed: q_documents[q_starts[b] + i]). */
    const int32_t *q_documents;
    const int32_t *k_documents;
    ptrdiff_t q_documents_sb, k_documents_sb;

    /* Log-sum-exp of every row, natural logarithm, with bias, masks and sink; -inf for an empty
     * row, sink or not. f32 (f64 with f64 shapes). Element (b,h,i) is data[b*sb + h*sh + i*sl].
     * NULL data: not wanted. */
    mha_out lse;

    /* Weights, element (b, head, row, j) with unit stride over j, S columns; heads and rows count
     * the chosen ones. NULL lists choose all. With MHA_AVERAGE_WEIGHTS there is no head axis and
     * sh is not used. Rows past a query length are not written; keys past a key length give 0
     * (-inf in mode BIAS). Modes RAW and SOFTCAP show scores before masking and do read masked
     * keys. NULL data: not wanted. */
    mha_out weights;
    mha_dtype weights_type; /* f32, f16, bf16; f64 with f64 shapes only */
    mha_weights_mode weights_mode;
    const int64_t *weights_heads; /* [weights_head_count], each in [0, H) */
    ptrdiff_t weights_head_count;
    const int64_t *weights_rows; /* [weights_row_count], each in [0, L) */
    ptrdiff_t weights_row_count;

    /* On error, a sentence that says what is wrong, where and what to do is written here (always
     * terminated); not for MHA_ERR_STRUCT, when this struct cannot be trusted. NULL: not wanted. */
    char *message;
    size_t message_size;
} mha_options;

/* ========================================================== 3. one call ===== */

typedef struct mha_pool mha_pool;

/*
 * Attention over all heads. Strides of q, k, v and o count elements of their own type.
 * `options` may be NULL (plain attention), `pool` may be NULL (the calling thread works alone).
 * Allocates a workspace of a size that does not grow with L * S, and frees it.
 */
MHA_API mha_status mha_attention(const mha_shape *shape, mha_view q, mha_view k, mha_view v,
                                 mha_out o, const mha_options *options, mha_pool *pool);

/* ============================================================= 4. plans ===== */

/*
 * A plan holds what can be decided before the data is there: kernels, tile sizes, workspace map.
 * It is never changed by a run: any number of threads may run one plan at once, each with its own
 * workspace.
 */
typedef struct mha_plan mha_plan;

/* Of `options` only the shape of the work counts here (which pointers are given, not what they
 * point to). On error *plan is NULL. */
MHA_API mha_status mha_plan_create(mha_plan **plan, const mha_shape *shape,
                                   const mha_options *options);

/* Bytes of workspace that a run with a pool of `threads` threads needs; 0 for a NULL plan or a
 * number of threads that no pool has. Any alignment will do. */
MHA_API size_t mha_plan_work_size(const mha_plan *plan, int threads);

/*
 * Run without any allocation. `options` are this call's, complete, with its pointers (NULL: plain
 * attention). They may differ from those of the plan, but not ask for more: weights or
 * log-sum-exp that the plan did not know of are MHA_ERR_PLAN.
 */
MHA_API mha_status mha_plan_run(const mha_plan *plan, mha_view q, mha_view k, mha_view v, mha_out o,
                                const mha_options *options, void *work, size_t work_size,
                                mha_pool *pool);

/*
 * The plan in words: instruction set and kernels, tiles, workspace, flops and bytes, and the
 * reason for each choice. Writes at most `size` bytes, always terminated; returns the length the
 * whole text has, as snprintf does. 0 for a NULL plan.
 */
MHA_API size_t mha_plan_explain(const mha_plan *plan, char *text, size_t size);

/* NULL is allowed. */
MHA_API void mha_plan_free(mha_plan *plan);

/* =========================================================== 5. threads ===== */

#define MHA_MAX_THREADS 1024

/*
 * A pool with `threads` threads in all: the caller of a run is one of them, threads - 1 are
 * created now and sleep between runs. threads = 0: one for every CPU this process may use.
 * Runs that find the pool busy with another run work alone on their calling thread; the result is
 * the same to the bit.
 */
MHA_API mha_status mha_pool_create(mha_pool **pool, int threads);

/*
 * A pool on somebody else's threads. `run` must call task(arg, index) exactly once for every index
 * in [0, tasks), in any order, on any threads, at once or one after another, and return when all
 * have returned. At most `threads` tasks are asked for in one run.
 */
typedef struct mha_executor {
    size_t size; /* sizeof(mha_executor) */
    void *context;
    int threads;
    void (*run)(void *context, int tasks, void (*task)(void *arg, int index), void *arg);
} mha_executor;

MHA_API mha_status mha_pool_create_from(mha_pool **pool, const mha_executor *executor);

/* Number of threads; 1 for NULL. */
MHA_API int mha_pool_threads(const mha_pool *pool);

/* No run may be under way. NULL is allowed. */
MHA_API void mha_pool_free(mha_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
