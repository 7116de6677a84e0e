/* SPDX-License-Identifier: MIT */
/*
 * The memory of problems, by which reads and writes outside of tensors are found: guard pages stop
 * them at once, problem_touched() and snapshots see the bytes that they leave. Each of the three
 * has to notice a single byte, in every output of a problem.
 */
#include "support/problems.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ----------------------------------------------------------- guard pages ----- */

/* Whether a child that reads, or writes, this byte is killed by SIGSEGV. */
static bool faults(unsigned char *byte, bool write)
{
    const pid_t child = fork();
    if (child == 0) {
        volatile unsigned char *const at = byte;
        signal(SIGSEGV, SIG_DFL); /* sanitizers would write a report */
        if (write)
            *at = 0;
        else
            (void)*at;
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

/* The first byte outside faults; the last one inside does not. */
static void expect_guarded(unsigned char *memory, size_t bytes, bool front, const char *name)
{
    unsigned char *const outside = front ? memory - 1 : memory + bytes;
    unsigned char *const inside = front ? memory : memory + bytes - 1;
    CHECK(faults(outside, false), "%s: a read outside is not found", name);
    CHECK(faults(outside, true), "%s: a write outside is not found", name);
    CHECK(!faults(inside, true), "%s: a write inside faults", name);
}

static void expect_tensors_guarded(const problem *p, bool front)
{
    for (int id = 0; id < TENSOR_COUNT; id++) {
        const tensor *const t = &p->tensors[id];
        if (t->memory != NULL)
            expect_guarded(t->memory, t->bytes, front, p->name);
    }
}

static void guard_memory_faults(void)
{
    static const size_t sizes[] = {1, 63, 4096, 5000};
    for (int front = 0; front < 2; front++) {
        const problem_spec spec = {
            .shape = {.B = 2, .H = 2, .G = 1, .L = 5, .S = 7, .D = 8},
            .features = FEATURE_STRIDES | FEATURE_OUTPUTS | FEATURE_ATTEND | FEATURE_BIAS,
            .seed = 3,
            .memory = front ? &guard_memory_front : &guard_memory_back,
        };
        problem *const p = problem_new(&spec), *const copy = problem_new_layout(p, 4);
        problem twin;
        expect_tensors_guarded(p, front);
        expect_tensors_guarded(copy, front);
        if (CHECK(problem_twin(&twin, p), "no twin")) {
            expect_tensors_guarded(&twin, front);
            problem_free(&twin);
        }
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
            expect_guarded(problem_alloc(p, sizes[n]), sizes[n], front, "an array");
        problem_delete(copy);
        problem_delete(p);
    }
}

/* A tensor in guard memory begins with its first element and ends with its last one: else unused
 * elements would lie between them and the guard pages. */
static void guarded_tensors_are_exact(void)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        problem_spec spec = problem_spec_random(seed, 1e4);
        spec.features |= FEATURE_STRIDES;
        spec.memory = guard_memories[1 + seed % 2];
        problem *const p = problem_new(&spec);
        for (int id = 0; id < TENSOR_COUNT; id++) {
            const tensor *const t = &p->tensors[id];
            if (t->memory == NULL || t->bytes == 0 || t->n[2] == 0)
                continue;
            ptrdiff_t low = t->origin, high = t->origin + t->n[3];
            for (int axis = 0; axis < 3; axis++) {
                const ptrdiff_t reach = (t->n[axis] - 1) * t->s[axis];
                *(reach < 0 ? &low : &high) += reach;
            }
            CHECK(low == 0, "%s: tensor %d begins at element %td", p->name, id, low);
            CHECK((size_t)high * t->element == t->bytes, "%s: tensor %d ends at element %td",
                  p->name, id, high);
        }
        problem_delete(p);
    }
}

/* ------------------------------------------------------- untouched bytes ----- */

/* 1 for every byte of an output that a run has to write, else 0. */
static unsigned char *bytes_of_results(const problem *p, tensor_id id)
{
    const mha_options *const o = &p->call.options;
    tensor map = p->tensors[id];
    map.memory = calloc(map.bytes, 1);
    if (map.memory == NULL)
        abort();
    for (ptrdiff_t b = 0; b < p->call.shape.B; b++) {
        const bool packed = o->q_starts != NULL && id != TENSOR_WEIGHTS;
        const ptrdiff_t first = packed ? (ptrdiff_t)o->q_starts[b] : 0;
        for (ptrdiff_t h = 0; h < map.n[1]; h++)
            for (ptrdiff_t i = 0; i < (ptrdiff_t)o->q_lengths[b]; i++)
                memset(tensor_at(&map, packed ? 0 : b, h, first + i, 0), 1,
                       (size_t)map.n[3] * map.element);
    }
    return map.memory;
}

