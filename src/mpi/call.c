/* SPDX-License-Identifier: MIT */
/*
 * What one rank is given for a run or a backward pass: read, checked, and put into one table of
 * tensors. Everything that can be wrong on this rank is found here, before the ranks agree.
 */
#include "mpi/mpi_parts.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- options ----- */

/* Every field; those that an older caller does not have are 0. The size was checked before. */
static void read_options(mhai_mpi_call *call, const mha_options *options)
{
    memset(&call->options, 0, sizeof call->options);
    if (options)
        memcpy(&call->options, options,
               options->size < sizeof *options ? options->size : sizeof *options);
    call->options.size = sizeof call->options;
}

#define fail(call, status, ...) \
    mhai_mpi_fail((call)->options.message, (call)->options.message_size, status, __VA_ARGS__)

static mha_status check_wishes(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    if (!call->backward && o->statistics && call->plan->scheme == MHA_MPI_RING)
        return fail(call, MHA_ERR_FLAG,
                    "MHA_MPI_RING has no statistics, which need all keys of a row at once; use "
                    "another scheme");
    if ((o->q_starts != NULL) != (o->k_starts != NULL))
        return fail(call, MHA_ERR_FLAG, "queries and keys must both be packed, or neither");
    if (call->plan->shape.q_type == MHA_F64 && call->plan->scheme == MHA_MPI_RING)
        return fail(call, MHA_ERR_DTYPE, "MHA_MPI_RING is for f32, f16 and bf16");
    return MHA_OK;
}

static mha_status check_chosen(const mhai_mpi_call *call, const char *name, const int64_t *list,
                               ptrdiff_t count, ptrdiff_t extent)
{
    if (list && count < 0)
        return fail(call, MHA_ERR_INDEX, "the count of options.%s is %td", name, count);
    for (ptrdiff_t n = 0; list && n < count; n++)
        if (list[n] < 0 || list[n] >= extent)
            return fail(call, MHA_ERR_INDEX, "options.%s[%td] is %lld; it must lie in [0, %td)",
                        name, n, (long long)list[n], extent);
    return MHA_OK;
}

/* The lists are those of the whole. */
static mha_status check_weights(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    const mha_shape *const s = &call->plan->shape;
    if (call->backward || !o->weights.data)
        return MHA_OK;
    const mha_status status =
        check_chosen(call, "weights_heads", o->weights_heads, o->weights_head_count, s->H);
    if (status)
        return status;
    if ((o->flags & MHA_AVERAGE_WEIGHTS) && (o->weights_heads ? o->weights_head_count : s->H) == 0)
        return fail(call, MHA_ERR_INDEX, "options.weights_head_count is 0; a mean needs a head");
    return check_chosen(call, "weights_rows", o->weights_rows, o->weights_row_count, s->L);
}

/* Whole rows of all heads of some rows are returned while these are computed. */
static bool has_weights_inside(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    return o->weights.data && !call->backward && !o->weights_heads && !o->weights_rows &&
           !(o->flags & MHA_AVERAGE_WEIGHTS) && !call->packed && call->plan->head_ranks == 1 &&
           call->plan->scheme != MHA_MPI_RING;
}

static mha_status check_starts(const mhai_mpi_call *call, const char *name, const int64_t *starts,
                               ptrdiff_t longest, ptrdiff_t tokens)
{
    const ptrdiff_t B = call->plan->shape.B;
    if (starts[0] != 0 || starts[B] != tokens)
        return fail(call, MHA_ERR_LENGTH, "%s goes from %lld to %lld; the layout has %td tokens",
                    name, (long long)starts[0], (long long)starts[B], tokens);
    for (ptrdiff_t b = 0; b < B; b++)
        if (starts[b + 1] < starts[b] || starts[b + 1] - starts[b] > longest)
            return fail(call, MHA_ERR_LENGTH, "%s: sequence %td has %lld tokens, of at most %td",
                        name, b, (long long)(starts[b + 1] - starts[b]), longest);
    return MHA_OK;
}

