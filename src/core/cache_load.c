/* SPDX-License-Identifier: MIT */
/*
 * Reading a cache from a file. Nothing in it is trusted: first its checksum is verified, which
 * detects accidents; then every number is compared with its bounds, which detects forged files.
 */
#include "core/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --------------------------------------------------------------- reading ----- */

/* Refills the buffer; false at the end of the file or after an error. */
static bool refill(mhai_file *file)
{
    ssize_t got;
    do
        got = read(file->fd, file->buffer, MHAI_FILE_BUFFER);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        file->error = errno;
    file->used = 0;
    file->filled = got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* False if fewer bytes are left before the checksum. */
static bool get_bytes(mhai_file *file, void *data, size_t count)
{
    unsigned char *bytes = data;
    if (count > file->left)
        return false;
    file->left -= count;
    while (count > 0) {
        if (file->used == file->filled && !refill(file))
            return false;
        const size_t there = file->filled - file->used, part = count < there ? count : there;
        memcpy(bytes, file->buffer + file->used, part);
        file->used += part;
        bytes += part;
        count -= part;
    }
    return true;
}

/* The size of the file was checked before, so its content contradicts itself. */
static mha_status fail_short(const mhai_file *file)
{
    if (file->error)
        return mhai_file_error(file, "read");
    return mhai_file_fail(file, MHA_ERR_FORMAT,
                          "%s: damaged: its tables say more than the file holds", file->path);
}

static uint64_t number_at(const unsigned char *bytes, size_t size)
{
    uint64_t x = 0;
    for (size_t n = size; n-- > 0;)
        x = x << 8 | bytes[n];
    return x;
}

/* The numbers of a header. */
typedef struct header {
    uint64_t bytes, pages;
    mha_cache_config config;
} header;

/* Is this a complete cache file of a version that this library reads? */
static mha_status check_start(const mhai_file *file, const unsigned char *start, uint64_t size)
{
    if (size < MHAI_FILE_MAGIC_BYTES || memcmp(start, MHAI_FILE_MAGIC, MHAI_FILE_MAGIC_BYTES) != 0)
        return mhai_file_fail(file, MHA_ERR_FORMAT,
                              "%s: not a cache file: it does not begin with %.8s", file->path,
                              MHAI_FILE_MAGIC);
    const uint64_t version = size < 12 ? MHAI_FILE_VERSION : number_at(start + 8, 4);
    if (version != MHAI_FILE_VERSION)
        return mhai_file_fail(
            file, MHA_ERR_FORMAT,
            "%s: written in version %llu of the format; this library reads version %d", file->path,
            (unsigned long long)version, MHAI_FILE_VERSION);
    const uint64_t bytes = size < 24 ? MHAI_FILE_HEADER_BYTES : number_at(start + 16, 8);
    if (size < bytes || size < MHAI_FILE_HEADER_BYTES + MHAI_FILE_CHECKSUM_BYTES)
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: cut off after %llu bytes", file->path,
                              (unsigned long long)size);
    if (size > bytes)
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: has %llu bytes past its end", file->path,
                              (unsigned long long)(size - bytes));
    return MHA_OK;
}

/* Reads the whole file except the checksum itself, before anything in it is used. */
static mha_status check_hash(mhai_file *file, uint64_t size)
{
    unsigned char bytes[MHAI_FILE_CHECKSUM_BYTES];
    uint64_t hash = MHAI_FILE_HASH_START;
    file->left = size;
    for (uint64_t left = size - MHAI_FILE_CHECKSUM_BYTES; left > 0;) {
        if (file->used == file->filled && !refill(file))
            return fail_short(file);
        const size_t there = file->filled - file->used, part = left < there ? (size_t)left : there;
        hash = mhai_file_hash(hash, file->buffer + file->used, part);
        file->used += part;
        file->left -= part;
        left -= part;
    }
    if (!get_bytes(file, bytes, sizeof bytes))
        return fail_short(file);
    if (number_at(bytes, sizeof bytes) != hash)
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: damaged: its checksum does not agree",
                              file->path);
    return MHA_OK;
}

/* Goes back to the start. */
static bool rewind_file(mhai_file *file, uint64_t size)
{
    file->used = file->filled = 0;
    file->left = size - MHAI_FILE_CHECKSUM_BYTES;
    if (lseek(file->fd, 0, SEEK_SET) == 0)
        return true;
    file->error = errno;
    return false;
}

static ptrdiff_t extent_at(const unsigned char *bytes)
{
    const uint64_t x = number_at(bytes, 8);
    return x > MHAI_MAX_EXTENT ? -1 : (ptrdiff_t)x;
}

