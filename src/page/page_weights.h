/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the page as text, which needs no escapes in JSON.
 *
 * Floats are base64 of their little-endian bytes: exactly the bits that were computed. Weights of
 * pages that would become too large have a compact form. Each row begins with its largest weight m,
 * a float as above in six letters. Then each weight w that the row can see has two letters of the
 * base64 alphabet, the high one first: q = round(4095 sqrt(w / m)). The error of m (q / 4095)^2 is
 * at most
 *
 *      sqrt(w m) / 4095 + m / 67,000,000
 *
 * which is 0.025 % of the largest weight of a row, and 0.25 % of one that is a hundredth of it.
 */
#ifndef PAGE_WEIGHTS_H
#define PAGE_WEIGHTS_H

#include <stddef.h>
#include <stdio.h>

#include "format/json_writer.h"
#include "heads/head_metrics.h"

enum { PAGE_PICTURE_SIDE = 64 };

/* All of these return texts for free(); NULL: out of memory. */
char *page_bytes_text(const unsigned char *bytes, size_t count);
char *page_floats_text(const float *values, size_t count);

/* The same, or, if all of them are 16-bit floats (f16), "." and base64 of those: half as long, and
 * no bit is lost. */
char *page_numbers_text(const float *values, size_t count);
char *page_compact_text(const head_matrix *m);

/* A small picture of a head, at most PAGE_PICTURE_SIDE rows and columns of cells. A cell is one
 * letter: round(63 sqrt(w)) of the largest weight w in it. */
char *page_picture_text(const head_matrix *m);

/* Writes the base64 of some bytes. */
void page_write_bytes(FILE *file, const unsigned char *bytes, size_t size);

/* Writes such a text under a key and frees it. False if the text is NULL (out of memory). */
bool page_put_text(json *j, const char *key, char *text);

#endif
