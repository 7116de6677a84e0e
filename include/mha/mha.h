/* SPDX-License-Identifier: MIT */
/*
 * libmha: multi-head attention on CPUs.
 *
 *      o = softmax(scale * q . k^T + bias, masked) . v      for every batch and head
 *
 * The header has eleven sections, each building on the ones before; read only as far as you need:
 *
 *      1. basics     status codes, element types, version
 *      2. problem    shape, views, options
 *      3. one call   mha_attention(): allocates what it needs and frees it
 *      4. plans      decide once, then run with the caller's memory and no allocation
 *      5. threads    a pool of the library's own threads, or the caller's executor
 *      6. merge      joins partial results over different keys
 *      7. cache      keys and values of growing sequences: contiguous, ring or paged
 *      8. linear     y = x W^T + bias with weights packed once
 *      9. layer      projections, heads, concatenation, output projection; presets
 *     10. gradients  the backward passes of operator, linear and layer
 *     11. feed-forward  norms, activations and the two linears of a transformer block
 *
 * Letters have the same meaning everywhere: B batch, L queries, S keys, E model width, H query
 * heads, G key/value heads, D width of a query or key head, Dv width of a value head; b, h, i, j, c
 * are their indices.
 *
 * Promises that hold for every call:
 *   - A query row gives the same bits whatever the number of threads, the other rows of the batch,
 *     the layout of the views, the way a sequence is split into calls, and whatever other outputs
 *     are requested (log-sum-exp, weights). This holds per instruction set (see mha_isa_name).
 *   - Masked keys and values never affect an output, whatever they hold (NaN, Inf, garbage). Keys
 *     past the lengths are never read. Keys masked by causal, window, a boolean mask, -inf or
 *     documents are skipped in whole blocks where possible; single ones may be read and ignored.
 *   - A row with no key to attend to gives 0, weights 0 and log-sum-exp -inf. Never NaN.
 *   - Errors are reported as codes; outputs are then untouched. The library never prints, aborts or
 *     exits.
 */
#ifndef MHA_MHA_H
#define MHA_MHA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(_WIN32)
#define MHA_API __attribute__((visibility("default")))
#else
#define MHA_API
#endif

/* ============================================================ 1. basics ===== */

#define MHA_VERSION_MAJOR 0
#define MHA_VERSION_MINOR 1
#define MHA_VERSION_PATCH 0

/* Version of the running library: major * 1000000 + minor * 1000 + patch. */
MHA_API int mha_version(void);

/* The same as text, "0.1.0". */
MHA_API const char *mha_version_string(void);

/* Every function that can fail returns one of these. The numbers are frozen. */
typedef enum mha_status {
    MHA_OK = 0,
    MHA_ERR_NULL = -1,     /* a required pointer is NULL */
    MHA_ERR_STRUCT = -2,   /* the `size` field of a struct is not one this library knows */
    MHA_ERR_SHAPE = -3,    /* negative extent, H not a multiple of G, head wider than allowed */
    MHA_ERR_OVERFLOW = -4, /* extents and strides whose product does not fit in memory */
    MHA_ERR_DTYPE = -5,    /* unknown element type, or MHA_F64 mixed with others */
    MHA_ERR_STRIDE = -6,   /* two elements of one output would share an address */
    MHA_ERR_ALIGN = -7,    /* a pointer is not aligned to its element type */
    MHA_ERR_OVERLAP = -8,  /* an output overlaps an input, another output or the workspace */
    MHA_ERR_SCALE = -9,    /* scale, or the base or eps of a layer, is not a usable number */
    MHA_ERR_SOFTCAP = -10, /* softcap is negative, NaN or infinite */
    MHA_ERR_FLAG = -11,    /* unknown flag or enum value, or two settings that exclude each other */
    MHA_ERR_WINDOW = -12,  /* a window edge below -1, or a row that sees what a ring has dropped */
    MHA_ERR_POSITION = -13,  /* causal, window or ALiBi with L != S but no alignment given, or an
                              * alignment given where the cache determines it */
    MHA_ERR_LENGTH = -14,    /* an invalid length, start, offset or range of tokens */
    MHA_ERR_INDEX = -15,     /* a chosen head or row for the weights does not exist */
    MHA_ERR_WORKSPACE = -16, /* the caller's workspace is too small */
    MHA_ERR_PLAN = -17,      /* the options of this run need more than the plan was made for */
    MHA_ERR_MEMORY = -18,    /* an allocation failed */
    MHA_ERR_THREAD = -19,    /* a thread could not be created, or an invalid number of threads */
    MHA_ERR_ISA = -20,       /* MHA_ISA names an unknown instruction set or one this CPU lacks */
    MHA_ERR_FULL = -21,      /* a cache has no room for these tokens */
    MHA_ERR_SEQUENCE = -22,  /* a cache has no such sequence, or it is listed twice */
    MHA_ERR_FILE = -23,      /* a file cannot be opened, read or written */
    MHA_ERR_FORMAT = -24,    /* a file is damaged or of another format */
    MHA_ERR_DROPOUT = -25,   /* dropout is not a number in [0, 1), or a first number is negative */
    MHA_ERR_MPI = -26,       /* MPI reported an error, or a rank is gone (mha_mpi.h) */
    MHA_ERR_TIMEOUT = -27,   /* a rank did not answer in time (mha_mpi.h) */
    MHA_ERR_AGREE = -28      /* the ranks of a group were given different arguments (mha_mpi.h) */
} mha_status;

/* The name of a code and its meaning; "unknown status" for any other number. */
MHA_API const char *mha_status_string(mha_status status);

/*
 * Element types. f16, bf16 and i8 are storage types: scores, softmax and sums are f32. i8 is for
 * the packed weights of a linear and for caches, which keep the scales that belong to it.
 *
 * The block types are those of GGUF files, bit for bit, and only for weights: blocks of 32
 * consecutive inputs of an output (256 in the K types) share scales. The numbers are frozen.
 */
typedef enum mha_dtype {
    MHA_F32 = 0,
    MHA_F16 = 1,
    MHA_BF16 = 2,
    MHA_F64 = 3,
    MHA_I8 = 4,
    MHA_Q8_0 = 5,  /* 34 bytes per 32 weights: scale * q, q of 8 bits */
    MHA_Q4_0 = 6,  /* 18 bytes per 32 weights: scale * (q - 8), q of 4 bits */
    MHA_Q4_1 = 7,  /* 20 bytes per 32 weights: scale * q + minimum */
    MHA_Q4_K = 8,  /* 144 bytes per 256 weights, in groups of 32: scale * q - minimum */
    MHA_Q5_K = 9,  /* 176 bytes per 256 weights, the same with q of 5 bits */
    MHA_Q6_K = 10, /* 210 bytes per 256 weights, in groups of 16: scale * (q - 32), q of 6 bits */
    MHA_AS_GIVEN = 255 /* no type of an element: weights are stored in the type they are given in;
                        * only for the field `stored` of linears, layers and feed-forwards */
} mha_dtype;

/* Bytes of one element; 0 for a block type, which has no single elements, and for an unknown
 * type. */
MHA_API size_t mha_dtype_size(mha_dtype dtype);

/* Bytes of a contiguous row of `count` elements of any type. 0 if count is negative or not a whole
 * number of blocks, or if the type is unknown. */
MHA_API size_t mha_row_bytes(mha_dtype type, ptrdiff_t count);

/* Converts a contiguous row to f32, exactly: from any type but f64 and i8. Rows of a block type may
 * have any alignment, others that of their elements. MHA_ERR_SHAPE if count is negative or not a
 * whole number of blocks. */
MHA_API mha_status mha_row_to_f32(mha_dtype type, const void *row, ptrdiff_t count, float *to);

/* The other way: rounds numbers to a row of MHA_Q8_0, MHA_Q4_0 or MHA_Q4_1, mha_row_bytes() long,
 * as weights that are stored in this type are rounded. A block with a number that is not finite
 * becomes NaN. MHA_ERR_SHAPE as above. */
MHA_API mha_status mha_row_from_f32(mha_dtype type, const float *from, ptrdiff_t count, void *row);

