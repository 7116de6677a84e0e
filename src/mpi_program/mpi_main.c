/* SPDX-License-Identifier: MIT */
/* The program mha-mpi: its command line, and the group of all ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_program/job.h"

static const char usage[] =
    "usage: mpirun -n RANKS mha-mpi COMMAND [OPTION VALUE]...\n"
    "\n"
    "commands\n"
    "  verify    random problems over all ranks, compared bit by bit with one machine\n"
    "  bench     what a call over all ranks costs, in CPU time, against one call\n"
    "\n"
    "options\n"
    "  --tokens N    tokens (bench: 4096; verify: at most, 200)\n"
    "  --heads N     query heads (bench: 8)\n"
    "  --groups N    key/value heads (bench: as many)\n"
    "  --width N     of a head (bench: 64)\n"
    "  --scheme S    auto, gather, all-to-all, grid or ring\n"
    "  --split S     blocks or zigzag\n"
    "  --mask S      causal or full\n"
    "  --pass S      forward or both\n"
    "  --count N     problems (verify: 50), or runs of which the best counts (bench: 5)\n"
    "  --timeout N   seconds (60)\n";

static int find(const char *word, const char *const *words, int count)
{
    for (int n = 0; n < count; n++)
        if (strcmp(word, words[n]) == 0)
            return n;
    return -1;
}

/* A whole number from 1 on; 0 if it is none. */
static ptrdiff_t whole(const char *text)
{
    char *end;
    const long x = strtol(text, &end, 10);
    return *end == '\0' && x > 0 && x < 100000000 ? (ptrdiff_t)x : 0;
}

static bool read_option(job_request *r, double *timeout, const char *name, const char *value)
{
    static const char *const schemes[] = {"auto", "gather", "all-to-all", "grid", "ring"};
    static const char *const splits[] = {"blocks", "zigzag"}, *const masks[] = {"causal", "full"};
    static const char *const passes[] = {"forward", "both"};
    const struct {
        const char *name;
        ptrdiff_t *to;
    } numbers[] = {{"--tokens", &r->tokens},
                   {"--heads", &r->heads},
                   {"--groups", &r->groups},
                   {"--width", &r->width},
                   {"--count", &r->count}};
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        if (strcmp(name, numbers[n].name) == 0)
            return (*numbers[n].to = whole(value)) > 0;
    if (strcmp(name, "--timeout") == 0)
        return (*timeout = (double)whole(value)) > 0.0;
    const int scheme = find(value, schemes, 5), split = find(value, splits, 2);
    const int mask = find(value, masks, 2), pass = find(value, passes, 2);
    if (strcmp(name, "--scheme") == 0 && scheme >= 0)
        r->scheme = (mha_mpi_scheme)scheme;
    else if (strcmp(name, "--split") == 0 && split >= 0)
        r->split = (mha_mpi_split)split;
    else if (strcmp(name, "--mask") == 0 && mask >= 0)
        r->full = mask == 1;
    else if (strcmp(name, "--pass") == 0 && pass >= 0)
        r->backward = pass == 1;
    else
        return false;
    return true;
}

/* Ends all ranks after an error that has broken the group: others may not come to the end. */
static void give_up(void)
{
    alarm(2); /* MPI_Abort() may hang when a link is lost */
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

int main(int argc, char **argv)
{
    static const char *const commands[] = {"verify", "bench"};
    const int command = argc > 1 ? find(argv[1], commands, 2) : -1;
    const bool verifies = command == 0;
    job_request r = {.tokens = verifies ? 200 : 4096,
                     .heads = 8,
                     .width = 64,
                     .count = verifies ? 50 : 5,
                     .split = MHA_MPI_ZIGZAG};
    double timeout = 60.0;
    bool fine = command >= 0 && argc % 2 == 0;
    for (int n = 2; fine && n + 1 < argc; n += 2)
        fine = read_option(&r, &timeout, argv[n], argv[n + 1]);
    r.groups = r.groups ? r.groups : r.heads;
    fine = fine && r.heads % r.groups == 0;
    if (!fine) {
        fputs(usage, argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return argc > 1 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    MPI_Init(&argc, &argv);
    const mha_mpi_group_config config = {.size = sizeof config, .timeout = timeout};
    mha_mpi_group *group = NULL;
    const mha_status status = mha_mpi_group_create(&group, MPI_COMM_WORLD, &config);
    if (status)
        fprintf(stderr, "mha-mpi: %s\n", mha_status_string(status));
    const int code = status ? 1 : verifies ? mpi_verify(group, &r) : mpi_bench(group, &r);
    if (code != 0)
        give_up();
    mha_mpi_group_free(group);
    MPI_Finalize();
    return code;
}
