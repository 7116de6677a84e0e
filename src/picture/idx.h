/* SPDX-License-Identifier: MIT */
/*
 * MNIST's files. One of pictures is, as big-endian numbers of 32 bits, 0x803, the count, rows and
 * columns, then a byte per pixel; one of labels is 0x801, the count, then a byte per label.
 */
#ifndef PICTURE_IDX_H
#define PICTURE_IDX_H

#include "picture/picture_set.h"

/* Whether a folder has such files. */
bool idx_is_in(const char *folder);
/* picture_set_open() of such a folder. */
bool idx_open(const char *folder, picture_set *train, picture_set *test, char *message);

/* One part from the bytes of its two files, whose names are for messages. */
bool idx_read(const uint8_t *pictures, size_t picture_bytes, const char *picture_name,
              const uint8_t *labels, size_t label_bytes, const char *label_name, picture_set *set,
              char *message);

#endif
