/* SPDX-License-Identifier: MIT */
/*
 * Blocks of bytes between ranks, in messages that an int can count. Both ends know how many bytes
 * there are and cut them alike; messages of one tag keep their order.
 */
#include "mpi/mpi_parts.h"

size_t mhai_mpi_messages(const mha_mpi_group *group, size_t bytes)
{
    return (bytes + group->message_bytes - 1) / group->message_bytes;
}

/* Notes the result of a call that has started a message. */
static void started(mhai_mpi_exchange *x, int code)
{
    x->status = mhai_mpi_result(x->group, code);
    x->count++;
}

void mhai_mpi_send(mhai_mpi_exchange *x, const char *data, size_t bytes, int to, int tag)
{
    while (bytes > 0 && !x->status) {
        const size_t part = bytes < x->group->message_bytes ? bytes : x->group->message_bytes;
        started(x, MPI_Isend(data, (int)part, MPI_BYTE, to, tag, x->group->comm,
                             &x->requests[x->count]));
        data += part;
        bytes -= part;
    }
}

void mhai_mpi_receive(mhai_mpi_exchange *x, char *data, size_t bytes, int from, int tag)
{
    while (bytes > 0 && !x->status) {
        const size_t part = bytes < x->group->message_bytes ? bytes : x->group->message_bytes;
        started(x, MPI_Irecv(data, (int)part, MPI_BYTE, from, tag, x->group->comm,
                             &x->requests[x->count]));
        data += part;
        bytes -= part;
    }
}

/* Copies of shorter blocks cost less than messages; but where messages are short anyway, blocks may
 * be as short. */
bool mhai_mpi_is_direct(const mha_mpi_group *group, const mhai_mpi_tensor *t,
                        const mhai_mpi_rows *owner)
{
    enum { SHORTEST_BLOCK = 16384 };
    const size_t least =
        group->message_bytes < SHORTEST_BLOCK ? group->message_bytes : SHORTEST_BLOCK;
    return !t->starts && owner->runs > 0 && t->bytes * (size_t)(owner->rows / owner->runs) >= least;
}

size_t mhai_mpi_row_messages(const mha_mpi_group *group, const mhai_mpi_tensor *t,
                             const mhai_mpi_rows *owner, mhai_mpi_heads heads)
{
    size_t messages = 0;
    for (ptrdiff_t n = 0; n < owner->runs; n++)
        messages +=
            mhai_mpi_messages(group, t->bytes * (size_t)(owner->run[n].last - owner->run[n].first));
    return messages * (size_t)(t->batches * mhai_mpi_heads_of(t, heads));
}

static void move_rows(mhai_mpi_exchange *x, const mhai_mpi_tensor *t, const mhai_mpi_rows *owner,
                      mhai_mpi_heads heads, int rank, int tag, bool sends)
{
    for (ptrdiff_t n = 0; n < owner->runs; n++) {
        const size_t bytes = t->bytes * (size_t)(owner->run[n].last - owner->run[n].first);
        for (ptrdiff_t b = 0; b < t->batches; b++)
            for (ptrdiff_t h = 0; h < mhai_mpi_heads_of(t, heads); h++) {
                char *const at = mhai_mpi_at(t, b, heads.first, owner->run[n].first) + h * t->sh;
                if (sends)
                    mhai_mpi_send(x, at, bytes, rank, tag);
                else
                    mhai_mpi_receive(x, at, bytes, rank, tag);
            }
    }
}

void mhai_mpi_send_rows(mhai_mpi_exchange *x, const mhai_mpi_tensor *t, const mhai_mpi_rows *owner,
                        mhai_mpi_heads heads, int to, int tag)
{
    move_rows(x, t, owner, heads, to, tag, true);
}

void mhai_mpi_receive_rows(mhai_mpi_exchange *x, const mhai_mpi_tensor *t,
                           const mhai_mpi_rows *owner, mhai_mpi_heads heads, int from, int tag)
{
    move_rows(x, t, owner, heads, from, tag, false);
}

void mhai_mpi_progress(mhai_mpi_exchange *x)
{
    int left;
    double ignored;
    if (x->count > 0 && !x->status)
        x->status = mhai_mpi_poll(x->group, x->count, x->requests, &left, &ignored);
}

mha_status mhai_mpi_finish(mhai_mpi_exchange *x)
{
    if (x->count > 0 && !x->status)
        x->status = mhai_mpi_wait(x->group, x->count, x->requests);
    if (!x->status)
        x->count = 0;
    return x->status;
}
