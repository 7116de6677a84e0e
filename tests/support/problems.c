/* SPDX-License-Identifier: MIT */
/* The thin layer between src/problem and the test harness: what fails there becomes a CHECK here.
 */
#include "support/problems.h"

#include <stdio.h>
#include <stdlib.h>

static problem *allocate(void)
{
    problem *const p = malloc(sizeof *p);
    if (!p)
        abort();
    return p;
}

problem *problem_new(const problem_spec *spec)
{
    problem *const p = allocate();
    char message[WORD_MESSAGE_MAX];
    if (!problem_build(p, spec, message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        abort();
    }
    return p;
}

problem *problem_new_word(const char *text, uint64_t seed)
{
    problem *const p = allocate();
    problem_word word;
    char message[WORD_MESSAGE_MAX];
    if (!word_parse(&word, text, message, sizeof message) ||
        !problem_create(p, &word, seed, message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        abort();
    }
    return p;
}

problem *problem_new_bare(const problem_spec *spec)
{
    problem *const p = allocate();
    const problem_word word = problem_spec_word(spec);
    problem_begin(p, spec, &word);
    return p;
}

problem *problem_new_layout(const problem *original, uint64_t seed)
{
    problem *const p = allocate();
    if (!problem_relayout(p, original, seed))
        abort();
    return p;
}

void problem_delete(problem *p)
{
    problem_free(p);
    free(p);
}

static void run_checked(problem *p, mha_pool *pool, bool planned)
{
    problem_reset(p);
    p->message[0] = '\0';
    const mha_status status = planned ? problem_run_plan(p, pool) : call_run(&p->call, pool);
    CHECK(status == MHA_OK, "%s: %s, %s", p->name, mha_status_string(status), p->message);
}

void problem_run(problem *p, mha_pool *pool)
{
    run_checked(p, pool, false);
}

void problem_run_planned(problem *p, mha_pool *pool)
{
    run_checked(p, pool, true);
}

void problem_expect_untouched(const problem *p)
{
    for (int id = TENSOR_O; id < TENSOR_COUNT; id++) {
        const size_t touched = problem_touched(p, (tensor_id)id);
        CHECK(touched == 0, "%s: %zu bytes of output %d written that must not be", p->name, touched,
              id - TENSOR_O);
    }
}

double problem_expect(const problem *p, double limit)
{
    comparison result = {.limit = limit};
    compare_call(&p->call, &result);
    CHECK(result.failures == 0, "%s: %td wrong, first %s", p->name, result.failures, result.first);
    problem_expect_untouched(p);
    return result.worst;
}

snapshot snapshot_of(const problem *p)
{
    snapshot s;
    if (!snapshot_take(&s, p))
        abort();
    return s;
}

void slice_run(const slice *s, mha_pool *pool)
{
    const mha_status status = call_run(&s->call, pool);
    CHECK(status == MHA_OK, "slice: %s, %s", mha_status_string(status),
          s->call.options.message ? s->call.options.message : "");
}
