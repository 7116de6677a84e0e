/* SPDX-License-Identifier: MIT */
/*
 * 3. One head with weights.
 *
 * Three matrices turn each word's vector x into a query, a key and a value; a fourth turns the
 * answer into a vector of the model again:
 *
 *      q = W_Q x        k = W_K x        v = W_V x        y = W_O (mean of v)
 *
 * Training would find the matrices. Here they are written by hand, to do something that attention
 * without weights cannot do: every word attends to the previous word, never to itself.
 *
 *      x = [ cos a   sin a   word   0 ]        a = 0.5 * position: a point on a circle
 *
 *      W_K  takes the point as it is
 *      W_Q  takes the point rotated back by one position, times a large number: sharp
 *      W_V  takes the number of the word
 *      W_O  puts it into the last place, which is empty
 *
 * So y = [ 0  0  0  previous word ], and x + y contains both words.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>

enum { L = 6, E = 4, D = 2, Dv = 1 };

static const char *const words[L] = {"the", "cat", "sat", "on", "the", "mat"};
static float x[L][E], y[L][E], weights[L][L];

/* Row n of a matrix makes element n of the result: [outputs, inputs], as PyTorch stores them. */
static float w_q[D][E];
static const float w_k[D][E] = {{1, 0, 0, 0}, {0, 1, 0, 0}};
static const float w_v[Dv][E] = {{0, 0, 1, 0}};
static const float w_o[E][Dv] = {{0}, {0}, {0}, {1}};

static void fill(void)
{
    const float step = 0.5f, sharp = 120.0f;
    for (int i = 0; i < L; i++) {
        x[i][0] = cosf(step * (float)i);
        x[i][1] = sinf(step * (float)i);
        x[i][2] = (float)(i + 1);
    }
    /* cos(a - step) and sin(a - step) from cos a and sin a. */
    w_q[0][0] = sharp * cosf(step);
    w_q[0][1] = sharp * sinf(step);
    w_q[1][0] = sharp * -sinf(step);
    w_q[1][1] = sharp * cosf(step);
}

/* The layer packs the weights once; after this call our own copies are no longer needed. */
static mha_status make(mha_layer **layer)
{
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = 1, .D = D, .Dv = Dv};
    const mha_layer_weights matrices = {.size = sizeof matrices,
                                        .q = mha_matrix_out_in(w_q, MHA_F32, E),
                                        .k = mha_matrix_out_in(w_k, MHA_F32, E),
                                        .v = mha_matrix_out_in(w_v, MHA_F32, E),
                                        .o = mha_matrix_out_in(w_o, MHA_F32, Dv)};
    return mha_layer_create(layer, &config, &matrices);
}

static mha_status run(const mha_layer *layer)
{
    const mha_options options = {.size = sizeof options, .weights = mha_out_bhld(weights, 1, L, L)};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = L,
                                 .query = mha_view_ble(x, L, E), /* keys and values: the same */
                                 .output = mha_out_ble(y, L, E),
                                 .options = &options};
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}

/* ---- the same, without the library ---- */

static double project(const float *row, const float *vector)
{
    double sum = 0;
    for (int c = 0; c < E; c++)
        sum += (double)row[c] * (double)vector[c];
    return sum;
}

/* The expected last element of row i: the mean over all j of v[j], weighted by q[i].k[j]. */
static double by_hand(int i)
{
    double sum = 0, mean = 0, score[L], largest = -INFINITY;
    for (int j = 0; j < L; j++) {
        score[j] = 0;
        for (int c = 0; c < D; c++)
            score[j] += project(w_q[c], x[i]) * project(w_k[c], x[j]) / sqrt(D);
        largest = score[j] > largest ? score[j] : largest;
    }
    for (int j = 0; j < L; j++) {
        const double weight = exp(score[j] - largest);
        sum += weight;
        mean += weight * project(w_v[0], x[j]);
    }
    return mean / sum;
}

int main(void)
{
    fill();
    mha_layer *layer = NULL;
    mha_status status = make(&layer);
    if (status == MHA_OK)
        status = run(layer);
    mha_layer_free(layer);
    if (status != MHA_OK) {
        fprintf(stderr, "%s\n", mha_status_string(status));
        return 1;
    }

    int wrong = 0;
    for (int i = 0; i < L; i++) {
        /* The first word has no previous word: the nearest point is its own. */
        const int before = i > 0 ? i - 1 : 0;
        printf("\"%s\" attends to \"%s\" with weight %.3f; y = %.3f, by hand %.3f\n", words[i],
               words[before], (double)weights[i][before], (double)y[i][3], by_hand(i));
        wrong += weights[i][before] < 0.99f;
        wrong += fabs((double)y[i][3] - by_hand(i)) > 1e-3;
        wrong += y[i][0] != 0 || y[i][1] != 0 || y[i][2] != 0;
    }
    return wrong > 0;
}
