/* SPDX-License-Identifier: MIT */
/*
 * Disagreement: an argument that is wrong, or different, on one rank only gives the same code on
 * all, leaves every output untouched, and the group works afterwards. Every rank in turn.
 */
#include "mpi/mpi_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORK = 1 << 24 };

/* A call with everything that can be bent. */
typedef struct bent {
    spread *s;
    mha_mpi_plan *plan;
    mha_view q, k, v;
    mha_out o;
    mha_options options;
    mha_gradients gradients;
    void *work;
    size_t work_size;
    bool backward;
    char message[256];
} bent;

typedef struct fault {
    const char *name;
    void (*bend)(bent *b);
    mha_status code;
    int when; /* 0: both, 1: runs, 2: backward passes */
} fault;

static void no_q(bent *b)
{
    b->q.data = NULL;
}
static void no_v(bent *b)
{
    b->v.data = NULL;
}
static void no_o(bent *b)
{
    b->o.data = NULL;
}
static void odd_o(bent *b)
{
    b->o.data = (char *)b->o.data + 1;
}
static void shared_o(bent *b)
{
    b->o.sl = 0;
}
static void overlap(bent *b)
{
    b->o.data = (void *)(uintptr_t)b->q.data;
}
static void overlap_k(bent *b)
{
    b->gradients.d_q.data = (void *)(uintptr_t)b->k.data;
}
static void no_work(bent *b)
{
    b->work = NULL;
}
static void little_work(bent *b)
{
    b->work_size = 100;
}
static void bad_options(bent *b)
{
    b->options.size = 5;
}
static void bad_scale(bent *b)
{
    b->options.scale = 1.0f / 0.0f;
}
static void bad_flag(bent *b)
{
    b->options.flags |= 1u << 30;
}
static void bad_length(bent *b)
{
    static const int64_t lengths[] = {1000, 1000, 1000, 1000};
    b->options.k_lengths = lengths;
}
static void no_position(bent *b)
{
    b->options.position = MHA_POSITION_UNSET;
}
static void shared_weights(bent *b)
{
    b->options.weights = mha_out_bhld(b->work, 1, 1, 1);
    b->options.flags |= MHA_AVERAGE_WEIGHTS;
}
static void wants_statistics(bent *b)
{
    static const mha_statistics none = {.size = sizeof none};
    b->options.statistics = &none;
}
static void other_scale(bent *b)
{
    b->options.scale = 0.125f;
}
static void other_causal(bent *b)
{
    b->options.flags ^= MHA_CAUSAL;
}
static void other_offset(bent *b)
{
    b->options.offset += 1;
}
static void other_sinks(bent *b)
{
    static const float sinks[64] = {1.0f};
    b->options.sinks = sinks;
}
static void native(bent *b)
{
    b->options.arithmetic = MHA_NATIVE;
}
static void no_lse(bent *b)
{
    b->options.lse.data = NULL;
}
static void no_d_k(bent *b)
{
    b->gradients.d_k.data = NULL;
}
static void no_d_o(bent *b)
{
    b->gradients.d_o.data = NULL;
}
static void bad_gradients(bent *b)
{
    b->gradients.size = 3;
}
static void slopes(bent *b)
{
    b->gradients.d_alibi_slopes = b->work;
}

