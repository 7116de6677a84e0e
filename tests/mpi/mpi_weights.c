/* SPDX-License-Identifier: MIT */
/*
 * mpi_weights [PROBLEMS]: the weights of a run over all ranks have the bits of those of one call,
 * of every type and mode, with masks, documents, sinks and the rest; and are refused where they
 * cannot be had, on all ranks alike.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/mpi_test.h"

/* Of the whole, and of this rank: [B][H][rows][S]. */
typedef struct tables {
    mha_dtype type;
    char *whole, *local;
    size_t row; /* bytes */
} tables;

static mha_options with_weights(const spread *s, const spread_data *d, const tables *t, char *data,
                                mha_weights_mode mode)
{
    mha_options o = spread_options(s, d);
    o.weights = mha_out_bhld(data, s->shape.H, d->L ? d->L : 1, s->shape.S);
    o.weights_type = t->type;
    o.weights_mode = mode;
    return o;
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

static void compare(const spread *s, const tables *t, const char *what)
{
    const ptrdiff_t L = s->whole.L, rows = s->local.L;
    ptrdiff_t wrong = 0;
    for (ptrdiff_t n = 0; n < s->shape.B * s->shape.H * rows; n++) {
        const ptrdiff_t from = n / rows * L + (ptrdiff_t)s->tokens[0][n % rows];
        wrong +=
            memcmp(t->local + (size_t)n * t->row, t->whole + (size_t)from * t->row, t->row) != 0;
    }
    CHECK(wrong == 0, "%s: %td of %td rows of weights differ", what, wrong,
          s->shape.B * s->shape.H * rows);
    CHECK(!spread_differs(s, false), "%s: %s differs", what, spread_differs(s, false));
}

static void check_problem(mha_mpi_group *group, uint64_t seed, mha_mpi_scheme scheme)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16};
    static const char *const names[] = {"auto", "gather", "all to all", "grid", "ring"};
    const mha_mpi_plan_config config = {.size = sizeof config, .scheme = scheme};
    spread *const s = spread_new(
        seed, SPREAD_MASKS | SPREAD_DROPOUT | SPREAD_HEADS | SPREAD_DOCUMENTS | SPREAD_TYPES, 70,
        group);
    tables t = {.type = types[seed % 3]};
    const mha_weights_mode mode = (mha_weights_mode)(seed / 3 % 2);
    mha_mpi_plan *plan = NULL;
    t.row = (size_t)s->shape.S * mha_dtype_size(t.type);
    const size_t heads = (size_t)(s->shape.B * s->shape.H);
    t.whole = calloc(heads * (size_t)s->whole.L + 1, t.row + 1);
    t.local = calloc(heads * (size_t)s->local.L + 1, t.row + 1);
    const mha_options alone = with_weights(s, &s->whole, &t, t.whole, mode);
    const mha_options own = with_weights(s, &s->local, &t, t.local, mode);
    const mha_shape *const p = &s->shape;
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
        compare(s, &t, names[scheme]);
    mha_mpi_plan_free(plan);
    free(t.whole);
    free(t.local);
    spread_free(s);
}

static void check_refused(mha_mpi_group *group, mha_mpi_scheme scheme, uint32_t flags,
                          const int64_t *chosen, const char *what)
{
    const mha_mpi_plan_config config = {.size = sizeof config, .scheme = scheme};
    spread *const s = spread_new(5, 0, 40, group);
    mha_mpi_plan *plan = NULL;
    tables t = {.type = MHA_F32};
    t.local =
        calloc((size_t)(s->shape.B * s->shape.H * s->local.L * s->shape.S) + 1, sizeof(float));
    mha_options o = with_weights(s, &s->local, &t, t.local, MHA_WEIGHTS_SOFTMAX);
    o.flags |= flags;
    o.weights_rows = chosen;
    o.weights_row_count = chosen != NULL;
    CHECK(mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys) == MHA_OK,
          "plan");
    const mha_status status = run(s, plan, &o);
    CHECK(status == MHA_ERR_FLAG, "%s: %s", what, mha_status_string(status));
    mha_mpi_plan_free(plan);
    free(t.local);
    spread_free(s);
}

int main(int argc, char **argv)
{
    static const int64_t row = 0;
    const int problems = argc > 1 ? atoi(argv[1]) : 24;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    mpi_test("weights_have_the_bits_of_one_call");
    for (int n = 0; n < problems; n++)
        check_problem(group, (uint64_t)(700 + n), (mha_mpi_scheme)(MHA_MPI_AUTO + n % 4));
    mpi_test("what_cannot_be_had_is_refused");
    check_refused(group, MHA_MPI_RING, 0, NULL, "ring");
    check_refused(group, MHA_MPI_GATHER, MHA_AVERAGE_WEIGHTS, NULL, "a mean");
    check_refused(group, MHA_MPI_GATHER, 0, &row, "chosen rows");
    return mpi_test_end(group);
}
