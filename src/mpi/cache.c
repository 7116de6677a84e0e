/* SPDX-License-Identifier: MIT */
/*
 * A cache that is spread over ranks. Tokens are stored in chunks, each a sequence of its own in the
 * cache of the rank that has it; some chunks in a row, a block, belong to one rank, and blocks go
 * to ranks in turn. A query is attended to by chunk, and the partial results are merged along the
 * tree of chunks: a rank joins those it has, sends the rest to all, and all finish alike.
 */
#include "mpi/mpi_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PARTS = 7, DEFAULT_CHUNK = 1024, DEFAULT_BLOCK = 4 };

struct mha_mpi_cache {
    mha_mpi_group *group;
    mha_mpi_cache_config config; /* defaults filled in */
    ptrdiff_t chunks;            /* of this rank, for each sequence */
    int64_t *lengths;            /* [sequences] */
    mha_cache *own;              /* sequence s * chunks + n: chunk n of this rank */
};

#define fail(to, status, ...) mhai_mpi_fail((to)->message, (to)->message_size, status, __VA_ARGS__)

/* ------------------------------------------------------------- the chunks ----- */

static int owner_of(const mha_mpi_cache *c, ptrdiff_t chunk)
{
    return (int)(chunk / c->config.block % c->group->ranks);
}

/* Which of its rank's chunks it is. */
static ptrdiff_t place_of(const mha_mpi_cache *c, ptrdiff_t chunk)
{
    const ptrdiff_t round = c->config.block * c->group->ranks;
    return chunk / round * c->config.block + chunk % c->config.block;
}

static ptrdiff_t chunks_in(const mha_mpi_cache *c, ptrdiff_t tokens)
{
    return (tokens + c->config.chunk - 1) / c->config.chunk;
}

/* -------------------------------------------------------------- creation ----- */

static mha_status read_config(const mha_mpi_cache_config *given, mha_mpi_cache_config *c)
{
    if (!given)
        return MHA_ERR_NULL;
    if (given->size != sizeof *given)
        return MHA_ERR_STRUCT;
    *c = *given;
    c->chunk = c->chunk ? c->chunk : DEFAULT_CHUNK;
    c->block = c->block ? c->block : DEFAULT_BLOCK;
    c->Dv = c->Dv ? c->Dv : c->D;
    if (c->chunk < 1 || c->block < 1 || c->capacity < 1 || c->sequences < 1 ||
        c->capacity > PTRDIFF_MAX / 64 || c->chunk > PTRDIFF_MAX / 64)
        return fail(c, MHA_ERR_SHAPE, "sequences, capacity, chunk and block must be 1 or more");
    return MHA_OK;
}

static mha_status make(mha_mpi_cache *c)
{
    const mha_mpi_cache_config *const f = &c->config;
    const ptrdiff_t round = f->block * c->group->ranks;
    c->chunks = (chunks_in(c, f->capacity) + round - 1) / round * f->block;
    const mha_cache_config inner = {.size = sizeof inner,
                                    .sequences = f->sequences * c->chunks,
                                    .capacity = f->chunk,
                                    .G = f->G,
                                    .D = f->D,
                                    .Dv = f->Dv,
                                    .k_type = f->k_type,
                                    .v_type = f->v_type,
                                    .message = f->message,
                                    .message_size = f->message_size};
    c->lengths = calloc((size_t)f->sequences, sizeof *c->lengths);
    return c->lengths ? mha_cache_create(&c->own, &inner) : MHA_ERR_MEMORY;
}

mha_status mha_mpi_cache_create(mha_mpi_cache **cache, mha_mpi_group *group,
                                const mha_mpi_cache_config *config)
{
    mha_mpi_cache_config full = {.size = sizeof full};
    if (cache)
        *cache = NULL;
    if (!group)
        return MHA_ERR_NULL;
    mha_mpi_cache *const made = calloc(1, sizeof *made);
    mha_status status = cache ? read_config(config, &full) : MHA_ERR_NULL;
    if (!made)
        status = MHA_ERR_MEMORY;
    if (!status) {
        made->group = group;
        made->config = full;
        status = make(made);
    }
    const int64_t numbers[] = {full.sequences, full.capacity, full.chunk,  full.block, full.G,
                               full.D,         full.Dv,       full.k_type, full.v_type};
    status = mhai_mpi_agree(group, status,
                            mhai_mpi_hash(MHAI_MPI_HASH_START + 2, numbers, sizeof numbers),
                            full.message, full.message_size);
    if (status)
        mha_mpi_cache_free(made);
    else
        *cache = made;
    return status;
}

