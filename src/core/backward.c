/* SPDX-License-Identifier: MIT */
/* The public function of the backward pass (section 10 of mha.h): it checks the call, carves the
 * workspace and runs the phases. attention_backward.c has the computation. */
#include "core/backward.h"
#include "core/linear.h"
#include "core/region.h"

#include <string.h>

/* ---------------------------------------------------------------- checks ----- */

/* Reads the problem, as the forward pass had it. */
static mha_status read_problem(mhai_backward *pass, const mha_shape *shape,
                               const mha_options *options)
{
    memset(pass, 0, sizeof *pass);
    mha_status status = mhai_options_read(options, &pass->call.options);
    mha_options *const o = &pass->call.options;
    const mhak_table *kernels;
    if (status)
        return status;
    pass->lse = mhai_as_view(o->lse);
    memset(&o->lse, 0, sizeof o->lse);
    memset(&o->weights, 0, sizeof o->weights);
    o->statistics = NULL;
    if ((status = mhai_check_problem(shape, &pass->call)) ||
        (status = mhai_kernels_for(o, &kernels)))
        return status;
    if (pass->call.shape.q_type == MHA_F64)
        return mhai_fail(o, MHA_ERR_DTYPE,
                         "shape.q_type is MHA_F64; the backward pass is for f32, f16 and bf16");
    if (o->head_modes)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "options.head_modes is for the forward pass; a gate of 0 has gradients");
    mhai_backward_plan(pass, kernels);
    return MHA_OK;
}

static mha_status read_gradients(mhai_backward *pass, const mha_gradients *gradients)
{
    const mha_options *const o = &pass->call.options;
    mha_gradients *const g = &pass->gradients;
    if (!gradients)
        return mhai_fail(o, MHA_ERR_NULL, "gradients is NULL");
    if (!mhai_struct_read(gradients, g, sizeof *g, sizeof *g))
        return mhai_fail(o, MHA_ERR_STRUCT, "gradients.size is not that of the struct");
    const struct {
        const char *name, *of;
        bool wanted, there;
    } pairs[] = {
        {"d_bias", "bias", g->d_bias.data != NULL, o->bias.data != NULL},
        {"d_add_mask", "add_mask", g->d_add_mask.data != NULL, o->add_mask.data != NULL},
        {"d_alibi_slopes", "alibi_slopes", g->d_alibi_slopes != NULL, o->alibi_slopes != NULL},
        {"d_sinks", "sinks", g->d_sinks != NULL, o->sinks != NULL},
        {"d_gates", "gates", g->d_gates != NULL, o->gates != NULL}};
    for (int n = 0; n < 5; n++)
        if (pairs[n].wanted && !pairs[n].there)
            return mhai_fail(o, MHA_ERR_NULL, "gradients.%s is wanted but options.%s is NULL",
                             pairs[n].name, pairs[n].of);
    return mhai_check_plain(o, "gradients.d_o_type", g->d_o_type);
}

/* The gradient of a bias: axes of stride 0 are present once. */
static void add_bias_region(mhai_regions *list, const mha_shape *s, const char *name,
                            const mha_out *out)
{
    if (!out->data)
        return;
    list->B = out->sb == 0 ? 1 : s->B;
    mhai_regions_rows(list, true, name, mhai_as_view(*out), MHA_F32, out->sh == 0 ? 1 : s->H,
                      out->sl == 0 ? 1 : s->L, s->S, NULL);
    list->B = s->B;
}

static void add_output(mhai_regions *list, const char *name, const mha_out *out, ptrdiff_t heads,
                       ptrdiff_t rows, ptrdiff_t width, const int64_t *starts)
{
    if (out->data)
        mhai_regions_rows(list, true, name, mhai_as_view(*out), MHA_F32, heads, rows, width,
                          starts);
}

void mhai_backward_add_options(mhai_regions *list, const mhai_call *call, const mha_gradients *g)
{
    const mha_shape *const s = &call->shape;
    const ptrdiff_t sb = call->options.gates_sb;
    const mha_view gates = {g->d_gates, sb, 1, 0};
    add_bias_region(list, s, "gradients.d_bias", &g->d_bias);
    add_bias_region(list, s, "gradients.d_add_mask", &g->d_add_mask);
    mhai_vector_out_region(list, "gradients.d_alibi_slopes", g->d_alibi_slopes, s->H);
    mhai_vector_out_region(list, "gradients.d_sinks", g->d_sinks, s->H);
    list->B = sb == 0 ? 1 : s->B;
    if (g->d_gates)
        mhai_regions_rows(list, true, "gradients.d_gates", gates, MHA_F32, s->H, 1, 1, NULL);
}

