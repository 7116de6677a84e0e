/* SPDX-License-Identifier: MIT */
/*
 * Writes safetensors files. All items and pairs are checked and sorted first; then the header is
 * built in memory, so that its length is known; last the file is written under a temporary name and
 * renamed (base/replace_file.h). Nothing is written to disk before everything has been checked.
 */
#include "format/safetensors_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/replace_file.h"
#include "format/json_reader.h"

/* Copies of the items and pairs in the order of the file, and the header under construction. */
typedef struct writer {
    const safetensors_report *report;
    safetensors_item *items;
    size_t count;
    safetensors_pair *pairs;
    size_t pair_count;
    char *text; /* the header: `used` of `room` bytes */
    size_t used, room;
    bool failed; /* there was no memory for the text */
    char *name;  /* the temporary name of the new file */
    size_t name_size;
} writer;

/* ---------------------------------------------------------------- checks ----- */

static mha_status check_text(const writer *w, const char *text, const char *what)
{
    if (!text)
        return safetensors_fail(w->report, MHA_ERR_NULL, "%s is NULL", what);
    if (!mhai_utf8_valid(text, strlen(text)))
        return safetensors_fail(w->report, MHA_ERR_FORMAT, "%s is not UTF-8", what);
    return MHA_OK;
}

static uint64_t bytes_of(const safetensors_item *item)
{
    uint64_t bytes = 0;
    safetensors_bytes(item->type, item->rank, item->shape, &bytes);
    return bytes;
}

static mha_status check_item(const writer *w, const safetensors_item *item)
{
    uint64_t bytes;
    const mha_status named = check_text(w, item->name, "the name of a tensor");
    if (named != MHA_OK)
        return named;
    const safetensors_shown shown = safetensors_show(item->name);
    if (strcmp(item->name, SAFETENSORS_METADATA) == 0)
        return safetensors_fail(w->report, MHA_ERR_FORMAT, "a tensor cannot be named %s",
                                shown.text);
    if ((unsigned)item->type >= SAFETENSORS_TYPES)
        return safetensors_fail(w->report, MHA_ERR_DTYPE, "\"%s\": unknown type %d", shown.text,
                                (int)item->type);
    if (item->rank && !item->shape)
        return safetensors_fail(w->report, MHA_ERR_NULL, "\"%s\": shape is NULL", shown.text);
    const mha_status status = safetensors_bytes(item->type, item->rank, item->shape, &bytes);
    if (status == MHA_ERR_SHAPE)
        return safetensors_fail(w->report, status, "\"%s\": its elements end within a byte",
                                shown.text);
    if (status != MHA_OK || bytes > SIZE_MAX)
        return safetensors_fail(w->report, MHA_ERR_OVERFLOW, "\"%s\" does not fit in memory",
                                shown.text);
    if (bytes && !item->data)
        return safetensors_fail(w->report, MHA_ERR_NULL, "\"%s\": data is NULL", shown.text);
    return MHA_OK;
}

static mha_status check_pair(const writer *w, const safetensors_pair *pair)
{
    const mha_status status = check_text(w, pair->key, "a key of the metadata");
    return status != MHA_OK ? status : check_text(w, pair->value, "a value of the metadata");
}

/* ----------------------------------------------------------------- order ----- */

static int compare_names(const void *left, const void *right)
{
    const safetensors_item *const a = left, *const b = right;
    return strcmp(a->name, b->name);
}

static int compare_places(const void *left, const void *right)
{
    const safetensors_item *const a = left, *const b = right;
    const unsigned bits_a = safetensors_type_bits(a->type), bits_b = safetensors_type_bits(b->type);
    return bits_a != bits_b ? (bits_a > bits_b ? -1 : 1) : compare_names(left, right);
}

static int compare_pairs(const void *left, const void *right)
{
    const safetensors_pair *const a = left, *const b = right;
    return strcmp(a->key, b->key);
}

static mha_status twice(const writer *w, const char *name)
{
    return safetensors_fail(w->report, MHA_ERR_FORMAT, "DuplicateKey: \"%s\" occurs twice",
                            safetensors_show(name).text);
}

/* Sorts by name first, which brings duplicates together, and then into the order of the file. */
static mha_status order_items(writer *w, const safetensors_item *items)
{
    for (size_t n = 0; n < w->count; n++) {
        const mha_status status = check_item(w, &items[n]);
        if (status != MHA_OK)
            return status;
        w->items[n] = items[n];
    }
    qsort(w->items, w->count, sizeof *w->items, compare_names);
    for (size_t n = 1; n < w->count; n++)
        if (compare_names(&w->items[n - 1], &w->items[n]) == 0)
            return twice(w, w->items[n].name);
    qsort(w->items, w->count, sizeof *w->items, compare_places);
    return MHA_OK;
}

static mha_status order_pairs(writer *w, const safetensors_pair *pairs)
{
    for (size_t n = 0; n < w->pair_count; n++) {
        const mha_status status = check_pair(w, &pairs[n]);
        if (status != MHA_OK)
            return status;
        w->pairs[n] = pairs[n];
    }
    qsort(w->pairs, w->pair_count, sizeof *w->pairs, compare_pairs);
    for (size_t n = 1; n < w->pair_count; n++)
        if (compare_pairs(&w->pairs[n - 1], &w->pairs[n]) == 0)
            return twice(w, w->pairs[n].key);
    return MHA_OK;
}

/* ---------------------------------------------------------------- header ----- */

/* Appends to the header. After a failure it does nothing; make_header() reports it at the end. */
static void put(writer *w, const char *text, size_t length)
{
    char *const grown = w->failed ? NULL : mhai_array_grow(w->text, &w->room, w->used + length, 1);
    if (!grown) {
        w->failed = true;
        return;
    }
    w->text = grown;
    memcpy(w->text + w->used, text, length);
    w->used += length;
}