static mha_status check_lengths(const mhai_mpi_call *call, const char *name, const int64_t *lengths,
                                const int64_t *starts, ptrdiff_t extent)
{
    for (ptrdiff_t b = 0; lengths && b < call->plan->shape.B; b++) {
        const int64_t most = starts ? starts[b + 1] - starts[b] : extent;
        if (lengths[b] < 0 || lengths[b] > most)
            return fail(call, MHA_ERR_LENGTH, "%s[%td] is %lld, not from 0 to %lld", name, b,
                        (long long)lengths[b], (long long)most);
    }
    return MHA_OK;
}

/* Without packed sequences the layouts have the rows of the shape. */
static mha_status check_lists(const mhai_mpi_call *call)
{
    const mha_mpi_plan *const plan = call->plan;
    const mha_options *const o = &call->options;
    const mha_shape *const s = &plan->shape;
    mha_status status;
    if (call->packed &&
        ((status = check_starts(call, "q_starts", o->q_starts, s->L, plan->queries.tokens)) ||
         (status = check_starts(call, "k_starts", o->k_starts, s->S, plan->keys.tokens))))
        return status;
    if (!call->packed && (plan->queries.tokens != s->L || plan->keys.tokens != s->S))
        return fail(call, MHA_ERR_LENGTH,
                    "the layouts have %td queries and %td keys, the shape L = %td and S = %td",
                    plan->queries.tokens, plan->keys.tokens, s->L, s->S);
    if ((status = check_lengths(call, "q_lengths", o->q_lengths, o->q_starts, s->L)))
        return status;
    return check_lengths(call, "k_lengths", o->k_lengths, o->k_starts, s->S);
}

bool mhai_mpi_needs_position(const mha_options *o)
{
    return (o->flags & (MHA_CAUSAL | MHA_WINDOW)) != 0 || o->alibi_slopes != NULL;
}

static ptrdiff_t queries_of(const mhai_mpi_call *call, ptrdiff_t b)
{
    const mha_options *const o = &call->options;
    if (o->q_lengths)
        return (ptrdiff_t)o->q_lengths[b];
    return call->packed ? (ptrdiff_t)(o->q_starts[b + 1] - o->q_starts[b]) : call->plan->shape.L;
}

static ptrdiff_t keys_of(const mhai_mpi_call *call, ptrdiff_t b)
{
    const mha_options *const o = &call->options;
    if (o->k_lengths)
        return (ptrdiff_t)o->k_lengths[b];
    return call->packed ? (ptrdiff_t)(o->k_starts[b + 1] - o->k_starts[b]) : call->plan->shape.S;
}

/* Such an offset is beyond all rows, and still may be moved by any number of them. */
static int64_t clamp_offset(int64_t offset)
{
    const int64_t most = INT64_MAX / 2;
    return offset > most ? most : offset < -most ? -most : offset;
}

int64_t mhai_mpi_offset(const mhai_mpi_call *call, ptrdiff_t b)
{
    const mha_options *const o = &call->options;
    if (o->position == MHA_POSITION_BOTTOM_RIGHT)
        return keys_of(call, b) - queries_of(call, b);
    if (o->position != MHA_POSITION_OFFSET)
        return 0;
    return clamp_offset(o->offsets ? o->offsets[b] : o->offset);
}

/* A part of the call has other extents, so what unset means is decided by the whole. */
static mha_status check_position(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    if (!mhai_mpi_needs_position(o) || o->position != MHA_POSITION_UNSET)
        return MHA_OK;
    for (ptrdiff_t b = 0; b < call->plan->shape.B; b++)
        if (queries_of(call, b) != keys_of(call, b))
            return fail(call, MHA_ERR_POSITION,
                        "causal, window or ALiBi with %td queries and %td keys in batch %td, but "
                        "no options.position",
                        queries_of(call, b), keys_of(call, b), b);
    return MHA_OK;
}

