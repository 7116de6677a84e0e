/* SPDX-License-Identifier: MIT */
/* Writing a cache, and what writing and reading share. The format is in cache_file.h. */
#include "core/cache_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- shared ----- */

mha_status mhai_file_begin(mhai_file *file, const mha_stream *stream)
{
    memset(file, 0, offsetof(mhai_file, buffer));
    if (!mhai_struct_read(stream, &file->stream, sizeof file->stream, sizeof file->stream))
        return MHA_ERR_STRUCT;
    if (!file->stream.name)
        file->stream.name = "cache";
    file->hash = MHAI_FILE_HASH_START;
    return MHA_OK;
}

mha_status mhai_file_error(const mhai_file *file, const char *done)
{
    char reason[128] = "";
    if (strerror_r(file->error, reason, sizeof reason))
        snprintf(reason, sizeof reason, "error %d", file->error);
    return mhai_file_fail(file, MHA_ERR_FILE, "%s: cannot be %s: %s", file->stream.name, done,
                          reason);
}

void mhai_file_add_page(mhai_file_pages *list, const mha_cache *cache, ptrdiff_t sequence,
                        ptrdiff_t index)
{
    const mhai_file_page page = {mhai_cache_table(cache, sequence)[index], sequence, index,
                                 mhai_cache_slots_of(cache, sequence, index)};
    list->pages[list->count++] = page;
}

void mhai_file_add_owner(mhai_file_page *page, const mha_cache *cache, ptrdiff_t sequence)
{
    page->slots = mhai_max(page->slots, mhai_cache_slots_of(cache, sequence, page->index));
}

size_t mhai_file_row_bytes(mha_dtype type, ptrdiff_t width)
{
    return (size_t)width * mha_dtype_size(type) + (type == MHA_I8 ? sizeof(float) : 0);
}

size_t mhai_file_slot_bytes(const mha_cache_config *config)
{
    return mhai_file_row_bytes(config->k_type, config->D) +
           mhai_file_row_bytes(config->v_type, config->Dv);
}

uint64_t mhai_file_page_bytes(const mha_cache *cache, const mhai_file_pages *list)
{
    const mha_cache_config *const c = &cache->config;
    uint64_t slots = 0;
    for (ptrdiff_t n = 0; n < list->count; n++)
        slots += (uint64_t)list->pages[n].slots;
    return slots * (uint64_t)c->G * mhai_file_slot_bytes(c);
}

/* --------------------------------------------------------------- writing ----- */

static void flush(mhai_file *file)
{
    if (!file->error)
        file->error = file->stream.write(file->stream.context, file->buffer, file->used);
    file->used = 0;
}

static void put_bytes(mhai_file *file, const void *data, size_t count)
{
    const unsigned char *bytes = data;
    file->hash = mhai_file_hash(file->hash, bytes, count);
    while (count > 0) {
        const size_t room = MHAI_FILE_BUFFER - file->used, part = count < room ? count : room;
        memcpy(file->buffer + file->used, bytes, part);
        file->used += part;
        bytes += part;
        count -= part;
        if (file->used == MHAI_FILE_BUFFER)
            flush(file);
    }
}

static void put_number(mhai_file *file, uint64_t x, size_t size)
{
    unsigned char bytes[8];
    for (size_t n = 0; n < size; n++)
        bytes[n] = (unsigned char)(x >> 8 * n);
    put_bytes(file, bytes, size);
}

static void put_header(mhai_file *file, const mha_cache *cache, ptrdiff_t pages, uint64_t bytes)
{
    const mha_cache_config *const c = &cache->config;
    const ptrdiff_t extents[] = {c->sequences, c->capacity, c->page_tokens, c->pages,
                                 c->G,         c->D,        c->Dv};
    put_bytes(file, MHAI_FILE_MAGIC, MHAI_FILE_MAGIC_BYTES);
    put_number(file, MHAI_FILE_VERSION, 4);
    put_number(file, (uint64_t)c->kind, 4);
    put_number(file, bytes, 8);
    for (size_t n = 0; n < sizeof extents / sizeof extents[0]; n++)
        put_number(file, (uint64_t)extents[n], 8);
    put_number(file, (uint64_t)c->k_type, 4);
    put_number(file, (uint64_t)c->v_type, 4);
    put_number(file, (uint64_t)pages, 8);
}

/* Lists the pages in use; numbers[page], which is 0 before, becomes 1 + the number of the page in
 * the file. Returns how many numbers the tables of all sequences have together. */
static ptrdiff_t list_pages(const mha_cache *cache, mhai_file_pages *list, int32_t *numbers)
{
    ptrdiff_t entries = 0;
    for (ptrdiff_t s = 0; s < cache->config.sequences; s++) {
        const ptrdiff_t count = mhai_cache_pages_of(cache, (ptrdiff_t)cache->lengths[s]);
        for (ptrdiff_t index = 0; index < count; index++) {
            int32_t *const number = &numbers[mhai_cache_table(cache, s)[index]];
            if (*number == 0) {
                mhai_file_add_page(list, cache, s, index);
                *number = (int32_t)list->count;
            } else {
                mhai_file_add_owner(&list->pages[*number - 1], cache, s);
            }
        }
        entries += count;
    }
    return entries;
}

static void put_tables(mhai_file *file, const mha_cache *cache, const int32_t *numbers)
{
    for (ptrdiff_t s = 0; s < cache->config.sequences; s++) {
        put_number(file, (uint64_t)cache->lengths[s], 8);
        put_number(file, (uint64_t)cache->firsts[s], 8);
    }
    for (ptrdiff_t s = 0; s < cache->config.sequences; s++) {
        const ptrdiff_t count = mhai_cache_pages_of(cache, (ptrdiff_t)cache->lengths[s]);
        for (ptrdiff_t index = 0; index < count; index++)
            put_number(file, (uint64_t)numbers[mhai_cache_table(cache, s)[index]] - 1,
                       MHAI_FILE_ENTRY_BYTES);
    }
}