static const fault faults[] = {{"q is NULL", no_q, MHA_ERR_NULL, 0},
                               {"v is NULL", no_v, MHA_ERR_NULL, 0},
                               {"o is NULL", no_o, MHA_ERR_NULL, 1},
                               {"o is not aligned", odd_o, MHA_ERR_ALIGN, 1},
                               {"rows of o share memory", shared_o, MHA_ERR_STRIDE, 1},
                               {"o is q", overlap, MHA_ERR_OVERLAP, 1},
                               {"d_q is k", overlap_k, MHA_ERR_OVERLAP, 2},
                               {"no work", no_work, MHA_ERR_NULL, 0},
                               {"little work", little_work, MHA_ERR_WORKSPACE, 0},
                               {"a struct of another size", bad_options, MHA_ERR_STRUCT, 0},
                               {"an infinite scale", bad_scale, MHA_ERR_SCALE, 0},
                               {"an unknown flag", bad_flag, MHA_ERR_FLAG, 0},
                               {"a length above S", bad_length, MHA_ERR_LENGTH, 0},
                               {"no position", no_position, MHA_ERR_POSITION, 0},
                               {"rows of weights share memory", shared_weights, MHA_ERR_STRIDE, 1},
                               {"statistics", wants_statistics, MHA_ERR_AGREE, 1},
                               {"another scale", other_scale, MHA_ERR_AGREE, 0},
                               {"causal or not", other_causal, MHA_ERR_AGREE, 0},
                               {"another offset", other_offset, MHA_ERR_AGREE, 0},
                               {"a sink", other_sinks, MHA_ERR_AGREE, 0},
                               {"native arithmetic", native, MHA_ERR_AGREE, 0},
                               {"no log-sum-exp", no_lse, MHA_ERR_AGREE, 1},
                               {"no log-sum-exp to read", no_lse, MHA_ERR_NULL, 2},
                               {"no d_k", no_d_k, MHA_ERR_AGREE, 2},
                               {"no d_o", no_d_o, MHA_ERR_NULL, 2},
                               {"gradients of another size", bad_gradients, MHA_ERR_STRUCT, 2},
                               {"slopes of a call without", slopes, MHA_ERR_NULL, 2}};

static bent bent_new(spread *s, mha_mpi_plan *plan, bool backward, void *work)
{
    const spread_data *const d = &s->local;
    bent b = {.s = s,
              .plan = plan,
              .q = spread_view(s, d, 'q'),
              .k = spread_view(s, d, 'k'),
              .v = spread_view(s, d, 'v'),
              .o = mha_out_bhld(d->o, s->shape.H, d->L, s->shape.Dv),
              .options = spread_options(s, d),
              .gradients = spread_gradients(s, d),
              .work = work,
              .work_size = WORK,
              .backward = backward};
    return b;
}

static mha_status bent_run(bent *b)
{
    const mha_view o = {b->o.data, b->o.sb, b->o.sh, b->o.sl};
    b->options.message = b->message;
    b->options.message_size = sizeof b->message;
    return b->backward ? mha_mpi_plan_backward(b->plan, b->q, b->k, b->v, o, &b->options,
                                               &b->gradients, b->work, b->work_size, NULL)
                       : mha_mpi_plan_run(b->plan, b->q, b->k, b->v, b->o, &b->options, b->work,
                                          b->work_size, NULL);
}

