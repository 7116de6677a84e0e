/* SPDX-License-Identifier: MIT */
/* <dlfcn.h> of POSIX: everything is in windows/posix.h. */
#ifndef WINDOWS_POSIX_DLFCN_H
#define WINDOWS_POSIX_DLFCN_H

#include "windows/posix.h"

#endif