/* Does the slot hold a token that is still stored? In a ring, the latest token t in it, with t =
 * slot modulo the page, may be before the first stored one. */
static bool slot_in_use(const mha_cache *cache, const mhai_file_page *page, ptrdiff_t slot)
{
    const int64_t last = cache->lengths[page->sequence] - 1;
    const int64_t back =
        ((last - slot) % cache->page_tokens + cache->page_tokens) % cache->page_tokens;
    return cache->config.kind != MHA_CACHE_RING || last - back >= cache->firsts[page->sequence];
}

/* One row with its scale; zeros where the slot is not in use. */
static void put_row(mhai_file *file, mha_dtype type, ptrdiff_t width, const void *data,
                    ptrdiff_t step, const float *scale, bool used)
{
    const size_t size = mha_dtype_size(type), elements = (size_t)width * size;
    const size_t bytes = mhai_file_row_bytes(type, width);
    mhai_file_row row;
    if (used) {
        mhai_copy_strided(type, &row, 1, data, step, width);
        mhai_file_swap(&row, size, (size_t)width);
        if (scale) {
            memcpy(row.bytes + elements, scale, sizeof *scale);
            mhai_file_swap(row.bytes + elements, sizeof *scale, 1);
        }
    } else {
        memset(&row, 0, bytes);
    }
    put_bytes(file, &row, bytes);
}

static void put_page(mhai_file *file, const mha_cache *cache, const mhai_file_page *page)
{
    const mha_cache_config *const c = &cache->config;
    for (ptrdiff_t g = 0; g < c->G; g++)
        for (ptrdiff_t slot = 0; slot < page->slots; slot++) {
            const mhai_token at = mhai_cache_slot(cache, page->page, slot, g);
            const bool used = slot_in_use(cache, page, slot);
            put_row(file, c->k_type, c->D, at.k, MHAI_GROUP, at.k_scale, used);
            put_row(file, c->v_type, c->Dv, at.v, 1, at.v_scale, used);
        }
}

static void put_cache(mhai_file *file, const mha_cache *cache, mhai_file_pages *list,
                      int32_t *numbers)
{
    const ptrdiff_t entries = list_pages(cache, list, numbers);
    const uint64_t bytes = MHAI_FILE_HEADER_BYTES +
                           MHAI_FILE_SEQUENCE_BYTES * (uint64_t)cache->config.sequences +
                           MHAI_FILE_ENTRY_BYTES * (uint64_t)entries +
                           mhai_file_page_bytes(cache, list) + MHAI_FILE_CHECKSUM_BYTES;
    put_header(file, cache, list->count, bytes);
    put_tables(file, cache, numbers);
    for (ptrdiff_t n = 0; n < list->count; n++)
        put_page(file, cache, &list->pages[n]);
    put_number(file, file->hash, MHAI_FILE_CHECKSUM_BYTES);
    flush(file);
}

mha_status mha_cache_save_to(const mha_cache *cache, const mha_stream *stream)
{
    mhai_file file;
    if (!stream)
        return MHA_ERR_NULL;
    if (mhai_file_begin(&file, stream))
        return MHA_ERR_STRUCT;
    if (!cache || !file.stream.write)
        return mhai_file_fail(&file, MHA_ERR_NULL, "%s is NULL", cache ? "stream.write" : "cache");
    const size_t count = 1 + (size_t)cache->page_count;
    int32_t *const numbers = calloc(count, sizeof *numbers);
    mhai_file_pages list = {0, calloc(count, sizeof *list.pages)};
    mha_status status = MHA_OK;
    if (numbers && list.pages)
        put_cache(&file, cache, &list, numbers);
    else
        status = mhai_file_fail(&file, MHA_ERR_MEMORY, "%s: no memory to list %td pages",
                                file.stream.name, cache->page_count);
    free(numbers);
    free(list.pages);
    return file.error ? mhai_file_error(&file, "written") : status;
}

/* The file to write to, until it has its name. */
typedef struct new_file {
    int fd;
    char *name;
} new_file;

static int write_new(void *context, const void *data, size_t count)
{
    return mhai_file_write(((const new_file *)context)->fd, data, count);
}

static mha_status save_file(const mha_cache *cache, mhai_file *file, new_file *to, size_t size)
{
    const char *const path = file->stream.name;
    file->error = mhai_file_open_new(path, to->name, size, &to->fd);
    if (file->error)
        return mhai_file_error(file, "written");
    const mha_status status = mha_cache_save_to(cache, &file->stream);
    file->error = mhai_file_finish_new(to->fd, to->name, path, status ? ECANCELED : 0);
    return status || !file->error ? status : mhai_file_error(file, "written");
}

mha_status mha_cache_save(const mha_cache *cache, const char *path, char *message,
                          size_t message_size)
{
    new_file to = {.fd = -1};
    mhai_file file = {.stream = {.size = sizeof file.stream,
                                 .write = write_new,
                                 .context = &to,
                                 .name = path,
                                 .message = message,
                                 .message_size = message_size}};
    if (!cache || !path)
        return mhai_file_fail(&file, MHA_ERR_NULL, "%s is NULL", cache ? "path" : "cache");
    const size_t name_size = strlen(path) + MHAI_FILE_SUFFIX;
    to.name = malloc(name_size);
    const mha_status status =
        to.name ? save_file(cache, &file, &to, name_size)
                : mhai_file_fail(&file, MHA_ERR_MEMORY, "%s: no memory for its name", path);
    free(to.name);
    return status;
}
