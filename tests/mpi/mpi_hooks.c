/* SPDX-License-Identifier: MIT */
/* Calls of MPI, counted and made to fail (mpi_hooks.h), by its profiling interface. */
#include "mpi/mpi_hooks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

hooks hook;

void hooks_reset(void)
{
    memset(&hook, 0, sizeof hook);
}

/* Whether this call fails. */
static int happens(void)
{
    if (++hook.calls != hook.at || hook.fault == HOOK_TEST)
        return 0;
    const struct timespec late = {0, 200000000};
    switch (hook.fault) {
    case HOOK_EXIT:
        _exit(0);
    case HOOK_KILL:
        kill(getpid(), SIGKILL);
        return 0;
    case HOOK_STOP:
        kill(getpid(), SIGSTOP);
        return 0;
    case HOOK_LINK:
        return system(getenv("MPI_DEATH_COMMAND")) != 0;
    case HOOK_LATE:
        nanosleep(&late, NULL);
        return 0;
    case HOOK_FAIL:
        return 1;
    default:
        return 0;
    }
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (happens())
        return MPI_ERR_OTHER;
    hook.sent += (uint64_t)count;
    hook.largest = count > hook.largest ? count : hook.largest;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (happens())
        return MPI_ERR_OTHER;
    hook.received += (uint64_t)count;
    return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    return happens() ? MPI_ERR_OTHER : PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

int MPI_Iallgather(const void *from, int count, MPI_Datatype type, void *to, int to_count,
                   MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request)
{
    return happens() ? MPI_ERR_OTHER
                     : PMPI_Iallgather(from, count, type, to, to_count, to_type, comm, request);
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *copy, MPI_Request *request)
{
    return happens() ? MPI_ERR_OTHER : PMPI_Comm_idup(comm, copy, request);
}

int MPI_Testany(int count, MPI_Request *requests, int *which, int *done, MPI_Status *status)
{
    if (++hook.tests == hook.at && hook.fault == HOOK_TEST)
        return MPI_ERR_OTHER;
    return PMPI_Testany(count, requests, which, done, status);
}
