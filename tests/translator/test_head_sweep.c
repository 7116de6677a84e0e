/* SPDX-License-Identifier: MIT */
/* Sweeps over numbers of heads: a training of a sweep is the training that training.h makes, the
 * file of results is read as it was written or refused, and the summary is that of hand
 * computations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_files.h"
#include "support/test.h"
#include "translator/accuracy.h"
#include "translator/sweep_summary.h"

static sweep_settings small_settings(void)
{
    sweep_settings s = {.config = training_defaults(), .evaluate = 24, .points = 3};
    s.config.model.width = 16;
    s.config.model.heads = 1;
    s.config.model.ff_width = 16;
    s.config.model.layers[TRANSFORMER_SOURCE] = s.config.model.layers[TRANSFORMER_TARGET] = 1;
    s.config.steps = 10;
    s.config.batch = 8;
    s.config.warm_up = 1;
    return s;
}

/* ------------------------------------------------------------ training ----- */

static void run(const sweep_settings *s, sweep_key key, mha_pool *pool, sweep_result *result)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    CHECK(sweep_train(s, &key, pool, NULL, result, message) == SWEEP_DONE, "%s", message);
}

/* Compares with a training that is made step by step. */
static void measures_what_a_training_does(void)
{
    const sweep_settings s = small_settings();
    const sweep_key key = {.data = 20, .heads = 4, .seed = 5};
    static const translation_options greedy = {.beam = 1};
    training_config config = s.config;
    config.model.heads = 4;
    config.seed = 5;
    config.sentences = 20;
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    sweep_result result;
    training_result step;
    training_score valid, known;
    int64_t right = 0;
    run(&s, key, NULL, &result);
    training *const t = training_create(&config, NULL, NULL, message);
    for (int n = 0, point = 0; n < 10; n++) {
        CHECK(training_step(t, &step) == MHA_OK, "step %d", n);
        if (n + 1 != 3 && n + 1 != 6 && n + 1 != 10)
            continue;
        CHECK(training_evaluate(t, CORPUS_VALID, 24, &valid) == MHA_OK, "valid");
        CHECK(sweep_step(&s, point) == n + 1, "point %d is step %d", point, n + 1);
        CHECK(result.valid[point] == valid.loss, "point %d: %g, not %g", point, result.valid[point],
              valid.loss);
        point++;
    }
    training_evaluate(t, CORPUS_TRAIN, 20, &known);
    CHECK(result.train_loss == known.loss, "train %g, not %g", result.train_loss, known.loss);
    CHECK(result.words_right == valid.words_right, "words %g", result.words_right);
    translator *const made = translator_create(&config.model, training_values(t), message);
    accuracy_measure(made, 5, CORPUS_VALID, 24, &greedy, NULL, &right);
    CHECK(result.exact == (double)right / 24.0, "exact %g", result.exact);
    translator_free(made);
    training_free(t);
}

/* Trainings that differ in their heads begin with the same numbers. */
static void heads_share_their_start(void)
{
    const sweep_settings s = small_settings();
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    transformer_map map;
    transformer_map_fill(&map, &s.config.model);
    training *made[2];
    for (int n = 0; n < 2; n++) {
        const sweep_key key = {.data = 20, .heads = n == 0 ? 1 : 8, .seed = 3};
        const training_config config = sweep_config(&s, &key);
        made[n] = training_create(&config, NULL, NULL, message);
        CHECK(made[n] != NULL, "%s", message);
    }
    CHECK(memcmp(training_values(made[0]), training_values(made[1]), map.count * sizeof(float)) ==
              0,
          "other parameters");
    training_free(made[0]);
    training_free(made[1]);
}

static void threads_do_not_matter(void)
{
    const sweep_settings s = small_settings();
    const sweep_key key = {.data = 0, .heads = 2, .seed = 7};
    mha_pool *pool = NULL;
    sweep_result one, three;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    run(&s, key, NULL, &one);
    run(&s, key, pool, &three);
    CHECK(memcmp(&one, &three, sizeof one) == 0, "%.17g and %.17g", one.valid[2], three.valid[2]);
    mha_pool_free(pool);
}

static bool stop_at_four(void *context, int64_t done)
{
    *(int64_t *)context = done;
    return done < 4;
}

static void a_watch_ends_it(void)
{
    const sweep_settings s = small_settings();
    const sweep_key key = {.heads = 1, .seed = 1};
    int64_t seen = 0;
    const sweep_watch watch = {stop_at_four, &seen};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    sweep_result result;
    CHECK(sweep_train(&s, &key, NULL, &watch, &result, message) == SWEEP_STOPPED, "%s", message);
    CHECK(seen == 4, "after step %d", (int)seen);
}

