/* SPDX-License-Identifier: MIT */
/* Locks by a file beside the one to be written; file_lock.h describes the protocol. */
#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the open file is still the file of this name: its owner may have deleted it meanwhile. */
static bool is_current(int fd, const char *name)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && stat(name, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/* Opens and locks the file. Returns -1 on failure; errno is EWOULDBLOCK if another process holds
 * the lock. Tries again if the file was deleted between opening and locking it. */
static int hold(const char *name)
{
    for (;;) {
        const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
            return -1;
        const bool held = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (held && is_current(fd, name))
            return fd;
        const int error = errno;
        close(fd);
        errno = error;
        if (!held)
            return -1;
    }
}

static void write_owner(int fd)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* The number is only for messages; the lock is held without it too. */
    if (ftruncate(fd, 0) != 0 || write(fd, text, (size_t)length) != length)
        errno = 0;
}

static long read_owner(const char *name)
{
    char text[32] = "";
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    if (fd >= 0)
        close(fd);
    return strtol(text, NULL, 10);
}

static void report(const char *path, const char *name, const char *what)
{
    if (errno == EWOULDBLOCK)
        fprintf(
            stderr,
            "mha: another %s, process %ld, is going to write %s. Wait for it, stop it, or choose "
            "another file\n",
            what, read_owner(name), path);
    else
        fprintf(stderr, "mha: cannot lock %s: %s\n", name, strerror(errno));
}

bool file_lock_take(file_lock *lock, const char *path, const char *what)
{
    static const char suffix[] = ".lock";
    const size_t size = strlen(path) + sizeof suffix;
    char *const name = malloc(size);
    if (name == NULL) {
        fprintf(stderr, "mha: out of memory\n");
        return false;
    }
    snprintf(name, size, "%s%s", path, suffix);
    const int fd = hold(name);
    if (fd < 0) {
        report(path, name, what);
        free(name);
        return false;
    }
    write_owner(fd);
    *lock = (file_lock){name, fd};
    return true;
}

void file_lock_release(file_lock *lock)
{
    if (lock->name == NULL)
        return;
    unlink(lock->name);
    close(lock->fd);
    free(lock->name);
    lock->name = NULL;
}