static void list_inputs(mhai_regions *list, const mhai_backward *pass)
{
    const mha_shape *const s = &pass->call.shape;
    const mha_options *const o = &pass->call.options;
    const mha_gradients *const g = &pass->gradients;
    mhai_regions_rows(list, false, "q", pass->call.q, s->q_type, s->H, s->L, s->D, o->q_starts);
    mhai_regions_rows(list, false, "k", pass->call.k, s->k_type, s->G, s->S, s->D, o->k_starts);
    mhai_regions_rows(list, false, "v", pass->call.v, s->v_type, s->G, s->S, s->Dv, o->k_starts);
    mhai_regions_rows(list, false, "o", pass->o, s->o_type, s->H, s->L, s->Dv, o->q_starts);
    mhai_regions_rows(list, false, "gradients.d_o", g->d_o, g->d_o_type, s->H, s->L, s->Dv,
                      o->q_starts);
    mhai_regions_rows(list, false, "options.lse", pass->lse, MHA_F32, s->H, s->L, 1, o->q_starts);
    if (g->d_lse.data)
        mhai_regions_rows(list, false, "gradients.d_lse", g->d_lse, MHA_F32, s->H, s->L, 1,
                          o->q_starts);
    mhai_regions_options(list, &pass->call, s->S);
}

static mha_status check_memory(const mhai_backward *pass, const void *work, size_t work_size)
{
    const mha_shape *const s = &pass->call.shape;
    const mha_options *const o = &pass->call.options;
    const mha_gradients *const g = &pass->gradients;
    mhai_regions list;
    mhai_regions_begin(&list, o, s->B);
    list_inputs(&list, pass);
    add_output(&list, "gradients.d_q", &g->d_q, s->H, s->L, s->D, o->q_starts);
    add_output(&list, "gradients.d_k", &g->d_k, s->G, s->S, s->D, o->k_starts);
    add_output(&list, "gradients.d_v", &g->d_v, s->G, s->S, s->Dv, o->k_starts);
    mhai_backward_add_options(&list, &pass->call, g);
    return mhai_regions_check(&list, work, work_size);
}

/* ------------------------------------------------------------- workspace ----- */

/* Without any query row the forward pass has no plan, but keys and values still get
 * gradients of 0. */
void mhai_backward_plan(mhai_backward *pass, const mhak_table *kernels)
{
    pass->plan = (mha_plan){.shape = pass->call.shape, .kernels = kernels};
    pass->plan.ldq = mhai_row_floats(pass->call.shape.D);
    pass->plan.ldo = mhai_round_up(pass->call.shape.Dv, kernels->vector);
}

static bool is_empty(const mha_shape *s)
{
    return s->B == 0 || s->H == 0 || s->D == 0;
}

static void take_shared(mhai_backward *pass, mhai_work *work)
{
    const mha_shape *const s = &pass->call.shape;
    pass->delta = mhai_work_take(work, (size_t)(s->B * s->H * s->L), sizeof(float));
    pass->sums = mhai_work_take(work, MHAI_SUMS * (size_t)(s->B * s->H), sizeof(double));
    if (pass->call.extra.k)
        pass->extras = mhai_work_take(work, (size_t)(s->B * s->G * (s->D + s->Dv)), sizeof(double));
}

static size_t scratch_size(const mhai_backward *pass)
{
    mhai_work work = {0};
    mhai_back_scratch_take(pass, &work);
    return work.used;
}

size_t mhai_backward_needs(const mhai_backward *pass, int threads)
{
    mhai_backward counted = *pass;
    mhai_work work = {0};
    if (is_empty(&pass->call.shape))
        return MHAI_ALIGN;
    take_shared(&counted, &work);
    return work.used + (size_t)threads * scratch_size(pass) + MHAI_ALIGN - 1;
}

size_t mha_backward_work_size(const mha_shape *shape, const mha_options *options, int threads)
{
    mhai_backward pass;
    if (threads < 1 || threads > MHA_MAX_THREADS || read_problem(&pass, shape, options))
        return 0;
    return mhai_backward_needs(&pass, threads);
}

/* --------------------------------------------------------------- running ----- */

static void unit_task(void *arg, int worker, ptrdiff_t number)
{
    const mhai_backward *const pass = arg;
    mhai_work work = {.base = pass->scratches + (size_t)worker * pass->scratch_size};
    const mhai_back_scratch scratch = mhai_back_scratch_take(pass, &work);
    mhai_backward_unit(pass, &scratch, number);
}

/* Sums of the heads over the batches, in ascending order. */
static void store_sums(const mhai_backward *pass, float *to, int which)
{
    const mha_shape *const s = &pass->call.shape;
    for (ptrdiff_t h = 0; to && h < s->H; h++) {
        double sum = 0.0;
        for (ptrdiff_t b = 0; b < s->B; b++)
            sum += pass->sums[MHAI_SUMS * (b * s->H + h) + which];
        to[h] = (float)sum;
    }
}

