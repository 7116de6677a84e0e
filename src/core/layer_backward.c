/* SPDX-License-Identifier: MIT */
/*
 * The backward pass of a layer, from the tape that mha_layer_run() has left:
 *
 *      d_Y --- W_O ---> d_O [B,L,H*Dv]                        mhai_layer_back_output()
 *            and d_W_O = d_Y^T . O
 *      through the heads: d_Q, d_K, d_V                       mhai_backward_run()
 *      rotation and norm of Q, K backwards                    layer_qk.c
 *      d_W_Q = d_Q^T . X, and so on                           weight_gradients()
 *      d_Q | d_K | d_V --- W_Q | W_K | W_V ---> d_X           input_gradients()
 *
 * Everything was checked before (layer_backward_check.c); nothing here can fail or allocate.
 */
#include "core/layer.h"

#include <string.h>

/* --------------------------------------------------------- d_Y -> heads: W_O ----- */

void mhai_layer_back_output(const mhai_layer_back *back)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_config *const c = &job->layer->config;
    const mha_layer_gradients *const g = &back->gradients;
    const mhak_table *const kernels = job->layer->kernels;
    mhai_layer_list_starts(&job->queries, &g->d_output, back->d_rows);
    const mhai_product product = {.linear = job->layer->out,
                                  .last_panel = job->layer->out->panels,
                                  .rows = job->queries.count,
                                  .columns = c->output_width,
                                  .x = g->d_output.data,
                                  .x_type = g->d_output_type,
                                  .x_rows = back->d_rows,
                                  .x_stride = 1,
                                  .y = back->d_heads,
                                  .y_type = MHA_F32,
                                  .y_rows = job->queries.numbers,
                                  .y_stride = c->H * c->Dv};
    mhai_gemm_back(&product, back->work, job->pool);
    const mhai_factor d_y = {g->d_output.data, g->d_output_type, c->output_width, back->d_rows, 1};
    const mhai_factor heads = {job->heads, MHA_F32, c->H * c->Dv, job->queries.numbers,
                               c->H * c->Dv};
    mhai_outer_matrix(job->layer->out, &d_y, &heads, job->queries.count, &g->o, false, back->work,
                      job->pool);
    mhai_column_sums(kernels, &d_y, job->queries.count, g->o_bias, false, job->pool);
}

/* ------------------------------------------- d_Q, d_K, d_V -> d_X: W_Q, W_K, W_V ----- */

/* Columns that fill up panels between the projections take part in products, so they are
 * set to 0. */
static void clear_padding(const mhai_layer_back *back)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t widths[] = {c->H * c->D, c->G * c->D, c->G * c->Dv};
    for (int p = 0; p < MHAI_PROJECTIONS; p++) {
        const ptrdiff_t rest = job->layer->in[p].columns - widths[p];
        const ptrdiff_t rows = mhai_layer_room(job, p == MHAI_Q ? &job->queries : &job->keys);
        for (ptrdiff_t r = 0; rest > 0 && r < rows; r++)
            memset(back->d_projected[p] + r * job->stride[p] + widths[p], 0,
                   sizeof(float) * (size_t)rest);
    }
}

/* One input of the call. */
typedef struct input {
    const mhai_layer_back *back;
    int which;
    mha_out out; /* its gradient */
    ptrdiff_t width;
    const mhai_side *side;
} input;

/* How many projections, from `first` on, make one product for the input. */
static int products_from(const input *to, int first)
{
    const mhai_layer_job *const job = &to->back->job;
    int last = first;
    while (last < MHAI_V && mhai_layer_joined(job, last) &&
           mhai_layer_source(&job->call, last + 1) == to->which)
        last++;
    return last - first + 1;
}

static void multiply(const input *to, int first, int count, float *y, const ptrdiff_t *y_rows,
                     ptrdiff_t y_stride)
{
    const mhai_layer_job *const job = &to->back->job;
    const mhai_projection *const in = job->layer->in;
    const ptrdiff_t panels = in[first + count - 1].last_panel - in[first].first_panel;
    const mhai_product product = {.linear = in[first].linear,
                                  .first_panel = in[first].first_panel,
                                  .last_panel = in[first + count - 1].last_panel,
                                  .rows = job->rows[first]->count,
                                  .columns = panels * job->layer->kernels->nr,
                                  .x = to->back->d_projected[first],
                                  .x_type = MHA_F32,
                                  .x_rows = job->rows[first]->numbers,
                                  .x_stride = job->stride[first],
                                  .y = y,
                                  .y_type = MHA_F32,
                                  .y_rows = y_rows,
                                  .y_stride = y_stride};
    mhai_gemm_back(&product, to->back->work, job->pool);
}

/* Rows past a length have gradient 0. */
static void clear_rows(const input *to)
{
    const mhai_side *const side = to->side;
    for (ptrdiff_t b = 0; b < side->B; b++) {
        const ptrdiff_t rows =
            side->starts ? (ptrdiff_t)(side->starts[b + 1] - side->starts[b]) : side->extent;
        const ptrdiff_t first =
            side->starts ? (ptrdiff_t)side->starts[b] * to->out.sl : b * to->out.sb;
        for (ptrdiff_t i = 0; i < rows; i++)
            memset((float *)to->out.data + first + i * to->out.sl, 0,
                   sizeof(float) * (size_t)to->width);
    }
}

/* Projections of one input that are not one product: later products are added to the first. */
static void add_product(const input *to, int first, int count)
{
    const mhai_layer_back *const back = to->back;
    multiply(to, first, count, back->part, NULL, to->width);
    for (ptrdiff_t r = 0; r < back->job.rows[first]->count; r++)
        back->job.layer->kernels->add_row[MHA_F32]((float *)to->out.data + back->d_rows[r],
                                                   back->part + r * to->width, (int)to->width);
}

