/* SPDX-License-Identifier: MIT */
/*
 * A capture agrees with the translator and the network, to the bit where they compute the same. A
 * changed head is compared with a model with other parameters: a disabled head with one whose
 * columns of W_O are 0, a mean with one whose bias has W_O mean added, a uniform head with one
 * without queries. Gradients of gates are compared with differences of losses.
 */
#include "heads/capture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/plain_transformer.h"
#include "support/test.h"
#include "support/tiny_model.h"
#include "translator/network.h"

enum { SOURCE = 7, TARGET = 6 };

typedef struct subject {
    transformer_config config;
    transformer_map map;
    float *values;
    translator *model;
    int source[SOURCE], target[TARGET];
} subject;

static void remake(subject *s)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    translator_free(s->model);
    s->model = translator_create(&s->config, s->values, message);
    CHECK(s->model, "no model: %s", message);
}

static subject *subject_new(uint64_t seed)
{
    subject *const s = calloc(1, sizeof *s);
    test_random random = {seed};
    if (!s)
        abort();
    s->config = tiny_config();
    transformer_map_fill(&s->map, &s->config);
    s->values = tiny_values(&s->config, seed);
    for (int n = 0; n < SOURCE; n++)
        s->source[n] = WORDS_SPECIAL + (int)test_random_below(&random, 17);
    for (int n = 0; n < TARGET; n++)
        s->target[n] = WORDS_SPECIAL + (int)test_random_below(&random, 21);
    remake(s);
    return s;
}

static void subject_free(subject *s)
{
    translator_free(s->model);
    free(s->values);
    free(s);
}

static capture *take(const subject *s, const capture_options *options)
{
    capture *const c =
        capture_create(s->model, s->source, SOURCE, s->target, TARGET, options, NULL);
    CHECK(c, "no capture");
    if (!c)
        abort();
    return c;
}

static const capture_options everything = {.weights = true, .vectors = true};

static const float *weights_of(const capture_heads *h, int head)
{
    return h->weights + (ptrdiff_t)head * h->rows * h->columns;
}

/* ---------------------------------------------------------------- plain ----- */

static void rows_sum_to_one(void)
{
    subject *const s = subject_new(test_seed(3));
    capture *const c = take(s, &everything);
    for (int kind = 0; c && kind < ATTENTION_KINDS; kind++) {
        const capture_heads *const h = &c->kind[kind];
        for (int row = 0; row < h->layers * h->heads * h->rows; row++) {
            double sum = 0, future = 0;
            for (int j = 0; j < h->columns; j++) {
                const double weight = (double)h->weights[row * h->columns + j];
                sum += weight;
                future += kind == ATTENTION_DECODER && j > row % h->rows ? weight : 0.0;
            }
            CHECK(fabs(sum - 1) < 1e-6, "%s, row %d: %g", attention_kind_name((attention_kind)kind),
                  row, sum);
            CHECK(future == 0, "row %d looks ahead: %g", row, future);
        }
    }
    capture_free(c);
    subject_free(s);
}

static void shapes_and_words_are_those_of_the_pair(void)
{
    subject *const s = subject_new(test_seed(4));
    capture *const c = take(s, &everything);
    if (c) {
        CHECK(c->source_count == SOURCE + 1 && c->source[SOURCE] == WORD_END, "source");
        CHECK(c->target_count == TARGET + 1 && c->target[0] == WORD_BEGIN, "target");
        CHECK(c->expected[TARGET] == WORD_END && c->expected[0] == s->target[0], "expected");
        CHECK(c->kind[ATTENTION_ENCODER].rows == SOURCE + 1, "rows of the encoder");
        CHECK(c->kind[ATTENTION_CROSS].rows == TARGET + 1, "rows of cross");
        CHECK(c->kind[ATTENTION_CROSS].columns == SOURCE + 1, "columns of cross");
    }
    capture_free(c);
    subject_free(s);
}

