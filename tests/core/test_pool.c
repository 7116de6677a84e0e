/* SPDX-License-Identifier: MIT */
/*
 * Threads: pools of every size, pools on foreign threads, many runs at once. Whatever runs where,
 * the bits are those of the serial call.
 */
#define _GNU_SOURCE
#include "support/call.h"
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const mha_shape middle = {.B = 2, .H = 6, .G = 3, .L = 70, .S = 150, .D = 32, .Dv = 48};

/* ---------------------------------------------------------------- small helpers ---- */

/* The serial answer, for comparison. */
static call *solved(call_kind kind, const mha_shape *shape, uint64_t seed)
{
    call *c = call_new(kind, shape, seed);
    const mha_status status = call_attend(c, NULL);
    CHECK(status == MHA_OK, "serial: %s", mha_status_string(status));
    return c;
}

static void same_on_pool(const char *what, mha_pool *pool, call *c, const call *serial)
{
    call_clear(c);
    const mha_status status = call_attend(c, pool);
    CHECK(status == MHA_OK, "%s: %s", what, mha_status_string(status));
    CHECK(call_equal(c, serial), "%s: other bits than the serial call", what);
}

static void all_kinds_on_pool(const char *what, mha_pool *pool)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        call *serial = solved((call_kind)kind, &middle, 31);
        call *c = call_new((call_kind)kind, &middle, 31);
        same_on_pool(what, pool, c, serial);
        call_free(serial);
        call_free(c);
    }
}

static mha_pool *pool_of(int threads)
{
    mha_pool *pool = NULL;
    const mha_status status = mha_pool_create(&pool, threads);
    CHECK(status == MHA_OK, "%d threads: %s", threads, mha_status_string(status));
    CHECK(threads == 0 || mha_pool_threads(pool) == threads, "%d threads, not %d",
          mha_pool_threads(pool), threads);
    return pool;
}

/* ------------------------------------------------------------------- own pools ---- */

static void pools_of_every_size(void)
{
    for (int threads = 1; threads <= 64; threads += threads < 17 ? 1 : 7) {
        mha_pool *pool = pool_of(threads);
        all_kinds_on_pool("pool", pool);
        mha_pool_free(pool);
    }
    mha_pool *pool = pool_of(64);
    all_kinds_on_pool("pool of 64", pool);
    mha_pool_free(pool);
}

static void zero_threads_means_every_cpu(void)
{
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "affinity");
    mha_pool *pool = pool_of(0);
    const int cpus = CPU_COUNT(&set) < MHA_MAX_THREADS ? CPU_COUNT(&set) : MHA_MAX_THREADS;
    CHECK(mha_pool_threads(pool) == cpus, "%d threads for %d CPUs", mha_pool_threads(pool), cpus);
    mha_pool_free(pool);
}

static void pools_come_and_go(void)
{
    const mha_shape shape = call_small_shape();
    call *serial = solved(CALL_FULL, &shape, 1), *c = call_new(CALL_FULL, &shape, 1);
    for (int64_t i = 0; i < test_effort(1000); i++) {
        mha_pool *pool = pool_of(1 + (int)(i % 4));
        if (i % 10 == 0)
            same_on_pool("short-lived pool", pool, c, serial);
        mha_pool_free(pool);
    }
    call_free(serial);
    call_free(c);
}

static void many_runs_on_one_pool(void)
{
    mha_pool *pool = pool_of(3);
    call *serial = solved(CALL_PLAIN, &middle, 2), *c = call_new(CALL_PLAIN, &middle, 2);
    for (int64_t i = 0; i < test_effort(300); i++)
        same_on_pool("repeated run", pool, c, serial);
    mha_pool_free(pool);
    call_free(serial);
    call_free(c);
}

/* ----------------------------------------------------------------- many callers ---- */

typedef struct caller {
    const mha_plan *plan;
    mha_pool *pool;
    const call *serial;
    call *c;
    int64_t runs;
    int wrong;
    pthread_t thread;
} caller;

static void *run_repeatedly(void *argument)
{
    caller *me = argument;
    for (int64_t i = 0; i < me->runs; i++) {
        call_clear(me->c);
        const mha_status status =
            me->plan ? call_run_plan(me->c, me->plan, me->pool) : call_attend(me->c, me->pool);
        me->wrong += status != MHA_OK || !call_equal(me->c, me->serial);
    }
    return NULL;
}

