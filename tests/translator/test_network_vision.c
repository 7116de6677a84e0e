/* SPDX-License-Identifier: MIT */
/*
 * Tests of the network of pictures: loss and gradients against a plain model in double precision,
 * whose central differences along random directions are those of every tensor; bits for any number
 * of threads; micro-batches; native arithmetic; errors.
 */
#include "support/test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "translator/network_parts.h"

enum { PICTURES = 5, CLASSES = 4, WIDTH = 16, SIDE = 9, TOKENS_MAX = 32, INPUTS_MAX = 64 };

/* ----------------------------------------------------------------- oracle ----- */

typedef struct oracle {
    const transformer_config *config;
    const transformer_map *map;
    const double *values;
    int tokens;
    double x[TOKENS_MAX][WIDTH];
} oracle;

static void linear(const oracle *o, const weight_at *at, int inputs, int outputs, const double *x,
                   double *y)
{
    for (int n = 0; n < outputs; n++) {
        y[n] = o->values[at->bias + (size_t)n];
        for (int c = 0; c < inputs; c++)
            y[n] += o->values[at->weight + (size_t)(n * inputs + c)] * x[c];
    }
}

static void norm(const oracle *o, const weight_at *at, const double *x, double *y)
{
    double mean = 0.0, square = 0.0;
    for (int c = 0; c < WIDTH; c++)
        mean += x[c] / WIDTH;
    for (int c = 0; c < WIDTH; c++)
        square += (x[c] - mean) * (x[c] - mean) / WIDTH;
    for (int c = 0; c < WIDTH; c++)
        y[c] = (x[c] - mean) / sqrt(square + 1e-5) * o->values[at->weight + (size_t)c] +
               o->values[at->bias + (size_t)c];
}

static void embed(oracle *o, const float *pixels)
{
    const vision_shape *const v = &o->config->vision;
    const int across = vision_across(v), marks = vision_marks(v);
    float codes[TOKENS_MAX * WIDTH];
    transformer_vision_codes(o->config, codes);
    for (int n = 0; n < o->tokens; n++) {
        double patch[INPUTS_MAX];
        int count = 0;
        const int top = (n - marks) / across * v->stride, left = (n - marks) % across * v->stride;
        for (int c = 0; c < v->channels && n >= marks; c++)
            for (int y = 0; y < v->patch; y++)
                for (int x = 0; x < v->patch; x++)
                    patch[count++] = (double)pixels[(c * SIDE + top + y) * SIDE + left + x];
        if (n >= marks)
            linear(o, &o->map->vision.patches, count, WIDTH, patch, o->x[n]);
        for (int c = 0; c < WIDTH; c++) {
            if (n < marks)
                o->x[n][c] = o->values[o->map->vision.mark + (size_t)c];
            o->x[n][c] += v->places == VISION_SINES
                              ? (double)codes[n * WIDTH + c]
                              : o->values[o->map->vision.places + (size_t)(n * WIDTH + c)];
        }
    }
}

static void attend(oracle *o, const attention_at *at)
{
    static double q[TOKENS_MAX][WIDTH], k[TOKENS_MAX][WIDTH], v[TOKENS_MAX][WIDTH];
    const int heads = o->config->heads, size = WIDTH / heads;
    for (int n = 0; n < o->tokens; n++) {
        double normed[WIDTH];
        norm(o, &at->norm, o->x[n], normed);
        linear(o, &at->q, WIDTH, WIDTH, normed, q[n]);
        linear(o, &at->k, WIDTH, WIDTH, normed, k[n]);
        linear(o, &at->v, WIDTH, WIDTH, normed, v[n]);
    }
    for (int i = 0; i < o->tokens; i++) {
        double out[WIDTH] = {0}, added[WIDTH];
        for (int h = 0; h < heads; h++) {
            double p[TOKENS_MAX], sum = 0.0;
            for (int j = 0; j < o->tokens; j++) {
                double score = 0.0;
                for (int c = h * size; c < (h + 1) * size; c++)
                    score += q[i][c] * k[j][c] / sqrt(size);
                sum += p[j] = exp(score);
            }
            for (int j = 0; j < o->tokens; j++)
                for (int c = h * size; c < (h + 1) * size; c++)
                    out[c] += p[j] / sum * v[j][c];
        }
        linear(o, &at->o, WIDTH, WIDTH, out, added);
        for (int c = 0; c < WIDTH; c++)
            o->x[i][c] += added[c];
    }
}

