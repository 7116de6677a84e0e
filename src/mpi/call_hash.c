/* SPDX-License-Identifier: MIT */
/* What all ranks must be given alike, as one number. */
#include "mpi/mpi_parts.h"

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
        const bool statistics = n >= MHAI_MPI_ROW_STATISTICS;
        const int64_t facts[] = {(mask || statistics) && t->data, mask && t->sl != 0,
                                 mask && t->per_group, mask && t->sb != 0,
                                 mask ? (int64_t)t->element : 0};
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
    hash = hash_array(hash, o->head_modes ? o->head_means : NULL, s->H * s->Dv, sizeof(float));
    if (call->own[MHAI_MPI_WEIGHTS].data) {
        hash = hash_array(hash, o->weights_heads, o->weights_head_count, sizeof(int64_t));
        hash = hash_array(hash, o->weights_rows, o->weights_row_count, sizeof(int64_t));
    }
    for (ptrdiff_t b = 0; o->gates && b < (o->gates_sb ? s->B : 1); b++)
        hash = hash_array(hash, o->gates + b * o->gates_sb, s->H, sizeof(float));
    return hash;
}

/* Which results of heads, and which statistics. */
static uint64_t hash_shared(uint64_t hash, const mhai_mpi_call *call)
{
    const mha_statistics *const s = call->options.statistics;
    for (int n = 0; n < MHAI_MPI_SHARED; n++) {
        const int64_t facts[] = {call->shared[n].data != NULL, call->shared[n].batches};
        hash = mhai_mpi_hash(hash, facts, sizeof facts);
    }
    const int64_t numbers[] = {s != NULL, s ? s->first_keys : 0, s ? s->top : 0};
    return mhai_mpi_hash(hash, numbers, sizeof numbers);
}

uint64_t mhai_mpi_call_hash(const mhai_mpi_call *call)
{
    const mha_options *const o = &call->options;
    const bool positions = mhai_mpi_needs_position(o),
               drops = (o->flags & MHA_TRAINING) && o->dropout > 0;
    const int64_t numbers[] = {call->backward,
                               o->flags,
                               o->arithmetic,
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
                               o->gates_sb != 0};
    const double wide[] = {o->scale64, o->softcap64};
    const float reals[] = {o->scale, o->softcap, drops ? o->dropout : 0.0f};
    uint64_t hash = mhai_mpi_hash(call->plan->hash, numbers, sizeof numbers);
    hash = mhai_mpi_hash(hash, reals, sizeof reals);
    hash = mhai_mpi_hash(hash, wide, sizeof wide);
    hash = hash_lists(hash, call);
    hash = hash_shared(hash, call);
    return hash_tensors(hash, call);
}