static void store_gates(const mhai_backward *pass)
{
    const mha_shape *const s = &pass->call.shape;
    const ptrdiff_t sb = pass->call.options.gates_sb;
    float *const to = pass->gradients.d_gates;
    if (sb == 0)
        store_sums(pass, to, MHAI_GATE);
    for (ptrdiff_t n = 0; to && sb != 0 && n < s->B * s->H; n++)
        to[n / s->H * sb + n % s->H] = (float)pass->sums[MHAI_SUMS * n + MHAI_GATE];
}

/* `width` sums of every group, from `first` on, over the batches in ascending order. */
static void store_extras(const mhai_backward *pass, float *to, ptrdiff_t first, ptrdiff_t width)
{
    const mha_shape *const s = &pass->call.shape;
    const ptrdiff_t group = s->D + s->Dv;
    for (ptrdiff_t n = 0; to && n < s->G * width; n++) {
        double sum = 0.0;
        for (ptrdiff_t b = 0; b < s->B; b++)
            sum += pass->extras[(b * s->G + n / width) * group + first + n % width];
        to[n] = (float)sum;
    }
}

/* Units that would add to the same numbers are joined into one. */
static void count_units(mhai_backward *pass)
{
    const mha_shape *const s = &pass->call.shape;
    const mha_out *const biases[] = {&pass->gradients.d_bias, &pass->gradients.d_add_mask};
    for (int n = 0; n < 2; n++) {
        pass->joins_heads |= biases[n]->data && biases[n]->sh == 0;
        pass->joins_batches |= biases[n]->data && biases[n]->sb == 0;
    }
    pass->units = (pass->joins_heads ? 1 : s->G) * (pass->joins_batches ? 1 : s->B);
}

void mhai_backward_run(mhai_backward *pass, void *memory, mha_pool *pool)
{
    const mha_shape *const s = &pass->call.shape;
    mhai_work work = mhai_work_begin(memory);
    take_shared(pass, &work);
    pass->scratches = work.base + work.used;
    pass->scratch_size = scratch_size(pass);
    count_units(pass);
    const double pairs = (double)s->B * (double)s->H * (double)s->L * (double)s->S;
    mha_pool_run(mhai_pool_worth(pool, 5 * pairs * (double)(s->D + s->Dv)), pass->units, unit_task,
                 pass);
    store_sums(pass, pass->gradients.d_alibi_slopes, MHAI_SLOPE);
    store_sums(pass, pass->gradients.d_sinks, MHAI_SINK);
    store_gates(pass);
    store_extras(pass, pass->d_extra_key, 0, s->D);
    store_extras(pass, pass->d_extra_value, s->D, s->Dv);
}

/* Reads the arguments of a pass. */
static mha_status prepare(mhai_backward *pass, const mha_shape *shape, const mha_view *q,
                          const mha_view *k, const mha_view *v, const mha_view *o,
                          const mha_options *options, const mha_gradients *gradients)
{
    mha_status status;
    if ((status = read_problem(pass, shape, options)) || (status = read_gradients(pass, gradients)))
        return status;
    mhai_set_views(&pass->call, *q, *k, *v, (mha_out){0});
    pass->o = *o;
    return MHA_OK;
}

mha_status mha_attention_backward_check(const mha_shape *shape, mha_view q, mha_view k, mha_view v,
                                        mha_view o, const mha_options *options,
                                        const mha_gradients *gradients)
{
    mhai_backward pass;
    mha_status status = prepare(&pass, shape, &q, &k, &v, &o, options, gradients);
    if (status || is_empty(&pass.call.shape))
        return status;
    if ((status = mhai_check_lists(&pass.call)))
        return status;
    return check_memory(&pass, NULL, 0);
}

mha_status mha_attention_backward(const mha_shape *shape, mha_view q, mha_view k, mha_view v,
                                  mha_view o, const mha_options *options,
                                  const mha_gradients *gradients, void *work, size_t work_size,
                                  mha_pool *pool)
{
    mhai_backward pass;
    mha_status status = prepare(&pass, shape, &q, &k, &v, &o, options, gradients);
    if (status)
        return status;
    const mha_options *const message = &pass.call.options;
    if (is_empty(&pass.call.shape))
        return MHA_OK;
    const size_t needed = mhai_backward_needs(&pass, mha_pool_threads(pool));
    if (work && work_size < needed)
        return mhai_fail(message, MHA_ERR_WORKSPACE,
                         "work has %zu bytes; %d threads need %zu (mha_backward_work_size)",
                         work_size, mha_pool_threads(pool), needed);
    if ((status = mhai_check_lists(&pass.call)) || (status = check_memory(&pass, work, needed)))
        return status;
    const mhai_buffer buffer = mhai_buffer_get(work, needed);
    if (!buffer.data)
        return mhai_fail(message, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
    mhai_backward_run(&pass, buffer.data, pool);
    mhai_buffer_free(buffer);
    return MHA_OK;
}