/* Sums over all rows of a head are made by one rank, in the order of one call. */
static void take_whole_heads(mhai_mpi_call *call)
{
    call->plan = call->plan->whole ? call->plan->whole : call->plan;
}

mha_status mhai_mpi_call_read(mhai_mpi_call *call, const mha_mpi_plan *plan,
                              const mha_options *options, bool backward)
{
    mha_plan *whole;
    memset(call, 0, sizeof *call);
    call->plan = plan;
    call->backward = backward;
    call->exchange.group = plan->group;
    mha_status status = mha_plan_create(&whole, &plan->shape, options);
    mha_plan_free(whole);
    if (status == MHA_ERR_STRUCT)
        return status;
    read_options(call, options);
    call->packed = call->options.q_starts != NULL;
    if (status || (status = check_wishes(call)) || (status = check_weights(call)) ||
        (status = check_lists(call)))
        return status;
    /* A call without rows writes no statistics. */
    if (backward || plan->shape.L == 0 || plan->shape.D == 0)
        call->options.statistics = NULL;
    if (call->options.statistics)
        take_whole_heads(call);
    call->weights_inside = has_weights_inside(call);
    return check_position(call);
}

/* --------------------------------------------------------------- tensors ----- */

/* What a tensor is like, wherever it lies. */
typedef struct kind {
    const mhai_mpi_side *side;
    mha_dtype type;
    ptrdiff_t width, per_group;
} kind;

static void add(mhai_mpi_call *call, int which, mha_view view, kind k)
{
    const mha_mpi_plan *const plan = call->plan;
    const size_t element = mha_dtype_size(k.type);
    const ptrdiff_t e = (ptrdiff_t)element;
    /* What every call has is there even on a rank without rows, which gives no memory for it. */
    if (!view.data && (which <= MHAI_MPI_O || which == MHAI_MPI_D_O))
        view.data = call;
    if (!view.data)
        return;
    call->own[which] = (mhai_mpi_tensor){.data = (char *)(uintptr_t)view.data,
                                         .sb = call->packed ? 0 : view.sb * e,
                                         .sh = view.sh * e,
                                         .sl = view.sl * e,
                                         .bytes = (size_t)k.width * element,
                                         .element = element,
                                         .batches = call->packed ? 1 : plan->shape.B,
                                         .per_group = k.per_group,
                                         .side = k.side,
                                         .rows = &k.side->ranks[plan->group->rank]};
}

static mha_view view_of(mha_out out)
{
    return (mha_view){out.data, out.sb, out.sh, out.sl};
}

/* A mask or bias. One without a row axis is the whole's, and does not travel. */
static void add_mask(mhai_mpi_call *call, int which, mha_view view, mha_dtype type)
{
    const mha_shape *const s = &call->plan->shape;
    const kind k = {&call->plan->queries, type, s->S, view.sh ? s->H / s->G : 0};
    if (s->G == 0)
        return;
    add(call, which, view, k);
    mhai_mpi_tensor *const t = &call->own[which];
    t->batches = view.sb && !call->packed ? s->B : 1;
    t->starts = call->packed ? call->options.q_starts : NULL;
    t->sequences = s->B;
    if (t->data)
        t->sb = view.sb * (ptrdiff_t)t->element;
}

/* A part of statistics: `bytes` for every row of every head. */
static void add_array(mhai_mpi_call *call, int which, void *data, size_t bytes)
{
    const mha_shape *const s = &call->plan->shape;
    const mhai_mpi_rows *const rows = &call->plan->queries.ranks[call->plan->group->rank];
    const ptrdiff_t sl = (ptrdiff_t)bytes, sh = sl * (call->packed ? s->L : rows->rows);
    if (data && s->G > 0)
        call->own[which] = (mhai_mpi_tensor){.data = data,
                                             .sb = sh * s->H,
                                             .sh = sh,
                                             .sl = sl,
                                             .bytes = bytes,
                                             .element = 1,
                                             .batches = call->packed ? 1 : s->B,
                                             .starts = call->packed ? call->options.q_starts : NULL,
                                             .sequences = s->B,
                                             .per_group = s->H / s->G,
                                             .side = &call->plan->queries,
                                             .rows = rows};
}

