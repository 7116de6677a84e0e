/* SPDX-License-Identifier: MIT */
/* Builds PNG files chunk by chunk, valid or invalid. */
#ifndef MHA_PNG_BUILDER_H
#define MHA_PNG_BUILDER_H

#include <stddef.h>
#include <stdint.h>

enum { PNG_BYTES_MAX = 4096 };

typedef struct png_builder {
    uint8_t bytes[PNG_BYTES_MAX];
    size_t size;
} png_builder;

/* The colour types of the format. */
enum { PNG_GREY = 0, PNG_COLOUR = 2, PNG_PALETTE = 3, PNG_GREY_ALPHA = 4, PNG_COLOUR_ALPHA = 6 };

/* Signature and header. */
png_builder png_begin(uint32_t columns, uint32_t rows, int depth, int type, int interlaced);

/* A chunk, with its checksum. */
void png_chunk(png_builder *png, const char kind[4], const void *data, size_t size);

/* A chunk IDAT, stored without compression: the pixels, each row after its filter byte. */
void png_pixels(png_builder *png, const void *data, size_t size);

void png_end(png_builder *png);

#endif
