/* SPDX-License-Identifier: MIT */
/* Names of files between UTF-8 and UTF-16, and errors of Windows as numbers of errno. */
#include "windows/windows_parts.h"

int mhaw_fail_with(int error)
{
    errno = error;
    return -1;
}

int mhaw_fail(void)
{
    static const struct {
        DWORD windows;
        int posix;
    } table[] = {
        {ERROR_FILE_NOT_FOUND, ENOENT},
        {ERROR_PATH_NOT_FOUND, ENOENT},
        {ERROR_INVALID_NAME, ENOENT},
        {ERROR_BAD_PATHNAME, ENOENT},
        {ERROR_BAD_NETPATH, ENOENT},
        {ERROR_INVALID_DRIVE, ENOENT},
        {ERROR_ACCESS_DENIED, EACCES},
        {ERROR_SHARING_VIOLATION, EACCES},
        {ERROR_USER_MAPPED_FILE, EACCES},
        {ERROR_WRITE_PROTECT, EROFS},
        {ERROR_FILE_EXISTS, EEXIST},
        {ERROR_ALREADY_EXISTS, EEXIST},
        {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
        {ERROR_DIRECTORY, ENOTDIR},
        {ERROR_NOT_SAME_DEVICE, EXDEV},
        {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
        {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
        {ERROR_OUTOFMEMORY, ENOMEM},
        {ERROR_COMMITMENT_LIMIT, ENOMEM},
        {ERROR_DISK_FULL, ENOSPC},
        {ERROR_HANDLE_DISK_FULL, ENOSPC},
        {ERROR_LOCK_VIOLATION, EWOULDBLOCK},
        {ERROR_IO_PENDING, EWOULDBLOCK},
        {ERROR_BROKEN_PIPE, EPIPE},
        {ERROR_NO_DATA, EPIPE},
        {ERROR_INVALID_HANDLE, EBADF},
        {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
        {ERROR_INVALID_PARAMETER, EINVAL},
    };
    const DWORD error = GetLastError();
    for (size_t n = 0; n < sizeof table / sizeof table[0]; n++)
        if (table[n].windows == error)
            return mhaw_fail_with(table[n].posix);
    return mhaw_fail_with(EIO);
}

/* Why a conversion between UTF-8 and UTF-16 failed. */
static bool fail_conversion(void)
{
    errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
    return false;
}

bool mhaw_widen(wide_path *path, const char *name)
{
    if (*name == '\0') {
        errno = ENOENT;
        return false;
    }
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, path->text, PATH_MAX) > 0 ||
           fail_conversion();
}

bool mhaw_narrow(char *name, size_t size, const wchar_t *path)
{
    return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, path, -1, name, (int)size, NULL,
                               NULL) > 0 ||
           fail_conversion();
}

bool mhaw_name_of(wide_path *path, HANDLE handle)
{
    const DWORD length = GetFinalPathNameByHandleW(handle, path->text, PATH_MAX, 0);
    if (length > 0 && length < PATH_MAX)
        return true;
    if (length == 0)
        mhaw_fail();
    else
        errno = ENAMETOOLONG;
    return false;
}

bool mhaw_widen_at(wide_path *path, int folder, const char *name)
{
    wide_path last;
    if (folder == AT_FDCWD)
        return mhaw_widen(path, name);
    if (!mhaw_widen(&last, name) || !mhaw_name_of(path, (HANDLE)_get_osfhandle(folder)))
        return false;
    const size_t length = wcslen(path->text);
    if (length + wcslen(last.text) + 2 > PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    path->text[length] = L'\\';
    wcscpy(path->text + length + 1, last.text);
    return true;
}

/* "\\?\C:\models" becomes "C:/models", and "\\?\UNC\host\models" "//host/models". */
static void simplify(wchar_t *path)
{
    static const wchar_t plain[] = L"\\\\?\\", share[] = L"\\\\?\\UNC\\";
    const wchar_t *from = path;
    wchar_t *to = path;
    if (wcsncmp(path, share, 8) == 0) {
        from += 8;
        *to++ = L'/';
        *to++ = L'/';
    } else if (wcsncmp(path, plain, 4) == 0) {
        from += 4;
    }
    for (; *from; from++)
        *to++ = *from == L'\\' ? L'/' : *from;
    *to = L'\0';
}

char *mhaw_realpath(const char *path, char *result)
{
    wide_path wide;
    if (!mhaw_widen(&wide, path))
        return NULL;
    const HANDLE handle =
        CreateFileW(wide.text, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        mhaw_fail();
        return NULL;
    }
    const bool named = mhaw_name_of(&wide, handle);
    CloseHandle(handle);
    if (!named)
        return NULL;
    simplify(wide.text);
    char *const made = result ? result : malloc(PATH_MAX);
    if (made && mhaw_narrow(made, PATH_MAX, wide.text))
        return made;
    if (!result)
        free(made);
    return NULL;
}
