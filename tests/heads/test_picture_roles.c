/* SPDX-License-Identifier: MIT */
/*
 * Heads that read patches: made-up weights have the measures and the roles that they were made for,
 * an independent sum over all pairs of patches agrees, and object and ground are told apart where
 * the ground is plain.
 */
#include "heads/picture_roles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/picture_object.h"
#include "heads/picture_study.h"
#include "support/test.h"

enum { ACROSS = 5, PATCHES = ACROSS * ACROSS, MARKS = 1, ALL = MARKS + PATCHES };

static float weights[ALL][ALL];
static bool object[PATCHES];

/* Each row puts `share` on the patch at this offset, where there is one, and the rest equally on
 * all patches. */
static void fill_offset(int down, int right, float share)
{
    for (int n = 0; n < ALL; n++) {
        const int y = (n - MARKS) / ACROSS + down, x = (n - MARKS) % ACROSS + right;
        const bool there = n >= MARKS && y >= 0 && x >= 0 && y < ACROSS && x < ACROSS;
        for (int c = 0; c < ALL; c++)
            weights[n][c] = c < MARKS ? 0.0f : (there ? 1.0f - share : 1.0f) / PATCHES;
        if (there)
            weights[n][MARKS + y * ACROSS + x] += share;
    }
}

static void measure(bool with_object, double means[PICTURE_MEASURES])
{
    const head_matrix m = {.weights = &weights[0][0], .rows = ALL, .columns = ALL};
    const subject_picture p = {
        .marks = MARKS, .across = ACROSS, .object = with_object ? object : NULL};
    head_sample samples[PICTURE_MEASURES];
    picture_measure_head(&m, &p, samples);
    for (int n = 0; n < PICTURE_MEASURES; n++)
        means[n] = samples[n].count > 0 ? (double)samples[n].sum / (double)samples[n].count : NAN;
}

static void expect_role(const char *name, bool with_object)
{
    double means[PICTURE_MEASURES];
    measure(with_object, means);
    const picture_role role = picture_role_choose(means);
    CHECK(strcmp(role.found ? role.name : "mixed", name) == 0, "%s instead of %s (%g)", role.name,
          name, role.score);
}

/* ----------------------------------------------------------------- roles ----- */

static void directions(void)
{
    static const struct {
        int down, right;
        const char *name;
        picture_measure measure;
    } cases[] = {{-1, 0, "above", PICTURE_ABOVE},
                 {1, 0, "below", PICTURE_BELOW},
                 {0, -1, "left", PICTURE_LEFT},
                 {0, 1, "right", PICTURE_RIGHT},
                 {0, 0, "self", PICTURE_SELF}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        double means[PICTURE_MEASURES];
        fill_offset(cases[n].down, cases[n].right, 0.6f);
        expect_role(cases[n].name, false);
        measure(false, means);
        CHECK(fabs(means[cases[n].measure] - (0.6 + 0.4 / PATCHES)) < 1e-6, "%s: %g", cases[n].name,
              means[cases[n].measure]);
        CHECK(isnan(means[PICTURE_SAME]) && isnan(means[PICTURE_OBJECT]), "no object is known");
        CHECK(means[PICTURE_CLASS] == 0.0, "no weight on the mark");
    }
    /* The largest weight counts, even if it is not large. */
    fill_offset(0, 1, 0.1f);
    expect_role("right", false);
}

static void marks_and_equal_weights(void)
{
    double means[PICTURE_MEASURES];
    fill_offset(0, 1, 0.0f);
    expect_role("broad", false);
    measure(false, means);
    CHECK(fabs(means[PICTURE_REACH] - 1.0) < 1e-6, "reach %g", means[PICTURE_REACH]);
    CHECK(fabs(means[PICTURE_BORDER]) < 1e-6, "border %g", means[PICTURE_BORDER]);
    CHECK(fabs(means[PICTURE_DISTANCE] - picture_even_distance(ACROSS)) < 1e-5,
          "distance %g, not %g", means[PICTURE_DISTANCE], picture_even_distance(ACROSS));
    for (int n = 0; n < ALL; n++)
        for (int c = 0; c < ALL; c++)
            weights[n][c] = c < MARKS ? 0.7f : 0.3f * weights[n][c];
    expect_role("class token", false);
}

