/* SPDX-License-Identifier: MIT */
/*
 * Reading a cache. Nothing in the bytes is trusted: the checksum detects accidents, and every
 * number is compared with its bounds, which detects forged files; those that say how large
 * something is before memory is allocated for it. The checksum of a file is verified before its
 * content is used, that of a stream, which is read only once, at its end.
 */
#include "core/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --------------------------------------------------------------- reading ----- */

/* Refills the buffer; false at the end or after an error. */
static bool refill(mhai_file *file)
{
    const size_t count = file->unread < MHAI_FILE_BUFFER ? (size_t)file->unread : MHAI_FILE_BUFFER;
    if (count == 0 || file->error)
        return false;
    file->error = file->stream.read(file->stream.context, file->buffer, count);
    file->used = 0;
    file->filled = file->error ? 0 : count;
    file->unread -= count;
    return file->filled > 0;
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
        if (!file->verified)
            file->hash = mhai_file_hash(file->hash, bytes, part);
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
                          "%s: damaged: its tables say more than the file holds",
                          file->stream.name);
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

/* Is this a complete cache of a version that this library reads, in not more than `size` bytes? */
static mha_status check_start(const mhai_file *file, const unsigned char *start, uint64_t size)
{
    if (size < MHAI_FILE_MAGIC_BYTES || memcmp(start, MHAI_FILE_MAGIC, MHAI_FILE_MAGIC_BYTES) != 0)
        return mhai_file_fail(file, MHA_ERR_FORMAT,
                              "%s: not a cache file: it does not begin with %.8s",
                              file->stream.name, MHAI_FILE_MAGIC);
    const uint64_t version = size < 12 ? MHAI_FILE_VERSION : number_at(start + 8, 4);
    if (version != MHAI_FILE_VERSION)
        return mhai_file_fail(
            file, MHA_ERR_FORMAT,
            "%s: written in version %llu of the format; this library reads version %d",
            file->stream.name, (unsigned long long)version, MHAI_FILE_VERSION);
    const uint64_t bytes = size < 24 ? MHAI_FILE_HEADER_BYTES : number_at(start + 16, 8);
    if (size < bytes || size < MHAI_FILE_HEADER_BYTES + MHAI_FILE_CHECKSUM_BYTES)
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: cut off after %llu bytes",
                              file->stream.name, (unsigned long long)size);
    return MHA_OK;
}

/* Reads the header, or less if there is less. */
static mha_status get_start(mhai_file *file, unsigned char start[MHAI_FILE_HEADER_BYTES])
{
    const uint64_t size = file->stream.bytes;
    file->left = size < MHAI_FILE_HEADER_BYTES ? size : MHAI_FILE_HEADER_BYTES;
    file->unread = file->left;
    if (!get_bytes(file, start, (size_t)file->left))
        return fail_short(file);
    return check_start(file, start, size);
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

static mha_status fail_contradiction(const mhai_file *file)
{
    return mhai_file_fail(file, MHA_ERR_FORMAT,
                          "%s: damaged: numbers of its header contradict each other",
                          file->stream.name);
}

static bool same_config(const mha_cache_config *a, const mha_cache_config *b)
{
    return a->kind == b->kind && a->sequences == b->sequences && a->capacity == b->capacity &&
           a->page_tokens == b->page_tokens && a->pages == b->pages && a->G == b->G &&
           a->D == b->D && a->Dv == b->Dv && a->k_type == b->k_type && a->v_type == b->v_type;
}

/* Are there bytes for the lengths of all sequences, and for `pages` pages of at least one slot? */
static bool room_for(const mhai_file *file, const mha_cache_config *c, uint64_t pages)
{
    uint64_t lengths, page, bytes;
    return !__builtin_mul_overflow((uint64_t)c->sequences, MHAI_FILE_SEQUENCE_BYTES, &lengths) &&
           !__builtin_mul_overflow((uint64_t)c->G, mhai_file_slot_bytes(c), &page) &&
           !__builtin_add_overflow(page, MHAI_FILE_ENTRY_BYTES, &page) &&
           !__builtin_mul_overflow(page, pages, &bytes) &&
           !__builtin_add_overflow(bytes, lengths, &bytes) && bytes <= file->left;
}

/* The cache that the header describes, without memory. */
static mha_status plan_cache(const mhai_file *file, const header *h, mha_cache *planned)
{
    char reason[256] = "";
    mha_cache_config config = h->config;
    config.message = reason;
    config.message_size = sizeof reason;
    if (mhai_cache_plan(planned, &config))
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: damaged: it describes no cache: %s",
                              file->stream.name, reason);
    planned->config.message = NULL;
    planned->config.message_size = 0;
    if (!same_config(&h->config, &planned->config) || h->pages > (uint64_t)planned->page_count)
        return fail_contradiction(file);
    return room_for(file, &planned->config, h->pages) ? MHA_OK : fail_short(file);
}

