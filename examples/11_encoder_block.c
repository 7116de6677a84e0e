/* SPDX-License-Identifier: MIT */
/*
 * 11. A transformer block.
 *
 * Attention mixes words; the feed-forward works on each word alone. An encoder such as BERT is a
 * stack of blocks, each with both, a residual sum around each, and a norm after each sum:
 *
 *      x ---+--- layer ---- + ---- norm --- a ---+--- feed-forward ---- + ---- norm ---> y
 *           |               |                    |                      |
 *           +---------------+                    +----------------------+
 *
 * The sums cost nothing extra: mha_norm_run() and mha_feed_forward_run() add a residual to numbers
 * that are in the cache anyway.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>

#include "numbers.h"

enum { E = 64, H = 4, INNER = 256, WORDS = 9 };

static float attention_weights[4][E][E], up[INNER][E], down[E][INNER], up_bias[INNER];
static float norm_weight[E], norm_bias[E];
static float x[WORDS][E], a[WORDS][E], y[WORDS][E];

static mha_status make_layer(mha_layer **layer)
{
    numbers(&attention_weights[0][0][0], (size_t)4 * E * E, 1, sqrtf(3.0f / E));
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = H};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(attention_weights[0], MHA_F32, E),
                                       .k = mha_matrix_out_in(attention_weights[1], MHA_F32, E),
                                       .v = mha_matrix_out_in(attention_weights[2], MHA_F32, E),
                                       .o = mha_matrix_out_in(attention_weights[3], MHA_F32, E)};
    return mha_layer_create(layer, &config, &weights);
}

static mha_status make_feed_forward(mha_feed_forward **feed_forward)
{
    numbers(&up[0][0], (size_t)INNER * E, 2, sqrtf(3.0f / E));
    numbers(&down[0][0], (size_t)E * INNER, 3, sqrtf(3.0f / INNER));
    numbers(up_bias, INNER, 4, 0.1f);
    const mha_feed_forward_config config = {.size = sizeof config,
                                            .inputs = E,
                                            .inner = INNER,
                                            .activation = MHA_ACTIVATION_GELU,
                                            .up = mha_matrix_out_in(up, MHA_F32, E),
                                            .down = mha_matrix_out_in(down, MHA_F32, INNER),
                                            .up_bias = {up_bias, MHA_F32}};
    return mha_feed_forward_create(feed_forward, &config);
}

static mha_status block(const mha_layer *layer, const mha_feed_forward *feed_forward)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = WORDS,
                                 .query = mha_view_ble(x, WORDS, E),
                                 .output = mha_out_ble(a, WORDS, E)};
    const mha_norm_config norm = {.size = sizeof norm,
                                  .kind = MHA_NORM_LAYER,
                                  .width = E,
                                  .weight = norm_weight,
                                  .bias = norm_bias};
    mha_norm_config norm_of_sum = norm;
    norm_of_sum.residual = &x[0][0];
    norm_of_sum.residual_stride = E;

    mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
    if (status == MHA_OK) /* a = norm(a + x) */
        status = mha_norm_run(&norm_of_sum, WORDS, a[0], E, a[0], E, NULL);
    if (status == MHA_OK) /* y = feed_forward(a) + a */
        status =
            mha_feed_forward_run(feed_forward, WORDS, a[0], E, a[0], E, y[0], E, NULL, 0, NULL);
    if (status == MHA_OK)
        status = mha_norm_run(&norm, WORDS, y[0], E, y[0], E, NULL);
    return status;
}

/* After the norm every word has mean 0 and variance 1, up to the weights and biases. */
static int normalised(void)
{
    int right = 1;
    for (int i = 0; i < WORDS; i++) {
        double sum = 0, squares = 0;
        for (int c = 0; c < E; c++) {
            sum += (double)y[i][c];
            squares += (double)y[i][c] * (double)y[i][c];
        }
        right &= fabs(sum / E) < 1e-5 && fabs(squares / E - 1) < 1e-3;
    }
    return right;
}

int main(void)
{
    mha_layer *layer = NULL;
    mha_feed_forward *feed_forward = NULL;
    numbers(&x[0][0], (size_t)WORDS * E, 5, 1.7f);
    for (int c = 0; c < E; c++)
        norm_weight[c] = 1;

    mha_status status = make_layer(&layer);
    if (status == MHA_OK)
        status = make_feed_forward(&feed_forward);
    if (status == MHA_OK)
        status = block(layer, feed_forward);
    printf("%s; %d words of width %d through attention (%zu bytes of weights) and a feed-forward "
           "of inner width %d (%zu bytes)\n",
           mha_status_string(status), WORDS, E, mha_layer_bytes(layer), INNER,
           mha_feed_forward_bytes(feed_forward));
    const int right = status == MHA_OK && normalised();
    printf("word 0: %.4f %.4f %.4f ...; every word has mean 0 and variance 1: %s\n", y[0][0],
           y[0][1], y[0][2], right ? "yes" : "no");
    mha_layer_free(layer);
    mha_feed_forward_free(feed_forward);
    return !right;
}
