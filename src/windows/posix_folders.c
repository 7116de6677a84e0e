/* SPDX-License-Identifier: MIT */
/* What is in a folder, and files by the descriptor of their folder. Tests let calls of open(),
 * close() and malloc() fail, but not those of a C library: they are not called here. */
#include "windows/windows_parts.h"

#include <dirent.h>

#undef calloc
#undef free

struct mhaw_folder {
    int fd;
    HANDLE search; /* INVALID_HANDLE_VALUE before the first entry */
    WIN32_FIND_DATAW found;
    struct dirent entry;
};

DIR *mhaw_fdopendir(int fd)
{
    struct mhaw_stat about;
    if (mhaw_fstat(fd, &about) != 0 || !S_ISDIR(about.st_mode)) {
        errno = ENOTDIR;
        return NULL;
    }
    DIR *const folder = calloc(1, sizeof *folder);
    if (folder) {
        folder->fd = fd;
        folder->search = INVALID_HANDLE_VALUE;
    }
    return folder;
}

DIR *mhaw_opendir(const char *path)
{
    const int fd = mhaw_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    DIR *const folder = fd >= 0 ? mhaw_fdopendir(fd) : NULL;
    if (fd >= 0 && !folder)
        _close(fd);
    return folder;
}

/* False at the end, with errno as it was, or after an error. */
static bool find_next(DIR *folder)
{
    wide_path pattern;
    bool found;
    if (folder->search != INVALID_HANDLE_VALUE) {
        found = FindNextFileW(folder->search, &folder->found);
    } else {
        if (!mhaw_widen_at(&pattern, folder->fd, "*"))
            return false;
        folder->search = FindFirstFileW(pattern.text, &folder->found);
        found = folder->search != INVALID_HANDLE_VALUE;
    }
    if (!found && GetLastError() != ERROR_NO_MORE_FILES)
        mhaw_fail();
    return found;
}

struct dirent *mhaw_readdir(DIR *folder)
{
    if (!find_next(folder) ||
        !mhaw_narrow(folder->entry.d_name, sizeof folder->entry.d_name, folder->found.cFileName))
        return NULL;
    return &folder->entry;
}

int mhaw_dirfd(const DIR *folder)
{
    return folder->fd;
}

int mhaw_closedir(DIR *folder)
{
    if (folder->search != INVALID_HANDLE_VALUE)
        FindClose(folder->search);
    const int result = _close(folder->fd);
    free(folder);
    return result;
}

int mhaw_fstatat(int folder, const char *name, struct mhaw_stat *about, int flags)
{
    wide_path wide;
    return mhaw_widen_at(&wide, folder, name)
               ? mhaw_stat_wide(&wide, !(flags & AT_SYMLINK_NOFOLLOW), about)
               : -1;
}

int mhaw_unlinkat(int folder, const char *name, int flags)
{
    wide_path wide;
    if (!mhaw_widen_at(&wide, folder, name))
        return -1;
    return flags & AT_REMOVEDIR ? mhaw_rmdir_wide(&wide) : mhaw_unlink_wide(&wide);
}

/* Replaces the six "X" at the end. */
char *mhaw_mkdtemp(char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    char *const end = path + strlen(path) - 6;
    for (int attempt = 0; attempt < 100; attempt++) {
        unsigned char random[6];
        if (mhaw_getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return NULL;
        for (int n = 0; n < 6; n++)
            end[n] = letters[random[n] % 32];
        if (mhaw_mkdir(path, 0700) == 0)
            return path;
        if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}
