/* SPDX-License-Identifier: MIT */
/*
 * Tests of the network: forward and backward passes are compared with the oracle in double
 * (network_oracle.h). Gradients are checked tensor by tensor along random directions: the
 * derivative along d is the sum of gradient * d. Also dropout, equality of bits, and errors.
 */
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/network_oracle.h"
#include "translator/network_parts.h"

/* The form that is tested; main() runs every test with each. */
static const transformer_config *tested = &network_small;

typedef struct network_case {
    transformer_config config;
    transformer_map map;
    batch *batch;
    float *values, *gradients;
    network *network;
} network_case;

static bool setup_seed(network_case *c, uint64_t seed, int pairs, int longest, mha_pool *pool)
{
    *c = (network_case){.config = *tested};
    transformer_map_fill(&c->map, tested);
    c->batch = network_case_batch(&c->config, seed, pairs, longest);
    c->values = network_case_values(&c->config, seed);
    c->gradients = malloc(c->map.count * sizeof *c->gradients);
    c->network = network_create(&c->config, c->values, MHA_EXACT, pool);
    return CHECK(c->gradients && c->network, "no network");
}

static bool setup(network_case *c, int pairs, int longest, mha_pool *pool)
{
    return setup_seed(c, test_seed(17), pairs, longest, pool);
}

static void teardown(network_case *c)
{
    network_free(c->network);
    free(c->batch);
    free(c->values);
    free(c->gradients);
}

/* With the weights of the oracle, which only matter to detectors. */
static mha_status run_forward(network_case *c, const batch *b, const network_mode *mode,
                              network_loss *loss)
{
    network_mode weighted = *mode;
    weighted.detection = network_oracle_weights;
    return network_forward(c->network, b, &weighted, loss);
}

static network_loss forward(network_case *c, const batch *b, const network_mode *mode)
{
    network_loss loss = {0};
    const mha_status status = run_forward(c, b, mode, &loss);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    return loss;
}

/* Gradients that the pass does not write stay NaN, so that every check fails. */
static void backward(network_case *c)
{
    for (size_t n = 0; n < c->map.count; n++)
        c->gradients[n] = NAN;
    const mha_status status = network_backward(c->network, c->gradients);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
}

static double *as_double(const network_case *c)
{
    double *const values = malloc(c->map.count * sizeof *values);
    for (size_t n = 0; values && n < c->map.count; n++)
        values[n] = (double)c->values[n];
    return values;
}

/* ------------------------------------------------------------- forward ----- */

static void loss_is_the_oracles(void)
{
    for (int pairs = 1; pairs <= 9; pairs += 4) {
        network_case c;
        if (!setup(&c, pairs, 12, NULL))
            return;
        double *const values = as_double(&c);
        const oracle_loss wanted = network_oracle(&c.config, values, c.batch, 0.0, NULL);
        for (int training = 0; training < 2; training++) {
            const network_mode mode = {.training = training, .label_smoothing = 0.2};
            const network_loss loss = forward(&c, c.batch, &mode);
            CHECK(fabs(loss.sum - wanted.sum) < 2e-6 * wanted.sum, "%g, not %g", loss.sum,
                  wanted.sum);
            CHECK(loss.words == c.batch->rows[TRANSFORMER_TARGET], "%td words",
                  (ptrdiff_t)loss.words);
            CHECK(loss.right == wanted.right, "%td right, not %td", (ptrdiff_t)loss.right,
                  (ptrdiff_t)wanted.right);
        }
        free(values);
        teardown(&c);
    }
}

static void sentences_do_not_see_each_other(void)
{
    network_case c;
    if (!setup(&c, 7, 12, NULL))
        return;
    const network_mode mode = {0};
    const network_loss together = forward(&c, c.batch, &mode);
    network_loss sum = {0};
    for (int n = 0; n < c.batch->pairs; n++) {
        lone_pair pair;
        network_case_pair(c.batch, n, &pair);
        const network_loss loss = forward(&c, &pair.batch, &mode);
        sum.sum += loss.sum;
        sum.words += loss.words;
        sum.right += loss.right;
    }
    CHECK(fabs(sum.sum - together.sum) < 1e-12 * sum.sum, "%.17g, not %.17g", together.sum,
          sum.sum);
    CHECK(sum.words == together.words && sum.right == together.right, "words, right");
    teardown(&c);
}