static header read_header(const unsigned char *start)
{
    const header h = {.bytes = number_at(start + 16, 8),
                      .pages = number_at(start + 88, 8),
                      .config = {.size = sizeof h.config,
                                 .kind = (mha_cache_kind)number_at(start + 12, 4),
                                 .sequences = extent_at(start + 24),
                                 .capacity = extent_at(start + 32),
                                 .page_tokens = extent_at(start + 40),
                                 .pages = extent_at(start + 48),
                                 .G = extent_at(start + 56),
                                 .D = extent_at(start + 64),
                                 .Dv = extent_at(start + 72),
                                 .k_type = (mha_dtype)number_at(start + 80, 4),
                                 .v_type = (mha_dtype)number_at(start + 84, 4)}};
    return h;
}

/* Is the configuration of the cache exactly the one in the header? */
static bool same_config(const mha_cache_config *a, const mha_cache_config *b)
{
    return a->capacity == b->capacity && a->page_tokens == b->page_tokens && a->pages == b->pages &&
           a->Dv == b->Dv;
}

/* The empty cache that the header describes; NULL on error. */
static mha_status make_cache(mhai_file *file, const header *h, mha_cache **cache)
{
    char reason[256] = "";
    mha_cache_config config = h->config;
    config.message = reason;
    config.message_size = sizeof reason;
    if (config.sequences > 0 && (uint64_t)config.sequences > h->bytes / MHAI_FILE_SEQUENCE_BYTES)
        return fail_short(file);
    const mha_status status = mha_cache_create(cache, &config);
    if (status == MHA_ERR_MEMORY)
        return mhai_file_fail(file, status, "%s: %s", file->path, reason);
    if (status)
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: damaged: it describes no cache: %s",
                              file->path, reason);
    if (same_config(&h->config, &(*cache)->config) && h->pages <= (uint64_t)(*cache)->page_count)
        return MHA_OK;
    mha_cache_free(*cache);
    *cache = NULL;
    return mhai_file_fail(file, MHA_ERR_FORMAT,
                          "%s: damaged: numbers of its header contradict each other", file->path);
}

static bool possible(const mha_cache *cache, uint64_t length, uint64_t first)
{
    if (cache->config.kind != MHA_CACHE_RING)
        return first == 0 && length <= (uint64_t)cache->config.capacity;
    return length <= MHAI_MAX_EXTENT && first <= length &&
           length - first <= (uint64_t)cache->page_tokens;
}

static mha_status get_lengths(mhai_file *file, mha_cache *cache)
{
    for (ptrdiff_t s = 0; s < cache->config.sequences; s++) {
        unsigned char bytes[MHAI_FILE_SEQUENCE_BYTES];
        if (!get_bytes(file, bytes, sizeof bytes))
            return fail_short(file);
        const uint64_t length = number_at(bytes, 8), first = number_at(bytes + 8, 8);
        if (!possible(cache, length, first))
            return mhai_file_fail(
                file, MHA_ERR_FORMAT, "%s: damaged: sequence %td cannot have tokens %llu to %llu",
                file->path, s, (unsigned long long)first, (unsigned long long)length);
        cache->lengths[s] = (int64_t)length;
        cache->firsts[s] = (int64_t)first;
    }
    return MHA_OK;
}

/* Entry `index` of a sequence's table is page `number` of the file: the next new page, or one that
 * other sequences have at the same entry. */
static bool set_page(mha_cache *cache, mhai_file_pages *list, ptrdiff_t sequence, ptrdiff_t index,
                     uint64_t number)
{
    const bool paged = mhai_cache_paged(cache);
    if (number > (uint64_t)list->count || (ptrdiff_t)number == cache->page_count)
        return false;
    if (number == (uint64_t)list->count) {
        mhai_cache_own(cache, sequence, index);
        mhai_file_add_page(list, cache, sequence, index);
        return true;
    }
    mhai_file_page *const page = &list->pages[number];
    if (!paged || page->index != index)
        return false;
    mhai_cache_table(cache, sequence)[index] = page->page;
    cache->owners[page->page]++;
    mhai_file_add_owner(page, cache, sequence);
    return true;
}

static mha_status get_table(mhai_file *file, mha_cache *cache, mhai_file_pages *list,
                            ptrdiff_t sequence)
{
    const ptrdiff_t count = mhai_cache_pages_of(cache, (ptrdiff_t)cache->lengths[sequence]);
    if (count > cache->sequence_pages)
        return mhai_file_fail(file, MHA_ERR_FORMAT,
                              "%s: damaged: sequence %td has more pages than there are", file->path,
                              sequence);
    for (ptrdiff_t index = 0; index < count; index++) {
        unsigned char bytes[4];
        if (!get_bytes(file, bytes, sizeof bytes))
            return fail_short(file);
        if (!set_page(cache, list, sequence, index, number_at(bytes, sizeof bytes)))
            return mhai_file_fail(file, MHA_ERR_FORMAT,
                                  "%s: damaged: sequence %td has a page out of order at entry %td",
                                  file->path, sequence, index);
    }
    return MHA_OK;
}