/*
 * How products are computed.
 *
 *   - MHA_EXACT: every product and sum in f32, whatever the storage type.
 *   - MHA_NATIVE: products in the storage type. bf16: the other factor is rounded to bf16 as well,
 *     sums are f32. i8: each row of inputs is rounded to 8 bits with a scale and a zero of its own,
 *     sums are int32, so that they are exact and the same on every CPU. Block types: 32 inputs of a
 *     row have a scale, sums over these are int32. Faster where the CPU has instructions for it,
 *     and less accurate everywhere (docs/numerics.md). Backward passes of linears and layers are
 *     native for bf16 and exact for i8.
 *
 * Where there are no native products (f32, f16, i8 with more than 65536 inputs, block types without
 * AVX2 or AVX-512 with VNNI), MHA_NATIVE computes as MHA_EXACT does; mha_arithmetic_explain() and
 * mha_plan_explain() say so.
 */
typedef enum mha_arithmetic { MHA_EXACT = 0, MHA_NATIVE = 1 } mha_arithmetic;

/* How products with weights that are stored so, and with so many inputs, are computed on this
 * machine, in words. They begin with "native" or "exact". NULL if MHA_ISA cannot run here. */
MHA_API const char *mha_arithmetic_explain(mha_arithmetic arithmetic, mha_dtype stored,
                                           ptrdiff_t inputs);

/*
 * The instruction set in use. "c", "avx2", "avx512", "neon" and "wasm" have all kernels. Others are
 * one of these with instructions for native arithmetic in addition: "avx512vnni" (i8), "avx512bf16"
 * (i8 and bf16), "avx2vnni" (i8), "neondot" (i8), "neonbf16" (i8 and bf16). The environment
 * variable MHA_ISA selects one. NULL if it names one that cannot run here (see MHA_ERR_ISA).
 */
MHA_API const char *mha_isa_name(void);

/* The one of the five that it consists of, or is: the bits of exact arithmetic depend on no more.
 */
MHA_API const char *mha_isa_base(void);

/* =========================================================== 2. problem ===== */

/* Largest D and Dv. */
#define MHA_MAX_HEAD_WIDTH 1024

/*
 * What is to be computed: extents and element types. Zero-initialise, then fill in.
 *
 * G = 0 means G = H. Dv = 0 means Dv = D. H must be a multiple of G; query head h reads key/value
 * head h / (H/G).
 *
 * B, H, L or D may be 0: nothing is computed and nothing written. S may be 0: every row is empty.
 * MHA_F64 computes in double precision throughout, on the slow and exact reference path; q, k, v
 * and o must then all have that type. The other three types can be mixed freely.
 *
 * With packed sequences (see mha_options) L and S are the longest query and key length.
 */
typedef struct mha_shape {
    ptrdiff_t B, H, G, L, S, D, Dv;
    mha_dtype q_type, k_type, v_type, o_type;
} mha_shape;

/*
 * A tensor the library reads: element (b, h, i, c) is data[b*sb + h*sh + i*sl + c]. Strides count
 * elements. Stride 0 broadcasts; strides may be negative. [B,L,H,D] and [B,H,L,D] differ only in
 * their strides: mha_view_bhld() and mha_view_blhd() fill them in.
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

/* Contiguous [B, rows, heads, width]: heads side by side, as a projection produces them. */
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
    MHA_CAUSAL = 1u << 0,          /* query i sees keys j <= i + offset */
    MHA_WINDOW = 1u << 1,          /* and keys i+offset-window_left <= j <= i+offset+window_right */
    MHA_AVERAGE_WEIGHTS = 1u << 2, /* weights: one mean over the chosen heads, not one per head */
    MHA_TRAINING = 1u << 3         /* enables dropout, which is ignored without it */
};

/*
 * The position of query 0 among the keys: the position of query i is i + offset. Used by causal,
 * window and ALiBi. Nothing is guessed: where L == S (in every batch) unset means offset 0;
 * otherwise the caller must choose one of the usual conventions.
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

/* Modes of a head, for ablation: elements of options.head_modes. */
typedef enum mha_head_mode {
    MHA_HEAD_NORMAL = 0,
    MHA_HEAD_UNIFORM = 1, /* every score is 0: equal weights for all unmasked keys */
    MHA_HEAD_MEAN = 2     /* a vector of options.head_means instead of weights times values */
} mha_head_mode;

/*
 * What one row of a head attends to. The weights are those of the keys; a sink or the extra keys of
 * a layer take the rest. A row that attends to no key, or whose weights all underflow in f32,
 * reports zeros and key -1. Denormal weights (below 1.2e-38, possible with a sink) may be reported
 * here although options.weights returns 0.
 */
typedef struct mha_row_statistics {
    float entropy;              /* -sum of w ln w, nats */
    float largest;              /* the largest weight */
    float distance;             /* sum of w |i + offset - j|, in tokens */
    float self, previous, next; /* weights of the keys at the row's position, before and after it */
    float first;                /* sum of the weights of the first keys */
    float mass;                 /* sum of all weights: 1 without sinks and extra keys */
    int64_t key;                /* the key with the largest weight; the first of several */
} mha_row_statistics;

/* Means over the rows of a head whose key is not -1. */
typedef struct mha_head_statistics {
    double entropy, largest, distance, self, previous, next, first, mass;
    int64_t rows; /* number of these rows */
} mha_head_statistics;

/* Statistics that are gathered while the output is computed, without storing weights: memory grows
 * with L + S. They describe the weights before dropout and gates, and change no bit of the output.
 * NULL pointers: not requested. Rows past a query length are not written. */
typedef struct mha_statistics {
    size_t size;                /* sizeof(mha_statistics) */
    ptrdiff_t first_keys;       /* how many keys count as the first ones; 0: 1 */
    mha_row_statistics *rows;   /* [B][H][L] */
    mha_head_statistics *heads; /* [B][H] */
    float *columns;             /* [B][H][S]: the sum of the weights of each key over all rows */
    ptrdiff_t top;      /* how many of the largest weights of a row are listed, at most 64 */
    int64_t *top_keys;  /* [B][H][L][top], the largest weight first, of equal ones the earlier key;
                         * -1 where there are no more, or what is left rounds to 0 */
    float *top_weights; /* [B][H][L][top] */
} mha_statistics;

/*
 * How it is to be computed. NULL, or all zero except `size`, is plain attention. Fields are only
 * ever appended, so a program built against an older header keeps working.
 *
 * Order of operations for one row:
 *      scale -> softcap -> + bias + add_mask + ALiBi -> masks -> (sink) -> softmax
 *            -> dropout -> . V -> gate
 * All masks apply together; none replaces another.
 */