/* ----------------------------------------------------------- gradients ----- */

static float *random_direction(const transformer_tensor *tensor, uint64_t seed)
{
    float *const direction = malloc(tensor->count * sizeof *direction);
    test_random random = {seed + tensor->at};
    for (size_t n = 0; n < tensor->count; n++)
        direction[n] = test_random_normal(&random);
    return direction;
}

/* The derivative along the direction, and the norms of gradient and direction. */
typedef struct slope {
    double along, scale;
} slope;

static slope slope_of(const float *gradient, const float *direction, size_t count)
{
    double along = 0.0, gradients = 0.0, directions = 0.0;
    for (size_t n = 0; n < count; n++) {
        along += (double)gradient[n] * (double)direction[n];
        gradients += (double)gradient[n] * (double)gradient[n];
        directions += (double)direction[n] * (double)direction[n];
    }
    return (slope){along, sqrt(gradients) * sqrt(directions)};
}

static double oracle_slope(const network_case *c, const network_mode *mode, double *values,
                           const transformer_tensor *tensor, const float *direction)
{
    const network *const dropped = mode->dropout > 0.0 ? c->network : NULL;
    const double step = 1e-6;
    double losses[2];
    for (int side = 0; side < 2; side++) {
        for (size_t n = 0; n < tensor->count; n++)
            values[tensor->at + n] =
                (double)c->values[tensor->at + n] + (side ? step : -step) * (double)direction[n];
        losses[side] =
            network_oracle(&c->config, values, c->batch, mode->label_smoothing, dropped).smoothed;
    }
    for (size_t n = 0; n < tensor->count; n++)
        values[tensor->at + n] = (double)c->values[tensor->at + n];
    return (losses[1] - losses[0]) / (2.0 * step);
}

/* A forward pass in which no input of a relu is so close to 0 that a step of oracle_slope() could
 * change its sign, with the same loss as the oracle. */
static bool setup_smooth(network_case *c, const network_mode *mode)
{
    for (uint64_t seed = test_seed(17);; seed++) {
        if (!setup_seed(c, seed, 4, 6, NULL))
            return false;
        const network_loss loss = forward(c, c->batch, mode);
        double *const values = as_double(c);
        const oracle_loss wanted = network_oracle(&c->config, values, c->batch, 0.0,
                                                  mode->dropout > 0.0 ? c->network : NULL);
        free(values);
        CHECK(fabs(loss.sum - wanted.sum) < 2e-6 * wanted.sum, "loss %g, not %g", loss.sum,
              wanted.sum);
        if (wanted.kink > 1e-4)
            return true;
        teardown(c);
    }
}

static void check_gradients(const network_mode *mode)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    network_case c;
    if (!setup_smooth(&c, mode))
        return;
    backward(&c);
    double *const values = as_double(&c);
    const int count = transformer_tensors(&c.config, list);
    for (int n = 0; n < count; n++) {
        float *const direction = random_direction(&list[n], 5);
        const slope found = slope_of(c.gradients + list[n].at, direction, list[n].count);
        const double wanted = oracle_slope(&c, mode, values, &list[n], direction);
        CHECK(fabs(found.along - wanted) < 2e-6 * found.scale + 4e-7, "%s: %g, not %g",
              list[n].name, found.along, wanted);
        free(direction);
    }
    free(values);
    teardown(&c);
}

static void gradients_are_the_oracles(void)
{
    check_gradients(&(network_mode){.training = true});
}

static void smoothed_gradients_are_the_oracles(void)
{
    check_gradients(&(network_mode){.training = true, .label_smoothing = 0.25});
}

static void dropped_gradients_are_the_oracles(void)
{
    check_gradients(&(network_mode){.training = true,
                                    .dropout = 0.3,
                                    .attention_dropout = 0.3,
                                    .dropout_seed = 9,
                                    .label_smoothing = 0.1});
}

