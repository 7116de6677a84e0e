/* SPDX-License-Identifier: MIT */
/*
 * Opens safetensors files, on disk or in memory, and reads tensors from them. load() checks the
 * sizes, reads the header and gives it to safetensors_header.c. All bytes come through read_at(),
 * so that the two kinds of file differ there and in how they are opened only.
 */
#include "format/safetensors_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

/* Reads `count` bytes from offset `at`, which the caller has found to be within the file. A file on
 * disk may have become shorter since. */
static mha_status read_at(const safetensors_open_file *f, uint64_t at, void *data, size_t count,
                          const safetensors_report *report)
{
    const size_t largest = (size_t)1 << 30; /* Linux reads less than 2 GB at once */
    unsigned char *const bytes = data;
    size_t done = 0;
    if (f->fd < 0) {
        if (count > 0)
            memcpy(data, f->bytes + at, count);
        return MHA_OK;
    }
    while (done < count) {
        const size_t left = count - done;
        const ssize_t got =
            pread(f->fd, bytes + done, left < largest ? left : largest, (off_t)(at + done));
        if (got == 0)
            return safetensors_fail(report, MHA_ERR_FILE, "became shorter while it was read");
        if (got > 0)
            done += (size_t)got;
        else if (errno != EINTR)
            return safetensors_fail_file(report, "read", errno);
    }
    return MHA_OK;
}

static uint64_t header_length(const unsigned char *bytes)
{
    uint64_t length = 0;
    for (int n = 0; n < SAFETENSORS_LENGTH_BYTES; n++)
        length |= (uint64_t)bytes[n] << 8 * n;
    return length;
}

/*
 * Checks the length of the header before anything is allocated. A pointer file of Git LFS, which
 * users meet when they have cloned a repository without LFS, is a text that begins with "version ":
 * it gets a message of its own.
 */
static mha_status check_length(safetensors_open_file *f, const unsigned char *start, uint64_t size,
                               const safetensors_report *report)
{
    const uint64_t length = header_length(start);
    if (memcmp(start, "version ", SAFETENSORS_LENGTH_BYTES) == 0)
        return safetensors_fail(
            report, MHA_ERR_FORMAT,
            "HeaderTooLarge: this is a text file, probably a Git LFS pointer: fetch "
            "the file itself with \"git lfs pull\"");
    if (length > SAFETENSORS_HEADER_MAX)
        return safetensors_fail(report, MHA_ERR_FORMAT,
                                "HeaderTooLarge: the header would have %" PRIu64
                                " bytes; %d are allowed",
                                length, SAFETENSORS_HEADER_MAX);
    if (length > size - SAFETENSORS_LENGTH_BYTES)
        return safetensors_fail(report, MHA_ERR_FORMAT,
                                "InvalidHeaderLength: the header would have %" PRIu64
                                " bytes, the file has %" PRIu64,
                                length, size);
    f->file.header_bytes = length;
    f->file.data_bytes = size - SAFETENSORS_LENGTH_BYTES - length;
    return MHA_OK;
}

static mha_status too_small(const safetensors_report *report, uint64_t size)
{
    return safetensors_fail(report, MHA_ERR_FORMAT,
                            "HeaderTooSmall: the file has %" PRIu64 " bytes, fewer than 8", size);
}

/* Reads and checks the header of a file of `size` bytes. */
static mha_status load(safetensors_open_file *f, uint64_t size, unsigned flags,
                       const safetensors_report *report)
{
    unsigned char start[SAFETENSORS_LENGTH_BYTES];
    if (size < SAFETENSORS_LENGTH_BYTES)
        return too_small(report, size);
    mha_status status = read_at(f, 0, start, sizeof start, report);
    if (status == MHA_OK)
        status = check_length(f, start, size, report);
    if (status != MHA_OK)
        return status;
    const size_t length = (size_t)f->file.header_bytes;
    f->header = malloc(length + 1);
    if (!f->header)
        return safetensors_fail(report, MHA_ERR_MEMORY, "out of memory for a header of %zu bytes",
                                length);
    status = read_at(f, SAFETENSORS_LENGTH_BYTES, f->header, length, report);
    return status == MHA_OK ? safetensors_parse(f, flags, report) : status;
}