static void add_statistics(mhai_mpi_call *call)
{
    const mha_shape *const s = &call->plan->shape;
    const mha_statistics *const from = call->options.statistics;
    const size_t top = (size_t)from->top, mean = sizeof *from->heads;
    const size_t columns = sizeof *from->columns * (size_t)s->S;
    add_array(call, MHAI_MPI_ROW_STATISTICS, from->rows, sizeof *from->rows);
    add_array(call, MHAI_MPI_TOP_KEYS, from->top_keys, sizeof *from->top_keys * top);
    add_array(call, MHAI_MPI_TOP_WEIGHTS, from->top_weights, sizeof *from->top_weights * top);
    call->shared[MHAI_MPI_HEAD_STATISTICS] = (mhai_mpi_result_of_heads){
        (char *)from->heads, s->H * (ptrdiff_t)mean, (ptrdiff_t)mean, mean, s->B};
    call->shared[MHAI_MPI_COLUMNS] = (mhai_mpi_result_of_heads){
        (char *)from->columns, s->H * (ptrdiff_t)columns, (ptrdiff_t)columns, columns, s->B};
}

static void add_operands(mhai_mpi_call *call, const mha_view *q, const mha_view *k,
                         const mha_view *v, const mha_view *o)
{
    const mha_mpi_plan *const plan = call->plan;
    const mha_shape *const s = &plan->shape;
    const mha_options *const p = &call->options;
    const ptrdiff_t R = s->G ? s->H / s->G : 1;
    const mha_dtype lse = s->q_type == MHA_F64 ? MHA_F64 : MHA_F32;
    add(call, MHAI_MPI_Q, *q, (kind){&plan->queries, s->q_type, s->D, R});
    add(call, MHAI_MPI_K, *k, (kind){&plan->keys, s->k_type, s->D, 1});
    add(call, MHAI_MPI_V, *v, (kind){&plan->keys, s->v_type, s->Dv, 1});
    add(call, MHAI_MPI_O, *o, (kind){&plan->queries, s->o_type, s->Dv, R});
    add(call, MHAI_MPI_LSE, view_of(p->lse), (kind){&plan->queries, lse, 1, R});
    /* MHA_I8: a byte. */
    add_mask(call, MHAI_MPI_ATTEND, p->attend_mask, MHA_I8);
    add_mask(call, MHAI_MPI_IGNORE, p->ignore_mask, MHA_I8);
    add_mask(call, MHAI_MPI_ADD, p->add_mask, p->add_mask_type);
    add_mask(call, MHAI_MPI_BIAS, p->bias, p->bias_type);
    if (!call->backward)
        add_mask(call, MHAI_MPI_WEIGHTS, view_of(p->weights), p->weights_type);
    if (p->statistics)
        add_statistics(call);
    const mha_view documents = {p->q_documents, p->q_documents_sb, 0, 1};
    add(call, MHAI_MPI_DOCUMENTS, documents, (kind){&plan->queries, MHA_F32, 1, 0});
}

/* Gradients of a bias or mask: with rows, or of keys for all rows. */
static void add_bias(mhai_mpi_call *call, int rows, int keys, mha_out out)
{
    const mha_shape *const s = &call->plan->shape;
    const ptrdiff_t e = (ptrdiff_t)sizeof(float);
    if (out.sl != 0)
        add_mask(call, rows, view_of(out), MHA_F32);
    else
        call->shared[keys] = (mhai_mpi_result_of_heads){
            out.data, out.sb * e, out.sh * e, sizeof(float) * (size_t)s->S, out.sb ? s->B : 1};
}

static mhai_mpi_result_of_heads sum_of(float *data, ptrdiff_t sb, ptrdiff_t batches)
{
    return (mhai_mpi_result_of_heads){(char *)data, sb * (ptrdiff_t)sizeof *data, sizeof *data,
                                      sizeof *data, batches};
}