enum { CALLERS = 5 };

/* All callers at once; pools[i] is the pool of caller i. */
static void run_callers(call_kind kind, bool planned, mha_pool *const *pools)
{
    caller callers[CALLERS];
    call *serial = solved(kind, &middle, 41);
    mha_plan *plan = NULL;
    if (planned)
        CHECK(mha_plan_create(&plan, &serial->shape, &serial->options) == MHA_OK, "plan");
    for (int i = 0; i < CALLERS; i++) {
        callers[i] =
            (caller){plan, pools[i], serial, call_new(kind, &middle, 41), test_effort(20), 0, 0};
        const size_t need = mha_plan_work_size(plan, mha_pool_threads(pools[i]));
        CHECK(need <= callers[i].c->work_size, "a workspace of %zu bytes", need);
    }
    for (int i = 0; i < CALLERS; i++)
        CHECK(pthread_create(&callers[i].thread, NULL, run_repeatedly, &callers[i]) == 0, "thread");
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        CHECK(callers[i].wrong == 0, "caller %d: %d wrong results", i, callers[i].wrong);
        call_free(callers[i].c);
    }
    mha_plan_free(plan);
    call_free(serial);
}

static void callers_share_a_pool(void)
{
    mha_pool *pool = pool_of(3);
    mha_pool *const pools[CALLERS] = {pool, pool, pool, pool, pool};
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        run_callers((call_kind)kind, true, pools);
        run_callers((call_kind)kind, false, pools);
    }
    mha_pool_free(pool);
}

static void callers_with_pools_of_their_own(void)
{
    mha_pool *const pools[CALLERS] = {pool_of(1), NULL, pool_of(2), pool_of(3), pool_of(4)};
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        run_callers((call_kind)kind, true, pools);
        run_callers((call_kind)kind, false, pools);
    }
    for (int i = 0; i < CALLERS; i++)
        mha_pool_free(pools[i]);
}

/* -------------------------------------------------------------- foreign threads ---- */

typedef void (*task_function)(void *arg, int index);

static void run_forwards(void *context, int tasks, task_function task, void *arg)
{
    atomic_int *most = context;
    if (tasks > atomic_load(most))
        atomic_store(most, tasks);
    for (int i = 0; i < tasks; i++)
        task(arg, i);
}

static void run_backwards(void *context, int tasks, task_function task, void *arg)
{
    (void)context;
    for (int i = tasks - 1; i >= 0; i--)
        task(arg, i);
}

typedef struct errand {
    task_function task;
    void *arg;
    int index;
    pthread_t thread;
} errand;

static void *run_errand(void *argument)
{
    const errand *e = argument;
    e->task(e->arg, e->index);
    return NULL;
}

/* A thread for every task but the first of them, which the caller does. */
static void run_on_new_threads(void *context, int tasks, task_function task, void *arg)
{
    errand errands[MHA_MAX_THREADS];
    (void)context;
    for (int i = 1; i < tasks; i++) {
        errands[i] = (errand){task, arg, i, 0};
        if (pthread_create(&errands[i].thread, NULL, run_errand, &errands[i]) != 0)
            abort();
    }
    if (tasks > 0)
        task(arg, 0);
    for (int i = 1; i < tasks; i++)
        pthread_join(errands[i].thread, NULL);
}

static void foreign_executors(void)
{
    static void (*const runs[])(void *, int, task_function, void *) = {run_forwards, run_backwards,
                                                                       run_on_new_threads};
    static const int counts[] = {1, 2, 3, 7, 64};
    for (int i = 0; i < 15; i++) {
        atomic_int most = 0;
        const mha_executor executor = {sizeof executor, &most, counts[i % 5], runs[i / 5]};
        mha_pool *pool = NULL;
        CHECK(mha_pool_create_from(&pool, &executor) == MHA_OK, "executor %d", i);
        CHECK(mha_pool_threads(pool) == executor.threads, "threads");
        all_kinds_on_pool("executor", pool);
        CHECK(atomic_load(&most) <= executor.threads, "%d tasks on %d threads", most,
              executor.threads);
        mha_pool_free(pool);
    }
}

