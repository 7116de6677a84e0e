/* SPDX-License-Identifier: MIT */
/*
 * Memory and threads that fail, see faults.h. Every function must answer with its status, leave
 * outputs alone, leak nothing, and work when it is called again.
 */
#include "support/call.h"
#include "support/faults.h"
#include "support/test.h"

/* ------------------------------------------------- the work that meets failures ---- */

/* A job uses `good` and returns the first status that is not MHA_OK; it frees all it made. */
typedef mha_status (*job)(const call *good);

static mha_status attend_alone(const call *good)
{
    return call_attend(good, NULL);
}

static mha_status plan_and_run(const call *good)
{
    return call_plan(good, NULL);
}

static mha_status pool_of_four(const call *good)
{
    mha_pool *pool = NULL;
    mha_status status = mha_pool_create(&pool, 4);
    CHECK((status == MHA_OK) == (pool != NULL), "pool and status disagree");
    if (status == MHA_OK)
        status = call_attend(good, pool);
    mha_pool_free(pool);
    return status;
}

static void run_in_order(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int i = 0; i < tasks; i++)
        task(arg, i);
}

static mha_status foreign_pool(const call *good)
{
    const mha_executor executor = {sizeof executor, NULL, 3, run_in_order};
    mha_pool *pool = NULL;
    mha_status status = mha_pool_create_from(&pool, &executor);
    CHECK((status == MHA_OK) == (pool != NULL), "pool and status disagree");
    if (status == MHA_OK)
        status = call_attend(good, pool);
    mha_pool_free(pool);
    return status;
}

static const struct {
    const char *name;
    job job;
} jobs[] = {
    {"attention", attend_alone},
    {"plan", plan_and_run},
    {"pool", pool_of_four},
    {"executor", foreign_pool},
};
enum { JOBS = sizeof jobs / sizeof jobs[0] };

/* Refuse request n, see the status and nothing else, then do the job again undisturbed. */
static void meet_failure(int which, resource kind, int n, bool for_ever, const call *wanted,
                         const call *blank, call *c)
{
    static const mha_status answers[] = {[MEMORY] = MHA_ERR_MEMORY, [THREAD] = MHA_ERR_THREAD};
    const char *name = jobs[which].name, *how = for_ever ? "for ever" : "once";
    call_clear(c);
    faults_arm(kind, n, for_ever);
    const mha_status status = jobs[which].job(c);
    faults_disarm();
    CHECK(status == answers[kind], "%s, request %d %s: %s", name, n, how,
          mha_status_string(status));
    CHECK(faults_left(MEMORY) == 0 && faults_left(THREAD) == 0,
          "%s, request %d %s: %d blocks, %d threads left", name, n, how, faults_left(MEMORY),
          faults_left(THREAD));
    CHECK(call_equal(c, blank), "%s, request %d %s: outputs written", name, n, how);
    CHECK(jobs[which].job(c) == MHA_OK, "%s does not work after request %d failed", name, n);
    CHECK(call_equal(c, wanted), "%s: other bits after request %d failed", name, n);
}

static void every_request_fails(call_kind kind, mha_shape shape)
{
    call *wanted = call_new(kind, &shape, 21), *blank = call_new(kind, &shape, 21);
    call *c = call_new(kind, &shape, 21);
    call_clear(blank);
    call_clear(wanted);
    CHECK(call_attend(wanted, NULL) == MHA_OK, "the call itself");
    for (int which = 0; which < JOBS; which++) {
        faults_arm(MEMORY, 0, false);
        CHECK(jobs[which].job(c) == MHA_OK, "%s undisturbed", jobs[which].name);
        faults_disarm();
        CHECK(faults_left(MEMORY) == 0 && faults_left(THREAD) == 0, "%s leaks", jobs[which].name);
        const int counts[] = {
            [MEMORY] = faults_requests(MEMORY), [THREAD] = faults_requests(THREAD)};
        CHECK(counts[MEMORY] > 0, "%s asks for no memory: are the wraps linked?", jobs[which].name);
        for (int i = 0; i < 2; i++)
            for (int n = 1; n <= counts[i]; n++) {
                meet_failure(which, (resource)i, n, false, wanted, blank, c);
                meet_failure(which, (resource)i, n, true, wanted, blank, c);
            }
    }
    call_free(wanted);
    call_free(blank);
    call_free(c);
}

