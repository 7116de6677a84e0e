/* SPDX-License-Identifier: MIT */
/* mha version: the program's version, its instruction set, compiler and default threads. */
#include <stdbool.h>
#include <stdio.h>

#include <mha/mha.h>

#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/options.h"
#include "program/session.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

/* CPUs that this process may use, which is what a pool with default threads gets. */
static int cpu_count(void)
{
    mha_pool *pool = NULL;
    const int count = mha_pool_create(&pool, 0) == MHA_OK ? mha_pool_threads(pool) : 1;
    mha_pool_free(pool);
    return count;
}

static void report_json(const char *isa, int threads)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "version", mha_version_string());
    json_string(&j, "isa", isa);
    json_string(&j, "compiler", COMPILER);
    json_integer(&j, "threads", threads);
    json_close(&j);
}

int command_version(int argc, char **argv)
{
    bool as_json = false;
    const arg_option options[] = {{OPTION_JSON(&as_json)}};
    const arg_command command = {
        .name = "version",
        .usage = "[--json]",
        .summary = "Print version, instruction set, compiler and number of threads.",
        ARG_OPTIONS(options),
    };
    const int code = args_parse(&command, argc, argv, NULL);
    if (code != EXIT_GO_ON)
        return code;
    const char *isa = require_isa();
    if (isa == NULL)
        return EXIT_FAILED;
    const int threads = args_threads(0, cpu_count());
    if (threads == 0)
        return EXIT_USAGE;
    if (as_json)
        report_json(isa, threads);
    else
        printf("mha %s\nisa       %s\ncompiler  %s\nthreads   %d\n", mha_version_string(), isa,
               COMPILER, threads);
    return EXIT_FINE;
}