static void places(void)
{
    for (int n = 0; n < PATCHES; n++)
        for (int c = 0; c < PATCHES; c++) {
            const int y = c / ACROSS, x = c % ACROSS;
            const bool border = y == 0 || x == 0 || y == ACROSS - 1 || x == ACROSS - 1;
            weights[MARKS + n][MARKS + c] = border ? 1.0f / 16 : 0.0f;
        }
    for (int n = 0; n < ALL; n++)
        weights[n][0] = 0.0f;
    expect_role("border", false);
    for (int n = 0; n < PATCHES; n++)
        for (int c = 0; c < PATCHES; c++)
            weights[MARKS + n][MARKS + c] = n / ACROSS == c / ACROSS && n != c ? 0.25f : 0.0f;
    expect_role("same row", false);
    for (int n = 0; n < PATCHES; n++)
        for (int c = 0; c < PATCHES; c++)
            weights[MARKS + n][MARKS + c] = n % ACROSS == c % ACROSS && n != c ? 0.25f : 0.0f;
    expect_role("same column", false);
}

/* Equal weights on the patches for which a condition holds. */
static void fill_parts(bool same)
{
    for (int n = 0; n < PATCHES; n++) {
        int count = 0;
        for (int c = 0; c < PATCHES; c++)
            count += same ? object[c] == object[n] : object[c];
        for (int c = 0; c < PATCHES; c++)
            weights[MARKS + n][MARKS + c] =
                (same ? object[c] == object[n] : object[c]) ? 1.0f / (float)count : 0.0f;
    }
}

static void parts(void)
{
    for (int n = 0; n < PATCHES; n++)
        object[n] = n % 3 == 0;
    fill_parts(true);
    expect_role("same part", true);
    fill_parts(false);
    expect_role("object", true);
    double means[PICTURE_MEASURES];
    measure(true, means);
    CHECK(fabs(means[PICTURE_OBJECT] - (1.0 - 9.0 / PATCHES)) < 1e-5, "%g", means[PICTURE_OBJECT]);
}

/* Random weights: the mean distance and what is around, summed in another order. */
static void random_weights(void)
{
    test_random random = {test_seed(1)};
    double distance = 0.0, around = 0.0, means[PICTURE_MEASURES];
    for (int n = 0; n < ALL; n++)
        for (int c = 0; c < ALL; c++)
            weights[n][c] = (float)(1 + test_random_below(&random, 1000)) / 1000.0f;
    for (int n = 0; n < PATCHES; n++) {
        double total = 0.0;
        for (int c = 0; c < PATCHES; c++)
            total += (double)weights[MARKS + n][MARKS + c];
        for (int c = 0; c < PATCHES; c++) {
            const double w = (double)weights[MARKS + n][MARKS + c] / total / PATCHES;
            const double away = hypot(n / ACROSS - c / ACROSS, n % ACROSS - c % ACROSS);
            distance += w * away;
            around += away > 0 && away < 1.5 ? w : 0.0;
        }
    }
    measure(false, means);
    CHECK(fabs(means[PICTURE_DISTANCE] - distance) < 1e-4, "%g, not %g", means[PICTURE_DISTANCE],
          distance);
    CHECK(fabs(means[PICTURE_AROUND] - around) < 1e-4, "%g, not %g", means[PICTURE_AROUND], around);
}

/* ---------------------------------------------------------------- object ----- */

static void objects(void)
{
    enum { SIDE = 20, PATCH = 4 };
    static uint8_t bytes[SIDE * SIDE];
    const picture_grid grid = {SIDE, 1, PATCH, PATCH, SIDE / PATCH};
    bool found[PATCHES];
    memset(bytes, 10, sizeof bytes);
    CHECK(!picture_object_find(&grid, bytes, found), "nothing but ground");
    for (int y = 4; y < 12; y++)
        for (int x = 8; x < 16; x++)
            bytes[y * SIDE + x] = 200;
    if (CHECK(picture_object_find(&grid, bytes, found), "a square on a plain ground"))
        for (int n = 0; n < PATCHES; n++) {
            const int y = n / grid.across, x = n % grid.across;
            CHECK(found[n] == (y >= 1 && y < 3 && x >= 2 && x < 4), "patch %d", n);
        }
    for (int n = 0; n < SIDE * SIDE; n++)
        bytes[n] = (uint8_t)(n * 97 % 256);
    CHECK(!picture_object_find(&grid, bytes, found), "a ground that is not plain");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(directions);
    RUN(marks_and_equal_weights);
    RUN(places);
    RUN(parts);
    RUN(random_weights);
    RUN(objects);
    return test_end();
}
