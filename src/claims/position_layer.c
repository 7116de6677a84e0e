/* SPDX-License-Identifier: MIT */
/* A layer that reads places, trained through mha_layer_backward() (position_layer.h). */
#include "claims/position_layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct position_layer {
    mha_layer *layer;
    int tokens, outputs, steps;
    ptrdiff_t weights;
    float *places;                               /* one-hot */
    float *values, *gradients, *means, *squares; /* [weights] each, in one block */
    float *y, *d_y;                              /* outputs of a pass and their gradients */
    void *tape;
    size_t outputs_room, tape_room;
};

ptrdiff_t position_layer_weights(const position_task *t)
{
    return (ptrdiff_t)t->tokens * (2 * t->tokens + 1 + t->outputs);
}

/* Where each matrix begins. */
static float *matrix_of(const position_layer *p, float *block, int matrix)
{
    const ptrdiff_t square = (ptrdiff_t)p->tokens * p->tokens;
    const ptrdiff_t at[] = {0, square, 2 * square, 2 * square + p->tokens};
    return block + at[matrix];
}

static mha_layer_weights weights_of(const position_layer *p)
{
    const int width = p->tokens;
    return (mha_layer_weights){.size = sizeof(mha_layer_weights),
                               .q = mha_matrix_out_in(matrix_of(p, p->values, 0), MHA_F32, width),
                               .k = mha_matrix_out_in(matrix_of(p, p->values, 1), MHA_F32, width),
                               .v = mha_matrix_out_in(matrix_of(p, p->values, 2), MHA_F32, 1),
                               .o = mha_matrix_out_in(matrix_of(p, p->values, 3), MHA_F32, width)};
}

static mha_layer_call call_of(const position_layer *p, const position_task *t)
{
    return (mha_layer_call){.size = sizeof(mha_layer_call),
                            .B = t->sequences,
                            .L = t->tokens,
                            .S = t->tokens,
                            .query = {p->places, 0, 0, t->tokens},
                            .key = {p->places, 0, 0, t->tokens},
                            .value = mha_view_ble(t->x, t->tokens, 1),
                            .output = mha_out_ble(p->y, t->tokens, t->outputs)};
}

/* ------------------------------------------------------------ creation ----- */

void position_layer_free(position_layer *p)
{
    if (p == NULL)
        return;
    mha_layer_free(p->layer);
    free(p->places);
    free(p->values);
    free(p->y);
    free(p->tape);
    free(p);
}

static mha_status fill(position_layer *p, int heads, const float *weights)
{
    const mha_layer_config config = {.size = sizeof config,
                                     .E = p->tokens,
                                     .H = heads,
                                     .value_width = 1,
                                     .output_width = p->outputs};
    const size_t count = (size_t)p->weights;
    p->places = calloc((size_t)p->tokens * (size_t)p->tokens, sizeof *p->places);
    p->values = calloc(4 * count, sizeof *p->values);
    if (p->places == NULL || p->values == NULL)
        return MHA_ERR_MEMORY;
    p->gradients = p->values + count;
    p->means = p->gradients + count;
    p->squares = p->means + count;
    memcpy(p->values, weights, count * sizeof *weights);
    for (int n = 0; n < p->tokens; n++)
        p->places[n * p->tokens + n] = 1.0f;
    const mha_layer_weights matrices = weights_of(p);
    return mha_layer_create(&p->layer, &config, &matrices);
}

mha_status position_layer_create(position_layer **made, const position_task *t, int heads,
                                 const float *weights)
{
    position_layer *const p = calloc(1, sizeof *p);
    *made = p;
    if (p == NULL)
        return MHA_ERR_MEMORY;
    p->tokens = t->tokens;
    p->outputs = t->outputs;
    p->weights = position_layer_weights(t);
    const mha_status status = fill(p, heads, weights);
    if (status != MHA_OK) {
        position_layer_free(p);
        *made = NULL;
    }
    return status;
}

/* ---------------------------------------------------------------- pass ----- */

