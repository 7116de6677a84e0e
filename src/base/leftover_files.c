/* SPDX-License-Identifier: MIT */
/* Something is removed only while this process holds its lock, so that a process which has just
 * created it notices: replace_file.c and replace_folder.c then make another. */
#include "base/leftover_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace_folder.h"

typedef enum leftover { NO_LEFTOVER, UNFINISHED, MOVED_AWAY } leftover;

/* Which paths are meant: one, or all that begin with `name`. */
typedef struct wanted_names {
    const char *name;
    bool all;
} wanted_names;

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* What ".PROCESS-ATTEMPT.tmp" or ".PROCESS-old.tmp" says. */
static leftover kind_of(const char *suffix)
{
    const char *const process = suffix + 1, *const dash = process + digits(process);
    if (suffix[0] != '.' || dash == process || *dash != '-')
        return NO_LEFTOVER;
    const char *const attempt = dash + 1, *const end = attempt + digits(attempt);
    if (strcmp(attempt, "old.tmp") == 0)
        return MOVED_AWAY;
    return end != attempt && strcmp(end, ".tmp") == 0 ? UNFINISHED : NO_LEFTOVER;
}

/* Whether an entry is a temporary name of a path that is meant; *length: of the path's own name. */
static leftover look_at(const char *entry, const wanted_names *wanted, size_t *length)
{
    *length = strlen(wanted->name);
    if (strncmp(entry, wanted->name, *length) != 0)
        return NO_LEFTOVER;
    if (!wanted->all)
        return kind_of(entry + *length);
    for (const char *dot = strchr(entry + *length, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        *length = (size_t)(dot - entry);
        if (kind_of(dot) != NO_LEFTOVER)
            return kind_of(dot);
    }
    return NO_LEFTOVER;
}

/* A folder that was moved away takes its place again if there is none. */
static bool take_back(int folder, const char *name, size_t length)
{
    struct stat about;
    char *const path = strndup(name, length);
    const bool back = path != NULL && fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISDIR(about.st_mode) &&
                      fstatat(folder, path, &about, AT_SYMLINK_NOFOLLOW) != 0 &&
                      renameat(folder, name, folder, path) == 0;
    free(path);
    return back;
}

static void remove_unlocked(int folder, const char *name, size_t length, leftover kind)
{
    struct stat about;
    /* First of all, since Windows does not rename what is open. */
    if (kind == MOVED_AWAY && take_back(folder, name, length))
        return;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        if (S_ISREG(about.st_mode) && kind == UNFINISHED)
            unlinkat(folder, name, 0);
        if (S_ISDIR(about.st_mode))
            mhai_folder_remove_at(folder, name);
    }
    close(fd);
}

static void remove_from(DIR *folder, const wanted_names *wanted)
{
    const struct dirent *entry;
    size_t length;
    if (!folder)
        return;
    while ((entry = readdir(folder))) {
        const leftover kind = look_at(entry->d_name, wanted, &length);
        if (kind != NO_LEFTOVER)
            remove_unlocked(dirfd(folder), entry->d_name, length, kind);
    }
    closedir(folder);
}

void leftover_files_remove(const char *path)
{
    const char *const slash = strrchr(path, '/');
    const wanted_names wanted = {slash ? slash + 1 : path, false};
    char *const parent = slash ? strndup(path, (size_t)(wanted.name - path)) : NULL;
    remove_from(!slash ? opendir(".") : parent ? opendir(parent) : NULL, &wanted);
    free(parent);
}

void leftover_files_remove_all(const char *folder, const char *start)
{
    const wanted_names wanted = {start, true};
    remove_from(opendir(folder), &wanted);
}