static void feed_forward(oracle *o, const feed_forward_at *at)
{
    double normed[WIDTH], inside[64], added[WIDTH];
    for (int n = 0; n < o->tokens; n++) {
        norm(o, &at->norm, o->x[n], normed);
        linear(o, &at->in, WIDTH, o->config->ff_width, normed, inside);
        for (int c = 0; c < o->config->ff_width; c++)
            inside[c] = inside[c] > 0.0 ? inside[c] : 0.0;
        linear(o, &at->out, o->config->ff_width, WIDTH, inside, added);
        for (int c = 0; c < WIDTH; c++)
            o->x[n][c] += added[c];
    }
}

static void logits_of(oracle *o, const float *pixels, double *logits)
{
    double pooled[WIDTH] = {0}, normed[WIDTH];
    const bool mean = o->config->vision.pooling == VISION_MEAN;
    embed(o, pixels);
    for (int n = 0; n < o->config->layers[TRANSFORMER_SOURCE]; n++) {
        attend(o, &o->map->layers[TRANSFORMER_SOURCE][n].self);
        feed_forward(o, &o->map->layers[TRANSFORMER_SOURCE][n].ff);
    }
    for (int n = 0; n < (mean ? o->tokens : 1); n++) {
        norm(o, &o->map->norm[TRANSFORMER_SOURCE], o->x[n], normed);
        for (int c = 0; c < WIDTH; c++)
            pooled[c] += normed[c] / (mean ? o->tokens : 1);
    }
    linear(o, &o->map->vision.classifier, WIDTH, CLASSES, pooled, logits);
}

/* The mean over the pictures of the loss with this much of the target spread. */
static double oracle_loss(const transformer_config *config, const transformer_map *map,
                          const double *values, const batch *b, double smoothing)
{
    oracle o = {.config = config, .map = map, .values = values, .tokens = config->positions};
    double all = 0.0;
    for (int n = 0; n < b->pairs; n++) {
        double logits[CLASSES], sum = 0.0;
        logits_of(&o, b->pixels + (size_t)n * b->picture_floats, logits);
        for (int c = 0; c < CLASSES; c++)
            sum += exp(logits[c]);
        for (int c = 0; c < CLASSES; c++) {
            const double share = (double)b->shares[n];
            const double target =
                smoothing / CLASSES + (1.0 - smoothing) * ((c == b->expected[n]) * (1.0 - share) +
                                                           (c == b->others[n]) * share);
            all -= target * (logits[c] - log(sum)) / b->pairs;
        }
    }
    return all;
}

/* ------------------------------------------------------------------ cases ----- */

static transformer_config config_of(int number)
{
    transformer_config config = {
        .form = FORM_VISION,
        .width = WIDTH,
        .heads = 4,
        .ff_width = 24,
        .layers = {2, 0},
        .words = {0, CLASSES},
        .vision = {.side = SIDE,
                   .channels = 1 + number % 2,
                   .patch = number < 4 ? 3 : 5,
                   .stride = number < 4 ? 3 : 2,
                   .pooling = number / 2 % 2 ? VISION_MEAN : VISION_CLASS,
                   .places = number % 3 == 0 ? VISION_SINES : VISION_LEARNED}};
    config.positions = vision_tokens(&config.vision);
    return config;
}
enum { CASES = 8 };

typedef struct vision_case {
    transformer_config config;
    transformer_map map;
    float *values, *gradients;
    batch *batch;
    network *network;
} vision_case;

static bool setup(vision_case *c, int number, int pictures, mha_arithmetic arithmetic,
                  mha_pool *pool)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    test_random random = {test_seed(31 + (uint64_t)number)};
    *c = (vision_case){.config = config_of(number)};
    if (!CHECK(transformer_config_check(&c->config, message), "%s", message))
        return false;
    transformer_map_fill(&c->map, &c->config);
    c->values = malloc(c->map.count * sizeof *c->values);
    c->gradients = malloc(c->map.count * sizeof *c->gradients);
    transformer_init(&c->config, 5, c->values);
    for (size_t n = 0; n < c->map.count; n++)
        c->values[n] += 0.1f * test_random_normal(&random);
    c->batch = batch_of_pictures(pictures, c->config.positions,
                                 (size_t)(c->config.vision.channels * SIDE * SIDE));
    for (size_t n = 0; n < (size_t)pictures * c->batch->picture_floats; n++)
        c->batch->pixels[n] = test_random_normal(&random);
    for (int n = 0; n < pictures; n++) {
        c->batch->expected[n] = (int)test_random_below(&random, CLASSES);
        c->batch->others[n] = (int)test_random_below(&random, CLASSES);
        c->batch->shares[n] = n % 2 ? 0.3f : 0.0f;
    }
    c->network = network_create(&c->config, c->values, arithmetic, pool);
    return CHECK(c->network != NULL, "no network");
}