static void cross_weights_are_the_translators(void)
{
    subject *const s = subject_new(test_seed(5));
    const translation_options options = {.beam = 1, .weights = true};
    const int *const source = s->source;
    const int length = SOURCE;
    translation result = {0};
    const mha_status status =
        translator_translate(s->model, &source, &length, 1, &options, &result, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    const bool ends = result.target[result.target_count - 1] == WORD_END;
    capture *const c = capture_create(s->model, s->source, SOURCE, result.target,
                                      result.target_count - 1, &everything, NULL);
    if (CHECK(c, "no capture")) {
        const size_t count = (size_t)s->config.layers[TRANSFORMER_TARGET] *
                             (size_t)s->config.heads * (size_t)(result.target_count * SOURCE);
        CHECK(memcmp(c->kind[ATTENTION_CROSS].weights, result.weights, count * sizeof(float)) == 0,
              "other weights");
        double sum = 0;
        for (int n = 0; n < result.target_count; n++) {
            CHECK(c->predicted[n] == result.target[n], "word %d is another one", n);
            sum += c->log_likelihood[n];
        }
        CHECK(!ends || fabs(sum - result.score) < 1e-5, "%g, not %g", sum, result.score);
    }
    capture_free(c);
    free(result.weights);
    subject_free(s);
}

/* A batch of one pair that uses the arrays of a capture. */
static batch batch_of(capture *c, int64_t starts[TRANSFORMER_SIDES][2],
                      int positions[CORPUS_TOKENS_MAX])
{
    starts[TRANSFORMER_SOURCE][1] = c->source_count;
    starts[TRANSFORMER_TARGET][1] = c->target_count;
    for (int n = 0; n < CORPUS_TOKENS_MAX; n++)
        positions[n] = n;
    return (batch){.pairs = 1,
                   .starts = {starts[0], starts[1]},
                   .rows = {c->source_count, c->target_count},
                   .longest = {c->source_count, c->target_count},
                   .words = {c->source, c->target},
                   .positions = {positions, positions},
                   .expected = c->expected};
}

static void likelihoods_are_the_networks(void)
{
    subject *const s = subject_new(test_seed(6));
    capture *const c = take(s, &everything);
    network *const net = network_create(&s->config, s->values, MHA_EXACT, NULL);
    int64_t starts[TRANSFORMER_SIDES][2] = {{0}};
    int positions[CORPUS_TOKENS_MAX];
    float logits[TARGET + 1];
    network_loss loss;
    if (CHECK(c && net, "no memory")) {
        const batch b = batch_of(c, starts, positions);
        const network_mode mode = {.logits = logits};
        CHECK(network_forward(net, &b, &mode, &loss) == MHA_OK, "no forward pass");
        for (int n = 0; n <= TARGET; n++) {
            CHECK(network_scores(net)[n].loss == -c->log_likelihood[n], "row %d: %g, not %g", n,
                  c->log_likelihood[n], -network_scores(net)[n].loss);
            CHECK(logits[n] == (float)c->logit[n], "logit of row %d: %g", n, c->logit[n]);
        }
    }
    network_free(net);
    capture_free(c);
    subject_free(s);
}

/* -------------------------------------------------------------- vectors ----- */

static void weights_follow_from_queries_and_keys(void)
{
    subject *const s = subject_new(test_seed(7));
    capture *const c = take(s, &everything);
    for (int kind = 0; c && kind < ATTENTION_KINDS; kind++) {
        const capture_heads *const h = &c->kind[kind];
        for (int n = 0; n < h->layers * h->heads * h->rows; n++) {
            const int head = n / h->rows,
                      last = kind == ATTENTION_DECODER ? n % h->rows : h->columns;
            double e[CORPUS_TOKENS_MAX], sum = 0;
            for (int j = 0; j < h->columns; j++) {
                double dot = 0;
                for (int k = 0; k < h->width; k++)
                    dot += (double)h->q[n * h->width + k] *
                           (double)h->k[(head * h->columns + j) * h->width + k];
                e[j] = j <= last ? exp(dot / sqrt(h->width)) : 0.0;
                sum += e[j];
            }
            for (int j = 0; j < h->columns; j++)
                CHECK(fabs(e[j] / sum - (double)h->weights[n * h->columns + j]) < 1e-5,
                      "kind %d, row %d, column %d", kind, n, j);
        }
    }
    capture_free(c);
    subject_free(s);
}

/* -------------------------------------------------------------- changes ----- */

static const attention_at *attention_of(const subject *s, int kind, int layer)
{
    const layer_at *const at =
        &s->map.layers[kind == ATTENTION_ENCODER ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET][layer];
    return kind == ATTENTION_CROSS ? &at->cross : &at->self;
}

static capture *take_changed(const subject *s, int kind, int number, head_mode change,
                             const float *means)
{
    uint8_t changes[TRANSFORMER_LAYERS_MAX * 8] = {0};
    capture_options options = everything;
    changes[number] = (uint8_t)change;
    options.changes[kind] = changes;
    options.means[kind] = means;
    return take(s, &options);
}

/* Compares with the likelihoods of the plain transformer with these parameters. */
static void check_likelihoods(const subject *s, const capture *c, const float *values)
{
    const plain_transformer plain = plain_transformer_new(&s->config, values);
    const int words = s->config.words[TRANSFORMER_TARGET];
    double logs[(TARGET + 1) * 64], weights[4096];
    plain_transformer_run(&plain, c->source, c->source_count, c->target, c->target_count, logs,
                          weights);
    for (int n = 0; n < c->target_count; n++)
        CHECK(fabs(logs[n * words + c->expected[n]] - c->log_likelihood[n]) < 1e-4,
              "row %d: %g, not %g", n, c->log_likelihood[n], logs[n * words + c->expected[n]]);
}

static float *copy_values(const subject *s)
{
    float *const copy = malloc(s->map.count * sizeof *copy);
    if (!copy)
        abort();
    return memcpy(copy, s->values, s->map.count * sizeof *copy);
}

/* Sets the columns of W_O that read the head to 0; with a mean, adds W_O mean to the bias. */
static void cut_head(const subject *s, float *values, const weight_at *o, int head,
                     const float *mean)
{
    const int E = s->config.width, D = E / s->config.heads;
    for (int n = 0; n < E; n++)
        for (int k = 0; k < D; k++) {
            float *const weight = values + o->weight + (size_t)(n * E + head * D + k);
            if (mean)
                values[o->bias + (size_t)n] += *weight * mean[k];
            *weight = 0;
        }
}

static void disabled_head_is_a_model_without_it(void)
{
    subject *const s = subject_new(test_seed(9));
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int number = 0; number < 8; number += 3) {
            capture *const c = take_changed(s, kind, number, HEAD_ZERO, NULL);
            float *const values = copy_values(s);
            cut_head(s, values, &attention_of(s, kind, number / 4)->o, number % 4, NULL);
            if (c)
                check_likelihoods(s, c, values);
            for (int k = 0; c && k < c->kind[kind].width; k++)
                CHECK(
                    c->kind[kind].outputs[number * c->kind[kind].rows * c->kind[kind].width + k] ==
                        0,
                    "its output is not 0");
            free(values);
            capture_free(c);
        }
    subject_free(s);
}

