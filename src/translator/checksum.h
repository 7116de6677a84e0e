/* SPDX-License-Identifier: MIT */
/* Checksums of model files and checkpoints, to detect damage: FNV-1a over elements instead of
 * bytes, so that the byte order of the machine does not matter. */
#ifndef TRANSLATOR_CHECKSUM_H
#define TRANSLATOR_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "format/safetensors.h"

/* Each continues from `hash` and returns the new hash. */
uint64_t checksum_floats(uint64_t hash, const float *values, size_t count);
uint64_t checksum_doubles(uint64_t hash, const double *values, size_t count);
uint64_t checksum_pair(uint64_t hash, const safetensors_pair *pair);

/* The checksum as text, as it is stored in files under CHECKSUM_KEY. */
enum { CHECKSUM_TEXT_MAX = 17 };
void checksum_text(uint64_t hash, char text[CHECKSUM_TEXT_MAX]);

#define CHECKSUM_KEY "checksum"
#define CHECKSUM_WRONG "damaged: its checksum does not agree"

#endif