/* An executor that uses libmha itself while it serves libmha, on its own pool and on another. */
typedef struct nest {
    mha_pool *pool; /* the pool on this very executor */
    mha_pool *other;
    int depth, met;
    const call *serial;
    call *inner;
} nest;

static void run_nested(void *context, int tasks, task_function task, void *arg)
{
    nest *n = context;
    n->depth++;
    for (int i = 0; i < tasks; i++) {
        task(arg, i);
        if (n->depth == 1) {
            same_on_pool("nested, alone", NULL, n->inner, n->serial);
            same_on_pool("nested, same pool", n->pool, n->inner, n->serial);
            same_on_pool("nested, other pool", n->other, n->inner, n->serial);
            n->met++;
        }
    }
    n->depth--;
}

static void nested_use(void)
{
    const mha_shape shape = call_small_shape();
    nest n = {NULL, pool_of(2), 0, 0, solved(CALL_FULL, &shape, 5), call_new(CALL_FULL, &shape, 5)};
    const mha_executor executor = {sizeof executor, &n, 4, run_nested};
    CHECK(mha_pool_create_from(&n.pool, &executor) == MHA_OK, "executor");
    all_kinds_on_pool("outer", n.pool);
    CHECK(n.met > 0, "the executor was not asked");
    mha_pool_free(n.pool);
    mha_pool_free(n.other);
    call_free((call *)n.serial);
    call_free(n.inner);
}

/* -------------------------------------------------------------- tasks of one's own ---- */

enum { CHORES = 1000 };

/* Who did what: how often each number came up, and whether a worker had two tasks at once. */
typedef struct chores {
    mha_pool *pool;
    int threads;
    atomic_int done[CHORES];
    atomic_bool busy[MHA_MAX_THREADS];
    atomic_int wrong, inner;
    ptrdiff_t last; /* looked at without a pool only */
} chores;

static void count_task(void *arg, int worker, ptrdiff_t number)
{
    chores *const c = arg;
    if (worker < 0 || worker >= c->threads || number < 0 || number >= CHORES) {
        atomic_fetch_add(&c->wrong, 1);
        return;
    }
    atomic_fetch_add(&c->wrong, atomic_exchange(&c->busy[worker], true));
    atomic_fetch_add(&c->done[number], 1);
    if (!c->pool) {
        atomic_fetch_add(&c->wrong, number != c->last + 1);
        c->last = number;
    }
    atomic_store(&c->busy[worker], false);
}

static void count_inner(void *arg, int worker, ptrdiff_t number)
{
    chores *const c = arg;
    (void)worker;
    (void)number;
    atomic_fetch_add(&c->inner, 1);
}

/* Every tenth task uses the pool itself. */
static void nesting_task(void *arg, int worker, ptrdiff_t number)
{
    chores *const c = arg;
    count_task(arg, worker, number);
    if (number % 10 == 0)
        mha_pool_run(c->pool, 7, count_inner, c);
}

static void all_tasks_once(mha_pool *pool, ptrdiff_t count, bool nested)
{
    chores *const c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->pool = pool;
    c->threads = mha_pool_threads(pool);
    c->last = -1;
    mha_pool_run(pool, count, nested ? nesting_task : count_task, c);
    for (ptrdiff_t n = 0; n < CHORES; n++)
        CHECK(c->done[n] == (n < count), "%d threads, %td tasks: number %td came up %d times",
              c->threads, count, n, c->done[n]);
    CHECK(c->wrong == 0, "%d threads, %td tasks: %d wrong", c->threads, count, c->wrong);
    const ptrdiff_t inner = nested ? 7 * ((count + 9) / 10) : 0;
    CHECK(c->inner == inner, "%d threads: %d inner tasks, not %td", c->threads, c->inner, inner);
    free(c);
}