/* The usual mistake is to clear rows of W_O, a slice of the output, instead of its columns. */
static void disabled_head_is_no_slice_of_the_output(void)
{
    subject *const s = subject_new(test_seed(10));
    const int E = s->config.width, D = E / s->config.heads, head = 1;
    const weight_at *const o = &attention_of(s, ATTENTION_CROSS, 1)->o;
    capture *const disabled = take_changed(s, ATTENTION_CROSS, 4 + head, HEAD_ZERO, NULL);
    for (int n = head * D; n < (head + 1) * D; n++) {
        memset(s->values + o->weight + n * E, 0, (size_t)E * sizeof *s->values);
        s->values[o->bias + (size_t)n] = 0;
    }
    remake(s);
    capture *const sliced = take(s, &everything);
    double distance = 0;
    for (int n = 0; disabled && sliced && n <= TARGET; n++)
        distance += fabs(disabled->log_likelihood[n] - sliced->log_likelihood[n]);
    CHECK(distance > 1e-3, "both are the same");
    capture_free(disabled);
    capture_free(sliced);
    subject_free(s);
}

static void mean_moves_to_the_bias(void)
{
    subject *const s = subject_new(test_seed(11));
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        float means[8 * 8];
        test_random random = {test_seed(12)};
        const int number = 5;
        for (int n = 0; n < 64; n++)
            means[n] = test_random_normal(&random);
        capture *const c = take_changed(s, kind, number, HEAD_MEAN, means);
        float *const values = copy_values(s);
        cut_head(s, values, &attention_of(s, kind, 1)->o, 1, means + number * 8);
        if (c)
            check_likelihoods(s, c, values);
        free(values);
        capture_free(c);
    }
    subject_free(s);
}

static void uniform_head_has_equal_weights(void)
{
    subject *const s = subject_new(test_seed(13));
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const int number = 6, D = s->config.width / s->config.heads;
        capture *const c = take_changed(s, kind, number, HEAD_UNIFORM, NULL);
        const capture_heads *const h = &c->kind[kind];
        for (int i = 0; i < h->rows; i++) {
            const int seen = kind == ATTENTION_DECODER ? i + 1 : h->columns;
            for (int j = 0; j < h->columns; j++) {
                const double weight = (double)weights_of(h, number)[i * h->columns + j];
                CHECK(fabs(weight - (j < seen ? 1.0 / seen : 0.0)) < 1e-6, "kind %d (%d, %d): %g",
                      kind, i, j, weight);
            }
        }
        /* Without queries all scores are 0. */
        float *const values = copy_values(s);
        const weight_at *const q = &attention_of(s, kind, 1)->q;
        memset(values + q->weight + 2 * D * s->config.width, 0,
               (size_t)(D * s->config.width) * sizeof *values);
        memset(values + q->bias + 2 * D, 0, (size_t)D * sizeof *values);
        check_likelihoods(s, c, values);
        free(values);
        capture_free(c);
    }
    subject_free(s);
}

