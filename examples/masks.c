/* SPDX-License-Identifier: MIT */
/* Three masks in one call: causal, padding (key lengths) and boolean. All of them apply. */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>

enum { B = 2, H = 1, L = 5, D = 8 };

static float q[B][L][D], k[B][L][D], v[B][L][D], o[B][L][D];
static float weights[B][L][L];

/* Value j is j in every column, so that an output shows which keys it is a mean of. */
static void fill(void)
{
    for (int b = 0; b < B; b++)
        for (int i = 0; i < L; i++)
            for (int c = 0; c < D; c++) {
                q[b][i][c] = sinf((float)(7 * b + 3 * i + c));
                k[b][i][c] = cosf((float)(5 * b + 2 * i + c));
                v[b][i][c] = (float)i;
            }
}

/* The rule of the three masks, said once more without the library. */
static int visible(int b, int i, int j, const int64_t *lengths)
{
    return j <= i && j < lengths[b] && j != 1;
}

int main(void)
{
    fill();
    /* The second sentence is three tokens long; whatever stands behind them is never read. */
    const int64_t lengths[B] = {L, 3};
    k[1][4][0] = NAN;
    v[1][3][0] = INFINITY;
    /* Nobody may look at token 1. One row for all batches, heads and queries: strides 0. */
    const unsigned char ignore[L] = {0, 1, 0, 0, 0};

    const mha_shape shape = {.B = B, .H = H, .L = L, .S = L, .D = D};
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_CAUSAL,
                                 .position = MHA_POSITION_TOP_LEFT,
                                 .k_lengths = lengths,
                                 .ignore_mask = {ignore, 0, 0, 0},
                                 .weights = mha_out_bhld(weights, H, L, L)};
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(q, H, L, D), mha_view_bhld(k, H, L, D),
                      mha_view_bhld(v, H, L, D), mha_out_bhld(o, H, L, D), &options, NULL);
    if (status != MHA_OK) {
        fprintf(stderr, "%s\n", mha_status_string(status));
        return 1;
    }

    int wrong = 0;
    for (int b = 0; b < B; b++) {
        printf("sentence %d, %d tokens\n", b, (int)lengths[b]);
        for (int i = 0; i < L; i++) {
            for (int j = 0; j < L; j++) {
                printf(" %5.3f", weights[b][i][j]);
                wrong += (weights[b][i][j] > 0) != visible(b, i, j, lengths);
            }
            printf("   -> %.3f\n", o[b][i][0]);
            wrong += !isfinite(o[b][i][0]);
        }
    }
    printf("%d weights disagree with the rule\n", wrong);
    return wrong > 0;
}
