/* SPDX-License-Identifier: MIT */
/* Sampling follows its distribution: temperature, limits, penalties; broken logits are not drawn.
 */
#include <math.h>
#include <string.h>

#include "model/sample.h"
#include "support/test.h"

enum { SMALL = 6, DRAWS = 4000 };

static const float small_logits[SMALL] = {1.0f, 3.0f, -1.0f, 2.0f, 3.0f, 0.0f};

/* How often each token is drawn, for evenly spaced random numbers. */
static void count_draws(const mha_sampling *sampling, const int32_t *history,
                        ptrdiff_t history_count, const int32_t *forbidden,
                        ptrdiff_t forbidden_count, double *shares)
{
    float scores[SMALL];
    int32_t ordered[SMALL];
    memset(shares, 0, SMALL * sizeof *shares);
    for (int n = 0; n < DRAWS; n++) {
        const sample_request request = {.sampling = sampling,
                                        .logits = small_logits,
                                        .words = SMALL,
                                        .history = history,
                                        .history_count = history_count,
                                        .forbidden = forbidden,
                                        .forbidden_count = forbidden_count,
                                        .draw = (n + 0.5) / DRAWS,
                                        .scores = scores,
                                        .ordered = ordered};
        const int32_t id = sample_token(&request);
        if (CHECK(id >= 0 && id < SMALL, "token %d", (int)id))
            shares[id] += 1.0 / DRAWS;
    }
}

/* The shares of the tokens in `kept`, with these logits. */
static void check_shares(const double *shares, const float *logits, const bool *kept, double heat,
                         const char *what)
{
    double sum = 0;
    for (int n = 0; n < SMALL; n++)
        sum += kept[n] ? exp(logits[n] / heat) : 0;
    for (int n = 0; n < SMALL; n++) {
        const double expected = kept[n] ? exp(logits[n] / heat) / sum : 0;
        CHECK(fabs(shares[n] - expected) < 2e-3, "%s: token %d has %g, not %g", what, n, shares[n],
              expected);
    }
}

static void draws_follow_the_distribution(void)
{
    static const bool all[SMALL] = {1, 1, 1, 1, 1, 1}, three[SMALL] = {0, 1, 0, 1, 1, 0},
                      two[SMALL] = {0, 1, 0, 0, 1, 0}, allowed[SMALL] = {1, 0, 1, 1, 1, 1};
    static const int32_t forbidden = 1;
    double shares[SMALL];
    count_draws(&(mha_sampling){.temperature = 0.7f}, NULL, 0, NULL, 0, shares);
    check_shares(shares, small_logits, all, 0.7, "temperature");
    count_draws(&(mha_sampling){.temperature = 1, .top_k = 3}, NULL, 0, NULL, 0, shares);
    check_shares(shares, small_logits, three, 1, "top_k");
    count_draws(&(mha_sampling){.temperature = 1, .top_p = 0.75f}, NULL, 0, NULL, 0, shares);
    check_shares(shares, small_logits, two, 1, "top_p");
    count_draws(&(mha_sampling){.temperature = 1, .min_p = 0.3f}, NULL, 0, NULL, 0, shares);
    check_shares(shares, small_logits, three, 1, "min_p");
    count_draws(&(mha_sampling){.temperature = 1, .top_k = 3, .top_p = 0.8f}, NULL, 0, NULL, 0,
                shares);
    check_shares(shares, small_logits, two, 1, "top_k and top_p");
    count_draws(&(mha_sampling){.temperature = 1}, NULL, 0, &forbidden, 1, shares);
    check_shares(shares, small_logits, allowed, 1, "forbidden");
    count_draws(&(mha_sampling){0}, NULL, 0, NULL, 0, shares);
    CHECK(shares[1] > 0.999, "greedy takes the first of the largest");
}

static void repeated_tokens_are_penalised(void)
{
    static const bool all[SMALL] = {1, 1, 1, 1, 1, 1};
    static const int32_t history[] = {3, 1, 2, 2, 5};
    float logits[SMALL];
    double shares[SMALL];
    memcpy(logits, small_logits, sizeof logits);
    logits[3] /= 2;
    logits[1] /= 2;
    logits[2] *= 2;
    count_draws(&(mha_sampling){.temperature = 1, .repetition_penalty = 2}, history, 5, NULL, 0,
                shares);
    check_shares(shares, logits, all, 1, "all tokens");
    logits[3] = small_logits[3];
    logits[1] = small_logits[1];
    count_draws(&(mha_sampling){.temperature = 1, .repetition_penalty = 2, .repetition_last = 3},
                history, 5, NULL, 0, shares);
    check_shares(shares, logits, all, 1, "the last three");
}

/* Logits that are not numbers never give a token that does not exist, and are never drawn. */
static void broken_logits_are_not_drawn(void)
{
    static const mha_sampling samplings[] = {{.temperature = 0},
                                             {.temperature = 1},
                                             {.temperature = 1, .top_p = 0.5f},
                                             {.temperature = 1, .top_p = 1e-9f},
                                             {.temperature = 1, .top_k = 2, .top_p = 0.9f},
                                             {.temperature = 1e-45f, .min_p = 1}};
    const float logits[] = {NAN, 1.0f, NAN, 0.5f, -INFINITY, NAN};
    float scores[SMALL];
    int32_t ordered[SMALL];
    for (size_t n = 0; n < sizeof samplings / sizeof samplings[0]; n++)
        for (int at = 0; at < 5; at++) {
            const sample_request request = {.sampling = &samplings[n],
                                            .logits = logits,
                                            .words = SMALL,
                                            .draw = at / 5.0,
                                            .scores = scores,
                                            .ordered = ordered};
            const int32_t id = sample_token(&request);
            CHECK(id == 1 || id == 3, "sampling %zu: token %d", n, (int)id);
        }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(draws_follow_the_distribution);
    RUN(repeated_tokens_are_penalised);
    RUN(broken_logits_are_not_drawn);
    return test_end();
}
