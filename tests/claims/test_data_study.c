/* SPDX-License-Identifier: MIT */
/* The learners of claim 8: their gradients against differences, attention that is a convolution,
 * and the study around them. */
#include "support/test.h"

#include <math.h>
#include <string.h>

#include "claims/data_study.h"

enum { T = LEARN_PIXELS, C = LEARN_INPUTS, H = LEARN_HEADS, D = LEARN_WIDTH, PICTURES = 3 };
enum { OUTPUTS = 4, CLASSES = 3 };

static float x[PICTURES * T * C], wanted[PICTURES * T * OUTPUTS];
static const int classes[PICTURES] = {2, 0, 1};

static learner_batch random_pictures(test_random *random, bool with_classes)
{
    for (int n = 0; n < PICTURES * T * C; n++)
        x[n] = test_random_float(random);
    for (int n = 0; n < PICTURES * T * OUTPUTS; n++)
        wanted[n] = test_random_float(random);
    return (learner_batch){PICTURES, x, with_classes ? NULL : wanted, classes};
}

/* The derivative of the loss by one weight, as a central difference. */
static double slope(filter_learner *learner, const learner_batch *batch, float *weight)
{
    const float *gradients;
    const float here = *weight, step = 0x1p-7f;
    double above = NAN, below = NAN;
    *weight = here + step;
    CHECK(filter_learner_gradients(learner, batch, &above, &gradients) == MHA_OK, "above");
    *weight = here - step;
    CHECK(filter_learner_gradients(learner, batch, &below, &gradients) == MHA_OK, "below");
    *weight = here;
    return (above - below) / (2.0 * (double)step);
}

static void gradients_are_slopes(void)
{
    test_random random = {test_seed(1)};
    for (int n = 0; n < 2 * LEARNER_KINDS; n++) {
        const bool with_classes = n % 2 == 1;
        const learner_batch batch = random_pictures(&random, with_classes);
        filter_learner *learner;
        const float *gradients;
        double loss;
        ptrdiff_t count;
        if (!CHECK(filter_learner_create(&learner, (learner_kind)(n / 2), OUTPUTS,
                                         with_classes ? CLASSES : 0, 7) == MHA_OK,
                   "create"))
            return;
        float *const weights = filter_learner_values(learner, &count);
        CHECK(count ==
                  filter_learner_weights(learner) + (with_classes ? CLASSES * (OUTPUTS + 1) : 0),
              "%td weights", count);
        for (ptrdiff_t w = 0; w < count; w += 1 + (ptrdiff_t)test_random_below(&random, 9)) {
            const double wanted_slope = slope(learner, &batch, &weights[w]);
            CHECK(filter_learner_gradients(learner, &batch, &loss, &gradients) == MHA_OK, "here");
            const double off = fabs((double)gradients[w] - wanted_slope);
            CHECK(off <= 3e-4 + 0.02 * fabs(wanted_slope),
                  "kind %d, classes %d, weight %td: %g, not %g", n / 2, with_classes, w,
                  (double)gradients[w], wanted_slope);
        }
        filter_learner_free(learner);
    }
}

/* Sets the heads so that each attends to one tap, and W_V W_O is that tap. */
static void become_convolution(float *heads, const float *taps)
{
    float *const v = heads + 2 * H * D * C, *const o = v + H * D * C;
    float *const bias = o + OUTPUTS * H * D, *const table = bias + OUTPUTS;
    memset(heads, 0, sizeof(float) * (size_t)(table + H * T - heads));
    memcpy(bias, taps + LEARN_TAPS * C * OUTPUTS, OUTPUTS * sizeof *bias);
    for (int h = 0; h < H; h++) {
        const int row = (h / 3 - 1 + LEARN_SIDE) % LEARN_SIDE;
        table[h * T + row * LEARN_SIDE + (h % 3 - 1 + LEARN_SIDE) % LEARN_SIDE] = 40.0f;
        for (int c = 0; c < C; c++) {
            v[(h * D + c) * C + c] = 1.0f;
            for (int f = 0; f < OUTPUTS; f++)
                o[f * H * D + h * D + c] = taps[(h * C + c) * OUTPUTS + f];
        }
    }
}

