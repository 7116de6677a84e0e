/* SPDX-License-Identifier: MIT */
/* What tells files of models and of trainings that a bit of them has changed: FNV-1a by elements,
 * the same on machines of either byte order. */
#ifndef MODEL_CHECKSUM_H
#define MODEL_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "format/safetensors.h"

/* Each goes on from `hash`. */
uint64_t checksum_floats(uint64_t hash, const float *values, size_t count);
uint64_t checksum_doubles(uint64_t hash, const double *values, size_t count);
uint64_t checksum_pair(uint64_t hash, const safetensors_pair *pair);

/* As it stands in a file, under the key that follows. */
enum { CHECKSUM_TEXT_MAX = 17 };
void checksum_text(uint64_t hash, char text[CHECKSUM_TEXT_MAX]);

#define CHECKSUM_KEY "checksum"
#define CHECKSUM_WRONG "damaged: its checksum does not agree"

#endif
