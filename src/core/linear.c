/* SPDX-License-Identifier: MIT */
/* Section 8 of mha.h, and mha_linear_run_fused() of section 11: weights are checked and packed into
 * panels once, then used by gemm.c. */
#include "core/linear.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- packing ----- */

float mhai_vector_at(const mha_vector *vector, ptrdiff_t n)
{
    return vector->data ? (float)mhai_element_read(vector->data, vector->type, n) : 0.0f;
}

/* Buffers for one row of weights: as the caller has it, as f32, and as it is stored. */
typedef struct row_buffers {
    float *given; /* of any type; f32 is the largest */
    float *wide;
    void *stored;
} row_buffers;

/* A row of a matrix of a block type. */
static const void *block_row(const mha_matrix *w, ptrdiff_t n)
{
    const ptrdiff_t blocks = w->out_stride / mhai_block_length(w->type);
    return (const char *)w->data + n * blocks * (ptrdiff_t)mhai_block_bytes(w->type);
}

/* Weights of one output, all inputs, as f32. */
static void read_output(const mha_linear *linear, const mhai_section *section, ptrdiff_t n,
                        const row_buffers *buffers)
{
    const mha_matrix *const w = &section->weight;
    if (mhai_is_block(w->type)) {
        mhai_blocks_to_f32(w->type, block_row(w, n), linear->inputs, buffers->wide);
        return;
    }
    mhai_copy_strided(w->type, buffers->given, 1, mhai_at(w->data, w->type, n * w->out_stride),
                      w->in_stride, linear->inputs);
    linear->kernels->load_row[w->type](buffers->given, (int)linear->inputs, 1.0f, buffers->wide);
}

/* A weight of i8 with the bias of native products, and back: the top bit changes. */
static void flip_signs(const mha_linear *linear, int8_t *row, ptrdiff_t count)
{
    const unsigned flip =
        linear->native && linear->stored == MHA_I8 && linear->native->bias ? 0x80 : 0;
    for (ptrdiff_t c = 0; flip && c < count; c++)
        row[c] = (int8_t)((unsigned)(uint8_t)row[c] ^ flip);
}

/* Writes a row of all inputs to its column of a panel. */
static void put_inputs(const mha_linear *linear, ptrdiff_t column, void *row)
{
    const mha_dtype type = linear->stored;
    const ptrdiff_t together = linear->together, step = linear->kernels->nr * together;
    flip_signs(linear, row, linear->inputs);
    for (ptrdiff_t c = 0; c < mhai_min(linear->inputs, together); c++)
        mhai_copy_strided(
            type, mhai_out_at(linear->weights, type, mhai_panel_index(linear, column, c)), step,
            mhai_at(row, type, c), together, mhai_ceil_div(linear->inputs - c, together));
}

void mhai_linear_get_inputs(const mha_linear *linear, ptrdiff_t column, ptrdiff_t input, void *row,
                            ptrdiff_t count)
{
    const mha_dtype type = linear->stored;
    const ptrdiff_t together = linear->together, step = linear->kernels->nr * together;
    for (ptrdiff_t c = 0; c < mhai_min(count, together); c++)
        mhai_copy_strided(
            type, mhai_out_at(row, type, c), together,
            mhai_at(linear->weights, type, mhai_panel_index(linear, column, input + c)), step,
            mhai_ceil_div(count - c, together));
    flip_signs(linear, row, count);
}

void mhai_linear_sum(const mha_linear *linear)
{
    const ptrdiff_t columns = linear->panels * linear->kernels->nr;
    for (ptrdiff_t n = 0; linear->sums && n < columns; n++) {
        const uint8_t *const weights = linear->weights;
        int32_t sum = 0;
        for (ptrdiff_t c = 0; c < linear->inputs; c++) {
            const uint8_t byte = weights[mhai_panel_index(linear, n, c)];
            sum += linear->native->bias ? byte - linear->native->bias : (int8_t)byte;
        }
        linear->sums[n] = sum;
    }
}

/* Writes one output to its column of a panel. */
static void pack_output(const mha_linear *linear, ptrdiff_t column, const row_buffers *buffers)
{
    if (linear->stored == MHA_I8)
        linear->scales[column] = mhai_quantize_row(buffers->wide, linear->inputs, buffers->stored);
    else
        linear->kernels->store_row[linear->stored](buffers->wide, (int)linear->inputs, 1.0f,
                                                   buffers->stored);
    put_inputs(linear, column, buffers->stored);
}

