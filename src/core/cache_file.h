/* SPDX-License-Identifier: MIT */
/*
 * A cache as a file. All numbers are little-endian:
 *
 *      bytes
 *      8      "MHACACHE"
 *      4, 4   version of the format; kind of the cache
 *      8      bytes of the whole file
 *      8 x 7  sequences, capacity, page_tokens, pages, G, D, Dv, as in mha_cache_config
 *      4, 4   k_type, v_type
 *      8      pages in this file
 *      16 x   for every sequence its length and its first token
 *      4 x    for every sequence the numbers of its pages: new ones count up from 0, and forks name
 *             the pages they share. Contiguous and ring caches have one page per sequence with
 *             tokens
 *      ...    page after page, head after head, slot after slot, as far as any sequence has filled
 *             the page: keys, their scale (i8), values, their scale (i8). Slots of a ring whose
 *             token was dropped are 0
 *      8      FNV-1a of everything before
 *
 * The file does not depend on where pages lie in memory: caches with the same content give the same
 * file.
 */
#ifndef MHAI_CACHE_FILE_H
#define MHAI_CACHE_FILE_H

#include "base/replace_file.h"
#include "core/cache.h"

#define MHAI_FILE_MAGIC "MHACACHE"

enum {
    MHAI_FILE_VERSION = 1,
    MHAI_FILE_MAGIC_BYTES = 8,
    MHAI_FILE_HEADER_BYTES = 96,
    MHAI_FILE_SEQUENCE_BYTES = 16,
    MHAI_FILE_ENTRY_BYTES = 4,
    MHAI_FILE_CHECKSUM_BYTES = 8,
    MHAI_FILE_BUFFER = 16384
};

/* Bytes to or from a stream, and where its errors are reported. */
typedef struct mhai_file {
    mha_stream stream; /* complete: its name is set */
    int error;         /* errno of the first failure */
    bool verified;     /* reading: the checksum was compared before */
    uint64_t hash;     /* of everything written, or read, so far */
    uint64_t left;     /* reading: bytes left before the checksum */
    uint64_t unread;   /* reading: bytes that may still be requested from the stream */
    size_t used, filled;
    unsigned char buffer[MHAI_FILE_BUFFER];
} mhai_file;

#define mhai_file_fail(file, status, ...) \
    mhai_fail_to((file)->stream.message, (file)->stream.message_size, status, __VA_ARGS__)

/* The file of a caller's stream. MHA_ERR_STRUCT if it has another size. */
mha_status mhai_file_begin(mhai_file *file, const mha_stream *stream);

/* MHA_ERR_FILE: the file cannot be `done` (opened, written, read), with the reason in
 * file->error. */
mha_status mhai_file_error(const mhai_file *file, const char *done);

/* A page of the file: one of its owners, its table entry, and the slots that any owner has
 * filled. */
typedef struct mhai_file_page {
    int32_t page;
    ptrdiff_t sequence, index, slots;
} mhai_file_page;

/* The pages of a file in their order. */
typedef struct mhai_file_pages {
    ptrdiff_t count;
    mhai_file_page *pages; /* room for every page of the file */
} mhai_file_pages;

/* Append the page at a table entry. */
void mhai_file_add_page(mhai_file_pages *list, const mha_cache *cache, ptrdiff_t sequence,
                        ptrdiff_t index);

/* Adds another owner to a page; it may have filled more of it. */
void mhai_file_add_owner(mhai_file_page *page, const mha_cache *cache, ptrdiff_t sequence);

/* A row as it is in the file, followed by its scale. */
typedef union mhai_file_row {
    float f32[MHA_MAX_HEAD_WIDTH + 1];
    unsigned char bytes[(MHA_MAX_HEAD_WIDTH + 1) * sizeof(float)];
} mhai_file_row;

/* Bytes of one slot in one head: a key and a value, with their scales. */
size_t mhai_file_slot_bytes(const mha_cache_config *config);

size_t mhai_file_row_bytes(mha_dtype type, ptrdiff_t width);

/* Bytes of all pages together. */
uint64_t mhai_file_page_bytes(const mha_cache *cache, const mhai_file_pages *list);

#endif
