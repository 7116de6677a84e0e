/* SPDX-License-Identifier: MIT */
/*
 * 8. Your own threads, your own memory.
 *
 * A program can keep control of its memory and its CPUs. What can be decided before the data is
 * there is decided once, in a plan; a run then works in a buffer that the caller owns and does not
 * allocate. Threads are those of a pool of the library, or of any executor the program has. None of
 * this changes a bit of the result:
 *
 *      one call              allocates a workspace, works on this thread, frees it
 *      plan + own buffer     the same, no allocation: here token by token, over keys and values
 *                            in our own arrays
 *      own executor          the same, on threads we started ourselves
 */
#include <mha/mha.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { THREADS = 4, H = 8, G = 2, T = 128, D = 32, E = H * D };

static float q[T][H][D], k[T][G][D], v[T][G][D];
static float one_call[T][H][D], stepwise[T][H][D], on_own_threads[T][H][D];

static mha_status attend(void *output, mha_pool *pool)
{
    const mha_shape shape = {.B = 1, .H = H, .G = G, .L = T, .S = T, .D = D};
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    return mha_attention(&shape, mha_view_blhd(q, H, T, D), mha_view_blhd(k, G, T, D),
                         mha_view_blhd(v, G, T, D), mha_out_blhd(output, H, T, D), &options, pool);
}

/* ---- a plan and a buffer ---- */

/* At token t only the first t + 1 keys count. */
static mha_status run_steps(const mha_plan *plan, void *work, size_t work_size)
{
    mha_status status = MHA_OK;
    for (int t = 0; t < T && status == MHA_OK; t++) {
        const int64_t length = t + 1;
        const mha_options options = {.size = sizeof options, .k_lengths = &length};
        status = mha_plan_run(plan, mha_view_blhd(q[t], H, 1, D), mha_view_blhd(k, G, T, D),
                              mha_view_blhd(v, G, T, D), mha_out_blhd(stepwise[t], H, 1, D),
                              &options, work, work_size, NULL);
    }
    return status;
}

/* One plan and one buffer for all steps. */
static mha_status token_by_token(void)
{
    const mha_shape shape = {.B = 1, .H = H, .G = G, .L = 1, .S = T, .D = D};
    const int64_t any_length = T;
    const mha_options options = {.size = sizeof options, .k_lengths = &any_length};
    mha_plan *plan = NULL;
    mha_status status = mha_plan_create(&plan, &shape, &options);
    const size_t work_size = mha_plan_work_size(plan, 1);
    void *work = malloc(work_size);
    if (status == MHA_OK)
        status = work ? run_steps(plan, work, work_size) : MHA_ERR_MEMORY;
    printf("%d tokens one by one, in a buffer of %zu bytes\n", T, work_size);
    free(work);
    mha_plan_free(plan);
    return status;
}

/* ---- an executor ---- */

typedef struct job {
    void (*task)(void *arg, int index);
    void *arg;
    int index;
} job;

static void *start(void *data)
{
    const job *mine = data;
    mine->task(mine->arg, mine->index);
    return NULL;
}

/*
 * One thread per task; a program with a thread pool passes the tasks to that instead. Task 0 runs
 * here. A task whose thread cannot be started runs here too: every index must run once.
 */
static void execute(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    pthread_t threads[THREADS];
    job jobs[THREADS];
    int started[THREADS] = {0};
    for (int t = 1; t < tasks; t++) {
        jobs[t] = (job){task, arg, t};
        started[t] = pthread_create(&threads[t], NULL, start, &jobs[t]) == 0;
    }
    for (int t = 0; t < tasks; t++)
        if (!started[t])
            task(arg, t);
    for (int t = 1; t < tasks; t++)
        if (started[t])
            pthread_join(threads[t], NULL);
    *(int *)context += tasks;
}

/* ---- a layer with our own buffer ---- */

/* The same for a whole layer: query how much memory a call needs, then provide it. */
static int layer_in_own_memory(mha_pool *pool)
{
    static float matrix[E][E], x[T][E], alone[T][E], together[T][E];
    numbers(&matrix[0][0], (size_t)E * E, 4, 0.1f);
    numbers(&x[0][0], (size_t)T * E, 5, 1.0f);
    const mha_matrix any = mha_matrix_out_in(matrix, MHA_F32, E);
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = H};
    const mha_layer_weights weights = {
        .size = sizeof weights, .q = any, .k = any, .v = any, .o = any};
    mha_layer *layer = NULL;
    if (mha_layer_create(&layer, &config, &weights) != MHA_OK)
        return 0;
    mha_layer_call call = {.size = sizeof call,
                           .B = 1,
                           .L = T,
                           .query = mha_view_ble(x, T, E),
                           .output = mha_out_ble(together, T, E)};
    const size_t work_size = mha_layer_work_size(layer, &call, mha_pool_threads(pool));
    void *work = malloc(work_size);
    int right = work && mha_layer_run(layer, &call, work, work_size, pool) == MHA_OK;
    call.output = mha_out_ble(alone, T, E);
    right &= mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK;
    right &= memcmp(alone, together, sizeof alone) == 0;
    printf("a layer in a buffer of %zu bytes: %s\n", work_size, right ? "same bits" : "WRONG");
    free(work);
    mha_layer_free(layer);
    return right;
}

int main(void)
{
    numbers(&q[0][0][0], (size_t)T * H * D, 1, 1.7f);
    numbers(&k[0][0][0], (size_t)T * G * D, 2, 1.7f);
    numbers(&v[0][0][0], (size_t)T * G * D, 3, 1.7f);

    int tasks_run = 0;
    const mha_executor executor = {
        .size = sizeof executor, .context = &tasks_run, .threads = THREADS, .run = execute};
    mha_pool *pool = NULL;
    int right = mha_pool_create_from(&pool, &executor) == MHA_OK;
    right &= attend(one_call, NULL) == MHA_OK;
    right &= attend(on_own_threads, pool) == MHA_OK;
    right &= token_by_token() == MHA_OK;
    right &= memcmp(one_call, on_own_threads, sizeof one_call) == 0;
    right &= memcmp(one_call, stepwise, sizeof one_call) == 0;
    printf("one call, %d tasks on our own threads, and token by token: %s\n", tasks_run,
           right ? "same bits" : "NOT the same");
    right &= tasks_run > 0;
    right &= layer_in_own_memory(pool);
    mha_pool_free(pool);
    return !right;
}
