/* SPDX-License-Identifier: MIT */
/* Tests of AdamW, clipping and the learning rate schedule against the formulas in double; of the
 * settings of a training by name, and of configurations that must be refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "translator/optimizer.h"

static training_config small_config(void)
{
    training_config config = training_defaults();
    config.model.width = 24;
    config.model.heads = 4;
    config.model.ff_width = 40;
    config.model.layers[TRANSFORMER_SOURCE] = 1;
    config.model.layers[TRANSFORMER_TARGET] = 1;
    config.steps = 1000;
    config.warm_up = 10;
    return config;
}

static float *random_values(uint64_t seed, size_t count, float scale)
{
    test_random random = {seed};
    float *const values = calloc(count, sizeof *values);
    if (!values)
        abort();
    for (size_t n = 0; n < count; n++)
        values[n] = scale * test_random_normal(&random);
    return values;
}

/* ------------------------------------------------------------ schedule ----- */

static void rate_rises_and_falls(void)
{
    training_config config = small_config();
    config.learning_rate = 0.5;
    CHECK(fabs(optimizer_rate(&config, 0) - 0.05) < 1e-15, "%g", optimizer_rate(&config, 0));
    CHECK(fabs(optimizer_rate(&config, 9) - 0.5) < 1e-15, "%g", optimizer_rate(&config, 9));
    CHECK(fabs(optimizer_rate(&config, 10) - 0.5) < 1e-15, "%g", optimizer_rate(&config, 10));
    const double middle = 0.5 * (0.01 + 0.99 * 0.5);
    CHECK(fabs(optimizer_rate(&config, 505) - middle) < 1e-12, "%g", optimizer_rate(&config, 505));
    for (int64_t step = 10; step < 1000; step++)
        CHECK(optimizer_rate(&config, step + 1) < optimizer_rate(&config, step), "step %d",
              (int)step);
    CHECK(fabs(optimizer_rate(&config, 1000) - 0.005) < 1e-15, "the end");
    CHECK(optimizer_rate(&config, 5000) == optimizer_rate(&config, 1000), "beyond the end");
    config.warm_up = 0;
    CHECK(optimizer_rate(&config, 0) == 0.5, "no warm-up");
    config.warm_up = config.steps;
    CHECK(optimizer_rate(&config, 999) == 0.5, "nothing but warm-up");
}

/* --------------------------------------------------------------- adamw ----- */

/* AdamW in double, element by element. */
typedef struct plain_adam {
    size_t count;
    double *value, *mean, *square;
    bool *decays;
} plain_adam;

static bool decays_of(const char *name, int rank)
{
    return rank == 2 && !strstr(name, "embed");
}

static plain_adam plain_create(const transformer_config *model, const float *values)
{
    static transformer_tensor tensors[TRANSFORMER_TENSORS_MAX];
    transformer_map map;
    transformer_map_fill(&map, model);
    plain_adam p = {.count = map.count};
    p.value = calloc(3 * map.count, sizeof *p.value);
    p.decays = calloc(map.count, sizeof *p.decays);
    if (!p.value || !p.decays)
        abort();
    p.mean = p.value + map.count;
    p.square = p.mean + map.count;
    const int count = transformer_tensors(model, tensors);
    for (int t = 0; t < count; t++)
        for (size_t n = 0; n < tensors[t].count; n++)
            p.decays[tensors[t].at + n] = decays_of(tensors[t].name, tensors[t].rank);
    for (size_t n = 0; n < map.count; n++)
        p.value[n] = (double)values[n];
    return p;
}

static void plain_free(plain_adam *p)
{
    free(p->value);
    free(p->decays);
}

static double plain_step(plain_adam *p, const training_config *c, int64_t step,
                         const float *gradients)
{
    double sum = 0.0;
    for (size_t n = 0; n < p->count; n++)
        sum += (double)gradients[n] * (double)gradients[n];
    const double norm = sqrt(sum), t = (double)(step + 1), rate = optimizer_rate(c, step);
    const double factor = c->clip > 0.0 && norm > c->clip ? c->clip / norm : 1.0;
    for (size_t n = 0; n < p->count; n++) {
        const double g = (double)gradients[n] * factor;
        p->mean[n] = c->beta1 * p->mean[n] + (1.0 - c->beta1) * g;
        p->square[n] = c->beta2 * p->square[n] + (1.0 - c->beta2) * g * g;
        const double mean = p->mean[n] / (1.0 - pow(c->beta1, t));
        const double square = p->square[n] / (1.0 - pow(c->beta2, t));
        p->value[n] -= rate * (mean / (sqrt(square) + c->epsilon) +
                               (p->decays[n] ? c->weight_decay * p->value[n] : 0.0));
    }
    return norm;
}

