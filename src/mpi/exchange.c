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
