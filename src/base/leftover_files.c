/* SPDX-License-Identifier: MIT */
/* A file is removed only while this process holds its lock, so that a process which has just
 * created it notices: replace_file.c then makes another. */
#include "base/leftover_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Is this a name that mhai_file_open_new() gives: "BASE.PROCESS-ATTEMPT.tmp"? */
static bool is_temporary(const char *name, const char *base)
{
    const size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || name[length] != '.')
        return false;
    const char *const process = name + length + 1, *const dash = process + digits(process);
    if (dash == process || *dash != '-')
        return false;
    const char *const attempt = dash + 1, *const end = attempt + digits(attempt);
    return end != attempt && strcmp(end, ".tmp") == 0;
}

static void remove_unlocked(int folder, const char *name)
{
    struct stat about;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

void leftover_files_remove(const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const base = slash ? slash + 1 : path;
    char *const parent = slash ? strndup(path, (size_t)(base - path)) : NULL;
    DIR *const folder = !slash ? opendir(".") : parent ? opendir(parent) : NULL;
    const struct dirent *entry;
    free(parent);
    if (!folder)
        return;
    while ((entry = readdir(folder)))
        if (is_temporary(entry->d_name, base))
            remove_unlocked(dirfd(folder), entry->d_name);
    closedir(folder);
}