/* Adds the gradients of each pair alone, weighted by its share of the words. */
static void add_pairs(network_case *c, const network_mode *mode, double *sums)
{
    for (int n = 0; n < c->batch->pairs; n++) {
        lone_pair pair;
        network_case_pair(c->batch, n, &pair);
        const double words = (double)forward(c, &pair.batch, mode).words;
        backward(c);
        for (size_t k = 0; k < c->map.count; k++)
            sums[k] += (double)c->gradients[k] * words / (double)c->batch->rows[TRANSFORMER_TARGET];
    }
}

/* So many rows that their logits are computed in two pieces. */
static void a_batch_has_the_gradients_of_its_sentences(void)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    network_case c;
    if (!setup(&c, 120, 12, NULL))
        return;
    CHECK(c.batch->rows[TRANSFORMER_TARGET] > LOSS_ROWS, "only one piece");
    const network_mode mode = {.training = true, .label_smoothing = 0.1};
    double *const sums = calloc(c.map.count, sizeof *sums);
    add_pairs(&c, &mode, sums);
    forward(&c, c.batch, &mode);
    backward(&c);
    const int count = transformer_tensors(&c.config, list);
    for (int n = 0; n < count; n++) {
        double errors = 0.0, squares = 0.0;
        for (size_t k = list[n].at; k < list[n].at + list[n].count; k++) {
            errors += ((double)c.gradients[k] - sums[k]) * ((double)c.gradients[k] - sums[k]);
            squares += sums[k] * sums[k];
        }
        CHECK(sqrt(errors) < 2e-6 * sqrt(squares) + 1e-7, "%s: off by %g of %g", list[n].name,
              sqrt(errors), sqrt(squares));
    }
    free(sums);
    teardown(&c);
}

/* ------------------------------------------------------------- dropout ----- */

static void dropout_is_for_training(void)
{
    network_case c;
    if (!setup(&c, 6, 8, NULL))
        return;
    const network_mode plain = {0},
                       ignored = {.dropout = 0.3, .attention_dropout = 0.3, .dropout_seed = 9};
    network_mode training = {
        .training = true, .dropout = 0.3, .attention_dropout = 0.3, .dropout_seed = 9};
    const double wanted = forward(&c, c.batch, &plain).sum;
    const double dropped = forward(&c, c.batch, &training).sum;
    CHECK(forward(&c, c.batch, &ignored).sum == wanted, "dropped out without training");
    CHECK(dropped != wanted, "nothing dropped out");
    CHECK(forward(&c, c.batch, &training).sum == dropped, "the same seed, another loss");
    training.dropout_seed = 10;
    CHECK(forward(&c, c.batch, &training).sum != dropped, "another seed, the same loss");
    training.dropout = 0.0;
    const double of_weights = forward(&c, c.batch, &training).sum;
    CHECK(of_weights != wanted && of_weights != dropped, "dropout of attention weights alone");
    training.attention_dropout = 0.0;
    CHECK(forward(&c, c.batch, &training).sum == wanted, "training without dropout");
    teardown(&c);
}

static void layers_drop_independently(void)
{
    enum { SEEDS_MAX = 64 };
    uint64_t seeds[SEEDS_MAX];
    int count = 0;
    network_case c;
    if (!setup(&c, 2, 4, NULL))
        return;
    for (uint64_t step = 0; step < 2; step++) {
        const network_mode mode = {
            .training = true, .dropout = 0.3, .attention_dropout = 0.3, .dropout_seed = step};
        forward(&c, c.batch, &mode);
        for (int side = 0; side < TRANSFORMER_SIDES; side++)
            for (int n = 0; n <= c.network->sides[side].end; n++) {
                attention_call a;
                network_fill_call(c.network, side, n, &a);
                seeds[count++] = network_dropout(c.network, side, n).key;
                seeds[count++] = a.options.dropout_seed;
                CHECK(a.options.dropout == 0.3f && (a.options.flags & MHA_TRAINING), "weights");
            }
    }
    for (int n = 0; n < count; n++)
        for (int other = 0; other < n; other++)
            CHECK(seeds[n] != seeds[other], "places %d and %d drop alike", other, n);
    teardown(&c);
}

/* ---------------------------------------------------------------- bits ----- */

