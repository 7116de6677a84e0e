/* SPDX-License-Identifier: MIT */
/* What the files of this room share: names of files as Windows has them, and its errors. */
#ifndef WINDOWS_WINDOWS_PARTS_H
#define WINDOWS_WINDOWS_PARTS_H

#include <wchar.h>

/* The files of this room call the functions of mingw-w64 themselves. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

typedef struct wide_path {
    wchar_t text[PATH_MAX];
} wide_path;

/* Converts a name from UTF-8. False with errno if it is not UTF-8, too long or empty. */
bool mhaw_widen(wide_path *path, const char *name);

/* The name of an entry in the folder with this descriptor, or as it is for AT_FDCWD. */
bool mhaw_widen_at(wide_path *path, int folder, const char *name);

/* Converts to UTF-8. False with errno if that does not fit into `size` bytes. */
bool mhaw_narrow(char *name, size_t size, const wchar_t *path);

/* The whole name of an open file or folder. False with errno. */
bool mhaw_name_of(wide_path *path, HANDLE handle);

/* Sets errno according to GetLastError(). Returns -1. */
int mhaw_fail(void);

/* -1 with this errno. */
int mhaw_fail_with(int error);

/* open() with a name of Windows. */
int mhaw_open_wide(const wide_path *path, int flags);

/* stat() or lstat(). */
int mhaw_stat_wide(const wide_path *path, bool follow, struct mhaw_stat *about);

int mhaw_unlink_wide(const wide_path *path);
int mhaw_rmdir_wide(const wide_path *path);

#endif