/* A problem that is causal, with an offset, and has rows for everybody. */
static spread *find_problem(const mha_mpi_group *group)
{
    for (uint64_t seed = 1;; seed++) {
        spread *const s = spread_new(seed, 0, 60, group);
        const mha_options *const o = &s->options;
        int fits = (o->flags & MHA_CAUSAL) && o->position == MHA_POSITION_OFFSET && !o->offsets &&
                   s->shape.L != s->shape.S && s->local.L > 1 && s->local.S > 1;
        int all;
        MPI_Allreduce(&fits, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (all)
            return s;
        spread_free(s);
    }
}

static void check_faults(mha_mpi_group *group, mha_mpi_scheme scheme, bool backward)
{
    const int rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    const mha_mpi_plan_config config = {.size = sizeof config,
                                        .scheme = scheme,
                                        .head_ranks =
                                            scheme == MHA_MPI_GRID && ranks % 2 == 0 ? 2 : 0};
    void *const work = malloc(WORK);
    spread *const s = find_problem(group);
    mha_mpi_plan *plan = NULL;
    CHECK(mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys) == MHA_OK,
          "plan");
    for (size_t n = 0; n < sizeof faults / sizeof faults[0]; n++)
        for (int wrong = 0; wrong < ranks; wrong++) {
            const fault *const f = &faults[n];
            const bool refuses = scheme == MHA_MPI_RING && f->bend == wants_statistics;
            const mha_status want = refuses ? MHA_ERR_FLAG : f->code;
            if (f->when == (backward ? 1 : 2) || (ranks == 1 && want == MHA_ERR_AGREE))
                continue;
            bent b = bent_new(s, plan, backward, work);
            spread_clear(s);
            if (rank == wrong)
                f->bend(&b);
            const mha_status status = bent_run(&b);
            CHECK(status == want, "scheme %d, %s on rank %d: %s", (int)scheme, f->name, wrong,
                  mha_status_string(status));
            CHECK(spread_is_clear(s), "scheme %d, %s on rank %d: an output was written",
                  (int)scheme, f->name, wrong);
            CHECK(f->code == MHA_ERR_STRUCT || b.message[0], "%s: no message on rank %d", f->name,
                  rank);
        }
    spread_clear(s);
    CHECK(spread_run_alone(s, true) == MHA_OK, "alone");
    CHECK(spread_run(s, plan, false, NULL) == MHA_OK && !spread_differs(s, false),
          "the group does not work any more: %s", s->message);
    mha_mpi_plan_free(plan);
    spread_free(s);
    free(work);
}

/* ------------------------------------------------------------------- plans ----- */

static void check_plans(mha_mpi_group *group)
{
    const int rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    for (int wrong = 0; wrong < ranks; wrong++)
        for (int n = 0; n < 12; n++) {
            mha_shape shape = {.B = 1, .H = 4, .G = 2, .L = 20, .S = 30, .D = 8};
            mha_mpi_layout q = {.size = sizeof q, .tokens = 20}, k = {.size = sizeof k};
            mha_mpi_plan_config config = {.size = sizeof config};
            const int64_t starts[] = {0, 10, 5, 20};
            const int owners[] = {0, 0, 99};
            mha_mpi_plan *plan = NULL;
            k.tokens = 30;
            mha_status want = MHA_ERR_AGREE;
            if (rank == wrong) {
                q.starts = starts;
                q.ranks = owners;
                q.runs = 3;
                shape.H = n == 0 ? 3 : 4;
                shape.D = n == 1 ? 16 : 8;
                q.split = n == 2 || n == 3 ? MHA_MPI_GIVEN : n == 4 ? MHA_MPI_ZIGZAG : 0;
                q.size = n == 5 ? 1 : sizeof q;
                config.scheme = n == 6 ? (mha_mpi_scheme)9 : n == 7 ? MHA_MPI_RING : 0;
                config.head_ranks = n == 8 ? ranks + 1 : 0;
                config.size = n == 9 ? 2 : sizeof config;
                config.heads = n == 10 ? -1 : 0;
                q.tokens = n == 11 ? 21 : 20;
            }
            const mha_status codes[] = {MHA_ERR_SHAPE,  MHA_ERR_AGREE, MHA_ERR_LENGTH,
                                        MHA_ERR_LENGTH, MHA_ERR_AGREE, MHA_ERR_STRUCT,
                                        MHA_ERR_FLAG,   MHA_ERR_AGREE, MHA_ERR_SHAPE,
                                        MHA_ERR_STRUCT, MHA_ERR_SHAPE, MHA_ERR_AGREE};
            want = codes[n];
            if (ranks == 1 && want == MHA_ERR_AGREE)
                continue;
            const mha_status status = mha_mpi_plan_create(&plan, group, &config, &shape, &q, &k);
            CHECK(status == want && !plan, "plan %d wrong on rank %d: %s", n, wrong,
                  mha_status_string(status));
            mha_mpi_plan_free(plan);
        }
}

