/* SPDX-License-Identifier: MIT */
/*
 * Opens what a command computes with, in this order: the number of threads (a wrong variable is
 * wrong usage), the instruction set, the model, the threads themselves.
 */
#include "program/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "program/args.h"

const char *require_isa(void)
{
    const char *isa = mha_isa_name();
    if (isa != NULL)
        return isa;
    const char *asked = getenv("MHA_ISA");
    fprintf(stderr,
            "mha: MHA_ISA=%s: no such instruction set, or this CPU does not have it; \"c\" always "
            "works, and without MHA_ISA the best one is used\n",
            asked != NULL ? asked : "");
    return NULL;
}

/* `threads` 0 is one per CPU. */
static int start_threads(mha_pool **pool, int threads)
{
    const mha_status status = mha_pool_create(pool, threads);
    if (status == MHA_OK)
        return EXIT_GO_ON;
    return args_failed("no threads: %s", mha_status_string(status));
}

static int load_model(session *s, const char *model_file)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    if (!model_path_find(model_file, s->path))
        return EXIT_FAILED;
    if ((s->model = translator_load(s->path, message)) != NULL)
        return EXIT_GO_ON;
    return args_failed("%s", message);
}

/* The first two steps: *count is for start_threads(). */
static int prepare(int64_t threads, int *count)
{
    const int found = args_threads(threads, -1);
    *count = found > 0 ? found : 0;
    if (found == 0)
        return EXIT_USAGE;
    return require_isa() != NULL ? EXIT_GO_ON : EXIT_FAILED;
}

int session_open(session *s, const char *model_file, int64_t threads)
{
    int count;
    *s = (session){.path = ""};
    int code = prepare(threads, &count);
    if (code == EXIT_GO_ON)
        code = load_model(s, model_file);
    return code == EXIT_GO_ON ? start_threads(&s->pool, count) : code;
}

int session_open_any(session *s, const char *model_file, int64_t threads)
{
    const int code = session_open(s, model_file, threads);
    if (code != EXIT_GO_ON)
        return code;
    subject_of_translator(&s->subject, s->model);
    return subject_count_words(&s->subject) ? EXIT_GO_ON : args_failed("out of memory");
}

void session_close(session *s)
{
    mha_pool_free(s->pool);
    subject_close(&s->subject);
    translator_free(s->model);
}

int session_open_pool(mha_pool **pool, int64_t threads)
{
    int count;
    *pool = NULL;
    const int code = prepare(threads, &count);
    return code == EXIT_GO_ON ? start_threads(pool, count) : code;
}
