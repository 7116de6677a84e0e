/* SPDX-License-Identifier: MIT */
/* Tests with several ranks (mpi_test.h). */
#include "mpi/mpi_test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FAILURES = 10 };

static struct {
    const char *program, *test;
    int rank, passed, failed, printed;
    bool failing;
} state;

mha_mpi_group *mpi_test_begin(int *argc, char ***argv, const mha_mpi_group_config *config)
{
    mha_mpi_group *group = NULL;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &state.rank);
    const char *const slash = strrchr((*argv)[0], '/');
    state.program = slash ? slash + 1 : (*argv)[0];
    const mha_status status = mha_mpi_group_create(&group, MPI_COMM_WORLD, config);
    if (status) {
        printf("rank %d has no group: %s\n", state.rank, mha_status_string(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return group;
}

static void close_test(void)
{
    if (state.test)
        *(state.failing ? &state.failed : &state.passed) += 1;
    state.failing = false;
}

void mpi_test(const char *name)
{
    close_test();
    state.test = name;
    state.printed = 0;
}

bool mpi_check(bool ok, const char *file, int line, const char *format, ...)
{
    va_list list;
    if (ok)
        return true;
    state.failing = true;
    if (state.printed++ >= MOST_FAILURES)
        return false;
    char text[512];
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printf("FAIL %s: %s:%d: rank %d: %s\n", state.test, file, line, state.rank, text);
    fflush(stdout);
    return false;
}

static int closing_line(int passed, int failed)
{
    printf("%s: %d passed, %d failed, 0 skipped\n", state.program, passed, failed);
    fflush(stdout);
    return failed > 0;
}

int mpi_test_end(mha_mpi_group *group)
{
    close_test();
    int failed = state.failed, most = 0;
    mha_mpi_group_free(group);
    MPI_Allreduce(&failed, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (state.rank == 0)
        closing_line(state.passed + state.failed - most, most);
    MPI_Finalize();
    return most > 0;
}

int mpi_test_end_alone(void)
{
    close_test();
    return closing_line(state.passed, state.failed);
}