static void add_gradients(mhai_mpi_call *call)
{
    const mha_mpi_plan *const plan = call->plan;
    const mha_shape *const s = &plan->shape;
    const mha_gradients *const g = &call->gradients;
    const ptrdiff_t R = s->G ? s->H / s->G : 1;
    add(call, MHAI_MPI_D_O, g->d_o, (kind){&plan->queries, g->d_o_type, s->Dv, R});
    add(call, MHAI_MPI_D_LSE, g->d_lse, (kind){&plan->queries, MHA_F32, 1, R});
    add(call, MHAI_MPI_D_Q, view_of(g->d_q), (kind){&plan->queries, MHA_F32, s->D, R});
    add(call, MHAI_MPI_D_K, view_of(g->d_k), (kind){&plan->keys, MHA_F32, s->D, 1});
    add(call, MHAI_MPI_D_V, view_of(g->d_v), (kind){&plan->keys, MHA_F32, s->Dv, 1});
    add_bias(call, MHAI_MPI_D_ADD, MHAI_MPI_D_ADD_KEYS, g->d_add_mask);
    add_bias(call, MHAI_MPI_D_BIAS, MHAI_MPI_D_BIAS_KEYS, g->d_bias);
    call->shared[MHAI_MPI_D_SINKS] = sum_of(g->d_sinks, 0, 1);
    call->shared[MHAI_MPI_D_SLOPES] = sum_of(g->d_alibi_slopes, 0, 1);
    const ptrdiff_t gates = call->options.gates_sb;
    call->shared[MHAI_MPI_D_GATES] = sum_of(g->d_gates, gates, gates ? s->B : 1);
}

/* ---------------------------------------------------------------- memory ----- */

/* The options of a call over this rank's rows and no mask, to check memory. */
static mha_options bare_options(const mhai_mpi_call *call)
{
    mha_options o = {.size = sizeof o};
    o.lse = call->options.lse;
    o.message = call->options.message;
    o.message_size = call->options.message_size;
    return o;
}

/* This rank's rows; packed ones are one batch. */
static mha_shape local_shape(const mhai_mpi_call *call)
{
    const mha_mpi_plan *const plan = call->plan;
    mha_shape s = plan->shape;
    s.B = call->packed ? 1 : s.B;
    s.L = plan->queries.ranks[plan->group->rank].rows;
    s.S = plan->keys.ranks[plan->group->rank].rows;
    return s;
}

/* Keys and values for checks of all that is not about them: they share one row. */
static mha_view no_keys(void)
{
    static const double row[MHA_MAX_HEAD_WIDTH] = {0.0};
    return (mha_view){row, 0, 0, 0};
}

/* The options for this rank's rows and all keys, without what has been checked for the whole or
 * does not depend on rows. Packed rows are one batch, which has no masks. */
static mha_options local_options(const mhai_mpi_call *call)
{
    mha_options rows = call->options;
    rows.q_lengths = rows.k_lengths = rows.q_starts = rows.k_starts = NULL;
    rows.position = MHA_POSITION_OFFSET;
    rows.offset = 0;
    rows.offsets = NULL;
    if (call->packed) {
        rows.attend_mask.data = rows.ignore_mask.data = NULL;
        rows.add_mask.data = rows.bias.data = NULL;
        rows.k_documents = NULL;
        rows.q_documents = NULL;
        rows.statistics = NULL;
    }
    return rows;
}

/* How many rows of weights a rank with chosen ones has. */
static ptrdiff_t count_chosen(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    const mhai_mpi_rows *const own = &call->plan->queries.ranks[call->plan->group->rank];
    ptrdiff_t most = 0;
    for (ptrdiff_t b = 0; b < (call->packed ? call->plan->shape.B : 1); b++) {
        ptrdiff_t count = 0;
        for (ptrdiff_t n = 0; n < o->weights_row_count; n++)
            count += mhai_mpi_chosen_run(call, own, b, o->weights_rows[n]) >= 0;
        most = mhai_mpi_max(most, count);
    }
    return most;
}