static void teardown(vision_case *c)
{
    network_free(c->network);
    batch_free(c->batch);
    free(c->values);
    free(c->gradients);
}

static double run(vision_case *c, const network_mode *mode)
{
    network_loss loss = {0};
    for (size_t n = 0; n < c->map.count; n++)
        c->gradients[n] = NAN;
    mha_status status = network_forward(c->network, c->batch, mode, &loss);
    if (status == MHA_OK && mode->training)
        status = network_backward(c->network, c->gradients);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    CHECK(loss.words == c->batch->pairs, "%lld pictures", (long long)loss.words);
    return loss.sum / (double)loss.words;
}

static double *as_double(const vision_case *c)
{
    double *const values = malloc(c->map.count * sizeof *values);
    for (size_t n = 0; n < c->map.count; n++)
        values[n] = (double)c->values[n];
    return values;
}

/* ------------------------------------------------------------------ tests ----- */

static void loss_is_that_of_the_plain_model(void)
{
    for (int number = 0; number < CASES; number++) {
        vision_case c;
        if (!setup(&c, number, PICTURES, MHA_EXACT, NULL))
            return;
        double *const values = as_double(&c);
        const double wanted = oracle_loss(&c.config, &c.map, values, c.batch, 0.0);
        for (int training = 0; training < 2; training++) {
            const network_mode mode = {.training = training, .label_smoothing = 0.2};
            const double loss = run(&c, &mode);
            CHECK(fabs(loss - wanted) < 3e-6 * wanted, "case %d: %.9g, not %.9g", number, loss,
                  wanted);
        }
        free(values);
        teardown(&c);
    }
}

/* The derivative of the plain model along a direction of one tensor. */
static double difference(const vision_case *c, double *values, const transformer_tensor *tensor,
                         const float *direction)
{
    static const double step = 1e-7; /* small: relu has kinks, and in double it is enough */
    double ends[2];
    for (int n = 0; n < 2; n++) {
        for (size_t k = 0; k < tensor->count; k++)
            values[tensor->at + k] =
                (double)c->values[tensor->at + k] + (n ? -step : step) * (double)direction[k];
        ends[n] = oracle_loss(&c->config, &c->map, values, c->batch, 0.2);
    }
    for (size_t k = 0; k < tensor->count; k++)
        values[tensor->at + k] = (double)c->values[tensor->at + k];
    return (ends[0] - ends[1]) / (2.0 * step);
}

/* The squares of all gradients. */
static double whole_size(const vision_case *c)
{
    double size = 0.0;
    for (size_t n = 0; n < c->map.count; n++)
        size += (double)c->gradients[n] * (double)c->gradients[n];
    return size;
}

static void check_tensor(const vision_case *c, double *values, const transformer_tensor *tensor)
{
    float *const direction = malloc(tensor->count * sizeof *direction);
    test_random random = {test_seed(77) + tensor->at};
    double along = 0.0, size = 0.0, length = 0.0;
    for (size_t n = 0; n < tensor->count; n++) {
        const double g = (double)c->gradients[tensor->at + n];
        direction[n] = test_random_normal(&random);
        along += g * (double)direction[n];
        size += g * g;
        length += (double)direction[n] * (double)direction[n];
    }
    const double wanted = difference(c, values, tensor, direction);
    /* Biases of keys have gradients of 0, of which f32 leaves the rounding of terms that cancel. */
    const double rounding = (double)FLT_EPSILON * sqrt(whole_size(c) * length);
    CHECK(fabs(along - wanted) <= 2e-4 * sqrt(size * length) + rounding, "%s: %.7g, not %.7g",
          tensor->name, along, wanted);
    free(direction);
}

static void gradients_are_differences(void)
{
    static transformer_tensor tensors[TRANSFORMER_TENSORS_MAX];
    for (int number = 0; number < CASES; number++) {
        vision_case c;
        if (!setup(&c, number, PICTURES, MHA_EXACT, NULL))
            return;
        const network_mode mode = {.training = true, .label_smoothing = 0.2};
        const int count = transformer_tensors(&c.config, tensors);
        double *const values = as_double(&c);
        run(&c, &mode);
        for (int n = 0; n < count; n++)
            check_tensor(&c, values, &tensors[n]);
        free(values);
        teardown(&c);
    }
}

