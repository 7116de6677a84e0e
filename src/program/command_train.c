/* SPDX-License-Identifier: MIT */
/*
 * mha train: a translator, a classifier of pictures, or a model that says what is in them or where.
 *
 *      options --> request --> training, new or from its checkpoint
 *      train_loop()            all steps, or an interrupt
 *      train_finish()          model file, accuracy, what to try next
 *
 * train_request.h lists the files that the parts are in.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_lock.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/long_run.h"
#include "program/session.h"
#include "program/train_finish.h"
#include "translator/marian_folder.h"

enum { VALIDATION_MAX = 256 };

/* With --resume, settings may be repeated but not changed: it would not be the same training. */
static int compare_settings(const train_request *r, const training_config *config)
{
    char was[TRAINING_TEXT_MAX], now[TRAINING_TEXT_MAX];
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        if (r->given[n] == NULL)
            continue;
        training_setting_text(config, n, was);
        training_setting_text(&r->config, n, now);
        if (strcmp(was, now) != 0)
            return args_wrong("train: --%s %s: the checkpoint was made with %s; leave it out, or "
                              "delete %s to start again",
                              training_setting_name(n), now, was, r->checkpoint);
    }
    return EXIT_GO_ON;
}

/* Bits depend on the instruction set, so a change of it is worth a note. */
static void say_resumed(const train_request *r, const training *t)
{
    const char *const isa = training_loaded_isa(t), *const now = training_isa(t);
    if (!r->quiet)
        fprintf(stderr, "resumed from %s after step %" PRId64 "\n", r->checkpoint,
                training_steps_done(t));
    if (strcmp(isa, now) != 0)
        fprintf(stderr,
                "mha: note: the checkpoint was made with %s, but this is %s: the model will differ "
                "in some bits from one trained without interruption. MHA_ISA=%s forces the former "
                "on a CPU that has it\n",
                isa, now, isa);
}

/* How native products are computed here: a CPU without instructions for them takes longer. */
static void say_arithmetic(const train_request *r, const training *t)
{
    const training_config *const c = training_get_config(t);
    if (c->arithmetic == MHA_NATIVE && !r->quiet)
        fprintf(stderr, "products are %s\n",
                mha_arithmetic_explain(MHA_NATIVE, MHA_BF16, c->model.width));
}

/* A new training, which begins with the model of --start if there is one. */
static training *create(const train_request *r, training_data *data, mha_pool *pool,
                        char message[TRANSFORMER_MESSAGE_MAX])
{
    float *values;
    training *made = NULL;
    if (r->start == NULL)
        return training_create(&r->config, data, pool, message);
    if (marian_folder_values(r->start, &r->config.model, &values, message) == MHA_OK)
        made = training_create_from(&r->config, values, data, pool, message);
    free(values);
    return made;
}

/* Creates the training or loads its checkpoint. */
static int begin(const train_request *r, training_data *data, mha_pool *pool, training **made)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    *made = r->resume ? training_load(r->checkpoint, data, pool, message)
                      : create(r, data, pool, message);
    if (*made == NULL)
        return args_failed("%s", message);
    const int code = compare_settings(r, training_get_config(*made));
    if (code == EXIT_GO_ON && r->resume && !train_follows(r))
        say_resumed(r, *made);
    if (code == EXIT_GO_ON)
        say_arithmetic(r, *made);
    return code;
}

/* The code of the process of lowest rank that does not go on; its own of one that is alone. */
static int agree(const training_team *team, int code)
{
    int number = code + 1; /* EXIT_GO_ON is 0 */
    if (team == NULL)
        return code;
    const mha_status status = team->agree(team->context, &number, 0);
    return status == MHA_OK ? number - 1 : args_failed("%s", mha_status_string(status));
}

/* The others have begun too, with the same settings and files. */
static int join(const training_team *team, training *t)
{
    if (team == NULL)
        return EXIT_GO_ON;
    const mha_status status = training_join(t, team);
    const int parts = training_get_config(t)->micro_batches;
    if (status == MHA_OK && parts < team->ranks && team->rank == 0)
        fprintf(stderr,
                "mha: note: a step has %d part%s, so only %d of %d processes have work; "
                "--micro-batches %d has work for all\n",
                parts, parts == 1 ? "" : "s", parts, team->ranks, team->ranks);
    if (status == MHA_ERR_AGREE)
        return args_failed("the processes do not have the same settings, files or checkpoint");
    return status == MHA_OK ? EXIT_GO_ON : args_failed("%s", mha_status_string(status));
}