static double error_of(filter_learner *learner, const learner_batch *batch)
{
    double error = 0.0;
    CHECK(filter_learner_error(learner, batch, &error) == MHA_OK, "error");
    return error;
}

/* The convolution by its definition, on the torus; and heads with the same taps. */
static void heads_can_be_the_convolution(void)
{
    test_random random = {test_seed(2)};
    const learner_batch batch = random_pictures(&random, false);
    filter_learner *conv, *heads;
    ptrdiff_t count;
    CHECK(filter_learner_create(&conv, LEARN_CONVOLUTION, OUTPUTS, 0, 3) == MHA_OK, "conv");
    CHECK(filter_learner_create(&heads, LEARN_ATTENTION, OUTPUTS, 0, 4) == MHA_OK, "heads");
    float *const taps = filter_learner_values(conv, &count);
    for (int f = 0; f < OUTPUTS; f++)
        taps[LEARN_TAPS * C * OUTPUTS + f] = 0.25f * (float)f;
    for (int n = 0; n < PICTURES * T * OUTPUTS; n++) {
        const int f = n % OUTPUTS, i = n / OUTPUTS % T, picture = n / OUTPUTS / T;
        double sum = 0.25 * f;
        for (int t = 0; t < LEARN_TAPS * C; t++) {
            const int row = (i / LEARN_SIDE + t / C / 3 - 1 + LEARN_SIDE) % LEARN_SIDE;
            const int column = (i % LEARN_SIDE + t / C % 3 - 1 + LEARN_SIDE) % LEARN_SIDE;
            sum += (double)(taps[t * OUTPUTS + f] *
                            x[(picture * T + row * LEARN_SIDE + column) * C + t % C]);
        }
        wanted[n] = (float)sum;
    }
    CHECK(error_of(heads, &batch) > 1.0, "random heads are no convolution");
    become_convolution(filter_learner_values(heads, &count), taps);
    CHECK(error_of(conv, &batch) < 1e-9, "convolution: %g", error_of(conv, &batch));
    CHECK(error_of(heads, &batch) < 1e-9, "heads: %g", error_of(heads, &batch));
    filter_learner_free(conv);
    filter_learner_free(heads);
}

static void steps_lower_the_error(void)
{
    test_random random = {test_seed(3)};
    for (int n = 0; n < 2 * LEARNER_KINDS; n++) {
        const learner_batch batch = random_pictures(&random, n % 2 == 1);
        filter_learner *learner;
        const float *gradients;
        double before, after;
        CHECK(filter_learner_create(&learner, (learner_kind)(n / 2), OUTPUTS, n % 2 ? CLASSES : 0,
                                    5) == MHA_OK,
              "create");
        CHECK(filter_learner_gradients(learner, &batch, &before, &gradients) == MHA_OK, "before");
        for (int step = 0; step < 100; step++)
            CHECK(filter_learner_step(learner, &batch, 0.02) == MHA_OK, "step");
        CHECK(filter_learner_gradients(learner, &batch, &after, &gradients) == MHA_OK, "after");
        CHECK(after < 0.9 * before, "kind %d: from %g to %g", n / 2, before, after);
        filter_learner_free(learner);
    }
}

