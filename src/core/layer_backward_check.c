/* SPDX-License-Identifier: MIT */
/* Checks the backward pass of a layer and carves its workspace, for layer_backward.c. */
#include "core/layer.h"

#include <string.h>

/* ---------------------------------------------------------------- checks ----- */

/* Notes which projections need a gradient: those with a requested gradient that depends on it. */
static void note_wants(mhai_layer_back *back)
{
    const mha_layer_gradients *const g = &back->gradients;
    const void *const inputs[] = {g->d_query.data, g->d_key.data, g->d_value.data};
    const bool own[] = {g->q.data || g->q_bias || g->q_norm || g->q_norm_bias,
                        g->k.data || g->k_bias || g->k_norm || g->k_norm_bias,
                        g->v.data || g->v_bias};
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        back->wants[p] = own[p] || inputs[mhai_layer_source(&back->job.call, p)] != NULL;
}

/* What a gradient is requested of must exist. */
static mha_status check_wanted(const mhai_layer_back *back)
{
    const mha_layer_gradients *const g = &back->gradients;
    const mha_options *const o = &back->job.attention.options;
    const mha_layer *const layer = back->job.layer;
    const bool norm = layer->config.norm != MHA_NORM_NONE;
    const struct {
        const char *name, *of;
        bool wanted, there;
    } pairs[] = {
        {"d_key", "call.key", g->d_key.data != NULL, back->job.call.key.data != NULL},
        {"d_value", "call.value", g->d_value.data != NULL, back->job.call.value.data != NULL},
        {"extra_key", "weights.extra_key", g->extra_key != NULL, layer->extra_key != NULL},
        {"extra_value", "weights.extra_value", g->extra_value != NULL, layer->extra_value != NULL},
        {"q_norm", "config.norm", g->q_norm || g->q_norm_bias, norm},
        {"k_norm", "config.norm", g->k_norm || g->k_norm_bias, norm},
        {"d_bias", "options.bias", g->d_bias.data != NULL, o->bias.data != NULL},
        {"d_add_mask", "options.add_mask", g->d_add_mask.data != NULL, o->add_mask.data != NULL},
        {"d_alibi_slopes", "options.alibi_slopes", g->d_alibi_slopes != NULL,
         o->alibi_slopes != NULL},
        {"d_sinks", "options.sinks", g->d_sinks != NULL, o->sinks != NULL},
        {"d_gates", "options.gates", g->d_gates != NULL, o->gates != NULL}};
    for (size_t n = 0; n < sizeof pairs / sizeof pairs[0]; n++)
        if (pairs[n].wanted && !pairs[n].there)
            return mhai_fail(o, MHA_ERR_NULL, "gradients.%s is wanted but the call has no %s",
                             pairs[n].name, pairs[n].of);
    return mhai_check_plain(o, "gradients.d_output_type", g->d_output_type);
}

static mha_status check_matrices(const mhai_layer_back *back)
{
    const mha_layer_gradients *const g = &back->gradients;
    const mha_options *const o = &back->job.attention.options;
    mha_status status;
    if ((status = mhai_matrix_out_check(o, "gradients.q", &g->q)) ||
        (status = mhai_matrix_out_check(o, "gradients.k", &g->k)) ||
        (status = mhai_matrix_out_check(o, "gradients.v", &g->v)))
        return status;
    return mhai_matrix_out_check(o, "gradients.o", &g->o);
}

static mha_status check_tape(const mhai_layer_job *job)
{
    if (!job->call.tape)
        return mhai_fail(&job->attention.options, MHA_ERR_NULL,
                         "call.tape is NULL; the forward pass must have kept one for this");
    return mhai_layer_check_tape(job, mhai_layer_tape_bytes(job));
}

/* W_O needs no tape; what is left of a tape's checks is that there can be gradients. */
static mha_status check_output(mhai_layer_job *job)
{
    job->call.tape_size = SIZE_MAX;
    return mhai_layer_check_tape(job, 0);
}

