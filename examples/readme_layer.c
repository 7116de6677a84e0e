/* SPDX-License-Identifier: MIT */
#include <mha/mha.h>
#include <stdio.h>

enum { E = 8, H = 2, L = 3 }; /* model width, heads, tokens */

int main(void)
{
    static float zero[E][E], same[E][E], x[L][E], y[L][E];
    for (int n = 0; n < E; n++) {
        same[n][n] = 1;
        for (int i = 0; i < L; i++)
            x[i][n] = (float)(10 * i + n);
    }
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = H};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(zero, MHA_F32, E),
                                       .k = mha_matrix_out_in(zero, MHA_F32, E),
                                       .v = mha_matrix_out_in(same, MHA_F32, E),
                                       .o = mha_matrix_out_in(same, MHA_F32, E)};
    mha_layer *layer = NULL;
    mha_status status = mha_layer_create(&layer, &config, &weights);
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = L,
                                 .query = mha_view_ble(x, L, E),
                                 .output = mha_out_ble(y, L, E)};
    if (status == MHA_OK)
        status = mha_layer_run(layer, &call, NULL, 0, NULL);
    printf("%s; token 0: %g %g ...\n", mha_status_string(status), y[0][0], y[0][1]);
    mha_layer_free(layer);
    return status != MHA_OK || y[0][0] < 9.999f || y[0][0] > 10.001f;
}
