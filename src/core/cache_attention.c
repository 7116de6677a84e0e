/* SPDX-License-Identifier: MIT */
/* The operator over a cache: a call whose keys, values and lengths come from the cache. */
#include "core/cache.h"
#include "core/plan.h"

static mha_status check_sequences(const mhai_call *call, const mha_options *message)
{
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        const int64_t sequence = call->sequences ? call->sequences[b] : b;
        if (sequence < 0 || sequence >= call->cache->config.sequences)
            return mhai_fail(message, MHA_ERR_SEQUENCE,
                             "batch %td reads sequence %lld; the cache has %td, numbered from 0", b,
                             (long long)sequence, call->cache->config.sequences);
    }
    return MHA_OK;
}

static mha_status check_extent(const mha_options *message, const char *name, ptrdiff_t given,
                               ptrdiff_t cached)
{
    if (given == 0 || given == cached)
        return MHA_OK;
    return mhai_fail(message, MHA_ERR_SHAPE,
                     "shape.%s is %td but the cache has %td; leave it 0 to take the cache's", name,
                     given, cached);
}

/* The shape with the cache's extents. For the checks the types of k and v stay f32, since callers
 * may not name i8. */
static mha_status complete_shape(const mha_cache *cache, const mha_shape *shape,
                                 const mha_options *message, mha_shape *full)
{
    mha_status status;
    const mha_cache_config *const c = &cache->config;
    if ((status = check_extent(message, "G", shape->G, c->G)) ||
        (status = check_extent(message, "D", shape->D, c->D)) ||
        (status = check_extent(message, "Dv", shape->Dv, c->Dv)))
        return status;
    if (shape->q_type == MHA_F64)
        return mhai_fail(message, MHA_ERR_DTYPE,
                         "shape.q_type is MHA_F64; caches work in f32, f16, bf16 and i8");
    *full = *shape;
    full->G = c->G;
    full->D = c->D;
    full->Dv = c->Dv;
    full->k_type = full->v_type = MHA_F32;
    return MHA_OK;
}

static ptrdiff_t longest(const mhai_call *call)
{
    ptrdiff_t most = 0;
    for (ptrdiff_t b = 0; b < call->shape.B; b++)
        most = mhai_max(most, (ptrdiff_t)call->cache->lengths[mhai_sequence(call, b)]);
    return most;
}

mha_status mhai_cache_columns(mhai_call *call)
{
    const ptrdiff_t most = longest(call);
    if (call->shape.S != 0 && call->shape.S < most)
        return mhai_fail(&call->options, MHA_ERR_SHAPE,
                         "S is %td columns but a sequence has %td tokens; use at least that many, "
                         "or 0",
                         call->shape.S, most);
    call->shape.S = mhai_max(call->shape.S, most);
    return MHA_OK;
}

static mha_status check_k_lengths(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    for (ptrdiff_t b = 0; o->k_lengths && b < call->shape.B; b++) {
        const int64_t most = call->cache->lengths[mhai_sequence(call, b)];
        if (o->k_lengths[b] < 0 || o->k_lengths[b] > most)
            return mhai_fail(o, MHA_ERR_LENGTH,
                             "options.k_lengths[%td] is %lld; its sequence has %lld tokens", b,
                             (long long)o->k_lengths[b], (long long)most);
    }
    return MHA_OK;
}

mha_status mhai_cache_check_dropped(const mhai_call *call)
{
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        const mhai_batch batch = mhai_batch_of(call, b);
        const ptrdiff_t first = (ptrdiff_t)call->cache->firsts[mhai_sequence(call, b)];
        for (ptrdiff_t i = 0; first > 0 && i < batch.queries; i++) {
            mhai_row row = {.i = i};
            mhai_row_range(call, &batch, &row);
            if (row.first < first && row.first < row.last)
                return mhai_fail(&call->options, MHA_ERR_WINDOW,
                                 "query %td of batch %td looks back to token %td; the ring has "
                                 "dropped all before %td. Use a window, or a larger ring",
                                 i, b, row.first, first);
        }
    }
    return MHA_OK;
}

