/* SPDX-License-Identifier: MIT */
/*
 * CIFAR-10's binary files: records of a byte for the class and 3 x 32 x 32 bytes for red, green and
 * blue. data_batch_1.bin to data_batch_5.bin are for training, test_batch.bin for a test, and
 * batches.meta.txt has the names of the classes.
 */
#ifndef PICTURE_CIFAR_H
#define PICTURE_CIFAR_H

#include "picture/picture_set.h"

/* Whether a folder has such files. */
bool cifar_is_in(const char *folder);
/* picture_set_open() of such a folder. */
bool cifar_open(const char *folder, picture_set *train, picture_set *test, char *message);

/* A set of the records of a file, whose name is for messages. */
bool cifar_read(const uint8_t *bytes, size_t size, const char *name, picture_set *set,
                char *message);

#endif
