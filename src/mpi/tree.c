/* SPDX-License-Identifier: MIT */
/*
 * Partial results in the order of one binary tree: node n of a level joins nodes 2n and 2n + 1 of
 * the level below, the left one first; a last node without a partner rises alone. Leaves may come
 * in any order: who joins whom does not depend on it.
 */
#include "mpi/mpi_parts.h"

ptrdiff_t mhai_mpi_tree_width(ptrdiff_t leaves, int level)
{
    return (leaves - 1) / ((ptrdiff_t)1 << level) + 1;
}

int mhai_mpi_tree_height(ptrdiff_t leaves)
{
    int level = 0;
    while (mhai_mpi_tree_width(leaves, level) > 1)
        level++;
    return level;
}

ptrdiff_t mhai_mpi_tree_place(ptrdiff_t leaves, int level, ptrdiff_t index)
{
    for (int n = 0; n < level; n++)
        index += mhai_mpi_tree_width(leaves, n);
    return index;
}

/* The owner of all leaves of a node; -1 if there are several. */
static int owner_of(const int *owners, ptrdiff_t leaves, int level, ptrdiff_t index)
{
    const ptrdiff_t first = index << level, last = mhai_mpi_min(leaves, (index + 1) << level);
    for (ptrdiff_t n = first + 1; n < last; n++)
        if (owners[n] != owners[first])
            return -1;
    return owners[first];
}

int mhai_mpi_tree_holder(const int *owners, ptrdiff_t leaves, int level, ptrdiff_t index)
{
    const bool root = level == mhai_mpi_tree_height(leaves);
    if (!root && owner_of(owners, leaves, level + 1, index / 2) >= 0)
        return -1;
    return owner_of(owners, leaves, level, index);
}

static int find(const mhai_mpi_tree *tree, int level, ptrdiff_t index)
{
    for (int n = 0; n < MHAI_MPI_SLOTS; n++)
        if (tree->slots[n].used && tree->slots[n].level == level && tree->slots[n].index == index)
            return n;
    return -1;
}

int mhai_mpi_tree_open(mhai_mpi_tree *tree)
{
    int n = 0;
    while (tree->slots[n].used)
        n++;
    tree->slots[n].used = true;
    tree->slots[n].level = -1;
    tree->most = n + 1 > tree->most ? n + 1 : tree->most;
    return n;
}

int mhai_mpi_tree_close(mhai_mpi_tree *tree, int slot, ptrdiff_t leaf,
                        void (*join)(void *context, int left, int right), void *context)
{
    int level = 0;
    ptrdiff_t index = leaf;
    while (mhai_mpi_tree_width(tree->leaves, level) > 1) {
        const ptrdiff_t other = index ^ 1;
        const int partner =
            other < mhai_mpi_tree_width(tree->leaves, level) ? find(tree, level, other) : -1;
        if (other < mhai_mpi_tree_width(tree->leaves, level) && partner < 0)
            break;
        if (partner >= 0) {
            const int left = other < index ? partner : slot, right = other < index ? slot : partner;
            if (join)
                join(context, left, right);
            tree->slots[right].used = false;
            slot = left;
        }
        level++;
        index /= 2;
    }
    tree->slots[slot].level = level;
    tree->slots[slot].index = index;
    return slot;
}
