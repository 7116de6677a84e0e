/* SPDX-License-Identifier: MIT */
/*
 * 9. Gradients: attention that learns.
 *
 * In step 3 a matrix was written by hand that makes every word attend to the previous one. Here
 * gradient descent finds such a matrix. The 12 hours of a clock are points on a circle:
 *
 *      x = [ cos a   sin a ]        a = 30 degrees * hour
 *
 *      q = W x        k = x        v of hour j = [ 0 ... 1 at place j ... 0 ]
 *
 * The values make the output a copy of the weights: o[i][j] is how much hour i attends to hour j.
 * Every hour should attend to the previous hour, and the loss measures how far we are from that:
 *
 *      loss = 1/2 * sum over i, j of (o[i][j] - wanted[i][j])^2
 *
 * W starts at 0, where all hours attend to all hours equally. Each step has three parts:
 *
 *      forward     o from q, and with it the log-sum-exp of every row, which is kept
 *      backward    d_o = o - wanted, by hand; d_q from it, by the library; d_W = d_q x^T, by hand
 *      downhill    W = W - rate * d_W
 *
 * It ends at the matrix one would write by hand: rotate back by 30 degrees, times a large number.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOURS = 12, D = 2, STEPS = 300 };

static const double pi = 3.14159265358979323846;
static const float rate = 20.0f;

static float x[HOURS][D], same[HOURS][HOURS]; /* the points; keys are these; values */
static float w[D][D], q[HOURS][D];
static float o[HOURS][HOURS], lse[HOURS], d_o[HOURS][HOURS], d_q[HOURS][D];

static const mha_shape shape = {
    .B = 1, .H = 1, .L = HOURS, .S = HOURS, .D = D, .Dv = HOURS}; /* all f32 */

/* The backward call gets the options of the forward call, the log-sum-exp among them. */
static const mha_options options = {.size = sizeof options, .lse = {lse, HOURS, HOURS, 1}};

static void stop_on(mha_status status)
{
    if (status == MHA_OK)
        return;
    fprintf(stderr, "%s\n", mha_status_string(status));
    exit(1);
}

static float wanted(int i, int j)
{
    return j == (i + HOURS - 1) % HOURS ? 1.0f : 0.0f;
}

/* Computes o for the current W; returns the loss. */
static double forward(void)
{
    double loss = 0;
    for (int i = 0; i < HOURS; i++)
        for (int c = 0; c < D; c++)
            q[i][c] = w[c][0] * x[i][0] + w[c][1] * x[i][1];
    stop_on(mha_attention(&shape, mha_view_bhld(q, 1, HOURS, D), mha_view_bhld(x, 1, HOURS, D),
                          mha_view_bhld(same, 1, HOURS, HOURS), mha_out_bhld(o, 1, HOURS, HOURS),
                          &options, NULL));
    for (int i = 0; i < HOURS; i++)
        for (int j = 0; j < HOURS; j++)
            loss += 0.5 * pow((double)(o[i][j] - wanted(i, j)), 2);
    return loss;
}

/* d_W, after a forward() with the same W. */
static void backward(float d_w[D][D])
{
    for (int i = 0; i < HOURS; i++)
        for (int j = 0; j < HOURS; j++)
            d_o[i][j] = o[i][j] - wanted(i, j);
    /* Keys and values are not learned: their gradients are not requested. */
    const mha_gradients gradients = {.size = sizeof gradients,
                                     .d_o = mha_view_bhld(d_o, 1, HOURS, HOURS),
                                     .d_q = mha_out_bhld(d_q, 1, HOURS, D)};
    stop_on(mha_attention_backward(
        &shape, mha_view_bhld(q, 1, HOURS, D), mha_view_bhld(x, 1, HOURS, D),
        mha_view_bhld(same, 1, HOURS, HOURS), mha_view_bhld(o, 1, HOURS, HOURS), &options,
        &gradients, NULL, 0, NULL));
    for (int c = 0; c < D; c++)
        for (int n = 0; n < D; n++) {
            d_w[c][n] = 0;
            for (int i = 0; i < HOURS; i++)
                d_w[c][n] += d_q[i][c] * x[i][n];
        }
}

/* The derivative of the loss by one number of W, as a central difference. */
static double difference(float *number)
{
    const float here = *number, step = 0x1p-6f;
    *number = here + step;
    const double above = forward();
    *number = here - step;
    const double below = forward();
    *number = here;
    return (above - below) / (2 * (double)step);
}

int main(void)
{
    float d_w[D][D];
    for (int i = 0; i < HOURS; i++) {
        x[i][0] = (float)cos(2 * pi * i / HOURS);
        x[i][1] = (float)sin(2 * pi * i / HOURS);
        same[i][i] = 1;
    }
    forward();
    backward(d_w);
    const double gradient = (double)d_w[0][1], slope = difference(&w[0][1]);
    printf("d_W[0][1] is %.5f; from a difference of losses: %.5f\n", gradient, slope);

    for (int n = 0; n <= STEPS; n++) {
        const double loss = forward();
        if (n % (STEPS / 5) == 0)
            printf("step %3d: loss %.4f, weight of the hour before %.3f\n", n, loss,
                   (double)o[1][0]);
        backward(d_w);
        for (int c = 0; c < D * D; c++)
            w[c / D][c % D] -= rate * d_w[c / D][c % D];
    }

    const double turn = atan2((double)w[0][1], (double)w[0][0]) * 180 / pi;
    printf("W rotates back by %.2f degrees and scales by %.1f\n", turn,
           hypot((double)w[0][0], (double)w[0][1]));
    int wrong = fabs(gradient - slope) > 1e-3 * fabs(slope) || fabs(turn - 30) > 0.1;
    for (int i = 0; i < HOURS; i++)
        wrong += o[i][(i + HOURS - 1) % HOURS] < 0.9f;
    return wrong > 0;
}
