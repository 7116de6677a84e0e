/* SPDX-License-Identifier: MIT */
/* A plan in words: the scheme and why, what travels, what is held, how even the work is. */
#include "mpi/mpi_parts.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct page {
    char *text;
    size_t size, length;
} page;

__attribute__((format(printf, 2, 3))) static void add(page *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const size_t room = p->length < p->size ? p->size - p->length : 0;
    const int length = vsnprintf(room ? p->text + p->length : NULL, room, format, list);
    va_end(list);
    p->length += length > 0 ? (size_t)length : 0;
}

static const char *scheme_name(mha_mpi_scheme scheme)
{
    static const char *const names[] = {"AUTO", "GATHER", "ALL_TO_ALL", "GRID", "RING"};
    return names[scheme];
}

static void add_scheme(page *p, const mha_mpi_plan *plan)
{
    const int ranks = plan->group->ranks;
    add(p, "scheme     %s on %d rank%s", scheme_name(plan->scheme), ranks, ranks == 1 ? "" : "s");
    if (ranks == 1)
        add(p, ": nothing travels");
    else if (plan->scheme == MHA_MPI_RING)
        add(p, ": chunks of %td tokens go round", plan->chunk);
    else
        add(p, ": %d head rank%s x %d team%s", plan->head_ranks, plan->head_ranks == 1 ? "" : "s",
            plan->teams, plan->teams == 1 ? "" : "s");
    add(p, plan->chosen ? "; chosen, as it moves least\n" : "; as requested\n");
}

/* Causal work of a rank's rows: pairs of queries and keys at or before them. */
static double causal_work(const mhai_mpi_rows *rows)
{
    double work = 0.0;
    for (ptrdiff_t n = 0; n < rows->runs; n++) {
        const double first = (double)rows->run[n].first, last = (double)rows->run[n].last;
        work += (last - first) * (first + last + 1.0) / 2.0;
    }
    return work;
}

/* The busiest rank against the mean, without a mask and if causal. */
static void add_balance(page *p, const mha_mpi_plan *plan)
{
    const mhai_mpi_side *const q = &plan->queries;
    const bool teams = plan->scheme != MHA_MPI_RING;
    const int owners = teams ? plan->teams : plan->group->ranks;
    double most = 0.0, sum = 0.0, most_rows = 0.0;
    for (int n = 0; n < owners; n++) {
        const mhai_mpi_rows *const rows = teams ? &q->teams[n] : &q->ranks[n];
        const double work = causal_work(rows);
        most = work > most ? work : most;
        most_rows = (double)rows->rows > most_rows ? (double)rows->rows : most_rows;
        sum += work;
    }
    /* Heads of the rank that has most of them, against the mean. */
    const ptrdiff_t G = plan->shape.G, share = (G + plan->head_ranks - 1) / plan->head_ranks;
    const double heads = G > 0 ? (double)(share * plan->head_ranks) / (double)G : 1.0;
    const double even = heads * (owners > 0 && sum > 0.0 ? most * owners / sum : 1.0);
    const double rows = heads * (q->tokens > 0 ? most_rows * owners / (double)q->tokens : 1.0);
    add(p, "balance    busiest rank against the mean: %.3f, and %.3f if causal\n", rows, even);
}

static void add_volume(page *p, const mha_mpi_plan *plan)
{
    const mha_options plain = {.size = sizeof plain};
    const bool packed = plan->queries.tokens != plan->shape.L || plan->keys.tokens != plan->shape.S;
    if (packed) {
        add(p, "volume     depends on the packed sequences: mha_mpi_plan_sent()\n");
        return;
    }
    add(p, "volume     rank %d sends %.3f MB in a run", plan->group->rank,
        1e-6 * (double)mha_mpi_plan_sent(plan, &plain, 0));
    if (plan->shape.q_type != MHA_F64)
        add(p, ", %.3f MB in a backward pass", 1e-6 * (double)mha_mpi_plan_sent(plan, &plain, 1));
    add(p, "; messages of at most %zu bytes\n", plan->group->message_bytes);
    add(p, "memory     workspace of %.3f MB for a run with 1 thread\n",
        1e-6 * (double)mha_mpi_plan_work_size(plan, &plain, 1, 0));
}

size_t mha_mpi_plan_explain(const mha_mpi_plan *plan, char *text, size_t size)
{
    page p = {text, text ? size : 0, 0};
    if (!plan)
        return 0;
    add_scheme(&p, plan);
    const mha_mpi_plan *const x = plan;
    add(&p, "rows       rank %d has %td of %td queries and %td of %td keys\n", x->group->rank,
        x->queries.ranks[x->group->rank].rows, x->queries.tokens,
        x->keys.ranks[x->group->rank].rows, x->keys.tokens);
    if (plan->scheme != MHA_MPI_RING)
        add(&p, "heads      %td key/value head%s at once, in %td step%s\n", plan->heads,
            plan->heads == 1 ? "" : "s", plan->steps, plan->steps == 1 ? "" : "s");
    add_balance(&p, plan);
    add_volume(&p, plan);
    add(&p, "bits       %s\n",
        plan->scheme == MHA_MPI_RING ? "the same on any number of ranks, for this chunk"
                                     : "those of one call on one machine");
    return p.length;
}
