/* SPDX-License-Identifier: MIT */
/* Wrappers of malloc() and its relatives, pthread_create() and pthread_join() (faults.h). */
#include "support/faults.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void __real_free(void *memory);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __real_pthread_join(pthread_t thread, void **result);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void __wrap_free(void *memory);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);

/* Requests are counted from 1; with `fail_at` 0 none fails. */
static struct {
    atomic_int requests[RESOURCES];
    atomic_int fail_at[RESOURCES];
    atomic_bool for_ever[RESOURCES];
    atomic_int live[RESOURCES]; /* allocated while armed, and not yet freed or joined */
    atomic_bool armed;
    atomic_llong bytes, peak; /* allocated while armed, and not yet freed */
} faults;

static bool refuse(resource kind)
{
    if (!atomic_load(&faults.armed))
        return false;
    const int request = atomic_fetch_add(&faults.requests[kind], 1) + 1;
    const int fail_at = atomic_load(&faults.fail_at[kind]);
    return fail_at > 0 &&
           (request == fail_at || (request > fail_at && atomic_load(&faults.for_ever[kind])));
}

static void count_live(resource kind, int change)
{
    if (atomic_load(&faults.armed))
        atomic_fetch_add(&faults.live[kind], change);
}

static void count_bytes(long long change)
{
    if (!atomic_load(&faults.armed))
        return;
    const long long now = atomic_fetch_add(&faults.bytes, change) + change;
    long long peak = atomic_load(&faults.peak);
    while (now > peak && !atomic_compare_exchange_weak(&faults.peak, &peak, now))
        continue;
}

static void *counted(void *memory)
{
    if (memory) {
        count_live(MEMORY, 1);
        count_bytes((long long)malloc_usable_size(memory));
    }
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return refuse(MEMORY) ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse(MEMORY) ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (refuse(MEMORY))
        return NULL;
    const size_t before = old ? malloc_usable_size(old) : 0;
    void *memory = __real_realloc(old, size);
    if (!old)
        return counted(memory);
    if (memory)
        count_bytes((long long)malloc_usable_size(memory) - (long long)before);
    return memory;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return refuse(MEMORY) ? NULL : counted(__real_aligned_alloc(alignment, size));
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (refuse(MEMORY))
        return ENOMEM;
    const int error = __real_posix_memalign(memory, alignment, size);
    if (error == 0)
        counted(*memory);
    return error;
}

void __wrap_free(void *memory)
{
    if (memory) {
        count_live(MEMORY, -1);
        count_bytes(-(long long)malloc_usable_size(memory));
    }
    __real_free(memory);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    if (refuse(THREAD))
        return EAGAIN;
    const int error = __real_pthread_create(thread, attributes, start, argument);
    if (error == 0)
        count_live(THREAD, 1);
    return error;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    count_live(THREAD, -1);
    return __real_pthread_join(thread, result);
}

void faults_arm(resource kind, int fail_at, bool for_ever)
{
    for (int i = 0; i < RESOURCES; i++) {
        atomic_store(&faults.requests[i], 0);
        atomic_store(&faults.fail_at[i], 0);
        atomic_store(&faults.live[i], 0);
    }
    atomic_store(&faults.bytes, 0);
    atomic_store(&faults.peak, 0);
    atomic_store(&faults.fail_at[kind], fail_at);
    atomic_store(&faults.for_ever[kind], for_ever);
    atomic_store(&faults.armed, true);
}

void faults_disarm(void)
{
    atomic_store(&faults.armed, false);
}

int faults_requests(resource kind)
{
    return atomic_load(&faults.requests[kind]);
}

int faults_left(resource kind)
{
    return atomic_load(&faults.live[kind]);
}

size_t faults_peak(void)
{
    return (size_t)atomic_load(&faults.peak);
}