void mha_mpi_cache_free(mha_mpi_cache *cache)
{
    if (!cache)
        return;
    mha_cache_free(cache->own);
    free(cache->lengths);
    free(cache);
}

ptrdiff_t mha_mpi_cache_length(const mha_mpi_cache *cache, ptrdiff_t sequence)
{
    return cache && sequence >= 0 && sequence < cache->config.sequences
               ? (ptrdiff_t)cache->lengths[sequence]
               : -1;
}

/* --------------------------------------------------------------- appending ----- */

static mha_status check_tokens(const mha_mpi_cache *c, ptrdiff_t sequence, ptrdiff_t count,
                               const void *k, const void *v, mha_dtype k_type, mha_dtype v_type)
{
    if (sequence < 0 || sequence >= c->config.sequences)
        return MHA_ERR_SEQUENCE;
    if (count < 0)
        return MHA_ERR_SHAPE;
    if (count > c->config.capacity - c->lengths[sequence])
        return MHA_ERR_FULL;
    if ((unsigned)k_type > MHA_BF16 || (unsigned)v_type > MHA_BF16)
        return MHA_ERR_DTYPE;
    if (count > 0 && (!k || !v))
        return MHA_ERR_NULL;
    const bool aligned =
        (uintptr_t)k % mha_dtype_size(k_type) == 0 && (uintptr_t)v % mha_dtype_size(v_type) == 0;
    return aligned ? MHA_OK : MHA_ERR_ALIGN;
}

static mha_view from_row(mha_view view, mha_dtype type, ptrdiff_t row)
{
    view.data = (const char *)view.data + row * view.sl * (ptrdiff_t)mha_dtype_size(type);
    return view;
}

mha_status mha_mpi_cache_append(mha_mpi_cache *cache, ptrdiff_t sequence, ptrdiff_t count,
                                mha_view k, mha_dtype k_type, mha_view v, mha_dtype v_type)
{
    if (!cache)
        return MHA_ERR_NULL;
    const mha_mpi_cache_config *const f = &cache->config;
    mha_status status = check_tokens(cache, sequence, count, k.data, v.data, k_type, v_type);
    const int64_t numbers[] = {sequence, count};
    status =
        mhai_mpi_agree(cache->group, status,
                       mhai_mpi_hash(MHAI_MPI_HASH_START + 3, numbers, sizeof numbers), NULL, 0);
    if (status)
        return status;
    const ptrdiff_t length = (ptrdiff_t)cache->lengths[sequence];
    for (ptrdiff_t i = 0, part; !status && i < count; i += part) {
        const ptrdiff_t token = length + i, chunk = token / f->chunk;
        part = mhai_mpi_min(count - i, f->chunk - token % f->chunk);
        const int64_t place = sequence * cache->chunks + place_of(cache, chunk);
        if (owner_of(cache, chunk) == cache->group->rank)
            status = mha_cache_append(cache->own, 1, &place, part, NULL, from_row(k, k_type, i),
                                      k_type, from_row(v, v_type, i), v_type);
    }
    cache->lengths[sequence] += count;
    /* Nothing can fail after the checks. If it does, this rank lacks tokens. */
    if (status)
        cache->group->broken = status;
    return status;
}

/* --------------------------------------------------------------- attention ----- */

/* One batch of one call. */
typedef struct decoding {
    const mha_mpi_cache *cache;
    mha_shape shape; /* of one batch, outputs in f32 */
    mha_pool *pool;
    ptrdiff_t sequence, leaves;
    int *owners;   /* [leaves] */
    float **parts; /* [nodes]: what is known; NULL: nothing yet */
    size_t floats; /* of a part: outputs, then log-sum-exps */
    float *memory; /* room for all parts */
    mhai_mpi_exchange exchange;
    mha_status status;
} decoding;

