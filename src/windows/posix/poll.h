/* SPDX-License-Identifier: MIT */
/* <poll.h> of POSIX: everything is in windows/posix.h. */
#ifndef WINDOWS_POSIX_POLL_H
#define WINDOWS_POSIX_POLL_H

#include "windows/posix.h"

#endif
