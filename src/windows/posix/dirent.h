/* SPDX-License-Identifier: MIT */
/* <dirent.h> of POSIX, with names in UTF-8. The one of mingw-w64 has them in the code page of the
 * machine. */
#ifndef WINDOWS_POSIX_DIRENT_H
#define WINDOWS_POSIX_DIRENT_H

#include "windows/posix.h"

typedef struct mhaw_folder DIR;

struct dirent {
    char d_name[NAME_MAX + 1];
};

DIR *mhaw_opendir(const char *path);
DIR *mhaw_fdopendir(int fd);
struct dirent *mhaw_readdir(DIR *folder);
int mhaw_dirfd(const DIR *folder);
int mhaw_closedir(DIR *folder);
#define opendir mhaw_opendir
#define fdopendir mhaw_fdopendir
#define readdir mhaw_readdir
#define dirfd mhaw_dirfd
#define closedir mhaw_closedir

#endif
