/* SPDX-License-Identifier: MIT */
/*
 * A lock for a file that only one process at a time may write. The lock is another file next to it,
 * "FILE.lock", held with flock(2), which contains the number of the process. When a process dies
 * the system releases the lock, so a lock file that is left over does no harm.
 */
#ifndef BASE_FILE_LOCK_H
#define BASE_FILE_LOCK_H

#include <stdbool.h>

typedef struct file_lock {
    char *name; /* of the lock; NULL: not held */
    int fd;
} file_lock;

/* Takes the lock for the file at `path`. False, after a message on stderr, if another process holds
 * it or it cannot be made. `what` names that process in the message: "training". */
bool file_lock_take(file_lock *lock, const char *path, const char *what);

/* Releases and deletes the lock. Does nothing if it is not held. */
void file_lock_release(file_lock *lock);

#endif