typedef struct mha_options {
    size_t size;    /* sizeof(mha_options) */
    uint32_t flags; /* MHA_CAUSAL | ... */
    float scale;    /* 0: 1/sqrt(D) */
    float softcap;  /* 0: off; else score = cap * tanh(score / cap) */

    mha_position position;  /* position of query 0 among the keys */
    ptrdiff_t offset;       /* only for MHA_POSITION_OFFSET; may be negative */
    const int64_t *offsets; /* only for MHA_POSITION_OFFSET: [B], instead of `offset` */
    ptrdiff_t window_left;  /* only with MHA_WINDOW: keys before the position; -1 = open */
    ptrdiff_t window_right; /* only with MHA_WINDOW: keys after the position; -1 = open */

    /* Boolean masks, one byte per element (b,h,i,j), unit stride over j, stride 0 broadcasts. There
     * are two names for the two usual polarities; both may be given. */
    mha_view attend_mask; /* non-zero = attend (SDPA, ONNX, JAX) */
    mha_view ignore_mask; /* non-zero = masked (PyTorch's key_padding_mask) */

    /* Numbers added to the scores, element (b,h,i,j), unit stride over j, stride 0 broadcasts.
     * Exactly -inf masks the key; a very negative number does not. */
    mha_view add_mask;
    mha_dtype add_mask_type; /* f32, f16, bf16; f64 with f64 shapes only */
    mha_view bias;           /* a second such tensor, for a learned bias beside a mask */
    mha_dtype bias_type;

    const float *alibi_slopes; /* [H]: adds -slope * |i + offset - j| */
    const float *sinks;        /* [H]: one more logit in the denominator, with value 0 */

    /* True lengths, [B] each, 0 <= length <= L (or S). Rows past the query length are not
     * computed and not written; keys past the key length are masked. */
    const int64_t *q_lengths;
    const int64_t *k_lengths;

    /* Packed sequences: [B+1] ascending. Row i of batch b is row q_starts[b] + i of the view, and
     * sb is not used (for q, o and lse; k_starts for k and v). Lengths follow from the starts; a
     * length array shortens them. Masks, bias and weights stay (b,h,i,j). */
    const int64_t *q_starts;
    const int64_t *k_starts;

    /* Document ids: a query sees only keys with its own id. Row i of batch b is
     * q_documents[b*q_documents_sb + i] (packed: q_documents[q_starts[b] + i]). */
    const int32_t *q_documents;
    const int32_t *k_documents;
    ptrdiff_t q_documents_sb, k_documents_sb;

    /* Log-sum-exp of every row, natural logarithm, with bias, masks and sink; -inf for an empty
     * row, with or without a sink. f32 (f64 with f64 shapes). Element (b,h,i) is data[b*sb + h*sh +
     * i*sl]. NULL data: not requested. */
    mha_out lse;

    /*
     * Weights, element (b, head, row, j) with unit stride over j, S columns; head and row are
     * indices into the lists of chosen ones. NULL lists choose all. With MHA_AVERAGE_WEIGHTS there
     * is no head axis and sh is not used. Rows past a query length are not written; keys past a key
     * length give 0 (-inf in mode BIAS). Modes RAW and SOFTCAP show scores before masking, and do
     * read masked keys. NULL data: not requested.
     */
    mha_out weights;
    mha_dtype weights_type; /* f32, f16, bf16; f64 with f64 shapes only */
    mha_weights_mode weights_mode;
    const int64_t *weights_heads; /* [weights_head_count], each in [0, H) */
    ptrdiff_t weights_head_count;
    const int64_t *weights_rows; /* [weights_row_count], each in [0, L) */
    ptrdiff_t weights_row_count;

    /* On error, a sentence is written here that says what is wrong, where, and what to do
     * (always terminated); not for MHA_ERR_STRUCT, when this struct cannot be trusted.
     * NULL: not requested. */
    char *message;
    size_t message_size;

    /* Head gates: a factor for each head's output, gates[b*gates_sb + h]; gates_sb = 0: the same
     * for all batches. A gate of 0 gives 0 and skips the work of the head, unless its log-sum-exp
     * or weights are requested, which are those before the gate. NULL: none. */
    const float *gates;
    ptrdiff_t gates_sb;

    /*
     * Dropout of the weights, after the softmax, only with MHA_TRAINING: each weight is dropped
     * with this probability, a multiple of 1/65536, and the others are multiplied by 1/(1 - p). The
     * choice depends on seed, b, h, i and j alone (Philox, by counter), not on tiles or threads;
     * the backward pass drops the same weights. Returned weights and log-sum-exp are those before
     * dropout.
     */
    float dropout;
    uint64_t dropout_seed;

    /*
     * Ablation: head_modes[h] is an mha_head_mode; NULL: all normal. Masks, with -inf in add_mask
     * and bias, and the gate apply as usual; soft cap, bias, ALiBi and sink do not apply in a head
     * that is not normal. Its log-sum-exp is the logarithm of the number of its keys. With
     * MHA_HEAD_MEAN every row that has a key gives head_means[h*Dv + c], and its weights are 0.
     * Forward pass only.
     */
    const uint8_t *head_modes;
    const float *head_means; /* [H][Dv]; may be NULL if no head has MHA_HEAD_MEAN */

    /* Gathered in the same pass; NULL: not requested. Ignored by backward passes. */
    const mha_statistics *statistics;

    /*
     * Of the products q.k and p.v. MHA_NATIVE is for q, k and v in bf16 on a CPU with products of
     * them: queries are multiplied as they are stored, the scale is applied to the sum, and p is
     * rounded to bf16 before it is multiplied with v; scores, softmax and sums are f32.
     * Log-sum-exp, weights and statistics are of p before it is rounded. Numbers below 2^-126 in q,
     * k and v count as 0. Other types, caches, the extra keys of a layer, and CPUs without such
     * products compute as MHA_EXACT does; mha_plan_explain() says which it is. A plan has one
     * arithmetic: a run with another one fails. Backward passes are always exact.
     */
    mha_arithmetic arithmetic;

    /* `scale` and `softcap` with all digits of a double, in their place, for f64 shapes; ignored
     * with others. 0: the two above apply. */
    double scale64;
    double softcap64;

    /* The numbers b, h, i and j that dropout counts for element (0,0,0,0): where this call begins
     * in a larger one of which it computes a part, so that the same weights are dropped. */
    int64_t dropout_first[4];
} mha_options;

/* ========================================================== 3. one call ===== */

typedef struct mha_pool mha_pool;

/*
 * Attention over all heads. Strides of q, k, v and o count elements of their own type. `options`
 * may be NULL (plain attention), `pool` may be NULL (only the calling thread works). Allocates a
 * workspace whose size does not grow with L * S, and frees it.
 */
MHA_API mha_status mha_attention(const mha_shape *shape, mha_view q, mha_view k, mha_view v,
                                 mha_out o, const mha_options *options, mha_pool *pool);

/* What mha_attention() would return for these arguments, MHA_ERR_MEMORY aside. Nothing is computed
 * or written but the message. */
MHA_API mha_status mha_attention_check(const mha_shape *shape, mha_view q, mha_view k, mha_view v,
                                       mha_out o, const mha_options *options);

/*
 * Weights alone: what mha_attention() returns as options.weights, to the bit, computed for the
 * chosen heads and rows only, without values and output. v_type, o_type and Dv of the shape are
 * ignored.
 *
 * If options.lse is given, it is read, not written: the log-sum-exp of every row as returned by an
 * earlier call. Scores are then computed once instead of twice, and the weights are exp(score -
 * lse): as above except for the rounding of lse, up to |lse| * 2^-24 of a weight. The log-sum-exp
 * may also include more keys than these, as after mha_merge().
 *
 * `work` needs mha_attention_weights_work_size() bytes; NULL: allocated and freed.
 */
MHA_API mha_status mha_attention_weights(const mha_shape *shape, mha_view q, mha_view k,
                                         const mha_options *options, void *work, size_t work_size,
                                         mha_pool *pool);

/* 0 if the arguments are not valid for mha_attention_weights(). */
MHA_API size_t mha_attention_weights_work_size(const mha_shape *shape, const mha_options *options,
                                               int threads);

/* ============================================================= 4. plans ===== */

/*
 * A plan holds what can be decided before the data is there: kernels, tile sizes, the layout of the
 * workspace. Runs never change it: any number of threads may run one plan at the same time, each
 * with its own workspace.
 */
typedef struct mha_plan mha_plan;

/* Only the shape of the work matters here: which pointers of `options` and options.statistics are
 * given, not what they point to. On error *plan is NULL. */
MHA_API mha_status mha_plan_create(mha_plan **plan, const mha_shape *shape,
                                   const mha_options *options);

/* Bytes of workspace for a run with a pool of `threads` threads; 0 for a NULL plan or a number of
 * threads that no pool can have. The workspace may have any alignment. */
MHA_API size_t mha_plan_work_size(const mha_plan *plan, int threads);

/*
 * Runs without any allocation. `options` are complete, with the pointers of this call (NULL: plain
 * attention). They may differ from those of the plan, but not request more: weights, log-sum-exp or
 * statistics that the plan was made without are MHA_ERR_PLAN.
 */
MHA_API mha_status mha_plan_run(const mha_plan *plan, mha_view q, mha_view k, mha_view v, mha_out o,
                                const mha_options *options, void *work, size_t work_size,
                                mha_pool *pool);

/*
 * Describes the plan in words: instruction set and kernels, tiles, workspace, flops and bytes, and
 * the reason for each choice. Writes at most `size` bytes, always terminated; returns the length of
 * the whole text, like snprintf. 0 for a NULL plan.
 */
MHA_API size_t mha_plan_explain(const mha_plan *plan, char *text, size_t size);

/* NULL is allowed. */
MHA_API void mha_plan_free(mha_plan *plan);

/* =========================================================== 5. threads ===== */

#define MHA_MAX_THREADS 1024

/*
 * A pool with `threads` threads in all: the caller of a run is one of them, threads - 1 are created
 * here and sleep between runs, after polling for some microseconds; a run of a few microseconds
 * does not use them. threads = 0: one for every CPU this process may use. A run that finds the pool
 * busy with another run uses its calling thread only; the result is the same to the bit. In
 * WebAssembly no threads are created: the caller does the work of all of them.
 */
