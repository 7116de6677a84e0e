/* SPDX-License-Identifier: MIT */
/*
 * Threads. The threads of a pool sleep on a condition until a run hands out indices. The caller of
 * the run takes indices too, so a run ends even if no other thread ever wakes (for example after a
 * fork). mha_pool_run() hands out tasks by a counter, one index per thread.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "core/internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct mha_pool {
    int threads;
    pid_t owner; /* the process that created the threads; after a fork the child has none of them */
    mha_executor executor; /* run is NULL: the pool's own threads below */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t wake;  /* there may be an index to take, or stop is set */
    pthread_cond_t done;  /* running has reached 0 */
    void (*work)(void *arg, int index);
    void *arg;
    int next, count; /* indices [next, count) are still to be taken */
    int running;     /* taken but not finished */
    bool busy;       /* a run is in progress */
    bool stop;
    pthread_t created[];
};

/* Takes indices and runs them until none is left. Called and returns with the lock held. */
static void take_indices(mha_pool *pool)
{
    while (pool->next < pool->count) {
        const int index = pool->next++;
        pool->running++;
        pthread_mutex_unlock(&pool->lock);
        pool->work(pool->arg, index);
        pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0 && pool->next >= pool->count)
            pthread_cond_signal(&pool->done);
    }
}

static void *thread_main(void *arg)
{
    mha_pool *const pool = arg;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        take_indices(pool);
        if (!pool->stop)
            pthread_cond_wait(&pool->wake, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void run_alone(int workers, void (*work)(void *arg, int index), void *arg)
{
    for (int index = 0; index < workers; index++)
        work(arg, index);
}

static void run_own(mha_pool *pool, int workers, void (*work)(void *arg, int index), void *arg)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->busy) {
        pthread_mutex_unlock(&pool->lock);
        run_alone(workers, work, arg);
        return;
    }
    pool->busy = true;
    pool->work = work;
    pool->arg = arg;
    pool->next = 0;
    pool->count = workers;
    pthread_cond_broadcast(&pool->wake);
    take_indices(pool);
    while (pool->running > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pool->busy = false;
    pthread_mutex_unlock(&pool->lock);
}

static void run_indices(mha_pool *pool, int workers, void (*work)(void *arg, int index), void *arg)
{
    if (!pool || workers <= 1)
        run_alone(workers, work, arg);
    else if (pool->executor.run)
        pool->executor.run(pool->executor.context, workers, work, arg);
    else
        run_own(pool, workers, work, arg);
}

/* ----------------------------------------------------------------- tasks ----- */

typedef struct shared_tasks {
    void (*task)(void *arg, int worker, ptrdiff_t number);
    void *arg;
    ptrdiff_t count;
    atomic_ptrdiff_t next;
} shared_tasks;

static void take_tasks(void *arg, int index)
{
    shared_tasks *const tasks = arg;
    for (;;) {
        const ptrdiff_t number = atomic_fetch_add_explicit(&tasks->next, 1, memory_order_relaxed);
        if (number >= tasks->count)
            return;
        tasks->task(tasks->arg, index, number);
    }
}

void mha_pool_run(mha_pool *pool, ptrdiff_t count,
                  void (*task)(void *arg, int worker, ptrdiff_t number), void *arg)
{
    if (!task || count < 1)
        return;
    shared_tasks tasks = {.task = task, .arg = arg, .count = count};
    atomic_init(&tasks.next, 0);
    run_indices(pool, (int)mhai_min(count, mha_pool_threads(pool)), take_tasks, &tasks);
}

/* ------------------------------------------------------ create and free ----- */

static int cpus_of_process(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int count = CPU_COUNT(&set);
    return count < MHA_MAX_THREADS ? count : MHA_MAX_THREADS;
}

static mha_pool *allocate(int threads)
{
    mha_pool *const pool = calloc(1, sizeof *pool + sizeof(pthread_t) * (size_t)threads);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->threads = 1;
    pool->owner = getpid();
    return pool;
}

mha_status mha_pool_create(mha_pool **pool, int threads)
{
    if (!pool)
        return MHA_ERR_NULL;
    *pool = NULL;
    if (threads < 0 || threads > MHA_MAX_THREADS)
        return MHA_ERR_THREAD;
    if (threads == 0)
        threads = cpus_of_process();
    mha_pool *const made = allocate(threads);
    if (!made)
        return MHA_ERR_MEMORY;
    for (; made->threads < threads; made->threads++)
        if (pthread_create(&made->created[made->threads - 1], NULL, thread_main, made) != 0) {
            mha_pool_free(made);
            return MHA_ERR_THREAD;
        }
    *pool = made;
    return MHA_OK;
}

mha_status mha_pool_create_from(mha_pool **pool, const mha_executor *executor)
{
    if (!pool)
        return MHA_ERR_NULL;
    *pool = NULL;
    if (!executor)
        return MHA_ERR_NULL;
    if (executor->size != sizeof *executor)
        return MHA_ERR_STRUCT;
    if (!executor->run)
        return MHA_ERR_NULL;
    if (executor->threads < 1 || executor->threads > MHA_MAX_THREADS)
        return MHA_ERR_THREAD;
    mha_pool *const made = allocate(0);
    if (!made)
        return MHA_ERR_MEMORY;
    made->executor = *executor;
    made->threads = executor->threads;
    *pool = made;
    return MHA_OK;
}

int mha_pool_threads(const mha_pool *pool)
{
    return pool ? pool->threads : 1;
}

static void end_threads(mha_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    if (!pool->executor.run)
        for (int n = 0; n < pool->threads - 1; n++)
            pthread_join(pool->created[n], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
}

void mha_pool_free(mha_pool *pool)
{
    if (!pool)
        return;
    if (pool->owner == getpid())
        end_threads(pool);
    free(pool);
}
