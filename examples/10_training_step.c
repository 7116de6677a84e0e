/* SPDX-License-Identifier: MIT */
/*
 * 10. A layer that learns.
 *
 * In step 9 the gradient of one small matrix was completed by hand. A layer does all of that: one
 * forward call that fills a tape, one backward call that gives the gradient of every weight.
 *
 * The task: a sentence of 8 words, each of 7 random numbers and a mark. One word is marked, and
 * every word should output the numbers of the marked one.
 *
 *      x = [ n1 n2 n3 n4 n5 n6 n7 | mark ]        mark = 1 for one word of the sentence, else 0
 *      wanted: the n1 ... n7 of the word with the mark, at every place
 *
 * The heads must learn by themselves that keys have to show the mark, queries to look for it, and
 * values to carry the numbers. Each step generates 32 new sentences and has five parts:
 *
 *      forward     mha_layer_run() with a tape
 *      loss        1/2 * mean of (y - wanted)^2, and by hand its gradient d_y
 *      backward    mha_layer_backward(): the gradients of W_Q, W_K, W_V, W_O and their biases
 *      downhill    weights = weights - rate * gradients, with some of the last step's direction
 *      update      mha_layer_update(): the layer gets the new weights
 */
#include <mha/mha.h>
#include <stdio.h>
#include <stdlib.h>

#include "numbers.h"

enum { B = 32, L = 8, E = 8, H = 2, STEPS = 600 };

static const float rate = 0.5f, momentum = 0.9f;

/* All learned parameters in one block, and their gradients in another of the same layout. */
typedef struct parameters {
    float q[E][E], k[E][E], v[E][E], o[E][E];
    float q_bias[E], k_bias[E], v_bias[E], o_bias[E];
} parameters;

enum { COUNT = sizeof(parameters) / sizeof(float) };

static parameters learned, gradient, velocity;
static float x[B][L][E], y[B][L][E], d_y[B][L][E], weights[B][H][L][L];
static int marked[B];

static void stop_on(mha_status status)
{
    if (status == MHA_OK)
        return;
    fprintf(stderr, "%s\n", mha_status_string(status));
    exit(1);
}

static mha_layer_weights weights_of(const parameters *p)
{
    const mha_layer_weights w = {.size = sizeof w,
                                 .q = mha_matrix_out_in(p->q, MHA_F32, E),
                                 .k = mha_matrix_out_in(p->k, MHA_F32, E),
                                 .v = mha_matrix_out_in(p->v, MHA_F32, E),
                                 .o = mha_matrix_out_in(p->o, MHA_F32, E),
                                 .q_bias = {p->q_bias, MHA_F32},
                                 .k_bias = {p->k_bias, MHA_F32},
                                 .v_bias = {p->v_bias, MHA_F32},
                                 .o_bias = {p->o_bias, MHA_F32}};
    return w;
}

/* New sentences, each with a mark somewhere. */
static void write_sentences(uint32_t seed)
{
    numbers(&x[0][0][0], B * L * E, seed, 1.0f);
    for (int b = 0; b < B; b++) {
        marked[b] = (int)(seed * 7 + (uint32_t)b * 5) % L;
        for (int i = 0; i < L; i++)
            x[b][i][E - 1] = i == marked[b] ? 1.0f : 0.0f;
    }
}

/* The loss, and its gradient with respect to y. */
static double loss_and_gradient(void)
{
    double loss = 0;
    for (int b = 0; b < B; b++)
        for (int i = 0; i < L; i++)
            for (int c = 0; c < E; c++) {
                const float wanted = c < E - 1 ? x[b][marked[b]][c] : 0.0f;
                const float error = y[b][i][c] - wanted;
                loss += 0.5 * (double)(error * error) / (B * L);
                d_y[b][i][c] = error / (B * L);
            }
    return loss;
}

/* d_x is not learned, so it is not requested. */
static void backward(const mha_layer *layer, const mha_layer_call *call)
{
    parameters *const g = &gradient;
    const mha_layer_gradients wanted = {.size = sizeof wanted,
                                        .d_output = mha_view_ble(d_y, L, E),
                                        .q = {&g->q[0][0], E, 1},
                                        .k = {&g->k[0][0], E, 1},
                                        .v = {&g->v[0][0], E, 1},
                                        .o = {&g->o[0][0], E, 1},
                                        .q_bias = g->q_bias,
                                        .k_bias = g->k_bias,
                                        .v_bias = g->v_bias,
                                        .o_bias = g->o_bias};
    stop_on(mha_layer_backward(layer, call, &wanted, NULL, 0, NULL));
}

static void go_downhill(void)
{
    float *const w = &learned.q[0][0], *const g = &gradient.q[0][0], *const v = &velocity.q[0][0];
    for (int n = 0; n < COUNT; n++) {
        v[n] = momentum * v[n] + g[n];
        w[n] -= rate * v[n];
    }
}

/* The mean weight of the marked word over heads and places. */
static double attention_to_mark(void)
{
    double sum = 0;
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < L; i++)
                sum += (double)weights[b][h][i][marked[b]] / (B * H * L);
    return sum;
}

int main(void)
{
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = H};
    const mha_options options = {.size = sizeof options, .weights = mha_out_bhld(weights, H, L, L)};
    mha_layer_call call = {.size = sizeof call,
                           .B = B,
                           .L = L,
                           .query = mha_view_ble(x, L, E),
                           .output = mha_out_ble(y, L, E),
                           .options = &options};
    mha_layer *layer = NULL;
    numbers(&learned.q[0][0], COUNT, 1, 0.5f);
    const mha_layer_weights first = weights_of(&learned);
    stop_on(mha_layer_create(&layer, &config, &first));

    /* The tape is one block for all steps: its size depends on the extents only. */
    call.tape_size = mha_layer_tape_size(layer, &call);
    call.tape = aligned_alloc(64, (call.tape_size + 63) / 64 * 64);

    double before = 0, loss = 0;
    for (int step = 0; step <= STEPS; step++) {
        write_sentences(1000 + (uint32_t)step);
        stop_on(mha_layer_run(layer, &call, NULL, 0, NULL));
        loss = loss_and_gradient();
        if (step == 0)
            before = loss;
        if (step % (STEPS / 6) == 0)
            printf("step %3d: loss %.5f, attention to the marked word %.3f\n", step, loss,
                   attention_to_mark());
        backward(layer, &call);
        go_downhill();
        const mha_layer_weights now = weights_of(&learned);
        stop_on(mha_layer_update(layer, &now));
    }
    printf("the loss fell to %.2g of its first value\n", loss / before);
    const int wrong = loss > 0.01 * before || attention_to_mark() < 0.95;
    mha_layer_free(layer);
    free(call.tape);
    return wrong;
}