MHA_API mha_status mha_pool_create(mha_pool **pool, int threads);

/*
 * A pool on threads of the caller. `run` must call task(arg, index) exactly once for every index in
 * [0, tasks), in any order, on any threads, concurrently or not, and return when all calls have
 * returned. `tasks` is at most `threads`.
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

/* Calls task(arg, worker, number) once for every number in [0, count), on the threads of the pool
 * as they become free: for the caller's own work between runs. worker is in [0, threads). NULL
 * pool: one after another. */
MHA_API void mha_pool_run(mha_pool *pool, ptrdiff_t count,
                          void (*task)(void *arg, int worker, ptrdiff_t number), void *arg);

/* No run may be in progress. NULL is allowed. */
MHA_API void mha_pool_free(mha_pool *pool);

/* ============================================================= 6. merge ===== */

/*
 * Joins two partial results of the same queries over different keys: outputs with their
 * log-sum-exps, as attention returns them. (o, lse) becomes what one call over all the keys would
 * have given, up to rounding; merging in a fixed order gives fixed bits. For split sequences,
 * rings, and prefixes that many sequences share. Only one of the parts may include a sink.
 *
 * B, H, L, Dv and o_type of the shape are used: o and o2 have o_type, lse and lse2 are f32 (f64
 * with f64). A part whose log-sum-exp is -inf adds nothing, whatever its output holds.
 */
MHA_API mha_status mha_merge(const mha_shape *shape, mha_out o, mha_out lse, mha_view o2,
                             mha_view lse2);

/* The same on the threads of a pool; the same bits. */
MHA_API mha_status mha_merge_pooled(const mha_shape *shape, mha_out o, mha_out lse, mha_view o2,
                                    mha_view lse2, mha_pool *pool);

/* ============================================================= 7. cache ===== */

/*
 * Keys and values of growing sequences, for one layer. Token t of a sequence is at position t,
 * counted from 0; lengths count tokens. A cache is read by mha_cache_attention() or by a layer; its
 * layout in memory is internal.
 *
 * Only one call at a time may change a cache; calls that only read it may run concurrently. A call
 * that fails has changed nothing.
 */
typedef struct mha_cache mha_cache;

typedef enum mha_cache_kind {
    MHA_CACHE_CONTIGUOUS = 0, /* room for `capacity` tokens per sequence, allocated at once */
    MHA_CACHE_RING = 1,       /* the last `capacity` tokens of each sequence, for windows */
    MHA_CACHE_PAGED = 2 /* pages of a shared store, taken as sequences grow, shared by forks */
} mha_cache_kind;

typedef struct mha_cache_config {
    size_t size; /* sizeof(mha_cache_config) */
    mha_cache_kind kind;
    ptrdiff_t sequences;   /* number of sequences: they are numbered 0 .. sequences-1, and empty */
    ptrdiff_t capacity;    /* most tokens of a sequence; a ring keeps that many, drops older ones */
    ptrdiff_t page_tokens; /* paged: tokens per page, a multiple of 32; 0: 128 */
    ptrdiff_t pages;       /* paged: pages in all; 0: enough for every sequence at capacity */
    ptrdiff_t G, D, Dv;    /* heads and widths; Dv = 0: D */
    mha_dtype k_type, v_type; /* f32, f16, bf16, or i8 with one scale per token and head */
    char *message;            /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
} mha_cache_config;

/* On error *cache is NULL. The capacity of a ring is rounded up to a multiple of 32. */
MHA_API mha_status mha_cache_create(mha_cache **cache, const mha_cache_config *config);

/* NULL is allowed. */
MHA_API void mha_cache_free(mha_cache *cache);

/* The configuration of the cache, defaults filled in; no message. All zero for NULL. */
MHA_API mha_cache_config mha_cache_get_config(const mha_cache *cache);

/* Tokens of a sequence; and the first token that is still stored (not 0 only for a ring that has
 * wrapped around; its length keeps counting). -1 if there is no such sequence. */
MHA_API ptrdiff_t mha_cache_length(const mha_cache *cache, ptrdiff_t sequence);
MHA_API ptrdiff_t mha_cache_first(const mha_cache *cache, ptrdiff_t sequence);

/* Unused pages; 0 for a cache without pages. */
MHA_API ptrdiff_t mha_cache_free_pages(const mha_cache *cache);

/* Bytes of memory the cache holds. */
MHA_API size_t mha_cache_bytes(const mha_cache *cache);

/*
 * Appends to sequences[b] (NULL: b) the tokens (b, g, i) of k and v, i < lengths[b] (NULL: L). The
 * views may be f32, f16 or bf16; the cache converts. All or nothing: MHA_ERR_FULL if a sequence
 * would exceed its capacity or pages run out. A ring is never full.
 */
MHA_API mha_status mha_cache_append(mha_cache *cache, ptrdiff_t B, const int64_t *sequences,
                                    ptrdiff_t L, const int64_t *lengths, mha_view k,
                                    mha_dtype k_type, mha_view v, mha_dtype v_type);

/* Copies tokens [first, first + count) out, as f32: element (g, i, c), sb is not used. NULL data:
 * not requested. */
MHA_API mha_status mha_cache_read(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                                  ptrdiff_t count, mha_out k, mha_out v);

/* Removes all tokens from `length` on; 0 empties the sequence. A ring that has wrapped around
 * cannot go back further than to its first token, except to 0. */
MHA_API mha_status mha_cache_truncate(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t length);

/* `to` becomes a copy of `from`. Pages are shared until one of the two writes to them (copy on
 * write); without pages the tokens are copied. */
MHA_API mha_status mha_cache_fork(mha_cache *cache, ptrdiff_t to, ptrdiff_t from);

/* Appends a copy of tokens [first, first + count) of `from` to `to`, as they are stored. */
MHA_API mha_status mha_cache_copy(mha_cache *cache, ptrdiff_t to, ptrdiff_t from, ptrdiff_t first,
                                  ptrdiff_t count);

/*
 * Tokens [first, first + count) as they are stored, i8 with their scales, to memory and back: for
 * another cache of the same G, D, Dv, k_type and v_type, here or on another machine of the same
 * byte order. Token after token, in each its heads, in each the key and its scale, the value and
 * its scale. `bytes` is mha_cache_export_size(); MHA_ERR_LENGTH if it is not. Importing appends to
 * the sequence, all or nothing.
 */
MHA_API size_t mha_cache_export_size(const mha_cache *cache, ptrdiff_t count);
MHA_API mha_status mha_cache_export(const mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                                    ptrdiff_t count, void *data, size_t bytes);
MHA_API mha_status mha_cache_import(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t count,
                                    const void *data, size_t bytes);

/* Removes tokens [first, first + count); later ones move down. Keys keep their rotation: see
 * mha_cache_shift(). Not for rings (MHA_ERR_FLAG). */
MHA_API mha_status mha_cache_remove(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                                    ptrdiff_t count);

/* Rotary position embedding: pairs of elements of a head are rotated by position * frequency. */
typedef enum mha_rope_pairs {
    MHA_ROPE_NONE = 0,
    MHA_ROPE_HALVES = 1, /* c and c + width/2 (Llama as Hugging Face stores it, ONNX's default) */
    MHA_ROPE_NEIGHBOURS = 2 /* 2c and 2c + 1 (the original paper, "interleaved") */
} mha_rope_pairs;

typedef struct mha_rope {
    mha_rope_pairs pairs;
    ptrdiff_t width;          /* elements of a head that are rotated, even; 0: all of them */
    double base;              /* 0: 10000; pair n is rotated by base^(-2n/width) per position */
    const float *frequencies; /* [width/2] instead of base; NULL: from base */
} mha_rope;

/* Rotates the keys of tokens [first, first + count) by `delta` more positions, as needed after
 * tokens before them were removed (delta = -removed). An i8 or half cache rounds once more. */
MHA_API mha_status mha_cache_shift(mha_cache *cache, ptrdiff_t sequence, ptrdiff_t first,
                                   ptrdiff_t count, const mha_rope *rope, ptrdiff_t delta);

/* For beam search: every sequence n becomes what parents[n] was before the call; [sequences]. */
MHA_API mha_status mha_cache_reorder(mha_cache *cache, const int64_t *parents);

