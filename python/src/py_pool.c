/* SPDX-License-Identifier: MIT */
/*
 * Thread pools: one per number of threads, created when it is first used. They are never freed: a
 * call on another thread may be using one, even while the process ends.
 *
 * A child process of fork() does not have the threads of its parent's pools. It therefore ignores
 * these pools, without freeing them, and creates its own.
 */
#include "py_numbers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mhap_pools {
    pid_t process;
    int threads;                               /* the default number; 0: one per CPU */
    mha_pool *of_threads[MHA_MAX_THREADS + 1]; /* by number of threads; NULL: not yet created */
};

/* The pools of this process. */
static mhap_pools *own_pools(mhap_state *state)
{
    if (!state->pools)
        state->pools = calloc(1, sizeof *state->pools);
    mhap_pools *const pools = state->pools;
    if (pools && pools->process != getpid()) {
        pools->process = getpid();
        memset(pools->of_threads, 0, sizeof pools->of_threads);
    }
    return pools;
}

static int find_pool(const mhap_state *state, mhap_pools *pools, int threads, mha_pool **pool)
{
    *pool = NULL;
    if (threads == 1)
        return 0;
    mha_pool **const own = &pools->of_threads[threads];
    if (!*own && mhap_check(state, mha_pool_create(own, threads), NULL))
        return -1;
    *pool = *own;
    return 0;
}

static int read_threads(const mhap_state *state, PyObject *object, int *threads)
{
    ptrdiff_t count = 0;
    if (mhap_integer(object, "threads", &count))
        return -1;
    if (count < 1 || count > MHA_MAX_THREADS)
        return mhap_fail(state, MHA_ERR_THREAD,
                         "threads is %td; use 1 to %d, or None for the default (set_threads)",
                         count, MHA_MAX_THREADS);
    *threads = (int)count;
    return 0;
}

int mhap_pool_for(mhap_state *state, PyObject *threads, mha_pool **pool)
{
    mhap_pools *const pools = own_pools(state);
    if (!pools) {
        PyErr_NoMemory();
        return -1;
    }
    int count = pools->threads;
    if (threads && read_threads(state, threads, &count))
        return -1;
    return find_pool(state, pools, count, pool);
}

PyObject *mhap_set_threads(PyObject *module, PyObject *count)
{
    mhap_state *const state = PyModule_GetState(module);
    mhap_pools *const pools = own_pools(state);
    if (!pools)
        return PyErr_NoMemory();
    int threads = 0;
    if (count != Py_None && read_threads(state, count, &threads))
        return NULL;
    pools->threads = threads;
    Py_RETURN_NONE;
}

PyObject *mhap_get_threads(PyObject *module, PyObject *unused)
{
    (void)unused;
    mha_pool *pool = NULL;
    if (mhap_pool_for(PyModule_GetState(module), NULL, &pool))
        return NULL;
    return PyLong_FromLong(mha_pool_threads(pool));
}
