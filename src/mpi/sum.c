/* SPDX-License-Identifier: MIT */
/*
 * Sums over ranks in the order of one binary tree over the leaves (tree.c). A rank joins what it
 * can while leaves are added. To finish, every rank gets a slice of the array: all send it their
 * nodes of that slice, it joins the rest of the tree, and sends the total of the slice to all.
 */
#include "mpi/mpi_parts.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_NODES = 5, TAG_TOTAL = 6 };

/* A node that this rank has. */
typedef struct node {
    int level;
    ptrdiff_t index;
    float *data;
    struct node *next;
} node;

struct mha_mpi_sum {
    mha_mpi_group *group;
    ptrdiff_t count, leaves;
    node *nodes;
    uint8_t *added; /* [leaves]: by this rank */
};

/* ---------------------------------------------------------------- adding ----- */

mha_status mha_mpi_sum_create(mha_mpi_sum **sum, mha_mpi_group *group, ptrdiff_t count,
                              ptrdiff_t leaves)
{
    if (sum)
        *sum = NULL;
    if (!sum || !group)
        return MHA_ERR_NULL;
    if (count < 0 || leaves < 1 || count > PTRDIFF_MAX / 16 || leaves > PTRDIFF_MAX / 16)
        return MHA_ERR_SHAPE;
    mha_mpi_sum *const made = calloc(1, sizeof *made);
    uint8_t *const added = made ? calloc((size_t)leaves, 1) : NULL;
    if (!added) {
        free(made);
        return MHA_ERR_MEMORY;
    }
    *made = (mha_mpi_sum){.group = group, .count = count, .leaves = leaves, .added = added};
    *sum = made;
    return MHA_OK;
}

static void drop_nodes(mha_mpi_sum *sum)
{
    while (sum->nodes) {
        node *const first = sum->nodes;
        sum->nodes = first->next;
        free(first->data);
        free(first);
    }
    memset(sum->added, 0, (size_t)sum->leaves);
}

void mha_mpi_sum_free(mha_mpi_sum *sum)
{
    if (!sum)
        return;
    drop_nodes(sum);
    free(sum->added);
    free(sum);
}