/*
 * All sequences to a file and back, to the bit. The file has a version and a checksum. Saving
 * writes a new file beside the old one and renames it; a link, a pipe or a device is not replaced
 * (MHA_ERR_FILE). A damaged file is MHA_ERR_FORMAT. The message, if requested, says what is wrong
 * and where.
 *
 * A file says how much memory its cache needs, which may be far more than it holds. Loading refuses
 * (MHA_ERR_MEMORY, before it allocates) a cache of 64 MB or more of which less than a thousandth is
 * stored. mha_cache_load_as() loads a cache of any size that has the configuration `expected`, and
 * no other (MHA_ERR_FORMAT); its size and message are not used. NULL: as mha_cache_load().
 */
MHA_API mha_status mha_cache_save(const mha_cache *cache, const char *path, char *message,
                                  size_t message_size);
MHA_API mha_status mha_cache_load(mha_cache **cache, const char *path, char *message,
                                  size_t message_size);
MHA_API mha_status mha_cache_load_as(mha_cache **cache, const char *path,
                                     const mha_cache_config *expected, char *message,
                                     size_t message_size);

/*
 * Bytes to or from anywhere, such as a part of a larger file. write() takes and read() gives all
 * `count` bytes; they return 0, or an error number of <errno.h>, which ends the call with
 * MHA_ERR_FILE.
 */
typedef struct mha_stream {
    size_t size; /* sizeof(mha_stream) */
    int (*write)(void *context, const void *data, size_t count);
    int (*read)(void *context, void *data, size_t count);
    void *context;
    uint64_t bytes;   /* reading: bytes that are left; no more are read */
    const char *name; /* what messages begin with, such as a path; NULL: "cache" */
    char *message;    /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
} mha_stream;

/*
 * The same bytes to a stream and from it, with `expected` as above. Loading reads exactly the bytes
 * that were written. Memory beyond that of the stored tokens is reserved, not used.
 */
MHA_API mha_status mha_cache_save_to(const mha_cache *cache, const mha_stream *stream);
MHA_API mha_status mha_cache_load_from(mha_cache **cache, const mha_stream *stream,
                                       const mha_cache_config *expected);

/*
 * Attention of new queries over the cache: batch b reads sequences[b] (NULL: b; the same sequence
 * may be listed twice). B, H, L, q_type and o_type of the shape are used; G, D and Dv are the
 * cache's and must be 0 or equal. S is the number of columns of masks and weights, at least the
 * longest length; 0: exactly that. k_lengths of the options may shorten the sequences; k_starts is
 * refused. If no position is given, the last query is at the last token
 * (MHA_POSITION_BOTTOM_RIGHT). A row that would see tokens a ring has dropped is MHA_ERR_WINDOW;
 * weights of modes RAW and SOFTCAP show 0 for those, and for tokens that are added to a ring only
 * after the row was computed.
 *
 * `work` needs mha_cache_work_size() bytes, which suffice at any lengths the cache can reach; NULL:
 * allocated and freed.
 */
MHA_API mha_status mha_cache_attention(const mha_cache *cache, const int64_t *sequences,
                                       const mha_shape *shape, mha_view q, mha_out o,
                                       const mha_options *options, void *work, size_t work_size,
                                       mha_pool *pool);

/* 0 if the arguments are not valid for mha_cache_attention(). */
MHA_API size_t mha_cache_work_size(const mha_cache *cache, const mha_shape *shape,
                                   const mha_options *options, int threads);

/* ============================================================ 8. linear ===== */

/*
 * A weight matrix of the caller: the weight from input c to output n is data[n*out_stride +
 * c*in_stride]. f32, f16, bf16, or a block type: then in_stride is 1, out_stride and the number of
 * inputs are multiples of the block, and the rows of all outputs, mha_row_bytes() each, may have
 * any alignment, as in a file that is mapped into memory.
 */
typedef struct mha_matrix {
    const void *data;
    mha_dtype type;
    ptrdiff_t out_stride, in_stride;
} mha_matrix;

/* Row-major [outputs, inputs], as PyTorch's Linear. */
static inline mha_matrix mha_matrix_out_in(const void *data, mha_dtype type, ptrdiff_t inputs)
{
    mha_matrix matrix = {data, type, inputs, 1};
    return matrix;
}

/* Row-major [inputs, outputs], as GPT-2's Conv1D. */
static inline mha_matrix mha_matrix_in_out(const void *data, mha_dtype type, ptrdiff_t outputs)
{
    mha_matrix matrix = {data, type, 1, outputs};
    return matrix;
}

/* The same from output `first` on: a part of a fused matrix (in_proj_weight, c_attn). */
static inline mha_matrix mha_matrix_from(mha_matrix matrix, ptrdiff_t first)
{
    const ptrdiff_t bytes = (ptrdiff_t)mha_row_bytes(
        matrix.type, matrix.out_stride < 0 ? -matrix.out_stride : matrix.out_stride);
    matrix.data = (const char *)matrix.data + (matrix.out_stride < 0 ? -first : first) * bytes;
    return matrix;
}

/* A contiguous vector: bias, norm weight. f32, f16 or bf16. NULL data: none. */
typedef struct mha_vector {
    const void *data;
    mha_dtype type;
} mha_vector;

/*
 * y = x W^T + bias, with W packed once for the kernels of this machine: the caller may free its own
 * copy. Stored as f32, f16, bf16, i8 with one scale per output, or a block type; sums are f32. A
 * row of y has the same bits whatever the number of rows and threads.
 *
 * A matrix that is stored in its own block type keeps its values exactly, in at most 3 % more
 * memory than in the file. Other matrices can be converted to MHA_Q8_0, MHA_Q4_0 and MHA_Q4_1, with
 * the rounding of GGML's reference, but not to the K types. A block type can be converted to any
 * of the others. Weights stored in a block type have no backward pass (MHA_ERR_DTYPE).
 *
 * MHA_AS_GIVEN stores each matrix in the type in which it is given when it is created. Files such
 * as Q4_K_M have several types within one layer.
 */
typedef struct mha_linear mha_linear;

/*
 * Memory for the packed weights of many linears, layers and feed-forwards, such as those of a
 * model: they lie side by side in large pages, where the system has them. Otherwise a matrix above
 * 512 KB has large pages of its own, and the rest of its last one is wasted.
 *
 * Freeing a linear releases none of this memory; that of all of them is freed with the arena. It is
 * freed when none of them runs any more, before or after them. Only one thread at a time may create
 * something in an arena.
 */
typedef struct mha_arena mha_arena;

/* On error *arena is NULL. */
MHA_API mha_status mha_arena_create(mha_arena **arena);

/* NULL is allowed. */
MHA_API void mha_arena_free(mha_arena *arena);

typedef struct mha_linear_config {
    size_t size; /* sizeof(mha_linear_config) */
    ptrdiff_t inputs, outputs;
    mha_matrix weight;
    mha_vector bias;
    mha_dtype stored; /* f32, f16, bf16, i8, a block type, or MHA_AS_GIVEN */
    char *message;    /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
    mha_arena *arena;          /* where the packed weights are; NULL: in memory of their own */
    mha_arithmetic arithmetic; /* of products with these weights */
} mha_linear_config;

/* On error *linear is NULL. */
MHA_API mha_status mha_linear_create(mha_linear **linear, const mha_linear_config *config);

/* Replaces the weights by others of the same extents, as after a step of training. No run or
 * backward pass may be in progress. On error the old ones stay. */
MHA_API mha_status mha_linear_update(mha_linear *linear, mha_matrix weight, mha_vector bias);

/* NULL is allowed. */
MHA_API void mha_linear_free(mha_linear *linear);

/* Bytes of packed weights. */
MHA_API size_t mha_linear_bytes(const mha_linear *linear);

/* Row i of x starts at x + i*x_stride elements of x_type, row i of y at y + i*y_stride elements of
 * y_type; f32, f16, bf16. `work` needs mha_linear_work_size() bytes; NULL: allocated and freed. */
MHA_API mha_status mha_linear_run(const mha_linear *linear, ptrdiff_t rows, const void *x,
                                  mha_dtype x_type, ptrdiff_t x_stride, void *y, mha_dtype y_type,
                                  ptrdiff_t y_stride, void *work, size_t work_size, mha_pool *pool);
