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
    "  train     as \"mha train\", by all ranks together: the same model, bit for bit;\n"
    "            takes the options of mha train, of which --micro-batches says how many\n"
    "            parts of a step can be computed at the same time, and --timeout\n"
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
    "  --link N      of a bench: Gb/s between machines, to compare waiting with the model\n"
    "  --count N     problems (verify: 50), or runs of which the best counts (bench: 5)\n"
    "  --timeout N   seconds without an answer of another rank (60; train: 600)\n";

enum { VERIFY, BENCH, TRAIN, COMMANDS };
static const char *const commands[COMMANDS] = {"verify", "bench", "train"};

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
    } numbers[] = {{"--tokens", &r->tokens}, {"--heads", &r->heads}, {"--groups", &r->groups},
                   {"--width", &r->width},   {"--count", &r->count}, {"--link", &r->link}};
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
static void give_up(int code)
{
    alarm(2); /* MPI_Abort() may hang when a link is lost */
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

/* verify and bench. Returns false for a wrong command line. */
static bool read_request(job_request *r, double *timeout, bool verifies, int argc, char **argv)
{
    *r = (job_request){.tokens = verifies ? 200 : 4096,
                       .heads = 8,
                       .width = 64,
                       .count = verifies ? 50 : 5,
                       .split = MHA_MPI_ZIGZAG};
    bool fine = argc % 2 == 0;
    for (int n = 2; fine && n + 1 < argc; n += 2)
        fine = read_option(r, timeout, argv[n], argv[n + 1]);
    r->groups = r->groups ? r->groups : r->heads;
    return fine && r->heads % r->groups == 0;
}

/* train: takes --timeout N out of the arguments, whose other options are read by mha train. */
static bool take_timeout(double *timeout, int *argc, char **argv)
{
    *timeout = 600.0;
    for (int n = 2; n < *argc; n++) {
        if (strcmp(argv[n], "--timeout") != 0)
            continue;
        *timeout = n + 1 < *argc ? (double)whole(argv[n + 1]) : 0.0;
        for (int k = n; k + 2 < *argc; k++)
            argv[k] = argv[k + 2];
        *argc -= 2;
        return *timeout > 0.0;
    }
    return true;
}

static int run(mha_mpi_group *group, int command, const job_request *r, int argc, char **argv)
{
    return command == VERIFY  ? mpi_verify(group, r)
           : command == BENCH ? mpi_bench(group, r)
                              : mpi_train(group, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    const int command = argc > 1 ? find(argv[1], commands, COMMANDS) : -1;
    job_request r;
    double timeout = 60.0;
    int given;
    if (command < 0 ||
        (command == TRAIN ? !take_timeout(&timeout, &argc, argv)
                          : !read_request(&r, &timeout, command == VERIFY, argc, argv))) {
        const bool asked = argc > 1 && strcmp(argv[1], "--help") == 0;
        fputs(usage, asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    const mha_mpi_group_config config = {.size = sizeof config, .timeout = timeout};
    mha_mpi_group *group = NULL;
    const mha_status status = mha_mpi_group_create(&group, MPI_COMM_WORLD, &config);
    if (status)
        fprintf(stderr, "mha-mpi: %s\n", mha_status_string(status));
    const int code = status ? 1 : run(group, command, &r, argc, argv);
    int nothing = 0;
    /* Ranks that agree about the end come to it; the others cannot wait for each other. */
    if (status || (code != 0 && mha_mpi_agree(group, &nothing, NULL, 0) != MHA_OK))
        give_up(code);
    mha_mpi_group_free(group);
    MPI_Finalize();
    return code;
}
