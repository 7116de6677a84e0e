/* SPDX-License-Identifier: MIT */
/* The colour scales (draw/color_scale.h): their bytes, which the page and the Python package share,
 * and that their lightness changes evenly in one direction. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/color_scale.h"
#include "format/json_reader.h"
#include "support/temp_files.h"
#include "support/test.h"

enum { ENTRIES = 33, LEVELS = 255 };

static const char *const names[] = {"light", "dark"};

static void check_entry(color_ground ground, int n, const char *wanted)
{
    char text[8];
    const rgb c = color_scale(ground, (double)n / (ENTRIES - 1));
    snprintf(text, sizeof text, "#%02x%02x%02x", c.r, c.g, c.b);
    CHECK(strcmp(text, wanted) == 0, "%s %d/32: %s, not %s", names[ground], n, text, wanted);
}

static void the_golden_file_agrees(void)
{
    size_t size;
    unsigned char *const bytes = file_bytes(MHA_GOLDEN_FOLDER "/color_scale.json", &size);
    if (!CHECK(bytes != NULL, "no golden file"))
        return;
    json_reader j = json_reader_begin((char *)bytes, size);
    json_reader_token token;
    int ground = -1, counts[2] = {0};
    while ((token = json_reader_next(&j)) > JSON_END) {
        if (token == JSON_KEY)
            ground = strcmp(j.text, "light") == 0 ? 0 : strcmp(j.text, "dark") == 0 ? 1 : -1;
        else if (token == JSON_STRING && ground >= 0)
            check_entry((color_ground)ground, counts[ground]++, j.text);
    }
    CHECK(token == JSON_END && counts[0] == ENTRIES && counts[1] == ENTRIES,
          "%d and %d entries of 33", counts[0], counts[1]);
    json_reader_free(&j);
    free(bytes);
}

static double linear(uint8_t value)
{
    const double s = value / 255.0;
    return s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4);
}

/* CIE L*, 0 to 100. */
static double lightness(color_ground ground, int level)
{
    const rgb c = color_scale(ground, (double)level / LEVELS);
    return 116.0 * cbrt(0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b)) - 16.0;
}

/* Any sixteenth of a scale changes the lightness by at least half and at most twice its share. */
static void lightness_changes_evenly(void)
{
    for (int ground = 0; ground < 2; ground++) {
        const double sign = ground == COLOR_ON_DARK ? 1.0 : -1.0;
        const double whole =
            sign * (lightness((color_ground)ground, LEVELS) - lightness((color_ground)ground, 0));
        CHECK(whole > 75.0, "%s: %g in all", names[ground], whole);
        for (int level = 0; level + 16 <= LEVELS; level++) {
            const double step = sign * (lightness((color_ground)ground, level + 16) -
                                        lightness((color_ground)ground, level));
            const double even = whole * 16 / LEVELS;
            CHECK(step > 0.5 * even && step < 2.0 * even, "%s, level %d: %g, evenly %g",
                  names[ground], level, step, even);
        }
    }
}

static void shares_outside_are_the_ends(void)
{
    for (int ground = 0; ground < 2; ground++) {
        const rgb low = color_scale((color_ground)ground, -3.0);
        const rgb high = color_scale((color_ground)ground, 7.0);
        const rgb first = color_scale((color_ground)ground, 0.0);
        const rgb last = color_scale((color_ground)ground, 1.0);
        CHECK(memcmp(&low, &first, sizeof low) == 0, "%s: below 0", names[ground]);
        CHECK(memcmp(&high, &last, sizeof high) == 0, "%s: above 1", names[ground]);
        CHECK(color_is_light(first) == (ground == COLOR_ON_LIGHT), "%s: the first", names[ground]);
        CHECK(color_is_light(last) == (ground == COLOR_ON_DARK), "%s: the last", names[ground]);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(the_golden_file_agrees);
    RUN(lightness_changes_evenly);
    RUN(shares_outside_are_the_ends);
    return test_end();
}