/* 0 for a NULL linear, negative rows, or a number of threads that no pool can have. */
MHA_API size_t mha_linear_work_size(const mha_linear *linear, ptrdiff_t rows, int threads);

/* ============================================================= 9. layer ===== */

/*
 * Multi-head attention, the complete layer:
 *
 *      Q = X W_Q^T + b_Q      K = X' W_K^T + b_K      V = X'' W_V^T + b_V
 *      head h = attention(Q_h, K_g, V_g)              g = h / (H/G)
 *      Y = [head 0 | head 1 | ... ] W_O^T + b_O
 *
 * X, X' and X'' are the same (self-attention) or not (cross-attention).
 */
typedef struct mha_layer mha_layer;

/* Normalisation of each head of Q and K, before rotation. */
typedef enum mha_norm {
    MHA_NORM_NONE = 0,
    MHA_NORM_RMS = 1,  /* x / sqrt(mean(x^2) + eps) * weight (+ bias) */
    MHA_NORM_LAYER = 2 /* (x - mean) / sqrt(variance + eps) * weight (+ bias) */
} mha_norm;

/* Bits of mha_layer_config.flags. */
enum {
    MHA_LAYER_ZERO_ATTN = 1u << 0 /* PyTorch's add_zero_attn: a key and value of 0 at the end */
};

typedef struct mha_layer_config {
    size_t size;            /* sizeof(mha_layer_config) */
    uint32_t flags;         /* MHA_LAYER_ZERO_ATTN */
    float norm_eps;         /* 0: 1e-5 */
    ptrdiff_t E;            /* width of the query input */
    ptrdiff_t H, G;         /* G = 0: H */
    ptrdiff_t D;            /* 0: E / H */
    ptrdiff_t Dv;           /* 0: D */
    ptrdiff_t key_width;    /* of the key input; 0: E */
    ptrdiff_t value_width;  /* of the value input; 0: key_width */
    ptrdiff_t output_width; /* 0: E */
    mha_dtype stored; /* how weights are stored: f32, f16, bf16, i8, a block type, MHA_AS_GIVEN */
    mha_norm norm;
    mha_rope rope;
    char *message; /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
    mha_arena *arena;          /* where the packed weights are; NULL: in memory of their own */
    mha_arithmetic arithmetic; /* of products with these weights */
} mha_layer_config;

typedef struct mha_layer_weights {
    size_t size;           /* sizeof(mha_layer_weights) */
    mha_matrix q, k, v, o; /* outputs H*D, G*D, G*Dv and output_width */
    mha_vector q_bias, k_bias, v_bias, o_bias;
    /* PyTorch's bias_k [G*D] and bias_v [G*Dv]: one more key and value for every row, used as they
     * are, without norm and rotation; both or none. */
    mha_vector extra_key, extra_value;
    mha_vector q_norm, k_norm;           /* [D]; NULL data: 1 */
    mha_vector q_norm_bias, k_norm_bias; /* [D]; NULL data: 0 */
} mha_layer_weights;

/* On error *layer is NULL. Weights are copied: the caller may free them. */
MHA_API mha_status mha_layer_create(mha_layer **layer, const mha_layer_config *config,
                                    const mha_layer_weights *weights);

/* Replaces the weights, as after a step of training. They are stored in the types of the old ones,
 * and where these are. Extra keys and norms must be given if and only if they were before. No run
 * or backward pass may be in progress. On error the old weights stay. */
MHA_API mha_status mha_layer_update(mha_layer *layer, const mha_layer_weights *weights);

/* NULL is allowed. */
MHA_API void mha_layer_free(mha_layer *layer);

/* The configuration of the layer, defaults filled in; no message, no frequencies, no arena. All
 * zero for NULL. */
MHA_API mha_layer_config mha_layer_get_config(const mha_layer *layer);

/* Bytes of packed weights. */
MHA_API size_t mha_layer_bytes(const mha_layer *layer);

/*
 * A new layer without some heads: keep[h] is not 0 for those of the H heads that stay, at least
 * one. It gives what the old layer gives with gates of 0 on the other heads, up to the order of the
 * sums in W_O; weights stay as they are stored, i8 with their scales. If W_O is in a block type, Dv
 * must be a multiple of the block (MHA_ERR_SHAPE). The remaining heads are renumbered in their
 * order; options of calls with a head axis must follow.
 *
 * A key/value head without any query head is removed. If the remaining ones have unequal numbers of
 * query heads, they are repeated until H is a multiple of G again, in the worst case until G = H;
 * mha_layer_get_config() returns the new G. A cache belongs to a layer of its own G.
 *
 * On error *pruned is NULL, and a sentence is written to message; NULL: not requested.
 */
MHA_API mha_status mha_layer_prune(mha_layer **pruned, const mha_layer *layer, const uint8_t *keep,
                                   char *message, size_t message_size);

/* The same with the weights of the new layer in an arena; the arena of the old one is not used. */
MHA_API mha_status mha_layer_prune_in(mha_arena *arena, mha_layer **pruned, const mha_layer *layer,
                                      const uint8_t *keep, char *message, size_t message_size);

/* [B, rows, width] contiguous, batch first; [rows, B, width], sequence first. */
static inline mha_view mha_view_ble(const void *data, ptrdiff_t rows, ptrdiff_t width)
{
    mha_view view = {data, rows * width, 0, width};
    return view;
}
static inline mha_view mha_view_lbe(const void *data, ptrdiff_t batch, ptrdiff_t width)
{
    mha_view view = {data, width, 0, batch * width};
    return view;
}
static inline mha_out mha_out_ble(void *data, ptrdiff_t rows, ptrdiff_t width)
{
    mha_out out = {data, rows * width, 0, width};
    return out;
}
static inline mha_out mha_out_lbe(void *data, ptrdiff_t batch, ptrdiff_t width)
{
    mha_out out = {data, width, 0, batch * width};
    return out;
}

/* How a call uses its cache. */
typedef enum mha_cache_use {
    MHA_CACHE_STEP = 0,  /* self-attention: append this call's keys and values, attend to all */
    MHA_CACHE_STORE = 1, /* only append those of the key input: a memory for cross-attention */
    MHA_CACHE_RECALL = 2 /* attend to the stored tokens; no key or value input */
} mha_cache_use;

/*
 * One call of a layer. Inputs are rows (b, i, c), sh of their views is not used.
 *
 * The options are those of the operator, for the heads of this layer; their L and S are those
 * below. Weights have S columns, then one for extra_key and one for MHA_LAYER_ZERO_ATTN if the
 * layer has them. Masks, biases and lengths do not apply to those two: with them no row is empty.
 * With packed sequences (q_starts, k_starts) query, key, value and output are packed alike.
 *
 * With a cache batch b belongs to sequences[b] (NULL: b), and
 *
 *   - MHA_CACHE_STEP has no key or value input. Its tokens, q_lengths[b] of them if given, else L,
 *     follow those already stored: the position is unset or MHA_POSITION_BOTTOM_RIGHT, and
 *     k_lengths and k_starts are refused. Under a mask that hides later tokens (MHA_CAUSAL) each
 *     token sees what it would see in one long call with the same options, to the bit with an f32
 *     cache. A ring must keep at least window_left + 1 tokens.
 *   - MHA_CACHE_STORE appends the rows of the key input, k_lengths[b] of them if given, else S.
 *   - MHA_CACHE_RECALL is mha_cache_attention() between the projections of Q and of the output.
 */