/* Room for the outputs of a task and their gradients, and for the tape. */
static mha_status reserve(position_layer *p, const position_task *t)
{
    const size_t outputs = (size_t)t->sequences * (size_t)t->tokens * (size_t)t->outputs;
    if (outputs > p->outputs_room) {
        free(p->y);
        p->y = calloc(2 * outputs, sizeof *p->y);
        p->outputs_room = p->y != NULL ? outputs : 0;
    }
    if (p->y == NULL)
        return MHA_ERR_MEMORY;
    p->d_y = p->y + p->outputs_room;
    const mha_layer_call call = call_of(p, t);
    const size_t tape = (mha_layer_tape_size(p->layer, &call) + 63) / 64 * 64;
    if (tape > p->tape_room) {
        free(p->tape);
        p->tape = aligned_alloc(64, tape);
        p->tape_room = p->tape != NULL ? tape : 0;
    }
    return p->tape != NULL ? MHA_OK : MHA_ERR_MEMORY;
}

/* Squared error divided by the sum of squares of what is wanted; its gradient goes to d_y. */
static double compare(const position_layer *p, const position_task *t)
{
    const ptrdiff_t count = (ptrdiff_t)t->sequences * t->tokens * t->outputs;
    double sum = 0.0, energy = 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        energy += (double)(t->wanted[n] * t->wanted[n]);
    for (ptrdiff_t n = 0; n < count; n++) {
        const double off = (double)p->y[n] - (double)t->wanted[n];
        sum += off * off;
        p->d_y[n] = (float)(2.0 * off / energy);
    }
    return sum / energy;
}

mha_status position_layer_loss(position_layer *p, const position_task *t, double *loss)
{
    mha_status status = reserve(p, t);
    if (status != MHA_OK)
        return status;
    const mha_layer_call call = call_of(p, t);
    status = mha_layer_run(p->layer, &call, NULL, 0, NULL);
    if (status == MHA_OK)
        *loss = compare(p, t);
    return status;
}

static mha_status find_gradients(position_layer *p, const position_task *t, double *loss)
{
    mha_layer_call call = call_of(p, t);
    call.tape = p->tape;
    call.tape_size = mha_layer_tape_size(p->layer, &call);
    const mha_layer_gradients gradients = {.size = sizeof gradients,
                                           .d_output = mha_view_ble(p->d_y, t->tokens, t->outputs),
                                           .q = {matrix_of(p, p->gradients, 0), t->tokens, 1},
                                           .k = {matrix_of(p, p->gradients, 1), t->tokens, 1},
                                           .v = {matrix_of(p, p->gradients, 2), 1, 1},
                                           .o = {matrix_of(p, p->gradients, 3), t->tokens, 1}};
    const mha_status status = mha_layer_run(p->layer, &call, NULL, 0, NULL);
    if (status != MHA_OK)
        return status;
    *loss = compare(p, t);
    return mha_layer_backward(p->layer, &call, &gradients, NULL, 0, NULL);
}

static void descend(position_layer *p, double rate)
{
    const double correction = sqrt(1.0 - pow(0.99, p->steps + 1)) / (1.0 - pow(0.9, p->steps + 1));
    p->steps++;
    for (ptrdiff_t n = 0; n < p->weights; n++) {
        const float g = p->gradients[n];
        p->means[n] = 0.9f * p->means[n] + 0.1f * g;
        p->squares[n] = 0.99f * p->squares[n] + 0.01f * g * g;
        p->values[n] -=
            (float)(rate * correction * (double)p->means[n] / (sqrt((double)p->squares[n]) + 1e-8));
    }
}

mha_status position_layer_step(position_layer *p, const position_task *t, double rate, double *loss)
{
    mha_status status = reserve(p, t);
    if (status == MHA_OK)
        status = find_gradients(p, t, loss);
    if (status != MHA_OK)
        return status;
    descend(p, rate);
    const mha_layer_weights matrices = weights_of(p);
    return mha_layer_update(p->layer, &matrices);
}
