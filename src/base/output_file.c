/* SPDX-License-Identifier: MIT */
/* Writes or checks a file by replace_file.h, and reports errors on stderr, which the library must
 * not do. */
#include "base/output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/leftover_files.h"
#include "base/replace_file.h"

typedef struct new_file {
    const char *path;
    char *name; /* of the temporary file that will replace `path` */
    int fd;
} new_file;

static int begin(new_file *file, const char *path)
{
    const size_t size = strlen(path) + MHAI_FILE_SUFFIX;
    *file = (new_file){path, malloc(size), -1};
    if (file->name == NULL)
        return ENOMEM;
    return mhai_file_open_new(path, file->name, size, &file->fd);
}

/* Lets `write` fill the file through a stream of its own, so that the descriptor stays open for
 * mhai_file_finish_new(). Returns an errno. */
static int fill(const new_file *file, void (*write)(FILE *file, const void *arg), const void *arg)
{
    const int copy = dup(file->fd);
    FILE *const stream = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (stream == NULL) {
        const int error = errno;
        if (copy >= 0)
            close(copy);
        return error;
    }
    errno = 0;
    write(stream, arg);
    const bool failed = ferror(stream) != 0;
    return fclose(stream) != 0 || failed ? (errno != 0 ? errno : EIO) : 0;
}

/* Prints the error, if there is one. Returns whether there was none. */
static bool report(const char *path, int error)
{
    if (error != 0)
        fprintf(stderr, "mha: cannot write %s: %s\n", path,
                error == ENOENT       ? "there is no such folder"
                : error == EOPNOTSUPP ? "it is a link or a device; only regular files are replaced"
                                      : strerror(error));
    return error == 0;
}

bool output_file_write(const char *path, void (*write)(FILE *file, const void *arg),
                       const void *arg)
{
    new_file file;
    int error = begin(&file, path);
    if (error == 0)
        error = mhai_file_finish_new(file.fd, file.name, path, fill(&file, write, arg));
    free(file.name);
    return report(path, error);
}

bool output_file_check(const char *path)
{
    new_file file;
    leftover_files_remove(path);
    const int error = begin(&file, path);
    if (error == 0) {
        close(file.fd);
        unlink(file.name);
    }
    free(file.name);
    return report(path, error);
}