static mha_status check_local(const mhai_mpi_call *call, mha_view q, mha_out o,
                              const int64_t *chosen, ptrdiff_t count)
{
    mha_shape s = local_shape(call);
    mha_options rows = local_options(call);
    rows.weights_rows = chosen;
    rows.weights_row_count = count;
    if (call->packed) {
        s.L = mhai_mpi_min(s.L, call->plan->shape.L);
        rows.lse.data = NULL;
    }
    s.S = call->plan->shape.S;
    const mha_view keys = no_keys();
    return mha_attention_check(&s, q, keys, keys, o, &rows);
}

/* The options with a query axis. Of chosen rows it matters how many there are. */
static mha_status check_rows(const mhai_mpi_call *call, mha_view q, mha_out o)
{
    if (!call->options.weights.data || !call->options.weights_rows)
        return check_local(call, q, o, NULL, 0);
    const ptrdiff_t count = count_chosen(call);
    int64_t *const zeros = calloc((size_t)count + 1, sizeof *zeros);
    const mha_status status = zeros ? check_local(call, q, o, zeros, count) : MHA_ERR_MEMORY;
    free(zeros);
    return status;
}

mha_status mhai_mpi_call_run(mhai_mpi_call *call, mha_view q, mha_view k, mha_view v, mha_out o)
{
    const mha_shape s = local_shape(call);
    const mha_options bare = bare_options(call);
    const mha_view out = view_of(o);
    mha_status status = mha_attention_check(&s, q, k, v, o, &bare);
    if (status || (status = check_rows(call, q, o)))
        return status;
    add_operands(call, &q, &k, &v, &out);
    return MHA_OK;
}

/* Is this the gradient of a bias or mask that has no rows? */
static bool is_of_keys(const mhai_mpi_call *call, const mha_out *out)
{
    return out->data && out->sl == 0 && call->plan->shape.S > 0;
}

/* Are there sums over rows and keys? Those of sinks need no keys. */
static bool sums_over_pairs(const mhai_mpi_call *call)
{
    const mha_gradients *const g = &call->gradients;
    return g->d_alibi_slopes || g->d_gates || is_of_keys(call, &g->d_bias) ||
           is_of_keys(call, &g->d_add_mask);
}

/* Are all rows of a head needed on one rank? With packed sequences all gradients of options are
 * written by one call for all of them. */
static bool needs_whole_heads(const mhai_mpi_call *call)
{
    const mha_gradients *const g = &call->gradients;
    const bool any = g->d_sinks || g->d_bias.data || g->d_add_mask.data;
    return sums_over_pairs(call) || (any && call->packed);
}

/* Which gradients of options a scheme has. */
static mha_status check_sums(const mhai_mpi_call *call)
{
    const mha_gradients *const g = &call->gradients;
    const mha_shape *const s = &call->plan->shape;
    const mha_out *const biases[] = {&g->d_bias, &g->d_add_mask};
    for (int n = 0; n < 2; n++)
        if (biases[n]->data && s->S > 0 && s->H > 1 && biases[n]->sh == 0)
            return fail(call, MHA_ERR_FLAG,
                        "gradients of biases and masks that heads share are not computed over "
                        "ranks; give these a stride of heads, and add up the gradients");
        else if (biases[n]->data && call->packed && biases[n]->sl != 0 && biases[n]->sb == 0 &&
                 s->B > 1)
            return fail(call, MHA_ERR_FLAG,
                        "gradients of biases and masks with rows that packed sequences share are "
                        "not computed over ranks; request them for each sequence");
    if (call->plan->scheme == MHA_MPI_RING && sums_over_pairs(call))
        return fail(call, MHA_ERR_FLAG,
                    "MHA_MPI_RING has no gradients of slopes, gates and biases without rows, which "
                    "are sums over all pairs of rows and keys; use another scheme");
    return MHA_OK;
}