static mha_status read_pass(mhai_layer_back *back, const mha_layer *layer,
                            const mha_layer_call *call, const mha_layer_gradients *gradients,
                            const mhai_layer_between *between)
{
    memset(back, 0, sizeof *back);
    mha_status status = mhai_layer_check(&back->job, layer, call);
    if (status)
        return status;
    const mha_options *const o = &back->job.attention.options;
    back->job.part = between->part;
    back->job.given = between->heads;
    if ((status = between->part == MHAI_OUTPUT ? check_output(&back->job) : check_tape(&back->job)))
        return status;
    if (!gradients)
        return mhai_fail(o, MHA_ERR_NULL, "gradients is NULL");
    if (!mhai_struct_read(gradients, &back->gradients, sizeof back->gradients,
                          sizeof back->gradients))
        return mhai_fail(o, MHA_ERR_STRUCT, "gradients.size is not that of the struct");
    if ((status = check_wanted(back)) || (status = check_matrices(back)))
        return status;
    note_wants(back);
    return MHA_OK;
}

/* ---------------------------------------------------------------- memory ----- */

static void add_given(mhai_regions *list, const mhai_layer_back *back)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_gradients *const g = &back->gradients;
    const mha_shape *const s = &job->attention.shape;
    mhai_call given = job->attention;
    given.options.lse.data = given.options.weights.data = NULL;
    given.options.statistics = NULL;
    if (job->part != MHAI_OUTPUT)
        mhai_layer_add_inputs(list, job);
    if (job->part != MHAI_PROJECT)
        mhai_layer_add_rows(list, false, "gradients.d_output", g->d_output, g->d_output_type,
                            &job->queries, job->layer->config.output_width);
    if (job->part != MHAI_WHOLE)
        return;
    mhai_regions_options(list, &given, s->S);
    if (job->attention.options.lse.data)
        mhai_regions_rows(list, false, "options.lse", mhai_as_view(job->attention.options.lse),
                          MHA_F32, s->H, s->L, 1, job->queries.starts);
    if (g->d_lse.data)
        mhai_regions_rows(list, false, "gradients.d_lse", g->d_lse, MHA_F32, s->H, s->L, 1,
                          job->queries.starts);
}

/* What lies between the halves of a layer. */
static void add_between(mhai_regions *list, const mhai_layer_back *back,
                        const mhai_layer_between *between)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_config *const c = &job->layer->config;
    const mha_view *const given[] = {&between->d_q, &between->d_k, &between->d_v};
    static const char *const names[] = {"d_q", "d_k", "d_v"};
    for (int p = 0; between->part == MHAI_PROJECT && p < MHAI_PROJECTIONS; p++) {
        const mhai_side *const side = p == MHAI_Q ? &job->queries : &job->keys;
        if (back->wants[p])
            mhai_regions_rows(list, false, names[p], *given[p], MHA_F32, p == MHAI_Q ? c->H : c->G,
                              side->extent, p == MHAI_V ? c->Dv : c->D, side->starts);
    }
    if (between->part == MHAI_OUTPUT)
        mhai_regions_rows(list, false, "heads", between->heads, MHA_F32, c->H, job->queries.extent,
                          c->Dv, job->queries.starts);
    if (between->d_heads.data)
        mhai_regions_rows(list, true, "d_heads", mhai_as_view(between->d_heads), MHA_F32, c->H,
                          job->queries.extent, c->Dv, job->queries.starts);
    if (between->part != MHAI_OUTPUT)
        mhai_regions_array(list, "call.tape", job->call.tape, (ptrdiff_t)mhai_layer_tape_bytes(job),
                           1);
}

static void add_weights(mhai_regions *list, const mhai_layer_back *back)
{
    const mha_layer_config *const c = &back->job.layer->config;
    const mha_layer_gradients *const g = &back->gradients;
    const ptrdiff_t q = c->H * c->D, k = c->G * c->D, v = c->G * c->Dv;
    mhai_matrix_out_region(list, "gradients.q", &g->q, q, c->E);
    mhai_matrix_out_region(list, "gradients.k", &g->k, k, c->key_width);
    mhai_matrix_out_region(list, "gradients.v", &g->v, v, c->value_width);
    mhai_matrix_out_region(list, "gradients.o", &g->o, c->output_width, c->H * c->Dv);
    mhai_vector_out_region(list, "gradients.q_bias", g->q_bias, q);
    mhai_vector_out_region(list, "gradients.k_bias", g->k_bias, k);
    mhai_vector_out_region(list, "gradients.v_bias", g->v_bias, v);
    mhai_vector_out_region(list, "gradients.o_bias", g->o_bias, c->output_width);
    mhai_vector_out_region(list, "gradients.extra_key", g->extra_key, k);
    mhai_vector_out_region(list, "gradients.extra_value", g->extra_value, v);
    mhai_vector_out_region(list, "gradients.q_norm", g->q_norm, c->D);
    mhai_vector_out_region(list, "gradients.k_norm", g->k_norm, c->D);
    mhai_vector_out_region(list, "gradients.q_norm_bias", g->q_norm_bias, c->D);
    mhai_vector_out_region(list, "gradients.k_norm_bias", g->k_norm_bias, c->D);
}