/*
 * What a cache could hold beyond its tokens is not in the file, which may be forged. Is its memory
 * at most 64 MB, or so much that a thousandth of it is stored?
 */
static mha_status check_memory(const mhai_file *file, const mha_cache *planned, uint64_t bytes)
{
    const uint64_t memory = mha_cache_bytes(planned);
    if (memory >> 26 == 0 || memory >> 10 <= bytes)
        return MHA_OK;
    return mhai_file_fail(file, MHA_ERR_MEMORY,
                          "%s: %llu bytes describe a cache of %llu; a cache that is almost empty "
                          "is loaded only where its configuration is given as expected",
                          file->stream.name, (unsigned long long)bytes, (unsigned long long)memory);
}

static bool possible(const mha_cache *cache, uint64_t length, uint64_t first)
{
    if (cache->config.kind != MHA_CACHE_RING)
        return first == 0 && length <= (uint64_t)cache->config.capacity;
    return length <= MHAI_MAX_EXTENT && first <= length &&
           length - first <= (uint64_t)cache->page_tokens;
}

/* Are there bytes for what a sequence of this length has at least: `entries` with those of all
 * sequences before, and its own slots? */
static bool room_for_sequence(const mhai_file *file, const mha_cache *cache, ptrdiff_t sequence,
                              uint64_t entries)
{
    const uint64_t slot = (uint64_t)cache->config.G * mhai_file_slot_bytes(&cache->config);
    const int64_t slots =
        cache->firsts[sequence] > 0 ? cache->page_tokens : cache->lengths[sequence];
    return entries <= file->left / MHAI_FILE_ENTRY_BYTES && (uint64_t)slots <= file->left / slot;
}

/* Reads the lengths into the arrays of a planned cache. */
static mha_status get_lengths(mhai_file *file, const mha_cache *planned)
{
    uint64_t entries = 0;
    for (ptrdiff_t s = 0; s < planned->config.sequences; s++) {
        unsigned char bytes[MHAI_FILE_SEQUENCE_BYTES];
        if (!get_bytes(file, bytes, sizeof bytes))
            return fail_short(file);
        const uint64_t length = number_at(bytes, 8), first = number_at(bytes + 8, 8);
        if (!possible(planned, length, first))
            return mhai_file_fail(
                file, MHA_ERR_FORMAT, "%s: damaged: sequence %td cannot have tokens %llu to %llu",
                file->stream.name, s, (unsigned long long)first, (unsigned long long)length);
        planned->lengths[s] = (int64_t)length;
        planned->firsts[s] = (int64_t)first;
        entries += (uint64_t)mhai_cache_pages_of(planned, (ptrdiff_t)length);
        if (!room_for_sequence(file, planned, s, entries))
            return fail_short(file);
    }
    return MHA_OK;
}

/* Entry `index` of a sequence's table is page `number` of the `pages` of the file: the next new
 * page, or one that other sequences have at the same entry. */