static void failures_have_reasons(void)
{
    sweep_settings s = small_settings();
    const sweep_key three = {.heads = 3, .seed = 1}, one = {.heads = 1, .seed = 1};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    sweep_result result;
    CHECK(sweep_train(&s, &three, NULL, NULL, &result, message) == SWEEP_FAILED, "3 heads of 16");
    CHECK(strstr(message, "must be a multiple of the 3 heads") != NULL, "%s", message);
    s.config.learning_rate = 1e36;
    s.config.clip = 0.0;
    CHECK(sweep_train(&s, &one, NULL, NULL, &result, message) == SWEEP_FAILED, "a rate of 1e36");
    CHECK(strstr(message, "diverged") != NULL, "%s", message);
}

/* ---------------------------------------------------------------- file ----- */

static sweep_result made_up(int64_t data, int heads, uint64_t seed, double a, double b, double c)
{
    return (sweep_result){.key = {data, heads, seed},
                          .train_loss = 0.25,
                          .words_right = 0.5,
                          .exact = 0.125,
                          .valid = {a, b, c}};
}

static bool write_table(const sweep_table *t, const char *path)
{
    FILE *const file = fopen(path, "w");
    if (file == NULL)
        return false;
    sweep_table_write(file, t);
    return fclose(file) == 0;
}

static void results_are_read_as_they_were_written(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "r.csv");
    sweep_table t = {.settings = small_settings()}, again = {.settings = small_settings()};
    char message[SWEEP_MESSAGE_MAX] = "";
    const sweep_result results[] = {made_up(0, 1, 1, 3.0, 2.0, 1.0),
                                    made_up(1000, 16, UINT64_MAX, 1.0 / 3.0, 2e-7, 12.5)};
    for (int n = 0; n < 2; n++)
        CHECK(sweep_table_add(&t, &results[n]), "memory");
    CHECK(write_table(&t, path), "written");
    CHECK(sweep_table_read(&again, path, message) && again.count == 2, "%s", message);
    CHECK(strcmp(again.isa, mha_isa_base()) == 0, "isa %s", again.isa);
    const sweep_result *const found = sweep_table_find(&again, &results[1].key);
    CHECK(found != NULL && fabs(found->valid[0] - 1.0 / 3.0) < 1e-8 && found->valid[1] == 2e-7 &&
              found->train_loss == 0.25 && found->words_right == 0.5 && found->exact == 0.125,
          "other numbers");
    const sweep_key other = {.data = 1000, .heads = 16, .seed = 1};
    CHECK(sweep_table_find(&again, &other) == NULL, "found another seed");
    sweep_table_free(&t);
    sweep_table_free(&again);
    temp_folder_free(&folder);
}

/* The file of a table of one result, with `from` replaced by `to`, is refused for a reason. */
static void refused(const char *from, const char *to, const char *reason)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "r.csv");
    sweep_table t = {.settings = small_settings()}, again = {.settings = small_settings()};
    const sweep_result result = made_up(7, 2, 9, 3.0, 2.0, 1.0);
    char message[SWEEP_MESSAGE_MAX] = "", text[4096];
    size_t size;
    sweep_table_add(&t, &result);
    write_table(&t, path);
    char *const bytes = (char *)file_bytes(path, &size);
    char *const at = bytes != NULL ? strstr(bytes, from) : NULL;
    if (CHECK(at != NULL, "no \"%s\" in the file", from)) {
        const size_t rest = size - (size_t)(at - bytes) - strlen(from);
        snprintf(text, sizeof text, "%.*s%s%.*s", (int)(at - bytes), bytes, to, (int)rest,
                 at + strlen(from));
        file_make(path, text, strlen(text));
        CHECK(!sweep_table_read(&again, path, message), "\"%s\" is accepted", to);
        CHECK(strstr(message, reason) != NULL, "%s", message);
    }
    free(bytes);
    sweep_table_free(&t);
    sweep_table_free(&again);
    temp_folder_free(&folder);
}

static void other_files_are_refused(void)
{
    refused("# mha sweep 1", "# mha sweep 2", "line 1: not a file of \"mha sweep\"");
    refused("# isa", "# set", "line 2: the instruction set is missing");
    refused(" ff=16", " ff=32", "line 3: these results were made with other settings: ff=32");
    refused("points=3", "points=30", "points=30 there, points=3 now");
    refused("points=3", "points=3 more=1", "other settings: more=1");
    refused(" width=16", "", "other settings: ff=16 there, width=16 now");
    refused("\n7,2,9,", "\n7,2,9,0.5,", "line 5: not a result");
    refused("\n7,2,9,", "\n7,2,", "line 5: not a result");
    refused("\n7,2,9,", "\n7,2,-9,", "line 5: not a result");
    refused("\n7,2,9,", "\n7.5,2,9,", "line 5: not a result");
    refused("\n7,2,9,", "\n7,0,9,", "line 5: not a result");
    refused(",3,2,1\n", ",3,2\n", "line 5: not a result");
    refused(",3,2,1\n", ",3,2,\n", "line 5: not a result");
    refused(",3,2,1\n", ",3,2,1,\n", "line 5: not a result");
    refused(",3,2,1\n", ",3,2,nan\n", "line 5: not a result");
    refused(",3,2,1\n", ",3,inf,1\n", "line 5: not a result");
    refused(",3,2,1\n", ",3,2,1\n7,2,9,1,1,1,1,1,1\n",
            "line 6: this training is in the file twice");
    refused(",3,2,1\n", ",3,2,1\n\n", "line 6: not a result");
}

