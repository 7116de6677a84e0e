/* SPDX-License-Identifier: MIT */
/* Element types in software: the same result on every machine, whatever it has in hardware. */
#ifndef FORMAT_CONVERT_H
#define FORMAT_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include <mha/mha.h>

/* Round to nearest, ties to even; too large gives infinity; NaN stays NaN. */
uint16_t convert_f32_to_f16(float x);
uint16_t convert_f32_to_bf16(float x);

/* Exact. */
float convert_f16_to_f32(uint16_t bits);
float convert_bf16_to_f32(uint16_t bits);

/* Element `index` of an array of `type`; of i8 the stored number, without its scale. */
double element_load(mha_dtype type, const void *data, ptrdiff_t index);

/* Rounds to f32 first, then to the narrower types. */
void element_store(mha_dtype type, void *data, ptrdiff_t index, double value);

/* "f32", "f16", "bf16", "f64", "i8"; "?" for anything else. */
const char *dtype_name(mha_dtype type);

#endif