static mha_out outputs_of(const decoding *d, float *part)
{
    return mha_out_bhld(part, d->shape.H, d->shape.L, d->shape.Dv);
}

static mha_out sums_of(const decoding *d, float *part)
{
    return mha_out_bhld(part + d->shape.H * d->shape.L * d->shape.Dv, d->shape.H, d->shape.L, 1);
}

static mha_view as_view(mha_out out)
{
    return (mha_view){out.data, out.sb, out.sh, out.sl};
}

static float *new_part(decoding *d)
{
    float *const part = d->memory;
    d->memory += d->floats;
    return part;
}

/* The result of a node: known, or that of its two. */
static float *result_of(decoding *d, int level, ptrdiff_t index)
{
    float **const part = &d->parts[mhai_mpi_tree_place(d->leaves, level, index)];
    if (*part)
        return *part;
    float *const left = result_of(d, level - 1, 2 * index);
    if (2 * index + 1 < mhai_mpi_tree_width(d->leaves, level - 1)) {
        float *const right = result_of(d, level - 1, 2 * index + 1);
        const mha_status status =
            mha_merge_pooled(&d->shape, outputs_of(d, left), sums_of(d, left),
                             as_view(outputs_of(d, right)), as_view(sums_of(d, right)), d->pool);
        if (status && !d->status)
            d->status = status;
    }
    return *part = left;
}

/* Partial results of this rank's chunks, which are batches of one call. */
static void attend(decoding *d, mha_view q, const mha_options *options, ptrdiff_t offset,
                   int64_t *lists)
{
    const mha_mpi_cache *const c = d->cache;
    int64_t *const sequences = lists, *const offsets = lists + d->leaves;
    ptrdiff_t count = 0;
    float *const first = d->memory;
    for (ptrdiff_t chunk = 0; chunk < d->leaves; chunk++)
        if (d->owners[chunk] == c->group->rank) {
            sequences[count] = d->sequence * c->chunks + place_of(c, chunk);
            offsets[count++] = offset - chunk * c->config.chunk;
            d->parts[chunk] = new_part(d);
        }
    mha_shape shape = d->shape;
    mha_options o = *options;
    const ptrdiff_t stride = (ptrdiff_t)d->floats;
    shape.B = count;
    shape.S = 0;
    q.sb = 0;
    o.position = MHA_POSITION_OFFSET;
    o.offsets = offsets;
    o.sinks = NULL;
    o.message = NULL;
    mha_out out = outputs_of(d, first), lse = sums_of(d, first);
    out.sb = lse.sb = stride;
    o.lse = lse;
    if (count > 0)
        d->status = mha_cache_attention(c->own, sequences, &shape, q, out, &o, NULL, 0, d->pool);
}

/* Every rank gets the nodes of all others that are part of no larger one of theirs. */
static void exchange_nodes(decoding *d)
{
    const mha_mpi_group *const group = d->cache->group;
    for (int level = 0; level <= mhai_mpi_tree_height(d->leaves); level++)
        for (ptrdiff_t index = 0; index < mhai_mpi_tree_width(d->leaves, level); index++) {
            const int owner = mhai_mpi_tree_holder(d->owners, d->leaves, level, index);
            float **const part = &d->parts[mhai_mpi_tree_place(d->leaves, level, index)];
            if (owner < 0)
                continue;
            const size_t bytes = sizeof(float) * d->floats;
            if (owner != group->rank) {
                *part = new_part(d);
                mhai_mpi_receive(&d->exchange, (char *)*part, bytes, owner, TAG_PARTS);
                continue;
            }
            const char *const data = (const char *)result_of(d, level, index);
            for (int n = 1; n < group->ranks; n++)
                mhai_mpi_send(&d->exchange, data, bytes, (group->rank + n) % group->ranks,
                              TAG_PARTS);
        }
    if (mhai_mpi_finish(&d->exchange))
        d->status = d->exchange.status;
}