/* ------------------------------------------------------------- summary ----- */

/* Steps are 3, 6 and 10. */
static void steps_are_found_between_validations(void)
{
    const sweep_settings s = small_settings();
    const sweep_result r = made_up(0, 1, 1, 4.0, 2.0, 1.0);
    CHECK(fabs(sweep_steps_to(&s, &r, 3.0) - 4.5) < 1e-12, "%g", sweep_steps_to(&s, &r, 3.0));
    CHECK(fabs(sweep_steps_to(&s, &r, 1.25) - 9.0) < 1e-12, "%g", sweep_steps_to(&s, &r, 1.25));
    CHECK(sweep_steps_to(&s, &r, 2.0) == 6.0, "%g", sweep_steps_to(&s, &r, 2.0));
    CHECK(sweep_steps_to(&s, &r, 5.0) == 3.0, "%g", sweep_steps_to(&s, &r, 5.0));
    CHECK(isnan(sweep_steps_to(&s, &r, 0.99)), "%g", sweep_steps_to(&s, &r, 0.99));
}

/* Three seeds of 1 and of 4 heads; the third seed of 4 heads is not done yet. */
static void means_and_differences_by_hand(void)
{
    sweep_table t = {.settings = small_settings()};
    const sweep_grid g = {.data = {0, 50},
                          .heads = {1, 4},
                          .data_count = 2,
                          .head_count = 2,
                          .first_seed = 11,
                          .seeds = 3};
    const sweep_result results[] = {
        made_up(50, 1, 11, 4.0, 3.0, 2.0), made_up(50, 1, 12, 4.0, 3.0, 2.5),
        made_up(50, 1, 13, 4.0, 3.0, 9.0), made_up(50, 4, 11, 4.0, 1.0, 1.5),
        made_up(50, 4, 12, 4.0, 1.8, 1.6), made_up(0, 1, 11, 8.0, 8.0, 8.0),
    };
    for (size_t n = 0; n < sizeof results / sizeof results[0]; n++)
        sweep_table_add(&t, &results[n]);
    const mean_interval one = sweep_mean(&t, &g, 1, 0, SWEEP_VALID, NAN);
    CHECK(one.count == 3 && fabs(one.mean - 4.5) < 1e-12, "%g of %d", one.mean, one.count);
    const mean_interval d = sweep_difference(&t, &g, 1, 1, SWEEP_VALID, NAN);
    /* -0.5 and -0.9: mean -0.7, half 12.7062 * 0.2 */
    CHECK(d.count == 2 && fabs(d.mean + 0.7) < 1e-12 && fabs(d.half - 2.54124) < 1e-4,
          "%g +- %g of %d", d.mean, d.half, d.count);
    const mean_interval gap = sweep_mean(&t, &g, 1, 1, SWEEP_GAP, NAN);
    CHECK(fabs(gap.mean - 1.3) < 1e-12, "gap %g", gap.mean);
    /* The lowest losses are 2, 2.5, 3, 1 and 1.6: all reach 3. */
    const double target = sweep_common_target(&t, &g, 1);
    CHECK(target == 3.0 && sweep_reached(&t, &g, 1, 0, target) == 3, "target %g", target);
    CHECK(sweep_reached(&t, &g, 1, 0, 2.2) == 1, "%d", sweep_reached(&t, &g, 1, 0, 2.2));
    CHECK(isnan(sweep_mean(&t, &g, 1, 0, SWEEP_STEPS, 2.2).mean), "a mean of some");
    CHECK(sweep_common_target(&t, &g, 0) == 8.0, "of the other data");
    CHECK(sweep_mean(&t, &g, 0, 1, SWEEP_VALID, NAN).count == 0, "of no results");
    sweep_table_free(&t);
}

/* Seeds are the slowest, so that trainings that are done are complete for some seeds. */
static void the_order_of_the_grid(void)
{
    const sweep_grid g = {.data = {50, 0},
                          .heads = {1, 2, 4},
                          .data_count = 2,
                          .head_count = 3,
                          .first_seed = 8,
                          .seeds = 2};
    const sweep_key fifth = sweep_grid_key(&g, 4), last = sweep_grid_key(&g, 11);
    CHECK(sweep_grid_size(&g) == 12, "%d", sweep_grid_size(&g));
    CHECK(fifth.data == 0 && fifth.heads == 2 && fifth.seed == 8, "number 5");
    CHECK(last.data == 0 && last.heads == 4 && last.seed == 9, "the last");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(measures_what_a_training_does);
    RUN(heads_share_their_start);
    RUN(threads_do_not_matter);
    RUN(a_watch_ends_it);
    RUN(failures_have_reasons);
    RUN(results_are_read_as_they_were_written);
    RUN(other_files_are_refused);
    RUN(steps_are_found_between_validations);
    RUN(means_and_differences_by_hand);
    RUN(the_order_of_the_grid);
    return test_end();
}
