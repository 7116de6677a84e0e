/* SPDX-License-Identifier: MIT */
/* MNIST's files: the header is checked against the length of the file before memory is taken. */
#include "picture/idx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "picture/byte_file.h"

enum { PATH_BYTES = 4096, PICTURE_HEADER = 16, LABEL_HEADER = 8 };

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* -------------------------------------------------------------- content ----- */

static bool check_pictures(const uint8_t *bytes, size_t size, const char *name, char *message)
{
    if (size < PICTURE_HEADER || number_at(bytes) != 0x803)
        return picture_wrong(
            message, "%.120s: not an IDX file of pictures (it must begin with 0, 0, 8, 3)", name);
    const uint32_t count = number_at(bytes + 4), rows = number_at(bytes + 8);
    const uint32_t columns = number_at(bytes + 12);
    if (rows < 1 || rows > PICTURE_SET_SIDE_MAX || columns < 1 || columns > PICTURE_SET_SIDE_MAX)
        return picture_wrong(message,
                             "%.120s: pictures of %" PRIu32 " x %" PRIu32
                             " pixels, from byte 8 on; a side "
                             "must have 1 to %d",
                             name, rows, columns, PICTURE_SET_SIDE_MAX);
    if ((uint64_t)count * rows * columns != size - PICTURE_HEADER)
        return picture_wrong(message,
                             "%.120s: %" PRIu32 " pictures of %" PRIu32 " x %" PRIu32
                             " need %" PRIu64 " bytes after the header, but there are %zu",
                             name, count, rows, columns, (uint64_t)count * rows * columns,
                             size - PICTURE_HEADER);
    return count > 0 || picture_wrong(message, "%.120s: it has no pictures", name);
}

static bool check_labels(const uint8_t *bytes, size_t size, const char *name, uint32_t count,
                         char *message)
{
    if (size < LABEL_HEADER || number_at(bytes) != 0x801)
        return picture_wrong(
            message, "%.120s: not an IDX file of labels (it must begin with 0, 0, 8, 1)", name);
    if (number_at(bytes + 4) != size - LABEL_HEADER)
        return picture_wrong(message, "%.120s: %" PRIu32 " labels, says byte 4, but there are %zu",
                             name, number_at(bytes + 4), size - LABEL_HEADER);
    return size - LABEL_HEADER == count ||
           picture_wrong(message, "%.120s: %zu labels for %" PRIu32 " pictures", name,
                         size - LABEL_HEADER, count);
}

bool idx_read(const uint8_t *pictures, size_t picture_bytes, const char *picture_name,
              const uint8_t *labels, size_t label_bytes, const char *label_name, picture_set *set,
              char *message)
{
    *set = (picture_set){0};
    if (!check_pictures(pictures, picture_bytes, picture_name, message) ||
        !check_labels(labels, label_bytes, label_name, number_at(pictures + 4), message))
        return false;
    const size_t count = number_at(pictures + 4);
    int classes = 1;
    for (size_t n = 0; n < count; n++)
        classes = labels[LABEL_HEADER + n] + 1 > classes ? labels[LABEL_HEADER + n] + 1 : classes;
    *set = (picture_set){.rows = (int)number_at(pictures + 8),
                         .columns = (int)number_at(pictures + 12),
                         .channels = 1};
    if (!picture_set_allocate(set, (ptrdiff_t)count, classes))
        return picture_wrong(message, "%.120s: out of memory", picture_name);
    memcpy(set->pixels, pictures + PICTURE_HEADER, picture_bytes - PICTURE_HEADER);
    for (size_t n = 0; n < count; n++)
        set->labels[n] = labels[LABEL_HEADER + n];
    picture_set_number_classes(set);
    return true;
}

/* --------------------------------------------------------------- files ----- */

/* The path of a file, or of the same with ".gz" where that is there. */
static bool find(const char *folder, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, PATH_BYTES, "%s/%s.gz", folder, name);
    return access(path, F_OK) == 0;
}

bool idx_is_in(const char *folder)
{
    char path[PATH_BYTES];
    return find(folder, "train-images-idx3-ubyte", path);
}

static bool open_part(const char *folder, const char *part, picture_set *set, char *message)
{
    char name[64], paths[2][PATH_BYTES];
    byte_file pictures, labels = {NULL, 0};
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    find(folder, name, paths[0]);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    find(folder, name, paths[1]);
    const bool fine = byte_file_read(paths[0], &pictures, message) &&
                      byte_file_read(paths[1], &labels, message) &&
                      idx_read(pictures.data, pictures.size, paths[0], labels.data, labels.size,
                               paths[1], set, message);
    free(pictures.data);
    free(labels.data);
    return fine;
}

bool idx_open(const char *folder, picture_set *train, picture_set *test, char *message)
{
    char path[PATH_BYTES];
    if (!open_part(folder, "train", train, message))
        return false;
    if (!find(folder, "t10k-images-idx3-ubyte", path))
        return true;
    if (!open_part(folder, "t10k", test, message))
        return false;
    if (test->rows != train->rows || test->columns != train->columns ||
        test->classes > train->classes)
        return picture_wrong(
            message,
            "%.120s: the pictures for the test have other sizes or classes than those of "
            "the training",
            folder);
    picture_class_name *const names = calloc((size_t)train->classes, sizeof *names);
    if (names == NULL)
        return picture_wrong(message, "out of memory");
    free(test->names);
    test->names = names;
    test->classes = train->classes;
    picture_set_number_classes(test);
    return true;
}