static bool set_page(mha_cache *cache, mhai_file_pages *list, uint64_t pages, ptrdiff_t sequence,
                     ptrdiff_t index, uint64_t number)
{
    const bool paged = mhai_cache_paged(cache);
    if (number > (uint64_t)list->count || number >= pages)
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
                            uint64_t pages, ptrdiff_t sequence)
{
    const ptrdiff_t count = mhai_cache_pages_of(cache, (ptrdiff_t)cache->lengths[sequence]);
    if (count > cache->sequence_pages)
        return mhai_file_fail(file, MHA_ERR_FORMAT,
                              "%s: damaged: sequence %td has more pages than there are",
                              file->stream.name, sequence);
    for (ptrdiff_t index = 0; index < count; index++) {
        unsigned char bytes[MHAI_FILE_ENTRY_BYTES];
        if (!get_bytes(file, bytes, sizeof bytes))
            return fail_short(file);
        if (!set_page(cache, list, pages, sequence, index, number_at(bytes, sizeof bytes)))
            return mhai_file_fail(file, MHA_ERR_FORMAT,
                                  "%s: damaged: sequence %td has a page out of order at entry %td",
                                  file->stream.name, sequence, index);
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

/* Reads everything after the lengths. */
static mha_status get_tokens(mhai_file *file, mha_cache *cache, mhai_file_pages *list,
                             uint64_t pages)
{
    mha_status status = MHA_OK;
    for (ptrdiff_t s = 0; s < cache->config.sequences && !status; s++)
        status = get_table(file, cache, list, pages, s);
    if (status)
        return status;
    if (pages != (uint64_t)list->count || mhai_file_page_bytes(cache, list) != file->left)
        return mhai_file_fail(file, MHA_ERR_FORMAT,
                              "%s: damaged: its tables and its size contradict each other",
                              file->stream.name);
    for (ptrdiff_t n = 0; n < list->count; n++)
        if (!get_page(file, cache, &list->pages[n]))
            return fail_short(file);
    return MHA_OK;
}

/* Compares the checksum with that of everything read before it. */
static mha_status check_hash(mhai_file *file)
{
    unsigned char bytes[MHAI_FILE_CHECKSUM_BYTES];
    const uint64_t hash = file->hash;
    file->left = sizeof bytes;
    if (!get_bytes(file, bytes, sizeof bytes))
        return fail_short(file);
    if (!file->verified && number_at(bytes, sizeof bytes) != hash)
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: damaged: its checksum does not agree",
                              file->stream.name);
    return MHA_OK;
}

/* The lengths fit the file: makes the cache and reads its tokens. */
static mha_status load_tokens(mhai_file *file, const mha_cache *planned, uint64_t pages,
                              mha_cache **cache)
{
    const size_t bytes = (size_t)planned->config.sequences * sizeof *planned->lengths;
    mhai_file_pages list = {0, calloc((size_t)pages + 1, sizeof *list.pages)};
    mha_status status = list.pages ? mhai_cache_make(cache, planned) : MHA_ERR_MEMORY;
    if (!status) {
        memcpy((*cache)->lengths, planned->lengths, bytes);
        memcpy((*cache)->firsts, planned->firsts, bytes);
        status = get_tokens(file, *cache, &list, pages);
    } else {
        mhai_file_fail(file, status, "%s: no memory for a cache of %zu pages of %zu bytes",
                       file->stream.name, (size_t)planned->page_count, planned->page_bytes);
    }
    free(list.pages);
    return status ? status : check_hash(file);
}

/* Reads the cache that the header describes, which the caller may have expected. */
static mha_status load_planned(mhai_file *file, mha_cache *planned, const header *h, bool expected,
                               mha_cache **cache)
{
    const size_t sequences = (size_t)planned->config.sequences;
    int64_t *const lengths = calloc(sequences, 2 * sizeof *lengths);
    if (!lengths)
        return mhai_file_fail(file, MHA_ERR_MEMORY, "%s: no memory for %zu lengths",
                              file->stream.name, sequences);
    planned->lengths = lengths;
    planned->firsts = lengths + sequences;
    mha_status status = get_lengths(file, planned);
    if (!status && !expected)
        status = check_memory(file, planned, h->bytes);
    if (!status)
        status = load_tokens(file, planned, h->pages, cache);
    free(lengths);
    if (status) {
        mha_cache_free(*cache);
        *cache = NULL;
    }
    return status;
}

static mha_status load_stream(mhai_file *file, const mha_cache *expected, mha_cache **cache)
{
    unsigned char start[MHAI_FILE_HEADER_BYTES] = {0};
    mha_cache planned;
    mha_status status = get_start(file, start);
    if (status)
        return status;
    const header h = read_header(start);
    file->unread = h.bytes - MHAI_FILE_HEADER_BYTES;
    file->left = file->unread - MHAI_FILE_CHECKSUM_BYTES;
    if ((status = plan_cache(file, &h, &planned)))
        return status;
    if (expected && !same_config(&planned.config, &expected->config))
        return mhai_file_fail(file, MHA_ERR_FORMAT,
                              "%s: it is a cache of another configuration than expected",
                              file->stream.name);
    return load_planned(file, &planned, &h, expected != NULL, cache);
}

/* The cache that the caller expects, if any. */
static mha_status plan_expected(const mhai_file *file, const mha_cache_config *expected,
                                mha_cache *wanted)
{
    const mha_status status = expected ? mhai_cache_plan(wanted, expected) : MHA_OK;
    if (status)
        mhai_file_fail(file, status, "%s: expected describes no cache", file->stream.name);
    return status;
}

mha_status mha_cache_load_from(mha_cache **cache, const mha_stream *stream,
                               const mha_cache_config *expected)
{
    mhai_file file;
    mha_cache wanted;
    if (cache)
        *cache = NULL;
    if (!stream)
        return MHA_ERR_NULL;
    if (mhai_file_begin(&file, stream))
        return MHA_ERR_STRUCT;
    if (!cache || !file.stream.read)
        return mhai_file_fail(&file, MHA_ERR_NULL, "%s is NULL", cache ? "stream.read" : "cache");
    const mha_status status = plan_expected(&file, expected, &wanted);
    return status ? status : load_stream(&file, expected ? &wanted : NULL, cache);
}

/* ----------------------------------------------------------------- files ----- */

static int read_file(void *context, void *data, size_t count)
{
    return mhai_file_read(*(const int *)context, data, count);
}

/* Goes back to the start. */
static bool rewind_file(mhai_file *file)
{
    const int fd = *(const int *)file->stream.context;
    file->used = file->filled = 0;
    if (lseek(fd, 0, SEEK_SET) == 0)
        return true;
    file->error = errno;
    return false;
}

/* Reads the whole file before anything in it is used: is it complete, and undamaged? */
static mha_status verify_file(mhai_file *file)
{
    unsigned char start[MHAI_FILE_HEADER_BYTES] = {0};
    const uint64_t size = file->stream.bytes;
    mha_status status = get_start(file, start);
    if (status)
        return status;
    const uint64_t bytes = read_header(start).bytes;
    if (size > bytes)
        return mhai_file_fail(file, MHA_ERR_FORMAT, "%s: has %llu bytes past its end",
                              file->stream.name, (unsigned long long)(size - bytes));
    file->unread = file->left = size - MHAI_FILE_HEADER_BYTES;
    while (file->left > MHAI_FILE_CHECKSUM_BYTES) {
        unsigned char part[1024];
        const uint64_t left = file->left - MHAI_FILE_CHECKSUM_BYTES;
        if (!get_bytes(file, part, left < sizeof part ? (size_t)left : sizeof part))
            return fail_short(file);
    }
    return check_hash(file);
}

static mha_status load_file(mhai_file *file, const mha_cache *expected, mha_cache **cache)
{
    struct stat info;
    if (fstat(*(const int *)file->stream.context, &info) != 0) {
        file->error = errno;
        return mhai_file_error(file, "read");
    }
    if (!S_ISREG(info.st_mode))
        return mhai_file_fail(file, MHA_ERR_FILE, "%s: not a regular file", file->stream.name);
    file->stream.bytes = (uint64_t)info.st_size;
    const mha_status status = verify_file(file);
    if (status)
        return status;
    file->verified = true;
    return rewind_file(file) ? load_stream(file, expected, cache) : fail_short(file);
}

mha_status mha_cache_load_as(mha_cache **cache, const char *path, const mha_cache_config *expected,
                             char *message, size_t message_size)
{
    int fd = -1;
    mha_cache wanted;
    mhai_file file = {.stream = {.size = sizeof file.stream,
                                 .read = read_file,
                                 .context = &fd,
                                 .name = path,
                                 .message = message,
                                 .message_size = message_size},
                      .hash = MHAI_FILE_HASH_START};
    if (cache)
        *cache = NULL;
    if (!cache || !path)
        return mhai_file_fail(&file, MHA_ERR_NULL, "%s is NULL", cache ? "path" : "cache");
    mha_status status = plan_expected(&file, expected, &wanted);
    if (status)
        return status;
    /* Non-blocking: a pipe without a writer must not hold up the caller. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        file.error = errno;
        return mhai_file_error(&file, "opened");
    }
    status = load_file(&file, expected ? &wanted : NULL, cache);
    close(fd);
    return status;
}

mha_status mha_cache_load(mha_cache **cache, const char *path, char *message, size_t message_size)
{
    return mha_cache_load_as(cache, path, NULL, message, message_size);
}