/* The loss and the gradients of a case with a pool of so many threads. */
static double run_threads(int threads, float *gradients)
{
    mha_pool *pool = NULL;
    network_case c;
    network_loss loss = {0};
    if (!CHECK(mha_pool_create(&pool, threads) == MHA_OK, "no pool"))
        return NAN;
    if (setup(&c, 25, 12, pool)) {
        const network_mode mode = {.training = true,
                                   .dropout = 0.1,
                                   .attention_dropout = 0.1,
                                   .dropout_seed = 4,
                                   .label_smoothing = 0.1};
        loss = forward(&c, c.batch, &mode);
        backward(&c);
        memcpy(gradients, c.gradients, c.map.count * sizeof *gradients);
    }
    teardown(&c);
    mha_pool_free(pool);
    return loss.sum;
}

static void bits_do_not_depend_on_threads(void)
{
    transformer_map map;
    transformer_map_fill(&map, tested);
    float *const wanted = malloc(2 * map.count * sizeof *wanted), *const found = wanted + map.count;
    const double loss = run_threads(1, wanted);
    for (int threads = 2; threads <= 3; threads++) {
        CHECK(run_threads(threads, found) == loss, "%d threads: loss", threads);
        CHECK(memcmp(wanted, found, map.count * sizeof *wanted) == 0, "%d threads: gradients",
              threads);
    }
    free(wanted);
}

static void memory_is_reused(void)
{
    network_case c;
    if (!setup(&c, 9, 12, NULL))
        return;
    const network_mode mode = {.training = true, .dropout = 0.1, .attention_dropout = 0.1},
                       evaluation = {0};
    const size_t size = c.map.count * sizeof *c.gradients;
    float *const wanted = malloc(size);
    lone_pair pair;
    network_case_pair(c.batch, 3, &pair);
    const double loss = forward(&c, &pair.batch, &mode).sum;
    backward(&c);
    memcpy(wanted, c.gradients, size);
    forward(&c, c.batch, &mode);
    backward(&c);
    CHECK(memcmp(wanted, c.gradients, size) != 0, "another batch, the same gradients");
    forward(&c, c.batch, &evaluation);
    CHECK(forward(&c, &pair.batch, &mode).sum == loss, "loss after a larger batch");
    for (int again = 0; again < 2; again++) {
        backward(&c);
        CHECK(memcmp(wanted, c.gradients, size) == 0, "gradients after a larger batch");
    }
    free(wanted);
    teardown(&c);
}

static void update_equals_creation(void)
{
    network_case c;
    if (!setup(&c, 5, 8, NULL))
        return;
    const network_mode mode = {.training = true};
    const size_t size = c.map.count * sizeof *c.gradients;
    float *const others = network_case_values(&c.config, 99), *const wanted = malloc(size);
    CHECK(network_update(c.network, others) == MHA_OK, "no update");
    const double loss = forward(&c, c.batch, &mode).sum;
    backward(&c);
    memcpy(wanted, c.gradients, size);
    network_free(c.network);
    c.network = network_create(&c.config, others, MHA_EXACT, NULL);
    CHECK(forward(&c, c.batch, &mode).sum == loss, "loss");
    backward(&c);
    CHECK(memcmp(wanted, c.gradients, size) == 0, "gradients");
    free(wanted);
    teardown(&c);
    free(others);
}

/* -------------------------------------------------------------- errors ----- */

static mha_status try_forward(network_case *c, const network_mode *mode)
{
    network_loss loss;
    return run_forward(c, c->batch, mode, &loss);
}