static void small_calls(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++)
        every_request_fails((call_kind)kind, call_small_shape());
}

static void larger_calls(void)
{
    const mha_shape shape = {.B = 2, .H = 8, .G = 4, .L = 150, .S = 300, .D = 64, .Dv = 64};
    for (int kind = 0; kind < CALL_KINDS; kind++)
        every_request_fails((call_kind)kind, shape);
}

static void double_precision(void)
{
    mha_shape shape = call_small_shape();
    shape.q_type = shape.k_type = shape.v_type = shape.o_type = MHA_F64;
    for (int kind = 0; kind < CALL_KINDS; kind++)
        every_request_fails((call_kind)kind, shape);
}

/* ------------------------------------------------------------- what must not ask ---- */

static void plan_run_asks_for_nothing(void)
{
    const mha_shape shape = {.B = 2, .H = 8, .G = 4, .L = 100, .S = 200, .D = 64, .Dv = 64};
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        call *c = call_new((call_kind)kind, &shape, 22);
        mha_plan *plan = NULL;
        CHECK(mha_plan_create(&plan, &c->shape, &c->options) == MHA_OK, "plan");
        for (int threads = 0; threads < 2; threads++) {
            faults_arm(MEMORY, 1, true);
            const mha_status status = call_run_plan(c, plan, threads ? pool : NULL);
            faults_disarm();
            CHECK(status == MHA_OK, "kind %d: %s", kind, mha_status_string(status));
            CHECK(faults_requests(MEMORY) == 0 && faults_requests(THREAD) == 0,
                  "kind %d: %d blocks, %d threads", kind, faults_requests(MEMORY),
                  faults_requests(THREAD));
        }
        mha_plan_free(plan);
        call_free(c);
    }
    mha_pool_free(pool);
}

/* A wrong call is found before any memory is requested. */
static void errors_ask_for_nothing(void)
{
    const mha_shape shape = call_small_shape();
    call *c = call_new(CALL_FULL, &shape, 22);
    c->o.data = NULL;
    faults_arm(MEMORY, 1, true);
    const mha_status status = call_attend(c, NULL);
    faults_disarm();
    CHECK(status == MHA_ERR_NULL, "%s", mha_status_string(status));
    call_free(c);
}

static void failed_objects_are_null(void)
{
    const mha_shape shape = call_small_shape();
    const mha_executor executor = {sizeof executor, NULL, 2, run_in_order};
    mha_plan *plan = (mha_plan *)&shape;
    mha_pool *pool = (mha_pool *)&shape, *foreign = (mha_pool *)&shape;
    faults_arm(MEMORY, 1, true);
    const mha_status a = mha_plan_create(&plan, &shape, NULL);
    const mha_status b = mha_pool_create(&pool, 2);
    const mha_status c = mha_pool_create_from(&foreign, &executor);
    faults_disarm();
    CHECK(a == MHA_ERR_MEMORY && !plan, "plan: %s", mha_status_string(a));
    CHECK(b == MHA_ERR_MEMORY && !pool, "pool: %s", mha_status_string(b));
    CHECK(c == MHA_ERR_MEMORY && !foreign, "executor: %s", mha_status_string(c));
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(small_calls);
    RUN(larger_calls);
    RUN(double_precision);
    RUN(plan_run_asks_for_nothing);
    RUN(errors_ask_for_nothing);
    RUN(failed_objects_are_null);
    return test_end();
}
