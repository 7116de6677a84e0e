/* SPDX-License-Identifier: MIT */
/* Recognises the files of models by their first bytes (file_kind.h). */
#include "format/file_kind.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace_file.h"
#include "format/llama2c.h"
#include "format/safetensors.h"

static bool ends_with(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

static file_kind kind_by_name(const char *path)
{
    return ends_with(path, ".gguf")          ? FILE_GGUF
           : ends_with(path, ".safetensors") ? FILE_SAFETENSORS
           : ends_with(path, ".bin")         ? FILE_LLAMA2C
                                             : FILE_UNKNOWN;
}

/* A header of so many bytes, which begins with "{". A file of llama2.c may have 123 layers, which
 * looks the same at byte 8; but not before. */
static bool is_safetensors(const unsigned char *bytes, uint64_t size)
{
    uint64_t header = 0;
    for (int n = 8; size > 8 && n-- > 0;)
        header = header << 8 | bytes[n];
    return size > 8 && bytes[8] == '{' && header <= SAFETENSORS_HEADER_MAX;
}

file_kind file_kind_of(const void *bytes, uint64_t size, const char *path)
{
    if (size >= 4 && memcmp(bytes, "GGUF", 4) == 0)
        return FILE_GGUF;
    if (size >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "\x80\2\x8a\n", 4) == 0))
        return FILE_TORCH;
    if (is_safetensors(bytes, size))
        return FILE_SAFETENSORS;
    return llama2c_begins(bytes, size) ? FILE_LLAMA2C : kind_by_name(path);
}

file_kind file_kind_at(const char *path)
{
    unsigned char bytes[FILE_KIND_BYTES];
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    if (fd < 0)
        return kind_by_name(path);
    uint64_t size = 0;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
        size = (uint64_t)about.st_size;
    const bool got =
        mhai_file_read(fd, bytes, size < sizeof bytes ? (size_t)size : sizeof bytes) == 0;
    close(fd);
    return got && size > 0 ? file_kind_of(bytes, size, path) : kind_by_name(path);
}
