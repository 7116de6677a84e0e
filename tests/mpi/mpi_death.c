/* SPDX-License-Identifier: MIT */
/*
 * mpi_death HOW CALL FILE: the last rank exits, is killed, stops or loses its link at a call of
 * MPI. Every rank that still runs returns an error within its time limit and says so in FILE.RANK;
 * then it ends at once, since MPI cannot be ended in order any more.
 */
#include "mpi/mpi_hooks.h"
#include "mpi/mpi_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    enum { LIMIT = 1, SLACK = 4 };
    const mha_mpi_group_config config = {.size = sizeof config, .timeout = LIMIT};
    const mha_mpi_plan_config gather = {.size = sizeof gather, .scheme = MHA_MPI_GATHER};
    const char *const how = argc > 2 ? argv[1] : "exit";
    const int call = argc > 2 ? atoi(argv[2]) : 3;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, &config);
    const int rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    spread *const s = spread_new(4, 0, 60, group);
    mha_mpi_plan *plan = NULL;
    mpi_test("survivors_return");
    CHECK(spread_run_alone(s, true) == MHA_OK, "alone");
    CHECK(mha_mpi_plan_create(&plan, group, &gather, &s->shape, &s->queries, &s->keys) == MHA_OK,
          "plan");
    /* Connections are made by the first messages, with the help of mpirun, which may itself fail
     * over a dead rank. All of them exist before one dies. */
    for (int pass = 0; pass < 2; pass++)
        CHECK(spread_run(s, plan, pass, NULL) == MHA_OK, "all ranks alive");
    hooks_reset();
    if (rank == ranks - 1) {
        hook.fault = strcmp(how, "exit") == 0   ? HOOK_EXIT
                     : strcmp(how, "kill") == 0 ? HOOK_KILL
                     : strcmp(how, "link") == 0 ? HOOK_LINK
                                                : HOOK_STOP;
        hook.at = call;
    }
    const double start = MPI_Wtime();
    mha_status status = MHA_OK;
    for (int n = 0; n < 20 && !status; n++)
        status = spread_run(s, plan, n % 2, NULL);
    const double took = MPI_Wtime() - start;
    CHECK(status == MHA_ERR_TIMEOUT || status == MHA_ERR_MPI, "%s", mha_status_string(status));
    CHECK(took < LIMIT + SLACK, "after %g seconds", took);
    const int code = mpi_test_end_alone();
    /* To a file: what a survivor prints may be lost with mpirun. */
    char name[512];
    snprintf(name, sizeof name, "%s.%d", argc > 3 ? argv[3] : "mpi_death", rank);
    FILE *const file = fopen(name, "w");
    if (file) {
        fprintf(file, "%s %s\n", code == 0 ? "returned" : "failed", mha_status_string(status));
        fclose(file);
    }
    _exit(code);
}
