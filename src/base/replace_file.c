/* SPDX-License-Identifier: MIT */
/* Part of the library too: it never prints. The new file is synced before it is renamed, so that
 * the name never refers to a file whose contents are not on the disk. */
#include "base/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Devices, pipes and sockets are not replaced; nor are links, whose targets would not change. */
static int check_replaceable(const char *path)
{
    struct stat there;
    if (lstat(path, &there) != 0)
        return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(there.st_mode))
        return EISDIR;
    return S_ISREG(there.st_mode) ? 0 : EOPNOTSUPP;
}

/*
 * Locks a new file for as long as it is open, by which leftover_files.c knows that a process is
 * writing it. False if it was removed before it was locked. Where files cannot be locked they are
 * never removed.
 */
static bool lock_new(int fd)
{
    struct stat about;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &about) != 0 || about.st_nlink > 0;
}

int mhai_file_open_new(const char *path, char *name, size_t size, int *fd)
{
    int error = check_replaceable(path);
    if (error)
        return error;
    error = EEXIST; /* a file with this name may be left over from another process */
    for (int attempt = 0; attempt < 100 && error == EEXIST; attempt++) {
        snprintf(name, size, "%s.%ld-%d.tmp", path, (long)getpid(), attempt);
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        error = *fd < 0 ? errno : 0;
        if (!error && !lock_new(*fd)) {
            close(*fd);
            error = EEXIST;
        }
    }
    return error;
}

int mhai_file_write(int fd, const void *data, size_t count)
{
    const size_t largest = (size_t)1 << 30; /* Linux writes at most 2 GB per call */
    const unsigned char *const bytes = data;
    size_t done = 0;
    while (done < count) {
        const size_t left = count - done;
        const ssize_t wrote = write(fd, bytes + done, left < largest ? left : largest);
        if (wrote > 0)
            done += (size_t)wrote;
        else if (wrote == 0 || errno != EINTR)
            return wrote == 0 ? EIO : errno;
    }
    return 0;
}

int mhai_file_read(int fd, void *data, size_t count)
{
    unsigned char *const bytes = data;
    for (size_t done = 0; done < count;) {
        const ssize_t got = read(fd, bytes + done, count - done);
        if (got == 0)
            return EIO;
        if (got < 0 && errno != EINTR)
            return errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int mhai_file_finish_new(int fd, const char *name, const char *path, int error)
{
    if (!error && fsync(fd) != 0 && errno != EINVAL)
        error = errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && rename(name, path) != 0)
        error = errno;
    if (error)
        unlink(name);
    return error;
}

void mhai_file_swap(void *data, size_t size, size_t count)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return;
    unsigned char *const bytes = data;
    for (size_t n = 0; n < count; n++)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            const unsigned char byte = bytes[n * size + a];
            bytes[n * size + a] = bytes[n * size + b];
            bytes[n * size + b] = byte;
        }
}

uint64_t mhai_file_hash(uint64_t hash, const void *data, size_t count)
{
    const unsigned char *const bytes = data;
    for (size_t n = 0; n < count; n++)
        hash = (hash ^ bytes[n]) * 0x100000001b3u;
    return hash;
}
