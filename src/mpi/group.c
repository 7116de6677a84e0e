/* SPDX-License-Identifier: MIT */
/*
 * The ranks that work together: a copy of the caller's communicator, so that no message of ours
 * meets one of theirs. Every wait polls, with a limit for the time in which nothing happens: a rank
 * that is gone ends no call of MPI by itself.
 */
#include "mpi/mpi_parts.h"

#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_TIMEOUT = 300 };
#define DEFAULT_MESSAGE ((size_t)1 << 28)

mha_status mhai_mpi_fail(char *message, size_t size, mha_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (message && size > 0)
        vsnprintf(message, size, format, list);
    va_end(list);
    return status;
}

uint64_t mhai_mpi_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *const from = data;
    for (size_t n = 0; n < bytes; n++)
        hash = (hash ^ from[n]) * UINT64_C(0x100000001b3);
    return hash;
}

/* -------------------------------------------------------------- waiting ----- */

double mhai_mpi_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

mha_status mhai_mpi_result(mha_mpi_group *group, int code)
{
    if (code == MPI_SUCCESS)
        return MHA_OK;
    if (!group->broken)
        group->broken = MHA_ERR_MPI;
    return group->broken;
}

/* Looks at all requests at once, since every look lets MPI look at everything. *left: how many are
 * not done; done ones become MPI_REQUEST_NULL. */
static mha_status look(mha_mpi_group *group, int count, MPI_Request *requests, int *left,
                       bool *moved)
{
    int done = 1, which = 0;
    *left = 0;
    *moved = false;
    while (done) {
        const mha_status status =
            mhai_mpi_result(group, MPI_Testany(count, requests, &which, &done, MPI_STATUS_IGNORE));
        if (status)
            return status;
        if (which == MPI_UNDEFINED)
            break;
        *moved = true;
    }
    for (int n = 0; n < count; n++)
        *left += requests[n] != MPI_REQUEST_NULL;
    return MHA_OK;
}

mha_status mhai_mpi_poll(mha_mpi_group *group, int count, MPI_Request *requests, int *left,
                         double *progress)
{
    bool moved;
    const mha_status status = look(group, count, requests, left, &moved);
    if (moved)
        *progress = mhai_mpi_now();
    return status;
}

/* CPU time of this thread. */
static double cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* At first others may have the core; then this rank sleeps between looks, the longer the less
 * happens, so that waiting costs little and ends at most an eighth later than it could. */
static void give_way(double idle)
{
    const double most = 1e-3, nap = idle / 8.0 < most ? idle / 8.0 : most;
    if (idle < 5e-5)
        sched_yield();
    else
        nanosleep(&(struct timespec){0, (long)(1e9 * nap)}, NULL);
}

/*
 * MPI moves parts of messages while it is looked at, without saying so. But a look that moves
 * nothing costs about the same each time: one that costs clearly more than the cheapest has copied
 * something, and more may be there.
 */
mha_status mhai_mpi_wait(mha_mpi_group *group, int count, MPI_Request *requests)
{
    double progress = mhai_mpi_now(), busy = progress, cheapest = 1.0;
    int left = 0;
    for (;;) {
        const double start = cpu_now();
        const mha_status status = mhai_mpi_poll(group, count, requests, &left, &progress);
        const double cost = cpu_now() - start, now = mhai_mpi_now();
        if (status || left == 0)
            return status;
        if (now - progress > group->timeout)
            return group->broken = MHA_ERR_TIMEOUT;
        cheapest = cost < cheapest ? cost : cheapest;
        if (cost > 2.0 * cheapest + 5e-6 || progress > busy)
            busy = now;
        give_way(now - busy);
    }
}

/* ------------------------------------------------------------ agreement ----- */

enum { WORST, HASH, NOT_HASH, AGREED };

/* What all ranks say. *rank: the lowest that has a code other than 0, and *code its code, from 0
 * on; -1: none. *same: whether all hashes are equal. */
static mha_status compare(mha_mpi_group *group, int *code, uint64_t hash, int *rank, bool *same)
{
    /* The largest number of all: the lowest rank that has a code comes first. */
    const int64_t mine[AGREED] = {*code ? ((int64_t)(group->ranks - group->rank) << 32) + *code : 0,
                                  (int64_t)hash, (int64_t)~hash};
    int64_t all[AGREED];
    MPI_Request request = MPI_REQUEST_NULL;
    mha_status status = mhai_mpi_result(
        group, MPI_Iallreduce(mine, all, AGREED, MPI_INT64_T, MPI_MAX, group->comm, &request));
    if (status || (status = mhai_mpi_wait(group, 1, &request)))
        return status;
    *rank = all[WORST] ? group->ranks - (int)(all[WORST] >> 32) : -1;
    *code = (int)(all[WORST] & INT32_MAX);
    *same = (uint64_t)all[HASH] == ~(uint64_t)all[NOT_HASH];
    return MHA_OK;
}

mha_status mhai_mpi_agree(mha_mpi_group *group, mha_status status, uint64_t hash, char *message,
                          size_t message_size)
{
    if (group->broken)
        return mhai_mpi_fail(message, message_size, group->broken,
                             "the group is broken by an earlier error");
    if (group->ranks == 1)
        return status;
    int code = -(int)status, rank;
    bool same;
    const mha_status result = compare(group, &code, hash, &rank, &same);
    if (result)
        return mhai_mpi_fail(message, message_size, result, "no agreement: %s",
                             mha_status_string(result));
    status = (mha_status)-code;
    if (rank >= 0)
        return rank == group->rank
                   ? status
                   : mhai_mpi_fail(message, message_size, status, "rank %d refuses: %s", rank,
                                   mha_status_string(status));
    if (!same)
        return mhai_mpi_fail(message, message_size, MHA_ERR_AGREE,
                             "the ranks were not given the same arguments, or have different "
                             "versions or instruction sets of libmha");
    return MHA_OK;
}

