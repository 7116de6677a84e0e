/* SPDX-License-Identifier: MIT */
/* Writes PNG signature, chunks, checksums and an uncompressed zlib stream (png_builder.h). */
#include "support/png_builder.h"

#include <string.h>

static void put(png_builder *png, const void *data, size_t size)
{
    if (png->size + size > sizeof png->bytes)
        return;
    if (size > 0)
        memcpy(png->bytes + png->size, data, size);
    png->size += size;
}

static void put_number(png_builder *png, uint32_t n)
{
    const uint8_t bytes[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                              (uint8_t)n};
    put(png, bytes, sizeof bytes);
}

static uint32_t checksum(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t n = 0; n < size; n++) {
        crc ^= data[n];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

void png_chunk(png_builder *png, const char kind[4], const void *data, size_t size)
{
    put_number(png, (uint32_t)size);
    const size_t begin = png->size;
    put(png, kind, 4);
    put(png, data, size);
    put_number(png, checksum(png->bytes + begin, png->size - begin));
}

png_builder png_begin(uint32_t columns, uint32_t rows, int depth, int type, int interlaced)
{
    png_builder png = {.size = 0}, header = {.size = 0};
    const uint8_t rest[5] = {(uint8_t)depth, (uint8_t)type, 0, 0, (uint8_t)interlaced};
    put(&png, "\x89PNG\r\n\x1a\n", 8);
    put_number(&header, columns);
    put_number(&header, rows);
    put(&header, rest, sizeof rest);
    png_chunk(&png, "IHDR", header.bytes, header.size);
    return png;
}

/* A zlib stream of one stored block. */
void png_pixels(png_builder *png, const void *data, size_t size)
{
    png_builder stream = {.size = 0};
    const uint8_t begin[7] = {
        0x78, 0x01, 1, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size, (uint8_t)(~size >> 8)};
    uint32_t a = 1, b = 0;
    for (size_t n = 0; n < size; n++) {
        a = (a + ((const uint8_t *)data)[n]) % 65521;
        b = (b + a) % 65521;
    }
    put(&stream, begin, sizeof begin);
    put(&stream, data, size);
    put_number(&stream, b << 16 | a);
    png_chunk(png, "IDAT", stream.bytes, stream.size);
}

void png_end(png_builder *png)
{
    png_chunk(png, "IEND", NULL, 0);
}
