/* SPDX-License-Identifier: MIT */
/*
 * What one rank is given for a run or a backward pass: read, checked, and put into one table of
 * tensors. Everything that can be wrong on this rank is found here, before the ranks agree.
 */
#include "mpi/mpi_parts.h"

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
    if (!call->backward && o->statistics)
        return fail(call, MHA_ERR_FLAG,
                    "statistics are not computed over ranks; take them of the weights");
    if ((o->q_starts != NULL) != (o->k_starts != NULL))
        return fail(call, MHA_ERR_FLAG, "queries and keys must both be packed, or neither");
    if (call->plan->shape.q_type == MHA_F64 && call->plan->scheme == MHA_MPI_RING)
        return fail(call, MHA_ERR_DTYPE, "MHA_MPI_RING is for f32, f16 and bf16");
    if (call->packed && call->plan->scheme == MHA_MPI_RING)
        return fail(call, MHA_ERR_FLAG, "MHA_MPI_RING has no packed sequences; use another scheme");
    return MHA_OK;
}

/* Weights are rows of all keys, as masks are; they travel back only as whole tensors. */
static mha_status check_weights(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    const mha_mpi_plan *const plan = call->plan;
    if (call->backward || !o->weights.data)
        return MHA_OK;
    if (o->weights_heads || o->weights_rows || (o->flags & MHA_AVERAGE_WEIGHTS))
        return fail(
            call, MHA_ERR_FLAG,
            "weights over ranks are of all heads and of all rows of this rank, not of chosen "
            "ones or their mean");
    if (call->packed || plan->scheme == MHA_MPI_RING || (o->q_lengths && plan->head_ranks > 1))
        return fail(call, MHA_ERR_FLAG,
                    "weights are for neither packed sequences nor MHA_MPI_RING, and with q_lengths "
                    "for MHA_MPI_GATHER only");
    return MHA_OK;
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

static bool needs_position(const mha_options *o)
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
    if (!needs_position(o) || o->position != MHA_POSITION_UNSET)
        return MHA_OK;
    for (ptrdiff_t b = 0; b < call->plan->shape.B; b++)
        if (queries_of(call, b) != keys_of(call, b))
            return fail(call, MHA_ERR_POSITION,
                        "causal, window or ALiBi with %td queries and %td keys in batch %td, but "
                        "no options.position",
                        queries_of(call, b), keys_of(call, b), b);
    return MHA_OK;
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
    t->batches = view.sb ? s->B : 1;
    if (t->data)
        t->sb = view.sb * (ptrdiff_t)t->element;
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
        add(call, MHAI_MPI_WEIGHTS, view_of(p->weights),
            (kind){&plan->queries, p->weights_type, s->S, R});
    const mha_view documents = {p->q_documents, p->q_documents_sb, 0, 1};
    add(call, MHAI_MPI_DOCUMENTS, documents, (kind){&plan->queries, MHA_F32, 1, 0});
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
    add_mask(call, MHAI_MPI_D_ADD, view_of(g->d_add_mask), MHA_F32);
    add_mask(call, MHAI_MPI_D_BIAS, view_of(g->d_bias), MHA_F32);
    call->sums[0] = g->d_sinks;
    call->sums[1] = g->d_alibi_slopes;
    call->sums[2] = g->d_gates;
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

/* Masks with rows that travel are laid out as rows of tokens. */
static mha_status check_masks(const mhai_mpi_call *call)
{
    const bool travel = call->backward || call->plan->head_ranks > 1;
    for (int n = MHAI_MPI_ATTEND; call->packed && travel && n <= MHAI_MPI_BIAS; n++)
        if (call->own[n].data && call->own[n].sl != 0)
            return fail(call, MHA_ERR_FLAG,
                        "masks and biases with rows go with packed sequences only in a run of "
                        "MHA_MPI_GATHER");
    return MHA_OK;
}

/* The options with a query axis, for this rank's rows and all keys. */
static mha_status check_rows(const mhai_mpi_call *call, mha_view q, mha_out o)
{
    mha_shape s = local_shape(call);
    mha_options rows = call->options;
    /* What has been checked for the whole, or does not depend on rows. */
    rows.q_lengths = rows.k_lengths = rows.q_starts = rows.k_starts = NULL;
    rows.position = MHA_POSITION_OFFSET;
    rows.offset = 0;
    rows.offsets = NULL;
    if (call->packed) {
        s.L = mhai_mpi_min(s.L, call->plan->shape.L);
        rows.attend_mask.data = rows.ignore_mask.data = NULL;
        rows.add_mask.data = rows.bias.data = NULL;
        rows.k_documents = NULL;
        rows.q_documents = NULL;
        rows.lse.data = NULL;
    }
    s.S = call->plan->shape.S;
    const mha_view keys = no_keys();
    return mha_attention_check(&s, q, keys, keys, o, &rows);
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
    return check_masks(call);
}

/* Which gradients of options a scheme has. */
static mha_status check_sums(const mhai_mpi_call *call)
{
    const mha_gradients *const g = &call->gradients;
    const mha_mpi_plan *const plan = call->plan;
    const mha_out *const biases[] = {&g->d_bias, &g->d_add_mask};
    const bool ring = plan->scheme == MHA_MPI_RING;
    for (int n = 0; n < 2; n++)
        if (biases[n]->data && plan->shape.S > 0 &&
            (ring || call->packed || biases[n]->sl == 0 || biases[n]->sh == 0 ||
             (biases[n]->sb == 0 && plan->shape.B > 1)))
            return fail(call, MHA_ERR_FLAG,
                        "gradients of biases and masks need strides of rows, heads and batches, "
                        "and neither packed sequences nor MHA_MPI_RING");
    if ((call->sums[1] || call->sums[2]) && (plan->teams > 1 || ring || call->packed))
        return fail(call, MHA_ERR_FLAG,
                    "gradients of slopes and gates are for MHA_MPI_ALL_TO_ALL without packed "
                    "sequences");
    if (call->sums[0] && (ring || call->packed))
        return fail(call, MHA_ERR_FLAG,
                    "gradients of sinks are for neither packed sequences nor MHA_MPI_RING");
    if (call->sums[2] && call->options.gates_sb != 0)
        return fail(call, MHA_ERR_FLAG, "gradients of gates are for gates of all batches");
    return MHA_OK;
}

/* The same for the options: a call on this rank's rows, keys of stride 0, and no outputs that have
 * rows of keys. */
static mha_status check_back_options(const mhai_mpi_call *call, mha_view q, mha_view o)
{
    mha_shape s = local_shape(call);
    mha_options rows = call->options;
    mha_gradients g = call->gradients;
    rows.q_lengths = rows.k_lengths = rows.q_starts = rows.k_starts = NULL;
    rows.position = MHA_POSITION_OFFSET;
    rows.offset = 0;
    rows.offsets = NULL;
    if (call->packed)
        return MHA_OK;
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
    if (status || (status = check_back_options(call, q, o)))
        return status;
    add_operands(call, &q, &k, &v, &o);
    add_gradients(call);
    if ((status = check_masks(call)))
        return status;
    return check_sums(call);
}

/* Gradients of biases are counted where they can be requested. */
mha_status mhai_mpi_call_pretend(mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    const mha_view any = {call, 0, 0, 0};
    const mha_out out = {call, 0, 0, 0};
    const bool biases = call->backward && !call->packed && call->plan->scheme != MHA_MPI_RING;
    call->gradients = (mha_gradients){.size = sizeof call->gradients};
    if (call->backward) {
        call->options.lse = call->options.lse.data ? call->options.lse : out;
        call->gradients.d_o = call->gradients.d_lse = any;
        call->gradients.d_q = call->gradients.d_k = call->gradients.d_v = out;
    }
    if (biases && o->bias.data && o->bias.sl && o->bias.sh)
        call->gradients.d_bias = (mha_out){call, o->bias.sb, o->bias.sh, o->bias.sl};
    if (biases && o->add_mask.data && o->add_mask.sl && o->add_mask.sh)
        call->gradients.d_add_mask =
            (mha_out){call, o->add_mask.sb, o->add_mask.sh, o->add_mask.sl};
    add_operands(call, &any, &any, &any, &any);
    if (call->backward)
        add_gradients(call);
    if (biases && o->sinks)
        call->sums[0] = (float *)(void *)call;
    return check_masks(call);
}

/* -------------------------------------------------------------- agreement ----- */

static uint64_t hash_array(uint64_t hash, const void *data, ptrdiff_t count, size_t size)
{
    const int64_t there = data != NULL;
    hash = mhai_mpi_hash(hash, &there, sizeof there);
    return data ? mhai_mpi_hash(hash, data, size * (size_t)count) : hash;
}

/* Which tensors the call has, and which of their axes are shared. */
static uint64_t hash_tensors(uint64_t hash, const mhai_mpi_call *call)
{
    for (int n = 0; n < MHAI_MPI_OPERANDS; n++) {
        const mhai_mpi_tensor *const t = &call->own[n];
        const bool mask = n >= MHAI_MPI_ATTEND && n <= MHAI_MPI_BIAS;
        const int64_t facts[] = {mask && t->data, mask && t->sl != 0, mask && t->per_group,
                                 mask ? t->batches : 0, mask ? (int64_t)t->element : 0};
        hash = mhai_mpi_hash(hash, facts, sizeof facts);
    }
    return hash;
}

static uint64_t hash_lists(uint64_t hash, const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    const mha_shape *const s = &call->plan->shape;
    hash = hash_array(hash, o->offsets, s->B, sizeof(int64_t));
    hash = hash_array(hash, o->q_lengths, s->B, sizeof(int64_t));
    hash = hash_array(hash, o->k_lengths, s->B, sizeof(int64_t));
    hash = hash_array(hash, o->q_starts, s->B + 1, sizeof(int64_t));
    hash = hash_array(hash, o->k_starts, s->B + 1, sizeof(int64_t));
    hash = hash_array(hash, o->alibi_slopes, s->H, sizeof(float));
    hash = hash_array(hash, o->sinks, s->H, sizeof(float));
    hash = hash_array(hash, o->head_modes, s->H, 1);
    for (ptrdiff_t b = 0; o->gates && b < (o->gates_sb ? s->B : 1); b++)
        hash = hash_array(hash, o->gates + b * o->gates_sb, s->H, sizeof(float));
    return hash;
}

uint64_t mhai_mpi_call_hash(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    const bool positions = needs_position(o), drops = (o->flags & MHA_TRAINING) && o->dropout > 0;
    const int64_t numbers[] = {call->backward,
                               o->flags,
                               positions ? (int64_t)o->position : 0,
                               positions ? o->offset : 0,
                               o->flags & MHA_WINDOW ? o->window_left : 0,
                               o->flags & MHA_WINDOW ? o->window_right : 0,
                               drops ? (int64_t)o->dropout_seed : 0,
                               drops ? o->dropout_first[0] : 0,
                               drops ? o->dropout_first[1] : 0,
                               drops ? o->dropout_first[2] : 0,
                               drops ? o->dropout_first[3] : 0,
                               o->k_documents != NULL,
                               o->q_documents != NULL,
                               o->lse.data != NULL,
                               call->own[MHAI_MPI_WEIGHTS].data != NULL,
                               call->own[MHAI_MPI_WEIGHTS].data ? (int64_t)o->weights_type : 0,
                               call->own[MHAI_MPI_WEIGHTS].data ? (int64_t)o->weights_mode : 0,
                               call->gradients.d_lse.data != NULL,
                               call->gradients.d_o_type,
                               call->gradients.d_q.data != NULL,
                               call->gradients.d_k.data != NULL,
                               call->gradients.d_v.data != NULL,
                               call->gradients.d_bias.data != NULL,
                               call->gradients.d_add_mask.data != NULL,
                               call->sums[0] != NULL,
                               call->sums[1] != NULL,
                               call->sums[2] != NULL};
    const float reals[] = {o->scale, o->softcap, drops ? o->dropout : 0.0f};
    uint64_t hash = mhai_mpi_hash(call->plan->hash, numbers, sizeof numbers);
    hash = mhai_mpi_hash(hash, reals, sizeof reals);
    hash = hash_lists(hash, call);
    return hash_tensors(hash, call);
}