static void store(const decoding *d, float *root, const mha_options *options, mha_dtype type,
                  mha_out o, mha_out lse)
{
    const mha_shape *const s = &d->shape;
    float *const sums = (float *)sums_of(d, root).data;
    for (ptrdiff_t n = 0; n < s->H * s->L; n++) {
        const ptrdiff_t h = n / s->L, i = n % s->L;
        mhai_mpi_add_sink(options->sinks ? &options->sinks[h] : NULL, root + n * s->Dv, s->Dv,
                          &sums[n]);
        mhai_mpi_narrow(type, root + n * s->Dv, s->Dv,
                        (char *)o.data + (h * o.sh + i * o.sl) * (ptrdiff_t)mha_dtype_size(type));
        if (lse.data)
            ((float *)lse.data)[h * lse.sh + i * lse.sl] = sums[n];
    }
}

/* An empty sequence has one leaf, which nobody has: its result is that of no keys. */
static float *finish_tree(decoding *d)
{
    if (d->cache->lengths[d->sequence] > 0)
        return result_of(d, mhai_mpi_tree_height(d->leaves), 0);
    float *const none = new_part(d);
    memset(none, 0, sizeof(float) * d->floats);
    float *const sums = (float *)sums_of(d, none).data;
    for (ptrdiff_t n = 0; n < d->shape.H * d->shape.L; n++)
        sums[n] = -INFINITY;
    return none;
}

static mha_status run_batch(decoding *d, mha_view q, mha_out o, const mha_options *options,
                            mha_out lse, mha_dtype type)
{
    const mha_mpi_cache *const c = d->cache;
    const ptrdiff_t length = (ptrdiff_t)c->lengths[d->sequence];
    const size_t nodes = (size_t)mhai_mpi_tree_place(d->leaves, mhai_mpi_tree_height(d->leaves), 1);
    const size_t bytes = sizeof(float) * d->floats;
    const size_t messages =
        ((size_t)c->group->ranks + 1) * (nodes + 1) * (mhai_mpi_messages(c->group, bytes) + 1);
    float *const memory = malloc(bytes * (nodes + 1) + 64);
    int64_t *const lists = malloc(sizeof *lists * 2 * (size_t)d->leaves);
    d->owners = malloc(sizeof *d->owners * (size_t)d->leaves);
    d->parts = calloc(nodes + 1, sizeof *d->parts);
    d->exchange =
        (mhai_mpi_exchange){.group = c->group, .requests = malloc(sizeof(MPI_Request) * messages)};
    d->memory = memory;
    if (!memory || !lists || !d->owners || !d->parts || !d->exchange.requests) {
        d->status = MHA_ERR_MEMORY;
    } else if (length > 0) {
        const ptrdiff_t offset =
            options->position == MHA_POSITION_OFFSET ? options->offset : length - d->shape.L;
        for (ptrdiff_t chunk = 0; chunk < d->leaves; chunk++)
            d->owners[chunk] = owner_of(c, chunk);
        attend(d, q, options, offset, lists);
        if (!d->status)
            exchange_nodes(d);
    }
    if (!d->status)
        store(d, finish_tree(d), options, type, o, lse);
    /* MPI may still write to it after an error. */
    if (!d->exchange.status) {
        free(memory);
        free(d->exchange.requests);
    }
    free(lists);
    free(d->owners);
    free(d->parts);
    return d->status;
}

/* Options that make sense for one chunk at a time. */
static mha_status check_options(const mha_options *o)
{
    const bool masks =
        o->attend_mask.data || o->ignore_mask.data || o->add_mask.data || o->bias.data;
    if (masks || o->weights.data || o->statistics || o->q_starts || o->k_starts || o->q_lengths ||
        o->k_lengths || o->q_documents || o->k_documents || o->offsets || o->head_modes ||
        (o->gates && o->gates_sb) || ((o->flags & MHA_TRAINING) && o->dropout > 0.0f))
        return fail(o, MHA_ERR_FLAG,
                    "a spread cache has causal masks, windows, ALiBi, sinks, gates and soft caps, "
                    "but no other options");
    if (o->position == MHA_POSITION_TOP_LEFT)
        return fail(o, MHA_ERR_POSITION, "queries follow the stored tokens, or have an offset");
    return MHA_OK;
}

