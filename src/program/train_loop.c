/* SPDX-License-Identifier: MIT */
/*
 * The loop of "mha train". Signals only set a flag, which is looked at between steps, so that a
 * checkpoint is always of a whole step:
 *
 *      step --> diverged? --> validation every 1 % --> progress --> checkpoint, by time or steps
 */
#include "program/train_loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output_file.h"
#include "base/terminal.h"
#include "program/args.h"
#include "program/long_run.h"
#include "program/loss_curve.h"

enum { RECENT = 50, LINE_MAX_LENGTH = 1024 };

/* ------------------------------------------------------------ progress ----- */

typedef struct train_pace {
    double started, saved;      /* when the loop began, when there was a checkpoint last */
    int64_t first_step, tokens; /* of this loop; pictures instead of tokens where there are any */
    training_score valid;       /* of the last validation; no words: none yet */
} train_pace;

/* Mean of the last RECENT losses. */
static double recent_loss(const training *t)
{
    const int64_t done = training_steps_done(t), count = done < RECENT ? done : RECENT;
    const float *const losses = training_get_history(t).losses;
    double sum = 0.0;
    for (int64_t n = done - count; n < done; n++)
        sum += (double)losses[n];
    return sum / (double)count;
}

/* BLEU and chrF of the last validation, if they were measured. */
static void translations_text(const training *t, char text[64])
{
    const training_history history = training_get_history(t);
    const training_mark *const last =
        history.mark_count > 0 ? &history.marks[history.mark_count - 1] : NULL;
    text[0] = '\0';
    if (last != NULL && !isnan(last->bleu))
        snprintf(text, 64, "  BLEU %.1f  chrF %.1f", last->bleu, last->chrf);
}

/* `brief` leaves out what does not fit into 80 columns. */
static void progress_text(const training *t, const train_pace *pace, bool brief,
                          char text[LINE_MAX_LENGTH])
{
    const int64_t done = training_steps_done(t), steps = training_get_config(t)->steps;
    const transformer_form form = training_get_config(t)->model.form;
    const bool pictures = transformer_reads_pictures(&training_get_config(t)->model);
    const double passed = clock_seconds() - pace->started;
    const double a_step = passed / (double)(done - pace->first_step);
    char left[32], valid[64] = "", right[64] = "", said[64] = "";
    long_run_time_left(a_step * (double)(steps - done), left);
    if (pace->valid.words > 0 && !brief)
        snprintf(valid, sizeof valid, "  valid %.4f", pace->valid.loss);
    if (pace->valid.words > 0)
        snprintf(right, sizeof right, "  %s %.2f %%",
                 form == FORM_VISION      ? "pictures right"
                 : form == FORM_CAPTIONS  ? "captions right"
                 : form == FORM_DETECTION ? "average precision"
                                          : "words right",
                 100.0 *
                     (form == FORM_CAPTIONS ? pace->valid.whole_right : pace->valid.words_right));
    if (!brief)
        translations_text(t, said);
    snprintf(text, LINE_MAX_LENGTH, "%s%" PRId64 "/%" PRId64 "  loss %.4f%s%s%s  %.0f %s/s  %s",
             brief ? "" : "step ", done, steps, recent_loss(t), valid, right, said,
             (double)pace->tokens / passed, pictures ? "pictures" : "tokens", left);
}

/* On a terminal the line is overwritten by the next. Elsewhere only a `lasting` one is printed. */
static void show(const train_loop_job *job, const train_pace *pace, bool lasting)
{
    const bool live = progress_is_live();
    char text[LINE_MAX_LENGTH];
    if (job->quiet || (!lasting && !live))
        return;
    progress_text(job->training, pace, live, text);
    if (live)
        progress("%.*s", terminal_query(stderr).width - 1, text);
    else
        fprintf(stderr, "%s\n", text);
}

/* ----------------------------------------------------------- the parts ----- */

int train_loop_save(const train_loop_job *job)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    if (job->checkpoint == NULL)
        return EXIT_FINE;
    const mha_status status = training_save(job->training, job->checkpoint, message);
    if (status == MHA_OK)
        return EXIT_FINE;
    progress_end();
    return args_failed("no checkpoint: %s", message);
}

int train_loop_draw(const train_loop_job *job)
{
    bool fine = true;
    if (job->curve != NULL)
        fine = output_file_write(job->curve, loss_curve_svg, job->training);
    if (job->log != NULL)
        fine = output_file_write(job->log, loss_curve_csv, job->training) && fine;
    return fine ? EXIT_FINE : EXIT_FAILED;
}

/* Every hundredth of the steps, and at the end. */
static bool validation_is_due(const training *t)
{
    const int64_t done = training_steps_done(t), steps = training_get_config(t)->steps;
    const int64_t every = steps < 100 ? 1 : steps / 100;
    return done % every == 0 || done == steps;
}

/* A step or validation failed: saves what was reached. */
static int stop_failing(const train_loop_job *job, const char *what, mha_status status)
{
    progress_end();
    fprintf(stderr, "mha: %s: %s\n", what, mha_status_string(status));
    if (job->checkpoint != NULL && train_loop_save(job) == EXIT_FINE)
        args_failed("saved in %s; --resume continues from there", job->checkpoint);
    return EXIT_FAILED;
}