/* Sentences of a validation. Those of the laboratory are alike, so fewer are enough. */
static int64_t validation_sentences(const train_request *r)
{
    return !train_makes_folder(r) && r->evaluate > VALIDATION_MAX ? VALIDATION_MAX : r->evaluate;
}

static int run(const train_request *r, train_sources sources, training_data *data, mha_pool *pool,
               int argc, char **argv)
{
    train_model model;
    int code = train_model_open(&model, r, sources, pool);
    const bool writes = !train_follows(r);
    train_loop_job job = {.model = &model,
                          .checkpoint = writes ? r->checkpoint : NULL,
                          .curve = writes ? r->curve : NULL,
                          .log = writes ? r->log : NULL,
                          .every_steps = r->every_steps,
                          .every_seconds = r->every_seconds,
                          .validation = validation_sentences(r),
                          .translate = sources.text != NULL && writes ? r->translate : 0,
                          .quiet = r->quiet};
    if (code == EXIT_GO_ON)
        code = begin(r, data, pool, &job.training);
    code = agree(r->team, code);
    if (code == EXIT_GO_ON)
        code = join(r->team, job.training);
    if (code == EXIT_GO_ON)
        code = train_loop(&job);
    if (code == EXIT_GO_ON)
        code = agree(r->team, writes ? train_finish(r, &job, pool) : EXIT_FINE);
    else if (code > 128 && writes)
        long_run_say_resume(argc, argv, !r->resume);
    training_free(job.training);
    train_model_close(&model);
    return code;
}

static int run_with_threads(train_request *r, int argc, char **argv)
{
    mha_pool *pool;
    train_text text = {.json = NULL};
    train_images images = {.data = NULL};
    train_scenes scenes;
    training_data *data = NULL; /* the laboratory */
    int code = session_open_pool(&pool, r->threads);
    if (code == EXIT_GO_ON && r->pairs != NULL)
        code = train_text_open(&text, r, pool);
    if (code == EXIT_GO_ON && r->images != NULL)
        code = train_images_open(&images, r);
    if (code == EXIT_GO_ON && r->scenes)
        code = train_scenes_open(&scenes, r);
    code = agree(r->team, code);
    if (code == EXIT_GO_ON) {
        const train_sources sources = {.text = r->pairs != NULL ? &text : NULL,
                                       .images = r->images != NULL ? &images : NULL,
                                       .scenes = r->scenes ? &scenes : NULL};
        data = sources.text != NULL     ? text_data_base(text.data)
               : sources.images != NULL ? vision_data_base(images.data)
               : sources.scenes != NULL ? train_scenes_base(&scenes, r)
                                        : NULL;
        code = run(r, sources, data, pool, argc, argv);
    }
    train_text_close(&text);
    train_images_close(&images);
    mha_pool_free(pool);
    return code;
}

/* Locks and protects the files; the process that writes them does it for all. */
static int take_files(const train_request *r, file_lock *model, file_lock *checkpoint)
{
    if (train_follows(r))
        return EXIT_GO_ON;
    return file_lock_take(model, r->output, "training") &&
                   file_lock_take(checkpoint, r->checkpoint, "training")
               ? train_files_protect(r)
               : EXIT_FAILED;
}

int train_together(int argc, char **argv, const training_team *team)
{
    train_request r = {
        .output = TRAIN_OUTPUT, .every = "5m", .type_name = "f16", .evaluate = 1000, .team = team};
    file_lock model = {.name = NULL}, checkpoint = {.name = NULL};
    int code = agree(team, train_options_read(&r, argc, argv));
    r.quiet = r.quiet || train_follows(&r);
    if (code == EXIT_GO_ON)
        code = agree(team, take_files(&r, &model, &checkpoint));
    if (code == EXIT_GO_ON)
        train_files_clean(&r);
    if (code == EXIT_GO_ON)
        code = run_with_threads(&r, argc, argv);
    file_lock_release(&checkpoint);
    file_lock_release(&model);
    return code;
}

int command_train(int argc, char **argv)
{
    return train_together(argc, argv, NULL);
}
