/* SPDX-License-Identifier: MIT */
/*
 * A file that one process at a time may be about to write. The lock is another file beside it,
 * "FILE.lock", that the process holds with flock(2) and that has its number in it. A process that
 * dies holds nothing any more, so that a file it leaves behind locks nobody out.
 */
#ifndef BASE_FILE_LOCK_H
#define BASE_FILE_LOCK_H

#include <stdbool.h>

typedef struct file_lock {
    char *name; /* of the lock; NULL: not held */
    int fd;
} file_lock;

/* False, with a message on stderr, if another process holds it or it cannot be made. `what` says
 * who that may be: "training". */
bool file_lock_take(file_lock *lock, const char *path, const char *what);

/* Deletes the lock, too; does nothing for one that is not held. */
void file_lock_release(file_lock *lock);

#endif
