/* SPDX-License-Identifier: MIT */
/*
 * Trainings when memory allocation (faults.h) or file calls (file_faults.h) fail. Failing to create
 * or load a training is reported; a training that fails to step, evaluate or save is unchanged; and
 * nothing leaks.
 */
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/file_faults.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "translator/training_parts.h"

static training_config small_config(void)
{
    training_config config = training_defaults();
    config.model.width = 8;
    config.model.heads = 2;
    config.model.ff_width = 8;
    config.model.layers[TRANSFORMER_SOURCE] = 1;
    config.model.layers[TRANSFORMER_TARGET] = 1;
    config.steps = 10;
    config.warm_up = 2;
    config.batch = 3;
    return config;
}

static const char *path;    /* of a checkpoint after two steps */
static const float *wanted; /* parameters after a third step */
static size_t wanted_bytes;

typedef enum job { JOB_CREATE, JOB_LOAD, JOB_STEP, JOB_VALIDATE, JOB_SAVE, JOBS } job;
static const char *const job_names[] = {"create", "load", "step", "validate", "save"};

/* Returns whether the job succeeded. A training that it makes goes to *t. */
static bool do_job(job which, training **t, char message[TRANSFORMER_MESSAGE_MAX])
{
    const training_config config = small_config();
    training_result result;
    training_score score;
    switch (which) {
    case JOB_CREATE:
        *t = training_create(&config, NULL, NULL, message);
        return *t != NULL;
    case JOB_LOAD:
        *t = training_load(path, NULL, NULL, message);
        return *t != NULL;
    case JOB_STEP:
        return training_step(*t, &result) == MHA_OK;
    case JOB_VALIDATE:
        return training_validate(*t, 5, &score) == MHA_OK;
    case JOB_SAVE:
        return training_save(*t, path, message) == MHA_OK;
    case JOBS:
        break;
    }
    return false;
}

/* After two steps and any failure, the third step gives the same parameters. */
static void check_third_step(training *t, job which, int n)
{
    training_result result;
    const int64_t before = t->step;
    if (before == 2)
        CHECK(training_step(t, &result) == MHA_OK, "%s, request %d: no step afterwards",
              job_names[which], n);
    CHECK(t->step == 3 && memcmp(t->values, wanted, wanted_bytes) == 0,
          "%s, request %d: another training afterwards", job_names[which], n);
}

/* Runs a job in which request n fails, alone or with all later ones. Returns whether the job made n
 * requests. */
static bool meet_failure(job which, bool memory, bool for_ever, int n)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const bool makes = which == JOB_CREATE || which == JOB_LOAD;
    training *t = makes ? NULL : training_load(path, NULL, NULL, message);
    file_faults_arm(memory ? 0 : n, for_ever, false);
    faults_arm(MEMORY, memory ? n : 0, for_ever);
    const bool done = do_job(which, &t, message);
    faults_disarm();
    file_faults_disarm();
    const bool met = (memory ? faults_requests(MEMORY) : file_faults_calls()) >= n;
    CHECK(done == !(memory ? met : file_faults_lost()), "%s, request %d: %s", job_names[which], n,
          done ? "done" : "not done");
    CHECK(done || which == JOB_STEP || which == JOB_VALIDATE || message[0],
          "%s, request %d: no message", job_names[which], n);
    CHECK(done || !makes || (faults_left(MEMORY) == 0 && file_faults_left() == 0),
          "%s, request %d: %d blocks left", job_names[which], n, faults_left(MEMORY));
    if (t && which != JOB_CREATE)
        check_third_step(t, which, n);
    training_free(t);
    return met;
}

static void go_through(bool memory, bool for_ever)
{
    for (job which = JOB_CREATE; which < JOBS; which++) {
        int n = 1;
        while (n < 2000 && meet_failure(which, memory, for_ever, n))
            n++;
        const bool asks = memory || which == JOB_LOAD || which == JOB_SAVE;
        CHECK(n > (asks ? 2 : 0), "%s makes no requests: are the wrappers linked?",
              job_names[which]);
        CHECK(n < 2000, "%s never comes to an end", job_names[which]);
    }
}

static void every_request_fails(void)
{
    go_through(true, false);
}

static void no_memory_from_some_point_on(void)
{
    go_through(true, true);
}

static void every_file_call_fails(void)
{
    go_through(false, false);
}

static void no_files_from_some_point_on(void)
{
    go_through(false, true);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    const temp_folder folder = temp_folder_new();
    const training_config config = small_config();
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    training_result result;
    training *const t = training_create(&config, NULL, NULL, message);
    if (!t)
        abort();
    path = temp_path(&folder, "checkpoint");
    for (int n = 0; n < 3; n++) {
        if (n == 2 && training_save(t, path, message) != MHA_OK)
            abort();
        if (training_step(t, &result) != MHA_OK)
            abort();
    }
    wanted = t->values;
    wanted_bytes = t->count * sizeof *t->values;
    RUN(every_request_fails);
    RUN(no_memory_from_some_point_on);
    RUN(every_file_call_fails);
    RUN(no_files_from_some_point_on);
    training_free(t);
    temp_folder_free(&folder);
    return test_end();
}