static void wrong_calls_are_refused(void)
{
    network_case c;
    if (!setup(&c, 3, 5, NULL))
        return;
    const network_mode training = {.training = true}, plain = {0};
    CHECK(network_backward(c.network, c.gradients) == MHA_ERR_FLAG, "no forward pass");
    CHECK(try_forward(&c, &plain) == MHA_OK, "plain");
    CHECK(network_backward(c.network, c.gradients) == MHA_ERR_FLAG, "no training");
    const double bad[] = {-0.1, 1.0, NAN};
    for (int n = 0; n < 3; n++)
        CHECK(try_forward(&c, &(network_mode){.dropout = bad[n]}) == MHA_ERR_DROPOUT &&
                  try_forward(&c, &(network_mode){.attention_dropout = bad[n]}) == MHA_ERR_DROPOUT,
              "%g", bad[n]);
    int *const places[] = {c.batch->words[0] + 1, c.batch->words[1] + 2, c.batch->expected};
    for (int n = c.batch->pixels ? 1 : 0; n < 3; n++) {
        const int word = *places[n];
        *places[n] = 21;
        CHECK(try_forward(&c, &training) == MHA_ERR_INDEX, "word too large at %d", n);
        *places[n] = -1;
        CHECK(try_forward(&c, &training) == MHA_ERR_INDEX, "word below 0 at %d", n);
        *places[n] = word;
    }
    CHECK(network_backward(c.network, c.gradients) == MHA_ERR_FLAG, "the forward pass failed");
    CHECK(try_forward(&c, &training) == MHA_OK, "good again");
    CHECK(network_backward(c.network, c.gradients) == MHA_OK, "good again");
    CHECK(network_update(c.network, c.values) == MHA_OK, "update");
    CHECK(network_backward(c.network, c.gradients) == MHA_ERR_FLAG, "parameters have changed");
    free(c.batch);
    c.batch = network_case_batch(&c.config, 1, 60, 13);
    CHECK(try_forward(&c, &training) == MHA_ERR_SHAPE, "longer than there are positions");
    free(c.batch);
    c.batch = network_case_batch(&c.config, 1, 0, 5);
    CHECK(try_forward(&c, &training) == MHA_ERR_SHAPE, "no sentences");
    teardown(&c);
}

/* Of every row the most likely word, and of cross-attention weights that add up to 1. */
static void said_words_and_weights_are_returned(void)
{
    network_case c;
    if (!setup(&c, 5, 9, NULL))
        return;
    const batch *const b = c.batch;
    const size_t L = (size_t)b->longest[1], S = (size_t)b->longest[0];
    const size_t layers = (size_t)c.config.layers[1], heads = (size_t)c.config.heads;
    int *const said = malloc((size_t)b->rows[1] * sizeof *said);
    float *const cross = calloc(layers * 5 * heads * L * S, sizeof *cross);
    const network_mode mode = {.said = said, .cross = cross};
    const network_loss loss = forward(&c, b, &mode);
    int64_t right = 0, whole = 0;
    for (int n = 0; n < 5; n++) {
        bool all = true;
        for (int64_t row = b->starts[1][n]; row < b->starts[1][n + 1]; row++) {
            const bool same = said[row] == b->expected[row];
            CHECK(same == network_scores(c.network)[row].right, "row %d", (int)row);
            right += same;
            all = all && same;
        }
        whole += all;
        for (size_t k = 0; k < layers * heads; k++)
            for (int64_t i = 0; i < b->starts[1][n + 1] - b->starts[1][n]; i++) {
                const size_t map = ((k / heads * 5 + (size_t)n) * heads + k % heads) * L;
                double sum = 0.0;
                for (size_t j = 0; j < S; j++)
                    sum += (double)cross[(map + (size_t)i) * S + j];
                CHECK(fabs(sum - 1.0) < 1e-5, "pair %d, row %d: %g", n, (int)i, sum);
            }
    }
    CHECK(loss.right == right && loss.whole == whole, "right, whole");
    memcpy(c.batch->expected, said, (size_t)b->rows[1] * sizeof *said);
    CHECK(forward(&c, b, &mode).whole == 5, "all words are right, but not all pairs");
    CHECK(try_forward(&c, &(network_mode){.training = true, .cross = cross}) == MHA_ERR_FLAG,
          "weights in training");
    free(said);
    free(cross);
    teardown(&c);
}

/* -------------------------------------------------------------- detectors ----- */

