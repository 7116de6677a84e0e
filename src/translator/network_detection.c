/* SPDX-License-Identifier: MIT */
/*
 * The loss of a detector. Each query of a picture says what it sees and where; the things of the
 * picture are matched with the queries that fit them best, and all other queries should say
 * "nothing":
 *
 *      cost of a pair  = box * distance - overlap * giou - probability of the thing's classes
 *      loss            = of matched queries: cross-entropy of both classes
 *                                            + box * distance + overlap * (1 - giou)
 *                        of the others:      nothing * cross-entropy of "nothing"
 *
 * The matching itself is not differentiated. A picture is a task, so that the bits do not depend on
 * the number of threads; the logits of a row are replaced by their gradient.
 */
#include <math.h>
#include <string.h>

#include "base/assignment.h"
#include "translator/network_parts.h"

_Static_assert((int)TRANSFORMER_BOX == (int)BOX_NUMBERS, "a box has as many numbers");

/* Whether the things of a picture can be matched: classes that the model has, and boxes that are
 * not empty. */
static mha_status check_thing(const network *net, const batch_thing *thing)
{
    const int *const words = net->config.words;
    /* The last class of the second kind is "nothing". */
    if (thing->classes[0] < 0 || thing->classes[0] >= words[TRANSFORMER_SOURCE] ||
        thing->classes[1] < 0 || thing->classes[1] >= words[TRANSFORMER_TARGET] - 1)
        return MHA_ERR_INDEX;
    for (int n = 0; n < BOX_NUMBERS; n++)
        if (!(thing->box.at[n] >= 0.0 && thing->box.at[n] <= 1.0))
            return MHA_ERR_SHAPE;
    return thing->box.at[BOX_WIDTH] > 0.0 && thing->box.at[BOX_HEIGHT] > 0.0 ? MHA_OK
                                                                             : MHA_ERR_SHAPE;
}

mha_status network_detection_check(const network *net, const batch *b)
{
    const int queries = net->config.positions;
    if ((b->things != NULL) != network_detects(net))
        return MHA_ERR_SHAPE;
    if (!b->things)
        return MHA_OK;
    if (b->longest[TRANSFORMER_TARGET] != queries ||
        b->rows[TRANSFORMER_TARGET] != (ptrdiff_t)b->pairs * queries)
        return MHA_ERR_SHAPE;
    for (int n = 0; n < b->pairs; n++) {
        if (b->thing_counts[n] < 0 || b->thing_counts[n] > queries ||
            b->thing_counts[n] > b->things_room)
            return MHA_ERR_SHAPE;
        for (int k = 0; k < b->thing_counts[n]; k++) {
            const mha_status status = check_thing(net, &b->things[n * b->things_room + k]);
            if (status != MHA_OK)
                return status;
        }
    }
    for (ptrdiff_t row = 0; row < b->rows[TRANSFORMER_TARGET]; row++)
        if (b->words[TRANSFORMER_TARGET][row] != row % queries)
            return MHA_ERR_INDEX;
    return MHA_OK;
}

ptrdiff_t network_detection_rows(const network *net)
{
    return LOSS_ROWS / net->config.positions * net->config.positions;
}

/* ---------------------------------------------------------------- matching ----- */

/* What a query says of a thing: the probability of both of its classes. */
static double probability(const float *logits, int classes, int class)
{
    double sum = 0.0;
    for (int n = 0; n < classes; n++)
        sum += exp((double)logits[n] - (double)logits[class]);
    return 1.0 / sum;
}

static double pair_cost(const network *net, const float *outputs, const batch_thing *thing)
{
    const int *const words = net->config.words;
    const float *const second = outputs + words[TRANSFORMER_SOURCE];
    const box said = box_of_outputs(second + words[TRANSFORMER_TARGET]);
    const double fits = probability(outputs, words[TRANSFORMER_SOURCE], thing->classes[0]) *
                        probability(second, words[TRANSFORMER_TARGET], thing->classes[1]);
    return net->mode.detection.box * box_distance(&said, &thing->box, 0.0, NULL) -
           net->mode.detection.overlap * box_giou(&said, &thing->box, 0.0, NULL) - fits;
}

