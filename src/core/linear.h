/* SPDX-License-Identifier: MIT */
/*
 * Packed weights, and products with them.
 *
 *      linear.c            the caller's matrices -> panels, once; section 8 of mha.h
 *      linear_blocks.c     block types in panels
 *      gemm.c              rows x panels, cut into tasks
 *      linear_backward.c   the backward pass: gradients of inputs
 *      linear_outer.c      gradients of weights and biases
 *      feed_forward.c      two linears with an activation between them; section 11 of mha.h
 *
 * Panel p holds outputs [p*nr, (p+1)*nr) of all inputs, input after input:
 *
 *      panels[(p*inputs + c)*nr + n%nr] = weight from input c to output n
 *
 * so that one row of x reads the weights as one stream, and many rows find a slice of a panel in
 * the L1 cache. Panels of block types hold the same outputs (kernels/block_layout.h), and so do
 * those of native arithmetic, with pairs or quads of inputs side by side (kernels/native.h).
 */
#ifndef MHAI_LINEAR_H
#define MHAI_LINEAR_H

#include "core/block_types.h"
#include "core/region.h"

/* One of several matrices with the same inputs that are packed side by side. */
typedef struct mhai_section {
    ptrdiff_t outputs;
    mha_matrix weight;
    mha_vector bias;
} mhai_section;

struct mha_linear {
    const mhak_table *kernels;
    const mhak_native *native; /* products are native, of type stored; NULL: they are exact */
    ptrdiff_t inputs, outputs; /* outputs of all sections together, without padding */
    ptrdiff_t panels;          /* every section begins a new panel */
    mha_dtype stored;
    int digits;    /* of inputs, if products are made of whole numbers: block types, if kernels can
                    * do it; 3, native 1; 0: products are f32 */
    void *weights; /* [panels][inputs][nr] of type stored, or panels of a block type; native:
                    * [panels][depth / together][nr][together] */
    ptrdiff_t depth; /* inputs, and those that fill up a pair or quad */
    int together;    /* inputs of an output that lie side by side: 1, native 2 or 4 */
    bool in_arena;   /* the weights belong to an arena */
    float *scales;   /* [panels * nr], i8 only: weight = stored * scale */
    int32_t *sums;   /* [panels * nr], native i8 only: of what is stored for an output */
    float *bias;     /* [panels * nr] */
};

/* Panels of a section, with the kernels of this machine. */
static inline ptrdiff_t mhai_section_panels(const mhak_table *kernels, ptrdiff_t outputs)
{
    return mhai_ceil_div(outputs, kernels->nr);
}

/* Where `input`, the first of a slice, begins in panel p. */
static inline const void *mhai_linear_slice(const mha_linear *linear, ptrdiff_t p, ptrdiff_t input)
{
    const ptrdiff_t nr = linear->kernels->nr;
    if (!mhai_is_block(linear->stored))
        return mhai_at(linear->weights, linear->stored, (p * linear->depth + input) * nr);
    const int block = mhai_block_number(linear->stored), length = mhak_block_inputs(block);
    return (const char *)linear->weights +
           (p * (linear->inputs / length) + input / length) * mhak_unit_bytes(block) * nr;
}

/* The element of the panels with the weight from input c to the output in this column; not for
 * block types. */
static inline ptrdiff_t mhai_panel_index(const mha_linear *linear, ptrdiff_t column, ptrdiff_t c)
{
    const ptrdiff_t nr = linear->kernels->nr, together = linear->together;
    return (column / nr * linear->depth + c / together * together) * nr + column % nr * together +
           c % together;
}

/* Reads weights of `count` inputs to one output, of the stored type; not for block types. */
void mhai_linear_get_inputs(const mha_linear *linear, ptrdiff_t column, ptrdiff_t input, void *row,
                            ptrdiff_t count);

/* Sums of what is stored, where native products need them: after all weights are in place. */
void mhai_linear_sum(const mha_linear *linear);

/* One block of the output in this column, by its number; and a row of all its blocks as a file has
 * them. */
void mhai_linear_put_block(const mha_linear *linear, ptrdiff_t column, ptrdiff_t number,
                           const mhai_unit *unit);
void mhai_linear_get_block(const mha_linear *linear, ptrdiff_t column, ptrdiff_t number,
                           mhai_unit *unit);
void mhai_linear_put_row(const mha_linear *linear, ptrdiff_t column, const void *row);

/* How weights are to be packed. */
typedef struct mhai_packing {
    const mhak_native *native; /* the kernels of this machine */
    mha_arithmetic arithmetic;
    mha_arena *arena; /* NULL: memory of their own */
} mhai_packing;

/* Are products with weights that are stored so native, if that is requested? */
bool mhai_has_native(mha_dtype stored, ptrdiff_t inputs);

/* Packs checked sections. The only error is MHA_ERR_MEMORY; *linear is then NULL. */
mha_status mhai_linear_make(mha_linear **linear, const mhai_packing *packing, ptrdiff_t inputs,
                            const mhai_section *sections, int count, mha_dtype stored);

/* The type in which a matrix is stored that is to be stored so. */
static inline mha_dtype mhai_stored_type(mha_dtype stored, const mha_matrix *matrix)
{
    return stored == MHA_AS_GIVEN ? matrix->type : stored;
}

/* Replaces the weights by sections of the same extents. `rows` is scratch for three rows of
 * inputs. */
void mhai_linear_repack(mha_linear *linear, const mhai_section *sections, int count, float *rows);

/* Checks of a configuration: a type of the caller's numbers (f32, f16, bf16); a type in which
 * weights are kept, or MHA_AS_GIVEN; a matrix that is to be kept in this type or a vector, with its
 * type, alignment and addressable extents. */