static void compare_steps(const training_config *config, float scale)
{
    optimizer o;
    CHECK(optimizer_init(&o, &config->model), "init");
    float *const values = random_values(1, o.count, 1.0f);
    plain_adam plain = plain_create(&config->model, values);
    double worst = 0.0;
    for (int step = 0; step < 20; step++) {
        float *const gradients = random_values(100 + (uint64_t)step, o.count, scale);
        const double norm = optimizer_step(&o, config, step, gradients, values, NULL);
        const double wanted = plain_step(&plain, config, step, gradients);
        CHECK(fabs(norm - wanted) <= 1e-12 * wanted, "step %d: norm %.17g, not %.17g", step, norm,
              wanted);
        free(gradients);
    }
    for (size_t n = 0; n < o.count; n++) {
        const double off = fabs((double)values[n] - plain.value[n]);
        worst = off <= worst || isnan(worst) ? worst : off;
    }
    /* The error of 20 steps with rates up to 2e-3, and of rounding values of about 1. */
    CHECK(worst > 0.0 && worst < 5e-6, "off by %g", worst);
    plain_free(&plain);
    free(values);
    optimizer_free(&o);
}

static void steps_are_adamw(void)
{
    training_config config = small_config();
    compare_steps(&config, 1.0f);
    compare_steps(&config, 1e-6f);
    config.clip = 0.0;
    compare_steps(&config, 1.0f);
    config.weight_decay = 5.0;
    config.beta1 = 0.0;
    compare_steps(&config, 0.01f);
}

/* If a gradient is always 0, there is only weight decay, and no NaN. */
static void no_gradient_no_step(void)
{
    training_config config = small_config();
    config.weight_decay = 0.0;
    optimizer o;
    CHECK(optimizer_init(&o, &config.model), "init");
    float *const values = random_values(3, o.count, 1.0f), *const before =
                                                               random_values(3, o.count, 1.0f);
    float *const gradients = calloc(o.count, sizeof *gradients);
    for (int step = 0; step < 3 && gradients; step++)
        CHECK(optimizer_step(&o, &config, step, gradients, values, NULL) == 0.0, "norm");
    CHECK(memcmp(values, before, o.count * sizeof *values) == 0, "values moved");
    free(gradients);
    free(before);
    free(values);
    optimizer_free(&o);
}

static void gradient_that_is_not_finite(void)
{
    const training_config config = small_config();
    optimizer o;
    CHECK(optimizer_init(&o, &config.model), "init");
    float *const values = random_values(5, o.count, 1.0f), *const before =
                                                               random_values(5, o.count, 1.0f);
    float *const gradients = random_values(6, o.count, 1.0f);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int n = 0; n < 3; n++) {
        gradients[o.count / 2] = bad[n];
        CHECK(!isfinite(optimizer_step(&o, &config, n, gradients, values, NULL)), "norm");
        CHECK(memcmp(values, before, o.count * sizeof *values) == 0, "values moved");
        CHECK(o.mean[0] == 0.0f && o.square[o.count / 2] == 0.0f, "moments moved");
    }
    free(gradients);
    free(before);
    free(values);
    optimizer_free(&o);
}

static void same_bits_for_any_threads(void)
{
    const training_config config = small_config();
    float *first = NULL;
    double norms[5] = {0};
    for (int threads = 1; threads <= 4; threads++) {
        optimizer o;
        mha_pool *pool = NULL;
        CHECK(optimizer_init(&o, &config.model), "init");
        CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool");
        float *const values = random_values(7, o.count, 1.0f);
        for (int step = 0; step < 3; step++) {
            float *const gradients = random_values(8 + (uint64_t)step, o.count, 1.0f);
            norms[threads] += optimizer_step(&o, &config, step, gradients, values, pool);
            free(gradients);
        }
        CHECK(norms[threads] == norms[1], "%d threads: another norm", threads);
        CHECK(!first || memcmp(first, values, o.count * sizeof *values) == 0,
              "%d threads: other values", threads);
        if (first)
            free(values);
        else
            first = values;
        mha_pool_free(pool);
        optimizer_free(&o);
    }
    free(first);
}

/* ------------------------------------------------------------ settings ----- */

