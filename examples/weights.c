/* SPDX-License-Identifier: MIT */
/* What did each head look at? The weights of chosen heads and rows, beside the usual output. */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>

enum { H = 4, L = 6, D = 4, HEADS = 2, ROWS = 2 };

static const char *const words[L] = {"the", "cat", "sat", "on", "the", "mat"};
static float q[H][L][D], k[H][L][D], o[H][L][D], lse[H][L];
static float weights[HEADS][ROWS][L];

/* Head h asks for the word h positions back. */
static void fill(void)
{
    for (int h = 0; h < H; h++)
        for (int i = 0; i < L; i++) {
            const float key = 0.9f * (float)i, query = 0.9f * (float)(i - h);
            q[h][i][0] = 6 * cosf(query);
            q[h][i][1] = 6 * sinf(query);
            k[h][i][0] = cosf(key);
            k[h][i][1] = sinf(key);
        }
}

static int strongest(const float *row)
{
    int best = 0;
    for (int j = 1; j < L; j++)
        best = row[j] > row[best] ? j : best;
    return best;
}

int main(void)
{
    fill();
    const int64_t heads[HEADS] = {1, 3};
    const int64_t rows[ROWS] = {3, 5};
    const mha_shape shape = {.B = 1, .H = H, .L = L, .S = L, .D = D};
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_CAUSAL,
                                 .lse = {lse, H * L, L, 1},
                                 .weights = mha_out_bhld(weights, HEADS, ROWS, L),
                                 .weights_heads = heads,
                                 .weights_head_count = HEADS,
                                 .weights_rows = rows,
                                 .weights_row_count = ROWS};
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(q, H, L, D), mha_view_bhld(k, H, L, D),
                      mha_view_bhld(k, H, L, D), mha_out_bhld(o, H, L, D), &options, NULL);
    if (status != MHA_OK) {
        fprintf(stderr, "%s\n", mha_status_string(status));
        return 1;
    }

    int wrong = 0;
    for (int h = 0; h < HEADS; h++)
        for (int r = 0; r < ROWS; r++) {
            const int row = (int)rows[r], best = strongest(weights[h][r]);
            printf("head %d, \"%s\" (%d) looks at \"%s\" (%d), weight %.3f, log-sum-exp %.3f\n",
                   (int)heads[h], words[row], row, words[best], best, weights[h][r][best],
                   lse[heads[h]][row]);
            wrong += best != row - (int)heads[h];
        }
    return wrong > 0;
}
