/* SPDX-License-Identifier: MIT */
/*
 * Training in native arithmetic, with products of bf16: gradients and losses are close to those of
 * exact arithmetic, the bits do not depend on threads or on being stopped and resumed, and a
 * checkpoint says which arithmetic it is of.
 */
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/safetensors.h"
#include "support/temp_files.h"
#include "translator/training_parts.h"

static training_config small_config(mha_arithmetic arithmetic)
{
    training_config config = training_defaults();
    config.model.width = 64;
    config.model.heads = 4;
    config.model.ff_width = 128;
    config.model.layers[TRANSFORMER_SOURCE] = 2;
    config.model.layers[TRANSFORMER_TARGET] = 2;
    config.steps = 200;
    config.warm_up = 10;
    config.batch = 24;
    config.learning_rate = 3e-3;
    config.arithmetic = arithmetic;
    return config;
}

static training *create(const training_config *config, mha_pool *pool)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    training *const made = training_create(config, NULL, pool, message);
    if (!made) {
        fprintf(stderr, "%s\n", message);
        abort();
    }
    return made;
}

static void take_steps(training *t, int64_t count)
{
    training_result result;
    for (int64_t n = 0; n < count; n++)
        CHECK(training_step(t, &result) == MHA_OK, "step %d", (int)n);
}

/* ------------------------------------------------------------- gradients ----- */

static double cosine(const float *a, const float *b, size_t count)
{
    double product = 0, one = 0, other = 0;
    for (size_t n = 0; n < count; n++) {
        product += (double)a[n] * (double)b[n];
        one += (double)a[n] * (double)a[n];
        other += (double)b[n] * (double)b[n];
    }
    return product / sqrt(one * other);
}

/* The gradients of a training's next step in either arithmetic; the loss is returned. */
static double gradients_of(const training *t, const batch *pairs, mha_arithmetic arithmetic,
                           float *gradients)
{
    const network_mode mode = {.training = true,
                               .dropout = 0.1,
                               .attention_dropout = 0.1,
                               .dropout_seed = 5,
                               .label_smoothing = 0.1};
    network_loss loss = {0};
    network *const net = network_create(&t->config.model, t->values, arithmetic, NULL);
    CHECK(net && network_forward(net, pairs, &mode, &loss) == MHA_OK &&
              network_backward(net, gradients) == MHA_OK,
          "gradients");
    network_free(net);
    return loss.sum / (double)loss.words;
}

static void compare_gradients(const training *t, const char *when)
{
    float *const exact = calloc(t->count, sizeof *exact);
    float *const native = calloc(t->count, sizeof *native);
    batch *const pairs = t->data->step(t->data, &t->config, t->step);
    const double losses[] = {gradients_of(t, pairs, MHA_EXACT, exact),
                             gradients_of(t, pairs, MHA_NATIVE, native)};
    CHECK(losses[0] != losses[1] && fabs(losses[0] - losses[1]) < 2e-3 * losses[0],
          "%s: a loss of %g, exactly %g", when, losses[1], losses[0]);
    CHECK(cosine(exact, native, t->count) > 0.999, "%s: a cosine of %g", when,
          cosine(exact, native, t->count));
    transformer_tensor *const list = calloc(TRANSFORMER_TENSORS_MAX, sizeof *list);
    const int count = transformer_tensors(&t->config.model, list);
    for (int n = 0; n < count; n++) {
        const double like = cosine(exact + list[n].at, native + list[n].at, list[n].count);
        /* The gradient of the bias of keys is 0 but for roundings. */
        CHECK(like > 0.998 || strstr(list[n].name, "k_proj.bias"), "%s: %s has a cosine of %g",
              when, list[n].name, like);
    }
    free(list);
    free(exact);
    free(native);
    batch_free(pairs);
}

static void gradients_are_close_to_exact_ones(void)
{
    const training_config config = small_config(MHA_EXACT);
    training *const t = create(&config, NULL);
    compare_gradients(t, "at first");
    take_steps(t, 40);
    compare_gradients(t, "after 40 steps");
    training_free(t);
}

