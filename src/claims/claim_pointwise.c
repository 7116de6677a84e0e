/* SPDX-License-Identifier: MIT */
/*
 * Claim 2: one head whose tokens attend to themselves, A = I, computes Y = X W_V W_O + b, which is
 * a 1x1 convolution. Three ways lead to such a head, each through another path of the library: a
 * Gaussian around the token, a mask, and a single token, whose weight is 1 whatever its score.
 */
#include <math.h>

#include "claims/claim_tools.h"

enum { ROWS = 6, COLUMNS = 5, INPUTS = 3, OUTPUTS = 4 };

typedef struct way {
    const char *name;
    conv_code code;
    conv_point picture;
} way;

/* Asserts that each of the three heads is the product, in this type. */
static bool try_ways(proof *p, mha_dtype type)
{
    static const way ways[] = {
        {"Gaussian around itself, alpha = 64", CONV_QUADRATIC, {ROWS, COLUMNS}},
        {"diagonal mask", CONV_HARD, {ROWS, COLUMNS}},
        {"a single token", CONV_ONE_HOT, {1, 1}},
    };
    double picture[ROWS * COLUMNS * INPUTS], weights[INPUTS * OUTPUTS], bias[OUTPUTS];
    rng r = rng_for(p->seed, 20);
    proof_fill(&r, picture, ROWS * COLUMNS * INPUTS);
    proof_fill(&r, weights, INPUTS * OUTPUTS);
    proof_fill(&r, bias, OUTPUTS);
    for (int n = 0; n < 3; n++) {
        const conv_spec spec = {.picture = ways[n].picture,
                                .kernel = {1, 1},
                                .inputs = INPUTS,
                                .outputs = OUTPUTS,
                                .stride = 1,
                                .dilation = 1,
                                .code = ways[n].code,
                                .factoring = CONV_BY_INPUTS,
                                .sharpness = ways[n].code == CONV_ONE_HOT ? 0.0 : 64.0,
                                .type = type,
                                .weights = weights,
                                .bias = bias};
        conv_trial trial;
        if (!proof_convolve(p, &spec, picture, &trial))
            return false;
        proof_at_most(p, trial.error, trial.bound, "%s: %s", type == MHA_F64 ? "f64" : "f32",
                      ways[n].name);
    }
    return true;
}

/* Two tokens: the change of y_0 if x_1 changes by 1. It is 0 for a 1x1 convolution; for a head it
 * depends on the mask. */
static bool reach(proof *p, const uint8_t mask[4], double *change)
{
    static const float x[2][2] = {{3.0f, 5.0f}, {3.0f, 6.0f}};
    float y[2][2];
    const mha_shape shape = {.B = 1, .H = 1, .L = 2, .S = 2, .D = 1};
    const mha_options options = {.size = sizeof options, .attend_mask = {mask, 0, 0, 2}};
    for (int n = 0; n < 2; n++) {
        const mha_view in = mha_view_bhld(x[n], 1, 2, 1);
        if (!proof_ok(
                p, mha_attention(&shape, in, in, in, mha_out_bhld(y[n], 1, 2, 1), &options, NULL)))
            return false;
    }
    *change = (double)y[1][0] - (double)y[0][0];
    return true;
}

void prove_pointwise(proof *p)
{
    static const uint8_t self[4] = {1, 0, 0, 1}, swap[4] = {0, 1, 1, 0};
    double still, moved;
    proof_say(p, "One head with A = I computes Y = X W_V W_O + b, a 1x1 convolution. Largest");
    proof_say(p, "difference, %d x %d pixels, %d -> %d channels:", ROWS, COLUMNS, INPUTS, OUTPUTS);
    if (!try_ways(p, MHA_F64) || !try_ways(p, MHA_F32) || !reach(p, self, &still) ||
        !reach(p, swap, &moved))
        return;
    proof_say(p, "Not every head is one: a head that swaps two tokens is not a 1x1 convolution.");
    proof_say(p, "Change of y_0 if x_1 changes by 1:");
    proof_at_most(p, fabs(still), 0.0, "A = I");
    proof_at_least(p, moved, 1.0, "A = swap");
}
