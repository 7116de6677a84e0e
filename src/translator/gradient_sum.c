/* SPDX-License-Identifier: MIT */
/* Sums along a binary tree (gradient_sum.h). As leaves come in order, at most one node of each
 * level waits; nodes change their place by exchanging pointers. */
#include "translator/gradient_sum.h"

#include <stdlib.h>

enum { PIECE = 1 << 16 }; /* numbers per task */

bool gradient_sum_init(gradient_sum *s, size_t count, int leaves)
{
    *s = (gradient_sum){.count = count};
    for (int level = 0; (leaves - 1) >> level > 0; level++) {
        s->levels[level] = malloc(count * sizeof *s->levels[level]);
        if (!s->levels[level])
            return false;
    }
    return true;
}

void gradient_sum_free(gradient_sum *s)
{
    for (int level = 0; level < GRADIENT_LEVELS_MAX; level++)
        free(s->levels[level]);
}

void gradient_sum_begin(gradient_sum *s)
{
    for (int level = 0; level < GRADIENT_LEVELS_MAX; level++)
        s->waits[level] = false;
}

typedef struct join_job {
    float *left;
    const float *right;
    size_t count;
} join_job;

static void join_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const join_job *const job = arg;
    const size_t first = (size_t)number * PIECE;
    const size_t count = job->count - first < PIECE ? job->count - first : PIECE;
    float *restrict const left = job->left + first;
    const float *restrict const right = job->right + first;
    for (size_t n = 0; n < count; n++)
        left[n] += right[n];
}

static void exchange(float **a, float **b)
{
    float *const kept = *a;
    *a = *b;
    *b = kept;
}

/* The node that waits, plus the right one in *data. */
static void join(gradient_sum *s, int level, float **data, mha_pool *pool)
{
    join_job job = {s->levels[level], *data, s->count};
    mha_pool_run(pool, (ptrdiff_t)((s->count + PIECE - 1) / PIECE), join_task, &job);
    exchange(&s->levels[level], data);
    s->waits[level] = false;
}

void gradient_sum_add(gradient_sum *s, int leaf, float **data, mha_pool *pool)
{
    int level = 0;
    for (; leaf >> level & 1; level++)
        join(s, level, data, pool);
    if (s->levels[level]) /* else this is the only leaf, or the root of the largest tree */
        exchange(&s->levels[level], data);
    s->waits[level] = s->levels[level] != NULL;
}

void gradient_sum_finish(gradient_sum *s, float **data, mha_pool *pool)
{
    bool found = false;
    for (int level = 0; level < GRADIENT_LEVELS_MAX; level++) {
        if (!s->waits[level])
            continue;
        if (found)
            join(s, level, data, pool);
        else
            exchange(&s->levels[level], data);
        s->waits[level] = false;
        found = true;
    }
}