/* Nothing is saved: the same steps would be computed again. */
static int stop_diverged(const train_loop_job *job)
{
    progress_end();
    fprintf(stderr,
            "mha: the training has diverged: the loss of step %" PRId64 " is not a number. Start "
            "again with a lower --lr (it was %g), a longer --warm-up or another --seed\n",
            training_steps_done(job->training), training_get_config(job->training)->learning_rate);
    if (job->checkpoint != NULL && access(job->checkpoint, F_OK) == 0)
        args_failed(
            "%s was saved before that, but with the same settings --resume would diverge at "
            "the same step: delete it",
            job->checkpoint);
    return EXIT_FAILED;
}

/* Every tenth of the steps, but not at the end, where the model is judged anyway. */
static bool translation_is_due(const train_loop_job *job)
{
    const int64_t done = training_steps_done(job->training);
    const int64_t steps = training_get_config(job->training)->steps;
    const int64_t every = steps < 100 ? 1 : steps / 100;
    return job->translate > 0 && done < steps && done / every % 10 == 0;
}

/* Translates some sentences; that it fails is reported, but does not end the training. */
static void judge(const train_loop_job *job)
{
    translation_score score;
    if (train_model_score(job->model, job->training, job->translate, &score) == EXIT_GO_ON)
        training_mark_translations(job->training, score.bleu, score.chrf);
}

/* With patience the result is the best model, so that is what is written. */
static int keep_best(const train_loop_job *job)
{
    if (training_get_config(job->training)->patience == 0 || !training_is_best(job->training) ||
        train_follows(job->model->request))
        return EXIT_GO_ON;
    return train_model_write(job->model, job->training, job->model->request->output) == MHA_OK
               ? EXIT_GO_ON
               : EXIT_FAILED;
}

/* Measures the validation loss, shows it and updates the pictures. */
static int validate(const train_loop_job *job, train_pace *pace)
{
    const mha_status status = training_validate(job->training, job->validation, &pace->valid);
    if (status != MHA_OK)
        return stop_failing(job, "validation failed", status);
    if (translation_is_due(job))
        judge(job);
    const int code = keep_best(job);
    if (code != EXIT_GO_ON)
        return code;
    show(job, pace, true);
    train_loop_draw(job);
    return EXIT_GO_ON;
}

/* After the last step the model itself is written instead. */
static bool checkpoint_is_due(const train_loop_job *job, const train_pace *pace)
{
    const int64_t done = training_steps_done(job->training);
    if (done == training_get_config(job->training)->steps)
        return false;
    if (job->every_steps > 0)
        return done % job->every_steps == 0;
    return clock_seconds() - pace->saved >= job->every_seconds;
}

/* ---------------------------------------------------------------- loop ----- */

/* A picture or checkpoint that cannot be written is reported and tried again next time: it must not
 * end hours of work. */
static int take_step(const train_loop_job *job, train_pace *pace)
{
    training_result result;
    const mha_status status = training_step(job->training, &result);
    if (status != MHA_OK)
        return stop_failing(job, "a step failed", status);
    if (!isfinite(result.loss))
        return stop_diverged(job);
    const bool pictures = transformer_reads_pictures(&training_get_config(job->training)->model);
    pace->tokens += pictures ? result.items : result.tokens;
    if (validation_is_due(job->training)) {
        const int code = validate(job, pace);
        if (code != EXIT_GO_ON)
            return code;
    }
    show(job, pace, false);
    if (checkpoint_is_due(job, pace)) {
        train_loop_save(job);
        pace->saved = clock_seconds();
    }
    return EXIT_GO_ON;
}

/* Saves a checkpoint; `code` is the exit code that shells use for the signal. */
static int stop_interrupted(const train_loop_job *job, int code)
{
    progress_end();
    if (job->checkpoint == NULL)
        return code;
    if (train_loop_save(job) != EXIT_FINE)
        return EXIT_FAILED;
    fprintf(stderr, "mha: stopped after step %" PRId64 " of %" PRId64 ", saved in %s\n",
            training_steps_done(job->training), training_get_config(job->training)->steps,
            job->checkpoint);
    return code;
}

static bool goes_on(const train_loop_job *job)
{
    return training_steps_done(job->training) < training_get_config(job->training)->steps &&
           !training_is_exhausted(job->training);
}

/* Whether to go on: an exit code that this process or another of its team has, or EXIT_GO_ON. After
 * the last step a signal comes too late. */
static int look_around(const train_loop_job *job, int code)
{
    const training_team *const team = job->model->request->team;
    const int met = goes_on(job) ? long_run_signal() : 0;
    int number = code != EXIT_GO_ON ? code : met != 0 ? 128 + met : 0;
    if (team != NULL && team->agree(team->context, &number, 0) != MHA_OK)
        return code != EXIT_GO_ON ? code : args_failed("another process is gone");
    return number != 0 ? number : EXIT_GO_ON;
}

int train_loop(const train_loop_job *job)
{
    const double now = clock_seconds();
    train_pace pace = {
        .started = now, .saved = now, .first_step = training_steps_done(job->training)};
    long_run run;
    long_run_begin(&run);
    int code = look_around(job, EXIT_GO_ON);
    while (code == EXIT_GO_ON && goes_on(job))
        code = look_around(job, take_step(job, &pace));
    if (code > 128)
        code = stop_interrupted(job, code);
    long_run_end(&run);
    progress_end();
    return code;
}
