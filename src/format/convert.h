/* SPDX-License-Identifier: MIT */
/*
 * Conversions between f32 and the narrow element types, in software, so that the result is the same
 * on every machine. convert_* works on single numbers, element_* on elements of an array.
 */
#ifndef FORMAT_CONVERT_H
#define FORMAT_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include <mha/mha.h>

/* Round to nearest, ties to even. Values that are too large become infinity, NaN stays NaN. */
uint16_t convert_f32_to_f16(float x);
uint16_t convert_f32_to_bf16(float x);

/* Exact. */
float convert_f16_to_f32(uint16_t bits);
float convert_bf16_to_f32(uint16_t bits);

/* Returns element `index` of an array of `type`. For i8 this is the stored integer, without its
 * scale. An unknown type gives NaN. */
double element_load(mha_dtype type, const void *data, ptrdiff_t index);

/* Stores `value` as element `index`. f16 and bf16 are rounded to f32 first; i8 is rounded to the
 * nearest integer and clamped to -127 .. 127. */
void element_store(mha_dtype type, void *data, ptrdiff_t index, double value);

/* Returns "f32", "f16", "bf16", "f64" or "i8", and "?" for an unknown type. */
const char *dtype_name(mha_dtype type);

#endif