static void tasks_of_ones_own(void)
{
    static const ptrdiff_t counts[] = {0, -1, PTRDIFF_MIN, 1, 2, 3, 40, CHORES};
    const mha_executor executor = {sizeof executor, NULL, 5, run_on_new_threads};
    mha_pool *pools[] = {NULL, pool_of(1), pool_of(2), pool_of(3), pool_of(9), NULL};
    CHECK(mha_pool_create_from(&pools[5], &executor) == MHA_OK, "executor");
    for (int p = 0; p < 6; p++) {
        for (int n = 0; n < 8; n++)
            all_tasks_once(pools[p], counts[n], false);
        for (int64_t n = 0; n < test_effort(50); n++)
            all_tasks_once(pools[p], 100, p > 0);
        mha_pool_run(pools[p], 5, NULL, NULL);
        mha_pool_free(pools[p]);
    }
}

/* ------------------------------------------------------------------------- fork ---- */

/* The child has none of the pool's threads; the serial call must not miss them. */
static void serial_call_after_fork(void)
{
    if (test_lacks("no fork()"))
        return;
    mha_pool *pool = pool_of(3);
    call *serial = solved(CALL_FULL, &middle, 6), *c = call_new(CALL_FULL, &middle, 6);
    same_on_pool("before the fork", pool, c, serial);
    const pid_t child = fork();
    if (child == 0) {
        call_clear(c);
        _exit(call_attend(c, NULL) == MHA_OK && call_equal(c, serial) ? 0 : 1);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child fails: %d", status);
    same_on_pool("after the fork", pool, c, serial);
    mha_pool_free(pool);
    call_free(serial);
    call_free(c);
}

/* ----------------------------------------------------------------------- stress ---- */

static mha_shape random_shape(test_random *random)
{
    mha_shape s = {0};
    s.B = 1 + test_random_below(random, 3);
    s.G = 1 + test_random_below(random, 3);
    s.H = s.G * (1 + test_random_below(random, 3));
    s.L = 1 + test_random_below(random, 80);
    s.S = s.L + test_random_below(random, 80);
    s.D = 1 + test_random_below(random, 70);
    s.Dv = 1 + test_random_below(random, 70);
    s.q_type = (mha_dtype)test_random_below(random, 3);
    s.k_type = (mha_dtype)test_random_below(random, 3);
    s.v_type = (mha_dtype)test_random_below(random, 3);
    s.o_type = (mha_dtype)test_random_below(random, 3);
    return s;
}

typedef struct mixer {
    mha_pool *pool;
    uint64_t seed;
    int64_t rounds;
    int wrong;
    pthread_t thread;
} mixer;

static void *mix(void *argument)
{
    mixer *me = argument;
    test_random random = {me->seed};
    for (int64_t i = 0; i < me->rounds; i++) {
        const mha_shape shape = random_shape(&random);
        const call_kind kind = (call_kind)test_random_below(&random, CALL_KINDS);
        const uint64_t seed = test_random_u64(&random);
        call *a = call_new(kind, &shape, seed), *b = call_new(kind, &shape, seed);
        me->wrong += call_attend(a, NULL) != MHA_OK;
        me->wrong += (i % 2 ? call_plan(b, me->pool) : call_attend(b, me->pool)) != MHA_OK;
        me->wrong += !call_equal(a, b);
        call_free(a);
        call_free(b);
    }
    return NULL;
}

static void mixed_stress(void)
{
    enum { MIXERS = 4 };
    mixer mixers[MIXERS];
    mha_pool *pools[2] = {pool_of(2), pool_of(3)};
    const uint64_t seed = test_seed(77);
    for (int i = 0; i < MIXERS; i++) {
        mixers[i] = (mixer){pools[i % 2], seed + (uint64_t)i, test_effort(150), 0, 0};
        CHECK(pthread_create(&mixers[i].thread, NULL, mix, &mixers[i]) == 0, "thread");
    }
    for (int i = 0; i < MIXERS; i++) {
        pthread_join(mixers[i].thread, NULL);
        CHECK(mixers[i].wrong == 0, "mixer %d: %d wrong", i, mixers[i].wrong);
    }
    mha_pool_free(pools[0]);
    mha_pool_free(pools[1]);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(pools_of_every_size);
    RUN(zero_threads_means_every_cpu);
    RUN(pools_come_and_go);
    RUN(many_runs_on_one_pool);
    RUN(callers_share_a_pool);
    RUN(callers_with_pools_of_their_own);
    RUN(foreign_executors);
    RUN(nested_use);
    RUN(tasks_of_ones_own);
    RUN(serial_call_after_fork);
    RUN(mixed_stress);
    return test_end();
}