typedef struct mha_layer_call {
    size_t size; /* sizeof(mha_layer_call) */
    ptrdiff_t B, L;
    /* Without a cache, and for STORE: rows of the key input, 0 for none at all; without a key input
     * 0 means L. For STEP and RECALL: columns of masks and weights, as in mha_cache_attention(). */
    ptrdiff_t S;
    mha_view query;                    /* not used by MHA_CACHE_STORE */
    mha_view key;                      /* NULL data: the query input */
    mha_view value;                    /* NULL data: the key input */
    mha_out output;                    /* not used by MHA_CACHE_STORE */
    mha_dtype input_type, output_type; /* f32, f16, bf16 */

    /* Positions for RoPE, [B][L] and [B][S] (packed: like the rows). NULL: queries are at i plus
     * the offset of the options, keys at j; tokens that go into a cache follow those before. */
    const int64_t *q_positions, *k_positions;

    mha_cache *cache; /* NULL: none */
    mha_cache_use cache_use;
    const int64_t *sequences;

    const mha_options *options; /* NULL: plain; its message is used on error */

    /* A record of this call for mha_layer_backward(): mha_layer_tape_size() bytes, aligned to 64.
     * NULL: nothing is recorded. Not with a cache. */
    void *tape;
    size_t tape_size;

    /*
     * Copies of what the layer computes on its way, f32, element (b, h, i, c), packed as the inputs
     * are: Q and K as they are multiplied, after norm and rotation; V; and the outputs of the heads
     * before W_O, after their gates. K and V have the G key/value heads and the tokens of this
     * call. NULL data: not requested. MHA_ERR_FLAG: MHA_CACHE_STORE has no Q and no heads,
     * MHA_CACHE_RECALL no new K and V (see mha_cache_read()).
     */
    mha_out captured_q, captured_k, captured_v, captured_heads;
} mha_layer_call;

/*
 * Runs the layer. `work` needs mha_layer_work_size() bytes; NULL: allocated and freed. Nothing else
 * is ever allocated. On error outputs and cache are untouched.
 */
MHA_API mha_status mha_layer_run(const mha_layer *layer, const mha_layer_call *call, void *work,
                                 size_t work_size, mha_pool *pool);

/* Enough for this call and, with a cache, for any later one with the same B, L, S and options. 0 if
 * the call is not valid for mha_layer_run(). */
MHA_API size_t mha_layer_work_size(const mha_layer *layer, const mha_layer_call *call, int threads);

/*
 * A layer in two halves, for attention that is computed elsewhere, such as on other machines: the
 * bits of each half are those of mha_layer_run().
 *
 * mha_layer_project() writes Q, K and V of a call to its captured_q, captured_k and captured_v, and
 * records them on the tape if there is one. Options that mask or mix are not used; lengths, starts
 * and positions are. mha_layer_output() makes the output from the heads' outputs, f32, element (b,
 * h, i, c), packed as the inputs; it uses neither inputs nor tape. Caches and layers with extra
 * keys are refused (MHA_ERR_FLAG). `work` needs mha_layer_work_size() bytes, for mha_layer_output()
 * those of the call without a tape; NULL: allocated and freed.
 */
MHA_API mha_status mha_layer_project(const mha_layer *layer, const mha_layer_call *call, void *work,
                                     size_t work_size, mha_pool *pool);
MHA_API mha_status mha_layer_output(const mha_layer *layer, const mha_layer_call *call,
                                    mha_view heads, void *work, size_t work_size, mha_pool *pool);

/* Published configurations. */
typedef struct mha_preset_info {
    const char *name;
    const char *title;        /* "BERT-Base" */
    ptrdiff_t E, H, D;        /* width, heads, width of a head */
    ptrdiff_t layers, tokens; /* of the whole model; longest input (transformer-base: a customary
                               * one, its paper names none) */
    int causal;               /* a decoder */
} mha_preset_info;

/* By name: "bert-base", "bert-large", "gpt2-small", "gpt2-large", "gpt3", "transformer-base". NULL
 * for an unknown one. */
MHA_API const mha_preset_info *mha_preset(const char *name);

/* All presets, numbered from 0; NULL past the last. */
MHA_API const mha_preset_info *mha_preset_at(int number);

/* ======================================================== 10. gradients ===== */

/*
 * Input and output of the backward pass of mha_attention(). Gradients are f32, whatever the type of
 * the tensors they belong to, and are written, not added to. NULL data: not requested.
 */
typedef struct mha_gradients {
    size_t size;        /* sizeof(mha_gradients) */
    mha_view d_o;       /* input: the gradient of the output, as o */
    mha_dtype d_o_type; /* f32, f16, bf16 */
    mha_view d_lse;     /* input, f32: the gradient of the log-sum-exp, as options.lse; or NULL */

    mha_out d_q, d_k, d_v; /* as q, k, v. Rows past a length have gradient 0 */
    mha_out d_bias;        /* as options.bias; axes of stride 0 are summed over */
    mha_out d_add_mask;    /* as options.add_mask */
    float *d_alibi_slopes; /* [H] */
    float *d_sinks;        /* [H] */
    float *d_gates;        /* as options.gates; with gates_sb = 0 summed over the batches */
} mha_gradients;

/*
 * The backward pass. Everything is as it was in the forward call: shape, q, k, v and options, with
 * the returned log-sum-exp in options.lse and the output in o. Weights are computed again from
 * these, so memory grows with L + S, not with L * S. options.weights is ignored.
 *
 * A forward call may be taken back in parts. A part may have some of its rows: d_q of a row has the
 * same bits as in one call. It may have some of its keys, with the log-sum-exp and output of all of
 * them: d_k and d_v of a key have the same bits as in one call, if the part has all rows, and d_q
 * is a sum over the parts. d_sinks needs no keys: a part with all rows has all of it.
 *
 * Every sum has a fixed order: the same bits for any number of threads. Empty rows give 0, and
 * masked keys and values never affect a gradient, whatever they hold. With B, H or D of 0 nothing
 * is written. For f32, f16 and bf16, not for f64.
 *
 * `work` needs mha_backward_work_size() bytes; NULL: allocated and freed.
 */
MHA_API mha_status mha_attention_backward(const mha_shape *shape, mha_view q, mha_view k,
                                          mha_view v, mha_view o, const mha_options *options,
                                          const mha_gradients *gradients, void *work,
                                          size_t work_size, mha_pool *pool);

/* What mha_attention_backward() would return for these arguments, MHA_ERR_WORKSPACE and
 * MHA_ERR_MEMORY aside. Nothing is computed or written but the message. */
MHA_API mha_status mha_attention_backward_check(const mha_shape *shape, mha_view q, mha_view k,
                                                mha_view v, mha_view o, const mha_options *options,
                                                const mha_gradients *gradients);

/* 0 if the arguments are not valid for mha_attention_backward(). */
MHA_API size_t mha_backward_work_size(const mha_shape *shape, const mha_options *options,
                                      int threads);

/* Where the gradient of a matrix is written, f32: that of the weight from input c to output n is
 * data[n*out_stride + c*in_stride]. One of the strides is 1. NULL data: not requested. */
typedef struct mha_matrix_out {
    float *data;
    ptrdiff_t out_stride, in_stride;
} mha_matrix_out;

/* As above: gradients are f32, written unless `accumulate` is set, and NULL if not requested. */
typedef struct mha_linear_gradients {
    size_t size;     /* sizeof(mha_linear_gradients) */
    const void *d_y; /* input: the gradient of y; its row i starts at d_y + i*d_y_stride */
    ptrdiff_t d_y_stride;
    mha_dtype d_y_type; /* f32, f16, bf16 */
    float *d_x;         /* row i starts at d_x + i*d_x_stride */
    ptrdiff_t d_x_stride;
    mha_matrix_out d_weight;
    float *d_bias;        /* [outputs] */
    ptrdiff_t accumulate; /* 1: d_weight and d_bias are added to instead of written. A batch may
                             then be given in pieces: if all but the last have a multiple of 128
                             rows, d_weight has the bits of one call */
} mha_linear_gradients;

/* The backward pass of mha_linear_run() on the same x. Weights are used as they are stored;
 * products with those of bf16 are native if those of the linear are, and d_y and x are then rounded
 * to bf16. Every sum has a fixed order: the same bits for any number of threads. `work` needs
 * mha_linear_backward_work_size() bytes; NULL: allocated and freed. */
MHA_API mha_status mha_linear_backward(const mha_linear *linear, ptrdiff_t rows, const void *x,
                                       mha_dtype x_type, ptrdiff_t x_stride,
                                       const mha_linear_gradients *gradients, void *work,
                                       size_t work_size, mha_pool *pool);
MHA_API size_t mha_linear_backward_work_size(const mha_linear *linear, ptrdiff_t rows, int threads);

/*
 * Gradients of a layer's inputs, weights and options. An omitted input has no gradient of its own;
 * its part is added to the input used in its place, so for self-attention d_query is the complete
 * gradient. A tensor passed as two inputs gets two separate gradients.
 */
