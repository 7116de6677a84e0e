/* SPDX-License-Identifier: MIT */
#include <mha/mha.h>
#include <stdio.h>

int main(void)
{
    enum { H = 2, L = 3, D = 4 }; /* heads, tokens, width of a head */
    static float x[H * L * D] = {1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 9, 0}, y[H * L * D];
    const mha_shape shape = {.B = 1, .H = H, .L = L, .S = L, .D = D};
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    const mha_view in = mha_view_bhld(x, H, L, D);
    const mha_status status =
        mha_attention(&shape, in, in, in, mha_out_bhld(y, H, L, D), &options, NULL);
    printf("%s; head 0, token 1: %g %g\n", mha_status_string(status), y[4], y[5]);
    return status != MHA_OK || y[0] != x[0]; /* token 0 sees only itself */
}