static void check_groups(void)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int wrong = 0; wrong < ranks; wrong++) {
        char message[200] = "";
        mha_mpi_group_config config = {
            .size = sizeof config, .message = message, .message_size = sizeof message};
        mha_mpi_group *group = NULL;
        config.message_bytes = rank == wrong ? (size_t)1 << 31 : 0;
        CHECK(mha_mpi_group_create(&group, MPI_COMM_WORLD, &config) == MHA_ERR_FLAG && !group,
              "messages of 2^31 bytes");
        CHECK(message[0], "no message");
        config.message_bytes = rank == wrong ? 1000 : 2000;
        CHECK(ranks == 1 || mha_mpi_group_create(&group, MPI_COMM_WORLD, &config) == MHA_ERR_AGREE,
              "different messages");
    }
    mha_mpi_group *group = NULL;
    CHECK(mha_mpi_group_create(NULL, MPI_COMM_WORLD, NULL) == MHA_ERR_NULL, "no place");
    CHECK(mha_mpi_group_create(&group, MPI_COMM_NULL, NULL) == MHA_ERR_NULL, "no communicator");
    CHECK(mha_mpi_group_from_int(&group, (int)MPI_Comm_c2f(MPI_COMM_WORLD), NULL) == MHA_OK,
          "from an integer");
    CHECK(mha_mpi_group_rank(group) == rank && mha_mpi_group_ranks(group) == ranks, "other ranks");
    CHECK(mha_mpi_group_rank(NULL) == -1 && mha_mpi_group_ranks(NULL) == -1, "NULL");
    mha_mpi_group_free(group);
    mha_mpi_group_free(NULL);
}

/* Ranks with another instruction set compute other bits. */
static void check_isa(int rank, int ranks)
{
    mha_mpi_group *group = NULL;
    if (rank == ranks - 1)
        setenv("MHA_ISA", "c", 1);
    CHECK(ranks == 1 || mha_mpi_group_create(&group, MPI_COMM_WORLD, NULL) == MHA_ERR_AGREE,
          "two instruction sets in one group");
    unsetenv("MHA_ISA");
}

/* mha_version() as libmha_mpi calls it: the linker puts this between. */
static int version_more;
int __real_mha_version(void);
int __wrap_mha_version(void);
int __wrap_mha_version(void)
{
    return __real_mha_version() + version_more;
}

/* Ranks with another version of libmha may compute other bits. */
static void check_version(int rank, int ranks)
{
    mha_mpi_group *group = NULL;
    version_more = rank == ranks - 1;
    CHECK(ranks == 1 || mha_mpi_group_create(&group, MPI_COMM_WORLD, NULL) == MHA_ERR_AGREE,
          "two versions in one group");
    version_more = 0;
}

static void check_numbers(mha_mpi_group *group)
{
    const int rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    const char bytes[] = "the same";
    int number = 0, other = rank;
    CHECK(mha_mpi_agree(group, &number, bytes, sizeof bytes) == MHA_OK && number == 0, "nothing");
    number = rank == 0 ? 0 : 40 + rank;
    CHECK(mha_mpi_agree(group, &number, NULL, 0) == MHA_OK && number == (ranks > 1 ? 41 : 0),
          "%d of the lowest rank", number);
    number = rank == ranks - 1 ? 7 : 0;
    CHECK(mha_mpi_agree(group, &number, &other, sizeof other) ==
                  (ranks > 1 ? MHA_ERR_AGREE : MHA_OK) &&
              number == 7,
          "other bytes, and %d", number);
    number = rank == 0 ? -1 : 0;
    CHECK(mha_mpi_agree(group, &number, NULL, 0) == MHA_ERR_LENGTH, "a negative number");
    CHECK(mha_mpi_agree(group, NULL, NULL, 0) == MHA_ERR_NULL &&
              mha_mpi_agree(NULL, &number, NULL, 0) == MHA_ERR_NULL &&
              mha_mpi_agree(group, &number, NULL, 1) == MHA_ERR_NULL,
          "NULL");
}

/* ----------------------------------------------------------------- layouts ----- */

