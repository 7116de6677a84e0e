/* SPDX-License-Identifier: MIT */
/* A folder of PNG files per class, whose name is that of the class. */
#ifndef PICTURE_PICTURE_FOLDER_H
#define PICTURE_PICTURE_FOLDER_H

#include "picture/picture_set.h"

enum { PICTURE_FOLDER_SIDE = 32 };

/* picture_set_open() of such a folder: of one that has "train", and perhaps "test", or else of one
 * that has the folders of the classes itself. Classes and files are in the order of their names.
 * The first picture decides whether all are grey or in colour. */
bool picture_folder_open(const char *folder, int side, picture_set *train, picture_set *test,
                         char *message);

#endif
