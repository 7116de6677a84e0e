/* SPDX-License-Identifier: MIT */
/* Reads "image_mean" and "image_std" (image_scale.h). */
#include "format/image_scale.h"

static void fill(int channels, float *mean, float *deviation, float m, float d)
{
    for (int n = 0; n < channels; n++) {
        mean[n] = m;
        deviation[n] = d;
    }
}

void image_scale_default(int channels, float *mean, float *deviation)
{
    fill(channels, mean, deviation, 0.5f, 0.5f);
}

static bool read_numbers(const json_value *list, int channels, double least, float *to)
{
    for (int n = 0; n < channels; n++) {
        double number;
        if (!json_tree_get_number(json_tree_element(list, (size_t)n), &number) ||
            !(number >= least && number < 1e6))
            return false;
        to[n] = (float)number;
    }
    return json_tree_count(list) == (size_t)channels;
}

bool image_scale_read(const json_value *object, int channels, float *mean, float *deviation)
{
    const json_value *const means = json_tree_member(object, "image_mean");
    const json_value *const deviations = json_tree_member(object, "image_std");
    bool normal = true;
    json_tree_get_bool(json_tree_member(object, "do_normalize"), &normal);
    image_scale_default(channels, mean, deviation);
    if (!normal)
        fill(channels, mean, deviation, 0.0f, 1.0f);
    if (!normal || (!means && !deviations))
        return true;
    return means && deviations && read_numbers(means, channels, -1e6, mean) &&
           read_numbers(deviations, channels, 1e-6, deviation);
}