/* Zig-zag: run r from the front and run r from the back. Blocks: as equal as possible. */
static void check_layouts(const mha_mpi_group *group)
{
    const int ranks = mha_mpi_group_ranks(group);
    const mha_mpi_layout zigzag = {
        .size = sizeof zigzag, .split = MHA_MPI_ZIGZAG, .tokens = 6 * (ptrdiff_t)ranks};
    const mha_mpi_layout blocks = {.size = sizeof blocks, .tokens = 3 * (ptrdiff_t)ranks + 1};
    for (int rank = 0; rank < ranks; rank++) {
        int64_t tokens[6], run[4];
        CHECK(mha_mpi_rows(group, &zigzag, rank, tokens) == 6, "rows of rank %d", rank);
        for (int n = 0; n < 3; n++)
            CHECK(tokens[n] == 3 * rank + n && tokens[3 + n] == 6 * ranks - 3 * rank - 3 + n,
                  "token %d of rank %d is %lld, that from the back %lld", n, rank,
                  (long long)tokens[n], (long long)tokens[3 + n]);
        CHECK(mha_mpi_rows(group, &blocks, rank, run) == (rank == 0 ? 4 : 3) &&
                  run[0] == 3 * rank + (rank > 0),
              "block of rank %d", rank);
    }
    CHECK(mha_mpi_rows(group, &zigzag, ranks, NULL) == -1 &&
              mha_mpi_rows(group, NULL, 0, NULL) == -1 &&
              mha_mpi_rows(NULL, &zigzag, 0, NULL) == -1,
          "no such rank, layout or group");
}

/* ----------------------------------------------------------------- explain ----- */

static void check_explain(mha_mpi_group *group)
{
    const mha_shape shape = {.B = 1, .H = 8, .G = 8, .L = 64, .S = 64, .D = 16};
    const mha_mpi_layout layout = {.size = sizeof layout, .split = MHA_MPI_ZIGZAG, .tokens = 64};
    for (int scheme = MHA_MPI_AUTO; scheme <= MHA_MPI_RING; scheme++) {
        const mha_mpi_plan_config config = {.size = sizeof config,
                                            .scheme = (mha_mpi_scheme)scheme};
        char text[2000], brief[10];
        mha_mpi_plan *plan = NULL;
        CHECK(mha_mpi_plan_create(&plan, group, &config, &shape, &layout, &layout) == MHA_OK,
              "plan");
        const size_t length = mha_mpi_plan_explain(plan, text, sizeof text);
        CHECK(length == strlen(text) && strstr(text, "scheme ") && strstr(text, "volume ") &&
                  strstr(text, "bits "),
              "%s", text);
        CHECK(mha_mpi_plan_explain(plan, brief, sizeof brief) == length && strlen(brief) == 9,
              "cut to \"%s\"", brief);
        CHECK(mha_mpi_plan_explain(plan, NULL, 0) == length, "length only");
        mha_mpi_plan_free(plan);
    }
    CHECK(mha_mpi_plan_explain(NULL, NULL, 0) == 0, "no plan");
}

int main(int argc, char **argv)
{
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    const int ranks = mha_mpi_group_ranks(group), rank = mha_mpi_group_rank(group);
    mpi_test("what_one_rank_refuses_all_refuse");
    for (mha_mpi_scheme scheme = MHA_MPI_GATHER; scheme <= MHA_MPI_RING; scheme++)
        for (int backward = 0; backward < 2; backward++)
            check_faults(group, scheme, backward);
    mpi_test("plans_are_agreed_about");
    check_plans(group);
    mpi_test("groups_are_agreed_about");
    check_groups();
    mpi_test("one_instruction_set_in_a_group");
    check_isa(rank, ranks);
    mpi_test("one_version_in_a_group");
    check_version(rank, ranks);
    mpi_test("ranks_decide_alike");
    check_numbers(group);
    mpi_test("layouts_are_what_they_say");
    check_layouts(group);
    mpi_test("plans_explain_themselves");
    check_explain(group);
    return mpi_test_end(group);
}