static mha_status check_call(const mha_mpi_cache *c, const int64_t *sequences,
                             const mha_shape *shape, mha_view q, mha_out o,
                             const mha_options *given, mha_options *options, mha_shape *full)
{
    *options = (mha_options){.size = sizeof *options};
    if (!shape)
        return MHA_ERR_NULL;
    *full = *shape;
    full->G = c->config.G;
    full->D = c->config.D;
    full->Dv = c->config.Dv;
    full->S = 0;
    full->k_type = full->v_type = full->q_type;
    /* With one key that all share, for what does not depend on them. */
    mha_shape checked = *full;
    mha_options own = {.size = sizeof own};
    const mha_view key = {q.data, 0, 0, 0};
    if (given && given->size != sizeof *given)
        return MHA_ERR_STRUCT;
    if (given)
        *options = own = *given;
    if (own.position == MHA_POSITION_UNSET || own.position == MHA_POSITION_BOTTOM_RIGHT) {
        own.position = MHA_POSITION_OFFSET;
        own.offset = 0;
    }
    if (shape->q_type == MHA_F64)
        return fail(options, MHA_ERR_DTYPE, "a cache is for f32, f16 and bf16");
    const mha_status status = check_options(options);
    if (status)
        return status;
    for (ptrdiff_t b = 0; b < shape->B; b++)
        if (mha_mpi_cache_length(c, sequences ? (ptrdiff_t)sequences[b] : b) < 0)
            return fail(options, MHA_ERR_SEQUENCE, "batch %td has no sequence in the cache", b);
    return mha_attention_check(&checked, q, key, key, o, &own);
}

static uint64_t hash_call(const mha_shape *s, const mha_options *o)
{
    const int64_t numbers[] = {s->B,
                               s->H,
                               s->L,
                               s->q_type,
                               s->o_type,
                               o->flags,
                               (int64_t)o->position,
                               o->position == MHA_POSITION_OFFSET ? o->offset : 0,
                               o->window_left,
                               o->window_right,
                               o->sinks != NULL,
                               o->gates != NULL,
                               o->alibi_slopes != NULL};
    const float reals[] = {o->scale, o->softcap};
    const uint64_t hash = mhai_mpi_hash(MHAI_MPI_HASH_START + 4, numbers, sizeof numbers);
    return mhai_mpi_hash(hash, reals, sizeof reals);
}

static void *moved(const void *data, mha_dtype type, ptrdiff_t elements)
{
    return data ? (char *)(uintptr_t)data + elements * (ptrdiff_t)mha_dtype_size(type) : NULL;
}

mha_status mha_mpi_cache_attention(const mha_mpi_cache *cache, const int64_t *sequences,
                                   const mha_shape *shape, mha_view q, mha_out o,
                                   const mha_options *options, mha_pool *pool)
{
    mha_options own;
    mha_shape full = {0};
    if (!cache)
        return MHA_ERR_NULL;
    mha_status status = check_call(cache, sequences, shape, q, o, options, &own, &full);
    status =
        mhai_mpi_agree(cache->group, status, hash_call(&full, &own), own.message, own.message_size);
    for (ptrdiff_t b = 0; !status && full.L > 0 && full.H > 0 && b < full.B; b++) {
        decoding d = {.cache = cache,
                      .shape = full,
                      .pool = pool,
                      .sequence = sequences ? (ptrdiff_t)sequences[b] : b};
        const mha_view row = {moved(q.data, full.q_type, b * q.sb), 0, q.sh, q.sl};
        const mha_out to = {moved(o.data, full.o_type, b * o.sb), 0, o.sh, o.sl};
        const mha_out lse = {moved(own.lse.data, MHA_F32, b * own.lse.sb), 0, own.lse.sh,
                             own.lse.sl};
        d.shape.B = 1;
        d.shape.o_type = MHA_F32;
        d.floats = (size_t)(full.H * full.L * (full.Dv + 1));
        d.leaves = mhai_mpi_max(1, chunks_in(cache, (ptrdiff_t)cache->lengths[d.sequence]));
        status = run_batch(&d, row, to, &own, lse, full.o_type);
        if (status && cache->group->ranks > 1 && !cache->group->broken)
            cache->group->broken = status;
    }
    return status;
}
