/* SPDX-License-Identifier: MIT */
/*
 * What `mha verify` does with a problem: runs it in several ways, compares the results with the
 * oracle (compare.c) and with each other.
 */
#include "problem/problem_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "problem/compare.h"
#include "problem/problem_slices.h"

__attribute__((format(printf, 2, 3))) static void blame(check_result *result, const char *format,
                                                        ...)
{
    if (result->failed)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(result->what, sizeof result->what, format, list);
    va_end(list);
    result->failed = true;
}

static bool run(problem *p, mha_pool *pool, bool planned, const char *name, check_result *result)
{
    problem_reset(p);
    p->message[0] = '\0';
    const mha_status status = planned ? problem_run_plan(p, pool) : call_run(&p->call, pool);
    if (status != MHA_OK)
        blame(result, "%s: %s (%s)", name, mha_status_string(status), p->message);
    return status == MHA_OK;
}

static void check_untouched(const problem *p, const char *name, check_result *result)
{
    static const char *const names[] = {"output", "log-sum-exp", "weights"};
    for (int id = TENSOR_O; id < TENSOR_COUNT; id++) {
        const size_t touched = problem_touched(p, (tensor_id)id);
        if (touched > 0)
            blame(result, "%s %s: %zu bytes outside the result were written", name,
                  names[id - TENSOR_O], touched);
    }
}

static void check_numbers(const problem *p, const problem *twin, check_result *result)
{
    comparison results[2] = {{.limit = CHECK_LIMIT}, {.limit = CHECK_LIMIT}};
    compare_twins(&p->call, &twin->call, results);
    result->output = results[0].output;
    result->lse = results[0].lse;
    result->weights = results[0].weights;
    result->f64 = results[1].worst;
    if (results[0].failures > 0)
        blame(result, "result: %td wrong, first %s", results[0].failures, results[0].first);
    if (results[1].failures > 0)
        blame(result, "f64: %td wrong, first %s", results[1].failures, results[1].first);
    check_untouched(p, "result", result);
    check_untouched(twin, "f64", result);
}

static void check_same_bits(problem *p, mha_pool *pool, check_result *result)
{
    const mha_options options = p->call.options;
    snapshot before;
    if (!snapshot_take(&before, p)) {
        blame(result, "out of memory");
        return;
    }
    if (run(p, pool, true, "planned run", result) && !snapshot_same(&before, p))
        blame(result, "other bits with a plan and a pool");
    p->call.options.lse = p->call.options.weights = (mha_out){0};
    p->call.options.statistics = NULL;
    snapshot_forget(&before, TENSOR_LSE);
    snapshot_forget(&before, TENSOR_WEIGHTS);
    if (run(p, pool, false, "run without extra outputs", result) && !snapshot_same(&before, p))
        blame(result, "other bits without log-sum-exp, weights and statistics");
    p->call.options = options;
    snapshot_free(&before);
}

void check_problem(problem *p, mha_pool *pool, check_result *result)
{
    problem twin;
    memset(result, 0, sizeof *result);
    if (!problem_twin(&twin, p)) {
        blame(result, "out of memory");
        return;
    }
    if (run(p, NULL, false, "run", result) && run(&twin, pool, false, "f64 run", result))
        check_numbers(p, &twin, result);
    problem_free(&twin);
    if (!result->failed)
        check_same_bits(p, pool, result);
}
