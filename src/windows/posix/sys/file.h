/* SPDX-License-Identifier: MIT */
/* <sys/file.h> of POSIX: everything is in windows/posix.h. */
#ifndef WINDOWS_POSIX_SYS_FILE_H
#define WINDOWS_POSIX_SYS_FILE_H

#include "windows/posix.h"

#endif
