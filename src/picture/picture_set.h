/* SPDX-License-Identifier: MIT */
/*
 * A set of pictures of one size, each with a class. picture_set_open() recognises by the files of a
 * folder what it is:
 *
 *      train-images-idx3-ubyte[.gz] ...   MNIST's form                                   idx.c
 *      data_batch_1.bin ...               CIFAR-10's binary form                         cifar.c
 *      train/CLASS/NAME.png, test/...     PNG files, a folder per class         picture_folder.c
 *      CLASS/NAME.png                     the same without pictures for a test
 */
#ifndef PICTURE_PICTURE_SET_H
#define PICTURE_PICTURE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "picture/picture.h"

enum {
    PICTURE_SET_SIDE_MAX = 1024,    /* pixels of a side */
    PICTURE_SET_CLASSES_MAX = 1000, /* classes */
    PICTURE_SET_NAME_MAX = 64       /* bytes of the name of a class, with the 0 at its end */
};

typedef char picture_class_name[PICTURE_SET_NAME_MAX];

typedef struct picture_set {
    int rows, columns, channels;
    ptrdiff_t count;
    uint8_t *pixels;  /* [count][channels][rows][columns] */
    uint16_t *labels; /* [count], below `classes` */
    int classes;
    picture_class_name *names; /* [classes] */
} picture_set;

/* The bytes of one picture. */
static inline size_t picture_set_bytes(const picture_set *set)
{
    return (size_t)set->rows * (size_t)set->columns * (size_t)set->channels;
}

/* Reads a folder. `side` is the size that PNG files are scaled to (0: 32); other files have one. A
 * set without pictures for a test has an empty `test`. Both have the same sizes and classes. False
 * with a sentence in `message`, PICTURE_MESSAGE_MAX bytes; nothing is left then. */
bool picture_set_open(const char *folder, int side, picture_set *train, picture_set *test,
                      char *message);

/* Memory for `count` pictures of the sizes of `set`, with labels of 0, and for the names of its
 * classes. False if out of memory; then nothing is left. */
bool picture_set_allocate(picture_set *set, ptrdiff_t count, int classes);
void picture_set_free(picture_set *set);

/* Names the classes "0", "1", ... */
void picture_set_number_classes(picture_set *set);

#endif