__attribute__((format(printf, 2, 3))) static void put_format(writer *w, const char *format, ...)
{
    char text[96];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(w, text, (size_t)length);
}

/* Appends a JSON string. Quotes, backslashes and control characters are escaped. */
static void put_string(writer *w, const char *text)
{
    put(w, "\"", 1);
    for (; *text; text++) {
        const size_t plain = strcspn(text, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"
                                           "\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19"
                                           "\x1a\x1b\x1c\x1d\x1e\x1f");
        put(w, text, plain);
        text += plain;
        if (!*text)
            break;
        put_format(w, *text == '"' || *text == '\\' ? "\\%c" : "\\u%04x", *text);
    }
    put(w, "\"", 1);
}

static void put_item(writer *w, const safetensors_item *item, uint64_t begin, uint64_t end)
{
    put_string(w, item->name);
    put_format(w, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_type_name(item->type));
    for (size_t n = 0; n < item->rank; n++)
        put_format(w, "%s%" PRIu64, n ? "," : "", item->shape[n]);
    put_format(w, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
}

static void put_pairs(writer *w)
{
    put_string(w, SAFETENSORS_METADATA);
    for (size_t n = 0; n < w->pair_count; n++) {
        put(w, n ? "," : ":{", n ? 1 : 2);
        put_string(w, w->pairs[n].key);
        put(w, ":", 1);
        put_string(w, w->pairs[n].value);
    }
    put(w, "}", 1);
}

/* Builds the header, padded with spaces so that the tensors begin at a multiple of 8 bytes. */
static mha_status make_header(writer *w)
{
    uint64_t at = 0;
    put(w, "{", 1);
    if (w->pair_count)
        put_pairs(w);
    for (size_t n = 0; n < w->count; n++) {
        uint64_t end;
        if (__builtin_add_overflow(at, bytes_of(&w->items[n]), &end) || end > INT64_MAX)
            return safetensors_fail(w->report, MHA_ERR_OVERFLOW, "the file would be too large");
        if (n || w->pair_count)
            put(w, ",", 1);
        put_item(w, &w->items[n], at, end);
        at = end;
    }
    put(w, "}       ", 1 + (7 - w->used % 8));
    if (w->failed)
        return safetensors_fail(w->report, MHA_ERR_MEMORY, "out of memory for the header");
    if (w->used > SAFETENSORS_HEADER_MAX)
        return safetensors_fail(w->report, MHA_ERR_FORMAT,
                                "HeaderTooLarge: the header would have %zu bytes; %d are allowed",
                                w->used, SAFETENSORS_HEADER_MAX);
    return MHA_OK;
}

/* ------------------------------------------------------------------ file ----- */

/* Big-endian machines write in pieces, so that they need no converted copy of a whole tensor. */
static int write_data(int fd, safetensors_type type, const unsigned char *data, uint64_t bytes)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return mhai_file_write(fd, data, (size_t)bytes);
    unsigned char piece[4096];
    int error = 0;
    for (uint64_t at = 0; at < bytes && !error; at += sizeof piece) {
        const size_t size = bytes - at < sizeof piece ? (size_t)(bytes - at) : sizeof piece;
        memcpy(piece, data + at, size);
        safetensors_swap(type, piece, size);
        error = mhai_file_write(fd, piece, size);
    }
    return error;
}

static int write_all(const writer *w, int fd)
{
    unsigned char length[SAFETENSORS_LENGTH_BYTES];
    for (int n = 0; n < SAFETENSORS_LENGTH_BYTES; n++)
        length[n] = (unsigned char)((uint64_t)w->used >> 8 * n);
    int error = mhai_file_write(fd, length, sizeof length);
    if (!error)
        error = mhai_file_write(fd, w->text, w->used);
    for (size_t n = 0; n < w->count && !error; n++)
        error = write_data(fd, w->items[n].type, w->items[n].data, bytes_of(&w->items[n]));
    return error;
}

static mha_status write_file(const writer *w)
{
    const char *const path = w->report->path;
    int fd;
    int error = mhai_file_open_new(path, w->name, w->name_size, &fd);
    if (!error)
        error = mhai_file_finish_new(fd, w->name, path, write_all(w, fd));
    return error ? safetensors_fail_file(w->report, "written", error) : MHA_OK;
}

static mha_status write_ordered(writer *w, const safetensors_item *items,
                                const safetensors_pair *pairs)
{
    mha_status status = order_items(w, items);
    if (status == MHA_OK)
        status = order_pairs(w, pairs);
    if (status == MHA_OK)
        status = make_header(w);
    return status == MHA_OK ? write_file(w) : status;
}

mha_status safetensors_write(const char *path, const safetensors_item *items, size_t count,
                             const safetensors_pair *pairs, size_t pair_count, char *message,
                             size_t message_size)
{
    const safetensors_report report = {path ? path : "NULL", message, message_size};
    if (!path || (count && !items) || (pair_count && !pairs))
        return safetensors_fail(&report, MHA_ERR_NULL, "%s is NULL",
                                !path             ? "path"
                                : count && !items ? "items"
                                                  : "pairs");
    writer w = {.report = &report,
                .count = count,
                .pair_count = pair_count,
                .name_size = strlen(path) + MHAI_FILE_SUFFIX};
    w.items = calloc(count + 1, sizeof *w.items);
    w.pairs = calloc(pair_count + 1, sizeof *w.pairs);
    w.name = malloc(w.name_size);
    const mha_status status =
        w.items && w.pairs && w.name
            ? write_ordered(&w, items, pairs)
            : safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory for %zu tensors", count);
    free(w.items);
    free(w.pairs);
    free(w.name);
    free(w.text);
    return status;
}
