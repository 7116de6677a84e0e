/* SPDX-License-Identifier: MIT */
/*
 * 4. Many heads.
 *
 * One head can attend to one kind of thing at a time. So there are several, each with its own small
 * W_Q, W_K and W_V; their answers are put side by side, and W_O mixes them:
 *
 *      head h = attention(X W_Q,h   X W_K,h   X W_V,h)        64 wide each
 *      Y      = [head 0 | head 1 | ... | head 7] W_O          512 wide again
 *
 * The W_Q of all heads are the rows of one matrix: head h has rows 64h to 64h + 63. So one product
 * computes the queries of all heads, and "splitting into heads" moves no data: it is only indexing.
 *
 * The sizes are those of the first Transformer: width 512, 8 heads; a batch of 2 sentences of 10
 * words.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

enum { B = 2, L = 10, E = 512, H = 8, D = E / H };

static float x[B][L][E], y[B][L][E], again[B][L][E];
static float weights[B][H][L][L], average[B][L][L];

/* PyTorch's nn.MultiheadAttention stores W_Q, W_K and W_V one below the other in in_proj_weight. */
static float in_proj_weight[3 * E][E], in_proj_bias[3 * E];
static float out_proj_weight[E][E], out_proj_bias[E];

static void fill(void)
{
    const float size = sqrtf(3.0f / E); /* so that Q, K and V are about as large as X */
    numbers(&x[0][0][0], B * L * E, 1, 1.7f);
    numbers(&in_proj_weight[0][0], (size_t)3 * E * E, 2, 2 * size);
    numbers(in_proj_bias, (size_t)3 * E, 3, 0.1f);
    numbers(&out_proj_weight[0][0], (size_t)E * E, 4, size);
    numbers(out_proj_bias, E, 5, 0.1f);
}

static mha_status make(mha_layer **layer)
{
    const mha_matrix fused = mha_matrix_out_in(in_proj_weight, MHA_F32, E);
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = H};
    const mha_layer_weights parts = {.size = sizeof parts,
                                     .q = fused,
                                     .k = mha_matrix_from(fused, E),
                                     .v = mha_matrix_from(fused, (ptrdiff_t)2 * E),
                                     .o = mha_matrix_out_in(out_proj_weight, MHA_F32, E),
                                     .q_bias = {in_proj_bias, MHA_F32},
                                     .k_bias = {in_proj_bias + E, MHA_F32},
                                     .v_bias = {in_proj_bias + 2 * E, MHA_F32},
                                     .o_bias = {out_proj_bias, MHA_F32}};
    return mha_layer_create(layer, &config, &parts);
}

static mha_status run(const mha_layer *layer, const mha_options *options, void *output)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = B,
                                 .L = L,
                                 .query = mha_view_ble(x, L, E),
                                 .output = mha_out_ble(output, L, E),
                                 .options = options};
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}

/* Weights of every head, or their mean over the heads, which PyTorch returns by default. */
static mha_status run_both(const mha_layer *layer)
{
    const mha_options all = {.size = sizeof all, .weights = mha_out_bhld(weights, H, L, L)};
    const mha_options mean = {.size = sizeof mean,
                              .flags = MHA_AVERAGE_WEIGHTS,
                              .weights = {average, (ptrdiff_t)L * L, 0, L}};
    const mha_status status = run(layer, &all, y);
    return status == MHA_OK ? run(layer, &mean, again) : status;
}

/* ---- checks ---- */

static int rows_sum_to_1(void)
{
    double worst = 0;
    for (int row = 0; row < B * H * L; row++) {
        double sum = 0;
        for (int j = 0; j < L; j++)
            sum += (double)(&weights[0][0][0][0])[row * L + j];
        worst = fabs(sum - 1) > worst ? fabs(sum - 1) : worst;
    }
    printf("%d rows of weights sum to 1, up to %.0e\n", B * H * L, worst);
    return worst < 1e-5;
}

/* Requesting weights does not change a bit of the output. */
static int mean_is_mean(void)
{
    double worst = 0;
    for (int b = 0; b < B; b++)
        for (int cell = 0; cell < L * L; cell++) {
            double sum = 0;
            for (int h = 0; h < H; h++)
                sum += (double)(&weights[b][h][0][0])[cell];
            const double error = fabs(sum / H - (double)(&average[b][0][0])[cell]);
            worst = error > worst ? error : worst;
        }
    printf("their mean over the heads is what comes back when averages are requested\n");
    return worst < 1e-5 && memcmp(y, again, sizeof y) == 0;
}

/* How much of its weight head h gives to other words than head 0 does, in the first sentence. */
static int heads_differ(void)
{
    int right = 1;
    for (int h = 1; h < H; h++) {
        double apart = 0;
        for (int cell = 0; cell < L * L; cell++)
            apart += fabs((double)((&weights[0][h][0][0])[cell] - (&weights[0][0][0][0])[cell]));
        printf("head %d puts %.0f %% of its weight elsewhere than head 0\n", h, 50 * apart / L);
        right &= apart / L > 0.02;
    }
    return right;
}

int main(void)
{
    const mha_preset_info *preset = mha_preset("transformer-base");
    int right = preset && preset->E == E && preset->H == H && preset->D == D;
    fill();
    mha_layer *layer = NULL;
    mha_status status = make(&layer);
    if (status == MHA_OK)
        status = run_both(layer);
    if (status != MHA_OK) {
        fprintf(stderr, "%s\n", mha_status_string(status));
        return 1;
    }
    printf("layer   E %d, %d heads of %d; %zu bytes of packed weights\n", E, H, D,
           mha_layer_bytes(layer));
    printf("input   (%d, %d, %d)\n", B, L, E);
    printf("output  (%d, %d, %d)\n", B, L, E);
    printf("weights (%d, %d, %d, %d)\n", B, H, L, L);
    mha_layer_free(layer);
    right &= rows_sum_to_1() & mean_is_mean() & heads_differ();
    return !right;
}