static mha_status load_disk(safetensors_open_file *f, unsigned flags,
                            const safetensors_report *report)
{
    struct stat about;
    if (fstat(f->fd, &about) != 0)
        return safetensors_fail_file(report, "read", errno);
    if (!S_ISREG(about.st_mode))
        return safetensors_fail(report, MHA_ERR_FILE, "is not a regular file");
    return load(f, (uint64_t)about.st_size, flags, report);
}

static void release(safetensors_open_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->header);
    free(f->tensors);
    free(f->extents);
    free(f->pairs);
    free(f->index);
    free(f->path);
    free(f);
}

/* Returns the file to the caller, or frees it if there was an error. */
static mha_status finish(safetensors_file **file, safetensors_open_file *f, mha_status status)
{
    if (status == MHA_OK)
        *file = (safetensors_file *)f; /* its beginning */
    else
        release(f);
    return status;
}

static safetensors_open_file *new_file(const char *path)
{
    const size_t length = strlen(path) + 1;
    safetensors_open_file *const f = calloc(1, sizeof *f);
    char *const copy = malloc(length);
    if (!f || !copy) {
        free(f);
        free(copy);
        return NULL;
    }
    memcpy(copy, path, length);
    f->path = copy;
    f->fd = -1;
    return f;
}

mha_status safetensors_open(safetensors_file **file, const char *path, unsigned flags,
                            char *message, size_t message_size)
{
    const safetensors_report report = {path ? path : "NULL", message, message_size};
    if (!file || !path)
        return safetensors_fail(&report, MHA_ERR_NULL, "%s is NULL", file ? "path" : "file");
    *file = NULL;
    safetensors_open_file *const f = new_file(path);
    if (!f)
        return safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory");
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not block */
    return finish(file, f,
                  f->fd < 0 ? safetensors_fail_file(&report, "opened", errno)
                            : load_disk(f, flags, &report));
}

mha_status safetensors_open_memory(safetensors_file **file, const void *bytes, size_t size,
                                   unsigned flags, char *message, size_t message_size)
{
    const safetensors_report report = {"memory", message, message_size};
    if (!file || (!bytes && size))
        return safetensors_fail(&report, MHA_ERR_NULL, "%s is NULL", file ? "bytes" : "file");
    *file = NULL;
    safetensors_open_file *const f = new_file(report.path);
    if (!f)
        return safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory");
    f->bytes = bytes;
    return finish(file, f, load(f, size, flags, &report));
}

/* What callers see is the first member of the open file. */
static const safetensors_open_file *owner(const safetensors_file *file)
{
    return (const safetensors_open_file *)file;
}

void safetensors_close(safetensors_file *file)
{
    if (file)
        release((safetensors_open_file *)file);
}

const char *safetensors_value(const safetensors_file *file, const char *key)
{
    for (size_t n = 0; n < file->pair_count; n++)
        if (strcmp(file->pairs[n].key, key) == 0)
            return file->pairs[n].value;
    return NULL;
}

const safetensors_tensor *safetensors_find(const safetensors_file *file, const char *name)
{
    const safetensors_entry *const index = owner(file)->index;
    const uint64_t hash = mhai_text_hash(name);
    size_t low = 0, high = file->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (index[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < file->count && index[low].hash == hash; low++)
        if (strcmp(index[low].tensor->name, name) == 0)
            return index[low].tensor;
    return NULL;
}

mha_status safetensors_read(const safetensors_file *file, const safetensors_tensor *tensor,
                            void *data, char *message, size_t message_size)
{
    const safetensors_open_file *const f = owner(file);
    const safetensors_report report = {f->path, message, message_size};
    const uint64_t bytes = tensor->end - tensor->begin;
    if (bytes > SIZE_MAX)
        return safetensors_fail(&report, MHA_ERR_OVERFLOW, "\"%s\" does not fit in memory",
                                safetensors_show(tensor->name).text);
    const mha_status status =
        read_at(f, SAFETENSORS_LENGTH_BYTES + file->header_bytes + tensor->begin, data,
                (size_t)bytes, &report);
    if (status == MHA_OK)
        safetensors_swap(tensor->type, data, (size_t)bytes);
    return status;
}
