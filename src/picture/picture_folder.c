/* SPDX-License-Identifier: MIT */
/* Lists the folders of classes and their PNG files, then reads and scales every picture. */
#include "picture/picture_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "picture/picture_resize.h"
#include "picture/png_file.h"

enum { PATH_BYTES = 4096, FILES_MAX = 1 << 22 };

/* ---------------------------------------------------------------- names ----- */

typedef struct name_list {
    char **names;
    size_t count, room;
} name_list;

static void free_names(name_list *list)
{
    for (size_t n = 0; n < list->count; n++)
        free(list->names[n]);
    free(list->names);
    *list = (name_list){NULL, 0, 0};
}

static bool add_name(name_list *list, const char *name)
{
    char **const more =
        mhai_array_grow(list->names, &list->room, list->count + 1, sizeof *list->names);
    if (more == NULL)
        return false;
    list->names = more;
    list->names[list->count] = strdup(name);
    return list->names[list->count++] != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_png(const char *name)
{
    const size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".png") == 0;
}

/* Whether a name in a folder is listed: folders, or PNG files. Hidden ones are not. */
static bool is_wanted(const char *folder, const char *name, bool folders)
{
    char path[PATH_BYTES];
    struct stat there;
    if (name[0] == '.' || (!folders && !is_png(name)))
        return false;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &there) == 0 && (S_ISDIR(there.st_mode) != 0) == folders;
}

/* The names in a folder, sorted. */
static bool list_names(const char *folder, bool folders, name_list *list, char *message)
{
    *list = (name_list){NULL, 0, 0};
    DIR *const dir = opendir(folder);
    if (dir == NULL)
        return picture_wrong(message, "%.160s: %s", folder, strerror(errno));
    bool fine = true;
    for (const struct dirent *entry = readdir(dir); entry != NULL && fine; entry = readdir(dir))
        if (is_wanted(folder, entry->d_name, folders))
            fine = list->count < FILES_MAX && add_name(list, entry->d_name);
    closedir(dir);
    if (!fine)
        return picture_wrong(message, "%.160s: too many names for the memory", folder);
    if (list->count > 0)
        qsort(list->names, list->count, sizeof *list->names, by_name);
    return true;
}

/* ------------------------------------------------------------- pictures ----- */

/* Reads and scales a file into the next picture of the set. */
static bool add_picture(const char *path, int label, picture_set *set, size_t *room, char *message)
{
    picture read;
    if (!png_file_read(path, &read, message))
        return false;
    if (set->channels == 0)
        set->channels = read.channels >= 3 ? 3 : 1;
    picture scaled = picture_resize(&read, set->rows, set->columns);
    picture_free(&read);
    const size_t bytes = picture_set_bytes(set), count = (size_t)set->count;
    size_t label_room = *room;
    uint8_t *const pixels = mhai_array_grow(set->pixels, room, count + 1, bytes);
    set->pixels = pixels != NULL ? pixels : set->pixels;
    uint16_t *const labels =
        mhai_array_grow(set->labels, &label_room, count + 1, sizeof *set->labels);
    set->labels = labels != NULL ? labels : set->labels;
    const bool fine = scaled.pixels && pixels && labels;
    if (fine) {
        picture_planes(&scaled, set->channels, set->pixels + count * bytes);
        set->labels[set->count++] = (uint16_t)label;
    }
    picture_free(&scaled);
    return fine || picture_wrong(message, "%.160s: out of memory", path);
}

static bool add_class(const char *folder, const char *name, int label, picture_set *set,
                      size_t *room, char *message)
{
    char inside[PATH_BYTES], path[2 * PATH_BYTES];
    name_list files;
    snprintf(inside, sizeof inside, "%s/%s", folder, name);
    bool fine = list_names(inside, false, &files, message);
    for (size_t n = 0; fine && n < files.count; n++) {
        snprintf(path, sizeof path, "%s/%s", inside, files.names[n]);
        fine = add_picture(path, label, set, room, message);
    }
    free_names(&files);
    return fine;
}

/* The number of a class by its name; -1 if there is none. */
static int find_class(const picture_set *set, const char *name)
{
    for (int n = 0; n < set->classes; n++)
        if (strcmp(set->names[n], name) == 0)
            return n;
    return -1;
}

/* The classes of the training set are the folders that are there. */
static bool name_classes(const char *folder, const name_list *list, picture_set *set, char *message)
{
    if (list->count < 2 || list->count > PICTURE_SET_CLASSES_MAX)
        return picture_wrong(
            message,
            "%.120s: %zu folders; a set of pictures has IDX files, CIFAR-10's files, or a "
            "folder of PNG files for each of 2 to %d classes",
            folder, list->count, PICTURE_SET_CLASSES_MAX);
    set->names = calloc(list->count, sizeof *set->names);
    if (set->names == NULL)
        return picture_wrong(message, "out of memory");
    set->classes = (int)list->count;
    for (int n = 0; n < set->classes; n++) {
        if (strlen(list->names[n]) >= PICTURE_SET_NAME_MAX)
            return picture_wrong(message, "%.60s...: the name of a class has at most %d bytes",
                                 list->names[n], PICTURE_SET_NAME_MAX - 1);
        snprintf(set->names[n], sizeof set->names[n], "%s", list->names[n]);
    }
    return true;
}

/* A part, whose classes are those of `like` unless that is NULL. */
static bool open_part(const char *folder, const picture_set *like, int side, picture_set *set,
                      char *message)
{
    name_list classes;
    size_t room = 0;
    *set = (picture_set){.rows = side, .columns = side, .channels = like ? like->channels : 0};
    bool fine = list_names(folder, true, &classes, message);
    if (fine && like == NULL)
        fine = name_classes(folder, &classes, set, message);
    for (size_t n = 0; fine && n < classes.count; n++) {
        const int label = find_class(like ? like : set, classes.names[n]);
        fine = label >= 0
                   ? add_class(folder, classes.names[n], label, set, &room, message)
                   : picture_wrong(message, "%.120s/%.60s: no class of the training has this name",
                                   folder, classes.names[n]);
    }
    free_names(&classes);
    if (fine && set->count == 0)
        return picture_wrong(message, "%.160s: there are no PNG files in its folders", folder);
    return fine;
}

static bool copy_names(const picture_set *from, picture_set *to, char *message)
{
    to->names = malloc((size_t)from->classes * sizeof *to->names);
    if (to->names == NULL)
        return picture_wrong(message, "out of memory");
    memcpy(to->names, from->names, (size_t)from->classes * sizeof *to->names);
    to->classes = from->classes;
    return true;
}

bool picture_folder_open(const char *folder, int side, picture_set *train, picture_set *test,
                         char *message)
{
    char inside[PATH_BYTES];
    struct stat there;
    side = side > 0 ? side : PICTURE_FOLDER_SIDE;
    snprintf(inside, sizeof inside, "%s/train", folder);
    if (stat(inside, &there) != 0)
        return open_part(folder, NULL, side, train, message);
    if (!open_part(inside, NULL, side, train, message))
        return false;
    snprintf(inside, sizeof inside, "%s/test", folder);
    return stat(inside, &there) != 0 ||
           (open_part(inside, train, side, test, message) && copy_names(train, test, message));
}
