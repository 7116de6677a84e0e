/* SPDX-License-Identifier: MIT */
/*
 * mpi_weights [PROBLEMS]: the weights of a run over all ranks have the bits of those of one call,
 * of every type and mode, by every scheme, of all or chosen heads and rows, and their mean, with
 * packed sequences, lengths, masks, documents, sinks and the rest; and lists that are wrong are
 * refused, on all ranks alike.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/mpi_test.h"

enum { PATTERN = 0x5a, MOST_CHOSEN = 12 };

/* What is chosen, and weights of the whole and of this rank: [B][heads][rows][S]. */
typedef struct tables {
    mha_dtype type;
    mha_weights_mode mode;
    bool mean, choose_heads, choose_rows;
    int64_t heads[MOST_CHOSEN], rows[MOST_CHOSEN];
    ptrdiff_t head_count, row_count;
    ptrdiff_t planes; /* of heads, or one for the mean */
    char *whole, *local;
    ptrdiff_t whole_rows, local_rows; /* room for so many */
    size_t row;                       /* bytes */
} tables;

static mha_options with_weights(const spread *s, const spread_data *d, const tables *t)
{
    const bool whole = d == &s->whole;
    const ptrdiff_t rows = whole ? t->whole_rows : t->local_rows;
    mha_options o = spread_options(s, d);
    o.weights = mha_out_bhld(whole ? t->whole : t->local, t->planes, rows ? rows : 1, s->shape.S);
    o.weights_type = t->type;
    o.weights_mode = t->mode;
    o.flags |= t->mean ? MHA_AVERAGE_WEIGHTS : 0;
    o.weights_heads = t->choose_heads ? t->heads : NULL;
    o.weights_head_count = t->head_count;
    o.weights_rows = t->choose_rows ? t->rows : NULL;
    o.weights_row_count = t->row_count;
    return o;
}

/* Lists are in any order, and may name one twice. */
static void draw(tables *t, const spread *s, rng *r)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16};
    t->type = s->shape.q_type == MHA_F64 ? MHA_F64 : types[rng_below(r, 3)];
    t->mode = (mha_weights_mode)rng_below(r, 4);
    t->mean = rng_chance(r, 30);
    t->choose_heads = rng_chance(r, 50);
    t->choose_rows = s->shape.L > 0 && rng_chance(r, 50);
    t->head_count = rng_between(r, t->mean, MOST_CHOSEN);
    t->row_count = rng_between(r, 0, MOST_CHOSEN);
    for (int n = 0; n < MOST_CHOSEN; n++) {
        t->heads[n] = rng_below(r, s->shape.H);
        t->rows[n] = t->choose_rows ? rng_below(r, s->shape.L) : 0;
    }
}

static void allocate(tables *t, const spread *s)
{
    const ptrdiff_t own = s->packed ? s->shape.L : s->local.L;
    t->planes = t->mean ? 1 : t->choose_heads ? t->head_count : s->shape.H;
    t->whole_rows = t->choose_rows ? t->row_count : s->shape.L;
    t->local_rows = t->choose_rows ? t->row_count : own;
    t->row = (size_t)s->shape.S * mha_dtype_size(t->type);
    const size_t planes = (size_t)(s->shape.B * t->planes);
    t->whole = malloc(planes * (size_t)t->whole_rows * t->row + 1);
    t->local = malloc(planes * (size_t)t->local_rows * t->row + 1);
    memset(t->whole, PATTERN, planes * (size_t)t->whole_rows * t->row);
    memset(t->local, PATTERN, planes * (size_t)t->local_rows * t->row);
}

static mha_status run(spread *s, const mha_mpi_plan *plan, const mha_options *o)
{
    const spread_data *const d = &s->local;
    const mha_shape *const p = &s->shape;
    const size_t size = mha_mpi_plan_work_size(plan, o, 1, 0);
    void *const work = malloc(size + 1);
    const mha_status status = mha_mpi_plan_run(
        plan, spread_view(s, d, 'q'), spread_view(s, d, 'k'), spread_view(s, d, 'v'),
        mha_out_bhld(d->o, p->H, d->L ? d->L : 1, p->Dv), o, work, size, NULL);
    free(work);
    return status;
}

/* Has this rank row i of a batch or sequence? */
static bool is_mine(const spread *s, ptrdiff_t b, ptrdiff_t i)
{
    const int64_t token = i + (s->packed ? s->q_starts[b] : 0);
    if (s->packed && token >= s->q_starts[b + 1])
        return false;
    for (ptrdiff_t n = 0; n < s->local.L; n++)
        if (s->tokens[0][n] == token)
            return true;
    return false;
}

/* Rows of this rank follow each other; what no call writes is still the pattern in both. */
static ptrdiff_t count_wrong(const spread *s, const tables *t, ptrdiff_t b, ptrdiff_t plane)
{
    const char *const whole = t->whole + (size_t)((b * t->planes + plane) * t->whole_rows) * t->row;
    const char *const local = t->local + (size_t)((b * t->planes + plane) * t->local_rows) * t->row;
    ptrdiff_t wrong = 0, to = 0;
    for (ptrdiff_t n = 0; n < t->whole_rows; n++) {
        if (!is_mine(s, b, t->choose_rows ? (ptrdiff_t)t->rows[n] : n))
            continue;
        wrong += memcmp(local + (size_t)to * t->row, whole + (size_t)n * t->row, t->row) != 0;
        to++;
    }
    for (size_t c = (size_t)to * t->row; c < (size_t)t->local_rows * t->row; c++)
        wrong += local[c] != PATTERN;
    return wrong;
}

