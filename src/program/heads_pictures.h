/* SPDX-License-Identifier: MIT */
/* mha heads for models that read pictures: where on the picture every head looks. */
#ifndef PROGRAM_HEADS_PICTURES_H
#define PROGRAM_HEADS_PICTURES_H

#include "program/heads_setup.h"

/* Measures all heads on the texts of the setup, which are pictures, and prints a table of them, or
 * JSON. Returns the exit code. */
int heads_pictures(const heads_setup *setup, bool as_json);

#endif
