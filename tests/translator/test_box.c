/* SPDX-License-Identifier: MIT */
/* Boxes: overlaps that are known, laws, and gradients against central differences in double. */
#include "support/test.h"

#include <math.h>
#include <stddef.h>

#include "translator/box.h"

static box box_at(double left, double top, double right, double bottom)
{
    return (box){{(left + right) / 2.0, (top + bottom) / 2.0, right - left, bottom - top}};
}

static box random_box(test_random *random)
{
    box b;
    for (int n = 0; n < BOX_NUMBERS; n++)
        b.at[n] = 0.5 + (double)test_random_float(random) * (n < BOX_WIDTH ? 0.4 : 0.45);
    return b;
}

static void overlaps_are_known(void)
{
    const box a = box_at(0.0, 0.0, 0.4, 0.4);
    const struct {
        box other;
        double iou, giou;
    } cases[] = {
        {a, 1.0, 1.0},
        {box_at(0.2, 0.0, 0.6, 0.4), 1.0 / 3.0, 1.0 / 3.0},              /* half beside it */
        {box_at(0.1, 0.1, 0.3, 0.3), 0.25, 0.25},                        /* inside */
        {box_at(0.2, 0.2, 0.6, 0.6), 1.0 / 7.0, 1.0 / 7.0 - 8.0 / 36.0}, /* at a corner */
        {box_at(0.4, 0.0, 0.8, 0.4), 0.0, 0.0},                          /* touching */
        {box_at(0.6, 0.6, 1.0, 1.0), 0.0, -0.68},                        /* apart */
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const box *const b = &cases[n].other;
        CHECK(fabs(box_iou(&a, b) - cases[n].iou) < 1e-12, "case %zu: iou %g", n, box_iou(&a, b));
        CHECK(fabs(box_giou(&a, b, 0.0, NULL) - cases[n].giou) < 1e-12, "case %zu: giou %g", n,
              box_giou(&a, b, 0.0, NULL));
    }
    const box empty = box_at(0.5, 0.5, 0.5, 0.5);
    CHECK(box_iou(&empty, &empty) == 0.0 && box_iou(&a, &empty) == 0.0, "empty boxes");
}

static void laws(void)
{
    test_random random = {test_seed(3)};
    for (int n = 0; n < 2000; n++) {
        const box a = random_box(&random), b = random_box(&random);
        const double iou = box_iou(&a, &b), giou = box_giou(&a, &b, 0.0, NULL);
        CHECK(fabs(iou - box_iou(&b, &a)) < 1e-14 &&
                  fabs(giou - box_giou(&b, &a, 0.0, NULL)) < 1e-14,
              "not symmetric");
        CHECK(iou >= 0.0 && iou <= 1.0 && giou > -1.0 && giou <= iou + 1e-14, "%g, %g", iou, giou);
        CHECK(fabs(box_giou(&a, &a, 0.0, NULL) - 1.0) < 1e-14, "of itself");
    }
}

/* Distance of two numbers from where a derivative jumps. */
static double kink_of(const box *a, const box *b)
{
    double least = INFINITY;
    for (int n = 0; n < BOX_NUMBERS; n++)
        least = fmin(least, fabs(a->at[n] - b->at[n]));
    for (int axis = 0; axis < 2; axis++) {
        const double half_a = a->at[2 + axis] / 2.0, half_b = b->at[2 + axis] / 2.0;
        const double apart = a->at[axis] - b->at[axis];
        const double sums[] = {apart - half_a + half_b, apart + half_a - half_b,
                               apart - half_a - half_b, apart + half_a + half_b};
        for (int n = 0; n < 4; n++)
            least = fmin(least, fabs(sums[n]));
    }
    return least;
}

static void gradients_are_differences(void)
{
    static const double step = 1e-6;
    test_random random = {test_seed(4)};
    int checked = 0;
    for (int round = 0; round < 4000; round++) {
        const box a = random_box(&random), b = random_box(&random);
        double overlap[BOX_NUMBERS] = {1.0, 1.0, 1.0, 1.0}, distance[BOX_NUMBERS] = {0};
        if (kink_of(&a, &b) < 1e-4)
            continue;
        box_giou(&a, &b, -2.0, overlap);
        box_distance(&a, &b, 3.0, distance);
        for (int n = 0; n < BOX_NUMBERS; n++) {
            box up = a, down = a;
            up.at[n] += step;
            down.at[n] -= step;
            const double by_overlap =
                (box_giou(&up, &b, 0.0, NULL) - box_giou(&down, &b, 0.0, NULL)) / (2.0 * step);
            const double by_distance =
                (box_distance(&up, &b, 0.0, NULL) - box_distance(&down, &b, 0.0, NULL)) /
                (2.0 * step);
            CHECK(fabs(overlap[n] - (1.0 - 2.0 * by_overlap)) < 1e-5 * (1.0 + fabs(by_overlap)),
                  "number %d: %g, not %g", n, overlap[n], 1.0 - 2.0 * by_overlap);
            CHECK(fabs(distance[n] - 3.0 * by_distance) < 1e-6, "number %d: distance", n);
        }
        checked++;
    }
    CHECK(checked > 3000, "only %d pairs", checked);
}

static void outputs_become_boxes(void)
{
    const float outputs[BOX_NUMBERS] = {0.0f, 100.0f, -100.0f, 1.0f};
    const box b = box_of_outputs(outputs);
    CHECK(b.at[0] == 0.5 && b.at[1] > 0.999 && b.at[2] < 1e-9 && b.at[2] >= 0.0 &&
              fabs(b.at[3] - 0.7310585786300049) < 1e-12,
          "%g %g %g %g", b.at[0], b.at[1], b.at[2], b.at[3]);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(overlaps_are_known);
    RUN(laws);
    RUN(gradients_are_differences);
    RUN(outputs_become_boxes);
    return test_end();
}
