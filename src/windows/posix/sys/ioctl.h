/* SPDX-License-Identifier: MIT */
/* <sys/ioctl.h> of POSIX: everything is in windows/posix.h. */
#ifndef WINDOWS_POSIX_SYS_IOCTL_H
#define WINDOWS_POSIX_SYS_IOCTL_H

#include "windows/posix.h"

#endif