/* The same for a block type. */
static void pack_blocks(const mha_linear *linear, const mhai_section *section, ptrdiff_t n,
                        ptrdiff_t column, const row_buffers *buffers)
{
    if (section->weight.type == linear->stored) {
        mhai_linear_put_row(linear, column, block_row(&section->weight, n));
        return;
    }
    read_output(linear, section, n, buffers);
    mhai_blocks_from_f32(linear->stored, buffers->wide, linear->inputs, buffers->stored);
    mhai_linear_put_row(linear, column, buffers->stored);
}

static void pack_sections(const mha_linear *linear, const mhai_section *sections, int count,
                          const row_buffers *buffers)
{
    ptrdiff_t column = 0;
    for (int s = 0; s < count; s++) {
        for (ptrdiff_t n = 0; n < sections[s].outputs; n++) {
            if (linear->inputs > 0 && mhai_is_block(linear->stored)) {
                pack_blocks(linear, &sections[s], n, column + n, buffers);
            } else if (linear->inputs > 0) {
                read_output(linear, &sections[s], n, buffers);
                pack_output(linear, column + n, buffers);
            }
            linear->bias[column + n] = mhai_vector_at(&sections[s].bias, n);
        }
        column += mhai_section_panels(linear->kernels, sections[s].outputs) * linear->kernels->nr;
    }
}

/* Bytes of the packed weights of one output. */
static size_t packed_bytes(ptrdiff_t inputs, mha_dtype stored)
{
    if (!mhai_is_block(stored))
        return (size_t)inputs * mha_dtype_size(stored);
    const int block = mhai_block_number(stored);
    return (size_t)(inputs / mhak_block_inputs(block) * mhak_unit_bytes(block));
}

