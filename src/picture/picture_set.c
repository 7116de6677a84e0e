/* SPDX-License-Identifier: MIT */
/* Memory of sets, and which kind of set a folder is. */
#include "picture/picture_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "picture/cifar.h"
#include "picture/idx.h"
#include "picture/picture_folder.h"

bool picture_set_allocate(picture_set *set, ptrdiff_t count, int classes)
{
    set->count = count;
    set->classes = classes;
    set->pixels = calloc((size_t)count + 1, picture_set_bytes(set));
    set->labels = calloc((size_t)count + 1, sizeof *set->labels);
    set->names = calloc((size_t)classes + 1, sizeof *set->names);
    if (set->pixels && set->labels && set->names)
        return true;
    picture_set_free(set);
    return false;
}

void picture_set_free(picture_set *set)
{
    free(set->pixels);
    free(set->labels);
    free(set->names);
    *set = (picture_set){0};
}

void picture_set_number_classes(picture_set *set)
{
    for (int n = 0; n < set->classes; n++)
        snprintf(set->names[n], sizeof set->names[n], "%d", n);
}

bool picture_set_open(const char *folder, int side, picture_set *train, picture_set *test,
                      char *message)
{
    struct stat there;
    *train = *test = (picture_set){0};
    if (stat(folder, &there) != 0 || !S_ISDIR(there.st_mode)) {
        snprintf(message, PICTURE_MESSAGE_MAX, "%.160s: a set of pictures is a folder", folder);
        return false;
    }
    const bool fine = idx_is_in(folder) ? idx_open(folder, train, test, message)
                      : cifar_is_in(folder)
                          ? cifar_open(folder, train, test, message)
                          : picture_folder_open(folder, side, train, test, message);
    if (!fine) {
        picture_set_free(train);
        picture_set_free(test);
    }
    return fine;
}