static mha_status check_memory(const mhai_layer_back *back, const mhai_layer_between *between,
                               const void *work, size_t work_size)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_config *const c = &job->layer->config;
    const mha_layer_gradients *const g = &back->gradients;
    mhai_regions list;
    mhai_regions_begin(&list, &job->attention.options, job->call.B);
    add_given(&list, back);
    add_between(&list, back, between);
    if (g->d_query.data)
        mhai_layer_add_rows(&list, true, "gradients.d_query", mhai_as_view(g->d_query), MHA_F32,
                            &job->queries, c->E);
    if (g->d_key.data)
        mhai_layer_add_rows(&list, true, "gradients.d_key", mhai_as_view(g->d_key), MHA_F32,
                            &job->keys, c->key_width);
    if (g->d_value.data)
        mhai_layer_add_rows(&list, true, "gradients.d_value", mhai_as_view(g->d_value), MHA_F32,
                            &job->keys, c->value_width);
    mhai_backward_add_options(&list, &job->attention, &back->attention.gradients);
    add_weights(&list, back);
    return mhai_regions_check(&list, work, work_size);
}

/* ------------------------------------------------------------- workspace ----- */

static ptrdiff_t most_rows(const mhai_layer_job *job)
{
    return mhai_max(mhai_layer_room(job, &job->queries), mhai_layer_room(job, &job->keys));
}

/* Carves the gradients of the buffers, with the layout of the buffers. */
static void carve_gradients(mhai_layer_back *back, mhai_work *work)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t rows = most_rows(job);
    const ptrdiff_t width = mhai_max(c->E, mhai_max(c->key_width, c->value_width));
    ptrdiff_t strides[MHAI_PROJECTIONS];
    if (job->self) {
        mhai_layer_take_projected(job, MHAI_Q, MHAI_V, back->d_projected, strides, work);
    } else {
        mhai_layer_take_projected(job, MHAI_Q, MHAI_Q, back->d_projected, strides, work);
        mhai_layer_take_projected(job, MHAI_K, MHAI_V, back->d_projected, strides, work);
    }
    back->d_heads = mhai_work_take(
        work, (size_t)(mhai_layer_room(job, &job->queries) * c->H * c->Dv), sizeof(float));
    back->d_rows = mhai_work_take(work, (size_t)rows, sizeof(ptrdiff_t));
    for (int n = 0; n < 2; n++)
        back->live[n] = mhai_work_take(work, (size_t)rows, sizeof(ptrdiff_t));
    const bool sums = !job->self || job->layer->in[MHAI_Q].linear != job->layer->in[MHAI_V].linear;
    back->part = mhai_work_take(work, sums ? (size_t)(rows * width) : 0, sizeof(float));
    back->norm_sums =
        mhai_work_take(work, (size_t)(mhai_layer_norm_rope_tasks(job) * 2 * c->D), sizeof(double));
}