static void *take_zeroed(size_t count, size_t size)
{
    void *const memory = mhai_memory_take(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void mhai_linear_repack(mha_linear *linear, const mhai_section *sections, int count, float *rows)
{
    const ptrdiff_t inputs = linear->inputs;
    const row_buffers buffers = {rows, rows + inputs, rows + 2 * inputs};
    pack_sections(linear, sections, count, &buffers);
    mhai_linear_sum(linear);
}

bool mhai_has_native(mha_dtype stored, ptrdiff_t inputs)
{
    return stored == MHA_BF16 || (stored == MHA_I8 && inputs <= MHAK_I8_INPUTS);
}

/* A linear without weights: its kind and extents. */
static mha_linear linear_of(const mhai_packing *packing, ptrdiff_t inputs,
                            const mhai_section *sections, int count, mha_dtype stored)
{
    const mhak_table *const kernels = packing->native->base;
    const bool native = packing->arithmetic == MHA_NATIVE && mhai_has_native(stored, inputs);
    mha_linear made = {.kernels = kernels,
                       .native = native ? packing->native : NULL,
                       .inputs = inputs,
                       .stored = stored,
                       .together = !native            ? 1
                                   : stored == MHA_I8 ? MHAK_QUAD
                                                      : MHAK_PAIR,
                       .in_arena = packing->arena != NULL};
    made.depth = mhai_round_up(inputs, made.together);
    if (mhai_is_block(stored) && mhai_has_digits(kernels))
        made.digits = packing->arithmetic == MHA_NATIVE ? 1 : MHAK_DIGITS;
    for (int s = 0; s < count; s++) {
        made.outputs += sections[s].outputs;
        made.panels += mhai_section_panels(kernels, sections[s].outputs);
    }
    return made;
}

/* Memory for the weights, all 0. False: there is none, or not for all. */
static bool take_weights(mha_linear *made, mha_arena *arena)
{
    const bool i8 = made->stored == MHA_I8, sums = i8 && made->native;
    const size_t columns = (size_t)(made->panels * made->kernels->nr);
    const size_t bytes = columns * packed_bytes(made->depth, made->stored);
    made->weights = mhai_weights_take(arena, bytes);
    if (made->weights)
        memset(made->weights, sums ? made->native->bias : 0, bytes);
    made->bias = take_zeroed(columns, sizeof(float));
    made->scales = i8 ? take_zeroed(columns, sizeof(float)) : NULL;
    made->sums = sums ? take_zeroed(columns, sizeof(int32_t)) : NULL;
    return made->weights && made->bias && (!i8 || made->scales) && (!sums || made->sums);
}

mha_status mhai_linear_make(mha_linear **linear, const mhai_packing *packing, ptrdiff_t inputs,
                            const mhai_section *sections, int count, mha_dtype stored)
{
    *linear = NULL;
    mha_linear *const made = calloc(1, sizeof *made);
    if (!made)
        return MHA_ERR_MEMORY;
    *made = linear_of(packing, inputs, sections, count, stored);
    const bool ok = take_weights(made, packing->arena);
    float *const rows = ok ? take_zeroed(3 * (size_t)inputs, sizeof(float)) : NULL;
    if (!rows) {
        mha_linear_free(made);
        return MHA_ERR_MEMORY;
    }
    mhai_linear_repack(made, sections, count, rows);
    free(rows);
    *linear = made;
    return MHA_OK;
}

void mha_linear_free(mha_linear *linear)
{
    if (!linear)
        return;
    if (!linear->in_arena)
        free(linear->weights);
    free(linear->scales);
    free(linear->sums);
    free(linear->bias);
    free(linear);
}

size_t mha_linear_bytes(const mha_linear *linear)
{
    if (!linear)
        return 0;
    const size_t columns = (size_t)(linear->panels * linear->kernels->nr);
    return columns * packed_bytes(linear->depth, linear->stored) + columns * sizeof(float) *
                                                                       (linear->sums     ? 3
                                                                        : linear->scales ? 2
                                                                                         : 1);
}

/* ---------------------------------------------------------------- checks ----- */

static bool is_plain(mha_dtype type)
{
    return type == MHA_F32 || type == MHA_F16 || type == MHA_BF16;
}

mha_status mhai_check_plain(const mha_options *message, const char *name, mha_dtype type)
{
    if (is_plain(type))
        return MHA_OK;
    return mhai_fail(message, MHA_ERR_DTYPE,
                     "%s has element type %d (%s); use MHA_F32, MHA_F16 or MHA_BF16", name,
                     (int)type, mhai_dtype_name(type));
}

mha_status mhai_check_stored(const mha_options *message, mha_dtype type)
{
    if (is_plain(type) || type == MHA_I8 || mhai_is_block(type) || type == MHA_AS_GIVEN)
        return MHA_OK;
    return mhai_fail(message, MHA_ERR_DTYPE,
                     "config.stored is %d; use MHA_F32, MHA_F16, MHA_BF16, MHA_I8, a block type "
                     "such as MHA_Q8_0, or MHA_AS_GIVEN",
                     (int)type);
}

/* Rows of blocks: contiguous, and inputs and strides a whole number of blocks. */
static mha_status check_blocks(const mha_options *message, const char *name,
                               const mha_matrix *matrix, ptrdiff_t outputs, ptrdiff_t inputs)
{
    const ptrdiff_t length = mhai_block_length(matrix->type);
    const ptrdiff_t bytes = (ptrdiff_t)mhai_block_bytes(matrix->type);
    ptrdiff_t stride;
    if (inputs % length != 0)
        return mhai_fail(message, MHA_ERR_SHAPE,
                         "%s has %td inputs; in %s they must be a multiple of %td", name, inputs,
                         mhai_dtype_name(matrix->type), length);
    if (matrix->in_stride != 1 || matrix->out_stride % length != 0)
        return mhai_fail(message, MHA_ERR_STRIDE,
                         "%s has strides %td and %td; in %s in_stride is 1 and out_stride a "
                         "multiple of %td",
                         name, matrix->out_stride, matrix->in_stride, mhai_dtype_name(matrix->type),
                         length);
    if (__builtin_mul_overflow(matrix->out_stride / length, bytes, &stride))
        return mhai_fail(message, MHA_ERR_OVERFLOW,
                         "%s reaches beyond the address space; look at its strides", name);
    mhai_regions list;
    mhai_regions_begin(&list, message, 1);
    const mha_view view = {matrix->data, 0, stride, 0};
    mhai_regions_rows(&list, false, name, view, MHA_I8, outputs, 1, inputs / length * bytes, NULL);
    return mhai_regions_check(&list, NULL, 0);
}

/* Can a matrix of this type, with that many inputs, be stored so? */
static mha_status check_conversion(const mha_options *message, const char *name, mha_dtype type,
                                   ptrdiff_t inputs, mha_dtype stored)
{
    if (!mhai_is_block(stored))
        return MHA_OK;
    if (type != stored && !mhai_can_quantize(stored))
        return mhai_fail(message, MHA_ERR_DTYPE,
                         "%s is %s and cannot be converted to %s; store it as MHA_Q8_0 or "
                         "MHA_Q4_1, or give it in that type",
                         name, mhai_dtype_name(type), mhai_dtype_name(stored));
    if (inputs % mhai_block_length(stored) != 0)
        return mhai_fail(message, MHA_ERR_SHAPE,
                         "%s has %td inputs; to be stored as %s they must be a multiple of %td",
                         name, inputs, mhai_dtype_name(stored), mhai_block_length(stored));
    return MHA_OK;
}

mha_status mhai_check_matrix(const mha_options *message, const char *name, const mha_matrix *matrix,
                             ptrdiff_t outputs, ptrdiff_t inputs, mha_dtype stored)
{
    const bool blocks = mhai_is_block(matrix->type);
    mha_status status = blocks ? MHA_OK : mhai_check_plain(message, name, matrix->type);
    if (status ||
        (status = check_conversion(message, name, matrix->type, inputs,
                                   mhai_stored_type(stored, matrix))) ||
        outputs == 0 || inputs == 0)
        return status;
    if (blocks)
        return check_blocks(message, name, matrix, outputs, inputs);
    mhai_regions list;
    mhai_regions_begin(&list, message, 1);
    const mha_view view = {matrix->data, 0, matrix->out_stride, matrix->in_stride};
    mhai_regions_rows(&list, false, name, view, matrix->type, outputs, inputs, 1, NULL);
    return mhai_regions_check(&list, NULL, 0);
}

mha_status mhai_check_vector(const mha_options *message, const char *name, const mha_vector *vector)
{
    if (!vector->data)
        return MHA_OK;
    const mha_status status = mhai_check_plain(message, name, vector->type);
    if (status)
        return status;
    if (!mhai_aligned(vector->data, mha_dtype_size(vector->type)))
        return mhai_fail(message, MHA_ERR_ALIGN, "%s is not aligned to its elements", name);
    return MHA_OK;
}

/* Outputs in whole panels times inputs must be countable in bytes. */
static mha_status check_extents(const mha_options *message, ptrdiff_t inputs, ptrdiff_t outputs)
{
    ptrdiff_t bytes;
    if (inputs < 0 || outputs < 0)
        return mhai_fail(message, MHA_ERR_SHAPE,
                         "config has %td inputs and %td outputs; extents must not be negative",
                         inputs, outputs);
    if (inputs > MHAI_MAX_EXTENT || outputs > MHAI_MAX_EXTENT ||
        __builtin_mul_overflow(outputs + 4 * MHAK_MAX_VECTOR, inputs + 1, &bytes) ||
        __builtin_mul_overflow(bytes, 16, &bytes))
        return mhai_fail(message, MHA_ERR_OVERFLOW,
                         "%td inputs times %td outputs overflows the address space", inputs,
                         outputs);
    return MHA_OK;
}

static mha_status check_config(const mha_linear_config *c, const mha_options *message)
{
    mha_status status;
    if ((status = check_extents(message, c->inputs, c->outputs)) ||
        (status = mhai_check_arithmetic(message, "config", c->arithmetic)) ||
        (status = mhai_check_stored(message, c->stored)) ||
        (status = mhai_check_matrix(message, "config.weight", &c->weight, c->outputs, c->inputs,
                                    c->stored)))
        return status;
    return mhai_check_vector(message, "config.bias", &c->bias);
}

mha_status mha_linear_create(mha_linear **linear, const mha_linear_config *config)
{
    mha_linear_config full;
    if (linear)
        *linear = NULL;
    if (!config)
        return MHA_ERR_NULL;
    if (!mhai_struct_read(config, &full, offsetof(mha_linear_config, arena), sizeof full))
        return MHA_ERR_STRUCT;
    const mha_options message = {.message = full.message, .message_size = full.message_size};
    if (!linear)
        return mhai_fail(&message, MHA_ERR_NULL, "linear is NULL");
    mha_status status = check_config(&full, &message);
    if (status)
        return status;
    mhai_packing packing = {.arithmetic = full.arithmetic, .arena = full.arena};
    if ((status = mhai_native_for(&message, &packing.native)))
        return status;
    const mhai_section section = {full.outputs, full.weight, full.bias};
    status = mhai_linear_make(linear, &packing, full.inputs, &section, 1,
                              mhai_stored_type(full.stored, &full.weight));
    if (status)
        return mhai_fail(&message, status, "no memory for %td x %td packed weights", full.outputs,
                         full.inputs);
    return MHA_OK;
}

mha_status mha_linear_update(mha_linear *linear, mha_matrix weight, mha_vector bias)
{
    const mha_options silent = {0};
    mha_status status;
    if (!linear)
        return MHA_ERR_NULL;
    if ((status = mhai_check_matrix(&silent, "weight", &weight, linear->outputs, linear->inputs,
                                    linear->stored)) ||
        (status = mhai_check_vector(&silent, "bias", &bias)))
        return status;
    const mhai_section section = {linear->outputs, weight, bias};
    float *const rows = mhai_memory_take(3 * sizeof(float) * (size_t)linear->inputs);
    if (!rows)
        return MHA_ERR_MEMORY;
    mhai_linear_repack(linear, &section, 1, rows);
    free(rows);
    return MHA_OK;
}

/* --------------------------------------------------------------- running ----- */

mha_status mhai_linear_check_rows(const mha_linear *linear, ptrdiff_t rows, mha_dtype x_type,
                                  mha_dtype y_type)
{
    const mha_options silent = {0};
    if (!linear)
        return MHA_ERR_NULL;
    if (rows < 0)
        return MHA_ERR_SHAPE;
    if (rows > MHAI_MAX_EXTENT)
        return MHA_ERR_OVERFLOW;
    const mha_status status = mhai_check_plain(&silent, "x_type", x_type);
    return status ? status : mhai_check_plain(&silent, "y_type", y_type);
}

bool mhai_rows_in_place(const void *from, ptrdiff_t from_stride, ptrdiff_t read, const void *to,
                        ptrdiff_t to_stride, ptrdiff_t written, ptrdiff_t rows)
{
    const ptrdiff_t width = mhai_max(read, written);
    return from == to && (rows <= 1 || (from_stride == to_stride &&
                                        (from_stride >= width || from_stride <= -width)));
}

/* The residual may be y: each element is read right before it is written. */
static mha_status check_memory(const mhai_product *p, const void *work, size_t work_size)
{
    const mha_options silent = {0};
    const mhai_finish *const f = &p->finish;
    const mha_view x = {p->x, 0, 0, p->x_stride}, y = {p->y, 0, 0, p->y_stride};
    const mha_view residual = {f->residual, 0, 0, f->residual_stride};
    mhai_regions list;
    mhai_regions_begin(&list, &silent, 1);
    mhai_regions_rows(&list, false, "x", x, p->x_type, 1, p->rows, p->linear->inputs, NULL);
    mhai_regions_rows(&list, true, "y", y, p->y_type, 1, p->rows, p->columns, NULL);
    if (f->residual &&
        !(p->y_type == MHA_F32 && mhai_rows_in_place(f->residual, f->residual_stride, p->columns,
                                                     p->y, p->y_stride, p->columns, p->rows)))
        mhai_regions_rows(&list, false, "residual", residual, MHA_F32, 1, p->rows, p->columns,
                          NULL);
    return mhai_regions_check(&list, work, work_size);
}

size_t mha_linear_work_size(const mha_linear *linear, ptrdiff_t rows, int threads)
{
    if (!linear || rows < 0 || threads < 1 || threads > MHA_MAX_THREADS)
        return 0;
    return mhai_gemm_work_size(linear->kernels, linear->native, rows, linear->inputs,
                               linear->panels, threads);
}

mha_status mha_linear_run_fused(const mha_linear *linear, ptrdiff_t rows, const void *x,
                                mha_dtype x_type, ptrdiff_t x_stride, mha_activation activation,
                                const float *residual, ptrdiff_t residual_stride, void *y,
                                mha_dtype y_type, ptrdiff_t y_stride, void *work, size_t work_size,
                                mha_pool *pool)
{
    mha_status status = mhai_linear_check_rows(linear, rows, x_type, y_type);
    if (status)
        return status;
    if (!mhai_is_activation(activation))
        return MHA_ERR_FLAG;
    const mhai_product product = {.linear = linear,
                                  .last_panel = linear->panels,
                                  .rows = rows,
                                  .columns = linear->outputs,
                                  .x = x,
                                  .y = y,
                                  .x_type = x_type,
                                  .y_type = y_type,
                                  .x_stride = x_stride,
                                  .y_stride = y_stride,
                                  .finish = {.activation = activation,
                                             .residual = residual,
                                             .residual_stride = residual_stride}};
    const size_t needed = mha_linear_work_size(linear, rows, mha_pool_threads(pool));
    if ((status = check_memory(&product, work, needed)))
        return status;
    if (work && work_size < needed)
        return MHA_ERR_WORKSPACE;
    const mhai_buffer buffer = mhai_buffer_get(work, needed);
    if (!buffer.data)
        return MHA_ERR_MEMORY;
    mhai_gemm(&product, buffer.data, pool);
    mhai_buffer_free(buffer);
    return MHA_OK;
}

mha_status mha_linear_run(const mha_linear *linear, ptrdiff_t rows, const void *x, mha_dtype x_type,
                          ptrdiff_t x_stride, void *y, mha_dtype y_type, ptrdiff_t y_stride,
                          void *work, size_t work_size, mha_pool *pool)
{
    return mha_linear_run_fused(linear, rows, x, x_type, x_stride, MHA_ACTIVATION_NONE, NULL, 0, y,
                                y_type, y_stride, work, work_size, pool);
}
