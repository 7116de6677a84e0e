/* SPDX-License-Identifier: MIT */
/* CIFAR-10's binary files. Any number of data_batch files from 1 on is one training set. */
#include "picture/cifar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "picture/byte_file.h"

enum {
    PATH_BYTES = 4096,
    SIDE = 32,
    CHANNELS = 3,
    CLASSES = 10,
    PIXELS = CHANNELS * SIDE * SIDE,
    RECORD = 1 + PIXELS,
    FILES_MAX = 5
};

/* -------------------------------------------------------------- content ----- */

static bool check(const uint8_t *bytes, size_t size, const char *name, char *message)
{
    if (size == 0 || size % RECORD != 0)
        return picture_wrong(
            message,
            "%.120s: %zu bytes are not a number of records of %d bytes, as CIFAR-10's "
            "binary files have",
            name, size, RECORD);
    for (size_t at = 0; at < size; at += RECORD)
        if (bytes[at] >= CLASSES)
            return picture_wrong(message, "%.120s: picture %zu has class %d, but there are only %d",
                                 name, at / RECORD, bytes[at], CLASSES);
    return true;
}

bool cifar_read(const uint8_t *bytes, size_t size, const char *name, picture_set *set,
                char *message)
{
    *set = (picture_set){.rows = SIDE, .columns = SIDE, .channels = CHANNELS};
    if (!check(bytes, size, name, message))
        return false;
    const size_t count = size / RECORD;
    if (!picture_set_allocate(set, (ptrdiff_t)count, CLASSES))
        return picture_wrong(message, "%.120s: out of memory", name);
    for (size_t n = 0; n < count; n++) {
        set->labels[n] = bytes[n * RECORD];
        memcpy(set->pixels + n * PIXELS, bytes + n * RECORD + 1, PIXELS);
    }
    picture_set_number_classes(set);
    return true;
}

/* --------------------------------------------------------------- files ----- */

static bool find(const char *folder, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

bool cifar_is_in(const char *folder)
{
    char path[PATH_BYTES];
    return find(folder, "data_batch_1.bin", path);
}

/* Adds the bytes of a file to `all`. */
static bool append(const char *path, byte_file *all, char *message)
{
    byte_file one;
    if (!byte_file_read(path, &one, message))
        return false;
    uint8_t *const more = realloc(all->data, all->size + one.size + 1);
    if (more != NULL) {
        all->data = more;
        memcpy(all->data + all->size, one.data, one.size);
        all->size += one.size;
    }
    free(one.data);
    return more != NULL || picture_wrong(message, "%.120s: out of memory", path);
}

/* The names of the classes, a line each; without the file they are numbers. */
static void read_names(const char *folder, picture_set *set)
{
    char path[PATH_BYTES], line[256];
    if (!find(folder, "batches.meta.txt", path))
        return;
    FILE *const file = fopen(path, "r");
    for (int n = 0; file != NULL && n < set->classes && fgets(line, sizeof line, file); n++) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0')
            snprintf(set->names[n], sizeof set->names[n], "%.*s", PICTURE_SET_NAME_MAX - 1, line);
    }
    if (file != NULL)
        fclose(file);
}

static bool open_files(const char *folder, const char *const *names, int count, picture_set *set,
                       char *message)
{
    char path[PATH_BYTES];
    byte_file all = {NULL, 0};
    bool fine = true;
    for (int n = 0; n < count && fine; n++)
        if (n == 0 || find(folder, names[n], path)) {
            find(folder, names[n], path);
            fine = append(path, &all, message);
        }
    fine = fine && cifar_read(all.data, all.size, path, set, message);
    free(all.data);
    if (fine)
        read_names(folder, set);
    return fine;
}

bool cifar_open(const char *folder, picture_set *train, picture_set *test, char *message)
{
    static const char *const trains[FILES_MAX] = {"data_batch_1.bin", "data_batch_2.bin",
                                                  "data_batch_3.bin", "data_batch_4.bin",
                                                  "data_batch_5.bin"};
    static const char *const tests[] = {"test_batch.bin"};
    char path[PATH_BYTES];
    return open_files(folder, trains, FILES_MAX, train, message) &&
           (!find(folder, tests[0], path) || open_files(folder, tests, 1, test, message));
}