static void row_in(mha_dtype type, ptrdiff_t width, void *data, ptrdiff_t step, float *scale,
                   mhai_file_row *row)
{
    const size_t size = mha_dtype_size(type), elements = (size_t)width * size;
    if (scale) {
        mhai_file_swap(row->bytes + elements, sizeof *scale, 1);
        memcpy(scale, row->bytes + elements, sizeof *scale);
    }
    mhai_file_swap(row, size, (size_t)width);
    mhai_copy_strided(type, data, step, row, 1, width);
}

static bool get_row(mhai_file *file, mha_dtype type, ptrdiff_t width, void *data, ptrdiff_t step,
                    float *scale)
{
    mhai_file_row row;
    if (!get_bytes(file, &row, mhai_file_row_bytes(type, width)))
        return false;
    row_in(type, width, data, step, scale, &row);
    return true;
}

/* The last piece is cleared first: none of its slots may hold earlier content of the memory. */
static bool get_page(mhai_file *file, const mha_cache *cache, const mhai_file_page *page)
{
    const mha_cache_config *const c = &cache->config;
    if (page->slots % MHAI_PIECE != 0)
        mhai_cache_clear_piece(cache, page->page, page->slots / MHAI_PIECE * MHAI_PIECE);
    for (ptrdiff_t g = 0; g < c->G; g++)
        for (ptrdiff_t slot = 0; slot < page->slots; slot++) {
            const mhai_token at = mhai_cache_slot(cache, page->page, slot, g);
            if (!get_row(file, c->k_type, c->D, at.k, MHAI_GROUP, at.k_scale) ||
                !get_row(file, c->v_type, c->Dv, at.v, 1, at.v_scale))
                return false;
        }
    return true;
}

/* Reads everything after the header. */
static mha_status get_cache(mhai_file *file, const header *h, mha_cache *cache,
                            mhai_file_pages *list)
{
    mha_status status = get_lengths(file, cache);
    for (ptrdiff_t s = 0; s < cache->config.sequences && !status; s++)
        status = get_table(file, cache, list, s);
    if (status)
        return status;
    if (h->pages != (uint64_t)list->count || mhai_file_page_bytes(cache, list) != file->left)
        return mhai_file_fail(file, MHA_ERR_FORMAT,
                              "%s: damaged: its tables and its size contradict each other",
                              file->path);
    for (ptrdiff_t n = 0; n < list->count; n++)
        if (!get_page(file, cache, &list->pages[n]))
            return fail_short(file);
    return MHA_OK;
}

static mha_status load_checked(mhai_file *file, uint64_t size, mha_cache **cache)
{
    unsigned char start[MHAI_FILE_HEADER_BYTES];
    if (!rewind_file(file, size) || !get_bytes(file, start, sizeof start))
        return fail_short(file);
    const header h = read_header(start);
    mha_status status = make_cache(file, &h, cache);
    if (!*cache)
        return status;
    mhai_file_pages list = {0, calloc((size_t)(*cache)->page_count, sizeof *list.pages)};
    if (!list.pages)
        return mhai_file_fail(file, MHA_ERR_MEMORY, "%s: no memory to list %td pages", file->path,
                              (*cache)->page_count);
    status = get_cache(file, &h, *cache, &list);
    free(list.pages);
    return status;
}

/* Loads from the open file: its kind, then its checksum, then its content. */
static mha_status load_file(mhai_file *file, mha_cache **cache)
{
    struct stat info;
    unsigned char start[MHAI_FILE_HEADER_BYTES] = {0};
    if (fstat(file->fd, &info) != 0) {
        file->error = errno;
        return mhai_file_error(file, "read");
    }
    if (!S_ISREG(info.st_mode))
        return mhai_file_fail(file, MHA_ERR_FILE, "%s: not a regular file", file->path);
    const uint64_t size = (uint64_t)info.st_size;
    file->left = size;
    if (!get_bytes(file, start, size < sizeof start ? (size_t)size : sizeof start))
        return fail_short(file);
    mha_status status = check_start(file, start, size);
    if (status)
        return status;
    if (!rewind_file(file, size))
        return fail_short(file);
    if ((status = check_hash(file, size)))
        return status;
    return load_checked(file, size, cache);
}

mha_status mha_cache_load(mha_cache **cache, const char *path, char *message, size_t message_size)
{
    mhai_file file = {.path = path, .message = message, .message_size = message_size};
    if (cache)
        *cache = NULL;
    if (!cache || !path)
        return mhai_file_fail(&file, MHA_ERR_NULL, "%s is NULL", cache ? "path" : "cache");
    /* Non-blocking: a pipe without a writer must not hold up the caller. */
    file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file.fd < 0) {
        file.error = errno;
        return mhai_file_error(&file, "opened");
    }
    const mha_status status = load_file(&file, cache);
    close(file.fd);
    if (status) {
        mha_cache_free(*cache);
        *cache = NULL;
    }
    return status;
}