static void compare(const spread *s, const tables *t, uint64_t seed, const char *scheme, bool exact)
{
    ptrdiff_t wrong = 0;
    for (ptrdiff_t n = 0; n < s->shape.B * t->planes; n++)
        wrong += count_wrong(s, t, n / t->planes, n % t->planes);
    CHECK(wrong == 0, "problem %d, %s: %td rows of weights differ%s%s%s%s, mode %d", (int)seed,
          scheme, wrong, t->mean ? ", mean" : "", t->choose_heads ? ", heads" : "",
          t->choose_rows ? ", rows" : "", s->packed ? ", packed" : "", (int)t->mode);
    const char *const differs = exact ? spread_differs(s, false) : NULL;
    CHECK(!differs, "problem %d, %s: %s differs", (int)seed, scheme, differs);
}

static void check_problem(mha_mpi_group *group, uint64_t seed, mha_mpi_scheme scheme)
{
    static const char *const names[] = {"auto", "gather", "all to all", "grid", "ring"};
    const bool ring = scheme == MHA_MPI_RING;
    const unsigned has = SPREAD_EVERYTHING & ~(unsigned)(ring ? SPREAD_STATISTICS | SPREAD_F64 : 0);
    const mha_mpi_plan_config config = {.size = sizeof config, .scheme = scheme, .chunk = 30};
    spread *const s = spread_new(seed, has, 70, group);
    const mha_shape *const p = &s->shape;
    tables t = {0};
    rng r = {seed};
    mha_mpi_plan *plan = NULL;
    draw(&t, s, &r);
    allocate(&t, s);
    const mha_options alone = with_weights(s, &s->whole, &t);
    const mha_options own = with_weights(s, &s->local, &t);
    CHECK(mha_attention(p, spread_view(s, &s->whole, 'q'), spread_view(s, &s->whole, 'k'),
                        spread_view(s, &s->whole, 'v'),
                        mha_out_bhld(s->whole.o, p->H, s->whole.L ? s->whole.L : 1, p->Dv), &alone,
                        NULL) == MHA_OK,
          "alone");
    CHECK(mha_mpi_plan_create(&plan, group, &config, p, &s->queries, &s->keys) == MHA_OK, "plan");
    spread_clear(s);
    const mha_status status = run(s, plan, &own);
    CHECK(status == MHA_OK, "problem %d, %s: %s", (int)seed, names[scheme],
          mha_status_string(status));
    if (status == MHA_OK)
        compare(s, &t, seed, names[scheme], !ring);
    mha_mpi_plan_free(plan);
    free(t.whole);
    free(t.local);
    spread_free(s);
}

/* A list that is wrong, or another one, on one rank. */
static void check_refused(mha_mpi_group *group, mha_mpi_scheme scheme, int64_t head, int64_t row,
                          mha_status want, const char *what)
{
    const mha_mpi_plan_config config = {.size = sizeof config, .scheme = scheme};
    spread *const s = spread_new(5, 0, 40, group);
    const bool wrong = mha_mpi_group_rank(group) == mha_mpi_group_ranks(group) - 1;
    mha_mpi_plan *plan = NULL;
    tables t = {.type = MHA_F32, .choose_heads = true, .choose_rows = true};
    t.head_count = t.row_count = 1;
    t.heads[0] = wrong ? head : 0;
    t.rows[0] = wrong ? row : 0;
    allocate(&t, s);
    const mha_options o = with_weights(s, &s->local, &t);
    CHECK(mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys) == MHA_OK,
          "plan");
    const mha_status status = run(s, plan, &o);
    CHECK(status == want || (want == MHA_ERR_AGREE && mha_mpi_group_ranks(group) == 1), "%s: %s",
          what, mha_status_string(status));
    mha_mpi_plan_free(plan);
    free(t.whole);
    free(t.local);
    spread_free(s);
}

int main(int argc, char **argv)
{
    const int problems = argc > 1 ? atoi(argv[1]) : 60;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    mpi_test("weights_have_the_bits_of_one_call");
    for (int n = 0; n < problems; n++)
        check_problem(group, (uint64_t)(700 + n), (mha_mpi_scheme)(MHA_MPI_AUTO + n % 5));
    mpi_test("wrong_lists_are_refused");
    for (mha_mpi_scheme scheme = MHA_MPI_GATHER; scheme <= MHA_MPI_RING; scheme++) {
        check_refused(group, scheme, 1000, 0, MHA_ERR_INDEX, "a head that is none");
        check_refused(group, scheme, 0, -1, MHA_ERR_INDEX, "a row that is none");
        check_refused(group, scheme, 0, 1, MHA_ERR_AGREE, "another row");
    }
    return mpi_test_end(group);
}
