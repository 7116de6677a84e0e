/* SPDX-License-Identifier: MIT */
/*
 * The calls of MPI that libmha_mpi makes, between it and MPI: they can be counted, and a chosen one
 * can fail, or be the last thing that a rank does.
 */
#ifndef MHA_MPI_HOOKS_H
#define MHA_MPI_HOOKS_H

#include <mpi.h>

#include <stdint.h>

typedef enum hook_fault {
    HOOK_NONE,
    HOOK_FAIL, /* the call returns an error */
    HOOK_TEST, /* so does a call of MPI_Testany; `at` counts these */
    HOOK_EXIT, /* the rank ends */
    HOOK_KILL, /* by SIGKILL */
    HOOK_STOP, /* the rank stops, and does not go on */
    HOOK_LATE, /* the call waits for a while first */
    HOOK_LINK  /* the command in MPI_DEATH_COMMAND is run, which takes the link of the rank down */
} hook_fault;

typedef struct hooks {
    int calls; /* since the last reset, MPI_Testany aside */
    int tests; /* calls of MPI_Testany */
    uint64_t sent, received;
    int largest; /* bytes of a message */

    hook_fault fault;
    int at; /* which call it happens to, from 1 on; 0: none */
} hooks;

extern hooks hook;

void hooks_reset(void);

#endif