mha_status mha_mpi_agree(mha_mpi_group *group, int *number, const void *same, size_t bytes)
{
    enum { INVALID = INT_MAX };
    int rank, code;
    bool equal = true;
    if (!group || !number || (!same && bytes > 0))
        return MHA_ERR_NULL;
    if (group->broken)
        return group->broken;
    code = *number < 0 ? INVALID : *number;
    if (group->ranks > 1) {
        const uint64_t hash = mhai_mpi_hash(MHAI_MPI_HASH_START, same, bytes);
        const mha_status status = compare(group, &code, hash, &rank, &equal);
        if (status)
            return status;
    }
    if (code == INVALID)
        return MHA_ERR_LENGTH;
    *number = code;
    return equal ? MHA_OK : MHA_ERR_AGREE;
}

/* ------------------------------------------------------------- creation ----- */

static mha_status read_config(mha_mpi_group *group, const mha_mpi_group_config *given,
                              mha_mpi_group_config *config)
{
    if (given && given->size != sizeof *given)
        return MHA_ERR_STRUCT;
    if (given)
        *config = *given;
    const size_t bytes = config->message_bytes ? config->message_bytes : DEFAULT_MESSAGE;
    group->timeout = config->timeout != 0.0 ? config->timeout : DEFAULT_TIMEOUT;
    group->message_bytes = bytes;
    if (!(group->timeout > 0.0) || bytes > INT_MAX)
        return mhai_mpi_fail(config->message, config->message_size, MHA_ERR_FLAG,
                             "timeout is %g and message_bytes %zu; use a positive time, and less "
                             "than 2^31 bytes",
                             config->timeout, bytes);
    return MHA_OK;
}

/* The copy of the communicator, with the errors that happen on it returned. */
static mha_status copy_comm(mha_mpi_group *group, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    mha_status status = mhai_mpi_result(group, MPI_Comm_idup(comm, &group->comm, &request));
    if (status || (status = mhai_mpi_wait(group, 1, &request)))
        return status;
    return mhai_mpi_result(group, MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN));
}

/* What ranks must have in common before anything else. */
static uint64_t identity(const mha_mpi_group *group)
{
    const int version = mha_version();
    const char *const isa = mha_isa_name();
    uint64_t hash = mhai_mpi_hash(MHAI_MPI_HASH_START, &version, sizeof version);
    hash = mhai_mpi_hash(hash, isa ? isa : "", isa ? strlen(isa) : 0);
    return mhai_mpi_hash(hash, &group->message_bytes, sizeof group->message_bytes);
}

/* Until the ranks have a communicator of their own, a rank with a bad configuration takes part. */
static mha_status connect(mha_mpi_group *group, MPI_Comm comm, mha_status status,
                          const mha_mpi_group_config *config)
{
    int code;
    if ((code = MPI_Comm_rank(comm, &group->rank)) != MPI_SUCCESS ||
        (code = MPI_Comm_size(comm, &group->ranks)) != MPI_SUCCESS)
        return mhai_mpi_result(group, code);
    if (!status && !mha_isa_name())
        status = mhai_mpi_fail(config->message, config->message_size, MHA_ERR_ISA,
                               "MHA_ISA names an instruction set that cannot run here");
    if (group->ranks == 1)
        return status;
    const mha_status copied = copy_comm(group, comm);
    if (copied)
        return mhai_mpi_fail(config->message, config->message_size, copied,
                             "the communicator cannot be copied");
    return mhai_mpi_agree(group, status, identity(group), config->message, config->message_size);
}

mha_status mha_mpi_group_create(mha_mpi_group **group, MPI_Comm comm,
                                const mha_mpi_group_config *config)
{
    mha_mpi_group_config full = {.size = sizeof full};
    if (!group)
        return MHA_ERR_NULL;
    *group = NULL;
    if (comm == MPI_COMM_NULL)
        return MHA_ERR_NULL;
    mha_mpi_group *const made = calloc(1, sizeof *made);
    if (!made)
        return MHA_ERR_MEMORY;
    made->comm = MPI_COMM_NULL;
    mha_status status = read_config(made, config, &full);
    if (status)
        made->timeout = DEFAULT_TIMEOUT;
    status = connect(made, comm, status, &full);
    if (status)
        mha_mpi_group_free(made);
    else
        *group = made;
    return status;
}

mha_status mha_mpi_group_from_int(mha_mpi_group **group, int comm,
                                  const mha_mpi_group_config *config)
{
    return mha_mpi_group_create(group, MPI_Comm_f2c((MPI_Fint)comm), config);
}

void mha_mpi_group_free(mha_mpi_group *group)
{
    if (!group)
        return;
    if (group->comm != MPI_COMM_NULL && !group->broken)
        MPI_Comm_free(&group->comm);
    free(group);
}

int mha_mpi_group_rank(const mha_mpi_group *group)
{
    return group ? group->rank : -1;
}

int mha_mpi_group_ranks(const mha_mpi_group *group)
{
    return group ? group->ranks : -1;
}
