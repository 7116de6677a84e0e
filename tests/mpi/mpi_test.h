/* SPDX-License-Identifier: MIT */
/*
 * Tests with several ranks. Every rank checks; rank 0 prints the last line for all of them. A
 * failed check says which rank it was on.
 */
#ifndef MHA_MPI_TEST_H
#define MHA_MPI_TEST_H

#include "mpi/spread.h"

/* Starts MPI and makes a group of all ranks. */
mha_mpi_group *mpi_test_begin(int *argc, char ***argv, const mha_mpi_group_config *config);

/* Ends the test that was running and begins another. */
void mpi_test(const char *name);

bool mpi_check(bool ok, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define CHECK(condition, ...) mpi_check((condition), __FILE__, __LINE__, __VA_ARGS__)

/* Prints "NAME: N passed, N failed, N skipped" and ends MPI. The exit code. */
int mpi_test_end(mha_mpi_group *group);

/* The same without MPI, on this rank alone: after a group was broken. */
int mpi_test_end_alone(void);

#endif