static void threads_do_not_change_bits(void)
{
    for (int arithmetic = 0; arithmetic < 2; arithmetic++) {
        float *first = NULL;
        for (int threads = 1; threads <= 4; threads++) {
            vision_case c;
            mha_pool *pool = NULL;
            CHECK(mha_pool_create(&pool, threads) == MHA_OK, "no pool");
            if (!setup(&c, 4, 70, arithmetic ? MHA_NATIVE : MHA_EXACT, pool))
                return;
            const network_mode mode = {
                .training = true, .dropout = 0.1, .attention_dropout = 0.1, .dropout_seed = 9};
            run(&c, &mode);
            if (!first) {
                first = malloc(c.map.count * sizeof *first);
                memcpy(first, c.gradients, c.map.count * sizeof *first);
            }
            CHECK(memcmp(first, c.gradients, c.map.count * sizeof *first) == 0,
                  "%d threads give other bits", threads);
            teardown(&c);
            mha_pool_free(pool);
        }
        free(first);
    }
}

/* Parts of a batch, with mode.words of the whole, sum up to its gradients. */
static void parts_sum_up(void)
{
    vision_case c;
    if (!setup(&c, 5, PICTURES, MHA_EXACT, NULL))
        return;
    network_mode mode = {.training = true};
    run(&c, &mode);
    float *const whole = malloc(c.map.count * sizeof *whole);
    double *const sum = calloc(c.map.count, sizeof *sum);
    memcpy(whole, c.gradients, c.map.count * sizeof *whole);
    batch *const all = c.batch;
    mode.words = PICTURES;
    for (int first = 0; first < PICTURES; first += 2) {
        c.batch = batch_part(all, first, first + 2 < PICTURES ? first + 2 : PICTURES);
        run(&c, &mode);
        for (size_t n = 0; n < c.map.count; n++)
            sum[n] += (double)c.gradients[n];
        batch_free(c.batch);
    }
    double worst = 0.0;
    for (size_t n = 0; n < c.map.count; n++) {
        const double off = fabs(sum[n] - (double)whole[n]);
        if (!(off <= worst)) /* of NaN, too */
            worst = off;
    }
    CHECK(worst < 1e-5, "parts differ by %g", worst);
    c.batch = all;
    free(whole);
    free(sum);
    teardown(&c);
}

static void what_does_not_fit_is_refused(void)
{
    vision_case c, other;
    network_loss loss;
    const network_mode mode = {0};
    if (!setup(&c, 0, 2, MHA_EXACT, NULL) || !setup(&other, 1, 2, MHA_EXACT, NULL))
        return;
    CHECK(network_forward(c.network, other.batch, &mode, &loss) == MHA_ERR_SHAPE, "channels");
    c.batch->expected[1] = CLASSES;
    CHECK(network_forward(c.network, c.batch, &mode, &loss) == MHA_ERR_INDEX, "a class");
    c.batch->expected[1] = 0;
    c.batch->others[1] = -1;
    CHECK(network_forward(c.network, c.batch, &mode, &loss) == MHA_ERR_INDEX, "another class");
    teardown(&c);
    teardown(&other);
    static const struct {
        size_t at;
        int value;
        const char *said;
    } wrong[] = {{offsetof(transformer_config, vision.patch), 10, "side of a patch"},
                 {offsetof(transformer_config, vision.stride), 4, "stride"},
                 {offsetof(transformer_config, vision.stride), 0, "stride"},
                 {offsetof(transformer_config, vision.channels), 0, "channels"},
                 {offsetof(transformer_config, words[1]), 1, "classes"},
                 {offsetof(transformer_config, layers[1]), 1, "decoder"},
                 {offsetof(transformer_config, positions), 11, "positions"},
                 {offsetof(transformer_config, heads), 3, "heads"}};
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        transformer_config config = config_of(0);
        char message[TRANSFORMER_MESSAGE_MAX] = "";
        memcpy((char *)&config + wrong[n].at, &wrong[n].value, sizeof(int));
        CHECK(!transformer_config_check(&config, message) && strstr(message, wrong[n].said),
              "case %zu: %s", n, message);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(loss_is_that_of_the_plain_model);
    RUN(gradients_are_differences);
    RUN(threads_do_not_change_bits);
    RUN(parts_sum_up);
    RUN(what_does_not_fit_is_refused);
    return test_end();
}
