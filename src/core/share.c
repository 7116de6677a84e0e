/* SPDX-License-Identifier: MIT */
/* Storey 5: tasks handed out by a counter until none is left. */
#include "core/internal.h"

#include <stdatomic.h>

typedef struct shared_tasks {
    void (*task)(void *arg, int worker, ptrdiff_t number);
    void *arg;
    ptrdiff_t count;
    atomic_ptrdiff_t next;
} shared_tasks;

static void work(void *arg, int index)
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
    mhai_pool_run(pool, (int)mhai_min(count, mha_pool_threads(pool)), work, &tasks);
}
