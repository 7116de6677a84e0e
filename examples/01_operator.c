/* SPDX-License-Identifier: MIT */
/*
 * 1. The operator.
 *
 * Attention is a soft lookup. There are keys, each with a value, and a query. The query is compared
 * with every key, and the answer is a mean of all values in which those with similar keys have the
 * largest weights:
 *
 *      score[j]  = scale * (query . key[j])                similarity
 *      weight[j] = exp(score[j]) / sum of all exp(score)   softmax: positive, sums to 1
 *      answer    = sum of weight[j] * value[j]             mean
 *
 * The rest of the course is about where queries, keys and values come from.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>

/* ---- one query, four keys ---- */

enum { KEYS = 4, WIDTH = 2 };

static const float query[WIDTH] = {0.6f, 0.8f};
static const float keys[KEYS][WIDTH] = {{1, 0}, {0, 1}, {0.6f, 0.8f}, {-1, 0}};
static const float values[KEYS] = {10, 20, 30, 40};

/* The three formulas above, written out. */
static double by_hand(double scale)
{
    double sum = 0, answer = 0;
    for (int j = 0; j < KEYS; j++) {
        double dot = 0;
        for (int c = 0; c < WIDTH; c++)
            dot += (double)query[c] * (double)keys[j][c];
        const double weight = exp(scale * dot);
        sum += weight;
        answer += weight * (double)values[j];
    }
    return answer / sum;
}

/* The larger the scale, the sharper the attention: from the mean of all values to the best one
 * alone. The default scale is 1/sqrt(WIDTH): scores then have the same size at any width. */
static int look_up(float scale)
{
    /* One batch, one head, one query row (L), four keys (S); the width of the values is 1. */
    const mha_shape shape = {.B = 1, .H = 1, .L = 1, .S = KEYS, .D = WIDTH, .Dv = 1};
    float answer = 0, weights[KEYS];
    const mha_options options = {
        .size = sizeof options, .scale = scale, .weights = mha_out_bhld(weights, 1, 1, KEYS)};
    const mha_status status = mha_attention(
        &shape, mha_view_bhld(query, 1, 1, WIDTH), mha_view_bhld(keys, 1, KEYS, WIDTH),
        mha_view_bhld(values, 1, KEYS, 1), mha_out_bhld(&answer, 1, 1, 1), &options, NULL);
    if (status != MHA_OK) {
        fprintf(stderr, "%s\n", mha_status_string(status));
        return 0;
    }
    printf("scale %5.2f: weights", (double)scale);
    for (int j = 0; j < KEYS; j++)
        printf(" %.3f", (double)weights[j]);
    printf("  answer %.3f, by hand %.3f\n", (double)answer, by_hand((double)scale));
    return fabs((double)answer - by_hand((double)scale)) < 1e-4;
}

/* ---- many heads at once ---- */

/*
 * One call does this for every head, each with its own queries, keys and values. Here keys are on a
 * circle, one step per word, and head h looks for the word h steps back. The weights are returned
 * for the requested heads and rows: they show what a head attends to.
 */
enum { H = 4, L = 6, D = 4, HEADS = 2, ROWS = 2 };

static const char *const words[L] = {"the", "cat", "sat", "on", "the", "mat"};
static float q[H][L][D], k[H][L][D], o[H][L][D], lse[H][L];

static void fill(void)
{
    for (int h = 0; h < H; h++)
        for (int i = 0; i < L; i++) {
            const float key = 0.9f * (float)i, question = 0.9f * (float)(i - h);
            q[h][i][0] = 6 * cosf(question);
            q[h][i][1] = 6 * sinf(question);
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

static int look_back(void)
{
    fill();
    static float weights[HEADS][ROWS][L];
    const int64_t heads[HEADS] = {1, 3}, rows[ROWS] = {3, 5};
    const mha_shape shape = {.B = 1, .H = H, .L = L, .S = L, .D = D};
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_CAUSAL, /* no word attends to later words */
                                 .lse = {lse, H * L, L, 1},
                                 .weights = mha_out_bhld(weights, HEADS, ROWS, L),
                                 .weights_heads = heads,
                                 .weights_head_count = HEADS,
                                 .weights_rows = rows,
                                 .weights_row_count = ROWS};
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(q, H, L, D), mha_view_bhld(k, H, L, D),
                      mha_view_bhld(k, H, L, D), mha_out_bhld(o, H, L, D), &options, NULL);
    if (status != MHA_OK)
        return 0;
    int right = 1;
    for (int h = 0; h < HEADS; h++)
        for (int r = 0; r < ROWS; r++) {
            const int row = (int)rows[r], best = strongest(weights[h][r]);
            printf("head %d, \"%s\" (%d) attends to \"%s\" (%d), weight %.3f, log-sum-exp %.3f\n",
                   (int)heads[h], words[row], row, words[best], best, (double)weights[h][r][best],
                   (double)lse[heads[h]][row]);
            right &= best == row - (int)heads[h];
        }
    return right;
}

int main(void)
{
    int right = 1;
    const float scales[] = {0.01f, 0.7071068f, 4, 64};
    for (int n = 0; n < 4; n++)
        right &= look_up(scales[n]);
    right &= look_back();
    return !right;
}
