/* SPDX-License-Identifier: MIT */
/*
 * The end of a training: the model is written, then read again and judged by its translations,
 * or by the pictures it recognises or describes, or in which it finds things.
 * Only when it is on the disk is the checkpoint deleted; if it cannot be written, the training is
 * saved as a checkpoint.
 */
#include "program/train_finish.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/args.h"
#include "translator/accuracy.h"

/* Advice after the model could not be written and the training was saved. */
static void say_what_to_do(const train_request *r, mha_status status)
{
    if (status != MHA_ERR_FORMAT)
        fprintf(stderr,
                "mha: the training is saved in %s; --resume tries to write the model again\n",
                r->checkpoint);
    else if (r->type == MHA_F16)
        fprintf(
            stderr,
            "mha: the largest f16 value is 65504, and the model has larger ones. The training is "
            "saved in %s; \"--resume --type f32\" writes the model as it is. A lower --lr, "
            "another --seed or more --weight-decay keeps the values of a new training smaller\n",
            r->checkpoint);
    else
        fprintf(stderr,
                "mha: the training has diverged. The same settings would diverge again: delete %s "
                "and start again with a lower --lr, a longer --warm-up or another --seed\n",
                r->checkpoint);
}

/* Size of the model, its training and its last validation. */
static void report(const train_request *r, const training *t)
{
    const training_config *const config = training_get_config(t);
    const training_history history = training_get_history(t);
    transformer_map map;
    struct stat file = {.st_size = 0};
    char inside[TRAIN_PATH_MAX + 32];
    transformer_map_fill(&map, &config->model);
    snprintf(inside, sizeof inside, "%s/" TRAIN_MODEL_FILE, r->output);
    stat(train_makes_folder(r) ? inside : r->output, &file);
    printf("%s: %zu parameters as %s, %.2f MB\n", r->output, map.count, r->type_name,
           (double)file.st_size / 1e6);
    printf("steps              %" PRId64 " of %d %s, seed %" PRIu64 "\n", training_steps_done(t),
           r->pairs != NULL ? config->batch_tokens : config->batch,
           r->pairs != NULL                 ? "target tokens"
           : r->images != NULL || r->scenes ? "pictures"
                                            : "pairs",
           config->seed);
    if (history.mark_count > 0) {
        const training_mark *const last = &history.marks[history.mark_count - 1];
        printf("validation loss    %.4f%s\n", last->loss,
               r->images != NULL ? " nats per picture"
               : r->detect       ? " per query"
                                 : " nats per word");
        if (!r->detect) /* measured again below */
            printf(r->images != NULL ? "validation right   %.2f %%\n"
                                     : "words right        %.2f %%\n",
                   100.0 * last->words_right);
    }
    if (training_is_exhausted(t))
        printf("ended early        no lower validation loss in %d validations; the best model is "
               "kept\n",
               config->patience);
}

/* BLEU and chrF of the folder that was written. */
static int judge_folder(const train_request *r, const train_model *model)
{
    translation_score score;
    const int code = train_model_score_folder(model, r->output, r->evaluate, &score);
    if (code != EXIT_GO_ON)
        return code;
    printf("translations       BLEU %.2f, chrF %.2f (%" PRId64
           " sentences of the validation set)\n",
           score.bleu, score.chrf, score.sentences);
    return EXIT_FINE;
}

/* Loads the file that was written, so that the rounded model is judged and not the training. */
static int judge(const train_request *r, uint64_t seed, mha_pool *pool)
{
    static const translation_options greedy = {.beam = 1};
    char message[TRANSFORMER_MESSAGE_MAX];
    translator *const made = translator_load(r->output, message);
    int64_t right;
    if (made == NULL)
        return args_failed("%s", message);
    const mha_status status =
        accuracy_measure(made, seed, CORPUS_VALID, r->evaluate, &greedy, pool, &right);
    translator_free(made);
    if (status != MHA_OK)
        return args_failed("the model does not translate: %s", mha_status_string(status));
    printf("sentences right    %.2f %% (%" PRId64 " of %" PRId64
           " of the validation set, every word)\n",
           100.0 * (double)right / (double)r->evaluate, right, r->evaluate);
    return EXIT_FINE;
}

/* A command that tries the new model. */
static void say_next(const train_request *r)
{
    if (r->images != NULL || r->scenes) {
        printf("\nTry: %s see PICTURE.png --model %s\n", args_program, r->output);
        return;
    }
    printf("\nTry: %s translate --model %s \"%s\"\n", args_program, r->output,
           r->pairs != NULL ? "Hello, how are you?" : "the cat that i saw yesterday ran away");
}

int train_finish(const train_request *r, const train_loop_job *job, mha_pool *pool)
{
    const bool kept = training_get_config(job->training)->patience > 0; /* as the best so far */
    const mha_status status =
        kept ? MHA_OK : train_model_write(job->model, job->training, r->output);
    if (status != MHA_OK) {
        if (train_loop_save(job) == EXIT_FINE)
            say_what_to_do(r, status);
        return EXIT_FAILED;
    }
    if (unlink(r->checkpoint) != 0 && errno != ENOENT)
        fprintf(stderr, "mha: cannot delete %s: %s\n", r->checkpoint, strerror(errno));
    report(r, job->training);
    fflush(stdout);
    const uint64_t seed = training_get_config(job->training)->seed;
    const int code = r->pairs != NULL    ? judge_folder(r, job->model)
                     : r->images != NULL ? train_images_judge(job->model->sources.images, r, pool)
                     : r->scenes         ? train_scenes_judge(r, seed, pool)
                                         : judge(r, seed, pool);
    if (code == EXIT_FINE)
        say_next(r);
    return train_loop_draw(job) == EXIT_FINE ? code : EXIT_FAILED;
}
