/* SPDX-License-Identifier: MIT */
#include <mha/mha.h>
#include <stdio.h>

int main(void)
{
    enum { H = 2, L = 3, D = 2 }; /* heads, tokens, head width */
    static const float x[H][L][D] = {{{1, 2}, {4, 3}, {0, 9}}, {{5, 0}, {1, 1}, {2, 7}}};
    static float y[H][L][D];
    const mha_shape shape = {.B = 1, .H = H, .L = L, .S = L, .D = D};
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    const mha_view in = mha_view_bhld(x, H, L, D);
    const mha_status status =
        mha_attention(&shape, in, in, in, mha_out_bhld(y, H, L, D), &options, NULL);
    printf("%s; head 0, token 1: %g %g\n", mha_status_string(status), y[0][1][0], y[0][1][1]);
    return status != MHA_OK || y[0][0][0] != x[0][0][0]; /* token 0 attends to itself only */
}
