/* SPDX-License-Identifier: MIT */
/*
 * Maps or reads whole files (mapped_file.h). Both kinds are opened and checked by open_regular();
 * a file that cannot be mapped, as on some network file systems, is read by read_all().
 */
#include "format/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/safetensors.h"

/* Linux maps up to so many bytes around a byte that is read, from a multiple of it on. */
enum { AROUND = 2 << 20 };

static const char lfs_pointer[] = "version https://git-lfs";

static mha_status check_size(const struct stat *about, uint64_t limit,
                             const safetensors_report *report)
{
    if (!S_ISREG(about->st_mode))
        return safetensors_fail(report, MHA_ERR_FILE, "is not a regular file");
    if (about->st_size == 0)
        return safetensors_fail(report, MHA_ERR_FORMAT, "the file is empty");
    if ((uint64_t)about->st_size > limit)
        return safetensors_fail(report, MHA_ERR_FORMAT,
                                "the file has %" PRIu64 " bytes; %" PRIu64 " are allowed",
                                (uint64_t)about->st_size, limit);
    return MHA_OK;
}

/* The caller closes *fd if it is not negative, also after an error. */
static mha_status open_regular(const char *path, uint64_t limit, int *fd, size_t *size,
                               const safetensors_report *report)
{
    struct stat about;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not block */
    if (*fd < 0)
        return safetensors_fail_file(report, "opened", errno);
    if (fstat(*fd, &about) != 0)
        return safetensors_fail_file(report, "read", errno);
    *size = (size_t)about.st_size;
    return check_size(&about, limit, report);
}

static mha_status read_all(int fd, char *to, size_t size, const safetensors_report *report)
{
    const size_t largest = (size_t)1 << 30; /* Linux reads less than 2 GB at once */
    for (size_t done = 0; done < size;) {
        const size_t left = size - done;
        const ssize_t got = read(fd, to + done, left < largest ? left : largest);
        if (got == 0)
            return safetensors_fail(report, MHA_ERR_FILE, "became shorter while it was read");
        if (got > 0)
            done += (size_t)got;
        else if (errno != EINTR)
            return safetensors_fail_file(report, "read", errno);
    }
    return MHA_OK;
}

static mha_status check_pointer(const void *bytes, size_t size, const safetensors_report *report)
{
    const size_t length = sizeof lfs_pointer - 1;
    if (size < length || memcmp(bytes, lfs_pointer, length) != 0)
        return MHA_OK;
    return safetensors_fail(report, MHA_ERR_FORMAT,
                            "this is a Git LFS pointer, not the file: fetch the file itself with "
                            "\"git lfs pull\"");
}

/* Allocates one byte more than `size` and sets it to zero. */
static mha_status read_copy(int fd, char **text, size_t size, const safetensors_report *report)
{
    char *const copy = malloc(size + 1);
    if (!copy)
        return safetensors_fail(report, MHA_ERR_MEMORY, "out of memory for a file of %zu bytes",
                                size);
    mha_status status = read_all(fd, copy, size, report);
    if (status == MHA_OK)
        status = check_pointer(copy, size, report);
    if (status != MHA_OK) {
        free(copy);
        return status;
    }
    copy[size] = '\0';
    *text = copy;
    return MHA_OK;
}

static mha_status map_or_read(mapped_file *file, int fd, size_t size,
                              const safetensors_report *report)
{
    void *const map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED) {
        *file = (mapped_file){map, size, true};
        return check_pointer(map, size, report);
    }
    char *copy = NULL;
    const mha_status status = read_copy(fd, &copy, size, report);
    if (status == MHA_OK)
        *file = (mapped_file){(unsigned char *)copy, size, false};
    return status;
}

mha_status mapped_file_open(mapped_file *file, const char *path, char *message, size_t message_size)
{
    const safetensors_report report = {path, message, message_size};
    size_t size = 0;
    int fd;
    memset(file, 0, sizeof *file);
    mha_status status = open_regular(path, PTRDIFF_MAX - 1, &fd, &size, &report);
    if (status == MHA_OK)
        status = map_or_read(file, fd, size, &report);
    if (fd >= 0)
        close(fd); /* a mapping stays */
    if (status != MHA_OK)
        mapped_file_close(file);
    return status;
}

void mapped_file_close(mapped_file *file)
{
    if (file->mapped)
        munmap((void *)file->bytes, file->size);
    else
        free((void *)file->bytes);
    memset(file, 0, sizeof *file);
}

void mapped_file_release(const mapped_file *file, size_t from, size_t size)
{
    const uintptr_t first = (uintptr_t)file->bytes, last = first + file->size;
    const uintptr_t from_around = (first + from) / AROUND * AROUND;
    const uintptr_t to_around = (first + from + size + AROUND - 1) / AROUND * AROUND;
    const uintptr_t begin = from_around < first ? first : from_around; /* a page begins there */
    const uintptr_t end = to_around > last ? last : to_around;
    if (file->mapped && begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

mha_status mapped_file_read(char **text, size_t *length, const char *path, size_t limit,
                            char *message, size_t message_size)
{
    const safetensors_report report = {path, message, message_size};
    int fd;
    *text = NULL;
    mha_status status = open_regular(path, limit, &fd, length, &report);
    if (status == MHA_OK)
        status = read_copy(fd, text, *length, &report);
    if (fd >= 0)
        close(fd);
    return status;
}

static mha_status read_format(const mapped_format *format, void *open, const char *path,
                              const void *bytes, size_t size, const safetensors_report *report)
{
    if (!path)
        return format->read(open, bytes, size, report);
    mapped_file *const map = (mapped_file *)(void *)((char *)open + format->map_at);
    const mha_status status = mapped_file_open(map, path, report->message, report->size);
    return status == MHA_OK ? format->read(open, map->bytes, map->size, report) : status;
}

void *mapped_format_open(const mapped_format *format, const char *path, const void *bytes,
                         size_t size, char *message, size_t message_size, mha_status *status)
{
    const safetensors_report report = {path ? path : "memory", message, message_size};
    void *const open = calloc(1, format->size);
    if (!open) {
        *status = safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory");
        return NULL;
    }
    *status = read_format(format, open, path, bytes, size, &report);
    if (*status == MHA_OK)
        return open;
    format->close(open);
    return NULL;
}
