/* SPDX-License-Identifier: MIT */
/* Attention on the caller's own threads: an executor that starts one pthread a task. A program
 * that has a thread pool hands its tasks to that instead. */
#include <math.h>
#include <mha/mha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, H = 8, L = 128, D = 32 };

static float x[H][L][D], alone[H][L][D], together[H][L][D];

typedef struct job {
    void (*task)(void *arg, int index);
    void *arg;
    int index;
} job;

static void *work(void *data)
{
    const job *mine = data;
    mine->task(mine->arg, mine->index);
    return NULL;
}

/* Task 0 runs here. A task whose thread cannot be started runs here too: every index runs once. */
static void run(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    pthread_t threads[THREADS];
    job jobs[THREADS];
    int started[THREADS] = {0};
    for (int t = 1; t < tasks; t++) {
        jobs[t] = (job){task, arg, t};
        started[t] = pthread_create(&threads[t], NULL, work, &jobs[t]) == 0;
    }
    for (int t = 0; t < tasks; t++)
        if (!started[t])
            task(arg, t);
    for (int t = 1; t < tasks; t++)
        if (started[t])
            pthread_join(threads[t], NULL);
    *(int *)context += tasks;
}

static mha_status attend(float *out, mha_pool *pool)
{
    const mha_shape shape = {.B = 1, .H = H, .L = L, .S = L, .D = D};
    const mha_view in = mha_view_bhld(x, H, L, D);
    return mha_attention(&shape, in, in, in, mha_out_bhld(out, H, L, D), NULL, pool);
}

int main(void)
{
    for (int i = 0; i < H * L * D; i++)
        (&x[0][0][0])[i] = sinf((float)i * 0.37f);

    int tasks_run = 0;
    const mha_executor executor = {
        .size = sizeof executor, .context = &tasks_run, .threads = THREADS, .run = run};
    mha_pool *pool = NULL;
    mha_status status = mha_pool_create_from(&pool, &executor);
    if (status == MHA_OK)
        status = attend(&together[0][0][0], pool);
    if (status == MHA_OK)
        status = attend(&alone[0][0][0], NULL);
    mha_pool_free(pool);

    const int same = memcmp(alone, together, sizeof alone) == 0;
    printf("%s: %d tasks on the caller's threads; %s\n", mha_status_string(status), tasks_run,
           same ? "same bits as one thread" : "DIFFERENT from one thread");
    return status != MHA_OK || !same || tasks_run == 0;
}
