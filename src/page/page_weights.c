/* SPDX-License-Identifier: MIT */
/*
 * Three encodings in the letters of base64: floats bit by bit, compact weights (two letters each),
 * small pictures (one letter per cell). web/data.js reads them.
 */
#include "page/page_weights.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* -------------------------------------------------------------- floats ----- */

typedef struct base64 {
    char *text;
    size_t used;
    uint32_t bits;
    int held; /* bytes in `bits`, which is 24 bits wide */
} base64;

/* Writes the four letters of up to three bytes; those after `letters` are padding. */
static void put_group(base64 *b, int letters)
{
    for (int n = 0; n < 4; n++)
        b->text[b->used++] = n < letters ? alphabet[b->bits >> (18 - 6 * n) & 63] : '=';
    b->bits = 0;
    b->held = 0;
}

static void put_byte(base64 *b, unsigned byte)
{
    b->bits |= byte << (16 - 8 * b->held);
    if (++b->held == 3)
        put_group(b, 4);
}

/* Writes what is held, and ends the text. */
static char *finish(base64 *b)
{
    if (b->held > 0)
        put_group(b, b->held + 1);
    b->text[b->used] = '\0';
    return b->text;
}

char *page_bytes_text(const unsigned char *bytes, size_t count)
{
    base64 b = {.text = malloc((count + 2) / 3 * 4 + 1)};
    if (b.text == NULL)
        return NULL;
    for (size_t n = 0; n < count; n++)
        put_byte(&b, bytes[n]);
    return finish(&b);
}

char *page_floats_text(const float *values, size_t count)
{
    base64 b = {.text = malloc((4 * count + 2) / 3 * 4 + 1)};
    if (b.text == NULL)
        return NULL;
    for (size_t n = 0; n < count; n++)
        for (int byte = 0; byte < 4; byte++)
            put_byte(&b, float_bits(values[n]) >> 8 * byte & 255);
    return finish(&b);
}

/* The bits of a float as f16; false: it is none. */
static bool half_bits(float value, unsigned *half)
{
    const uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000u;
    const int exponent = (int)(bits >> 23 & 255) - 127;
    const uint32_t fraction = bits & 0x7fffffu;
    if (exponent >= -14 && exponent <= 15 && (fraction & 0x1fffu) == 0) {
        *half = sign | (uint32_t)(exponent + 15) << 10 | fraction >> 13;
        return true;
    }
    const float steps = fabsf(value) * 16777216.0f; /* f16 below 2^-14 are multiples of 2^-24 */
    *half = sign | (unsigned)(steps < 1024.0f ? steps : 0.0f);
    return steps < 1024.0f && steps == floorf(steps);
}

char *page_numbers_text(const float *values, size_t count)
{
    base64 b = {.text = malloc((2 * count + 2) / 3 * 4 + 2)};
    unsigned half;
    if (b.text == NULL)
        return NULL;
    b.text[b.used++] = '.';
    for (size_t n = 0; n < count; n++) {
        if (!half_bits(values[n], &half)) {
            free(b.text);
            return page_floats_text(values, count);
        }
        put_byte(&b, half & 255);
        put_byte(&b, half >> 8);
    }
    return finish(&b);
}

void page_write_bytes(FILE *file, const unsigned char *bytes, size_t size)
{
    char group[4];
    base64 b = {.text = group};
    for (size_t n = 0; n < size; n++) {
        put_byte(&b, bytes[n]);
        if (b.held == 0)
            fwrite(group, 1, sizeof group, file);
        b.used = 0;
    }
    if (b.held > 0) {
        put_group(&b, b.held + 1);
        fwrite(group, 1, sizeof group, file);
    }
}

/* ------------------------------------------------------------- compact ----- */

enum { SCALE_LETTERS = 6, LEVELS = 4095 };

static float largest_of(const float *row, int count)
{
    float largest = 0.0f;
    for (int j = 0; j < count; j++)
        largest = row[j] > largest ? row[j] : largest;
    return largest;
}

/* The letters of a little-endian float: those of its four bytes and two of zero. */
static char *put_scale(char *at, float scale)
{
    const uint32_t bits = float_bits(scale);
    uint64_t bytes = 0;
    for (int n = 0; n < 4; n++)
        bytes = bytes << 8 | (bits >> 8 * n & 255);
    bytes <<= 4;
    for (int n = 0; n < SCALE_LETTERS; n++)
        *at++ = alphabet[bytes >> (30 - 6 * n) & 63];
    return at;
}

/* Writes a compact row; returns where the next one begins. A row of zeros has q = 0 everywhere. */
static char *put_row(char *at, const float *row, int count)
{
    const float largest = largest_of(row, count);
    const double inverse = largest > 0.0f ? 1.0 / (double)largest : 0.0;
    at = put_scale(at, largest);
    for (int j = 0; j < count; j++) {
        const unsigned q = (unsigned)(LEVELS * sqrt((double)row[j] * inverse) + 0.5);
        *at++ = alphabet[q >> 6 & 63];
        *at++ = alphabet[q & 63];
    }
    return at;
}

char *page_compact_text(const head_matrix *m)
{
    size_t size = 1;
    for (int i = 0; i < m->rows; i++)
        size += SCALE_LETTERS + 2 * (size_t)head_seen(m, i);
    char *const text = malloc(size);
    char *at = text;
    if (text == NULL)
        return NULL;
    for (int i = 0; i < m->rows; i++)
        at = put_row(at, m->weights + (ptrdiff_t)i * m->columns, head_seen(m, i));
    *at = '\0';
    return text;
}

/* ------------------------------------------------------------- picture ----- */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* The largest weight of rows [i0, i1) and columns [j0, j1). */
static float largest_in(const head_matrix *m, int i0, int i1, int j0, int j1)
{
    float largest = 0.0f;
    for (int i = i0; i < i1; i++) {
        const float here = largest_of(m->weights + (ptrdiff_t)i * m->columns + j0, j1 - j0);
        largest = here > largest ? here : largest;
    }
    return largest;
}

char *page_picture_text(const head_matrix *m)
{
    const int height = smaller(m->rows, PAGE_PICTURE_SIDE);
    const int width = smaller(m->columns, PAGE_PICTURE_SIDE);
    char *const text = malloc((size_t)height * (size_t)width + 1);
    char *at = text;
    if (text == NULL)
        return NULL;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const float w = largest_in(m, y * m->rows / height, (y + 1) * m->rows / height,
                                       x * m->columns / width, (x + 1) * m->columns / width);
            *at++ = alphabet[smaller(63, (int)(63.0 * sqrt((double)w) + 0.5))];
        }
    *at = '\0';
    return text;
}

/* ------------------------------------------------------------- writing ----- */

bool page_put_text(json *j, const char *key, char *text)
{
    if (text == NULL)
        return false;
    json_string(j, key, text);
    free(text);
    return true;
}