typedef struct mha_layer_gradients {
    size_t size;             /* sizeof(mha_layer_gradients) */
    mha_view d_output;       /* input: the gradient of the output, as call.output */
    mha_dtype d_output_type; /* f32, f16, bf16 */
    mha_view d_lse;          /* input, f32: the gradient of the log-sum-exp; or NULL */

    mha_out d_query, d_key, d_value; /* as the inputs. Rows past a length have gradient 0 */
    mha_matrix_out q, k, v, o;
    float *q_bias, *k_bias, *v_bias, *o_bias;
    float *extra_key, *extra_value;
    float *q_norm, *k_norm, *q_norm_bias, *k_norm_bias;

    mha_out d_bias, d_add_mask; /* of the options, as in mha_gradients */
    float *d_alibi_slopes, *d_sinks, *d_gates;
} mha_layer_gradients;

/*
 * The backward pass of a layer, for a call of mha_layer_run() that recorded a tape, with everything
 * as it was then. Gradients of weights that the layer was made without, such as q_bias, may be
 * requested too. The tape is not changed. `work` needs mha_layer_backward_work_size() bytes; NULL:
 * allocated and freed.
 */
MHA_API mha_status mha_layer_backward(const mha_layer *layer, const mha_layer_call *call,
                                      const mha_layer_gradients *gradients, void *work,
                                      size_t work_size, mha_pool *pool);

/*
 * The backward passes of the two halves of a layer. That of the output takes the heads as they were
 * given, and gradients.d_output; it writes d_heads, if requested, and gradients.o and o_bias. That
 * of the projections takes the gradients of Q, K and V, f32 and as these, and a tape; it writes the
 * gradients of inputs, of W_Q, W_K and W_V, biases and norms. Other gradients are not used. `work`
 * needs mha_layer_backward_work_size() bytes, for the output those of the call without a tape;
 * NULL: allocated and freed.
 */
MHA_API mha_status mha_layer_output_backward(const mha_layer *layer, const mha_layer_call *call,
                                             mha_view heads, mha_out d_heads,
                                             const mha_layer_gradients *gradients, void *work,
                                             size_t work_size, mha_pool *pool);
MHA_API mha_status mha_layer_project_backward(const mha_layer *layer, const mha_layer_call *call,
                                              mha_view d_q, mha_view d_k, mha_view d_v,
                                              const mha_layer_gradients *gradients, void *work,
                                              size_t work_size, mha_pool *pool);

/* Both are 0 if the call is not valid for mha_layer_backward(). */
MHA_API size_t mha_layer_tape_size(const mha_layer *layer, const mha_layer_call *call);
MHA_API size_t mha_layer_backward_work_size(const mha_layer *layer, const mha_layer_call *call,
                                            int threads);

/* ===================================================== 11. feed-forward ===== */

/*
 * What a transformer block has beside attention. With pre-norm, as GPT-2 and Llama:
 *
 *      a = x + layer(norm(x))          y = a + feed_forward(norm(a))
 *
 * Rows are f32, except in mha_linear_run_fused(). A row gives the same bits whatever the number of
 * rows, threads and strides, and in place or not. This holds per instruction set.
 */

/* Infinite arguments give the limit: GELU(-inf) is 0. NaN stays NaN. */
typedef enum mha_activation {
    MHA_ACTIVATION_NONE = 0,
    MHA_ACTIVATION_RELU = 1,
    MHA_ACTIVATION_GELU = 2,       /* x Phi(x), exact, by erf */
    MHA_ACTIVATION_GELU_TANH = 3,  /* its approximation by tanh: GPT-2's gelu_new */
    MHA_ACTIVATION_GELU_QUICK = 4, /* x sigmoid(1.702 x) */
    MHA_ACTIVATION_SILU = 5,       /* x sigmoid(x) */
    MHA_ACTIVATION_TANH = 6
} mha_activation;

/* y[n] = activation(x[n]) for n < count. y may be x. */
MHA_API mha_status mha_activation_run(mha_activation activation, ptrdiff_t count, const float *x,
                                      float *y, mha_pool *pool);

typedef struct mha_norm_config {
    size_t size;   /* sizeof(mha_norm_config) */
    mha_norm kind; /* MHA_NORM_RMS or MHA_NORM_LAYER */
    ptrdiff_t width;
    float eps;             /* 0: 1e-5 */
    const float *weight;   /* [width]; NULL: 1 */
    const float *bias;     /* [width]; NULL: 0 */
    const float *residual; /* added to x before the norm; NULL: none */
    ptrdiff_t residual_stride;
    float *sum; /* x + residual is written here; may be x or residual; NULL: not requested */
    ptrdiff_t sum_stride;
} mha_norm_config;

/* y = norm(x + residual), row by row. Row i of x starts at x + i*x_stride, and so on. y may be x or
 * the residual, with the same stride; it may not be the sum. Nothing is allocated. */
MHA_API mha_status mha_norm_run(const mha_norm_config *config, ptrdiff_t rows, const float *x,
                                ptrdiff_t x_stride, float *y, ptrdiff_t y_stride, mha_pool *pool);

/* y = activation(x W^T + bias) + residual: mha_linear_run() with more done to each element while it
 * is in the cache. Row i of the residual starts at residual + i*residual_stride; NULL: none. It may
 * be y, if y is f32 and has the same stride. `work` needs mha_linear_work_size() bytes; NULL:
 * allocated and freed. */
MHA_API mha_status mha_linear_run_fused(const mha_linear *linear, ptrdiff_t rows, const void *x,
                                        mha_dtype x_type, ptrdiff_t x_stride,
                                        mha_activation activation, const float *residual,
                                        ptrdiff_t residual_stride, void *y, mha_dtype y_type,
                                        ptrdiff_t y_stride, void *work, size_t work_size,
                                        mha_pool *pool);

/*
 * Two or three linears and an activation:
 *
 *      y = down(activation(up(x)))                 the transformer, BERT, GPT-2
 *      y = down(activation(gate(x)) * up(x))       gated: SwiGLU (SILU), GeGLU (GELU)
 */
typedef struct mha_feed_forward mha_feed_forward;

typedef struct mha_feed_forward_config {
    size_t size; /* sizeof(mha_feed_forward_config) */
    ptrdiff_t inputs, inner;
    ptrdiff_t outputs; /* 0: inputs */
    mha_activation activation;
    int gated;            /* not 0: with a gate */
    mha_matrix gate;      /* [inner, inputs]; only if gated */
    mha_matrix up;        /* [inner, inputs] */
    mha_matrix down;      /* [outputs, inner] */
    mha_vector gate_bias; /* [inner]; only if gated */
    mha_vector up_bias;   /* [inner] */
    mha_vector down_bias; /* [outputs] */
    mha_dtype stored; /* how weights are stored: f32, f16, bf16, i8, a block type, MHA_AS_GIVEN */
    char *message;    /* on error a sentence is written here; NULL: not requested */
    size_t message_size;
    mha_arena *arena;          /* where the packed weights are; NULL: in memory of their own */
    mha_arithmetic arithmetic; /* of products with these weights */
} mha_feed_forward_config;

/* On error *feed_forward is NULL. Weights are copied: the caller may free them. */
MHA_API mha_status mha_feed_forward_create(mha_feed_forward **feed_forward,
                                           const mha_feed_forward_config *config);

/* NULL is allowed. */
MHA_API void mha_feed_forward_free(mha_feed_forward *feed_forward);

/* Bytes of packed weights. */
MHA_API size_t mha_feed_forward_bytes(const mha_feed_forward *feed_forward);

/* y = feed_forward(x) + residual; residual NULL: none. Row i of x starts at x + i*x_stride, and so
 * on. y may be x or the residual, with the same stride. `work` needs mha_feed_forward_work_size()
 * bytes; NULL: allocated and freed. */
MHA_API mha_status mha_feed_forward_run(const mha_feed_forward *feed_forward, ptrdiff_t rows,
                                        const float *x, ptrdiff_t x_stride, const float *residual,
                                        ptrdiff_t residual_stride, float *y, ptrdiff_t y_stride,
                                        void *work, size_t work_size, mha_pool *pool);

/* 0 for a NULL feed-forward, negative rows, or a number of threads that no pool can have. */
MHA_API size_t mha_feed_forward_work_size(const mha_feed_forward *feed_forward, ptrdiff_t rows,
                                          int threads);

#ifdef __cplusplus
}
#endif

#endif
