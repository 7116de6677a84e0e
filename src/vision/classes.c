/* SPDX-License-Identifier: MIT */
/* Reads config.json and preprocessor_config.json of a folder (classes.h). */
#include "vision/classes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/image_scale.h"

enum { PATH_BYTES = 4096 };

static bool read_tree(const char *folder, const char *file, json_tree **tree, char *message)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return json_tree_read_file(tree, path, message, PICTURE_MESSAGE_MAX) == MHA_OK;
}

bool classes_read(const char *folder, picture_class_name *names, int count, char *message)
{
    json_tree *tree;
    if (!read_tree(folder, "config.json", &tree, message))
        return false;
    const json_value *const labels = json_tree_member(json_tree_root(tree), "id2label");
    for (int n = 0; n < count; n++) {
        char key[16];
        const char *text;
        size_t length;
        snprintf(key, sizeof key, "%d", n);
        const bool named =
            labels && json_tree_get_string(json_tree_member(labels, key), &text, &length);
        snprintf(names[n], sizeof names[n], "%.*s", PICTURE_SET_NAME_MAX - 1, named ? text : key);
        for (char *at = names[n]; *at; at++)
            if ((unsigned char)*at < ' ' || *at == 0x7f)
                *at = '?';
    }
    json_tree_free(tree);
    return true;
}

bool classes_read_scale(const char *folder, pixel_scale *scale, int channels, char *message)
{
    static const char name[] = "preprocessor_config.json";
    char path[PATH_BYTES];
    json_tree *tree;
    image_scale_default(channels, scale->mean, scale->deviation);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, F_OK) != 0) {
        pixel_scale_fill(scale, channels);
        return true;
    }
    if (!read_tree(folder, name, &tree, message))
        return false;
    const bool fine =
        image_scale_read(json_tree_root(tree), channels, scale->mean, scale->deviation);
    json_tree_free(tree);
    if (!fine)
        snprintf(message, PICTURE_MESSAGE_MAX,
                 "%.120s: \"image_mean\" and \"image_std\" must have %d numbers each, the second "
                 "above 0",
                 path, channels);
    pixel_scale_fill(scale, channels);
    return fine;
}