static void fill_attention(mhai_layer_back *back)
{
    const mhai_layer_job *const job = &back->job;
    mhai_backward *const pass = &back->attention;
    const mha_layer_gradients *const g = &back->gradients;
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t q = job->queries.extent, k = job->keys.extent;
    pass->call = job->attention;
    pass->lse = mhai_as_view(pass->call.options.lse);
    pass->o = mhai_as_view(pass->call.o);
    memset(&pass->call.options.lse, 0, sizeof pass->call.options.lse);
    memset(&pass->call.options.weights, 0, sizeof pass->call.options.weights);
    pass->call.options.statistics = NULL;
    pass->gradients = (mha_gradients){.size = sizeof pass->gradients,
                                      .d_o = mha_view_blhd(back->d_heads, c->H, q, c->Dv),
                                      .d_lse = g->d_lse,
                                      .d_bias = g->d_bias,
                                      .d_add_mask = g->d_add_mask,
                                      .d_alibi_slopes = g->d_alibi_slopes,
                                      .d_sinks = g->d_sinks,
                                      .d_gates = g->d_gates};
    mha_out *const to[] = {&pass->gradients.d_q, &pass->gradients.d_k, &pass->gradients.d_v};
    for (int p = 0; p < MHAI_PROJECTIONS; p++) {
        const ptrdiff_t extent = p == MHAI_Q ? q : k, width = p == MHAI_V ? c->Dv : c->D;
        if (back->wants[p])
            *to[p] =
                (mha_out){back->d_projected[p], extent * job->stride[p], width, job->stride[p]};
    }
    if (g->d_lse.data && job->queries.starts && job->queries.count > 0)
        pass->gradients.d_lse.data =
            (const float *)g->d_lse.data + job->queries.starts[0] * g->d_lse.sl;
    pass->d_extra_key = g->extra_key;
    pass->d_extra_value = g->extra_value;
    mhai_backward_plan(pass, job->layer->kernels);
}

/* Bytes for products and the operator, which use the same memory in turn. */
static size_t shared_size(const mhai_layer_back *back, int threads)
{
    const mha_layer *const layer = back->job.layer;
    const ptrdiff_t rows = most_rows(&back->job);
    size_t size = mhai_larger(mhai_outer_work_size(layer->kernels, threads),
                              mhai_backward_needs(&back->attention, threads));
    for (int p = 0; p < MHAI_PROJECTIONS; p++) {
        const mha_linear *const linear = layer->in[p].linear;
        size = mhai_larger(size, mhai_gemm_back_work_size(
                                     linear, rows, linear->panels * layer->kernels->nr, threads));
    }
    return mhai_larger(
        size, mhai_gemm_back_work_size(layer->out, rows, layer->config.output_width, threads));
}

static size_t count_work(const mhai_layer_back *back, int threads)
{
    mhai_layer_back counted = *back;
    mhai_work work = {0};
    carve_gradients(&counted, &work);
    fill_attention(&counted);
    const size_t buffers = back->job.call.tape ? 0 : mhai_layer_buffer_bytes(&back->job);
    return work.used + buffers + mhai_layer_list_bytes(&back->job) +
           shared_size(&counted, threads) + MHAI_ALIGN - 1;
}

size_t mhai_layer_back_needs(const mha_layer *layer, const mha_layer_call *call, int threads)
{
    mhai_layer_back back = {0};
    if (mhai_layer_check(&back.job, layer, call) || !mhai_layer_has_back(&back.job))
        return 0;
    return count_work(&back, threads);
}

mha_status mhai_layer_back_prepare(mhai_layer_back *back, const mha_layer *layer,
                                   const mha_layer_call *call, const mha_layer_gradients *gradients,
                                   const mhai_layer_between *between, void *work, size_t work_size,
                                   mha_pool *pool)
{
    mha_status status = read_pass(back, layer, call, gradients, between);
    if (status)
        return status;
    mhai_layer_job *const job = &back->job;
    const mha_options *const o = &job->attention.options;
    const size_t needed = count_work(back, mha_pool_threads(pool));
    fill_attention(back);
    if (!work)
        return mhai_fail(o, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
    if (work_size < needed)
        return mhai_fail(o, MHA_ERR_WORKSPACE,
                         "work has %zu bytes; %d threads need %zu (mha_layer_backward_work_size)",
                         work_size, mha_pool_threads(pool), needed);
    if ((status = check_memory(back, between, work, needed)))
        return status;
    mhai_work carve = mhai_work_begin(work);
    mhai_layer_carve(job, &carve);
    job->past = NULL;
    carve_gradients(back, &carve);
    fill_attention(back);
    back->work = carve.base + carve.used;
    job->pool = pool;
    return MHA_OK;
}