/* Both trainings see the same pairs; their losses, 2.3 or so at the end, may drift apart by 2 %. */
static void losses_are_close_to_exact_ones(void)
{
    enum { LAST = 40 };
    double means[2] = {0, 0};
    for (int n = 0; n < 2; n++) {
        training_config config = small_config(n ? MHA_NATIVE : MHA_EXACT);
        config.model.width = 32;
        config.model.layers[TRANSFORMER_SOURCE] = config.model.layers[TRANSFORMER_TARGET] = 1;
        config.dropout = config.label_smoothing = config.unknown = 0.0;
        config.learning_rate = 1e-2;
        config.steps = 400;
        config.warm_up = 20;
        training *const t = create(&config, NULL);
        take_steps(t, config.steps);
        for (int64_t s = config.steps - LAST; s < config.steps; s++)
            means[n] += (double)training_get_history(t).losses[s] / LAST;
        training_free(t);
    }
    CHECK(means[0] < 3.0 && means[0] != means[1] && fabs(means[1] / means[0] - 1.0) < 0.02,
          "a loss of %g, exactly %g", means[1], means[0]);
}

/* ------------------------------------------------------------------ bits ----- */

static void check_same(const training *a, const training *b, const char *what)
{
    const size_t bytes = a->count * sizeof *a->values;
    CHECK(memcmp(a->values, b->values, bytes) == 0, "%s: other parameters", what);
    CHECK(memcmp(a->optimizer.mean, b->optimizer.mean, bytes) == 0, "%s: other moments", what);
    CHECK(memcmp(a->losses, b->losses, (size_t)a->step * sizeof *a->losses) == 0,
          "%s: other losses", what);
}

static void bits_do_not_depend_on_threads(void)
{
    const training_config config = small_config(MHA_NATIVE);
    training *const alone = create(&config, NULL);
    take_steps(alone, 4);
    for (int threads = 2; threads <= 3; threads++) {
        mha_pool *pool = NULL;
        CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool");
        training *const t = create(&config, pool);
        take_steps(t, 4);
        check_same(alone, t, "threads");
        training_free(t);
        mha_pool_free(pool);
    }
    training_free(alone);
}

/* ----------------------------------------------------------- checkpoints ----- */

/* Stops a training, resumes it, and compares it with one that was not stopped. */
static void check_resumed(mha_arithmetic arithmetic, const char *path)
{
    const training_config config = small_config(arithmetic);
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    training *const whole = create(&config, NULL);
    take_steps(whole, 3);
    CHECK(training_save(whole, path, message) == MHA_OK, "%s", message);
    training *const resumed = training_load(path, NULL, NULL, message);
    if (CHECK(resumed, "%s", message)) {
        const char *const isa = arithmetic == MHA_NATIVE ? mha_isa_name() : mha_isa_base();
        CHECK(resumed->config.arithmetic == arithmetic, "another arithmetic");
        CHECK(strcmp(training_loaded_isa(resumed), isa) == 0 &&
                  strcmp(training_isa(resumed), isa) == 0,
              "made with \"%s\", not \"%s\"", training_loaded_isa(resumed), isa);
        take_steps(whole, 2);
        take_steps(resumed, 2);
        check_same(whole, resumed, "resumed");
    }
    training_free(resumed);
    training_free(whole);
}

static const char *recorded(const char *path, safetensors_file **file)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    CHECK(safetensors_open(file, path, 0, message, sizeof message) == MHA_OK, "%s", message);
    return safetensors_value(*file, "arithmetic");
}

/* A file without the setting is of an exact training, as those from before it existed. */
static void checkpoints_record_the_arithmetic(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const exact = temp_path(&folder, "exact");
    safetensors_file *file = NULL;
    check_resumed(MHA_EXACT, exact);
    CHECK(!recorded(exact, &file), "exact is recorded");
    safetensors_close(file);
    const char *const native = temp_path(&folder, "native");
    check_resumed(MHA_NATIVE, native);
    const char *const value = recorded(native, &file);
    CHECK(value && strcmp(value, "native") == 0, "\"%s\" is recorded", value ? value : "nothing");
    safetensors_close(file);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(gradients_are_close_to_exact_ones);
    RUN(losses_are_close_to_exact_ones);
    RUN(bits_do_not_depend_on_threads);
    RUN(checkpoints_record_the_arithmetic);
    return test_end();
}