mha_status mhai_cache_check(mhai_call *call)
{
    mha_status status;
    const mha_options *const o = &call->options;
    if (o->k_starts)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "options.k_starts does not go with a cache, which knows its sequences");
    if (!mhai_aligned(o->k_lengths, sizeof(int64_t)) ||
        !mhai_aligned(call->sequences, sizeof(int64_t)))
        return mhai_fail(o, MHA_ERR_ALIGN, "k_lengths or sequences is not aligned to its elements");
    if ((status = check_sequences(call, o)) || (status = check_k_lengths(call)) ||
        (status = mhai_cache_columns(call)))
        return status;
    if (o->position == MHA_POSITION_UNSET)
        call->options.position = MHA_POSITION_BOTTOM_RIGHT;
    return MHA_OK;
}

/* Reads and checks everything but the data. */
static mha_status prepare(const mha_cache *cache, const mha_shape *shape,
                          const mha_options *options, mhai_call *call, const mhak_table **kernels)
{
    mha_status status = mhai_options_read(options, &call->options);
    mha_shape full;
    if (status)
        return status;
    if (!cache || !shape)
        return mhai_fail(&call->options, MHA_ERR_NULL, "%s is NULL", cache ? "shape" : "cache");
    if ((status = complete_shape(cache, shape, &call->options, &full)) ||
        (status = mhai_check_problem(&full, call)) ||
        (status = mhai_kernels_for(&call->options, kernels)))
        return status;
    call->cache = cache;
    call->shape.k_type = cache->config.k_type;
    call->shape.v_type = cache->config.v_type;
    return MHA_OK;
}

/* Bytes for this call at any lengths that the cache can reach. */
static size_t work_bound(const mhai_call *call, const mhak_table *kernels, int threads)
{
    mha_plan plan;
    mhai_call longest_call = *call;
    longest_call.shape.S = mhai_max(call->shape.S, mhai_cache_reach(call->cache));
    mhai_plan_fill(&plan, &longest_call, kernels);
    return mhai_run_work_bound(&plan, threads);
}

size_t mha_cache_work_size(const mha_cache *cache, const mha_shape *shape,
                           const mha_options *options, int threads)
{
    mhai_call call = {0};
    const mhak_table *kernels = NULL;
    if (threads < 1 || threads > MHA_MAX_THREADS || prepare(cache, shape, options, &call, &kernels))
        return 0;
    return work_bound(&call, kernels, threads);
}

ptrdiff_t mhai_cache_reach(const mha_cache *cache)
{
    return cache->config.kind == MHA_CACHE_RING ? MHAI_MAX_EXTENT : cache->config.capacity;
}

static bool is_empty(const mha_shape *shape)
{
    return shape->B == 0 || shape->H == 0 || shape->L == 0 || shape->D == 0;
}

mha_status mha_cache_attention(const mha_cache *cache, const int64_t *sequences,
                               const mha_shape *shape, mha_view q, mha_out o,
                               const mha_options *options, void *work, size_t work_size,
                               mha_pool *pool)
{
    mhai_call call = {0};
    const mhak_table *kernels = NULL;
    mha_status status = prepare(cache, shape, options, &call, &kernels);
    if (status || is_empty(&call.shape))
        return status;
    call.sequences = sequences;
    call.q = q;
    call.o = o;
    const size_t needed = work_bound(&call, kernels, mha_pool_threads(pool));
    if (work && work_size < needed)
        return mhai_fail(&call.options, MHA_ERR_WORKSPACE,
                         "work has %zu bytes; %d threads need %zu (mha_cache_work_size)", work_size,
                         mha_pool_threads(pool), needed);
    if ((status = mhai_cache_check(&call)) || (status = mhai_check_data(&call, work, needed)) ||
        (status = mhai_cache_check_dropped(&call)))
        return status;
    const mhai_buffer buffer = mhai_buffer_get(work, needed);
    if (!buffer.data)
        return mhai_fail(&call.options, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace",
                         needed);
    mha_plan plan;
    mhai_plan_fill(&plan, &call, kernels);
    mhai_run_all(&plan, &call, buffer.data, pool);
    mhai_buffer_free(buffer);
    return MHA_OK;
}
