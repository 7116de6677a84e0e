/* SPDX-License-Identifier: MIT */
/*
 * Threads. The threads of a pool wait until a run hands out indices. The caller of the run takes
 * indices too, so a run ends even if no other thread ever wakes (for example after a fork).
 * mha_pool_run() hands out tasks by a counter, one index per thread.
 *
 * A model makes hundreds of short runs one after another, and waking a thread takes longer than
 * many of them. So a thread that waits first polls for some microseconds, and only then sleeps on a
 * condition. How long it polls adapts to how long it had to wait: longer if a little more would
 * have been enough, shorter if it was in vain, as for a pool that is rarely used.
 */
#include "core/internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* WebAssembly without shared memory has no threads. A pool has its threads in number only there:
 * the caller of a run takes all indices, as after a fork. */
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
enum { HAVE_THREADS = false };
#else
enum { HAVE_THREADS = true };
#endif

struct mha_pool {
    int threads;
    pid_t owner; /* the process that created the threads; after a fork the child has none of them */
    mha_executor executor; /* run is NULL: the pool's own threads below */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t wake;  /* there may be an index to take, or stop is set */
    pthread_cond_t done;  /* running has reached 0 */
    void (*work)(void *arg, int index);
    void *arg;
    int next, count;     /* indices [next, count) are still to be taken */
    atomic_int running;  /* taken but not finished; changed with the lock, polled without */
    atomic_uint changes; /* runs begun, and one more when stop is set; in the same way */
    int64_t begun;       /* when the last of these was, as now_ns() has it */
    int64_t patience;    /* of callers of runs */
    bool busy;           /* a run is in progress */
    bool stop;
    pthread_t created[];
};

/* --------------------------------------------------------------- polling ----- */

enum {
    PATIENCE_LEAST = 1000,   /* nanoseconds */
    PATIENCE_MOST = 100000,  /* about what the kernel takes to wake a thread of a virtual machine */
    POLLS_BETWEEN_CLOCKS = 8 /* reading the clock takes as long as a few of them */
};

static int64_t now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The patience of the next time, if polling for `needed` would have been enough this time. */
static int64_t adapted(int64_t patience, int64_t needed)
{
    const int64_t next = needed <= PATIENCE_MOST ? 2 * patience : patience / 2;
    return next < PATIENCE_LEAST ? PATIENCE_LEAST : next > PATIENCE_MOST ? PATIENCE_MOST : next;
}

/* Polls until the number of changes is another one than `seen`, or the time is over. */
static void poll_changes(const mha_pool *pool, unsigned seen, int64_t until)
{
    do
        for (int n = 0; n < POLLS_BETWEEN_CLOCKS; n++) {
            if (atomic_load_explicit(&pool->changes, memory_order_relaxed) != seen)
                return;
            pause_cpu();
        }
    while (now_ns() < until);
}

/* Polls until no index is running, or the time is over. */
static void poll_running(const mha_pool *pool, int64_t until)
{
    do
        for (int n = 0; n < POLLS_BETWEEN_CLOCKS; n++) {
            if (atomic_load_explicit(&pool->running, memory_order_relaxed) == 0)
                return;
            pause_cpu();
        }
    while (now_ns() < until);
}

/* ------------------------------------------------------------------ runs ----- */

/* Takes indices and runs them until none is left. Called and returns with the lock held. */
static void take_indices(mha_pool *pool)
{
    while (pool->next < pool->count) {
        const int index = pool->next++;
        atomic_fetch_add_explicit(&pool->running, 1, memory_order_relaxed);
        pthread_mutex_unlock(&pool->lock);
        pool->work(pool->arg, index);
        pthread_mutex_lock(&pool->lock);
        if (atomic_fetch_sub_explicit(&pool->running, 1, memory_order_relaxed) == 1 &&
            pool->next >= pool->count)
            pthread_cond_signal(&pool->done);
    }
}

static void *thread_main(void *arg)
{
    mha_pool *const pool = arg;
    int64_t patience = PATIENCE_LEAST;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        take_indices(pool);
        const unsigned seen = atomic_load_explicit(&pool->changes, memory_order_relaxed);
        pthread_mutex_unlock(&pool->lock);
        const int64_t start = now_ns();
        poll_changes(pool, seen, start + patience);
        pthread_mutex_lock(&pool->lock);
        while (atomic_load_explicit(&pool->changes, memory_order_relaxed) == seen)
            pthread_cond_wait(&pool->wake, &pool->lock);
        patience = adapted(patience, pool->begun - start);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void run_alone(int workers, void (*work)(void *arg, int index), void *arg)
{
    for (int index = 0; index < workers; index++)
        work(arg, index);
}

/* Tells all threads that there is an index to take, or that they shall stop. */
static void announce(mha_pool *pool)
{
    pool->begun = now_ns();
    atomic_fetch_add_explicit(&pool->changes, 1, memory_order_relaxed);
    pthread_cond_broadcast(&pool->wake);
}

/* Waits until no index is running. Called and returns with the lock held. */
static void wait_for_others(mha_pool *pool)
{
    if (atomic_load_explicit(&pool->running, memory_order_relaxed) == 0)
        return;
    const int64_t start = now_ns(), patience = pool->patience;
    pthread_mutex_unlock(&pool->lock);
    poll_running(pool, start + patience);
    pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->running, memory_order_relaxed) > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pool->patience = adapted(patience, now_ns() - start);
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
    announce(pool);
    take_indices(pool);
    wait_for_others(pool);
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

mha_pool *mhai_pool_worth(mha_pool *pool, double operations)
{
    /* Some 5 microseconds of one core: with less, even a thread that polls is of no use. */
    const double least = 2.5e5;
    return pool && !pool->executor.run && operations < least ? NULL : pool;
}

/* ------------------------------------------------------ create and free ----- */

static mha_pool *allocate(int threads)
{
    mha_pool *const pool = calloc(1, sizeof *pool + sizeof(pthread_t) * (size_t)threads);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    atomic_init(&pool->running, 0);
    atomic_init(&pool->changes, 0);
    pool->patience = PATIENCE_LEAST;
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
        threads = (int)mhai_min(mhai_cpu_count(), MHA_MAX_THREADS);
    mha_pool *const made = allocate(threads);
    if (!made)
        return MHA_ERR_MEMORY;
    for (; made->threads < threads; made->threads++)
        if (HAVE_THREADS &&
            pthread_create(&made->created[made->threads - 1], NULL, thread_main, made) != 0) {
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
    announce(pool);
    pthread_mutex_unlock(&pool->lock);
    if (HAVE_THREADS && !pool->executor.run)
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