/* The loss of the pair, in double precision, with the head's columns of W_O times `gate`. */
static double gated_loss(const subject *s, const capture *c, const weight_at *o, int head,
                         float gate)
{
    const int E = s->config.width, D = E / s->config.heads;
    const int words = s->config.words[TRANSFORMER_TARGET];
    float *const values = copy_values(s);
    double logs[(TARGET + 1) * 64], weights[4096], loss = 0;
    for (int n = 0; n < E * D; n++)
        values[o->weight + (size_t)(n / D * E + head * D + n % D)] *= gate;
    const plain_transformer plain = plain_transformer_new(&s->config, values);
    plain_transformer_run(&plain, c->source, c->source_count, c->target, c->target_count, logs,
                          weights);
    for (int n = 0; n < c->target_count; n++)
        loss -= logs[n * words + c->expected[n]];
    free(values);
    return loss;
}

/* No input of a relu is close to 0, so that differences of the loss approximate its derivative. */
static void smoothen(subject *s)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        for (int n = 0; n < s->config.layers[side]; n++)
            for (int k = 0; k < s->config.ff_width; k++)
                s->values[s->map.layers[side][n].ff.in.bias + (size_t)k] = 12.0f;
    remake(s);
}

static void gate_gradients_are_derivatives(void)
{
    subject *const s = subject_new(test_seed(14));
    smoothen(s);
    capture *const c = take(s, &everything);
    network *const net = network_create(&s->config, s->values, MHA_EXACT, NULL);
    head_settings *const heads = head_settings_create(&s->config, 1);
    float *const gradients = malloc(s->map.count * sizeof *gradients);
    int64_t starts[TRANSFORMER_SIDES][2] = {{0}};
    int positions[CORPUS_TOKENS_MAX];
    if (CHECK(c && net && heads && gradients, "no memory")) {
        const batch b = batch_of(c, starts, positions);
        const network_mode mode = {.training = true, .heads = heads};
        network_loss loss;
        CHECK(network_forward(net, &b, &mode, &loss) == MHA_OK, "no forward pass");
        CHECK(network_backward(net, gradients) == MHA_OK, "no backward pass");
        for (int kind = 0; kind < ATTENTION_KINDS; kind++)
            for (int n = 0; n < 8; n++) {
                const weight_at *const o = &attention_of(s, kind, n / 4)->o;
                const float step = 0x1p-11f;
                const double slope = (gated_loss(s, c, o, n % 4, 1.0f + step) -
                                      gated_loss(s, c, o, n % 4, 1.0f - step)) /
                                     (2 * (double)step);
                const double found = (double)heads->d_gates[kind][n] * (TARGET + 1);
                CHECK(fabs(slope - found) < 0.003 * (1 + fabs(slope)),
                      "kind %d, head %d: %g, not %g", kind, n, found, slope);
            }
    }
    free(gradients);
    head_settings_free(heads);
    network_free(net);
    capture_free(c);
    subject_free(s);
}

static void words_that_do_not_fit_are_refused(void)
{
    subject *const s = subject_new(test_seed(15));
    const int longest = translator_longest(s->model);
    int many[CORPUS_TOKENS_MAX];
    for (int n = 0; n < CORPUS_TOKENS_MAX; n++)
        many[n] = WORDS_SPECIAL;
    const int wrong[][1] = {{-1}, {24}, {1 << 30}};
    for (int n = 0; n < 3; n++) {
        CHECK(!capture_create(s->model, wrong[n], 1, many, 1, &everything, NULL), "source");
        CHECK(!capture_create(s->model, many, 1, wrong[n], 1, &everything, NULL), "target");
    }
    CHECK(!capture_create(s->model, many, longest, many, 1, &everything, NULL), "long source");
    CHECK(!capture_create(s->model, many, 1, many, longest, &everything, NULL), "long target");
    capture *const full =
        capture_create(s->model, many, longest - 1, many, longest - 1, &everything, NULL);
    CHECK(full, "the longest is refused");
    capture *const empty = capture_create(s->model, many, 0, many, 0, &everything, NULL);
    CHECK(empty && empty->source_count == 1 && empty->target_count == 1, "the shortest is refused");
    capture_free(full);
    capture_free(empty);
    subject_free(s);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(rows_sum_to_one);
    RUN(shapes_and_words_are_those_of_the_pair);
    RUN(cross_weights_are_the_translators);
    RUN(likelihoods_are_the_networks);
    RUN(weights_follow_from_queries_and_keys);
    RUN(disabled_head_is_a_model_without_it);
    RUN(disabled_head_is_no_slice_of_the_output);
    RUN(mean_moves_to_the_bias);
    RUN(uniform_head_has_equal_weights);
    RUN(gate_gradients_are_derivatives);
    RUN(words_that_do_not_fit_are_refused);
    return test_end();
}