/* Takes a node out of the list; NULL if it is not there. */
static node *take(mha_mpi_sum *sum, int level, ptrdiff_t index)
{
    for (node **at = &sum->nodes; *at; at = &(*at)->next)
        if ((*at)->level == level && (*at)->index == index) {
            node *const found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

static node *join(node *a, node *b, ptrdiff_t count)
{
    node *const left = a->index < b->index ? a : b, *const right = left == a ? b : a;
    for (ptrdiff_t n = 0; n < count; n++)
        left->data[n] += right->data[n];
    free(right->data);
    free(right);
    return left;
}

/* Joins the node with its partners as far as this rank has them. */
static void insert(mha_mpi_sum *sum, node *x)
{
    while (mhai_mpi_tree_width(sum->leaves, x->level) > 1) {
        const ptrdiff_t other = x->index ^ 1;
        if (other < mhai_mpi_tree_width(sum->leaves, x->level)) {
            node *const partner = take(sum, x->level, other);
            if (!partner)
                break;
            x = join(x, partner, sum->count);
        }
        x->level++;
        x->index /= 2;
    }
    x->next = sum->nodes;
    sum->nodes = x;
}

mha_status mha_mpi_sum_add(mha_mpi_sum *sum, ptrdiff_t leaf, const float *data)
{
    if (!sum || (!data && sum->count > 0))
        return MHA_ERR_NULL;
    if (leaf < 0 || leaf >= sum->leaves || sum->added[leaf])
        return MHA_ERR_LENGTH;
    node *const x = calloc(1, sizeof *x);
    float *const copy = x ? malloc(sizeof *copy * (size_t)sum->count + 1) : NULL;
    if (!copy) {
        free(x);
        return MHA_ERR_MEMORY;
    }
    if (sum->count > 0)
        memcpy(copy, data, sizeof *copy * (size_t)sum->count);
    *x = (node){.index = leaf, .data = copy};
    sum->added[leaf] = 1;
    insert(sum, x);
    return MHA_OK;
}

/* -------------------------------------------------------------- finishing ----- */

/* One call of finish. */
typedef struct finishing {
    mha_mpi_sum *sum;
    int rank, ranks;
    uint8_t *added;     /* [ranks][leaves] */
    int *owners;        /* [leaves] */
    float *parts;       /* nodes of all other ranks, this rank's slice */
    const float **held; /* [nodes of the tree]: the slice of each that somebody has */
    float *spare;       /* a slice for every level */
    mhai_mpi_exchange exchange;
} finishing;

static ptrdiff_t slice_first(const finishing *f, int rank)
{
    const ptrdiff_t each = f->sum->count / f->ranks, more = f->sum->count % f->ranks;
    return rank * each + mhai_mpi_min(rank, more);
}

static ptrdiff_t slice_count(const finishing *f, int rank)
{
    return slice_first(f, rank + 1) - slice_first(f, rank);
}

/* Calls see(f, level, index) for all nodes that a rank holds, in one order that all ranks know. */
static void each_node(finishing *f, int rank,
                      void (*see)(finishing *f, int rank, int level, ptrdiff_t index))
{
    const ptrdiff_t leaves = f->sum->leaves;
    for (int level = 0; level <= mhai_mpi_tree_height(leaves); level++)
        for (ptrdiff_t index = 0; index < mhai_mpi_tree_width(leaves, level); index++)
            if (mhai_mpi_tree_holder(f->owners, leaves, level, index) == rank)
                see(f, rank, level, index);
}

static ptrdiff_t place(const finishing *f, int level, ptrdiff_t index)
{
    return mhai_mpi_tree_place(f->sum->leaves, level, index);
}

static void send_node(finishing *f, int rank, int level, ptrdiff_t index)
{
    const node *x = f->sum->nodes;
    (void)rank;
    while (x->level != level || x->index != index)
        x = x->next;
    for (int n = 1; n < f->ranks; n++) {
        const int to = (f->rank + n) % f->ranks;
        mhai_mpi_send(&f->exchange, (const char *)(x->data + slice_first(f, to)),
                      sizeof(float) * (size_t)slice_count(f, to), to, TAG_NODES);
    }
    f->held[place(f, level, index)] = x->data + slice_first(f, f->rank);
}

static void receive_node(finishing *f, int rank, int level, ptrdiff_t index)
{
    const ptrdiff_t count = slice_count(f, f->rank);
    mhai_mpi_receive(&f->exchange, (char *)f->parts, sizeof(float) * (size_t)count, rank,
                     TAG_NODES);
    f->held[place(f, level, index)] = f->parts;
    f->parts += count;
}

/* The slice of a node, in `to`: one that somebody holds, or the sum of its two. `spare` has room
 * for a slice on every level. */
static void total_of(const finishing *f, int level, ptrdiff_t index, float *to, float *spare)
{
    const ptrdiff_t count = slice_count(f, f->rank);
    const float *const there = f->held[place(f, level, index)];
    if (there) {
        memcpy(to, there, sizeof *to * (size_t)count);
        return;
    }
    total_of(f, level - 1, 2 * index, to, spare);
    if (2 * index + 1 >= mhai_mpi_tree_width(f->sum->leaves, level - 1))
        return;
    total_of(f, level - 1, 2 * index + 1, spare, spare + count);
    for (ptrdiff_t n = 0; n < count; n++)
        to[n] += spare[n];
}

/* Who has added what; every leaf must be there once. */
static mha_status gather_added(finishing *f)
{
    mha_mpi_sum *const sum = f->sum;
    MPI_Request request = MPI_REQUEST_NULL;
    mha_status status = MHA_OK;
    if (sum->leaves > INT32_MAX / 2)
        return MHA_ERR_OVERFLOW;
    if (f->ranks == 1)
        memcpy(f->added, sum->added, (size_t)sum->leaves);
    else if ((status =
                  mhai_mpi_result(sum->group, MPI_Iallgather(sum->added, (int)sum->leaves, MPI_BYTE,
                                                             f->added, (int)sum->leaves, MPI_BYTE,
                                                             sum->group->comm, &request))) ||
             (status = mhai_mpi_wait(sum->group, 1, &request)))
        return status;
    for (ptrdiff_t leaf = 0; leaf < sum->leaves; leaf++) {
        int count = 0;
        for (int rank = 0; rank < f->ranks; rank++)
            if (f->added[rank * sum->leaves + leaf]) {
                f->owners[leaf] = rank;
                count++;
            }
        if (count != 1)
            return MHA_ERR_LENGTH;
    }
    return MHA_OK;
}

static mha_status exchange_totals(finishing *f, float *total)
{
    for (int n = 1; n < f->ranks; n++) {
        const int to = (f->rank + n) % f->ranks, from = (f->rank + f->ranks - n) % f->ranks;
        mhai_mpi_receive(&f->exchange, (char *)(total + slice_first(f, from)),
                         sizeof(float) * (size_t)slice_count(f, from), from, TAG_TOTAL);
        mhai_mpi_send(&f->exchange, (const char *)(total + slice_first(f, f->rank)),
                      sizeof(float) * (size_t)slice_count(f, f->rank), to, TAG_TOTAL);
    }
    return mhai_mpi_finish(&f->exchange);
}

/* Memory for a finish; ranks agree about it before anything is sent. */
static mha_status allocate(finishing *f, char **memory)
{
    mha_mpi_sum *const sum = f->sum;
    const int levels = mhai_mpi_tree_height(sum->leaves);
    const size_t slice = sizeof(float) * (size_t)(slice_count(f, 0) + 1);
    const size_t nodes = (size_t)place(f, levels, 1), leaves = (size_t)sum->leaves;
    const size_t messages =
        2 * ((size_t)f->ranks * (leaves + 1) * (mhai_mpi_messages(sum->group, slice) + 1));
    mhai_mpi_work work = {0};
    for (int pass = 0; pass < 2; pass++) {
        f->added = mhai_mpi_take(&work, (size_t)f->ranks * leaves);
        f->owners = mhai_mpi_take(&work, sizeof *f->owners * leaves);
        f->held = mhai_mpi_take(&work, sizeof *f->held * nodes);
        f->exchange.requests = mhai_mpi_take(&work, sizeof(MPI_Request) * messages);
        f->parts = mhai_mpi_take(&work, slice * leaves);
        f->spare = mhai_mpi_take(&work, slice * (size_t)(levels + 2));
        if (pass == 1)
            return MHA_OK;
        *memory = calloc(1, work.used + 64);
        if (!*memory)
            return MHA_ERR_MEMORY;
        work = mhai_mpi_work_begin(*memory);
    }
    return MHA_OK;
}

static mha_status finish(finishing *f, float *total)
{
    mha_status status = gather_added(f);
    if (status)
        return status;
    for (int n = 1; n < f->ranks; n++)
        each_node(f, (f->rank + n) % f->ranks, receive_node);
    each_node(f, f->rank, send_node);
    if ((status = mhai_mpi_finish(&f->exchange)))
        return status;
    total_of(f, mhai_mpi_tree_height(f->sum->leaves), 0, total + slice_first(f, f->rank), f->spare);
    return exchange_totals(f, total);
}

mha_status mha_mpi_sum_finish(mha_mpi_sum *sum, float *total)
{
    if (!sum)
        return MHA_ERR_NULL;
    finishing f = {.sum = sum,
                   .rank = sum->group->rank,
                   .ranks = sum->group->ranks,
                   .exchange = {.group = sum->group}};
    char *memory = NULL;
    const int64_t numbers[] = {sum->count, sum->leaves};
    const uint64_t hash = mhai_mpi_hash(MHAI_MPI_HASH_START + 1, numbers, sizeof numbers);
    mha_status status = total || sum->count == 0 ? allocate(&f, &memory) : MHA_ERR_NULL;
    status = mhai_mpi_agree(sum->group, status, hash, NULL, 0);
    if (!status)
        status = finish(&f, total);
    /* MPI may still write to it after an error. */
    if (!sum->group->broken)
        free(memory);
    if (!status)
        drop_nodes(sum);
    return status;
}
