/* SPDX-License-Identifier: MIT */
/* Wrappers of the system calls on files (file_faults.h). */
#include "support/file_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

int __real_open(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __real_pread(int fd, void *data, size_t size, off_t at);
ssize_t __real_write(int fd, const void *data, size_t size);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);
void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t at);

int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at);
ssize_t __wrap_write(int fd, const void *data, size_t size);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t at);

enum { DESCRIPTORS = 1024 };

/* Calls are counted from 1 while armed. */
static struct {
    bool armed, slow, for_ever, lost;
    int calls, fail_at;
    int open;
    bool writes[DESCRIPTORS];
} files;

static bool maps_are_refused;

/* `matters`: a failure of this call loses something. */
static bool refuse_one(bool matters)
{
    if (!files.armed)
        return false;
    const int call = ++files.calls;
    if (files.fail_at == 0 || call < files.fail_at || (call > files.fail_at && !files.for_ever))
        return false;
    files.lost |= matters;
    errno = EIO;
    return true;
}

static bool refuse(void)
{
    return refuse_one(true);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int mode = flags & O_CREAT ? va_arg(list, int) : 0;
    va_end(list);
    if (refuse())
        return -1;
    const int fd = __real_open(path, flags, mode);
    files.open += files.armed && fd >= 0;
    if (fd >= 0 && fd < DESCRIPTORS)
        files.writes[fd] = (flags & (O_WRONLY | O_RDWR)) != 0;
    return fd;
}

/* Every third call is interrupted, the others transfer only a few bytes. */
static bool interrupted(size_t *size)
{
    static int turn;
    if (!files.armed || !files.slow)
        return false;
    *size = *size < 7 ? *size : 7;
    errno = EINTR;
    return ++turn % 3 == 0;
}

ssize_t __wrap_read(int fd, void *data, size_t size)
{
    return interrupted(&size) || refuse() ? -1 : __real_read(fd, data, size);
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at)
{
    return interrupted(&size) || refuse() ? -1 : __real_pread(fd, data, size, at);
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    return interrupted(&size) || refuse() ? -1 : __real_write(fd, data, size);
}

int __wrap_fsync(int fd)
{
    return refuse() ? -1 : __real_fsync(fd);
}

int __wrap_close(int fd)
{
    files.open -= files.armed;
    const int result = __real_close(fd);
    return refuse_one(fd < 0 || fd >= DESCRIPTORS || files.writes[fd]) ? -1 : result;
}

int __wrap_rename(const char *from, const char *to)
{
    return refuse() ? -1 : __real_rename(from, to);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t at)
{
    if (fd >= 0 && (refuse_one(false) || maps_are_refused)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return __real_mmap(address, size, protection, flags, fd, at);
}

void file_faults_arm(int fail_at, bool for_ever, bool slow)
{
    memset(&files, 0, sizeof files);
    files.fail_at = fail_at;
    files.for_ever = for_ever;
    files.slow = slow;
    files.armed = true;
}

void file_faults_disarm(void)
{
    files.armed = false;
}

int file_faults_calls(void)
{
    return files.calls;
}

int file_faults_left(void)
{
    return files.open;
}

bool file_faults_lost(void)
{
    return files.lost;
}

void file_faults_refuse_maps(bool refuse_them)
{
    maps_are_refused = refuse_them;
}