/* What queries say does not depend on what is true, and the loss follows from it. */
static void outputs_are_returned(void)
{
    network_case c;
    if (!setup(&c, 4, 0, NULL))
        return;
    const size_t count = (size_t)c.batch->rows[1] * (size_t)transformer_outputs(&c.config);
    float *const outputs = malloc(2 * count * sizeof *outputs), *const again = outputs + count;
    forward(&c, c.batch, &(network_mode){.outputs = outputs});
    for (int n = 0; n < 4; n++)
        c.batch->thing_counts[n] = 0;
    const network_loss loss = forward(&c, c.batch, &(network_mode){.outputs = again});
    CHECK(memcmp(outputs, again, count * sizeof *outputs) == 0, "other outputs");
    double sum = 0.0;
    for (ptrdiff_t row = 0; row < c.batch->rows[1]; row++) {
        const float *const kinds = outputs + row * transformer_outputs(&c.config) + 3;
        double total = 0.0;
        for (int n = 0; n < 4; n++)
            total += exp((double)kinds[n]);
        sum += network_oracle_weights.nothing * (log(total) - (double)kinds[3]);
    }
    CHECK(fabs(loss.sum - sum) < 1e-5 * sum, "%g of nothing, not %g", loss.sum, sum);
    free(outputs);
    teardown(&c);
}

static void wrong_things_are_refused(void)
{
    network_case c;
    const network_mode training = {.training = true};
    if (!setup(&c, 3, 0, NULL))
        return;
    batch *const b = c.batch;
    const batch_thing fine = {{2, 2}, {{0.5, 0.5, 0.2, 0.3}}};
    b->thing_counts[1] = 1;
    batch_thing *const thing = &b->things[b->things_room];
    *thing = fine;
    CHECK(try_forward(&c, &training) == MHA_OK, "fine");
    thing->classes[0] = 3;
    CHECK(try_forward(&c, &training) == MHA_ERR_INDEX, "a class of the first kind");
    *thing = fine;
    thing->classes[1] = 3;
    CHECK(try_forward(&c, &training) == MHA_ERR_INDEX, "nothing is no thing");
    *thing = fine;
    thing->classes[1] = -1;
    CHECK(try_forward(&c, &training) == MHA_ERR_INDEX, "a class below 0");
    const double bad[] = {0.0, -0.5, 1.5, NAN};
    for (int n = 0; n < 4; n++) {
        *thing = fine;
        thing->box.at[BOX_WIDTH + n % 2] = bad[n];
        CHECK(try_forward(&c, &training) == MHA_ERR_SHAPE, "a box of %g", bad[n]);
    }
    *thing = fine;
    b->thing_counts[1] = 6;
    CHECK(try_forward(&c, &training) == MHA_ERR_SHAPE, "more things than queries");
    b->thing_counts[1] = 1;
    b->words[1][7] = 0;
    CHECK(try_forward(&c, &training) == MHA_ERR_INDEX, "a query twice");
    b->words[1][7] = 2;
    b->things = NULL;
    CHECK(try_forward(&c, &training) == MHA_ERR_SHAPE, "no things");
    teardown(&c);
}

static void run_detector(void)
{
    RUN(outputs_are_returned);
    RUN(wrong_things_are_refused);
    RUN(loss_is_the_oracles);
    RUN(sentences_do_not_see_each_other);
    RUN(gradients_are_the_oracles);
    RUN(smoothed_gradients_are_the_oracles);
    RUN(dropped_gradients_are_the_oracles);
    RUN(a_batch_has_the_gradients_of_its_sentences);
    RUN(dropout_is_for_training);
    RUN(bits_do_not_depend_on_threads);
    RUN(memory_is_reused);
    RUN(update_equals_creation);
}

static void run_all(void)
{
    RUN(said_words_and_weights_are_returned);
    RUN(loss_is_the_oracles);
    RUN(sentences_do_not_see_each_other);
    RUN(gradients_are_the_oracles);
    RUN(smoothed_gradients_are_the_oracles);
    RUN(dropped_gradients_are_the_oracles);
    RUN(a_batch_has_the_gradients_of_its_sentences);
    RUN(dropout_is_for_training);
    RUN(layers_drop_independently);
    RUN(bits_do_not_depend_on_threads);
    RUN(memory_is_reused);
    RUN(update_equals_creation);
    RUN(wrong_calls_are_refused);
}

int main(int argc, char **argv)
{
    transformer_config sines = network_small_captions;
    sines.vision.places = VISION_SINES;
    const transformer_config *const forms[] = {&network_small, &network_small_marian,
                                               &network_small_captions, &sines};
    test_begin(argc, argv);
    for (size_t n = 0; n < sizeof forms / sizeof forms[0]; n++) {
        tested = forms[n];
        run_all();
    }
    tested = &network_small_detection;
    run_detector();
    return test_end();
}
