/* SPDX-License-Identifier: MIT */
/* Uses the installed library as a C program would: header, linking, one call of the operator. */
#include <mha/mha.h>
#include <stdio.h>

int main(void)
{
    static const float q[2] = {1, 2};
    static const float k[2][2] = {{1, 0}, {0, 1}};
    static const float v[2][2] = {{3, 3}, {3, 3}};
    float o[2] = {0, 0};
    const mha_shape shape = {.B = 1, .H = 1, .L = 1, .S = 2, .D = 2};
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(q, 1, 1, 2), mha_view_bhld(k, 1, 2, 2),
                      mha_view_bhld(v, 1, 2, 2), mha_out_bhld(o, 1, 1, 2), NULL, NULL);
    printf("libmha %s: %s, %g %g\n", mha_version_string(), mha_status_string(status), o[0], o[1]);
    const int expected = MHA_VERSION_MAJOR * 1000000 + MHA_VERSION_MINOR * 1000 + MHA_VERSION_PATCH;
    return !(status == MHA_OK && o[0] > 2.999f && o[0] < 3.001f && mha_version() == expected);
}
