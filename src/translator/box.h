/* SPDX-License-Identifier: MIT */
/* Boxes in pictures: how much two of them overlap, and the gradient of a loss by it. */
#ifndef TRANSLATOR_BOX_H
#define TRANSLATOR_BOX_H

/* Centre, width and height, as shares of the sides of the picture. */
enum { BOX_X, BOX_Y, BOX_WIDTH, BOX_HEIGHT, BOX_NUMBERS };
typedef struct box {
    double at[BOX_NUMBERS];
} box;

/* The box of four outputs of a network: the logistic function of each. */
box box_of_outputs(const float outputs[BOX_NUMBERS]);

/* Intersection over union, from 0 to 1; 0 if both are empty. */
double box_iou(const box *a, const box *b);

/*
 * The generalised intersection over union: that, minus the share of the smallest box around both
 * that is in neither. From -1, far apart, to 1, the same. Neither box may be empty. Adds
 * `scale` times its derivatives by the numbers of `a` to `gradient`, unless that is NULL.
 */
double box_giou(const box *a, const box *b, double scale, double gradient[BOX_NUMBERS]);

/* The sum of the absolute differences of all numbers; adds `scale` times its derivatives by those
 * of `a` as above. */
double box_distance(const box *a, const box *b, double scale, double gradient[BOX_NUMBERS]);

/* Weights of parts of the loss of a detector: the class of a query without a thing, the distance
 * of boxes, and their overlap. */
typedef struct detection_weights {
    double nothing, box, overlap;
} detection_weights;

#endif
