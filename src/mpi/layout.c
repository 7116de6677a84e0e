/* SPDX-License-Identifier: MIT */
/*
 * Layouts as runs of tokens. A rank's runs ascend, so rows of any set of ranks can be put into the
 * order of their tokens by sorting runs; runs that then touch are one.
 */
#include "mpi/mpi_parts.h"

#include <stdlib.h>

mha_status mhai_mpi_layout_check(const mha_mpi_layout *layout, int ranks)
{
    if (!layout)
        return MHA_ERR_NULL;
    if (layout->size != sizeof *layout)
        return MHA_ERR_STRUCT;
    if ((unsigned)layout->split > MHA_MPI_GIVEN)
        return MHA_ERR_FLAG;
    if (layout->tokens < 0 || layout->tokens > PTRDIFF_MAX / 64)
        return MHA_ERR_SHAPE;
    if (layout->split != MHA_MPI_GIVEN)
        return MHA_OK;
    if (layout->runs < 0)
        return MHA_ERR_LENGTH;
    if (!layout->starts || (!layout->ranks && layout->runs > 0))
        return MHA_ERR_NULL;
    if (layout->starts[0] != 0 || layout->starts[layout->runs] != layout->tokens)
        return MHA_ERR_LENGTH;
    for (ptrdiff_t n = 0; n < layout->runs; n++)
        if (layout->starts[n] > layout->starts[n + 1])
            return MHA_ERR_LENGTH;
        else if (layout->ranks[n] < 0 || layout->ranks[n] >= ranks)
            return MHA_ERR_INDEX;
    return MHA_OK;
}

static ptrdiff_t run_count(const mha_mpi_layout *layout, int ranks)
{
    return layout->split == MHA_MPI_GIVEN    ? layout->runs
           : layout->split == MHA_MPI_ZIGZAG ? 2 * (ptrdiff_t)ranks
                                             : ranks;
}

/* Run n of the layout: its tokens and its rank. */
static mhai_mpi_tokens run_of(const mha_mpi_layout *layout, int ranks, ptrdiff_t n, int *rank)
{
    const ptrdiff_t count = run_count(layout, ranks), tokens = layout->tokens;
    if (layout->split == MHA_MPI_GIVEN) {
        *rank = layout->ranks[n];
        return (mhai_mpi_tokens){(ptrdiff_t)layout->starts[n], (ptrdiff_t)layout->starts[n + 1]};
    }
    *rank = (int)(n < ranks ? n : count - 1 - n);
    /* As equal as possible, without a product that could overflow. */
    const ptrdiff_t each = tokens / count, more = tokens % count;
    const ptrdiff_t first = n * each + mhai_mpi_min(n, more);
    return (mhai_mpi_tokens){first, first + each + (n < more)};
}

uint64_t mhai_mpi_layout_hash(uint64_t hash, const mha_mpi_layout *layout)
{
    hash = mhai_mpi_hash(hash, &layout->split, sizeof layout->split);
    hash = mhai_mpi_hash(hash, &layout->tokens, sizeof layout->tokens);
    if (layout->split != MHA_MPI_GIVEN)
        return hash;
    hash = mhai_mpi_hash(hash, layout->starts, sizeof *layout->starts * (size_t)(layout->runs + 1));
    return layout->runs == 0
               ? hash
               : mhai_mpi_hash(hash, layout->ranks, sizeof *layout->ranks * (size_t)layout->runs);
}

ptrdiff_t mha_mpi_rows(const mha_mpi_group *group, const mha_mpi_layout *layout, int rank,
                       int64_t *tokens)
{
    ptrdiff_t rows = 0;
    if (!group || rank < 0 || rank >= group->ranks || mhai_mpi_layout_check(layout, group->ranks))
        return -1;
    for (ptrdiff_t n = 0; n < run_count(layout, group->ranks); n++) {
        int owner;
        const mhai_mpi_tokens run = run_of(layout, group->ranks, n, &owner);
        for (ptrdiff_t t = run.first; owner == rank && t < run.last; t++, rows++)
            if (tokens)
                tokens[rows] = t;
    }
    return rows;
}

/* ---------------------------------------------------------------- sides ----- */

/* Collects the runs of ranks [first, last), which come in the order of their tokens; those that
 * touch become one. Returns where the next owner's may begin. */
static mhai_mpi_run *collect(const mha_mpi_layout *layout, int ranks, int first, int last,
                             mhai_mpi_run *to, mhai_mpi_rows *rows)
{
    *rows = (mhai_mpi_rows){.run = to};
    for (ptrdiff_t n = 0; n < run_count(layout, ranks); n++) {
        int owner;
        const mhai_mpi_tokens run = run_of(layout, ranks, n, &owner);
        if (owner < first || owner >= last || run.first == run.last)
            continue;
        if (rows->runs > 0 && to[rows->runs - 1].last == run.first)
            to[rows->runs - 1].last = run.last;
        else
            to[rows->runs++] = (mhai_mpi_run){run.first, run.last, rows->rows};
        rows->rows += run.last - run.first;
    }
    return to + rows->runs;
}

mha_status mhai_mpi_side_create(mhai_mpi_side *side, const mha_mpi_layout *layout, int ranks,
                                int team_ranks)
{
    const int teams = ranks / team_ranks;
    const size_t runs = (size_t)run_count(layout, ranks);
    *side = (mhai_mpi_side){.tokens = layout->tokens};
    side->ranks = calloc((size_t)ranks, sizeof *side->ranks);
    side->teams = calloc((size_t)teams, sizeof *side->teams);
    side->memory = malloc(sizeof *side->memory * (2 * runs + 1));
    if (!side->ranks || !side->teams || !side->memory) {
        mhai_mpi_side_free(side);
        return MHA_ERR_MEMORY;
    }
    mhai_mpi_run *to = side->memory;
    for (int rank = 0; rank < ranks; rank++)
        to = collect(layout, ranks, rank, rank + 1, to, &side->ranks[rank]);
    for (int team = 0; team < teams; team++)
        to = collect(layout, ranks, team * team_ranks, (team + 1) * team_ranks, to,
                     &side->teams[team]);
    *to = (mhai_mpi_run){0, layout->tokens, 0};
    side->all = (mhai_mpi_rows){.runs = layout->tokens > 0, .rows = layout->tokens, .run = to};
    return MHA_OK;
}

void mhai_mpi_side_free(mhai_mpi_side *side)
{
    free(side->ranks);
    free(side->teams);
    free(side->memory);
    *side = (mhai_mpi_side){0};
}

ptrdiff_t mhai_mpi_row_of(const mhai_mpi_rows *rows, ptrdiff_t token)
{
    ptrdiff_t low = 0, high = rows->runs;
    while (low < high) {
        const ptrdiff_t middle = low + (high - low) / 2;
        if (rows->run[middle].last <= token)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == rows->runs)
        return rows->rows;
    const mhai_mpi_run *const run = &rows->run[low];
    return run->row + mhai_mpi_max(0, token - run->first);
}