/* The same for the options: a call on this rank's rows, keys of stride 0, and no outputs that have
 * rows of keys. */
static mha_status check_back_options(const mhai_mpi_call *call, mha_view q, mha_view o)
{
    mha_shape s = local_shape(call);
    const mha_options rows = local_options(call);
    mha_gradients g = call->gradients;
    if (call->packed && ((g.d_bias.data && !call->options.bias.data) ||
                         (g.d_add_mask.data && !call->options.add_mask.data)))
        return fail(call, MHA_ERR_NULL, "the gradient of a bias or mask that the call has not");
    if (call->packed)
        g.d_bias.data = g.d_add_mask.data = NULL;
    g.d_k.data = g.d_v.data = NULL;
    s.S = call->plan->shape.S;
    const mha_view keys = no_keys();
    return mha_attention_backward_check(&s, q, keys, keys, o, &rows, &g);
}

mha_status mhai_mpi_call_backward(mhai_mpi_call *call, mha_view q, mha_view k, mha_view v,
                                  mha_view o, const mha_gradients *gradients)
{
    const mha_shape s = local_shape(call);
    const mha_options bare = bare_options(call);
    if (!gradients)
        return fail(call, MHA_ERR_NULL, "gradients is NULL");
    if (gradients->size != sizeof *gradients)
        return fail(call, MHA_ERR_STRUCT, "gradients.size is not that of the struct");
    call->gradients = *gradients;
    mha_gradients rows = call->gradients;
    rows.d_bias.data = rows.d_add_mask.data = NULL;
    rows.d_alibi_slopes = rows.d_sinks = rows.d_gates = NULL;
    mha_status status = mha_attention_backward_check(&s, q, k, v, o, &bare, &rows);
    if (status || (status = check_back_options(call, q, o)) || (status = check_sums(call)))
        return status;
    if (call->plan->shape.S == 0) /* these have no elements */
        call->gradients.d_bias.data = call->gradients.d_add_mask.data = NULL;
    if (needs_whole_heads(call))
        take_whole_heads(call);
    add_operands(call, &q, &k, &v, &o);
    add_gradients(call);
    return MHA_OK;
}

/* The gradient of a bias or mask, as it can be requested: it shares the axes that these share. */
static mha_out pretend_bias(mhai_mpi_call *call, const mha_view *bias, bool shared)
{
    const mha_shape *const s = &call->plan->shape;
    return bias->data && s->S > 0 && (bias->sh || s->H == 1) && (bias->sl || shared)
               ? (mha_out){call, bias->sb, bias->sh, bias->sl}
               : (mha_out){0};
}

void mhai_mpi_call_pretend(mhai_mpi_call *call, bool shared)
{
    const mha_options *const o = &call->options;
    const mha_view any = {call, 0, 0, 0};
    const mha_out out = {call, 0, 0, 0};
    float *const sums = (float *)(void *)call;
    call->gradients = (mha_gradients){.size = sizeof call->gradients};
    if (call->backward) {
        call->options.lse = call->options.lse.data ? call->options.lse : out;
        call->gradients.d_o = call->gradients.d_lse = any;
        call->gradients.d_q = call->gradients.d_k = call->gradients.d_v = out;
    }
    if (call->backward) {
        call->gradients.d_bias = pretend_bias(call, &o->bias, shared);
        call->gradients.d_add_mask = pretend_bias(call, &o->add_mask, shared);
    }
    if (call->backward && (shared || !call->packed || call->plan->scheme == MHA_MPI_RING))
        call->gradients.d_sinks = o->sinks ? sums : NULL;
    if (call->backward && shared) {
        call->gradients.d_alibi_slopes = o->alibi_slopes ? sums : NULL;
        call->gradients.d_gates = o->gates ? sums : NULL;
    }
    if (needs_whole_heads(call))
        take_whole_heads(call);
    add_operands(call, &any, &any, &any, &any);
    if (call->backward)
        add_gradients(call);
}