/* Counted by hand: 36 pixels, 3 to 4 channels, 9 taps or heads of width 4. */
static void costs_by_hand(void)
{
    static const ptrdiff_t weights[] = {9 * 3 * 4 + 4, 3 * 36 * 3 + 36 * 4 + 4 + 9 * 36};
    static const double products[] = {36 * 9 * 3 * 4,
                                      36 * 36 * 3 * 3 + 9 * 36 * 36 * (4 + 4) + 36 * 36 * 4};
    for (int kind = 0; kind < LEARNER_KINDS; kind++) {
        filter_learner *learner;
        CHECK(filter_learner_create(&learner, (learner_kind)kind, 4, 0, 1) == MHA_OK, "create");
        CHECK(filter_learner_weights(learner) == weights[kind], "%td weights",
              filter_learner_weights(learner));
        CHECK(filter_learner_products(learner) == products[kind], "%g products",
              filter_learner_products(learner));
        filter_learner_free(learner);
    }
}

/* Threads change nothing; another seed does; each learner has an error for every size and seed. */
static void studies_are_reproducible(void)
{
    static study_result alone, together, other;
    study_plan plan = {.seed = test_seed(4),
                       .sizes = {2, 16},
                       .size_count = 2,
                       .seeds = 3,
                       .steps = 4,
                       .fresh = 40,
                       .rates = {0.01, 0.1},
                       .rate_count = 2,
                       .tasks = {true, false, true}};
    mha_pool *pool;
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    CHECK(study_run(&alone, &plan, NULL, NULL) == MHA_OK, "alone");
    CHECK(study_run(&together, &plan, pool, NULL) == MHA_OK, "together");
    plan.seed++;
    CHECK(study_run(&other, &plan, pool, NULL) == MHA_OK, "other");
    mha_pool_free(pool);
    CHECK(memcmp(alone.errors, together.errors, sizeof alone.errors) == 0, "threads matter");
    CHECK(memcmp(alone.errors, other.errors, sizeof alone.errors) != 0, "the seed does not matter");
    for (int n = 0; n < 2 * LEARNER_KINDS * 3; n++) {
        const int size = n / 6, kind = n / 3 % 2, seed = n % 3;
        CHECK(alone.errors[STUDY_NEAR][size][kind][seed] > 0.0 &&
                  alone.errors[STUDY_CLASSES][size][kind][seed] > 0.0 &&
                  alone.errors[STUDY_CLASSES][size][kind][seed] <= 1.0,
              "no error at %d, %d, %d", size, kind, seed);
        CHECK(alone.errors[STUDY_FAR][size][kind][seed] == 0.0, "a task that was not requested");
    }
    const mean_interval i = study_difference(&alone, STUDY_NEAR, 1);
    CHECK(fabs(i.mean - (study_mean(&alone, STUDY_NEAR, 1, LEARN_ATTENTION).mean -
                         study_mean(&alone, STUDY_NEAR, 1, LEARN_CONVOLUTION).mean)) < 1e-12,
          "%g", i.mean);
}

/* With much data and without a far tap, the convolution finds the filter: nothing is left but what
 * noise does. With far taps a large part stays. */
static void the_convolution_learns_what_it_can(void)
{
    static study_result r;
    const study_plan plan = {.seed = test_seed(5),
                             .sizes = {64},
                             .size_count = 1,
                             .seeds = 2,
                             .steps = 60,
                             .fresh = 64,
                             .rates = {0.05},
                             .rate_count = 1,
                             .tasks = {true, true, false}};
    CHECK(study_run(&r, &plan, NULL, NULL) == MHA_OK, "run");
    for (int seed = 0; seed < 2; seed++) {
        const double near_error = r.errors[STUDY_NEAR][0][LEARN_CONVOLUTION][seed];
        const double far_error = r.errors[STUDY_FAR][0][LEARN_CONVOLUTION][seed];
        CHECK(near_error < 0.08, "near: %g", near_error);
        CHECK(far_error > 0.1 && far_error < 0.7, "far: %g", far_error);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(gradients_are_slopes);
    RUN(heads_can_be_the_convolution);
    RUN(steps_lower_the_error);
    RUN(costs_by_hand);
    RUN(studies_are_reproducible);
    RUN(the_convolution_learns_what_it_can);
    return test_end();
}
