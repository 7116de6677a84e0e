/* SPDX-License-Identifier: MIT */
/* <sys/mman.h> of POSIX: everything is in windows/posix.h. */
#ifndef WINDOWS_POSIX_SYS_MMAN_H
#define WINDOWS_POSIX_SYS_MMAN_H

#include "windows/posix.h"

#endif
