/* SPDX-License-Identifier: MIT */
/* <sys/random.h> of POSIX: everything is in windows/posix.h. */
#ifndef WINDOWS_POSIX_SYS_RANDOM_H
#define WINDOWS_POSIX_SYS_RANDOM_H

#include "windows/posix.h"

#endif
