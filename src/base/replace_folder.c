/* SPDX-License-Identifier: MIT */
/* Part of libmha_model too: it never prints. Folders are at most two levels deep, and links are
 * never followed, so that nothing outside of a folder can be removed with it. */
#include "base/replace_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exchange_paths.h"

/* What a walk through a folder does with each entry; `depth` is 0 for those of the folder itself.
 * Returns an error, which ends the walk. */
typedef int (*visit_entry)(int folder, const char *name, bool is_folder, int depth, void *context);

/* Visits what is in an open folder, which is closed; entries of inner folders come before these. */
static int walk(int fd, int depth, visit_entry visit, void *context)
{
    DIR *const folder = fdopendir(fd);
    int error = 0;
    if (!folder) {
        error = errno;
        close(fd);
        return error;
    }
    while (!error) {
        struct stat about;
        errno = 0;
        const struct dirent *const entry = readdir(folder);
        if (!entry) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
            error = errno;
            break;
        }
        const bool is_folder = S_ISDIR(about.st_mode);
        if (is_folder && depth > 0) {
            error = ENOTEMPTY;
        } else if (is_folder) {
            const int inner = openat(dirfd(folder), entry->d_name,
                                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            error = inner < 0 ? errno : walk(inner, depth + 1, visit, context);
        }
        if (!error)
            error = visit(dirfd(folder), entry->d_name, is_folder, depth, context);
    }
    closedir(folder);
    return error;
}

static int walk_path(int parent, const char *path, visit_entry visit, void *context)
{
    const int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? errno : walk(fd, 0, visit, context);
}

static int remove_entry(int folder, const char *name, bool is_folder, int depth, void *context)
{
    (void)depth;
    (void)context;
    return unlinkat(folder, name, is_folder ? AT_REMOVEDIR : 0) == 0 ? 0 : errno;
}

static int remove_folder(const char *path)
{
    const int error = walk_path(AT_FDCWD, path, remove_entry, NULL);
    return error ? error : rmdir(path) == 0 ? 0 : errno;
}

/* ------------------------------------------------------------------ checks ----- */

typedef struct folder_content {
    const char *mark; /* or NULL */
    bool is_empty, is_marked;
} folder_content;

static int look_at(int folder, const char *name, bool is_folder, int depth, void *context)
{
    folder_content *const content = context;
    (void)folder;
    content->is_empty = false;
    if (depth == 0 && !is_folder && content->mark && strcmp(name, content->mark) == 0)
        content->is_marked = true;
    return 0;
}

/* Whether a new folder may be renamed to `path`. *is_free: there is nothing to be removed. */
static int check_place(const char *path, const char *mark, bool *is_free)
{
    struct stat about;
    *is_free = true;
    if (lstat(path, &about) != 0)
        return errno == ENOENT ? 0 : errno;
    if (!S_ISDIR(about.st_mode))
        return mark ? ENOTDIR : EEXIST;
    folder_content content = {.mark = mark, .is_empty = true};
    const int error = walk_path(AT_FDCWD, path, look_at, &content);
    *is_free = !error && content.is_empty;
    if (*is_free)
        return 0;
    if (!mark)
        return EEXIST;
    return error ? error : content.is_marked ? 0 : ENOTEMPTY;
}

/* --------------------------------------------------------------- interface ----- */

/*
 * Opens and locks a folder that was just made. EEXIST if another process took it for a leftover and
 * has removed it or is about to.
 */
static int hold_new(const char *name, int *held)
{
    struct stat open_folder, named;
    const int fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *held = -1;
    if (fd < 0)
        return errno == ENOENT ? EEXIST : 0;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool taken = !locked && errno == EWOULDBLOCK;
    const bool gone = fstat(fd, &open_folder) != 0 || stat(name, &named) != 0 ||
                      open_folder.st_ino != named.st_ino;
    if (locked && !gone)
        *held = fd;
    else
        close(fd);
    return taken || (locked && gone) ? EEXIST : 0;
}

int mhai_folder_open_new(const char *path, const char *mark, char *name, size_t size, int *held)
{
    bool is_free;
    int error = check_place(path, mark, &is_free);
    *held = -1;
    if (error)
        return error;
    error = EEXIST; /* a folder with this name may be left over from another process */
    for (int attempt = 0; attempt < 100 && error == EEXIST; attempt++) {
        snprintf(name, size, "%s.%ld-%d.tmp", path, (long)getpid(), attempt);
        error = mkdir(name, 0777) == 0 ? hold_new(name, held) : errno;
    }
    return error;
}

static int sync_folder(const char *name)
{
    const int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return error;
}

/* Moves the old folder out of the way, so that the new one can take its name. If the process dies
 * in between, leftover_files.c gives the old one its name back. */
static int exchange_in_steps(const char *name, const char *path)
{
    const size_t size = strlen(path) + MHAI_FOLDER_SUFFIX;
    char *const old = malloc(size);
    if (!old)
        return ENOMEM;
    snprintf(old, size, "%s.%ld-old.tmp", path, (long)getpid());
    int error = rename(path, old) == 0 ? 0 : errno;
    if (!error && rename(name, path) != 0) {
        error = errno;
        rename(old, path);
    }
    if (!error)
        remove_folder(old); /* the new folder is in its place, whether or not this succeeds */
    free(old);
    return error;
}

static int exchange(const char *name, const char *path)
{
    const int error = mhai_paths_exchange(name, path);
    if (!error)
        remove_folder(name); /* which is the old one now, whether or not this succeeds */
    return error == ENOSYS || error == EINVAL ? exchange_in_steps(name, path) : error;
}

int mhai_folder_finish_new(int held, const char *name, const char *path, const char *mark,
                           int error)
{
    bool is_free = true;
    if (!error)
        error = sync_folder(name);
    if (!error)
        error = check_place(path, mark, &is_free);
    if (!error)
        error = !is_free ? exchange(name, path) : rename(name, path) == 0 ? 0 : errno;
    if (error)
        remove_folder(name);
    if (held >= 0)
        close(held);
    return error;
}

int mhai_folder_remove_at(int folder, const char *name)
{
    folder_content content = {.mark = NULL};
    int error = walk_path(folder, name, look_at, &content);
    if (!error)
        error = walk_path(folder, name, remove_entry, NULL);
    return error ? error : unlinkat(folder, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}