static void settings_survive_as_text(void)
{
    training_config config = training_defaults(), copy = training_defaults();
    config.seed = UINT64_MAX;
    config.sentences = 1234567890123;
    config.learning_rate = 1.0 / 3.0;
    config.dropout = 0.1;
    config.epsilon = 1e-9;
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        char text[TRAINING_TEXT_MAX], again[TRAINING_TEXT_MAX];
        CHECK(training_setting_find(training_setting_name(n)) == n, "%s", training_setting_name(n));
        training_setting_text(&config, n, text);
        CHECK(training_setting_read(&copy, n, text), "%s %s", training_setting_name(n), text);
        training_setting_text(&copy, n, again);
        CHECK(strcmp(text, again) == 0, "%s: %s, then %s", training_setting_name(n), text, again);
    }
    CHECK(copy.learning_rate == config.learning_rate && copy.seed == config.seed &&
              copy.sentences == config.sentences && copy.epsilon == config.epsilon,
          "other numbers");
    CHECK(training_setting_find("widht") == -1, "a setting that is none");
}

static void texts_that_are_no_numbers(void)
{
    static const char *const wrong[] = {
        "", "x", "1x", "1e999", "nan", "inf", "99999999999999999999", "0x", "-"};
    training_config config = training_defaults();
    const char *const names[] = {"width", "steps", "lr"};
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++)
        for (int which = 0; which < 3; which++)
            CHECK(
                (strcmp(names[which], "lr") == 0 && strlen(wrong[n]) == 20) ||
                    !training_setting_read(&config, training_setting_find(names[which]), wrong[n]),
                "--%s %s", names[which], wrong[n]);
    const int seed = training_setting_find("seed");
    CHECK(!training_setting_read(&config, seed, "-1") &&
              !training_setting_read(&config, seed, "1.5"),
          "seeds");
    CHECK(training_setting_read(&config, seed, "0x10") && config.seed == 16,
          "a seed in hexadecimal");
}

static void check_refuses(void)
{
    static const struct {
        const char *name, *text, *sentence;
    } cases[] = {
        {"width", "0", "width"},
        {"heads", "7", "heads"},
        {"ff", "0", "feed-forward"},
        {"encoder-layers", "0", "encoder"},
        {"decoder-layers", "17", "decoder"},
        {"source-words", "5", "source-words"},
        {"target-words", "748000", "target-words"},
        {"positions", "63", "positions"},
        {"steps", "0", "steps"},
        {"batch", "0", "batch"},
        {"batch", "65537", "batch"},
        {"sentences", "-1", "sentences"},
        {"attention-gain", "0", "attention-gain"},
        {"attention-gain", "11", "attention-gain"},
        {"attention-dropout", "-0.5", "attention-dropout"},
        {"attention-dropout", "1", "attention-dropout"},
        {"head-dropout", "1", "head-dropout"},
        {"ema", "1", "ema"},
        {"average", "-1", "average"},
        {"average", "3", "average"}, /* without a distance between the points */
        {"patience", "-1", "patience"},
        {"warm-up", "-1", "warm-up"},
        {"warm-up", "12001", "warm-up"},
        {"lr", "0", "lr"},
        {"lr", "-1", "lr"},
        {"beta1", "1", "beta1"},
        {"beta2", "-0.1", "beta2"},
        {"epsilon", "0", "epsilon"},
        {"weight-decay", "-1", "weight-decay"},
        {"clip", "-1", "clip"},
        {"dropout", "1", "dropout"},
        {"label-smoothing", "1", "label-smoothing"},
        {"unknown", "1.5", "unknown"},
    };
    char message[TRANSFORMER_MESSAGE_MAX];
    training_config config = training_defaults();
    config.steps = 12000;
    CHECK(training_config_check(&config, message), "the defaults: %s", message);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        training_config bad = config;
        message[0] = '\0';
        CHECK(training_setting_read(&bad, training_setting_find(cases[n].name), cases[n].text),
              "%s", cases[n].name);
        CHECK(!training_config_check(&bad, message), "%s %s", cases[n].name, cases[n].text);
        CHECK(strstr(message, cases[n].sentence) != NULL, "%s %s: %s", cases[n].name, cases[n].text,
              message);
    }
    CHECK(training_defaults().attention_dropout == TRAINING_AS_DROPOUT &&
              training_text_defaults().attention_dropout == TRAINING_AS_DROPOUT &&
              training_vision_defaults().attention_dropout == TRAINING_AS_DROPOUT,
          "attention weights are dropped as all else is");
    config.learning_rate = NAN;
    CHECK(!training_config_check(&config, message), "a learning rate that is no number");
    config = training_defaults();
    config.dropout = NAN;
    CHECK(!training_config_check(&config, message), "a dropout that is no number");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(rate_rises_and_falls);
    RUN(steps_are_adamw);
    RUN(no_gradient_no_step);
    RUN(gradient_that_is_not_finite);
    RUN(same_bits_for_any_threads);
    RUN(settings_survive_as_text);
    RUN(texts_that_are_no_numbers);
    RUN(check_refuses);
    return test_end();
}