static void input_gradient(const input *to)
{
    const mhai_layer_back *const back = to->back;
    const mhai_layer_job *const job = &back->job;
    const mha_view view = mhai_as_view(to->out);
    int made = 0;
    for (int first = 0, count; first < MHAI_PROJECTIONS; first += count) {
        count = 1;
        if (mhai_layer_source(&job->call, first) != to->which)
            continue;
        count = products_from(to, first);
        const mhai_side *const side = job->rows[first];
        mhai_layer_list_starts(side, &view, back->d_rows);
        if (made == 0 && (side->lengths || first + count < MHAI_PROJECTIONS))
            clear_rows(to);
        if (made++ == 0)
            multiply(to, first, count, to->out.data, back->d_rows, 1);
        else
            add_product(to, first, count);
    }
}

static void input_gradients(const mhai_layer_back *back)
{
    const mha_layer_config *const c = &back->job.layer->config;
    const mha_layer_gradients *const g = &back->gradients;
    const mha_out outs[] = {g->d_query, g->d_key, g->d_value};
    const ptrdiff_t widths[] = {c->E, c->key_width, c->value_width};
    clear_padding(back);
    for (int n = 0; n < MHAI_PROJECTIONS; n++) {
        const input to = {back, n, outs[n], widths[n],
                          n == MHAI_Q ? &back->job.queries : &back->job.keys};
        if (to.out.data)
            input_gradient(&to);
    }
}

/* ------------------------------------------------------------------ weights ----- */

/* Lists the rows that have a gradient. Rows without one, such as masked keys, are left out, since 0
 * times what they hold may be NaN. Returns how many are listed. */
static ptrdiff_t list_live(const mhai_layer_back *back, int which, ptrdiff_t width)
{
    const mhai_layer_job *const job = &back->job;
    const mhai_side *const side = job->rows[which];
    ptrdiff_t live = 0;
    for (ptrdiff_t r = 0; r < side->count; r++) {
        const ptrdiff_t row = side->numbers ? side->numbers[r] : r;
        if (mhai_layer_is_zero(back->d_projected[which] + row * job->stride[which], width))
            continue;
        back->live[0][live] = row;
        back->live[1][live++] = job->x_rows[which][r];
    }
    return live;
}

static void weight_gradients(const mhai_layer_back *back)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_config *const c = &job->layer->config;
    const mha_layer_gradients *const g = &back->gradients;
    const mhak_table *const kernels = job->layer->kernels;
    const mha_matrix_out *const matrices[] = {&g->q, &g->k, &g->v};
    float *const biases[] = {g->q_bias, g->k_bias, g->v_bias};
    const ptrdiff_t outputs[] = {c->H * c->D, c->G * c->D, c->G * c->Dv};
    const ptrdiff_t inputs[] = {c->E, c->key_width, c->value_width};
    for (int p = 0; p < MHAI_PROJECTIONS; p++) {
        if (!matrices[p]->data && !biases[p])
            continue;
        const ptrdiff_t rows = list_live(back, p, outputs[p]);
        const mhai_factor d_y = {back->d_projected[p], MHA_F32, outputs[p], back->live[0],
                                 job->stride[p]};
        const mhai_factor x = {mhai_layer_input(&job->call, p)->data, job->call.input_type,
                               inputs[p], back->live[1], 1};
        mhai_outer_matrix(job->layer->in[p].linear, &d_y, &x, rows, matrices[p], false, back->work,
                          job->pool);
        mhai_column_sums(kernels, &d_y, rows, biases[p], false, job->pool);
    }
}

/* ------------------------------------------------------------------- public ----- */

void mhai_layer_back_inputs(const mhai_layer_back *back)
{
    mhai_layer_norm_rope_back(back);
    weight_gradients(back);
    input_gradients(back);
}

static void run_back(mhai_layer_back *back)
{
    mhai_layer_back_output(back);
    mhai_backward_run(&back->attention, back->work, back->job.pool);
    mhai_layer_back_inputs(back);
}

size_t mha_layer_tape_size(const mha_layer *layer, const mha_layer_call *call)
{
    mhai_layer_job job;
    if (!layer || !call || mhai_layer_check(&job, layer, call) || !mhai_layer_has_back(&job))
        return 0;
    return mhai_layer_tape_bytes(&job);
}

size_t mha_layer_backward_work_size(const mha_layer *layer, const mha_layer_call *call, int threads)
{
    if (!layer || !call || threads < 1 || threads > MHA_MAX_THREADS)
        return 0;
    return mhai_layer_back_needs(layer, call, threads);
}

mha_status mha_layer_backward(const mha_layer *layer, const mha_layer_call *call,
                              const mha_layer_gradients *gradients, void *work, size_t work_size,
                              mha_pool *pool)
{
    const mhai_layer_between whole = {.part = MHAI_WHOLE};
    mhai_layer_back back;
    if (!layer || !call)
        return MHA_ERR_NULL;
    if (!work)
        work_size = mhai_layer_back_needs(layer, call, mha_pool_threads(pool));
    const mhai_buffer buffer = mhai_buffer_get(work, work_size);
    const mha_status status = mhai_layer_back_prepare(&back, layer, call, gradients, &whole,
                                                      buffer.data, work_size, pool);
    if (status == MHA_OK)
        run_back(&back);
    mhai_buffer_free(buffer);
    return status;
}
