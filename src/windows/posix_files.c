/* SPDX-License-Identifier: MIT */
/*
 * Files by their descriptors. They are opened with CreateFileW(), since open() of mingw-w64 lets
 * nobody rename or remove a file while it is open, and never opens a folder.
 */
#include "windows/windows_parts.h"

enum { SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

/* ------------------------------------------------------------------ open ----- */

static DWORD access_of(int flags)
{
    const DWORD writes = flags & O_APPEND ? FILE_APPEND_DATA | SYNCHRONIZE : GENERIC_WRITE;
    switch (flags & (O_WRONLY | O_RDWR)) {
    case O_WRONLY:
        return writes;
    case O_RDWR:
        return GENERIC_READ | writes;
    default:
        return GENERIC_READ;
    }
}

static DWORD disposition_of(int flags)
{
    if (flags & O_CREAT)
        return flags & O_EXCL ? CREATE_NEW : flags & O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
    return flags & O_TRUNC ? TRUNCATE_EXISTING : OPEN_EXISTING;
}

/* 0, or the error of a folder or link that must not be opened so. */
static int refuse(HANDLE handle, int flags)
{
    BY_HANDLE_FILE_INFORMATION info;
    if (GetFileType(handle) != FILE_TYPE_DISK)
        return flags & O_DIRECTORY ? ENOTDIR : 0;
    if (!GetFileInformationByHandle(handle, &info)) {
        mhaw_fail();
        return errno;
    }
    const bool folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    if (flags & O_NOFOLLOW && info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)
        return ELOOP;
    if (flags & O_DIRECTORY)
        return folder ? 0 : ENOTDIR;
    return folder && flags & (O_WRONLY | O_RDWR) ? EISDIR : 0;
}

int mhaw_open_wide(const wide_path *path, int flags)
{
    const DWORD attributes = FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS |
                             (flags & O_NOFOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0);
    const HANDLE handle = CreateFileW(path->text, access_of(flags), SHARE_ALL, NULL,
                                      disposition_of(flags), attributes, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return mhaw_fail();
    const int error = refuse(handle, flags);
    if (error) {
        CloseHandle(handle);
        return mhaw_fail_with(error);
    }
    const int fd = _open_osfhandle((intptr_t)handle, (flags & (O_APPEND | O_WRONLY | O_RDWR)) |
                                                         O_BINARY | O_NOINHERIT);
    if (fd < 0)
        CloseHandle(handle);
    return fd;
}

/* Permissions of new files are those of their folder: the third argument is not used. */
int mhaw_open(const char *path, int flags, ...)
{
    wide_path wide;
    return mhaw_widen(&wide, path) ? mhaw_open_wide(&wide, flags) : -1;
}

int mhaw_openat(int folder, const char *name, int flags, ...)
{
    wide_path wide;
    return mhaw_widen_at(&wide, folder, name) ? mhaw_open_wide(&wide, flags) : -1;
}

/* -------------------------------------------------------- read and write ----- */

/* What one call of mingw-w64 can take. */
static unsigned part_of(size_t size)
{
    const size_t largest = (size_t)1 << 30;
    return (unsigned)(size < largest ? size : largest);
}

ssize_t mhaw_read(int fd, void *data, size_t size)
{
    return _read(fd, data, part_of(size));
}

ssize_t mhaw_write(int fd, const void *data, size_t size)
{
    return _write(fd, data, part_of(size));
}

static OVERLAPPED place_at(off_t at)
{
    return (OVERLAPPED){.Offset = (DWORD)at, .OffsetHigh = (DWORD)((uint64_t)at >> 32)};
}

/* Unlike on POSIX these two move the position of the file; no room reads or writes at the position
 * after them. */
ssize_t mhaw_pwrite(int fd, const void *data, size_t size, off_t at)
{
    OVERLAPPED place = place_at(at);
    DWORD wrote = 0;
    return WriteFile((HANDLE)_get_osfhandle(fd), data, part_of(size), &wrote, &place)
               ? (ssize_t)wrote
               : mhaw_fail();
}

ssize_t mhaw_pread(int fd, void *data, size_t size, off_t at)
{
    OVERLAPPED place = place_at(at);
    DWORD got = 0;
    if (ReadFile((HANDLE)_get_osfhandle(fd), data, part_of(size), &got, &place) ||
        GetLastError() == ERROR_HANDLE_EOF)
        return (ssize_t)got;
    return mhaw_fail();
}

/* A folder cannot be flushed; EINVAL is what POSIX has for such files. */
int mhaw_fsync(int fd)
{
    struct mhaw_stat about;
    if (mhaw_fstat(fd, &about) == 0 && S_ISDIR(about.st_mode))
        return mhaw_fail_with(EINVAL);
    return FlushFileBuffers((HANDLE)_get_osfhandle(fd)) ? 0 : mhaw_fail();
}

/* Others may read what is locked, so the lock is on a byte that no file has. */
int mhaw_flock(int fd, int operation)
{
    OVERLAPPED place = {.Offset = 0, .OffsetHigh = 0x7fffffff};
    const DWORD flags =
        LOCKFILE_EXCLUSIVE_LOCK | (operation & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0);
    if (LockFileEx((HANDLE)_get_osfhandle(fd), flags, 0, 1, 0, &place))
        return 0;
    return mhaw_fail();
}

/* ------------------------------------------------------------------ stat ----- */

static unsigned mode_of(DWORD attributes, bool follow)
{
    if (!follow && attributes & FILE_ATTRIBUTE_REPARSE_POINT)
        return S_IFLNK;
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? S_IFDIR : S_IFREG;
}

static int stat_handle(HANDLE handle, bool follow, struct mhaw_stat *about)
{
    BY_HANDLE_FILE_INFORMATION info;
    FILE_STANDARD_INFO more;
    const DWORD type = GetFileType(handle);
    *about = (struct mhaw_stat){.st_mode = type == FILE_TYPE_PIPE ? S_IFIFO : S_IFCHR};
    if (type != FILE_TYPE_DISK)
        return type == FILE_TYPE_UNKNOWN ? mhaw_fail_with(EBADF) : 0;
    if (!GetFileInformationByHandle(handle, &info) ||
        !GetFileInformationByHandleEx(handle, FileStandardInfo, &more, sizeof more))
        return mhaw_fail();
    about->st_mode = mode_of(info.dwFileAttributes, follow);
    about->st_size = S_ISREG(about->st_mode) ? more.EndOfFile.QuadPart : 0;
    about->st_nlink = more.DeletePending ? 0 : more.NumberOfLinks;
    about->st_dev = info.dwVolumeSerialNumber;
    about->st_ino = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    return 0;
}

int mhaw_stat_wide(const wide_path *path, bool follow, struct mhaw_stat *about)
{
    const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
    const HANDLE handle =
        CreateFileW(path->text, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING, flags, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return mhaw_fail();
    const int result = stat_handle(handle, follow, about);
    CloseHandle(handle);
    return result;
}

int mhaw_stat(const char *path, struct mhaw_stat *about)
{
    wide_path wide;
    return mhaw_widen(&wide, path) ? mhaw_stat_wide(&wide, true, about) : -1;
}

int mhaw_lstat(const char *path, struct mhaw_stat *about)
{
    wide_path wide;
    return mhaw_widen(&wide, path) ? mhaw_stat_wide(&wide, false, about) : -1;
}

int mhaw_fstat(int fd, struct mhaw_stat *about)
{
    const HANDLE handle = (HANDLE)_get_osfhandle(fd);
    return handle == INVALID_HANDLE_VALUE ? mhaw_fail_with(EBADF)
                                          : stat_handle(handle, true, about);
}

/* Whether a file may be read is found out by opening it. */
int mhaw_access(const char *path, int mode)
{
    struct mhaw_stat about;
    (void)mode;
    return mhaw_stat(path, &about);
}

/* ------------------------------------------------------ rename and remove ----- */

/*
 * Replaces a file that is open or mapped: Windows renames such a file, but does not replace it. The
 * old file gets a name that leftover_files.c knows, in case it cannot be removed yet. `path` does
 * not exist for a moment.
 */
static int replace_open(const wide_path *from, const wide_path *path)
{
    wide_path aside;
    for (int attempt = 0; attempt < 100; attempt++) {
        const int length = swprintf(aside.text, PATH_MAX, L"%ls.%ld-%d.tmp", path->text,
                                    (long)GetCurrentProcessId(), attempt);
        if (length < 0 || length >= PATH_MAX)
            return mhaw_fail_with(ENAMETOOLONG);
        if (MoveFileExW(path->text, aside.text, 0))
            break;
        if (GetLastError() != ERROR_ALREADY_EXISTS && GetLastError() != ERROR_FILE_EXISTS)
            return mhaw_fail();
    }
    if (!MoveFileExW(from->text, path->text, 0)) {
        mhaw_fail();
        MoveFileExW(aside.text, path->text, 0);
        return -1;
    }
    DeleteFileW(aside.text);
    return 0;
}

/* An empty folder may be replaced by a folder, as on POSIX. */
static int rename_wide(const wide_path *from, const wide_path *to)
{
    struct mhaw_stat source, target;
    if (mhaw_stat_wide(from, false, &source) != 0)
        return -1;
    if (S_ISDIR(source.st_mode) && mhaw_stat_wide(to, false, &target) == 0 &&
        S_ISDIR(target.st_mode) && mhaw_rmdir_wide(to) != 0)
        return -1;
    if (MoveFileExW(from->text, to->text, MOVEFILE_REPLACE_EXISTING))
        return 0;
    return GetLastError() == ERROR_ACCESS_DENIED && !S_ISDIR(source.st_mode)
               ? replace_open(from, to)
               : mhaw_fail();
}

int mhaw_rename(const char *from, const char *to)
{
    wide_path old, new;
    return mhaw_widen(&old, from) && mhaw_widen(&new, to) ? rename_wide(&old, &new) : -1;
}

int mhaw_renameat(int folder, const char *from, int other_folder, const char *to)
{
    wide_path old, new;
    return mhaw_widen_at(&old, folder, from) && mhaw_widen_at(&new, other_folder, to)
               ? rename_wide(&old, &new)
               : -1;
}

int mhaw_unlink_wide(const wide_path *path)
{
    return DeleteFileW(path->text) ? 0 : mhaw_fail();
}

int mhaw_rmdir_wide(const wide_path *path)
{
    return RemoveDirectoryW(path->text) ? 0 : mhaw_fail();
}

int mhaw_unlink(const char *path)
{
    wide_path wide;
    return mhaw_widen(&wide, path) ? mhaw_unlink_wide(&wide) : -1;
}

int mhaw_rmdir(const char *path)
{
    wide_path wide;
    return mhaw_widen(&wide, path) ? mhaw_rmdir_wide(&wide) : -1;
}

int mhaw_remove(const char *path)
{
    struct mhaw_stat about;
    if (mhaw_lstat(path, &about) != 0)
        return -1;
    return S_ISDIR(about.st_mode) ? mhaw_rmdir(path) : mhaw_unlink(path);
}

int mhaw_mkdir(const char *path, int mode)
{
    wide_path wide;
    (void)mode;
    if (!mhaw_widen(&wide, path))
        return -1;
    return CreateDirectoryW(wide.text, NULL) ? 0 : mhaw_fail();
}