/* Every byte of an output is spoiled, one at a time. */
static void expect_touch_found(problem *p, tensor_id id)
{
    const tensor *const t = &p->tensors[id];
    unsigned char *const results = bytes_of_results(p, id);
    size_t outside = 0;
    for (size_t n = 0; n < t->bytes; n++) {
        t->memory[n] ^= 1;
        const size_t touched = problem_touched(p, id);
        CHECK(touched == (results[n] ? 0u : 1u), "%s: output %d, byte %zu: %zu bytes touched",
              p->name, id - TENSOR_O, n, touched);
        t->memory[n] ^= 1;
        outside += !results[n];
    }
    CHECK(outside > 0 && outside < t->bytes, "%s: %zu of %zu bytes are no result", p->name, outside,
          t->bytes);
    free(results);
}

static void bytes_outside_of_results_are_found(void)
{
    static const unsigned features[] = {
        FEATURE_OUTPUTS | FEATURE_Q_LENGTHS,
        FEATURE_OUTPUTS | FEATURE_Q_LENGTHS | FEATURE_STRIDES,
        FEATURE_OUTPUTS | FEATURE_Q_LENGTHS | FEATURE_STRIDES | FEATURE_PACKED,
    };
    for (size_t n = 0; n < sizeof features / sizeof *features; n++) {
        const problem_spec spec = {.shape = {.B = 3, .H = 2, .G = 1, .L = 5, .S = 4, .D = 3},
                                   .features = features[n],
                                   .seed = 9};
        problem *const p = problem_new(&spec);
        for (int id = TENSOR_O; id < TENSOR_COUNT; id++)
            expect_touch_found(p, (tensor_id)id);
        problem_delete(p);
    }
}

/* ------------------------------------------------------------- snapshots ----- */

/* Any changed byte of an output makes a difference, until the output is forgotten. */
static void snapshots_see_every_byte(void)
{
    const problem_spec spec = {.shape = {.B = 2, .H = 2, .G = 1, .L = 5, .S = 4, .D = 3},
                               .features = FEATURE_OUTPUTS,
                               .seed = 5};
    problem *const p = problem_new(&spec);
    snapshot s = snapshot_of(p);
    CHECK(snapshot_same(&s, p), "nothing changed");
    for (int id = TENSOR_O; id < TENSOR_COUNT; id++) {
        const tensor *const t = &p->tensors[id];
        for (size_t n = 0; n < t->bytes; n++) {
            t->memory[n] ^= 1;
            CHECK(!snapshot_same(&s, p), "output %d, byte %zu", id - TENSOR_O, n);
            t->memory[n] ^= 1;
        }
        t->memory[0] ^= 1;
        snapshot_forget(&s, (tensor_id)id);
        CHECK(snapshot_same(&s, p), "output %d is forgotten", id - TENSOR_O);
    }
    snapshot_free(&s);
    problem_delete(p);
}

/* The same for tensors in different layouts. */
static void tensors_differ_by_an_element(void)
{
    const problem_spec spec = {.shape = {.B = 2, .H = 2, .G = 2, .L = 5, .S = 4, .D = 3},
                               .seed = 6};
    problem *const p = problem_new(&spec), *const copy = problem_new_layout(p, 8);
    const tensor *const a = &p->tensors[TENSOR_K], *const b = &copy->tensors[TENSOR_K];
    CHECK(tensors_same(a, b), "copied");
    for (ptrdiff_t n = 0; n < 2 * 2 * 4 * 3; n++) {
        unsigned char *const at = tensor_at(b, n / 24, n / 12 % 2, n / 3 % 4, n % 3);
        at[3] ^= 0x80;
        CHECK(!tensors_same(a, b), "sign of element %td", n);
        at[3] ^= 0x80;
    }
    problem_delete(copy);
    problem_delete(p);
}

/* ------------------------------------------------------------- workspace ----- */

static int blocks_taken;

static void *count_take(size_t bytes, void **handle)
{
    blocks_taken++;
    *handle = malloc(bytes + 1);
    return *handle;
}

static void count_give(void *handle)
{
    blocks_taken--;
    free(handle);
}

static void workspaces_are_freed(void)
{
    static const problem_memory counting = {count_take, count_give};
    const problem_spec spec = {
        .shape = {.B = 1, .H = 2, .G = 2, .L = 5, .S = 7, .D = 8}, .seed = 2, .memory = &counting};
    problem *const p = problem_new(&spec);
    const int before = blocks_taken;
    for (int n = 0; n < 3; n++)
        problem_run_planned(p, NULL);
    CHECK(blocks_taken == before, "%d blocks after three runs, %d before", blocks_taken, before);
    problem_delete(p);
    CHECK(blocks_taken == 0, "%d blocks are left", blocks_taken);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(guard_memory_faults);
    RUN(guarded_tensors_are_exact);
    RUN(bytes_outside_of_results_are_found);
    RUN(snapshots_see_every_byte);
    RUN(tensors_differ_by_an_element);
    RUN(workspaces_are_freed);
    return test_end();
}