/* thing_of[query]: the number of its thing, or -1. */
static void match(const network *net, const float *outputs, int picture, int *thing_of)
{
    const batch *const b = net->batch;
    const int queries = net->config.positions, things = b->thing_counts[picture];
    double costs[ASSIGNMENT_MAX * ASSIGNMENT_MAX] = {0};
    int query_of[ASSIGNMENT_MAX];
    for (int k = 0; k < things; k++)
        for (int q = 0; q < queries; q++)
            costs[k * queries + q] = pair_cost(net, outputs + q * net->logit_stride,
                                               &b->things[picture * b->things_room + k]);
    assignment_solve(costs, things, queries, query_of);
    for (int q = 0; q < queries; q++)
        thing_of[q] = -1;
    for (int k = 0; k < things; k++)
        thing_of[query_of[k]] = k;
}

/* -------------------------------------------------------------------- loss ----- */

/* Cross-entropy of some logits, times `weight`; in training they are replaced by the gradient. */
static row_score class_loss(const network *net, float *logits, int classes, int expected,
                            double weight, double share)
{
    float sum;
    row_score score = row_softmax(logits, classes, expected, &sum);
    score.loss *= weight;
    if (net->mode.training)
        row_softmax_backward(logits, classes, expected, sum, (float)net->mode.label_smoothing,
                             (float)(weight * share));
    return score;
}

/* The same of a box, for outputs of which it is the logistic function. */
static double box_loss(const network *net, float *outputs, const box *truth, double share)
{
    const detection_weights *const w = &net->mode.detection;
    const box said = box_of_outputs(outputs);
    double d[BOX_NUMBERS] = {0};
    const double loss = w->box * box_distance(&said, truth, w->box * share, d) +
                        w->overlap * (1.0 - box_giou(&said, truth, -w->overlap * share, d));
    for (int n = 0; n < BOX_NUMBERS && net->mode.training; n++)
        outputs[n] = (float)(d[n] * said.at[n] * (1.0 - said.at[n]));
    return loss;
}

/* A query that says nothing in truth: its colour and box do not matter. */
static row_score nothing_loss(const network *net, float *outputs, double share)
{
    const int *const words = net->config.words;
    float *const second = outputs + words[TRANSFORMER_SOURCE];
    const row_score score =
        class_loss(net, second, words[TRANSFORMER_TARGET], words[TRANSFORMER_TARGET] - 1,
                   net->mode.detection.nothing, share);
    if (net->mode.training) {
        memset(outputs, 0, (size_t)words[TRANSFORMER_SOURCE] * sizeof *outputs);
        memset(second + words[TRANSFORMER_TARGET], 0, BOX_NUMBERS * sizeof *outputs);
    }
    return score;
}

static row_score thing_loss(const network *net, float *outputs, const batch_thing *thing,
                            double share)
{
    const int *const words = net->config.words;
    float *const second = outputs + words[TRANSFORMER_SOURCE];
    const row_score first =
        class_loss(net, outputs, words[TRANSFORMER_SOURCE], thing->classes[0], 1.0, share);
    row_score score =
        class_loss(net, second, words[TRANSFORMER_TARGET], thing->classes[1], 1.0, share);
    score.loss +=
        first.loss + box_loss(net, second + words[TRANSFORMER_TARGET], &thing->box, share);
    score.right = score.right && first.right;
    return score;
}

void network_detection_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const loss_pass *const pass = arg;
    const network *const net = pass->net;
    const batch *const b = net->batch;
    const int queries = net->config.positions, picture = (int)(pass->first / queries + number);
    float *const outputs = net->logits + number * queries * net->logit_stride;
    const double share = network_share(net);
    int thing_of[ASSIGNMENT_MAX];
    match(net, outputs, picture, thing_of);
    for (int q = 0; q < queries; q++) {
        const ptrdiff_t row = pass->first + number * queries + q;
        float *const own = outputs + q * net->logit_stride;
        const size_t count = (size_t)transformer_outputs(&net->config);
        if (net->mode.outputs)
            memcpy(net->mode.outputs + (size_t)row * count, own, count * sizeof *own);
        net->scores[row] =
            thing_of[q] < 0
                ? nothing_loss(net, own, share)
                : thing_loss(net, own, &b->things[picture * b->things_room + thing_of[q]], share);
    }
}
