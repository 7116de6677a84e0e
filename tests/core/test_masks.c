/* SPDX-License-Identifier: MIT */
/*
 * Masks in combination: every pair of kinds is compared with the oracle; unreadable pages prove
 * that fully masked blocks of keys are not read.
 */
#include "support/problems.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 8 };

static const unsigned kinds[] = {
    FEATURE_CAUSAL,    FEATURE_WINDOW, FEATURE_ATTEND,    FEATURE_IGNORE,  FEATURE_ADD,
    FEATURE_BIAS,      FEATURE_ALIBI,  FEATURE_SINKS,     FEATURE_SOFTCAP, FEATURE_Q_LENGTHS,
    FEATURE_K_LENGTHS, FEATURE_PACKED, FEATURE_DOCUMENTS,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void check_features(unsigned features, uint64_t seed)
{
    problem_spec spec = problem_spec_random(seed, 1e5);
    spec.features = features | (spec.features & (FEATURE_STRIDES | FEATURE_BROADCAST | FEATURE_LSE |
                                                 FEATURE_OFFSET | FEATURE_MASK_TYPES));
    problem *const c = problem_new(&spec);
    problem_run(c, NULL);
    problem_expect(c, LIMIT);
    problem_delete(c);
}

static void each_kind(void)
{
    const uint64_t base = test_seed(20000);
    for (int a = 0; a < KINDS; a++)
        for (int64_t n = 0; n < test_effort(20); n++)
            check_features(kinds[a], base + (uint64_t)n);
}

static void every_pair(void)
{
    const uint64_t base = test_seed(21000);
    for (int a = 0; a < KINDS; a++)
        for (int b = 0; b < a; b++)
            for (int64_t n = 0; n < test_effort(8); n++)
                check_features(kinds[a] | kinds[b], base + (uint64_t)n);
}

static void every_triple(void)
{
    uint64_t seed = test_seed(22000);
    for (int a = 0; a < KINDS; a++)
        for (int b = 0; b < a; b++)
            for (int c = 0; c < b; c++)
                for (int64_t n = 0; n < test_effort(2); n++)
                    check_features(kinds[a] | kinds[b] | kinds[c], seed++);
}

static void all_together(void)
{
    const uint64_t base = test_seed(23000);
    for (int64_t n = 0; n < test_effort(150); n++)
        check_features(FEATURE_EVERYTHING, base + (uint64_t)n);
}

/* Offsets and window edges far beyond any key, with signs in all combinations. */
static void positions_far_away(void)
{
    static const ptrdiff_t far[] = {PTRDIFF_MAX / 4, -(PTRDIFF_MAX / 4), 3, -3};
    static const ptrdiff_t edges[] = {PTRDIFF_MAX / 4, PTRDIFF_MAX / 4 + 2, -1, 0, 2};
    for (int n = 0; n < 4 * 5 * 5 * 2; n++) {
        const problem_spec spec = {
            .shape = {.B = 1, .H = 2, .L = 7, .S = 9, .D = 8},
            .features = FEATURE_LSE | FEATURE_WINDOW | (n % 2 ? FEATURE_CAUSAL : 0),
            .seed = (uint64_t)n,
        };
        problem *const c = problem_new(&spec);
        mha_options *const o = &c->call.options;
        o->position = MHA_POSITION_OFFSET;
        o->offset = far[n / 50];
        o->window_left = edges[n / 2 % 5];
        o->window_right = edges[n / 10 % 5];
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

/* ------------------------------------------------------- unvisited blocks */

/* Keys [FIRST, LAST) lie on pages that cannot be read. Both are multiples of any block size. */
enum { KEYS = 6144, FIRST = 1024, LAST = 5120, WIDTH = 64, KEY_HEADS = 2 };

/* A copy of a [1, KEY_HEADS, KEYS, WIDTH] tensor, page aligned, with the gap unreadable. */
static void *with_gap(const tensor *t, ptrdiff_t first, ptrdiff_t last)
{
    const size_t row = WIDTH * t->element;
    unsigned char *const copy =
        mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        abort();
    memcpy(copy, t->memory, t->bytes);
    for (size_t g = 0; g < KEY_HEADS; g++) {
        unsigned char *const head = copy + g * KEYS * row;
        if (mprotect(head + (size_t)first * row, (size_t)(last - first) * row, PROT_NONE) != 0)
            abort();
    }
    return copy;
}

/* Run the case with unreadable keys and values in a child; 0 if it ends well. */
static int run_with_gap(problem *c, ptrdiff_t first, ptrdiff_t last)
{
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* sanitizers would write a report */
        snapshot before = snapshot_of(c);
        c->call.k.data = with_gap(&c->tensors[TENSOR_K], first, last);
        c->call.v.data = with_gap(&c->tensors[TENSOR_V], first, last);
        problem_run(c, NULL);
        const bool same = snapshot_same(&before, c);
        snapshot_free(&before);
        _exit(same ? 0 : 1);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return status;
}

typedef struct gap_kind {
    const char *name;
    unsigned features;
    void (*set)(problem *c);
    ptrdiff_t first, last; /* what the mask rules out */
} gap_kind;

static void set_mask(problem *c, tensor_id id, double off, double on)
{
    const ptrdiff_t *const n = c->tensors[id].n;
    test_random random = {3};
    for (ptrdiff_t r = 0; r < n[1] * n[2]; r++) {
        for (ptrdiff_t j = 0; j < n[3]; j++) {
            const bool masked = (j >= FIRST && j < LAST) || test_random_below(&random, 4) == 0;
            problem_set(c, id, 0, r / n[2], r % n[2], j, masked ? off : on);
        }
    }
}

static void set_attend(problem *c)
{
    set_mask(c, TENSOR_ATTEND, 0, 1);
}

static void set_ignore(problem *c)
{
    set_mask(c, TENSOR_IGNORE, 1, 0);
}

static void set_shared_mask(problem *c)
{
    set_mask(c, TENSOR_ATTEND, 0, 1);
    c->call.options.attend_mask.sh = c->call.options.attend_mask.sl = 0;
}

static void set_offset(problem *c, ptrdiff_t offset)
{
    c->call.options.position = MHA_POSITION_OFFSET;
    c->call.options.offset = offset;
}

static void set_causal(problem *c)
{
    set_offset(c, FIRST - c->call.shape.L);
}

/* The last query stands at the last key, the first one sees nothing before LAST. */
static void set_window(problem *c)
{
    set_offset(c, KEYS - c->call.shape.L);
    c->call.options.window_left = KEYS - c->call.shape.L - LAST;
    c->call.options.window_right = 0;
}

static void set_length(problem *c)
{
    int64_t *const lengths = problem_alloc(c, sizeof *lengths);
    lengths[0] = FIRST;
    c->call.options.k_lengths = lengths;
}

static void set_documents(problem *c)
{
    int32_t *const q = problem_alloc(c, (size_t)c->call.shape.L * sizeof *q);
    int32_t *const k = problem_alloc(c, KEYS * sizeof *k);
    for (ptrdiff_t i = 0; i < c->call.shape.L; i++)
        q[i] = 7;
    for (ptrdiff_t j = 0; j < KEYS; j++)
        k[j] = j >= FIRST && j < LAST ? (int32_t)(j / 100) + 8 : 7;
    c->call.options.q_documents = q;
    c->call.options.k_documents = k;
}

/* Two masks; each leaves a part of the gap open. */
static void set_halves(problem *c)
{
    const ptrdiff_t middle = (FIRST + LAST) / 2;
    const ptrdiff_t *const n = c->tensors[TENSOR_ATTEND].n;
    for (ptrdiff_t r = 0; r < n[1] * n[2]; r++) {
        for (ptrdiff_t j = 0; j < n[3]; j++) {
            const ptrdiff_t h = r / n[2], i = r % n[2];
            problem_set(c, TENSOR_ATTEND, 0, h, i, j, j < FIRST || j >= middle);
            problem_set(c, TENSOR_IGNORE, 0, h, i, j, j >= middle && j < LAST);
        }
    }
}

static const gap_kind gaps[] = {
    {"attend", FEATURE_ATTEND, set_attend, FIRST, LAST},
    {"ignore", FEATURE_IGNORE, set_ignore, FIRST, LAST},
    {"attend, one row for all", FEATURE_ATTEND, set_shared_mask, FIRST, LAST},
    {"both polarities, half each", FEATURE_ATTEND | FEATURE_IGNORE, set_halves, FIRST, LAST},
    {"causal", FEATURE_CAUSAL, set_causal, FIRST, KEYS},
    {"window", FEATURE_WINDOW, set_window, 0, LAST},
    {"length", 0, set_length, FIRST, KEYS},
    {"documents", 0, set_documents, FIRST, LAST},
};

static void check_gap(const gap_kind *gap, ptrdiff_t L, mha_dtype type)
{
    const problem_spec spec = {
        .shape = {1, 4, KEY_HEADS, L, KEYS, WIDTH, 0, type, type, type, type},
        .features = gap->features | FEATURE_LSE,
        .seed = (uint64_t)L,
    };
    problem *const c = problem_new(&spec);
    gap->set(c);
    problem_run(c, NULL);
    const int status = run_with_gap(c, gap->first, gap->last);
    CHECK(status == 0, "%s, %td queries, type %d: %s %d", gap->name, L, (int)type,
          WIFSIGNALED(status) ? "signal" : "exit",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    problem_delete(c);
}

static void masked_blocks_are_not_visited(void)
{
    if (test_lacks("no fork()"))
        return;
    static const ptrdiff_t L[] = {1, 3, 16, 70};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (size_t n = 0; n < 4; n++)
            check_gap(&gaps[g], L[n], (mha_dtype)((g + n) % 3));
}

/* Control: without a mask, the unreadable keys are read. */
static void unmasked_gap_faults(void)
{
    if (test_lacks("no fork()"))
        return;
    const problem_spec spec = {
        .shape = {.B = 1, .H = 4, .G = KEY_HEADS, .L = 2, .S = KEYS, .D = WIDTH}};
    problem *const c = problem_new(&spec);
    problem_run(c, NULL);
    CHECK(run_with_gap(c, FIRST, LAST) != 0, "unreadable keys were read");
    problem_delete(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(each_kind);
    RUN(every_pair);
    RUN(every_triple);
    RUN(all_together);
    RUN(positions_far_away);
    RUN(masked_blocks_are_not_visited);
    RUN(unmasked_gap_faults);
    return test_end();
}