mha_status mhai_check_plain(const mha_options *message, const char *name, mha_dtype type);
mha_status mhai_check_stored(const mha_options *message, mha_dtype type);
mha_status mhai_check_matrix(const mha_options *message, const char *name, const mha_matrix *matrix,
                             ptrdiff_t outputs, ptrdiff_t inputs, mha_dtype stored);
mha_status mhai_check_vector(const mha_options *message, const char *name,
                             const mha_vector *vector);

/* Element n of a vector as f32; 0 where there is none. */
float mhai_vector_at(const mha_vector *vector, ptrdiff_t n);

/* What is done to the sums of a product, after scale and bias, before they are stored. Not together
 * with a list of the rows of y. */
typedef struct mhai_finish {
    mha_activation activation;
    bool gated; /* panels alternate, gate and value; y is f32 and has half as many columns */
    const float *residual; /* added after the activation; row r starts at r * residual_stride */
    ptrdiff_t residual_stride;
} mhai_finish;

static inline bool mhai_is_fused(const mhai_finish *finish)
{
    return finish->activation != MHA_ACTIVATION_NONE || finish->gated || finish->residual;
}

/*
 * y = x W^T + bias for some rows and some panels. Row r of x starts at element x_rows[r] *
 * x_stride, row r of y at y_rows[r] * y_stride; NULL lists: r itself. `columns` elements of a row
 * of y are written: the outputs of these panels.
 */
typedef struct mhai_product {
    const mha_linear *linear;
    ptrdiff_t first_panel, last_panel;
    ptrdiff_t rows, columns;
    const void *x;
    void *y;
    mha_dtype x_type, y_type;
    const ptrdiff_t *x_rows, *y_rows;
    ptrdiff_t x_stride, y_stride;
    mhai_finish finish;
} mhai_product;

/* Bytes of workspace for any product with at most that many rows, inputs and panels; `native`: the
 * kernels of products that may be native, NULL: none is. */
size_t mhai_gemm_work_size(const mhak_table *kernels, const mhak_native *native, ptrdiff_t rows,
                           ptrdiff_t inputs, ptrdiff_t panels, int threads);

void mhai_gemm(const mhai_product *product, void *work, mha_pool *pool);

/* Is this one of the MHA_ACTIVATION_ values? */
static inline bool mhai_is_activation(mha_activation activation)
{
    return (int)activation >= MHA_ACTIVATION_NONE && (int)activation <= MHA_ACTIVATION_TANH;
}

/* May rows of `written` elements replace rows of `read` elements that start at the same place? */
bool mhai_rows_in_place(const void *from, ptrdiff_t from_stride, ptrdiff_t read, const void *to,
                        ptrdiff_t to_stride, ptrdiff_t written, ptrdiff_t rows);

/* Checks rows and types of a run or of a backward pass. */
mha_status mhai_linear_check_rows(const mha_linear *linear, ptrdiff_t rows, mha_dtype x_type,
                                  mha_dtype y_type);

/* -------------------------------------------------------------- backward ----- */

/* Are the products of the backward pass native? Those of i8 are exact. */
static inline bool mhai_is_native_back(const mha_linear *linear)
{
    return linear->native && linear->stored == MHA_BF16;
}

/* d_x = d_y W. Here x is the gradient d_y of the outputs of some panels, `columns` wide, and y is
 * the gradient d_x of all inputs. */
void mhai_gemm_back(const mhai_product *product, void *memory, mha_pool *pool);
size_t mhai_gemm_back_work_size(const mha_linear *linear, ptrdiff_t rows, ptrdiff_t columns,
                                int threads);

/* Rows of a tensor; row r starts at element rows[r] * stride, NULL: r * stride. */
typedef struct mhai_factor {
    const void *data;
    mha_dtype type;
    ptrdiff_t columns;
    const ptrdiff_t *rows;
    ptrdiff_t stride;
} mhai_factor;

/* y[m*ldy + n] = the sum over rows of left[row][m] * right[row][n], or adds that sum to it. */
typedef struct mhai_outer {
    const mhak_table *kernels;
    const mhak_native *native; /* products of bf16; NULL: they are exact */
    mhai_factor left, right;
    ptrdiff_t count; /* rows */
    bool add;
    float *y;
    ptrdiff_t ldy;
    ptrdiff_t lefts,
        rights; /* columns per task; these and the following fields are filled in by the run */
    char *scratches;
    size_t scratch_size;
} mhai_outer;

/* The gradient of the matrix of a linear, if requested: written, or added to what is there. */
void mhai_outer_matrix(const mha_linear *linear, const mhai_factor *d_y, const mhai_factor *x,
                       ptrdiff_t rows, const mha_matrix_out *to, bool add, void *work,
                       mha_pool *pool);
size_t mhai_outer_work_size(const mhak_table *kernels, int threads);

/* Sums of columns, if requested: the gradient of a bias, written or added. */
void mhai_column_sums(const mhak_table *kernels, const mhai_factor *factor, ptrdiff_t rows,
                      float *sums, bool add, mha_pool *pool);

/* Checks the strides of a requested matrix; adds outputs to a list of regions, whose B is
 * changed. */
mha_status mhai_matrix_out_check(const mha_options *message, const char *name,
                                 const mha_matrix_out *matrix);
void mhai_matrix_out_region(mhai_regions *list, const char *name, const mha_matrix_out *matrix,
                            ptrdiff_t outputs, ptrdiff_t inputs);
void mhai_vector_out_region(mhai_regions *list, const char *name, float *data, ptrdiff_t count);

#endif
